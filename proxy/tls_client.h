/*
 * tls_client.h - what the gate shows to, and wants to see of, a service behind TLS.
 *
 * The service's certificate must come from one of the authorities in `ca` and must
 * be made out to `name`; there is no way to leave that out.  The gate's own
 * certificate is optional.  TLS 1.2 and 1.3.
 */
#ifndef PROXY_TLS_CLIENT_H
#define PROXY_TLS_CLIENT_H

#include "gate/base/err.h"
#include "gate/base/span.h"

#include <gnutls/gnutls.h>

struct tls_client_conf {
	struct span ca;        /* PEM, one certificate or more */
	struct span cert, key; /* PEM; both empty: none is shown */
	const char *name;      /* a host's name or address */
};

struct tls_client;

/* ERR_CONFIG: what is wrong with which of the three. */
struct tls_client *tls_client_open(const struct tls_client_conf *conf, struct err *err);
void tls_client_close(struct tls_client *t); /* NULL is allowed */

/* A session on a connected, non-blocking descriptor; to be ended with gnutls_deinit(). */
int tls_client_session(struct tls_client *t, int fd, gnutls_session_t *ret, struct err *err);

/* Why the handshake or the session failed, for people. */
void tls_client_why(gnutls_session_t session, int code, char *out, size_t size);

#endif
