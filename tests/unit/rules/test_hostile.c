#include "tests/unit/rules/kit.h"

#include "gate/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Rules that try to run for ever, to take all memory, to escape, to lie.  Each
 * is the body of a rule function; each must deny, in time, and leave the next
 * judgement unharmed.
 */
struct attack {
	const char *label, *body;
	enum reason want;
};

#define LIMIT REASON_rule_limit
#define ERROR REASON_rule_error

static const struct attack attacks[] = {
	/* time */
	{"endless", "while true do end", LIMIT},
	{"endless, quietly", "for i = 1, 1 << 60 do end", LIMIT},
	{"endless recursion by tail calls", "local function f() return f() end return f()", LIMIT},
	{"goto", "::a:: goto a", LIMIT},
	{"numeric for with a float", "for i = 1.0, 1e18 do end", LIMIT},
	{"catching the limit", "while true do pcall(function() while true do end end) end", ERROR},
	{"a handler that loops", "xpcall(function() end, function() while true do end end)", ERROR},
	{"a finalizer that loops", "setmetatable({}, {__gc = function() while true do end end})",
	 ERROR},
	{"coroutines", "coroutine.wrap(function() while true do end end)()", ERROR},
	{"rep of nothing", "string.rep('', 1 << 50)", ERROR},
	{"rep as a method", "return ('x'):rep(1 << 50)", ERROR},
	{"table.move", "table.move({}, 1, 1 << 50, 1)", ERROR},
	{"concat with a range", "table.concat({}, '', 1, 1 << 50)", REASON_NONE},
	{"insert with a length", "table.insert({}, 1 << 50, true)", ERROR},
	{"a pattern", "('a'):find('.-.-.-.-b')", ERROR},
	{"gsub", "('a'):gsub('.', pcall)", ERROR},
	{"a glob of stars over a long text",
	 "local s = 'a' for i = 1, 11 do s = s .. s end\n"
	 "while true do glob('*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b', s) end",
	 LIMIT},
	{"split, again and again",
	 "local s = ',' for i = 1, 9 do s = s .. s end while true do str.split(s, ',') end", LIMIT},
	{"sorting, again and again",
	 "local t = {} for i = 1, 1000 do t[i] = -i end while true do table.sort(t) end", LIMIT},
	{"pairs, again and again",
	 "local t = {} for i = 1, 1000 do t[i] = -i end while true do pairs(t) end", LIMIT},
	{"keys that collide",
	 "local m, t = 65535 * 131071, {} for i = 1, 65537 do t[i * m] = true end", LIMIT},
	{"keys that collide, just below the largest block",
	 "local m = 65535 * 131071 while true do local t = {} for i = 1, 2047 do t[i * m] = true "
	 "end "
	 "end",
	 LIMIT},
	{"unpack", "while true do table.unpack({}, 1, 999000) end", ERROR},
	{"lower of a long text",
	 "local s = 'a' for i = 1, 15 do s = s .. s end while true do str.lower(s) end", LIMIT},
	{"contains in a long text",
	 "local s = 'a' for i = 1, 15 do s = s .. s end while true do str.contains(s, s) end",
	 LIMIT},
	{"comparing long texts",
	 "local s, t = 'a', 'b' for i = 1, 14 do s = s .. s end local u = s .. t t = s .. t\n"
	 "while true do local x = t < u end",
	 LIMIT},
	{"to be closed", "local x <close> = setmetatable({}, {})", ERROR},

	/* memory */
	{"a text that doubles", "local s = 'x' while true do s = s .. s end", LIMIT},
	{"a table that grows", "local t = {} for i = 1, 1e9 do t[i] = { i } end", LIMIT},
	{"many long concatenations",
	 "local s = 'z' for i = 1, 14 do s = s .. s end local t = {}\n"
	 "for i = 1, 400 do t[i] = s .. s .. s end",
	 LIMIT},
	{"deep recursion", "local function f() return 1 + f() end return f()", LIMIT},
	{"many closures",
	 "local t = {} while true do local f = function() return t end t = { t, f } end", LIMIT},
	{"a long error", "local s = 'E' for i = 1, 14 do s = s .. s end error(s)", ERROR},
	{"a caught lack of memory",
	 "pcall(function() local t = {} for i = 1, 1e9 do t[i] = { i } end end) return nil", ERROR},
	{"many warnings and texts", "while true do warn('w') end", LIMIT},
	{"many denials", "while true do deny('d') end", LIMIT},

	/* ways out */
	{"load", "load('return 1')()", ERROR},
	{"loadstring", "loadstring('return 1')", ERROR},
	{"dofile", "dofile('/etc/passwd')", ERROR},
	{"require", "require('os').execute('id')", ERROR},
	{"package", "package.loaded.io.popen('id')", ERROR},
	{"io", "io.open('/etc/passwd')", ERROR},
	{"os", "os.setlocale('tr_TR.UTF-8')", ERROR},
	{"os.exit", "os.exit(0)", ERROR},
	{"debug", "debug.sethook()", ERROR},
	{"dump", "string.dump(function() end)", ERROR},
	{"pack", "string.packsize('i')", ERROR},
	{"collectgarbage", "collectgarbage('stop')", ERROR},
	{"rawset", "rawset(string, 'lower', nil)", ERROR},
	{"the metatable of strings", "getmetatable('').__index = function() return 'x' end", ERROR},
	{"a word of the library", "string.lower = function() return 'x' end", ERROR},
	{"a word of the table library", "table.insert = nil", ERROR},
	{"a method of strings", "local s = 'x' s.lower = nil", ERROR},
	{"a new global", "leak = 1", ERROR},
	{"a global that is there", "deny = function() end", ERROR},
	{"through _ENV", "_ENV.leak = 1", ERROR},
	{"through _G", "_G.leak = 1", ERROR},
	{"a fact", "req.workload.privileged = false", ERROR},
	{"a fact in a list", "req.workload.mounts[1] = nil", ERROR},
	{"a new fact", "req.ok = true", ERROR},
	{"a fact that does not exist", "return req.workload.previleged and deny('x')", ERROR},
	{"insert into facts", "table.insert(req.workload.mounts, 1)", ERROR},
	{"sort of facts", "table.sort(req.workload.env)", ERROR},

	/* what a rule answers */
	{"true", "return true", ERROR},
	{"false", "return false", ERROR},
	{"zero", "return 0", ERROR},
	{"a word", "return 'allow'", ERROR},
	{"a word with a space", "return 'ALLOW '", ERROR},
	{"two words", "return 'allow', 'deny'", ERROR},
	{"nothing and a word", "return nil, 'allow'", ERROR},
	{"a table", "return {}", ERROR},
	{"a function", "return function() end", ERROR},
	{"facts", "return req", ERROR},
	{"an error that is no text", "error({})", ERROR},
	{"an error without anything", "error()", ERROR},
	{"denying without a text", "deny()", ERROR},
	{"denying for a reason that does not exist", "deny('x', { reason = 'because' })", ERROR},
	{"denying with an option that does not exist", "deny('x', { feild = 'y' })", ERROR},
	{"denying with a table as a field", "deny('x', { field = {} })", ERROR},
	{"denying with a cycle", "local t = {} t.t = t deny('x', t)", ERROR},
	{"arithmetic on nothing", "return nil + 1", ERROR},
	{"arithmetic on a text", "return '10' + 1", ERROR},
	{"comparing a number with a text", "return 1 < '2'", ERROR},
	{"an index that the compiler gets wrong", "return LIMITS[req.workload.limits.pids > 4] + 1",
	 ERROR},
	{"words of standard checks", "refuse('privileged')", ERROR},
	{"changing the request", "change('user.given', '0')", ERROR},
	{"making a profile", "profile 'x' {}", ERROR},
	{"making a rule", "rule('x', function() end)", ERROR},
	{"keys without an order", "for k in pairs({ [{}] = 1 }) do end", ERROR},
};

static uint64_t resident_bytes(void)
{
	unsigned long total = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	assert_non_null(f);
	assert_int_equal(2, fscanf(f, "%lu %lu", &total, &resident));
	fclose(f);
	return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static struct engine *open_with(const char *body)
{
	char text[2048];

	snprintf(text, sizeof(text),
		 "local LIMITS = { [true] = 1 }\n"
		 "return { profile \"bad\" { operations = { \"container.run\" }, images = { \"**\" "
		 "}, mounts = "
		 "{ { \"/srv\", \"rw\" } }, networks = { \"*\" }, rule(\"hostile\", "
		 "function(req)\n%s\nend) },\n"
		 "profile \"good\" { operations = { \"container.run\" }, images = { \"**\" }, "
		 "mounts = "
		 "{ { \"/srv\", \"rw\" } }, networks = { \"*\" }, rule(\"plain\", function(req) if "
		 "str.lower('A') ~= 'a' then deny('changed') end end) } }",
		 body);
	return kit_open(text);
}

static bool slow_build(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
	return true;
#else
	return false;
#endif
#else
	return false;
#endif
}

/* In processor time, as the limits are: how long others keep the machine says nothing. */
static void attacks_are_denied(void **state)
{
	uint64_t allowed_ns = (slow_build() ? 500 : 100) * (uint64_t)1000000;

	(void)state;
	for (size_t i = 0; i < sizeof(attacks) / sizeof(*attacks); i++) {
		const struct attack *at = &attacks[i];
		struct engine *eng = open_with(at->body);
		struct kit_answer ans;
		uint64_t start = clock_thread_ns(), took;

		kit_judge(eng, "bad", kit_create, "", &ans);
		took = clock_thread_ns() - start;
		if (at->want != REASON_NONE) {
			CHECK_INT(at->label, -1, ans.result);
			CHECK_INT(at->label, VERDICT_DENY, ans.decision.verdict);
			CHECK_INT(at->label, VERDICT_DENY, ans.decision.would);
			CHECK_STR(at->label, reason_name(at->want),
				  reason_name(ans.decision.violations.list[0].reason));
			CHECK_STR(at->label, "hostile", ans.decision.violations.list[0].rule);
			CHECK_STR(at->label, "hostile", ans.decision.rule);
			CHECK_INT(at->label, 1, strstr(ans.err.msg, "0x") == NULL);
		}
		CHECK_INT(at->label, 1, took < allowed_ns);
		kit_drop(&ans);

		start = clock_thread_ns();
		kit_judge(eng, "good", kit_create, "", &ans);
		took = clock_thread_ns() - start;
		CHECK_STR(at->label, "allow", kit_reasons(&ans));
		CHECK_INT(at->label, 1, took < 50 * (uint64_t)1000000);
		kit_drop(&ans);
		engine_close(eng);
	}
}

/* A rule may take all it can get, many times over: it is gone afterwards. */
static void memory_is_given_back(void **state)
{
	struct engine *eng = open_with("local t = {} while true do t[#t + 1] = { 1 } end");
	uint64_t before = 0;

	(void)state;
	for (int i = 0; i < 200; i++) {
		struct kit_answer ans;

		kit_judge(eng, "bad", kit_create, "", &ans);
		CHECK_INT("denied", VERDICT_DENY, ans.decision.verdict);
		kit_drop(&ans);
		if (i == 20)
			before = resident_bytes();
	}
	if (!slow_build())
		CHECK_INT("grown", 1, resident_bytes() < before + ((uint64_t)1 << 20));
	engine_close(eng);
}

static void many_judgements_stay_flat(void **state)
{
	struct engine *eng =
		open_with("local seen = {} for i = 1, 10 do seen[i] = str.upper('x' .. i) end");
	struct arena *a = arena_create(1 << 20);
	const struct profile *p = engine_profile(eng, "bad");
	struct jv facts = kit_json(a, kit_create);
	uint64_t before = 0;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		struct arena *one = arena_create(1 << 16);
		struct decision d;
		struct err err = {0};

		CHECK_INT("judged", 0, engine_judge(eng, p, &facts, one, &d, &err));
		CHECK_INT("the same answer", VERDICT_ALLOW, d.verdict);
		arena_destroy(one);
		if (i == 1000)
			before = resident_bytes();
	}
	if (!slow_build())
		CHECK_INT("grown", 1, resident_bytes() < before + ((uint64_t)256 << 10));
	arena_destroy(a);
	engine_close(eng);
}

/* Runs out of memory at every size of heap in turn: nothing crashes, nothing allows. */
static void every_lack_of_memory_denies(void **state)
{
	static const char text[] = "return profile \"p\" { operations = { \"container.run\" }, "
				   "images = { \"**\" }, mounts = { { "
				   "\"/srv\", \"rw\" } }, networks = { \"*\" }, rule(\"r\", "
				   "function(req) local t = {} for i = 1, 200 "
				   "do t[i] = str.format('%s-%d', str.upper('k' .. i), i) end for "
				   "k, v in pairs(t) do t[v] = { k, v } "
				   "end local s = table.concat(str.split('a,b,c', ','), '-') for i "
				   "= 1, 300 do t[s .. i] = function() "
				   "return t, i end end if #t ~= 200 then deny('lost') end end) }";
	unsigned loads = 0, judged = 0, allowed = 0;

	(void)state;
	for (unsigned kib = 8; kib < 1024; kib += 4) {
		const struct engine_limits limits = {200000, 1000, kib};
		struct rule_source source = {"oom.lua", span_of(text)};
		struct err err = {0};
		struct engine *eng = engine_open(&source, 1, &limits, &err);
		struct kit_answer ans;

		if (!eng) {
			CHECK_INT("says so", 1, err.kind == ERR_CONFIG || err.kind == ERR_LIMIT);
			loads++;
			continue;
		}
		kit_judge(eng, "p", kit_create, "", &ans);
		if (ans.result < 0) {
			CHECK_INT("denied", VERDICT_DENY, ans.decision.verdict);
			CHECK_STR("reason", "rule_limit",
				  reason_name(ans.decision.violations.list[0].reason));
			judged++;
		} else {
			CHECK_STR("judged", "allow", kit_reasons(&ans));
			allowed++;
		}
		kit_drop(&ans);
		engine_close(eng);
	}
	CHECK_INT("some do not load", 1, loads > 5);
	CHECK_INT("some do not judge", 1, judged > 5);
	CHECK_INT("some do", 1, allowed > 5);
}

/* The caller's arena is smaller than what is found: no memory, and no verdict but deny. */
static void a_spent_arena_denies(void **state)
{
	struct engine *eng = open_with(
		"for i = 1, 20 do deny(str.upper('some text that must be kept ' .. i)) end");
	struct arena *a = arena_create(1 << 20);
	struct jv facts = kit_json(a, kit_create);

	(void)state;
	for (size_t cap = 1; cap < 500; cap += 7) {
		struct arena *tiny = arena_create(cap);
		struct decision d;
		struct err err = {0};

		CHECK_INT("judged", -1,
			  engine_judge(eng, engine_profile(eng, "bad"), &facts, tiny, &d, &err));
		CHECK_INT("verdict", VERDICT_DENY, d.verdict);
		CHECK_STR("reason", "no_memory", reason_name(d.violations.list[0].reason));
		CHECK_INT("kind", ERR_LIMIT, err.kind);
		arena_destroy(tiny);
	}
	arena_destroy(a);
	engine_close(eng);
}

/* More facts than may be: refused before any rule runs. */
static void too_many_facts_are_refused(void **state)
{
	struct engine *eng = open_with("return nil");
	struct arena *a = arena_create(1 << 22);
	struct jv facts = kit_json(a, kit_create);
	struct jv *env = (struct jv *)jv_path(&facts, "workload.env");
	struct decision d;
	struct err err = {0};

	(void)state;
	for (int i = 0; i < 6000; i++)
		jv_push(a, env, jv_string("SOME_NAME"));
	CHECK_INT("judged", -1,
		  engine_judge(eng, engine_profile(eng, "good"), &facts, a, &d, &err));
	CHECK_STR("reason", "facts_too_large", reason_name(d.violations.list[0].reason));
	CHECK_INT("verdict", VERDICT_DENY, d.verdict);
	arena_destroy(a);
	engine_close(eng);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attacks_are_denied),
		cmocka_unit_test(memory_is_given_back),
		cmocka_unit_test(many_judgements_stay_flat),
		cmocka_unit_test(every_lack_of_memory_denies),
		cmocka_unit_test(a_spent_arena_denies),
		cmocka_unit_test(too_many_facts_are_refused),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
