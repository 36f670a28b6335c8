#include "rules/decision.h"

#include "rules/engine.h"

static const char *const verdicts[] = {"deny", "ask", "allow"};
_Static_assert(sizeof(verdicts) / sizeof(*verdicts) == VERDICT_COUNT, "a name each");

static const char *const modes[] = {"enforce", "warn", "shadow"};
_Static_assert(sizeof(modes) / sizeof(*modes) == MODE_COUNT, "a name each");

static const char *const outcomes[] = {"not run", "passed",   "warned", "asked",
				       "denied",  "softened", "failed"};
_Static_assert(sizeof(outcomes) / sizeof(*outcomes) == OUTCOME_COUNT, "a name each");

const char *rule_outcome_name(enum rule_outcome o)
{
	return outcomes[o];
}

const char *verdict_name(enum verdict v)
{
	return verdicts[v];
}

const char *rule_mode_name(enum rule_mode m)
{
	return modes[m];
}
