#include "gate/lint.h"

#include <stdio.h>
#include <string.h>

#define DAY ((int64_t)86400)

struct subject {
	struct lint *lint;
	const struct profile *profile;
	const struct jv *settings;
};

/* What the profile says itself: what it inherits is told where it is said. */
static const struct jv *own(const struct subject *s, const char *setting)
{
	return jv_get(profile_given(s->profile), setting);
}

/* A finding about a setting, at the line of the entry if the entry stands there as it is. */
static void about(const struct subject *s, enum lint_code code, const char *setting,
		  const char *entry)
{
	int line = profile_line(s->profile);

	profile_origin(s->profile, setting, &line);
	if (*entry)
		line = lint_line_of(s->lint, profile_file(s->profile), line, entry);
	s->lint->found(s->lint, code, profile_file(s->profile), line, entry);
}

static void about_profile(const struct subject *s, enum lint_code code)
{
	s->lint->found(s->lint, code, profile_file(s->profile), profile_line(s->profile),
		       profile_name(s->profile));
}

static bool launches(const struct subject *s)
{
	return profile_grant(s->profile, OP_CONTAINER_CREATE) != GRANT_NONE;
}

/* --- lists --- */

static void image_entry(const struct subject *s, const char *entry)
{
	struct span name = span_of(entry);
	size_t registry = strcspn(entry, "/");
	const char *tag = strrchr(entry, ':');

	if (memchr(entry, '*', registry))
		about(s, LINT_image_any, "images", entry);
	else if (span_starts(name, "docker.io/*") || span_starts(name, "ghcr.io/*") ||
		 span_starts(name, "quay.io/*"))
		about(s, LINT_image_hub, "images", entry);
	if (tag && strcmp(tag, ":latest") == 0)
		about(s, LINT_image_latest, "images", entry);
}

static void network_entry(const struct subject *s, const char *entry)
{
	if (strspn(entry, "*?") == strlen(entry))
		about(s, LINT_network_any, "networks", entry);
}

static void port_entry(const struct subject *s, const char *entry)
{
	if (strcmp(entry, "*") == 0 || strcmp(entry, "0.0.0.0") == 0 || strcmp(entry, "::") == 0)
		about(s, LINT_port_any, "ports", entry);
}

static void label_entry(const struct subject *s, const char *entry)
{
	if (strspn(entry, "*?.") == strlen(entry))
		about(s, LINT_label_any, "labels", entry);
}

static void capability_entry(const struct subject *s, const char *entry)
{
	static const char *const strong[] = {
		"SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE", "SYS_RAWIO", "DAC_READ_SEARCH", "BPF",
		"NET_ADMIN", "SYS_BOOT",   "SYS_TIME",   "MKNOD",     "PERFMON"};

	for (size_t i = 0; i < sizeof(strong) / sizeof(*strong); i++)
		if (strcmp(entry, strong[i]) == 0)
			about(s, LINT_capability_strong, "capabilities", entry);
}

static void each_entry(const struct subject *s, const char *setting,
		       void (*fn)(const struct subject *s, const char *entry))
{
	const struct jv *list = own(s, setting);

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		if (list->items[i].kind == JV_STRING)
			fn(s, list->items[i].str.at);
}

/* An entry within another one: the profile without it grants the same. */
static void shadowed(const struct subject *s, const char *setting)
{
	const struct jv *list = own(s, setting);

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		for (size_t k = 0; k < list->count; k++) {
			const struct jv *it = &list->items[i];
			bool within = k != i && profile_entry_within(setting, &list->items[k], it);

			/* Of two that are the same the second is the one too many. */
			if (!within ||
			    (k > i && profile_entry_within(setting, it, &list->items[k])))
				continue;
			about(s, LINT_entry_shadowed, setting,
			      it->kind == JV_OBJECT ? jv_str(it, "path", "") : it->str.at);
			break;
		}
}

static void mounts(const struct subject *s)
{
	static const char *const systems[] = {
		"/bin",     "/boot", "/dev",  "/etc",     "/home",    "/lib",
		"/lib64",   "/opt",  "/proc", "/root",    "/run",     "/sbin",
		"/sys",     "/usr",  "/var",  "/var/run", "/var/lib", "/var/lib/docker",
		"/var/log", "/tmp",  "/srv",  "/mnt"};
	const struct jv *list = own(s, "mounts");

	for (size_t i = 0; list && i < list->count; i++) {
		const char *path = jv_str(&list->items[i], "path", "");
		bool writes = strcmp(jv_str(&list->items[i], "mode", "ro"), "rw") == 0;

		for (size_t k = 0; k < sizeof(systems) / sizeof(*systems); k++)
			if (strcmp(path, systems[k]) == 0)
				about(s, LINT_mount_wide, "mounts", path);
		if (writes && !strchr(path, '{'))
			about(s, LINT_mount_shared, "mounts", path);
	}
}

/* --- the whole --- */

static void confinement(const struct subject *s)
{
	const struct jv *limits = jv_get(s->settings, "limits");
	const char *level = jv_str(jv_get(s->settings, "isolation"), "min", "process");

	if (!launches(s))
		return;
	if (strcmp(jv_str(s->settings, "users", ""), "any") == 0 && strcmp(level, "process") == 0)
		about(s, LINT_root_unheld, "users", "");
	if (!jv_get(limits, "memory") || !jv_get(limits, "pids"))
		about(s, LINT_no_limits, "limits", "");
	if (!profile_hardens(s->profile))
		about(s, LINT_no_harden, "harden", "");
}

static void modes(const struct subject *s)
{
	const struct jv *single = own(s, "modes");

	if (own(s, "mode") && strcmp(jv_str(s->settings, "mode", ""), "enforce") != 0)
		about(s, LINT_not_enforced, "mode", "");
	for (size_t i = 0; single && i < single->count; i++)
		if (!span_is(single->members[i].value.str, "enforce"))
			about(s, LINT_not_enforced, "modes", single->members[i].key.at);
}

static void rules(const struct subject *s)
{
	struct lint *l = s->lint;
	struct rule_view v;

	for (size_t i = 0; profile_rule_at(l->engine, s->profile, i, &v); i++) {
		if (v.is_check || v.inherited)
			continue;
		if (!v.reached)
			l->found(l, LINT_rule_never, v.file, v.line, v.name);
		if (v.mode != MODE_ENFORCE && v.has_mode)
			l->found(l, LINT_not_enforced, v.file, v.line, v.name);
		if (!*v.doc)
			l->found(l, LINT_no_doc, v.file, v.line, v.name);
		if (!v.examples && !l->folder->test_count)
			l->found(l, LINT_no_examples, v.file, v.line, v.name);
	}
}

static void exceptions(struct lint *l)
{
	struct exception_view x;

	for (size_t i = 0; engine_exception_at(l->engine, i, &x); i++) {
		int64_t left = x.ends - l->now;
		char what[160];

		snprintf(what, sizeof(what), "%s, %s of %s, until %s", x.rule, x.ticket, x.owner,
			 x.expires);
		if (left <= 0)
			l->found(l, LINT_exception_expired, x.file, x.line, what);
		else if (left <= 30 * DAY)
			l->found(l, LINT_exception_soon, x.file, x.line, what);
		else if (left > 400 * DAY)
			l->found(l, LINT_exception_long, x.file, x.line, what);
		if (x.always)
			l->found(l, LINT_exception_always, x.file, x.line, what);
	}
}

void lint_profiles(struct lint *l)
{
	static const char *const lists[] = {"images", "networks", "labels", "mounts", "ports"};
	struct subject s = {.lint = l};

	for (size_t i = 0; (s.profile = engine_profile_at(l->engine, i)); i++) {
		s.settings = profile_settings(s.profile);
		if (!*jv_str(profile_given(s.profile), "doc", ""))
			about_profile(&s, LINT_no_doc);
		each_entry(&s, "images", image_entry);
		each_entry(&s, "networks", network_entry);
		each_entry(&s, "ports", port_entry);
		each_entry(&s, "labels", label_entry);
		each_entry(&s, "capabilities", capability_entry);
		for (size_t k = 0; k < sizeof(lists) / sizeof(*lists); k++)
			shadowed(&s, lists[k]);
		mounts(&s);
		confinement(&s);
		modes(&s);
		rules(&s);
	}
	exceptions(l);
}
