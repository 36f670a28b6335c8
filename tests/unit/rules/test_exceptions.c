#include "tests/unit/rules/kit.h"

#include <stdio.h>

/*
 * A profile that grants container.run of reg.example/team/..., with one rule of
 * its own, and whatever `more` says.
 */
static void compose(char *out, size_t room, const char *more)
{
	snprintf(out, room,
		 "return profile \"p\" { operations = { \"read\", \"container.run\" },\n"
		 "images = { \"reg.example/team/*\" }, networks = { \"agents\" },\n"
		 "mounts = { { \"/srv/ws\", \"rw\" } },\n"
		 "rule(\"no-tag-1\", function(req) if get(req.workload, \"image.tag\") == \"1\" "
		 "then "
		 "deny(\"not 1\", { field = \"image.tag\", value = \"1\" }) end end),\n%s }",
		 more);
}

#define EXCEPTION(rule, rest)                                                                      \
	"exception { rule = \"" rule                                                               \
	"\", owner = \"ann\", ticket = \"SEC-1\", reason = \"moving\", " rest " }"
#define ANN       "when = { [\"identity.name\"] = \"an*\" }, "
#define NOW       "\"now\":1780000000" /* 2026-05-28T20:26:40Z */
#define TAG_2     "\"workload\":{\"image\":{\"tag\":\"2\"}}"
#define NEXT_YEAR "expires = \"2027-05-28\""

/* An exception lets pass what it is about, as long as it lasts, and nothing else. */
static void exceptions_let_pass_what_they_are_about(void **state)
{
	static const struct {
		const char *label, *exception, *change, *reasons;
		size_t used, warnings;
	} rows[] = {
		{"none", "", "{" NOW "}", "rule", 0, 0},
		{"one that holds", EXCEPTION("no-tag-1", ANN NEXT_YEAR), "{" NOW "}", "allow", 1,
		 0},
		{"its last day", EXCEPTION("no-tag-1", ANN "expires = \"2026-05-28\""), "{" NOW "}",
		 "allow", 1, 1},
		{"the day behind it", EXCEPTION("no-tag-1", ANN "expires = \"2026-05-27\""),
		 "{" NOW "}", "rule", 0, 0},
		{"to the second", EXCEPTION("no-tag-1", ANN "expires = \"2026-05-28T20:26:40Z\""),
		 "{" NOW "}", "rule", 0, 0},
		{"one second before",
		 EXCEPTION("no-tag-1", ANN "expires = \"2026-05-28T20:26:41Z\""), "{" NOW "}",
		 "allow", 1, 1},
		{"a clock that is not known", EXCEPTION("no-tag-1", ANN NEXT_YEAR), "", "rule", 0,
		 0},
		{"somebody else", EXCEPTION("no-tag-1", ANN NEXT_YEAR),
		 "{" NOW ",\"identity\":{\"name\":\"bob\"}}", "rule", 0, 0},
		{"a fact that is absent",
		 EXCEPTION("no-tag-1", "when = { [\"object.id\"] = \"*\" }, " NEXT_YEAR),
		 "{" NOW "}", "rule", 0, 0},
		{"a list of values",
		 EXCEPTION("no-tag-1", "when = { [\"identity.uid\"] = { 7, 1000 } }, " NEXT_YEAR),
		 "{" NOW "}", "allow", 1, 0},
		{"all conditions must hold",
		 EXCEPTION("no-tag-1", "when = { [\"identity.uid\"] = 1000, [\"backend\"] = "
				       "\"other\" }, " NEXT_YEAR),
		 "{" NOW "}", "rule", 0, 0},
		{"a function",
		 EXCEPTION("no-tag-1",
			   "when = function(req) return req.identity.uid == 1000 end, " NEXT_YEAR),
		 "{" NOW "}", "allow", 1, 0},
		{"a function that says no",
		 EXCEPTION("no-tag-1", "when = function(req) return false end, " NEXT_YEAR),
		 "{" NOW "}", "rule", 0, 0},
		{"a function that forgets to answer is trouble",
		 EXCEPTION("no-tag-1", "when = function(req) end, " NEXT_YEAR), "{" NOW "}",
		 "rule_error", 0, 0},
		{"a function that fails is trouble",
		 EXCEPTION("no-tag-1", "when = function(req) error(\"x\") end, " NEXT_YEAR),
		 "{" NOW "}", "rule_error", 0, 0},
		{"a function that judges is trouble",
		 EXCEPTION("no-tag-1",
			   "when = function(req) warn(\"x\") return true end, " NEXT_YEAR),
		 "{" NOW "}", "rule_error", 0, 0},
		{"another rule", EXCEPTION("image", ANN NEXT_YEAR), "{" NOW "}", "rule", 0, 0},
		{"a standard check", EXCEPTION("image", ANN NEXT_YEAR),
		 "{" NOW ",\"workload\":{\"image\":{\"name\":\"reg.example/x\",\"tag\":\"2\"}}}",
		 "allow", 1, 0},
		{"of one value",
		 EXCEPTION("privileged", "value = \"true\", code = \"privileged\", " ANN NEXT_YEAR),
		 "{" NOW ",\"workload\":{\"privileged\":true,\"image\":{\"tag\":\"2\"}}}", "allow",
		 1, 0},
		{"of another value", EXCEPTION("privileged", "value = \"yes\", " ANN NEXT_YEAR),
		 "{" NOW ",\"workload\":{\"privileged\":true,\"image\":{\"tag\":\"2\"}}}",
		 "privileged", 0, 0},
		{"of another code", EXCEPTION("mounts", "code = \"tmpfs\", " ANN NEXT_YEAR),
		 "{" NOW
		 ",\"workload\":{\"image\":{\"tag\":\"2\"},\"mounts\":[{\"kind\":\"odd\"}]}}",
		 "mount_type", 0, 0},
		{"what is unknown has none", EXCEPTION("facts", ANN NEXT_YEAR),
		 "{" NOW ",\"workload\":{\"devices\":null,\"image\":{\"tag\":\"2\"}}}",
		 "fact_unknown", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kit_answer ans;
		struct engine *eng;
		char text[2048];

		compose(text, sizeof(text), rows[i].exception);
		eng = kit_open(text);
		kit_judge(eng, "p", kit_create, rows[i].change, &ans);
		CHECK_STR(rows[i].label, rows[i].reasons, kit_reasons(&ans));
		CHECK_INT(rows[i].label, rows[i].used, ans.decision.excepted_count);
		CHECK_INT(rows[i].label, rows[i].warnings, ans.decision.warning_count);
		if (rows[i].used) {
			CHECK_STR(rows[i].label, "SEC-1", ans.decision.excepted[0].ticket);
			CHECK_INT(rows[i].label, VERDICT_ALLOW, ans.decision.would);
		}
		kit_drop(&ans);
		engine_close(eng);
	}
}

/* What cannot be recorded is no exception. */
static void more_uses_than_fit_the_record_are_denied(void **state)
{
	struct engine *eng = kit_open(
		"return profile \"p\" { operations = { \"container.run\" }, images = { \"**\" }, "
		"networks = { \"*\" }, mounts = { { \"/srv\", \"rw\" } }, rule(\"r\", function() "
		"for i = 1, 17 do deny(\"no\") end end), " EXCEPTION("r", ANN NEXT_YEAR) " }");
	struct kit_answer ans;

	(void)state;
	kit_judge(eng, "p", kit_create, "{" NOW "}", &ans);
	CHECK_INT("verdict", VERDICT_DENY, ans.decision.verdict);
	CHECK_INT("used", EXCEPTION_USES_MAX, ans.decision.excepted_count);
	CHECK_INT("left", 1, ans.decision.violations.count);
	kit_drop(&ans);
	engine_close(eng);
}

#define PARENT                                                                                     \
	"local base = profile \"base\" { operations = { \"read\" }, "                              \
	"rule(\"base-rule\", function() end), " EXCEPTION("base-rule", ANN NEXT_YEAR) " }\n"

static void bad_ones_do_not_load(void **state)
{
	static const struct {
		const char *label, *text, *want;
	} rows[] = {
		{"no owner",
		 "return profile \"p\" { exception { rule = \"image\", when = { backend = \"x\" }, "
		 "ticket = \"t\", reason = \"r\", expires = \"2027-01-01\" } }",
		 "owner is missing"},
		{"no end",
		 "return profile \"p\" { exception { rule = \"image\", when = { backend = \"x\" }, "
		 "owner = \"o\", ticket = \"t\", reason = \"r\" } }",
		 "expires is missing"},
		{"no day",
		 "return profile \"p\" { " EXCEPTION("image", ANN "expires = \"2027-02-30\"") " }",
		 "not \"2027-02-30\""},
		{"no condition", "return profile \"p\" { " EXCEPTION("image", NEXT_YEAR) " }",
		 "when is a table of facts"},
		{"an empty condition",
		 "return profile \"p\" { " EXCEPTION("image", "when = {}, " NEXT_YEAR) " }",
		 "when names no fact"},
		{"a misspelt fact",
		 "return profile \"p\" { " EXCEPTION(
			 "image", "when = { [\"identity.nme\"] = \"x\" }, " NEXT_YEAR) " }",
		 "\"identity.nme\" is no fact"},
		{"a misspelt rule", "return profile \"p\" { " EXCEPTION("imge", ANN NEXT_YEAR) " }",
		 "the nearest is image"},
		{"an odd option",
		 "return profile \"p\" { " EXCEPTION("image", "till = 1, " ANN NEXT_YEAR) " }",
		 "unknown option \"till\""},
		{"no code",
		 "return profile \"p\" { " EXCEPTION("image", "code = \"x\", " ANN NEXT_YEAR) " }",
		 "\"x\" is no reason code"},
		{"one that loosens a standard check of its parent",
		 PARENT "return { base, profile \"p\" { extends = \"base\", " EXCEPTION(
			 "image", ANN NEXT_YEAR) " } }",
		 "may only tighten"},
		{"one that loosens a rule of its parent",
		 PARENT "return { base, profile \"p\" { extends = \"base\", " EXCEPTION(
			 "base-rule", ANN NEXT_YEAR) " } }",
		 "may only tighten"},
		{"a rule with the name of a standard check, whose exception would be the check's",
		 PARENT "return { base, profile \"p\" { extends = \"base\", rule(\"image\", "
			"function() end), " EXCEPTION("image", ANN NEXT_YEAR) " } }",
		 "a standard check is named \"image\""},
		{"a mode for a check that is none",
		 "return profile \"p\" { modes = { imge = \"warn\" } }", "the nearest is image"},
		{"a mode that is none", "return profile \"p\" { modes = { image = \"off\" } }",
		 "\"enforce\", \"warn\" or \"shadow\" is expected"},
		{"a mode that softens what the parent enforces",
		 PARENT "return { base, profile \"p\" { extends = \"base\", modes = { image = "
			"\"shadow\" } } }",
		 "is more than \"base\" grants"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *message = kit_load_error(rows[i].text);

		if (!strstr(message, rows[i].want))
			CHECK_STR(rows[i].label, rows[i].want, message);
		CHECK_INT(rows[i].label, 1, strncmp(message, "test.lua:", 9) == 0);
	}
}

/* An exception holds where it is written, and not in what extends that profile. */
static void a_child_has_no_part_in_its_parents_exceptions(void **state)
{
	struct engine *eng = kit_open(
		"local base = profile \"base\" { operations = { \"container.run\" }, images = { "
		"\"**\" }, networks = { \"*\" }, mounts = { { \"/srv\", \"rw\" } }, rule(\"r\", "
		"function() deny(\"no\") end), " EXCEPTION(
			"r", ANN NEXT_YEAR) " }\n"
					    "return { base, profile \"p\" { extends = \"base\", "
					    "rule(\"own\", function() "
					    "deny(\"no\", { reason = \"name\" }) end), " EXCEPTION(
						    "own", ANN NEXT_YEAR) " } }");
	struct kit_answer ans;

	(void)state;
	kit_judge(eng, "base", kit_create, "{" NOW "}", &ans);
	CHECK_STR("the parent", "allow", kit_reasons(&ans));
	kit_drop(&ans);
	kit_judge(eng, "p", kit_create, "{" NOW "}", &ans);
	CHECK_STR("the child", "rule", kit_reasons(&ans));
	CHECK_INT("its own", 1, ans.decision.excepted_count);
	kit_drop(&ans);
	engine_close(eng);
}

/* One standard check on trial, the others in earnest. */
static void single_checks_have_modes(void **state)
{
	static const struct {
		const char *label, *settings, *change, *verdict, *would;
		int warnings;
	} rows[] = {
		{"in earnest", "", "\"privileged\":true", "deny", "deny", 0},
		{"warns", "modes = { privileged = \"warn\" }", "\"privileged\":true", "allow",
		 "deny", 1},
		{"watches", "modes = { privileged = \"shadow\" }", "\"privileged\":true", "allow",
		 "deny", 0},
		{"another one stays", "modes = { image = \"shadow\" }", "\"privileged\":true",
		 "deny", "deny", 0},
		{"in earnest, on trial around it",
		 "mode = \"shadow\", modes = { privileged = \"enforce\" }", "\"privileged\":true",
		 "deny", "deny", 0},
		{"what is unknown stays", "modes = { facts = \"shadow\" }", "\"devices\":null",
		 "deny", "deny", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char text[512], change[128];
		struct kit_answer ans;
		struct engine *eng;

		snprintf(text, sizeof(text),
			 "return profile \"p\" { operations = { \"container.run\" }, images = { "
			 "\"**\" }, networks = { \"*\" }, mounts = { { \"/srv\", \"rw\" } }, %s }",
			 rows[i].settings);
		snprintf(change, sizeof(change), "{\"workload\":{%s}}", rows[i].change);
		eng = kit_open(text);
		kit_judge(eng, "p", kit_create, change, &ans);
		CHECK_STR(rows[i].label, rows[i].verdict, verdict_name(ans.decision.verdict));
		CHECK_STR(rows[i].label, rows[i].would, verdict_name(ans.decision.would));
		CHECK_INT(rows[i].label, rows[i].warnings, ans.decision.warning_count);
		kit_drop(&ans);
		engine_close(eng);
	}
}

#define LATEST(examples)                                                                           \
	"return profile \"p\" { operations = { \"container.run\" },\n"                             \
	"rule(\"no-latest\", { examples = { " examples " } }, function(req)\n"                     \
	"if get(req.workload, \"image.tag\") == \"latest\" then deny(\"name a version\", "         \
	"{ field = \"Image\", value = req.workload.image.tag }) end\nend) }"
#define TAG(tag) "{ workload = { image = { tag = \"" tag "\" } } }"

/* A profile whose examples do not hold is not loaded, and says which, where and why. */
static void examples_must_hold(void **state)
{
	static const struct {
		const char *label, *text;
		const char *want[4];
	} rows[] = {
		{"what must be refused is not",
		 LATEST("match = { " TAG("latest") ", " TAG("3.12") " }"),
		 {"test.lua:2: rule \"no-latest\"", "match[2]", "is not refused, and must be",
		  "3.12"}},
		{"what must not be refused is",
		 LATEST("not_match = { " TAG("latest") " }"),
		 {"test.lua:2: rule \"no-latest\"", "not_match[1]", "name a version",
		  "Image = latest"}},
		{"one that fails",
		 "return profile \"p\" { operations = {},\nrule(\"r\", { examples = { match = { {} "
		 "} } }, function() error(\"oops\") end) }",
		 {"test.lua:2: rule \"r\"", "match[1]", "fails", "oops"}},
		{"a fact that does not exist",
		 LATEST("match = { { workload = { imge = { tag = \"latest\" } } } }"),
		 {"test.lua", "match[1]", "no fact named 'imge'", ""}},
		{"a kind that does not exist",
		 LATEST("matches = { " TAG("latest") " }"),
		 {"test.lua", "no-latest", "match = { { facts }", ""}},
	};
	struct engine *eng = kit_open(
		LATEST("match = { " TAG("latest") " }, not_match = { " TAG("3.12") ", {} }"));

	(void)state;
	engine_close(eng);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *message = kit_load_error(rows[i].text);

		for (size_t k = 0; k < 4 && rows[i].want[k]; k++)
			if (!strstr(message, rows[i].want[k]))
				CHECK_STR(rows[i].label, rows[i].want[k], message);
	}
}

/* Who looks on sees every rule in its order and what it said. */
static void a_trace_has_every_rule(void **state)
{
	struct engine *eng = kit_open(
		"return profile \"p\" { operations = { \"container.run\" }, images = { \"**\" }, "
		"networks = { \"*\" }, mounts = { { \"/srv\", \"rw\" } },\n"
		"rule(\"fine\", function() end), rule(\"warns\", function() warn(\"x\") end),\n"
		"rule(\"asks\", function() ask(\"x\") end), rule(\"denies\", function() "
		"deny(\"x\") end), rule(\"soft\", { mode = \"shadow\" }, function() deny(\"x\") "
		"end),\n"
		"rule(\"other\", { operations = { \"exec\" } }, function() end),\n"
		"rule(\"fails\", function() error(\"x\") end), rule(\"behind\", function() end) }");
	static const struct {
		const char *rule;
		enum rule_outcome outcome;
	} want[] = {{"fine", OUTCOME_PASSED},   {"warns", OUTCOME_WARNED},
		    {"asks", OUTCOME_ASKED},    {"denies", OUTCOME_DENIED},
		    {"soft", OUTCOME_SOFTENED}, {"other", OUTCOME_NOT_RUN},
		    {"fails", OUTCOME_FAILED},  {"behind", OUTCOME_NOT_RUN}};
	static struct engine_trace trace;
	struct kit_answer ans;
	size_t first;

	(void)state;
	engine_watch(eng, &trace);
	kit_judge(eng, "p", kit_create, "", &ans);
	assert_true(trace.count > 8);
	first = trace.count - 8;
	CHECK_INT("a standard check", 1, trace.list[0].is_check);
	for (size_t i = 0; i < 8; i++) {
		CHECK_STR(want[i].rule, want[i].rule, trace.list[first + i].rule);
		CHECK_STR(want[i].rule, rule_outcome_name(want[i].outcome),
			  rule_outcome_name(trace.list[first + i].outcome));
	}
	kit_drop(&ans);
	engine_close(eng);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exceptions_let_pass_what_they_are_about),
		cmocka_unit_test(more_uses_than_fit_the_record_are_denied),
		cmocka_unit_test(bad_ones_do_not_load),
		cmocka_unit_test(a_child_has_no_part_in_its_parents_exceptions),
		cmocka_unit_test(single_checks_have_modes),
		cmocka_unit_test(examples_must_hold),
		cmocka_unit_test(a_trace_has_every_rule),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
