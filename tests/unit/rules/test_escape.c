/*
 * Every known way of Lua code to outlast, outgrow or leave a host, or to make
 * it answer wrongly.  Each runs in a process of its own that is killed after a
 * second of processor time, and each must end as a denial, after which the
 * next judgement is as good as ever.
 */
#include "tests/unit/rules/kit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct escape {
	int number; /* groups what belongs together */
	const char *body;
};

static const struct escape escapes[] = {
	/* processor time */
	{1, "while true do end"},
	{2, "while true do pcall(function() while true do end end) end"},
	{3, "xpcall(function() while true do end end, function() while true do end end)"},
	{4, "setmetatable({}, {__gc = function() while true do end end}) for i=1,1e6 do local x={} "
	    "end"},
	{5, "keep = setmetatable({}, {__gc = function() while true do end end}) return nil"},
	{6, "local function n(d) if d==0 then for i=1,200 do end return end for i=1,100 do "
	    "coroutine.wrap(n)(d-1) end end while true do n(6) end"},
	{7, "string.rep(\"\", 1<<50)"},
	{7, "return (\"\"):rep(1<<50)"},
	{8, "table.move({}, 1, 1<<50, 1)"},
	{9, "table.concat(setmetatable({}, {__index=table.concat}), \"\", 1, 1<<50)"},
	{10, "table.insert(setmetatable({}, {__len=function() return 1<<50 end}), 1, true)"},
	{12, "(\"a\"):rep(6000):find(\".-.-.-.-b\")"},
	{13, "(\"x\"):rep(200000):find(\"x*y\")"},
	{15, "local x = #((\"a\"):rep(30<<20):gsub(\".\", pcall))"},
	{16, "local m,t=65535*131071,{} for i=1,65537 do t[i*m]=true end"},
	{18, "for i=1,200 do pcall(table.unpack, {}, 1, 999000) end"},
	{18, "for i=1,200 do table.unpack({}, 1, 999000) end"},
	{19, "local s=str.rep and 'z' or 'z' for i=1,20 do s=s..s end for i=1,400 do local x = "
	     "s..s..s..s..s..s..s..s end"},
	{20, "local x <close> = setmetatable({}, {__close=function() while true do end end}) while "
	     "true do end"},

	/* memory */
	{21, "local s=\"x\" while true do s=s..s end"},
	{22, "pcall(function() local t={} for i=1,1e9 do t[i]={i} end end) return nil"},
	{22, "local t={} for i=1,1e9 do t[i]={i} end"},
	{26, "error((\"E\"):rep(32<<20))"},
	{26, "local s = \"E\" for i=1,20 do s = s..s end error(s)"},
	{27, "local function f() return 1+f() end return f()"},

	/* ways out */
	{29, "load(string.dump(function() end):gsub(\"..\", \"\\xff\\xff\"))()"},
	{31, "getmetatable(\"\").__index = function() return function() return nil end end"},
	{32, "str.lower = function() return \"x\" end"},
	{32, "string.find = function() return 1 end"},
	{34, "(getmetatable(req) or {}).__gc(req)"},
	{35, "package.loaded.io.popen(\"id\")"},
	{35, "require(\"os\").execute(\"id\")"},
	{35, "io.open(\"/etc/passwd\")"},
	{35, "os.setlocale(\"tr_TR.UTF-8\")"},
	{35, "os.exit(0)"},
	{36, "debug.sethook() while true do end"},
	{37, "str.format(\"%p\", {})"},

	/* what a rule answers */
	{40, "return 0"},
	{40, "return {}"},
	{40, "return \"ALLOW \""},
	{40, "return true"},
	{40, "return \"allow\", \"deny\""},
	{40, "return function() end"},
	{40, "return setmetatable({}, {__index = function() return \"allow\" end})"},
	{41, "local t = {} t.field = t deny(\"x\", t)"},
	{41, "local t = {} for i = 1, 100000 do t = { t } end deny(\"x\", { field = t })"},
	{41, "deny(\"x\", { [1.5] = \"y\" })"},
	{41, "local t = {} for i = 1, 1e6 do t[i] = i end deny(\"x\", t)"},
	{42, "change(\"user.given\", \"0\") error(\"x\")"},
	{45, "if req.workload.limits.memory > \"100\" then deny(\"x\") end"},
	{45, "return \"10\" + 1"},
	{48, "n = (n or 0) + 1 if n > 3 then return nil end deny(\"x\")"},
	{49, "req.workload.privileged = false"},
	{50, "coroutine.yield(nil)"},
	{51, "return LIMITS[req.workload.limits.pids > 4] + 1"},
	{52, "if req.backend:find(\"evil-reg.com\") then deny(\"x\") end"},
	{53, "if math.random() < 0.5 then deny(\"x\") end"},
	{53, "if os.time() > 0 then deny(\"x\") end"},
};

static struct engine *open_with(const char *body)
{
	char text[2048];

	snprintf(
		text, sizeof(text),
		"local LIMITS = { [true] = 1 }\n"
		"return { profile \"bad\" { operations = { \"container.run\" }, images = { \"**\" "
		"}, "
		"mounts = { { \"/srv\", \"rw\" } }, networks = { \"*\" }, rule(\"r\", "
		"function(req)\n"
		"%s\nend) },\nprofile \"good\" { operations = { \"container.run\" }, images = { "
		"\"**\" }, mounts = { { \"/srv\", \"rw\" } }, networks = { \"*\" }, "
		"rule(\"plain\", "
		"function(req) if str.lower('A') ~= 'a' or glob('b', 'a') then deny('changed') end "
		"end) } }",
		body);
	return kit_open(text);
}

/* In the child: 0 if all is as it must be. */
static int try_escape(const struct escape *e)
{
	struct engine *eng = open_with(e->body);
	struct kit_answer ans;

	for (int i = 0; i < 5; i++) {
		kit_judge(eng, "bad", kit_create, "", &ans);
		if (ans.decision.verdict != VERDICT_DENY || strstr(ans.err.msg, "0x"))
			return 10;
		if (strlen(ans.decision.violations.list[0].text) >= 1024)
			return 11;
		kit_drop(&ans);
		kit_judge(eng, "good", kit_create, "", &ans);
		if (ans.decision.verdict != VERDICT_ALLOW || ans.result < 0)
			return 12;
		kit_drop(&ans);
	}
	engine_close(eng); /* which must end, too */
	return 0;
}

static bool slow_build(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return true;
#else
	return false;
#endif
}

/* How the child ended: its status, or 1000 and the signal. */
static int in_child(int (*fn)(const struct escape *e), const struct escape *e)
{
	const struct rlimit cpu = {slow_build() ? 10 : 1, slow_build() ? 11 : 2};
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		setrlimit(RLIMIT_CPU, &cpu);
		_exit(fn(e));
	}
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void none_escapes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(escapes) / sizeof(*escapes); i++)
		CHECK_INT(escapes[i].body, 0, in_child(try_escape, &escapes[i]));
}

/* 25: what a rule keeps is gone behind the judgement, however often it is asked. */
static int try_leak(const struct escape *e)
{
	struct engine *eng = kit_open(
		"local seen = {}\nreturn profile \"p\" { operations = { \"container.run\" }, "
		"images = { "
		"\"**\" }, mounts = { { \"/srv\", \"rw\" } }, networks = { \"*\" }, rule(\"r\", "
		"function(req) seen[#seen + 1] = req.identity.name if #seen > 1 then "
		"deny(\"kept\") "
		"end end) }");

	(void)e;
	for (int i = 0; i < 2000; i++) {
		struct kit_answer ans;

		kit_judge(eng, "p", kit_create, "", &ans);
		if (ans.decision.verdict != VERDICT_ALLOW)
			return 20;
		kit_drop(&ans);
	}
	engine_close(eng);
	return 0;
}

static void nothing_is_kept(void **state)
{
	(void)state;
	CHECK_INT("leak", 0, in_child(try_leak, NULL));
}

/* 30, 39: files that are no text, and paths that lead elsewhere. */
static void odd_files_do_not_load(void **state)
{
	static const struct {
		const char *text;
		size_t len;
		const char *want;
	} rows[] = {
		{"\x1bLua", 4, "compiled Lua"},
		{"\xef\xbb\xbf\x1bLua", 7, "byte order mark"},
		{"return\0profile", 14, "NUL byte"},
		{"include(\"../../etc/shadow\")", 27, "include"},
		{"return profile \"p\" { extends = \"../../etc/shadow\" }", 51,
		 "there is no profile"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct rule_source source = {"odd.lua", {rows[i].text, rows[i].len}};
		struct err err = {0};

		CHECK_INT(rows[i].want, 1,
			  engine_open(&source, 1, &engine_default_limits, &err) == NULL);
		CHECK_INT(err.msg, 1, strstr(err.msg, rows[i].want) != NULL);
		CHECK_INT(err.msg, 1, strstr(err.msg, "root:") == NULL);
	}
}

/* 37, 46, 47, 53: no address is shown, a NUL ends nothing, and order is the same in every state. */
static void answers_are_the_same_everywhere(void **state)
{
	static const char text[] =
		"return profile \"p\" { operations = { \"container.run\" }, rule(\"r\", "
		"function(req)\n"
		"local out = {} for name in pairs({ b = 1, a = 2, d = 3, c = 4, e = 5, f = 6 }) do "
		"table.insert(out, name) end\n"
		"deny(table.concat(out, \",\") .. tostring({}) .. tostring(deny) .. tostring(req) "
		".. "
		"tostring(glob(\"good.example\", \"good.example\\0.evil\"))) end) }";
	char first[1024] = "";

	(void)state;
	for (int i = 0; i < 12; i++) {
		struct engine *eng = kit_open(text);
		struct kit_answer ans;
		const char *said = "";

		kit_judge(eng, "p", kit_create, "", &ans);
		for (size_t k = 0; k < ans.decision.violations.count; k++)
			if (strcmp(ans.decision.violations.list[k].rule, "r") == 0)
				said = ans.decision.violations.list[k].text;
		CHECK_INT("said", 1, strncmp(said, "a,b,c,d,e,f", 11) == 0);
		CHECK_INT("no address", 1, strstr(said, "0x") == NULL);
		CHECK_INT("the whole length counts", 1, strstr(said, "false") != NULL);
		if (i == 0)
			snprintf(first, sizeof(first), "%s", said);
		CHECK_STR("the same", first, said);
		kit_drop(&ans);
		engine_close(eng);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_escapes),
		cmocka_unit_test(nothing_is_kept),
		cmocka_unit_test(odd_files_do_not_load),
		cmocka_unit_test(answers_are_the_same_everywhere),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
