/*
 * What facts do not say of a container, as digests that tell only whether two are equal: what may
 * be secret, and what facts name in a word.  An update is compared by them (rules/update.def).
 */
#include "backends/docker/docker_priv.h"
#include "gate/base/hash.h"

#include <string.h>

#define SEAL_DIGITS 16

static void seal(struct docker_reading *r, const char *list, const char *name, struct span value)
{
	struct backend_call *call = r->call;
	char hex[HASH_HEX_LEN + 1];
	struct hash h;
	struct buf text;

	buf_init(&text, 4u << 20);
	buf_puts(&text, list);
	buf_put(&text, "", 1);
	buf_puts(&text, name);
	buf_put(&text, "", 1);
	buf_put(&text, value.at, value.len);
	h = hash_two(
		(struct span){(const char *)call->seal_key, call->seal_key ? SEAL_KEY_BYTES : 0},
		buf_span(&text));
	if (buf_spent(&text))
		docker_refuse(call, REASON_facts_too_large, name, NULL);
	buf_fini(&text);
	hash_hex(&h, hex);
	hex[SEAL_DIGITS] = '\0';
	jv_push(call->arena, docker_fact_list(r, list), jv_string(docker_text(call, "%s", hex)));
}

static void seal_tree(struct docker_reading *r, const char *list, const char *name,
		      const struct jv *v)
{
	struct buf text;

	buf_init(&text, 4u << 20);
	jv_write(&text, v);
	if (buf_spent(&text))
		docker_refuse(r->call, REASON_facts_too_large, name, NULL);
	seal(r, list, name, buf_span(&text));
	buf_fini(&text);
}

static void seal_map(struct docker_reading *r, const char *list, const char *name,
		     const struct jv *map)
{
	for (size_t i = 0; map && map->kind == JV_OBJECT && i < map->count; i++)
		if (!jv_is_neutral(&map->members[i].value))
			seal_tree(r, list,
				  docker_text(r->call, "%s.%.*s", name,
					      SPAN_FMT(map->members[i].key)),
				  &map->members[i].value);
}

/* A word is a list of one. */
static void seal_command(struct docker_reading *r)
{
	static const char *const keys[] = {"Entrypoint", "Cmd", "WorkingDir", "Shell"};
	const struct jv *health = jv_get(r->config, "Healthcheck");

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const struct jv *v = jv_get(r->config, keys[i]);
		struct jv list = jv_array();

		if (!v || jv_is_neutral(v))
			continue;
		if (v->kind == JV_STRING)
			jv_push(r->call->arena, &list, *v);
		seal_tree(r, "sealed.command", keys[i], v->kind == JV_STRING ? &list : v);
	}
	if (health && health->kind == JV_OBJECT && health->count) {
		struct jv said = docker_in_order(r->call->arena, SCHEMA_HEALTH, health);

		seal_tree(r, "sealed.command", "Healthcheck", &said);
	}
}

static void seal_labels(struct docker_reading *r)
{
	const struct jv *labels = jv_get(r->config, "Labels");

	for (size_t i = 0; labels && labels->kind == JV_OBJECT && i < labels->count; i++)
		if (!docker_skips_label(r, labels->members[i].key))
			seal_tree(r, "sealed.labels", docker_whole(r->call, labels->members[i].key),
				  &labels->members[i].value);
}

static void seal_words(struct docker_reading *r, const char *name, const struct jv *list)
{
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		if (list->items[i].kind == JV_STRING && !docker_is_own_id(r, list->items[i].str))
			seal(r, "sealed.settings", name, list->items[i].str);
}

/* The address that an engine chose, and the hardware address, are no wishes. */
void docker_seal_endpoint(struct docker_reading *r, const char *network, const struct jv *endpoint)
{
	struct backend_call *call = r->call;
	const char *name = docker_network_name(call, network);

	if (!r->update)
		return;
	docker_fact_list(r, "sealed.settings");
	seal_words(r, docker_text(call, "%s/Aliases", name), jv_get(endpoint, "Aliases"));
	seal_words(r, docker_text(call, "%s/Links", name), jv_get(endpoint, "Links"));
	seal_map(r, "sealed.settings", docker_text(call, "%s/IPAMConfig", name),
		 jv_get(endpoint, "IPAMConfig"));
	seal_map(r, "sealed.settings", docker_text(call, "%s/DriverOpts", name),
		 jv_get(endpoint, "DriverOpts"));
	if (jv_num(endpoint, "GwPriority", 0))
		seal_tree(r, "sealed.settings", docker_text(call, "%s/GwPriority", name),
			  jv_get(endpoint, "GwPriority"));
}

/* What its facts do not say of an entry, in one form: nothing that is neutral, in one order. */
static struct jv plain_entry(struct docker_reading *r, enum docker_schema schema,
			     const struct jv *entry)
{
	struct jv said = docker_in_order(r->call->arena, schema, entry), ret = jv_object();

	for (size_t i = 0; i < said.count; i++)
		if (!jv_is_neutral(&said.members[i].value))
			jv_add(r->call->arena, &ret, said.members[i].key, said.members[i].value);
	return ret;
}

static void seal_entries(struct docker_reading *r, const char *key, enum docker_schema schema)
{
	const struct jv *list = jv_get(r->host, key);

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		struct jv entry;

		if (list->items[i].kind != JV_OBJECT)
			continue;
		entry = plain_entry(r, schema, &list->items[i]);
		seal_tree(r, "sealed.settings", key, &entry);
	}
}

/* A volume that is made for the container is what its driver is told. */
static void seal_volume_drivers(struct docker_reading *r)
{
	const struct jv *mounts = jv_get(r->host, "Mounts");

	for (size_t i = 0; mounts && mounts->kind == JV_ARRAY && i < mounts->count; i++) {
		const struct jv *mount = &mounts->items[i];
		const struct jv *driver = jv_path(mount, "VolumeOptions.DriverConfig");
		struct jv entry;

		if (!driver || driver->kind != JV_OBJECT)
			continue;
		entry = plain_entry(r, SCHEMA_DRIVER, driver);
		if (entry.count)
			seal_tree(r, "sealed.settings",
				  docker_text(r->call, "%s/DriverConfig",
					      jv_str(mount, "Target", "")),
				  &entry);
	}
}

/* Mounts that are borrowed to be read may not be written. */
static void seal_borrowed(struct docker_reading *r)
{
	const struct jv *list = jv_get(r->host, "VolumesFrom");

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		struct span mode = list->items[i].str, name;

		if (list->items[i].kind != JV_STRING)
			continue;
		if (!span_cut(&mode, ':', &name) || span_is(mode, "rw"))
			mode = (struct span){"", 0};
		if (!span_is(mode, "ro"))
			seal(r, "sealed.settings",
			     docker_text(r->call, "VolumesFrom.%.*s", SPAN_FMT(name)), mode);
	}
}

/* An engine names one for each processor of its host. */
static bool is_of_processor(struct span path)
{
	return span_starts(path, "/sys/devices/system/cpu/cpu") &&
	       span_ends(path, "/thermal_throttle");
}

static void seal_path(struct docker_reading *r, const char *key, struct span path)
{
	if (!is_of_processor(path))
		seal(r, "sealed.paths", key, path);
}

/* What is taken away from /proc and /sys; where nothing is said, what engines do by themselves. */
static void seal_paths(struct docker_reading *r, const char *key)
{
	const struct jv *list = jv_get(r->host, key);

	docker_fact_list(r, "sealed.paths");
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		if (list->items[i].kind == JV_STRING)
			seal_path(r, key, list->items[i].str);
	if ((list && list->kind != JV_NULL) || jv_true(r->host, "Privileged"))
		return;
	for (size_t i = 0; i < docker_proc_path_count; i++)
		if (strcmp(docker_proc_paths[i].key, key) == 0)
			seal_path(r, key, span_of(docker_proc_paths[i].path));
}

static void seal_proc_paths(struct docker_reading *r)
{
	seal_paths(r, "MaskedPaths");
	seal_paths(r, "ReadonlyPaths");
}

void docker_read_sealed(struct docker_reading *r)
{
	static const struct {
		const char *key;
		enum docker_schema schema;
	} entries[] = {
		{"DeviceRequests", SCHEMA_DEVICE_REQUEST},
		{"BlkioWeightDevice", SCHEMA_WEIGHT_DEVICE},
		{"BlkioDeviceReadBps", SCHEMA_THROTTLE},
		{"BlkioDeviceWriteBps", SCHEMA_THROTTLE},
		{"BlkioDeviceReadIOps", SCHEMA_THROTTLE},
		{"BlkioDeviceWriteIOps", SCHEMA_THROTTLE},
	};
	static const char *const lists[] = {"sealed.command", "sealed.env", "sealed.labels",
					    "sealed.settings"};
	static const char *const maps[] = {"Sysctls", "Annotations", "StorageOpt"};
	const struct jv *env = jv_get(r->config, "Env");

	/* A start is beside what was there before as well, and this must not be less. */
	if (r->update || r->old_id)
		seal_proc_paths(r);
	if (!r->update)
		return;
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		docker_fact_list(r, lists[i]);
	seal_command(r);
	for (size_t i = 0; env && env->kind == JV_ARRAY && i < env->count; i++)
		if (env->items[i].kind == JV_STRING)
			seal(r, "sealed.env", "", env->items[i].str);
	seal_labels(r);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		seal_map(r, "sealed.settings", maps[i], jv_get(r->host, maps[i]));
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++)
		seal_entries(r, entries[i].key, entries[i].schema);
	seal_volume_drivers(r);
	/* Where engines give the host's by themselves, what had its own keeps it. */
	if (r->info->cgroup_v1 && strcmp(jv_str(r->host, "CgroupnsMode", ""), "private") != 0)
		seal(r, "sealed.settings", "CgroupnsMode", (struct span){"", 0});
	/* A network that was switched off stays so. */
	if (!jv_true(r->config, "NetworkDisabled"))
		seal(r, "sealed.settings", "NetworkDisabled", (struct span){"", 0});
	seal_borrowed(r);
	seal_map(r, "sealed.settings", "LogConfig", jv_path(r->host, "LogConfig.Config"));
	for (size_t i = 0;
	     r->networking && r->networking->kind == JV_OBJECT && i < r->networking->count; i++)
		docker_seal_endpoint(r, docker_whole(r->call, r->networking->members[i].key),
				     &r->networking->members[i].value);
}
