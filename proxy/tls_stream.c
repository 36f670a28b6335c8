#include "proxy/tls_stream.h"

#include "gate/base/buf.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "proxy/tls_client.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PEM_MAX  (256u << 10)
#define DRAIN_MS 5

struct tls_stream {
	int fd;
	struct tls_client *client;
	gnutls_session_t session;
	bool open; /* the handshake is done, and nothing has failed */
};

static int broken(struct tls_stream *t, int code, const char *doing, struct err *err)
{
	char why[ERR_MSG_MAX / 2];

	t->open = false;
	tls_client_why(t->session, code, why, sizeof(why));
	return err_set(err, ERR_UPSTREAM, "%s: %s", doing, why);
}

/* 0: it is ready; -1: it was not in its time. */
static int wait_for(struct tls_stream *t, short events, struct err *err)
{
	struct pollfd p = {.fd = t->fd, .events = events};
	int n = poll(&p, 1, TLS_STREAM_MS);

	if (n > 0 || (n < 0 && errno == EINTR))
		return 0;
	t->open = false;
	return n < 0 ? err_sys(err, "wait") : err_set(err, ERR_UPSTREAM, "no answer in time");
}

/* Behind a call that could not go on: waits for what it needs. */
static int wait_again(struct tls_stream *t, struct err *err)
{
	return wait_for(t, gnutls_record_get_direction(t->session) ? POLLOUT : POLLIN, err);
}

static bool is_again(long code)
{
	return code == GNUTLS_E_AGAIN || code == GNUTLS_E_INTERRUPTED;
}

/* --- open --- */

static int connect_to(struct tls_stream *t, const struct addrinfo *at, struct err *err)
{
	socklen_t len = sizeof(int);
	int error = 0;

	t->fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (t->fd < 0)
		return err_sys(err, "make a socket");
	if (connect(t->fd, at->ai_addr, at->ai_addrlen) == 0)
		return 0;
	if (errno == EINPROGRESS && wait_for(t, POLLOUT, err) == 0 &&
	    getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0)
		return 0;
	if (error)
		errno = error;
	err_sys(err, "connect");
	close(t->fd);
	t->fd = -1;
	return -1;
}

static int dial(struct tls_stream *t, const struct tls_stream_conf *conf, struct err *err)
{
	const struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct addrinfo *all = NULL;
	char port[8];
	int rc, result = -1;

	snprintf(port, sizeof(port), "%u", conf->port);
	rc = getaddrinfo(conf->host, port, &want, &all);
	if (rc)
		return err_set(err, ERR_UPSTREAM, "look up %s: %s", conf->host, gai_strerror(rc));
	for (struct addrinfo *a = all; a && result < 0; a = a->ai_next)
		result = connect_to(t, a, err);
	freeaddrinfo(all);
	return result;
}

static int read_pem(const char *path, struct buf *to, struct err *err)
{
	buf_init(to, 1);
	return *path ? io_read_file(path, PEM_MAX, to, err) : 0;
}

static int load(struct tls_stream *t, const struct tls_stream_conf *conf, struct err *err)
{
	struct buf ca, cert, key;
	int rc = -1;

	buf_init(&cert, 1);
	buf_init(&key, 1);
	if (read_pem(conf->ca, &ca, err) == 0 && read_pem(conf->cert, &cert, err) == 0 &&
	    read_pem(conf->key, &key, err) == 0) {
		const struct tls_client_conf shown = {buf_span(&ca), buf_span(&cert),
						      buf_span(&key), conf->host};

		t->client = tls_client_open(&shown, err);
		rc = t->client ? 0 : -1;
	}
	buf_fini(&ca);
	buf_fini(&cert);
	buf_fini(&key);
	return rc;
}

static int shake_hands(struct tls_stream *t, struct err *err)
{
	int code;

	if (tls_client_session(t->client, t->fd, &t->session, err) < 0)
		return -1;
	while ((code = gnutls_handshake(t->session)) < 0) {
		if (is_again(code) && wait_again(t, err) < 0)
			return -1;
		if (!is_again(code) && gnutls_error_is_fatal(code))
			return broken(t, code, "handshake", err);
	}
	t->open = true;
	return 0;
}

struct tls_stream *tls_stream_open(const struct tls_stream_conf *conf, struct err *err)
{
	struct tls_stream *t = calloc(1, sizeof(*t));

	if (!t) {
		err_sys(err, "allocate a connection");
		return NULL;
	}
	t->fd = -1;
	if (load(t, conf, err) == 0 && dial(t, conf, err) == 0 && shake_hands(t, err) == 0)
		return t;
	err_wrap(err, "%s port %u", conf->host, conf->port);
	tls_stream_close(t);
	return NULL;
}

/* --- use --- */

int tls_stream_write(struct tls_stream *t, struct span bytes, struct err *err)
{
	while (bytes.len) {
		ssize_t n = gnutls_record_send(t->session, bytes.at, bytes.len);

		if (n >= 0)
			bytes = span_skip(bytes, (size_t)n);
		else if (!is_again(n))
			return broken(t, (int)n, "write", err);
		else if (wait_again(t, err) < 0)
			return -1;
	}
	return 0;
}

long tls_stream_read(struct tls_stream *t, char *out, size_t size, struct err *err)
{
	for (;;) {
		ssize_t n = gnutls_record_recv(t->session, out, size);

		if (n >= 0)
			return (long)n;
		if (is_again(n) ? wait_again(t, err) < 0 : gnutls_error_is_fatal((int)n))
			return is_again(n) ? -1 : broken(t, (int)n, "read", err);
	}
}

/* 0: the other side is still there. */
static int look_for_end(struct tls_stream *t, struct err *err)
{
	char byte;
	ssize_t n = gnutls_record_recv(t->session, &byte, 1);

	if (n > 0 || (n < 0 && !gnutls_error_is_fatal((int)n)))
		return 0;
	if (n < 0)
		return broken(t, (int)n, "write", err);
	t->open = false;
	return err_set(err, ERR_UPSTREAM, "the other side ended the connection");
}

int tls_stream_drain(struct tls_stream *t, struct err *err)
{
	const struct timespec pause = {0, DRAIN_MS * 1000000L};
	uint64_t until = clock_boot_ms() + TLS_STREAM_MS;
	int left = 0;

	while (ioctl(t->fd, SIOCOUTQ, &left) == 0 && left > 0) {
		struct pollfd p = {.fd = t->fd}; /* a reset leaves the count as it was */

		if (poll(&p, 1, 0) > 0 || clock_boot_ms() > until) {
			t->open = false;
			return err_set(err, ERR_UPSTREAM, "what was written was not taken");
		}
		nanosleep(&pause, NULL);
	}
	return look_for_end(t, err);
}

void tls_stream_close(struct tls_stream *t)
{
	if (t->session) {
		if (t->open)
			(void)gnutls_bye(t->session, GNUTLS_SHUT_WR);
		gnutls_deinit(t->session);
	}
	tls_client_close(t->client);
	if (t->fd >= 0)
		close(t->fd);
	free(t);
}
