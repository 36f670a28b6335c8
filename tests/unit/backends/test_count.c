/* What a caller has, by the engine's answers; and answers that say nothing, which is not "nothing".
 */
#include "tests/unit/backends/drive.h"
#include "tests/unit/check.h"

#include <string.h>

#define ID "787a0701953e5ff869860b6a5875befc1875e159858768fb0d2c9423b642fac0"

/* Counts, with the same answer to every question, and says the reason or the sum. */
static const char *counted(struct drive *d, unsigned wants, const char *also, const char *answer)
{
	struct backend_call *call = &d->call;
	const struct counting *c = &call->counting;
	enum step step;

	call->counting = (struct counting){.wants = wants, .also = {also}, .also_count = !!also};
	while ((step = d->be->ops->count(d->be, call)) == STEP_LOOKUP)
		for (size_t i = 0; i < call->lookup_count; i++) {
			call->lookups[i].answered = true;
			call->lookups[i].status = 200;
			call->lookups[i].body = drive_parse(d->arena, answer);
		}
	if (step == STEP_REFUSED)
		return reason_name(call->refused.list[0].reason);
	return arena_strndup(d->arena, "counted 0", 8 + (c->count == 0));
}

static void what_cannot_be_read_is_not_nothing(void **state)
{
	static const struct {
		const char *label, *answer, *want;
		unsigned wants;
		const char *also;
	} rows[] = {
		{"nothing runs", "[]", "counted 0", COUNT_RUNNING, NULL},
		{"one runs", "[{\"Id\":\"" ID "\",\"Labels\":{\"sallyport.owner\":\"alice\"}}]",
		 "counted ", COUNT_RUNNING, NULL},
		{"null", "null", "engine_reply", COUNT_RUNNING, NULL},
		{"an object", "{}", "engine_reply", COUNT_RUNNING, NULL},
		{"a row that is none", "[null]", "engine_reply", COUNT_RUNNING, NULL},
		{"a row without an id", "[{\"Labels\":{\"sallyport.owner\":\"alice\"}}]",
		 "engine_reply", COUNT_RUNNING, NULL},
		{"no volumes", "{\"Volumes\":[]}", "counted 0", COUNT_VOLUMES, NULL},
		{"volumes that are null", "{\"Volumes\":null}", "engine_reply", COUNT_VOLUMES,
		 NULL},
		{"without volumes", "{}", "engine_reply", COUNT_VOLUMES, NULL},
		{"a list where an object is expected", "[]", "engine_reply", COUNT_VOLUMES, NULL},
		{"a container",
		 "{\"Id\":\"" ID "\",\"State\":{\"Running\":false},\"HostConfig\":{}}", "counted ",
		 0, ID},
		{"a container that does not say whether it runs",
		 "{\"Id\":\"" ID "\",\"State\":{},\"HostConfig\":{}}", "engine_reply", 0, ID},
		{"without a state", "{\"Id\":\"" ID "\",\"State\":null,\"HostConfig\":{}}",
		 "engine_reply", 0, ID},
		{"without limits",
		 "{\"Id\":\"" ID "\",\"State\":{\"Running\":true},\"HostConfig\":null}",
		 "engine_reply", 0, ID},
		{"another container",
		 "{\"Id\":\"x\",\"State\":{\"Running\":true},\"HostConfig\":{}}", "engine_reply", 0,
		 ID},
	};
	const struct backend_conf conf = {.name = "t"};
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");
	struct err err = {0};
	struct backend *be = backend_find("docker")->open(&conf, &err);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct drive d;

		drive_start(&d, be, &world);
		CHECK_INT("ready", STEP_READY, drive_request(&d, "GET /v1.41/containers/json"));
		CHECK_STR(rows[i].label, rows[i].want,
			  counted(&d, rows[i].wants, rows[i].also, rows[i].answer));
		drive_end(&d);
	}
	be->ops->close(be);
	arena_destroy(a);
}

static void what_takes_room_is_known_or_not(void **state)
{
	static const struct {
		const char *label, *answer;
		int64_t want;
	} rows[] = {
		{"none", "{\"Volumes\":[]}", 0},
		{"null", "{\"Volumes\":null}", -1},
		{"not there", "{}", -1},
		{"no list", "{\"Volumes\":{}}", -1},
		{"a row that is none", "{\"Volumes\":[7]}", -1},
		{"somebody else's", "{\"Volumes\":[{\"Name\":\"v\"}]}", 0},
		{"one's own",
		 "{\"Volumes\":[{\"Name\":\"v\",\"Labels\":{\"sallyport.owner\":\"alice\"},"
		 "\"UsageData\":{\"Size\":7}}]}",
		 7},
		{"one's own, of which nobody knows it",
		 "{\"Volumes\":[{\"Name\":\"v\",\"Labels\":{\"sallyport.owner\":\"alice\"}}]}", -1},
	};
	const struct backend_conf conf = {.name = "t"};
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct backend *be = backend_find("docker")->open(&conf, &err);
		struct drive d;

		drive_start(&d, be, &world);
		CHECK_INT("ready", STEP_READY, drive_request(&d, "GET /v1.41/containers/json"));
		counted(&d, COUNT_VOLUME_SPACE, NULL, rows[i].answer);
		CHECK_INT(rows[i].label, rows[i].want, d.call.counting.volume_bytes);
		drive_end(&d);
		be->ops->close(be);
	}
	arena_destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_cannot_be_read_is_not_nothing),
		cmocka_unit_test(what_takes_room_is_known_or_not),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
