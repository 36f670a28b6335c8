#include "tests/unit/rules/kit.h"

#include <stdio.h>

/* What an expression is, as text; or the error that it raises. */
static const char *value_of(const char *expression, const char *facts)
{
	static char text[512];
	char source[2048];
	struct engine *eng;
	struct kit_answer ans;

	snprintf(source, sizeof(source),
		 "return profile \"p\" { operations = { \"read\" }, rule(\"r\", { operations = { "
		 "\"read\" } }, "
		 "function(req) deny(\"=\" .. tostring(%s)) end) }",
		 expression);
	eng = kit_open(source);
	kit_judge(eng, "p", "{\"operation\":{\"name\":\"container.list\"}}", facts, &ans);
	snprintf(text, sizeof(text), "%s", ans.decision.violations.list[0].text);
	kit_drop(&ans);
	engine_close(eng);
	return text[0] == '=' ? text + 1 : text;
}

static void words_do_what_they_say(void **state)
{
	static const struct {
		const char *expression, *want;
	} rows[] = {
		/* texts */
		{"str.starts('abc', 'ab')", "true"},
		{"str.starts('abc', 'b')", "false"},
		{"('abc'):ends('bc')", "true"},
		{"('abc'):ends('abcd')", "false"},
		{"str.contains('a.b', '.')", "true"},
		{"str.contains('ab', '.')", "false"},
		{"str.lower('AbC')", "abc"},
		{"str.upper('AbC')", "ABC"},
		{"str.lower('\\xc3\\x84')", "\xc3\x84"},
		{"str.trim('  a b \\n')", "a b"},
		{"str.reverse('abc')", "cba"},
		{"str.len('a\\0b')", "3"},
		{"#'a\\0b'", "3"},
		{"str.sub('abcdef', 2, -2)", "bcde"},
		{"str.sub('abc', 10)", ""},
		{"str.sub('abc', -2)", "bc"},
		{"str.byte('A')", "65"},
		{"str.char(72, 105)", "Hi"},
		{"str.format('%s %d %%', 'a', 3)", "a 3 %"},
		{"str.format('%s', {})", "table"},
		{"#str.split('a,,b', ',')", "3"},
		{"str.split('a,,b', ',')[3]", "b"},
		{"#str.split('', ',')", "1"},
		{"str.starts('good.example\\0.evil', 'good.example')", "true"},
		{"'good.example\\0.evil' == 'good.example'", "false"},
		{"glob('good.example', 'good.example\\0.evil')", "false"},

		/* values */
		{"tostring(print_me_not == nil)",
		 "test.lua:1: there is no 'print_me_not' in the words of rules"},
		{"tostring(nil)", "nil"},
		{"tostring(1.5)", "1.5"},
		{"tostring(2^53)", "9.007199254741e+15"},
		{"tostring(function() end)", "function"},
		{"tostring({})", "table"},
		{"tostring(req)", "fact"},
		{"tostring(str)", "table"},
		{"tostring(deny)", "function"},
		{"tonumber('10')", "10"},
		{"tonumber('10x')", "nil"},
		{"tonumber('')", "nil"},
		{"tonumber({})", "nil"},
		{"type(req)", "table"},
		{"type(str)", "table"},
		{"type(nil)", "nil"},
		{"select('#', 1, nil)", "2"},
		{"select(2, 'a', 'b')", "b"},
		{"assert(5)", "5"},
		{"assert(false, 'no')", "no"},
		{"assert(nil)", "test.lua:1: assertion failed"},
		{"error('text')", "test.lua:1: text"},

		/* lists */
		{"#table.unpack({ { 1, 2 } })", "2"},
		{"table.concat({ 1, 'b', 2.5 }, '-')", "1-b-2.5"},
		{"listed({})", "none"},
		{"listed(nil, 'nothing')", "nothing"},
		{"listed({ 'a', 'b' })", "a, b"},
		{"listed({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 })",
		 "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 2 more"},
		{"(function() local t = { 'c', 'a', 'b' } table.sort(t) return table.concat(t) "
		 "end)()",
		 "abc"},
		{"(function() local t = { 10, 9, 1.5 } table.sort(t) return table.concat(t, ' ') "
		 "end)()",
		 "1.5 9 10"},
		{"(function() local t = { 'a' } table.insert(t, 'c') table.insert(t, 2, 'b') "
		 "return "
		 "table.concat(t) .. table.remove(t) .. table.remove(t, 1) .. #t end)()",
		 "abcca1"},
		{"(function() local s = '' for k, v in pairs({ b = 1, a = 2, 3, [9007199254740993] "
		 "= 4 }) do s = s "
		 ".. k .. v .. ' ' end return s end)()",
		 "13 90071992547409934 a2 b1 "},
		{"(function() local s = '' for i, v in ipairs({ 'x', 'y' }) do s = s .. i .. v end "
		 "return s end)()",
		 "1x2y"},
		{"(function() local s = 0 for v in each({ 1, 2 }) do s = s + v end return s end)()",
		 "3"},
		{"(function() for v in each(nil) do return 'some' end return 'none' end)()",
		 "none"},
		{"ipairs(nil)",
		 "test.lua:1: ipairs: this is nil (each() takes nil for an empty list)"},

		/* numbers */
		{"math.floor(1.7)", "1"},
		{"math.ceil(1.2)", "2"},
		{"math.max(1, 3, 2)", "3"},
		{"math.min(2, 1, 3)", "1"},
		{"math.abs(-3)", "3"},
		{"math.tointeger(3.0)", "3"},
		{"math.tointeger('3')", "nil"},
		{"math.type(1)", "integer"},
		{"math.type(1.0)", "float"},
		{"bytes('2GiB')", "2147483648"},
		{"bytes(5)", "5"},
		{"bytes('much')", "test.lua:1: bytes: 'much' is no size (like 512MiB or 2GiB)"},

		/* matchers */
		{"glob('a*', 'abc')", "true"},
		{"glob({ 'x', 'a*' }, 'abc')", "true"},
		{"glob({}, 'abc')", "false"},
		{"image.match({ 'alpine:' }, 'docker.io/library/alpine', '3')",
		 "test.lua:1: image.match: 'alpine:' is no pattern of images"},
		{"image.named({ 'x', '' }, 'docker.io/library/alpine')",
		 "test.lua:1: image.named: '' is no pattern of images"},
		{"image.parse('alpine:3').name", "docker.io/library/alpine"},
		{"image.parse('alpine:3').tag", "3"},
		{"image.parse('alpine').tag", "nil"},
		{"image.parse('')", "nil"},
		{"image.match({ 'alpine' }, 'docker.io/library/alpine', '3')", "true"},
		{"image.match({ 'alpine:4' }, 'docker.io/library/alpine', '3')", "false"},
		{"image.named({ 'alpine:4' }, 'docker.io/library/alpine')", "true"},
		{"path.within('/a/b', '/a')", "true"},
		{"path.within('/ab', '/a')", "false"},
		{"path.fill('/x/{identity.name}', { name = 'n', owner = 'o' })", "/x/n"},
		{"path.fill('/x/{identity.name}', nil)", "nil"},
		{"duration('30m')", "1800"},
		{"duration(7)", "7"},
		{"duration('soon')",
		 "test.lua:1: duration: 'soon' is no time (like 90s, 30m, 12h or 7d)"},
		{"host.match('*.example.org', 'a.b.Example.org')", "true"},
		{"host.match('*.example.org', 'example.org')", "false"},
		{"host.match({ 'x.example', 'example.org' }, 'example.org.')", "true"},
		{"host.match({}, 'example.org')", "false"},
		{"host.match('*example.org', 'example.org')",
		 "test.lua:1: host.match: '*example.org' is no host name, and not *. before one"},
		{"cidr.contains('10.0.0.0/8', '10.255.0.1')", "true"},
		{"cidr.contains({ 'fd00::/8', '10.0.0.1' }, '10.0.0.1')", "true"},
		{"cidr.contains('10.0.0.0/8', 'ten')", "false"},
		{"cidr.contains('10.0.0.0/33', '10.0.0.1')",
		 "test.lua:1: cidr.contains: '10.0.0.0/33' is no network, like 10.0.0.0/8"},
		{"regex.match('[a-z]+-[0-9]{1,3}', 'job-12')", "true"},
		{"regex.match('[a-z]+-[0-9]{1,3}', 'my job-12')", "false"},
		{"regex.match('[a-z]+-[0-9]{1,3}', 'job-12\\n')", "false"},
		{"regex.match('(?:a|ab)(?:c|bcd)', 'abcd')", "true"},
		{"regex.match('a|ab', 'ab')", "true"},
		{"regex.match('good\\\\.example', 'good.example\\0.evil')",
		 "test.lua:1: regex.match: a text has at most 4096 bytes, and no NUL"},
		{"regex.match('(', 'x')",
		 "test.lua:1: regex.match: '(': missing closing parenthesis"},
		{"regex.match('(a+)+[^a]', str.format('%s%s', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', "
		 "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'))",
		 "test.lua:1: regex.match: '(a+)+[^a]': match limit exceeded"},
		{"regex.match('(?R)?x', 'y')", "false"},
		{"regex.match('\\\\C', 'y')",
		 "test.lua:1: regex.match: '\\C': using \\C is disabled by the application"},

		/* wrong use */
		{"str.lower(5)",
		 "test.lua:1: lower: argument 1 must be a string, this is a number"},
		{"str.split('a', ', ')", "test.lua:1: split: the separator is one character"},
		{"glob('a', nil)", "test.lua:1: glob: argument 2 must be a string, this is nil"},
		{"regex.match({ 'a' }, 'a')",
		 "test.lua:1: regex.match: argument 1 must be a string, this is a table"},
		{"str.rep('a', 2)", "test.lua:1: there is no 'rep' in str"},
		{"('a'):gsub('a', 'b')", "test.lua:1: there is no 'gsub' in str"},
		{"str.format('%p', {})", "test.lua:1: format: only %s, %d and %% are known"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_STR(rows[i].expression, rows[i].want, value_of(rows[i].expression, ""));
}

/* A text that is too long to be looked at is trouble: "no" would skip a rule that denies. */
static void long_texts_are_errors(void **state)
{
	static const struct {
		const char *expression, *want;
		size_t len;
	} rows[] = {
		{"regex.match('a*', req.identity.name)", "true", 4096},
		{"regex.match('a*', req.identity.name)",
		 "test.lua:1: regex.match: a text has at most 4096 bytes, and no NUL", 4097},
		{"glob('a*', req.identity.name)", "true", 4096},
		{"glob('a*', req.identity.name)",
		 "test.lua:1: glob: a pattern has at most 256 bytes, and a text that it might fit "
		 "4096",
		 4097},
		{"glob('b*', req.identity.name)", "false", 4097},
		{"glob(req.identity.name, 'a')", "false", 256},
		{"glob(str.format('*%s', req.identity.name), 'a')",
		 "test.lua:1: glob: a pattern has at most 256 bytes, and a text that it might fit "
		 "4096",
		 256},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char facts[8192], name[5000];

		memset(name, 'a', rows[i].len);
		name[rows[i].len] = '\0';
		snprintf(facts, sizeof(facts), "{\"identity\":{\"name\":\"%s\"}}", name);
		CHECK_STR(rows[i].expression, rows[i].want, value_of(rows[i].expression, facts));
	}
}

/* What must not be there, by name: reading it is an error that says so. */
static void dangerous_words_are_absent(void **state)
{
	static const char *const absent[] = {
		"os",
		"io",
		"debug",
		"load",
		"loadstring",
		"loadfile",
		"dofile",
		"require",
		"package",
		"pcall",
		"xpcall",
		"coroutine",
		"setmetatable",
		"getmetatable",
		"rawset",
		"rawget",
		"rawequal",
		"rawlen",
		"collectgarbage",
		"print",
		"next",
		"utf8",
		"_G",
		"_VERSION",
		"_ENV2",
		"warnf",
		"table.move",
		"table.pack",
		"string.rep",
		"string.find",
		"string.match",
		"string.gmatch",
		"string.gsub",
		"string.dump",
		"string.pack",
		"string.unpack",
		"string.packsize",
		"math.random",
		"math.randomseed",
		"refuse",
		"change",
		"check",
		"harden",
		"what_runs",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(absent) / sizeof(*absent); i++)
		CHECK_INT(absent[i], 1, strstr(value_of(absent[i], ""), "there is no '") != NULL);
}

static void facts_read_like_tables(void **state)
{
	static const char facts[] =
		"{\"workload\":{\"env\":[\"A\",\"B\"],\"limits\":{\"memory\":5,\"pids\":"
		"null},\"privileged\":false,\"name\":\"n m\",\"mounts\":[{\"kind\":"
		"\"bind\"},{\"kind\":\"tmpfs\"}]}}";
	static const struct {
		const char *expression, *want;
	} rows[] = {
		{"req.workload.env[1]", "A"},
		{"#req.workload.env", "2"},
		{"req.workload.env[0]", "nil"},
		{"req.workload.env[3]", "nil"},
		{"req.workload.limits.memory + 1", "6"},
		{"req.workload.limits.pids", "nil"},
		{"req.workload.privileged", "false"},
		{"#req.workload.name", "3"},
		{"req.workload.devices", "nil"},
		{"req.object", "nil"},
		{"req.workload == req.workload", "true"},
		{"req.workload.mounts[2].kind", "tmpfs"},
		{"get(req, 'workload.limits.memory')", "5"},
		{"get(req, 'workload.network.ports')", "nil"},
		{"get(nil, 'a.b')", "nil"},
		{"get({ a = { b = 1 } }, 'a.b')", "1"},
		{"get(req, 'operation.name.x')",
		 "test.lua:1: get: there is nothing below a string"},
		{"table.concat(req.workload.env, ',')", "A,B"},
		{"glob(req.workload.env, 'B')", "true"},
		{"(function() local s = '' for _, e in ipairs(req.workload.env) do s = s .. e end "
		 "return s end)()",
		 "AB"},
		{"(function() local s = '' for m in each(req.workload.mounts) do s = s .. m.kind "
		 "end return s "
		 "end)()",
		 "bindtmpfs"},
		{"(function() local s = '' for k in pairs(req.workload) do s = s .. k .. ' ' end "
		 "return s end)()",
		 "env limits mounts name privileged "},
		{"(function() local s = '' for i, e in pairs(req.workload.env) do s = s .. i .. e "
		 "end return s "
		 "end)()",
		 "1A2B"},
		{"table.unpack(req.workload.env)", "A"},
		{"req.worklaod", "test.lua:1: there is no fact named 'worklaod'"},
		{"req.workload.mounts.kind",
		 "test.lua:1: a fact that is a list has no entry of that kind"},
		{"#req.workload", "test.lua:1: a fact that is an object has no length"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_STR(rows[i].expression, rows[i].want, value_of(rows[i].expression, facts));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_do_what_they_say),
		cmocka_unit_test(long_texts_are_errors),
		cmocka_unit_test(dangerous_words_are_absent),
		cmocka_unit_test(facts_read_like_tables),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
