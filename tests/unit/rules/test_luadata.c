#include "rules/luadata.h"

#include "tests/unit/check.h"

#include <stdio.h>

static const struct luadata_word words[] = {{"log", false}, {"listener", true}, {"backend", true}};

/* 50 each: more levels than Lua's own reader takes. */
#define DEEP "{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{"

#define COUNT (sizeof(words) / sizeof(*words))

static void reads_data(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"", "[]"},
		{"-- nothing", "[]"},
		{"log { dir = \"/var/log\" }",
		 "[{\"word\":\"log\",\"line\":1,\"value\":{\"dir\":\"/var/log\"}}]"},
		{"\n\nlistener \"a\" { socket = \"/s\", identities = { \"x\", \"y\" }, n = 5, f = "
		 "1.5, b = true }",
		 "[{\"word\":\"listener\",\"name\":\"a\",\"line\":3,\"value\":{\"b\":true,\"f\":1."
		 "5,\"identities\":["
		 "\"x\",\"y\"],\"n\":5,\"socket\":\"/s\"}}]"},
		{"log {}\nbackend \"e\" {}",
		 "[{\"word\":\"log\",\"line\":1,\"value\":{}},{\"word\":\"backend\",\"name\":\"e\","
		 "\"line\":2,\"value\":{}}"
		 "]"},
		{"local dir = \"/x\"\nlog { dir = dir .. \"/y\", keep = {}, size = bytes(\"1KiB\") "
		 "}",
		 "[{\"word\":\"log\",\"line\":2,\"value\":{\"dir\":\"/x/"
		 "y\",\"keep\":[],\"size\":1024}}]"},
		{"for _, n in ipairs { \"a\", \"b\" } do backend(n) { kind = str.upper(n) } end",
		 "[{\"word\":\"backend\",\"name\":\"a\",\"line\":1,\"value\":{\"kind\":\"A\"}},{"
		 "\"word\":\"backend\","
		 "\"name\":\"b\",\"line\":1,\"value\":{\"kind\":\"B\"}}]"},
		{"log { a = nil }", "[{\"word\":\"log\",\"line\":1,\"value\":{}}]"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(1 << 16);
		struct jv v = jv_null();
		struct err err = {0};
		struct buf out;

		CHECK_INT(rows[i].text, 0,
			  luadata_read(span_of(rows[i].text), "c.lua", words, COUNT, a, &v, &err));
		buf_init(&out, 4096);
		jv_write(&out, &v);
		buf_put(&out, "", 1);
		CHECK_STR(rows[i].text, rows[i].want, buf_span(&out).at);
		buf_fini(&out);
		arena_destroy(a);
	}
}

static void refuses_what_is_no_data(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"log {", "c.lua:1:"},
		{"log", "c.lua:1:"},
		{"lgo {}", "c.lua:1: there is no 'lgo' in the words of this file"},
		{"log(5)", "c.lua:1: log: a table is expected: log { ... }"},
		{"log {} {}", "c.lua:1:"},
		{"\nlistener { }",
		 "c.lua:2: listener: a name of at most 64 characters is expected"},
		{"listener \"a\"", "c.lua:1: listener: a table is expected behind the name"},
		{"listener \"a\"\nlog {}",
		 "c.lua:1: listener: a table is expected behind the name"},
		{"listener \"\" {}", "c.lua:1: listener: a name of at most 64"},
		{"listener \"a\\nb\\0\" {}", "c.lua:1: listener: a name of at most 64"},
		{"local l = listener \"a\" l {} l {}",
		 "c.lua:1: listener: one table for each name"},
		{"\nlog {\n a = { 1, x = 2 } }",
		 "c.lua:2: log: a: a table has names and list entries at once"},
		{"log { f = function() end }", "c.lua:1: log: f: a function cannot stand here"},
		{"log { f = str }", "c.lua:1: log: f: a value of that kind cannot stand here"},
		{"local t = {} t.t = t log(t)", "nested deeper than 16 levels, or a cycle"},
		{"log { [1.5] = 1 }", "c.lua:1: log: a list has holes, or keys that are no names"},
		{"log { [2] = 1 }", "a list has holes"},
		{"log { x = 0/0 }", "c.lua:1: log: x: the number is not finite"},
		{"log { x = \"\\xff\" }", "c.lua:1: log: x: the text is not clean UTF-8"},
		{"log { x = \"\\xed\\xa0\\x80\" }", "the text is not clean UTF-8"},
		{"log { x = \"\\xc0\\x80\" }", "the text is not clean UTF-8"},
		{"while true do end", "c.lua:1: the file takes: more than"},
		{"local t = {} while true do t = { t } end",
		 "c.lua:1: the file takes: more memory"},
		{"for i = 1, 2000 do log {} end", "c.lua:1: more than 1024 entries"},
		{"os.execute(\"id\")", "c.lua:1: there is no 'os'"},
		{"require \"os\"", "c.lua:1: there is no 'require'"},
		{"profile \"x\" {}", "c.lua:1: there is no 'profile'"},
		{"x = 1", "c.lua:1: 'x' cannot be set"},
		{"error(\"stop\")", "c.lua:1: stop"},
		{"error(\"stop\", 0)", "c.lua:1: stop"},
		{"error({})", "c.lua:1: error: argument 1 must be a string"},
		{"log " DEEP DEEP DEEP DEEP DEEP, "c.lua:1:"},
		{"\033Lua", "c.lua:1: the file is compiled Lua, not text"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(1 << 20);
		struct jv v = jv_int(7);
		struct err err = {0};

		CHECK_INT(rows[i].text, -1,
			  luadata_read(span_of(rows[i].text), "c.lua", words, COUNT, a, &v, &err));
		CHECK_INT(rows[i].text, ERR_CONFIG, err.kind);
		if (!strstr(err.msg, rows[i].want))
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].text, err.msg,
				 rows[i].want);
		CHECK_INT(rows[i].text, JV_INT, v.kind);
		arena_destroy(a);
	}
}

static void caps_hold(void **state)
{
	static char text[300000];
	struct arena *a = arena_create(1 << 20), *tiny = arena_create(8);
	struct jv v;
	struct err err = {0};

	(void)state;
	memset(text, ' ', sizeof(text) - 1);
	CHECK_INT("a large file", -1,
		  luadata_read(span_of(text), "c.lua", words, COUNT, a, &v, &err));
	CHECK_STR("why", "c.lua:1: the file is larger than 256 KiB", err.msg);
	CHECK_INT("a small arena", -1,
		  luadata_read(span_of("log { a = { 1, 2, 3 } }"), "c.lua", words, COUNT, tiny, &v,
			       &err));
	arena_destroy(a);
	arena_destroy(tiny);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_data),
		cmocka_unit_test(refuses_what_is_no_data),
		cmocka_unit_test(caps_hold),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
