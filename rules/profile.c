#include "rules/engine_priv.h"

#include "gate/base/nearest.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Progress of resolving one profile. */
enum { UNRESOLVED = 0, IN_PROGRESS, DONE };

static struct profile *find(const struct engine *eng, const char *name)
{
	for (size_t i = 0; i < eng->profile_count; i++)
		if (strcmp(eng->profiles[i]->name, name) == 0)
			return eng->profiles[i];
	return NULL;
}

static int unknown_parent(const struct engine *eng, const struct profile *p, const char *name,
			  struct err *err)
{
	struct nearest near = nearest_to(span_of(name));
	char text[NEAREST_TEXT_MAX];

	for (size_t i = 0; i < eng->profile_count; i++)
		if (eng->profiles[i] != p)
			nearest_offer(&near, eng->profiles[i]->name);
	err_set(err, ERR_CONFIG, "there is no profile \"%.64s\"%s", name,
		nearest_said(near.best, text));
	return settings_blame(&p->at, "extends", err);
}

/* Rules of the parent run first; a name stands for one rule only. */
static int inherit_rules(struct profile *p, struct err *err)
{
	const struct profile *parent = p->parent;
	size_t inherited = parent ? parent->item_count : 0;

	if (p->item_count + inherited > PROFILE_ITEMS_MAX) {
		err_set(err, ERR_CONFIG, "more than %d rules with those of \"%s\"",
			PROFILE_ITEMS_MAX, parent ? parent->name : "");
		return settings_blame(&p->at, "", err);
	}
	for (size_t i = p->item_count; i-- > 0;)
		p->items[inherited + i] = p->items[i];
	for (size_t i = 0; i < inherited; i++)
		p->items[i] = parent->items[i];
	p->item_count += inherited;
	p->inherited_count = inherited;
	for (size_t i = 0; i < p->item_count; i++)
		for (size_t k = 0; k < i; k++) {
			if (strcmp(p->items[i]->name, p->items[k]->name) != 0)
				continue;
			err_set(err, ERR_CONFIG, "two rules are named \"%s\"", p->items[i]->name);
			return settings_blame(&p->at, "", err);
		}
	return 0;
}

static enum grant grant_of(const struct engine *eng, const struct profile *p, enum operation op)
{
	if (!op_set_has(&p->granted, op))
		return GRANT_NONE;
	for (size_t i = 0; i < eng->check_count; i++)
		if (op_set_has(&eng->items[i].concerns, op) &&
		    (p->update || strcmp(eng->items[i].name, "update") != 0))
			return GRANT_JUDGE;
	for (size_t i = 0; i < p->item_count; i++)
		if (op_set_has(&p->items[i]->concerns, op))
			return GRANT_JUDGE;
	return GRANT_PLAIN;
}

static void take_rates(struct profile *p)
{
	const struct jv *rates = jv_get(&p->settings, "rate");

	for (size_t i = 0; i < rates->count && p->rate_count < RATES_MAX; i++) {
		struct rate *to = &p->rates[p->rate_count];

		if (!rate_parse(rates->members[i].value.str, to))
			continue; /* settings_check() has refused it */
		to->word = rates->members[i].key.at;
		to->text = rates->members[i].value.str.at;
		op_set_add_word(&p->rated[p->rate_count++], rates->members[i].key);
	}
}

static void take_quota(struct profile *p)
{
	const struct jv *quota = jv_get(&p->settings, "quota");

	for (int q = 0; q < QUOTA_COUNT; q++)
		p->quota[q] = jv_num(quota, quota_fact((enum quota)q), -1);
	p->has_quota = quota && quota->count;
}

/* What is asked for often, as plain values. */
static void digest(const struct engine *eng, struct profile *p)
{
	const struct jv *words = jv_get(&p->settings, "operations");
	const struct jv *hidden = jv_get(&p->settings, "redact");
	const struct jv *harden = jv_get(&p->settings, "harden");
	const char *mode = jv_str(&p->settings, "mode", "enforce");

	for (size_t i = 0; i < words->count; i++)
		op_set_grant_word(&p->granted, words->items[i].str);
	p->update = jv_get(&p->settings, "update");
	if (p->update && p->update->kind != JV_OBJECT)
		p->update = NULL;
	for (int op = 1; op < OP_COUNT; op++)
		p->grants[op] = (unsigned char)grant_of(eng, p, (enum operation)op);
	for (int m = 0; m < MODE_COUNT; m++)
		if (strcmp(mode, rule_mode_name((enum rule_mode)m)) == 0)
			p->mode = (enum rule_mode)m;
	take_rates(p);
	take_quota(p);
	p->codes_only = strcmp(jv_str(&p->settings, "denial", "full"), "code") == 0;
	/* A socket is exchanged, an image pinned in the same way as something is filled in. */
	p->hardens = harden->kind == JV_OBJECT || harden->b ||
		     jv_true(&p->settings, "own_socket") || jv_true(&p->settings, "pin") ||
		     p->seccomp->text.len || *jv_str(&p->settings, "apparmor", "");
	p->running = running_find(jv_get(&p->settings, "running")->str);
	isolation_find(span_of(jv_str(jv_get(&p->settings, "isolation"), "min", "process")),
		       &p->minimum);
	p->wants_attested = jv_true(jv_get(&p->settings, "isolation"), "attested");
	for (size_t i = 0; i < hidden->count; i++)
		p->hides |= hide_find(hidden->items[i].str);
}

static int unknown_seccomp(const struct engine *eng, const struct profile *p, const char *name,
			   struct err *err)
{
	struct nearest near = nearest_to(span_of(name));
	char text[NEAREST_TEXT_MAX];

	for (size_t i = 0; i < eng->seccomp.count; i++)
		nearest_offer(&near, eng->seccomp.list[i].name);
	err_set(err, ERR_CONFIG,
		"no seccomp profile is named \"%.64s\"%s; it comes with the program, or stands "
		"beside "
		"the profiles as NAME" SECCOMP_SUFFIX,
		name, nearest_said(near.best, text));
	return settings_blame(&p->at, "seccomp", err);
}

/* A child's allows no more than its parent's, whatever the capabilities. */
static bool seccomp_within(const struct profile *outer, const struct profile *inner)
{
	struct arena *a = arena_create((size_t)1 << 20);
	struct seccomp_more one;
	bool within = outer->seccomp == inner->seccomp;

	if (a && !within)
		within = seccomp_profile_more_anywhere(inner->seccomp->profile,
						       outer->seccomp->profile, a, &one, 1) == 0;
	arena_destroy(a);
	return within;
}

static int take_seccomp(const struct engine *eng, struct profile *p, struct err *err)
{
	const char *name = jv_str(&p->settings, "seccomp", SECCOMP_DEFAULT);

	p->seccomp = seccomp_list_find(&eng->seccomp, name);
	if (!p->seccomp)
		return unknown_seccomp(eng, p, name, err);
	/* What is marked as weaker than the default is the operator's word, not a loosening. */
	if (!p->parent || !p->parent->seccomp->text.len || seccomp_within(p->parent, p))
		return 0;
	err_set(err, ERR_CONFIG,
		"\"%s\" allows more than \"%s\", which \"%s\" has and this profile extends: see "
		"'sallyport seccomp diff'",
		name, p->parent->seccomp->name, p->parent->name);
	return settings_blame(&p->at, "seccomp", err);
}

static enum rule_mode mode_named(const struct jv *word)
{
	for (int m = 0; m < MODE_COUNT; m++)
		if (span_is(word->str, rule_mode_name((enum rule_mode)m)))
			return (enum rule_mode)m;
	return MODE_ENFORCE;
}

static int unknown_check(const struct engine *eng, const struct profile *p, struct span name,
			 struct err *err)
{
	struct nearest near = nearest_to(name);
	char text[NEAREST_TEXT_MAX];

	for (size_t i = 0; i < eng->check_count; i++)
		nearest_offer(&near, eng->items[i].name);
	err_set(err, ERR_CONFIG, "no standard check is named \"%.64s\"%s", name.at,
		nearest_said(near.best, text));
	return settings_blame(&p->at, "modes", err);
}

/* What its parent enforces, a profile may not only watch. */
static int set_check_modes(const struct engine *eng, struct profile *p, struct err *err)
{
	const struct jv *modes = jv_get(&p->settings, "modes");

	for (size_t i = 0; i < modes->count; i++) {
		size_t k = 0;

		while (k < eng->check_count && !span_is(modes->members[i].key, eng->items[k].name))
			k++;
		if (k == eng->check_count)
			return unknown_check(eng, p, modes->members[i].key, err);
	}
	for (size_t i = 0; i < eng->check_count; i++) {
		const struct jv *word = jv_get(modes, eng->items[i].name);
		enum rule_mode mode = word ? mode_named(word) : p->mode;
		enum rule_mode its =
			p->parent ? (enum rule_mode)p->parent->check_modes[i] : MODE_SHADOW;

		p->check_modes[i] = (unsigned char)mode;
		if (mode == MODE_ENFORCE || mode == its || its == MODE_SHADOW)
			continue;
		err_set(err, ERR_CONFIG,
			"%s = \"%s\" is more than \"%s\" grants, which this profile extends",
			eng->items[i].name, rule_mode_name(mode), p->parent->name);
		return settings_blame(&p->at, word ? "modes" : "mode", err);
	}
	return 0;
}

/* Over the standard checks, the files of all ancestors and its own, and its name. */
static void sign(const struct engine *eng, struct profile *p)
{
	const struct profile *chain[EXTENDS_MAX + 1];
	struct hash files[EXTENDS_MAX + 1], h;
	size_t n = 0;

	for (const struct profile *q = p; q; q = q->parent) {
		assert(n <= EXTENDS_MAX);
		chain[n++] = q;
	}
	for (size_t i = 0; i < n; i++)
		files[i] = eng->source_hashes[chain[n - 1 - i]->source];
	h = profile_hash_over(&eng->prelude_hash, files, n, p->name);
	hash_hex(&h, p->hash);
}

static int resolve(struct engine *eng, struct profile *p, struct err *err);

/* Finds and resolves the profile that p extends, if there is one. */
static int resolve_parent(struct engine *eng, struct profile *p, const char *name, struct err *err)
{
	struct profile *parent;

	if (!*name)
		return 0;
	parent = find(eng, name);
	if (!parent)
		return unknown_parent(eng, p, name, err);
	if (parent->progress == IN_PROGRESS) {
		err_set(err, ERR_CONFIG, "\"%s\" extends itself%s", parent->name,
			parent == p ? "" : ", by way of others");
		return settings_blame(&p->at, "extends", err);
	}
	if (resolve(eng, parent, err) < 0)
		return -1;
	p->parent = parent;
	p->depth = parent->depth + 1;
	if (p->depth <= EXTENDS_MAX)
		return 0;
	err_set(err, ERR_CONFIG, "more than %d profiles in a row", EXTENDS_MAX);
	return settings_blame(&p->at, "extends", err);
}

static int resolve(struct engine *eng, struct profile *p, struct err *err)
{
	const struct profile *parent;

	if (p->progress == DONE)
		return 0;
	p->progress = IN_PROGRESS;
	p->at.extends = jv_str(&p->given, "extends", "");
	if (resolve_parent(eng, p, p->at.extends, err) < 0)
		return -1;
	parent = p->parent;
	if (settings_complete(&p->at, &p->given, parent ? &parent->settings : NULL, eng->memory,
			      &p->settings, err) < 0 ||
	    inherit_rules(p, err) < 0)
		return -1;
	assert(setting_count <= SETTINGS_MAX);
	for (size_t i = 0; i < setting_count; i++)
		p->setting_lines[i] = jv_get(&p->given, settings[i].name)
					      ? settings_line(&p->at, settings[i].name)
					      : p->at.line;
	if (take_seccomp(eng, p, err) < 0)
		return -1;
	digest(eng, p);
	if (set_check_modes(eng, p, err) < 0)
		return -1;
	if (reach_read(jv_get(&p->settings, "visibility"), eng->memory, &p->reach, err) < 0)
		return settings_blame(&p->at, "visibility", err);
	sign(eng, p);
	p->progress = DONE;
	return 0;
}

static void sort_by_name(struct engine *eng)
{
	for (size_t i = 1; i < eng->profile_count; i++) {
		struct profile *p = eng->profiles[i];
		size_t k = i;

		for (; k > 0 && strcmp(eng->profiles[k - 1]->name, p->name) > 0; k--)
			eng->profiles[k] = eng->profiles[k - 1];
		eng->profiles[k] = p;
	}
}

int profile_resolve_all(struct engine *eng, struct err *err)
{
	for (size_t i = 0; i < eng->profile_count; i++)
		if (resolve(eng, eng->profiles[i], err) < 0)
			return -1;
	sort_by_name(eng);
	return 0;
}

/* --- asking --- */

const struct profile *engine_profile(const struct engine *eng, const char *name)
{
	return find(eng, name);
}

const struct profile *engine_profile_at(const struct engine *eng, size_t i)
{
	return i < eng->profile_count ? eng->profiles[i] : NULL;
}

const char *profile_name(const struct profile *p)
{
	return p->name;
}

const char *profile_hash(const struct profile *p)
{
	return p->hash;
}

enum grant profile_grant(const struct profile *p, enum operation op)
{
	return op > OP_UNKNOWN && op < OP_COUNT ? (enum grant)p->grants[op] : GRANT_NONE;
}

const struct reach *profile_reach(const struct profile *p)
{
	return &p->reach;
}

bool profile_hardens(const struct profile *p)
{
	return p->hardens;
}

bool profile_tells_codes_only(const struct profile *p)
{
	return p->codes_only;
}

const struct profile *profile_parent(const struct profile *p)
{
	return p->parent;
}

const struct jv *profile_given(const struct profile *p)
{
	return &p->given;
}

const char *profile_file(const struct profile *p)
{
	return p->file;
}

int profile_line(const struct profile *p)
{
	return p->at.line;
}

/* --- comparing --- */

bool profile_entry_within(const char *setting, const struct jv *outer, const struct jv *inner)
{
	return settings_entry_within(setting, outer, inner);
}

const char *profile_setting_at(size_t i)
{
	return i < setting_count ? settings[i].name : NULL;
}

static size_t index_of(const char *setting)
{
	size_t i = 0;

	while (i < setting_count && strcmp(settings[i].name, setting) != 0)
		i++;
	assert(i < setting_count);
	return i;
}

const struct profile *profile_origin(const struct profile *p, const char *setting, int *ret_line)
{
	size_t i = index_of(setting);

	for (; p; p = p->parent)
		if (jv_get(&p->given, setting)) {
			*ret_line = p->setting_lines[i];
			return p;
		}
	return NULL;
}

/* All standard checks, each in the mode that holds for it. */
static bool modes_within(const struct profile *outer, const struct profile *inner)
{
	for (size_t i = 0; i < ITEMS_MAX; i++)
		if (inner->check_modes[i] > outer->check_modes[i])
			return false;
	return inner->mode <= outer->mode;
}

enum relation profile_compare(const struct profile *first, const struct profile *second,
			      const char *setting, struct arena *a)
{
	const struct setting *s = &settings[index_of(setting)];
	const struct jv *x = jv_get(&first->settings, setting);
	const struct jv *y = jv_get(&second->settings, setting);
	bool modes = s->kind == KIND_MODE || s->kind == KIND_MODES, less, more;

	if ((!x && !y) || (x && y && jv_equal(x, y)))
		return RELATION_EQUAL;
	if (s->kind == KIND_STRING)
		return RELATION_OTHER;
	if (s->kind == KIND_SECCOMP) {
		less = seccomp_within(first, second);
		more = seccomp_within(second, first);
	} else {
		less = modes ? modes_within(first, second) : settings_within(s, x, y, a);
		more = modes ? modes_within(second, first) : settings_within(s, y, x, a);
	}
	if (less && more)
		return RELATION_OTHER;
	return less ? RELATION_TIGHTER : more ? RELATION_LOOSER : RELATION_BOTH;
}

bool profile_rule_at(const struct engine *eng, const struct profile *p, size_t i,
		     struct rule_view *ret)
{
	const struct item *it;

	if (i >= eng->check_count + p->item_count)
		return false;
	it = i < eng->check_count ? &eng->items[i] : p->items[i - eng->check_count];
	*ret = (struct rule_view){.name = it->name,
				  .doc = it->doc,
				  .file = it->file,
				  .line = it->line,
				  .is_check = it->is_check,
				  .mode = p->mode,
				  .has_mode = it->has_mode,
				  .examples = it->match.count || it->not_match.count,
				  .inherited = i >= eng->check_count &&
					       i - eng->check_count < p->inherited_count};
	for (int op = OP_UNKNOWN + 1; op < OP_COUNT; op++)
		ret->reached = ret->reached || (op_set_has(&it->concerns, (enum operation)op) &&
						op_set_has(&p->granted, (enum operation)op));
	if (it->has_mode)
		ret->mode = it->mode;
	else if (it->is_check)
		ret->mode = (enum rule_mode)p->check_modes[i];
	return true;
}

unsigned profile_hides(const struct profile *p)
{
	return p->hides;
}

bool profile_wants_attested(const struct profile *p)
{
	return p->wants_attested;
}

bool profile_wants_two_approvers(const struct profile *p)
{
	return jv_true(&p->settings, "two_approvers");
}

bool profile_closes_streams(const struct profile *p)
{
	return jv_true(&p->settings, "close_streams");
}

enum isolation profile_minimum(const struct profile *p)
{
	return p->minimum;
}

struct span profile_seccomp(const struct profile *p)
{
	return p->seccomp->text;
}

enum running profile_running(const struct profile *p)
{
	return p->running;
}

int64_t profile_updates(const struct profile *p)
{
	return p->update ? jv_num(p->update, "within", 0) : 0;
}

const struct jv *profile_settings(const struct profile *p)
{
	return &p->settings;
}

/* Operations whose refusal has a code of its own. */
static enum reason closed_reason(enum operation op)
{
	static const struct {
		enum operation op;
		enum reason reason;
	} table[] = {
		{OP_SYSTEM_AUTH, REASON_registry},
		{OP_SYSTEM_SESSION, REASON_buildkit},
		{OP_CONTAINER_RENAME, REASON_rename},
		{OP_CONTAINER_ATTACH, REASON_attach},
		{OP_CONTAINER_ARCHIVE_GET, REASON_archive},
		{OP_CONTAINER_ARCHIVE_PUT, REASON_archive},
		{OP_CONTAINER_EXPORT, REASON_export},
		{OP_CONTAINER_COMMIT, REASON_commit},
		{OP_IMAGE_BUILD, REASON_build},
		{OP_IMAGE_LOAD, REASON_image_retag},
		{OP_IMAGE_PUSH, REASON_push},
		{OP_IMAGE_SAVE, REASON_export},
		{OP_REGISTRY_SEARCH, REASON_registry},
		{OP_PLUGIN_CHANGE, REASON_plugin},
		{OP_SWARM, REASON_swarm},
		{OP_LIBPOD, REASON_libpod},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].op == op)
			return table[i].reason;
	return REASON_operation;
}

static const char *kept(struct arena *a, const char *text)
{
	const char *copy = arena_strndup(a, text, strlen(text));

	return copy ? copy : "";
}

struct violation profile_refusal(const struct profile *p, enum operation op, struct arena *a)
{
	const char *name = operation_name(op), *group = operation_group(op);
	char text[256], hint[256];

	snprintf(text, sizeof(text), "the profile \"%s\" does not grant %s%s", p->name, name,
		 op == OP_SYSTEM_SESSION ? ", BuildKit's tunnel" : "");
	snprintf(hint, sizeof(hint), "Ask the operator to add \"%s\"%s%s%s to operations.", name,
		 *group ? " or \"" : "", group, *group ? "\"" : "");
	if (op == OP_SYSTEM_SESSION) /* what works instead helps more */
		snprintf(hint, sizeof(hint), "%s", reason_hint(REASON_buildkit));
	return (struct violation){closed_reason(op), "operations", "", name,
				  kept(a, text),     kept(a, hint)};
}
