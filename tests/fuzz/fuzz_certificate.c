/*
 * A client's certificate: bytes that somebody else chose.  Whatever they are, names that are
 * told are text without control bytes, as many as may be, and each fits the rule that asks for it.
 */
#include "tests/fuzz/fuzz.h"

#include "proxy/certificate.h"

#include <stdio.h>
#include <string.h>

static void check_text(const char *s)
{
	HOLDS(*s && strlen(s) <= CERTIFICATE_NAME_MAX);
	for (; *s; s++)
		HOLDS((unsigned char)*s >= ' ' && *s != 0x7f);
}

static void check_one(const struct certificate *c, const char *prefix, const char *name)
{
	char text[CERTIFICATE_NAME_MAX + 16];
	struct cert_rule rule;

	check_text(name);
	snprintf(text, sizeof(text), "%s%s", prefix, name);
	HOLDS(cert_rule_parse(span_of(text), &rule) == 0);
	HOLDS(certificate_fits(c, &rule));
}

static void check_all(const struct certificate *c, const char *prefix, const char *const *names)
{
	size_t n = 0;

	for (; names[n]; n++)
		check_one(c, prefix, names[n]);
	HOLDS(n <= CERTIFICATE_NAMES_MAX);
}

/* A rule is what it says: no byte of it is left out. */
static void check_rule(struct span text)
{
	struct cert_rule rule;

	if (cert_rule_parse(text, &rule) < 0) {
		HOLDS(rule.kind == CERT_NONE);
		return;
	}
	HOLDS(rule.kind > CERT_NONE && rule.kind < CERT_KIND_COUNT);
	HOLDS(!memchr(text.at, '\0', text.len) && !memchr(text.at, '\n', text.len));
	HOLDS(rule.text > text.at && rule.text < text.at + text.len && rule.text[-1] == ':');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_create(FUZZ_ARENA_BYTES);
	struct err err = {0};
	struct certificate *c = certificate_read((struct span){(const char *)data, size}, &err);

	check_rule(fuzz_text(a, data, size));
	HOLDS(c || err.kind == ERR_INPUT);
	if (c) {
		const struct identity_cert *names = certificate_names(c);

		if (*names->cn)
			check_one(c, "cn:", names->cn);
		check_all(c, "dns:", names->dns);
		check_all(c, "uri:", names->uris);
		check_all(c, "email:", names->emails);
		check_one(c, "sha256:", names->sha256);
		check_one(c, "spki:", names->spki);
		HOLDS(strlen(certificate_holder(c)) == 32);
		if (*names->subject)
			check_text(names->subject);
	}
	certificate_free(c);
	arena_destroy(a);
	return 0;
}
