/*
 * tls_stream.h - a TLS connection that its user waits for: for programs beside the
 * gate that talk to one service and have nothing else to do.  Never in a worker.
 *
 * The service's certificate is looked at as in tls_client.h.  Each call ends within
 * TLS_STREAM_MS of silence.
 */
#ifndef PROXY_TLS_STREAM_H
#define PROXY_TLS_STREAM_H

#include "gate/base/err.h"
#include "gate/base/span.h"

#define TLS_STREAM_MS 20000

struct tls_stream_conf {
	const char *host; /* a name, which is looked up, or an address */
	unsigned port;
	const char *ca, *cert, *key; /* paths of PEM files; cert and key may be "" */
};

struct tls_stream;

struct tls_stream *tls_stream_open(const struct tls_stream_conf *conf, struct err *err);
int tls_stream_write(struct tls_stream *t, struct span bytes, struct err *err);
/* Some bytes; 0 at the end; -1. */
long tls_stream_read(struct tls_stream *t, char *out, size_t size, struct err *err);
/* Waits until the other host's kernel has acknowledged all that was written. */
int tls_stream_drain(struct tls_stream *t, struct err *err);
/* Says good-bye, if that is possible at once. */
void tls_stream_close(struct tls_stream *t);

#endif
