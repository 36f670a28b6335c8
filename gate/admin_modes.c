/*
 * admin_modes.c - the verbs by which a profile only warns for a while.
 *
 * It is kept before it comes into force, and ends before that is kept: an error of the disk
 * never lets pass more than is known to whoever looks.
 */
#include "gate/admin_priv.h"

#include "gate/base/clock.h"
#include "gate/base/jv.h"
#include "gate/base/log.h"

#include <string.h>

/* --- what is shown --- */

static void put_mode(struct buf *out, const struct emergency_mode *m)
{
	char since[CLOCK_TEXT_MAX], until[CLOCK_TEXT_MAX];

	clock_format((uint64_t)m->since * 1000000000, since);
	clock_format((uint64_t)m->until * 1000000000, until);
	buf_printf(out,
		   "{\"profile\":\"%s\",\"mode\":\"warn\",\"ticket\":\"%s\",\"since\":\"%s\","
		   "\"until\":\"%s\"}",
		   m->profile, m->ticket, since, until);
}

static void list_modes(struct admin_use *u)
{
	const struct emergency_view *view = &u->a->emergency;

	buf_puts(&u->result, ",\"modes\":[");
	for (size_t i = 0; i < view->mode_count; i++) {
		buf_puts(&u->result, i ? "," : "");
		put_mode(&u->result, &view->modes[i]);
	}
	buf_puts(&u->result, "]");
	admin_finish(u, ADMIN_DONE);
}

void admin_begin_mode_list(struct admin_use *u)
{
	u->act = list_modes;
	admin_decide(u, ADMIN_DONE, NULL);
}

static void put_result(struct admin_use *u, const struct emergency_mode *m)
{
	buf_puts(&u->result, ",\"mode\":");
	put_mode(&u->result, m);
	buf_printf(&u->result, ",\"kept\":%s", u->a->conf->state >= 0 ? "true" : "false");
}

static void answer_lost(struct admin_use *u, const struct err *err)
{
	snprintf(u->text, sizeof(u->text), "%s", err->msg);
	admin_finish(u, ANSWER_state_lost);
}

/* --- mode.warn --- */

static void begin_to_warn(struct admin_use *u)
{
	struct admin *a = u->a;
	const char *ticket = admin_arg(&u->req, "ticket")->text;
	struct emergency_view next = a->emergency;
	const struct emergency_mode *m = emergency_mode_begin(
		&next, u->profile, ticket, admin_arg(&u->req, "seconds")->number);
	char until[CLOCK_TEXT_MAX];
	struct err err = {0};

	if (!m) {
		admin_finish(u, ANSWER_modes_full);
		return;
	}
	put_result(u, m);
	if (admin_emergency_keep(a, &next, &err) < 0) {
		answer_lost(u, &err);
		return;
	}
	a->emergency = next;
	emergency_publish(a->conf->emergency, &a->emergency);
	clock_format((uint64_t)m->until * 1000000000, until);
	log_line("profile %s ONLY WARNS until %.19sZ, ticket %s", u->profile, until, ticket);
	admin_finish(u, ADMIN_DONE);
}

static void got_profile(struct admin_use *u, const struct admin_reply *reply, struct span text)
{
	enum admin_answer wrong = (enum admin_answer)reply->code;

	(void)text;
	if (!wrong && !u->a->emergency.turn)
		wrong = ANSWER_state_lost;
	snprintf(u->note, sizeof(u->note), "warn for %llu s, ticket %s",
		 (unsigned long long)admin_arg(&u->req, "seconds")->number,
		 admin_arg(&u->req, "ticket")->text);
	u->act = begin_to_warn;
	admin_decide(u, wrong, u->note);
}

static void name_profile(struct admin_use *u)
{
	snprintf(u->profile, sizeof(u->profile), "%s", admin_arg(&u->req, "profile")->text);
}

void admin_begin_mode_warn(struct admin_use *u)
{
	struct runtime_row row;

	memset(&row, 0, sizeof(row));
	name_profile(u);
	snprintf(row.profile, sizeof(row.profile), "%s", u->profile);
	admin_ask(u, ASK_PROFILE, &row, got_profile);
}

/* --- mode.enforce --- */

static const struct emergency_mode *find(const struct admin *a, const char *profile)
{
	for (size_t i = 0; i < a->emergency.mode_count; i++)
		if (strcmp(a->emergency.modes[i].profile, profile) == 0)
			return &a->emergency.modes[i];
	return NULL;
}

/* Out of force whatever the disk says. */
static int end(struct admin *a, const char *profile, struct err *err)
{
	emergency_mode_end(&a->emergency, profile);
	emergency_publish(a->conf->emergency, &a->emergency);
	return admin_emergency_keep(a, &a->emergency, err);
}

static void enforce(struct admin_use *u)
{
	const struct emergency_mode *m = find(u->a, u->profile);
	struct err err = {0};

	if (!m) { /* it has ended meanwhile */
		admin_finish(u, ANSWER_mode_missing);
		return;
	}
	put_result(u, m);
	log_line("profile %s does not only warn any more, ticket %s", u->profile,
		 admin_arg(&u->req, "ticket")->text);
	if (end(u->a, u->profile, &err) < 0)
		answer_lost(u, &err);
	else
		admin_finish(u, ADMIN_DONE);
}

void admin_begin_mode_enforce(struct admin_use *u)
{
	name_profile(u);
	snprintf(u->note, sizeof(u->note), "ticket %s", admin_arg(&u->req, "ticket")->text);
	u->act = enforce;
	admin_decide(u, find(u->a, u->profile) ? ADMIN_DONE : ANSWER_mode_missing, u->note);
}

/* --- its end --- */

static void note_end(struct admin *a, const struct emergency_mode *m)
{
	char text[160];
	struct buf facts;

	snprintf(text, sizeof(text), "its time has ended, ticket %s", m->ticket);
	log_line("profile %s does not only warn any more: %s", m->profile, text);
	buf_init(&facts, 1024);
	put_mode(&facts, m);
	admin_note(a, &(struct admin_noted){"mode.end", "profile", m->profile, text,
					    buf_span(&facts)});
	buf_fini(&facts);
}

void admin_modes_tick(struct admin *a)
{
	struct err err = {0};

	for (size_t i = a->emergency.turn ? a->emergency.mode_count : 0; i-- > 0;) {
		struct emergency_mode m = a->emergency.modes[i];

		if (emergency_mode_holds(&m))
			continue;
		note_end(a, &m);
		if (end(a, m.profile, &err) < 0)
			log_line("that a profile does not only warn any more cannot be kept: %s",
				 err.msg);
	}
}
