#include "backends/docker/docker_priv.h"

#include <string.h>

/* --- encoding --- */

static bool unreserved(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

static bool stays(unsigned char c, const char *also)
{
	return unreserved(c) || (c && *also && strchr(also, c));
}

void docker_encode(struct buf *out, struct span s, const char *also)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t len = s.len, n = 0;
	char *at;

	for (size_t i = 0; i < s.len; i++)
		len += stays((unsigned char)s.at[i], also) ? 0 : 2;
	at = buf_reserve(out, len);
	if (!at)
		return;
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.at[i];

		if (stays(c, also)) {
			at[n++] = (char)c;
			continue;
		}
		at[n++] = '%';
		at[n++] = digits[c >> 4];
		at[n++] = digits[c & 15];
	}
	buf_commit(out, n);
}

const char *docker_encoded(struct backend_call *call, struct span s, const char *also)
{
	struct buf b;
	const char *ret;

	buf_init(&b, s.len * 3 + 1);
	docker_encode(&b, s, also);
	ret = arena_strndup(call->arena, buf_span(&b).at, buf_len(&b));
	buf_fini(&b);
	return ret ? ret : "";
}

/* --- values --- */

const struct pair *docker_query(const struct canonical *req, const char *key)
{
	for (size_t i = 0; i < req->query_count; i++)
		if (span_is(req->query[i].key, key))
			return &req->query[i];
	return NULL;
}

struct span docker_query_value(const struct canonical *req, const char *key)
{
	const struct pair *p = docker_query(req, key);

	return p ? p->value : (struct span){"", 0};
}

/* The engine takes any other word for true; we take only those that mean one thing. */
static bool is_true(struct span v)
{
	return span_is(v, "1") || span_is(v, "true") || span_is(v, "True");
}

static bool is_bool(struct span v)
{
	return v.len == 0 || is_true(v) || span_is(v, "0") || span_is(v, "false") ||
	       span_is(v, "False");
}

bool docker_query_true(const struct canonical *req, const char *key)
{
	return is_true(docker_query_value(req, key));
}

static bool is_digits(struct span v, size_t max)
{
	for (size_t i = 0; i < v.len; i++)
		if (v.at[i] < '0' || v.at[i] > '9')
			return false;
	return v.len > 0 && v.len <= max;
}

static bool is_int(struct span v)
{
	if (v.len && v.at[0] == '-')
		v = span_skip(v, 1);
	return is_digits(v, 10);
}

/* Seconds, and nanoseconds behind a point. */
static bool is_time(struct span v)
{
	struct span seconds;

	if (!span_cut(&v, '.', &seconds))
		return seconds.len == 0 || is_digits(seconds, 12);
	return is_digits(seconds, 12) && is_digits(v, 9);
}

static bool is_word(struct span v)
{
	for (size_t i = 0; i < v.len; i++)
		if (!unreserved((unsigned char)v.at[i]) && !strchr("/:+,@^[]\\", v.at[i]))
			return false;
	return v.len <= 128;
}

static bool is_text(struct span v)
{
	for (size_t i = 0; i < v.len; i++)
		if ((unsigned char)v.at[i] < 0x20 || v.at[i] == 0x7f)
			return false;
	return v.len <= 4096;
}

/*
 * b: bool  i: integer  t: time  w: a word  s: text  f: filters (read later)
 * j: JSON (read later)
 * d: bool of an old client that is never sent on  z: known, but only without a value
 */
bool docker_query_fits(char kind, struct span value)
{
	switch (kind) {
	case 'b':
		return is_bool(value);
	case 'd':
		return is_bool(value) || is_word(value);
	case 'i':
		return value.len == 0 || is_int(value);
	case 't':
		return is_time(value);
	case 'w':
		return is_word(value);
	case 'j':
		return value.len <= 16384;
	case 's':
	case 'f':
		return is_text(value);
	case 'z':
		return is_bool(value) && !is_true(value);
	default:
		return false;
	}
}

/* --- filters --- */

static bool refuse_filters(struct backend_call *call, const char *why)
{
	struct span given = docker_query_value(call->req, "filters");

	docker_refuse(call, REASON_query, "query.filters", docker_cut(call, given))->text = why;
	return false;
}

static void add_value(struct backend_call *call, struct jv *list, struct span value)
{
	for (size_t i = 0; i < list->count; i++)
		if (span_eq(list->items[i].str, value))
			return;
	jv_push(call->arena, list, jv_span(value));
}

/* One key's values, as an array of strings or as an object of trues. */
static bool read_values(struct backend_call *call, const struct jv *from, struct jv *to)
{
	for (size_t i = 0; i < from->count; i++) {
		if (from->kind == JV_ARRAY && from->items[i].kind == JV_STRING)
			add_value(call, to, from->items[i].str);
		else if (from->kind == JV_OBJECT && from->members[i].value.kind == JV_BOOL &&
			 from->members[i].value.b)
			add_value(call, to, from->members[i].key);
		else
			return refuse_filters(call, "a filter's values are strings, or true");
	}
	return true;
}

bool docker_filters_read(struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	struct span given = docker_query_value(call->req, "filters");
	enum jv_fault fault;
	struct err err = {0};
	struct jv doc;
	size_t total = 0;

	st->filters = jv_object();
	if (!given.len || span_is(given, "{}"))
		return true;
	if (jv_parse(call->arena, given, &doc, &fault, &err) < 0)
		return refuse_filters(call, docker_text(call, "filters: %s", err.msg));
	if (doc.kind != JV_OBJECT)
		return refuse_filters(call, "filters are an object");
	for (size_t i = 0; i < doc.count; i++) {
		const struct jv *values = &doc.members[i].value;
		struct jv list = jv_array();

		if (values->kind != JV_ARRAY && values->kind != JV_OBJECT)
			return refuse_filters(call, "a filter's values are a list or an object");
		total += 1 + values->count;
		if (total > DOCKER_FILTERS_MAX)
			return refuse_filters(call, "too many filters");
		if (!read_values(call, values, &list))
			return false;
		jv_add(call->arena, &st->filters, doc.members[i].key, list);
	}
	return true;
}

void docker_filters_and(struct backend_call *call, const char *key, const char *value)
{
	struct docker_state *st = docker_state(call);
	struct jv *list = (struct jv *)jv_get(&st->filters, key);

	if (!list)
		list = jv_set(call->arena, &st->filters, key, jv_array());
	add_value(call, list, span_of(value));
}

void docker_filters_write(struct buf *out, const struct jv *filters)
{
	struct buf text;

	buf_init(&text, buf_room(out) + 1);
	buf_puts(&text, "{");
	for (size_t i = 0; i < filters->count; i++) {
		const struct jv *values = &filters->members[i].value;

		buf_puts(&text, i ? "," : "");
		jv_write_str(&text, filters->members[i].key);
		buf_puts(&text, ":{");
		for (size_t k = 0; k < values->count; k++) {
			buf_puts(&text, k ? "," : "");
			jv_write_str(&text, values->items[k].str);
			buf_puts(&text, ":true");
		}
		buf_puts(&text, "}");
	}
	buf_puts(&text, "}");
	docker_encode(out, buf_span(&text), "");
	out->spent = out->spent || buf_spent(&text);
	buf_fini(&text);
}
