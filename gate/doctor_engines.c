#include "gate/doctor.h"

#include "gate/base/jv.h"
#include "proxy/engine_get.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIMIT_MS 3000

static const char why_reach[] =
	"Who opens this socket is root on the host, and the gate never sees it.";

/* Members by the group's list, and those whose primary group it is. */
static void list_members(gid_t gid, char *out, size_t size)
{
	const struct group *gr = getgrgid(gid);
	const struct passwd *pw;
	size_t used = 0;

	out[0] = '\0';
	for (char **m = gr ? gr->gr_mem : NULL; m && *m && used < size; m++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", *m);
	setpwent();
	while (used < size && (pw = getpwent()))
		if (pw->pw_gid == gid && pw->pw_uid != 0)
			used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "",
						 pw->pw_name);
	endpwent();
}

static void check_access(struct findings *f, const char *path, const struct stat *st)
{
	const struct group *gr = getgrgid(st->st_gid);
	const char *group = gr ? gr->gr_name : "?";
	char members[512];

	if (st->st_mode & S_IWOTH) {
		finding_add(f, FINDING_WEAK, why_reach, "chmod o-rw it, and see who sets it so.",
			    "%s can be opened by everybody (mode %04o)", path, st->st_mode & 07777);
		return;
	}
	if (!(st->st_mode & S_IWGRP)) {
		finding_add(f, FINDING_NOTE,
			    "A gate whose workers are not its owner cannot open it either.",
			    "Give it a group (docker: 'group' in daemon.json; podman: SocketGroup= "
			    "and SocketMode=0660).",
			    "%s can be opened by its owner (uid %u) alone", path, st->st_uid);
		return;
	}
	list_members(st->st_gid, members, sizeof(members));
	if (*members)
		finding_add(f, FINDING_WEAK, why_reach,
			    "Take them out of the group (gpasswd -d USER GROUP) and let them use "
			    "a listener of the gate.",
			    "%s can be opened by group %s: %s", path, group, members);
	else if (st->st_gid == 0)
		finding_add(f, FINDING_NOTE,
			    "The gate's workers need the group root to open it, which opens more.",
			    "Give the socket a group of its own.", "%s belongs to the group root",
			    path);
	else
		finding_add(f, FINDING_FINE, "", "",
			    "%s can be opened by group %s, which has no members", path, group);
}

/* --- runtimes --- */

static const struct {
	const char *program, *level, *flaw;
} runtimes[] = {
#define RUNTIME(program, level, flaw) {program, level, flaw},
#include "gate/runtimes.def"
#undef RUNTIME
};

static bool has_argument(const struct jv *args, const char *want)
{
	for (size_t i = 0; args && args->kind == JV_ARRAY && i < args->count; i++)
		if (args->items[i].kind == JV_STRING && span_is(args->items[i].str, want))
			return true;
	return false;
}

/* Later rows are about flaws, so the last that fits counts. */
static const char *level_of(const char *path, const struct jv *args)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const char *level = NULL;

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++)
		if (strcmp(runtimes[i].program, base) == 0 &&
		    (!*runtimes[i].flaw || has_argument(args, runtimes[i].flaw)))
			level = runtimes[i].level;
	return level;
}

static void check_runtime(struct findings *f, const char *socket, const struct jv_member *m)
{
	const char *path = jv_str(&m->value, "path", "");
	const char *level = level_of(path, jv_get(&m->value, "runtimeArgs"));

	if (level)
		finding_add(f, FINDING_FINE, "", "",
			    "%s: runtime '%.*s' is %s: isolation '%s' at most", socket,
			    SPAN_FMT(m->key), path, level);
	else
		finding_add(f, FINDING_NOTE,
			    "The engine does not say which program it is, or it is not known; for "
			    "the gate it isolates nothing.",
			    "", "%s: runtime '%.*s' is %s: isolation 'none'", socket,
			    SPAN_FMT(m->key), *path ? path : "unknown");
}

static void check_info(struct findings *f, const char *socket, const struct jv *info)
{
	const struct jv *list = jv_get(info, "Runtimes");

	for (size_t i = 0; list && list->kind == JV_OBJECT && i < list->count; i++)
		check_runtime(f, socket, &list->members[i]);
}

/* What the options mean for what runs there. */
static void check_options(struct findings *f, const char *socket, const struct jv *info)
{
	const struct jv *list = jv_get(info, "SecurityOptions"),
			*memory = jv_get(info, "MemoryLimit");

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		if (list->items[i].kind == JV_STRING &&
		    span_starts(list->items[i].str, "name=rootless"))
			finding_add(f, FINDING_FINE, "", "",
				    "%s: the engine is rootless: root in a container, and who "
				    "reaches the socket, is its ordinary user and not root of the "
				    "host; isolation levels stay what the runtime gives",
				    socket);
	if (memory && memory->kind == JV_BOOL && !memory->b)
		finding_add(f, FINDING_WEAK,
			    "Limits that profiles set are dropped by the engine, so the gate "
			    "removes what was made without them.",
			    "Delegate control groups to it (cgroup v2 and systemd: Delegate=yes).",
			    "%s: the engine cannot limit memory", socket);
}

static void ask_engine(struct findings *f, const struct conf_backend *b)
{
	const char *socket = b->address;
	struct err err = {0};
	enum jv_fault fault;
	struct buf body;
	struct jv info;
	int status;

	if (engine_get(b, "/info", LIMIT_MS, &status, &body, &err) < 0) {
		finding_add(f, FINDING_NOTE, "Its runtimes could not be looked at.", "", "%s",
			    err.msg);
		return;
	}
	if (status != 200 || jv_parse(f->arena, buf_span(&body), &info, &fault, &err) < 0)
		finding_add(f, FINDING_NOTE, "Its runtimes could not be looked at.", "",
			    "%s: GET /info was answered with status %d", socket, status);
	else
		check_info(f, socket, &info), check_options(f, socket, &info);
	buf_fini(&body);
}

/* One at tcp:// is asked alone: who else reaches it is seen on its own host. */
static void check_engine(struct findings *f, const struct conf_backend *b, bool wanted)
{
	const char *path = b->socket;
	struct stat st;

	if (b->tcp) {
		ask_engine(f, b);
		return;
	}

	if (stat(path, &st) < 0) {
		if (wanted)
			finding_add(f, FINDING_WEAK, "The gate has nothing to forward to.",
				    "Start the engine, or correct 'address'.", "%s: %s", path,
				    strerror(errno));
		return;
	}
	if (!S_ISSOCK(st.st_mode)) {
		finding_add(f, FINDING_WEAK, "The gate has nothing to forward to.",
			    "Correct 'address'.", "%s is no socket", path);
		return;
	}
	check_access(f, path, &st);
	doctor_acl(f, path);
	doctor_mounted_socket(f, path);
	ask_engine(f, b);
	doctor_containers(f, b);
}

static void check_known(struct findings *f, const char *path)
{
	char address[PATH_MAX + 8];
	const struct conf_backend b = {.name = "", .address = address, .socket = path};

	snprintf(address, sizeof(address), "unix://%s", path);
	check_engine(f, &b, false);
}

static bool is_configured(const struct findings *f, const char *path)
{
	for (size_t i = 0; f->config && i < f->config->proxy.backend_count; i++)
		if (strcmp(f->config->proxy.backends[i].socket, path) == 0)
			return true;
	return false;
}

/* Engines of ordinary users listen in the folder of their session. */
static void find_rootless(struct findings *f)
{
	static const char *const names[] = {"docker.sock", "podman/podman.sock"};
	DIR *dir = opendir("/run/user");
	struct dirent *d;
	char path[PATH_MAX];
	struct stat st;

	while (dir && (d = readdir(dir)))
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			snprintf(path, sizeof(path), "/run/user/%.20s/%s", d->d_name, names[i]);
			if (d->d_name[0] == '.' || stat(path, &st) < 0 || !S_ISSOCK(st.st_mode) ||
			    is_configured(f, path))
				continue;
			finding_add(f, FINDING_NOTE,
				    "Its user starts containers there without the gate, with that "
				    "user's rights.",
				    "To guard it: address = \"unix://...\" with this path, and a "
				    "gate that may enter the folder.",
				    "an engine of user %.20s listens on %s", d->d_name, path);
		}
	if (dir)
		closedir(dir);
}

void doctor_engines(struct findings *f)
{
	/* /var/run/docker.sock is the same on every current system. */
	static const char *const known[] = {"/run/docker.sock", "/run/podman/podman.sock"};
	size_t count = f->config ? f->config->proxy.backend_count : 0;

	for (size_t i = 0; i < count; i++)
		check_engine(f, &f->config->proxy.backends[i], true);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		bool seen = false;

		for (size_t j = 0; j < count; j++) {
			const char *path = f->config->proxy.backends[j].socket;

			if (strncmp(path, "/var/run/", 9) == 0)
				path += 4;
			seen |= strcmp(path, known[i]) == 0;
		}
		if (!seen)
			check_known(f, known[i]);
	}
	find_rootless(f);
}
