/* doctor_served.c - which profiles ask for more isolation than a backend has, and why. */
#include "gate/doctor.h"

#include "rules/engine.h"

#include <string.h>

static bool launches(const struct profile *p)
{
	return profile_grant(p, OP_CONTAINER_CREATE) != GRANT_NONE;
}

/* Whether callers of a listener in front of this backend can have this profile. */
static bool is_used(const struct proxy_conf *c, const struct conf_backend *b, const char *profile)
{
	for (size_t i = 0; i < c->listener_count; i++) {
		const struct conf_listener *l = &c->listeners[i];

		if (l->metrics || &c->backends[l->backend] != b)
			continue;
		if (strcmp(l->otherwise, profile) == 0)
			return true;
		for (size_t k = 0; k < l->identity_count; k++)
			if (strcmp(c->identities[l->identities[k]].profile, profile) == 0)
				return true;
	}
	return false;
}

/* A line for each runtime: what it is, and what is left of it. */
static const char *why_not(struct findings *f, const struct isolation_service *s)
{
	const char *copy;
	struct buf text;

	buf_init(&text, 65536);
	for (size_t i = 0; i < s->runtime_count; i++) {
		const struct isolation_runtime *rt = &s->runtimes[i];

		buf_printf(&text, "runtime '%s' (%s) reaches %s\n", rt->name,
			   *rt->said ? rt->said : "program unknown", isolation_name(rt->is.level));
		for (size_t k = 0; k < rt->is.line_count; k++)
			buf_printf(&text, "  %s%s%s: %s\n", rt->is.lines[k].field,
				   *rt->is.lines[k].value ? " = " : "", rt->is.lines[k].value,
				   rt->is.lines[k].why);
	}
	for (size_t i = 0; i < s->note_count; i++)
		buf_printf(&text, "all: %s\n", isolation_reason(s->notes[i])->why);
	if (!s->runtime_count)
		buf_puts(&text, "it names no runtime\n");
	copy = arena_strndup(f->arena, buf_span(&text).at, buf_len(&text));
	buf_fini(&text);
	return copy ? copy : "";
}

static struct engine *open_rules(const struct findings *f)
{
	const struct proxy_conf *c = &f->config->proxy;
	struct err err = {0};

	return engine_open(c->rules, c->rule_count, &c->rule_limits, &err);
}

void doctor_served(struct findings *f, const struct conf_backend *b,
		   const struct isolation_service *s)
{
	enum isolation best = isolation_best(s);
	struct engine *rules = f->config && *b->name ? open_rules(f) : NULL;
	const struct profile *p;

	for (size_t i = 0; rules && (p = engine_profile_at(rules, i)); i++)
		if (launches(p) && profile_minimum(p) > best)
			finding_add(f,
				    is_used(&f->config->proxy, b, profile_name(p)) ? FINDING_WEAK
										   : FINDING_NOTE,
				    why_not(f, s),
				    "Give the engine a runtime that reaches it, or the callers "
				    "another backend.",
				    "profile '%s' cannot be served by backend '%s': it asks for "
				    "'%s', and '%s' is the best there",
				    profile_name(p), b->name, isolation_name(profile_minimum(p)),
				    isolation_name(best));
	engine_close(rules);
	f->asked++;
	if (best > f->best)
		f->best = best;
}

void doctor_unserved(struct findings *f)
{
	struct engine *rules = f->config && f->asked ? open_rules(f) : NULL;
	const struct profile *p;

	for (size_t i = 0; rules && (p = engine_profile_at(rules, i)); i++)
		if (launches(p) && profile_minimum(p) > f->best)
			finding_add(f, FINDING_NOTE,
				    "Every launch under it is refused, on purpose: weaker than "
				    "asked is not served.",
				    "",
				    "profile '%s': no backend at hand reaches '%s'; the best that "
				    "was found is '%s'",
				    profile_name(p), isolation_name(profile_minimum(p)),
				    isolation_name(f->best));
	engine_close(rules);
}
