#include "rules/update_priv.h"

#include "rules/engine.h"
#include "rules/match_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct comparing {
	/* Of each row the length of the list that it is about: the part before "[]."; 0 if it is
	 * about no list of objects. */
	const size_t *lists;
	const struct jv *facts, *replaces, *settings;
	const struct jv *old, *now; /* workloads */
	struct arena *arena;
	struct violations *ret;
};

/* --- how one value may follow another; either may be NULL: absent --- */

typedef bool (*follows_fn)(const struct comparing *c, const struct jv *old, const struct jv *now);

static bool is_true(const struct jv *v)
{
	return v && v->kind == JV_BOOL && v->b;
}

static bool is_word(const struct jv *v, const char *word)
{
	return v && v->kind == JV_STRING && span_is(v->str, word);
}

static bool is_list(const struct jv *v)
{
	return v && v->kind == JV_ARRAY;
}

static bool follows_ANY(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	(void)c;
	(void)old;
	(void)now;
	return true;
}

static bool follows_NONE(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	(void)c;
	(void)old;
	return !now;
}

static bool follows_SAME(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	(void)c;
	return (!old && !now) || (old && now && jv_equal(old, now));
}

static bool follows_EACH(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	return follows_SAME(c, old, now);
}

static bool follows_LESS(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	return !now || follows_SAME(c, old, now);
}

static bool follows_ONLY_IF(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	(void)c;
	return !now || (now->kind == JV_BOOL && !now->b) || is_true(old);
}

static bool follows_KEPT(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	(void)c;
	return !is_true(old) || is_true(now);
}

static bool follows_LEVEL(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	enum isolation before = ISOLATION_NONE, after = ISOLATION_NONE;

	(void)c;
	return old && now && old->kind == JV_STRING && now->kind == JV_STRING &&
	       isolation_find(old->str, &before) == 0 && isolation_find(now->str, &after) == 0 &&
	       after >= before;
}

static bool follows_LIMIT(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	(void)c;
	return !old || (now && old->kind == JV_INT && now->kind == JV_INT && now->i > 0 &&
			now->i <= old->i);
}

static bool follows_MOST(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	(void)c;
	return !now || (old && old->kind == JV_INT && now->kind == JV_INT && now->i <= old->i);
}

/* -1 is no limit; absent is twice the memory, which LIMIT holds. */
static bool follows_SWAP(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	(void)c;
	if (!now || !old || now->kind != JV_INT || old->kind != JV_INT)
		return !now && !old;
	return now->i == old->i || old->i < 0 || (now->i > 0 && now->i < old->i);
}

static bool holds(const struct jv *list, const struct jv *word)
{
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		if (jv_equal(&list->items[i], word))
			return true;
	return false;
}

static bool follows_SUBSET(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	(void)c;
	for (size_t i = 0; now && now->kind == JV_ARRAY && i < now->count; i++)
		if (!holds(old, &now->items[i]))
			return false;
	return !now || now->kind == JV_ARRAY;
}

static bool follows_SUPERSET(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	const struct jv all = jv_string("ALL");

	return holds(now, &all) || follows_SUBSET(c, now, old);
}

static bool follows_EQUAL(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	return follows_SUBSET(c, old, now) && follows_SUBSET(c, now, old);
}

static bool follows_PLACE(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	struct span before, after, x, y;

	(void)c;
	if (!old || !now || old->kind != JV_STRING || now->kind != JV_STRING)
		return !old && !now;
	before = old->str;
	after = now->str;
	span_cut(&before, '[', &x);
	span_cut(&after, '[', &y);
	return span_eq(x, y);
}

static bool follows_DEFAULT(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	return is_word(now, "default") || follows_SAME(c, old, now);
}

static bool follows_RESTART(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	return is_word(now, "no") || follows_SAME(c, old, now);
}

static bool follows_NETWORK(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	return is_word(now, "none") || follows_SAME(c, old, now);
}

static bool was_root(const struct comparing *c)
{
	return is_true(jv_path(c->old, "user.root"));
}

static bool follows_USER(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	return was_root(c) || follows_SAME(c, old, now);
}

static bool follows_ROOT(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	return was_root(c) || follows_SAME(c, old, now);
}

static bool may_change(const struct comparing *c, const char *what)
{
	const struct jv word = jv_string(what);

	return holds(jv_get(c->settings, "changes"), &word);
}

static bool follows_COMMAND(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	return may_change(c, "command") || follows_SUBSET(c, old, now);
}

static bool follows_ENV(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	return may_change(c, "env") || follows_SUBSET(c, old, now);
}

/* Names of labels are entries of a list, their sealed values are a list. */
static bool follows_LABEL(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	if (may_change(c, "labels"))
		return true;
	return is_list(old) || is_list(now) ? follows_SUBSET(c, old, now)
					    : follows_SAME(c, old, now);
}

/* moves: { { "from", "to" } }, as globs over repositories. */
static bool moves_to(const struct comparing *c, struct span from, struct span to)
{
	const struct jv *moves = jv_get(c->settings, "moves");

	for (size_t i = 0; moves && moves->kind == JV_ARRAY && i < moves->count; i++) {
		const struct jv *f = jv_get(&moves->items[i], "from");
		const struct jv *t = jv_get(&moves->items[i], "to");

		if (f && t && glob_match(f->str, from) && glob_match(t->str, to))
			return true;
	}
	return false;
}

/* An image without a name has nothing but its id to be the same by. */
static bool follows_IMAGE(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	const struct jv *before = jv_path(c->old, "image.id"), *after = jv_path(c->now, "image.id");

	if (old && now && old->kind == JV_STRING && now->kind == JV_STRING)
		return jv_equal(old, now) || moves_to(c, old->str, now->str);
	return before && after && before->kind == JV_STRING && before->str.len &&
	       jv_equal(before, after);
}

/* compose makes the new one as PREFIX_NAME, and renames it when the old one is gone. */
static bool follows_NAME(const struct comparing *c, const struct jv *old, const struct jv *now)
{
	struct span was = span_of(jv_str(c->replaces, "name", ""));
	struct span name = now && now->kind == JV_STRING ? now->str : (struct span){"", 0};

	(void)old;
	if (!now || span_eq(name, was))
		return true;
	if (!is_word(jv_get(c->replaces, "by"), "label") || !was.len || name.len <= was.len + 1)
		return false;
	return span_ends(name, was.at) && name.at[name.len - was.len - 1] == '_';
}

/* --- the table --- */

const struct update_row update_rows[] = {
#define UPDATE(path, how, hint) {path, #how, hint},
#include "rules/update.def"
#undef UPDATE
};
const size_t update_row_count = sizeof(update_rows) / sizeof(*update_rows);

static const follows_fn follows[] = {
#define UPDATE(path, how, hint) follows_##how,
#include "rules/update.def"
#undef UPDATE
};

static void find_lists(size_t *ret)
{
	for (size_t i = 0; i < update_row_count; i++) {
		const char *at = strstr(update_rows[i].path, "[].");

		ret[i] = at ? (size_t)(at - update_rows[i].path) : 0;
	}
}

static bool same_list(const struct comparing *c, size_t a, size_t b)
{
	size_t n = c->lists[a];

	return n && n == c->lists[b] && memcmp(update_rows[a].path, update_rows[b].path, n) == 0;
}

/* The row's path within an entry of its list. */
static const char *within_entry(const struct comparing *c, const struct update_row *row)
{
	return row->path + c->lists[row - update_rows] + strlen("[].");
}

/* A row's value below at; "[]" at its end is the list itself. */
static const struct jv *value_at(const struct jv *at, const char *path)
{
	char text[128];
	size_t len = strlen(path);

	if (len >= 2 && strcmp(path + len - 2, "[]") == 0)
		len -= 2;
	if (len >= sizeof(text))
		return NULL;
	memcpy(text, path, len);
	text[len] = '\0';
	return jv_path(at, text);
}

static const struct jv *list_at(const struct comparing *c, const struct jv *at, size_t row)
{
	char text[128];
	size_t len = c->lists[row];

	if (len >= sizeof(text))
		return NULL;
	memcpy(text, update_rows[row].path, len);
	text[len] = '\0';
	return jv_path(at, text);
}

/* --- what is said --- */

static const char *kept(const struct comparing *c, const char *s, size_t len)
{
	const char *copy = arena_strndup(c->arena, s, len);

	return copy ? copy : "";
}

static const char *as_text(const struct comparing *c, const struct jv *v)
{
	const char *ret;
	struct buf b;

	if (!v)
		return "";
	if (v->kind == JV_STRING)
		return kept(c, v->str.at,
			    v->str.len < VIOLATION_VALUE_MAX ? v->str.len : VIOLATION_VALUE_MAX);
	buf_init(&b, 65536);
	jv_write(&b, v);
	ret = kept(c, buf_span(&b).at,
		   buf_len(&b) < VIOLATION_VALUE_MAX ? buf_len(&b) : VIOLATION_VALUE_MAX);
	buf_fini(&b);
	return ret;
}

static struct violation *add(const struct comparing *c, enum reason reason, const char *field,
			     const char *value, const char *text)
{
	struct violation *v = violations_add(c->ret, reason);

	v->rule = "update";
	v->field = field;
	v->value = value;
	v->text = text;
	v->hint = "";
	return v;
}

static void looser(const struct comparing *c, const struct update_row *row, const char *field,
		   const struct jv *old, const struct jv *now)
{
	char text[400];

	snprintf(text, sizeof(text), "%.100s was %.100s, and would be %.100s", row->path,
		 old ? as_text(c, old) : "absent", now ? as_text(c, now) : "absent");
	add(c, REASON_update_looser, field, as_text(c, now), kept(c, text, strlen(text)))->hint =
		row->hint;
}

/* --- comparing --- */

static bool entry_follows(const struct comparing *c, size_t first, const struct jv *old,
			  const struct jv *now, const struct update_row **ret_row)
{
	for (size_t i = first; i < update_row_count && same_list(c, first, i); i++) {
		const char *rest = within_entry(c, &update_rows[i]);

		if (follows[i](c, value_at(old, rest), value_at(now, rest)))
			continue;
		*ret_row = &update_rows[i];
		return false;
	}
	return true;
}

/* Made with the container, and empty. */
static bool is_new_and_empty(const struct jv *entry)
{
	return is_word(jv_get(entry, "kind"), "volume") && !jv_get(entry, "source") &&
	       !jv_get(entry, "driver") && !jv_get(entry, "driver_options") &&
	       !jv_get(entry, "subpath");
}

/* How far the rows of the entry hold that comes nearest says most. */
static bool has_equal(const struct comparing *c, size_t first, const struct jv *list,
		      const struct jv *now, const struct update_row **ret_row)
{
	*ret_row = &update_rows[first];
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		const struct update_row *row;

		if (entry_follows(c, first, &list->items[i], now, &row))
			return true;
		if (row > *ret_row)
			*ret_row = row;
	}
	return false;
}

/* part: where in the entry it is not as any was before; what it is of stands in one of these. */
static void not_there_before(const struct comparing *c, const struct update_row *row,
			     const struct jv *entry, const char *part)
{
	const struct jv *now = value_at(entry, part), *of = jv_get(entry, "source");
	const char *field = jv_str(entry, "field", row->path);
	char text[400];

	of = of ? of : jv_get(entry, "value");
	snprintf(text, sizeof(text),
		 "the container that is replaced had no such entry%s%.60s%s%.100s",
		 of && of != now ? " with " : "", of && of != now ? part : "",
		 of && of != now ? " = " : "", of && of != now ? as_text(c, now) : "");
	add(c, REASON_update_looser, field, as_text(c, of ? of : now), kept(c, text, strlen(text)))
		->hint = row->hint;
}

static void compare_list(const struct comparing *c, size_t first, bool each)
{
	const struct jv *old = list_at(c, c->old, first), *now = list_at(c, c->now, first);
	const struct update_row *row;

	for (size_t i = 0; now && now->kind == JV_ARRAY && i < now->count; i++) {
		const struct jv *one = &now->items[i];

		if (is_new_and_empty(one) || has_equal(c, first, old, one, &row))
			continue;
		not_there_before(c, row, one, within_entry(c, row));
	}
	for (size_t i = 0; each && old && old->kind == JV_ARRAY && i < old->count; i++)
		if (!has_equal(c, first, now, &old->items[i], &row))
			looser(c, row, row->path, value_at(&old->items[i], within_entry(c, row)),
			       NULL);
}

static bool is_each(const struct comparing *c, size_t first)
{
	for (size_t i = first; i < update_row_count; i++)
		if (same_list(c, first, i) && strcmp(update_rows[i].how, "EACH") == 0)
			return true;
	return false;
}

static void compare_row(const struct comparing *c, size_t i)
{
	const struct update_row *row = &update_rows[i];
	const struct jv *old, *now;

	if (c->lists[i] && strcmp(row->how, "LABEL") == 0 && may_change(c, "labels"))
		return;
	if (c->lists[i]) {
		if (i == 0 || !same_list(c, i, i - 1))
			compare_list(c, i, is_each(c, i));
		return;
	}
	old = value_at(c->old, row->path);
	now = value_at(c->now, row->path);
	if (!follows[i](c, old, now))
		looser(c, row, row->path, old, now);
}

/* --- what is no row --- */

/* Whether some row begins with this path, or is it. */
static bool has_row(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < update_row_count; i++)
		if (strncmp(update_rows[i].path, path, len) == 0 &&
		    (strchr(".[", update_rows[i].path[len]) || !update_rows[i].path[len]))
			return true;
	return false;
}

static void look_for_rows(const struct comparing *c, const struct jv *at, const char *path)
{
	char text[256];

	if (at->kind == JV_ARRAY) {
		snprintf(text, sizeof(text), "%s[]", path);
		for (size_t i = 0; i < at->count; i++)
			look_for_rows(c, &at->items[i], text);
		return;
	}
	if (!has_row(path)) {
		add(c, REASON_update_looser, kept(c, path, strlen(path)), as_text(c, at),
		    "nobody has said how this fact is compared");
		return;
	}
	for (size_t i = 0; at->kind == JV_OBJECT && i < at->count; i++) {
		snprintf(text, sizeof(text), "%s%s%.*s", path, *path ? "." : "",
			 SPAN_FMT(at->members[i].key));
		look_for_rows(c, &at->members[i].value, text);
	}
}

/* --- together --- */

bool update_compares(enum operation op)
{
	return op == OP_CONTAINER_CREATE || op == OP_CONTAINER_START ||
	       op == OP_CONTAINER_RESTART || op == OP_CONTAINER_UNPAUSE ||
	       op == OP_CONTAINER_ATTACH || op == OP_NETWORK_CONNECT;
}

bool update_parts(enum operation op)
{
	/* Nobody looks at what a prune removes, so nothing is known of it. */
	return op == OP_CONTAINER_STOP || op == OP_CONTAINER_KILL || op == OP_CONTAINER_REMOVE ||
	       op == OP_CONTAINER_RENAME || op == OP_CONTAINER_PRUNE;
}

static void compare(const struct comparing *c, enum operation op)
{
	static const char points[] = "network.endpoints[].";

	for (size_t i = 0; c->now->kind == JV_OBJECT && i < c->now->count; i++) {
		const struct jv_member *m = &c->now->members[i];
		char text[128];

		snprintf(text, sizeof(text), "%.*s", SPAN_FMT(m->key));
		look_for_rows(c, &m->value, text);
	}
	/* Of a connection nothing but the end point is known. */
	for (size_t i = 0; i < update_row_count; i++)
		if (op != OP_NETWORK_CONNECT ||
		    strncmp(update_rows[i].path, points, sizeof(points) - 1) == 0 ||
		    strcmp(update_rows[i].path, "sealed.settings[]") == 0)
			compare_row(c, i);
}

/* The clock may have been set meanwhile, either way. */
static bool is_too_old(const struct comparing *c)
{
	const struct jv *at = jv_get(c->replaces, "at");
	int64_t now = jv_num(c->facts, "now", 0), within = jv_num(c->settings, "within", 0);

	return at &&
	       (at->kind != JV_INT || now <= 0 || at->i > now + within || at->i < now - within);
}

struct violations update_faults(const struct jv *facts, const struct jv *settings,
				enum operation op, struct arena *a)
{
	struct violations ret = {.count = 0};
	size_t lists[sizeof(update_rows) / sizeof(*update_rows)];
	struct comparing c = {.facts = facts,
			      .replaces = jv_get(facts, "replaces"),
			      .settings = settings,
			      .lists = lists,
			      .arena = a,
			      .ret = &ret};

	if (!c.replaces) {
		if (op == OP_CONTAINER_CREATE && !jv_true(settings, "fresh"))
			add(&c, REASON_update_unknown, "name", "", "");
		return ret;
	}
	find_lists(lists);
	c.old = jv_get(c.replaces, "workload");
	c.now = jv_get(facts, "workload");
	if (is_too_old(&c))
		add(&c, REASON_update_unknown, "name", jv_str(c.replaces, "name", ""),
		    "the container of this name was taken away longer ago than the profile's "
		    "`update` remembers");
	else if (!c.old || c.old->kind != JV_OBJECT || !c.now || c.now->kind != JV_OBJECT)
		add(&c, REASON_update_unknown, "name", jv_str(c.replaces, "name", ""),
		    "it is not known what the container was");
	else
		compare(&c, op);
	return ret;
}

/*
 * Whatever check is not named here goes on to count: that of images first of
 * all.  What is not known was never compared.
 */
bool update_keeps(const char *check, enum reason reason, const struct jv *settings)
{
	static const char *const keep[] = {
		"capability",   "security_opt", "masked_paths", "device",        "namespace",
		"network",      "port",         "extra_hosts",  "link",          "log_driver",
		"volumes_from", "mounts",       "sysctl",       "cgroup_parent", "limits",
		"user",         "label",        "restart",      "annotation",    "healthcheck",
	};
	static const char *const host[] = {"privileged", "runtime"};
	const struct jv labels = jv_string("labels");

	if (reason == REASON_fact_unknown)
		return false;
	if (strcmp(check, "label") == 0 && holds(jv_get(settings, "changes"), &labels))
		return false;
	for (size_t i = 0; i < sizeof(host) / sizeof(*host); i++)
		if (strcmp(check, host[i]) == 0)
			return jv_true(settings, "privileged");
	for (size_t i = 0; i < sizeof(keep) / sizeof(*keep); i++)
		if (strcmp(check, keep[i]) == 0)
			return true;
	return false;
}

static void set_operation(struct arena *a, struct jv *facts)
{
	struct jv op = jv_object();

	jv_set(a, &op, "name", jv_string(operation_name(OP_CONTAINER_CREATE)));
	jv_set(a, &op, "class", jv_string(op_class_name(operation_class(OP_CONTAINER_CREATE))));
	jv_set(a, &op, "group", jv_string(operation_group(OP_CONTAINER_CREATE)));
	jv_set(a, facts, "operation", op);
}

static struct jv copied(struct arena *a, const struct jv *from)
{
	struct jv to = jv_object();

	for (size_t i = 0; from && from->kind == JV_OBJECT && i < from->count; i++)
		jv_add(a, &to, from->members[i].key, from->members[i].value);
	return to;
}

struct jv update_recreation(const struct jv *facts, struct arena *a)
{
	const struct jv *replaces = jv_get(facts, "replaces");
	struct jv ret = copied(a, facts), workload = copied(a, jv_get(facts, "workload"));

	set_operation(a, &ret);
	jv_set(a, &workload, "name", jv_string(jv_str(replaces, "name", "")));
	jv_set(a, &ret, "workload", workload);
	return ret;
}
