/* Names that are longer than what is shown to people are told apart, and looked into as a whole. */
#include "tests/unit/backends/drive.h"
#include "tests/unit/check.h"

#include <string.h>

#define L50  "abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvw"
#define LONG L50 L50 L50 L50 L50 /* more than VIOLATION_VALUE_MAX */

static const char networks[] =
	"{\"" LONG ".a\":{\"Id\":\"n1\",\"Name\":\"" LONG ".a\",\"Labels\":{\"sallyport.owner\":"
	"\"alice\"}},"
	"\"" LONG ".b\":{\"Id\":\"n2\",\"Name\":\"" LONG ".b\",\"Labels\":{}}}";

struct row {
	const char *label, *request, *fact, *want;
};

static void check(const struct row *rows, size_t count)
{
	const struct backend_conf conf = {.name = "t"};
	struct err err = {0};
	struct backend *be = backend_find("docker")->open(&conf, &err);
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	jv_set(a, &world, "networks", drive_parse(a, networks));
	for (size_t i = 0; i < count; i++) {
		struct drive d;

		drive_start(&d, be, &world);
		CHECK_INT(rows[i].label, STEP_READY, drive_request(&d, rows[i].request));
		CHECK_STR(rows[i].label, rows[i].want,
			  drive_text(d.arena, drive_at(&d.call.workload.facts, rows[i].fact)));
		drive_end(&d);
	}
	be->ops->close(be);
	arena_destroy(a);
}

#define CREATE(more)   "POST /v1.41/containers/create\n{\"Image\":\"busybox\"," more "}"
#define ENDPOINTS(one) "\"NetworkingConfig\":{\"EndpointsConfig\":{" one "}}"

static void networks_are_told_apart(void **state)
{
	static const struct row rows[] = {
		{"one's own", CREATE(ENDPOINTS("\"" LONG ".a\":{}")), "network.endpoints[0].mine",
		 "true"},
		{"another's", CREATE(ENDPOINTS("\"" LONG ".b\":{}")), "network.endpoints[0].mine",
		 "false"},
		{"its name", CREATE(ENDPOINTS("\"" LONG ".b\":{}")), "network.endpoints[0].name",
		 "\"" LONG ".b\""},
		{"both are not one", CREATE(ENDPOINTS("\"" LONG ".a\":{},\"" LONG ".b\":{}")),
		 "network.endpoints[1].name", "\"" LONG ".b\""},
	};

	(void)state;
	check(rows, sizeof(rows) / sizeof(*rows));
}

#define EXEC(cmd) "POST /v1.41/containers/run/exec\n{\"Cmd\":[\"" cmd "\"]}"

static void what_is_looked_into_is_whole(void **state)
{
	static const struct row rows[] = {
		{"a program, by its last part", EXEC("/" LONG "/nsenter"), "exec.program",
		 "\"/" LONG "/nsenter\""},
		{"a target of memory", CREATE("\"HostConfig\":{\"Tmpfs\":{\"/" LONG "/x\":\"\"}}"),
		 "mounts[0].target", "\"/" LONG "/x\""},
	};

	(void)state;
	check(rows, sizeof(rows) / sizeof(*rows));
}

/* Of two that differ behind what is shown, the facts differ. */
static void words_are_told_apart(void **state)
{
	static const struct {
		const char *label, *first, *second, *fact;
	} rows[] = {
		{"options of a volume",
		 "POST /v1.41/volumes/create\n{\"DriverOpts\":{\"" LONG ".a\":\"x\"}}",
		 "POST /v1.41/volumes/create\n{\"DriverOpts\":{\"" LONG ".b\":\"x\"}}",
		 "volume.options[0]"},
		{"labels of a volume",
		 "POST /v1.41/volumes/create\n{\"Labels\":{\"" LONG ".a\":\"x\"}}",
		 "POST /v1.41/volumes/create\n{\"Labels\":{\"" LONG ".b\":\"x\"}}",
		 "labels[0].name"},
		{"variables of a command",
		 "POST /v1.41/containers/run/exec\n{\"Cmd\":[\"x\"],\"Env\":[\"" LONG ".a=1\"]}",
		 "POST /v1.41/containers/run/exec\n{\"Cmd\":[\"x\"],\"Env\":[\"" LONG ".b=1\"]}",
		 "exec.env[0]"},
		{"options of a network",
		 "POST /v1.41/networks/create\n{\"Name\":\"n\",\"Options\":{\"" LONG ".a\":\"x\"}}",
		 "POST /v1.41/networks/create\n{\"Name\":\"n\",\"Options\":{\"" LONG ".b\":\"x\"}}",
		 "net.options[0]"},
	};
	const struct backend_conf conf = {.name = "t"};
	struct err err = {0};
	struct backend *be = backend_find("docker")->open(&conf, &err);
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct jv *one, *two;
		struct drive first, second;

		drive_start(&first, be, &world);
		drive_start(&second, be, &world);
		CHECK_INT(rows[i].label, STEP_READY, drive_request(&first, rows[i].first));
		CHECK_INT(rows[i].label, STEP_READY, drive_request(&second, rows[i].second));
		one = drive_at(&first.call.workload.facts, rows[i].fact);
		two = drive_at(&second.call.workload.facts, rows[i].fact);
		CHECK_INT(rows[i].label, 1, one && two && one->str.len > 100);
		CHECK_INT(rows[i].label, 0, jv_equal(one, two));
		drive_end(&first);
		drive_end(&second);
	}
	be->ops->close(be);
	arena_destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(networks_are_told_apart),
		cmocka_unit_test(what_is_looked_into_is_whole),
		cmocka_unit_test(words_are_told_apart),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
