#include "proxy/certificate.h"

#include "gate/base/arena.h"
#include "gate/base/utf8.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MEMORY_MAX                                                                                 \
	8192 /* bytes of all names of one certificate; rules see and records may hold them */
#define SUBJECT_MAX  512
#define OID_CN       "2.5.4.3"
#define OID_SAN      "2.5.29.17"
#define TAG_UTF8     12
#define TAG_PRINT    19
#define TAG_SEQUENCE 0x30
#define TAG_EMAIL    0x81 /* of GeneralName: context-specific, primitive */
#define TAG_DNS      0x82
#define TAG_URI      0x86
#define HOLDER_LEN   32
#define PARTS_MAX    64 /* of a subject */
#define VALUES_MAX   16 /* of one part */

/* The names of one kind, NULL at the end. */
struct names {
	const char *list[CERTIFICATE_NAMES_MAX + 1];
	size_t count;
	bool odd; /* one of them cannot be right: none of the kind counts */
};

struct certificate {
	struct arena *arena;
	struct hash whole, spki;
	char whole_hex[HASH_HEX_LEN + 1], spki_hex[HASH_HEX_LEN + 1];
	char holder[HOLDER_LEN + 1];
	struct names by_kind[CERT_KIND_COUNT]; /* CERT_CN, CERT_DNS, CERT_URI, CERT_EMAIL */
	struct identity_cert shown;
};

/* --- what the configuration says --- */

/* Text that is what it looks like: UTF-8 without control bytes, and not only blanks. */
static bool is_clean(struct span s)
{
	const unsigned char *at = (const unsigned char *)s.at;
	bool blank = true;

	if (!s.len || s.len > CERTIFICATE_NAME_MAX)
		return false;
	for (size_t i = 0, n; i < s.len; i += n) {
		n = utf8_len(at + i, s.len - i);
		/* C0, DEL and C1 (c2 80 to c2 9f) */
		if (!n || at[i] < ' ' || at[i] == 0x7f ||
		    (n == 2 && at[i] == 0xc2 && at[i + 1] < 0xa0))
			return false;
		blank = blank && at[i] == ' ';
	}
	return !blank;
}

static bool is_ascii(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] <= ' ' || s.at[i] > '~')
			return false;
	return s.len > 0 && s.len <= CERTIFICATE_NAME_MAX;
}

/* Labels of letters, digits, '-' and '_'; no wildcard, no dot at an end. */
static bool is_host(struct span s)
{
	size_t label = 0;

	if (!s.len || s.len > 253)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.at[i];

		if (c == '.') {
			if (!label)
				return false;
			label = 0;
			continue;
		}
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '-' || c == '_') ||
		    ++label > 63)
			return false;
	}
	return label > 0;
}

/* "spiffe://...": a scheme, a colon, something. */
static bool is_uri(struct span s)
{
	size_t scheme = 0;

	if (!is_ascii(s) || !((s.at[0] | 0x20) >= 'a' && (s.at[0] | 0x20) <= 'z'))
		return false;
	while (scheme < s.len && s.at[scheme] != ':' && s.at[scheme] != '/')
		scheme++;
	return scheme + 1 < s.len && s.at[scheme] == ':';
}

static const char *at_sign(struct span s)
{
	return memrchr(s.at, '@', s.len);
}

static bool is_email(struct span s)
{
	const char *at = is_ascii(s) ? at_sign(s) : NULL;

	return at && at > s.at && is_host(span_skip(s, (size_t)(at - s.at) + 1));
}

static const struct {
	const char *prefix;
	bool (*fits)(struct span s); /* NULL: a hash */
} kinds[] = {
	[CERT_NONE] = {NULL, NULL},          [CERT_CN] = {"cn:", is_clean},
	[CERT_DNS] = {"dns:", is_host},      [CERT_URI] = {"uri:", is_uri},
	[CERT_EMAIL] = {"email:", is_email}, [CERT_SHA256] = {"sha256:", NULL},
	[CERT_SPKI] = {"spki:", NULL},
};
_Static_assert(sizeof(kinds) / sizeof(*kinds) == CERT_KIND_COUNT, "a row each");

int cert_rule_parse(struct span text, struct cert_rule *ret)
{
	for (enum cert_kind k = CERT_NONE + 1; k < CERT_KIND_COUNT; k++) {
		struct span rest;

		if (!span_starts(text, kinds[k].prefix))
			continue;
		rest = span_skip(text, strlen(kinds[k].prefix));
		*ret = (struct cert_rule){.kind = k, .text = rest.at};
		if (kinds[k].fits ? kinds[k].fits(rest) : hash_parse(rest, &ret->hash) == 0)
			return 0;
		break;
	}
	*ret = (struct cert_rule){.kind = CERT_NONE};
	return -1;
}

/* --- what a certificate says --- */

static void keep(struct certificate *c, enum cert_kind kind, struct span name)
{
	struct names *to = &c->by_kind[kind];
	char *copy;

	if (!kinds[kind].fits(name) || to->count == CERTIFICATE_NAMES_MAX) {
		to->odd = true;
		return;
	}
	copy = arena_strndup(c->arena, name.at, name.len);
	if (copy)
		to->list[to->count++] = copy;
	else
		to->odd = true;
}

/* Of alternative names: a wildcard is nobody's name, and spoils none of the others. */
static void keep_alternative(struct certificate *c, unsigned char tag, struct span name)
{
	switch (tag) {
	case TAG_DNS:
		if (name.len && name.at[0] == '*' && is_host(span_skip(name, 2)))
			return;
		keep(c, CERT_DNS, name);
		break;
	case TAG_EMAIL:
		keep(c, CERT_EMAIL, name);
		break;
	case TAG_URI:
		keep(c, CERT_URI, name);
		break;
	default: /* addresses and the like: nothing asks for them */
		break;
	}
}

static void spoil_alternatives(struct certificate *c)
{
	c->by_kind[CERT_DNS].odd = c->by_kind[CERT_URI].odd = c->by_kind[CERT_EMAIL].odd = true;
}

/* One element of DER off the front: its tag's byte and its content.  Short tags, plain lengths. */
static bool take_element(struct span *rest, unsigned char *ret_tag, struct span *ret)
{
	const unsigned char *at = (const unsigned char *)rest->at;
	size_t head = 2, len, digits;

	if (rest->len < head || (at[0] & 0x1f) == 0x1f)
		return false;
	len = at[1];
	if (len >= 0x80) {
		digits = len & 0x7f;
		if (digits < 1 || digits > 2 || rest->len < head + digits || at[2] == 0)
			return false;
		len = digits == 1 ? at[2] : (size_t)(at[2] << 8 | at[3]);
		head += digits;
		if (len < 0x80)
			return false;
	}
	if (rest->len - head < len)
		return false;
	*ret_tag = at[0];
	*ret = (struct span){rest->at + head, len};
	*rest = span_skip(*rest, head + len);
	return true;
}

/*
 * GeneralNames, read here since the library's own way through text loses what stands
 * behind a NUL.
 */
static int list_alternatives(struct certificate *c, struct span extension)
{
	struct span names, name;
	unsigned char tag;

	if (!take_element(&extension, &tag, &names) || tag != TAG_SEQUENCE || extension.len)
		return -1;
	while (names.len) {
		if (!take_element(&names, &tag, &name))
			return -1;
		keep_alternative(c, tag, name);
	}
	return 0;
}

static void read_alternatives(struct certificate *c, gnutls_x509_crt_t crt, struct hash *ret_hash)
{
	gnutls_datum_t extension = {NULL, 0}, second = {NULL, 0};
	int rc = gnutls_x509_crt_get_extension_by_oid2(crt, OID_SAN, 0, &extension, NULL);

	if (rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
		return;
	if (rc < 0) {
		spoil_alternatives(c);
		return;
	}
	if (gnutls_x509_crt_get_extension_by_oid2(crt, OID_SAN, 1, &second, NULL) !=
	    GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
		spoil_alternatives(c);
	gnutls_free(second.data);
	*ret_hash = hash_of((struct span){(const char *)extension.data, extension.size});
	if (list_alternatives(c, (struct span){(const char *)extension.data, extension.size}) < 0)
		spoil_alternatives(c);
	gnutls_free(extension.data);
}

/* Only the two kinds of text that cannot be read in two ways count as a name. */
static void keep_common(struct certificate *c, const gnutls_x509_ava_st *ava)
{
	struct names *to = &c->by_kind[CERT_CN];

	if (ava->value_tag != TAG_UTF8 && ava->value_tag != TAG_PRINT)
		to->odd = true;
	else
		keep(c, CERT_CN, (struct span){(const char *)ava->value.data, ava->value.size});
	to->odd = to->odd || to->count > 1;
}

static void read_subject(struct certificate *c, gnutls_x509_crt_t crt)
{
	gnutls_x509_ava_st ava;
	gnutls_x509_dn_t dn;
	int part = 0, value = 0;

	c->by_kind[CERT_CN].odd = true;
	if (gnutls_x509_crt_get_subject(crt, &dn) < 0)
		return;
	c->by_kind[CERT_CN].odd = false;
	for (; part < PARTS_MAX; part++) {
		for (value = 0; value < VALUES_MAX; value++) {
			if (gnutls_x509_dn_get_rdn_ava(dn, part, value, &ava) < 0)
				break;
			if (strcmp((const char *)ava.oid.data, OID_CN) == 0)
				keep_common(c, &ava);
		}
		if (value == 0)
			return;
		if (value == VALUES_MAX)
			break;
	}
	c->by_kind[CERT_CN].odd = true; /* more than is looked at */
}

/* As RFC 4514 writes it, for people: cut, and without bytes that are no text. */
static const char *subject_text(struct certificate *c, gnutls_x509_crt_t crt)
{
	gnutls_datum_t dn = {NULL, 0};
	size_t len;
	char *copy;

	if (gnutls_x509_crt_get_dn3(crt, &dn, 0) < 0)
		return "";
	len = dn.size < SUBJECT_MAX ? dn.size : SUBJECT_MAX;
	copy = arena_strndup(c->arena, (const char *)dn.data, len);
	gnutls_free(dn.data);
	for (size_t i = 0, n; copy && i < len; i += n) {
		n = utf8_len((const unsigned char *)copy + i, len - i);
		if (!n || (n == 1 && (copy[i] < ' ' || copy[i] > '~'))) {
			copy[i] = '?';
			n = 1;
		}
	}
	return copy ? copy : "";
}

static int read_hashes(struct certificate *c, gnutls_x509_crt_t crt, struct span der)
{
	size_t size = HASH_BYTES;

	c->whole = hash_of(der);
	hash_hex(&c->whole, c->whole_hex);
	if (gnutls_x509_crt_get_key_id(crt, GNUTLS_KEYID_USE_SHA256, c->spki.bytes, &size) < 0 ||
	    size != HASH_BYTES)
		return -1;
	hash_hex(&c->spki, c->spki_hex);
	return 0;
}

static void name_holder(struct certificate *c, gnutls_x509_crt_t crt, const struct hash *names)
{
	gnutls_datum_t dn = {NULL, 0};
	char hex[HASH_HEX_LEN + 1];
	struct hash parts[2], hash;

	gnutls_x509_crt_get_raw_dn(crt, &dn);
	/* Of two hashes: what ends one part and begins the other cannot be moved. */
	parts[0] = hash_of((struct span){dn.data ? (const char *)dn.data : "", dn.size});
	parts[1] = *names;
	gnutls_free(dn.data);
	hash = hash_of((struct span){(const char *)parts, sizeof(parts)});
	hash_hex(&hash, hex);
	memcpy(c->holder, hex, HOLDER_LEN);
}

/* What is odd is as if it were not there. */
static const char *const *sound(struct names *n)
{
	if (n->odd)
		n->count = 0;
	n->list[n->count] = NULL;
	return n->list;
}

static int fill(struct certificate *c, struct span der)
{
	const gnutls_datum_t raw = {(unsigned char *)(uintptr_t)der.at, (unsigned)der.len};
	struct hash names = hash_of((struct span){"", 0});
	gnutls_x509_crt_t crt;
	int rc;

	if (gnutls_x509_crt_init(&crt) < 0)
		return -1;
	rc = gnutls_x509_crt_import(crt, &raw, GNUTLS_X509_FMT_DER);
	if (rc >= 0)
		rc = read_hashes(c, crt, der);
	if (rc >= 0) {
		read_subject(c, crt);
		read_alternatives(c, crt, &names);
		name_holder(c, crt, &names);
		c->shown.subject = subject_text(c, crt);
	}
	gnutls_x509_crt_deinit(crt);
	return rc < 0 ? -1 : 0;
}

struct certificate *certificate_read(struct span der, struct err *err)
{
	struct certificate *c;

	if (der.len > CERTIFICATE_MAX) {
		err_set(err, ERR_INPUT, "the certificate has more than %d bytes", CERTIFICATE_MAX);
		return NULL;
	}
	c = calloc(1, sizeof(*c));
	if (!c || !(c->arena = arena_create(MEMORY_MAX))) {
		free(c);
		err_sys(err, "allocate a certificate");
		return NULL;
	}
	if (fill(c, der) < 0 || arena_spent(c->arena)) {
		err_set(err, ERR_INPUT, "this is no certificate, or an odd one");
		certificate_free(c);
		return NULL;
	}
	c->shown.sha256 = c->whole_hex;
	c->shown.spki = c->spki_hex;
	sound(&c->by_kind[CERT_CN]);
	c->shown.cn = c->by_kind[CERT_CN].count ? c->by_kind[CERT_CN].list[0] : "";
	c->shown.dns = sound(&c->by_kind[CERT_DNS]);
	c->shown.uris = sound(&c->by_kind[CERT_URI]);
	c->shown.emails = sound(&c->by_kind[CERT_EMAIL]);
	return c;
}

void certificate_free(struct certificate *c)
{
	if (!c)
		return;
	arena_destroy(c->arena);
	free(c);
}

/* --- whether the two mean the same --- */

static bool same_email(const char *a, const char *b)
{
	const char *at_a = at_sign(span_of(a)), *at_b = at_sign(span_of(b));

	return at_a - a == at_b - b && strncmp(a, b, (size_t)(at_a - a)) == 0 &&
	       strcasecmp(at_a, at_b) == 0;
}

static bool same_name(enum cert_kind kind, const char *a, const char *b)
{
	if (kind == CERT_DNS)
		return strcasecmp(a, b) == 0;
	return kind == CERT_EMAIL ? same_email(a, b) : strcmp(a, b) == 0;
}

bool certificate_fits(const struct certificate *c, const struct cert_rule *rule)
{
	const struct names *names;

	if (rule->kind <= CERT_NONE || rule->kind >= CERT_KIND_COUNT)
		return false;
	if (rule->kind == CERT_SHA256)
		return hash_eq(&c->whole, &rule->hash);
	if (rule->kind == CERT_SPKI)
		return hash_eq(&c->spki, &rule->hash);
	names = &c->by_kind[rule->kind];
	for (size_t i = 0; i < names->count; i++)
		if (same_name(rule->kind, names->list[i], rule->text))
			return true;
	return false;
}

const struct identity_cert *certificate_names(const struct certificate *c)
{
	return &c->shown;
}

const char *certificate_holder(const struct certificate *c)
{
	return c->holder;
}
