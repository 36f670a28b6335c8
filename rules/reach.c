#include "rules/reach.h"

#include "rules/match_priv.h"

#include <stdio.h>

static const char *const access_names[] = {
	[ACCESS_NONE] = "none",
	[ACCESS_READ] = "read",
	[ACCESS_DATA] = "data",
	[ACCESS_FULL] = "full",
};
_Static_assert(sizeof(access_names) / sizeof(*access_names) == ACCESS_COUNT, "a name each");

static const struct {
	const char *name;
	enum reach_kind kind;
} kinds[] = {
	{"containers", REACH_CONTAINERS},
	{"volumes", REACH_VOLUMES},
	{"networks", REACH_NETWORKS},
	{"images", REACH_IMAGES},
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* --- reading --- */

static const char usage[] = "\"own\", \"all\", or a list of \"own\", { label = \"NAME=VALUE\" }, "
			    "{ name = \"GLOB\" }, { all = true }";

static int wrong(struct err *err, const char *what)
{
	return err_set(err, ERR_CONFIG, "%s is expected", what);
}

static int read_access(const struct jv *v, enum access *ret, struct err *err)
{
	for (int i = ACCESS_READ; v->kind == JV_STRING && i < ACCESS_COUNT; i++) {
		if (!span_is(v->str, access_names[i]))
			continue;
		*ret = (enum access)i;
		return 0;
	}
	return wrong(err, "access = \"read\", \"data\" or \"full\"");
}

static int read_kinds(const struct jv *v, unsigned *ret, struct err *err)
{
	static const char want[] =
		"kinds = a list of \"containers\", \"volumes\", \"networks\" and "
		"\"images\"";
	unsigned found = 0;

	for (size_t i = 0; v->kind == JV_ARRAY && i < v->count; i++) {
		size_t k = 0;

		while (k < KINDS &&
		       !(v->items[i].kind == JV_STRING && span_is(v->items[i].str, kinds[k].name)))
			k++;
		if (k == KINDS)
			return wrong(err, want);
		found |= kinds[k].kind;
	}
	if (!found)
		return wrong(err, want);
	*ret = found;
	return 0;
}

static bool is_pattern(const struct jv *v)
{
	return v->kind == JV_STRING && v->str.len && v->str.len <= GLOB_MAX;
}

/* "traefik.enable=true": the name is exact, the value a glob. */
static int read_label(const struct jv *v, struct reach_entry *e, struct err *err)
{
	struct span rest;

	if (!is_pattern(v))
		return wrong(err, "label = \"NAME\" or \"NAME=VALUE\"");
	rest = v->str;
	e->by = REACH_BY_LABEL;
	e->any_value = !span_cut(&rest, '=', &e->label);
	e->value = e->any_value ? (struct span){"", 0} : rest;
	if (!e->label.len || memchr(e->label.at, '*', e->label.len) ||
	    memchr(e->label.at, '?', e->label.len))
		return err_set(err, ERR_CONFIG, "a label is named in full, before \"=\"");
	/* Whose an object is, is no label: see "own". */
	if (span_starts(e->label, "sallyport."))
		return err_set(err, ERR_CONFIG, "labels of the gate itself say nothing here");
	return 0;
}

static int read_name(const struct jv *v, struct reach_entry *e, struct err *err)
{
	struct image_ref ref;

	if (!is_pattern(v))
		return wrong(err, "name = a glob");
	e->by = REACH_BY_NAME;
	e->name = v->str;
	if ((e->kinds & REACH_IMAGES) && !image_parse(e->name, &ref))
		return wrong(err, "for images name = registry/repository[:tag]");
	return 0;
}

static int read_switch(const struct jv *v, enum reach_by by, struct reach_entry *e, struct err *err)
{
	if (v->kind != JV_BOOL || !v->b)
		return wrong(err, by == REACH_BY_ALL ? "all = true" : "own = true");
	e->by = by;
	return 0;
}

/* What the entry is about: exactly one of these. */
static int read_subject(const struct jv *v, struct reach_entry *e, struct err *err)
{
	const struct jv *all = jv_get(v, "all"), *own = jv_get(v, "own");
	const struct jv *label = jv_get(v, "label"), *name = jv_get(v, "name");

	if (!!all + !!own + !!label + !!name != 1)
		return wrong(err, "exactly one of all, own, label and name");
	if (all)
		return read_switch(all, REACH_BY_ALL, e, err);
	if (own)
		return read_switch(own, REACH_BY_OWNER, e, err);
	return label ? read_label(label, e, err) : read_name(name, e, err);
}

static int read_table(const struct jv *v, struct reach_entry *e, struct err *err)
{
	static const char *const known[] = {"all", "own", "label", "name", "access", "kinds"};
	const struct jv *access = jv_get(v, "access"), *about = jv_get(v, "kinds");

	for (size_t i = 0; i < v->count; i++) {
		size_t k = 0;

		while (k < sizeof(known) / sizeof(*known) && !span_is(v->members[i].key, known[k]))
			k++;
		if (k == sizeof(known) / sizeof(*known))
			return err_set(err, ERR_CONFIG,
				       "\"%.40s\" is not known here (all, own, label, name, access "
				       "and kinds are)",
				       v->members[i].key.at);
	}
	*e = (struct reach_entry){.access = ACCESS_READ, .kinds = REACH_OWNED};
	if ((access && read_access(access, &e->access, err) < 0) ||
	    (about && read_kinds(about, &e->kinds, err) < 0))
		return -1;
	return read_subject(v, e, err);
}

/* The short forms give all that the profile's operations grant. */
static bool read_word(const struct jv *v, struct reach_entry *e)
{
	if (v->kind != JV_STRING || !(span_is(v->str, "own") || span_is(v->str, "all")))
		return false;
	*e = (struct reach_entry){
		.by = span_is(v->str, "own") ? REACH_BY_OWNER : REACH_BY_ALL,
		.access = ACCESS_FULL,
		.kinds = REACH_OWNED,
	};
	return true;
}

int reach_read(const struct jv *value, struct arena *a, struct reach *ret, struct err *err)
{
	size_t count = value->kind == JV_ARRAY ? value->count : 1;
	struct reach_entry *list;

	if (value->kind == JV_STRING && !span_is(value->str, "own") && !span_is(value->str, "all"))
		return err_set(err, ERR_CONFIG, "%s is expected, not \"%.60s\"", usage,
			       value->str.at);
	if (value->kind != JV_STRING && value->kind != JV_ARRAY)
		return wrong(err, usage);
	if (count > REACH_MAX)
		return err_set(err, ERR_CONFIG, "more than %d entries", REACH_MAX);
	list = arena_take(a, count * sizeof(*list));
	if (!list)
		return err_set(err, ERR_LIMIT, "there is too much of it");
	if (value->kind == JV_STRING)
		read_word(value, &list[0]);
	for (size_t i = 0; value->kind == JV_ARRAY && i < count; i++) {
		const struct jv *one = &value->items[i];
		int bad = 0;

		if (one->kind == JV_OBJECT)
			bad = read_table(one, &list[i], err);
		else if (!read_word(one, &list[i]))
			bad = wrong(err, "\"own\", \"all\" or a table");
		if (bad)
			return err_wrap(err, "[%zu]", i + 1);
	}
	*ret = (struct reach){list, count};
	return 0;
}

/* --- asking --- */

static bool label_matches(const struct reach_entry *e, const struct jv *labels)
{
	const struct jv *v = jv_get_span(labels, e->label);

	return v && v->kind == JV_STRING && (e->any_value || glob_match(e->value, v->str));
}

static bool image_name_matches(struct span pattern, const char *name)
{
	struct image_ref want, ref;

	return image_parse(pattern, &want) && image_parse(span_of(name), &ref) &&
	       image_match(&want, ref.name, ref.tag, ref.digest);
}

static bool name_matches(const struct reach_entry *e, const struct reach_object *o)
{
	for (const char *const *n = o->names; n && *n; n++) {
		if (!**n)
			continue;
		if (o->kind == REACH_IMAGES ? image_name_matches(e->name, *n)
					    : glob_match(e->name, span_of(*n)))
			return true;
	}
	return false;
}

static bool entry_matches(const struct reach_entry *e, const struct reach_object *o)
{
	if (!(e->kinds & o->kind))
		return false;
	switch (e->by) {
	case REACH_BY_OWNER:
		return o->mine;
	case REACH_BY_ALL:
		return true;
	case REACH_BY_LABEL:
		return label_matches(e, o->labels);
	case REACH_BY_NAME:
		return name_matches(e, o);
	case REACH_BY_NOTHING:
		break;
	}
	return false;
}

bool reach_limits_images(const struct reach *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->entries[i].kinds & REACH_IMAGES)
			return true;
	return false;
}

enum access reach_of(const struct reach *r, const struct reach_object *o)
{
	enum access best = ACCESS_NONE;

	if (o->kind == REACH_IMAGES && !reach_limits_images(r))
		return ACCESS_FULL;
	for (size_t i = 0; i < r->count; i++)
		if (r->entries[i].access > best && entry_matches(&r->entries[i], o))
			best = r->entries[i].access;
	return best;
}

enum access reach_of_all(const struct reach *r, enum reach_kind kind)
{
	const struct reach_object any = {.kind = kind};

	return reach_of(r, &any);
}

bool reach_sees_all(const struct reach *r)
{
	for (size_t i = 0; i < KINDS; i++)
		if (reach_of_all(r, kinds[i].kind) == ACCESS_NONE)
			return false;
	return true;
}

const struct reach_entry *reach_only(const struct reach *r, enum reach_kind kind)
{
	const struct reach_entry *found = NULL;

	for (size_t i = 0; i < r->count; i++) {
		if (!(r->entries[i].kinds & kind))
			continue;
		if (found)
			return NULL;
		found = &r->entries[i];
	}
	return found;
}

enum access reach_needed(enum operation op)
{
	switch (operation_class(op)) {
	case CLASS_READ:
		return ACCESS_READ;
	case CLASS_DATA_OUT:
		return ACCESS_DATA;
	case CLASS_NONE:
	case CLASS_LAUNCH:
	case CLASS_EXEC:
	case CLASS_LIFECYCLE:
	case CLASS_DATA_IN:
	case CLASS_POLICY:
	case CLASS_HOST:
	case CLASS_COUNT:
		break;
	}
	return ACCESS_FULL;
}

/* --- one within another --- */

static bool name_covers(const struct reach_entry *outer, const struct reach_entry *inner,
			enum reach_kind kind)
{
	struct image_ref o, i;

	if (kind != REACH_IMAGES)
		return glob_covers(outer->name, inner->name);
	return image_parse(outer->name, &o) && image_parse(inner->name, &i) && image_covers(&o, &i);
}

static bool entry_covers(const struct reach_entry *outer, const struct reach_entry *inner,
			 enum reach_kind kind)
{
	if (!(outer->kinds & kind) || outer->access < inner->access)
		return false;
	if (outer->by == REACH_BY_ALL)
		return true;
	if (outer->by != inner->by)
		return false;
	switch (outer->by) {
	case REACH_BY_OWNER:
		return true;
	case REACH_BY_LABEL:
		return span_eq(outer->label, inner->label) &&
		       (outer->any_value ||
			(!inner->any_value && glob_covers(outer->value, inner->value)));
	case REACH_BY_NAME:
		return name_covers(outer, inner, kind);
	case REACH_BY_ALL:
	case REACH_BY_NOTHING:
		break;
	}
	return false;
}

static bool covers_kind(const struct reach *outer, const struct reach_entry *inner,
			enum reach_kind kind)
{
	if (kind == REACH_IMAGES && !reach_limits_images(outer))
		return true;
	for (size_t i = 0; i < outer->count; i++)
		if (entry_covers(&outer->entries[i], inner, kind))
			return true;
	return false;
}

bool reach_covers(const struct reach *outer, const struct reach *inner, size_t *ret_at)
{
	*ret_at = inner->count;
	for (size_t i = 0; i < inner->count; i++)
		for (size_t k = 0; k < KINDS; k++) {
			if (!(inner->entries[i].kinds & kinds[k].kind) ||
			    covers_kind(outer, &inner->entries[i], kinds[k].kind))
				continue;
			*ret_at = i;
			return false;
		}
	/* Without a word on images all of them are seen. */
	return !reach_limits_images(outer) || reach_limits_images(inner);
}

/* --- in words --- */

void reach_say(const struct reach_entry *e, char *out, size_t size)
{
	const char *access = access_names[e->access];

	switch (e->by) {
	case REACH_BY_OWNER:
		snprintf(out, size, "own (%s)", access);
		break;
	case REACH_BY_ALL:
		snprintf(out, size, "all (%s)", access);
		break;
	case REACH_BY_LABEL:
		snprintf(out, size, "label \"%.*s%s%.*s\" (%s)", SPAN_FMT(e->label),
			 e->any_value ? "" : "=", SPAN_FMT(e->value), access);
		break;
	case REACH_BY_NAME:
		snprintf(out, size, "name \"%.*s\" (%s)", SPAN_FMT(e->name), access);
		break;
	case REACH_BY_NOTHING:
		snprintf(out, size, "nothing");
		break;
	}
}
