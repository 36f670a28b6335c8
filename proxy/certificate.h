/*
 * certificate.h - who a TLS client certificate is made out to, and whether that is
 * the one that the configuration means.
 *
 * Nothing here decides whether a certificate is genuine: the handshake did
 * (tls_server.h).  What is read of it is read strictly: a name with a NUL or a
 * control byte, a second common name, a second extension with names: then that kind
 * of name matches nobody, though the certificate may still match by its hash.
 */
#ifndef PROXY_CERTIFICATE_H
#define PROXY_CERTIFICATE_H

#include "gate/base/err.h"
#include "gate/base/hash.h"
#include "gate/base/span.h"
#include "rules/identity.h"

#include <stdbool.h>

#define CERTIFICATE_MAX       32768 /* bytes in DER */
#define CERTIFICATE_NAMES_MAX 32    /* of each kind; with more of them, none of the kind counts */
#define CERTIFICATE_NAME_MAX  512   /* bytes of one */

enum cert_kind {
	CERT_NONE = 0, /* matches nobody */
	CERT_CN,       /* "cn:NAME": the one common name of the subject, every byte of it */
	CERT_DNS,      /* "dns:HOST": an alternative name, whatever its case; no wildcards */
	CERT_URI,      /* "uri:spiffe://...": an alternative name, every byte of it */
	CERT_EMAIL, /* "email:a@b": an alternative name; the case of what stands behind @ is none */
	CERT_SHA256, /* "sha256:HEX": of the whole certificate */
	CERT_SPKI,   /* "spki:HEX": SHA-256 of its public key, which a renewal may keep */
	CERT_KIND_COUNT
};

/* What the configuration says. */
struct cert_rule {
	enum cert_kind kind;
	const char *text; /* behind the ':'; belongs to whoever gave it */
	struct hash hash;
};

/* How such a text is written, for messages. */
#define CERT_RULE_TEXT                                                                             \
	"\"cn:NAME\", \"dns:HOST\", \"uri:URI\", \"email:ADDRESS\", \"sha256:\" or \"spki:\" and " \
	"64 hexadecimal digits"

/* 0, or -1: it is no such text, or one that no certificate could match. */
int cert_rule_parse(struct span text, struct cert_rule *ret);

struct certificate;

/* der is read, not kept.  ERR_INPUT: it is no certificate, or too large.  To be freed. */
struct certificate *certificate_read(struct span der, struct err *err);
void certificate_free(struct certificate *c); /* NULL is allowed */

bool certificate_fits(const struct certificate *c, const struct cert_rule *rule);

/* For rules and records; lives as long as the certificate. */
const struct identity_cert *certificate_names(const struct certificate *c);

/*
 * The same for all certificates with the same subject and the same alternative
 * names, whatever their keys: 32 digits.
 */
const char *certificate_holder(const struct certificate *c);

#endif
