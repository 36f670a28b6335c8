/*
 * Where a record says less than was asked, since the rest may be secret.  Made of the record's own
 * facts and of what the adapter noted, so that the same request has the same list.
 */
#include "proxy/worker_priv.h"

#include <string.h>

enum kind { NAMES, ANY, PART, HEADER };

#define FACTS   "facts."
#define HEADERS "req.headers."

static const struct {
	const char *place, *member;
	enum kind kind;
	unsigned bits;
} rows[] = {
#define NAMES(place)      {place, "", NAMES, 0},
#define ANY(list, member) {list, member, ANY, 0},
#define PART(place, bits) {place, "", PART, bits},
#define HEADER(name)      {HEADERS name, "", HEADER, 0},
#include "proxy/masked.def"
#undef NAMES
#undef ANY
#undef PART
#undef HEADER
};

static bool has_names(const struct exchange *x, const char *path)
{
	const struct jv *v = jv_path(&x->facts, path);

	return v && (v->kind == JV_ARRAY || v->kind == JV_OBJECT) && v->count;
}

static bool any_has(const struct exchange *x, const char *path, const char *member)
{
	const struct jv *list = jv_path(&x->facts, path);

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		if (jv_true(&list->items[i], member))
			return true;
	return false;
}

static bool has_header(const struct exchange *x, const char *name)
{
	for (size_t i = 0; i < x->req.header_count; i++)
		if (span_is(x->req.headers[i].key, name))
			return true;
	return false;
}

static bool is_masked(const struct exchange *x, size_t row)
{
	const char *place = rows[row].place;
	bool fact = strncmp(place, FACTS, sizeof(FACTS) - 1) == 0;

	if (fact && !x->has_facts)
		return false;
	if (rows[row].kind == NAMES)
		return has_names(x, place + sizeof(FACTS) - 1);
	if (rows[row].kind == ANY)
		return any_has(x, place + sizeof(FACTS) - 1, rows[row].member);
	if (rows[row].kind == HEADER)
		return has_header(x, place + sizeof(HEADERS) - 1);
	return x->call.withheld & rows[row].bits;
}

void masked_write(const struct exchange *x, struct buf *out)
{
	const char *between = "[";

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (!is_masked(x, i))
			continue;
		buf_printf(out, "%s\"%s%s%s\"", between, rows[i].place, *rows[i].member ? "." : "",
			   rows[i].member);
		between = ",";
	}
	if (buf_len(out))
		buf_puts(out, "]");
}
