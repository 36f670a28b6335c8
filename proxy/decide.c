#include "proxy/decide.h"

#include <string.h>

static void deny(struct decision *ret, enum reason reason, const char *rule, const char *text)
{
	struct violation *v = violations_add(&ret->violations, reason);

	v->rule = rule;
	v->text = text;
	ret->verdict = ret->would = VERDICT_DENY;
}

/* A rule that fails or runs out has not allowed. */
static void judge(const struct judgement *j, struct arena *a, struct decision *ret)
{
	const struct matter what = {j->profile, j->facts, j->override};
	struct err err = {0};

	if (engine_judge_under(j->engine, &what, a, ret, &err) == 0)
		return;
	ret->verdict = VERDICT_DENY;
	if (!ret->violations.count)
		deny(ret, err.kind == ERR_LIMIT ? REASON_rule_limit : REASON_rule_error, "engine",
		     arena_strndup(a, err.msg, strlen(err.msg)));
}

/* What was asked for stays in the violations, for the record. */
static void approve(struct decision *ret)
{
	ret->verdict = VERDICT_ALLOW;
	if (ret->would == VERDICT_ASK)
		ret->would = VERDICT_ALLOW;
}

bool decide(const struct judgement *j, struct arena *a, struct decision *ret)
{
	ret->verdict = ret->would = VERDICT_DENY;
	ret->override = NULL;
	ret->profile = j->profile ? profile_name(j->profile) : "";
	ret->profile_hash = j->profile ? profile_hash(j->profile) : "";
	if (j->refused->count) {
		ret->violations = *j->refused;
		return false;
	}
	if (!j->profile || j->op == OP_UNKNOWN) {
		deny(ret, REASON_profile_missing, "canonical", "");
		return false;
	}
	switch (profile_grant(j->profile, j->op)) {
	case GRANT_NONE:
		*violations_add(&ret->violations, REASON_operation) =
			profile_refusal(j->profile, j->op, a);
		break;
	case GRANT_PLAIN:
		ret->verdict = ret->would = VERDICT_ALLOW;
		ret->rule = "operations";
		break;
	case GRANT_JUDGE:
		if (j->facts)
			judge(j, a, ret);
		else
			deny(ret, REASON_fact_unknown, "canonical", "");
		break;
	}
	ret->judged = true;
	ret->said = ret->verdict;
	if (ret->verdict == VERDICT_ASK && j->approved && j->approved(j->approved_arg, ret))
		approve(ret);
	return ret->verdict == VERDICT_ALLOW;
}
