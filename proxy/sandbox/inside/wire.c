#include "proxy/sandbox/inside/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINGER_MS 5000

void wire_init(void)
{
	for (int fd = 0; fd <= 1; fd++) {
		int flags = fcntl(fd, F_GETFL);

		if (flags >= 0)
			(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	}
}

int wire_fill(struct wire_in *in)
{
	ssize_t n;

	if (in->have == sizeof(in->data))
		return 0;
	n = read(0, in->data + in->have, sizeof(in->data) - in->have);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : WIRE_GONE;
	if (n == 0)
		return WIRE_GONE;
	in->have += (size_t)n;
	return 1;
}

int wire_next(const struct wire_in *in, struct frame *ret)
{
	uint32_t length;

	if (in->have < FRAME_HEAD)
		return 0;
	length = frame_length(in->data);
	if (length > FRAME_DATA_MAX || in->data[0] > FRAME_RESIZE) {
		errno = EPROTO;
		return -1;
	}
	if (in->have < FRAME_HEAD + length)
		return 0;
	ret->type = (enum frame_type)in->data[0];
	ret->data = in->data + FRAME_HEAD;
	ret->length = length;
	return 1;
}

void wire_drop(struct wire_in *in)
{
	size_t taken = FRAME_HEAD + frame_length(in->data);

	in->have -= taken;
	memmove(in->data, in->data + taken, in->have);
}

/* Takes the first octets of the frame in front, which stays a frame: its head moves. */
static void take_part(struct wire_in *in, const struct frame *f, size_t taken)
{
	if (taken == f->length) {
		wire_drop(in);
		return;
	}
	memmove(in->data + FRAME_HEAD, in->data + FRAME_HEAD + taken,
		in->have - FRAME_HEAD - taken);
	in->have -= taken;
	frame_head(in->data, f->type, (uint32_t)(f->length - taken));
}

static int next_wait(struct wire_in *in, struct frame *f)
{
	for (;;) {
		struct pollfd p = {.fd = 0, .events = POLLIN};
		int got = wire_next(in, f);

		if (got)
			return got;
		if (poll(&p, 1, -1) > 0 && wire_fill(in) == WIRE_GONE)
			return WIRE_GONE;
	}
}

int wire_octets(struct wire_in *in, void *buffer, size_t size)
{
	while (!in->ended) {
		struct frame f;
		int got = next_wait(in, &f);

		if (got < 0)
			return got;
		if (f.type > FRAME_STDIN_END || (f.type == FRAME_STDIN_END && f.length)) {
			errno = EPROTO;
			return -1;
		}
		if (f.length) {
			size_t n = f.length < size ? f.length : size;

			memcpy(buffer, f.data, n);
			take_part(in, &f, n);
			return (int)n;
		}
		in->ended = f.type == FRAME_STDIN_END;
		wire_drop(in);
	}
	return 0;
}

uint8_t *wire_room(struct wire_out *out)
{
	return out->data + FRAME_HEAD;
}

void wire_put(struct wire_out *out, enum frame_type type, size_t length)
{
	frame_head(out->data, type, (uint32_t)length);
	out->from = 0;
	out->to = FRAME_HEAD + length;
}

int wire_flush(struct wire_out *out)
{
	while (out->from < out->to) {
		ssize_t n = write(1, out->data + out->from, out->to - out->from);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : WIRE_GONE;
		out->from += (size_t)n;
	}
	return 0;
}

bool wire_gone(void)
{
	struct pollfd p[] = {{.fd = 0, .events = POLLRDHUP}, {.fd = 1}};

	return poll(p, 2, 0) > 0 && ((p[0].revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)) ||
				     (p[1].revents & (POLLERR | POLLNVAL)));
}

static int write_all(const uint8_t *data, size_t length)
{
	while (length) {
		ssize_t n = write(1, data, length);

		if (n > 0) {
			data += n;
			length -= (size_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			struct pollfd p[] = {{.fd = 1, .events = POLLOUT},
					     {.fd = 0, .events = POLLRDHUP}};

			(void)poll(p, 2, -1);
			if (wire_gone())
				return WIRE_GONE;
		} else if (n == 0 || errno != EINTR)
			return WIRE_GONE;
	}
	return 0;
}

int wire_finish(struct wire_out *out)
{
	size_t from = out->from;

	out->from = out->to;
	return write_all(out->data + from, out->to - from);
}

int wire_send(enum frame_type type, const void *data, size_t length)
{
	uint8_t head[FRAME_HEAD];

	frame_head(head, type, (uint32_t)length);
	return write_all(head, sizeof(head)) || write_all(data, length) ? WIRE_GONE : 0;
}

/*
 * The end is what the gate waits for, and it closes then.  Some engines (Podman) lose what a
 * process has said if it ends before all that was sent to it has been read.
 */
static void linger(void)
{
	static char rest[4096];
	struct pollfd p[] = {{.fd = 0, .events = POLLIN}, {.fd = 1}};
	struct timespec start, now;
	long left = LINGER_MS;

	(void)clock_gettime(CLOCK_MONOTONIC, &start);
	while (left > 0 && poll(p, 2, (int)left) > 0 && !(p[1].revents & POLLERR)) {
		ssize_t n = read(0, rest, sizeof(rest));

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return;
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		left = LINGER_MS - (now.tv_sec - start.tv_sec) * 1000 -
		       (now.tv_nsec - start.tv_nsec) / 1000000;
	}
}

static int send_end(const char *json)
{
	if (wire_send(FRAME_END, json, strlen(json)) == WIRE_GONE)
		return 1;
	linger();
	return 0;
}

int wire_end(int code, int signal, bool timed_out, bool truncated)
{
	char json[128];

	(void)snprintf(json, sizeof(json),
		       "{\"code\":%d,\"signal\":%d,\"timed_out\":%s,\"truncated\":%s}", code,
		       signal, timed_out ? "true" : "false", truncated ? "true" : "false");
	return send_end(json);
}

/* What is said holds no names but percent-encoded ones, so that nothing is left to escape. */
int wire_fail(int sys, const char *fmt, ...)
{
	char what[FRAME_END_MAX / 2], json[FRAME_END_MAX];
	const char *name = strerrorname_np(sys);
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	for (char *c = what; *c; c++)
		if (*c == '"' || *c == '\\' || *c < ' ' || *c > '~')
			*c = '?';
	(void)snprintf(json, sizeof(json), "{\"error\":\"%s\",\"message\":\"%s: %s\"}",
		       name ? name : "EIO", what, strerror(sys));
	return send_end(json);
}
