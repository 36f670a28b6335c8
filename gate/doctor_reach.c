/* doctor_reach.c - everything that can open an engine's socket beside the gate. */
#include "gate/doctor.h"

#include "gate/base/io.h"
#include "gate/base/jv.h"
#include "gate/reach.h"
#include "proxy/engine_get.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LIMIT_MS     3000
#define FILE_MAX     ((size_t)1 << 20)
#define XATTR_MAX    65536 /* the kernel has no longer ones */
#define SHOWN_MAX    32    /* of one kind */
#define DROP_INS_MAX 32    /* of one unit */
#define PLAIN_MEND   "Remove it; let those who need the engine use a listener of the gate."

static const char why_reach[] =
	"Who reaches the engine there is root on its host, and the gate never sees it.";

static bool read_at(const struct findings *f, const char *path, struct buf *ret)
{
	char whole[PATH_MAX];
	struct err err = {0};

	snprintf(whole, sizeof(whole), "%s%s", f->root ? f->root : "", path);
	return io_read_file(whole, FILE_MAX, ret, &err) == 0;
}

void doctor_mounted_socket(struct findings *f, const char *path)
{
	struct buf text;

	if (!read_at(f, "/proc/self/mountinfo", &text))
		return;
	if (reach_is_mount_point(buf_span(&text), path))
		finding_add(f, FINDING_WEAK,
			    "When the engine is started anew it makes a new socket, and what is "
			    "mounted here stays the old one: the gate never reaches it again.",
			    "Mount the folder that the socket is in, not the socket.",
			    "%s is a mount of the socket file itself", path);
	buf_fini(&text);
}

void doctor_acl(struct findings *f, const char *path)
{
	struct reach_acl list[REACH_ACL_MAX];
	char *xattr = arena_take(f->arena, XATTR_MAX);
	ssize_t len = xattr ? getxattr(path, "system.posix_acl_access", xattr, XATTR_MAX) : -1;
	size_t count = 0;

	if (len == 0 ||
	    (len < 0 && xattr && (errno == ENODATA || errno == ENOTSUP || errno == ENOENT)))
		return; /* none, or a file system without */
	if (len < 0 ||
	    reach_acl_read((struct span){xattr, (size_t)len}, list, REACH_ACL_MAX, &count) < 0)
		finding_add(f, FINDING_WEAK, why_reach, "Look at it with getfacl.",
			    "%s has an access control list that is not understood", path);
	for (size_t i = 0; i < count; i++) {
		const struct passwd *pw = list[i].group ? NULL : getpwuid(list[i].id);
		const struct group *gr = list[i].group ? getgrgid(list[i].id) : NULL;

		finding_add(f, FINDING_WEAK, why_reach, "setfacl -b it.",
			    "%s can be opened by %s %s (%u), by its access control list", path,
			    list[i].group ? "group" : "user",
			    pw   ? pw->pw_name
			    : gr ? gr->gr_name
				 : "?",
			    list[i].id);
	}
}

/* --- where engines listen beside their socket --- */

static void check_address(struct findings *f, struct span address, const char *where)
{
	bool tls = memmem(where, strlen(where), "tlsverify", 9) != NULL;

	if (span_starts(address, "unix://") || span_starts(address, "fd://") ||
	    (address.len && address.at[0] == '/'))
		return;
	finding_add(f, FINDING_WEAK, why_reach,
		    tls ? "Is every certificate that it takes known? " PLAIN_MEND : PLAIN_MEND,
		    "the engine listens on %.*s, too (%s)",
		    (int)(address.len < 100 ? address.len : 100), address.at, where);
}

static void check_addresses(struct findings *f, struct span lines, const char *where)
{
	struct span line;

	for (size_t i = 0; lines.len && i < SHOWN_MAX; i++) {
		span_cut(&lines, '\n', &line);
		check_address(f, line, where);
	}
}

static void check_process(struct findings *f, const char *pid)
{
	struct buf text, hosts;
	char path[64], where[96];
	bool verifies;

	snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
	if (!read_at(f, path, &text))
		return;
	verifies = span_is(buf_span(&text), "dockerd\n");
	buf_fini(&text);
	snprintf(path, sizeof(path), "/proc/%.16s/cmdline", pid);
	if (!verifies || !read_at(f, path, &text))
		return;
	verifies = memmem(buf_span(&text).at, buf_len(&text), "--tlsverify", 11) != NULL;
	snprintf(where, sizeof(where), "arguments of process %.16s%s", pid,
		 verifies ? ", with --tlsverify" : "");
	buf_init(&hosts, FILE_MAX);
	reach_hosts(buf_span(&text), &hosts);
	check_addresses(f, buf_span(&hosts), where);
	buf_fini(&hosts);
	buf_fini(&text);
}

static void check_processes(struct findings *f)
{
	char path[PATH_MAX];
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc", f->root ? f->root : "");
	dir = opendir(path);
	while (dir && (d = readdir(dir)))
		if (d->d_name[0] >= '1' && d->d_name[0] <= '9')
			check_process(f, d->d_name);
	if (dir)
		closedir(dir);
}

static void check_daemon_json(struct findings *f)
{
	static const char path[] = "/etc/docker/daemon.json";
	enum jv_fault fault;
	struct err err = {0};
	const struct jv *hosts;
	struct buf text;
	struct jv doc;

	if (!read_at(f, path, &text))
		return;
	if (jv_parse(f->arena, buf_span(&text), &doc, &fault, &err) < 0)
		finding_add(f, FINDING_NOTE, "Where the engine listens is not known from it.", "",
			    "%s is not JSON: %s", path, err.msg);
	hosts = err.kind == ERR_NONE ? jv_get(&doc, "hosts") : NULL;
	for (size_t i = 0; hosts && hosts->kind == JV_ARRAY && i < hosts->count && i < SHOWN_MAX;
	     i++)
		if (hosts->items[i].kind == JV_STRING)
			check_address(f, hosts->items[i].str, path);
	buf_fini(&text);
}

/* --- units of systemd --- */

/* For systemd, too, the first of these has the unit, and the first to have a drop-in of a name. */
static const char *const unit_folders[] = {"/etc/systemd/system", "/run/systemd/system",
					   "/usr/local/lib/systemd/system", "/lib/systemd/system",
					   "/usr/lib/systemd/system"};
#define UNIT_FOLDERS (sizeof(unit_folders) / sizeof(*unit_folders))

struct unit {
	struct findings *f;
	const char *name;
	void (*read)(struct span unit, struct buf *out);
	struct buf addresses;
	char drop_ins[DROP_INS_MAX][NAME_MAX + 1]; /* sorted */
	size_t count;
};

/* Of the first folder that has it; the others' are as if they were not there. */
static bool read_part(struct unit *u, const char *sub, const char *name, char ret_path[PATH_MAX])
{
	struct buf text;

	for (size_t i = 0; i < UNIT_FOLDERS; i++) {
		snprintf(ret_path, PATH_MAX, "%s/%s%s", unit_folders[i], sub, name);
		if (!read_at(u->f, ret_path, &text))
			continue;
		u->read(buf_span(&text), &u->addresses);
		buf_fini(&text);
		return true;
	}
	return false;
}

static void remember_drop_in(struct unit *u, const char *name)
{
	size_t len = strlen(name), i = 0;

	if (len < 6 || strcmp(name + len - 5, ".conf") != 0 || u->count == DROP_INS_MAX)
		return;
	while (i < u->count && strcmp(u->drop_ins[i], name) < 0)
		i++;
	if (i < u->count && strcmp(u->drop_ins[i], name) == 0)
		return;
	memmove(u->drop_ins[i + 1], u->drop_ins[i], (u->count - i) * sizeof(*u->drop_ins));
	snprintf(u->drop_ins[i], sizeof(*u->drop_ins), "%s", name);
	u->count++;
}

static void find_drop_ins(struct unit *u)
{
	char path[PATH_MAX];
	struct dirent *d;

	for (size_t i = 0; i < UNIT_FOLDERS; i++) {
		DIR *dir;

		snprintf(path, sizeof(path), "%s%s/%s.d", u->f->root ? u->f->root : "",
			 unit_folders[i], u->name);
		dir = opendir(path);
		while (dir && (d = readdir(dir)))
			remember_drop_in(u, d->d_name);
		if (dir)
			closedir(dir);
	}
}

/* What it listens on when it is started the next time, as all of its parts say. */
static void check_unit(struct findings *f, const char *name,
		       void (*read)(struct span unit, struct buf *out))
{
	struct unit *u = arena_take(f->arena, sizeof(*u));
	char path[PATH_MAX], part[PATH_MAX], sub[64], where[PATH_MAX + 64];

	if (!u)
		return;
	*u = (struct unit){.f = f, .name = name, .read = read};
	buf_init(&u->addresses, FILE_MAX);
	snprintf(sub, sizeof(sub), "%s.d/", name);
	if (!read_part(u, "", name, path))
		snprintf(path, sizeof(path), "%s", name);
	find_drop_ins(u);
	for (size_t i = 0; i < u->count; i++)
		read_part(u, sub, u->drop_ins[i], part);
	snprintf(where, sizeof(where), "%s%s%s", path,
		 u->count ? " with its drop-ins, the last is " : "",
		 u->count ? u->drop_ins[u->count - 1] : "");
	check_addresses(f, buf_span(&u->addresses), where);
	buf_fini(&u->addresses);
}

void doctor_reach(struct findings *f)
{
	check_processes(f);
	check_daemon_json(f);
	check_unit(f, "docker.socket", reach_listen_streams);
	check_unit(f, "docker.service", reach_exec_hosts);
}

/* --- containers --- */

static const char *name_of(const struct jv *row)
{
	const struct jv *names = jv_get(row, "Names");

	if (names && names->kind == JV_ARRAY && names->count && names->items[0].kind == JV_STRING &&
	    names->items[0].str.len > 1)
		return names->items[0].str.at + 1;
	return jv_str(row, "Id", "?");
}

/* /var/run and /run are one folder on every current system. */
static bool shows(const char *source, const char *socket)
{
	const char *other = strncmp(socket, "/var/run/", 9) == 0 ? socket + 4 : socket;
	char long_form[PATH_MAX];

	snprintf(long_form, sizeof(long_form), "/var%s", other);
	return reach_shows(source, socket) || reach_shows(source, other) ||
	       (strncmp(other, "/run/", 5) == 0 && reach_shows(source, long_form));
}

static bool check_mounts(struct findings *f, const struct jv *row, const char *socket)
{
	const struct jv *mounts = jv_get(row, "Mounts");

	for (size_t i = 0; mounts && mounts->kind == JV_ARRAY && i < mounts->count; i++) {
		const char *source = jv_str(&mounts->items[i], "Source", "");

		if (*source != '/' || !shows(source, socket))
			continue;
		finding_add(f, FINDING_WEAK, why_reach,
			    "Give it the socket of a listener of the gate; if it is the gate, let "
			    "it mount the folder of the socket.",
			    "container %.100s (%.12s) mounts %.200s, and with it %s", name_of(row),
			    jv_str(row, "Id", "?"), source, socket);
		return true;
	}
	return false;
}

void doctor_containers(struct findings *f, const struct conf_backend *b)
{
	struct err err = {0};
	enum jv_fault fault;
	size_t found = 0;
	struct buf body;
	struct jv list;
	int status;

	if (engine_get(b, "/containers/json?all=1", LIMIT_MS, &status, &body, &err) < 0)
		return; /* said already */
	if (status == 200 && jv_parse(f->arena, buf_span(&body), &list, &fault, &err) == 0 &&
	    list.kind == JV_ARRAY)
		for (size_t i = 0; i < list.count && found < SHOWN_MAX; i++)
			found += check_mounts(f, &list.items[i], b->socket);
	buf_fini(&body);
	if (found == SHOWN_MAX)
		finding_add(f, FINDING_NOTE, "", "", "%s: there may be more of them", b->socket);
}
