/* Requests and what comes of them, as tables in data/. */
#include "tests/unit/backends/rows.h"
#include "tests/unit/check.h"

static void routes(void **state)
{
	(void)state;
	CHECK_INT("rows", 1, rows_run("routes.rows") > 70);
}

static void owners(void **state)
{
	(void)state;
	CHECK_INT("rows", 1, rows_run("owner.rows") > 40);
}

static void bodies(void **state)
{
	(void)state;
	CHECK_INT("rows", 1, rows_run("json.rows") > 40);
}

static void facts(void **state)
{
	(void)state;
	CHECK_INT("rows", 1, rows_run("facts.rows") > 110);
}

static void images(void **state)
{
	(void)state;
	CHECK_INT("rows", 1, rows_run("images.rows") > 50);
}

static void builds(void **state)
{
	(void)state;
	CHECK_INT("rows", 1, rows_run("build.rows") > 50);
}

static void pruning(void **state)
{
	(void)state;
	CHECK_INT("rows", 1, rows_run("prune.rows") > 10);
}

static void visibility(void **state)
{
	(void)state;
	CHECK_INT("rows", 1, rows_run("visibility.rows") > 95);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes),     cmocka_unit_test(owners), cmocka_unit_test(bodies),
		cmocka_unit_test(facts),      cmocka_unit_test(images), cmocka_unit_test(pruning),
		cmocka_unit_test(visibility), cmocka_unit_test(builds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
