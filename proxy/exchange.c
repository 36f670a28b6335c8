/*
 * One request, from its head to its answer.  The states are in worker_priv.h;
 * each function below moves an exchange on by one of them.  What is decided is
 * judge.c's; what is sent to the service, and what comes back, forward.c's.
 */
#include "gate/base/clock.h"
#include "gate/base/uuid.h"
#include "proxy/behalf.h"
#include "proxy/updates.h"
#include "proxy/worker_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct exchange *take_spare(struct worker *w)
{
	struct exchange *x = w->spare;
	struct arena *arena;
	struct buf head;

	if (!x)
		return NULL;
	w->spare = x->next;
	w->spare_count--;
	arena = x->arena;
	head = x->out.head;
	memset(x, 0, sizeof(*x));
	x->arena = arena;
	x->out.head = head;
	buf_clear(&x->out.head);
	return x;
}

static struct exchange *make_new(void)
{
	struct exchange *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->arena = arena_create(ARENA_CAP);
	if (!x->arena) {
		free(x);
		return NULL;
	}
	buf_init(&x->out.head, 65536);
	return x;
}

/* Warm memory is what makes a small request cheap; what was large is given back. */
static void keep_or_free(struct exchange *x)
{
	struct worker *w = x->worker;

	if (w->spare_count == SPARE_MAX || x->out.head.size > 4096) {
		buf_fini(&x->out.head);
		arena_destroy(x->arena);
		free(x);
		return;
	}
	arena_reset(x->arena, ARENA_CAP);
	x->next = w->spare;
	w->spare = x;
	w->spare_count++;
}

struct exchange *exchange_create(struct conn *c, struct span target)
{
	struct worker *w = c->worker;
	struct exchange *x = take_spare(w);

	if (!x)
		x = make_new();
	if (!x)
		return NULL;
	x->worker = w;
	/* Kept in `path` until the head is read, so that a malformed one can be recorded. */
	x->req.path = arena_strndup(x->arena, target.at, target.len);
	if (!x->req.path) {
		keep_or_free(x);
		return NULL;
	}
	uuid_make(x->id);
	x->conn = c;
	x->service = &w->services[c->listener->backend];
	x->service_fd = -1;
	x->started_ms = w->loop.now_ms;
	x->status = "fail";
	x->req.method = "";
	buf_init(&x->body, w->conf->limits.body_bytes);
	buf_init(&x->held, HELD_REPLY_MAX);
	buf_init(&x->row, ROW_MAX);
	buf_init(&x->early, UPCALL_BUFFER);
	buf_init(&x->answer.body, HELD_REPLY_MAX);
	buf_init(&x->out.body, 4u << 20);
	x->next = w->exchanges;
	if (x->next)
		x->next->prev = x;
	w->exchanges = x;
	c->exchange = x;
	return x;
}

void exchange_free_spare(struct worker *w)
{
	while (w->spare) {
		struct exchange *x = w->spare;

		w->spare = x->next;
		buf_fini(&x->out.head);
		arena_destroy(x->arena);
		free(x);
	}
	w->spare_count = 0;
}

/* All may hold so much together, and one caller half of it: nobody can keep the others out. */
bool bodies_are_many(const struct exchange *x)
{
	uint64_t most = x->worker->conf->limits.bodies_bytes, own = 0;

	if (x->worker->bodies_bytes <= most / 2)
		return false;
	for (const struct exchange *one = x->worker->exchanges; one; one = one->next)
		if (one != x && one->conn && x->conn && connection_same_caller(one->conn, x->conn))
			own += one->body.size;
	return (own && own + x->body.size > most / 2) || x->worker->bodies_bytes > most;
}

void exchange_release_body(struct exchange *x)
{
	x->worker->bodies_bytes -= x->body.size;
	buf_fini(&x->body);
}

/* A decision whose receipt we do not wait for is ended in the log by its client. */
static void forget_receipt(struct exchange *x)
{
	if (!x->waits_receipt)
		return;
	audit_forget(x->worker->audit, x);
	x->waits_receipt = x->allow_on_record = false;
}

/* What was done stays done, what was denied stays denied, whether it could be told or not. */
static void cut_short(struct exchange *x)
{
	if (!strcmp(x->status, "denied") || !strcmp(x->status, "unknown"))
		return;
	if (!x->forwarded || exchange_may_release(x))
		x->status = "aborted";
}

void exchange_not_delivered(struct exchange *x)
{
	x->gone = true;
	cut_short(x);
}

static void stop_looking(struct exchange *x)
{
	if (x->state == X_CALLER && x->conn)
		inside_give_up(x->conn);
	if (x->state == X_ASK)
		asking_withdraw(x);
}

void exchange_end(struct exchange *x)
{
	bool under_way = x->forwarded && x->state < X_ANSWER;

	stop_looking(x);
	forget_receipt(x);
	lookup_abandon(x);
	forward_abandon(x);
	if (under_way && !exchange_may_release(x))
		x->status = "unknown"; /* it may have been done; nobody is left to look */
	else
		cut_short(x);
	if (x->state != X_OVER)
		trail_end(x);
	x->answer.kind = ANSWER_NONE;
	x->state = X_OVER;
}

void exchange_destroy(struct exchange *x)
{
	struct worker *w = x->worker;

	stop_looking(x);
	forget_receipt(x);
	turns_leave(x);
	quota_let_go(x);
	asking_withdraw(x);
	asking_let_go(x);
	if (x->state != X_OVER)
		trail_end(x);
	lookup_abandon(x);
	forward_abandon(x);
	exchange_release_body(x);
	forward_charge(x, 0);
	buf_fini(&x->held);
	buf_fini(&x->row);
	buf_fini(&x->early);
	buf_fini(&x->answer.body);
	buf_fini(&x->out.body);
	if (x->prev)
		x->prev->next = x->next;
	else
		w->exchanges = x->next;
	if (x->next)
		x->next->prev = x->prev;
	if (x->conn && x->conn->exchange == x)
		x->conn->exchange = NULL;
	keep_or_free(x);
}

/* --- answers --- */

/* A caller who sends nothing for that long is given up. */
uint64_t exchange_upload_deadline(const struct exchange *x)
{
	return x->worker->loop.now_ms + x->worker->conf->limits.body_ms;
}

void exchange_ready(struct exchange *x)
{
	x->state = x->upload_over || x->answer.close ? X_ANSWER : X_DRAIN;
	x->deadline_ms = x->state == X_DRAIN ? exchange_upload_deadline(x) : 0;
	front_resume(x);
}

/* --- the head --- */

static bool type_is_listed(const char *list, const char *type)
{
	struct span rest = span_of(list), one;

	while (rest.len) {
		span_cut(&rest, ' ', &one);
		if (span_is(one, *type ? type : "-"))
			return true;
	}
	return false;
}

/* What route() said of the body is held against the head. */
static enum reason body_fits(const struct exchange *x)
{
	const struct backend_call *call = &x->call;

	if (call->body == BODY_NONE)
		return x->req.has_body ? REASON_content_type : REASON_NONE;
	if (call->content_types && *call->content_types &&
	    !type_is_listed(call->content_types, x->req.content_type))
		return REASON_content_type;
	if (call->body != BODY_JSON)
		return REASON_NONE;
	if (x->req.body_bytes > (int64_t)x->worker->conf->limits.body_bytes)
		return REASON_too_large;
	return bodies_are_many(x) ? REASON_busy : REASON_NONE;
}

/* It must lead to the service that the request goes to. */
static const char *own_socket(const struct exchange *x)
{
	const struct conf_identity *who = x->conn->identity;

	if (!who || !who->own_socket || who->own_backend != x->conn->listener->backend)
		return "";
	return who->own_socket;
}

void exchange_prepare_call(struct exchange *x)
{
	static const struct reach sees_nothing;
	struct backend_call *call = &x->call;

	upstream_refresh(x->service->pool);
	x->epoch = upstream_epoch(x->service->pool);
	call->arena = x->arena;
	call->req = &x->req;
	call->owner = x->conn->who.owner;
	call->id = x->id;
	call->profile = x->profile ? profile_name(x->profile) : "";
	call->minimum = x->profile ? profile_minimum(x->profile) : ISOLATION_NONE;
	call->listener = x->conn->listener->alone ? x->conn->listener->name : "";
	call->reach = x->profile ? profile_reach(x->profile) : &sees_nothing;
	call->seccomp = x->profile ? profile_seccomp(x->profile) : (struct span){"", 0};
	call->adopted = x->service->conf->adopted;
	call->adopted_count = x->service->conf->adopted_count;
	call->self = x->worker->conf->self;
	call->hides = x->profile ? profile_hides(x->profile) : 0;
	call->protected_paths = x->worker->conf->protected_paths;
	call->engine_names = x->conn->listener->engine_names;
	call->own_socket = own_socket(x);
	call->now_ms = x->worker->loop.now_ms;
	call->sees_processes = x->service->conf->sees_files;
	call->updates = x->profile && profile_updates(x->profile) > 0;
	if (x->worker->conf->updates)
		call->seal_key = updates_seal_key(x->worker->conf->updates);
	call->wants_attested = x->profile && profile_wants_attested(x->profile);
	call->offline = check_facts(x->worker) != NULL;
	call->helper = x->worker->conf->sandbox_inside;
	call->from_sandboxes = x->conn->behalf;
}

static bool log_allows(const struct exchange *x)
{
	if (x->worker->check || audit_client_up(x->worker->audit))
		return true;
	return !op_class_changes_state(operation_class(x->call.op)) &&
	       x->worker->conf->reads_without_log;
}

/* Why an identity that might fit does not. */
static void refuse_untold(struct exchange *x)
{
	const struct conn *c = x->conn;
	bool trouble = !c->inside || c->inside->trouble;
	struct violation *v = violations_add(&x->call.refused, trouble ? REASON_container_unasked
								       : REASON_container_unknown);
	char text[200];

	snprintf(text, sizeof(text), "the container that the caller runs in is not known: %s",
		 c->not_told);
	v->field = "identity.container";
	v->text = arena_strndup(x->arena, text, strlen(text));
}

/* Everything that can be said before the body, once it is known who asks. */
static bool caller_refused(struct exchange *x)
{
	struct conn *c = x->conn;
	enum reason body;

	x->profile = c->known ? engine_profile(x->worker->rules, c->who.profile) : NULL;
	exchange_prepare_call(x);
	if (x->service->ops->route(x->service->backend, &x->call) < 0)
		return true;
	if (c->not_told)
		refuse_untold(x);
	else if (!c->known)
		violations_add(&x->call.refused, REASON_identity_unknown);
	else if (!c->own && quarantine_refuses(x))
		return true;
	else if (!x->profile)
		violations_add(&x->call.refused, REASON_profile_missing);
	else if ((body = body_fits(x)) != REASON_NONE)
		violations_add(&x->call.refused, body)->value =
			body == REASON_content_type ? x->req.content_type : "";
	else if (x->call.body == BODY_REWRITE &&
		 profile_grant(x->profile, x->call.op) == GRANT_NONE)
		/* Nothing of it is held for somebody who may not anyway. */
		*violations_add(&x->call.refused, REASON_operation) =
			profile_refusal(x->profile, x->call.op, x->arena);
	else if (!log_allows(x))
		violations_add(&x->call.refused, REASON_audit_unavailable);
	else if (service_is_crowded(x))
		violations_add(&x->call.refused, REASON_engine_busy);
	else if (c->given_up)
		violations_add(&x->call.refused, REASON_busy)->text =
			"the connection was ended; new rules are in force";
	return x->call.refused.count > 0;
}

static void refuse_head(struct exchange *x)
{
	if (!x->call.refused.count)
		violations_add(&x->call.refused, REASON_internal);
	exchange_deny(x);
}

/* True: the head can be read in one way alone. */
static bool read_head(struct exchange *x, const struct raw_head *raw)
{
	struct violation why;

	if (canonical_read(x->arena, raw, &x->req, &why) == 0)
		return true;
	x->answer.close = why.reason == REASON_framing;
	*violations_add(&x->call.refused, why.reason) = why;
	return false;
}

static void go_on(struct exchange *x)
{
	if (x->conn->behalf && behalf_answers(x))
		return;
	if (caller_refused(x)) {
		refuse_head(x);
		return;
	}
	if (x->call.body == BODY_REWRITE && !x->known)
		intake_begin(x);
	if ((x->call.body == BODY_JSON || x->call.body == BODY_REWRITE) && x->req.has_body &&
	    !x->body_read && !x->known) {
		x->state = X_BODY;
		x->deadline_ms = exchange_upload_deadline(x);
		front_resume(x);
		return;
	}
	exchange_advance(x);
}

void exchange_caller_known(struct exchange *x)
{
	x->state = X_HEAD;
	connection_recognise(x->conn, &x->signs);
	go_on(x);
}

static void look_at_caller(struct exchange *x, bool anew)
{
	if (!x->conn->listener->looks_inside || x->worker->check)
		go_on(x);
	else if (inside_look(x, anew))
		x->state = X_CALLER;
	else
		exchange_caller_known(x);
}

void exchange_head(struct exchange *x, const struct raw_head *raw)
{
	bool known = !x->conn->behalf || behalf_read(x, raw), readable;

	if (!x->conn->behalf)
		connection_read_token(x, raw->headers, raw->header_count);
	readable = read_head(x, raw) && known;
	x->upload_over = !x->req.has_body;
	if (!readable)
		refuse_head(x);
	else
		look_at_caller(x, false);
}

/*
 * The body is there, or as much of it as is judged; all else is looked at and judged anew,
 * from where the caller runs on.
 */
void exchange_again(struct exchange *x)
{
	void *reading = x->call.reading;

	quota_let_go(x);
	uuid_make(x->id);
	memset(&x->call, 0, sizeof(x->call));
	x->call.reading = reading;
	memset(&x->decision, 0, sizeof(x->decision));
	memset(&x->facts, 0, sizeof(x->facts));
	x->has_facts = x->hardened = x->decided = x->permitted = false;
	x->quota = NULL;
	x->steps = 0;
	x->receipt[0] = '\0';
	x->deadline_ms = 0;
	x->state = X_HEAD;
	look_at_caller(x, true);
}

/* --- the body --- */

static size_t collect(struct exchange *x, struct span piece)
{
	size_t before = x->body.size;
	enum reason why = REASON_NONE;

	buf_put(&x->body, piece.at, piece.len);
	x->worker->bodies_bytes += x->body.size - before;
	x->bytes_in += piece.len;
	x->deadline_ms = exchange_upload_deadline(x);
	if (buf_spent(&x->body))
		why = REASON_too_large;
	else if (bodies_are_many(x))
		why = REASON_busy;
	if (why == REASON_NONE)
		return piece.len;
	exchange_release_body(x);
	exchange_refuse(x, why, "body", "");
	return piece.len;
}

static size_t drain(struct exchange *x, struct span piece)
{
	x->drained += piece.len;
	x->deadline_ms = exchange_upload_deadline(x);
	if (x->drained > DRAIN_MAX) {
		x->answer.close = true;
		if (x->state == X_DRAIN)
			x->state = X_ANSWER;
	}
	return piece.len;
}

/*
 * What was not taken waits for the service, which may take its time, unless it
 * answers already: then it may never read on, since its answer is held.
 */
uint64_t exchange_service_deadline(const struct exchange *x)
{
	if (x->answer.kind == ANSWER_NONE)
		return 0;
	return x->worker->loop.now_ms + x->worker->conf->limits.engine_ms;
}

size_t exchange_upload(struct exchange *x, struct span piece)
{
	switch (x->state) {
	case X_BODY:
		return x->call.body == BODY_REWRITE ? intake_collect(x, piece) : collect(x, piece);
	case X_SENT:
	case X_HELD:
		if (x->call.body == BODY_REWRITE && x->up)
			return intake_pass(x, piece);
		if (x->call.body == BODY_STREAM && x->up) {
			size_t taken = upcall_send(x->up, piece);

			x->bytes_in += taken;
			x->deadline_ms = taken == piece.len ? exchange_upload_deadline(x)
							    : exchange_service_deadline(x);
			return taken;
		}
		return drain(x, piece);
	case X_DRAIN:
	case X_RECORD:
	case X_ANSWER:
	case X_OVER:
		return drain(x, piece);
	case X_HEAD:
	case X_CALLER:
	case X_LOOKUP:
	case X_ASK:
	case X_CHECK:
	case X_UNDO:
	case X_REPLYING:
	case X_RELAY:
		break;
	}
	return 0;
}

void exchange_upload_end(struct exchange *x)
{
	struct hash h;

	x->upload_over = true;
	switch (x->state) {
	case X_BODY:
		if (x->call.body == BODY_REWRITE) {
			intake_collect_end(x);
			break;
		}
		x->body_read = true;
		x->req.body = buf_span(&x->body);
		h = hash_of(x->req.body);
		hash_hex(&h, x->body_sha256);
		exchange_advance(x);
		break;
	case X_DRAIN:
		x->state = X_ANSWER;
		break;
	case X_SENT:
	case X_HELD:
		forward_upload(x);
		break;
	case X_HEAD:
	case X_CALLER:
	case X_LOOKUP:
	case X_ASK:
	case X_RECORD:
	case X_CHECK:
	case X_UNDO:
	case X_ANSWER:
	case X_REPLYING:
	case X_RELAY:
	case X_OVER:
		break;
	}
}

/* --- the end --- */

/* True for what is given up when its caller is gone: nothing is left half done by it. */
bool exchange_may_release(const struct exchange *x)
{
	switch (operation_class(x->call.op)) {
	case CLASS_READ:
	case CLASS_DATA_IN:
	case CLASS_DATA_OUT:
	case CLASS_NONE:
		return true;
	case CLASS_EXEC:
		return x->call.reply != REPLY_HELD && x->call.op != OP_EXEC_CREATE;
	case CLASS_LIFECYCLE:
		return x->call.op == OP_CONTAINER_WAIT;
	case CLASS_LAUNCH:
	case CLASS_POLICY:
	case CLASS_HOST:
	case CLASS_COUNT:
		break;
	}
	return false;
}

void exchange_hang_up(struct exchange *x)
{
	x->gone = true;
	if (x->state == X_RELAY || x->state == X_OVER)
		return;
	/* What is forwarded and changes state is finished, checked and recorded. */
	if (x->state >= X_SENT && x->state <= X_UNDO && !exchange_may_release(x))
		return;
	if (x->state == X_RECORD)
		return; /* the decision is on its way to the log: it is carried out */
	stop_looking(x);
	exchange_not_delivered(x);
	lookup_abandon(x);
	forward_abandon(x);
	x->answer.kind = ANSWER_NONE;
	x->upload_over = true;
	x->state = X_ANSWER;
	front_resume(x);
}

static void stalled_upload(struct exchange *x)
{
	if (x->forwarded)
		x->status = "aborted";
	forward_abandon(x);
	x->answer.close = true;
	exchange_refuse(x, REASON_timeout, "body", "");
}

void exchange_tick(struct exchange *x, uint64_t now_ms)
{
	if (x->relay) {
		relay_expire(x->relay, now_ms);
		return;
	}
	if (x->state == X_ASK) {
		asking_tick(x, now_ms);
		return;
	}
	if (lookup_tick(x) || !x->deadline_ms || now_ms < x->deadline_ms)
		return;
	x->deadline_ms = 0;
	switch (x->state) {
	case X_LOOKUP:
	case X_CHECK:
		lookup_timeout(x);
		break;
	case X_UNDO:
		forward_undo_timeout(x);
		break;
	case X_SENT:
	case X_HELD:
		if (exchange_streams(x) && !x->upload_over && !x->suspended)
			stalled_upload(x);
		else
			forward_timeout(x);
		break;
	case X_HEAD:
	case X_CALLER: /* which has a limit of its own */
	case X_ASK:    /* likewise */
	case X_RECORD:
	case X_ANSWER:
	case X_REPLYING:
	case X_RELAY:
	case X_OVER:
		break;
	case X_BODY:
	case X_DRAIN:
		stalled_upload(x);
		break;
	}
}

static void on_relay_done(void *arg, uint64_t to_service, uint64_t to_caller)
{
	struct exchange *x = arg;

	x->relay = NULL;
	x->bytes_in += to_service;
	x->bytes_out += to_caller;
	x->status = "ok";
	trail_end(x);
	x->state = X_OVER;
	/* MHD closes the socket and then lets go of the exchange. */
	MHD_upgrade_action(x->upgrade, MHD_UPGRADE_ACTION_CLOSE);
	x->worker->mhd_due = true;
}

void exchange_relay(struct exchange *x, int caller_fd, struct span extra)
{
	struct err err = {0};
	struct buf early;
	int fd = x->service_fd;

	buf_init(&early, UPCALL_BUFFER);
	buf_put(&early, extra.at, extra.len);
	x->state = X_RELAY;
	x->service_fd = -1;
	x->relay = relay_start(&x->worker->loop, caller_fd, &early, fd, &x->early, on_relay_done, x,
			       &err);
	buf_fini(&early);
	if (x->relay)
		return;
	snprintf(x->err, sizeof(x->err), "%.150s", err.msg);
	trail_end(x);
	x->state = X_OVER;
	MHD_upgrade_action(x->upgrade, MHD_UPGRADE_ACTION_CLOSE);
	x->worker->mhd_due = true;
}
