#include "audit/fields.h"

#include "audit/line_priv.h"
#include "audit/record_priv.h"
#include "gate/base/clock.h"

#include <inttypes.h>
#include <string.h>

#define SECONDS_LEN 19 /* "2026-01-31T12:00:00" */

uint64_t fields_time(const char *text)
{
	char whole[SECONDS_LEN + 2];
	uint64_t ns = 0, unit = 100000000;
	int64_t seconds;

	if (strlen(text) < SECONDS_LEN)
		return 0;
	memcpy(whole, text, SECONDS_LEN);
	memcpy(whole + SECONDS_LEN, "Z", 2);
	seconds = clock_parse(whole, SECONDS_LEN + 1);
	if (seconds < 0)
		return 0;
	text += SECONDS_LEN;
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9'; text++, unit /= 10)
			ns += (uint64_t)(*text - '0') * unit;
	return (uint64_t)seconds * 1000000000 + ns;
}

static const char *copy(struct arena *a, struct span s)
{
	/* A text that is none may be a null pointer. */
	const char *text = s.len ? arena_strndup(a, s.at, s.len) : "";

	return text ? text : "";
}

static void take_peeked(struct arena *a, struct span body, struct fields *f)
{
	struct record_peek peek;

	if (!record_peek(body, &peek))
		return;
	f->type = peek.type;
	f->type_name = copy(a, record_peek_str(body, "type"));
	f->id = copy(a, peek.id);
	f->of = copy(a, peek.of);
}

void fields_take_who(struct fields *f)
{
	const struct jv *actor = jv_get(&f->tree, "actor"), *req = jv_get(&f->tree, "req");

	f->identity = jv_str(actor, "identity", "");
	f->owner = jv_str(actor, "owner", "");
	f->listener = jv_str(&f->tree, "listener", "");
	f->op = jv_str(&f->tree, "op", "");
	f->op_class = jv_str(&f->tree, "class", "");
	f->method = jv_str(req, "method", "");
	f->path = jv_str(req, "path", "");
}

static void take_judged(struct fields *f)
{
	const struct jv *pol = jv_get(&f->tree, "pol"), *outcome = jv_get(&f->tree, "outcome");
	const struct jv *res = jv_get(&f->tree, "res");

	if (res && res->kind == JV_ARRAY && res->count) {
		f->object_kind = jv_str(res->items, "type", "");
		f->object_id = jv_str(res->items, "id", "");
		f->object = jv_str(res->items, "name", f->object_id);
	}
	f->profile = jv_str(pol, "profile", "");
	f->rule = jv_str(pol, "rule", "");
	f->verdict = jv_str(&f->tree, "verdict", "");
	f->would = jv_str(&f->tree, "would", "");
	f->reason = jv_str(&f->tree, "reason", "");
	f->status = jv_str(outcome, "status", "");
	f->http = jv_num(outcome, "http", 0);
	f->text = jv_str(&f->tree, "text", "");
	f->cause = jv_str(&f->tree, "cause", "");
}

static void clear(struct fields *f)
{
	*f = (struct fields){.tree = jv_null()};
	f->log = f->type_name = f->time = f->id = f->of = f->identity = f->owner = "";
	f->listener = f->op = f->op_class = f->method = f->path = f->object = "";
	f->object_kind = f->object_id = f->profile = f->rule = f->verdict = "";
	f->would = f->reason = f->status = f->text = f->cause = "";
}

/* json: what is read of the line. */
static int take(struct arena *a, struct span text, struct span json, struct fields *ret,
		struct err *err)
{
	struct err ignored = {0};
	enum jv_fault fault;
	struct line line;

	clear(ret);
	if (!line_split(text, &line))
		return err_set(err, ERR_INPUT,
			       "the log holds a line that is no record; 'audit verify' says more");
	if (!line_hash_ok(text, &line))
		return err_set(err, ERR_INPUT,
			       "record %" PRIu64 " was altered; 'audit verify' says more",
			       line.seq);
	ret->seq = line.seq;
	ret->log = copy(a, line.log);
	take_peeked(a, line.body, ret);
	if (jv_parse(a, json, &ret->tree, &fault, &ignored) < 0) {
		ret->tree = jv_null();
		ret->time = copy(a, record_peek_str(text, "t"));
	} else {
		ret->time = jv_str(&ret->tree, "t", "");
		fields_take_who(ret);
		take_judged(ret);
	}
	ret->t_ns = fields_time(ret->time);
	return arena_spent(a) ? err_set(err, ERR_LIMIT, "no memory for a record") : 0;
}

int fields_take(struct arena *a, struct span text, struct fields *ret, struct err *err)
{
	return take(a, text, text, ret, err);
}

int fields_take_searched(struct arena *a, struct span text, struct fields *ret, struct err *err)
{
	static const char name[] = ",\"facts\":{";
	struct span facts = record_peek_object(text, name), json = text;
	size_t before, after;
	char *copied;

	if (facts.len) { /* with the comma before it, so that JSON is left */
		before = (size_t)(facts.at - text.at) - (sizeof(name) - 2);
		after = text.len - (size_t)(facts.at + facts.len - text.at);
		copied = arena_take(a, before + after);
		if (!copied)
			return err_set(err, ERR_LIMIT, "no memory for a record");
		memcpy(copied, text.at, before);
		memcpy(copied + before, facts.at + facts.len, after);
		json = (struct span){copied, before + after};
	}
	return take(a, text, json, ret, err);
}

static void give(const char *name, fields_name_fn *fn, void *arg)
{
	if (*name)
		fn(arg, name);
}

void fields_objects(const struct fields *f, fields_name_fn *fn, void *arg)
{
	const struct jv *res = jv_get(&f->tree, "res");
	const struct jv *created = jv_path(&f->tree, "outcome.created");

	for (size_t i = 0; res && res->kind == JV_ARRAY && i < res->count; i++) {
		give(jv_str(&res->items[i], "name", ""), fn, arg);
		give(jv_str(&res->items[i], "id", ""), fn, arg);
	}
	for (size_t i = 0; created && created->kind == JV_ARRAY && i < created->count; i++)
		if (created->items[i].kind == JV_STRING)
			give(created->items[i].str.at, fn, arg);
}

/* All strings below a value; not its keys. */
static void add_words(const struct jv *v, struct buf *out)
{
	if (!v)
		return;
	if (v->kind == JV_STRING && buf_room(out) > v->str.len) {
		buf_put(out, v->str.at, v->str.len);
		buf_put(out, "\n", 1);
	}
	for (size_t i = 0; v->kind == JV_ARRAY && i < v->count; i++)
		add_words(&v->items[i], out);
	for (size_t i = 0; v->kind == JV_OBJECT && i < v->count; i++)
		add_words(&v->members[i].value, out);
}

void fields_words(const struct fields *f, struct buf *out)
{
	/* Where people's words are; hashes, signatures and facts are not among them. */
	static const char *const places[] = {
		"actor.identity", "actor.owner", "op",       "req.method", "req.path", "res",
		"pol.profile",    "pol.rule",    "reason",   "violations", "warnings", "mut",
		"exceptions",     "outcome.err", "listener", "text",       "cause",    "masked",
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		add_words(jv_path(&f->tree, places[i]), out);
	add_words(jv_path(&f->tree, "outcome.created"), out);
	add_words(jv_path(&f->tree, "attestation.differs"), out);
}
