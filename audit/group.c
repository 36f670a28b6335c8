#include "audit/auditor_priv.h"
#include "audit/state.h"

#include <stdio.h>
#include <stdlib.h>

#define ALARM_TEXT 600

void auditor_say(struct conn *conn, struct wire_head head, struct span body)
{
	if (!conn->mute && !wire_put(&conn->fc, head, body))
		conn->over = true; /* it does not read its answers */
}

static void give_receipts(struct auditor *a)
{
	for (size_t i = 0; i < a->answer_count; i++) {
		const struct answer *answer = &a->answers[i];
		struct conn *conn = a->conns[answer->conn];
		struct wire_receipt receipt = {.head = {WIRE_RECEIPT, 0, answer->ticket},
					       .seq = answer->mark.seq,
					       .hash = answer->mark.hash};

		if (conn && conn->owner == answer->owner)
			auditor_say(conn, receipt.head,
				    (struct span){(const char *)&receipt + sizeof(receipt.head),
						  sizeof(receipt) - sizeof(receipt.head)});
	}
	a->answer_count = 0;
}

static void give_acks(struct auditor *a)
{
	for (size_t i = 0; i < AUDITOR_CONNS_MAX && a->acks_due; i++) {
		struct conn *conn = a->conns[i];

		if (conn && conn->ack_due) {
			auditor_say(conn, (struct wire_head){WIRE_ACK, 0, conn->ack},
				    (struct span){"", 0});
			conn->ack_due = false;
		}
	}
	a->acks_due = false;
}

/*
 * Before the records that commit to them.  Without them the records are as good as with
 * them, so it is an alarm and no more.
 */
static void keep_values(struct auditor *a)
{
	struct err err = {0};
	struct record alarm = {.type = RECORD_LOG_ALARM, .cause = "erasable", .text = err.msg};

	if (erasable_sync(&a->erasable, &err) == 0) {
		a->erasable.troubled = false;
		return;
	}
	if (a->erasable.troubled)
		return;
	a->erasable.troubled = true;
	if (audit_log_add_own(a->log, &alarm) == 0)
		auditor_alarm(a, record_type_name(alarm.type), alarm.cause, err.msg);
}

void auditor_commit(struct auditor *a)
{
	struct err err = {0};
	int begun;

	keep_values(a);
	if (audit_log_commit(a->log, &a->why) < 0)
		return;
	a->flush_at_ms = 0;
	give_receipts(a);
	give_acks(a);
	if (a->space.seal_at_ms || !audit_log_full(a->log))
		return; /* what is left to be said stands behind a full segment */
	begun = audit_log_rotate(a->log, &a->open, &err);
	if (begun == 0) /* a finished segment is covered at once */
		a->checkpoint_at_ms = a->pruning.look_at_ms = 0;
	else
		a->why = err;
	if (begun > 0)
		auditor_space_gone(a);
}

void auditor_flush_soon(struct auditor *a)
{
	if (!a->flush_at_ms)
		a->flush_at_ms = a->now_ms + a->flush_ms;
}

bool auditor_make_room(struct auditor *a, size_t body_len)
{
	if (!auditor_sealed(a) && buf_room(&a->log->group) < body_len + RECORD_FRAME_MAX + 1)
		auditor_commit(a);
	return !auditor_sealed(a);
}

bool auditor_add(struct auditor *a, struct span body, struct audit_mark *ret)
{
	if (!auditor_make_room(a, body.len) || audit_log_add(a->log, body, ret) < 0)
		return false;
	erasable_put(&a->erasable, ret->seq, a->log->first);
	auditor_flush_soon(a);
	return true;
}

void auditor_alarm(struct auditor *a, const char *type, const char *cause, const char *text)
{
	char line[ALARM_TEXT];

	audit_state_alarm(a->state);
	if (!a->tell)
		return;
	snprintf(line, sizeof(line), "%s%s%s%s%s", type, *cause ? ", " : "", cause,
		 *text ? ": " : "", text);
	a->tell(line);
}

void auditor_add_own(struct auditor *a, struct record *r)
{
	if (record_alarms(r->type, (struct span){"", 0}))
		auditor_alarm(a, record_type_name(r->type), r->cause ? r->cause : "",
			      r->text ? r->text : "");
	if (auditor_make_room(a, RECORD_BODY_MAX) && audit_log_add_own(a->log, r) == 0)
		auditor_flush_soon(a);
}

void auditor_give_up(struct auditor *a, uint32_t owner, const char *why)
{
	struct decision_id *ids = malloc((a->open.count + 1) * sizeof(*ids));
	struct open_decision *d;
	size_t slot = 0, count = 0;

	if (!ids)
		return; /* they stay open; the next start finds them */
	while ((d = open_set_next(&a->open, &slot)))
		if (d->owner == owner)
			ids[count++] = d->id;
	for (size_t i = 0; i < count && !auditor_sealed(a); i++) {
		char of[37];
		struct record r = {
			.type = RECORD_OUTCOME_UNKNOWN, .of = of, .status = "unknown", .text = why};

		decision_id_format(&ids[i], of);
		/* A segment that begins just here must still count it as open. */
		auditor_add_own(a, &r);
		open_set_drop(&a->open, &ids[i]);
	}
	free(ids);
}
