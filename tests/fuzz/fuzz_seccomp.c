/*
 * A filter of system calls that a caller sent.  What is read is written in one way, which is
 * read as the same; a profile allows no more than itself, unless it says so of a call that it is
 * unclear; and comparing comes to an end.
 */
#include "tests/fuzz/fuzz.h"

#include "gate/base/capability.h"
#include "rules/seccomp.h"

#include <string.h>

#define MORE_MAX 8

static const struct seccomp_profile *usual(struct arena *a)
{
	const struct seccomp_file *file = seccomp_file_find(SECCOMP_DEFAULT);
	struct err err = {0};
	const struct seccomp_profile *p = seccomp_profile_parse(
		a, (struct span){file->text, file->length}, SECCOMP_FILE, &err);

	HOLDS(p != NULL);
	return p;
}

static struct span written(struct arena *a, const struct seccomp_profile *p)
{
	struct span text;
	struct buf out;

	buf_init(&out, FUZZ_ARENA_BYTES);
	seccomp_profile_write(p, &out);
	HOLDS(!buf_spent(&out));
	text = (struct span){arena_strndup(a, buf_span(&out).at, buf_len(&out)), buf_len(&out)};
	HOLDS(text.at != NULL);
	buf_fini(&out);
	return text;
}

static void check_compared(const struct seccomp_profile *p, const struct seccomp_profile *again,
			   const struct seccomp_place *at)
{
	struct seccomp_more more[MORE_MAX];
	bool unclear = seccomp_profile_unclear(p, at, 0) != NULL;
	size_t count = seccomp_profile_more(p, again, at, more, MORE_MAX);

	/* What depends on the kernel's version is taken in two ways. */
	HOLDS(!unclear || count > 0);
	HOLDS((seccomp_profile_more(again, p, at, more, MORE_MAX) > 0) == (count > 0));
}

static void check_whole(struct arena *a, const struct seccomp_profile *p)
{
	const struct seccomp_place at = {.capabilities = capability_engine_default()};
	struct seccomp_more more[MORE_MAX];
	struct err err = {0};
	struct span text = written(a, p), twice;
	const struct seccomp_profile *again = seccomp_profile_parse(a, text, SECCOMP_REQUEST, &err);

	HOLDS(again != NULL);
	twice = written(a, again);
	HOLDS(span_eq(text, twice));
	check_compared(p, again, &at);
	seccomp_profile_more_anywhere(p, usual(a), a, more, MORE_MAX);
	seccomp_profile_more(usual(a), p, &at, more, MORE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_create(FUZZ_ARENA_BYTES);
	struct span text = fuzz_text(a, data, size);
	struct err err = {0};
	const struct seccomp_profile *p = seccomp_profile_parse(a, text, SECCOMP_REQUEST, &err);

	HOLDS(p || err.kind == ERR_INPUT || err.kind == ERR_LIMIT);
	if (p)
		check_whole(a, p);
	arena_destroy(a);
	return 0;
}
