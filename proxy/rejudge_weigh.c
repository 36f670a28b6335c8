#include "proxy/rejudge_priv.h"

#include <string.h>

const char *rejudge_cause_name(enum rejudge_cause c)
{
	static const char *const names[] = {
		[CAUSE_START] = "start",
		[CAUSE_RECONNECT] = "reconnect",
		[CAUSE_RELOAD] = "reload",
		[CAUSE_ENGINE_START] = "engine_start",
		[CAUSE_ENGINE_RELOAD] = "engine_reload",
		[CAUSE_AGAIN] = "again",
		[CAUSE_QUARANTINE] = "quarantine",
	};
	_Static_assert(sizeof(names) / sizeof(*names) == CAUSE_COUNT, "a name each");

	return names[c];
}

const char *finding_name(enum finding f)
{
	static const char *const names[] = {
		[FINDING_UNKNOWN] = "unknown", [FINDING_FINE] = "fine", [FINDING_REPORT] = "report",
		[FINDING_STOP] = "stop",       [FINDING_GONE] = "gone",
	};
	_Static_assert(sizeof(names) / sizeof(*names) == FINDING_COUNT, "a name each");

	return names[f];
}

/* --- weighing --- */

bool rejudge_is_below(const struct weighing *w)
{
	if (!w->has_min)
		return false;
	return (w->has_level && w->level < w->minimum) || (w->was_seen && w->seen < w->minimum);
}

static enum finding unknown(const struct weighing *w, bool last)
{
	return last && w->running == RUNNING_STOP ? FINDING_STOP : FINDING_UNKNOWN;
}

enum finding rejudge_weigh(const struct weighing *w, bool last)
{
	bool attested_differs = w->differs && w->wants_attested;

	if (rejudge_is_below(w))
		return w->running == RUNNING_REPORT ? FINDING_REPORT : FINDING_STOP;
	if (!w->judged)
		return unknown(w, last);
	if (attested_differs && w->running != RUNNING_REPORT)
		return FINDING_STOP; /* as at a start */
	if (!w->permitted || w->differs)
		return w->running == RUNNING_STOP ? FINDING_STOP : FINDING_REPORT;
	if ((w->has_min && !w->has_level) || (w->wants_attested && w->lacks))
		return unknown(w, last);
	return FINDING_FINE;
}

static bool is_trouble(enum reason r)
{
	static const enum reason trouble[] = {
		REASON_profile_missing, REASON_fact_unknown,      REASON_facts_too_large,
		REASON_rule_error,      REASON_rule_limit,        REASON_engine_unreachable,
		REASON_engine_timeout,  REASON_engine_reply,      REASON_no_memory,
		REASON_internal,        REASON_audit_unavailable, REASON_busy,
	};

	for (size_t i = 0; i < sizeof(trouble) / sizeof(*trouble); i++)
		if (r == trouble[i])
			return true;
	return false;
}

bool rejudge_is_trouble(const struct violations *v)
{
	for (size_t i = 0; i < v->count; i++)
		if (!is_trouble(v->list[i].reason))
			return false;
	return v->count > 0;
}

/* --- whose profile --- */

static void offer(const struct candidate *one, struct candidate *ret, size_t *count)
{
	if (!one->profile || *count == REJUDGE_CANDIDATES)
		return;
	for (size_t i = 0; i < *count; i++)
		if (ret[i].profile == one->profile)
			return;
	ret[(*count)++] = *one;
}

static const char *listener_of(const struct proxy_conf *conf, size_t identity)
{
	for (size_t i = 0; i < conf->listener_count; i++)
		for (size_t k = 0; k < conf->listeners[i].identity_count; k++)
			if (conf->listeners[i].identities[k] == identity)
				return conf->listeners[i].name;
	return "";
}

/* "uid-1000@agents": somebody whom only the listener lets in; see connection.c. */
static bool comes_by(const char *owner, const struct conf_listener *l)
{
	const char *at = strrchr(owner, '@');
	const char *callers = l->callers && *l->callers ? l->callers : l->name;

	return at && l->otherwise && *l->otherwise && strcmp(at + 1, callers) == 0;
}

static size_t owners_own(const struct proxy_conf *conf, const struct engine *rules,
			 const char *owner, struct candidate *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < conf->identity_count; i++) {
		const struct conf_identity *who = &conf->identities[i];
		const struct candidate one = {engine_profile(rules, who->profile), who,
					      listener_of(conf, i)};

		if (strcmp(who->owner, owner) == 0)
			offer(&one, ret, &count);
	}
	for (size_t i = 0; i < conf->listener_count; i++) {
		const struct conf_listener *l = &conf->listeners[i];

		if (comes_by(owner, l)) {
			const struct candidate one = {engine_profile(rules, l->otherwise), NULL,
						      l->name};

			offer(&one, ret, &count);
		}
	}
	return count;
}

size_t rejudge_candidates(const struct proxy_conf *conf, const struct engine *rules,
			  const struct again *what, struct candidate ret[REJUDGE_CANDIDATES])
{
	const struct profile *made = *what->profile ? engine_profile(rules, what->profile) : NULL;
	size_t count;

	ret[0] = (struct candidate){made, NULL, what->listener};
	if (*what->listener)
		return made ? 1 : 0;
	count = owners_own(conf, rules, what->owner, ret);
	for (size_t i = 0; made && i < count; i++)
		if (ret[i].profile == made) {
			ret[0] = ret[i];
			return 1;
		}
	if (count || !made)
		return count;
	ret[0] = (struct candidate){made, NULL, ""};
	return 1;
}
