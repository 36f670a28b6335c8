#include "backends/docker/build_priv.h"

#include <string.h>

/* --- reading --- */

/* [a-zA-Z0-9][a-zA-Z0-9_.-]+, with or without a slash in front */
static bool is_name(struct span s)
{
	if (s.len && s.at[0] == '/')
		s = span_skip(s, 1);
	for (size_t i = 0; i < s.len; i++) {
		char c = s.at[i];
		bool alnum =
			(c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

		if (!alnum && !(i && strchr("_.-", c)))
			return false;
	}
	return s.len <= DOCKER_NAME_MAX;
}

bool docker_check_name(struct backend_call *call)
{
	struct span name = docker_query_value(call->req, "name");

	if (is_name(name))
		return true;
	docker_refuse(call, REASON_name, "query.name", docker_cut(call, name))->text =
		"a name has letters, digits, '_', '.' and '-'";
	return false;
}

/* Two spellings of one network would be one key in what is sent. */
static bool check_endpoints(struct backend_call *call, const struct jv *endpoints)
{
	for (size_t i = 0; endpoints && i < endpoints->count; i++) {
		struct span key = endpoints->members[i].key;
		const char *name = docker_network_name(call, docker_whole(call, key));

		for (size_t k = 0; k < i; k++) {
			struct span other = endpoints->members[k].key;

			if (strcmp(name, docker_network_name(call, docker_whole(call, other))) != 0)
				continue;
			docker_refuse(call, REASON_network_endpoint,
				      "NetworkingConfig.EndpointsConfig", name)
				->text = "one network is named twice";
			return false;
		}
	}
	return true;
}

/* Facts of the model; false: not complete yet, or refused. */
static bool read_model(struct docker *d, struct backend_call *call, const struct lookup *image,
		       const struct docker_info *info)
{
	struct docker_state *st = docker_state(call);
	struct docker_reading r = {
		.d = d,
		.call = call,
		.info = info,
		.config = &st->body,
		.host = jv_get(&st->body, "HostConfig"),
		.networking = jv_path(&st->body, "NetworkingConfig.EndpointsConfig"),
		.update = call->replaces.kind == JV_OBJECT,
		.old_id = docker_replaced_id(call),
		.facts = jv_object(),
	};
	struct jv host = jv_null();

	/* What was shown of the other one, and is sent again, holds what the engine chose. */
	if (r.update && r.host) {
		host = docker_without_defaults(call, r.host);
		r.host = &host;
	}

	docker_read_image(&r, jv_str(&st->body, "Image", ""), image);
	docker_read_user(&r, jv_str(jv_get(&image->body, "Config"), "User", ""),
			 image->status == 200);
	st->image_id = jv_str(jv_get(&r.facts, "image"), "id", "");
	st->image_by_id = jv_true(jv_get(&r.facts, "image"), "by_id");
	return check_endpoints(call, r.networking) && docker_read_workload(&r) &&
	       (!st->flavor->accepts || st->flavor->accepts(&r));
}

void docker_step_create(struct docker *d, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	const struct docker_info *info;
	const struct lookup *image;

	if (!docker_body(call, SCHEMA_CONFIG) || !docker_check_name(call) || !docker_speak(d, call))
		return;
	image = docker_ask_image(call, jv_str(&st->body, "Image", ""));
	info = docker_know(d, call);
	if (docker_find_replaced(d, call) && image && info)
		read_model(d, call, image, info);
}

/* --- hardening --- */

static struct jv *host_of(struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	struct jv *host = (struct jv *)jv_get(&st->body, "HostConfig");

	return host ? host : jv_set(call->arena, &st->body, "HostConfig", jv_object());
}

static void set_host(struct backend_call *call, const char *key, struct jv value)
{
	jv_set(call->arena, host_of(call), key, value);
}

static struct jv one_string(struct backend_call *call, const char *s)
{
	struct jv list = jv_array();

	jv_push(call->arena, &list, jv_string(s));
	return list;
}

/*
 * The last one counts, so ours comes last.  One that switches it off stays in
 * the list: what a request asks for is judged as it stands.
 */
static void set_no_new_privileges(struct backend_call *call)
{
	static const char ours[] = "no-new-privileges";
	const struct jv *old = jv_get(host_of(call), "SecurityOpt");
	struct jv list = jv_array();

	for (size_t i = 0; old && i < old->count; i++)
		if (!span_is(old->items[i].str, ours))
			jv_push(call->arena, &list, old->items[i]);
	jv_push(call->arena, &list, jv_string(ours));
	set_host(call, "SecurityOpt", list);
}

/* Below zero is a wish for no limit, and is judged as one. */
static void set_limit(struct backend_call *call, const char *key, struct jv value)
{
	if (jv_num(host_of(call), key, 0) >= 0)
		set_host(call, key, value);
}

/* Endpoints of the network that was meant before go with it, if they set nothing. */
static int set_network(struct backend_call *call, struct jv value, struct err *err)
{
	const struct jv *endpoints =
		jv_path(&docker_state(call)->body, "NetworkingConfig.EndpointsConfig");
	const struct jv *judged = jv_path(&call->workload.facts, "network.endpoints");

	for (size_t i = 0; judged && i < judged->count; i++) {
		const struct jv *settings = jv_get(&judged->items[i], "settings");

		if (settings && settings->count)
			return err_set(err, ERR_CONFIG,
				       "the request sets up an endpoint of another network");
	}
	if (endpoints)
		jv_set(call->arena, &docker_state(call)->body, "NetworkingConfig", jv_object());
	set_host(call, "NetworkMode", value);
	return 0;
}

/* Engines refuse a limit of more processors than the host has: all of them is what is meant then.
 */
static void cap_cpus(struct backend_call *call, struct jv *value)
{
	const struct docker_info *info = docker_state(call)->info;

	if (info && info->cpus > 0 && info->cpus < 4096 && value->kind == JV_INT &&
	    value->i > info->cpus * 1000000000)
		*value = jv_int(info->cpus * 1000000000);
}

static void set_cpus(struct backend_call *call, struct jv *value)
{
	cap_cpus(call, value);
	set_limit(call, "NanoCpus", *value);
	set_limit(call, "CpuQuota", jv_int(0));
	set_host(call, "CpuPeriod", jv_int(0));
}

/* value: path:bytes */
static int set_scratch(struct backend_call *call, struct span value, struct err *err)
{
	struct jv *host = host_of(call), *tmpfs = (struct jv *)jv_get(host, "Tmpfs");
	struct span bytes = value, path;

	if (!span_cut(&bytes, ':', &path) || path.at[0] != '/' || !bytes.len)
		return err_set(err, ERR_CONFIG, "path:bytes is expected");
	if (!tmpfs)
		tmpfs = jv_set(call->arena, host, "Tmpfs", jv_object());
	jv_set(call->arena, tmpfs, docker_whole(call, path),
	       jv_string(docker_text(call, "size=%.*s,noexec,nosuid,nodev", SPAN_FMT(bytes))));
	return 0;
}

/* value: size:files.  It is no wish of the request's, so it is not judged as one. */
static int set_log_limits(struct backend_call *call, struct span value, struct err *err)
{
	struct span files = value, size;

	if (!span_cut(&files, ':', &size) || !size.len || !files.len)
		return err_set(err, ERR_CONFIG, "size:files is expected");
	docker_state(call)->log_limits = value;
	return 0;
}

/* value: name=value */
static int add_label(struct backend_call *call, struct span value, struct err *err)
{
	struct jv *added = &docker_state(call)->labels_added;
	struct span rest = value, name;

	if (!span_cut(&rest, '=', &name) || !name.len)
		return err_set(err, ERR_CONFIG, "name=value is expected");
	if (added->kind != JV_OBJECT)
		*added = jv_object();
	jv_set(call->arena, added, docker_whole(call, name), jv_string(docker_whole(call, rest)));
	return 0;
}

static int change_one(struct backend_call *call, struct change *c, struct err *err)
{
	switch (c->what) {
	case HARDEN_RUNTIME:
		set_host(call, "Runtime", c->value);
		return 0;
	case HARDEN_NETWORK:
		return set_network(call, c->value, err);
	case HARDEN_CAP_DROP_ALL:
		if (c->value.b)
			set_host(call, "CapDrop", one_string(call, "ALL"));
		return 0;
	case HARDEN_NO_NEW_PRIVILEGES:
		if (c->value.b)
			set_no_new_privileges(call);
		return 0;
	case HARDEN_SECCOMP:
		return docker_set_seccomp(call, host_of(call), err);
	case HARDEN_APPARMOR:
		docker_add_security(call, host_of(call), "apparmor", c->value.str);
		return 0;
	case HARDEN_MEMORY:
		set_limit(call, "Memory", c->value);
		set_limit(call, "MemorySwap", c->value);
		return 0;
	case HARDEN_CPUS:
		set_cpus(call, &c->value);
		return 0;
	case HARDEN_PIDS:
		set_limit(call, "PidsLimit", c->value);
		return 0;
	case HARDEN_USER:
		jv_set(call->arena, &docker_state(call)->body, "User", c->value);
		return 0;
	case HARDEN_READ_ONLY:
		set_host(call, "ReadonlyRootfs", c->value);
		return 0;
	case HARDEN_SCRATCH:
		return set_scratch(call, c->value.str, err);
	case HARDEN_LOG_LIMITS:
		return set_log_limits(call, c->value.str, err);
	case HARDEN_AUTO_REMOVE:
		set_host(call, "AutoRemove", c->value);
		return 0;
	case HARDEN_LABEL:
		return add_label(call, c->value.str, err);
	case HARDEN_INIT:
		set_host(call, "Init", c->value);
		return 0;
	case HARDEN_OWN_SOCKET:
		return docker_change_socket(call, host_of(call), c, err);
	case HARDEN_IMAGE:
		docker_state(call)->image_pinned = docker_whole(call, c->value.str);
		return 0;
	case HARDEN_NONE:
	case HARDEN_COUNT:
		break;
	}
	return err_set(err, ERR_CONFIG, "an unknown change");
}

static const char *field_of(enum harden what)
{
	for (const struct fact_name *n = docker_fact_names; n->fact; n++)
		if (strcmp(n->fact, harden_fact(what)) == 0)
			return n->field;
	return "";
}

int docker_apply(struct backend *be, struct backend_call *call, struct change *changes,
		 size_t count, struct err *err)
{
	struct docker_state *st = docker_state(call);
	const struct lookup *image;

	if (!count)
		return 0;
	if (call->op != OP_CONTAINER_CREATE && call->op != OP_IMAGE_BUILD)
		return err_set(err, ERR_CONFIG, "%s cannot be changed", operation_name(call->op));
	for (size_t i = 0; i < count; i++) {
		if (changes[i].value.kind != harden_kind(changes[i].what))
			return err_set(err, ERR_CONFIG, "%s takes another kind of value",
				       harden_fact(changes[i].what));
		changes[i].field = field_of(changes[i].what);
		if (change_one(call, &changes[i], err) < 0)
			return err_wrap(err, "%s", harden_fact(changes[i].what));
	}
	st->sealed = true;
	if (call->op == OP_IMAGE_BUILD)
		return docker_build_again(docker_of(be), call)
			       ? 0
			       : err_set(err, ERR_CONFIG, "the hardened build cannot be read");
	image = docker_ask_image(call, jv_str(&st->body, "Image", ""));
	if (!image || !st->info || !read_model(docker_of(be), call, image, st->info))
		return err_set(err, ERR_CONFIG, "the hardened request cannot be read");
	return 0;
}

/* --- the document that is sent --- */

static struct jv copied(struct backend_call *call, const struct jv *from)
{
	struct jv to = jv_object();

	for (size_t i = 0; from && from->kind == JV_OBJECT && i < from->count; i++)
		jv_add(call->arena, &to, from->members[i].key, from->members[i].value);
	return to;
}

void docker_label(struct backend_call *call, struct jv *doc, const char *key)
{
	struct jv labels = copied(call, jv_get(doc, key));

	/* What replaces nobody's is nobody's. */
	if (*docker_maker(call))
		jv_set(call->arena, &labels, GATE_LABEL_OWNER, jv_string(docker_maker(call)));
	jv_set(call->arena, &labels, GATE_LABEL_ID, jv_string(call->id));
	jv_set(call->arena, doc, key, labels);
}

static bool volume_exists(struct backend_call *call, struct span name)
{
	const struct lookup *answer = docker_ask(call, docker_target(call, "/volumes/", name, ""),
						 "volumes", docker_whole(call, name));

	return !answer || answer->status != 404;
}

/* What the long form can say, or need not: consistency is of other systems. */
static bool only_plain_words(struct span mode)
{
	static const char *const plain[] = {"ro",     "rw",        "nocopy",
					    "cached", "delegated", "consistent"};
	struct span word;

	/* Both is an error of the engine's, and stays one. */
	if (docker_mode_has(mode, "ro") && docker_mode_has(mode, "rw"))
		return false;
	while (mode.len) {
		bool known = false;

		span_cut(&mode, ',', &word);
		for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
			known = known || span_is(word, plain[i]);
		if (!known)
			return false;
	}
	return true;
}

/* A volume that will be made now can be labelled only in the long form. */
static struct jv long_form(struct backend_call *call, const struct docker_bind *b)
{
	struct jv mount = jv_object(), options = jv_object();

	jv_set(call->arena, &mount, "Type", jv_string("volume"));
	jv_set(call->arena, &mount, "Source", jv_span(b->source));
	jv_set(call->arena, &mount, "Target", jv_span(b->target));
	if (docker_mode_has(b->mode, "ro"))
		jv_set(call->arena, &mount, "ReadOnly", jv_bool(true));
	if (docker_mode_has(b->mode, "nocopy"))
		jv_set(call->arena, &options, "NoCopy", jv_bool(true));
	docker_label(call, &options, "Labels");
	jv_set(call->arena, &mount, "VolumeOptions", options);
	return mount;
}

static void write_binds(struct backend_call *call, struct jv *host, struct jv *mounts)
{
	const struct jv *old = jv_get(host, "Binds");
	bool plain = !*jv_str(host, "VolumeDriver", "");
	struct jv list = jv_array();

	for (size_t i = 0; old && i < old->count; i++) {
		struct docker_bind b = docker_bind(old->items[i].str);

		if (b.is_path)
			jv_push(call->arena, &list,
				jv_string(docker_text(call, "%s:%.*s%s%.*s",
						      docker_clean_path(call, b.source),
						      SPAN_FMT(b.target), b.mode.len ? ":" : "",
						      SPAN_FMT(b.mode))));
		else if (b.source.len && plain && only_plain_words(b.mode) &&
			 !volume_exists(call, b.source))
			jv_push(call->arena, mounts, long_form(call, &b));
		else
			jv_push(call->arena, &list, old->items[i]);
	}
	if (old)
		jv_set(call->arena, host, "Binds", list);
}

static void write_mounts(struct backend_call *call, const struct jv *host, struct jv *mounts)
{
	const struct jv *old = jv_get(host, "Mounts");

	for (size_t i = 0; old && i < old->count; i++) {
		struct jv mount = copied(call, &old->items[i]);
		const char *type = jv_str(&mount, "Type", "");
		struct jv options;

		if (strcmp(type, "bind") == 0)
			jv_set(call->arena, &mount, "Source",
			       jv_string(docker_clean_path(call,
							   span_of(jv_str(&mount, "Source", "")))));
		if (strcmp(type, "volume") == 0) {
			options = copied(call, jv_get(&mount, "VolumeOptions"));
			docker_label(call, &options, "Labels");
			jv_set(call->arena, &mount, "VolumeOptions", options);
		}
		jv_push(call->arena, mounts, mount);
	}
}

/* Containers whose namespaces are joined, and the caller's own networks: by full id.  Other
 * networks: by their own name. */
static void write_modes(struct backend_call *call, struct jv *host)
{
	static const char *const keys[] = {"PidMode", "IpcMode", "UTSMode", "NetworkMode"};
	const char *network = jv_str(host, "NetworkMode", "");

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		struct span mode = span_of(jv_str(host, keys[i], ""));

		if (span_starts(mode, "container:"))
			jv_set(call->arena, host, keys[i],
			       jv_string(docker_text(call, "container:%s",
						     docker_joined_id(call, mode))));
	}
	if (*network && strncmp(network, "container:", 10) != 0 && strcmp(network, "bridge") != 0)
		jv_set(call->arena, host, "NetworkMode",
		       jv_string(docker_network_sent(call, network)));
}

static void write_endpoints(struct backend_call *call, struct jv *doc)
{
	const struct jv *old = jv_path(doc, "NetworkingConfig.EndpointsConfig");
	struct jv endpoints = jv_object(), networking = jv_object();

	if (!old || !old->count)
		return;
	for (size_t i = 0; i < old->count; i++) {
		struct span key = old->members[i].key;
		const char *name = docker_network_name(call, docker_whole(call, key));
		bool same = strcmp(name, "default") == 0;

		jv_add(call->arena, &endpoints, same ? key : span_of(name), old->members[i].value);
	}
	jv_set(call->arena, &networking, "EndpointsConfig", endpoints);
	jv_set(call->arena, doc, "NetworkingConfig", networking);
}

/* The name stays on the object, for people; with a digest it is what a start is judged by. */
static void write_pinned(struct backend_call *call, struct jv *doc)
{
	struct jv *labels = (struct jv *)jv_get(doc, "Labels");

	jv_set(call->arena, labels, GATE_LABEL_IMAGE, jv_string(jv_str(doc, "Image", "")));
	jv_set(call->arena, doc, "Image", jv_string(docker_state(call)->image_pinned));
}

/* The name that was judged stays on the object; what it is made of is what was looked at. */
static void write_image_id(struct backend_call *call, struct jv *doc)
{
	struct docker_state *st = docker_state(call);
	struct jv *labels = (struct jv *)jv_get(doc, "Labels");
	const char *given = jv_str(&st->body, "Image", "");

	if (!st->image_by_id)
		jv_set(call->arena, labels, GATE_LABEL_IMAGE, jv_string(given));
	jv_set(call->arena, doc, "Image", jv_string(st->image_id));
}

/* What it is held against when it is judged again: see GATE_LABEL_ISOLATION. */
static void write_judged(struct backend_call *call, struct jv *doc)
{
	struct jv *labels = (struct jv *)jv_get(doc, "Labels");
	const char *level = jv_str(jv_get(&call->workload.facts, "isolation"), "level", "none");
	enum isolation judged = ISOLATION_NONE;

	if (call->replaces.kind == JV_OBJECT) {
		docker_keep_standard(call, labels);
		return;
	}
	if (!call->profile || !*call->profile || isolation_find(span_of(level), &judged) < 0)
		return;
	if (call->minimum < judged)
		judged = call->minimum;
	jv_set(call->arena, labels, GATE_LABEL_PROFILE, jv_string(call->profile));
	jv_set(call->arena, labels, GATE_LABEL_ISOLATION, jv_string(isolation_name(judged)));
	if (call->listener && *call->listener)
		jv_set(call->arena, labels, GATE_LABEL_LISTENER, jv_string(call->listener));
}

/* The bounds are those of the driver that keeps files, which hardening made sure of. */
static void write_log_limits(struct backend_call *call, struct jv *host)
{
	struct span files = docker_state(call)->log_limits, size;
	struct jv log = jv_object(), config = jv_object();

	if (!span_cut(&files, ':', &size))
		return;
	jv_set(call->arena, &config, "max-file", jv_string(docker_whole(call, files)));
	jv_set(call->arena, &config, "max-size", jv_string(docker_whole(call, size)));
	jv_set(call->arena, &log, "Type", jv_string("json-file"));
	jv_set(call->arena, &log, "Config", config);
	jv_set(call->arena, host, "LogConfig", log);
}

static void write_labels_added(struct backend_call *call, struct jv *doc)
{
	const struct jv *added = &docker_state(call)->labels_added;
	struct jv *labels = (struct jv *)jv_get(doc, "Labels");

	for (size_t i = 0; added->kind == JV_OBJECT && i < added->count; i++)
		jv_set_span(call->arena, labels, added->members[i].key, added->members[i].value);
}

/*
 * Made when it is sent, from the judged model and the answers that were judged
 * with it, so that what was given by a name goes out as what was found.
 */
struct jv docker_create_document(struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	struct jv doc = copied(call, &st->body);
	struct jv host = copied(call, jv_get(&doc, "HostConfig")), mounts = jv_array();

	st->sealed = true;
	if (st->image_by_id && *st->image_id)
		jv_set(call->arena, &doc, "Image", jv_string(st->image_id));
	docker_label(call, &doc, "Labels");
	write_judged(call, &doc);
	write_labels_added(call, &doc);
	docker_write_filters(call, &host);
	write_log_limits(call, &host);
	if (st->image_pinned)
		write_pinned(call, &doc);
	if (st->flavor->image_by_id_only && *st->image_id)
		write_image_id(call, &doc);
	write_mounts(call, &host, &mounts);
	write_binds(call, &host, &mounts);
	if (mounts.count)
		jv_set(call->arena, &host, "Mounts", mounts);
	write_modes(call, &host);
	if (st->flavor->finish)
		st->flavor->finish(call, &doc, &host);
	host = docker_in_order(call->arena, SCHEMA_HOST, &host);
	jv_set(call->arena, &doc, "HostConfig", host);
	write_endpoints(call, &doc);
	st->sent = docker_in_order(call->arena, SCHEMA_CONFIG, &doc);
	return st->sent;
}
