#include "audit/wire_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

bool wire_head(struct span *frame, struct wire_head *ret)
{
	if (frame->len < sizeof(*ret))
		return false;
	memcpy(ret, frame->at, sizeof(*ret));
	*frame = span_skip(*frame, sizeof(*ret));
	return true;
}

bool wire_flush(struct frame_conn *c)
{
	while (c->fd >= 0 && frame_waiting(c)) {
		struct span s = buf_span(&c->out);
		ssize_t n = send(c->fd, s.at, s.len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0) {
			buf_clear(&c->out);
			return false;
		}
		buf_consume(&c->out, (size_t)n);
	}
	return c->fd >= 0;
}
