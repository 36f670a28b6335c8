/*
 * Certificates, made here with every oddity, against what a configuration may say of them.
 */
#include "proxy/certificate.h"

#include "tests/unit/check.h"

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OID_CN  "2.5.4.3"
#define OID_SAN "2.5.29.17"
#define DER_MAX 16384

/* One alternative name. */
struct san {
	unsigned char tag;
	struct span name;
};

#define NAME(text)                                                                                 \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}
#define DNS(text)                                                                                  \
	{                                                                                          \
		0x82, NAME(text)                                                                   \
	}
#define URI(text)                                                                                  \
	{                                                                                          \
		0x86, NAME(text)                                                                   \
	}
#define EMAIL(text)                                                                                \
	{                                                                                          \
		0x81, NAME(text)                                                                   \
	}

static gnutls_x509_privkey_t key;

static int make_key(void **state)
{
	(void)state;
	return gnutls_x509_privkey_init(&key) ||
	       gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
					    GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
}

static int drop_key(void **state)
{
	(void)state;
	gnutls_x509_privkey_deinit(key);
	return 0;
}

/* The DER of an extension with these names, byte by byte: no library's idea of them. */
static void add_names(gnutls_x509_crt_t crt, const struct san *sans, size_t count)
{
	unsigned char der[4096];
	size_t at = 4;

	for (size_t i = 0; i < count; i++) {
		assert_true(sans[i].name.len < 128 && at + 130 < sizeof(der));
		der[at++] = sans[i].tag;
		der[at++] = (unsigned char)sans[i].name.len;
		memcpy(der + at, sans[i].name.at, sans[i].name.len);
		at += sans[i].name.len;
	}
	/* A length of two bytes where one would do is none. */
	if (at - 4 < 256) {
		memmove(der + (at - 4 < 128 ? 2 : 3), der + 4, at - 4);
		der[1] = 0x81;
		der[at - 4 < 128 ? 1 : 2] = (unsigned char)(at - 4);
		at -= at - 4 < 128 ? 2 : 1;
	} else {
		der[1] = 0x82;
		der[2] = (unsigned char)((at - 4) >> 8);
		der[3] = (unsigned char)(at - 4);
	}
	der[0] = 0x30;
	assert_int_equal(gnutls_x509_crt_set_extension_by_oid(crt, OID_SAN, der, at, 0), 0);
}

static size_t make(const struct span *common, size_t common_count, const struct san *sans,
		   size_t san_count, char der[DER_MAX])
{
	static unsigned char serial;
	gnutls_x509_crt_t crt;
	size_t size = DER_MAX;

	serial++;
	assert_int_equal(gnutls_x509_crt_init(&crt), 0);
	assert_int_equal(gnutls_x509_crt_set_version(crt, 3), 0);
	assert_int_equal(gnutls_x509_crt_set_key(crt, key), 0);
	assert_int_equal(gnutls_x509_crt_set_serial(crt, &serial, 1), 0);
	assert_int_equal(gnutls_x509_crt_set_activation_time(crt, 1000000000), 0);
	assert_int_equal(gnutls_x509_crt_set_expiration_time(crt, 2000000000), 0);
	for (size_t i = 0; i < common_count; i++)
		assert_int_equal(gnutls_x509_crt_set_dn_by_oid(crt, OID_CN, 0, common[i].at,
							       (unsigned)common[i].len),
				 0);
	if (san_count)
		add_names(crt, sans, san_count);
	assert_int_equal(gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0), 0);
	assert_int_equal(gnutls_x509_crt_export(crt, GNUTLS_X509_FMT_DER, der, &size), 0);
	gnutls_x509_crt_deinit(crt);
	return size;
}

static struct certificate *made(const struct span *common, size_t common_count,
				const struct san *sans, size_t san_count)
{
	static char der[DER_MAX];
	struct err err = {0};
	size_t size = make(common, common_count, sans, san_count, der);

	return certificate_read((struct span){der, size}, &err);
}

static void names_fit_exactly(void **state)
{
	static const struct {
		const char *label;
		struct span common[3];
		struct san sans[4];
		const char *rule;
		bool fits;
	} cases[] = {
		{"common name", {NAME("ci-1")}, {{0}}, "cn:ci-1", true},
		{"its case counts", {NAME("CI-1")}, {{0}}, "cn:ci-1", false},
		{"a part of it", {NAME("ci-10")}, {{0}}, "cn:ci-1", false},
		{"blank behind it", {NAME("ci-1 ")}, {{0}}, "cn:ci-1", false},
		{"UTF-8", {NAME("J\xc3\xb6rg")}, {{0}}, "cn:J\xc3\xb6rg", true},
		{"UTF-8 in another form", {NAME("Jo\xcc\x88rg")}, {{0}}, "cn:J\xc3\xb6rg", false},
		{"NUL in the common name", {NAME("ci-1\0.evil")}, {{0}}, "cn:ci-1", false},
		{"NUL at its end", {NAME("ci-1\0")}, {{0}}, "cn:ci-1", false},
		{"line end in it", {NAME("ci-1\nx")}, {{0}}, "cn:ci-1", false},
		{"two common names", {NAME("ci-1"), NAME("ci-1")}, {{0}}, "cn:ci-1", false},
		{"two, the second meant", {NAME("ci-2"), NAME("ci-1")}, {{0}}, "cn:ci-1", false},
		{"none", {NAME("")}, {{0}}, "cn:ci-1", false},
		{"common name is no host", {NAME("ci.example")}, {{0}}, "dns:ci.example", false},
		{"host is no common name", {NAME("x")}, {DNS("ci")}, "cn:ci", false},
		{"host", {NAME("x")}, {DNS("ci.example")}, "dns:ci.example", true},
		{"host in another case", {NAME("x")}, {DNS("CI.Example")}, "dns:ci.eXample", true},
		{"second host", {NAME("x")}, {DNS("a"), DNS("b")}, "dns:b", true},
		{"host with a dot behind",
		 {NAME("x")},
		 {DNS("ci.example.")},
		 "dns:ci.example",
		 false},
		{"NUL in a host", {NAME("x")}, {DNS("ci\0.evil")}, "dns:ci", false},
		{"NUL in another host", {NAME("x")}, {DNS("ci"), DNS("a\0b")}, "dns:ci", false},
		{"empty name of a host", {NAME("x")}, {DNS("")}, "dns:ci", false},
		{"empty name beside it", {NAME("x")}, {DNS(""), DNS("ci")}, "dns:ci", false},
		{"wildcard", {NAME("x")}, {DNS("*.example")}, "dns:ci.example", false},
		{"wildcard beside it", {NAME("x")}, {DNS("*.a"), DNS("ci.a")}, "dns:ci.a", true},
		{"host is no mail", {NAME("x")}, {DNS("ci.a")}, "email:x@ci.a", false},
		{"URI", {NAME("x")}, {URI("spiffe://a/ci")}, "uri:spiffe://a/ci", true},
		{"its case counts",
		 {NAME("x")},
		 {URI("spiffe://a/CI")},
		 "uri:spiffe://a/ci",
		 false},
		{"a part of it", {NAME("x")}, {URI("spiffe://a/ci/x")}, "uri:spiffe://a/ci", false},
		{"NUL in it", {NAME("x")}, {URI("spiffe://a/ci\0x")}, "uri:spiffe://a/ci", false},
		{"blank in it", {NAME("x")}, {URI("spiffe://a/ci x")}, "uri:spiffe://a/ci", false},
		{"UTF-8 in it",
		 {NAME("x")},
		 {URI("spiffe://a/\xc3\xb6")},
		 "uri:spiffe://a/",
		 false},
		{"an odd host spoils no URI",
		 {NAME("x")},
		 {DNS("a\0b"), URI("urn:x")},
		 "uri:urn:x",
		 true},
		{"mail", {NAME("x")}, {EMAIL("ci@Example.org")}, "email:ci@example.ORG", true},
		{"mail: case before the @",
		 {NAME("x")},
		 {EMAIL("CI@example.org")},
		 "email:ci@example.org",
		 false},
		{"mail: NUL",
		 {NAME("x")},
		 {EMAIL("ci@example.org\0.evil")},
		 "email:ci@example.org",
		 false},
		{"mail: longer host",
		 {NAME("x")},
		 {EMAIL("ci@example.org.evil")},
		 "email:ci@example.org",
		 false},
		{"mail: two @",
		 {NAME("x")},
		 {EMAIL("ci@a@example.org")},
		 "email:ci@example.org",
		 false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t common = 0, sans = 0;
		struct cert_rule rule;
		struct certificate *c;

		while (common < 3 && cases[i].common[common].len)
			common++;
		while (sans < 4 && cases[i].sans[sans].tag)
			sans++;
		c = made(cases[i].common, common, cases[i].sans, sans);
		CHECK_INT(cases[i].label, 0, cert_rule_parse(span_of(cases[i].rule), &rule));
		/* The library takes some for no certificate at all, which is as good. */
		CHECK_INT(cases[i].label, cases[i].fits, c && certificate_fits(c, &rule));
		certificate_free(c);
	}
}

static void rules_are_strict(void **state)
{
	static const struct {
		const char *label;
		struct span text;
		bool fine;
	} cases[] = {
		{"nothing", NAME(""), false},
		{"no kind", NAME("ci-1"), false},
		{"unknown kind", NAME("san:ci"), false},
		{"kind in capitals", NAME("CN:ci"), false},
		{"empty", NAME("cn:"), false},
		{"blanks", NAME("cn:  "), false},
		{"common name", NAME("cn:Build, Team A"), true},
		{"NUL", NAME("cn:a\0b"), false},
		{"control byte", NAME("cn:a\tb"), false},
		{"C1 control", NAME("cn:a\xc2\x9b"), false},
		{"no UTF-8", NAME("cn:\xff"), false},
		{"host", NAME("dns:a-b_c.d"), true},
		{"wildcard", NAME("dns:*.a"), false},
		{"dot at the end", NAME("dns:a."), false},
		{"empty label", NAME("dns:a..b"), false},
		{"URI", NAME("uri:spiffe://a/b"), true},
		{"no scheme", NAME("uri://a/b"), false},
		{"path only", NAME("uri:a/b"), false},
		{"scheme only", NAME("uri:spiffe:"), false},
		{"blank in a URI", NAME("uri:a:b c"), false},
		{"mail", NAME("email:a@b.c"), true},
		{"mail without a host", NAME("email:a@"), false},
		{"mail without a name", NAME("email:@b"), false},
		{"short hash", NAME("sha256:00"), false},
		{"hash with colons",
		 NAME("sha256:00:11:22:33:44:55:66:77:88:99:aa:bb:cc:dd:ee:ff:00:11:22:33:44:"
		      "55:66:77:88:99:aa:bb:cc:dd:ee:ff"),
		 false},
		{"hash in capitals",
		 NAME("sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
		 false},
		{"hash",
		 NAME("spki:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
		 true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cert_rule rule;

		CHECK_INT(cases[i].label, cases[i].fine ? 0 : -1,
			  cert_rule_parse(cases[i].text, &rule));
		CHECK_INT(cases[i].label, cases[i].fine, rule.kind != CERT_NONE);
	}
}

static struct cert_rule hash_rule(const char *prefix, const char *hex)
{
	static char text[128];
	struct cert_rule rule;

	snprintf(text, sizeof(text), "%s%s", prefix, hex);
	CHECK_INT(prefix, 0, cert_rule_parse(span_of(text), &rule));
	return rule;
}

static void hashes_tell_certificates_and_keys_apart(void **state)
{
	static const struct span name = NAME("a");
	struct certificate *first = made(&name, 1, NULL, 0), *renewed = made(&name, 1, NULL, 0);
	struct cert_rule whole = hash_rule("sha256:", certificate_names(first)->sha256);
	struct cert_rule keyed = hash_rule("spki:", certificate_names(first)->spki);
	struct cert_rule mixed = hash_rule("sha256:", certificate_names(first)->spki);

	(void)state;
	CHECK_INT("itself", 1, certificate_fits(first, &whole));
	CHECK_INT("renewed", 0, certificate_fits(renewed, &whole));
	CHECK_INT("its key", 1, certificate_fits(first, &keyed));
	CHECK_INT("renewed with the same key", 1, certificate_fits(renewed, &keyed));
	CHECK_INT("the key's hash is not the certificate's", 0, certificate_fits(first, &mixed));
	CHECK_STR("the same holder", certificate_holder(first), certificate_holder(renewed));
	certificate_free(first);
	certificate_free(renewed);
}

static void holders_differ_by_any_name(void **state)
{
	static const struct span a = NAME("a"), b = NAME("b");
	static const struct san host = DNS("a"), other = DNS("b");
	struct certificate *all[] = {made(&a, 1, NULL, 0), made(&b, 1, NULL, 0),
				     made(&a, 1, &host, 1), made(&a, 1, &other, 1),
				     made(NULL, 0, &host, 1)};
	const size_t count = sizeof(all) / sizeof(*all);

	(void)state;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++)
			CHECK_INT("two holders", 1,
				  strcmp(certificate_holder(all[i]), certificate_holder(all[j])) !=
					  0);
	for (size_t i = 0; i < count; i++)
		certificate_free(all[i]);
}

static void too_many_names_are_none(void **state)
{
	static char texts[CERTIFICATE_NAMES_MAX + 1][8];
	struct san sans[CERTIFICATE_NAMES_MAX + 1];
	struct cert_rule rule;
	struct certificate *c;

	(void)state;
	for (int i = 0; i <= CERTIFICATE_NAMES_MAX; i++) {
		snprintf(texts[i], sizeof(texts[i]), "h%d", i);
		sans[i] = (struct san){0x82, span_of(texts[i])};
	}
	CHECK_INT("rule", 0, cert_rule_parse(span_of("dns:h1"), &rule));
	c = made(NULL, 0, sans, CERTIFICATE_NAMES_MAX);
	CHECK_INT("as many as may be", 1, certificate_fits(c, &rule));
	certificate_free(c);
	c = made(NULL, 0, sans, CERTIFICATE_NAMES_MAX + 1);
	CHECK_INT("one too many", 0, certificate_fits(c, &rule));
	certificate_free(c);
}

static void what_is_no_certificate_is_refused(void **state)
{
	static char der[DER_MAX], large[CERTIFICATE_MAX + 1];
	static const struct span name = NAME("a");
	size_t size = make(&name, 1, NULL, 0, der);

	(void)state;
	for (size_t cut = 0; cut < size; cut += 7) {
		struct err err = {0};

		CHECK_INT("cut short", 1, certificate_read((struct span){der, cut}, &err) == NULL);
		CHECK_INT("cut short", ERR_INPUT, err.kind);
	}
	for (int i = 0; i < 2; i++) {
		struct err err = {0};

		memcpy(large, der, size);
		CHECK_INT("too large", 1,
			  certificate_read((struct span){large, sizeof(large) - (size_t)i}, &err) ==
				  NULL);
		CHECK_INT("too large", ERR_INPUT, err.kind);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_fit_exactly),
		cmocka_unit_test(rules_are_strict),
		cmocka_unit_test(hashes_tell_certificates_and_keys_apart),
		cmocka_unit_test(holders_differ_by_any_name),
		cmocka_unit_test(too_many_names_are_none),
		cmocka_unit_test(what_is_no_certificate_is_refused),
	};

	return cmocka_run_group_tests(tests, make_key, drop_key);
}
