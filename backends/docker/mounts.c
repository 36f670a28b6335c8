#include "backends/docker/docker_priv.h"

#include <string.h>

/* --- the short form --- */

bool docker_mode_has(struct span mode, const char *word)
{
	struct span one;

	while (mode.len) {
		span_cut(&mode, ',', &one);
		if (span_is(one, word))
			return true;
	}
	return false;
}

/* source:target:mode, source:target, or a target alone; more parts are an error. */
struct docker_bind docker_bind(struct span text)
{
	struct docker_bind b = {.mode = {"", 0}, .source = {"", 0}};
	struct span rest = text, parts[3];
	size_t count = 0;
	bool more = true;

	while (more && count < 3)
		more = span_cut(&rest, ':', &parts[count++]);
	if (more || !parts[0].len)
		return b;
	b.target = parts[count > 1];
	if (count > 1)
		b.source = parts[0];
	if (count > 2)
		b.mode = parts[2];
	b.is_path = b.source.len && b.source.at[0] == '/';
	b.valid = b.target.len && b.target.at[0] == '/' && (count < 3 || b.mode.len);
	return b;
}

/* --- parts of a mount --- */

struct mounting {
	struct docker_reading *r;
	struct jv *entry;
	const char *field;
};

static void say(const struct mounting *m, const char *key, struct jv value)
{
	jv_set(m->r->call->arena, m->entry, key, value);
}

static void say_option(const struct mounting *m, const char *word)
{
	jv_push(m->r->call->arena, (struct jv *)jv_get(m->entry, "options"), jv_string(word));
}

static struct mounting begin(struct docker_reading *r, const char *kind, const char *target,
			     const char *field)
{
	struct jv *list = docker_fact_list(r, "mounts");
	struct mounting m = {r, jv_push(r->call->arena, list, jv_object()), field};

	say(&m, "kind", jv_string(kind));
	say(&m, "target", jv_string(target));
	say(&m, "options", jv_array());
	say(&m, "field", jv_string(field));
	return m;
}

static void refuse(struct docker_reading *r, enum reason reason, const char *field,
		   const char *value, const char *text)
{
	docker_refuse(r->call, reason, field, value)->text = text;
}

/* What a host path is, if that can be seen; and whether mounting it gives the host away. */
static void say_host(const struct mounting *m, const char *source)
{
	struct backend_call *call = m->r->call;
	const struct lookup *answer = docker_ask_path(call, source);
	const struct jv *seen = answer && answer->status == 200 ? &answer->body : NULL;
	const char *protected = docker_path_protected(call, source, seen);
	const char *kind = jv_str(seen, "kind", ""), *real = jv_str(seen, "real", "");
	const char *control = docker_control(call, source, seen), *own = "";
	struct jv host = jv_object();

	if (*kind)
		jv_set(call->arena, &host, "kind", jv_string(kind));
	if (*real)
		jv_set(call->arena, &host, "real", jv_string(real));
	if (seen && jv_get(seen, "links"))
		jv_set(call->arena, &host, "links", jv_int(jv_num(seen, "links", 0)));
	if (seen && jv_get(seen, "movable"))
		jv_set(call->arena, &host, "movable", jv_bool(jv_true(seen, "movable")));
	if (*protected)
		jv_set(call->arena, &host, "protected", jv_string(protected));
	if (*control)
		jv_set(call->arena, &host, "control", jv_string(control));
	if (strcmp(control, "engine") == 0 && !docker_engine_filled(m->r))
		own = docker_own_socket(call);
	if (*own)
		jv_set(call->arena, &host, "instead", jv_string(own));
	if (host.count)
		say(m, "host", host);
	if (strcmp(control, "own") == 0)
		return; /* what is asked there is judged like what is asked here */
	if (*protected || docker_path_is_root(source) || (*real && docker_path_is_root(real)))
		docker_lower(m->r, LOWER_PATH, m->field, source);
	else if (strcmp(kind, "socket") == 0)
		docker_lower(m->r, LOWER_SOCKET, m->field, source);
}

/* A volume by name: whether it is there, and whose it is. */
static void say_volume(const struct mounting *m, struct span name)
{
	struct backend_call *call = m->r->call;
	const char *key = docker_whole(call, name);
	const struct lookup *answer =
		docker_ask(call, docker_target(call, "/volumes/", name, ""), "volumes", key);
	const struct jv *options, *doc = answer ? &answer->body : NULL;
	const char *driver = jv_str(doc, "Driver", "local");
	struct docker_thing thing;

	say(m, "source", jv_string(key));
	if (!answer || !answer->status)
		return;
	say(m, "exists", jv_bool(answer->status == 200));
	if (answer->status != 200) {
		say(m, "mine", jv_bool(answer->status == 404));
		return;
	}
	thing = docker_volume_thing(doc);
	say(m, "mine", jv_bool(docker_is_mine(call, &thing) && !docker_is_gates_own(call, &thing)));
	options = jv_get(doc, "Options");
	if (options && !jv_is_neutral(options))
		say(m, "driver_options", jv_bool(true));
	if (strcmp(driver, "local") != 0)
		say(m, "driver", jv_string(driver));
}

/* Letters as engines allow them; others would mean another path in a lookup. */
static bool is_volume_name(struct span s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.at[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (i && (c == '_' || c == '.' || c == '-'))))
			return false;
	}
	return s.len >= 1 && s.len <= 255;
}

/* --- Binds --- */

/* Words that change nothing here: access is a fact of its own, consistency is of other systems. */
static bool is_plain_word(struct span word, bool is_path)
{
	static const char *const plain[] = {"ro", "rw", "cached", "delegated", "consistent"};

	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (span_is(word, plain[i]))
			return true;
	return !is_path && span_is(word, "nocopy");
}

static void say_mode(const struct mounting *m, const struct docker_bind *b)
{
	struct span rest = b->mode, word;

	say(m, "read_only",
	    jv_bool(docker_mode_has(b->mode, "ro") && !docker_mode_has(b->mode, "rw")));
	while (rest.len) {
		span_cut(&rest, ',', &word);
		if (!is_plain_word(word, b->is_path))
			say_option(m, docker_word(m->r->call, word));
	}
}

static void read_bind(struct docker_reading *r, size_t i, struct span text)
{
	struct backend_call *call = r->call;
	const char *field = docker_text(call, "HostConfig.Binds[%zu]", i);
	struct docker_bind b = docker_bind(text);
	struct mounting m;

	if (!b.valid || (b.source.len && !b.is_path && !is_volume_name(b.source))) {
		refuse(r, REASON_mount_type, field, docker_cut(call, text),
		       "this is not source:target[:options]");
		return;
	}
	m = begin(r, b.is_path ? "bind" : "volume", docker_whole(call, b.target), field);
	if (b.source.len)
		say(&m, "given", jv_string(docker_whole(call, b.source)));
	say_mode(&m, &b);
	if (b.is_path) {
		const char *source = docker_clean_path(call, b.source);

		say(&m, "source", jv_string(source));
		if (docker_helper_mount(r, source, b.target, docker_mode_has(b.mode, "ro")))
			say(&m, "helper", jv_bool(true));
		say_host(&m, source);
	} else if (b.source.len) {
		say_volume(&m, b.source);
	}
}

/* --- Mounts --- */

static void say_bind_options(const struct mounting *m, const struct jv *options)
{
	static const char *const switches[] = {"NonRecursive", "CreateMountpoint",
					       "ReadOnlyNonRecursive", "ReadOnlyForceRecursive"};
	const char *propagation = jv_str(options, "Propagation", "");

	if (*propagation)
		say_option(m, propagation);
	for (size_t i = 0; i < sizeof(switches) / sizeof(*switches); i++)
		if (jv_true(options, switches[i]))
			say_option(m, switches[i]);
}

static void mount_bind(const struct mounting *m, const struct jv *mount)
{
	const char *given = jv_str(mount, "Source", "");
	const char *source = docker_clean_path(m->r->call, span_of(given));

	if (*given != '/') {
		refuse(m->r, REASON_bind, m->field, given, "the source must be an absolute path");
		return;
	}
	say(m, "source", jv_string(source));
	say_bind_options(m, jv_get(mount, "BindOptions"));
	say_host(m, source);
}

static void say_volume_labels(const struct mounting *m, const struct jv *labels)
{
	struct backend_call *call = m->r->call;

	for (size_t i = 0; labels && labels->kind == JV_OBJECT && i < labels->count; i++) {
		const char *label = docker_word(call, labels->members[i].key);
		struct jv *entry;

		if (docker_skips_label(m->r, labels->members[i].key))
			continue;
		entry = jv_push(call->arena, docker_fact_list(m->r, "labels"), jv_object());
		jv_set(call->arena, entry, "name", jv_string(label));
		jv_set(call->arena, entry, "field",
		       jv_string(docker_text(call, "%s.VolumeOptions.Labels.%s", m->field, label)));
	}
}

static void mount_volume(const struct mounting *m, const struct jv *mount)
{
	const char *source = jv_str(mount, "Source", "");
	const struct jv *options = jv_get(mount, "VolumeOptions");
	const struct jv *driver = jv_get(options, "DriverConfig");
	const struct jv *driver_options = jv_get(driver, "Options");
	const char *name = jv_str(driver, "Name", ""), *subpath = jv_str(options, "Subpath", "");

	if (*source && !is_volume_name(span_of(source))) {
		refuse(m->r, REASON_mount_type, m->field, source, "this is no name of a volume");
		return;
	}
	if (*source)
		say_volume(m, span_of(source));
	if (driver_options && !jv_is_neutral(driver_options))
		say(m, "driver_options", jv_bool(true));
	if (*name && strcmp(name, "local") != 0)
		say(m, "driver", jv_string(name));
	if (*subpath)
		say(m, "subpath", jv_string(subpath));
	if (!m->r->made || m->r->update)
		say_volume_labels(m, jv_get(options, "Labels"));
}

/* How many strings a list is made of; 0 if it holds anything else. */
static size_t count_words(const struct jv *list)
{
	for (size_t i = 0; list->kind == JV_ARRAY && i < list->count; i++)
		if (list->items[i].kind != JV_STRING)
			return 0;
	return list->kind == JV_ARRAY ? list->count : 0;
}

static void mount_tmpfs(const struct mounting *m, const struct jv *mount)
{
	const struct jv *options = jv_get(mount, "TmpfsOptions");
	const struct jv *list = jv_get(options, "Options");
	int64_t size = jv_num(options, "SizeBytes", 0);

	if (size > 0)
		say(m, "tmpfs_bytes", jv_int(size));
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		const struct jv *pair = &list->items[i];
		size_t words = count_words(pair);

		if (words == 1)
			say_option(m, docker_word(m->r->call, pair->items[0].str));
		else if (words == 2)
			say_option(m, docker_text(m->r->call, "%s=%s", pair->items[0].str.at,
						  pair->items[1].str.at));
		else
			refuse(m->r, REASON_tmpfs, m->field, NULL, "an option is a word or a pair");
	}
}

/* Facts of the image itself, as of the one that runs. */
static void say_image(const struct mounting *m, const char *source)
{
	struct backend_call *call = m->r->call;
	struct docker_reading one = {.d = m->r->d, .call = call, .facts = jv_object()};
	const struct lookup *answer = docker_ask_image(call, source);
	const struct jv *image;

	if (!answer)
		return;
	docker_read_image(&one, source, answer);
	image = jv_get(&one.facts, "image");
	if (image)
		say(m, "image", *image);
	if (m->r->made)
		call->instead = (struct violation){.reason = REASON_NONE};
}

/* Judged like the image that runs, so its name is written in full. */
static void mount_image(const struct mounting *m, const struct jv *mount)
{
	const char *source = jv_str(mount, "Source", "");
	struct docker_reference ref = docker_reference(m->r->call->arena, span_of(source));
	const char *subpath = jv_str(jv_get(mount, "ImageOptions"), "Subpath", "");

	if (!ref.valid || docker_looks_like_id(span_of(source))) {
		refuse(m->r, REASON_image, m->field, source, "the image must be named");
		return;
	}
	if (!*ref.tag && !*ref.digest)
		ref.tag = "latest";
	say(m, "source", jv_string(docker_reference_text(m->r->call, &ref)));
	say_image(m, source);
	if (*subpath)
		say(m, "subpath", jv_string(subpath));
}

static const struct mount_kind {
	const char *type, *options; /* the only options that go with the type */
	void (*read)(const struct mounting *m, const struct jv *mount);
} mount_kinds[] = {
	{"bind", "BindOptions", mount_bind},
	{"volume", "VolumeOptions", mount_volume},
	{"tmpfs", "TmpfsOptions", mount_tmpfs},
	{"image", "ImageOptions", mount_image},
};

static bool has_foreign_options(const struct jv *mount, const char *own)
{
	static const char *const all[] = {"BindOptions", "VolumeOptions", "TmpfsOptions",
					  "ImageOptions", "ClusterOptions"};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		const struct jv *v = jv_get(mount, all[i]);

		if (v && strcmp(all[i], own) != 0 && !jv_is_neutral(v))
			return true;
	}
	return false;
}

static void read_mount(struct docker_reading *r, size_t i, const struct jv *mount)
{
	const char *field = docker_text(r->call, "HostConfig.Mounts[%zu]", i);
	const char *type = jv_str(mount, "Type", ""), *given = jv_str(mount, "Source", "");
	const struct mount_kind *kind = NULL;
	struct mounting m;

	for (size_t k = 0; k < sizeof(mount_kinds) / sizeof(*mount_kinds); k++)
		if (strcmp(type, mount_kinds[k].type) == 0)
			kind = &mount_kinds[k];
	if (!kind || has_foreign_options(mount, kind->options)) {
		docker_refuse(r->call, REASON_mount_type, docker_text(r->call, "%s.Type", field),
			      type);
		return;
	}
	m = begin(r, type, jv_str(mount, "Target", ""), field);
	if (*given)
		say(&m, "given", jv_string(given));
	say(&m, "read_only", jv_bool(jv_true(mount, "ReadOnly")));
	kind->read(&m, mount);
}

/* --- Tmpfs --- */

/* "64m" in bytes; -1 for what is none, a share of memory among it. */
static int64_t bytes_of(struct span s)
{
	static const char units[] = "kmgt";
	int64_t n = 0;
	size_t i = 0;

	for (; i < s.len && s.at[i] >= '0' && s.at[i] <= '9'; i++) {
		if (n > INT64_MAX / 16)
			return -1;
		n = n * 10 + (s.at[i] - '0');
	}
	if (i == 0 || i + 1 < s.len)
		return -1;
	if (i == s.len)
		return n;
	for (size_t u = 0; units[u]; u++) {
		n = n > INT64_MAX / 1024 ? INT64_MAX / 1024 : n;
		n *= 1024;
		if ((s.at[i] | 0x20) == units[u])
			return n;
	}
	return -1;
}

static bool is_harmless_tmpfs(struct span word)
{
	static const char *const plain[] = {"rw", "ro", "noexec", "nosuid", "nodev"};
	static const char *const numbers[] = {"mode=", "uid=", "gid="};

	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (span_is(word, plain[i]))
			return true;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (span_starts(word, numbers[i]))
			return bytes_of(span_skip(word, strlen(numbers[i]))) >= 0;
	return false;
}

static void read_tmpfs(struct docker_reading *r, struct span target, const struct jv *value)
{
	const char *where = docker_whole(r->call, target);
	struct mounting m =
		begin(r, "tmpfs", where, docker_text(r->call, "HostConfig.Tmpfs.%s", where));
	struct span rest = value->kind == JV_STRING ? value->str : (struct span){"", 0}, word;
	int64_t size = 0;

	say(&m, "read_only", jv_bool(docker_mode_has(rest, "ro")));
	while (rest.len) {
		int64_t bytes = -1;

		span_cut(&rest, ',', &word);
		if (span_starts(word, "size="))
			bytes = bytes_of(span_skip(word, 5));
		size = bytes > size ? bytes : size;
		if (bytes < 0 && !is_harmless_tmpfs(word))
			say_option(&m, docker_word(r->call, word));
	}
	if (size > 0)
		say(&m, "tmpfs_bytes", jv_int(size));
}

/* --- the rest --- */

static void read_anonymous(struct docker_reading *r, struct span target)
{
	const char *where = docker_whole(r->call, target);
	const char *field = docker_text(r->call, "Volumes.%s", where);
	struct mounting m;

	if (!target.len || target.at[0] != '/') {
		refuse(r, REASON_mount_type, field, where, "the target must be an absolute path");
		return;
	}
	m = begin(r, "volume", where, field);
	say(&m, "read_only", jv_bool(false));
}

static void read_volumes_from(struct docker_reading *r)
{
	const struct jv *list = jv_get(r->host, "VolumesFrom");

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		struct jv *entry;
		struct span rest, name;

		if (list->items[i].kind != JV_STRING)
			continue;
		rest = list->items[i].str;
		span_cut(&rest, ':', &name);
		entry = jv_push(r->call->arena, docker_fact_list(r, "volumes_from"), jv_object());
		jv_set(r->call->arena, entry, "name", jv_string(docker_word(r->call, name)));
		jv_set(r->call->arena, entry, "field",
		       jv_string(docker_text(r->call, "HostConfig.VolumesFrom[%zu]", i)));
	}
}

/* VolumeDriver is used for every volume that names no driver, the image's own among them. */
static void apply_driver(struct docker_reading *r)
{
	const char *driver = jv_str(r->host, "VolumeDriver", "");
	struct jv *list = docker_fact_list(r, "mounts");
	struct mounting m;

	if (!*driver || strcmp(driver, "local") == 0)
		return;
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(jv_str(&list->items[i], "kind", ""), "volume") == 0 &&
		    !jv_get(&list->items[i], "driver"))
			jv_set(r->call->arena, &list->items[i], "driver", jv_string(driver));
	m = begin(r, "volume", "", "HostConfig.VolumeDriver");
	say(&m, "driver", jv_string(driver));
	say(&m, "read_only", jv_bool(false));
}

void docker_read_mounts(struct docker_reading *r)
{
	const struct jv *binds = jv_get(r->host, "Binds"), *mounts = jv_get(r->host, "Mounts");
	const struct jv *tmpfs = jv_get(r->host, "Tmpfs"), *volumes = jv_get(r->config, "Volumes");

	for (size_t i = 0; binds && binds->kind == JV_ARRAY && i < binds->count; i++)
		if (binds->items[i].kind == JV_STRING)
			read_bind(r, i, binds->items[i].str);
	for (size_t i = 0; mounts && mounts->kind == JV_ARRAY && i < mounts->count; i++)
		read_mount(r, i, &mounts->items[i]);
	for (size_t i = 0; tmpfs && tmpfs->kind == JV_OBJECT && i < tmpfs->count; i++)
		read_tmpfs(r, tmpfs->members[i].key, &tmpfs->members[i].value);
	for (size_t i = 0; volumes && volumes->kind == JV_OBJECT && i < volumes->count; i++)
		read_anonymous(r, volumes->members[i].key);
	read_volumes_from(r);
	apply_driver(r);
}
