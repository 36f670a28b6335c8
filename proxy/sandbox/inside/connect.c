/* One TCP connection to a port on the sandbox's own loopback. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/sandbox/inside/verbs.h"
#include "proxy/sandbox/inside/wire.h"

#define PATIENCE_MS 10000

static struct wire_in from_gate;
static struct wire_out to_gate;

/* Connected and non-blocking, or -1 with errno. */
static int dial(const struct sockaddr *to, socklen_t size)
{
	int error = 0, fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(error);
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	if (fd < 0)
		return -1;
	if (connect(fd, to, size) == 0)
		return fd;
	error = errno;
	if (error == EINPROGRESS) {
		error = ETIMEDOUT;
		if (poll(&p, 1, PATIENCE_MS) > 0 &&
		    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0)
			error = errno;
	}
	if (!error)
		return fd;
	(void)close(fd);
	errno = error;
	return -1;
}

static int dial_port(uint16_t port)
{
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	int fd, sys;

	four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	six.sin6_addr = in6addr_loopback;
	fd = dial((const struct sockaddr *)&four, sizeof(four));
	if (fd >= 0)
		return fd;
	sys = errno;
	fd = dial((const struct sockaddr *)&six, sizeof(six));
	errno = sys;
	return fd;
}

struct tunnel {
	int fd;
	size_t taken; /* of the frame in front */
	bool closed;  /* the other side has */
	bool gone;
};

/* Takes frames as far as the socket does.  0, or -1: EPROTO. */
static int forward(struct tunnel *t)
{
	struct frame f;
	int got;

	while ((got = wire_next(&from_gate, &f)) == 1) {
		if (f.type > FRAME_STDIN_END || (f.type == FRAME_STDIN_END && f.length))
			return -1;
		while (t->taken < f.length) {
			ssize_t n =
				send(t->fd, f.data + t->taken, f.length - t->taken, MSG_NOSIGNAL);

			if (n < 0 && errno == EAGAIN)
				return 0;
			if (n < 0 && errno != EINTR)
				n = (ssize_t)(f.length - t->taken); /* nobody takes it */
			t->taken += n > 0 ? (size_t)n : 0;
		}
		if (f.type == FRAME_STDIN_END)
			(void)shutdown(t->fd, SHUT_WR);
		t->taken = 0;
		wire_drop(&from_gate);
	}
	return got;
}

static void back(struct tunnel *t)
{
	ssize_t n = recv(t->fd, wire_room(&to_gate), FRAME_DATA_MAX, 0);

	if (n > 0)
		wire_put(&to_gate, FRAME_STDOUT, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		t->closed = true;
}

static int turn(struct tunnel *t)
{
	bool full = to_gate.from < to_gate.to;
	struct frame f;
	struct pollfd p[] = {
		{.fd = 0, .events = POLLRDHUP},
		{.fd = 1, .events = full ? POLLOUT : 0},
		{.fd = t->fd, .events = full ? 0 : POLLIN},
	};

	if (from_gate.have < sizeof(from_gate.data))
		p[0].events |= POLLIN;
	if (wire_next(&from_gate, &f) == 1)
		p[2].events |= POLLOUT;
	if (!p[2].events)
		p[2].fd = -1; /* its end is met when it is read */
	if (poll(p, 3, -1) < 0)
		return errno == EINTR ? 0 : -1;
	if ((p[0].revents & POLLIN && wire_fill(&from_gate) == WIRE_GONE) ||
	    p[0].revents & (POLLHUP | POLLRDHUP | POLLERR) || p[1].revents & POLLERR) {
		t->gone = true;
		return 0;
	}
	if (forward(t) < 0)
		return -1;
	if (!full && p[2].revents)
		back(t);
	t->gone = wire_flush(&to_gate) == WIRE_GONE;
	return 0;
}

int verb_connect(char **words)
{
	struct tunnel t = {0};
	long long port;

	if (!words[0] || words[1] || number_read(words[0], 10, UINT16_MAX, &port) < 0 || port == 0)
		return wire_fail(EINVAL, "connect: one port, from 1 to 65535");
	t.fd = dial_port((uint16_t)port);
	if (t.fd < 0)
		return wire_fail(errno, "connect to port %lld", port);
	if (wire_send(FRAME_STDOUT, "", 0) == WIRE_GONE)
		return 1;
	while (!t.gone && !(t.closed && to_gate.from == to_gate.to))
		if (turn(&t) < 0)
			return wire_finish(&to_gate) == WIRE_GONE
				       ? 1
				       : wire_fail(
						 EPROTO,
						 "what came on stdin is no frame for a connection");
	return t.gone ? 1 : wire_end(0, 0, false, false);
}
