/* What is remembered of the engine between requests, and for how long. */
#include "tests/unit/backends/drive.h"
#include "tests/unit/backends/vocabulary.h"
#include "tests/unit/check.h"

#include <string.h>

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
		cmocka_unit_test(remembers_the_engine_for_a_while),
		cmocka_unit_test(outlives_a_renewal),
		cmocka_unit_test(reads_only_so_many_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
