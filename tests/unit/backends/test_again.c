/* What runs, judged again: what is asked for, what an object says of itself, how it is stopped. */
#include "tests/unit/backends/drive.h"
#include "tests/unit/check.h"

#include <string.h>

#define ID "787a0701953e5ff869860b6a5875befc1875e159858768fb0d2c9423b642fac0"

static void asks_for_what_runs(void **state)
{
	static const char *const ids[] = {"ab", "cd"};
	static const struct {
		size_t count;
		const char *want;
	} rows[] = {
		{0, "GET /containers/json?filters=%7B%22status%22%3A%5B%22running%22%2C%22paused%22"
		    "%2C%22restarting%22%5D%7D HTTP/1.1\r\nHost: docker\r\nUser-Agent: "
		    "sallyport-watcher\r\n\r\n"},
		{2, "GET /containers/json?filters=%7B%22status%22%3A%5B%22running%22%2C%22paused%22"
		    "%2C%22restarting%22%5D%2C%22id%22%3A%5B%22ab%22%2C%22cd%22%5D%7D HTTP/1.1\r\n"
		    "Host: docker\r\nUser-Agent: sallyport-watcher\r\n\r\n"},
	};
	struct backend *be = drive_open();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct buf head;

		buf_init(&head, 4096);
		be->ops->running(be, ids, rows[i].count, &head);
		buf_put(&head, "", 1);
		CHECK_STR("head", rows[i].want, buf_span(&head).at);
		buf_fini(&head);
	}
	be->ops->close(be);
}

static void knows_whose_a_row_is(void **state)
{
	static const struct adopted ledger[] = {{"container", ID, "", "carol"}};
	static const struct {
		const char *name, *row, *want;
	} rows[] = {
		{"labelled", "{\"Id\":\"ab\",\"Labels\":{\"sallyport.owner\":\"alice\"}}", "ab"},
		{"nobody's", "{\"Id\":\"ab\",\"Labels\":{\"team\":\"x\"}}", ""},
		{"without labels", "{\"Id\":\"ab\",\"Labels\":null}", ""},
		{"an image's label alone",
		 "{\"Id\":\"ab\",\"Labels\":{\"sallyport.image.owner\":\"alice\"}}", ""},
		{"adopted", "{\"Id\":\"" ID "\",\"Labels\":{}}", ID},
		{"the gate, by its label",
		 "{\"Id\":\"ab\",\"Labels\":{\"sallyport.owner\":\"a\",\"sallyport.self\":\"yes\"}"
		 "}",
		 ""},
		{"the gate, by its name",
		 "{\"Id\":\"ab\",\"Names\":[\"/gate\"],\"Labels\":{\"sallyport.owner\":\"a\"}}",
		 ""},
		{"no object", "[]", "unreadable"},
		{"no id", "{\"Labels\":{\"sallyport.owner\":\"alice\"}}", "unreadable"},
		{"an id that is none", "{\"Id\":7,\"Labels\":{}}", "unreadable"},
	};
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct backend *be = drive_open();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct backend_call call = {.arena = a,
					    .owner = "",
					    .adopted = ledger,
					    .adopted_count = 1,
					    .self = "gate"};
		struct jv row = drive_parse(a, rows[i].row);

		const char *id = be->ops->running_row(be, &call, &row);

		CHECK_STR(rows[i].name, rows[i].want, id ? id : "unreadable");
	}
	be->ops->close(be);
	arena_destroy(a);
}

/* --- one of them --- */

static enum step ask_again(struct drive *d, const char *id, struct again *ret)
{
	static const char *const none[] = {NULL};
	enum step step;

	d->be->ops->restart(d->be, id, &d->req, d->arena);
	d->call.arena = d->arena;
	d->call.req = &d->req;
	d->call.owner = "";
	d->call.id = "0191-decision";
	d->call.protected_paths = d->call.engine_names = none;
	CHECK_INT("route", 0, d->be->ops->route(d->be, &d->call));
	CHECK_INT("operation", OP_CONTAINER_START, d->call.op);
	while ((step = d->be->ops->again(d->be, &d->call, ret)) == STEP_LOOKUP)
		drive_answer(d);
	return step;
}

static void set_at(struct arena *a, struct jv *doc, const char *path, const char *json)
{
	const char *dot = strrchr(path, '.');
	char parent[100] = "";
	struct jv *at = doc;

	if (dot) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(dot - path), path);
		at = (struct jv *)drive_at(doc, parent);
	}
	jv_set(a, at, dot ? dot + 1 : path, drive_parse(a, json));
}

static void reads_what_it_says(void **state)
{
	static const struct {
		const char *name, *path, *value, *want; /* want: owner profile minimum ... */
	} rows[] = {
		{"ended", "State.Running", "false", "alice - - ended stays"},
		{"runs", "State.Running", "true", "alice - - runs stays"},
		{"paused", "State.Paused", "true", "alice - - runs stays"},
		{"restarting", "State.Restarting", "true", "alice - - runs stays"},
		{"comes back", "HostConfig.RestartPolicy", "{\"Name\":\"always\"}",
		 "alice - - ended back"},
		{"comes back on failure", "HostConfig.RestartPolicy", "{\"Name\":\"on-failure\"}",
		 "alice - - ended back"},
		{"without a policy", "HostConfig.RestartPolicy", "{\"Name\":\"\"}",
		 "alice - - ended stays"},
		{"with both labels", "Config.Labels",
		 "{\"sallyport.owner\":\"bob\",\"sallyport.profile\":\"p\",\"sallyport.isolation\":"
		 "\"kernel\"}",
		 "bob p kernel ended stays"},
		{"with a level that is none", "Config.Labels",
		 "{\"sallyport.owner\":\"bob\",\"sallyport.profile\":\"p\",\"sallyport.isolation\":"
		 "\"much\"}",
		 "bob p - ended stays"},
		{"labels without an owner are an image's", "Config.Labels",
		 "{\"sallyport.profile\":\"p\",\"sallyport.isolation\":\"none\"}",
		 "- - - ended stays"},
	};
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct backend *be = drive_open();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct jv world = drive_json(a, "world.json");
		struct again again;
		char text[200];
		struct drive d;

		set_at(a, (struct jv *)drive_at(&world, "containers.full"), rows[i].path,
		       rows[i].value);
		drive_start(&d, be, &world);
		CHECK_INT(rows[i].name, STEP_READY, ask_again(&d, ID, &again));
		snprintf(text, sizeof(text), "%s %s %s %s %s", *again.owner ? again.owner : "-",
			 *again.profile ? again.profile : "-",
			 again.has_minimum ? isolation_name(again.minimum) : "-",
			 again.runs ? "runs" : "ended", again.comes_back ? "back" : "stays");
		CHECK_STR(rows[i].name, rows[i].want, text);
		drive_end(&d);
	}
	be->ops->close(be);
	arena_destroy(a);
}

/* Not to say whether it runs is not to say that it does not. */
static void what_does_not_say_whether_it_runs_is_not_known(void **state)
{
	static const struct {
		const char *path, *value;
	} rows[] = {{"State", "null"}, {"State", "{}"}, {"State.Running", "\"true\""}};
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct backend *be = drive_open();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct jv world = drive_json(a, "world.json");
		struct again again;
		struct drive d;

		set_at(a, (struct jv *)drive_at(&world, "containers.full"), rows[i].path,
		       rows[i].value);
		drive_start(&d, be, &world);
		CHECK_INT(rows[i].value, STEP_REFUSED, ask_again(&d, ID, &again));
		CHECK_INT(rows[i].value, REASON_engine_reply, d.call.refused.list[0].reason);
		drive_end(&d);
	}
	be->ops->close(be);
	arena_destroy(a);
}

static void what_is_not_there_does_not_run(void **state)
{
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");
	struct backend *be = drive_open();
	struct again again;
	struct drive d;

	(void)state;
	drive_start(&d, be, &world);
	CHECK_INT("gone", STEP_READY,
		  ask_again(&d, "0000000000000000000000000000000000000000000000000000000000000000",
			    &again));
	CHECK_INT("gone", 0, again.runs);
	drive_end(&d);
	be->ops->forget(be);
	drive_start(&d, be, &world);
	d.unreachable = true;
	CHECK_INT("no engine", STEP_REFUSED, ask_again(&d, ID, &again));
	CHECK_INT("no engine", REASON_engine_unreachable, d.call.refused.list[0].reason);
	drive_end(&d);
	be->ops->close(be);
	arena_destroy(a);
}

/* It goes on as a start of its owner's, and asks for nothing twice. */
static void is_read_as_if_it_were_started(void **state)
{
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");
	struct backend *be = drive_open();
	struct again again;
	enum step step;
	struct drive d;

	(void)state;
	drive_start(&d, be, &world);
	CHECK_INT("again", STEP_READY, ask_again(&d, ID, &again));
	d.call.owner = again.owner;
	while ((step = be->ops->step(be, &d.call)) == STEP_LOOKUP)
		drive_answer(&d);
	CHECK_INT("step", STEP_READY, step);
	CHECK_STR("level", "kernel",
		  jv_str(jv_get(&d.call.workload.facts, "isolation"), "level", ""));
	CHECK_STR("id", ID, d.call.object.id);
	drive_end(&d);
	be->ops->close(be);
	arena_destroy(a);
}

static void stops_it(void **state)
{
	static const struct {
		enum stop_part part;
		enum operation op;
		const char *head, *body;
	} rows[] = {
		{STOP_NOW, OP_CONTAINER_KILL,
		 "POST /v1.41/containers/" ID "/kill HTTP/1.1\r\nHost: docker\r\n"
		 "Content-Length: 0\r\n\r\n",
		 ""},
		{STOP_FOR_GOOD, OP_CONTAINER_UPDATE,
		 "POST /v1.41/containers/" ID "/update HTTP/1.1\r\nHost: docker\r\n"
		 "Content-Type: application/json\r\nContent-Length: 31\r\n\r\n",
		 "{\"RestartPolicy\":{\"Name\":\"no\"}}"},
	};
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");
	struct backend *be = drive_open();
	struct again again;
	struct drive d;

	(void)state;
	drive_start(&d, be, &world);
	CHECK_INT("again", STEP_READY, ask_again(&d, ID, &again));
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct outgoing out = {.streams_body = true};
		enum operation op = OP_UNKNOWN;
		struct err err = {0};

		buf_init(&out.head, 4096);
		buf_init(&out.body, 4096);
		CHECK_INT("stop", 0, be->ops->stop(be, &d.call, rows[i].part, &out, &op, &err));
		buf_put(&out.head, "", 1);
		buf_put(&out.body, "", 1);
		CHECK_STR("head", rows[i].head, buf_span(&out.head).at);
		CHECK_STR("body", rows[i].body, buf_span(&out.body).at);
		CHECK_INT("operation", rows[i].op, op);
		CHECK_INT("streams", 0, out.streams_body);
		buf_fini(&out.head);
		buf_fini(&out.body);
	}
	drive_end(&d);
	be->ops->close(be);
	arena_destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asks_for_what_runs),
		cmocka_unit_test(knows_whose_a_row_is),
		cmocka_unit_test(reads_what_it_says),
		cmocka_unit_test(what_does_not_say_whether_it_runs_is_not_known),
		cmocka_unit_test(what_is_not_there_does_not_run),
		cmocka_unit_test(is_read_as_if_it_were_started),
		cmocka_unit_test(stops_it),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
