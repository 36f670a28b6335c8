/*
 * test_jv.c - JSON is read in one way or not at all, and written in one way.
 */
#include "gate/base/jv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/check.h"

static enum jv_fault parse(struct arena *a, const char *text, size_t len, struct jv *ret)
{
	enum jv_fault fault = JV_FAULT_NONE;
	struct err err = {0};

	if (jv_parse(a, (struct span){text, len}, ret, &fault, &err) == 0)
		return JV_FAULT_NONE;
	CHECK_INT(text, 1, err.msg[0] != '\0');
	return fault;
}

static void faults_are_told_apart(void **state)
{
	static const struct {
		const char *label, *text;
		size_t len; /* 0: strlen */
		enum jv_fault want;
	} rows[] = {
		{"object", "{}", 0, JV_FAULT_NONE},
		{"white space around", " \r\n\t{} \n", 0, JV_FAULT_NONE},
		{"scalar", "1", 0, JV_FAULT_NONE},
		{"nothing", "", 0, JV_FAULT_EMPTY},
		{"white space only", " \n", 0, JV_FAULT_EMPTY},
		{"open", "{", 0, JV_FAULT_SYNTAX},
		{"single quotes", "{'a':1}", 0, JV_FAULT_SYNTAX},
		{"comment", "{}/**/", 0, JV_FAULT_TRAILING},
		{"trailing comma", "[1,]", 0, JV_FAULT_SYNTAX},
		{"leading zero", "[01]", 0, JV_FAULT_SYNTAX},
		{"plus", "[+1]", 0, JV_FAULT_SYNTAX},
		{"NaN", "[NaN]", 0, JV_FAULT_SYNTAX},
		{"raw newline in a string", "[\"a\nb\"]", 0, JV_FAULT_SYNTAX},
		{"two documents", "{}{}", 0, JV_FAULT_TRAILING},
		{"a brace too many", "{}}", 0, JV_FAULT_TRAILING},
		{"key twice", "{\"a\":1,\"a\":null}", 0, JV_FAULT_DUPLICATE},
		{"key twice by an escape", "{\"a\":1,\"\\u0061\":2}", 0, JV_FAULT_DUPLICATE},
		{"key twice, deep", "[{\"b\":{\"a\":1,\"a\":1}}]", 0, JV_FAULT_DUPLICATE},
		{"byte order mark", "\xef\xbb\xbf{}", 0, JV_FAULT_ENCODING},
		{"broken UTF-8", "[\"\xff\"]", 0, JV_FAULT_ENCODING},
		{"overlong UTF-8", "[\"\xc0\xaf\"]", 0, JV_FAULT_ENCODING},
		{"surrogate in UTF-8", "[\"\xed\xa0\x80\"]", 0, JV_FAULT_ENCODING},
		{"lone surrogate", "[\"\\ud800\"]", 0, JV_FAULT_ENCODING},
		{"NUL escape", "[\"a\\u0000b\"]", 0, JV_FAULT_ENCODING},
		{"NUL escape in a key", "{\"a\\u0000\":1}", 0, JV_FAULT_ENCODING},
		{"most negative", "[-9223372036854775808]", 0, JV_FAULT_NONE},
		{"most positive", "[9223372036854775807]", 0, JV_FAULT_NONE},
		{"one more", "[9223372036854775808]", 0, JV_FAULT_LIMIT},
		{"huge exponent", "[1e400]", 0, JV_FAULT_LIMIT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(65536);
		size_t len = rows[i].len ? rows[i].len : strlen(rows[i].text);
		struct jv v;

		CHECK_INT(rows[i].label, rows[i].want, parse(a, rows[i].text, len, &v));
		arena_destroy(a);
	}
}

static void depth_is_capped(void **state)
{
	static const char quoted[] = "[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[\"]";
	char text[200000];
	struct arena *a = arena_create(1 << 20);
	struct jv v;

	(void)state;
	memset(text, '[', JV_DEPTH_MAX);
	memset(text + JV_DEPTH_MAX, ']', JV_DEPTH_MAX);
	CHECK_INT("at the limit", JV_FAULT_NONE, parse(a, text, (size_t)2 * JV_DEPTH_MAX, &v));
	memset(text, '[', JV_DEPTH_MAX + 1);
	memset(text + JV_DEPTH_MAX + 1, ']', JV_DEPTH_MAX + 1);
	CHECK_INT("one more", JV_FAULT_LIMIT, parse(a, text, (size_t)2 * JV_DEPTH_MAX + 2, &v));
	memset(text, '[', sizeof(text));
	CHECK_INT("a bomb", JV_FAULT_LIMIT, parse(a, text, sizeof(text), &v));
	CHECK_INT("brackets in strings", JV_FAULT_NONE, parse(a, quoted, strlen(quoted), &v));
	arena_destroy(a);
}

static void memory_is_capped(void **state)
{
	struct arena *a = arena_create(64);
	struct jv v;

	(void)state;
	CHECK_INT("too much for the arena", JV_FAULT_MEMORY,
		  parse(a, "[1,2,3,4,5,6,7,8,9]", 19, &v));
	arena_destroy(a);
}

static void writes_in_one_way(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{" { \"b\" : [ 1 , -0 , true , null ] , \"a\" : { } } ",
		 "{\"b\":[1,0,true,null],\"a\":{}}"},
		{"\"\\u0041\\/\\n\\\"\\\\\"", "\"A/\\u000a\\\"\\\\\""},
		{"\"\xe2\x82\xac\"", "\"\xe2\x82\xac\""},
		{"\"\\u20ac \\ud83d\\ude00\"", "\"\xe2\x82\xac \xf0\x9f\x98\x80\""},
		{"1.5", "1.5"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(65536);
		struct buf out;
		struct jv v, again;

		CHECK_INT(rows[i].in, JV_FAULT_NONE, parse(a, rows[i].in, strlen(rows[i].in), &v));
		buf_init(&out, 1000);
		jv_write(&out, &v);
		buf_put(&out, "", 1);
		CHECK_STR(rows[i].in, rows[i].out, buf_span(&out).at);
		CHECK_INT(rows[i].in, JV_FAULT_NONE,
			  parse(a, buf_span(&out).at, buf_len(&out) - 1, &again));
		CHECK_INT(rows[i].in, 1, jv_equal(&v, &again));
		buf_fini(&out);
		arena_destroy(a);
	}
}

static void objects_are_merged(void **state)
{
	static const struct {
		const char *into, *from, *want;
	} rows[] = {
		{"{}", "{\"a\":1}", "{\"a\":1}"},
		{"{\"a\":1,\"b\":2}", "{\"a\":3}", "{\"a\":3,\"b\":2}"},
		{"{\"o\":{\"a\":1}}", "{\"o\":{\"b\":2}}", "{\"o\":{\"a\":1,\"b\":2}}"},
		{"{\"o\":{\"a\":1}}", "{\"o\":[]}", "{\"o\":{\"a\":1}}"},
		{"{\"o\":{\"a\":1}}", "{\"o\":[1]}", "{\"o\":[1]}"},
		{"{\"l\":[1]}", "{\"l\":[]}", "{\"l\":[]}"},
		{"{\"l\":[1]}", "{\"l\":[2]}", "{\"l\":[2]}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(65536);
		struct jv into, from;
		struct buf out;

		CHECK_INT(rows[i].into, JV_FAULT_NONE,
			  parse(a, rows[i].into, strlen(rows[i].into), &into));
		CHECK_INT(rows[i].from, JV_FAULT_NONE,
			  parse(a, rows[i].from, strlen(rows[i].from), &from));
		jv_merge(a, &into, &from);
		buf_init(&out, 1000);
		jv_write(&out, &into);
		buf_put(&out, "", 1);
		CHECK_STR(rows[i].from, rows[i].want, buf_span(&out).at);
		buf_fini(&out);
		arena_destroy(a);
	}
}

/* What comes from outside as bytes is one line of clean JSON all the same. */
static void hostile_bytes_are_written_clean(void **state)
{
	static const char bytes[] = "a\n\r\0\x1b\x7f\xff\xc0\xaf\xed\xa0\x80\"\\";
	struct arena *a = arena_create(65536);
	struct buf out;
	struct jv v;

	(void)state;
	buf_init(&out, 1000);
	jv_write_str(&out, (struct span){bytes, sizeof(bytes) - 1});
	for (size_t i = 0; i < buf_len(&out); i++)
		CHECK_INT("no control byte", 0, (unsigned char)buf_span(&out).at[i] < 0x20);
	/* The NUL is an escape, which our own reader refuses; nothing else is wrong with it. */
	CHECK_INT("valid but for the NUL", JV_FAULT_ENCODING,
		  parse(a, buf_span(&out).at, buf_len(&out), &v));
	buf_fini(&out);
	arena_destroy(a);
}

static void members_are_found_and_replaced(void **state)
{
	struct arena *a = arena_create(65536);
	struct jv v, *inner;

	(void)state;
	v = jv_object();
	inner = jv_set(a, &v, "a", jv_object());
	jv_set(a, inner, "b", jv_int(1));
	jv_set(a, inner, "b", jv_int(2));
	CHECK_INT("replaced", 1, inner->count);
	CHECK_INT("path", 2, jv_path(&v, "a.b")->i);
	CHECK_INT("missing step", 1, jv_path(&v, "a.x.b") == NULL);
	CHECK_INT("not an object", 1, jv_path(&v, "a.b.c") == NULL);
	CHECK_STR("fallback", "x", jv_str(&v, "a", "x"));
	CHECK_INT("neutral", 1, jv_is_neutral(jv_set(a, &v, "n", jv_array())));
	for (int i = 0; i < 100; i++)
		jv_push(a, jv_set(a, &v, "n", *jv_get(&v, "n")), jv_int(i));
	CHECK_INT("pushed", 99, jv_get(&v, "n")->items[99].i);
	arena_destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults_are_told_apart),
		cmocka_unit_test(depth_is_capped),
		cmocka_unit_test(memory_is_capped),
		cmocka_unit_test(writes_in_one_way),
		cmocka_unit_test(objects_are_merged),
		cmocka_unit_test(hostile_bytes_are_written_clean),
		cmocka_unit_test(members_are_found_and_replaced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
