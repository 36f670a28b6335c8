#include "backends/docker/docker_priv.h"

#include "gate/base/nearest.h"

#include <assert.h>
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
#include "backends/podman/fields.def"
#undef DENIED
#undef PART
#undef FIELD
};
#define ROWS (sizeof(rows) / sizeof(*rows))

/* The rows of one schema stand together. */
struct range {
	size_t first, count;
};

static struct range range_of(enum docker_schema schema)
{
	static struct range ranges[SCHEMA_COUNT];
	static bool ready;

	for (size_t i = 0; !ready && i < ROWS; i++) {
		struct range *r = &ranges[rows[i].schema];

		if (!r->count)
			r->first = i;
		assert(r->first + r->count == i);
		r->count++;
	}
	ready = true;
	return ranges[schema];
}

static const struct row *find_row(enum docker_schema schema, struct span key)
{
	struct range range = range_of(schema);

	for (const struct row *row = rows + range.first; range.count--; row++)
		if (row->len == key.len && memcmp(row->field.name, key.at, key.len) == 0)
			return row;
	return NULL;
}

const struct docker_field *docker_field(enum docker_schema schema, struct span key)
{
	const struct row *row = find_row(schema, key);

	return row ? &row->field : NULL;
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
	struct range range = range_of(schema);

	for (size_t i = range.first; i < range.first + range.count; i++)
		if (docker_folds_to(key, rows[i].field.name))
			return &rows[i].field;
	return NULL;
}

/* --- hints --- */

#define HINTS_MAX 8 /* for so many keys of one request; finding one is dear */

static const char *nearest(enum docker_schema schema, struct span key)
{
	struct range range = range_of(schema);
	struct nearest near = nearest_to(key);

	for (size_t i = range.first; i < range.first + range.count; i++)
		nearest_offer(&near, rows[i].field.name);
	return near.best;
}

/* --- checking --- */

/* Where in the document something stands; its text is made only when it is needed. */
struct place {
	struct backend_call *call;
	const struct place *up; /* NULL: the document itself */
	struct span key;        /* of a member; .at is NULL for an item */
	size_t index;           /* of an item */
};

static const char *place_text(const struct place *p)
{
	const char *up = p->up ? place_text(p->up) : "";

	if (!p->up)
		return "";
	if (!p->key.at)
		return docker_text(p->call, "%s[%zu]", up, p->index);
	return docker_text(p->call, "%s%s%s", up, *up ? "." : "", docker_cut(p->call, p->key));
}

static bool wrong_type(const struct place *p, const struct jv *v, const char *want)
{
	const char *where = place_text(p);
	struct violation *bad = docker_refuse(p->call, REASON_json_type, where, NULL);

	bad->text = docker_text(p->call, "%s must be %s, not %s", *where ? where : "the body", want,
				jv_kind_name(v->kind));
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

static bool check_object(const struct place *p, enum docker_schema schema, struct jv *v);

static bool check_list(const struct place *p, enum docker_schema schema, struct jv *v)
{
	bool fine = true;

	if (v->kind != JV_ARRAY)
		return wrong_type(p, v, "an array of objects");
	for (size_t i = 0; i < v->count; i++) {
		const struct place item = {.call = p->call, .up = p, .index = i};

		fine = check_object(&item, schema, &v->items[i]) && fine;
	}
	return fine;
}

/* An object whose members are named by the caller; null stands for an empty member. */
static bool check_map(const struct place *p, const struct docker_field *field, struct jv *v)
{
	bool lists = field->type == TYPE_LIST_MAP, fine = true;

	if (v->kind != JV_OBJECT)
		return wrong_type(p, v, "an object");
	for (size_t i = 0; i < v->count; i++) {
		const struct place below = {.call = p->call, .up = p, .key = v->members[i].key};
		struct jv *member = &v->members[i].value;

		if (member->kind == JV_NULL)
			*member = lists ? jv_array() : jv_object();
		fine = (lists ? check_list(&below, field->of, member)
			      : check_object(&below, field->of, member)) &&
		       fine;
	}
	return fine;
}

static bool check_value(const struct place *p, const struct docker_field *field, struct jv *v)
{
	bool command = v->kind == JV_STRING || is_strings(v);

	switch (field->type) {
	case TYPE_BOOL:
		return v->kind == JV_BOOL || wrong_type(p, v, "a boolean");
	case TYPE_INT:
		return v->kind == JV_INT || wrong_type(p, v, "an integer");
	case TYPE_STRING:
		return v->kind == JV_STRING || wrong_type(p, v, "a string");
	case TYPE_STRINGS:
		return is_strings(v) || wrong_type(p, v, "an array of strings");
	case TYPE_COMMAND:
		return command || wrong_type(p, v, "a string or an array of strings");
	case TYPE_INTS:
		return is_ints(v) || wrong_type(p, v, "an array of integers");
	case TYPE_STRING_LISTS:
		return is_string_lists(v) || wrong_type(p, v, "an array of arrays of strings");
	case TYPE_STRING_MAP:
		return is_string_map(v) || wrong_type(p, v, "an object of strings");
	case TYPE_SET:
		return is_set(v) || wrong_type(p, v, "an object of empty objects");
	case TYPE_OBJECT:
		return check_object(p, field->of, v);
	case TYPE_LIST:
		return check_list(p, field->of, v);
	case TYPE_MAP:
	case TYPE_LIST_MAP:
		return check_map(p, field, v);
	}
	return false;
}

static bool is_neutral(const struct docker_field *field, const struct jv *v)
{
	return jv_is_neutral(v) || (field->minus_one && v->kind == JV_INT && v->i == -1);
}

static bool other_case(const struct place *p, const struct docker_field *known)
{
	struct violation *bad = docker_refuse(p->call, REASON_json_key_case, place_text(p), NULL);

	bad->hint = docker_text(p->call, "Write it as %s.", known->name);
	return false;
}

/* A key that no row has: dropped if it says nothing, refused otherwise. */
static bool unknown_key(const struct place *p, enum docker_schema schema, const struct jv *v)
{
	const struct docker_field *folded = folded_field(schema, p->key);
	bool flat = schema == SCHEMA_CONFIG && docker_field(SCHEMA_HOST, p->key);
	const char *near;
	struct violation *bad;

	if (schema == SCHEMA_CONFIG && !folded && !flat)
		folded = folded_field(SCHEMA_HOST, p->key);
	if (folded)
		return other_case(p, folded);
	if (jv_is_neutral(v)) {
		docker_warn(p->call,
			    docker_text(p->call, "%s is not known and was dropped", place_text(p)));
		return true;
	}
	bad = docker_refuse(p->call, flat ? REASON_flat_hostconfig : REASON_json_unknown,
			    place_text(p), NULL);
	near = flat || p->call->refused.count > HINTS_MAX ? NULL : nearest(schema, p->key);
	if (near)
		bad->hint =
			docker_text(p->call, "Leave it out; the nearest known field is %s.", near);
	return false;
}

static bool check_member(const struct place *p, enum docker_schema schema, struct jv *v)
{
	const struct docker_field *field = docker_field(schema, p->key);
	struct violation *bad;

	if (!field)
		return unknown_key(p, schema, v);
	if (v->kind == JV_NULL)
		return true;
	if (!check_value(p, field, v))
		return false;
	if (field->use != USE_DENY || is_neutral(field, v))
		return true;
	bad = docker_refuse(p->call, field->deny, place_text(p), NULL);
	bad->text = docker_text(p->call, "the gate does not interpret %s", field->name);
	return false;
}

#define FIELDS_MAX 160 /* in one schema */

struct jv docker_in_order(struct arena *a, enum docker_schema schema, const struct jv *from)
{
	const struct jv_member *slots[FIELDS_MAX] = {NULL};
	struct range range = range_of(schema);
	struct jv to = jv_object();

	assert(range.count <= FIELDS_MAX);
	for (size_t i = 0; i < from->count; i++) {
		const struct row *row = find_row(schema, from->members[i].key);

		if (row && row->field.use == USE_PASS && from->members[i].value.kind != JV_NULL)
			slots[row - rows - range.first] = &from->members[i];
	}
	for (size_t i = 0; i < range.count; i++)
		if (slots[i])
			jv_add(a, &to, slots[i]->key, slots[i]->value);
	return to;
}

static bool check_object(const struct place *p, enum docker_schema schema, struct jv *v)
{
	bool fine = true;

	if (v->kind != JV_OBJECT)
		return wrong_type(p, v, "an object");
	for (size_t i = 0; i < v->count; i++) {
		const struct place member = {.call = p->call, .up = p, .key = v->members[i].key};

		fine = check_member(&member, schema, &v->members[i].value) && fine;
	}
	*v = docker_in_order(p->call->arena, schema, v);
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

#define BODY_VALUES_MAX 16384

/*
 * Reading takes time by the value, not by the byte, and one worker serves many:
 * bodies of nothing but small values are refused before they are read.
 */
static bool has_too_many_values(struct span s)
{
	bool in_string = false;
	size_t count = 0;

	for (size_t i = 0; i < s.len; i++) {
		char c = s.at[i];

		if (in_string && c == '\\')
			i++;
		else if (c == '"')
			in_string = !in_string;
		else if (!in_string && c == ',' && ++count > BODY_VALUES_MAX)
			return true;
	}
	return false;
}

bool docker_body(struct backend_call *call, enum docker_schema schema)
{
	struct docker_state *st = docker_state(call);
	enum jv_fault fault = JV_FAULT_NONE;
	struct err err = {0};
	struct jv doc;

	if (st->parsed)
		return true;
	if (has_too_many_values(call->req->body)) {
		docker_refuse(call, REASON_json_limit, "body", NULL)->text =
			docker_text(call, "the body holds more than %d values", BODY_VALUES_MAX);
		return false;
	}
	if (jv_parse(call->arena, call->req->body, &doc, &fault, &err) < 0) {
		docker_refuse(call, reason_of(fault), "body", NULL)->text =
			docker_text(call, "%s", err.msg);
		return false;
	}
	if (doc.kind == JV_NULL) {
		docker_refuse(call, REASON_json_empty, "body", NULL);
		return false;
	}
	if (!check_object(&(struct place){.call = call}, schema, &doc))
		return false;
	st->body = doc;
	st->parsed = true;
	return true;
}

bool docker_vet(struct backend_call *call, enum docker_schema schema, const struct jv *doc,
		const char *path)
{
	bool fine = true;

	for (size_t i = 0; doc && doc->kind == JV_OBJECT && i < doc->count; i++) {
		const struct jv_member *m = &doc->members[i];
		const struct docker_field *field = docker_field(schema, m->key);

		if (jv_is_neutral(&m->value) || (field && field->use != USE_DENY))
			continue;
		docker_refuse(call, field ? field->deny : REASON_json_unknown,
			      docker_text(call, "%s.%s", path, docker_cut(call, m->key)), NULL);
		fine = false;
	}
	return fine;
}
