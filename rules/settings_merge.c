#include "rules/settings_priv.h"

#include "rules/decision.h"
#include "rules/match_priv.h"
#include "rules/opset_priv.h"
#include "rules/rate.h"
#include "rules/reach.h"
#include "rules/workload.h"

#include <stdio.h>
#include <string.h>

/* --- what holds when a profile says nothing: nothing is granted --- */

static struct jv strings(struct arena *a, const char *const *words)
{
	struct jv list = jv_array();

	for (; *words; words++)
		jv_push(a, &list, jv_string(*words));
	return list;
}

static struct jv default_of(const struct setting *s, struct arena *a)
{
	static const char *const log_drivers[] = {"json-file", "local", NULL};
	static const char *const labels[] = {"com.docker.compose.*", NULL};
	struct jv isolation = jv_object();

	switch (s->kind) {
	case KIND_STRINGS:
		if (strcmp(s->name, "log_drivers") == 0)
			return strings(a, log_drivers);
		return strcmp(s->name, "labels") == 0 ? strings(a, labels) : jv_array();
	case KIND_MOUNTS:
	case KIND_OPERATIONS:
		return jv_array();
	case KIND_BOOL:
	case KIND_HARDEN:
		return jv_bool(false);
	case KIND_ISOLATION:
		jv_set(a, &isolation, "min", jv_string("process"));
		jv_set(a, &isolation, "runtimes", jv_array());
		return isolation;
	case KIND_USERS:
		return jv_string("nonroot");
	case KIND_HOST_TOOLS:
		return jv_string("none");
	case KIND_LIMITS:
	case KIND_MODES:
	case KIND_RATE:
	case KIND_QUOTA:
		return jv_object();
	case KIND_DENIAL:
		return jv_string("full");
	case KIND_RUNNING:
		return jv_string("minimum");
	case KIND_VISIBILITY:
		return jv_string("own");
	case KIND_MODE:
		return jv_string("enforce");
	case KIND_STRING:
	case KIND_APPARMOR:
		return jv_string("");
	case KIND_SECCOMP:
		return jv_string("default");
	case KIND_EGRESS:
	case KIND_UPDATE:
	case KIND_SANDBOX:
		break;
	}
	return jv_null();
}

/* --- does outer grant all that inner grants? --- */

typedef bool (*covers_fn)(const struct jv *outer, const struct jv *inner);

static bool same_word(const struct jv *outer, const struct jv *inner)
{
	return span_eq(outer->str, inner->str);
}

static bool glob_entry_covers(const struct jv *outer, const struct jv *inner)
{
	return glob_covers(outer->str, inner->str);
}

static bool image_entry_covers(const struct jv *outer, const struct jv *inner)
{
	struct image_ref o, i;

	return image_parse(outer->str, &o) && image_parse(inner->str, &i) && image_covers(&o, &i);
}

static bool port_entry_covers(const struct jv *outer, const struct jv *inner)
{
	return span_is(outer->str, "*") || span_eq(outer->str, inner->str);
}

static bool mount_covers(const struct jv *outer, const struct jv *inner)
{
	if (strcmp(jv_str(outer, "mode", "ro"), "ro") == 0 &&
	    strcmp(jv_str(inner, "mode", "rw"), "rw") == 0)
		return false;
	return path_within(jv_get(inner, "path")->str, jv_get(outer, "path")->str);
}

static const struct {
	const char *setting;
	covers_fn covers;
} entry_covers[] = {
	{"images", image_entry_covers},  {"local_images", image_entry_covers},
	{"networks", glob_entry_covers}, {"labels", glob_entry_covers},
	{"ports", port_entry_covers},    {"mounts", mount_covers},
};

static covers_fn covers_of(const char *setting)
{
	for (size_t i = 0; i < sizeof(entry_covers) / sizeof(*entry_covers); i++)
		if (strcmp(entry_covers[i].setting, setting) == 0)
			return entry_covers[i].covers;
	return same_word;
}

static const char *entry_name(const struct jv *entry)
{
	return entry->kind == JV_OBJECT ? jv_str(entry, "path", "") : entry->str.at;
}

/* Who loosens what; at is for the message only. */
struct meeting {
	const struct setting *setting;
	const struct jv *parent, *child;
	const char *parent_name;
	struct arena *arena;
	struct err *err;
};

static int loosens(const struct meeting *m, const char *what)
{
	return err_set(m->err, ERR_CONFIG,
		       "%s is more than \"%s\" grants, which this profile extends", what,
		       m->parent_name);
}

static int meet_lists(const struct meeting *m, struct jv *ret)
{
	covers_fn covers = covers_of(m->setting->name);

	for (size_t i = 0; i < m->child->count; i++) {
		bool within = false;

		for (size_t k = 0; k < m->parent->count && !within; k++)
			within = covers(&m->parent->items[k], &m->child->items[i]);
		if (!within)
			return loosens(m, entry_name(&m->child->items[i]));
	}
	*ret = *m->child;
	return 0;
}

static bool has_word(const struct jv *list, struct span word)
{
	for (size_t i = 0; i < list->count; i++)
		if (span_eq(list->items[i].str, word))
			return true;
	return false;
}

/* Lists of what tightens: what either says holds. */
static int join_lists(const struct meeting *m, struct jv *ret)
{
	const struct jv *both[] = {m->parent, m->child};

	*ret = jv_array();
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < both[k]->count; i++)
			if (!has_word(ret, both[k]->items[i].str))
				jv_push(m->arena, ret, both[k]->items[i]);
	return 0;
}

static int meet_operations(const struct meeting *m, struct jv *ret)
{
	struct op_set outer = {{0}};

	for (size_t i = 0; i < m->parent->count; i++)
		op_set_grant_word(&outer, m->parent->items[i].str);
	for (size_t i = 0; i < m->child->count; i++) {
		struct op_set inner = {{0}};

		op_set_grant_word(&inner, m->child->items[i].str);
		if (!op_set_covers(&outer, &inner))
			return loosens(m, m->child->items[i].str.at);
	}
	*ret = *m->child;
	return 0;
}

static int meet_limits(const struct meeting *m, struct jv *ret)
{
	*ret = jv_object();
	for (size_t i = 0; i < m->parent->count; i++)
		jv_set_span(m->arena, ret, m->parent->members[i].key, m->parent->members[i].value);
	for (size_t i = 0; i < m->child->count; i++) {
		const struct jv_member *member = &m->child->members[i];
		const struct jv *most = jv_get_span(m->parent, member->key);

		if (most && member->value.i > most->i)
			return loosens(m, member->key.at);
		jv_set_span(m->arena, ret, member->key, member->value);
	}
	return 0;
}

/* A word that both have may only be asked for less often; other words limit besides. */
static int meet_rates(const struct meeting *m, struct jv *ret)
{
	*ret = jv_object();
	for (size_t i = 0; i < m->parent->count; i++)
		jv_set_span(m->arena, ret, m->parent->members[i].key, m->parent->members[i].value);
	for (size_t i = 0; i < m->child->count; i++) {
		const struct jv_member *member = &m->child->members[i];
		const struct jv *most = jv_get_span(m->parent, member->key);
		struct rate inner, outer;

		if (most && rate_parse(most->str, &outer) &&
		    rate_parse(member->value.str, &inner) && !rate_covers(&outer, &inner))
			return loosens(m, member->key.at);
		jv_set_span(m->arena, ret, member->key, member->value);
	}
	if (ret->count > RATES_MAX)
		return err_set(m->err, ERR_CONFIG, "more than %d rates with those of the parent",
			       RATES_MAX);
	return 0;
}

static int meet_isolation(const struct meeting *m, struct jv *ret)
{
	enum isolation outer = ISOLATION_VM, inner = ISOLATION_NONE;

	isolation_find(jv_get(m->parent, "min")->str, &outer);
	isolation_find(jv_get(m->child, "min")->str, &inner);
	if (inner < outer)
		return loosens(m, jv_str(m->child, "min", ""));
	if (jv_true(m->parent, "attested") && jv_get(m->child, "attested") &&
	    !jv_true(m->child, "attested"))
		return loosens(m, "attested = false");
	*ret = *m->child;
	if (jv_true(m->parent, "attested"))
		jv_set(m->arena, ret, "attested", jv_bool(true));
	if (!jv_get(ret, "runtimes")->count)
		jv_set(m->arena, ret, "runtimes", *jv_get(m->parent, "runtimes"));
	return 0;
}

/* Two words, of which `strict` is the stronger. */
static int meet_words(const struct meeting *m, const char *strict, struct jv *ret)
{
	if (span_is(m->parent->str, strict) && !span_is(m->child->str, strict))
		return loosens(m, m->child->str.at);
	*ret = *m->child;
	return 0;
}

static size_t host_tools_rank(const struct jv *v)
{
	size_t i = 0;

	while (host_tools_words[i] && !span_is(v->str, host_tools_words[i]))
		i++;
	return i;
}

static int meet_host_tools(const struct meeting *m, struct jv *ret)
{
	if (host_tools_rank(m->child) > host_tools_rank(m->parent))
		return loosens(m, m->child->str.at);
	*ret = *m->child;
	return 0;
}

/* Stronger from left to right. */
static int meet_running(const struct meeting *m, struct jv *ret)
{
	if (running_find(m->child->str) < running_find(m->parent->str))
		return loosens(m, m->child->str.at);
	*ret = *m->child;
	return 0;
}

/* Both were read before. */
static int meet_reach(const struct meeting *m, struct jv *ret)
{
	struct reach outer, inner;
	char text[400];
	size_t at;

	if (reach_read(m->parent, m->arena, &outer, m->err) < 0 ||
	    reach_read(m->child, m->arena, &inner, m->err) < 0)
		return -1;
	if (!reach_covers(&outer, &inner, &at)) {
		if (at == inner.count)
			return loosens(m, "every image");
		reach_say(&inner.entries[at], text, sizeof(text));
		return loosens(m, text);
	}
	*ret = *m->child;
	return 0;
}

/* A child that only watches would undo what its parent enforces. */
static int meet_modes(const struct meeting *m, struct jv *ret)
{
	if (!span_is(m->child->str, "enforce") && !span_eq(m->child->str, m->parent->str) &&
	    !span_is(m->parent->str, "shadow"))
		return loosens(m, m->child->str.at);
	*ret = *m->child;
	return 0;
}

/*
 * What either says of a check, the child's word before the parent's; whether
 * that softens what the parent enforces is seen where the parent's own mode is
 * known, in profile.c.
 */
static int join_modes(const struct meeting *m, struct jv *ret)
{
	const struct jv *both[] = {m->parent, m->child};

	*ret = jv_object();
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < both[k]->count; i++)
			jv_set_span(m->arena, ret, both[k]->members[i].key,
				    both[k]->members[i].value);
	return 0;
}

static int meet_switches(const struct meeting *m, struct jv *ret)
{
	bool grants = m->setting->merge == MERGE_SUBSET;

	if (m->parent->b != grants && m->child->b == grants)
		return loosens(m, grants ? "true" : "false");
	*ret = *m->child;
	return 0;
}

/* The switches of harden = { ... }, and what holds where one is not said. */
static const struct {
	const char *name;
	bool usual;
} hardenings[] = {
	{"read_only", false},
	{"log_limits", true},
	{"init", false},
	{"auto_remove", false},
};

#define HARDENINGS (sizeof(hardenings) / sizeof(*hardenings))

/* A table means true. */
static bool is_hardening(const struct jv *v)
{
	return v->kind == JV_OBJECT || v->b;
}

static bool hardens_by(const struct jv *v, size_t which)
{
	const struct jv *said = v->kind == JV_OBJECT ? jv_get(v, hardenings[which].name) : NULL;

	return is_hardening(v) && (said ? said->b : hardenings[which].usual);
}

static const struct jv *label_named(const struct jv *list, struct span label)
{
	const char *end = memchr(label.at, '=', label.len);
	size_t n = end ? (size_t)(end - label.at) + 1 : label.len;

	for (size_t i = 0; list && i < list->count; i++)
		if (list->items[i].str.len >= n && memcmp(list->items[i].str.at, label.at, n) == 0)
			return &list->items[i];
	return NULL;
}

/* What the parent sets stays; the child adds others. */
static int meet_harden_labels(const struct meeting *m, struct jv *ret)
{
	const struct jv *outer = jv_get(m->parent, "labels"), *inner = jv_get(m->child, "labels");
	struct jv list = jv_array();

	for (size_t i = 0; outer && i < outer->count; i++)
		jv_push(m->arena, &list, outer->items[i]);
	for (size_t i = 0; inner && i < inner->count; i++) {
		const struct jv *old = label_named(outer, inner->items[i].str);

		if (old && !span_eq(old->str, inner->items[i].str))
			return loosens(m, inner->items[i].str.at);
		if (!old)
			jv_push(m->arena, &list, inner->items[i]);
	}
	if (list.count)
		jv_set(m->arena, ret, "labels", list);
	return 0;
}

/* What the parent fills in is filled in; only what is said to the contrary is a mistake. */
static int meet_hardening(const struct meeting *m, struct jv *ret)
{
	*ret = *m->child;
	if (!is_hardening(m->parent))
		return 0;
	if (!is_hardening(m->child))
		return loosens(m, "false");
	if (m->parent->kind == JV_BOOL && m->child->kind == JV_BOOL)
		return 0;
	*ret = jv_object();
	for (size_t i = 0; i < HARDENINGS; i++) {
		const char *name = hardenings[i].name;
		const struct jv *said = m->child->kind == JV_OBJECT ? jv_get(m->child, name) : NULL;
		bool outer = hardens_by(m->parent, i);

		if (said && !said->b && outer) {
			char text[40];

			snprintf(text, sizeof(text), "%s = false", name);
			return loosens(m, text);
		}
		jv_set(m->arena, ret, name, jv_bool(outer || hardens_by(m->child, i)));
	}
	return meet_harden_labels(m, ret);
}

/* Whether inner fills in all that outer does. */
static bool hardening_within(const struct jv *outer, const struct jv *inner)
{
	const struct jv *labels = outer->kind == JV_OBJECT ? jv_get(outer, "labels") : NULL;
	const struct jv *own = inner->kind == JV_OBJECT ? jv_get(inner, "labels") : NULL;

	if (is_hardening(outer) && !is_hardening(inner))
		return false;
	for (size_t i = 0; i < HARDENINGS; i++)
		if (hardens_by(outer, i) && !hardens_by(inner, i))
			return false;
	for (size_t i = 0; labels && i < labels->count; i++)
		if (!own || !has_word(own, labels->items[i].str))
			return false;
	return true;
}

/* Which of two is tighter nobody here can tell. */
static int meet_apparmor(const struct meeting *m, struct jv *ret)
{
	if (m->parent->str.len && !span_eq(m->parent->str, m->child->str))
		return err_set(m->err, ERR_CONFIG, "\"%s\" has \"%s\", which must stay",
			       m->parent_name, m->parent->str.at);
	*ret = *m->child;
	return 0;
}

static int meet(const struct meeting *m, struct jv *ret)
{
	switch (m->setting->kind) {
	case KIND_STRINGS:
		return m->setting->merge == MERGE_BOTH ? join_lists(m, ret) : meet_lists(m, ret);
	case KIND_MOUNTS:
		return meet_lists(m, ret);
	case KIND_OPERATIONS:
		return meet_operations(m, ret);
	case KIND_LIMITS:
	case KIND_QUOTA:
		return meet_limits(m, ret);
	case KIND_ISOLATION:
		return meet_isolation(m, ret);
	case KIND_USERS:
		return meet_words(m, "nonroot", ret);
	case KIND_HOST_TOOLS:
		return meet_host_tools(m, ret);
	case KIND_VISIBILITY:
		return meet_reach(m, ret);
	case KIND_MODE:
		return meet_modes(m, ret);
	case KIND_MODES:
		return join_modes(m, ret);
	case KIND_DENIAL:
		return meet_words(m, "code", ret);
	case KIND_RUNNING:
		return meet_running(m, ret);
	case KIND_BOOL:
		return meet_switches(m, ret);
	case KIND_HARDEN:
		return meet_hardening(m, ret);
	case KIND_RATE:
		return meet_rates(m, ret);
	case KIND_UPDATE:
		return settings_update_within(m->parent, m->child) ? (*ret = *m->child, 0)
								   : loosens(m, "this");
	case KIND_APPARMOR:
		return meet_apparmor(m, ret);
	case KIND_SANDBOX:
		return settings_sandbox_meet(m->parent, m->child, m->arena, ret, m->err) == 0
			       ? 0
			       : err_wrap(m->err, "more than \"%s\" grants", m->parent_name);
	case KIND_STRING:
	case KIND_EGRESS:
	case KIND_SECCOMP:
		break;
	}
	*ret = *m->child;
	return 0;
}

int settings_complete(const struct place *at, const struct jv *given, const struct jv *parent,
		      struct arena *a, struct jv *ret, struct err *err)
{
	*ret = jv_object();
	for (size_t i = 0; i < setting_count; i++) {
		const struct setting *s = &settings[i];
		const struct jv *mine = jv_get(given, s->name), *its = jv_get(parent, s->name);
		struct meeting m = {s, its, mine, at->extends, a, err};
		struct jv value = mine ? *mine : its ? *its : default_of(s, a);

		if (mine && its && meet(&m, &value) < 0)
			return settings_blame(at, s->name, err);
		/* What an ancestor does not say grants nothing either, and this setting has no
		 * word for it. */
		if (mine && !its && parent && s->kind == KIND_UPDATE &&
		    !settings_update_within(its, mine)) {
			loosens(&m, "this");
			return settings_blame(at, s->name, err);
		}
		if (value.kind != JV_NULL)
			jv_set(a, ret, s->name, value);
	}
	/* Without a way out only the closed network is left, whatever an ancestor granted. */
	if (jv_get(ret, "egress") && jv_get(given, "networks") &&
	    jv_get(given, "networks")->count) {
		err_set(err, ERR_CONFIG,
			"\"%s\" has egress = {}, which grants only the network 'none'",
			at->extends);
		return settings_blame(at, "networks", err);
	}
	if (jv_get(ret, "egress"))
		jv_set(a, ret, "networks", jv_array());
	return arena_spent(a) ? err_set(err, ERR_LIMIT, "profiles take too much memory") : 0;
}

/* --- comparing two profiles of which none extends the other --- */

/* A limit that is not there is no limit. */
static bool limits_within(const struct jv *outer, const struct jv *inner)
{
	for (size_t i = 0; i < outer->count; i++) {
		const struct jv *it = jv_get_span(inner, outer->members[i].key);

		if (!it || it->i > outer->members[i].value.i)
			return false;
	}
	return true;
}

/* Each rate of outer is one of inner, and lets no more through there. */
static bool rates_within(const struct jv *outer, const struct jv *inner)
{
	for (size_t i = 0; i < outer->count; i++) {
		const struct jv *it = jv_get_span(inner, outer->members[i].key);
		struct rate most, less;

		if (!it || !rate_parse(outer->members[i].value.str, &most) ||
		    !rate_parse(it->str, &less) || !rate_covers(&most, &less))
			return false;
	}
	return true;
}

static bool holds_all(const struct jv *list, const struct jv *words)
{
	for (size_t i = 0; i < words->count; i++)
		if (!has_word(list, words->items[i].str))
			return false;
	return true;
}

bool settings_within(const struct setting *s, const struct jv *outer, const struct jv *inner,
		     struct arena *a)
{
	struct err err = {0};
	struct meeting m = {s, outer, inner, "", a, &err};
	struct jv unused;

	if (s->kind == KIND_UPDATE)
		return settings_update_within(outer, inner);
	if (s->kind == KIND_SANDBOX)
		return settings_sandbox_within(outer, inner);
	if (!outer || !inner)
		return s->kind == KIND_EGRESS ? !outer : outer == inner;
	if (jv_equal(outer, inner))
		return true;
	if (s->kind == KIND_LIMITS || s->kind == KIND_QUOTA)
		return limits_within(outer, inner);
	if (s->kind == KIND_RATE)
		return rates_within(outer, inner);
	if (s->kind == KIND_HARDEN)
		return hardening_within(outer, inner);
	if (s->kind == KIND_STRINGS && s->merge == MERGE_BOTH)
		return holds_all(inner, outer);
	if (s->kind == KIND_STRING || s->kind == KIND_EGRESS || s->kind == KIND_MODES ||
	    s->kind == KIND_SECCOMP)
		return false;
	if (s->kind == KIND_APPARMOR)
		return !outer->str.len;
	return meet(&m, &unused) == 0;
}

bool settings_entry_within(const char *setting, const struct jv *outer, const struct jv *inner)
{
	return outer->kind == inner->kind && covers_of(setting)(outer, inner);
}
