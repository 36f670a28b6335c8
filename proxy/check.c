/*
 * `sallyport check` and `explain`: the same front, the same judge, nothing is
 * forwarded.  The requests travel over a socket pair, so that what is judged
 * is what would be judged on a socket.
 */
#include "gate/base/io.h"
#include "proxy/worker_priv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUIET_TURNS  3 /* turns without an event before the input counts as read */
#define TURN_MS      20
#define FILE_TURN_MS 1 /* a facts file answers at once */

struct check {
	const struct check_request *req;
	unsigned allowed, refused;
};

const struct jv *check_facts(const struct worker *w)
{
	return w->check ? w->check->req->facts : NULL;
}

/* --- what is printed --- */

static void add_text(struct arena *a, struct jv *obj, const char *key, const char *value)
{
	jv_set(a, obj, key, jv_string(value ? value : ""));
}

static struct jv violations_tree(const struct exchange *x)
{
	const struct violations *list = &x->decision.violations;
	struct jv out = jv_array();

	for (size_t i = 0; i < list->count; i++) {
		const struct violation *v = &list->list[i];
		struct jv *one = jv_push(x->arena, &out, jv_object());

		add_text(x->arena, one, "rule", v->rule);
		add_text(x->arena, one, "reason", reason_name(v->reason));
		add_text(x->arena, one, "field", v->field);
		add_text(x->arena, one, "value", v->value);
		add_text(x->arena, one, "text",
			 v->text && *v->text ? v->text : reason_what(v->reason));
		add_text(x->arena, one, "hint",
			 v->hint && *v->hint ? v->hint : reason_hint(v->reason));
	}
	return out;
}

static struct jv changes_tree(const struct exchange *x)
{
	struct jv out = jv_array();

	for (size_t i = 0; i < x->decision.change_count; i++) {
		const struct change *c = &x->decision.changes[i];
		struct jv *one = jv_push(x->arena, &out, jv_object());

		add_text(x->arena, one, "fact", harden_fact(c->what));
		add_text(x->arena, one, "field", c->field);
		add_text(x->arena, one, "rule", c->rule);
		jv_set(x->arena, one, "to", c->value);
	}
	return out;
}

static struct jv exceptions_tree(const struct exchange *x)
{
	struct jv out = jv_array();

	for (size_t i = 0; i < x->decision.excepted_count; i++) {
		const struct exception_use *u = &x->decision.excepted[i];
		struct jv *one = jv_push(x->arena, &out, jv_object());

		add_text(x->arena, one, "rule", u->rule);
		add_text(x->arena, one, "reason", u->reason);
		add_text(x->arena, one, "field", u->field);
		add_text(x->arena, one, "value", u->value);
		add_text(x->arena, one, "owner", u->owner);
		add_text(x->arena, one, "ticket", u->ticket);
		add_text(x->arena, one, "expires", u->expires);
	}
	return out;
}

static struct jv warnings_tree(const struct exchange *x)
{
	struct jv out = jv_array();

	for (size_t i = 0; i < x->call.warning_count; i++)
		jv_push(x->arena, &out, jv_string(x->call.warnings[i].text));
	for (size_t i = 0; i < x->decision.warning_count; i++)
		jv_push(x->arena, &out, jv_string(x->decision.warnings[i].text));
	return out;
}

static void print_json(struct exchange *x, FILE *out)
{
	const struct decision *d = &x->decision;
	struct jv line = jv_object();
	struct buf text;

	add_text(x->arena, &line, "verdict", verdict_name(d->verdict));
	if (d->would != d->verdict)
		add_text(x->arena, &line, "would", verdict_name(d->would));
	add_text(x->arena, &line, "operation", operation_name(x->call.op));
	add_text(x->arena, &line, "reason",
		 d->violations.count ? reason_name(d->violations.list[0].reason) : "");
	jv_set(x->arena, &line, "violations", violations_tree(x));
	jv_set(x->arena, &line, "changes", changes_tree(x));
	jv_set(x->arena, &line, "warnings", warnings_tree(x));
	if (d->excepted_count)
		jv_set(x->arena, &line, "exceptions", exceptions_tree(x));
	add_text(x->arena, &line, "profile", d->profile);
	add_text(x->arena, &line, "id", x->id);
	buf_init(&text, 4u << 20);
	jv_write(&text, &line);
	fprintf(out, "%.*s\n", SPAN_FMT(buf_span(&text)));
	buf_fini(&text);
}

static void print_tree(const char *title, const struct jv *v, FILE *out)
{
	struct buf text;

	buf_init(&text, 4u << 20);
	jv_write(&text, v);
	fprintf(out, "  %-10s %.*s\n", title, SPAN_FMT(buf_span(&text)));
	buf_fini(&text);
}

static void print_people(struct exchange *x, FILE *out)
{
	const struct decision *d = &x->decision;
	struct jv changes = changes_tree(x), warnings = warnings_tree(x);
	struct buf text;

	fprintf(out, "%s %s\n", x->req.method, x->req.path);
	fprintf(out, "  operation  %s (%s): %s\n", operation_name(x->call.op),
		op_class_name(operation_class(x->call.op)), operation_doc(x->call.op));
	fprintf(out, "  caller     %s, profile \"%s\"\n",
		*x->conn->who.name ? x->conn->who.name : x->conn->who.owner,
		d->profile ? d->profile : "");
	if (x->conn->who.container)
		fprintf(out, "  container  %s, of %s\n", x->conn->who.container->name,
			x->conn->who.container->image);
	if (x->has_facts)
		print_tree("facts", &x->facts, out);
	if (changes.count)
		print_tree("filled in", &changes, out);
	if (warnings.count)
		print_tree("warnings", &warnings, out);
	fprintf(out, "  verdict    %s\n", verdict_name(d->verdict));
	if (d->violations.count) {
		buf_init(&text, 65536);
		refusal_message(x, &text);
		fprintf(out, "  %.*s\n", SPAN_FMT(buf_span(&text)));
		buf_fini(&text);
	}
	if (x->worker->check->req->more)
		x->worker->check->req->more(x->worker->check->req, x->has_facts ? &x->facts : NULL,
					    operation_name(x->call.op), d);
}

void check_print(struct exchange *x)
{
	struct check *c = x->worker->check;

	if (x->check_printed)
		return;
	x->check_printed = true;
	if (x->permitted)
		c->allowed++;
	else
		c->refused++;
	if (c->req->explain)
		print_people(x, c->req->out);
	else
		print_json(x, c->req->out);
}

/* A request that never got a head: the HTTP library has refused it. */
void check_malformed(struct worker *w)
{
	struct check *c = w->check;

	c->refused++;
	if (c->req->explain)
		fprintf(c->req->out,
			"a request that ends early, or is no HTTP\n  verdict    deny\n  %s [%s]: "
			"%s\n",
			reason_what(REASON_malformed), reason_name(REASON_malformed),
			reason_hint(REASON_malformed));
	else
		fprintf(c->req->out,
			"{\"verdict\":\"deny\",\"operation\":\"unknown\",\"reason\":\"malformed\","
			"\"violations\":[{\"rule\":\"canonical\",\"reason\":\"malformed\","
			"\"field\":\"\","
			"\"value\":\"\",\"text\":\"%s\",\"hint\":\"%s\"}],\"changes\":[],"
			"\"warnings\":[],\"profile\":\"\",\"id\":\"\"}\n",
			reason_what(REASON_malformed), reason_hint(REASON_malformed));
}

/* --- running it --- */

static const struct conf_listener *find_listener(const struct worker *w, const char *name)
{
	for (size_t i = 0; i < w->conf->listener_count; i++)
		if (!w->conf->listeners[i].metrics && !strcmp(w->conf->listeners[i].name, name))
			return &w->conf->listeners[i];
	return NULL;
}

static bool identity_is_listed(const struct worker *w, const struct conf_listener *l,
			       const char *name)
{
	for (size_t i = 0; i < l->identity_count; i++)
		if (!strcmp(w->conf->identities[l->identities[i]].name, name))
			return true;
	return !*name;
}

/* Who the request is of: where all callers are one identity, that one, unless another is named. */
static const char *who_asks(const struct worker *w, const struct conf_listener *l, const char *name)
{
	return !*name && l->as_one ? w->conf->identities[l->identities[0]].name : name;
}

/* True while an exchange is being worked on (as opposed to waiting for more input). */
static bool is_busy(const struct worker *w)
{
	const struct exchange *x = w->exchanges;

	return x && x->head_seen && x->state != X_BODY && x->state != X_DRAIN;
}

/* Sends what the gate takes and throws its answers away; false when it has hung up. */
static bool feed(int fd, struct span *rest)
{
	char answers[65536];
	ssize_t n = rest->len ? send(fd, rest->at, rest->len, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

	if (n > 0)
		*rest = span_skip(*rest, (size_t)n);
	n = recv(fd, answers, sizeof(answers), MSG_DONTWAIT);
	return n != 0;
}

static int turn_ms(const struct worker *w)
{
	return check_facts(w) ? FILE_TURN_MS : TURN_MS;
}

static void drive(struct worker *w, int fd, struct span text)
{
	struct span rest = text;
	int quiet = 0;

	while (quiet < QUIET_TURNS) {
		size_t before = rest.len;

		if (!feed(fd, &rest))
			break;
		worker_turn(w, turn_ms(w));
		quiet = rest.len || before != rest.len || is_busy(w) || w->mhd_due ? 0 : quiet + 1;
	}
}

/* A mistyped name, or none: what there is to choose from. */
static int say_listeners(const struct worker *w, const char *given, struct err *err)
{
	char names[300] = "";
	size_t at = 0;

	for (size_t i = 0; i < w->conf->listener_count && at < sizeof(names); i++)
		if (!w->conf->listeners[i].metrics)
			at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s",
					       at ? ", " : "", w->conf->listeners[i].name);
	return *given ? err_set(err, ERR_CONFIG, "no listener is called '%s'; there are: %s", given,
				names)
		      : err_set(err, ERR_INPUT, "name a listener, with --listener NAME: %s", names);
}

static int say_identities(const struct worker *w, const struct conf_listener *l, const char *given,
			  struct err *err)
{
	char names[300] = "";
	size_t at = 0;

	for (size_t i = 0; i < l->identity_count && at < sizeof(names); i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s", at ? ", " : "",
				       w->conf->identities[l->identities[i]].name);
	return err_set(
		err, ERR_CONFIG,
		"listener %s has no identity '%s'; it has: %s.  Without --identity it is asked as "
		"who runs this",
		l->name, given, *names ? names : "none");
}

int worker_check(struct worker *w, const struct check_request *req, struct err *err)
{
	const struct conf_listener *l = find_listener(w, req->listener);
	struct check check = {.req = req};
	int pair[2];

	if (!l) {
		say_listeners(w, req->listener, err);
		return 2;
	}
	if (!identity_is_listed(w, l, req->identity)) {
		say_identities(w, l, req->identity, err);
		return 2;
	}
	if (io_pair(pair, err) < 0)
		return 2;
	w->check = &check;
	engine_watch(w->rules, req->trace);
	if (io_nonblock(pair[0], err) < 0 ||
	    connection_adopt(w, l, pair[0], who_asks(w, l, req->identity), NULL, err) < 0) {
		close(pair[1]);
		return 2;
	}
	drive(w, pair[1], req->text);
	close(pair[1]); /* what was not complete ends here, and is reported as malformed */
	for (int i = 0; i < QUIET_TURNS || (w->conns && i < 100); i++)
		worker_turn(w, turn_ms(w));
	if (!check.allowed && !check.refused && req->text.len)
		check_malformed(w);
	engine_watch(w->rules, NULL);
	w->check = NULL;
	if (!check.allowed && !check.refused) {
		err_set(err, ERR_INPUT, "there is no request in the input");
		return 2;
	}
	return check.refused ? 1 : 0;
}
