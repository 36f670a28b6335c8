/* A launch after it was judged: what is sent, what came of it. */
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

#define MYNET "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"

/* The id of an own network is sent; engines show that, or its name. */
static void knows_an_own_network_by_id_and_name(void **state)
{
	static const struct {
		const char *made;
		enum step step;
	} rows[] = {{"\"" MYNET "\"", STEP_READY},
		    {"\"mynet\"", STEP_READY},
		    {"\"prod\"", STEP_REFUSED},
		    {"\"none\"", STEP_REFUSED}};
	struct backend *be = drive_open();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(DRIVE_ARENA_BYTES);
		struct jv world = drive_json(a, "world.json");
		struct jv *made = (struct jv *)jv_path(&world, "containers.full");
		static const char full[] = FULL;
		const char *mode = strstr(full, "\"none\""), *body;
		char text[2048];
		struct drive d;

		snprintf(text, sizeof(text), "%.*s\"mynet\"%s", (int)(mode - full), full,
			 mode + strlen("\"none\""));
		set_at(a, made, "HostConfig.NetworkMode", rows[i].made);
		drive_start(&d, be, &world);
		CHECK_INT(rows[i].made, STEP_READY, drive_request(&d, text));
		drive_rendered(&d, &body);
		CHECK_INT("the id is sent", true, strstr(body, "\"NetworkMode\":\"" MYNET) != NULL);
		CHECK_INT(rows[i].made, rows[i].step,
			  check(&d, "{\"Id\":\"" FULL_ID "\",\"Warnings\":[]}"));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends_exactly_what_was_judged),
		cmocka_unit_test(says_what_it_was_made_with),
		cmocka_unit_test(finds_what_is_not_as_judged),
		cmocka_unit_test(knows_an_own_network_by_id_and_name),
		cmocka_unit_test(takes_what_engines_add),
		cmocka_unit_test(undoes_what_was_made),
		cmocka_unit_test(trusts_no_odd_reply),
		cmocka_unit_test(keeps_nothing_it_cannot_see),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
