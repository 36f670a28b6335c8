/* What happens in an engine is held against what it was asked for. */
#include "proxy/observe_priv.h"

#include "gate/base/clock.h"
#include "gate/base/log.h"
#include "proxy/metrics.h"
#include "proxy/rejudge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRATCH_BYTES ((size_t)64 << 20) /* a list of containers, read */

static struct observed *of_backend(struct observe *o, size_t backend)
{
	struct observed *of = &o->of[backend];

	return of->shared && of->how != OBSERVE_OFF ? of : NULL;
}

/* --- what is pending --- */

static void unlink_pending(struct observe *o, struct pending *p)
{
	struct pending **at = &o->first;

	while (*at && *at != p)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = p->next;
	if (o->last == &p->next)
		o->last = at;
	o->pending_count--;
}

/* Whoever takes over from this watcher need not look at it again. */
static void drop(struct observe *o, struct pending *p)
{
	if (p->line)
		watched_known(o->of[p->backend].shared, p->line);
	unlink_pending(o, p);
	observe_ask_end(p->ask);
	arena_destroy(p->arena);
	free(p);
}

static bool copy_text(struct arena *a, const char **text)
{
	const char *from = *text ? *text : "";

	*text = arena_strndup(a, from, strlen(from));
	return *text != NULL;
}

/* NULL: there is no room for one more. */
static struct pending *keep(struct observe *o, const struct pending *from)
{
	struct pending *p = calloc(1, sizeof(*p));
	struct happening *h;

	if (!p || o->pending_count == PENDING_MAX) {
		free(p);
		return NULL;
	}
	*p = *from;
	p->next = NULL;
	p->arena = arena_create(PENDING_BYTES);
	h = &p->h;
	if (!p->arena || !copy_text(p->arena, &h->kind) || !copy_text(p->arena, &h->id) ||
	    !copy_text(p->arena, &h->name) || !copy_text(p->arena, &h->container) ||
	    !copy_text(p->arena, &h->image) || !copy_text(p->arena, &h->decision)) {
		arena_destroy(p->arena);
		free(p);
		return NULL;
	}
	/* One that is longer than what is kept is no health check. */
	if (!copy_text(p->arena, &h->command))
		h->command = "";
	*o->last = p;
	o->last = &p->next;
	o->pending_count++;
	return p;
}

/* --- what explains it --- */

static void count_judged(struct observe *o, const struct pending *p)
{
	observe_seen(o, p->backend);
	o->of[p->backend].shared->sums.judged++;
	metrics_add(o->worker->conf->metrics, METRIC_observed_judged, 1);
}

static void count_engine(struct observe *o, const struct pending *p)
{
	observe_seen(o, p->backend);
	o->of[p->backend].shared->sums.by_engine++;
	metrics_add(o->worker->conf->metrics, METRIC_observed_by_engine, 1);
}

/* A container is attached to its networks before it starts; whether it may is said of the start. */
static bool belongs_to_start(struct observe *o, const struct pending *p)
{
	const struct life_of *l = observe_life(o, p->h.container);

	return p->h.effect == EFFECT_CONNECT &&
	       ((l->started_ns >= p->h.at_ns &&
		 l->started_ns - p->h.at_ns < GRACE_MS * 1000000ULL) ||
		watched_starts(o->worker->conf->watched, p->backend, p->h.container));
}

/*
 * A container's networks at its start, and a decision to attach it to one, look alike in events:
 * what is from before such a decision is none of its doing, as far as clocks agree.
 */
static bool is_explained(struct observe *o, const struct pending *p)
{
	struct watched *w = o->worker->conf->watched;
	const struct watched_read r = {.at_ms = p->read_ms, .line = p->line, .past = p->past};

	if (!watched_explain_in_order(w, p->backend, &p->h, &r) && !belongs_to_start(o, p) &&
	    !watched_explain(w, p->backend, &p->h, &r))
		return false;
	count_judged(o, p);
	return true;
}

/* What nobody decided may not be what would be allowed. */
static void judge_again(struct observe *o, const struct pending *p)
{
	if (p->h.effect == EFFECT_START)
		rejudge_started(o->worker, p->backend, span_of(p->h.container));
}

void observe_unexplained(struct observe *o, struct pending *p, const char *cause)
{
	struct observed *of = &o->of[p->backend];

	judge_again(o, p);

	if (watched_lost(o->worker->conf->watched) != of->shared->lost_told) {
		of->shared->lost_told = watched_lost(o->worker->conf->watched);
		observe_gap(o, p->backend, "overrun",
			    "more was decided than could be held against what happens: some of "
			    "what follows may have been decided");
	}
	observe_tell(o, p, cause);
}

static const char *cause_of(const struct pending *p)
{
	if (p->h.effect == EFFECT_CREATE && *p->h.decision)
		return "label_without_decision";
	return p->found ? "found" : "no_decision";
}

static bool may_be_by_itself(const struct pending *p)
{
	return (p->h.effect == EFFECT_START && !p->by_hand) || p->h.effect == EFFECT_EXEC;
}

/* One that has been running for a while is attached because somebody wanted it. */
static bool may_be_starting(struct observe *o, const struct pending *p, const struct jv *container)
{
	uint64_t started = o->worker->services[p->backend].ops->started_ns(container);

	return p->h.effect == EFFECT_CONNECT && !o->worker->stopping &&
	       (!started || started + STARTED_MS * 1000000ULL > p->h.at_ns);
}

/* The exec that follows is the engine's as well. */
static void note_exec(struct observe *o, const struct pending *p)
{
	const struct deed_text text = {.backend = p->backend,
				       .effect = EFFECT_EXEC_START,
				       .key = p->h.id,
				       .decision = "",
				       .before = true};

	if (p->h.effect == EFFECT_EXEC)
		watched_add(o->worker->conf->watched, &text);
}

/* A container that runs, and of which no event told: it may run for long. */
static bool is_old_news(struct observe *o, struct pending *p, const struct jv *container)
{
	uint64_t started = o->worker->services[p->backend].ops->started_ns(container);

	if (!p->found || p->h.effect != EFFECT_START)
		return false;
	p->h.at_ns = started;
	return started <= o->of[p->backend].since_ns || observe_life(o, p->h.container)->started_ns;
}

static void decide(struct observe *o, struct pending *p, const struct jv *container)
{
	const struct service *s = &o->worker->services[p->backend];

	if (is_old_news(o, p, container)) {
		drop(o, p); /* neither seen nor missed, or counted */
		return;
	}
	if (p->found)
		watched_found(o->of[p->backend].shared, &p->h);
	if (p->found && is_explained(o, p)) {
		/* counted */
	} else if (may_be_by_itself(p) && s->ops->by_itself(s->backend, &p->h, container)) {
		count_engine(o, p);
		note_exec(o, p);
		judge_again(o, p);
	} else if (may_be_starting(o, p, container)) {
		observe_ask_end(p->ask);
		p->ask = NULL;
		p->state = PENDING_WAITS;
		return;
	} else {
		observe_unexplained(o, p, cause_of(p));
	}
	drop(o, p);
}

static void on_inspected(struct observe *o, void *arg, int status, struct span body)
{
	struct pending *p = arg;
	enum jv_fault fault;
	struct err err = {0};
	struct jv doc = jv_null();

	arena_reset(o->scratch, SCRATCH_BYTES);
	if (status == 200 && jv_parse(o->scratch, body, &doc, &fault, &err) < 0)
		doc = jv_null();
	decide(o, p, &doc);
}

static bool ask_about(struct observe *o, struct pending *p)
{
	struct buf target;

	if (o->of[p->backend].asked >= ASKED_MAX)
		return false;
	buf_init(&target, 256);
	o->worker->services[p->backend].ops->inspect_target(p->h.container, &target);
	buf_put(&target, "", 1);
	p->ask = observe_ask(o, p->backend, buf_span(&target).at, INSPECT_MAX, on_inspected, p);
	buf_fini(&target);
	p->state = PENDING_ASKED;
	return p->ask != NULL;
}

static bool may_be_explained(const struct pending *p)
{
	return may_be_by_itself(p) || p->h.effect == EFFECT_CONNECT ||
	       p->h.effect == EFFECT_EXEC_START;
}

/*
 * No decision explains it: decisions are noted before anything is sent.  What the engine may
 * have done by itself is asked about; an exec starts as it was prepared.
 */
void observe_judge(struct observe *o, struct pending *p)
{
	p->state = p->h.effect == EFFECT_EXEC_START ? PENDING_WAITS : PENDING_ASKS;
	if (may_be_explained(p) && keep(o, p))
		return;
	if (p->line)
		watched_known(o->of[p->backend].shared, p->line);
	observe_unexplained(o, p, cause_of(p));
}

/* --- events --- */

static void note_life(struct observe *o, const struct happening *h, struct pending *p)
{
	struct life_of *l;

	if (strcmp(h->kind, "container") != 0)
		return;
	l = observe_life(o, h->container);
	l->killed |= h->life == LIFE_KILL;
	l->stopped |= h->life == LIFE_STOP;
	l->created |= h->effect == EFFECT_CREATE;
	if (h->effect != EFFECT_START)
		return;
	p->by_hand = l->killed || l->stopped;
	l->killed = l->stopped = false;
	l->started_ns = h->at_ns;
}

/* The engine keeps so many for who comes later; if it tells all of them there may have been more.
 */
static void count_past(struct observe *o, size_t backend)
{
	struct observed *of = &o->of[backend];

	if (++of->past == HISTORY_MAX - 1 && of->since_ns)
		observe_gap(o, backend, "history",
			    "more happened than the engine remembers while nobody watched");
}

/* What is pending is read again by whoever takes over. */
static void note_resume(struct observe *o, size_t backend)
{
	struct watched_backend *b = o->of[backend].shared;
	uint64_t from = b->last_ns;

	for (const struct pending *p = o->first; p; p = p->next)
		if (p->backend == backend && p->line && p->h.at_ns < from)
			from = p->h.at_ns;
	b->resume_ns = from;
}

static void on_event(void *module, size_t backend, struct span line)
{
	struct observe *o = module;
	struct observed *of = of_backend(o, backend);
	const struct service *s = &o->worker->services[backend];
	/* What was decided after this turn of the loop began explains it as well. */
	struct pending p = {.backend = backend, .read_ms = clock_boot_ms()};

	if (!of)
		return;
	arena_reset(o->scratch, SCRATCH_BYTES);
	if (s->ops->happened(s->backend, line, o->scratch, &p.h) < 0) {
		of->shared->sums.garbage++;
		metrics_add(o->worker->conf->metrics, METRIC_observed_garbage, 1);
		log_often(&of->lines, "backend %s: an event that cannot be read", s->conf->name);
		return;
	}
	p.line = watched_line(line);
	if (watched_is_known(of->shared, p.line))
		return;
	p.past = p.h.at_ns < of->look_ns;
	if (p.past && p.read_ms - of->look_ms < SETTLE_MS)
		count_past(o, backend);
	/* A clock that was set back must not make it miss what comes. */
	if (p.h.at_ns > of->shared->last_ns && p.h.at_ns < clock_unix_ns() + 60000000000ULL)
		of->shared->last_ns = p.h.at_ns;
	note_life(o, &p.h, &p);
	if (p.h.effect == EFFECT_NONE || watched_was_found(of->shared, &p.h) || is_explained(o, &p))
		watched_known(of->shared, p.line);
	else
		observe_judge(o, &p);
	note_resume(o, backend);
}

/* --- what is there --- */

/* False: it cannot be read. */
static bool take_row(struct observe *o, size_t backend, const struct jv *row)
{
	struct observed *of = &o->of[backend];
	const struct service *s = &o->worker->services[backend];
	struct pending p = {
		.backend = backend, .found = true, .past = true, .read_ms = clock_boot_ms()};
	bool runs;

	if (s->ops->listed(row, o->scratch, &p.h, &runs) < 0)
		return false;
	if (p.h.at_ns / 1000000000 > of->since_ns / 1000000000 &&
	    !observe_life(o, p.h.container)->created) {
		watched_found(of->shared, &p.h);
		if (!is_explained(o, &p))
			observe_unexplained(o, &p, cause_of(&p));
	}
	if (!runs || observe_life(o, p.h.container)->started_ns)
		return true;
	p.h.effect = EFFECT_START;
	p.h.op = OP_CONTAINER_START;
	observe_judge(o, &p);
	return true;
}

static void on_list(struct observe *o, void *arg, int status, struct span body)
{
	struct observed *of = arg;
	size_t backend = (size_t)(of - o->of);
	enum jv_fault fault;
	struct err err = {0};
	struct jv doc = jv_null();
	bool whole;

	arena_reset(o->scratch, SCRATCH_BYTES);
	if (status != 200 || jv_parse(o->scratch, body, &doc, &fault, &err) < 0)
		doc = jv_null();
	whole = doc.kind == JV_ARRAY;
	for (size_t i = 0; doc.kind == JV_ARRAY && i < doc.count; i++)
		whole = take_row(o, backend, &doc.items[i]) && whole;
	if (!whole)
		observe_gap(o, backend, "list", "the engine's list of containers cannot be read");
	observe_ask_end(of->list);
	of->list = NULL;
}

/* Once a connection has told what happened before it, what is there is held against that. */
static void compare(struct observe *o, size_t backend)
{
	struct observed *of = &o->of[backend];
	const struct service *s = &o->worker->services[backend];

	of->compared = true;
	if (!of->since_ns)
		return; /* nothing to compare with: it was never watched */
	of->list = observe_ask(o, backend, s->ops->list_target, LIST_MAX, on_list, of);
}

/* --- the module --- */

static void look(void *module, size_t backend, enum watcher_why why)
{
	struct observe *o = module;
	struct observed *of = of_backend(o, backend);

	if (!of)
		return;
	of->up = true;
	of->compared = false;
	of->past = 0;
	of->look_ms = o->worker->loop.now_ms;
	of->look_ns = clock_unix_ns();
	of->since_ns = of->shared->last_ns;
	if (why == WATCHER_START && of->since_ns)
		observe_gap(o, backend, "away",
			    "the gate was not there; what the engine remembers is read, and its "
			    "containers are compared");
	if (!of->shared->began_ns)
		of->shared->began_ns = of->look_ns;
	/* From now on there is something to compare with. */
	if (!of->shared->last_ns)
		of->shared->last_ns = of->look_ns;
}

static void lost(void *module, size_t backend)
{
	struct observe *o = module;
	struct observed *of = of_backend(o, backend);

	if (!of)
		return;
	of->up = false;
	observe_ask_end(of->list);
	of->list = NULL;
	/* Engines start what has `always` when they come back, whoever stopped it. */
	for (size_t i = 0; i < LIVES_MAX; i++)
		o->lives[i].killed = o->lives[i].stopped = false;
}

static const char *since(void *module, size_t backend)
{
	struct observe *o = module;
	struct observed *of = of_backend(o, backend);
	uint64_t from;

	if (!of || !of->shared->last_ns)
		return "";
	from = of->shared->resume_ns ? of->shared->resume_ns : of->shared->last_ns;
	snprintf(of->since, sizeof(of->since), "%" PRIu64 ".%09" PRIu64, from / 1000000000,
		 from % 1000000000);
	return of->since;
}

/* The command may be the engine's own, if that is still being asked. */
static bool awaits_exec(const struct observe *o, const struct pending *p)
{
	for (const struct pending *one = o->first; one; one = one->next)
		if (one->h.effect == EFFECT_EXEC && p->h.effect == EFFECT_EXEC_START &&
		    one->backend == p->backend && strcmp(one->h.id, p->h.id) == 0)
			return true;
	return false;
}

/* Nothing comes any more that explains it. */
static bool is_late(const struct observe *o, const struct pending *p)
{
	if (p->h.effect == EFFECT_CONNECT)
		return o->worker->stopping || o->worker->loop.now_ms >= p->read_ms + GRACE_MS;
	return !awaits_exec(o, p);
}

/* Those that wait are looked at again; the engine may have answered late, or never. */
static void go_on(struct observe *o)
{
	uint64_t patience_ms = o->worker->stopping ? HASTE_MS : ANSWER_WITHIN_MS;

	for (struct pending *p = o->first, *next; p; p = next) {
		next = p->next;
		if (p->state == PENDING_ASKED) {
			if (!p->ask || observe_ask_late(p->ask, patience_ms))
				decide(o, p, NULL);
		} else if (!p->found && is_explained(o, p)) {
			drop(o, p);
		} else if (p->state == PENDING_ASKS) {
			ask_about(o, p);
		} else if (is_late(o, p)) {
			observe_unexplained(o, p, cause_of(p));
			drop(o, p);
		}
	}
}

static void tick(void *module)
{
	struct observe *o = module;
	uint64_t now_ms = o->worker->loop.now_ms;

	go_on(o);
	for (size_t i = 0; i < o->worker->conf->backend_count; i++) {
		struct observed *of = of_backend(o, i);

		if (!of)
			continue;
		note_resume(o, i);
		if (of->up && !of->compared && now_ms - of->look_ms >= SETTLE_MS)
			compare(o, i);
		if (of->list && observe_ask_late(of->list, ANSWER_WITHIN_MS))
			on_list(o, of, 0, (struct span){"", 0});
		observe_tick(o, i, false);
	}
}

/* What is still on its way may come, and is on record then. */
static bool idle(const void *module)
{
	struct observe *o = (struct observe *)module; /* it is not asked in vain */
	uint64_t now_ms = o->worker->loop.now_ms;

	if (!o->ending_ms)
		o->ending_ms = now_ms;
	go_on(o);
	if (now_ms - o->ending_ms < FINAL_MS || o->first)
		return false;
	for (size_t i = 0; i < o->worker->conf->backend_count; i++)
		if (of_backend(o, i))
			observe_tick(o, i, true);
	return true;
}

static void close_observe(void *module)
{
	struct observe *o = module;

	while (o->first) {
		o->first->line = 0;
		drop(o, o->first);
	}
	for (size_t i = 0; o->of && i < o->worker->conf->backend_count; i++)
		observe_ask_end(o->of[i].list);
	arena_destroy(o->scratch);
	free(o->of);
	free(o);
}

static void *open_observe(struct worker *w, struct err *err)
{
	struct observe *o = calloc(1, sizeof(*o));
	size_t count = w->conf->backend_count;

	if (o) {
		o->worker = w;
		o->last = &o->first;
		o->of = calloc(count + 1, sizeof(*o->of));
		o->scratch = arena_create(SCRATCH_BYTES);
	}
	if (!o || !o->of || !o->scratch) {
		err_sys(err, "allocate what is observed");
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		o->of[i].shared = watched_of(w->conf->watched, i);
		o->of[i].how = w->conf->backends[i].observe;
	}
	return o;
}

const struct watcher_module observe_module = {
	.name = "observe",
	.open = open_observe,
	.close = close_observe,
	.look = look,
	.lost = lost,
	.since = since,
	.event = on_event,
	.tick = tick,
	.idle = idle,
};
