/*
 * streams.c - streams that were begun under rules which hold no longer.
 *
 * A worker that is replaced serves what it has begun to its end.  Where a profile
 * says close_streams = true, its streams (attached terminals, commands, logs, events)
 * are judged again by the rules that follow, with the facts that they were let
 * through with, and what those refuse ends at once.  What cannot be judged ends, too.
 */
#include "gate/base/log.h"
#include "proxy/decide.h"
#include "proxy/worker_priv.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct successor {
	const struct proxy_conf *conf; /* NULL: it could not be read */
	struct engine *rules;
};

static bool is_stream(const struct exchange *x)
{
	return x->state == X_RELAY || (x->state == X_REPLYING && x->answer.kind == ANSWER_STREAM);
}

/* The profile by which the next generation judges this caller; NULL: it does not know him. */
static const char *profile_of(const struct proxy_conf *next, const struct conn *c)
{
	if (c->listener->alone) /* made at run time: it outlives reloads as it is */
		return c->who.profile;
	for (size_t i = 0; *c->who.name && i < next->identity_count; i++)
		if (strcmp(next->identities[i].name, c->who.name) == 0)
			return next->identities[i].profile;
	for (size_t i = 0; !*c->who.name && i < next->listener_count; i++)
		if (strcmp(next->listeners[i].name, c->who.listener) == 0)
			return next->listeners[i].otherwise;
	return NULL;
}

static bool same_setting(const struct profile *a, const struct profile *b, const char *name)
{
	const struct jv *x = jv_get(profile_settings(a), name),
			*y = jv_get(profile_settings(b), name);

	return x && y ? jv_equal(x, y) : x == y;
}

/*
 * What an object of others is seen by, and what of a stream of rows is shown, was looked up when
 * the stream began: a profile that shows other things than then is not asked, it refuses.
 */
static bool shows_the_same(const struct exchange *x, const struct profile *p)
{
	bool others =
		(*x->call.object.id && !x->call.object.mine) || x->call.op == OP_SYSTEM_EVENTS;

	return !others ||
	       (same_setting(x->profile, p, "visibility") && same_setting(x->profile, p, "redact"));
}

static bool still_allowed(const struct exchange *x, const struct profile *p, struct engine *rules)
{
	struct violations *none = arena_take(x->arena, sizeof(*none));
	struct decision *d = arena_take(x->arena, sizeof(*d));
	const struct judgement again = {.engine = rules,
					.profile = p,
					.op = x->call.op,
					.facts = x->has_facts ? &x->facts : NULL,
					.refused = none,
					.override = override_of(x->worker, p, x->arena)};

	return none && d && shows_the_same(x, p) && decide(&again, x->arena, d);
}

static bool must_end(const struct exchange *x, const struct successor *next)
{
	const char *name = next->conf ? profile_of(next->conf, x->conn) : NULL;
	const struct profile *p = name && next->rules ? engine_profile(next->rules, name) : NULL;

	if (!profile_closes_streams(p ? p : x->profile))
		return false;
	return !p || !still_allowed(x, p, next->rules);
}

static bool any_stream(const struct worker *w)
{
	for (const struct conn *c = w->conns; c; c = c->next)
		if (c->exchange && c->exchange->profile && is_stream(c->exchange))
			return true;
	return false;
}

static void end_stream(struct conn *c)
{
	snprintf(c->exchange->err, sizeof(c->exchange->err),
		 "ended: the rules that are in force now do not allow it");
	connection_give_up(c);
}

void streams_follow(struct worker *w, int bundle)
{
	struct successor next = {0};
	struct err err = {0};
	void *kept = NULL;
	size_t ended = 0;

	if (!any_stream(w) || !w->conf->read_next) {
		close(bundle);
		return;
	}
	if (w->conf->read_next(bundle, &next.conf, &kept, &err) == 0)
		next.rules = engine_open(next.conf->rules, next.conf->rule_count,
					 &next.conf->rule_limits, &err);
	if (err.kind != ERR_NONE)
		log_line("the rules that follow cannot be read: %s", err.msg);
	for (struct conn *c = w->conns; c; c = c->next)
		if (c->exchange && c->exchange->profile && is_stream(c->exchange) &&
		    must_end(c->exchange, &next)) {
			end_stream(c);
			ended++;
		}
	if (ended)
		log_line("%zu streams ended with the rules that allowed them", ended);
	engine_close(next.rules);
	w->conf->drop_next(kept);
}
