#include "proxy/tls_server.h"

#include "gate/base/auto.h"
#include "gate/base/clock.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * 1.3, or 1.2 with an exchange of ephemeral keys on a curve and an AEAD; signatures and keys of
 * certificates with 112 bits of security (RSA from 2048 on) or more, none with SHA-1.
 */
#define PRIORITY                                                                                   \
	"SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-DHE-RSA:-MAC-ALL:+AEAD:"              \
	"%SERVER_PRECEDENCE:%PROFILE_MEDIUM"
#define CHAIN_DEPTH 8
#define KEY_BITS    8192 /* of a key in a client's chain: larger ones are slow to verify */
#define WHY_MAX     160

struct tls_server {
	gnutls_certificate_credentials_t credentials;
	gnutls_priority_t priority;
	bool wants, demands; /* a client's certificate */
	int64_t crl_until;   /* when the first list grows too old; the library does not look */
};

struct tls_session {
	const struct tls_server *server;
	gnutls_session_t session;
	enum tls_fault refused;    /* what the verification found */
	struct certificate *shown; /* that it found genuine, until it is taken */
	char why[WHY_MAX];
};

const char *tls_file_name(enum tls_file file)
{
	static const char *const names[TLS_FILE_COUNT] = {"cert", "key", "ca", "crl"};

	return names[file];
}

const char *tls_fault_text(enum tls_fault fault)
{
	static const char *const texts[TLS_FAULT_COUNT] = {
		[TLS_FINE] = "",
		[TLS_AGAIN] = "it is not over",
		[TLS_END] = "the caller left",
		[TLS_CUT] = "the connection broke",
		[TLS_NO_TLS] = "no TLS handshake",
		[TLS_VERSION] = "no common version or cipher",
		[TLS_NO_CERTIFICATE] = "no client certificate",
		[TLS_BAD_CERTIFICATE] = "the client certificate is not accepted",
		[TLS_EXPIRED] = "the client certificate is not in force",
		[TLS_PEER_REFUSED] = "the caller refused",
		[TLS_RENEGOTIATION] = "the caller wanted to renegotiate",
		[TLS_LATE] = "the handshake took too long",
	};

	return texts[fault];
}

/* --- what is shown and demanded --- */

static gnutls_datum_t datum(struct span s)
{
	return (gnutls_datum_t){(unsigned char *)(uintptr_t)s.at, (unsigned)s.len};
}

static int wrong(struct err *err, enum tls_file *ret_file, enum tls_file file, int code)
{
	*ret_file = file;
	return err_set(err, ERR_CONFIG, "%s", gnutls_strerror(code));
}

static int set_pair(struct tls_server *t, const struct tls_files *files, enum tls_file *ret_file,
		    struct err *err)
{
	const gnutls_datum_t cert = datum(files->text[TLS_CERT]);
	const gnutls_datum_t key = datum(files->text[TLS_KEY]);
	gnutls_x509_privkey_t parsed;
	int rc;

	/* By itself first, to say which of the two is wrong. */
	if (gnutls_x509_privkey_init(&parsed) < 0)
		return err_set(err, ERR_SYSTEM, "no memory");
	rc = gnutls_x509_privkey_import2(parsed, &key, GNUTLS_X509_FMT_PEM, NULL, 0);
	gnutls_x509_privkey_deinit(parsed);
	if (rc == GNUTLS_E_DECRYPTION_FAILED) {
		*ret_file = TLS_KEY;
		return err_set(err, ERR_CONFIG,
			       "it has a passphrase, and nobody is there to type "
			       "it: store the key without");
	}
	if (rc < 0)
		return wrong(err, ret_file, TLS_KEY, rc);
	rc = gnutls_certificate_set_x509_key_mem2(t->credentials, &cert, &key, GNUTLS_X509_FMT_PEM,
						  NULL, 0);
	if (rc == GNUTLS_E_CERTIFICATE_KEY_MISMATCH) {
		*ret_file = TLS_KEY;
		return err_set(err, ERR_CONFIG, "it is not the key of the certificate");
	}
	return rc < 0 ? wrong(err, ret_file, TLS_CERT, rc) : 0;
}

static int set_trust(struct tls_server *t, const struct tls_files *files, enum tls_file *ret_file,
		     struct err *err)
{
	const gnutls_datum_t ca = datum(files->text[TLS_CA]), crl = datum(files->text[TLS_CRL]);
	int rc;

	if (!ca.size)
		return 0;
	rc = gnutls_certificate_set_x509_trust_mem(t->credentials, &ca, GNUTLS_X509_FMT_PEM);
	if (rc <= 0)
		return wrong(err, ret_file, TLS_CA, rc < 0 ? rc : GNUTLS_E_NO_CERTIFICATE_FOUND);
	t->wants = true;
	t->demands = !files->optional;
	if (!crl.size)
		return 0;
	rc = gnutls_certificate_set_x509_crl_mem(t->credentials, &crl, GNUTLS_X509_FMT_PEM);
	if (rc <= 0 || tls_crl_until(files->text[TLS_CRL], &t->crl_until) < 0)
		return wrong(err, ret_file, TLS_CRL, rc < 0 ? rc : GNUTLS_E_BASE64_DECODING_ERROR);
	return 0;
}

struct tls_server *tls_server_open(const struct tls_files *files, enum tls_file *ret_file,
				   struct err *err)
{
	struct tls_server *t = calloc(1, sizeof(*t));

	if (t)
		t->crl_until = INT64_MAX;
	*ret_file = TLS_CERT;
	if (!t) {
		err_sys(err, "allocate the credentials of a listener");
		return NULL;
	}
	if (gnutls_certificate_allocate_credentials(&t->credentials) < 0 ||
	    gnutls_priority_init(&t->priority, PRIORITY, NULL) < 0) {
		err_set(err, ERR_SYSTEM, "the TLS library does not start");
	} else if (set_pair(t, files, ret_file, err) == 0 &&
		   set_trust(t, files, ret_file, err) == 0) {
		gnutls_certificate_set_verify_limits(t->credentials, KEY_BITS, CHAIN_DEPTH);
		return t;
	}
	tls_server_close(t);
	return NULL;
}

void tls_server_close(struct tls_server *t)
{
	if (!t)
		return;
	if (t->credentials)
		gnutls_certificate_free_credentials(t->credentials);
	if (t->priority)
		gnutls_priority_deinit(t->priority);
	free(t);
}

/* --- for doctor --- */

static bool is_weak_signature(int algorithm)
{
	return algorithm < 0 || !gnutls_sign_is_secure2((gnutls_sign_algorithm_t)algorithm,
							GNUTLS_SIGN_FLAG_SECURE_FOR_CERTS);
}

int tls_dates_read(struct span pem, struct tls_dates *ret)
{
	const gnutls_datum_t text = datum(pem);
	gnutls_x509_crt_t *list = NULL;
	unsigned count = 0, bits = 0;
	int algorithm;

	if (gnutls_x509_crt_list_import2(&list, &count, &text, GNUTLS_X509_FMT_PEM, 0) < 0)
		return -1;
	if (count > 0) {
		algorithm = gnutls_x509_crt_get_pk_algorithm(list[0], &bits);
		*ret = (struct tls_dates){
			.from = gnutls_x509_crt_get_activation_time(list[0]),
			.until = gnutls_x509_crt_get_expiration_time(list[0]),
			.bits = bits,
			.weak_key = algorithm < 0 ||
				    gnutls_pk_bits_to_sec_param((gnutls_pk_algorithm_t)algorithm,
								bits) < GNUTLS_SEC_PARAM_MEDIUM,
			.weak_signature =
				is_weak_signature(gnutls_x509_crt_get_signature_algorithm(list[0])),
		};
	}
	for (unsigned i = 0; i < count; i++)
		gnutls_x509_crt_deinit(list[i]);
	gnutls_free(list);
	return count > 0 ? 0 : -1;
}

int tls_crl_until(struct span pem, int64_t *ret)
{
	const gnutls_datum_t text = datum(pem);
	gnutls_x509_crl_t *list = NULL;
	unsigned count = 0;
	int64_t first = INT64_MAX;

	if (gnutls_x509_crl_list_import2(&list, &count, &text, GNUTLS_X509_FMT_PEM, 0) < 0)
		return -1;
	for (unsigned i = 0; i < count; i++) {
		int64_t until = gnutls_x509_crl_get_next_update(list[i]);

		if (until >= 0 && until < first) /* -1: it does not say */
			first = until;
		gnutls_x509_crl_deinit(list[i]);
	}
	gnutls_free(list);
	*ret = first;
	return count > 0 ? 0 : -1;
}

/* --- sessions --- */

/* Of several faults the one that tells the most. */
static enum tls_fault fault_of_status(unsigned status)
{
	if (!status)
		return TLS_FINE;
	if ((status & ~(unsigned)(GNUTLS_CERT_INVALID | GNUTLS_CERT_EXPIRED |
				  GNUTLS_CERT_NOT_ACTIVATED)) == 0 &&
	    (status & (GNUTLS_CERT_EXPIRED | GNUTLS_CERT_NOT_ACTIVATED)))
		return TLS_EXPIRED;
	return TLS_BAD_CERTIFICATE;
}

static void say_status(struct tls_session *s, unsigned status)
{
	gnutls_datum_t text = {NULL, 0};

	if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) < 0)
		return;
	snprintf(s->why, sizeof(s->why), "%.*s", (int)text.size, (const char *)text.data);
	gnutls_free(text.data);
}

static bool is_too_old(int64_t until)
{
	return (uint64_t)until < clock_unix_ns() / 1000000000;
}

/* One that cannot be read is none that was not shown: nobody is let in with it. */
static int keep_genuine(struct tls_session *s, const gnutls_datum_t *der)
{
	struct err err = {0};

	certificate_free(s->shown);
	s->shown = certificate_read((struct span){(const char *)der->data, der->size}, &err);
	if (s->shown)
		return 0;
	s->refused = TLS_BAD_CERTIFICATE;
	snprintf(s->why, sizeof(s->why), "%.*s", WHY_MAX - 1, err.msg);
	return -1;
}

/* Anything but 0 ends the handshake. */
static int verify(gnutls_session_t session)
{
	struct tls_session *s = gnutls_session_get_ptr(session);
	gnutls_typed_vdata_st purpose = {GNUTLS_DT_KEY_PURPOSE_OID,
					 (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT, 0};
	const gnutls_datum_t *shown;
	unsigned status = 0, count = 0;

	shown = gnutls_certificate_get_peers(session, &count);
	if (!shown || count == 0) {
		/* Where one is demanded the library has ended the handshake already. */
		return 0;
	}
	if (shown[0].size > CERTIFICATE_MAX ||
	    gnutls_certificate_verify_peers(session, &purpose, 1, &status) < 0) {
		s->refused = TLS_BAD_CERTIFICATE;
		snprintf(s->why, sizeof(s->why), "it cannot be verified");
		return -1;
	}
	s->refused = fault_of_status(status);
	if (s->refused == TLS_FINE && is_too_old(s->server->crl_until)) {
		s->refused = TLS_BAD_CERTIFICATE;
		snprintf(s->why, sizeof(s->why), "the list of revoked certificates is too old");
		return -1;
	}
	if (s->refused == TLS_FINE)
		return keep_genuine(s, &shown[0]);
	say_status(s, status);
	return -1;
}

struct tls_session *tls_session_open(struct tls_server *t, int fd)
{
	const unsigned flags =
		GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS;
	struct tls_session *s = calloc(1, sizeof(*s));

	if (!s || gnutls_init(&s->session, flags) < 0) {
		free(s);
		return NULL;
	}
	s->server = t;
	gnutls_session_set_ptr(s->session, s);
	if (gnutls_priority_set(s->session, t->priority) < 0 ||
	    gnutls_credentials_set(s->session, GNUTLS_CRD_CERTIFICATE, t->credentials) < 0) {
		tls_session_close(s);
		return NULL;
	}
	gnutls_handshake_set_timeout(s->session, 0); /* the worker's loop keeps the time */
	gnutls_transport_set_int(s->session, fd);
	if (t->wants) {
		gnutls_certificate_server_set_request(s->session, t->demands ? GNUTLS_CERT_REQUIRE
									     : GNUTLS_CERT_REQUEST);
		gnutls_session_set_verify_function(s->session, verify);
	}
	return s;
}

void tls_session_close(struct tls_session *s)
{
	if (!s)
		return;
	gnutls_deinit(s->session);
	certificate_free(s->shown);
	free(s);
}

static enum tls_fault fault_of(int code)
{
	switch (code) {
	case GNUTLS_E_AGAIN:
	case GNUTLS_E_INTERRUPTED:
		return TLS_AGAIN;
	case GNUTLS_E_PREMATURE_TERMINATION:
	case GNUTLS_E_PUSH_ERROR:
	case GNUTLS_E_PULL_ERROR:
	case GNUTLS_E_SESSION_EOF:
		return TLS_CUT;
	case GNUTLS_E_NO_CERTIFICATE_FOUND:
	case GNUTLS_E_CERTIFICATE_REQUIRED:
		return TLS_NO_CERTIFICATE;
	case GNUTLS_E_CERTIFICATE_ERROR:
	case GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR:
	case GNUTLS_E_UNSUPPORTED_CERTIFICATE_TYPE:
	case GNUTLS_E_PK_SIG_VERIFY_FAILED:
	case GNUTLS_E_X509_UNSUPPORTED_ATTRIBUTE:
	case GNUTLS_E_ASN1_DER_ERROR:
		return TLS_BAD_CERTIFICATE;
	case GNUTLS_E_UNSUPPORTED_VERSION_PACKET:
	case GNUTLS_E_NO_CIPHER_SUITES:
	case GNUTLS_E_INSUFFICIENT_SECURITY:
	case GNUTLS_E_NO_COMMON_KEY_SHARE:
	case GNUTLS_E_UNKNOWN_PK_ALGORITHM:
	case GNUTLS_E_INAPPROPRIATE_FALLBACK:
		return TLS_VERSION;
	case GNUTLS_E_FATAL_ALERT_RECEIVED:
	case GNUTLS_E_DECRYPTION_FAILED: /* OpenSSL's way of refusing in 1.3, before it has keys */
		return TLS_PEER_REFUSED;
	case GNUTLS_E_REHANDSHAKE:
		return TLS_RENEGOTIATION;
	default:
		return TLS_NO_TLS;
	}
}

#define WARNINGS_MAX 4 /* alerts that mean nothing, taken in one go */

enum tls_fault tls_handshake(struct tls_session *s)
{
	enum tls_fault fault;
	int rc = GNUTLS_E_WARNING_ALERT_RECEIVED;

	for (int i = 0; rc == GNUTLS_E_WARNING_ALERT_RECEIVED && i < WARNINGS_MAX; i++)
		rc = gnutls_handshake(s->session);
	if (rc >= 0)
		return TLS_FINE;
	fault = s->refused ? s->refused : fault_of(rc);
	if (fault == TLS_AGAIN)
		return fault;
	if (!s->why[0])
		snprintf(s->why, sizeof(s->why), "%s",
			 rc == GNUTLS_E_FATAL_ALERT_RECEIVED
				 ? gnutls_alert_get_name(gnutls_alert_get(s->session))
				 : gnutls_strerror(rc));
	/* Best effort: it tells clients what is wrong, and those that do not read are cut off. */
	gnutls_alert_send_appropriate(s->session, rc);
	return fault;
}

const char *tls_session_why(const struct tls_session *s)
{
	return s->why;
}

struct certificate *tls_session_genuine(struct tls_session *s)
{
	return take_ptr(s->shown);
}

struct certificate *tls_session_shown(const struct tls_session *s)
{
	struct err ignored = {0};
	unsigned count = 0;
	const gnutls_datum_t *list = gnutls_certificate_get_peers(s->session, &count);

	if (!list || !count || gnutls_certificate_type_get(s->session) != GNUTLS_CRT_X509)
		return NULL;
	return certificate_read((struct span){(const char *)list[0].data, list[0].size}, &ignored);
}

enum tls_fault tls_receive(struct tls_session *s, void *to, size_t max, size_t *ret_len)
{
	ssize_t n = GNUTLS_E_WARNING_ALERT_RECEIVED;

	for (int i = 0; n == GNUTLS_E_WARNING_ALERT_RECEIVED && i < WARNINGS_MAX; i++)
		n = gnutls_record_recv(s->session, to, max);
	if (n < 0)
		return fault_of((int)n);
	*ret_len = (size_t)n;
	return n == 0 ? TLS_END : TLS_FINE;
}

size_t tls_send_max(const struct tls_session *s)
{
	return gnutls_record_get_max_size(s->session);
}

enum tls_fault tls_send(struct tls_session *s, const void *bytes, size_t len)
{
	ssize_t n = gnutls_record_send(s->session, bytes, len);

	/* With less than one record's worth there is no middle. */
	return n < 0 ? fault_of((int)n) : (size_t)n == len ? TLS_FINE : TLS_CUT;
}

enum tls_fault tls_flush(struct tls_session *s)
{
	ssize_t n = gnutls_record_send(s->session, NULL, 0);

	return n < 0 ? fault_of((int)n) : TLS_FINE;
}

enum tls_fault tls_send_end(struct tls_session *s)
{
	int rc = gnutls_bye(s->session, GNUTLS_SHUT_WR);

	return rc < 0 ? fault_of(rc) : TLS_FINE;
}
