/*
 * What is told of a finding, and how what was found is stopped: by requests of the gate's
 * own rendering, each with a decision that is durable before it is sent.
 */
#include "gate/base/log.h"
#include "proxy/metrics.h"
#include "proxy/rejudge_priv.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define SELF_IDENTITY "gate"
#define SELF_METHOD   "self"

static struct log_kind findings, unrecorded;

static const char *name_of(const struct look *l)
{
	const struct object *o = &l->x->call.object;

	return o->name && *o->name ? o->name : l->what.id;
}

/* --- records --- */

static void tell(struct look *l, const struct record *r)
{
	struct worker *w = l->of->worker;

	if (audit_tell(w->audit, r) == 0)
		return;
	metrics_add(w->conf->metrics, METRIC_unrecorded, 1);
	log_often(&unrecorded, "%s of %.64s could not be recorded", record_type_name(r->type),
		  l->what.id);
}

static struct span attestation_of(const struct look *l)
{
	struct exchange *x = l->x;
	struct buf text;
	struct span s, none = {"", 0};
	char *copy;

	if (x->call.attestation.kind != JV_OBJECT)
		return none;
	buf_init(&text, RECORD_LINE_MAX);
	jv_write(&text, &x->call.attestation);
	s = buf_span(&text);
	copy = buf_spent(&text) ? NULL : arena_strndup(x->arena, s.at, s.len);
	buf_fini(&text);
	return copy ? (struct span){copy, s.len} : none;
}

void look_report(struct look *l, enum finding f)
{
	static const char *const words[] = {
		[FINDING_UNKNOWN] = "cannot be judged",
		[FINDING_FINE] = "may run",
		[FINDING_REPORT] = "would not be started now",
		[FINDING_STOP] = "is stopped",
		[FINDING_GONE] = "has ended",
	};
	struct record r;

	trail_decision(l->x, &r, l->x->arena);
	r.type = RECORD_REJUDGED;
	r.method = r.path = "";
	r.status = finding_name(f);
	r.cause = rejudge_cause_name(l->what.cause);
	r.text = l->why;
	r.attestation = attestation_of(l);
	tell(l, &r);
	log_often(&findings, "container %.64s (%.64s) of %.64s runs and %s: %.200s", name_of(l),
		  l->what.id, *l->again.owner ? l->again.owner : "somebody", words[f], l->why);
}

/* What the gate does by itself, in the words of its other records. */
static struct record own_record(const struct look *l, enum record_type type)
{
	const struct exchange *x = l->x;

	return (struct record){
		.type = type,
		.surface = x->service->ops->kind,
		.backend = x->service->conf->name,
		.identity = SELF_IDENTITY,
		.auth_method = SELF_METHOD,
		.op = operation_name(l->stop_op),
		.op_class = op_class_name(operation_class(l->stop_op)),
		.object_kind = x->call.object.kind,
		.object_id = x->call.object.id,
		.object_name = x->call.object.name,
	};
}

/* --- a part of the stop --- */

static void begin_part(struct look *l);

/*
 * How it came out.  One that failed is tried again with the whole look; what would come
 * back is kept from that all the same: some engines say that they failed to kill what
 * has ended by then, and it would not be looked at again.
 */
static void part_over(struct look *l, const char *status, int http, const char *err)
{
	char id[UUID_TEXT_LEN + 1];
	bool done = strcmp(status, "ok") == 0;
	struct record r = {.type = RECORD_OUTCOME, .id = id, .of = l->stop_id};

	uuid_make(id);
	r.op = operation_name(l->stop_op);
	r.status = status;
	r.http = http;
	r.err = err;
	r.dur_ms = l->of->worker->loop.now_ms - l->sent_ms;
	tell(l, &r);
	look_stop_drop(l);
	l->what.stop_failed = l->failed = l->failed || !done;
	if (!done)
		log_line("container %.64s (%.64s) COULD NOT BE STOPPED: %s", name_of(l), l->what.id,
			 err);
	if (l->part == STOP_NOW && l->again.comes_back && http != 404) {
		l->part = STOP_FOR_GOOD;
		begin_part(l);
		return;
	}
	look_over(l, FINDING_STOP, l->failed);
}

static void on_head(void *arg, const struct reply_head *head)
{
	struct look *l = arg;
	/* What does not run any more, or is not there any more, needs no stop. */
	bool done = head->status < 300 || head->status == 304 || head->status == 404 ||
		    (head->status == 409 && l->part == STOP_NOW);

	part_over(l, done ? "ok" : "fail", head->status, done ? "" : "the engine refused it");
}

static void on_nothing(void *arg)
{
	(void)arg;
}

static void on_fail(void *arg, enum upcall_fault fault)
{
	(void)fault;
	part_over(arg, "unknown", 0, "the engine did not answer");
}

static const struct upcall_handlers handlers = {
	.head = on_head,
	.data = on_nothing,
	.fail = on_fail,
};

/* The only place that sends it; the receipt proves that the decision is durable. */
static void send_part(struct look *l, const struct audit_receipt *receipt)
{
	struct exchange *x = l->x;
	struct upcall_request req = {.head = buf_span(&x->out.head),
				     .body = buf_span(&x->out.body)};
	struct err err = {0};

	assert(receipt);
	l->phase = LOOK_STOP;
	l->sent_ms = l->of->worker->loop.now_ms;
	l->up = upcall_start(x->service->pool, &req, &handlers, l, &err);
	if (!l->up)
		part_over(l, "fail", 0, "the engine cannot be reached");
}

static void on_recorded(void *arg, const struct audit_receipt *receipt)
{
	struct look *l = arg;

	if (receipt) {
		send_part(l, receipt);
		return;
	}
	/* Nothing is done that is not on record; it is judged again, and counted then. */
	rejudging_again(l->of);
	look_over(l, FINDING_GONE, false);
}

static bool render(struct look *l)
{
	struct exchange *x = l->x;
	struct err err = {0};

	buf_clear(&x->out.head);
	buf_clear(&x->out.body);
	if (x->service->ops->stop(x->service->backend, &x->call, l->part, &x->out, &l->stop_op,
				  &err) == 0)
		return true;
	log_line("container %.64s (%.64s) COULD NOT BE STOPPED: %s", name_of(l), l->what.id,
		 err.msg);
	return false;
}

static void begin_part(struct look *l)
{
	struct exchange *x = l->x;
	struct record r;

	if (!render(l)) {
		look_over(l, FINDING_STOP, true);
		return;
	}
	uuid_make(l->stop_id);
	r = own_record(l, RECORD_DECISION);
	r.id = l->stop_id;
	r.verdict = verdict_name(VERDICT_ALLOW);
	r.reason = x->decision.violations.count ? reason_name(x->decision.violations.list[0].reason)
						: "";
	r.rule = "rejudge";
	r.profile = x->decision.profile;
	r.profile_sha256 = x->decision.profile_hash;
	r.text = l->why;
	l->phase = LOOK_RECORD;
	if (audit_require(l->of->worker->audit, &r, on_recorded, l) == 0)
		return;
	rejudging_again(l->of);
	look_over(l, FINDING_GONE, false);
}

void look_stop(struct look *l)
{
	l->part = STOP_NOW;
	begin_part(l);
}

void look_keep_ended(struct look *l)
{
	l->x->decision.profile = l->again.profile;
	l->x->decision.profile_hash = "";
	l->why = "it was stopped, and is not to come back";
	l->part = STOP_FOR_GOOD;
	begin_part(l);
}

void look_stop_tick(struct look *l)
{
	const struct worker *w = l->of->worker;

	if (l->phase == LOOK_STOP && w->loop.now_ms - l->sent_ms > w->conf->limits.engine_ms)
		part_over(l, "unknown", 0, "the engine did not answer in time");
}

void look_stop_drop(struct look *l)
{
	if (l->phase == LOOK_RECORD)
		audit_forget(l->of->worker->audit, l);
	if (l->up)
		upcall_release(l->up);
	l->up = NULL;
}
