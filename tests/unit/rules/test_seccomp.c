/* The profiles of system calls that come with the program. */
#include "gate/base/capability.h"
#include "rules/seccomp.h"
#include "tests/unit/check.h"

#include <stdio.h>

#define ROOM ((size_t)8 << 20)

static const struct seccomp_profile *parsed(struct arena *a, const struct seccomp_file *file)
{
	struct err err = {0};
	const struct seccomp_profile *p = seccomp_profile_parse(
		a, (struct span){file->text, file->length}, SECCOMP_FILE, &err);

	CHECK_STR(file->name, "", err.msg);
	return p;
}

static void each_is_known_and_no_more_than_the_default(void **state)
{
	struct arena *a = arena_create(ROOM);
	const struct seccomp_profile *usual = parsed(a, seccomp_file_find(SECCOMP_DEFAULT));

	(void)state;
	CHECK_INT("some", 1, seccomp_file_count >= 4);
	for (size_t i = 0; i < seccomp_file_count; i++) {
		const struct seccomp_file *file = &seccomp_files[i];
		const struct seccomp_profile *p = parsed(a, file);
		struct seccomp_more more[4] = {{.call = ""}};
		const char *unknown = seccomp_profile_unknown(p, 0);

		CHECK_STR(file->name, "", unknown ? unknown : "");
		seccomp_profile_more_anywhere(p, usual, a, more, 4);
		CHECK_STR(file->name, "", more[0].call);
	}
	arena_destroy(a);
}

static void each_compiles(void **state)
{
	const uint64_t sets[] = {0, capability_engine_default(), capability_bit(span_of("ALL"))};

	(void)state;
	for (size_t i = 0; i < seccomp_file_count; i++)
		for (size_t k = 0; k < sizeof(sets) / sizeof(*sets); k++) {
			struct err err = {0};
			struct buf program;

			buf_init(&program, (size_t)1 << 20);
			seccomp_named_bpf(seccomp_files[i].name, sets[k], &program, &err);
			CHECK_STR(seccomp_files[i].name, "", err.msg);
			CHECK_INT(seccomp_files[i].name, 1, buf_len(&program) > 800);
			buf_fini(&program);
		}
}

/* What each is there to refuse. */
static void dangerous_calls_are_left_out(void **state)
{
	static const char *const never[] = {"mount",       "unshare",         "setns",
					    "bpf",         "keyctl",          "io_uring_setup",
					    "init_module", "clone3",          "socketcall",
					    "userfaultfd", "perf_event_open", "open_by_handle_at"};
	const struct seccomp_place at = {.capabilities = capability_engine_default()};
	struct arena *a = arena_create(ROOM);

	(void)state;
	for (size_t i = 0; i < seccomp_file_count; i++) {
		const struct seccomp_profile *p = parsed(a, &seccomp_files[i]);

		for (size_t k = 0; k < sizeof(never) / sizeof(*never); k++) {
			char text[200];
			struct seccomp_more more;
			const struct seccomp_profile *none;
			struct err err = {0};

			snprintf(text, sizeof(text),
				 "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[{\"names\":"
				 "[\"%s\"],\"action\":\"SCMP_ACT_ALLOW\"}]}",
				 never[k]);
			none = seccomp_profile_parse(a, span_of(text), SECCOMP_REQUEST, &err);
			CHECK_INT(never[k], 1, seccomp_profile_more(none, p, &at, &more, 1) > 0);
			CHECK_STR(seccomp_files[i].name, never[k], more.call);
		}
	}
	arena_destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_known_and_no_more_than_the_default),
		cmocka_unit_test(each_compiles),
		cmocka_unit_test(dangerous_calls_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
