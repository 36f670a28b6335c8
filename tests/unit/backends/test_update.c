/* What a create is beside the container that it replaces, as Docker says both. */
#include "rules/update_priv.h"
#include "tests/unit/backends/drive.h"
#include "tests/unit/check.h"

#include <string.h>

#define ID "787a0701953e5ff869860b6a5875befc1875e159858768fb0d2c9423b642fac0"

/* As an engine of 20.10 shows them. */
#define MASKED                                                                                     \
	"\"/proc/asound\",\"/proc/acpi\",\"/proc/kcore\",\"/proc/keys\",\"/proc/latency_stats\","  \
	"\"/proc/timer_list\",\"/proc/timer_stats\",\"/proc/sched_debug\",\"/proc/scsi\","         \
	"\"/sys/firmware\""
#define READ_ONLY                "\"/proc/bus\",\"/proc/fs\",\"/proc/irq\",\"/proc/sys\",\"/proc/sysrq-trigger\""
#define PATHS(masked, read_only) "\"MaskedPaths\":[" masked "],\"ReadonlyPaths\":[" read_only "]"

struct row {
	const char *label;
	const char *old, *now; /* members of HostConfig, before and in the request */
	const char *request;   /* other members of the request */
	const char *want;      /* field of what is looser; "" if nothing is */
};

/* The container "full" of the world, with members put over its HostConfig. */
static void put_over(struct arena *a, struct jv *world, const char *members)
{
	struct jv *host = (struct jv *)drive_at(world, "containers.full.HostConfig");
	struct jv over;
	char text[4096];

	snprintf(text, sizeof(text), "{%s}", members);
	over = drive_parse(a, text);
	for (size_t i = 0; i < over.count; i++)
		jv_set_span(a, host, over.members[i].key, over.members[i].value);
}

/* The field of the first thing that is looser; "" if nothing is. */
static const char *looser(struct drive *d)
{
	struct jv all = jv_object(), settings = drive_parse(d->arena, "{\"within\":600}");
	struct violations v;

	jv_set(d->arena, &all, "replaces", d->call.replaces);
	jv_set(d->arena, &all, "workload", d->call.workload.facts);
	v = update_faults(&all, &settings, OP_CONTAINER_CREATE, d->arena);
	return v.count ? v.list[0].field : "";
}

static void check(const struct row *rows, size_t count)
{
	const struct backend_conf conf = {.name = "t"};
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct err err = {0};

	for (size_t i = 0; i < count; i++) {
		struct backend *be = backend_find("docker")->open(&conf, &err);
		struct jv world = drive_json(a, "world.json");
		char request[8192];
		struct drive d;

		put_over(a, &world, rows[i].old);
		drive_start(&d, be, &world);
		d.call.updates = true;
		snprintf(request, sizeof(request),
			 "POST /v1.41/containers/create?name=full\n"
			 "{\"Image\":\"busybox\",\"User\":\"1000:1000\"%s,\"HostConfig\":{"
			 "\"Binds\":[\"/srv/ws:/w:ro\",\"v1:/v\"],\"NetworkMode\":\"none\","
			 "\"CapDrop\":[\"ALL\"],\"ReadonlyRootfs\":true,\"SecurityOpt\":["
			 "\"no-new-privileges\"],\"Tmpfs\":{\"/run\":\"size=10m\"},\"Runtime\":"
			 "\"runsc\",\"Memory\":536870912,\"NanoCpus\":1500000000,\"PidsLimit\":100,"
			 "\"Init\":true%s%s}}",
			 rows[i].request, *rows[i].now ? "," : "", rows[i].now);
		CHECK_INT(rows[i].label, STEP_READY, drive_request(&d, request));
		CHECK_STR(rows[i].label, rows[i].want, looser(&d));
		drive_end(&d);
		be->ops->close(be);
	}
	arena_destroy(a);
}

static void what_is_hidden_stays_hidden(void **state)
{
	static const struct row rows[] = {
		{"the engine's own, said again", "", PATHS(MASKED, READ_ONLY), "", ""},
		{"the engine's own, not said", "", "", "", ""},
		{"one path less of what only some engines hide", "",
		 PATHS("\"/proc/acpi\",\"/proc/kcore\",\"/proc/keys\",\"/proc/latency_stats\","
		       "\"/proc/timer_list\",\"/proc/sched_debug\",\"/proc/scsi\","
		       "\"/sys/firmware\",\"/proc/timer_stats\"",
		       READ_ONLY),
		 "", "sealed.paths[]"},
		{"a list that was changed already loses one more",
		 PATHS("\"/proc/kcore\",\"/proc/keys\"", ""), PATHS("\"/proc/kcore\"", ""), "",
		 "sealed.paths[]"},
		{"a list that was changed already, in another order",
		 PATHS("\"/proc/kcore\",\"/proc/keys\"", ""),
		 PATHS("\"/proc/keys\",\"/proc/kcore\"", ""), "", ""},
		{"no longer hidden, but not written", PATHS("\"/proc/kcore\"", ""),
		 PATHS("", "\"/proc/kcore\""), "", "sealed.paths[]"},
		{"a path of its own that is hidden", PATHS(MASKED ",\"/proc/cpuinfo\"", READ_ONLY),
		 "", "", "sealed.paths[]"},
		{"nothing was hidden, and the engine hides again", PATHS("", ""), "", "", ""},
		{"of each processor, which engines add by themselves",
		 PATHS(MASKED ",\"/sys/devices/system/cpu/cpu7/thermal_throttle\"", READ_ONLY), "",
		 "", ""},
	};

	(void)state;
	check(rows, sizeof(rows) / sizeof(*rows));
}

static void a_short_beginning_of_an_id_is_a_name(void **state)
{
	static const struct row rows[] = {
		{"as engines call it", "", "", ",\"Hostname\":\"787a0701953e\"", ""},
		{"in full", "", "", ",\"Hostname\":\"" ID "\"", ""},
		{"one digit", "", "", ",\"Hostname\":\"7\"", "hostname"},
		{"eleven digits", "", "", ",\"Hostname\":\"787a0701953\"", "hostname"},
		{"more than the id", "", "", ",\"Hostname\":\"" ID "0\"", "hostname"},
	};

	(void)state;
	check(rows, sizeof(rows) / sizeof(*rows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_hidden_stays_hidden),
		cmocka_unit_test(a_short_beginning_of_an_id_is_a_name),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
