/* config_keeper.c - what the configuration says of the backend whose service the gate is itself. */
#include "gate/config_priv.h"

#include <string.h>

#define FOLDERS_MAX 32

static const char *const usual[] = {
	"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.cache", NULL,
};

static const char *const own_keys[] = {
	"state",       "read_only", "path", "bare",    "sandboxes", "execs",
	"connections", "memory",    "pids", "scratch", "file",      "output",
};

static int no_keys_of_it(const struct config_entry *e, struct err *err)
{
	for (size_t i = 0; i < sizeof(own_keys) / sizeof(*own_keys); i++)
		if (jv_get(e->value, own_keys[i]))
			return config_wrong(e, err, "'%s' is of backends with kind = \"local\"",
					    own_keys[i]);
	return 0;
}

/* A path that everything else lies in, or where other parts of a sandbox are. */
static bool is_reserved(const char *path)
{
	static const char *const reserved[] = {"/proc", "/sys", "/dev", "/tmp", "/run"};

	for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++) {
		size_t n = strlen(reserved[i]);

		if (strncmp(path, reserved[i], n) == 0 && (!path[n] || path[n] == '/'))
			return true;
	}
	return !path[1];
}

static bool is_plain_path(const char *path)
{
	const struct jv text = jv_string(path);

	return config_fits(KIND_PATH, &text);
}

static int build_folders(const struct config_entry *e, struct arena *a, struct config_keeper *to,
			 struct err *err)
{
	const struct jv *given = jv_get(e->value, "read_only");
	const char **list;

	to->read_only = usual;
	if (!given)
		return 0;
	if (given->count > FOLDERS_MAX)
		return config_wrong(e, err, "read_only takes at most %d paths", FOLDERS_MAX);
	list = arena_take(a, (given->count + 1) * sizeof(*list));
	if (!list)
		return err_set(err, ERR_LIMIT, "%s: too large", e->path);
	for (size_t i = 0; given->kind == JV_ARRAY && i < given->count; i++) {
		list[i] = given->items[i].str.at;
		if (!is_plain_path(list[i]) || is_reserved(list[i]))
			return config_wrong(
				e, err,
				"read_only takes absolute paths of folders and files, "
				"none in /proc, /sys, /dev, /tmp and /run; not '%.200s'",
				list[i]);
	}
	to->read_only = list;
	return 0;
}

int config_build_keeper(const struct config_entry *e, struct arena *a, struct config *c,
			size_t backend, struct err *err)
{
	struct config_keeper *to = &c->keeper;

	if (strcmp(jv_str(e->value, "kind", ""), "local") != 0)
		return no_keys_of_it(e, err);
	if (to->wanted)
		return config_wrong(e, err,
				    "one backend with kind = \"local\" is all there can be");
	if (!config_address_path(jv_str(e->value, "address", "")))
		return config_wrong(e, err,
				    "its service is a process of the gate, so its address is a "
				    "socket: unix:///PATH");
	if (jv_get(e->value, "group"))
		return config_wrong(e, err, "the gate makes this socket itself: leave 'group' out");
	to->wanted = true;
	to->backend = backend;
	to->bare = jv_true(e->value, "bare");
	to->path = jv_str(e->value, "path", "/usr/local/bin:/usr/bin:/bin");
	to->state = jv_str(e->value, "state", NULL);
	if (!to->state)
		return config_wrong(e, err, "'state' is missing: a folder for the keeper alone");
	return build_folders(e, a, to, err);
}
