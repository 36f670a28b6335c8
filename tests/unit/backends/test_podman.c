/* Podman: what a service says, what is asked of it, and what it made, by documents of a real one.
 */
#include "tests/unit/backends/drive.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#define ID "61e1e48102406e09bdcbf620357aff424e104e2e5d1e9044747944c762694872"

static struct backend *opened(void)
{
	const struct backend_conf conf = {.name = "t"};
	struct err err = {0};
	struct backend *be = backend_find("podman")->open(&conf, &err);

	if (!be)
		fail_msg("the adapter: %s", err.msg);
	return be;
}

/* --- what is asked --- */

#define LIMITS                                                                                     \
	"\"resource_limits\":{\"memory\":{\"limit\":67108864,\"swap\":67108864},"                  \
	"\"cpu\":{\"quota\":50000,\"period\":100000},\"pids\":{\"limit\":64}}"
#define SPEC                                                                                       \
	"POST /v4.3.1/libpod/containers/create\n{\"name\":\"ut\",\"image\":\"reg.example/team/"    \
	"app:1\",\"command\":[\"sleep\",\"100\"],\"user\":\"65534:65534\",\"env\":{\"A\":\"b\"},"  \
	"\"netns\":{\"nsmode\":\"none\"},\"read_only_filesystem\":true,\"cap_drop\":[\"ALL\"],"    \
	"\"no_new_privileges\":true,\"mounts\":[{\"type\":\"tmpfs\",\"source\":\"tmpfs\","         \
	"\"destination\":\"/tmp\",\"options\":[\"rw\",\"rprivate\",\"nosuid\",\"nodev\","          \
	"\"tmpcopyup\"]}]," LIMITS "}"

/* The create of the one tree goes out as one of the other, by the id of the image that was found.
 */
static void a_spec_is_sent_in_the_words_of_the_other_tree(void **state)
{
	static const char *const want[] = {
		"\"Image\":\"sha256:",
		"\"Cmd\":[\"sleep\",\"100\"]",
		"\"User\":\"65534:65534\"",
		"\"Env\":[\"A=b\"]",
		"\"NetworkMode\":\"none\"",
		"\"ReadonlyRootfs\":true",
		"\"CapDrop\":[\"ALL\"]",
		"\"SecurityOpt\":[\"no-new-privileges\"]",
		"\"Memory\":67108864",
		"\"CpuQuota\":50000",
		"\"PidsLimit\":64",
		"\"sallyport.owner\":\"alice\"",
		"\"sallyport.image\":\"reg.example/team/app:1\"",
	};
	struct backend *be = opened();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "podman.json");
	const char *head, *body;
	struct drive d;

	(void)state;
	drive_start(&d, be, &world);
	CHECK_INT("ready", STEP_READY, drive_request(&d, SPEC));
	CHECK_STR("level", "\"process\"",
		  drive_text(d.arena, drive_at(&d.call.workload.facts, "isolation.level")));
	CHECK_STR("runtime", "\"runc\"",
		  drive_text(d.arena, drive_at(&d.call.workload.facts, "isolation.runtime")));
	CHECK_STR("name", "\"ut\"", drive_text(d.arena, drive_at(&d.call.workload.facts, "name")));
	head = drive_rendered(&d, &body);
	CHECK_INT(head, 0, strncmp(head, "POST /v1.41/containers/create?name=ut HTTP/1.1\r\n", 48));
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
		if (!strstr(body, want[i]))
			fail_msg("no %s in %s", want[i], body);
	/* The client's own way to say what the service does by itself. */
	CHECK_INT("no tmpfs", 1, !strstr(body, "Tmpfs"));
	CHECK_INT("no runtime", 1, !strstr(body, "Runtime"));
	drive_end(&d);
	be->ops->close(be);
	arena_destroy(a);
}

/* --- what was made --- */

#define CREATE                                                                                     \
	"POST /v1.41/containers/create?name=ut\n{\"Image\":\"reg.example/team/app:1\",\"Cmd\":["   \
	"\"sleep\",\"100\"],\"User\":\"65534:65534\",\"HostConfig\":{\"NetworkMode\":\"none\","    \
	"\"ReadonlyRootfs\":true,\"Tmpfs\":{\"/tmp\":\"size=1048576,noexec,nosuid,nodev\"},"       \
	"\"Memory\":67108864,\"MemorySwap\":67108864,\"NanoCpus\":500000000,\"PidsLimit\":64,"     \
	"\"CapDrop\":[\"ALL\"],\"SecurityOpt\":[\"no-new-privileges:true\"],\"Init\":false}}"

/* The text with the first `from` replaced. */
static char *replaced(struct arena *a, struct span text, const char *from, const char *to)
{
	const char *at = memmem(text.at, text.len, from, strlen(from));
	size_t size = text.len + strlen(to) + 1;
	char *out = arena_take(a, size);

	if (!at || !out)
		fail_msg("there is no %s in the document", from);
	snprintf(out, size, "%.*s%s%s", (int)(at - text.at), text.at, to, at + strlen(from));
	return out;
}

static enum step checked(const char *from, const char *to, char *ret_field, size_t size)
{
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct span text = drive_read(a, "podman.json");
	struct jv world = drive_json(a, "podman.json"), made;
	struct backend *be = opened();
	enum step step;
	struct drive d;

	drive_start(&d, be, &world);
	CHECK_INT(from, STEP_READY, drive_request(&d, CREATE));
	drive_rendered(&d, &(const char *){NULL});
	made = drive_parse(a, *from ? replaced(a, text, from, to) : text.at);
	d.world = &made;
	while ((step = be->ops->check(be, &d.call, span_of("{\"Id\":\"" ID "\"}"))) == STEP_LOOKUP)
		drive_answer(&d);
	snprintf(ret_field, size, "%s", d.call.refused.count ? d.call.refused.list[0].field : "");
	drive_end(&d);
	be->ops->close(be);
	arena_destroy(a);
	return step;
}

static void what_was_made_is_held_against_what_was_judged(void **state)
{
	static const struct {
		const char *label, *from, *to, *field;
	} rows[] = {
		{"as it was judged", "", "", ""},
		{"another runtime", "\"OCIRuntime\": \"runc\"", "\"OCIRuntime\": \"crun\"",
		 "OCIRuntime"},
		{"a runtime of that name elsewhere", "\"OCIRuntime\": \"runc\"",
		 "\"OCIRuntime\": \"/opt/runc\"", "OCIRuntime"},
		{"privileged", "\"Privileged\": false", "\"Privileged\": true",
		 "HostConfig.Privileged"},
		{"a capability that was dropped", "\"BoundingCaps\": null",
		 "\"BoundingCaps\": [\"CAP_CHOWN\"]", "BoundingCaps"},
		{"more memory", "\"Memory\": 67108864", "\"Memory\": 0", "HostConfig.Memory"},
		{"more processors", "\"NanoCpus\": 500000000", "\"NanoCpus\": 900000000",
		 "HostConfig.NanoCpus"},
		{"more processes", "\"PidsLimit\": 64", "\"PidsLimit\": 2048",
		 "HostConfig.PidsLimit"},
		{"without control groups", "\"Cgroups\": \"default\"", "\"Cgroups\": \"disabled\"",
		 "HostConfig.Cgroups"},
		{"in a pod", "\"Pod\": \"\"", "\"Pod\": \"p\"", "HostConfig.Pod"},
		{"from a folder", "\"Rootfs\": \"\"", "\"Rootfs\": \"/\"", "HostConfig.Rootfs"},
		{"another user", "\"User\": \"65534:65534\"", "\"User\": \"0\"", "Config.User"},
		{"the host's network", "\"NetworkMode\": \"none\"", "\"NetworkMode\": \"host\"",
		 "HostConfig.NetworkMode"},
		{"the host's processes", "\"PidMode\": \"private\"", "\"PidMode\": \"host\"",
		 "HostConfig.PidMode"},
		{"an annotation", "\"Annotations\": {",
		 "\"Annotations\": {\"run.oci.handler\":\"x\",", "HostConfig.Annotations"},
		{"a mount that nobody asked for", "\"Mounts\": []",
		 "\"Mounts\": [{\"Type\":\"bind\",\"Source\":\"/etc\",\"Destination\":\"/e\","
		 "\"RW\":true,\"Propagation\":\"rprivate\"}]",
		 "Mounts[0]"},
	};
	char field[256];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		enum step want = *rows[i].from ? STEP_REFUSED : STEP_READY;

		CHECK_INT(rows[i].label, want,
			  checked(rows[i].from, rows[i].to, field, sizeof(field)));
		CHECK_STR(rows[i].label, rows[i].field, field);
	}
}

/* --- the service --- */

static void what_is_not_podman_is_not_spoken_to(void **state)
{
	static const struct {
		const char *kind, *world;
	} rows[] = {{"podman", "world.json"}, {"docker", "podman.json"}};
	const struct backend_conf conf = {.name = "t"};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(DRIVE_ARENA_BYTES);
		struct jv world = drive_json(a, rows[i].world);
		struct err err = {0};
		struct backend *be = backend_find(rows[i].kind)->open(&conf, &err);
		struct drive d;

		drive_start(&d, be, &world);
		CHECK_INT(rows[i].kind, STEP_REFUSED,
			  drive_request(&d, "GET /v1.41/containers/json"));
		CHECK_INT(rows[i].kind, REASON_engine_reply, d.call.refused.list[0].reason);
		drive_end(&d);
		be->ops->close(be);
		arena_destroy(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_spec_is_sent_in_the_words_of_the_other_tree),
		cmocka_unit_test(what_was_made_is_held_against_what_was_judged),
		cmocka_unit_test(what_is_not_podman_is_not_spoken_to),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
