#include "gate/base/jv.h"

#include "gate/base/utf8.h"

#include <assert.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const kind_names[] = {"null",   "boolean", "integer", "number",
					 "string", "array",   "object"};
_Static_assert(sizeof(kind_names) / sizeof(*kind_names) == JV_KIND_COUNT, "a name each");

const char *jv_kind_name(enum jv_kind kind)
{
	return kind_names[kind];
}

void jv_init(void)
{
	json_object_seed(0);
}

/* --- reading --- */

static enum jv_fault fault_of(const json_error_t *e)
{
	/* jansson's codes are many; the rest of them is syntax. */
	static const struct {
		enum json_error_code code;
		enum jv_fault fault;
	} table[] = {
		{json_error_invalid_utf8, JV_FAULT_ENCODING},
		{json_error_null_character, JV_FAULT_ENCODING},
		{json_error_null_byte_in_key, JV_FAULT_ENCODING},
		{json_error_duplicate_key, JV_FAULT_DUPLICATE},
		{json_error_numeric_overflow, JV_FAULT_LIMIT},
		{json_error_stack_overflow, JV_FAULT_LIMIT},
		{json_error_end_of_input_expected, JV_FAULT_TRAILING},
		{json_error_out_of_memory, JV_FAULT_MEMORY},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (json_error_code(e) == table[i].code)
			return table[i].fault;
	/* "\ud800" is a syntax error to jansson, a matter of encoding to us. */
	return strstr(e->text, "Unicode") ? JV_FAULT_ENCODING : JV_FAULT_SYNTAX;
}

struct conversion {
	struct arena *arena;
	bool deep; /* the limit was passed */
};

static struct jv convert(struct conversion *c, json_t *from, int depth);

static struct jv convert_object(struct conversion *c, json_t *from, int depth)
{
	struct jv to = jv_object();

	for (void *it = json_object_iter(from); it; it = json_object_iter_next(from, it)) {
		size_t len = json_object_iter_key_len(it);
		char *key = arena_strndup(c->arena, json_object_iter_key(it), len);

		if (!key)
			break;
		jv_add(c->arena, &to, (struct span){key, len},
		       convert(c, json_object_iter_value(it), depth + 1));
	}
	return to;
}

static struct jv convert_array(struct conversion *c, json_t *from, int depth)
{
	struct jv to = jv_array();

	for (size_t i = 0; i < json_array_size(from); i++)
		jv_push(c->arena, &to, convert(c, json_array_get(from, i), depth + 1));
	return to;
}

static struct jv convert_string(struct conversion *c, json_t *from)
{
	size_t len = json_string_length(from);
	char *copy = arena_strndup(c->arena, json_string_value(from), len);

	return copy ? jv_span((struct span){copy, len}) : jv_null();
}

static struct jv convert(struct conversion *c, json_t *from, int depth)
{
	if (depth > JV_DEPTH_MAX) {
		c->deep = true;
		return jv_null();
	}
	switch (json_typeof(from)) {
	case JSON_OBJECT:
		return convert_object(c, from, depth);
	case JSON_ARRAY:
		return convert_array(c, from, depth);
	case JSON_STRING:
		return convert_string(c, from);
	case JSON_INTEGER:
		return jv_int(json_integer_value(from));
	case JSON_REAL:
		return (struct jv){.kind = JV_REAL, .real = json_real_value(from)};
	case JSON_TRUE:
		return jv_bool(true);
	case JSON_FALSE:
		return jv_bool(false);
	case JSON_NULL:
		break;
	}
	return jv_null();
}

static bool is_blank(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!strchr(" \t\r\n", s.at[i]) || !s.at[i])
			return false;
	return true;
}

/*
 * jansson recurses up to 2048 levels deep and builds as it goes; a cheap count
 * of brackets outside strings stops a bomb before it costs anything.
 */
static bool too_deep(struct span s)
{
	bool in_string = false;
	int depth = 0;

	for (size_t i = 0; i < s.len; i++) {
		char c = s.at[i];

		if (in_string && c == '\\')
			i++;
		else if (c == '"')
			in_string = !in_string;
		else if (!in_string && (c == '[' || c == '{') && ++depth > JV_DEPTH_MAX)
			return true;
		else if (!in_string && (c == ']' || c == '}'))
			depth--;
	}
	return false;
}

static int fail(enum jv_fault fault, enum jv_fault *ret_fault, struct err *err, const char *why)
{
	enum err_kind kind =
		fault == JV_FAULT_LIMIT || fault == JV_FAULT_MEMORY ? ERR_LIMIT : ERR_INPUT;

	*ret_fault = fault;
	return err_set(err, kind, "%s", why);
}

int jv_parse(struct arena *a, struct span text, struct jv *ret, enum jv_fault *ret_fault,
	     struct err *err)
{
	struct conversion c = {.arena = a};
	json_error_t e;
	json_t *tree;
	struct jv v;

	if (is_blank(text))
		return fail(JV_FAULT_EMPTY, ret_fault, err, "there is no JSON document");
	if (text.len >= 3 && memcmp(text.at, "\xef\xbb\xbf", 3) == 0)
		return fail(JV_FAULT_ENCODING, ret_fault, err, "a byte order mark stands first");
	if (too_deep(text))
		return fail(JV_FAULT_LIMIT, ret_fault, err, "nested deeper than 32 levels");
	tree = json_loadb(text.at, text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
	if (!tree) {
		fail(fault_of(&e), ret_fault, err, e.text);
		return err_wrap(err, "line %d, column %d", e.line, e.column);
	}
	v = convert(&c, tree, 0);
	json_decref(tree);
	if (c.deep)
		return fail(JV_FAULT_LIMIT, ret_fault, err, "nested deeper than 32 levels");
	if (arena_spent(a))
		return fail(JV_FAULT_MEMORY, ret_fault, err, "the document needs too much memory");
	*ret = v;
	return 0;
}

const struct jv *jv_get_span(const struct jv *obj, struct span key)
{
	if (!obj || obj->kind != JV_OBJECT)
		return NULL;
	for (size_t i = 0; i < obj->count; i++)
		if (span_eq(obj->members[i].key, key))
			return &obj->members[i].value;
	return NULL;
}

const struct jv *jv_get(const struct jv *obj, const char *key)
{
	return jv_get_span(obj, span_of(key));
}

const struct jv *jv_path(const struct jv *obj, const char *path)
{
	struct span rest = span_of(path), step;

	while (obj && rest.len) {
		span_cut(&rest, '.', &step);
		obj = jv_get_span(obj, step);
	}
	return obj;
}

const char *jv_str(const struct jv *obj, const char *key, const char *fallback)
{
	const struct jv *v = jv_get(obj, key);

	return v && v->kind == JV_STRING ? v->str.at : fallback;
}

bool jv_true(const struct jv *obj, const char *key)
{
	const struct jv *v = jv_get(obj, key);

	return v && v->kind == JV_BOOL && v->b;
}

int64_t jv_num(const struct jv *obj, const char *key, int64_t fallback)
{
	const struct jv *v = jv_get(obj, key);

	return v && v->kind == JV_INT ? v->i : fallback;
}

bool jv_is_neutral(const struct jv *v)
{
	switch (v->kind) {
	case JV_NULL:
		return true;
	case JV_BOOL:
		return !v->b;
	case JV_INT:
		return v->i == 0;
	case JV_REAL:
		return v->real == 0;
	case JV_STRING:
		return v->str.len == 0;
	case JV_ARRAY:
	case JV_OBJECT:
		return v->count == 0;
	case JV_KIND_COUNT:
		break;
	}
	return false;
}

static bool equal_members(const struct jv *a, const struct jv *b)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct jv *other = jv_get_span(b, a->members[i].key);

		if (!other || !jv_equal(&a->members[i].value, other))
			return false;
	}
	return true;
}

static bool equal_items(const struct jv *a, const struct jv *b)
{
	for (size_t i = 0; i < a->count; i++)
		if (!jv_equal(&a->items[i], &b->items[i]))
			return false;
	return true;
}

bool jv_equal(const struct jv *a, const struct jv *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case JV_NULL:
		return true;
	case JV_BOOL:
		return a->b == b->b;
	case JV_INT:
		return a->i == b->i;
	case JV_REAL:
		return a->real == b->real;
	case JV_STRING:
		return span_eq(a->str, b->str);
	case JV_ARRAY:
		return a->count == b->count && equal_items(a, b);
	case JV_OBJECT:
		return a->count == b->count && equal_members(a, b);
	case JV_KIND_COUNT:
		break;
	}
	return false;
}

/* --- making --- */

struct jv jv_string(const char *s)
{
	return s ? jv_span(span_of(s)) : jv_null();
}

struct jv jv_span(struct span s)
{
	return (struct jv){.kind = JV_STRING, .str = s};
}

/* Room for one more slot; NULL when the arena is spent. */
static void *grown(struct arena *a, struct jv *v, void *slots, size_t slot_bytes)
{
	size_t size = v->size ? v->size * 2 : 4;
	void *bigger;

	if (v->count < v->size)
		return slots;
	bigger = arena_take(a, size * slot_bytes);
	if (!bigger)
		return NULL;
	if (v->count)
		memcpy(bigger, slots, v->count * slot_bytes);
	v->size = size;
	return bigger;
}

/* What writes go to once the arena is spent. */
static struct jv *scratch(void)
{
	static struct jv waste;

	waste = jv_null();
	return &waste;
}

struct jv *jv_push(struct arena *a, struct jv *array, struct jv value)
{
	struct jv *items;

	if (array->kind != JV_ARRAY)
		return scratch();
	items = grown(a, array, array->items, sizeof(*items));
	if (!items)
		return scratch();
	array->items = items;
	items[array->count] = value;
	return &items[array->count++];
}

struct jv *jv_add(struct arena *a, struct jv *object, struct span key, struct jv value)
{
	struct jv_member *members;

	if (object->kind != JV_OBJECT)
		return scratch();
	members = grown(a, object, object->members, sizeof(*members));
	if (!members)
		return scratch();
	object->members = members;
	members[object->count] = (struct jv_member){key, value};
	return &members[object->count++].value;
}

struct jv *jv_set_span(struct arena *a, struct jv *object, struct span key, struct jv value)
{
	struct jv *old = (struct jv *)jv_get_span(object, key);

	if (!old)
		return jv_add(a, object, key, value);
	*old = value;
	return old;
}

struct jv *jv_set(struct arena *a, struct jv *object, const char *key, struct jv value)
{
	return jv_set_span(a, object, span_of(key), value);
}

void jv_merge(struct arena *a, struct jv *into, const struct jv *from)
{
	for (size_t i = 0; i < from->count; i++) {
		const struct jv_member *m = &from->members[i];
		struct jv *old = (struct jv *)jv_get_span(into, m->key);

		if (old && old->kind == JV_OBJECT && m->value.kind == JV_OBJECT)
			jv_merge(a, old, &m->value);
		else if (!old || old->kind != JV_OBJECT || m->value.kind != JV_ARRAY ||
			 m->value.count) /* {} is both */
			jv_set_span(a, into, m->key, m->value);
	}
}

/* --- writing --- */

static bool plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void jv_write_str(struct buf *out, struct span s)
{
	const unsigned char *p = (const unsigned char *)s.at;
	size_t i = 0;

	buf_put(out, "\"", 1);
	while (i < s.len) {
		size_t run = i, n;

		while (run < s.len && plain(p[run]))
			run++;
		buf_put(out, s.at + i, run - i);
		i = run;
		if (i == s.len)
			break;
		n = utf8_len(p + i, s.len - i);
		if (p[i] == '"' || p[i] == '\\')
			buf_printf(out, "\\%c", p[i]);
		else if (p[i] < 0x20 || p[i] == 0x7f)
			buf_printf(out, "\\u%04x", p[i]);
		else if (n)
			buf_put(out, s.at + i, n);
		else
			buf_puts(out, "\xef\xbf\xbd");
		i += n ? n : 1;
	}
	buf_put(out, "\"", 1);
}

/* A real that is whole stays a real for whoever reads it. */
static void write_real(struct buf *out, double real)
{
	char text[40];

	if (!isfinite(real)) {
		buf_puts(out, "null");
		return;
	}
	snprintf(text, sizeof(text), "%.17g", real);
	buf_puts(out, text);
	if (!strpbrk(text, ".e"))
		buf_puts(out, ".0");
}

void jv_write(struct buf *out, const struct jv *v)
{
	switch (v->kind) {
	case JV_NULL:
	case JV_KIND_COUNT:
		buf_puts(out, "null");
		break;
	case JV_BOOL:
		buf_puts(out, v->b ? "true" : "false");
		break;
	case JV_INT:
		buf_printf(out, "%lld", (long long)v->i);
		break;
	case JV_REAL:
		write_real(out, v->real);
		break;
	case JV_STRING:
		jv_write_str(out, v->str);
		break;
	case JV_ARRAY:
		buf_puts(out, "[");
		for (size_t i = 0; i < v->count; i++) {
			if (i)
				buf_puts(out, ",");
			jv_write(out, &v->items[i]);
		}
		buf_puts(out, "]");
		break;
	case JV_OBJECT:
		buf_puts(out, "{");
		for (size_t i = 0; i < v->count; i++) {
			if (i)
				buf_puts(out, ",");
			jv_write_str(out, v->members[i].key);
			buf_puts(out, ":");
			jv_write(out, &v->members[i].value);
		}
		buf_puts(out, "}");
		break;
	}
}
