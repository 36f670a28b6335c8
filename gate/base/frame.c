#include "gate/base/frame.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES 65536

void frame_init(struct frame_conn *c, int fd, size_t out_cap)
{
	*c = (struct frame_conn){.fd = fd};
	buf_init(&c->in, FRAME_MAX + sizeof(uint32_t) + READ_BYTES);
	buf_init(&c->out, out_cap);
}

void frame_close(struct frame_conn *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	buf_fini(&c->in);
	buf_fini(&c->out);
	c->taken = 0;
}

bool frame_put(struct frame_conn *c, struct span head, struct span body)
{
	uint32_t len = (uint32_t)(head.len + body.len);
	size_t need = sizeof(len) + len;

	if (c->fd < 0 || head.len + body.len > FRAME_MAX || need > buf_room(&c->out) ||
	    !buf_reserve(&c->out, need))
		return false;
	buf_put(&c->out, &len, sizeof(len));
	buf_put(&c->out, head.at, head.len);
	buf_put(&c->out, body.at, body.len);
	return true;
}

bool frame_flush(struct frame_conn *c)
{
	while (c->fd >= 0 && frame_waiting(c)) {
		struct span s = buf_span(&c->out);
		ssize_t n = send(c->fd, s.at, s.len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0) {
			frame_close(c);
			return false;
		}
		buf_consume(&c->out, (size_t)n);
	}
	return c->fd >= 0;
}

static void drop_taken(struct frame_conn *c)
{
	buf_consume(&c->in, c->taken);
	c->taken = 0;
}

bool frame_fill(struct frame_conn *c)
{
	drop_taken(c);
	while (c->fd >= 0) {
		size_t want = buf_room(&c->in) < READ_BYTES ? buf_room(&c->in) : READ_BYTES;
		char *at = want ? buf_reserve(&c->in, want) : NULL;
		ssize_t n;

		if (!at)
			return true; /* let the reader take some first */
		n = recv(c->fd, at, want, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0)
			return false;
		buf_commit(&c->in, (size_t)n);
		if ((size_t)n < want)
			return true;
	}
	return false;
}

bool frame_next(struct frame_conn *c, struct span *ret)
{
	struct span s;
	uint32_t len;

	drop_taken(c);
	s = buf_span(&c->in);
	if (s.len < sizeof(len))
		return false;
	memcpy(&len, s.at, sizeof(len));
	if (len > FRAME_MAX) {
		frame_close(c);
		return false;
	}
	if (s.len - sizeof(len) < len)
		return false;
	*ret = (struct span){s.at + sizeof(len), len};
	c->taken = sizeof(len) + len;
	return true;
}
