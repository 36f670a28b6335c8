/* CEF:0, as ArcSight and many collectors take it: a head in bars, then key=value. */
#include "audit/export_priv.h"

#include <inttypes.h>
#include <string.h>

static const struct {
	const char *key, *path, *label;
} rows[] = {
#define COPY(key, path)  {key, path, NULL},
#define LABEL(key, text) {key, NULL, text},
#include "audit/export_cef.def"
#undef COPY
#undef LABEL
};

/* Control bytes and what ends a line for some readers: as escapes that nobody takes for a line. */
static bool put_line_end(struct buf *out, const char *at, size_t left)
{
	const unsigned char *b = (const unsigned char *)at;

	if (*b < 0x20 || *b == 0x7f) {
		buf_printf(out, "\\\\x%02x", *b);
		return true;
	}
	return left >= 3 && b[0] == 0xe2 && b[1] == 0x80 && (b[2] == 0xa8 || b[2] == 0xa9);
}

/* In the head a bar ends a field; it has one line. */
static void put_head(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '|' || *text == '\\')
			buf_puts(out, "\\");
		if (*text == '\n' || *text == '\r')
			buf_puts(out, " ");
		else if (!put_line_end(out, text, 1))
			buf_put(out, text, 1);
	}
	buf_puts(out, "|");
}

/* In a value an equals sign would begin the next key. */
static void put_value(struct buf *out, struct span s)
{
	for (; s.len; s = span_skip(s, 1)) {
		char c = *s.at;

		if (c == '\n')
			buf_puts(out, "\\n");
		else if (c == '\r')
			buf_puts(out, "\\r");
		else if (c == '=' || c == '\\')
			buf_put(out, (const char[]){'\\', c}, 2);
		else if (!put_line_end(out, s.at, s.len))
			buf_put(out, &c, 1);
		else if ((unsigned char)c == 0xe2) {
			buf_puts(out, "\\n"); /* a line separator */
			s = span_skip(s, 2);
		}
	}
}

static void put_key(struct buf *out, const char *key)
{
	if (buf_len(out) && buf_span(out).at[buf_len(out) - 1] != '|')
		buf_puts(out, " ");
	buf_printf(out, "%s=", key);
}

static bool put_list(struct buf *out, const char *key, const struct jv *list)
{
	bool any = false;

	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].kind != JV_STRING)
			continue;
		if (any)
			buf_puts(out, ",");
		else
			put_key(out, key);
		put_value(out, list->items[i].str);
		any = true;
	}
	return any;
}

static bool put_copy(struct buf *out, const char *key, const struct jv *v)
{
	if (v && v->kind == JV_ARRAY)
		return put_list(out, key, v);
	if (!v || (v->kind != JV_STRING && v->kind != JV_INT))
		return false;
	put_key(out, key);
	if (v->kind == JV_INT)
		buf_printf(out, "%" PRId64, v->i);
	else
		put_value(out, v->str);
	return true;
}

static void put_rows(struct buf *out, const struct fields *f)
{
	bool there = false;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (rows[i].path) {
			there = put_copy(out, rows[i].key, export_at(f, rows[i].path));
		} else if (there) {
			buf_printf(out, " %sLabel=%s", rows[i].key, rows[i].label);
		}
	}
}

void export_cef(const struct fields *f, struct buf *out)
{
	static const int severities[] = {
		[SEVERITY_USUAL] = 2, [SEVERITY_DENIED] = 5, [SEVERITY_ALARM] = 9};
	char room[192];

	buf_puts(out, "CEF:0|Sallyport|Sallyport|" SALLYPORT_VERSION "|");
	put_head(out, export_code(f, room));
	put_head(out, *f->op ? f->op : export_type_of(f)->name);
	buf_printf(out, "%d|", severities[export_severity_of(f)]);
	buf_printf(out, "rt=%" PRIu64, f->t_ns / 1000000);
	put_key(out, "externalId");
	put_value(out, span_of(export_place(f, room)));
	put_key(out, "cat");
	put_value(out, span_of(export_type_of(f)->cef_category));
	put_rows(out, f);
}
