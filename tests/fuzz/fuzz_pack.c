/*
 * Signed bundles of rules.  Nothing that the fuzzer makes is signed, so the text is signed here:
 * what follows is what somebody with the key could have made.
 */
#include "tests/fuzz/fuzz.h"

#include "audit/signed.h"
#include "gate/pack.h"

#include <string.h>

static char secret[SIGNED_KEY_MAX], key[SIGNED_KEY_MAX];

static void check(struct span text, struct arena *a)
{
	static struct pack p;
	const char *const keys[] = {key, NULL};
	struct err err = {0};

	if (pack_read(text, keys, a, &p, &err) < 0) {
		HOLDS(err.kind != ERR_NONE && *err.msg);
		return;
	}
	HOLDS(p.file_count > 0 && p.file_count <= PACK_FILES_MAX);
	for (size_t i = 0; i < p.file_count; i++)
		HOLDS(!strchr(p.files[i].name, '/') && p.files[i].text.at >= text.at &&
		      p.files[i].text.at + p.files[i].text.len <= text.at + text.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_create(FUZZ_ARENA_BYTES);
	struct span text = fuzz_text(a, data, size), head = text, rest;
	const char *end = memmem(text.at, text.len, "\n\n", 2);
	struct err err = {0};
	struct buf out;

	jv_init();
	if (!*key)
		HOLDS(signed_init(&err) == 0 && signed_key_make("k", secret, key, &err) == 0);
	check(text, a);
	/* Up to the first empty line it is what is signed; the rest stands behind the signature. */
	head.len = end ? (size_t)(end - text.at) + 1 : text.len;
	rest = span_skip(text, head.len);
	buf_init(&out, PACK_MAX);
	HOLDS(signed_write(span_of(secret), head, &out, &err) == 0);
	buf_put(&out, rest.at, rest.len);
	check(buf_span(&out), a);
	buf_fini(&out);
	arena_destroy(a);
	return 0;
}
