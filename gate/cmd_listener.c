/* cmd_listener.c - listeners that are made while the gate runs, one for each agent. */
#include "gate/admin_ask.h"

#include "gate/base/clock.h"

#include <grp.h>
#include <stdlib.h>
#include <string.h>

static int set_gid(struct arena *a, struct jv *to, const char *group, struct err *err)
{
	const struct group *gr = group ? getgrnam(group) : NULL;

	if (group && !gr)
		return err_set(err, ERR_INPUT, "there is no group called '%s'", group);
	if (gr)
		jv_set(a, to, "gid", jv_int((int64_t)gr->gr_gid));
	return 0;
}

static int set_mode(struct arena *a, struct jv *to, const char *mode, struct err *err)
{
	if (!mode)
		return 0;
	if (!*mode || strlen(mode) > 4 || strspn(mode, "01234567") != strlen(mode))
		return err_set(err, ERR_INPUT, "--mode takes an octal mode, such as 0660");
	jv_set(a, to, "mode", jv_int(strtol(mode, NULL, 8)));
	return 0;
}

static void set_text(struct arena *a, struct jv *to, const char *key, const char *value)
{
	if (value)
		jv_set(a, to, key, jv_string(value));
}

static int fill_add(const struct args *args, struct arena *a, struct jv *to, struct err *err)
{
	int64_t lifetime = command_seconds(args->lifetime);

	if (lifetime <= 0)
		return err_set(err, ERR_INPUT,
			       "--lifetime takes a time such as 90s, 30m, 8h or 7d, not '%s'",
			       args->lifetime);
	set_text(a, to, "name", args->name);
	set_text(a, to, "profile", args->profile);
	set_text(a, to, "owner", args->owner);
	set_text(a, to, "path", args->path);
	set_text(a, to, "backend", args->backend);
	jv_set(a, to, "lifetime", jv_int(lifetime));
	return set_gid(a, to, args->group, err) < 0 ? -1 : set_mode(a, to, args->mode, err);
}

static void print_added(const struct jv *answer)
{
	const struct jv *l = jv_get(answer, "listener");

	printf("%s: %s is %s under %s until %.19sZ\n", jv_str(l, "name", "?"),
	       jv_str(l, "path", "?"), jv_str(l, "owner", "?"), jv_str(l, "profile", "?"),
	       jv_str(l, "until", "?"));
}

static void print_removed(const struct jv *answer)
{
	printf("%s is gone\n", jv_str(jv_get(answer, "listener"), "name", "?"));
}

static void print_list(const struct jv *answer)
{
	const struct jv *list = jv_get(answer, "listeners");

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		const struct jv *l = &list->items[i];

		printf("%-20s %-20s %-20s %.19sZ  %s%s\n", jv_str(l, "name", "?"),
		       jv_str(l, "profile", "?"), jv_str(l, "owner", "?"), jv_str(l, "until", "?"),
		       jv_str(l, "path", "?"),
		       jv_true(l, "profile_loaded") ? "" : "  (no such profile: all is refused)");
	}
}

static int fill_remove(const struct args *args, struct arena *a, struct jv *to, struct err *err)
{
	if (args->rest_count != 1)
		return err_set(err, ERR_INPUT, "name the listener that is to end");
	jv_set(a, to, "name", jv_string(args->rest[0]));
	return 0;
}

int run_listener_add(const struct args *args)
{
	static const struct admin_question q = {VERB_listener_add, fill_add, "listener",
						print_added};

	return admin_command(args, &q);
}

int run_listener_list(const struct args *args)
{
	static const struct admin_question q = {VERB_listener_list, NULL, "listeners", print_list};

	return admin_command(args, &q);
}

int run_listener_remove(const struct args *args)
{
	static const struct admin_question q = {VERB_listener_remove, fill_remove, "listener",
						print_removed};

	return admin_command(args, &q);
}
