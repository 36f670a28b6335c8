/* What goes on record of what happens in an engine, and what is remembered of containers. */
#include "proxy/observe_priv.h"

#include "gate/base/clock.h"
#include "gate/base/hash.h"
#include "gate/base/log.h"
#include "gate/base/uuid.h"
#include "proxy/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MINUTE_MS 60000
#define PROBES    8

static bool put(struct observe *o, struct record *r, size_t backend)
{
	char id[UUID_TEXT_LEN + 1];
	bool told;

	uuid_make(id);
	r->id = id;
	r->surface = o->worker->services[backend].ops->kind;
	r->backend = o->worker->conf->backends[backend].name;
	told = audit_tell(o->worker->audit, r) == 0;
	r->id = "";
	return told;
}

static bool has_room(struct observe *o, struct observed *of)
{
	if (o->worker->loop.now_ms - of->minute_ms >= MINUTE_MS) {
		of->minute_ms = o->worker->loop.now_ms;
		of->in_minute = 0;
	}
	return of->in_minute++ < RECORDS_A_MINUTE;
}

void observe_seen(struct observe *o, size_t backend)
{
	o->of[backend].shared->sums.seen++;
	metrics_add(o->worker->conf->metrics, METRIC_observed_seen, 1);
}

void observe_tell(struct observe *o, const struct pending *p, const char *cause)
{
	struct observed *of = &o->of[p->backend];
	char at[CLOCK_TEXT_MAX], text[300] = "";
	struct record r = {.type = RECORD_OBSERVED, .cause = cause, .began = at, .text = text};

	observe_seen(o, p->backend);
	of->shared->sums.unexplained++;
	metrics_add(o->worker->conf->metrics, METRIC_observed_unexplained, 1);
	clock_format(p->h.at_ns, at);
	r.op = operation_name(p->h.op);
	r.op_class = op_class_name(operation_class(p->h.op));
	r.object_kind = p->h.kind;
	r.object_id = p->h.id;
	r.object_name = p->h.name;
	if (*p->h.container && strcmp(p->h.container, p->h.id) != 0)
		snprintf(text, sizeof(text), "container %.64s", p->h.container);
	if (*p->h.image)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%simage %.200s",
			 *text ? ", " : "", p->h.image);
	if (strcmp(p->h.kind, "exec") == 0) /* its command */
		r.masked = span_of("[\"text\"]");
	if (of->how == OBSERVE_ALARM)
		of->alarms++;
	log_often(&of->lines, "backend %s: %s of %s %.64s past the gate (%s)",
		  o->worker->conf->backends[p->backend].name, r.op, r.object_kind, r.object_id,
		  cause);
	if (!has_room(o, of) || !put(o, &r, p->backend))
		of->more++;
}

void observe_gap(struct observe *o, size_t backend, const char *cause, const char *text)
{
	struct observed *of = &o->of[backend];
	char began[CLOCK_TEXT_MAX], ended[CLOCK_TEXT_MAX];
	struct record r = {.type = RECORD_OBSERVED_GAP,
			   .cause = cause,
			   .text = text,
			   .began = of->since_ns ? began : "",
			   .ended = ended};

	clock_format(of->since_ns, began);
	clock_format(of->look_ns, ended);
	log_line("backend %s: %s", o->worker->conf->backends[backend].name, text);
	put(o, &r, backend);
}

/* What was left out one by one; what is not told now is told at another turn. */
static void tell_more(struct observe *o, size_t backend)
{
	struct observed *of = &o->of[backend];
	struct record r = {.type = RECORD_OBSERVED, .cause = "many", .count = of->more};

	if (of->more && put(o, &r, backend))
		of->more = 0;
}

static void tell_alarm(struct observe *o, size_t backend)
{
	struct observed *of = &o->of[backend];
	struct record r = {.type = RECORD_LOG_ALARM,
			   .cause = "observed",
			   .count = of->alarms,
			   .text = "happened in the engine, and no decision explains it"};

	if (of->alarms && put(o, &r, backend)) {
		log_line("ALARM: backend %s: %" PRIu64 " happenings past the gate",
			 o->worker->conf->backends[backend].name, of->alarms);
		of->alarms = 0;
	}
}

static void tell_sum(struct observe *o, size_t backend)
{
	struct watched_backend *b = o->of[backend].shared;
	const struct watched_sums now = b->sums, *told = &b->told;
	char began[CLOCK_TEXT_MAX], ended[CLOCK_TEXT_MAX], to[CLOCK_TEXT_MAX];
	uint64_t now_ns = clock_unix_ns();
	struct record r = {.type = RECORD_OBSERVED_SUM,
			   .seen = now.seen - told->seen,
			   .by_decision = now.judged - told->judged,
			   .by_engine = now.by_engine - told->by_engine,
			   .unexplained = now.unexplained - told->unexplained,
			   .garbage = now.garbage - told->garbage,
			   .began = began,
			   .ended = ended,
			   .to = to};

	clock_format(b->began_ns, began);
	clock_format(now_ns, ended);
	clock_format(b->last_ns, to);
	if (!put(o, &r, backend))
		return;
	b->told = now;
	b->began_ns = now_ns;
}

void observe_tick(struct observe *o, size_t backend, bool last)
{
	struct observed *of = &o->of[backend];
	uint64_t now_ms = o->worker->loop.now_ms;
	bool news = memcmp(&of->shared->sums, &of->shared->told, sizeof(of->shared->sums)) != 0;

	if (of->more && (last || now_ms - of->minute_ms >= MINUTE_MS))
		tell_more(o, backend);
	if (of->alarms && (last || !of->alarm_ms || now_ms - of->alarm_ms >= MINUTE_MS)) {
		of->alarm_ms = now_ms;
		tell_alarm(o, backend);
	}
	if (!of->sum_ms)
		of->sum_ms = now_ms;
	if (news && of->shared->last_ns && (last || now_ms - of->sum_ms >= SUM_MS)) {
		of->sum_ms = now_ms;
		tell_sum(o, backend);
	}
}

/* Its place among the containers that are remembered; the oldest nearby makes room. */
struct life_of *observe_life(struct observe *o, const char *container)
{
	struct hash hash = hash_of(span_of(container));
	struct life_of *oldest = NULL;
	uint64_t key = hash_number(&hash) | 1;

	for (size_t i = 0; i < PROBES; i++) {
		struct life_of *l = &o->lives[(key / 2 + i) % LIVES_MAX];

		if (l->key == key) {
			l->at_ms = o->worker->loop.now_ms;
			return l;
		}
		if (!oldest || l->at_ms < oldest->at_ms)
			oldest = l;
	}
	*oldest = (struct life_of){.key = key, .at_ms = o->worker->loop.now_ms};
	return oldest;
}
