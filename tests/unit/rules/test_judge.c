#include "tests/unit/rules/kit.h"

#include "rules/library_priv.h"

#include <stdio.h>

/* What engine_facts() makes of a question: these bytes go into the record. */
static void facts_are_made(void **state)
{
	struct arena *a = arena_create(1 << 16);
	struct jv object = kit_json(a, "{\"kind\":\"container\",\"id\":\"ab\",\"mine\":true}");
	struct jv workload = kit_json(a, "{\"privileged\":false}"), nothing = jv_null();
	const struct identity who = {.name = "ann",
				     .owner = "o1",
				     .profile = "p",
				     .listener = "agents",
				     .has_cred = true,
				     .uid = 1000,
				     .gid = 100,
				     .pid = 42};
	const struct identity nobody = {.name = "",
					.owner = "",
					.profile = "p",
					.listener = "agents",
					.address = "10.0.0.7"};
	const struct {
		const char *label;
		struct question q;
		const char *want;
	} rows[] = {
		{"all of it",
		 {OP_CONTAINER_START, &who, "engine", &object, &workload, NULL, NULL, 0},
		 "{\"operation\":{\"name\":\"container.start\",\"class\":\"lifecycle\",\"group\":"
		 "\"container.run\"},"
		 "\"identity\":{\"name\":\"ann\",\"owner\":\"o1\",\"profile\":\"p\",\"listener\":"
		 "\"agents\",\"method\":\"peercred\",\"uid\":"
		 "1000,\"gid\":100},\"backend\":\"engine\",\"object\":{\"kind\":\"container\","
		 "\"id\":\"ab\",\"mine\":"
		 "true},\"workload\":{\"privileged\":false}}"},
		{"little of it",
		 {OP_CONTAINER_LIST, &nobody, "engine", NULL, &nothing, NULL, NULL, 0},
		 "{\"operation\":{\"name\":\"container.list\",\"class\":\"read\",\"group\":\"\"},"
		 "\"identity\":{\"name\":"
		 "\"\",\"owner\":\"\",\"profile\":\"p\",\"listener\":\"agents\",\"method\":"
		 "\"listener\",\"address\":\"10.0.0.7\"},\"backend\":"
		 "\"engine\"}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct jv facts = engine_facts(a, &rows[i].q);
		struct buf out;

		buf_init(&out, 4096);
		jv_write(&out, &facts);
		buf_put(&out, "", 1);
		CHECK_STR(rows[i].label, rows[i].want, buf_span(&out).at);
		buf_fini(&out);
	}
	arena_destroy(a);
}

/* The size that is capped is that of the bytes in the record. */
static void the_cap_counts_what_is_written(void **state)
{
	static const char *const texts[] = {
		"null",
		"true",
		"false",
		"-123",
		"1.5",
		"\"\"",
		"\"a\\\"\\\\\\u0001\\n\\u007fz\"",
		"[]",
		"[1,[2],{}]",
		"{\"a\":1,\"b\":[true,null],\"c\\\"\":{\"d\":\"e\"}}",
		kit_create,
	};
	struct arena *a = arena_create(1 << 20);

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct jv v = kit_json(a, texts[i]);
		struct buf out;

		buf_init(&out, 1 << 16);
		jv_write(&out, &v);
		CHECK_INT(texts[i], 1, facts_fit(&v, buf_len(&out)));
		CHECK_INT(texts[i], 0, facts_fit(&v, buf_len(&out) - 1));
		buf_fini(&out);
	}
	arena_destroy(a);
}

static void grants_come_from_a_table(void **state)
{
	struct engine *eng = kit_open(
		"return { profile \"p\" { operations = { \"read\", "
		"\"container.run\", \"exec\" }, rule(\"tops\", { "
		"operations = { \"container.top\" } }, function() end) }, "
		"profile \"none\" {}, profile \"seer\" { "
		"visibility = \"all\", harden = true }, profile \"classes\" { operations = { "
		"\"read\", \"launch\", \"exec\", \"container.attach\", "
		"\"lifecycle\", \"data-in\", "
		"\"data-out\", \"policy\", \"host\" } }, profile \"named\" { "
		"operations = { \"image.build\", \"system.session\", \"plugin.read\" } } }");
	static const struct {
		enum operation op;
		enum grant want;
	} rows[] = {
		{OP_UNKNOWN, GRANT_NONE},
		{OP_CONTAINER_LIST, GRANT_PLAIN},
		{OP_CONTAINER_TOP, GRANT_JUDGE},
		{OP_CONTAINER_CREATE, GRANT_JUDGE},
		{OP_CONTAINER_START, GRANT_JUDGE},
		{OP_CONTAINER_STOP, GRANT_PLAIN},
		{OP_CONTAINER_ATTACH, GRANT_JUDGE},
		{OP_EXEC_CREATE, GRANT_JUDGE},
		{OP_EXEC_RESIZE, GRANT_PLAIN},
		{OP_IMAGE_PULL, GRANT_NONE},
		{OP_CONTAINER_ARCHIVE_PUT, GRANT_NONE},
		{OP_COUNT, GRANT_NONE},
	};
	const struct profile *p = engine_profile(eng, "p"), *none = engine_profile(eng, "none");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_INT(rows[i].op < OP_COUNT ? operation_name(rows[i].op) : "none", rows[i].want,
			  profile_grant(p, rows[i].op));
	for (int op = 0; op < OP_COUNT; op++)
		CHECK_INT(operation_name((enum operation)op), GRANT_NONE,
			  profile_grant(none, (enum operation)op));
	for (int op = 1; op < OP_COUNT; op++) {
		bool named =
			op == OP_IMAGE_BUILD || op == OP_SYSTEM_SESSION || op == OP_PLUGIN_READ;

		CHECK_INT(operation_name((enum operation)op), named,
			  profile_grant(engine_profile(eng, "classes"), (enum operation)op) ==
				  GRANT_NONE);
		CHECK_INT(operation_name((enum operation)op), !named,
			  profile_grant(engine_profile(eng, "named"), (enum operation)op) ==
				  GRANT_NONE);
	}
	CHECK_INT("sees its own", 0, reach_sees_all(profile_reach(p)));
	CHECK_INT("does not harden", 0, profile_hardens(p));
	CHECK_INT("sees all", 1, reach_sees_all(profile_reach(engine_profile(eng, "seer"))));
	CHECK_INT("hardens", 1, profile_hardens(engine_profile(eng, "seer")));
	engine_close(eng);
}

/* The word `exec` is the group, without the class's attach. */
static void words_of_operations(void **state)
{
	static const struct {
		const char *word;
		enum operation yes, no;
	} rows[] = {
		{"exec", OP_EXEC_START, OP_CONTAINER_ATTACH},
		{"read", OP_EXEC_INSPECT, OP_EXEC_START},
		{"launch", OP_CONTAINER_CREATE, OP_CONTAINER_START},
		{"container.run", OP_CONTAINER_LOGS, OP_CONTAINER_EXPORT},
		{"container.copy", OP_CONTAINER_ARCHIVE_GET, OP_CONTAINER_EXPORT},
		{"image.pull", OP_IMAGE_PULL, OP_IMAGE_PUSH},
		{"data-out", OP_IMAGE_PUSH, OP_IMAGE_PULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char text[128];
		struct engine *eng;

		snprintf(text, sizeof(text), "return profile \"p\" { operations = { \"%s\" } }",
			 rows[i].word);
		eng = kit_open(text);
		CHECK_INT(rows[i].word, 1,
			  profile_grant(engine_profile(eng, "p"), rows[i].yes) != GRANT_NONE);
		CHECK_INT(rows[i].word, GRANT_NONE,
			  profile_grant(engine_profile(eng, "p"), rows[i].no));
		engine_close(eng);
	}
}

static void refusals_say_what_would_grant(void **state)
{
	static const struct {
		enum operation op;
		const char *reason, *text, *hint;
	} rows[] = {
		{OP_CONTAINER_LIST, "operation", "the profile \"p\" does not grant container.list",
		 "Ask the operator to add \"container.list\" to operations."},
		{OP_CONTAINER_CREATE, "operation",
		 "the profile \"p\" does not grant container.create",
		 "Ask the operator to add \"container.create\" or \"container.run\" to "
		 "operations."},
		{OP_CONTAINER_RENAME, "rename", "the profile \"p\" does not grant container.rename",
		 "Ask the operator to add \"container.rename\" to operations."},
		{OP_IMAGE_BUILD, "build", "the profile \"p\" does not grant image.build",
		 "Ask the operator to add \"image.build\" to operations."},
	};
	struct engine *eng = kit_open("return profile \"p\" {}");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *name = operation_name(rows[i].op);
		struct kit_answer ans;
		struct violation v;
		char facts[128];

		snprintf(facts, sizeof(facts), "{\"operation\":{\"name\":\"%s\"}}", name);
		kit_judge(eng, "p", facts, "", &ans);
		v = profile_refusal(engine_profile(eng, "p"), rows[i].op, ans.arena);
		CHECK_STR(name, rows[i].reason, kit_reasons(&ans));
		CHECK_STR(name, rows[i].reason, reason_name(v.reason));
		CHECK_STR(name, rows[i].text, v.text);
		CHECK_STR(name, rows[i].hint, v.hint);
		CHECK_STR(name, rows[i].text, ans.decision.violations.list[0].text);
		CHECK_STR(name, "operations", ans.decision.rule);
		kit_drop(&ans);
	}
	engine_close(eng);
}

/* What a rule says arrives whole, or cut cleanly, and never with control bytes. */
static void denials_carry_what_was_said(void **state)
{
	struct engine *eng =
		kit_open("return profile \"p\" { operations = { \"read\" }, rule(\"r\", { "
			 "operations = { \"read\" } }, "
			 "function(req)\n"
			 "deny(\"not \" .. req.identity.name, { field = \"F[0]\", value = 5, hint "
			 "= \"try this\", reason = "
			 "\"label\" })\n"
			 "deny(\"a\\nb\\27[2J\", { value = true })\n"
			 "local long = \"\\xc3\\xa4\" for i = 1, 10 do long = long .. long end\n"
			 "deny(\"x\" .. long, { value = \"x\" .. long, field = \"\" })\n"
			 "end) }");
	struct kit_answer ans;
	const struct violation *v = ans.decision.violations.list;

	(void)state;
	kit_judge(eng, "p",
		  "{\"operation\":{\"name\":\"container.list\"},\"identity\":{\"name\":\"ann\"}}",
		  "", &ans);
	CHECK_INT("all", 3, ans.decision.violations.count);
	CHECK_STR("text", "not ann", v[0].text);
	CHECK_STR("field", "F[0]", v[0].field);
	CHECK_STR("value", "5", v[0].value);
	CHECK_STR("hint", "try this", v[0].hint);
	CHECK_STR("reason", "label", reason_name(v[0].reason));
	CHECK_STR("control bytes", "a b [2J", v[1].text);
	CHECK_STR("a boolean", "true", v[1].value);
	CHECK_INT("cut between characters", VIOLATION_VALUE_MAX - 1, strlen(v[2].value));
	CHECK_INT("text", 399, strlen(v[2].text));
	CHECK_STR("profile", "p", ans.decision.profile);
	CHECK_STR("hash", profile_hash(engine_profile(eng, "p")), ans.decision.profile_hash);
	kit_drop(&ans);
	engine_close(eng);
}

static void rules_concern_launches_unless_they_say(void **state)
{
	struct engine *eng = kit_open(
		"return profile \"p\" { operations = { \"read\", \"container.run\" }, images = { "
		"\"**\" }, networks = { \"*\" }, mounts = { { \"/srv\", \"rw\" } }, rule(\"r\", "
		"function(req) deny(\"no\") end) }");
	static const struct {
		const char *operation, *want;
	} rows[] = {
		{"container.create", "rule"},
		{"container.start", "allow"},
		{"container.list", "allow"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kit_answer ans;
		char change[128];

		snprintf(change, sizeof(change), "{\"operation\":{\"name\":\"%s\"}}",
			 rows[i].operation);
		kit_judge(eng, "p", kit_create, change, &ans);
		CHECK_STR(rows[i].operation, rows[i].want, kit_reasons(&ans));
		kit_drop(&ans);
	}
	engine_close(eng);
}

/* Facts that are no object, or name no operation: nothing is granted. */
static void strange_facts_are_denied(void **state)
{
	static const char *const rows[] = {"{}",
					   "null",
					   "[]",
					   "5",
					   "{\"operation\":5}",
					   "{\"operation\":{\"name\":5}}",
					   "{\"operation\":{\"name\":\"unknown\"}}"};
	struct engine *eng = kit_open_ref();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kit_answer ans;

		kit_judge(eng, "ref", rows[i], "", &ans);
		CHECK_INT(rows[i], VERDICT_DENY, ans.decision.verdict);
		CHECK_STR(rows[i], "operation", kit_reasons(&ans));
		kit_drop(&ans);
	}
	engine_close(eng);
}

/* A fact of the wrong kind makes a check fail, and that denies. */
static void facts_of_the_wrong_kind_deny(void **state)
{
	static const char *const rows[] = {
		"{\"workload\":{\"mounts\":5}}",
		"{\"workload\":{\"mounts\":[5]}}",
		"{\"workload\":{\"limits\":{\"memory\":\"100\"}}}",
		"{\"workload\":{\"limits\":{\"memory\":true}}}",
		"{\"workload\":{\"image\":{\"name\":[]}}}",
		"{\"workload\":{\"network\":{\"mode\":{}}}}",
		"{\"workload\":\"x\"}",
	};
	struct engine *eng = kit_open_ref();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kit_answer ans;

		kit_judge(eng, "ref", kit_create, rows[i], &ans);
		CHECK_INT(rows[i], VERDICT_DENY, ans.decision.verdict);
		CHECK_INT(rows[i], -1, ans.result);
		CHECK_STR(rows[i], "rule_error",
			  reason_name(ans.decision.violations.list[0].reason));
		kit_drop(&ans);
	}
	engine_close(eng);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_are_made),
		cmocka_unit_test(the_cap_counts_what_is_written),
		cmocka_unit_test(grants_come_from_a_table),
		cmocka_unit_test(words_of_operations),
		cmocka_unit_test(refusals_say_what_would_grant),
		cmocka_unit_test(denials_carry_what_was_said),
		cmocka_unit_test(rules_concern_launches_unless_they_say),
		cmocka_unit_test(strange_facts_are_denied),
		cmocka_unit_test(facts_of_the_wrong_kind_deny),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
