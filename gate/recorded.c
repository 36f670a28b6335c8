#include "gate/recorded.h"

#include "audit/read.h"
#include "proxy/decide.h"

#include <string.h>

#define ARENA_MAX ((size_t)4 << 20) /* one record, parsed and judged */

struct reading {
	recorded_fn *fn;
	void *arg;
	struct err *err;
};

static void take(struct recorded *r)
{
	const struct jv *pol = jv_get(&r->record, "pol"), *actor = jv_get(&r->record, "actor");

	r->id = jv_str(&r->record, "id", "");
	r->time = jv_str(&r->record, "t", "");
	r->op_name = jv_str(&r->record, "op", "");
	r->op = operation_find(span_of(r->op_name));
	r->verdict = jv_str(&r->record, "verdict", "");
	r->would = jv_str(&r->record, "would", r->verdict);
	r->reason = jv_str(&r->record, "reason", "");
	r->judged = jv_str(&r->record, "judged", "");
	r->profile = jv_str(pol, "profile", "");
	r->hash = jv_str(pol, "profile_sha256", "");
	r->identity = jv_str(actor, "identity", "");
	r->facts = jv_get(&r->record, "facts");
	r->violations = jv_get(&r->record, "violations");
	if (r->violations && r->violations->kind != JV_ARRAY)
		r->violations = NULL;
}

static int on_line(void *arg, struct span line)
{
	struct reading *in = arg;
	struct recorded r = {0};
	enum jv_fault fault;
	struct arena *a;
	const char *type;
	int rc = 0;

	/* Most lines are none; a look saves their parsing. */
	if (!memmem(line.at, line.len, ",\"verdict\":\"", 12))
		return 0;
	a = arena_create(ARENA_MAX);
	if (!a)
		return err_sys(in->err, "no memory");
	if (jv_parse(a, line, &r.record, &fault, in->err) < 0) {
		rc = err_wrap(in->err, "a record of the log");
	} else {
		type = jv_str(&r.record, "type", "");
		take(&r);
		if (strcmp(type, "decision") == 0 || strcmp(type, "read") == 0)
			rc = in->fn(in->arg, &r, a);
	}
	arena_destroy(a);
	return rc;
}

int recorded_each(const char *dir, recorded_fn *fn, void *arg, struct err *err)
{
	struct reading in = {fn, arg, err};

	return log_read(dir, on_line, &in, err);
}

/* --- whose profile --- */

static const struct conf_listener *find_listener(const struct proxy_conf *conf, const char *name)
{
	for (size_t i = 0; i < conf->listener_count; i++)
		if (strcmp(conf->listeners[i].name, name) == 0)
			return &conf->listeners[i];
	return NULL;
}

static const char *profile_of_identity(const struct proxy_conf *conf, const char *name)
{
	for (size_t i = 0; i < conf->identity_count && *name; i++)
		if (strcmp(conf->identities[i].name, name) == 0)
			return conf->identities[i].profile;
	return NULL;
}

const struct profile *recorded_profile(const struct recorded *r, const struct proxy_conf *conf,
				       const struct engine *eng)
{
	const char *name = profile_of_identity(conf, r->identity);
	const struct conf_listener *l = find_listener(conf, jv_str(&r->record, "listener", ""));

	if (!name && l && *l->otherwise)
		name = l->otherwise;
	return engine_profile(eng, name ? name : r->profile);
}

/* --- judging --- */

/* The facts as they were, under the name of the profile that judges now. */
static struct jv facts_for(const struct recorded *r, const struct profile *p, struct arena *a)
{
	struct jv facts = jv_object();

	for (size_t i = 0; i < r->facts->count; i++) {
		const struct jv_member *m = &r->facts->members[i];
		struct jv value = m->value;

		if (span_is(m->key, "identity") && value.kind == JV_OBJECT)
			jv_set(a, &value, "profile", jv_string(profile_name(p)));
		jv_add(a, &facts, m->key, value);
	}
	return facts;
}

/* What an operator had put above that profile, and no other; false: nothing. */
static bool read_override(const struct recorded *r, const struct profile *p, struct override *ret)
{
	const struct jv *o = jv_get(&r->record, "override");

	if (!o || !p || strcmp(profile_name(p), r->profile) != 0 ||
	    strcmp(jv_str(o, "mode", ""), rule_mode_name(MODE_WARN)) != 0)
		return false;
	*ret = (struct override){MODE_WARN, jv_str(o, "ticket", "")};
	return true;
}

/*
 * What an owner has is counted where the profile has a quota, and no record of before has it: that
 * a new quota cannot be held against it says nothing of the quota.
 */
static bool is_uncounted(const struct recorded *r, const struct decision *d)
{
	if (strcmp(r->judged, verdict_name(VERDICT_DENY)) == 0)
		return false;
	for (size_t i = 0; i < d->violations.count; i++)
		if (strcmp(d->violations.list[i].rule, "quota") != 0 ||
		    d->violations.list[i].reason != REASON_fact_unknown)
			return false;
	return d->violations.count > 0;
}

enum rejudged recorded_judge(const struct recorded *r, struct engine *eng, const struct profile *p,
			     struct arena *a, struct decision *ret)
{
	struct violations refused = {0};
	struct judgement j = {.engine = eng, .profile = p, .op = r->op, .refused = &refused};
	struct override override;
	struct jv facts;

	*ret = (struct decision){0};
	if (!*r->judged)
		return REJUDGED_UNASKED;
	if (p && profile_grant(p, r->op) == GRANT_JUDGE && !r->facts)
		return REJUDGED_WITHOUT_FACTS;
	if (p && r->facts && r->facts->kind == JV_OBJECT) {
		facts = facts_for(r, p, a);
		j.facts = &facts;
	}
	if (read_override(r, p, &override))
		j.override = &override;
	if (decide(&j, a, ret)) {
		/* The verdict says it, too. */
	}
	ret->override = NULL; /* it does not outlive this */
	return is_uncounted(r, ret) ? REJUDGED_WITHOUT_FACTS : REJUDGED;
}
