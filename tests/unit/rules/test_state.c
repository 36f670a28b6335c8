#include "tests/unit/rules/kit.h"

#include "rules/heap_priv.h"
#include "rules/sandbox_priv.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Nothing that a rule does may be seen by the next judgement: the same facts
 * get the same answer however often they are judged.
 */

/* Each body denies with a text that would change if something were left behind. */
static void nothing_is_left_behind(void **state)
{
	static const struct {
		const char *label, *outside, *body;
	} rows[] = {
		{"an upvalue", "local n = 0", "n = n + 1 deny('n is ' .. n)"},
		{"a table", "local t = {}", "t[#t + 1] = 1 deny('#t is ' .. #t)"},
		{"a table in a table", "local t = { a = { b = {} } }",
		 "t.a.b[#t.a.b + 1] = 1 deny('is ' .. #t.a.b)"},
		{"a closure that counts",
		 "local function counter() local n = 0 return function() n = n + 1 return n end "
		 "end\n"
		 "local c = counter()",
		 "deny('c is ' .. c())"},
		{"a function that replaces another", "local f = function() return 'one' end",
		 "deny(f()) f = function() return 'two' end"},
		{"facts that are kept", "local kept", "deny('kept ' .. tostring(kept)) kept = req"},
		{"a table that grows its hash part", "local t = {}",
		 "local n = 0 for k in pairs(t) do n = n + 1 end for i = 1, 500 do t['k' .. i] = i "
		 "end deny('n ' .. "
		 "n)"},
		{"a table whose entries are removed", "local t = { a = 1, b = 2 }",
		 "deny('a is ' .. tostring(t.a)) t.a = nil"},
		{"long texts", "local s = 'x'",
		 "for i = 1, 12 do s = s .. s end deny('#s is ' .. #s)"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct engine *eng;
		char text[2048], first[512] = "";

		snprintf(text, sizeof(text),
			 "%s\nreturn profile \"p\" { operations = { \"read\" }, rule(\"r\", { "
			 "operations = { "
			 "\"read\" } }, function(req) %s end) }",
			 rows[i].outside, rows[i].body);
		eng = kit_open(text);
		for (int k = 0; k < 50; k++) {
			struct kit_answer ans;
			const char *said = ans.decision.violations.list[0].text;

			kit_judge(eng, "p", "{\"operation\":{\"name\":\"container.list\"}}", "",
				  &ans);
			said = ans.decision.violations.list[0].text;
			CHECK_STR(rows[i].label, "rule",
				  reason_name(ans.decision.violations.list[0].reason));
			if (!k)
				snprintf(first, sizeof(first), "%s", said);
			CHECK_STR(rows[i].label, first, said);
			kit_drop(&ans);
		}
		engine_close(eng);
	}
}

/* Also after a failure in the middle of it, and from one profile to another. */
static void a_failure_leaves_nothing(void **state)
{
	struct engine *eng =
		kit_open("local shared = { n = 0 }\n"
			 "local function bump() shared.n = shared.n + 1 return shared.n end\n"
			 "local ops = { operations = { \"read\" } }\n"
			 "return {\n"
			 "profile \"raises\" { operations = { \"read\" }, rule(\"r\", ops, "
			 "function() bump() error('x') end) },\n"
			 "profile \"loops\" { operations = { \"read\" }, rule(\"r\", ops, "
			 "function() bump() while true do end "
			 "end) },\n"
			 "profile \"eats\" { operations = { \"read\" }, rule(\"r\", ops, "
			 "function() bump() local t = shared "
			 "while true do t.t = {} t = t.t end end) },\n"
			 "profile \"plain\" { operations = { \"read\" }, rule(\"r\", ops, "
			 "function() deny('n ' .. bump()) end) }\n"
			 "}");
	static const char *const order[] = {"raises", "plain", "loops", "plain", "eats",   "plain",
					    "plain",  "eats",  "eats",  "loops", "raises", "plain"};

	(void)state;
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		struct kit_answer ans;

		kit_judge(eng, order[i], "{\"operation\":{\"name\":\"container.list\"}}", "", &ans);
		CHECK_INT(order[i], VERDICT_DENY, ans.decision.verdict);
		if (strcmp(order[i], "plain") == 0)
			CHECK_STR(order[i], "n 1", ans.decision.violations.list[0].text);
		else
			CHECK_INT(order[i], -1, ans.result);
		kit_drop(&ans);
	}
	engine_close(eng);
}

/* --- the heap by itself --- */

static int build_tables(lua_State *lua)
{
	if (luaL_dostring(lua, "t = {} for i = 1, 2000 do t[i] = { 'k' .. i } end"))
		lua_error(lua);
	return 0;
}

static int change_everything(lua_State *lua)
{
	if (luaL_dostring(
		    lua,
		    "for i = 1, 2000 do t[i] = { t[i], i .. 'v' } end u = {} for i = 1, 5000 do "
		    "u['x' .. i] = {} end t.s = nil"))
		lua_error(lua);
	lua_gc(lua, LUA_GCCOLLECT);
	return 0;
}

static unsigned long sum(const unsigned char *bytes, size_t len)
{
	unsigned long h = 5381;

	for (size_t i = 0; i < len; i++)
		h = h * 33 + bytes[i];
	return h;
}

/* Byte for byte what it was, whatever ran in between. */
static void the_heap_is_put_back(void **state)
{
	static const struct sandbox_limits limits = {100000000, 10000, 1 << 20};
	struct err err = {0};
	struct sandbox *sb = sandbox_open(4 << 20, NULL, &err);
	const unsigned char *base;
	unsigned long before;
	size_t used;

	(void)state;
	assert_non_null(sb);
	CHECK_INT("built", 0, sandbox_call(sb, &limits, build_tables, NULL, &err));
	CHECK_INT("frozen", 0, heap_freeze(sb->heap, &err));
	heap_restore(sb->heap);
	used = heap_used(sb->heap);
	/* The state is the first block that was taken; the book-keeping lies before it. */
	base = *(const unsigned char **)(void *)sb->heap;
	before = sum(base, used);
	for (int i = 0; i < 5; i++) {
		CHECK_INT("changed", 0, sandbox_call(sb, &limits, change_everything, NULL, &err));
		CHECK_INT("it is another", 1, sum(base, used) != before);
		CHECK_INT("it grew", 1, heap_used(sb->heap) > used);
		heap_restore(sb->heap);
		CHECK_INT("used", used, heap_used(sb->heap));
		CHECK_INT("the same bytes", 1, sum(base, used) == before);
	}
	sandbox_close(sb);
}

/* Blocks of every size, taken, grown, shrunk and given back, keep what was written. */
static void the_heap_keeps_what_is_written(void **state)
{
	enum { COUNT = 200 };
	struct err err = {0};
	struct heap *h = heap_open(8 << 20, &err);
	unsigned char *blocks[COUNT] = {NULL};
	size_t sizes[COUNT] = {0};

	(void)state;
	srand(3);
	for (int round = 0; round < 50000; round++) {
		size_t i = (size_t)rand() % COUNT;
		size_t size = (size_t)rand() % (rand() % 10 ? 300 : 20000);
		unsigned char *block = heap_alloc(h, blocks[i], sizes[i], size);

		CHECK_INT("given", size != 0, block != NULL);
		CHECK_INT("aligned", 0, (uintptr_t)block % 16);
		for (size_t k = 0; k < size && k < sizes[i]; k++)
			CHECK_INT("kept", (unsigned char)i, block[k]);
		if (block)
			memset(block, (int)i, size);
		blocks[i] = block;
		sizes[i] = block ? size : 0;
	}
	CHECK_INT("never refused", 0, heap_spent(h));
	heap_close(h);
}

static void the_heap_latches(void **state)
{
	struct err err = {0};
	struct heap *h = heap_open(1 << 16, &err);
	void *small = heap_alloc(h, NULL, 0, 1000);

	(void)state;
	assert_non_null(small);
	CHECK_INT("too large", 1, heap_alloc(h, NULL, 0, 1 << 20) == NULL);
	CHECK_INT("spent", 1, heap_spent(h));
	CHECK_INT("small ones are refused as well", 1, heap_alloc(h, NULL, 0, 16) == NULL);
	CHECK_INT("growing too", 1, heap_alloc(h, small, 1000, 2000) == NULL);
	CHECK_INT("shrinking never fails", 1, heap_alloc(h, small, 1000, 100) == small);
	heap_close(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_left_behind),
		cmocka_unit_test(a_failure_leaves_nothing),
		cmocka_unit_test(the_heap_is_put_back),
		cmocka_unit_test(the_heap_keeps_what_is_written),
		cmocka_unit_test(the_heap_latches),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
