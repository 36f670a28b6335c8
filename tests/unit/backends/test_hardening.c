/* What hardening changes in a launch, and what of it is refused. */
#include "tests/unit/backends/drive.h"
#include "tests/unit/backends/vocabulary.h"
#include "tests/unit/check.h"

#include <string.h>

static void applies_each_change(void **state)
{
	static const struct {
		enum harden what;
		const char *value, *host;                 /* host: of the request, as JSON */
		const char *part, *sent, *fact, *becomes; /* becomes: the fact, as JSON */
	} rows[] = {
		{HARDEN_RUNTIME, "\"runsc\"", "{}", "HostConfig.Runtime", "\"runsc\"",
		 "isolation.level", "\"kernel\""},
		{HARDEN_NETWORK, "\"none\"", "{\"NetworkMode\":\"default\"}",
		 "HostConfig.NetworkMode", "\"none\"", "network.mode", "\"none\""},
		{HARDEN_CAP_DROP_ALL, "true", "{\"CapDrop\":[\"MKNOD\"],\"CapAdd\":[\"CHOWN\"]}",
		 "HostConfig.CapDrop", "[\"ALL\"]", "capabilities.drop_all", "true"},
		{HARDEN_NO_NEW_PRIVILEGES, "true",
		 "{\"SecurityOpt\":[\"no-new-privileges=false\",\"label=user:x\"]}",
		 "HostConfig.SecurityOpt",
		 "[\"no-new-privileges=false\",\"label=user:x\",\"no-new-privileges\"]",
		 "no_new_privileges", "true"},
		{HARDEN_MEMORY, "1048576", "{\"MemorySwap\":5}", "HostConfig.MemorySwap", "1048576",
		 "limits.memory", "1048576"},
		{HARDEN_CPUS, "2000000000", "{\"CpuQuota\":5}", "HostConfig.CpuQuota", "0",
		 "limits.nano_cpus", "2000000000"},
		{HARDEN_PIDS, "256", "null", "HostConfig.PidsLimit", "256", "limits.pids", "256"},
		{HARDEN_USER, "\"65534:65534\"", "{}", "User", "\"65534:65534\"", "user.root",
		 "false"},
		{HARDEN_READ_ONLY, "true", "{\"ReadonlyRootfs\":false}",
		 "HostConfig.ReadonlyRootfs", "true", "read_only", "true"},
		{HARDEN_SCRATCH, "\"/tmp:67108864\"", "{\"Tmpfs\":{\"/x\":\"size=1m\"}}",
		 "HostConfig.Tmpfs",
		 "{\"/x\":\"size=1m\",\"/tmp\":\"size=67108864,noexec,nosuid,nodev\"}",
		 "mounts[1].tmpfs_bytes", "67108864"},
		{HARDEN_OWN_SOCKET, "\"/run/gate/own.sock\"",
		 "{\"Binds\":[\"/var/run/docker.sock:/s:ro\",\"/srv/ws:/w\"]}", "HostConfig.Binds",
		 "[\"/run/gate/own.sock:/s:ro\",\"/srv/ws:/w\"]", "mounts[0].host.control",
		 "\"own\""},
		{HARDEN_LOG_LIMITS, "\"10m:3\"", "{\"LogConfig\":{\"Type\":\"\",\"Config\":{}}}",
		 "HostConfig.LogConfig",
		 "{\"Type\":\"json-file\",\"Config\":{\"max-file\":\"3\",\"max-size\":\"10m\"}}",
		 "log.options", "[]"},
		{HARDEN_AUTO_REMOVE, "true", "{\"AutoRemove\":false}", "HostConfig.AutoRemove",
		 "true", "auto_remove", "true"},
		{HARDEN_LABEL, "\"team=a=b\"", "{}", "Labels.team", "\"a=b\"", "labels", "[]"},
		{HARDEN_INIT, "true", "{}", "HostConfig.Init", "true", "init", "true"},
		{HARDEN_SECCOMP, "\"strict@sha256:8\"",
		 "{\"SecurityOpt\":[\"label=user:x\",\"seccomp=builtin\"]}",
		 "HostConfig.SecurityOpt",
		 "[\"label=user:x\",\"seccomp={\\\"defaultAction\\\":\\\"SCMP_ACT_ERRNO\\\","
		 "\\\"syscalls\\\":[]}\"]",
		 "seccomp.given", "\"own\""},
		{HARDEN_APPARMOR, "\"strict\"", "{}", "HostConfig.SecurityOpt",
		 "[\"apparmor=strict\"]", "apparmor.given", "\"strict\""},
		{HARDEN_IMAGE, "\"alpine@sha256:8\"", "{}", "Image", "\"alpine@sha256:8\"",
		 "image.name", "\"docker.io/library/alpine\""},
	};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	CHECK_INT("rows", HARDEN_COUNT - 1, sizeof(rows) / sizeof(*rows));
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct change c = {.what = rows[i].what, .rule = "t", .field = ""};
		const char *label = harden_fact(rows[i].what), *text;
		char request[512], bad[300];
		struct err err = {0};
		struct drive d;
		struct jv body;

		snprintf(request, sizeof(request),
			 "POST /v1.41/containers/create\n{\"Image\":\"alpine\",\"HostConfig\":%s,"
			 "\"NetworkingConfig\":{\"EndpointsConfig\":{\"default\":{}}}}",
			 rows[i].host);
		drive_start(&d, be, &world);
		d.has_own_socket = true;
		d.seccomp = "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[]}";
		CHECK_INT(label, STEP_READY, drive_request(&d, request));
		c.value = drive_parse(d.arena, rows[i].value);
		CHECK_INT(label, 0, be->ops->apply(be, &d.call, &c, 1, &err));
		CHECK_INT(label, 1, *c.field != '\0');
		CHECK_STR(label, rows[i].becomes,
			  drive_text(d.arena, drive_at(&d.call.workload.facts, rows[i].fact)));
		vocabulary_check(&d.call.workload.facts, bad, sizeof(bad));
		CHECK_STR(label, "", bad);
		drive_rendered(&d, &text);
		body = drive_parse(d.arena, text);
		CHECK_STR(label, rows[i].sent, drive_text(d.arena, drive_at(&body, rows[i].part)));
		if (rows[i].what == HARDEN_NETWORK)
			CHECK_STR(label, "(absent)",
				  drive_text(d.arena, drive_at(&body, "NetworkingConfig."
								      "EndpointsConfig")));
		drive_end(&d);
	}
	arena_destroy(a);
	be->ops->close(be);
}

/* What is sent says the digest; what the caller named stays on the object, for its starts. */
static void keeps_the_name_of_a_pinned_image(void **state)
{
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json"), body;
	const char *text;
	struct change c = {.what = HARDEN_IMAGE,
			   .value = jv_string("busybox@sha256:7"),
			   .rule = "t",
			   .field = ""};
	struct err err = {0};
	struct drive d;

	(void)state;
	drive_start(&d, be, &world);
	CHECK_INT("step", STEP_READY,
		  drive_request(&d, "POST /v1.41/containers/create\n{\"Image\":\"busybox\"}"));
	CHECK_INT("apply", 0, be->ops->apply(be, &d.call, &c, 1, &err));
	CHECK_STR("field", "Image", c.field);
	CHECK_STR("judged", "busybox",
		  jv_str(jv_get(&d.call.workload.facts, "image"), "given", ""));
	drive_rendered(&d, &text);
	body = drive_parse(a, text);
	CHECK_STR("sent", "busybox@sha256:7", jv_str(&body, "Image", ""));
	CHECK_STR("label", "busybox", jv_str(jv_get(&body, "Labels"), "sallyport.image", ""));
	drive_end(&d);
	arena_destroy(a);
	be->ops->close(be);
}

/* What a request asks for is judged as it stands, not made good. */
static void leaves_contrary_wishes_to_the_judge(void **state)
{
	static const struct {
		enum harden what;
		const char *value, *host;
		const char *fact, *stays; /* as JSON */
	} rows[] = {
		{HARDEN_PIDS, "256", "{\"PidsLimit\":-1}", "limits.lifted[0]",
		 "{\"field\":\"HostConfig.PidsLimit\",\"value\":\"-1\"}"},
		{HARDEN_PIDS, "256", "{\"PidsLimit\":-1}", "limits.pids", "(absent)"},
		{HARDEN_MEMORY, "256", "{\"MemorySwap\":-1}", "limits.swap", "-1"},
		{HARDEN_CPUS, "256", "{\"CpuQuota\":-1}", "limits.lifted[0].field",
		 "\"HostConfig.CpuQuota\""},
		{HARDEN_NO_NEW_PRIVILEGES, "true", "{\"SecurityOpt\":[\"no-new-privileges:0\"]}",
		 "security[0].name", "\"no-new-privileges\""},
		{HARDEN_NO_NEW_PRIVILEGES, "true", "{\"SecurityOpt\":[\"no-new-privileges:0\"]}",
		 "no_new_privileges", "true"},
	};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct change c = {.what = rows[i].what, .rule = "t", .field = ""};
		char request[512];
		struct err err = {0};
		struct drive d;

		snprintf(request, sizeof(request),
			 "POST /v1.41/containers/create\n{\"Image\":\"alpine\",\"HostConfig\":%s}",
			 rows[i].host);
		drive_start(&d, be, &world);
		CHECK_INT(rows[i].host, STEP_READY, drive_request(&d, request));
		c.value = drive_parse(d.arena, rows[i].value);
		CHECK_INT(rows[i].host, 0, be->ops->apply(be, &d.call, &c, 1, &err));
		CHECK_STR(rows[i].host, rows[i].stays,
			  drive_text(d.arena, drive_at(&d.call.workload.facts, rows[i].fact)));
		drive_end(&d);
	}
	arena_destroy(a);
	be->ops->close(be);
}

/* Engines refuse more processors than their host has; who does not say how many is asked for what
 * was meant. */
static void asks_for_no_more_processors_than_there_are(void **state)
{
	static const struct {
		const char *label;
		int64_t has, most, sent; /* has: what the engine says; most: the profile's limit */
	} rows[] = {
		{"more than there are", 2, 4000000000, 2000000000},
		{"as many", 4, 4000000000, 4000000000},
		{"fewer", 8, 1500000000, 1500000000},
		{"not said", 0, 4000000000, 4000000000},
		{"nonsense", -1, 4000000000, 4000000000},
		{"too many to be true", INT64_MAX, 4000000000, 4000000000},
	};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct change c = {.what = HARDEN_CPUS, .value = jv_int(rows[i].most), .rule = "t"};
		struct err err = {0};
		struct drive d;

		jv_set(a, (struct jv *)jv_get(&world, "info"), "NCPU", jv_int(rows[i].has));
		be->ops->forget(be);
		drive_start(&d, be, &world);
		CHECK_INT(
			rows[i].label, STEP_READY,
			drive_request(&d, "POST /v1.41/containers/create\n{\"Image\":\"alpine\"}"));
		CHECK_INT(rows[i].label, 0, be->ops->apply(be, &d.call, &c, 1, &err));
		CHECK_INT(rows[i].label, rows[i].sent,
			  drive_at(&d.call.workload.facts, "limits.nano_cpus")->i);
		CHECK_INT(rows[i].label, rows[i].sent, c.value.i); /* and so it is recorded */
		drive_end(&d);
	}
	arena_destroy(a);
	be->ops->close(be);
}

/* Each mount of the engine's socket, in either form, is named; nothing else of it changes. */
static void exchanges_every_mount_of_the_engines_socket(void **state)
{
	static const char request[] =
		"POST /v1.41/containers/create\n{\"Image\":\"alpine\",\"HostConfig\":{\"Binds\":["
		"\"/srv/ws:/w\",\"/var/run/docker.sock:/a\",\"v1:/v\",\"/run/gate/own.sock:/o\"],"
		"\"Mounts\":[{\"Type\":\"bind\",\"Source\":\"/srv/ws/engine\",\"Target\":\"/b\","
		"\"ReadOnly\":true,\"BindOptions\":{\"Propagation\":\"rprivate\"}},"
		"{\"Type\":\"tmpfs\",\"Target\":\"/t\"},"
		"{\"Type\":\"bind\",\"Source\":\"/srv/ws/sock\",\"Target\":\"/c\"}]}}";
	static const char binds[] = "[\"/srv/ws:/w\",\"/run/gate/own.sock:/a\",\"v1:/v\","
				    "\"/run/gate/own.sock:/o\"]";
	static const char mount[] = "{\"Type\":\"bind\",\"Source\":\"/run/gate/own.sock\","
				    "\"Target\":\"/b\",\"ReadOnly\":true,\"BindOptions\":{"
				    "\"Propagation\":\"rprivate\"}}";
	static const struct {
		const char *path, *want;
	} facts[] = {
		{"mounts[0].source", "\"/srv/ws\""},
		{"mounts[1].source", "\"/run/gate/own.sock\""},
		{"mounts[1].host.control", "\"own\""},
		{"mounts[1].host.instead", "(absent)"},
		{"mounts[3].host.control", "\"own\""},
		{"mounts[4].source", "\"/run/gate/own.sock\""},
		{"mounts[4].read_only", "true"},
		{"mounts[4].host.kind", "\"socket\""},
		{"mounts[6].source", "\"/srv/ws/sock\""},
		{"mounts[6].host.control", "(absent)"},
	};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json"), body;
	struct change c = {.what = HARDEN_OWN_SOCKET, .rule = "t", .field = ""};
	struct err err = {0};
	const char *text;
	struct drive d;

	(void)state;
	drive_start(&d, be, &world);
	d.has_own_socket = true;
	CHECK_INT("step", STEP_READY, drive_request(&d, request));
	c.value = jv_string("/run/gate/own.sock");
	CHECK_INT(err.msg, 0, be->ops->apply(be, &d.call, &c, 1, &err));
	CHECK_STR("field", "HostConfig.Binds[1], HostConfig.Mounts[0]", c.field);
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		CHECK_STR(facts[i].path, facts[i].want,
			  drive_text(d.arena, drive_at(&d.call.workload.facts, facts[i].path)));
	drive_rendered(&d, &text);
	body = drive_parse(d.arena, text);
	CHECK_STR("Binds", binds, drive_text(d.arena, drive_at(&body, "HostConfig.Binds")));
	CHECK_STR("Mounts", mount, drive_text(d.arena, drive_at(&body, "HostConfig.Mounts[0]")));
	CHECK_STR("another socket", "\"/srv/ws/sock\"",
		  drive_text(d.arena, drive_at(&body, "HostConfig.Mounts[2].Source")));
	drive_end(&d);
	arena_destroy(a);
	be->ops->close(be);
}

static void refuses_changes_that_do_not_fit(void **state)
{
	static const struct {
		const char *label, *request;
		enum harden what;
		const char *value;
	} rows[] = {
		{"not a launch", "POST /v1.41/containers/run/start", HARDEN_MEMORY, "1"},
		{"another kind", "POST /v1.41/containers/create\n{\"Image\":\"busybox\"}",
		 HARDEN_MEMORY, "\"1g\""},
		{"an endpoint is set up",
		 "POST /v1.41/containers/create\n{\"Image\":\"busybox\",\"NetworkingConfig\":"
		 "{\"EndpointsConfig\":{\"agents\":{\"Aliases\":[\"db\"]}}}}",
		 HARDEN_NETWORK, "\"none\""},
		{"bounds without a number of files",
		 "POST /v1.41/containers/create\n{\"Image\":\"busybox\"}", HARDEN_LOG_LIMITS,
		 "\"10m\""},
		{"a label without a value",
		 "POST /v1.41/containers/create\n{\"Image\":\"busybox\"}", HARDEN_LABEL,
		 "\"team\""},
		{"a socket of another",
		 "POST /v1.41/containers/create\n{\"Image\":\"busybox\",\"HostConfig\":"
		 "{\"Binds\":[\"/run/docker.sock:/s\"]}}",
		 HARDEN_OWN_SOCKET, "\"/run/gate/another.sock\""},
		{"no mount of the engine's socket",
		 "POST /v1.41/containers/create\n{\"Image\":\"busybox\",\"HostConfig\":"
		 "{\"Binds\":[\"/run:/s\"]}}",
		 HARDEN_OWN_SOCKET, "\"/run/gate/own.sock\""},
	};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct change c = {.what = rows[i].what, .rule = "t", .field = ""};
		struct err err = {0};
		struct drive d;

		drive_start(&d, be, &world);
		d.has_own_socket = true;
		CHECK_INT(rows[i].label, STEP_READY, drive_request(&d, rows[i].request));
		c.value = drive_parse(d.arena, rows[i].value);
		CHECK_INT(rows[i].label, -1, be->ops->apply(be, &d.call, &c, 1, &err));
		CHECK_INT(rows[i].label, ERR_CONFIG, err.kind);
		CHECK_INT(rows[i].label, 0, be->ops->apply(be, &d.call, &c, 0, &err));
		drive_end(&d);
	}
	arena_destroy(a);
	be->ops->close(be);
}

/* Lookups have a cap, and what is above it is refused. */
static void asks_for_so_much_and_no_more(void **state)
{
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (int count = LOOKUPS_MAX; count <= LOOKUPS_MAX + 1; count++) {
		struct drive d;
		struct buf b;

		buf_init(&b, 65536);
		buf_puts(&b, "POST /containers/create\n{\"Image\":\"busybox\",\"HostConfig\":"
			     "{\"Binds\":[\"/x0:/y0\"");
		for (int i = 1; i < count; i++)
			buf_printf(&b, ",\"/x%d:/y%d\"", i, i);
		buf_puts(&b, "]}}");
		drive_start(&d, be, &world);
		CHECK_INT("binds", count > LOOKUPS_MAX ? STEP_REFUSED : STEP_READY,
			  drive_request(&d, arena_strndup(d.arena, buf_span(&b).at, buf_len(&b))));
		if (count > LOOKUPS_MAX)
			CHECK_INT("why", REASON_facts_too_large, d.call.refused.list[0].reason);
		buf_fini(&b);
		drive_end(&d);
	}
	arena_destroy(a);
	be->ops->close(be);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(applies_each_change),
		cmocka_unit_test(keeps_the_name_of_a_pinned_image),
		cmocka_unit_test(leaves_contrary_wishes_to_the_judge),
		cmocka_unit_test(asks_for_no_more_processors_than_there_are),
		cmocka_unit_test(exchanges_every_mount_of_the_engines_socket),
		cmocka_unit_test(refuses_changes_that_do_not_fit),
		cmocka_unit_test(asks_for_so_much_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
