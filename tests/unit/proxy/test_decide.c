/* decide.h: what lacks something that a decision needs is denied, each for its reason. */
#include "proxy/decide.h"

#include "tests/unit/check.h"

static const char rules[] =
	"return profile \"main\" { operations = { \"read\", \"container.run\" } }";

static void what_is_missing_denies(void **state)
{
	static const struct rule_source source = {"main.lua", {rules, sizeof(rules) - 1}};
	static const struct {
		const char *label;
		bool profile;
		enum operation op;
		enum reason refused, want;
	} rows[] = {
		{"nothing is missing", true, OP_SYSTEM_INFO, REASON_NONE, REASON_NONE},
		{"no profile", false, OP_SYSTEM_INFO, REASON_NONE, REASON_profile_missing},
		{"no operation", true, OP_UNKNOWN, REASON_NONE, REASON_profile_missing},
		{"no facts", true, OP_CONTAINER_CREATE, REASON_NONE, REASON_fact_unknown},
		{"no grant", true, OP_VOLUME_PRUNE, REASON_NONE, REASON_operation},
		{"refused before", true, OP_SYSTEM_INFO, REASON_path, REASON_path},
		{"refused before, no profile", false, OP_UNKNOWN, REASON_path, REASON_path},
	};
	struct err err = {0};
	struct engine *eng = engine_open(&source, 1, &engine_default_limits, &err);

	(void)state;
	CHECK_STR("rules", "", err.msg);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(1 << 16);
		struct violations refused = {0};
		struct decision d = {0};
		const struct judgement j = {
			.engine = eng,
			.profile = rows[i].profile ? engine_profile(eng, "main") : NULL,
			.op = rows[i].op,
			.refused = &refused,
		};

		if (rows[i].refused != REASON_NONE)
			violations_add(&refused, rows[i].refused);
		CHECK_INT(rows[i].label, rows[i].want == REASON_NONE, decide(&j, a, &d));
		CHECK_INT(rows[i].label, rows[i].want == REASON_NONE ? VERDICT_ALLOW : VERDICT_DENY,
			  d.verdict);
		CHECK_STR(rows[i].label, reason_name(rows[i].want),
			  reason_name(d.violations.count ? d.violations.list[0].reason
							 : REASON_NONE));
		arena_destroy(a);
	}
	engine_close(eng);
}

static bool says(void *arg, const struct decision *d)
{
	CHECK_INT("asked", VERDICT_ASK, d->verdict);
	return *(bool *)arg;
}

/* What rules ask for is a denial until a person has said yes; a denial stays one whoever says so.
 */
static void a_person_allows_what_was_asked_for_alone(void **state)
{
	static const char text[] = "return { profile \"ask\" { operations = { \"volume.prune\" },"
				   " rule(\"r\", { operations = { \"volume.prune\" } },"
				   " function(req) ask(\"who?\") end) },"
				   " profile \"deny\" { operations = { \"volume.prune\" },"
				   " rule(\"r\", { operations = { \"volume.prune\" } },"
				   " function(req) ask(\"who?\") deny(\"no\") end) } }";
	static const struct rule_source source = {"main.lua", {text, sizeof(text) - 1}};
	static const struct {
		const char *label, *profile;
		bool somebody, yes;
		enum verdict want;
	} rows[] = {
		{"nobody can be asked", "ask", false, true, VERDICT_ASK},
		{"nobody has said yes", "ask", true, false, VERDICT_ASK},
		{"somebody has", "ask", true, true, VERDICT_ALLOW},
		{"a denial", "deny", true, true, VERDICT_DENY},
	};
	struct err err = {0};
	struct engine *eng = engine_open(&source, 1, &engine_default_limits, &err);

	(void)state;
	CHECK_STR("rules", "", err.msg);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(1 << 16);
		struct violations refused = {0};
		struct decision d = {0};
		bool yes = rows[i].yes;
		const struct question q = {.op = OP_VOLUME_PRUNE, .backend = "engine"};
		const struct jv facts = engine_facts(a, &q);
		const struct judgement j = {
			.engine = eng,
			.profile = engine_profile(eng, rows[i].profile),
			.op = OP_VOLUME_PRUNE,
			.facts = &facts,
			.refused = &refused,
			.approved = rows[i].somebody ? says : NULL,
			.approved_arg = &yes,
		};

		CHECK_INT(rows[i].label, rows[i].want == VERDICT_ALLOW, decide(&j, a, &d));
		CHECK_INT(rows[i].label, rows[i].want, d.verdict);
		CHECK_INT(rows[i].label, rows[i].want == VERDICT_DENY ? VERDICT_DENY : VERDICT_ASK,
			  d.said);
		arena_destroy(a);
	}
	engine_close(eng);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_missing_denies),
		cmocka_unit_test(a_person_allows_what_was_asked_for_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
