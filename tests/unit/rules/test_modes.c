#include "tests/unit/rules/kit.h"

#include <stdio.h>

#define LIST "{\"operation\":{\"name\":\"container.list\"}}"

/* The profile's mode, one or two rules each with a mode of its own, and what comes of it. */
static void modes_soften_rules(void **state)
{
	static const struct {
		const char *label, *mode;
		struct {
			const char *mode, *body;
		} rules[2];
		const char *verdict, *would, *reasons;
		int warnings;
	} rows[] = {
		{"enforce", "enforce", {{"", "deny('no')"}}, "deny", "deny", "rule", 0},
		{"warn", "warn", {{"", "deny('no')"}}, "allow", "deny", "rule", 1},
		{"shadow", "shadow", {{"", "deny('no')"}}, "allow", "deny", "rule", 0},
		{"nothing to soften", "shadow", {{"", ""}}, "allow", "allow", "allow", 0},
		{"a rule on trial",
		 "enforce",
		 {{"warn", "deny('no')"}},
		 "allow",
		 "deny",
		 "rule",
		 1},
		{"a rule in earnest, on trial around it",
		 "warn",
		 {{"enforce", "deny('no')"}},
		 "deny",
		 "deny",
		 "rule",
		 0},
		{"both kinds: what counts comes first",
		 "enforce",
		 {{"shadow", "deny('no', { reason = 'name' })"},
		  {"", "deny('no', { reason = 'label' })"}},
		 "deny",
		 "deny",
		 "label name",
		 0},
		{"a warning alone",
		 "enforce",
		 {{"", "warn('mind')"}},
		 "allow",
		 "allow",
		 "allow",
		 1},
		{"asking", "enforce", {{"", "ask('may it?')"}}, "ask", "ask", "rule", 0},
		{"denying overrides asking",
		 "enforce",
		 {{"", "ask('may it?', { reason = 'name' })"},
		  {"", "deny('no', { reason = 'label' })"}},
		 "deny",
		 "deny",
		 "label name",
		 0},
		{"asking in warn mode",
		 "warn",
		 {{"", "ask('may it?')"}},
		 "allow",
		 "ask",
		 "rule",
		 1},
		{"trouble is never softened",
		 "shadow",
		 {{"", "error('x')"}},
		 "deny",
		 "deny",
		 "rule_error",
		 0},
		{"nor that of a rule on trial",
		 "enforce",
		 {{"shadow", "error('x')"}},
		 "deny",
		 "deny",
		 "rule_error",
		 0},
		{"nor a limit",
		 "warn",
		 {{"", "while true do end"}},
		 "deny",
		 "deny",
		 "rule_limit",
		 0},
		{"nor a strange answer",
		 "warn",
		 {{"", "return true"}},
		 "deny",
		 "deny",
		 "rule_error",
		 0},
		{"a denial that is not returned",
		 "enforce",
		 {{"", "local x = deny('no')"}},
		 "deny",
		 "deny",
		 "rule",
		 0},
		{"one that is returned",
		 "enforce",
		 {{"", "return deny('no')"}},
		 "deny",
		 "deny",
		 "rule",
		 0},
		{"two that are returned",
		 "enforce",
		 {{"", "return deny('a'), deny('b')"}},
		 "deny",
		 "deny",
		 "rule",
		 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct engine *eng;
		struct kit_answer ans;
		char text[2048];
		size_t used;

		used = (size_t)snprintf(
			text, sizeof(text),
			"return profile \"p\" { operations = { \"read\" }, mode = \"%s\"",
			rows[i].mode);
		for (size_t k = 0; k < 2 && rows[i].rules[k].mode; k++)
			used += (size_t)snprintf(
				text + used, sizeof(text) - used,
				", rule(\"r%zu\", { operations = { \"read\" }, mode = %s%s%s }, "
				"function(req) "
				"%s end)",
				k, *rows[i].rules[k].mode ? "\"" : "nil", rows[i].rules[k].mode,
				*rows[i].rules[k].mode ? "\"" : "", rows[i].rules[k].body);
		snprintf(text + used, sizeof(text) - used, " }");
		eng = kit_open(text);
		kit_judge(eng, "p", LIST, "", &ans);
		CHECK_STR(rows[i].label, rows[i].verdict, verdict_name(ans.decision.verdict));
		CHECK_STR(rows[i].label, rows[i].would, verdict_name(ans.decision.would));
		CHECK_STR(rows[i].label, rows[i].reasons, kit_reasons(&ans));
		CHECK_INT(rows[i].label, rows[i].warnings, ans.decision.warning_count);
		kit_drop(&ans);
		engine_close(eng);
	}
}

/* Standard checks follow the profile's mode, but what is not known stays refused. */
static void unknowns_are_never_softened(void **state)
{
	static const struct {
		const char *label, *change, *verdict, *would;
	} rows[] = {
		{"a violation", "{\"workload\":{\"privileged\":true}}", "allow", "deny"},
		{"an unknown user", "{\"workload\":{\"user\":{\"root\":null}}}", "deny", "deny"},
		{"an unknown path",
		 "{\"workload\":{\"mounts\":[{\"kind\":\"bind\",\"source\":\"/srv/ws/a\"}]}}",
		 "deny", "deny"},
		{"an unknown level", "{\"workload\":{\"isolation\":{\"level\":null}}}", "deny",
		 "deny"},
		{"no facts", "{\"workload\":null}", "deny", "deny"},
		{"an operation that is not granted", "{\"operation\":{\"name\":\"image.push\"}}",
		 "deny", "deny"},
	};
	struct engine *eng = kit_open(
		"return profile \"p\" { mode = \"shadow\", operations = { \"container.run\" }, "
		"images = { \"**\" }, networks = { \"*\" }, mounts = { { \"/srv\", \"rw\" } } }");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kit_answer ans;

		kit_judge(eng, "p", kit_create, rows[i].change, &ans);
		CHECK_STR(rows[i].label, rows[i].verdict, verdict_name(ans.decision.verdict));
		CHECK_STR(rows[i].label, rows[i].would, verdict_name(ans.decision.would));
		CHECK_INT(rows[i].label, MODE_SHADOW, ans.decision.mode);
		kit_drop(&ans);
	}
	engine_close(eng);
}

/*
 * What an operator sets to warn is what the profile enforces: not what gives the host, what a
 * person is to be asked for, what has a mode of its own, what is not known or not granted.
 */
static void an_override_sets_aside_some(void **state)
{
	static const struct {
		const char *label, *change, *verdict, *would, *mode;
	} rows[] = {
		{"nothing wrong", "", "allow", "allow", "warn"},
		{"an image", "{\"workload\":{\"image\":{\"name\":\"reg.example/x\"}}}", "allow",
		 "deny", "warn"},
		{"a limit", "{\"workload\":{\"limits\":{\"pids\":999999}}}", "allow", "deny",
		 "warn"},
		{"a rule", "{\"workload\":{\"name\":\"soft\"}}", "allow", "deny", "warn"},
		{"a rule with a mode", "{\"workload\":{\"name\":\"hard\"}}", "deny", "deny",
		 "warn"},
		{"a rule that names what is on the floor", "{\"workload\":{\"name\":\"floor\"}}",
		 "deny", "deny", "warn"},
		{"a person", "{\"workload\":{\"name\":\"person\"}}", "ask", "ask", "warn"},
		{"a check with a mode", "{\"workload\":{\"user\":{\"root\":true}}}", "deny", "deny",
		 "warn"},
		{"privileged mode", "{\"workload\":{\"privileged\":true}}", "deny", "deny", "warn"},
		{"a device", "{\"workload\":{\"devices\":[{\"path\":\"/dev/kvm\"}]}}", "deny",
		 "deny", "warn"},
		{"a link to a container of anybody",
		 "{\"workload\":{\"network\":{\"links\":[{\"value\":\"his:h\"}]}}}", "deny", "deny",
		 "warn"},
		{"a label of the gate's own",
		 "{\"workload\":{\"labels\":[{\"name\":\"sallyport.self\"}]}}", "deny", "deny",
		 "warn"},
		{"a copy of another's container",
		 "{\"operation\":{\"name\":\"container.commit\"},\"object\":{\"mine\":false}}",
		 "deny", "deny", "warn"},
		{"a name that others run",
		 "{\"operation\":{\"name\":\"image.tag\"},\"workload\":{\"names\":["
		 "\"reg.example/team/app:1\"]}}",
		 "deny", "deny", "warn"},
		{"a network with the host's interfaces",
		 "{\"operation\":{\"name\":\"network.create\"},\"workload\":{\"net\":{\"driver\":"
		 "\"macvlan\",\"options\":[\"parent\"],\"internal\":true}}}",
		 "deny", "deny", "warn"},
		{"isolation", "{\"workload\":{\"isolation\":{\"level\":\"none\"}}}", "deny", "deny",
		 "warn"},
		{"an unknown user", "{\"workload\":{\"user\":{\"root\":null}}}", "deny", "deny",
		 "warn"},
		{"no facts", "{\"workload\":null}", "deny", "deny", "warn"},
		{"an operation that is not granted", "{\"operation\":{\"name\":\"image.push\"}}",
		 "deny", "deny", "warn"},
	};
	static const struct override warn = {MODE_WARN, "INC-1"};
	struct engine *eng = kit_open(
		"local function named(name, say) return function(req) if req.workload.name == name "
		"then say() end end end\n"
		"return profile \"p\" { operations = { \"container.run\", \"container.commit\", "
		"\"image.tag\", \"network.use\" }, images = { \"reg.example/team/*\" }, networks = "
		"{ \"*\" }, "
		"mounts = { { \"/srv/ws\", \"rw\" } }, limits = { pids = 512 }, isolation = { min "
		"= \"process\" }, modes = { user = "
		"\"enforce\" }, "
		"rule(\"soft\", {}, named(\"soft\", function() deny(\"soft\") end)), "
		"rule(\"floor\", {}, named(\"floor\", function() deny(\"floor\", { reason = "
		"\"bind\" }) end)), "
		"rule(\"person\", {}, named(\"person\", function() ask(\"person\") end)), "
		"rule(\"hard\", { mode = \"enforce\" }, named(\"hard\", function() deny(\"hard\") "
		"end)) }");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kit_answer ans;

		kit_judge_under(eng, kit_create, rows[i].change, &warn, &ans);
		CHECK_STR(rows[i].label, rows[i].verdict, verdict_name(ans.decision.verdict));
		CHECK_STR(rows[i].label, rows[i].would, verdict_name(ans.decision.would));
		CHECK_STR(rows[i].label, rows[i].mode, rule_mode_name(ans.decision.mode));
		CHECK_STR(rows[i].label, "INC-1", ans.decision.override->ticket);
		CHECK_INT(rows[i].label, strcmp(rows[i].verdict, rows[i].would) != 0,
			  ans.decision.warning_count > 0);
		kit_drop(&ans);
		kit_judge_under(eng, kit_create, rows[i].change, NULL, &ans);
		CHECK_STR(rows[i].label, rows[i].would, verdict_name(ans.decision.verdict));
		CHECK_INT(rows[i].label, true, ans.decision.override == NULL);
		kit_drop(&ans);
	}
	engine_close(eng);
}

/* Many softened violations do not push out the one that counts. */
static void a_full_list_keeps_what_counts(void **state)
{
	struct engine *eng = kit_open("local read = { operations = { \"read\" } }\n"
				      "return profile \"p\" { operations = { \"read\" }, "
				      "rule(\"soft\", { operations = { \"read\" }, mode = "
				      "\"shadow\" }, function() for i = 1, 100 do deny(\"soft\") "
				      "end end), rule(\"hard\", read, function() "
				      "deny(\"hard\", { reason = \"name\" }) end) }");
	struct kit_answer ans;

	(void)state;
	kit_judge(eng, "p", LIST, "", &ans);
	CHECK_INT("verdict", VERDICT_DENY, ans.decision.verdict);
	CHECK_STR("first", "name", reason_name(ans.decision.violations.list[0].reason));
	CHECK_STR("rule", "hard", ans.decision.rule);
	CHECK_INT("kept", VIOLATIONS_MAX, ans.decision.violations.count);
	CHECK_INT("dropped", 101 - VIOLATIONS_MAX, ans.decision.violations.dropped);
	kit_drop(&ans);
	engine_close(eng);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(modes_soften_rules),
		cmocka_unit_test(unknowns_are_never_softened),
		cmocka_unit_test(an_override_sets_aside_some),
		cmocka_unit_test(a_full_list_keeps_what_counts),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
