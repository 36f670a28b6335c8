/*
 * A create of Podman's own tree, said in the words of the compatible one: that document is what is
 * judged, hardened and sent, so that both trees have one reading and one rendering.  What has no
 * word there is refused in fields.def, or here.
 */
#include "backends/podman/podman_priv.h"

#include <string.h>

struct spec {
	struct backend_call *call;
	const struct jv *from;
	struct jv config, host, endpoints, options, binds, tmpfs;
	const char *network;
};

static size_t length(const struct jv *list)
{
	return list && list->kind == JV_ARRAY ? list->count : 0;
}

static const struct jv *given(const struct jv *from, const char *key)
{
	const struct jv *v = jv_get(from, key);

	return v && !jv_is_neutral(v) ? v : NULL;
}

static void refuse(struct spec *s, enum reason reason, const char *field, const char *value,
		   const char *text)
{
	docker_refuse(s->call, reason, field, value)->text = text;
}

/* --- what is only named otherwise --- */

struct renaming {
	const char *from, *to;
};

static void rename_all(struct spec *s, const struct jv *from, struct jv *to,
		       const struct renaming *names)
{
	for (; names->from; names++) {
		const struct jv *v = given(from, names->from);

		if (v)
			jv_set(s->call->arena, to, names->to, *v);
	}
}

static const struct renaming of_config[] = {
	{"image", "Image"},
	{"command", "Cmd"},
	{"entrypoint", "Entrypoint"},
	{"labels", "Labels"},
	{"user", "User"},
	{"work_dir", "WorkingDir"},
	{"hostname", "Hostname"},
	{"terminal", "Tty"},
	{"stdin", "OpenStdin"},
	{"stop_timeout", "StopTimeout"},
	{"healthconfig", "Healthcheck"},
	{NULL, NULL},
};

static const struct renaming of_host[] = {
	{"privileged", "Privileged"},
	{"cap_add", "CapAdd"},
	{"cap_drop", "CapDrop"},
	{"read_only_filesystem", "ReadonlyRootfs"},
	{"groups", "GroupAdd"},
	{"remove", "AutoRemove"},
	{"init", "Init"},
	{"volumes_from", "VolumesFrom"},
	{"shm_size", "ShmSize"},
	{"sysctl", "Sysctls"},
	{"oom_score_adj", "OomScoreAdj"},
	{"cgroup_parent", "CgroupParent"},
	{"oci_runtime", "Runtime"},
	{"hostadd", "ExtraHosts"},
	{"dns_server", "Dns"},
	{"dns_search", "DnsSearch"},
	{"dns_option", "DnsOptions"},
	{"publish_image_ports", "PublishAllPorts"},
	{NULL, NULL},
};

static void say_env(struct spec *s)
{
	const struct jv *env = given(s->from, "env");
	struct jv list = jv_array();

	for (size_t i = 0; env && i < env->count; i++)
		jv_push(s->call->arena, &list,
			jv_string(docker_text(s->call, "%.*s=%.*s", SPAN_FMT(env->members[i].key),
					      SPAN_FMT(env->members[i].value.str))));
	if (list.count)
		jv_set(s->call->arena, &s->config, "Env", list);
}

/* Podman's own client sends one for every container. */
static void say_annotations(struct spec *s)
{
	const struct jv *map = given(s->from, "annotations");
	struct jv rest = jv_object();

	for (size_t i = 0; map && i < map->count; i++)
		if (!span_is(map->members[i].key, "io.kubernetes.cri-o.TTY"))
			jv_add(s->call->arena, &rest, map->members[i].key, map->members[i].value);
	if (rest.count)
		jv_set(s->call->arena, &s->host, "Annotations", rest);
}

/* Words of which this one alone can be kept. */
static void check_word(struct spec *s, const char *key, const char *usual, const char *other,
		       enum reason reason)
{
	const char *word = jv_str(s->from, key, "");

	if (*word && strcmp(word, usual) != 0 && strcmp(word, other) != 0)
		refuse(s, reason, key, word, "what is sent has no word for this");
}

static void check_words(struct spec *s)
{
	static const char *const switches[] = {"use_image_hosts", "use_image_resolve_conf"};

	check_word(s, "umask", "0022", "", REASON_json_unknown);
	check_word(s, "image_volume_mode", "anonymous", "", REASON_mount_type);
	check_word(s, "seccomp_policy", "default", "", REASON_security_opt);
	check_word(s, "cgroups_mode", "enabled", "default", REASON_cgroup_parent);
	for (size_t i = 0; i < sizeof(switches) / sizeof(*switches); i++)
		if (jv_true(s->from, switches[i]))
			refuse(s, REASON_extra_hosts, switches[i], "true",
			       "what is sent has no word for this");
}

/* --- security --- */

static void add_option(struct spec *s, const char *before, struct span value)
{
	jv_push(s->call->arena, &s->options,
		jv_string(docker_text(s->call, "%s%.*s", before, SPAN_FMT(value))));
}

static void say_options(struct spec *s)
{
	const struct jv *labels = given(s->from, "selinux_opts");
	const char *apparmor = jv_str(s->from, "apparmor_profile", "");

	if (jv_true(s->from, "no_new_privileges"))
		add_option(s, "no-new-privileges", span_of(""));
	for (size_t i = 0; i < length(labels); i++)
		add_option(s, "label=", labels->items[i].str);
	if (*apparmor)
		add_option(s, "apparmor=", span_of(apparmor));
	if (s->options.count)
		jv_set(s->call->arena, &s->host, "SecurityOpt", s->options);
}

/* --- namespaces --- */

/* "" is the service's default; a path of the host has no word. */
static const char *mode_of(struct spec *s, const char *key)
{
	const struct jv *ns = jv_get(s->from, key);
	const char *mode = jv_str(ns, "nsmode", ""), *value = jv_str(ns, "value", "");

	if (strcmp(mode, "container") == 0)
		return docker_text(s->call, "container:%s", value);
	if (!*value && (!*mode || strcmp(mode, "default") == 0 || strcmp(mode, "private") == 0))
		return "";
	if (!*value && strcmp(mode, "host") == 0)
		return mode;
	if (strcmp(key, "ipcns") == 0 && !*value &&
	    (strcmp(mode, "shareable") == 0 || strcmp(mode, "none") == 0))
		return mode;
	refuse(s, REASON_namespace, key, docker_text(s->call, "%s:%s", mode, value),
	       "a namespace is the container's own, the host's, or another container's");
	return "";
}

static void say_namespaces(struct spec *s)
{
	static const struct renaming modes[] = {
		{"pidns", "PidMode"},     {"ipcns", "IpcMode"},         {"utsns", "UTSMode"},
		{"userns", "UsernsMode"}, {"cgroupns", "CgroupnsMode"},
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		const char *mode = mode_of(s, modes[i].from);

		if (*mode)
			jv_set(s->call->arena, &s->host, modes[i].to, jv_string(mode));
	}
	/* A network of its own is the default one, and private says so for groups. */
	if (strcmp(jv_str(jv_get(s->from, "cgroupns"), "nsmode", ""), "private") == 0)
		jv_set(s->call->arena, &s->host, "CgroupnsMode", jv_string("private"));
}

/* --- the network --- */

static void add_endpoint(struct spec *s, const struct jv_member *m)
{
	struct jv endpoint = jv_object(), ipam = jv_object();
	const struct jv *ips = given(&m->value, "static_ips"), *names = given(&m->value, "aliases");
	const char *mac = jv_str(&m->value, "static_mac", "");

	if (length(ips) > 1)
		refuse(s, REASON_network_endpoint, "Networks.static_ips", NULL,
		       "what is sent has one address for each network");
	if (length(ips) == 1) {
		bool six = memchr(ips->items[0].str.at, ':', ips->items[0].str.len) != NULL;

		jv_set(s->call->arena, &ipam, six ? "IPv6Address" : "IPv4Address", ips->items[0]);
		jv_set(s->call->arena, &endpoint, "IPAMConfig", ipam);
	}
	if (names)
		jv_set(s->call->arena, &endpoint, "Aliases", *names);
	if (*mac)
		jv_set(s->call->arena, &endpoint, "MacAddress", jv_string(mac));
	jv_add(s->call->arena, &s->endpoints, m->key, endpoint);
}

static const char *network_word(struct spec *s)
{
	const struct jv *ns = jv_get(s->from, "netns");
	const char *mode = jv_str(ns, "nsmode", ""), *value = jv_str(ns, "value", "");

	if (strcmp(mode, "container") == 0)
		return docker_text(s->call, "container:%s", value);
	if (!*value && (strcmp(mode, "none") == 0 || strcmp(mode, "host") == 0))
		return mode;
	if (*value || (*mode && strcmp(mode, "bridge") != 0 && strcmp(mode, "default") != 0 &&
		       strcmp(mode, "private") != 0))
		refuse(s, REASON_network, "netns", docker_text(s->call, "%s:%s", mode, value),
		       "a network is none, a bridge, the host's, or another container's");
	if (s->endpoints.count)
		return docker_whole(s->call, s->endpoints.members[0].key);
	return *mode ? "bridge" : "";
}

static void say_networks(struct spec *s)
{
	const struct jv *old = given(s->from, "Networks"), *new = given(s->from, "networks");
	const struct jv *map = old ? old : new;
	struct jv networking = jv_object();

	if (old && new)
		refuse(s, REASON_json_duplicate, "networks", NULL,
		       "Networks and networks are one field");
	for (size_t i = 0; map && i < map->count; i++)
		add_endpoint(s, &map->members[i]);
	s->network = network_word(s);
	if (*s->network)
		jv_set(s->call->arena, &s->host, "NetworkMode", jv_string(s->network));
	if (!s->endpoints.count)
		return;
	jv_set(s->call->arena, &networking, "EndpointsConfig", s->endpoints);
	jv_set(s->call->arena, &s->config, "NetworkingConfig", networking);
}

static void say_ports(struct spec *s)
{
	const struct jv *list = given(s->from, "portmappings");
	struct jv map = jv_object();

	for (size_t i = 0; i < length(list); i++) {
		const struct jv *one = &list->items[i];
		const char *protocol = jv_str(one, "protocol", "");
		const char *key =
			docker_text(s->call, "%lld/%s", (long long)jv_num(one, "container_port", 0),
				    *protocol ? protocol : "tcp");
		struct jv *bindings = (struct jv *)jv_get(&map, key), binding = jv_object();
		int64_t port = jv_num(one, "host_port", 0);

		if (strchr(protocol, ','))
			refuse(s, REASON_port, "portmappings.protocol", protocol,
			       "each protocol has a mapping of its own");
		if (!bindings)
			bindings = jv_set(s->call->arena, &map, key, jv_array());
		jv_set(s->call->arena, &binding, "HostIp", jv_string(jv_str(one, "host_ip", "")));
		jv_set(s->call->arena, &binding, "HostPort",
		       jv_string(port ? docker_text(s->call, "%lld", (long long)port) : ""));
		jv_push(s->call->arena, bindings, binding);
	}
	if (map.count)
		jv_set(s->call->arena, &s->host, "PortBindings", map);
}

/* --- mounts --- */

/* The client's way to say what is the default of a bind. */
static bool says_nothing(struct span option)
{
	static const char *const words[] = {"rw", "rbind", "bind", "rprivate", "private"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (span_is(option, words[i]))
			return true;
	return false;
}

static const char *joined(struct spec *s, const struct jv *options, bool all)
{
	const char *text = "";

	for (size_t i = 0; i < length(options); i++) {
		struct span one = options->items[i].str;

		if (memchr(one.at, ',', one.len) || memchr(one.at, ':', one.len))
			refuse(s, REASON_mount_type, "mounts.options", docker_cut(s->call, one),
			       "an option is one word");
		if (all || !says_nothing(one))
			text = docker_text(s->call, "%s%s%.*s", text, *text ? "," : "",
					   SPAN_FMT(one));
	}
	return text;
}

static void add_bind(struct spec *s, const char *field, const char *source, const char *target,
		     const struct jv *options)
{
	const char *mode = joined(s, options, false);

	if (strchr(source, ':') || strchr(target, ':')) {
		refuse(s, REASON_mount_type, field, source, "a path with a colon cannot be sent");
		return;
	}
	jv_push(s->call->arena, &s->binds,
		jv_string(
			docker_text(s->call, "%s:%s%s%s", source, target, *mode ? ":" : "", mode)));
}

/* What the client adds to a closed root, and the service adds by itself in the compatible tree. */
static bool is_clients_tmpfs(const char *target, const char *options)
{
	return strcmp(options, "rw,rprivate,nosuid,nodev,tmpcopyup") == 0 &&
	       (strcmp(target, "/run") == 0 || strcmp(target, "/tmp") == 0 ||
		strcmp(target, "/var/tmp") == 0);
}

static const char *tmpfs_options(struct spec *s, const struct jv *options)
{
	static const char *const own[] = {"rw", "rprivate", "private", "tmpcopyup"};
	const char *text = "";

	for (size_t i = 0; i < length(options); i++) {
		struct span one = options->items[i].str;
		bool skip = false;

		for (size_t k = 0; k < sizeof(own) / sizeof(*own); k++)
			skip = skip || span_is(one, own[k]);
		if (!skip)
			text = docker_text(s->call, "%s%s%.*s", text, *text ? "," : "",
					   SPAN_FMT(one));
	}
	return text;
}

static void add_mount(struct spec *s, size_t i, const struct jv *one)
{
	const char *field = docker_text(s->call, "mounts[%zu]", i);
	const char *type = jv_str(one, "type", ""), *source = jv_str(one, "source", "");
	const char *target = jv_str(one, "destination", "");
	const struct jv *options = jv_get(one, "options");

	if (strcmp(type, "bind") == 0 && *source == '/') {
		add_bind(s, field, source, target, options);
	} else if (strcmp(type, "tmpfs") == 0) {
		if (jv_true(s->from, "read_only_filesystem") &&
		    is_clients_tmpfs(target, joined(s, options, true)))
			return;
		jv_set(s->call->arena, &s->tmpfs, target, jv_string(tmpfs_options(s, options)));
	} else {
		refuse(s, REASON_mount_type, field, type,
		       "binds of whole paths, and tmpfs, are the mounts that are taken here");
	}
}

static void say_mounts(struct spec *s)
{
	const struct jv *mounts = given(s->from, "mounts"), *volumes = given(s->from, "volumes");
	struct jv own = jv_object();

	for (size_t i = 0; i < length(mounts); i++)
		add_mount(s, i, &mounts->items[i]);
	for (size_t i = 0; i < length(volumes); i++) {
		const struct jv *v = &volumes->items[i];
		const char *name = jv_str(v, "Name", ""), *target = jv_str(v, "Dest", "");

		if (*name == '/')
			refuse(s, REASON_mount_type, docker_text(s->call, "volumes[%zu]", i), name,
			       "this is no name of a volume");
		else if (*name)
			add_bind(s, docker_text(s->call, "volumes[%zu]", i), name, target,
				 jv_get(v, "Options"));
		else
			jv_set(s->call->arena, &own, target, jv_object());
	}
	if (s->binds.count)
		jv_set(s->call->arena, &s->host, "Binds", s->binds);
	if (s->tmpfs.count)
		jv_set(s->call->arena, &s->host, "Tmpfs", s->tmpfs);
	if (own.count)
		jv_set(s->call->arena, &s->config, "Volumes", own);
}

static void say_devices(struct spec *s)
{
	const struct jv *list = given(s->from, "devices");
	struct jv devices = jv_array();

	for (size_t i = 0; i < length(list); i++) {
		const char *path = jv_str(&list->items[i], "path", "");
		struct jv one = jv_object();

		jv_set(s->call->arena, &one, "PathOnHost", jv_string(path));
		jv_set(s->call->arena, &one, "PathInContainer", jv_string(path));
		jv_set(s->call->arena, &one, "CgroupPermissions", jv_string("rwm"));
		jv_push(s->call->arena, &devices, one);
	}
	if (devices.count)
		jv_set(s->call->arena, &s->host, "Devices", devices);
}

/* --- limits --- */

static void say_limits(struct spec *s)
{
	static const struct renaming memory[] = {
		{"limit", "Memory"},
		{"swap", "MemorySwap"},
		{"reservation", "MemoryReservation"},
		{"swappiness", "MemorySwappiness"},
		{"disableOOMKiller", "OomKillDisable"},
		{NULL, NULL},
	};
	static const struct renaming cpu[] = {
		{"shares", "CpuShares"}, {"quota", "CpuQuota"},  {"period", "CpuPeriod"},
		{"cpus", "CpusetCpus"},  {"mems", "CpusetMems"}, {NULL, NULL},
	};
	static const struct renaming pids[] = {{"limit", "PidsLimit"}, {NULL, NULL}};
	const struct jv *limits = jv_get(s->from, "resource_limits");

	rename_all(s, jv_get(limits, "memory"), &s->host, memory);
	rename_all(s, jv_get(limits, "cpu"), &s->host, cpu);
	rename_all(s, jv_get(limits, "pids"), &s->host, pids);
}

static void say_rlimits(struct spec *s)
{
	const struct jv *list = given(s->from, "r_limits");
	struct jv out = jv_array();

	for (size_t i = 0; i < length(list); i++) {
		const char *type = jv_str(&list->items[i], "type", "");
		struct jv one = jv_object();

		if (strncmp(type, "RLIMIT_", 7) == 0)
			type += 7;
		jv_set(s->call->arena, &one, "Name", jv_string(type));
		jv_set(s->call->arena, &one, "Soft", jv_int(jv_num(&list->items[i], "soft", 0)));
		jv_set(s->call->arena, &one, "Hard", jv_int(jv_num(&list->items[i], "hard", 0)));
		jv_push(s->call->arena, &out, one);
	}
	if (out.count)
		jv_set(s->call->arena, &s->host, "Ulimits", out);
}

static void say_life(struct spec *s)
{
	const char *policy = jv_str(s->from, "restart_policy", "");
	int64_t tries = jv_num(s->from, "restart_tries", 0),
		signal = jv_num(s->from, "stop_signal", 0);
	struct jv restart = jv_object();

	if (*policy) {
		jv_set(s->call->arena, &restart, "Name", jv_string(policy));
		if (tries)
			jv_set(s->call->arena, &restart, "MaximumRetryCount", jv_int(tries));
		jv_set(s->call->arena, &s->host, "RestartPolicy", restart);
	}
	if (signal)
		jv_set(s->call->arena, &s->config, "StopSignal",
		       jv_string(docker_text(s->call, "%lld", (long long)signal)));
}

static void say_log(struct spec *s)
{
	const struct jv *from = jv_get(s->from, "log_configuration");
	const struct jv *options = given(from, "options");
	const char *driver = jv_str(from, "driver", "");
	struct jv log = jv_object(), config = options ? *options : jv_object();

	if (jv_num(from, "size", 0) > 0)
		refuse(s, REASON_log_driver, "log_configuration.size", NULL,
		       "say it as the option max-size");
	if (!*driver && !options)
		return;
	jv_set(s->call->arena, &log, "Type",
	       jv_string(strcmp(driver, "k8s-file") == 0 ? "json-file" : driver));
	jv_set(s->call->arena, &log, "Config", config);
	jv_set(s->call->arena, &s->host, "LogConfig", log);
}

/* --- together --- */

static void translate(struct spec *s)
{
	rename_all(s, s->from, &s->config, of_config);
	rename_all(s, s->from, &s->host, of_host);
	/* An empty one takes the image's away, which is not the same as none. */
	if (jv_get(s->from, "entrypoint") && jv_get(s->from, "entrypoint")->kind != JV_NULL)
		jv_set(s->call->arena, &s->config, "Entrypoint", *jv_get(s->from, "entrypoint"));
	if (jv_get(s->from, "init") && jv_get(s->from, "init")->kind == JV_BOOL)
		jv_set(s->call->arena, &s->host, "Init", *jv_get(s->from, "init"));
	if (jv_true(s->from, "stdin"))
		jv_set(s->call->arena, &s->config, "AttachStdin", jv_bool(true));
	say_env(s);
	say_annotations(s);
	check_words(s);
	say_options(s);
	say_namespaces(s);
	say_networks(s);
	say_ports(s);
	say_mounts(s);
	say_devices(s);
	say_limits(s);
	say_rlimits(s);
	say_life(s);
	say_log(s);
	jv_set(s->call->arena, &s->config, "HostConfig", s->host);
}

bool podman_read_spec(struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	struct spec s = {.call = call,
			 .from = &st->body,
			 .config = jv_object(),
			 .host = jv_object(),
			 .endpoints = jv_object(),
			 .options = jv_array(),
			 .binds = jv_array(),
			 .tmpfs = jv_object(),
			 .network = ""};
	struct jv from = st->body;

	if (!docker_body(call, SCHEMA_SPEC))
		return false;
	from = st->body;
	s.from = &from;
	translate(&s);
	if (call->refused.count)
		st->parsed = false; /* the same is read, and refused, again */
	else
		st->body = s.config;
	return !call->refused.count;
}
