/* A launch after it was judged: hardening, what is sent, what came of it. */
#include "tests/unit/backends/drive.h"
#include "tests/unit/backends/vocabulary.h"
#include "tests/unit/check.h"

#include <string.h>

/* The request of which data/world.json holds what a real engine made: container "full". */
#define FULL                                                                                       \
	"POST /v1.41/containers/create?name=full\n"                                                \
	"{\"Image\":\"busybox\",\"User\":\"1000:1000\",\"Cmd\":[\"sleep\",\"1000\"],"              \
	"\"HostConfig\":{\"Runtime\":\"runsc\",\"NetworkMode\":\"none\",\"CapDrop\":[\"ALL\"],"    \
	"\"SecurityOpt\":[\"no-new-privileges\"],\"Memory\":536870912,"                            \
	"\"NanoCpus\":1500000000,\"PidsLimit\":100,\"ReadonlyRootfs\":true,\"Init\":true,"         \
	"\"Binds\":[\"/srv/./ws:/w:ro\",\"v1:/v\"],\"Tmpfs\":{\"/run\":\"size=10m\"},"             \
	"\"Mounts\":[{\"Type\":\"tmpfs\",\"Target\":\"/"                                           \
	"t\",\"TmpfsOptions\":{\"SizeBytes\":1000000}}]}}"

#define FULL_ID "787a0701953e5ff869860b6a5875befc1875e159858768fb0d2c9423b642fac0"

static enum step check(struct drive *d, const char *reply)
{
	enum step step;

	while ((step = d->be->ops->check(d->be, &d->call, span_of(reply))) == STEP_LOOKUP)
		drive_answer(d);
	return step;
}

/* Sets the value at a path of objects and arrays in a copy-free tree. */
static void set_at(struct arena *a, struct jv *doc, const char *path, const char *json)
{
	const char *dot = strrchr(path, '.');
	char parent[200];
	struct jv *at = doc;

	if (dot) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(dot - path), path);
		at = (struct jv *)drive_at(doc, parent);
	}
	CHECK_INT(path, 1, at != NULL);
	jv_set(a, at, dot ? dot + 1 : path, drive_parse(a, json));
}

static void sends_exactly_what_was_judged(void **state)
{
	static const char want[] =
		"{\"User\":\"1000:1000\",\"Cmd\":[\"sleep\",\"1000\"],\"Image\":\"busybox\","
		"\"Labels\":{\"sallyport.owner\":\"alice\",\"sallyport.decision\":\"0191-"
		"decision\"},"
		"\"HostConfig\":{\"Binds\":[\"/srv/ws:/w:ro\",\"v1:/v\"],\"NetworkMode\":\"none\","
		"\"Mounts\":[{\"Type\":\"tmpfs\",\"Target\":\"/"
		"t\",\"TmpfsOptions\":{\"SizeBytes\":1000000}}],"
		"\"CapDrop\":[\"ALL\"],\"ReadonlyRootfs\":true,\"SecurityOpt\":[\"no-new-"
		"privileges\"],"
		"\"Tmpfs\":{\"/run\":\"size=10m\"},\"Runtime\":\"runsc\",\"Init\":true,"
		"\"Memory\":536870912,\"NanoCpus\":1500000000,\"PidsLimit\":100}}";
	static const char head[] = "POST /v1.41/containers/create?name=full HTTP/1.1\r\n"
				   "Host: docker\r\n"
				   "Content-Type: application/json\r\n"
				   "Content-Length: %zu\r\n\r\n";
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");
	const char *body, *got;
	char wanted[512];
	struct drive d;

	(void)state;
	drive_start(&d, be, &world);
	CHECK_INT("step", STEP_READY, drive_request(&d, FULL));
	got = drive_rendered(&d, &body);
	snprintf(wanted, sizeof(wanted), head, strlen(want));
	CHECK_STR("body", want, body);
	CHECK_STR("head", wanted, got);
	drive_end(&d);
	arena_destroy(a);
	be->ops->close(be);
}

/* What it will be held against when it is judged again: no more than was kept when it was made. */
static void says_what_it_was_made_with(void **state)
{
	static const struct {
		const char *label, *request, *profile, *want; /* want: of the label; "": none */
		enum isolation minimum;
		const char *listener;
	} rows[] = {
		{"kept", FULL, "p", "kernel", ISOLATION_KERNEL, ""},
		{"more than asked for", FULL, "p", "process", ISOLATION_PROCESS, ""},
		{"less, and let pass by a mode", FULL, "p", "kernel", ISOLATION_VM, ""},
		{"under no profile", FULL, "", "", ISOLATION_KERNEL, ""},
		{"through a listener of run time", FULL, "p", "kernel", ISOLATION_KERNEL, "seven"},
	};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *text;
		struct jv body;
		struct drive d;

		drive_start(&d, be, &world);
		d.call.profile = rows[i].profile;
		d.call.minimum = rows[i].minimum;
		d.call.listener = rows[i].listener;
		CHECK_INT(rows[i].label, STEP_READY, drive_request(&d, rows[i].request));
		drive_rendered(&d, &text);
		body = drive_parse(a, text);
		CHECK_STR(rows[i].label, rows[i].want,
			  jv_str(jv_get(&body, "Labels"), "sallyport.isolation", ""));
		CHECK_STR(rows[i].label, rows[i].profile,
			  jv_str(jv_get(&body, "Labels"), "sallyport.profile", ""));
		CHECK_STR(rows[i].label, rows[i].listener,
			  jv_str(jv_get(&body, "Labels"), "sallyport.listener", ""));
		drive_end(&d);
	}
	arena_destroy(a);
	be->ops->close(be);
}

static void finds_what_is_not_as_judged(void **state)
{
	static const struct {
		const char *path, *value;
		const char *field; /* "": as judged all the same */
	} rows[] = {
		{"Name", "\"/full\"", ""},
		{"HostConfig.CapDrop", "[\"all\"]", ""},
		{"HostConfig.IpcMode", "\"shareable\"", ""},
		{"HostConfig.CgroupnsMode", "\"private\"", ""},
		{"HostConfig.SecurityOpt", "[]", "HostConfig.SecurityOpt"},
		{"HostConfig.SecurityOpt", "[\"no-new-privileges\",\"seccomp=unconfined\"]",
		 "HostConfig.SecurityOpt"},
		{"HostConfig.Runtime", "\"runc\"", "HostConfig.Runtime"},
		{"HostConfig.Privileged", "true", "HostConfig.Privileged"},
		{"HostConfig.CapAdd", "[\"SYS_ADMIN\"]", "HostConfig.CapAdd"},
		{"HostConfig.CapDrop", "null", "HostConfig.CapDrop"},
		{"HostConfig.PidMode", "\"host\"", "HostConfig.PidMode"},
		{"HostConfig.IpcMode", "\"host\"", "HostConfig.IpcMode"},
		{"HostConfig.UTSMode", "\"host\"", "HostConfig.UTSMode"},
		{"HostConfig.UsernsMode", "\"host\"", "HostConfig.UsernsMode"},
		{"HostConfig.NetworkMode", "\"bridge\"", "HostConfig.NetworkMode"},
		{"HostConfig.Binds", "[\"/srv/ws:/w:ro\",\"v1:/v\",\"/:/h\"]", "HostConfig.Binds"},
		{"HostConfig.Devices", "[{\"PathOnHost\":\"/dev/sda\"}]", "HostConfig.Devices"},
		{"HostConfig.DeviceCgroupRules", "[\"a *:* rwm\"]", "HostConfig.DeviceCgroupRules"},
		{"HostConfig.Memory", "0", "HostConfig.Memory"},
		{"HostConfig.NanoCpus", "0", "HostConfig.NanoCpus"},
		{"HostConfig.PidsLimit", "null", "HostConfig.PidsLimit"},
		{"HostConfig.ReadonlyRootfs", "false", "HostConfig.ReadonlyRootfs"},
		{"HostConfig.Sysctls", "{\"a\":\"1\"}", "HostConfig.Sysctls"},
		{"HostConfig.CgroupParent", "\"/x\"", "HostConfig.CgroupParent"},
		{"HostConfig.OomKillDisable", "true", "HostConfig.OomKillDisable"},
		{"HostConfig.GroupAdd", "[\"0\"]", "HostConfig.GroupAdd"},
		{"HostConfig.MaskedPaths", "[]", "HostConfig.MaskedPaths"},
		{"HostConfig.ReadonlyPaths", "[\"/proc/bus\"]", "HostConfig.MaskedPaths"},
		{"Config.User", "\"0\"", "Config.User"},
		{"Config.Labels", "{\"sallyport.owner\":\"bob\"}", "Config.Labels.sallyport.owner"},
		{"Config.Labels", "{}", "Config.Labels.sallyport.owner"},
		{"Config.Labels",
		 "{\"sallyport.owner\":\"alice\",\"sallyport.decision\":\"0191-decision\",\"x\":"
		 "\"y\"}",
		 ""},
		{"Config.Labels",
		 "{\"sallyport.owner\":\"alice\",\"sallyport.decision\":\"other\"}",
		 "Config.Labels.sallyport.decision"},
		{"Config.Labels",
		 "{\"sallyport.owner\":\"alice\",\"sallyport.more\":\"of the image\"}",
		 "Config.Labels.sallyport.more"},
		{"Image", "\"sha256:0\"", "Image"},
		{"Mounts",
		 "[{\"Type\":\"bind\",\"Source\":\"/etc\",\"Destination\":\"/w\",\"RW\":false}]",
		 "Mounts[0]"},
		{"Mounts",
		 "[{\"Type\":\"bind\",\"Source\":\"/srv/ws\",\"Destination\":\"/w\",\"RW\":true}]",
		 "Mounts[0]"},
		{"Mounts",
		 "[{\"Type\":\"bind\",\"Source\":\"/srv/ws\",\"Destination\":\"/x\",\"RW\":false}]",
		 "Mounts[0]"},
		{"Mounts", "[{\"Type\":\"volume\",\"Name\":\"other\",\"Destination\":\"/v\"}]",
		 "Mounts[0]"},
		{"Mounts", "[{\"Type\":\"volume\",\"Name\":\"other\",\"Destination\":\"/x\"}]",
		 "Mounts[0]"},
		{"Mounts",
		 "[{\"Type\":\"volume\",\"Name\":\"" FULL_ID "\",\"Destination\":\"/x\"}]", ""},
		{"HostConfig", "null", "Id"},
		{"Id", "\"x\"", "Id"},
	};
	struct backend *be = drive_open();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(DRIVE_ARENA_BYTES);
		struct jv world = drive_json(a, "world.json");
		struct jv *made = (struct jv *)jv_path(&world, "containers.full");
		struct drive d;

		set_at(a, made, rows[i].path, rows[i].value);
		drive_start(&d, be, &world);
		CHECK_INT(rows[i].path, STEP_READY, drive_request(&d, FULL));
		drive_rendered(&d, NULL);
		CHECK_INT(rows[i].path, *rows[i].field ? STEP_REFUSED : STEP_READY,
			  check(&d, "{\"Id\":\"" FULL_ID "\",\"Warnings\":[]}"));
		CHECK_STR("created", FULL_ID, be->ops->created(&d.call));
		if (*rows[i].field) {
			CHECK_INT(rows[i].path, REASON_not_as_judged,
				  d.call.refused.list[0].reason);
			CHECK_STR(rows[i].path, rows[i].field, d.call.refused.list[0].field);
		}
		drive_end(&d);
		arena_destroy(a);
	}
	be->ops->close(be);
}

/* What an engine adds by itself, or writes in its own way, is as judged. */
static void takes_what_engines_add(void **state)
{
	static const struct {
		const char *label, *host, *path, *value;
		enum step want;
	} rows[] = {
		{"privileged", "\"Privileged\":true", "SecurityOpt", "[\"label=disable\"]",
		 STEP_READY},
		{"host's processes", "\"PidMode\":\"host\"", "SecurityOpt", "[\"label=disable\"]",
		 STEP_READY},
		{"nothing of the host's", "\"Init\":false", "SecurityOpt", "[\"label=disable\"]",
		 STEP_REFUSED},
		{"another option", "\"Privileged\":true", "SecurityOpt",
		 "[\"label=disable\",\"seccomp=unconfined\"]", STEP_REFUSED},
		{"members that say nothing", "\"DeviceRequests\":[{\"Count\":-1}]",
		 "DeviceRequests",
		 "[{\"Driver\":\"\",\"Count\":-1,\"DeviceIDs\":null,\"Options\":{}}]", STEP_READY},
		{"a member that was not sent", "\"DeviceRequests\":[{\"Count\":-1}]",
		 "DeviceRequests", "[{\"Driver\":\"x\",\"Count\":-1}]", STEP_REFUSED},
		{"a member that is gone", "\"DeviceRequests\":[{\"Count\":-1}]", "DeviceRequests",
		 "[{}]", STEP_REFUSED},
		{"one more", "\"DeviceRequests\":[{\"Count\":-1}]", "DeviceRequests",
		 "[{\"Count\":-1},{}]", STEP_REFUSED},
	};
	struct backend *be = drive_open();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(DRIVE_ARENA_BYTES);
		struct jv world = drive_json(a, "world.json");
		struct jv *made = (struct jv *)jv_path(&world, "containers.full");
		char request[400], host[400];
		struct drive d;

		snprintf(request, sizeof(request),
			 "POST "
			 "/v1.41/containers/create\n{\"Image\":\"busybox\",\"HostConfig\":{%s}}",
			 rows[i].host);
		snprintf(host, sizeof(host), "{\"Runtime\":\"runc\",%s}", rows[i].host);
		set_at(a, made, "HostConfig", host);
		set_at(a, (struct jv *)jv_get(made, "HostConfig"), rows[i].path, rows[i].value);
		set_at(a, made, "Mounts", "[]");
		drive_start(&d, be, &world);
		CHECK_INT(rows[i].label, STEP_READY, drive_request(&d, request));
		drive_rendered(&d, NULL);
		CHECK_INT(rows[i].label, rows[i].want, check(&d, "{\"Id\":\"" FULL_ID "\"}"));
		drive_end(&d);
		arena_destroy(a);
	}
	be->ops->close(be);
}

static void undoes_what_was_made(void **state)
{
	static const char want[] = "DELETE /v1.41/containers/" FULL_ID "?force=1&v=1 HTTP/1.1\r\n"
				   "Host: docker\r\n\r\n";
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");
	struct outgoing out = {.streams_body = true};
	struct err err = {0};
	struct drive d;

	(void)state;
	drive_start(&d, be, &world);
	drive_request(&d, FULL);
	drive_rendered(&d, NULL);
	check(&d, "{\"Id\":\"" FULL_ID "\"}");
	buf_init(&out.head, 4096);
	buf_init(&out.body, 4096);
	CHECK_INT("undo", 0, be->ops->undo(be, &d.call, &out, &err));
	CHECK_STR("head", want, arena_strndup(a, buf_span(&out.head).at, buf_len(&out.head)));
	CHECK_INT("body", 0, buf_len(&out.body));
	CHECK_INT("streams", 0, out.streams_body);
	buf_fini(&out.head);
	buf_fini(&out.body);
	drive_end(&d);
	arena_destroy(a);
	be->ops->close(be);
}

static void trusts_no_odd_reply(void **state)
{
	static const char *const replies[] = {"",
					      "{}",
					      "[]",
					      "{\"Id\":\"\"}",
					      "{\"Id\":1}",
					      "{\"Id\":\"../x\"}",
					      "{\"Id\":\"787a\"}",
					      "x"};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++) {
		struct outgoing out = {.streams_body = false};
		struct err err = {0};
		struct drive d;

		drive_start(&d, be, &world);
		drive_request(&d, FULL);
		drive_rendered(&d, NULL);
		CHECK_INT(replies[i], STEP_REFUSED, check(&d, replies[i]));
		CHECK_INT(replies[i], REASON_engine_reply, d.call.refused.list[0].reason);
		CHECK_STR(replies[i], "", be->ops->created(&d.call));
		CHECK_INT(replies[i], -1, be->ops->undo(be, &d.call, &out, &err));
		drive_end(&d);
	}
	arena_destroy(a);
	be->ops->close(be);
}

/* The engine does not answer the inspection: what was made cannot stay. */
static void keeps_nothing_it_cannot_see(void **state)
{
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");
	struct drive d;

	(void)state;
	drive_start(&d, be, &world);
	drive_request(&d, FULL);
	drive_rendered(&d, NULL);
	d.unreachable = true;
	CHECK_INT("away", STEP_REFUSED, check(&d, "{\"Id\":\"" FULL_ID "\"}"));
	CHECK_STR("created", FULL_ID, be->ops->created(&d.call));
	drive_end(&d);
	arena_destroy(a);
	be->ops->close(be);
}

/* --- hardening --- */

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

/* --- what is remembered of the engine --- */

static size_t asked(struct backend *be, const struct jv *world, const char *request, uint64_t now)
{
	struct drive d;
	size_t n;

	drive_start(&d, be, world);
	d.call.now_ms = now;
	drive_request(&d, request);
	n = d.asked;
	drive_end(&d);
	return n;
}

static void remembers_the_engine_for_a_while(void **state)
{
	static const char list[] = "GET /containers/json";
	static const char create[] = "POST /containers/create\n{\"Image\":\"busybox\"}";
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");
	struct drive d;

	(void)state;
	CHECK_INT("first", 1, asked(be, &world, list, 1000));
	CHECK_INT("again", 0, asked(be, &world, list, 5999));
	CHECK_INT("after 5 s", 1, asked(be, &world, list, 6000));
	CHECK_INT("create: image and info", 2, asked(be, &world, create, 6001));
	CHECK_INT("create: image", 1, asked(be, &world, create, 8000));
	CHECK_INT("create: after 2 s", 2, asked(be, &world, create, 8001));
	be->ops->forget(be);
	CHECK_INT("forgotten", 1, asked(be, &world, list, 8002));
	CHECK_INT("forgotten too", 2, asked(be, &world, create, 8003));
	drive_start(&d, be, &world);
	d.offline = true;
	d.call.now_ms = 8004;
	drive_request(&d, create);
	CHECK_INT("offline nothing counts", 3, d.asked);
	drive_end(&d);
	arena_destroy(a);
	be->ops->close(be);
}

/* A cache that is renewed while another call is under way does not pull the rug. */
static void outlives_a_renewal(void **state)
{
	static const char create[] = "POST /containers/create\n{\"Image\":\"busybox\","
				     "\"HostConfig\":{\"Runtime\":\"runsc\"}}";
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");
	struct drive d;
	const char *body;

	(void)state;
	asked(be, &world, create, 1);
	drive_start(&d, be, &world);
	d.call.now_ms = 2;
	CHECK_INT("ready", STEP_READY, drive_request(&d, create));
	be->ops->forget(be);
	asked(be, &world, create, 9000);
	drive_rendered(&d, &body);
	CHECK_STR("runtime", "\"runsc\"",
		  drive_text(d.arena, drive_at(&d.call.workload.facts, "isolation.runtime")));
	drive_end(&d);
	arena_destroy(a);
	be->ops->close(be);
}

/* Commas inside of strings are no values. */
static void reads_only_so_many_values(void **state)
{
	static const struct {
		const char *label, *value;
		int count;
		enum step want;
	} rows[] = {
		{"many", "\"a\",", 16000, STEP_READY},
		{"too many", "\"a\",", 17000, STEP_REFUSED},
		{"commas in a text", ",,\\\"", 17000, STEP_READY},
	};
	struct backend *be = drive_open();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(DRIVE_ARENA_BYTES);
		struct jv world = drive_json(a, "world.json");
		bool text = rows[i].value[0] == ',';
		struct drive d;
		struct buf b;

		buf_init(&b, 1 << 20);
		buf_printf(&b, "POST /v1.41/containers/create\n{\"Image\":\"busybox\",\"Cmd\":[%s",
			   text ? "\"" : "");
		for (int k = 0; k < rows[i].count; k++)
			buf_puts(&b, rows[i].value);
		buf_puts(&b, text ? "\"]}" : "\"z\"]}");
		drive_start(&d, be, &world);
		CHECK_INT(rows[i].label, rows[i].want,
			  drive_request(&d, arena_strndup(a, buf_span(&b).at, buf_len(&b))));
		if (rows[i].want == STEP_REFUSED)
			CHECK_INT(rows[i].label, REASON_json_limit, d.call.refused.list[0].reason);
		drive_end(&d);
		buf_fini(&b);
		arena_destroy(a);
	}
	be->ops->close(be);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends_exactly_what_was_judged),
		cmocka_unit_test(says_what_it_was_made_with),
		cmocka_unit_test(finds_what_is_not_as_judged),
		cmocka_unit_test(takes_what_engines_add),
		cmocka_unit_test(undoes_what_was_made),
		cmocka_unit_test(trusts_no_odd_reply),
		cmocka_unit_test(keeps_nothing_it_cannot_see),
		cmocka_unit_test(applies_each_change),
		cmocka_unit_test(keeps_the_name_of_a_pinned_image),
		cmocka_unit_test(leaves_contrary_wishes_to_the_judge),
		cmocka_unit_test(asks_for_no_more_processors_than_there_are),
		cmocka_unit_test(exchanges_every_mount_of_the_engines_socket),
		cmocka_unit_test(refuses_changes_that_do_not_fit),
		cmocka_unit_test(asks_for_so_much_and_no_more),
		cmocka_unit_test(remembers_the_engine_for_a_while),
		cmocka_unit_test(outlives_a_renewal),
		cmocka_unit_test(reads_only_so_many_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
