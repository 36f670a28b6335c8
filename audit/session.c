#include "audit/auditor_priv.h"

#include "audit/pairing_priv.h"
#include "audit/state.h"

#include <stdio.h>
#include <string.h>

#define OPEN_CONN_MAX 65536 /* allowed decisions of one worker without an outcome */

/* A worker that was taken over cannot say that the admin socket was used, nor its process what was
 * judged; likewise the sandbox API. */
static bool may_send(const struct conn *conn, enum record_type type, uint32_t flags)
{
	if (type != RECORD_LOG_ALARM && (conn->is_admin != (type == RECORD_ADMIN) ||
					 conn->is_sandbox != (type == RECORD_SANDBOX)))
		return false;
	switch (type) {
	case RECORD_DECISION:
		return flags == WIRE_RECEIPT_WANTED;
	case RECORD_OUTCOME:
		return flags == WIRE_OUTCOME;
	case RECORD_READ:
	case RECORD_MALFORMED:
	case RECORD_POLICY_LOAD:
	case RECORD_POLICY_REJECT:
	case RECORD_WORKER_LOST:
	case RECORD_LOG_ALARM:
	case RECORD_REJUDGED:
	case RECORD_ADMIN:
	case RECORD_SANDBOX:
	case RECORD_OBSERVED:
	case RECORD_OBSERVED_GAP:
	case RECORD_APPROVAL:
	case RECORD_OBSERVED_SUM:
	case RECORD_SUPPRESSED:
		return flags == WIRE_READ || flags == WIRE_RECEIPT_WANTED;
	case RECORD_NONE:
	case RECORD_GATE_START:
	case RECORD_GATE_STOP:
	case RECORD_GATE_RECOVER:
	case RECORD_LOG_OPEN:
	case RECORD_LOG_SEAL:
	case RECORD_OUTCOME_UNKNOWN:
	case RECORD_CHECKPOINT:
	case RECORD_KEY_ROTATE:
	case RECORD_CLOCK_STEP:
	case RECORD_LOG_READ:
	case RECORD_LOG_PRUNE:
	case RECORD_LOG_ERASE:
	case RECORD_ADOPT:
	case RECORD_TYPE_COUNT:
		break;
	}
	return false;
}

/* The decision that an outcome completes, if it is this worker's to tell, or nobody's; or NULL. */
static const struct open_decision *find_own(const struct auditor *a, const struct conn *conn,
					    struct span of_text)
{
	const struct open_decision *d;
	struct decision_id of;

	if (decision_id_parse(of_text, &of) < 0)
		return NULL;
	d = open_set_find(&a->open, &of);
	return d && (d->owner == conn->owner || d->owner == 0) ? d : NULL;
}

static void owe_ack(struct auditor *a, struct conn *conn, uint64_t ticket)
{
	conn->ack = ticket;
	conn->ack_due = a->acks_due = true;
	auditor_flush_soon(a);
}

static void on_outcome(struct auditor *a, struct conn *conn, uint64_t ticket, struct span body,
		       const struct record_peek *peek)
{
	const struct open_decision *d = find_own(a, conn, peek->of);
	struct audit_mark mark;

	owe_ack(a, conn, ticket);
	if (!d)
		return; /* sent again, or too late */
	if (d->owner == conn->owner)
		conn->open--;
	if (auditor_add(a, body, &mark))
		pairing_apply(&a->open, peek, mark.seq);
}

/* An allowed decision must be known as open before it is written. */
static bool open_decision(struct auditor *a, struct conn *conn, const struct record_peek *peek,
			  struct decision_id *ret)
{
	if (conn->open >= OPEN_CONN_MAX || decision_id_parse(peek->id, ret) < 0 ||
	    pairing_apply(&a->open, peek, a->log->writer.seq) != PAIRING_OPENED)
		return false;
	open_set_find(&a->open, ret)->owner = conn->owner;
	conn->open++;
	return true;
}

static bool on_wanted(struct auditor *a, size_t index, uint64_t ticket, struct span body,
		      const struct record_peek *peek)
{
	struct conn *conn = a->conns[index];
	struct answer answer = {.conn = index, .owner = conn->owner, .ticket = ticket};
	struct decision_id id;

	if (a->answer_count == AUDITOR_ANSWERS_MAX)
		auditor_commit(a);
	if (!auditor_make_room(a, body.len) || (peek->allow && !open_decision(a, conn, peek, &id)))
		return false;
	if (!auditor_add(a, body, &answer.mark)) {
		if (peek->allow) {
			open_set_drop(&a->open, &id);
			conn->open--;
		}
		return false;
	}
	a->answers[a->answer_count++] = answer;
	return true;
}

/*
 * A sum may be told twice, when the worker that told it died, or the auditor did.
 * False: it is not in the log.
 */
static bool on_sum(struct auditor *a, size_t index, struct wire_head head, struct span body,
		   struct span id_text)
{
	struct answer answer = {
		.conn = index, .owner = a->conns[index]->owner, .ticket = head.ticket};
	const struct told_sum *told;
	struct decision_id id;

	if (a->answer_count == AUDITOR_ANSWERS_MAX)
		auditor_commit(a);
	if (decision_id_parse(id_text, &id) < 0 || auditor_sealed(a))
		return false;
	told = told_find(&a->log->told, &id);
	if (told)
		answer.mark = told->mark;
	else if (!auditor_add(a, body, &answer.mark))
		return false;
	else
		told_keep(&a->log->told, &id, &answer.mark);
	if (head.flags == WIRE_RECEIPT_WANTED)
		a->answers[a->answer_count++] = answer;
	auditor_flush_soon(a);
	return true;
}

static void tell_alarm(struct auditor *a, enum record_type type, struct span body)
{
	struct span cause = record_peek_str(body, "cause"), text = record_peek_str(body, "text");
	char words[64], said[400];

	snprintf(words, sizeof(words), "%.*s", SPAN_FMT(cause));
	snprintf(said, sizeof(said), "%.*s", SPAN_FMT(text));
	auditor_alarm(a, record_type_name(type), words, said);
}

static void on_record(struct auditor *a, size_t index, struct wire_head head, struct span body)
{
	struct conn *conn = a->conns[index];
	struct record_peek peek;
	struct audit_mark mark;
	bool good = record_valid(body) && record_peek(body, &peek) &&
		    may_send(conn, peek.type, head.flags);

	if (good) {
		struct span kept = erasable_take(&a->erasable, body);

		if (kept.at != body.at) /* what was read of it points into it */
			good = record_peek(kept, &peek);
		body = kept;
	}
	if (!good)
		a->refused++;
	else if (record_alarms(peek.type, body))
		tell_alarm(a, peek.type, body);
	if (head.flags == WIRE_RECEIPT_WANTED) {
		bool low = good && peek.allow && auditor_space_refuses(a, body);

		if (low)
			good = false;
		if (good)
			good = peek.type == RECORD_SUPPRESSED
				       ? on_sum(a, index, head, body, peek.id)
				       : on_wanted(a, index, head.ticket, body, &peek);
		if (!good)
			auditor_say(
				conn,
				(struct wire_head){WIRE_REFUSED, low ? WIRE_LOW : 0, head.ticket},
				(struct span){"", 0});
	} else if (head.flags == WIRE_OUTCOME) {
		if (good)
			on_outcome(a, conn, head.ticket, body, &peek);
		else
			owe_ack(a, conn, head.ticket); /* again would not make it better */
	} else if (good && peek.type == RECORD_SUPPRESSED) {
		(void)on_sum(a, index, head, body, peek.id);
	} else if (good) {
		auditor_add(a, body, &mark);
	}
}

static void on_claim(struct auditor *a, struct conn *conn, struct span ids)
{
	for (; ids.len >= sizeof(struct decision_id);
	     ids = span_skip(ids, sizeof(struct decision_id))) {
		struct open_decision *d;
		struct decision_id id;

		memcpy(&id, ids.at, sizeof(id));
		d = open_set_find(&a->open, &id);
		if (d && d->owner == 0) {
			d->owner = conn->owner;
			conn->open++;
		}
	}
}

static void on_hello(struct auditor *a, struct conn *conn)
{
	conn->greeted = true;
	auditor_say(conn, (struct wire_head){WIRE_UP, 0, a->log->writer.epoch},
		    span_of(a->log->writer.origin));
}

bool session_frame(struct auditor *a, size_t index, struct span frame)
{
	struct conn *conn = a->conns[index];
	struct wire_head head;

	if (!wire_head(&frame, &head))
		return false;
	if (!conn->greeted) {
		if (head.kind != WIRE_HELLO || head.ticket != WIRE_VERSION)
			return false;
		on_hello(a, conn);
		return true;
	}
	if (head.kind == WIRE_CLAIM)
		on_claim(a, conn, frame);
	else if (head.kind == WIRE_RECORD)
		on_record(a, index, head, frame);
	else
		return false;
	return true;
}
