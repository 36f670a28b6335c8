/*
 * What is decided of one request: the adapter reads and asks, the profile fills
 * in and judges, the decision goes on record, and only then it is forwarded.
 * Everything that refuses comes through here, too.
 */
#include "gate/base/clock.h"
#include "proxy/behalf.h"
#include "proxy/decide.h"
#include "proxy/rates.h"
#include "proxy/updates.h"
#include "proxy/worker_priv.h"

#include <stdio.h>
#include <string.h>

/* --- refusing --- */

/* "docker inspect" asks for a container, an image and so on, until it is told another thing than
 * 404. */
static int refusal_status(const struct exchange *x, enum reason first)
{
	return x->call.looks_for_one && first == REASON_operation ? 404 : reason_status(first);
}

/* The refusals of the decision become the caller's answer. */
void exchange_answer_refusal(struct exchange *x)
{
	const struct violation *first = &x->decision.violations.list[0];
	struct buf message;

	buf_init(&message, 65536);
	refusal_message(x, &message);
	buf_put(&message, "", 1);
	x->answer.kind = ANSWER_LOCAL;
	x->answer.status = x->http = refusal_status(x, first->reason);
	if (!strcmp(x->status, "fail") && x->http < 500)
		x->status = "denied";
	x->answer.header_count = 0; /* those of a reply that is not passed on */
	buf_clear(&x->answer.body);
	if (x->conn && x->conn->behalf)
		behalf_refusal(x);
	else
		x->service->ops->refusal(buf_spent(&message) ? "refused" : buf_span(&message).at,
					 &x->answer.body, &x->answer.content_type);
	buf_fini(&message);
	exchange_ready(x);
}

static void on_denial_recorded(void *arg, const struct audit_receipt *receipt);

/*
 * A denial of what would change state is on disk before it is told, if the log
 * can take it; a log that cannot never turns it into anything else.
 */
static void deny(struct exchange *x)
{
	struct record r;

	x->permitted = false;
	turns_leave(x);
	quota_let_go(x);
	asking_let_go(x);
	if (x->worker->check) {
		check_print(x);
		exchange_answer_refusal(x);
		return;
	}
	if (op_class_changes_state(operation_class(x->call.op)) && !x->decided) {
		x->decided = true;
		trail_decision(x, &r, x->arena);
		if (audit_require(x->worker->audit, &r, on_denial_recorded, x) == 0) {
			x->waits_receipt = true;
			x->state = X_RECORD;
			return;
		}
	}
	exchange_answer_refusal(x);
}

void judge_keep_receipt(struct exchange *x, const struct audit_receipt *receipt)
{
	char hex[HASH_HEX_LEN + 1];

	hash_hex(&receipt->hash, hex);
	snprintf(x->receipt, sizeof(x->receipt), "%s;%llu;%s", receipt->log,
		 (unsigned long long)receipt->seq, hex);
}

static void on_denial_recorded(void *arg, const struct audit_receipt *receipt)
{
	struct exchange *x = arg;

	x->waits_receipt = false;
	if (receipt)
		judge_keep_receipt(x, receipt);
	exchange_answer_refusal(x);
}

void exchange_refuse(struct exchange *x, enum reason reason, const char *field, const char *text)
{
	struct violation *v = violations_add(&x->call.refused, reason);

	v->field = field;
	v->text = text;
	x->decision.violations = x->call.refused;
	x->decision.verdict = x->decision.would = VERDICT_DENY;
	deny(x);
}

void exchange_deny(struct exchange *x)
{
	x->decision.verdict = x->decision.would = VERDICT_DENY; /* the rules may have allowed it */
	x->decision.violations = x->call.refused;
	x->decision.profile = x->profile ? profile_name(x->profile) : "";
	x->decision.profile_hash = x->profile ? profile_hash(x->profile) : "";
	deny(x);
}

/* --- judging --- */

/* The clock is read once for a decision, so that whatever depends on it can be judged again. */
static void read_clock(struct exchange *x)
{
	const struct jv *now = jv_get(check_facts(x->worker), "now");

	if (now && now->kind == JV_INT)
		x->judged_at = now->i;
	else if (now && now->kind == JV_STRING)
		x->judged_at = clock_parse(now->str.at, now->str.len);
	else
		x->judged_at = (int64_t)(clock_unix_ns() / 1000000000);
}

static void make_facts(struct exchange *x)
{
	const struct question q = {
		.op = x->call.op,
		.who = &x->conn->who,
		.backend = x->service->conf->name,
		.workload = &x->call.workload.facts,
		.quota = quota_facts(x),
		.replaces = &x->call.replaces,
		.now = x->judged_at,
	};
	struct question full = q;
	struct jv object = jv_object();

	if (x->call.object.kind && *x->call.object.kind) {
		jv_set(x->arena, &object, "kind", jv_string(x->call.object.kind));
		jv_set(x->arena, &object, "id", jv_string(x->call.object.id));
		jv_set(x->arena, &object, "name", jv_string(x->call.object.name));
		jv_set(x->arena, &object, "mine", jv_bool(x->call.object.mine));
		full.object = &object;
	}
	x->facts = engine_facts(x->arena, &full);
	x->has_facts = true;
}

void judge_make_facts(struct exchange *x)
{
	read_clock(x);
	make_facts(x);
}

/* What the profile wants filled in is applied before anything is judged. */
static int harden(struct exchange *x)
{
	struct decision *d = &x->decision;
	struct err err = {0};
	uint64_t began_ns = clock_thread_ns();
	int rc;

	if (x->hardened || !operation_hardens(x->call.op) || !profile_hardens(x->profile))
		return 0;
	x->hardened = true;
	rc = engine_harden(x->worker->rules, x->profile, &x->facts, x->arena, d->changes,
			   &d->change_count, &err);
	turns_took(x, clock_thread_ns() - began_ns, rc < 0 && err.kind == ERR_LIMIT);
	if (rc == 0 &&
	    (!d->change_count || x->service->ops->apply(x->service->backend, &x->call, d->changes,
							d->change_count, &err) == 0)) {
		if (d->change_count)
			make_facts(x);
		return 0;
	}
	d->change_count = 0;
	exchange_refuse(x, err.kind == ERR_LIMIT ? REASON_rule_limit : REASON_rule_error, "",
			arena_strndup(x->arena, err.msg, strlen(err.msg)));
	return -1;
}

static void on_decision_recorded(void *arg, const struct audit_receipt *receipt)
{
	struct exchange *x = arg;

	x->waits_receipt = false;
	if (!receipt) {
		x->allow_on_record =
			false; /* should it be there all the same, its client ends it */
		exchange_refuse(x,
				audit_client_low(x->worker->audit) ? REASON_audit_low
								   : REASON_audit_unavailable,
				"", "");
		return;
	}
	judge_keep_receipt(x, receipt);
	if ((x->gone && exchange_may_release(x)) || quarantine_holds(x)) {
		x->status = "aborted"; /* nobody waits for it, or is to; and nothing was sent */
		exchange_ready(x);
		return;
	}
	forward(x, receipt);
}

static void record_and_forward(struct exchange *x)
{
	struct record r;

	if (forward_prepare(x) < 0)
		return;
	if (!op_class_changes_state(operation_class(x->call.op))) {
		forward(x, NULL);
		return;
	}
	trail_decision(x, &r, x->arena);
	if (arena_spent(x->arena)) {
		exchange_refuse(x, REASON_no_memory, "", ""); /* the record would lack its facts */
		return;
	}
	x->decided = true;
	x->state = X_RECORD;
	x->deadline_ms = 0; /* the audit client has its own limit */
	if (audit_require(x->worker->audit, &r, on_decision_recorded, x) < 0) {
		exchange_refuse(x, REASON_audit_unavailable, "", "");
		return;
	}
	x->allow_on_record = true;
	x->waits_receipt = true;
}

void judge_name_fields(struct exchange *x)
{
	struct violations *list = &x->decision.violations;
	const struct fact_name *names = x->service->ops->fact_names;

	for (size_t i = 0; i < list->count; i++)
		for (const struct fact_name *n = names; n->fact; n++)
			if (!strcmp(list->list[i].field, n->fact))
				list->list[i].field = n->field;
}

static void refuse_too_often(struct exchange *x, const struct rate *rate, uint64_t wait_ns)
{
	struct violation *v = violations_add(&x->call.refused, REASON_rate);
	uint64_t seconds = (wait_ns + 999999999) / 1000000000;
	char text[160];

	x->answer.retry_after_s = (unsigned)(seconds ? seconds : 1);
	snprintf(text, sizeof(text),
		 "the profile \"%.64s\" allows %s of %s; there is room again in %u s",
		 profile_name(x->profile), rate->text, rate->word, x->answer.retry_after_s);
	v->rule = "rate";
	v->text = arena_strndup(x->arena, text, strlen(text));
	suppress_refusal(x);
	exchange_deny(x);
}

/* What the rules allowed counts; what one rate refuses is not taken from the others. */
static int take_rates(struct exchange *x)
{
	struct rates *table = x->worker->conf->rates;
	const struct identity *who = &x->conn->who;
	const struct rate *rate;
	uint64_t now_ns = clock_boot_ns(), wait_ns;

	for (size_t i = 0; table && (rate = profile_rate(x->profile, x->call.op, i)); i++) {
		if (rates_take(table, who, rate, now_ns, &wait_ns))
			continue;
		while (i-- > 0)
			rates_give_back(table, who, profile_rate(x->profile, x->call.op, i));
		x->permitted = false;
		refuse_too_often(x, rate, wait_ns);
		return -1;
	}
	return 0;
}

/* What can never be seen need not be started first. */
static bool cannot_be_attested(const struct exchange *x)
{
	return x->call.wants_attested && !x->call.sees_processes && x->call.reply == REPLY_LAUNCH &&
	       operation_class(x->call.op) == CLASS_LIFECYCLE;
}

static void refuse_unattested(struct exchange *x)
{
	struct violation *v = violations_add(&x->call.refused, REASON_fact_unknown);

	v->field = "isolation.attested";
	v->text = "the profile asks for what only the engine's own host can tell";
	exchange_deny(x);
}

/*
 * A container of the operator's that gets another identity's name would be that
 * identity.  What was made through the gate is none by its name, unless made_by says so.
 */
static bool gives_an_identity(const struct exchange *x)
{
	const struct proxy_conf *conf = x->worker->conf;
	const struct caller_container renamed = {
		.name = jv_str(&x->call.workload.facts, "name", ""), .owner = ""};

	if (x->call.op != OP_CONTAINER_RENAME || (x->call.object.owner && *x->call.object.owner))
		return false;
	for (size_t i = 0; i < conf->identity_count; i++)
		if (conf->identities[i].container.kind == SIGN_NAME &&
		    caller_sign_fits(&conf->identities[i].container, &renamed))
			return true;
	return false;
}

static void refuse_identity_name(struct exchange *x)
{
	struct violation *v = violations_add(&x->call.refused, REASON_name);

	v->field = "query.name";
	v->text = "callers in a container of this name are an identity of the gate";
	exchange_deny(x);
}

/* A command of the sandboxes' helper that is a copy as well. */
static void refuse_also(struct exchange *x)
{
	*violations_add(&x->call.refused, REASON_operation) =
		profile_refusal(x->profile, x->call.also, x->arena);
	exchange_deny(x);
}

/* What no profile can grant. */
static bool is_out_of_reach(struct exchange *x)
{
	if (cannot_be_attested(x))
		refuse_unattested(x);
	else if (gives_an_identity(x))
		refuse_identity_name(x);
	else if (x->call.also && profile_grant(x->profile, x->call.also) == GRANT_NONE)
		refuse_also(x);
	else
		return false;
	return true;
}

/*
 * What is taken away is remembered before it is: whatever dies meanwhile, it can
 * be made again.  What cannot be remembered stays.
 */
static int remember(struct exchange *x)
{
	const struct updates_key key = {&x->conn->who, x->service->conf->name,
					jv_str(&x->call.replaces, "name", "")};
	struct updates *table = x->worker->conf->updates;
	struct jv kept = x->call.replaces;
	struct buf text;
	bool done;

	if (!x->call.remembers || !table)
		return 0;
	jv_set(x->arena, &kept, "at", jv_int(x->judged_at));
	buf_init(&text, UPDATES_TEXT_MAX);
	jv_write(&text, &kept);
	done = !buf_spent(&text) && !arena_spent(x->arena) &&
	       updates_put(table, &key, buf_span(&text), x->judged_at, profile_updates(x->profile));
	buf_fini(&text);
	if (done)
		return 0;
	x->permitted = false;
	exchange_refuse(x, REASON_update_would_not_return, "",
			"the gate has no room to remember what this container was, so it is not "
			"taken away");
	return -1;
}

static bool is_limited(const struct decision *d)
{
	return d->violations.count && d->violations.list[0].reason == REASON_rule_limit;
}

void exchange_judge(struct exchange *x)
{
	struct judgement j = {.engine = x->worker->rules,
			      .profile = x->profile,
			      .op = x->call.op,
			      .refused = &x->call.refused,
			      .approved = asking_is_allowed,
			      .approved_arg = x};
	enum grant grant = profile_grant(x->profile, x->call.op);
	uint64_t began_ns;

	if (quarantine_refuses(x)) {
		exchange_deny(x);
		return;
	}
	if (grant != GRANT_PLAIN) {
		judge_make_facts(x); /* of what is not granted for the record alone */
	}
	if (grant == GRANT_JUDGE) {
		if (harden(x) < 0 || !quota_look(x))
			return;
		if (quota_facts(x))
			jv_set(x->arena, &x->facts, "quota", *quota_facts(x));
		j.facts = &x->facts;
	}
	if (arena_spent(x->arena)) {
		exchange_refuse(x, REASON_no_memory, "", "");
		return;
	}
	if (is_out_of_reach(x))
		return;
	j.override = override_of(x->worker, x->profile, x->arena);
	began_ns = clock_thread_ns();
	x->permitted = decide(&j, x->arena, &x->decision);
	turns_took(x, clock_thread_ns() - began_ns, is_limited(&x->decision));
	judge_name_fields(x);
	if (!x->permitted) {
		exchange_ask_person(x);
	} else if (x->worker->check) {
		check_print(x);
		x->permitted = false;
		x->answer.kind = ANSWER_LOCAL;
		x->answer.status = 200;
		exchange_ready(x);
	} else if (x->call.instead.reason != REASON_NONE) {
		x->permitted = false;
		*violations_add(&x->call.refused, x->call.instead.reason) = x->call.instead;
		exchange_deny(x);
	} else if (remember(x) == 0) {
		exchange_let_pass(x);
	}
}

void exchange_ask_person(struct exchange *x)
{
	if (!asking_begin(x))
		deny(x);
}

void exchange_let_pass(struct exchange *x)
{
	x->permitted = true;
	if (quota_take(x) && take_rates(x) == 0)
		record_and_forward(x);
}

void exchange_judge_in_turn(struct exchange *x)
{
	if (profile_grant(x->profile, x->call.op) != GRANT_JUDGE || !turns_wait(x))
		exchange_judge(x);
}

/* All is known; what the caller has in sum is counted, and then it is judged. */
static void take_turn(struct exchange *x)
{
	if (profile_grant(x->profile, x->call.op) == GRANT_JUDGE && turns_wait(x))
		return;
	if (!quota_counts(x))
		exchange_judge(x);
}

/* The adapter reads, asks for lookups, reads on, until it knows enough. */
void exchange_advance(struct exchange *x)
{
	x->call.now_ms = x->worker->loop.now_ms;
	switch (x->service->ops->step(x->service->backend, &x->call)) {
	case STEP_REFUSED:
		if (!x->call.refused.count)
			violations_add(&x->call.refused, REASON_internal);
		exchange_deny(x);
		break;
	case STEP_LOOKUP:
		if (++x->steps > STEPS_MAX) {
			exchange_refuse(x, REASON_internal, "", "the adapter asks without end");
			break;
		}
		x->state = X_LOOKUP;
		lookup_start(x);
		break;
	case STEP_READY:
		take_turn(x);
		break;
	}
}
