#include "gate/config_priv.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char *const always[] = {
#define PROTECTED(path) path,
#include "gate/protected.def"
#undef PROTECTED
};
#define ALWAYS (sizeof(always) / sizeof(*always))

struct list {
	struct arena *arena;
	const char **paths;
	size_t count, room;
};

static void add_one(struct list *l, const char *path)
{
	for (size_t i = 0; i < l->count; i++)
		if (strcmp(l->paths[i], path) == 0)
			return;
	if (l->count == l->room) {
		size_t room = l->room ? 2 * l->room : 64;
		const char **more = arena_take(l->arena, (room + 1) * sizeof(*more));

		if (!more)
			return; /* the arena is spent, which the caller sees */
		if (l->count)
			memcpy(more, l->paths, l->count * sizeof(*more));
		l->paths = more;
		l->room = room;
	}
	l->paths[l->count] = arena_strndup(l->arena, path, strlen(path));
	if (l->paths[l->count])
		l->paths[++l->count] = NULL;
}

/* /run and /var/run are one folder on every current system. */
static void add_spellings(struct list *l, const char *path)
{
	char other[PATH_MAX];

	add_one(l, path);
	if (strncmp(path, "/run/", 5) == 0)
		snprintf(other, sizeof(other), "/var%s", path);
	else if (strncmp(path, "/var/run/", 9) == 0)
		snprintf(other, sizeof(other), "%s", path + 4);
	else
		return;
	add_one(l, other);
}

/* The path as it is written, and as it really is; a socket may not exist yet. */
static void add(struct list *l, const char *path)
{
	char real[PATH_MAX], folder[PATH_MAX], whole[PATH_MAX + NAME_MAX + 2];
	const char *base = strrchr(path, '/') + 1;

	add_spellings(l, path);
	if (realpath(path, real)) {
		add_spellings(l, real);
		return;
	}
	snprintf(folder, sizeof(folder), "%.*s", (int)(base - path), path);
	if (!realpath(folder, real))
		return;
	snprintf(whole, sizeof(whole), "%s/%s", real[1] ? real : "", base);
	if (strlen(whole) < PATH_MAX)
		add_spellings(l, whole);
}

/*
 * The folder of a socket as well, unless it is one that everybody shares: a
 * mount of /run/sallyport/x could take the place of something there.
 */
static void add_folder(struct list *l, const char *path)
{
	static const char *const shared[] = {"/run", "/var/run", "/tmp", "/var/tmp", "/home"};
	const char *last = strrchr(path, '/');
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", (int)(last - path), path);
	if (strrchr(folder, '/') == NULL)
		return;
	for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++)
		if (strcmp(folder, shared[i]) == 0)
			return;
	add(l, folder);
}

/* Where clients look for it by themselves, where it is, and the socket that they were given for it.
 */
const char *const *engine_names(const struct config *c, size_t listener, struct arena *a)
{
	const struct conf_listener *l = &c->listeners[listener];
	struct list names = {.arena = a};

	add(&names, "/var/run/docker.sock");
	if (*c->proxy.backends[l->backend].socket)
		add(&names, c->proxy.backends[l->backend].socket);
	if (*l->socket)
		add(&names, l->socket);
	return names.paths;
}

const char *const *protected_paths(const struct config *c, struct arena *a)
{
	struct list l = {.arena = a};

	for (size_t i = 0; i < ALWAYS; i++)
		add(&l, always[i]);
	add(&l, c->auditor.dir);
	add(&l, c->path);
	if (*c->proxy.sandboxes.state)
		add(&l, c->proxy.sandboxes.state);
	for (size_t i = 0; c->profile_paths[i]; i++)
		add(&l, c->profile_paths[i]);
	for (size_t i = 0; i < c->proxy.listener_count; i++) {
		if (!*c->proxy.listeners[i].socket)
			continue;
		add(&l, c->proxy.listeners[i].socket);
		add_folder(&l, c->proxy.listeners[i].socket);
	}
	add(&l, c->status_socket);
	if (*c->admin.sockets)
		add(&l, c->admin.sockets);
	if (*c->admin.state)
		add(&l, c->admin.state);
	if (c->keeper.wanted)
		add(&l, c->keeper.state);
	if (c->updates && *c->updates)
		add(&l, c->updates);
	if (c->ledger && *c->ledger)
		add(&l, c->ledger);
	for (size_t i = 0; i < c->proxy.backend_count; i++)
		if (*c->proxy.backends[i].socket)
			add(&l, c->proxy.backends[i].socket);
	for (size_t i = 0; i < c->file_count; i++)
		add(&l, c->files[i]->path);
	return l.paths;
}
