/*
 * What is mounted in a container that runs, beside what was judged.
 *
 * Every bind that was judged must be there as the very file or directory that
 * was looked at: by device and inode, each by a mount of its own.  And every
 * other mount must be explained; what is a piece of the host and is not, nobody
 * has judged.  Paths inside say little, since the workload may rename what lies
 * on the way: that is why one alone would not do.
 */
#include "backends/docker/attest_priv.h"

#include <string.h>

#define MOUNTS_MAX 256 /* as many as the resolver tells */

struct table {
	const struct docker_attesting *at;
	const struct jv *mounts;
	bool used[MOUNTS_MAX];
};

static bool is_at(const struct jv *mount, const char *point)
{
	return strcmp(jv_str(mount, "point", ""), point) == 0;
}

static bool is_same(const struct jv *a, const struct jv *b)
{
	const struct jv *one = jv_get(a, "ino"), *other = jv_get(b, "ino");

	return one && other && one->kind == JV_INT && other->kind == JV_INT && one->i == other->i &&
	       strcmp(jv_str(a, "dev", "-"), jv_str(b, "dev", "+")) == 0;
}

/* --- binds --- */

/* At its own place first: elsewhere only if the image has a link there. */
static struct jv *find_mount(struct table *t, const char *target, const struct jv *judged)
{
	size_t found = MOUNTS_MAX;

	for (size_t i = 0; i < t->mounts->count && i < MOUNTS_MAX; i++) {
		const struct jv *m = &t->mounts->items[i];

		if (t->used[i] || !is_same(m, judged))
			continue;
		if (found == MOUNTS_MAX || is_at(m, target))
			found = i;
	}
	if (found == MOUNTS_MAX)
		return NULL;
	t->used[found] = true;
	return &t->mounts->items[found];
}

/* What stands at the place instead; NULL: nothing that can be told. */
static const struct jv *instead(const struct table *t, const char *target)
{
	const struct jv *last = NULL;

	for (size_t i = 0; t->mounts && i < t->mounts->count; i++)
		if (is_at(&t->mounts->items[i], target))
			last = &t->mounts->items[i];
	return last;
}

static void say_bind(const struct table *t, const char *target, const struct jv *mount)
{
	struct backend_call *call = t->at->call;
	struct jv *list = (struct jv *)jv_get(t->at->ret, "mounts");
	struct jv entry = jv_object();

	if (!list)
		list = jv_set(call->arena, t->at->ret, "mounts", jv_array());
	jv_set(call->arena, &entry, "target", jv_string(target));
	for (size_t i = 0; mount && i < mount->count; i++) {
		struct span key = mount->members[i].key;

		if (span_is(key, "dev") || span_is(key, "ino") || span_is(key, "ro") ||
		    span_is(key, "propagation"))
			jv_set_span(call->arena, &entry, key, mount->members[i].value);
	}
	jv_push(call->arena, list, entry);
}

static void compare_options(const struct docker_attesting *at, const struct jv *judged,
			    const struct jv *mount)
{
	const char *field = jv_str(judged, "field", "");

	/* The gofer has them writable, and the sandbox keeps to what was asked. */
	if (strcmp(jv_str(at->seen, "mounts_of", ""), "process") != 0)
		return;
	if (jv_true(judged, "read_only") && !jv_true(mount, "ro"))
		docker_differs(at, field, "a mount that can be written", "one that cannot");
}

/* Somebody else could have put another thing there: then not to have seen it is too little. */
static void missing(const struct table *t, const struct jv *judged, const char *target)
{
	const struct docker_attesting *at = t->at;
	const char *field = jv_str(judged, "field", "");
	const struct jv *other = instead(t, target);
	bool movable = jv_true(jv_get(judged, "host"), "movable");

	if (t->mounts && (!other || jv_get(other, "ino")))
		docker_differs(at, field,
			       other ? docker_text(at->call, "%s of device %s, inode %lld",
						   jv_str(other, "root", "?"),
						   jv_str(other, "dev", "?"),
						   (long long)jv_num(other, "ino", 0))
				     : "no such mount",
			       jv_str(judged, "source", "?"));
	else if (movable)
		docker_differs(at, field, "nothing that could be looked at",
			       docker_text(at->call, "%s, which others can move, ",
					   jv_str(judged, "source", "?")));
	else
		docker_not_seen(at, field);
}

static void compare_bind(struct table *t, const struct jv *judged)
{
	const struct docker_attesting *at = t->at;
	const char *source = jv_str(judged, "source", "");
	const char *target = docker_clean_path(at->call, span_of(jv_str(judged, "target", "")));
	const struct lookup *looked = docker_ask_path(at->call, source);
	const struct jv *mount = NULL;

	if (looked && looked->status == 200 && t->mounts)
		mount = find_mount(t, target, &looked->body);
	say_bind(t, target, mount ? mount : instead(t, target));
	if (mount)
		compare_options(at, judged, mount);
	else
		missing(t, judged, target);
}

/* --- what explains the others --- */

static bool is_below(const char *path, const char *top)
{
	return strcmp(path, top) != 0 && docker_path_within(top, path);
}

/* Kernel file systems in their places, and the root. */
static bool is_usual(const struct jv *mount)
{
	static const struct {
		const char *type, *top;
	} usual[] = {
		{"proc", "/proc"},   {"tmpfs", "/proc"}, {"sysfs", "/sys"},  {"cgroup", "/sys"},
		{"cgroup2", "/sys"}, {"tmpfs", "/sys"},  {"devpts", "/dev"}, {"mqueue", "/dev"},
	};
	const char *type = jv_str(mount, "type", ""), *point = jv_str(mount, "point", "");

	if (strcmp(point, "/") == 0 || !jv_true(mount, "host"))
		return true;
	if (strcmp(point, "/dev/shm") == 0 && strcmp(type, "tmpfs") == 0 &&
	    strcmp(jv_str(mount, "source", ""), "shm") == 0)
		return true;
	for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
		if (strcmp(type, usual[i].type) == 0 && docker_path_within(usual[i].top, point) &&
		    !(strcmp(type, "tmpfs") == 0 && !is_below(point, usual[i].top)))
			return true;
	return false;
}

/* Files that the engine itself keeps for each container. */
static const struct engine_file {
	const char *key, *point;
} engine_files[] = {
	{"ResolvConfPath", "/etc/resolv.conf"},
	{"HostnamePath", "/etc/hostname"},
	{"HostsPath", "/etc/hosts"},
	/* Podman's: see backends/podman/translate.c */
	{"PasswdPath", "/etc/passwd"},
	{"GroupPath", "/etc/group"},
	{"ContainerenvPath", "/run/.containerenv"},
	{"SecretsPath", "/run/secrets"},
};

static const struct jv *file_seen(const struct table *t, const char *path)
{
	const struct jv *files = jv_get(t->at->seen, "files");

	for (size_t i = 0; files && i < files->count; i++)
		if (strcmp(jv_str(&files->items[i], "path", ""), path) == 0)
			return &files->items[i];
	return NULL;
}

static bool is_engines_file(const struct table *t, const struct jv *mount)
{
	const char *where = jv_str(t->at->doc, "InitPoint", "/sbin/docker-init");
	bool init = jv_true(t->at->facts, "init") && is_at(mount, where) && jv_true(mount, "ro");

	for (size_t i = 0; i < sizeof(engine_files) / sizeof(*engine_files); i++) {
		const char *path = jv_str(t->at->doc, engine_files[i].key, "");

		if (is_at(mount, engine_files[i].point) && *path &&
		    is_same(mount, file_seen(t, path)))
			return true;
	}
	return init;
}

/* Volumes, and images that are mounted: the engine says where it keeps them. */
static bool is_volume(const struct table *t, const struct jv *mount)
{
	const struct jv *list = jv_get(t->at->doc, "Mounts");

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		const struct jv *m = &list->items[i], *kept;

		if (strcmp(jv_str(m, "Type", ""), "bind") == 0)
			continue;
		kept = file_seen(t, jv_str(m, "Source", ""));
		if (kept ? is_same(mount, kept) : is_at(mount, jv_str(m, "Destination", "-")))
			return true;
	}
	return false;
}

/* What hangs below a source comes along with it. */
static bool comes_along(const struct table *t, const struct jv *mount)
{
	int64_t parent = jv_num(mount, "parent", -1);

	for (size_t i = 0; i < t->mounts->count && i < MOUNTS_MAX; i++)
		if (t->used[i] && jv_num(&t->mounts->items[i], "id", -2) == parent)
			return true;
	return false;
}

static bool explain_more(struct table *t)
{
	bool any = false;

	for (size_t i = 0; i < t->mounts->count && i < MOUNTS_MAX; i++) {
		if (t->used[i] || !comes_along(t, &t->mounts->items[i]))
			continue;
		t->used[i] = any = true;
	}
	return any;
}

static void mark_volumes(struct table *t)
{
	for (size_t i = 0; i < t->mounts->count && i < MOUNTS_MAX; i++)
		t->used[i] = t->used[i] || is_volume(t, &t->mounts->items[i]);
}

static void explain_others(struct table *t)
{
	const struct jv *devices = jv_get(t->at->facts, "devices");

	mark_volumes(t);
	while (explain_more(t))
		;
	for (size_t i = 0; i < t->mounts->count && i < MOUNTS_MAX; i++) {
		const struct jv *m = &t->mounts->items[i];
		const char *point = jv_str(m, "point", "?");

		if (t->used[i] || is_usual(m) || is_engines_file(t, m))
			continue;
		if (devices && devices->count) /* they bring files of the host along */
			docker_never_seen(t->at, docker_text(t->at->call, "mount %s", point));
		else
			docker_differs(t->at, docker_text(t->at->call, "mount %s", point),
				       jv_str(m, "root", "a mount"), "no such mount");
	}
}

/* --- together --- */

void docker_attest_mounts(const struct docker_attesting *at)
{
	const struct jv *judged = jv_get(at->facts, "mounts");
	const struct jv *mounts = jv_get(at->seen, "mounts");
	struct table t = {.at = at, .mounts = mounts && mounts->kind == JV_ARRAY ? mounts : NULL};

	for (size_t i = 0; judged && i < judged->count; i++)
		if (strcmp(jv_str(&judged->items[i], "kind", ""), "bind") == 0)
			compare_bind(&t, &judged->items[i]);
	if (jv_true(at->seen, "mounts_cut"))
		docker_never_seen(at, "mounts");
	else if (!t.mounts)
		docker_not_seen(at, "mounts");
	if (t.mounts)
		explain_others(&t);
}

static void ask_file(struct buf *out, const char *path, size_t *count)
{
	if (*path != '/' || *count == 64)
		return;
	buf_puts(out, "file ");
	docker_encode(out, span_of(path), "/");
	buf_puts(out, "\n");
	++*count;
}

void docker_attest_files(struct backend_call *call, const struct jv *doc, struct buf *out)
{
	const struct jv *list = jv_get(doc, "Mounts");
	size_t count = 0;

	(void)call;
	for (size_t i = 0; i < sizeof(engine_files) / sizeof(*engine_files); i++)
		ask_file(out, jv_str(doc, engine_files[i].key, ""), &count);
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		if (strcmp(jv_str(&list->items[i], "Type", ""), "bind") != 0)
			ask_file(out, jv_str(&list->items[i], "Source", ""), &count);
}
