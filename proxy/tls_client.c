#include "proxy/tls_client.h"

#include <arpa/inet.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct tls_client {
	gnutls_certificate_credentials_t own;
	gnutls_priority_t priorities;
	char name[256];
	bool is_address; /* which is never sent as a server's name */
};

static gnutls_datum_t datum(struct span s)
{
	return (gnutls_datum_t){(unsigned char *)(uintptr_t)s.at, (unsigned)s.len};
}

static int load_ca(struct tls_client *t, struct span ca, struct err *err)
{
	gnutls_datum_t pem = datum(ca);
	int count = gnutls_certificate_set_x509_trust_mem(t->own, &pem, GNUTLS_X509_FMT_PEM);

	if (count < 0)
		return err_set(err, ERR_CONFIG, "ca: %s", gnutls_strerror(count));
	return count ? 0 : err_set(err, ERR_CONFIG, "ca: there is no certificate in it");
}

static int load_own(struct tls_client *t, const struct tls_client_conf *conf, struct err *err)
{
	gnutls_datum_t cert = datum(conf->cert), key = datum(conf->key);
	int rc;

	if (!conf->cert.len && !conf->key.len)
		return 0;
	rc = gnutls_certificate_set_x509_key_mem(t->own, &cert, &key, GNUTLS_X509_FMT_PEM);
	return rc < 0 ? err_set(err, ERR_CONFIG, "cert and key: %s", gnutls_strerror(rc)) : 0;
}

static int fill(struct tls_client *t, const struct tls_client_conf *conf, struct err *err)
{
	unsigned char address[sizeof(struct in6_addr)];

	snprintf(t->name, sizeof(t->name), "%s", conf->name);
	t->is_address = inet_pton(AF_INET, t->name, address) == 1 ||
			inet_pton(AF_INET6, t->name, address) == 1;
	if (gnutls_certificate_allocate_credentials(&t->own) < 0 ||
	    gnutls_priority_init(&t->priorities, PRIORITIES, NULL) < 0)
		return err_set(err, ERR_SYSTEM, "TLS cannot be set up");
	if (load_ca(t, conf->ca, err) < 0)
		return -1;
	return load_own(t, conf, err);
}

struct tls_client *tls_client_open(const struct tls_client_conf *conf, struct err *err)
{
	struct tls_client *t = calloc(1, sizeof(*t));

	if (!t) {
		err_sys(err, "allocate credentials");
		return NULL;
	}
	if (fill(t, conf, err) == 0)
		return t;
	tls_client_close(t);
	return NULL;
}

void tls_client_close(struct tls_client *t)
{
	if (!t)
		return;
	if (t->own)
		gnutls_certificate_free_credentials(t->own);
	if (t->priorities)
		gnutls_priority_deinit(t->priorities);
	free(t);
}

int tls_client_session(struct tls_client *t, int fd, gnutls_session_t *ret, struct err *err)
{
	gnutls_session_t s;

	if (gnutls_init(&s, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0)
		return err_set(err, ERR_SYSTEM, "no memory for TLS");
	if (gnutls_priority_set(s, t->priorities) < 0 ||
	    gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, t->own) < 0 ||
	    (!t->is_address &&
	     gnutls_server_name_set(s, GNUTLS_NAME_DNS, t->name, strlen(t->name)) < 0)) {
		gnutls_deinit(s);
		return err_set(err, ERR_SYSTEM, "TLS cannot be set up");
	}
	gnutls_session_set_verify_cert(s, t->name, 0);
	/* The exchange knows how long it waits. */
	gnutls_handshake_set_timeout(s, 0);
	gnutls_transport_set_int(s, fd);
	*ret = s;
	return 0;
}

static void why_not_trusted(gnutls_session_t session, char *out, size_t size)
{
	unsigned status = gnutls_session_get_verify_cert_status(session);
	gnutls_datum_t text = {NULL, 0};

	if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) < 0) {
		snprintf(out, size, "its certificate is not to be trusted");
		return;
	}
	snprintf(out, size, "TLS: %s", (const char *)text.data);
	gnutls_free(text.data);
	for (size_t len = strlen(out); len && out[len - 1] == ' '; len--)
		out[len - 1] = '\0';
}

void tls_client_why(gnutls_session_t session, int code, char *out, size_t size)
{
	const char *alert;

	if (code == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR) {
		why_not_trusted(session, out, size);
	} else if (code == GNUTLS_E_FATAL_ALERT_RECEIVED ||
		   code == GNUTLS_E_WARNING_ALERT_RECEIVED) {
		alert = gnutls_alert_get_name(gnutls_alert_get(session));
		snprintf(out, size, "TLS: it ended the connection: %s", alert ? alert : "alert");
	} else if (code == GNUTLS_E_PREMATURE_TERMINATION) {
		snprintf(out, size, "TLS: the connection was cut");
	} else {
		snprintf(out, size, "TLS: %s", gnutls_strerror(code));
	}
}
