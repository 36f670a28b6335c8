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

static const char *kept(struct findings *f, struct buf *text)
{
	const char *copy = arena_strndup(f->arena, buf_span(text).at, buf_len(text));

	buf_fini(text);
	return copy ? copy : "";
}

/* What people call it, what the engine says it is, and how its level comes about. */
static void check_runtime(struct findings *f, const char *socket,
			  const struct isolation_runtime *rt)
{
	bool none = rt->is.level == ISOLATION_NONE;
	struct buf text;

	buf_init(&text, 65536);
	isolation_derive_runtime(rt, "", &text);
	finding_add(f, none ? FINDING_NOTE : FINDING_FINE, kept(f, &text), "",
		    "%s: runtime '%s' is %s: isolation '%s'%s", socket, rt->name,
		    *rt->said ? rt->said : "unknown", isolation_name(rt->is.level),
		    none ? "" : " at most");
}

/* What the engine does to all that it runs. */
static void check_note(struct findings *f, const char *socket, enum isolation_lower note)
{
	const struct isolation_reason *why = isolation_reason(note);

	if (why->adds)
		finding_add(f, FINDING_FINE, why->source, "",
			    "%s: %s; isolation levels stay what the runtime gives", socket,
			    why->why);
	else
		finding_add(f, FINDING_WEAK, why->source,
			    "Take seccomp-profile out of the engine's configuration.",
			    "%s: %s: one level less is left of each runtime", socket, why->why);
}

static void check_isolation(struct findings *f, const struct conf_backend *b,
			    const struct isolation_service *s)
{
	for (size_t i = 0; i < s->runtime_count; i++)
		check_runtime(f, b->address, &s->runtimes[i]);
	for (size_t i = 0; i < s->note_count; i++)
		check_note(f, b->address, s->notes[i]);
	doctor_served(f, b, s);
}

/* Limits that profiles set are worth nothing there. */
static void check_limits(struct findings *f, const char *socket, const struct jv *info)
{
	const struct jv *memory = jv_get(info, "MemoryLimit");

	if (memory && memory->kind == JV_BOOL && !memory->b)
		finding_add(f, FINDING_WEAK,
			    "Limits that profiles set are dropped by the engine, so the gate "
			    "removes what was made without them.",
			    "Delegate control groups to it (cgroup v2 and systemd: Delegate=yes).",
			    "%s: the engine cannot limit memory", socket);
}

static void ask_engine(struct findings *f, const struct conf_backend *b)
{
	const struct backend_ops *ops = backend_find(b->kind);
	struct isolation_service *service = arena_take(f->arena, sizeof(*service));
	const char *socket = b->address;
	struct err err = {0};
	enum jv_fault fault;
	struct buf body;
	struct jv info;
	int status;

	if (!service || !ops || !ops->isolation_target)
		return;
	if (engine_get(b, ops->isolation_target, LIMIT_MS, &status, &body, &err) < 0) {
		finding_add(f, FINDING_NOTE, "Its runtimes could not be looked at.", "", "%s",
			    err.msg);
		return;
	}
	if (status != 200 || jv_parse(f->arena, buf_span(&body), &info, &fault, &err) < 0)
		finding_add(f, FINDING_NOTE, "Its runtimes could not be looked at.", "",
			    "%s: GET %s was answered with status %d", socket, ops->isolation_target,
			    status);
	else {
		ops->isolation(&info, f->arena, service);
		check_isolation(f, b, service);
		check_limits(f, socket, &info);
	}
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
	const struct conf_backend b = {
		.name = "",
		.kind = strstr(path, "podman") ? "podman" : "docker",
		.address = address,
		.socket = path,
	};

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
