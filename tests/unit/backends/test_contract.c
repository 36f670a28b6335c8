/* What holds for every backend; a new one is covered by being listed. */
#include "tests/unit/backends/drive.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>

static struct backend *opened(const struct backend_ops *ops)
{
	const struct backend_conf conf = {.name = "t"};
	struct err err = {0};
	struct backend *be = ops->open(&conf, &err);

	CHECK_STR(ops->kind, "", err.msg);
	CHECK_INT(ops->kind, 1, be->ops == ops);
	return be;
}

static void is_found_by_its_kind(void **state)
{
	(void)state;
	for (const struct backend_ops *const *ops = backend_all(); *ops; ops++) {
		CHECK_INT((*ops)->kind, 1, backend_find((*ops)->kind) == *ops);
		CHECK_INT((*ops)->kind, 1, strlen((*ops)->summary) > 0);
	}
	CHECK_INT("none", 1, backend_find("nosuch") == NULL);
}

/* A table of names that rules know, so that a refusal can say where a fact stood. */
static void names_only_known_facts(void **state)
{
	static const char *const known[] = {
#define FACT(path, kind, doc) path,
#include "rules/workload.def"
#undef FACT
	};

	(void)state;
	for (const struct backend_ops *const *ops = backend_all(); *ops; ops++) {
		for (const struct fact_name *n = (*ops)->fact_names; n->fact; n++) {
			size_t len = strlen(n->fact);
			bool found = false;

			for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
				found = found || (strncmp(known[i], n->fact, len) == 0 &&
						  (!known[i][len] || known[i][len] == '['));
			CHECK_INT(n->fact, 1, found);
		}
	}
}

static void refuses_what_it_does_not_know(void **state)
{
	(void)state;
	for (const struct backend_ops *const *ops = backend_all(); *ops; ops++) {
		struct jv world = jv_object();
		struct backend *be = opened(*ops);
		struct drive d;

		drive_start(&d, be, &world);
		CHECK_INT((*ops)->kind, STEP_REFUSED, drive_request(&d, "GET /no/such/thing"));
		CHECK_INT((*ops)->kind, 1, d.call.refused.count > 0);
		CHECK_INT((*ops)->kind, OP_UNKNOWN, d.call.op);
		CHECK_STR((*ops)->kind, "", be->ops->created(&d.call));
		drive_end(&d);
		be->ops->forget(be);
		be->ops->close(be);
	}
}

struct tally {
	int refused, ready;
};

static void try_with(size_t cap, const char *request, bool updates, const struct jv *world,
		     struct tally *ret)
{
	struct backend *be = opened(backend_find("docker"));
	struct arena *small = arena_create(cap), *whole;
	enum step step;
	struct drive d;

	drive_start(&d, be, world);
	whole = d.arena;
	d.small = small;
	d.call.updates = updates;
	step = drive_request(&d, request);
	ret->refused += step == STEP_REFUSED;
	ret->ready += step == STEP_READY;
	if (step == STEP_READY)
		CHECK_INT("spent", 0, arena_spent(small));
	else
		CHECK_INT("why", 1, d.call.refused.count > 0);
	d.arena = whole;
	drive_end(&d);
	arena_destroy(small);
	be->ops->close(be);
}

/* However little memory a call may take, it ends in a refusal or as it should. */
static void runs_out_of_memory_safely(void **state)
{
	static const struct {
		const char *request;
		bool updates;
	} rows[] = {
		{("POST /v1.41/containers/create\n"
		  "{\"Image\":\"busybox\",\"HostConfig\":{\"Binds\":[\"/a:/b\"],"
		  "\"CapAdd\":[\"SYS_ADMIN\"],\"Memory\":1}}"),
		 false},
		{("POST /v1.41/commit?container=run&repo=x\n"
		  "{\"Env\":[\"A=b\"],\"Labels\":{\"a\":\"b\"}}"),
		 false},
		{"GET /v1.41/images/get?names=busybox&names=reg.example/team/app:1", false},
		{"POST /v1.41/images/busybox/tag?repo=x&tag=1", false},
		{"POST /v1.41/images/reg.example/team/app/push?tag=1", false},
		{"POST /v1.41/volumes/prune?filters=%7B%22label%22%3A%5B%22a%22%5D%7D", false},
		{"POST /v1.41/containers/full/stop", true},
		{"POST /v1.41/containers/create?name=full\n{\"Image\":\"busybox\"}", true},
	};
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct tally t = {0, 0};

		for (size_t cap = 1; cap < 400000; cap += cap < 20000 ? 97 : 4001)
			try_with(cap, rows[i].request, rows[i].updates, &world, &t);
		CHECK_INT(rows[i].request, 1, t.refused > 5);
		CHECK_INT(rows[i].request, 1, t.ready > 5);
	}
	arena_destroy(a);
}

static void says_refusals_in_its_own_form(void **state)
{
	(void)state;
	for (const struct backend_ops *const *ops = backend_all(); *ops; ops++) {
		struct backend *be = opened(*ops);
		const char *type = NULL;
		struct buf b;

		buf_init(&b, 4096);
		(*ops)->refusal("no \"x\"\n", &b, &type);
		CHECK_INT((*ops)->kind, 1, buf_len(&b) > 0);
		CHECK_INT((*ops)->kind, 1, type && *type);
		CHECK_INT((*ops)->kind, '/', *(*ops)->health_target(be));
		buf_fini(&b);
		be->ops->close(be);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_found_by_its_kind),
		cmocka_unit_test(names_only_known_facts),
		cmocka_unit_test(refuses_what_it_does_not_know),
		cmocka_unit_test(runs_out_of_memory_safely),
		cmocka_unit_test(says_refusals_in_its_own_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
