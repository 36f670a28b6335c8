/* Which version of the API is spoken to which engine. */
#include "tests/unit/backends/drive.h"
#include "tests/unit/check.h"

#include <string.h>

static const struct {
	const char *label, *version, *request;
	const char *sent;    /* NULL: refused */
	const char *refused; /* the field */
} rows[] = {
	{"an engine of the same age", "{\"ApiVersion\":\"1.41\",\"MinAPIVersion\":\"1.12\"}",
	 "GET /v1.41/info", "GET /v1.41/info HTTP/1.1\r\n", NULL},
	{"an older engine", "{\"ApiVersion\":\"1.30\",\"MinAPIVersion\":\"1.12\"}",
	 "GET /v1.41/info", "GET /v1.30/info HTTP/1.1\r\n", NULL},
	{"an engine of the future", "{\"ApiVersion\":\"1.99\",\"MinAPIVersion\":\"1.44\"}",
	 "GET /v1.56/info", "GET /v1.56/info HTTP/1.1\r\n", NULL},
	{"a client below what an engine of the future takes",
	 "{\"ApiVersion\":\"1.99\",\"MinAPIVersion\":\"1.44\"}", "GET /v1.24/info",
	 "GET /v1.56/info HTTP/1.1\r\n", NULL},
	{"a client below what the engine takes",
	 "{\"ApiVersion\":\"1.48\",\"MinAPIVersion\":\"1.44\"}", "GET /v1.41/info",
	 "GET /v1.48/info HTTP/1.1\r\n", NULL},
	{"an engine that takes one version", "{\"ApiVersion\":\"1.56\",\"MinAPIVersion\":\"1.56\"}",
	 "GET /v1.24/info", "GET /v1.56/info HTTP/1.1\r\n", NULL},
	{"named volumes go, too, as an old client means it",
	 "{\"ApiVersion\":\"1.48\",\"MinAPIVersion\":\"1.24\"}", "POST /v1.41/volumes/prune",
	 "POST /v1.48/volumes/prune?filters=%7B%22label%22%3A%7B%22sallyport.owner%3Dalice%22%3A"
	 "true%7D%2C%22all%22%3A%7B%22true%22%3Atrue%7D%7D HTTP/1.1\r\n",
	 NULL},
	{"and stay, as a new one does", "{\"ApiVersion\":\"1.48\",\"MinAPIVersion\":\"1.24\"}",
	 "POST /v1.42/volumes/prune",
	 "POST /v1.48/volumes/prune?filters=%7B%22label%22%3A%7B%22sallyport.owner%3Dalice%22%3A"
	 "true%7D%7D HTTP/1.1\r\n",
	 NULL},
	{"an engine that does not read labels would remove everybody's",
	 "{\"ApiVersion\":\"1.29\",\"MinAPIVersion\":\"1.12\"}", "POST /v1.41/containers/prune",
	 NULL, "path"},
	{"an engine that does not say its least", "{\"ApiVersion\":\"1.48\"}", "GET /v1.41/info",
	 "GET /v1.48/info HTTP/1.1\r\n", NULL},
	{"an engine that is all too new", "{\"ApiVersion\":\"1.99\",\"MinAPIVersion\":\"1.57\"}",
	 "GET /v1.56/info", NULL, "MinAPIVersion"},
	{"an engine that is all too old", "{\"ApiVersion\":\"1.23\",\"MinAPIVersion\":\"1.12\"}",
	 "GET /v1.24/info", NULL, "ApiVersion"},
	{"an engine of another kind", "{\"ApiVersion\":\"2.0\"}", "GET /v1.41/info", NULL,
	 "ApiVersion"},
	{"an engine that does not say", "{}", "GET /v1.41/info", NULL, "ApiVersion"},
	{"a number", "{\"ApiVersion\":1.41}", "GET /v1.41/info", NULL, "ApiVersion"},
};

static void speaks_the_newest_that_both_know(void **state)
{
	const struct backend_conf conf = {.name = "t"};
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct backend *be = backend_find("docker")->open(&conf, &err);
		struct arena *a = arena_create(DRIVE_ARENA_BYTES);
		struct jv world = jv_object();
		struct drive d;
		enum step step;

		jv_set(a, &world, "version", drive_parse(a, rows[i].version));
		drive_start(&d, be, &world);
		step = drive_request(&d, rows[i].request);
		CHECK_INT(rows[i].label, rows[i].sent ? STEP_READY : STEP_REFUSED, step);
		if (rows[i].sent)
			CHECK_INT(rows[i].label, 0,
				  strncmp(rows[i].sent, drive_rendered(&d, NULL),
					  strlen(rows[i].sent)));
		else
			CHECK_STR(rows[i].label, rows[i].refused, d.call.refused.list[0].field);
		drive_end(&d);
		arena_destroy(a);
		be->ops->close(be);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(speaks_the_newest_that_both_know),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
