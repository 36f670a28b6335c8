/* A review of access, as people and programs read it. */
#include "gate/access_review.h"

#include "gate/base/jv.h"
#include "gate/printed.h"
#include "rules/workload.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ARENA_MAX ((size_t)64 << 20)

static const char *kind_name(enum access_kind k)
{
	switch (k) {
	case ACCESS_STRANGER:
		return "unknown";
	case ACCESS_IDENTITY:
		return "identity";
	case ACCESS_OTHERS:
		return "others";
	case ACCESS_ROLE:
		return "role";
	}
	return "unknown";
}

/* "no", "{}": nothing leaves; absent: the networks that are granted decide. */
static const char *egress_of(const struct access_subject *s)
{
	const struct jv *egress = jv_get(profile_settings(s->rules), "egress");

	return egress && egress->count == 0 ? "none" : "by its networks";
}

static void value_text(const struct access_grant *g, char out[200])
{
	if (*g->rule)
		snprintf(out, 200, "%s, %s", g->rule, g->ticket);
	else
		snprintf(out, 200, "%s", g->value);
}

/* --- text --- */

static void put_plain(struct buf *out, const char *text, size_t width)
{
	size_t before = buf_len(out), used;

	printed_plain(out, text, 0);
	used = buf_len(out) - before;
	buf_printf(out, "%*s", (int)(used < width ? width - used : 0), "");
}

static void put_named(struct buf *out, const char *name, const char *text)
{
	if (!*text)
		return;
	buf_printf(out, "  %-10s ", name);
	put_plain(out, text, 0);
	buf_puts(out, "\n");
}

static void put_grant(const struct access_review *r, const struct access_grant *g, struct buf *out)
{
	char flag[80], value[200];

	access_grant_flag(r, g, flag);
	value_text(g, value);
	buf_printf(out, "  %-11s ", g->kind);
	put_plain(out, value, 44);
	buf_printf(out, " %8" PRIu64 "  %-19.19s%s  %s\n", g->used, *g->last ? g->last : "-",
		   *g->last ? "Z" : " ", flag);
}

/* Operations that nobody asked for would fill the page: they are one line. */
static void put_unused(const struct access_subject *s, struct buf *out)
{
	bool any = false;

	for (size_t i = 0; i < s->grant_count; i++)
		if (s->grants[i].op != OP_UNKNOWN && !s->grants[i].used) {
			buf_printf(out, "%s%s", any ? ", " : "  never used: ", s->grants[i].value);
			any = true;
		}
	if (any)
		buf_puts(out, "\n");
}

static void put_subject(const struct access_review *r, const struct access_subject *s,
			struct buf *out)
{
	const char *flag = access_subject_flag(s);

	buf_puts(out, "\n");
	put_plain(out, s->name, 0);
	buf_printf(out, "%s%s%s\n", *flag ? "   (" : "", flag, *flag ? ")" : "");
	put_named(out, "owner", s->owner);
	put_named(out, "profile", s->profile);
	put_named(out, "known by", s->known_by);
	put_named(out, "at", s->listeners);
	if (s->rules)
		buf_printf(out, "  isolation  at least %s; egress %s; sees %s\n",
			   isolation_name(profile_minimum(s->rules)), egress_of(s),
			   reach_sees_all(profile_reach(s->rules)) ? "all objects"
								   : "what visibility says");
	buf_printf(out,
		   "  did        %" PRIu64 " allowed, %" PRIu64 " refused; %" PRIu64
		   " launches, %" PRIu64 " commands; %s%.19s%s\n",
		   s->allowed, s->refused, s->launches, s->commands, *s->last ? "last " : "",
		   *s->last ? s->last : "never", *s->last ? "Z" : "");
	for (size_t i = 0; i < s->grant_count; i++)
		if (s->grants[i].op == OP_UNKNOWN || s->grants[i].used)
			put_grant(r, &s->grants[i], out);
	put_unused(s, out);
}

void access_review_text(const struct access_review *r, struct buf *out)
{
	char from[CLOCK_TEXT_MAX], to[CLOCK_TEXT_MAX];

	clock_format(r->from_ns, from);
	clock_format(r->to_ns, to);
	buf_puts(out, "Access review");
	buf_printf(out, "\n  period     %.19sZ to %.19sZ\n  rules      generation %.12s\n", from,
		   to, *r->generation ? r->generation : "-");
	buf_puts(out, "  Each grant with how often it was used, and when last; uses are requests "
		      "that were allowed.\n");
	for (size_t i = 0; i < r->count; i++)
		put_subject(r, &r->subjects[i], out);
}

/* --- JSON --- */

static struct jv grant_tree(const struct access_review *r, const struct access_grant *g,
			    struct arena *a)
{
	struct jv to = jv_object();
	char flag[80];

	access_grant_flag(r, g, flag);
	jv_set(a, &to, "kind", jv_string(g->kind));
	jv_set(a, &to, "grant", jv_string(g->value));
	if (*g->rule) {
		jv_set(a, &to, "rule", jv_string(g->rule));
		jv_set(a, &to, "ticket", jv_string(g->ticket));
		jv_set(a, &to, "expires", jv_string(g->expires));
	}
	jv_set(a, &to, "used", jv_int((int64_t)g->used));
	jv_set(a, &to, "last", *g->last ? jv_string(g->last) : jv_null());
	jv_set(a, &to, "flag", jv_string(arena_strndup(a, flag, strlen(flag))));
	return to;
}

static struct jv subject_tree(const struct access_review *r, const struct access_subject *s,
			      struct arena *a)
{
	struct jv to = jv_object(), *grants;

	jv_set(a, &to, "name", jv_string(s->name));
	jv_set(a, &to, "kind", jv_string(kind_name(s->kind)));
	jv_set(a, &to, "owner", jv_string(s->owner));
	jv_set(a, &to, "profile", jv_string(s->profile));
	jv_set(a, &to, "known_by", jv_string(s->known_by));
	jv_set(a, &to, "listeners", jv_string(s->listeners));
	if (s->rules) {
		jv_set(a, &to, "profile_sha256", jv_string(profile_hash(s->rules)));
		jv_set(a, &to, "isolation", jv_string(isolation_name(profile_minimum(s->rules))));
		jv_set(a, &to, "egress", jv_string(egress_of(s)));
		jv_set(a, &to, "sees_all", jv_bool(reach_sees_all(profile_reach(s->rules))));
	}
	jv_set(a, &to, "allowed", jv_int((int64_t)s->allowed));
	jv_set(a, &to, "refused", jv_int((int64_t)s->refused));
	jv_set(a, &to, "launches", jv_int((int64_t)s->launches));
	jv_set(a, &to, "commands", jv_int((int64_t)s->commands));
	jv_set(a, &to, "first", *s->first ? jv_string(s->first) : jv_null());
	jv_set(a, &to, "last", *s->last ? jv_string(s->last) : jv_null());
	jv_set(a, &to, "flag", jv_string(access_subject_flag(s)));
	grants = jv_set(a, &to, "grants", jv_array());
	for (size_t i = 0; i < s->grant_count; i++)
		jv_push(a, grants, grant_tree(r, &s->grants[i], a));
	return to;
}

void access_review_json(const struct access_review *r, struct buf *out)
{
	struct arena *a = arena_create(ARENA_MAX);
	struct jv tree = jv_object(), *list;
	char from[CLOCK_TEXT_MAX], to[CLOCK_TEXT_MAX];

	if (!a)
		return;
	clock_format(r->from_ns, from);
	clock_format(r->to_ns, to);
	jv_set(a, &tree, "from", jv_string(from));
	jv_set(a, &tree, "to", jv_string(to));
	jv_set(a, &tree, "generation", jv_string(r->generation));
	list = jv_set(a, &tree, "subjects", jv_array());
	for (size_t i = 0; i < r->count; i++)
		jv_push(a, list, subject_tree(r, &r->subjects[i], a));
	if (arena_spent(a))
		out->spent = true;
	jv_write(out, &tree);
	buf_puts(out, "\n");
	arena_destroy(a);
}

/* --- CSV: a row a grant; a subject without grants has one row of its own --- */

static void put_csv(const struct access_review *r, const struct access_subject *s,
		    const struct access_grant *g, struct buf *out)
{
	char flag[80] = "", value[200] = "", used[24];
	const char *const cells[] = {s->name,
				     kind_name(s->kind),
				     s->owner,
				     s->profile,
				     s->known_by,
				     s->listeners,
				     g ? g->kind : "subject",
				     value,
				     used,
				     g ? g->last : s->last,
				     g ? g->expires : "",
				     flag};

	if (g) {
		access_grant_flag(r, g, flag);
		value_text(g, value);
	} else {
		snprintf(flag, sizeof(flag), "%s", access_subject_flag(s));
	}
	snprintf(used, sizeof(used), "%" PRIu64, g ? g->used : s->allowed);
	for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++) {
		buf_puts(out, i ? "," : "");
		printed_csv(out, cells[i]);
	}
	buf_puts(out, "\r\n");
}

void access_review_csv(const struct access_review *r, struct buf *out)
{
	buf_puts(out, "subject,subject_kind,owner,profile,known_by,listeners,kind,grant,used,"
		      "last_used,expires,flag\r\n");
	for (size_t i = 0; i < r->count; i++) {
		put_csv(r, &r->subjects[i], NULL, out);
		for (size_t k = 0; k < r->subjects[i].grant_count; k++)
			put_csv(r, &r->subjects[i], &r->subjects[i].grants[k], out);
	}
}
