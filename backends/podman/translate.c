/*
 * What Podman says of itself, and of a container, in the form of a Docker engine, so
 * that one reading serves both.  A field that Podman has beside those, and that says
 * something, stays under a name that the reading does not know: it is refused there.
 *
 * Documents may be those of a file of facts, which outlive the call: they are copied, and
 * never written to.
 */
#include "backends/podman/podman_priv.h"

#include <string.h>

static struct jv object_of(const struct jv *v)
{
	return v && v->kind == JV_OBJECT ? *v : jv_object();
}

static bool is_one_of(struct span s, const char *const *words)
{
	for (; *words; words++)
		if (span_is(s, *words))
			return true;
	return false;
}

/* A copy without the members that are named. */
static struct jv without(struct backend_call *call, const struct jv *from, const char *const *names)
{
	struct jv to = jv_object();

	for (size_t i = 0; from && from->kind == JV_OBJECT && i < from->count; i++)
		if (!is_one_of(from->members[i].key, names))
			jv_add(call->arena, &to, from->members[i].key, from->members[i].value);
	return to;
}

/* --- the service --- */

static void add_option(struct arena *a, struct jv *list, const struct jv *security, const char *key,
		       const char *option)
{
	if (jv_true(security, key))
		jv_push(a, list, jv_string(option));
}

static const char *short_name(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash ? slash + 1 : name;
}

/*
 * Without a runtime in it nothing is known of the service.  It does not show that one's arguments:
 * where its processes can be seen, attest.c weighs those of each sandbox that was started.
 */
static void read_service(struct arena *a, bool hidden, struct jv *doc)
{
	const struct jv host = object_of(jv_get(doc, "host"));
	const struct jv *runtime = jv_get(&host, "ociRuntime"),
			*security = jv_get(&host, "security");
	const char *name = jv_str(runtime, "name", ""), *path = jv_str(runtime, "path", "");
	const char *driver = jv_str(&host, "logDriver", "");
	struct jv info = jv_object(), runtimes = jv_object(), one = jv_object(), list = jv_array();

	jv_set(a, &one, "path", jv_string(path));
	jv_set(a, &one, "argsHidden", jv_bool(hidden));
	if (*name)
		jv_set(a, &runtimes, short_name(name), one);
	add_option(a, &list, security, "seccompEnabled", "name=seccomp,profile=default");
	add_option(a, &list, security, "apparmorEnabled", "name=apparmor");
	add_option(a, &list, security, "rootless", "name=rootless");
	jv_set(a, &info, "Runtimes", runtimes);
	jv_set(a, &info, "DefaultRuntime", jv_string(short_name(name)));
	jv_set(a, &info, "RuntimeAlias",
	       jv_string(strcmp(name, short_name(name)) != 0 ? name : ""));
	jv_set(a, &info, "SecurityOptions", list);
	jv_set(a, &info, "LoggingDriver",
	       jv_string(strcmp(driver, "k8s-file") == 0 ? "json-file" : driver));
	jv_set(a, &info, "NCPU", jv_int(jv_num(&host, "cpus", 0)));
	jv_set(a, &info, "CgroupVersion",
	       jv_string(strcmp(jv_str(&host, "cgroupVersion", ""), "v1") == 0 ? "1" : "2"));
	*doc = info;
}

void podman_isolation(const struct jv *doc, struct arena *a, struct isolation_service *ret)
{
	struct jv info = *doc;

	read_service(a, false, &info);
	docker_isolation(&info, a, ret);
}

/* --- a container: capabilities --- */

static bool holds(const struct jv *list, struct span name)
{
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		if (list->items[i].kind == JV_STRING && span_eq(list->items[i].str, name))
			return true;
	return false;
}

static size_t length(const struct jv *list)
{
	return list && list->kind == JV_ARRAY ? list->count : 0;
}

/*
 * Podman writes "all" out.  What is left is BoundingCaps: where most of the ordinary ones are
 * gone, it is what was added after all were dropped, which says the same.
 */
static void say_capabilities(struct backend_call *call, const struct jv *doc, const struct jv *from,
			     struct jv *host)
{
	const struct jv *add = jv_get(from, "CapAdd"), *drop = jv_get(from, "CapDrop");
	const struct jv *left = jv_get(doc, "BoundingCaps");
	size_t kept = 0;

	for (size_t i = 0; i < length(left); i++)
		kept += left->items[i].kind == JV_STRING && !holds(add, left->items[i].str);
	if (length(drop) > kept && !jv_true(from, "Privileged")) {
		struct jv all = jv_array();

		jv_push(call->arena, &all, jv_string("ALL"));
		jv_set(call->arena, host, "CapDrop", all);
		jv_set(call->arena, host, "CapAdd", length(left) ? *left : jv_array());
		return;
	}
	if (add)
		jv_set(call->arena, host, "CapAdd", *add);
	if (drop)
		jv_set(call->arena, host, "CapDrop", *drop);
}

/* --- mounts --- */

/* What Podman itself adds to the options of a mount: all of it holds tighter, or is the default. */
static const char *const own_words[] = {"rw",     "rprivate", "private", "rbind", "bind",
					"nosuid", "nodev",    "noexec",  NULL};
static const char *const own_tmpfs_words[] = {"rw", "rprivate", "private", "tmpcopyup", NULL};

static const char *without_words(struct backend_call *call, struct span options,
				 const char *const *words)
{
	const char *rest = "";
	struct span word;

	while (options.len) {
		span_cut(&options, ',', &word);
		if (!is_one_of(word, words))
			rest = docker_text(call, "%s%s%.*s", rest, *rest ? "," : "",
					   SPAN_FMT(word));
	}
	return rest;
}

static void say_binds(struct backend_call *call, const struct jv *from, struct jv *host)
{
	const struct jv *old = jv_get(from, "Binds");
	struct jv list = jv_array();

	for (size_t i = 0; i < length(old); i++) {
		struct docker_bind b = {.valid = false};
		const char *mode;

		if (old->items[i].kind == JV_STRING)
			b = docker_bind(old->items[i].str);
		if (!b.valid || !b.source.len) {
			jv_push(call->arena, &list, old->items[i]);
			continue;
		}
		mode = without_words(call, b.mode, own_words);
		jv_push(call->arena, &list,
			jv_string(docker_text(call, "%.*s:%.*s%s%s", SPAN_FMT(b.source),
					      SPAN_FMT(b.target), *mode ? ":" : "", mode)));
	}
	jv_set(call->arena, host, "Binds", list);
}

/* What is mounted in memory beside a root that is closed, without anybody asking. */
static bool is_own_tmpfs(const struct jv *from, const struct jv_member *m)
{
	static const char *const places[] = {"/run", "/tmp", "/var/tmp", "/dev/shm", NULL};
	static const char options[] = "rw,rprivate,nosuid,nodev,tmpcopyup";

	return jv_true(from, "ReadonlyRootfs") && is_one_of(m->key, places) &&
	       m->value.kind == JV_STRING && span_is(m->value.str, options);
}

static void say_tmpfs(struct backend_call *call, const struct jv *from, struct jv *host)
{
	const struct jv *old = jv_get(from, "Tmpfs");
	struct jv map = jv_object();

	for (size_t i = 0; old && old->kind == JV_OBJECT && i < old->count; i++) {
		const struct jv_member *m = &old->members[i];

		if (is_own_tmpfs(from, m) || m->value.kind != JV_STRING)
			continue;
		jv_add(call->arena, &map, m->key,
		       jv_string(without_words(call, m->value.str, own_tmpfs_words)));
	}
	jv_set(call->arena, host, "Tmpfs", map);
}

/* --- networks --- */

static bool is_bridge(const char *mode)
{
	return strcmp(mode, "bridge") == 0 || strcmp(mode, "default") == 0 ||
	       strncmp(mode, "slirp4netns", 11) == 0 || strncmp(mode, "pasta", 5) == 0;
}

/* "podman" is what Docker calls "bridge". */
static struct jv networks_of(struct backend_call *call, const struct jv *doc)
{
	const struct jv *old = jv_path(doc, "NetworkSettings.Networks");
	struct jv map = jv_object();

	for (size_t i = 0; old && old->kind == JV_OBJECT && i < old->count; i++) {
		const struct jv_member *m = &old->members[i];

		jv_add(call->arena, &map, span_is(m->key, "podman") ? span_of("bridge") : m->key,
		       m->value);
	}
	return map;
}

/* Of whatever network it is, Podman says "bridge". */
static const char *network_mode(struct backend_call *call, const struct jv *from,
				const struct jv *networks)
{
	const char *mode = jv_str(from, "NetworkMode", "");

	if (!is_bridge(mode))
		return mode;
	if (networks->count && !jv_get(networks, "bridge"))
		return docker_whole(call, networks->members[0].key);
	return "bridge";
}

/* --- limits --- */

/* A limit of processors is shown both ways. */
static bool is_twice(const struct jv *from)
{
	int64_t nano = jv_num(from, "NanoCpus", 0), period = jv_num(from, "CpuPeriod", 0);
	int64_t quota = jv_num(from, "CpuQuota", 0);

	return nano > 0 && period > 0 && quota > 0 && quota < INT64_MAX / 1000000000 &&
	       quota * 1000000000 / period == nano;
}

/* "RLIMIT_NOFILE"; for this and processes there is always one of the service's. */
static void say_ulimits(struct backend_call *call, const struct jv *from, struct jv *host)
{
	const struct jv *old = jv_get(from, "Ulimits");
	struct jv list = jv_array();

	for (size_t i = 0; i < length(old); i++) {
		const char *name = jv_str(&old->items[i], "Name", "");

		if (strcmp(name, "RLIMIT_NOFILE") != 0 && strcmp(name, "RLIMIT_NPROC") != 0)
			jv_push(call->arena, &list, old->items[i]);
	}
	jv_set(call->arena, host, "Ulimits", list);
}

static void say_log(struct backend_call *call, const struct jv *from, struct jv *host)
{
	const struct jv *old = jv_get(from, "LogConfig");
	struct jv log = without(call, old, (const char *const[]){"Path", "Tag", "Size", NULL});

	if (strcmp(jv_str(old, "Type", ""), "k8s-file") == 0)
		jv_set(call->arena, &log, "Type", jv_string("json-file"));
	jv_set(call->arena, host, "LogConfig", log);
}

/* --- what Podman alone has --- */

/* Those of Podman's own, which say what other fields say as well. */
static bool is_own_annotation(struct span key)
{
	return span_starts(key, "io.podman.annotations.") ||
	       span_starts(key, "io.kubernetes.cri-o.") ||
	       span_starts(key, "org.opencontainers.image.") ||
	       span_is(key, "org.systemd.property.KillSignal") ||
	       span_is(key, "org.systemd.property.TimeoutStopUSec") ||
	       span_is(key, "io.container.manager");
}

static void say_annotations(struct backend_call *call, const struct jv *doc, struct jv *host)
{
	const struct jv *all = jv_path(doc, "Config.Annotations");
	struct jv map = jv_object();

	for (size_t i = 0; all && all->kind == JV_OBJECT && i < all->count; i++)
		if (!is_own_annotation(all->members[i].key))
			jv_add(call->arena, &map, all->members[i].key, all->members[i].value);
	if (map.count)
		jv_set(call->arena, host, "Annotations", map);
}

/* No field of Docker's says it, so it stays what it is, and no reading knows it. */
static void say_foreign(struct backend_call *call, const struct jv *doc, const struct jv *from,
			struct jv *host)
{
	const struct jv *secrets = jv_path(doc, "Config.Secrets");
	const char *cgroups = jv_str(from, "Cgroups", "");

	if (*jv_str(doc, "Pod", ""))
		jv_set(call->arena, host, "Pod", jv_string(jv_str(doc, "Pod", "")));
	if (*jv_str(doc, "Rootfs", ""))
		jv_set(call->arena, host, "Rootfs", jv_string(jv_str(doc, "Rootfs", "")));
	if (*cgroups && strcmp(cgroups, "default") != 0 && strcmp(cgroups, "enabled") != 0)
		jv_set(call->arena, host, "Cgroups", jv_string(cgroups));
	if (length(secrets))
		jv_set(call->arena, host, "Secrets", *secrets);
}

/* --- together --- */

static void set_unless(struct backend_call *call, struct jv *host, const struct jv *from,
		       const char *key, const char *usual)
{
	const char *value = jv_str(from, key, "");

	if (*value && strcmp(value, usual) != 0)
		jv_set(call->arena, host, key, jv_string(value));
}

static struct jv host_of(struct backend_call *call, const struct jv *doc, const struct jv *networks)
{
	static const char *const others[] = {"Annotations",      "Binds",          "CapAdd",
					     "CapDrop",          "CgroupManager",  "CgroupMode",
					     "Cgroups",          "CpuPeriod",      "CpuQuota",
					     "DiskQuota",        "LogConfig",      "PidMode",
					     "MemorySwappiness", "Runtime",        "NetworkMode",
					     "ShmSize",          "UTSMode",        "Tmpfs",
					     "Ulimits",          "IntelRdtClosID", NULL};
	const struct jv *from = jv_get(doc, "HostConfig");
	struct jv host = without(call, from, others);

	jv_set(call->arena, &host, "NetworkMode", jv_string(network_mode(call, from, networks)));
	jv_set(call->arena, &host, "Runtime", jv_string(jv_str(doc, "OCIRuntime", "")));
	set_unless(call, &host, from, "PidMode", "private");
	set_unless(call, &host, from, "UTSMode", "private");
	if (*jv_str(from, "CgroupMode", "") && !jv_get(from, "CgroupnsMode"))
		jv_set(call->arena, &host, "CgroupnsMode",
		       jv_string(jv_str(from, "CgroupMode", "")));
	if (!is_twice(from)) {
		jv_set(call->arena, &host, "CpuPeriod", jv_int(jv_num(from, "CpuPeriod", 0)));
		jv_set(call->arena, &host, "CpuQuota", jv_int(jv_num(from, "CpuQuota", 0)));
	}
	if (jv_num(from, "ShmSize", 0) != 65536000)
		jv_set(call->arena, &host, "ShmSize", jv_int(jv_num(from, "ShmSize", 0)));
	say_capabilities(call, doc, from, &host);
	say_binds(call, from, &host);
	say_tmpfs(call, from, &host);
	say_ulimits(call, from, &host);
	say_log(call, from, &host);
	say_annotations(call, doc, &host);
	say_foreign(call, doc, from, &host);
	return host;
}

/* Set by Podman for every container. */
static struct jv env_of(struct backend_call *call, const struct jv *config)
{
	static const char *const own[] = {"TERM=xterm", "container=podman", "container=oci", NULL};
	const struct jv *old = jv_get(config, "Env");
	struct jv list = jv_array();

	for (size_t i = 0; i < length(old); i++)
		if (old->items[i].kind == JV_STRING && !is_one_of(old->items[i].str, own))
			jv_push(call->arena, &list, old->items[i]);
	return list;
}

static struct jv config_of(struct backend_call *call, const struct jv *doc)
{
	const struct jv *from = jv_get(doc, "Config");
	struct jv config = without(call, from, (const char *const[]){"Env", "StopSignal", NULL});

	jv_set(call->arena, &config, "Env", env_of(call, from));
	return config;
}

static const char *folder_of(struct backend_call *call, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? docker_text(call, "%.*s", (int)(slash - path), path) : "";
}

static void say_file(struct backend_call *call, struct jv *doc, const char *key, const char *folder,
		     const char *name)
{
	if (*folder == '/')
		jv_set(call->arena, doc, key, jv_string(docker_text(call, "%s/%s", folder, name)));
}

/* Files that Podman keeps for each container, and where its init stands in it. */
static void say_files(struct backend_call *call, const struct jv *from, struct jv *doc)
{
	const char *kept = jv_str(from, "StaticDir", "");
	const char *run = folder_of(call, jv_str(from, "PidFile", ""));
	const struct jv *command = jv_get(from, "Path");
	bool old = command && command->kind == JV_STRING && span_is(command->str, "/dev/init");

	say_file(call, doc, "PasswdPath", kept, "passwd");
	say_file(call, doc, "GroupPath", kept, "group");
	say_file(call, doc, "ContainerenvPath", run, ".containerenv");
	say_file(call, doc, "SecretsPath", run, "run/secrets");
	jv_set(call->arena, doc, "InitPoint", jv_string(old ? "/dev/init" : "/run/podman-init"));
}

static const char *image_id(struct backend_call *call, const char *id)
{
	return *id && strncmp(id, "sha256:", 7) != 0 ? docker_text(call, "sha256:%s", id) : id;
}

static void read_container(struct backend_call *call, struct jv *doc)
{
	static const char *const others[] = {"Config", "HostConfig", "NetworkSettings",
					     "Image",  "Mounts",     NULL};
	const struct jv *mounts = jv_get(doc, "Mounts");
	struct jv out = without(call, doc, others), settings, networks = networks_of(call, doc);

	if (!jv_get(doc, "Config") || !jv_get(doc, "HostConfig"))
		return; /* it says nothing, and is refused as that */
	settings = without(call, jv_get(doc, "NetworkSettings"),
			   (const char *const[]){"Networks", NULL});
	jv_set(call->arena, &settings, "Networks", networks);
	jv_set(call->arena, &out, "NetworkSettings", settings);
	jv_set(call->arena, &out, "Config", config_of(call, doc));
	jv_set(call->arena, &out, "HostConfig", host_of(call, doc, &networks));
	jv_set(call->arena, &out, "Mounts", length(mounts) ? *mounts : jv_array());
	jv_set(call->arena, &out, "Image", jv_string(image_id(call, jv_str(doc, "Image", ""))));
	say_files(call, doc, &out);
	*doc = out;
}

static void read_image(struct backend_call *call, struct jv *doc)
{
	struct jv out = without(call, doc, (const char *const[]){"Id", NULL});

	jv_set(call->arena, &out, "Id", jv_string(image_id(call, jv_str(doc, "Id", ""))));
	*doc = out;
}

void podman_translate(struct backend_call *call, struct lookup *answer)
{
	struct jv *doc = &answer->body;

	if (doc->kind != JV_OBJECT)
		return;
	/* Of one that is just being removed Podman says so with status 500. */
	if (answer->status >= 500 && strcmp(answer->table, "containers") == 0 &&
	    strcmp(jv_str(doc, "cause", ""), "no such container") == 0)
		answer->status = 404;
	if (answer->status != 200)
		return;
	if (strcmp(answer->table, "info") == 0)
		read_service(call->arena, !call->sees_processes && !call->offline, doc);
	else if (strcmp(answer->table, "containers") == 0)
		read_container(call, doc);
	else if (strcmp(answer->table, "images") == 0)
		read_image(call, doc);
}
