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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_missing_denies)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
