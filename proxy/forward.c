/*
 * Sends what was judged, and brings the reply back: as it comes, or held back
 * to be filtered and checked, or as a raw stream after a 101.
 */
#include "gate/base/hash.h"
#include "gate/base/log.h"
#include "proxy/metrics.h"
#include "proxy/worker_priv.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct upcall_handlers reply_handlers, undo_handlers;

/* What was sent may have been done all the same, and nobody can say. */
static const char *failed_status(const struct exchange *x)
{
	return x->forwarded && op_class_changes_state(operation_class(x->call.op)) ? "unknown"
										   : "fail";
}

static void fail_with(struct exchange *x, enum reason reason, const char *text)
{
	if (!x->err[0])
		snprintf(x->err, sizeof(x->err), "%.190s", text);
	x->status = failed_status(x);
	exchange_refuse(x, reason, "", arena_strndup(x->arena, text, strlen(text)));
}

int forward_prepare(struct exchange *x)
{
	struct err err = {0};
	struct hash h;

	if (x->service->ops->render(x->service->backend, &x->call, &x->out, &err) < 0 ||
	    buf_spent(&x->out.head) || buf_spent(&x->out.body)) {
		x->permitted = false;
		fail_with(x, REASON_too_large, err.msg);
		return -1;
	}
	if (buf_len(&x->out.body)) {
		h = hash_of(buf_span(&x->out.body));
		hash_hex(&h, x->sent_sha256);
	}
	return 0;
}

/* What takes its time by nature has no deadline; the caller decides how long it waits. */
static bool may_take_long(const struct exchange *x)
{
	switch (operation_class(x->call.op)) {
	case CLASS_DATA_IN:
	case CLASS_DATA_OUT:
	case CLASS_EXEC:
		return true;
	case CLASS_LIFECYCLE:
		return x->call.op != OP_CONTAINER_START;
	case CLASS_READ:
		return x->call.op == OP_SYSTEM_EVENTS || x->call.op == OP_CONTAINER_STATS ||
		       x->call.op == OP_SYSTEM_DF;
	case CLASS_HOST:
		return x->call.op == OP_CONTAINER_PRUNE || x->call.op == OP_VOLUME_PRUNE ||
		       x->call.op == OP_NETWORK_PRUNE;
	case CLASS_NONE:
	case CLASS_LAUNCH:
	case CLASS_POLICY:
	case CLASS_COUNT:
		break;
	}
	return false;
}

static uint64_t reply_deadline(const struct exchange *x)
{
	return may_take_long(x) ? 0 : x->worker->loop.now_ms + x->worker->conf->limits.engine_ms;
}

/*
 * The only function that sends a caller's request.  receipt proves that the
 * decision is durable; only audit/client.c can make one.
 */
void forward(struct exchange *x, const struct audit_receipt *receipt)
{
	struct upcall_request req = {
		.head = buf_span(&x->out.head),
		.body = buf_span(&x->out.body),
		.streams_body = x->out.streams_body && x->req.has_body,
		.chunked = x->req.body_bytes < 0 || x->call.body == BODY_REWRITE,
		.is_head = !strcmp(x->req.method, "HEAD"),
		.repeatable = operation_class(x->call.op) == CLASS_READ,
		.epoch = op_class_changes_state(operation_class(x->call.op)) ? x->epoch : 0,
	};
	struct err err = {0};

	assert(x->permitted);
	assert(receipt || !op_class_changes_state(operation_class(x->call.op)));
	x->state = X_SENT;
	x->deadline_ms = req.streams_body ? exchange_upload_deadline(x) : reply_deadline(x);
	quota_sent(x);
	watched_note(x->worker->conf->watched, x->service->conf - x->worker->conf->backends,
		     x->call.op, x->call.object.id, x->id, x->deeds);
	x->up = upcall_start(x->service->pool, &req, &reply_handlers, x, &err);
	if (!x->up) {
		x->service->ops->forget(x->service->backend);
		/* Where the engine's socket is, is not the caller's to know. */
		snprintf(x->err, sizeof(x->err), "%.190s", err.msg);
		exchange_refuse(
			x, err.sys == ESTALE ? REASON_engine_restarted : REASON_engine_unreachable,
			"", "");
		return;
	}
	x->forwarded = true;
	x->sent_ms = x->worker->loop.now_ms;
	service_count(x, ENGINE_requests, 1);
	if (x->call.body == BODY_REWRITE)
		intake_flush(x);
	else if (x->call.body == BODY_STREAM && !x->upload_over)
		front_resume(x);
}

/* The caller's upload is complete. */
void forward_upload(struct exchange *x)
{
	if (x->call.body == BODY_REWRITE && !x->upload_sent) {
		if (x->up)
			intake_flush(x); /* which comes back here */
		return;
	}
	if (x->up && exchange_streams(x)) {
		upcall_send_end(x->up);
		x->deadline_ms = reply_deadline(x);
	}
	if (x->answer.kind != ANSWER_NONE && x->state == X_SENT)
		exchange_ready(x); /* the reply came first and was held */
}

void forward_abandon(struct exchange *x)
{
	if (x->up)
		upcall_release(x->up);
	x->up = NULL;
	if (x->service_fd >= 0)
		close(x->service_fd);
	x->service_fd = -1;
	if (x->relay)
		relay_stop(x->relay);
	x->relay = NULL;
}

void forward_timeout(struct exchange *x)
{
	forward_abandon(x);
	snprintf(x->err, sizeof(x->err), "the engine did not answer in time");
	x->status = failed_status(x);
	exchange_refuse(x, REASON_engine_timeout, "", "");
}

/* --- the reply's head --- */

static bool framing_header(const struct pair *h)
{
	return span_is(h->key, "content-length") || span_is(h->key, "transfer-encoding") ||
	       span_is(h->key, "connection") || span_is(h->key, "keep-alive") ||
	       span_is(h->key, "upgrade") || span_is(h->key, "trailer") || span_is(h->key, "date");
}

static void keep_headers(struct exchange *x, const struct reply_head *head)
{
	struct pair *kept = arena_take(x->arena, sizeof(*kept) * (head->header_count + 1));
	size_t n = 0;

	for (size_t i = 0; kept && i < head->header_count; i++) {
		const struct pair *h = &head->headers[i];
		const char *value = NULL;
		bool keep = false;

		if (framing_header(h))
			continue;
		x->service->ops->reply_header(x->service->backend, &x->call, h, &keep, &value);
		if (!keep)
			continue;
		kept[n].key = span_of(arena_strndup(x->arena, h->key.at, h->key.len));
		kept[n++].value =
			span_of(value ? value : arena_strndup(x->arena, h->value.at, h->value.len));
	}
	x->answer.headers = kept;
	x->answer.header_count = arena_spent(x->arena) ? 0 : n;
}

static bool upload_is_sent(const struct exchange *x)
{
	return x->upload_over && (x->call.body != BODY_REWRITE || x->upload_sent);
}

static void start_answer(struct exchange *x, enum answer_kind kind)
{
	x->answer.kind = kind;
	x->deadline_ms = 0;
	if (kind == ANSWER_STREAM && exchange_streams(x) && !upload_is_sent(x)) {
		x->deadline_ms = exchange_upload_deadline(x);
		front_resume(x); /* the service may never read the rest: it is drained */
		return; /* never queued early: forward_upload() does it when the upload is over */
	}
	exchange_ready(x);
}

/* As of bodies: all together, and one caller half of it. */
static bool replies_are_many(const struct exchange *x)
{
	uint64_t most = x->worker->conf->limits.bodies_bytes, own = 0;

	if (x->worker->held_bytes <= most / 2)
		return false;
	for (const struct exchange *one = x->worker->exchanges; one; one = one->next)
		if (one != x && one->conn && x->conn && connection_same_caller(one->conn, x->conn))
			own += one->charged;
	return (own && own + x->charged > most / 2) || x->worker->held_bytes > most;
}

static void take_held(struct exchange *x);

/* What is hidden does not show in an error either; an upload has its answer as it comes. */
static bool is_held(const struct backend_call *call, int status)
{
	bool uploads = call->body == BODY_STREAM || call->body == BODY_REWRITE;

	switch (call->reply) {
	case REPLY_HELD:
	case REPLY_LAUNCH:
		return true;
	case REPLY_ROWS:
		return status != 200;
	case REPLY_STREAM:
		return call->hides && status >= 400 && !uploads;
	case REPLY_HIJACK:
	case REPLY_KIND_COUNT:
		break;
	}
	return false;
}

static void on_head(void *arg, const struct reply_head *head)
{
	struct exchange *x = arg;
	bool held = is_held(&x->call, head->status);

	quota_answered(x, head->status);
	service_count(x, ENGINE_answers, 1);
	service_count(x, ENGINE_milliseconds, x->worker->loop.now_ms - x->sent_ms);
	x->http = x->answer.status = x->service_status = head->status;
	x->status = head->status < 400 ? "ok" : "fail";
	keep_headers(x, head);
	if (head->status == 101) {
		if (x->call.reply != REPLY_HIJACK || !x->req.upgrade) {
			forward_abandon(x);
			fail_with(x, REASON_engine_reply,
				  "the engine upgraded without being asked");
			return;
		}
		x->service_fd = upcall_hijack(x->up, &x->early);
		x->up = NULL;
		x->upload_over = true;
		start_answer(x, ANSWER_UPGRADE);
	} else if (held && strcmp(x->req.method, "HEAD") != 0) {
		/* Errors too: a name conflict would tell the id of somebody else's object. */
		x->state = X_HELD;
		take_held(x);
	} else {
		start_answer(x, ANSWER_STREAM);
	}
}

/* --- the reply's body --- */

static void undo(struct exchange *x);

/* The held reply, filtered, becomes the answer. */
static void answer_filtered(struct exchange *x)
{
	struct err err = {0};

	buf_clear(&x->answer.body);
	if (x->service->ops->filter(x->service->backend, &x->call, x->http, buf_span(&x->held),
				    &x->answer.body, &err) < 0 ||
	    buf_spent(&x->answer.body)) {
		fail_with(x, REASON_engine_reply, err.msg);
		return;
	}
	buf_fini(&x->held);
	forward_charge(x, x->answer.body.size);
	x->bytes_out += buf_len(&x->answer.body);
	start_answer(x, ANSWER_LOCAL);
}

void forward_check(struct exchange *x)
{
	switch (x->service->ops->check(x->service->backend, &x->call, buf_span(&x->held))) {
	case STEP_READY:
		answer_filtered(x);
		break;
	case STEP_LOOKUP:
		if (++x->steps > CHECK_STEPS_MAX) {
			undo(x);
			break;
		}
		x->state = X_CHECK;
		lookup_start(x);
		break;
	case STEP_REFUSED:
		undo(x);
		break;
	}
}

static void held_complete(struct exchange *x)
{
	upcall_release(x->up);
	x->up = NULL;
	x->deadline_ms = 0;
	x->steps = 0;
	/* 304: it runs already, perhaps from a start that was answered too late to be looked at. */
	if (x->call.reply == REPLY_LAUNCH && (x->http < 300 || x->http == 304))
		forward_check(x);
	else
		answer_filtered(x);
}

void forward_charge(struct exchange *x, size_t bytes)
{
	x->worker->held_bytes += bytes - x->charged;
	x->charged = bytes;
}

static void take_held(struct exchange *x)
{
	struct span s = upcall_body(x->up);

	buf_put(&x->held, s.at, s.len);
	upcall_take(x->up, s.len);
	forward_charge(x, x->held.size);
	if (x->call.reply != REPLY_LAUNCH && replies_are_many(x)) {
		forward_abandon(x);
		fail_with(x, REASON_busy, "the gate holds as many replies as it may");
	} else if (buf_spent(&x->held)) {
		forward_abandon(x);
		fail_with(x, REASON_engine_reply,
			  "the engine's reply is larger than the gate filters");
	} else if (upcall_complete(x->up)) {
		held_complete(x);
	}
}

static void on_data(void *arg)
{
	struct exchange *x = arg;

	if (x->state == X_HELD)
		take_held(x);
	else
		front_resume(x);
}

static void on_room(void *arg)
{
	struct exchange *x = arg;

	if (x->call.body == BODY_REWRITE && x->state == X_SENT)
		intake_flush(x);
	else
		front_resume(x);
}

static const char *fault_text(enum upcall_fault fault)
{
	switch (fault) {
	case UPCALL_UNREACHABLE:
		return "the engine closed the connection before it answered";
	case UPCALL_CUT:
		return "the engine's reply ended in the middle";
	case UPCALL_NONSENSE:
		return "the engine's reply is not HTTP";
	case UPCALL_FINE:
		break;
	}
	return "";
}

static void on_fail(void *arg, enum upcall_fault fault)
{
	struct exchange *x = arg;
	enum exchange_state state = x->state;
	const char *why = upcall_why(x->up);

	x->service->ops->forget(x->service->backend);
	/* Where the engine is, and what its certificate says, is for the record alone. */
	if (fault == UPCALL_UNREACHABLE && *why)
		snprintf(x->err, sizeof(x->err), "the engine cannot be reached: %.150s", why);
	else
		snprintf(x->err, sizeof(x->err), "%s%s%.140s", fault_text(fault), *why ? ": " : "",
			 why);
	forward_abandon(x);
	x->status = failed_status(x);
	if (state == X_REPLYING || x->answer.kind == ANSWER_STREAM) {
		x->answer.kind = ANSWER_NONE;
		if (state == X_REPLYING)
			front_resume(x);
		else
			exchange_ready(x);
		return;
	}
	exchange_refuse(
		x, fault == UPCALL_UNREACHABLE ? REASON_engine_unreachable : REASON_engine_reply,
		"", fault_text(fault));
}

static const struct upcall_handlers reply_handlers = {
	.head = on_head,
	.data = on_data,
	.room = on_room,
	.fail = on_fail,
};

/* --- removing what is not as it was judged --- */

/* A start is undone by a kill: the container was there before, and stays to be looked at. */
static bool undo_kills(const struct exchange *x)
{
	return x->call.op != OP_CONTAINER_CREATE;
}

static const char *undo_said(const struct exchange *x, bool done)
{
	if (undo_kills(x))
		return done ? "not as judged; killed" : "not as judged; COULD NOT BE KILLED";
	return done ? "not as judged; removed" : "not as judged; COULD NOT BE REMOVED";
}

static void undone(struct exchange *x, const char *how)
{
	const struct violation *first = &x->call.refused.list[0];

	forward_abandon(x);
	x->status = "fail";
	if (undo_kills(x))
		log_line(
			"%s: the kernel does not show what was judged of container %.64s (%.200s), "
			"and %s",
			x->id, x->call.object.id, x->call.refused.count ? first->text : "",
			how ? how : "it was killed");
	else if (how)
		log_line("%s: what the engine made is not what was judged, and %s", x->id, how);
	x->decision.violations = x->call.refused;
	if (!x->call.refused.count) {
		exchange_refuse(x, REASON_not_as_judged, "", "");
		return;
	}
	exchange_answer_refusal(x);
}

static void on_undo_head(void *arg, const struct reply_head *head)
{
	struct exchange *x = arg;
	/* What does not run any more cannot be killed: a conflict. */
	bool gone =
		head->status < 300 || head->status == 404 || (undo_kills(x) && head->status == 409);

	snprintf(x->err, sizeof(x->err), "%s", undo_said(x, gone));
	undone(x, gone ? NULL : "the engine refused to undo it");
}

void forward_undo_timeout(struct exchange *x)
{
	snprintf(x->err, sizeof(x->err), "%s in time", undo_said(x, false));
	undone(x, "the engine did not undo it in time");
}

static void on_undo_data(void *arg)
{
	(void)arg;
}

static void on_undo_fail(void *arg, enum upcall_fault fault)
{
	struct exchange *x = arg;

	(void)fault;
	snprintf(x->err, sizeof(x->err), "%s", undo_said(x, false));
	undone(x, "the engine could not be told to undo it");
}

static const struct upcall_handlers undo_handlers = {
	.head = on_undo_head,
	.data = on_undo_data,
	.room = on_undo_data,
	.fail = on_undo_fail,
};

static void undo(struct exchange *x)
{
	struct upcall_request req = {0};
	struct err err = {0};

	x->state = X_UNDO;
	metrics_add(x->worker->conf->metrics, METRIC_undone, 1);
	x->deadline_ms = x->worker->loop.now_ms + x->worker->conf->limits.engine_ms;
	buf_clear(&x->out.head);
	buf_clear(&x->out.body);
	x->out.streams_body = false;
	if (x->service->ops->undo(x->service->backend, &x->call, &x->out, &err) == 0) {
		req.head = buf_span(&x->out.head);
		req.body = buf_span(&x->out.body);
		x->up = upcall_start(x->service->pool, &req, &undo_handlers, x, &err);
	}
	if (!x->up)
		on_undo_fail(x, UPCALL_UNREACHABLE);
}
