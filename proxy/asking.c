/*
 * An exchange that rules want a person to allow (approvals.h).
 *
 *	(rules say ask)
 *	asking_is_allowed   there is a yes to this very request: it passes, once less
 *	asking_begin        else it becomes a question, on record before anybody is asked
 *	asking_tick         an answer, or too late; a yes makes it begin anew, with the
 *	                    facts that hold by then
 *	asking_withdraw     its caller has gone
 *	asking_let_go       a yes that was not used stays
 */
#include "gate/base/uuid.h"
#include "proxy/approvals.h"
#include "proxy/worker_priv.h"

#include <stdio.h>
#include <string.h>

#define HELD_MAX     64 /* requests that are held at once, in a worker */
#define HELD_OWN_MAX 8  /* of these, one caller's */
#define ROUNDS_MAX   8  /* questions of one request: what it meets may change meanwhile */
#define KEY_TEXT_MAX (256u << 10)
#define BY_MAX       32

struct asking {
	struct approval_question q;
	struct approval_ref question; /* held */
	struct approval_ref grant;    /* taken */
	struct hash granted;          /* the key of that */
	char id[40], by[BY_MAX];
	uint64_t until_ms;
	int rounds;
};

const char *asking_id(const struct exchange *x)
{
	return x->asking ? x->asking->id : "";
}

const char *asking_by(const struct exchange *x)
{
	return x->asking ? x->asking->by : "";
}

/* --- what is asked --- */

static void put(struct buf *out, struct span s)
{
	buf_printf(out, "%zu:", s.len);
	buf_put(out, s.at, s.len);
}

static void put_text(struct buf *out, const char *s)
{
	put(out, span_of(s ? s : ""));
}

static void put_caller(const struct exchange *x, struct buf *out)
{
	const struct identity *who = &x->conn->who;

	put_text(out, who->name);
	put_text(out, who->owner);
	put_text(out, identity_method(who));
	buf_printf(out, "%lld:", who->has_cred ? (long long)who->uid : -1);
	put_text(out, x->service->conf->name);
}

/* What time and others change is not what was asked: it is judged anew, whatever was said. */
static void put_facts(const struct exchange *x, struct buf *out)
{
	for (size_t i = 0; x->facts.kind == JV_OBJECT && i < x->facts.count; i++) {
		const struct jv_member *m = &x->facts.members[i];

		if (span_is(m->key, "now") || span_is(m->key, "quota"))
			continue;
		put(out, m->key);
		jv_write(out, &m->value);
	}
}

static void put_request(const struct exchange *x, struct buf *out)
{
	put_text(out, operation_name(x->call.op));
	put_text(out, x->profile ? profile_hash(x->profile) : "");
	put_text(out, x->req.method);
	put_text(out, x->req.path);
	for (size_t i = 0; i < x->req.query_count; i++) {
		put(out, x->req.query[i].key);
		put(out, x->req.query[i].value);
	}
	put_text(out, x->body_sha256);
	put_facts(x, out);
}

static bool make_keys(const struct exchange *x, struct approval_question *q)
{
	struct buf text;
	bool good;

	buf_init(&text, KEY_TEXT_MAX);
	put_caller(x, &text);
	q->caller = hash_of(buf_span(&text));
	put_request(x, &text);
	q->key = hash_of(buf_span(&text));
	good = !buf_spent(&text);
	buf_fini(&text);
	return good;
}

#define COPY(to, from) snprintf(to, sizeof(to), "%s", (from) ? (from) : "")

/* The first of what wants a person; denials would stand before it. */
static void describe(const struct exchange *x, struct approval_question *q)
{
	const struct violation *why = &x->decision.violations.list[0];
	const struct identity *who = &x->conn->who;
	struct approval_text *t = &q->what;

	COPY(t->id, x->id);
	COPY(t->op, operation_name(x->call.op));
	COPY(t->object, x->call.object.name && *x->call.object.name
				? x->call.object.name
				: jv_str(jv_get(&x->facts, "workload"), "name", ""));
	COPY(t->image, jv_str(jv_path(&x->facts, "workload.image"), "given", ""));
	COPY(t->identity, who->name);
	COPY(t->owner, who->owner);
	COPY(t->listener, who->listener);
	COPY(t->backend, x->service->conf->name);
	COPY(t->profile, x->decision.profile);
	COPY(t->rule, why->rule);
	COPY(t->text, why->text && *why->text ? why->text : reason_what(why->reason));
	q->has_uid = who->has_cred;
	q->uid = who->uid;
	q->need = profile_wants_two_approvers(x->profile) ? 2 : 1;
}

static struct asking *asking_of(struct exchange *x)
{
	if (!x->asking)
		x->asking = arena_take(x->arena, sizeof(*x->asking));
	return x->asking;
}

/* --- a yes that is there --- */

static void name_answerers(struct asking *a, const struct approval_row *row)
{
	size_t at = 0;

	COPY(a->id, row->what.id);
	a->by[0] = '\0';
	for (size_t i = 0; i < row->said && i < APPROVALS_BY_MAX && at < sizeof(a->by); i++)
		at += (size_t)snprintf(a->by + at, sizeof(a->by) - at, "%suid %u", i ? ", " : "",
				       row->by[i]);
}

bool asking_is_allowed(void *exchange, const struct decision *d)
{
	struct exchange *x = exchange;
	struct approvals *table = x->worker->conf->approvals;
	struct approval_row row;
	struct asking *a;

	(void)d;
	if (!table || x->worker->check || !x->profile)
		return false;
	a = asking_of(x);
	if (!a || !make_keys(x, &a->q))
		return false;
	/* What others are let pass may make it be counted, and so judged, again. */
	if (a->grant.serial && hash_eq(&a->granted, &a->q.key))
		return true;
	asking_let_go(x);
	if (!approvals_take(table, &a->q.key, x->worker->loop.now_ms, &a->grant, &row))
		return false;
	a->granted = a->q.key;
	name_answerers(a, &row);
	return true;
}

void asking_let_go(struct exchange *x)
{
	struct asking *a = x->asking;

	if (!a || !a->grant.serial || x->forwarded)
		return;
	approvals_give_back(x->worker->conf->approvals, &a->grant);
	a->grant = (struct approval_ref){0};
}

/* --- a question --- */

static void say_first(struct exchange *x, enum reason reason, const char *text)
{
	struct violations *list = &x->decision.violations;
	struct violation v = {reason, "ask", "", "", "", ""};

	v.text = text;
	if (list->count == VIOLATIONS_MAX) {
		list->count--;
		list->dropped++;
	}
	memmove(&list->list[1], &list->list[0], list->count * sizeof(list->list[0]));
	list->list[0] = v;
	list->count++;
}

static bool may_hold(const struct exchange *x)
{
	size_t all = 0, own = 0;

	for (const struct exchange *one = x->worker->exchanges; one; one = one->next) {
		if (one->state != X_ASK)
			continue;
		all++;
		own += one->conn && connection_same_caller(one->conn, x->conn);
	}
	return all < HELD_MAX && own < HELD_OWN_MAX && !x->worker->stopping &&
	       x->worker->conf->limits.ask_ms;
}

static void leave(struct exchange *x, bool withdrawn)
{
	struct approval_ref question = x->asking->question;

	/* Once, also where the table cannot be had: it is over for this exchange. */
	x->asking->question = (struct approval_ref){0};
	approvals_leave(x->worker->conf->approvals, &question, withdrawn);
}

static void refuse(struct exchange *x, enum reason reason)
{
	const struct asking *a = x->asking;
	char text[240];

	if (reason == REASON_approval_denied)
		snprintf(text, sizeof(text), "a person was asked for this (%s) and said no", a->id);
	else
		snprintf(text, sizeof(text),
			 "a person must allow this, and nobody has yet; an approver can: sallyport "
			 "approvals allow %s",
			 a->id);
	leave(x, false);
	trail_approval(x, "denied", reason);
	say_first(x, reason, arena_strndup(x->arena, text, strlen(text)));
	exchange_answer_refusal(x);
}

void asking_withdraw(struct exchange *x)
{
	if (!x->asking || !x->asking->question.serial)
		return;
	leave(x, true);
	trail_approval(x, "aborted", REASON_approval_withdrawn);
}

static void on_asked(void *arg, const struct audit_receipt *receipt)
{
	struct exchange *x = arg;

	x->waits_receipt = false;
	if (!receipt) {
		leave(x, true);
		exchange_refuse(x, REASON_audit_unavailable, "", "");
		return;
	}
	judge_keep_receipt(x, receipt);
	if (x->gone) {
		asking_withdraw(x);
		x->status = "aborted";
		exchange_ready(x);
	} else if (may_hold(x)) {
		x->state = X_ASK;
	} else {
		refuse(x, REASON_approval_pending);
	}
}

/* On record before it waits, whatever its class. */
static void record(struct exchange *x)
{
	struct record r;

	x->decided = true;
	trail_decision(x, &r, x->arena);
	if (arena_spent(x->arena) || audit_require(x->worker->audit, &r, on_asked, x) < 0) {
		leave(x, true);
		exchange_refuse(x,
				arena_spent(x->arena) ? REASON_no_memory : REASON_audit_unavailable,
				"", "");
		return;
	}
	x->waits_receipt = true;
	x->state = X_RECORD;
	x->deadline_ms = 0;
}

static enum approval_asked ask(struct exchange *x)
{
	struct approvals *table = x->worker->conf->approvals;
	struct asking *a = x->asking;
	enum approval_asked how;
	struct approval_row row;
	struct buf facts;

	describe(x, &a->q);
	buf_init(&facts, APPROVALS_FACTS_MAX);
	jv_write(&facts, &x->facts);
	a->q.facts = buf_spent(&facts) ? (struct span){"", 0} : buf_span(&facts);
	how = approvals_ask(table, &a->q, x->worker->loop.now_ms, &a->question, &row);
	buf_fini(&facts);
	if (how == ASKED_OPEN || how == ASKED_DENIED)
		name_answerers(a, &row);
	if (how != ASKED_DENIED)
		a->by[0] = '\0'; /* one of two may have said yes already; it is not said yet */
	return how;
}

bool asking_begin(struct exchange *x)
{
	struct asking *a = x->asking;

	if (x->decision.verdict != VERDICT_ASK || !a)
		return false;
	/* What could not be done anyway is no question: an image that must be pulled first. */
	if (x->call.instead.reason != REASON_NONE) {
		*violations_add(&x->call.refused, x->call.instead.reason) = x->call.instead;
		exchange_deny(x);
		return true;
	}
	if (!a->until_ms)
		a->until_ms = x->worker->loop.now_ms + x->worker->conf->limits.ask_ms;
	switch (++a->rounds > ROUNDS_MAX ? ASKED_FULL : ask(x)) {
	case ASKED_OPEN:
		record(x);
		return true;
	case ASKED_DENIED:
		say_first(x, REASON_approval_denied, "");
		break;
	case ASKED_LOCKED:
		a->rounds--;
		if (tables_wait(x, exchange_ask_person)) /* the rules have said what they say */
			return true;
		say_first(x, REASON_approvals_full, "");
		break;
	case ASKED_FULL:
		say_first(x, REASON_approvals_full, "");
		break;
	}
	x->decision.verdict = VERDICT_DENY;
	return false;
}

void asking_tick(struct exchange *x, uint64_t now_ms)
{
	struct asking *a = x->asking;
	struct approval_row row;

	/* New rules are in force: they have to say whether it may pass. */
	if (x->worker->stopping) {
		refuse(x, REASON_approval_pending);
		return;
	}
	switch (approvals_look(x->worker->conf->approvals, &a->question, now_ms, &row)) {
	case APPROVAL_OPEN:
		if (now_ms >= a->until_ms)
			refuse(x, REASON_approval_pending);
		break;
	case APPROVAL_DENIED:
		name_answerers(a, &row);
		refuse(x, REASON_approval_denied);
		break;
	case APPROVAL_GRANTED:
	case APPROVAL_GONE: /* another one took what was granted, or nobody said anything for long
			     */
		leave(x, false);
		x->quota_rounds = 0;
		exchange_again(x);
		break;
	}
}
