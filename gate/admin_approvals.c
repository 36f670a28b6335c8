/* admin_approvals.c - the verbs by which persons answer what rules ask them (approvals.h). */
#include "gate/admin_priv.h"

#include "gate/base/clock.h"
#include "gate/base/jv.h"
#include "proxy/approvals.h"

#include <string.h>

#define WAIT_MS 60000

/* --- showing --- */

static const char *state_name(const struct approval_row *r)
{
	switch (r->state) {
	case APPROVAL_OPEN:
		return "open";
	case APPROVAL_GRANTED:
		return "granted";
	case APPROVAL_DENIED:
		return "denied";
	case APPROVAL_GONE:
		break;
	}
	return "gone";
}

static void put_text(struct buf *out, const char *key, const char *value)
{
	if (!*value)
		return;
	buf_printf(out, ",\"%s\":", key);
	jv_write_str(out, span_of(value));
}

static void put_what(struct buf *out, const struct approval_text *t)
{
	put_text(out, "op", t->op);
	put_text(out, "object", t->object);
	put_text(out, "image", t->image);
	put_text(out, "identity", t->identity);
	put_text(out, "owner", t->owner);
	put_text(out, "listener", t->listener);
	put_text(out, "backend", t->backend);
	put_text(out, "profile", t->profile);
	put_text(out, "rule", t->rule);
	put_text(out, "text", t->text);
}

/* Without its closing brace. */
static void put_row(struct buf *out, const struct approval_row *r, uint64_t now_ms)
{
	char asked[CLOCK_TEXT_MAX];

	clock_format(clock_unix_ns() - (now_ms - r->asked_ms) * 1000000, asked);
	buf_puts(out, "{\"id\":");
	jv_write_str(out, span_of(r->what.id));
	buf_printf(out, ",\"state\":\"%s\",\"serial\":%llu", state_name(r),
		   (unsigned long long)r->serial);
	put_what(out, &r->what);
	if (r->has_uid)
		buf_printf(out, ",\"uid\":%u", r->uid);
	buf_printf(out, ",\"asked\":\"%s\",\"left_s\":%llu,\"waiting\":%u,\"need\":%u,\"by\":[",
		   asked,
		   (unsigned long long)(r->until_ms > now_ms ? (r->until_ms - now_ms) / 1000 : 0),
		   r->waiting, r->need);
	for (size_t i = 0; i < r->said && i < APPROVALS_BY_MAX; i++)
		buf_printf(out, "%s%u", i ? "," : "", r->by[i]);
	buf_puts(out, "]");
	if (r->state == APPROVAL_GRANTED)
		buf_printf(out, ",\"times\":%u", r->times);
}

static void list(struct admin_use *u)
{
	static struct approval_row rows[APPROVALS_MAX];
	uint64_t now = clock_boot_ms(), serial;
	size_t n = approvals_list(u->a->conf->approvals, now, rows, &serial);

	buf_printf(&u->result, ",\"serial\":%llu,\"approvals\":[", (unsigned long long)serial);
	for (size_t i = 0; i < n; i++) {
		buf_puts(&u->result, i ? "," : "");
		put_row(&u->result, &rows[i], now);
		buf_puts(&u->result, "}");
	}
	buf_puts(&u->result, "]");
	admin_finish(u, ADMIN_DONE);
}

void admin_begin_approvals_list(struct admin_use *u)
{
	u->act = list;
	admin_decide(u, ADMIN_DONE, NULL);
}

static void wait_for_more(struct admin_use *u)
{
	u->after = admin_arg(&u->req, "after")->number;
	u->wait_ms = clock_boot_ms() + WAIT_MS;
}

void admin_begin_approvals_wait(struct admin_use *u)
{
	u->act = wait_for_more;
	admin_decide(u, ADMIN_DONE, NULL);
}

void admin_approvals_tick(struct admin *a)
{
	uint64_t newest = approvals_serial(a->conf->approvals);

	for (size_t i = 0; i < ADMIN_USES_MAX; i++) {
		struct admin_use *u = a->uses[i];

		if (!u || !u->wait_ms ||
		    (newest <= u->after && a->loop.now_ms < u->wait_ms && u->fd >= 0))
			continue;
		u->wait_ms = 0;
		list(u);
	}
}

static void show(struct admin_use *u)
{
	uint64_t now = clock_boot_ms();
	struct approval_row row;
	struct err err = {0};
	enum jv_fault fault;
	struct buf facts;
	struct jv tree;

	buf_init(&facts, APPROVALS_FACTS_MAX);
	if (!approvals_show(u->a->conf->approvals, admin_arg(&u->req, "id")->text, now, &row,
			    &facts)) {
		buf_fini(&facts);
		admin_finish(u, ANSWER_approval_missing);
		return;
	}
	buf_puts(&u->result, ",\"approval\":");
	put_row(&u->result, &row, now);
	/* A worker wrote them: they are JSON, or left out. */
	if (buf_len(&facts) && jv_parse(u->arena, buf_span(&facts), &tree, &fault, &err) == 0) {
		buf_puts(&u->result, ",\"facts\":");
		jv_write(&u->result, &tree);
	}
	buf_puts(&u->result, "}");
	buf_fini(&facts);
	admin_finish(u, ADMIN_DONE);
}

void admin_begin_approvals_show(struct admin_use *u)
{
	u->act = show;
	admin_decide(u, ADMIN_DONE, NULL);
}

/* --- answering --- */

static enum admin_answer answer_of(enum approval_said said)
{
	switch (said) {
	case SAID_MISSING:
		return ANSWER_approval_missing;
	case SAID_OWN:
		return ANSWER_own_request;
	case SAID_TWICE:
		return ANSWER_said_already;
	case SAID_MORE:
	case SAID_DONE:
		return ADMIN_DONE;
	case SAID_BUSY:
		break;
	}
	return ANSWER_approvals_busy;
}

static struct approval_answer read_answer(const struct admin_use *u)
{
	bool allow = u->req.verb == VERB_approvals_allow;
	const struct admin_value *seconds = admin_arg(&u->req, "seconds"),
				 *times = allow ? admin_arg(&u->req, "times") : NULL;

	return (struct approval_answer){
		.id = admin_arg(&u->req, "id")->text,
		.uid = u->peer.uid,
		.allow = allow,
		.for_ms = seconds->given ? seconds->number * 1000 : APPROVALS_KEEP_MS,
		.times = times && times->given ? (uint32_t)times->number : 1,
	};
}

static void say(struct admin_use *u)
{
	const struct approval_answer a = read_answer(u);
	enum approval_said said = approvals_say(u->a->conf->approvals, &a, false, clock_boot_ms());

	if (said == SAID_MORE)
		buf_puts(&u->result, ",\"more\":true");
	admin_finish(u, answer_of(said));
}

static enum admin_answer would_be(const struct admin_use *u)
{
	const struct approval_answer a = read_answer(u);

	return answer_of(approvals_say(u->a->conf->approvals, &a, true, clock_boot_ms()));
}

static void got_own(struct admin_use *u, const struct admin_reply *reply, struct span text)
{
	(void)text;
	u->act = say;
	admin_decide(u, reply->code ? (enum admin_answer)reply->code : would_be(u), NULL);
}

/* Whose identity that is now, the supervisor knows: this process may be older than a reload. */
static void begin_to_say(struct admin_use *u)
{
	struct admin_word word = {.ask = ASK_OWN, .row = {.uid = u->peer.uid}};
	enum admin_answer how = would_be(u);
	struct approval_row row;
	struct buf facts;

	buf_init(&facts, APPROVALS_FACTS_MAX);
	if (!how && !approvals_show(u->a->conf->approvals, admin_arg(&u->req, "id")->text,
				    clock_boot_ms(), &row, &facts))
		how = ANSWER_approval_missing;
	buf_fini(&facts);
	if (how) {
		admin_decide(u, how, NULL);
		return;
	}
	memcpy(word.asker.identity, row.what.identity, sizeof(word.asker.identity));
	memcpy(word.asker.owner, row.what.owner, sizeof(word.asker.owner));
	admin_ask_word(u, &word, got_own);
}

void admin_begin_approvals_allow(struct admin_use *u)
{
	begin_to_say(u);
}

void admin_begin_approvals_deny(struct admin_use *u)
{
	begin_to_say(u);
}
