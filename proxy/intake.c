/*
 * Bodies that an adapter reads on their way and writes anew.  Until it knows
 * enough to be judged by, what is to be sent is held in x->body; then it is
 * sent as the service takes it, and the rest is read on.  What is refused in
 * the middle leaves the service with half a body, which it throws away.
 */
#include "proxy/worker_priv.h"

#include <stdio.h>
#include <string.h>

#define PASS_HELD_MAX 262144 /* bytes that wait for the service; then nothing more is read */

void intake_begin(struct exchange *x)
{
	buf_init(&x->body, x->worker->conf->limits.context_bytes + PASS_HELD_MAX);
}

/* One step; the memory that it takes is counted. */
static enum intake step(struct exchange *x, struct span *piece, bool over)
{
	size_t before = x->body.size, left = piece->len;
	enum intake got =
		x->service->ops->intake(x->service->backend, &x->call, piece, over, &x->body);

	x->worker->bodies_bytes += x->body.size - before;
	x->bytes_in += left - piece->len;
	if (got == INTAKE_REFUSED && !x->call.refused.count)
		violations_add(&x->call.refused, REASON_internal);
	return got;
}

/* --- before it is judged --- */

static void refuse_held(struct exchange *x)
{
	exchange_release_body(x);
	exchange_deny(x);
}

static bool too_much(struct exchange *x)
{
	uint64_t most = x->worker->conf->limits.context_bytes;
	bool spent = buf_spent(&x->body) || buf_len(&x->body) > most;
	struct violation *v;

	if (!spent && !bodies_are_many(x))
		return false;
	v = violations_add(&x->call.refused, spent ? REASON_build_size : REASON_busy);
	v->field = "body";
	refuse_held(x);
	return true;
}

/* A check sends nothing, so it looks at all of the body before it judges. */
static bool is_due(const struct exchange *x)
{
	return x->known && (!x->worker->check || x->intake_over);
}

static void take_step(struct exchange *x, struct span *piece)
{
	enum intake got = step(x, piece, x->intake_over);

	x->known = x->known || got == INTAKE_KNOWN;
	if (got == INTAKE_REFUSED) {
		refuse_held(x);
		return;
	}
	if (x->worker->check && x->known)
		buf_clear(&x->body);
	if (too_much(x))
		return;
	if (is_due(x))
		exchange_advance(x);
}

size_t intake_collect(struct exchange *x, struct span piece)
{
	struct span left = piece;

	x->deadline_ms = exchange_upload_deadline(x);
	while (left.len && x->state == X_BODY)
		take_step(x, &left);
	/* What a refusal left is dropped. */
	return x->call.refused.count ? piece.len : piece.len - left.len;
}

void intake_collect_end(struct exchange *x)
{
	struct span none = {"", 0};

	x->intake_over = true;
	take_step(x, &none);
}

/* --- after that --- */

/* The service is left without the end, so that it does nothing. */
static void give_up(struct exchange *x)
{
	snprintf(x->err, sizeof(x->err), "the upload was ended: %.150s",
		 x->call.refused.list[0].text ? x->call.refused.list[0].text : "");
	x->status = "aborted";
	forward_abandon(x);
	exchange_release_body(x);
	x->answer.kind = ANSWER_NONE;
	exchange_deny(x);
}

static void send_some(struct exchange *x)
{
	while (buf_len(&x->body)) {
		size_t taken = upcall_send(x->up, buf_span(&x->body));

		if (!taken)
			return;
		buf_consume(&x->body, taken);
	}
	if (x->body.size > PASS_HELD_MAX) /* what was held is gone */
		exchange_release_body(x);
}

size_t intake_pass(struct exchange *x, struct span piece)
{
	struct span left = piece;

	for (;;) {
		send_some(x);
		if (!left.len || buf_len(&x->body) >= PASS_HELD_MAX)
			break;
		if (step(x, &left, false) == INTAKE_REFUSED || buf_spent(&x->body)) {
			give_up(x);
			return piece.len;
		}
	}
	x->deadline_ms = left.len ? exchange_service_deadline(x) : exchange_upload_deadline(x);
	return piece.len - left.len;
}

void intake_flush(struct exchange *x)
{
	struct span none = {"", 0};

	if (x->upload_over && !x->intake_over) {
		x->intake_over = true;
		if (step(x, &none, true) == INTAKE_REFUSED) {
			give_up(x);
			return;
		}
	}
	send_some(x);
	if (buf_len(&x->body) || !x->intake_over) {
		if (!x->upload_over)
			front_resume(x);
		return;
	}
	if (x->upload_sent)
		return;
	x->upload_sent = true;
	forward_upload(x);
}
