#include "backends/docker/docker_priv.h"

#include <string.h>

/* --- the table --- */

#define USE_MINUS   USE_PASS
#define MINUS_PASS  false
#define MINUS_DROP  false
#define MINUS_MINUS true

static const struct row {
	enum docker_schema schema;
	struct docker_field field;
	size_t len;
} rows[] = {
#define FIELD(schema, name, type, use)                                                             \
	{SCHEMA_##schema,                                                                          \
	 {#name, TYPE_##type, SCHEMA_NONE, USE_##use, REASON_NONE, MINUS_##use},                   \
	 sizeof(#name) - 1},
#define PART(schema, name, type, of, use)                                                          \
	{SCHEMA_##schema,                                                                          \
	 {#name, TYPE_##type, SCHEMA_##of, USE_##use, REASON_NONE, false},                         \
	 sizeof(#name) - 1},
#define DENIED(schema, name, type, reason)                                                         \
	{SCHEMA_##schema,                                                                          \
	 {#name, TYPE_##type, SCHEMA_NONE, USE_DENY, REASON_##reason, false},                      \
	 sizeof(#name) - 1},
#include "backends/docker/fields.def"
#undef DENIED
#undef PART
#undef FIELD
};
#define ROWS (sizeof(rows) / sizeof(*rows))

const struct docker_field *docker_field(enum docker_schema schema, struct span key)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].schema == schema && rows[i].len == key.len &&
		    memcmp(rows[i].field.name, key.at, key.len) == 0)
			return &rows[i].field;
	return NULL;
}

/* --- folding --- */

/* The next letter of key as Go's encoding/json folds it; 0 at the end. */
static unsigned char folded(struct span *key)
{
	unsigned char c;

	if (!key->len)
		return 0;
	if (span_starts(*key, "\xc5\xbf")) { /* long s */
		*key = span_skip(*key, 2);
		return 's';
	}
	if (span_starts(*key, "\xe2\x84\xaa")) { /* Kelvin sign */
		*key = span_skip(*key, 3);
		return 'k';
	}
	c = (unsigned char)key->at[0];
	*key = span_skip(*key, 1);
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}

bool docker_folds_to(struct span key, const char *known)
{
	struct span other = span_of(known);
	unsigned char a, b;

	do {
		a = folded(&key);
		b = folded(&other);
	} while (a == b && a);
	return a == b && !key.len && !other.len;
}

static const struct docker_field *folded_field(enum docker_schema schema, struct span key)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].schema == schema && docker_folds_to(key, rows[i].field.name))
			return &rows[i].field;
	return NULL;
}

/* --- hints --- */

#define DISTANCE_MAX 40 /* longer names get no hint */

static size_t distance(struct span a, const char *b)
{
	size_t row[DISTANCE_MAX + 1], len = strlen(b);

	if (a.len > DISTANCE_MAX || len > DISTANCE_MAX)
		return DISTANCE_MAX;
	for (size_t k = 0; k <= len; k++)
		row[k] = k;
	for (size_t i = 0; i < a.len; i++) {
		size_t diagonal = row[0];

		row[0] = i + 1;
		for (size_t k = 0; k < len; k++) {
			size_t best = diagonal + (a.at[i] != b[k]);

			diagonal = row[k + 1];
			best = best < diagonal + 1 ? best : diagonal + 1;
			row[k + 1] = best < row[k] + 1 ? best : row[k] + 1;
		}
	}
	return row[len];
}

static const char *nearest(enum docker_schema schema, struct span key)
{
	const char *best = NULL;
	size_t least = key.len / 2 + 1;

	for (size_t i = 0; i < ROWS; i++) {
		size_t d = rows[i].schema == schema ? distance(key, rows[i].field.name) : least;

		if (d >= least)
			continue;
		least = d;
		best = rows[i].field.name;
	}
	return best;
}

/* --- checking --- */

struct check {
	struct backend_call *call;
	const char *path; /* of the object that is looked at, "" for the document */
};

static const char *at_key(const struct check *c, struct span key)
{
	return docker_text(c->call, "%s%s%s", c->path, *c->path ? "." : "",
			   docker_cut(c->call, key));
}

static bool wrong_type(struct backend_call *call, const char *path, const struct jv *v,
		       const char *want)
{
	struct violation *bad = docker_refuse(call, REASON_json_type, path, NULL);

	bad->text = docker_text(call, "%s must be %s, not %s", path, want, jv_kind_name(v->kind));
	return false;
}

static bool all_strings(const struct jv *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].kind != JV_STRING)
			return false;
	return true;
}

static bool is_strings(const struct jv *v)
{
	return v->kind == JV_ARRAY && all_strings(v);
}

static bool is_ints(const struct jv *v)
{
	if (v->kind != JV_ARRAY)
		return false;
	for (size_t i = 0; i < v->count; i++)
		if (v->items[i].kind != JV_INT)
			return false;
	return true;
}

static bool is_string_lists(const struct jv *v)
{
	if (v->kind != JV_ARRAY)
		return false;
	for (size_t i = 0; i < v->count; i++)
		if (!is_strings(&v->items[i]))
			return false;
	return true;
}

static bool is_string_map(const struct jv *v)
{
	if (v->kind != JV_OBJECT)
		return false;
	for (size_t i = 0; i < v->count; i++)
		if (v->members[i].value.kind != JV_STRING)
			return false;
	return true;
}

static bool is_set(const struct jv *v)
{
	if (v->kind != JV_OBJECT)
		return false;
	for (size_t i = 0; i < v->count; i++) {
		const struct jv *member = &v->members[i].value;

		if (member->kind != JV_NULL && (member->kind != JV_OBJECT || member->count))
			return false;
	}
	return true;
}

static bool check_object(struct backend_call *call, enum docker_schema schema, const char *path,
			 struct jv *v);

static bool check_list(struct backend_call *call, enum docker_schema schema, const char *path,
		       struct jv *v)
{
	bool fine = true;

	if (v->kind != JV_ARRAY)
		return wrong_type(call, path, v, "an array of objects");
	for (size_t i = 0; i < v->count; i++)
		fine = check_object(call, schema, docker_text(call, "%s[%zu]", path, i),
				    &v->items[i]) &&
		       fine;
	return fine;
}

/* An object whose members are named by the caller; null stands for an empty member. */
static bool check_map(struct backend_call *call, const struct docker_field *field, const char *path,
		      struct jv *v)
{
	const struct check c = {call, path};
	bool lists = field->type == TYPE_LIST_MAP, fine = true;

	if (v->kind != JV_OBJECT)
		return wrong_type(call, path, v, "an object");
	for (size_t i = 0; i < v->count; i++) {
		struct jv *member = &v->members[i].value;
		const char *where = at_key(&c, v->members[i].key);

		if (member->kind == JV_NULL)
			*member = lists ? jv_array() : jv_object();
		fine = (lists ? check_list(call, field->of, where, member)
			      : check_object(call, field->of, where, member)) &&
		       fine;
	}
	return fine;
}

static bool check_value(struct backend_call *call, const struct docker_field *field,
			const char *path, struct jv *v)
{
	bool command = v->kind == JV_STRING || is_strings(v);

	if (v->kind == JV_NULL)
		return true;
	switch (field->type) {
	case TYPE_BOOL:
		return v->kind == JV_BOOL || wrong_type(call, path, v, "a boolean");
	case TYPE_INT:
		return v->kind == JV_INT || wrong_type(call, path, v, "an integer");
	case TYPE_STRING:
		return v->kind == JV_STRING || wrong_type(call, path, v, "a string");
	case TYPE_STRINGS:
		return is_strings(v) || wrong_type(call, path, v, "an array of strings");
	case TYPE_COMMAND:
		return command || wrong_type(call, path, v, "a string or an array of strings");
	case TYPE_INTS:
		return is_ints(v) || wrong_type(call, path, v, "an array of integers");
	case TYPE_STRING_LISTS:
		return is_string_lists(v) ||
		       wrong_type(call, path, v, "an array of arrays of strings");
	case TYPE_STRING_MAP:
		return is_string_map(v) || wrong_type(call, path, v, "an object of strings");
	case TYPE_SET:
		return is_set(v) || wrong_type(call, path, v, "an object of empty objects");
	case TYPE_OBJECT:
		return check_object(call, field->of, path, v);
	case TYPE_LIST:
		return check_list(call, field->of, path, v);
	case TYPE_MAP:
	case TYPE_LIST_MAP:
		return check_map(call, field, path, v);
	}
	return false;
}

static bool is_neutral(const struct docker_field *field, const struct jv *v)
{
	return jv_is_neutral(v) || (field->minus_one && v->kind == JV_INT && v->i == -1);
}

/* A key that no row has: dropped if it says nothing, refused otherwise. */
static bool unknown_key(const struct check *c, enum docker_schema schema, struct span key,
			const struct jv *v)
{
	const struct docker_field *folded = folded_field(schema, key);
	bool flat = schema == SCHEMA_CONFIG && docker_field(SCHEMA_HOST, key);
	const char *where = at_key(c, key), *near;
	struct violation *bad;

	if (schema == SCHEMA_CONFIG && !folded && !flat)
		folded = folded_field(SCHEMA_HOST, key);
	if (folded) {
		bad = docker_refuse(c->call, REASON_json_key_case, where, NULL);
		bad->hint = docker_text(c->call, "Write it as %s.", folded->name);
		return false;
	}
	if (jv_is_neutral(v)) {
		docker_warn(c->call,
			    docker_text(c->call, "%s is not known and was dropped", where));
		return true;
	}
	bad = docker_refuse(c->call, flat ? REASON_flat_hostconfig : REASON_json_unknown, where,
			    NULL);
	near = flat ? NULL : nearest(schema, key);
	if (near)
		bad->hint =
			docker_text(c->call, "Leave it out; the nearest known field is %s.", near);
	return false;
}

static bool check_member(const struct check *c, enum docker_schema schema, struct jv_member *m)
{
	const struct docker_field *field = docker_field(schema, m->key);
	const char *where;
	struct violation *bad;

	if (!field)
		return unknown_key(c, schema, m->key, &m->value);
	if (m->value.kind == JV_NULL)
		return true;
	where = at_key(c, m->key);
	if (!check_value(c->call, field, where, &m->value))
		return false;
	if (field->use != USE_DENY || is_neutral(field, &m->value))
		return true;
	bad = docker_refuse(c->call, field->deny, where, NULL);
	bad->text = docker_text(c->call, "the gate does not interpret %s", field->name);
	return false;
}

struct jv docker_in_order(struct arena *a, enum docker_schema schema, const struct jv *from)
{
	struct jv to = jv_object();

	for (size_t i = 0; i < ROWS; i++) {
		const struct docker_field *field = &rows[i].field;
		const struct jv *v;

		if (rows[i].schema != schema || field->use != USE_PASS)
			continue;
		v = jv_get_span(from, (struct span){field->name, rows[i].len});
		if (v && v->kind != JV_NULL)
			jv_add(a, &to, (struct span){field->name, rows[i].len}, *v);
	}
	return to;
}

static bool check_object(struct backend_call *call, enum docker_schema schema, const char *path,
			 struct jv *v)
{
	const struct check c = {call, path};
	bool fine = true;

	if (v->kind != JV_OBJECT)
		return wrong_type(call, path, v, "an object");
	for (size_t i = 0; i < v->count; i++)
		fine = check_member(&c, schema, &v->members[i]) && fine;
	*v = docker_in_order(call->arena, schema, v);
	return fine;
}

/* --- documents --- */

static enum reason reason_of(enum jv_fault fault)
{
	static const enum reason of[] = {
		[JV_FAULT_NONE] = REASON_internal,
		[JV_FAULT_EMPTY] = REASON_json_empty,
		[JV_FAULT_SYNTAX] = REASON_json_syntax,
		[JV_FAULT_ENCODING] = REASON_json_encoding,
		[JV_FAULT_DUPLICATE] = REASON_json_duplicate,
		[JV_FAULT_LIMIT] = REASON_json_limit,
		[JV_FAULT_TRAILING] = REASON_json_trailing,
		[JV_FAULT_MEMORY] = REASON_no_memory,
	};

	return of[fault];
}

bool docker_body(struct backend_call *call, enum docker_schema schema)
{
	struct docker_state *st = docker_state(call);
	enum jv_fault fault = JV_FAULT_NONE;
	struct err err = {0};
	struct jv doc;

	if (st->parsed)
		return true;
	if (jv_parse(call->arena, call->req->body, &doc, &fault, &err) < 0) {
		docker_refuse(call, reason_of(fault), "body", NULL)->text =
			docker_text(call, "%s", err.msg);
		return false;
	}
	if (doc.kind == JV_NULL) {
		docker_refuse(call, REASON_json_empty, "body", NULL);
		return false;
	}
	if (!check_object(call, schema, "", &doc))
		return false;
	st->body = doc;
	st->parsed = true;
	return true;
}

bool docker_vet(struct backend_call *call, enum docker_schema schema, const struct jv *doc,
		const char *path)
{
	const struct check c = {call, path};
	bool fine = true;

	for (size_t i = 0; doc && doc->kind == JV_OBJECT && i < doc->count; i++) {
		const struct jv_member *m = &doc->members[i];
		const struct docker_field *field = docker_field(schema, m->key);

		if (jv_is_neutral(&m->value) || (field && field->use != USE_DENY))
			continue;
		docker_refuse(call, field ? field->deny : REASON_json_unknown, at_key(&c, m->key),
			      NULL);
		fine = false;
	}
	return fine;
}
