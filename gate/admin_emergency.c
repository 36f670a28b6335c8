/*
 * admin_emergency.c - the verbs that put something above the rules for a while.
 *
 * A quarantine comes into force before it is kept, and ends after it is: an error of the disk
 * never leaves anybody at large.
 */
#include "gate/admin_priv.h"

#include "gate/base/clock.h"
#include "gate/base/jv.h"
#include "gate/base/log.h"
#include "gate/emergency_state.h"

#include <string.h>

int admin_emergency_keep(struct admin *a, const struct emergency_view *view, struct err *err)
{
	return a->conf->state < 0 ? 0 : emergency_state_write(a->conf->state, view, err);
}

/* Without a folder nothing can be kept, which is no error. */
static bool keep(struct admin *a, const struct emergency_view *view, struct err *err)
{
	if (admin_emergency_keep(a, view, err) == 0)
		return a->conf->state >= 0;
	log_line("what is under quarantine cannot be kept over a restart: %s", err->msg);
	return false;
}

void admin_emergency_open(struct admin *a)
{
	struct err err = {0};

	emergency_look(a->conf->emergency, &a->emergency);
	if (a->emergency.turn) { /* the process before this one has ended */
		keep(a, &a->emergency, &err);
		return;
	}
	if (a->conf->state >= 0 && emergency_state_read(a->conf->state, &a->emergency, &err) < 0) {
		log_line("NOTHING IS ALLOWED, since it is not known who is under quarantine, "
			 "until this is mended or removed and the gate started again: %s",
			 err.msg);
		return;
	}
	emergency_publish(a->conf->emergency, &a->emergency);
	for (size_t i = 0; i < a->emergency.owner_count; i++)
		log_line("%s is under quarantine, ticket %s", a->emergency.owners[i].owner,
			 a->emergency.owners[i].ticket);
	for (size_t i = 0; i < a->emergency.mode_count; i++)
		if (emergency_mode_holds(&a->emergency.modes[i]))
			log_line("profile %s ONLY WARNS, ticket %s", a->emergency.modes[i].profile,
				 a->emergency.modes[i].ticket);
}

/* --- what is shown --- */

static void put_quarantine(struct buf *out, const struct quarantine *q)
{
	char since[CLOCK_TEXT_MAX];

	clock_format((uint64_t)q->since * 1000000000, since);
	buf_puts(out, "{\"owner\":");
	jv_write_str(out, span_of(q->owner));
	buf_printf(out, ",\"ticket\":\"%s\",\"since\":\"%s\",\"kill\":%s}", q->ticket, since,
		   q->kill ? "true" : "false");
}

static void list_quarantines(struct admin_use *u)
{
	const struct emergency_view *view = &u->a->emergency;

	buf_puts(&u->result, ",\"quarantines\":[");
	for (size_t i = 0; i < view->owner_count; i++) {
		buf_puts(&u->result, i ? "," : "");
		put_quarantine(&u->result, &view->owners[i]);
	}
	buf_puts(&u->result, "]");
	admin_finish(u, ADMIN_DONE);
}

void admin_begin_quarantine_list(struct admin_use *u)
{
	u->act = list_quarantines;
	admin_decide(u, ADMIN_DONE, NULL);
}

/* --- quarantine --- */

static void put_result(struct admin_use *u, const struct quarantine *q, bool kept)
{
	buf_puts(&u->result, ",\"quarantine\":");
	put_quarantine(&u->result, q);
	buf_printf(&u->result, ",\"kept\":%s,\"known\":%s", kept ? "true" : "false",
		   u->owner_known ? "true" : "false");
}

static void begin_quarantine(struct admin_use *u)
{
	struct admin *a = u->a;
	const char *ticket = admin_arg(&u->req, "ticket")->text;
	bool kill = admin_arg(&u->req, "kill")->number != 0;
	const struct quarantine *q = emergency_begin(&a->emergency, u->owner, ticket, kill);
	struct err err = {0};

	if (!q) {
		admin_finish(u, ANSWER_quarantines_full);
		return;
	}
	emergency_publish(a->conf->emergency, &a->emergency);
	log_line("%s is under quarantine, ticket %s%s", q->owner, ticket,
		 kill ? ": what it runs is stopped" : "");
	put_result(u, q, keep(a, &a->emergency, &err));
	admin_finish(u, ADMIN_DONE);
}

static void release(struct admin_use *u)
{
	struct admin *a = u->a;
	const struct quarantine *q = emergency_quarantine(&a->emergency, u->owner);
	struct emergency_view next;
	struct err err = {0};
	bool kept;

	if (!q) { /* another has released it meanwhile */
		admin_finish(u, ANSWER_quarantine_missing);
		return;
	}
	next = a->emergency;
	emergency_end(&next, u->owner);
	kept = keep(a, &next, &err);
	if (!kept && a->conf->state >= 0) {
		snprintf(u->text, sizeof(u->text), "%s", err.msg);
		admin_finish(u, ANSWER_state_lost);
		return;
	}
	put_result(u, q, kept);
	a->emergency = next;
	emergency_publish(a->conf->emergency, &a->emergency);
	log_line("%s is not under quarantine any more, ticket %s", u->owner,
		 admin_arg(&u->req, "ticket")->text);
	admin_finish(u, ADMIN_DONE);
}

static void got_owner(struct admin_use *u, const struct admin_reply *reply, struct span text)
{
	bool releases = u->req.verb == VERB_quarantine_release;
	enum admin_answer wrong = (enum admin_answer)reply->code;
	const char *owner = reply->text;

	(void)text;
	/* One that is under quarantine can be named as the list names it. */
	if (emergency_quarantine(&u->a->emergency, admin_arg(&u->req, "name")->text) && releases)
		owner = admin_arg(&u->req, "name")->text;
	u->owner_known = reply->owner_is_known;
	if (!wrong && strlen(owner) > EMERGENCY_OWNER_MAX)
		wrong = ANSWER_bad_argument;
	if (!wrong)
		snprintf(u->owner, sizeof(u->owner), "%s", owner);
	if (!wrong && !u->a->emergency.turn)
		wrong = ANSWER_state_lost;
	if (!wrong && releases && !emergency_quarantine(&u->a->emergency, u->owner))
		wrong = ANSWER_quarantine_missing;
	snprintf(u->note, sizeof(u->note), "ticket %s", admin_arg(&u->req, "ticket")->text);
	u->act = releases ? release : begin_quarantine;
	admin_decide(u, wrong, u->note);
}

static void ask_owner(struct admin_use *u)
{
	struct runtime_row row;

	memset(&row, 0, sizeof(row));
	snprintf(row.path, sizeof(row.path), "%s", admin_arg(&u->req, "name")->text);
	admin_ask(u, ASK_OWNER, &row, got_owner);
}

void admin_begin_quarantine(struct admin_use *u)
{
	ask_owner(u);
}

void admin_begin_quarantine_release(struct admin_use *u)
{
	ask_owner(u);
}
