/*
 * What an exchange leaves in the audit log.
 */
#include "gate/base/log.h"
#include "gate/base/uuid.h"
#include "proxy/metrics.h"
#include "proxy/worker_priv.h"

#include <stdio.h>
#include <string.h>

/* Callers decide how often this happens; the log's alarm record counts them all. */
static struct log_kind unrecorded;

static struct span json_text(struct arena *a, struct buf *b)
{
	struct span s = buf_span(b);
	char *copy = buf_spent(b) ? NULL : arena_strndup(a, s.at, s.len);

	buf_fini(b);
	return copy ? (struct span){copy, s.len} : (struct span){"", 0};
}

static void add_member(struct buf *b, const char *key, const char *value, bool first)
{
	if (!value || !*value)
		return;
	if (!first)
		buf_puts(b, ",");
	jv_write_str(b, span_of(key));
	buf_puts(b, ":");
	jv_write_str(b, span_of(value));
}

static struct span violations_json(const struct decision *d, struct arena *a)
{
	struct buf b;

	buf_init(&b, RECORD_LINE_MAX);
	if (!d->violations.count) {
		buf_fini(&b);
		return (struct span){"", 0};
	}
	buf_puts(&b, "[");
	for (size_t i = 0; i < d->violations.count; i++) {
		const struct violation *v = &d->violations.list[i];

		buf_puts(&b, i ? ",{" : "{");
		add_member(&b, "reason", reason_name(v->reason), true);
		add_member(&b, "rule", v->rule, false);
		add_member(&b, "field", v->field, false);
		add_member(&b, "value", v->value, false);
		add_member(&b, "text", v->text, false);
		buf_puts(&b, "}");
	}
	buf_puts(&b, "]");
	return json_text(a, &b);
}

static struct span changes_json(const struct decision *d, struct arena *a)
{
	struct buf b;

	if (!d->change_count)
		return (struct span){"", 0};
	buf_init(&b, RECORD_LINE_MAX);
	buf_puts(&b, "[");
	for (size_t i = 0; i < d->change_count; i++) {
		const struct change *c = &d->changes[i];

		buf_puts(&b, i ? ",{" : "{");
		add_member(&b, "fact", harden_fact(c->what), true);
		add_member(&b, "field", c->field, false);
		add_member(&b, "rule", c->rule, false);
		buf_puts(&b, ",\"to\":");
		jv_write(&b, &c->value);
		buf_puts(&b, "}");
	}
	buf_puts(&b, "]");
	return json_text(a, &b);
}

static struct span exceptions_json(const struct decision *d, struct arena *a)
{
	struct buf b;

	if (!d->excepted_count)
		return (struct span){"", 0};
	buf_init(&b, RECORD_LINE_MAX);
	buf_puts(&b, "[");
	for (size_t i = 0; i < d->excepted_count; i++) {
		const struct exception_use *u = &d->excepted[i];

		buf_puts(&b, i ? ",{" : "{");
		add_member(&b, "rule", u->rule, true);
		add_member(&b, "reason", u->reason, false);
		add_member(&b, "field", u->field, false);
		add_member(&b, "value", u->value, false);
		add_member(&b, "owner", u->owner, false);
		add_member(&b, "ticket", u->ticket, false);
		add_member(&b, "expires", u->expires, false);
		buf_puts(&b, "}");
	}
	buf_puts(&b, "]");
	return json_text(a, &b);
}

static struct span warnings_json(const struct exchange *x, struct arena *a)
{
	const struct decision *d = &x->decision;
	struct buf b;
	bool any = false;

	if (!d->warning_count && !x->call.warning_count)
		return (struct span){"", 0};
	buf_init(&b, RECORD_LINE_MAX);
	buf_puts(&b, "[");
	for (size_t i = 0; i < x->call.warning_count; i++, any = true) {
		buf_puts(&b, any ? "," : "");
		jv_write_str(&b, span_of(x->call.warnings[i].text));
	}
	for (size_t i = 0; i < d->warning_count; i++, any = true) {
		buf_puts(&b, any ? "," : "");
		jv_write_str(&b, span_of(d->warnings[i].text));
	}
	buf_puts(&b, "]");
	return json_text(a, &b);
}

static struct span masked_json(const struct exchange *x, struct arena *a)
{
	struct buf b;

	buf_init(&b, RECORD_LINE_MAX);
	masked_write(x, &b);
	if (buf_len(&b))
		return json_text(a, &b);
	buf_fini(&b);
	return (struct span){"", 0};
}

static void fill_cert(const struct identity_cert *cert, struct record *r)
{
	if (!cert)
		return;
	r->cert_subject = cert->subject;
	r->cert_sha256 = cert->sha256;
}

static struct span container_json(const struct identity *who, struct arena *a)
{
	struct buf b;
	struct jv tree;

	if (!who->container)
		return (struct span){"", 0};
	tree = caller_tree(a, who->container);
	buf_init(&b, RECORD_LINE_MAX);
	jv_write(&b, &tree);
	return json_text(a, &b);
}

static void fill_who_and_what(const struct exchange *x, struct record *r)
{
	const struct identity *who = &x->conn->who;

	r->surface = x->service->ops->kind;
	r->backend = x->service->conf->name;
	r->listener = who->listener;
	r->identity = who->name;
	r->owner = who->owner;
	r->auth_method = identity_method(who);
	r->address = who->address;
	fill_cert(who->cert, r);
	r->has_cred = who->has_cred;
	r->uid = who->uid;
	r->gid = who->gid;
	r->pid = who->pid;
	r->container = container_json(who, x->arena);
	r->op = operation_name(x->call.op);
	r->op_class = op_class_name(operation_class(x->call.op));
	r->method = x->req.method;
	r->path = x->req.path;
	r->object_kind = x->call.object.kind;
	r->object_id = x->call.object.id;
	r->object_name = x->call.object.name;
}

/* What a person has allowed is no reason any more; the violations tell what it was. */
static const char *reason_of_end(const struct exchange *x)
{
	const struct violations *v = &x->decision.violations;

	return v->count && !(x->permitted && *asking_by(x)) ? reason_name(v->list[0].reason) : "";
}

static void fill_judged(const struct exchange *x, struct record *r, struct arena *a)
{
	const struct decision *d = &x->decision;
	struct buf facts;

	r->verdict = verdict_name(d->verdict);
	r->would = d->mode != MODE_ENFORCE || d->would != d->verdict ? verdict_name(d->would) : "";
	r->approval_id = asking_id(x);
	r->approval_by = asking_by(x);
	r->judged = d->judged ? verdict_name(d->said) : "";
	r->mode = d->mode != MODE_ENFORCE ? rule_mode_name(d->mode) : "";
	r->override_mode = d->override ? rule_mode_name(d->override->mode) : "";
	r->override_ticket = d->override ? d->override->ticket : "";
	r->reason = reason_of_end(x);
	r->rule = d->violations.count ? d->violations.list[0].rule : d->rule;
	r->profile = d->profile;
	r->profile_sha256 = d->profile_hash;
	r->violations = violations_json(d, a);
	r->changes = changes_json(d, a);
	r->exceptions = exceptions_json(d, a);
	r->warnings = warnings_json(x, a);
	r->masked = masked_json(x, a);
	if (!x->has_facts)
		return;
	buf_init(&facts, RECORD_LINE_MAX);
	jv_write(&facts, &x->facts);
	r->facts = json_text(a, &facts);
}

void trail_decision(const struct exchange *x, struct record *ret, struct arena *a)
{
	*ret = (struct record){.type = RECORD_DECISION, .id = x->id};
	fill_who_and_what(x, ret);
	ret->body_bytes = buf_len(&x->body);
	ret->body_sha256 = x->body_sha256;
	ret->sent_sha256 = x->sent_sha256;
	fill_judged(x, ret, a);
}

static void fill_outcome(const struct exchange *x, struct record *r)
{
	struct buf attestation;

	if (x->call.attestation.kind == JV_OBJECT) {
		buf_init(&attestation, RECORD_LINE_MAX);
		jv_write(&attestation, &x->call.attestation);
		r->attestation = json_text(x->arena, &attestation);
	}
	r->status = x->status;
	r->http = x->http;
	r->err = x->err;
	r->bytes_in = x->bytes_in;
	r->bytes_out = x->bytes_out;
	r->dur_ms = x->worker->loop.now_ms - x->started_ms;
	r->client_gone = x->gone;
	if (x->call.reply == REPLY_LAUNCH && x->service->ops->created)
		r->created = x->service->ops->created(&x->call);
}

static void count(const struct exchange *x)
{
	const struct violations *v = &x->decision.violations;
	enum reason reason = v->count ? v->list[0].reason : REASON_NONE;
	struct metrics *m = x->worker->conf->metrics;
	bool failed = reason == REASON_engine_unreachable || reason == REASON_engine_timeout ||
		      reason == REASON_engine_reply;

	metrics_decision(m, x->decision.profile ? x->decision.profile : "",
			 operation_name(x->call.op), verdict_name(x->decision.verdict),
			 reason_of_end(x));
	metrics_add(m, METRIC_overridden, x->permitted && override_let_pass(&x->decision));
	metrics_add(m, METRIC_bytes_in, x->bytes_in);
	metrics_add(m, METRIC_bytes_out, x->bytes_out);
	metrics_add(m, METRIC_streams, x->upgrade != NULL);
	metrics_add(m, METRIC_engine_failures, failed);
	service_count(x, ENGINE_failures, failed);
	service_count(x, ENGINE_timeouts, reason == REASON_engine_timeout);
	service_count(x, ENGINE_crowded, reason == REASON_engine_busy);
	metrics_add(m, METRIC_rates, reason == REASON_rate);
	if (x->call.reply != REPLY_HIJACK && x->call.reply != REPLY_ROWS)
		metrics_request(m, x->worker->loop.now_ms - x->started_ms);
}

/* The outcome of a decision, or the one record of a read.  Once. */
void trail_end(struct exchange *x)
{
	char id[UUID_TEXT_LEN + 1];
	struct record r = {.type = RECORD_READ, .id = x->id};

	if (x->recorded || x->worker->check || !x->conn)
		return;
	x->recorded = true;
	watched_ended(x->worker->conf->watched, x->deeds, x->forwarded, x->service_status);
	if (x->head_seen)
		count(x);
	if (x->decided && !x->allow_on_record)
		return; /* a denial is complete by itself */
	if (!x->head_seen) {
		trail_malformed(x->conn);
		return;
	}
	if (x->allow_on_record) {
		uuid_make(id);
		r = (struct record){.type = RECORD_OUTCOME, .id = id, .of = x->id};
		r.op = operation_name(x->call.op);
		r.reason = reason_of_end(x);
		/* That nobody saw what passed is said by each record of it. */
		if (x->has_facts && jv_path(&x->facts, "workload.opaque"))
			r.warnings = warnings_json(x, x->arena);
	} else {
		fill_who_and_what(x, &r);
		fill_judged(x, &r, x->arena);
	}
	fill_outcome(x, &r);
	if (audit_tell(x->worker->audit, &r) == 0)
		return;
	metrics_add(x->worker->conf->metrics, METRIC_unrecorded, 1);
	log_often(&unrecorded, "%s: its %s could not be recorded", x->id, record_type_name(r.type));
}

void trail_approval(const struct exchange *x, const char *status, enum reason reason)
{
	char id[UUID_TEXT_LEN + 1];
	struct record r = {.type = RECORD_APPROVAL, .id = id, .of = x->id, .status = status};

	uuid_make(id);
	fill_who_and_what(x, &r);
	r.profile = x->decision.profile;
	r.profile_sha256 = x->decision.profile_hash;
	r.verdict = verdict_name(VERDICT_DENY);
	r.reason = reason_name(reason);
	r.approval_id = asking_id(x);
	r.approval_by = asking_by(x);
	if (audit_tell(x->worker->audit, &r) == 0)
		return;
	metrics_add(x->worker->conf->metrics, METRIC_unrecorded, 1);
	log_often(&unrecorded, "%s: how its question ended could not be recorded", x->id);
}

/* MHD answered by itself; nothing of it went anywhere. */
void trail_malformed(struct conn *c)
{
	char id[UUID_TEXT_LEN + 1];
	/* Whatever it was, none of it is here: it may have been anything. */
	struct record r = {.type = RECORD_MALFORMED, .id = id, .masked = span_of("[\"req\"]")};

	if (c->worker->check) {
		check_malformed(c->worker);
		return;
	}
	metrics_add(c->worker->conf->metrics, METRIC_malformed, 1);
	uuid_make(id);
	r.listener = c->who.listener;
	/* With tokens each request says who asks, and this one could not be read. */
	if (!c->listener->takes_tokens) {
		r.identity = c->who.name;
		r.owner = c->who.owner;
		r.auth_method = identity_method(&c->who);
	}
	r.address = c->who.address;
	fill_cert(c->who.cert, &r);
	r.has_cred = c->who.has_cred;
	r.uid = c->who.uid;
	r.gid = c->who.gid;
	r.pid = c->who.pid;
	r.verdict = verdict_name(VERDICT_DENY);
	r.reason = reason_name(REASON_malformed);
	if (audit_tell(c->worker->audit, &r) < 0)
		log_often(&unrecorded, "a malformed request could not be recorded");
}

static enum reason reason_of(enum tls_fault fault)
{
	switch (fault) {
	case TLS_NO_CERTIFICATE:
	case TLS_BAD_CERTIFICATE:
	case TLS_EXPIRED:
		return REASON_client_certificate;
	case TLS_FINE:
	case TLS_AGAIN:
	case TLS_END:
	case TLS_CUT:
	case TLS_NO_TLS:
	case TLS_VERSION:
	case TLS_PEER_REFUSED:
	case TLS_RENEGOTIATION:
	case TLS_LATE:
	case TLS_FAULT_COUNT:
		break;
	}
	return REASON_tls_handshake;
}

void trail_handshake(struct worker *w, const struct handshake *h)
{
	char id[UUID_TEXT_LEN + 1], text[256];
	struct record r = {.type = RECORD_MALFORMED, .id = id, .text = text};

	uuid_make(id);
	snprintf(text, sizeof(text), "%s%s%s", tls_fault_text(h->fault), *h->why ? ": " : "",
		 h->why);
	r.listener = h->listener;
	r.address = h->address;
	r.auth_method = "listener"; /* what was shown proves nothing */
	fill_cert(h->shown, &r);
	r.verdict = verdict_name(VERDICT_DENY);
	r.reason = reason_name(reason_of(h->fault));
	if (audit_tell(w->audit, &r) < 0)
		log_often(&unrecorded, "a failed TLS handshake could not be recorded");
}
