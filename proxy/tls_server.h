/*
 * tls_server.h - what a listener with TLS shows to callers, and what it demands of them.
 *
 * TLS 1.3, or 1.2 with forward secrecy and authenticated encryption; nothing older.
 * No renegotiation, no resumption, no early data: each connection is a full handshake
 * in which the client's certificate is verified anew.
 *
 * With authorities (`ca`) clients must show a certificate that one of them issued, for
 * clients, that is in force and on no revocation list; `optional` lets those in that
 * show none, never those that show a bad one, or one that cannot be read (certificate.h).  There is
 * no OCSP.
 */
#ifndef PROXY_TLS_SERVER_H
#define PROXY_TLS_SERVER_H

#include "gate/base/err.h"
#include "gate/base/span.h"
#include "proxy/certificate.h"

#include <stdbool.h>
#include <stdint.h>

enum tls_file { TLS_CERT = 0, TLS_KEY, TLS_CA, TLS_CRL, TLS_FILE_COUNT };

const char *tls_file_name(enum tls_file file); /* the configuration's key: "cert" */

/* PEM; empty: there is none. */
struct tls_files {
	struct span text[TLS_FILE_COUNT];
	bool optional; /* clients may come without a certificate */
};

struct tls_server;

/*
 * Copies what it needs.  ERR_CONFIG: what is wrong; *ret_file says with which file.
 */
struct tls_server *tls_server_open(const struct tls_files *files, enum tls_file *ret_file,
				   struct err *err);
void tls_server_close(struct tls_server *t); /* NULL is allowed */

/* For `doctor`: of the server's own certificate, or of the first in the file of authorities. */
struct tls_dates {
	int64_t from, until; /* seconds since 1970 */
	unsigned bits;       /* of the key, as strong as an RSA key of so many */
	bool weak_key, weak_signature;
};
int tls_dates_read(struct span pem, struct tls_dates *ret);
int tls_crl_until(struct span pem, int64_t *ret); /* the first of its lists to grow too old */

/* --- sessions: one a connection; used by tls_wire.c alone --- */

struct tls_session;

/* On a connected, non-blocking socket, which stays the caller's. */
struct tls_session *tls_session_open(struct tls_server *t, int fd);
void tls_session_close(struct tls_session *s); /* NULL is allowed; sends nothing */

enum tls_fault {
	TLS_FINE = 0,
	TLS_AGAIN,          /* nothing can be done before the socket says so */
	TLS_END,            /* the peer said that it sends no more */
	TLS_CUT,            /* the connection ended, or broke, without that */
	TLS_NO_TLS,         /* what came is no TLS, or none that makes sense */
	TLS_VERSION,        /* no common version, cipher or curve */
	TLS_NO_CERTIFICATE, /* one is demanded and none was shown */
	TLS_BAD_CERTIFICATE,
	TLS_EXPIRED,      /* a certificate that is not in force, any more or yet */
	TLS_PEER_REFUSED, /* the peer does not like what we show */
	TLS_RENEGOTIATION,
	TLS_LATE, /* the handshake took too long */
	TLS_FAULT_COUNT
};

const char *tls_fault_text(enum tls_fault fault);

enum tls_fault tls_handshake(struct tls_session *s);

/* What failed, in more words; lives as long as the session. */
const char *tls_session_why(const struct tls_session *s);

/* After the handshake: what the client showed, which is genuine then; NULL: none.  The caller's. */
struct certificate *tls_session_genuine(struct tls_session *s);

/* What it showed, genuine or not; NULL: none, or an unreadable one.  The caller's. */
struct certificate *tls_session_shown(const struct tls_session *s);

/* TLS_FINE: *ret_len bytes are there. */
enum tls_fault tls_receive(struct tls_session *s, void *to, size_t max, size_t *ret_len);

/* The most that tls_send() takes at once. */
size_t tls_send_max(const struct tls_session *s);

/*
 * Takes all of it, at most tls_send_max().  TLS_AGAIN: it is kept, and tls_flush() must
 * have said TLS_FINE before anything else is sent.
 */
enum tls_fault tls_send(struct tls_session *s, const void *bytes, size_t len);
enum tls_fault tls_flush(struct tls_session *s);

/* Says that nothing more will be sent. */
enum tls_fault tls_send_end(struct tls_session *s);

#endif
