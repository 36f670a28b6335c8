/* What FORMAT.md says is true: its examples are a log, its test vector is right. */
#include "tests/unit/audit/fixture.h"
#include "tests/unit/check.h"

#include "gate/base/arena.h"
#include "gate/base/jv.h"

#include <stdio.h>
#include <stdlib.h>

static const char *format_path;

/* The bytes between two texts; what was there stays the caller's. */
static struct span between(const char *text, const char *from, const char *to)
{
	const char *start = strstr(text, from), *end;

	if (!start)
		fail_msg("FORMAT.md has no \"%s\"", from);
	start += strlen(from);
	end = strstr(start, to);
	if (!end)
		fail_msg("FORMAT.md has no \"%s\"", to);
	return (struct span){start, (size_t)(end - start)};
}

static char *format_text(void)
{
	size_t len;

	return fixture_read(format_path, &len);
}

static void the_test_vector_is_right(void **state)
{
	char *text = format_text(), hex[HASH_HEX_LEN + 1];
	struct span bytes = between(text, "Test vector. The bytes\n\n    ", "\n\n");
	struct span want = between(text, "the SHA-256\n\n    ", "\n");
	struct hash h = hash_two((struct span){"\0", 1}, bytes);

	(void)state;
	hash_hex(&h, hex);
	CHECK_INT("hash", 1, span_is(want, hex));
	free(text);
}

static void check_examples(struct span rest, int *seen)
{
	struct span line;

	while (span_cut(&rest, '\n', &line)) {
		struct hash h =
			hash_two((struct span){"\0", 1}, (struct span){line.at, line.len - 72});
		struct arena *a = arena_create(1 << 20);
		char hex[HASH_HEX_LEN + 1];
		struct record_peek peek;
		enum jv_fault fault;
		struct err err = {0};
		struct line parts;
		struct jv tree;

		hash_hex(&h, hex);
		CHECK_INT("h is last", 1, memcmp(line.at + line.len - 66, hex, HASH_HEX_LEN) == 0);
		CHECK_INT("json", 0, jv_parse(a, line, &tree, &fault, &err));
		CHECK_STR("h", hex, jv_str(&tree, "h", ""));
		CHECK_INT("line", 1, line_split(line, &parts));
		CHECK_INT("record", 1, record_peek(parts.body, &peek));
		CHECK_INT("valid", 1, record_valid(parts.body));
		seen[peek.type]++;
		arena_destroy(a);
	}
}

/* The log of the examples, and records that stand by themselves. */
static void each_example_has_its_hash(void **state)
{
	char *text = format_text();
	int seen[RECORD_TYPE_COUNT] = {0};

	(void)state;
	for (const char *at = text; strstr(at, "```json\n");) {
		struct span block = between(at, "```json\n", "```");

		check_examples(block, seen);
		at = block.at + block.len + 3;
	}
	for (int t = RECORD_NONE + 1; t < RECORD_TYPE_COUNT; t++)
		CHECK_INT(record_type_name(t), 1, seen[t] > 0);
	CHECK_INT("no unknown type", 0, seen[RECORD_NONE]);
	free(text);
}

static void the_examples_are_a_log(void **state)
{
	char *text = format_text(), dir[FIXTURE_PATH], name[SEGMENT_NAME_MAX];
	struct span all = between(text, "```json\n", "```");
	const char *last = (const char *)memrchr(all.at, '\n', all.len - 1) + 1;
	struct verify_report report;
	struct line line;

	(void)state;
	fixture_dir(dir);
	CHECK_INT("last line", 1,
		  line_split((struct span){last, all.len - (size_t)(last - all.at) - 1}, &line));
	fixture_write(fixture_path(dir, "00000000000000000000.log"), all.at,
		      (size_t)(last - all.at));
	segment_name(line.seq, name);
	fixture_write(fixture_path(dir, name), last, all.len - (size_t)(last - all.at));
	verify_log(dir, NULL, &report);
	CHECK_STR("verify", "", report.what);
	CHECK_INT("verify", VERIFY_FINE, report.result);
	CHECK_INT("whole", 0, report.torn_tail);
	CHECK_INT("none open", 0, report.open_decisions);
	fixture_remove(dir);
	free(text);
}

/* Each member that the writer knows is explained. */
static void all_members_are_explained(void **state)
{
	static const char *const names[] = {
#define STR(name, value)             name,
#define ONE(name, value)             name,
#define NUM_IF(name, present, value) name,
#define UINT(name, value)            name,
#define TRUE(name, value)            name,
#define JSON(name, value, lost_from) name,
#define BEGIN(name)                  name,
#define LIST(name)                   name,
#define END()
#define END_LIST()
#include "audit/record.def"
	};
	char *text = format_text();

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char quoted[64];

		if (strstr(names[i], "_sha256"))
			continue; /* explained together */
		snprintf(quoted, sizeof(quoted), "`%s`", names[i]);
		CHECK_INT(names[i], 1, strstr(text, quoted) != NULL);
	}
	free(text);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_test_vector_is_right),
		cmocka_unit_test(each_example_has_its_hash),
		cmocka_unit_test(the_examples_are_a_log),
		cmocka_unit_test(all_members_are_explained),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s FORMAT.md\n", argv[0]);
		return 2;
	}
	format_path = argv[1];
	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
