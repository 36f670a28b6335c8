#include "backends/docker/docker_priv.h"

#include <string.h>

static void above_zero(struct docker_reading *r, const char *key, const char *fact)
{
	int64_t n = jv_num(r->host, key, 0);

	if (n > 0)
		docker_fact(r, fact, jv_int(n));
}

/* NanoCpus, or a quota of a period of 100 ms. */
int64_t docker_nano_cpus(const struct jv *host)
{
	int64_t nano = jv_num(host, "NanoCpus", 0);
	int64_t quota = jv_num(host, "CpuQuota", 0);
	int64_t period = jv_num(host, "CpuPeriod", 0);
	double cpus;

	if (nano > 0 || quota <= 0)
		return nano > 0 ? nano : 0;
	cpus = (double)quota / (double)(period > 0 ? period : 100000);
	return cpus < 1e9 ? (int64_t)(cpus * 1e9) : 0;
}

static void read_cpus(struct docker_reading *r)
{
	int64_t nano = docker_nano_cpus(r->host);

	if (nano > 0)
		docker_fact(r, "limits.nano_cpus", jv_int(nano));
}

static void lifted(struct docker_reading *r, const char *field, const char *value)
{
	struct jv *entry =
		jv_push(r->call->arena, docker_fact_list(r, "limits.lifted"), jv_object());

	jv_set(r->call->arena, entry, "field", jv_string(field));
	jv_set(r->call->arena, entry, "value", jv_string(docker_word(r->call, span_of(value))));
}

static void lifted_number(struct docker_reading *r, const char *key)
{
	lifted(r, docker_text(r->call, "HostConfig.%s", key),
	       docker_text(r->call, "%lld", (long long)jv_num(r->host, key, 0)));
}

static void read_ulimits(struct docker_reading *r)
{
	const struct jv *list = jv_get(r->host, "Ulimits");

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		const struct jv *one = &list->items[i];

		lifted(r, docker_text(r->call, "HostConfig.Ulimits[%zu]", i),
		       docker_text(r->call, "%s=%lld:%lld", jv_str(one, "Name", ""),
				   (long long)jv_num(one, "Soft", 0),
				   (long long)jv_num(one, "Hard", 0)));
	}
}

/* Settings that lift a limit, escape one, or reach a device of the host by its path. */
static void read_lifted(struct docker_reading *r)
{
	static const char *const endless[] = {"Memory", "NanoCpus", "CpuQuota", "PidsLimit"};
	static const char *const numbers[] = {"CpuRealtimePeriod", "CpuRealtimeRuntime",
					      "BlkioWeight", "KernelMemory", "KernelMemoryTCP"};
	static const char *const lists[] = {"BlkioWeightDevice", "BlkioDeviceReadBps",
					    "BlkioDeviceWriteBps", "BlkioDeviceReadIOps",
					    "BlkioDeviceWriteIOps"};

	if (jv_true(r->host, "OomKillDisable"))
		lifted(r, "HostConfig.OomKillDisable", "true");
	if (jv_num(r->host, "OomScoreAdj", 0) < 0)
		lifted_number(r, "OomScoreAdj");
	for (size_t i = 0; i < sizeof(endless) / sizeof(*endless); i++)
		if (jv_num(r->host, endless[i], 0) < 0)
			lifted_number(r, endless[i]);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (jv_num(r->host, numbers[i], 0))
			lifted_number(r, numbers[i]);
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		const struct jv *list = jv_get(r->host, lists[i]);

		for (size_t k = 0; list && list->kind == JV_ARRAY && k < list->count; k++)
			lifted(r, docker_text(r->call, "HostConfig.%s[%zu]", lists[i], k),
			       jv_str(&list->items[k], "Path", ""));
	}
	read_ulimits(r);
}

static void weigh_annotations(struct docker_reading *r)
{
	const struct jv *all = jv_get(r->host, "Annotations");

	for (size_t i = 0; all && all->kind == JV_OBJECT && i < all->count; i++) {
		const struct jv_member *m = &all->members[i];
		struct span value = m->value.kind == JV_STRING ? m->value.str : span_of("");
		const struct isolation_reason *why = isolation_annotation(m->key, value);

		/* Its value may be a secret, and is no fact. */
		if (*why->why)
			docker_lower_by(r, why,
					docker_text(r->call, "HostConfig.Annotations.%s",
						    docker_word(r->call, m->key)),
					"");
	}
}

static void add_device(struct docker_reading *r, const char *key, size_t i, const char *value)
{
	const char *field = docker_text(r->call, "HostConfig.%s[%zu]", key, i);
	struct jv *entry = jv_push(r->call->arena, docker_fact_list(r, "devices"), jv_object());

	jv_set(r->call->arena, entry, "value", jv_string(docker_word(r->call, span_of(value))));
	jv_set(r->call->arena, entry, "field", jv_string(field));
	docker_lower(r, LOWER_DEVICE, field, value);
}

static const char *request_text(struct docker_reading *r, const struct jv *request)
{
	const struct jv *ids = jv_get(request, "DeviceIDs");
	const char *all = "";

	for (size_t i = 0; ids && ids->kind == JV_ARRAY && i < ids->count; i++)
		if (ids->items[i].kind == JV_STRING)
			all = docker_text(r->call, "%s%s%s", all, *all ? "," : "",
					  ids->items[i].str.at);
	return docker_text(r->call, "%s:%s:%lld", jv_str(request, "Driver", ""), all,
			   (long long)jv_num(request, "Count", 0));
}

static void read_devices(struct docker_reading *r)
{
	static const char *const keys[] = {"Devices", "DeviceCgroupRules", "DeviceRequests"};

	for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
		const struct jv *list = jv_get(r->host, keys[k]);

		for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
			const struct jv *one = &list->items[i];

			if (k == 0)
				add_device(r, keys[k], i,
					   docker_text(r->call, "%s:%s:%s",
						       jv_str(one, "PathOnHost", ""),
						       jv_str(one, "PathInContainer", ""),
						       jv_str(one, "CgroupPermissions", "")));
			else if (k == 1)
				add_device(r, keys[k], i,
					   one->kind == JV_STRING ? one->str.at : "");
			else
				add_device(r, keys[k], i, request_text(r, one));
		}
	}
}

/* Names of the members of an object: to a list of names, or of {name, field}. */
static void read_names(struct docker_reading *r, const char *key, const char *fact, bool entries)
{
	const struct jv *map = jv_path(r->host, key);
	struct jv *list = docker_fact_list(r, fact);

	for (size_t i = 0; map && map->kind == JV_OBJECT && i < map->count; i++) {
		const char *name = docker_word(r->call, map->members[i].key);
		struct jv *entry;

		if (!entries) {
			jv_push(r->call->arena, list, jv_string(name));
			continue;
		}
		entry = jv_push(r->call->arena, list, jv_object());
		jv_set(r->call->arena, entry, "name", jv_string(name));
		jv_set(r->call->arena, entry, "field",
		       jv_string(docker_text(r->call, "HostConfig.%s.%s", key, name)));
	}
}

/* For an existing container the operator's default and its options are no choice of the caller. */
static void read_log(struct docker_reading *r)
{
	const char *driver = jv_path(r->host, "LogConfig")
				     ? jv_str(jv_get(r->host, "LogConfig"), "Type", "")
				     : "";

	if (docker_engine_filled(r) && strcmp(driver, r->info->logging_driver) == 0)
		return;
	if (*driver)
		docker_fact(r, "log.driver", jv_string(driver));
	if (!docker_engine_filled(r) && *r->info->logging_driver)
		docker_fact(r, "log.default", jv_string(r->info->logging_driver));
	read_names(r, "LogConfig.Config", "log.options", false);
}

void docker_read_limits(struct docker_reading *r)
{
	int64_t swap = jv_num(r->host, "MemorySwap", 0);
	const char *restart = jv_str(jv_get(r->host, "RestartPolicy"), "Name", "");
	const char *parent = jv_str(r->host, "CgroupParent", "");

	above_zero(r, "Memory", "limits.memory");
	above_zero(r, "PidsLimit", "limits.pids");
	above_zero(r, "ShmSize", "limits.shm");
	if (swap)
		docker_fact(r, "limits.swap", jv_int(swap < 0 ? -1 : swap));
	read_cpus(r);
	read_lifted(r);
	read_devices(r);
	read_names(r, "Sysctls", "sysctls", true);
	read_names(r, "Annotations", "annotations", false);
	weigh_annotations(r);
	read_names(r, "StorageOpt", "storage_options", false);
	read_log(r);
	if (*parent)
		docker_fact(r, "cgroup_parent", jv_string(parent));
	docker_fact(r, "restart", jv_string(*restart ? restart : "no"));
	docker_fact(r, "auto_remove", jv_bool(jv_true(r->host, "AutoRemove")));
}
