/*
 * One object that runs: read, judged and looked at as its owner's start of it would be.
 * The exchange is one without a caller; its lookups go on here.
 */
#include "gate/base/log.h"
#include "proxy/decide.h"
#include "proxy/rejudge_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_OF_A_LOOK (12 * STEPS_MAX)

static void go_on(struct exchange *x);

/* --- beginning and ending --- */

static void prepare_nobody(struct look *l)
{
	l->listener =
		(struct conf_listener){.name = "", .backend = l->of->backend, .otherwise = ""};
	l->conn = (struct conn){.worker = l->of->worker, .listener = &l->listener, .fd = -1};
	l->conn.watch.fd = -1;
	l->conn.who = (struct identity){
		.name = "", .owner = "", .profile = "", .listener = "", .address = ""};
}

static bool begin_exchange(struct look *l)
{
	struct service *s = &l->of->worker->services[l->of->backend];

	l->x = exchange_create(&l->conn, span_of("/"));
	if (!l->x)
		return false;
	l->x->resume = go_on;
	l->x->look = l;
	l->x->recorded = true; /* it has records of its own */
	l->x->state = X_LOOKUP;
	s->ops->restart(s->backend, l->what.id, &l->x->req, l->x->arena);
	exchange_prepare_call(l->x);
	return s->ops->route(s->backend, &l->x->call) == 0;
}

struct look *look_begin(struct rejudging *of, const struct rejudged_id *what)
{
	struct look *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->of = of;
	l->what = *what;
	l->why = "";
	prepare_nobody(l);
	if (begin_exchange(l))
		return l;
	look_drop(l);
	return NULL;
}

void look_go(struct look *l)
{
	go_on(l->x);
}

void look_drop(struct look *l)
{
	look_stop_drop(l);
	if (l->x) {
		l->x->state = X_OVER;
		exchange_destroy(l->x);
	}
	free(l);
}

void look_over(struct look *l, enum finding f, bool again)
{
	rejudging_ended(l->of, l, f, again);
	look_drop(l);
}

bool look_must_end(const struct look *l)
{
	return l->phase == LOOK_RECORD || l->phase == LOOK_STOP;
}

void look_tick(struct look *l)
{
	struct exchange *x = l->x;

	if (look_must_end(l))
		look_stop_tick(l);
	else if (!lookup_tick(x) && x->deadline_ms && l->of->worker->loop.now_ms >= x->deadline_ms)
		lookup_timeout(x);
}

/* --- what came of it --- */

static void note_below(struct look *l)
{
	struct violation *v = violations_add(&l->x->decision.violations, REASON_runtime);
	bool seen = !l->seen.has_level || l->seen.level >= l->seen.minimum;
	const char *is = isolation_name(seen ? l->seen.seen : l->seen.level);
	char text[160];

	snprintf(text, sizeof(text), "it was made with the isolation \"%s\", and %s \"%s\"",
		 isolation_name(l->seen.minimum), seen ? "the kernel shows" : "the engine now says",
		 is);
	v->rule = "rejudge";
	v->field = "isolation.level";
	v->value = is;
	v->text = arena_strndup(l->x->arena, text, strlen(text));
	if (!v->text)
		v->text = "it is below the isolation that it was made with";
}

static void note_all(struct look *l, const struct violations *found)
{
	for (size_t i = 0; i < found->count; i++)
		*violations_add(&l->x->decision.violations, found->list[i].reason) = found->list[i];
}

static void name_why(struct look *l)
{
	const struct violations *v = &l->x->decision.violations;

	for (size_t i = 0; i < v->count; i++) {
		const struct violation *one = &v->list[i];

		if (rejudge_is_below(&l->seen) && strcmp(one->rule, "rejudge") != 0)
			continue;
		l->why = one->text && *one->text ? one->text : reason_what(one->reason);
		return;
	}
	l->why = "it could not be known whether it may run";
}

static void conclude(struct look *l)
{
	bool last = l->what.tries + 1 >= REJUDGE_TRIES;
	enum finding f = rejudge_weigh(&l->seen, last);

	if (f == FINDING_FINE || (f == FINDING_UNKNOWN && !last)) {
		look_over(l, f, f == FINDING_UNKNOWN);
		return;
	}
	if (rejudge_is_below(&l->seen))
		note_below(l);
	l->x->decision.verdict = l->x->decision.would = VERDICT_DENY;
	name_why(l);
	look_report(l, f);
	if (f == FINDING_STOP)
		look_stop(l);
	else
		look_over(l, f, false);
}

/* --- what the kernel shows --- */

static void read_attestation(struct look *l)
{
	const struct jv *doc = &l->x->call.attestation, *unknown = jv_get(doc, "unknown");
	enum isolation level = ISOLATION_NONE;

	if (doc->kind != JV_OBJECT)
		return;
	/* "none" says that it could not be told, not that nothing holds it. */
	l->seen.was_seen = isolation_find(span_of(jv_str(doc, "level", "")), &level) == 0 &&
			   level != ISOLATION_NONE;
	l->seen.seen = level;
	l->seen.lacks = !l->seen.was_seen || (unknown && unknown->count);
	l->seen.differs = jv_get(doc, "differs") != NULL;
}

static void check_over(struct look *l)
{
	struct exchange *x = l->x;
	const char *state = jv_str(&x->call.attestation, "state", "");

	/* What has ended is nobody's concern, unless it comes back. */
	if (strcmp(state, "ended") == 0 && !l->again.comes_back) {
		look_over(l, FINDING_GONE, false);
		return;
	}
	read_attestation(l);
	if (strcmp(state, "ended") == 0)
		l->seen.was_seen = l->seen.lacks = false;
	/* A mount that somebody could have exchanged must be seen, whatever the profile says. */
	if (x->call.refused.count && !l->seen.differs)
		l->seen.wants_attested = l->seen.lacks = true;
	note_all(l, &x->call.refused);
	conclude(l);
}

/* --- judging --- */

static const struct reach *own_alone(void)
{
	static const struct reach_entry own = {
		.by = REACH_BY_OWNER, .access = ACCESS_FULL, .kinds = REACH_OWNED};
	static const struct reach reach = {.entries = &own, .count = 1};

	return &reach;
}

/* Who would ask, under one of the profiles. */
static void take_candidate(struct look *l)
{
	const struct candidate *c = &l->candidates[l->candidate];
	struct exchange *x = l->x;

	l->conn.identity = c->identity;
	l->conn.who.name = c->identity ? c->identity->name : "";
	l->conn.who.owner = l->again.owner;
	l->conn.who.profile = c->profile ? profile_name(c->profile) : "";
	l->conn.who.listener = c->listener ? c->listener : "";
	x->profile = c->profile;
	x->decision = (struct decision){0};
	x->has_facts = false;
	exchange_prepare_call(x);
	if (!c->profile)
		x->call.reach = own_alone();
	if (c->profile && profile_running(c->profile) > l->seen.running)
		l->seen.running = profile_running(c->profile);
	l->seen.wants_attested = x->call.wants_attested;
	l->phase = LOOK_STEP;
}

static void read_level(struct look *l)
{
	const struct jv *isolation = jv_get(&l->x->call.workload.facts, "isolation");
	enum isolation level = ISOLATION_NONE;

	l->seen.has_level = isolation_find(span_of(jv_str(isolation, "level", "")), &level) == 0;
	l->seen.level = level;
}

/* The answer of one profile; another one may have a better one. */
static bool judged(struct look *l, bool permitted, bool trouble)
{
	l->seen.permitted = permitted;
	l->seen.judged = !trouble;
	if (permitted || l->candidate + 1 >= l->candidate_count)
		return true;
	l->candidate++;
	take_candidate(l);
	return false;
}

static bool judge(struct look *l)
{
	struct exchange *x = l->x;
	struct judgement j = {.engine = l->of->worker->rules,
			      .profile = x->profile,
			      .op = x->call.op,
			      .facts = &x->facts,
			      .refused = &x->call.refused};
	bool permitted;

	read_level(l);
	quota_runs_already(x);
	judge_make_facts(x);
	j.override = override_of(l->of->worker, x->profile, x->arena);
	permitted = !arena_spent(x->arena) && decide(&j, x->arena, &x->decision);
	judge_name_fields(x);
	return judged(l, permitted, !permitted && rejudge_is_trouble(&x->decision.violations));
}

/* The adapter could not make facts of it, or refuses it whatever the rules say. */
static bool refused(struct look *l)
{
	struct exchange *x = l->x;

	x->decision.violations = x->call.refused;
	x->decision.profile = x->profile ? profile_name(x->profile) : "";
	x->decision.profile_hash = x->profile ? profile_hash(x->profile) : "";
	return judged(l, false, rejudge_is_trouble(&x->call.refused));
}

static void too_many_steps(struct look *l)
{
	violations_add(&l->x->call.refused, REASON_internal)->text = "the adapter asks without end";
	l->candidate = l->candidate_count;
	refused(l);
	conclude(l);
}

/* --- going on --- */

static void does_not_run(struct look *l)
{
	if (l->what.stop_failed && l->again.comes_back && *l->again.owner)
		look_keep_ended(l);
	else
		look_over(l, l->what.stop_failed ? FINDING_STOP : FINDING_GONE, false);
}

static void who_is_known(struct look *l)
{
	const struct rejudging *r = l->of;

	if (!l->again.runs || !*l->again.owner) {
		does_not_run(l);
		return;
	}
	if (look_quarantined(l))
		return;
	l->seen.has_min = l->again.has_minimum;
	l->seen.minimum = l->again.minimum;
	l->candidate_count =
		rejudge_candidates(r->worker->conf, r->worker->rules, &l->again, l->candidates);
	if (l->candidate_count && *l->again.listener) {
		l->maker = (struct conf_identity){.name = l->again.owner,
						  .owner = l->again.owner,
						  .profile = l->again.profile,
						  .own_socket = ""};
		l->candidates[0].identity = &l->maker;
	}
	if (!l->candidate_count) { /* of its isolation can be spoken all the same */
		l->candidates[0] = (struct candidate){NULL, NULL, ""};
		l->candidate_count = 1;
		l->seen.running = RUNNING_MINIMUM;
	}
	take_candidate(l);
	go_on(l->x);
}

static void step_who(struct look *l)
{
	struct exchange *x = l->x;

	switch (x->service->ops->again(x->service->backend, &x->call, &l->again)) {
	case STEP_LOOKUP:
		lookup_start(x);
		break;
	case STEP_READY:
		who_is_known(l);
		break;
	case STEP_REFUSED:
		refused(l);
		conclude(l);
		break;
	}
}

static void step_facts(struct look *l)
{
	struct exchange *x = l->x;
	bool over = false;

	switch (x->service->ops->step(x->service->backend, &x->call)) {
	case STEP_LOOKUP:
		lookup_start(x);
		return;
	case STEP_READY:
		over = judge(l);
		break;
	case STEP_REFUSED:
		if (refused(l)) {
			conclude(l);
			return;
		}
		break;
	}
	if (over)
		l->phase = LOOK_CHECK;
	go_on(x);
}

static void step_check(struct look *l)
{
	struct exchange *x = l->x;

	switch (x->service->ops->check(x->service->backend, &x->call, (struct span){"", 0})) {
	case STEP_LOOKUP:
		lookup_start(x);
		break;
	case STEP_READY:
	case STEP_REFUSED:
		check_over(l);
		break;
	}
}

static void go_on(struct exchange *x)
{
	struct look *l = x->look;

	x->call.now_ms = l->of->worker->loop.now_ms;
	if (++x->steps > STEPS_OF_A_LOOK) {
		too_many_steps(l);
		return;
	}
	switch (l->phase) {
	case LOOK_WHO:
		step_who(l);
		break;
	case LOOK_STEP:
		step_facts(l);
		break;
	case LOOK_CHECK:
		step_check(l);
		break;
	case LOOK_RECORD:
	case LOOK_STOP:
		break;
	}
}
