#include "backends/docker/docker_priv.h"

#include <string.h>

/* --- users --- */

/* A number as Go's Atoi reads it: 1 if it is zero, 0 if not, -1 if it is none. */
static int is_zero(struct span s)
{
	bool zero = true;

	if (s.len && (s.at[0] == '+' || s.at[0] == '-'))
		s = span_skip(s, 1);
	for (size_t i = 0; i < s.len; i++) {
		if (s.at[i] < '0' || s.at[i] > '9')
			return -1;
		zero = zero && s.at[i] == '0';
	}
	return s.len && (zero || s.len <= 10) ? zero : -1;
}

/* A name other than root may have any number in the image. */
static bool part_is_root(struct span part, bool *known)
{
	int zero = is_zero(part);

	if (zero >= 0)
		return zero;
	if (span_is(part, "root"))
		return true;
	*known = false;
	return false;
}

bool docker_user_is_root(struct span user, bool *ret_known)
{
	struct span group = user, name;
	bool has_group = span_cut(&group, ':', &name), known = true;
	bool root = !name.len || part_is_root(name, &known);

	if (has_group && group.len)
		root = part_is_root(group, &known) || root;
	*ret_known = known || root;
	return root;
}

void docker_read_user(struct docker_reading *r, const char *image_user, bool image_known)
{
	const char *given = jv_str(r->config, "User", "");
	const char *user = *given ? given : image_user;
	bool known, root;

	docker_fact(r, "user.given", jv_string(given));
	if (!*given && !image_known)
		return;
	docker_fact(r, "user.effective", jv_string(*user ? user : "root"));
	root = docker_user_is_root(span_of(user), &known);
	if (known)
		docker_fact(r, "user.root", jv_bool(root));
}

/* --- capabilities --- */

/* Beyond ASCII Go's upper case would make other letters of it; no capability is written so. */
const char *docker_capability(struct backend_call *call, struct span given)
{
	char *name = arena_strndup(call->arena, given.at, given.len);

	if (!name || given.len > 64)
		return "";
	for (char *p = name; *p; p++) {
		if (*p >= 'a' && *p <= 'z')
			*p = (char)(*p - 32);
		if ((*p < 'A' || *p > 'Z') && (*p < '0' || *p > '9') && *p != '_')
			return "";
	}
	return strncmp(name, "CAP_", 4) == 0 ? name + 4 : name;
}

static void read_capability(struct docker_reading *r, const char *key, size_t i, struct span given)
{
	bool adds = strcmp(key, "CapAdd") == 0;
	const char *field = docker_text(r->call, "HostConfig.%s[%zu]", key, i);
	const char *name = docker_capability(r->call, given);
	const struct isolation_reason *strong = isolation_capability(name);
	struct jv *entry;

	if (!*name) {
		docker_refuse(r->call, REASON_capability, field, docker_cut(r->call, given));
		return;
	}
	if (!adds) {
		jv_push(r->call->arena, docker_fact_list(r, "capabilities.drop"), jv_string(name));
		if (strcmp(name, "ALL") == 0)
			docker_fact(r, "capabilities.drop_all", jv_bool(true));
		return;
	}
	entry = jv_push(r->call->arena, docker_fact_list(r, "capabilities.add"), jv_object());
	jv_set(r->call->arena, entry, "name", jv_string(name));
	jv_set(r->call->arena, entry, "field", jv_string(field));
	if (strong)
		docker_lower_by(r, strong, field, name);
}

static void read_capabilities(struct docker_reading *r)
{
	static const char *const keys[] = {"CapAdd", "CapDrop"};

	docker_fact(r, "capabilities.drop_all", jv_bool(false));
	for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
		const struct jv *list = jv_get(r->host, keys[k]);

		for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
			if (list->items[i].kind == JV_STRING)
				read_capability(r, keys[k], i, list->items[i].str);
	}
}

/* --- security options --- */

/* As the engine takes it apart: '=' before ':', else a bare word. */
void docker_split_option(struct span option, struct span *ret_name, struct span *ret_value)
{
	struct span rest = option;

	if (!memchr(option.at, '=', option.len) && !memchr(option.at, ':', option.len)) {
		*ret_name = option;
		*ret_value = (struct span){"", 0};
		return;
	}
	span_cut(&rest, memchr(option.at, '=', option.len) ? '=' : ':', ret_name);
	*ret_value = rest;
}

bool docker_option_is_yes(struct span v)
{
	static const char *const yes[] = {"", "1", "t", "T", "true", "True", "TRUE"};

	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
		if (span_is(v, yes[i]))
			return true;
	return false;
}

static void weigh_option(struct docker_reading *r, struct span name, struct span value,
			 const char *field)
{
	const char *text = docker_word(r->call, value);
	bool off = span_is(value, "unconfined");

	if (span_is(name, "seccomp"))
		docker_read_filter(r, value, field);
	else if (span_is(name, "apparmor"))
		docker_read_apparmor(r, value);
	if (span_is(name, "apparmor") && off)
		docker_lower(r, LOWER_APPARMOR_OFF, field, text);
	else if (span_is(name, "disable") || (span_is(name, "label") && span_is(value, "disable")))
		docker_lower(r, LOWER_LABELS_OFF, field, text);
	else if (span_is(name, "writable-cgroups"))
		docker_lower(r, LOWER_CGROUPS_WRITABLE, field, text);
}

static void read_option(struct docker_reading *r, size_t i, struct span option)
{
	const char *field = docker_text(r->call, "HostConfig.SecurityOpt[%zu]", i);
	struct span name, value;
	struct jv *entry;

	docker_split_option(option, &name, &value);
	if (span_is(name, "no-new-privileges")) {
		docker_fact(r, "no_new_privileges", jv_bool(docker_option_is_yes(value)));
		if (docker_option_is_yes(value))
			return;
	}
	entry = jv_push(r->call->arena, docker_fact_list(r, "security"), jv_object());
	jv_set(r->call->arena, entry, "name", jv_string(docker_word(r->call, name)));
	jv_set(r->call->arena, entry, "value", jv_string(docker_word(r->call, value)));
	jv_set(r->call->arena, entry, "field", jv_string(field));
	weigh_option(r, name, value, field);
}

static void read_security(struct docker_reading *r)
{
	const struct jv *list = jv_get(r->host, "SecurityOpt");

	bool filter_given = false;

	docker_begin_security(r);
	docker_fact(r, "no_new_privileges", jv_bool(r->info->no_new_privileges));
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		if (list->items[i].kind != JV_STRING)
			continue;
		read_option(r, i, list->items[i].str);
		filter_given = filter_given || span_starts(list->items[i].str, "seccomp");
	}
	if (r->info->unfiltered && !filter_given)
		docker_lower(r, LOWER_SERVICE_SECCOMP_OFF, "SecurityOptions", "seccomp");
}

/* --- /proc and /sys --- */

static bool holds(const struct jv *list, const char *path)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].kind == JV_STRING && span_is(list->items[i].str, path))
			return true;
	return false;
}

const struct docker_proc_path docker_proc_paths[] = {
#define PROTECTED(key, path, always) {#key, path, always},
#include "backends/docker/proc_paths.def"
#undef PROTECTED
};
const size_t docker_proc_path_count = sizeof(docker_proc_paths) / sizeof(*docker_proc_paths);

/* Whether an existing container keeps at least what every engine protects. */
bool docker_keeps_proc_paths(const struct jv *host)
{
	for (size_t i = 0; i < docker_proc_path_count; i++) {
		const struct docker_proc_path *p = &docker_proc_paths[i];
		const struct jv *list = jv_get(host, p->key);

		if (!p->always || !list || list->kind == JV_NULL)
			continue;
		if (list->kind != JV_ARRAY || !holds(list, p->path))
			return false;
	}
	return true;
}

static void read_proc_paths(struct docker_reading *r)
{
	const struct jv *mask = jv_get(r->host, "MaskedPaths");
	const struct jv *keep = jv_get(r->host, "ReadonlyPaths");
	bool same = (!mask || mask->kind == JV_NULL) && (!keep || keep->kind == JV_NULL);

	if (docker_engine_filled(r))
		same = docker_keeps_proc_paths(r->host);
	docker_fact(r, "proc_paths", jv_string(same ? "default" : "changed"));
	if (!same)
		docker_lower(r, LOWER_PROC_PATHS, "HostConfig.MaskedPaths", "");
}

/* --- together --- */

static void read_groups(struct docker_reading *r)
{
	const struct jv *list = jv_get(r->host, "GroupAdd");

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		struct jv *entry;

		if (list->items[i].kind != JV_STRING)
			continue;
		entry = jv_push(r->call->arena, docker_fact_list(r, "user.groups"), jv_object());
		jv_set(r->call->arena, entry, "name",
		       jv_string(docker_word(r->call, list->items[i].str)));
		jv_set(r->call->arena, entry, "field",
		       jv_string(docker_text(r->call, "HostConfig.GroupAdd[%zu]", i)));
	}
}

void docker_read_privileges(struct docker_reading *r)
{
	bool privileged = jv_true(r->host, "Privileged");

	docker_fact(r, "privileged", jv_bool(privileged));
	if (privileged)
		docker_lower(r, LOWER_PRIVILEGED, "HostConfig.Privileged", "true");
	read_capabilities(r);
	read_security(r);
	read_proc_paths(r);
	read_groups(r);
	docker_fact(r, "read_only", jv_bool(jv_true(r->host, "ReadonlyRootfs")));
	docker_fact(r, "init", jv_bool(jv_true(r->host, "Init")));
	if (!r->made)
		docker_fact(r, "init_given",
			    jv_bool(jv_get(r->host, "Init") != NULL &&
				    jv_get(r->host, "Init")->kind == JV_BOOL));
}
