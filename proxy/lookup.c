/*
 * Answers what an adapter needs to know: from the service, from the resolver,
 * or, in `sallyport check --facts`, from the facts file.  All lookups of one
 * step run side by side.
 */
#include "gate/base/clock.h"
#include "proxy/resolve.h"
#include "proxy/updates.h"
#include "proxy/worker_priv.h"

#include <stdio.h>
#include <string.h>

static const struct upcall_handlers lookup_handlers;

/* All of them are answered: the exchange goes on where it asked. */
static void go_on(struct exchange *x)
{
	x->deadline_ms = 0;
	if (x->resume)
		x->resume(x);
	else if (x->state == X_CHECK)
		forward_check(x);
	else if (quota_is_counting(x))
		quota_go_on(x);
	else
		exchange_advance(x);
}

static void answered(struct lookup_run *run, int status)
{
	struct exchange *x = run->x;
	enum jv_fault fault;
	struct err err = {0};

	run->lookup->answered = true;
	run->lookup->status = status;
	run->lookup->body = jv_null();
	/* What is not JSON is no answer: the adapter sees null. */
	if (status && buf_len(&run->body) &&
	    jv_parse(x->arena, buf_span(&run->body), &run->lookup->body, &fault, &err) < 0)
		run->lookup->status = status < 300 ? 0 : status;
	buf_fini(&run->body);
	if (run->up)
		upcall_release(run->up);
	run->up = NULL;
	run->ticket = 0;
	run->waits = run->later = false;
	x->runs_open--;
}

static void on_head(void *arg, const struct reply_head *head)
{
	struct lookup_run *run = arg;

	run->status = head->status;
	lookup_handlers.data(arg);
}

static void on_data(void *arg)
{
	struct lookup_run *run = arg;
	struct exchange *x = run->x;
	struct span s = upcall_body(run->up);

	buf_put(&run->body, s.at, s.len);
	upcall_take(run->up, s.len);
	if (!upcall_complete(run->up) && !buf_spent(&run->body))
		return;
	answered(run, buf_spent(&run->body) ? 0 : run->status);
	if (!x->runs_open)
		go_on(x);
}

static void on_fail(void *arg, enum upcall_fault fault)
{
	struct lookup_run *run = arg;
	struct exchange *x = run->x;

	(void)fault;
	x->service->ops->forget(x->service->backend);
	snprintf(x->err, sizeof(x->err), "%.190s", upcall_why(run->up));
	answered(run, 0);
	if (!x->runs_open)
		go_on(x);
}

static const struct upcall_handlers lookup_handlers = {
	.head = on_head,
	.data = on_data,
	.fail = on_fail,
};

static bool start_get(struct exchange *x, struct lookup_run *run)
{
	struct upcall_request req = {.repeatable = true};
	struct err err = {0};
	struct buf head;

	buf_init(&head, 16384);
	buf_printf(&head, "GET %s HTTP/1.1\r\nHost: docker\r\n\r\n", run->lookup->target);
	req.head = buf_span(&head);
	if (!buf_spent(&head))
		run->up = upcall_start(x->service->pool, &req, &lookup_handlers, run, &err);
	buf_fini(&head);
	service_count(x, ENGINE_requests, 1);
	if (!run->up)
		snprintf(x->err, sizeof(x->err), "%.190s", err.msg);
	return run->up != NULL;
}

/* True if the answer will come later; false if there is none, or it is there already. */
static bool start_question(struct exchange *x, struct lookup_run *run, int *ret_status)
{
	struct worker *w = x->worker;

	*ret_status = 0;
	if (!x->service->conf->sees_files)
		return false;
	if (w->check) {
		if (run->lookup->kind == LOOKUP_PROCESS)
			return false; /* nothing is started in a check */
		resolve_path(run->lookup->target, &run->body);
		*ret_status = 200;
		return false;
	}
	if (!frame_alive(&w->resolver) || strlen(run->lookup->target) > QUESTION_MAX)
		return false;
	run->ticket = ++w->next_ticket;
	run->waits = true;
	questions_send(w);
	return true;
}

/* What this caller took away under a name; 404 if nothing is remembered. */
static int recall(struct exchange *x, struct lookup_run *run)
{
	const struct updates_key key = {&x->conn->who, x->service->conf->name, run->lookup->target};
	struct updates *table = x->worker->conf->updates;
	int64_t now = (int64_t)(clock_unix_ns() / 1000000000);

	return table && updates_get(table, &key, now, &run->body) ? 200 : 404;
}

static void start_one(struct exchange *x, struct lookup_run *run)
{
	int status = 0;
	bool later;

	if (check_facts(x->worker)) {
		check_lookup(x->worker, run->lookup, x->arena);
		x->runs_open--;
		return;
	}
	if (run->lookup->kind == LOOKUP_REMEMBERED) {
		status = recall(x, run);
		answered(run, status);
		return;
	}
	later = run->lookup->kind == LOOKUP_GET ? start_get(x, run)
						: start_question(x, run, &status);
	if (!later)
		answered(run, status);
}

void lookup_start(struct exchange *x)
{
	if (!x->runs)
		x->runs = arena_take(x->arena, sizeof(*x->runs) * LOOKUPS_MAX);
	if (!x->runs) {
		/* Unknown is denied; and what was made already is removed. */
		for (size_t i = 0; i < x->call.lookup_count; i++)
			x->call.lookups[i].answered = true;
		go_on(x);
		return;
	}
	x->runs_open = 1; /* held until all are started, so that none ends the step early */
	x->deadline_ms = x->worker->loop.now_ms + x->worker->conf->limits.engine_ms;
	for (size_t i = 0; i < x->call.lookup_count; i++) {
		struct lookup_run *run = &x->runs[i];

		if (x->call.lookups[i].answered)
			continue;
		*run = (struct lookup_run){.x = x, .lookup = &x->call.lookups[i]};
		buf_init(&run->body, LOOKUP_REPLY_MAX);
		x->runs_open++;
		run->later = run->lookup->later && !check_facts(x->worker);
		if (!run->later)
			start_one(x, run);
	}
	if (--x->runs_open == 0)
		go_on(x);
}

bool lookup_tick(struct exchange *x)
{
	bool started = false;

	if (!x->runs_open)
		return false;
	x->runs_open++; /* held, as above */
	for (size_t i = 0; i < x->call.lookup_count; i++) {
		struct lookup_run *run = &x->runs[i];

		if (x->call.lookups[i].answered || !run->later)
			continue;
		run->later = false;
		started = true;
		start_one(x, run);
	}
	if (--x->runs_open == 0)
		go_on(x);
	return started;
}

void lookup_abandon(struct exchange *x)
{
	for (size_t i = 0; x->runs && i < LOOKUPS_MAX; i++) {
		struct lookup_run *run = &x->runs[i];

		if (run->up)
			upcall_release(run->up);
		run->up = NULL;
		run->ticket = 0;
		run->waits = run->later = false;
		buf_fini(&run->body);
	}
	x->runs_open = 0;
}

void lookup_timeout(struct exchange *x)
{
	for (size_t i = 0; x->runs && i < x->call.lookup_count; i++) {
		if (x->call.lookups[i].answered)
			continue;
		answered(&x->runs[i], 0);
		x->call.lookups[i].late = true;
	}
	x->runs_open = 0;
	go_on(x);
}

static struct lookup_run *find_ticket(struct worker *w, uint64_t ticket)
{
	for (struct exchange *x = w->exchanges; x; x = x->next)
		for (size_t i = 0; x->runs_open && i < x->call.lookup_count; i++)
			if (x->runs[i].ticket == ticket)
				return &x->runs[i];
	return NULL;
}

void lookup_path_answer(struct worker *w)
{
	struct span frame;
	uint64_t ticket;

	while (frame_next(&w->resolver, &frame)) {
		struct lookup_run *run;
		struct exchange *x;

		if (frame.len < sizeof(ticket))
			continue;
		memcpy(&ticket, frame.at, sizeof(ticket));
		questions_answered(w, ticket);
		run = ticket ? find_ticket(w, ticket) : NULL;
		if (!run && inside_answer(w, ticket, span_skip(frame, sizeof(ticket))))
			continue;
		if (!run)
			continue; /* its exchange is gone */
		frame = span_skip(frame, sizeof(ticket));
		buf_put(&run->body, frame.at, frame.len);
		x = run->x;
		answered(run, 200);
		if (!x->runs_open)
			go_on(x);
	}
	questions_send(w);
}

/* Questions that were under way have no answer; unknown is denied. */
void lookup_resolver_lost(struct worker *w)
{
	questions_lost(w);
	inside_resolver_lost(w);
	for (struct exchange *x = w->exchanges, *next; x; x = next) {
		bool waited = false;

		next = x->next;
		for (size_t i = 0; x->runs_open && i < x->call.lookup_count; i++) {
			if (!x->runs[i].ticket)
				continue;
			waited = true;
			answered(&x->runs[i], 0);
		}
		if (waited && !x->runs_open)
			go_on(x);
	}
}
