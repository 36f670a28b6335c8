/* What of an engine's replies a caller sees. */
#include "tests/unit/backends/drive.h"
#include "tests/unit/check.h"

#include <string.h>

/* A request that is ready, and what filter() makes of a reply; NULL if it fails. */
static const char *filtered(struct drive *d, const char *request, int status, struct span body)
{
	struct err err = {0};
	const char *ret = NULL;
	struct buf out;

	CHECK_INT(request, STEP_READY, drive_request(d, request));
	buf_init(&out, 1u << 20);
	if (d->be->ops->filter(d->be, &d->call, status, body, &out, &err) == 0)
		ret = arena_strndup(d->arena, buf_span(&out).at, buf_len(&out));
	buf_fini(&out);
	return ret;
}

static void what_is_no_list_is_not_an_empty_one(void **state)
{
	static const struct {
		const char *request, *body;
		bool fine;
	} rows[] = {
		{"GET /v1.41/containers/json", "[]", true},
		{"GET /v1.41/containers/json", "null", true},
		{"GET /v1.41/containers/json", "{}", false},
		{"GET /v1.41/networks", "{\"message\":\"x\"}", false},
		{"GET /v1.41/volumes", "{\"Volumes\":[]}", true},
		{"GET /v1.41/volumes", "{}", false},
		{"GET /v1.41/volumes", "[]", false},
	};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct drive d;

		drive_start(&d, be, &world);
		drive_see(&d, "\"own\"");
		CHECK_INT(rows[i].request, rows[i].fine,
			  filtered(&d, rows[i].request, 200, span_of(rows[i].body)) != NULL);
		drive_end(&d);
	}
	be->ops->close(be);
	arena_destroy(a);
}

static void shows_only_own_rows(void **state)
{
	static const struct {
		const char *request, *file, *list; /* list: where the rows are, "" for the whole */
		size_t own, all;
	} rows[] = {
		{"GET /v1.41/containers/json?all=1", "reply-containers.json", "", 3, 4},
		{"GET /v1.41/networks", "reply-networks.json", "", 1, 4},
		{"GET /v1.41/volumes", "reply-volumes.json", "Volumes", 1, 2},
		{"GET /v1.41/system/df", "reply-df.json", "Containers", 3, 4},
		{"GET /v1.41/system/df", "reply-df.json", "Volumes", 0, 1},
		{"GET /v1.41/system/df", "reply-df.json", "Images", 1, 1},
	};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		for (int all = 0; all < 2; all++) {
			struct span body = drive_read(a, rows[i].file);
			const char *text;
			const struct jv *list;
			struct drive d;
			struct jv doc;

			drive_start(&d, be, &world);
			drive_see(&d, all ? "\"all\"" : "\"own\"");
			text = filtered(&d, rows[i].request, 200, body);
			doc = drive_parse(d.arena, text);
			list = *rows[i].list ? jv_get(&doc, rows[i].list) : &doc;
			CHECK_INT(rows[i].file, all ? rows[i].all : rows[i].own, list->count);
			drive_end(&d);
		}
	}
	arena_destroy(a);
	be->ops->close(be);
}

/* Each kind of row in each list, under all ways to see it. */
static void shows_what_visibility_says(void **state)
{
	static const struct {
		const char *sees, *request, *body, *want;
	} rows[] = {
		{"[{\"label\":\"a=b\"}]", "GET /containers/json",
		 "[{\"Id\":\"1\",\"Labels\":{\"a\":\"b\"}},{\"Id\":\"2\",\"Labels\":{\"a\":\"c\"}},"
		 "{\"Id\":\"3\"}]",
		 "[{\"Id\":\"1\",\"Labels\":{\"a\":\"b\"}}]\n"},
		{"[\"own\",{\"name\":\"web-*\"}]", "GET /containers/json",
		 "[{\"Names\":[\"/web-1\"]},{\"Names\":[\"/db\",\"/db/web-1\"]},"
		 "{\"Names\":[\"/x\"],\"Labels\":{\"sallyport.owner\":\"alice\"}},"
		 "{\"Names\":[\"/y\"],\"Labels\":{\"sallyport.owner\":\"bob\"}}]",
		 "[{\"Names\":[\"/web-1\"]},"
		 "{\"Names\":[\"/x\"],\"Labels\":{\"sallyport.owner\":\"alice\"}}]\n"},
		{"[{\"name\":\"web-*\"}]", "GET /containers/json?limit=2",
		 "[{\"Names\":[\"/web-1\"]},{\"Names\":[\"/db\"]},{\"Names\":[\"/"
		 "web-2\"]},{\"Names\":[\"/web-3\"]}]",
		 "[{\"Names\":[\"/web-1\"]},{\"Names\":[\"/web-2\"]}]\n"},
		{"[{\"name\":\"web\"}]", "GET /networks",
		 "[{\"Name\":\"web\"},{\"Name\":\"web2\"}]", "[{\"Name\":\"web\"}]\n"},
		{"[{\"label\":\"a\",\"kinds\":[\"volumes\"]}]", "GET /volumes",
		 "{\"Volumes\":[{\"Name\":\"v\",\"Labels\":{\"a\":\"\"}},{\"Name\":\"w\","
		 "\"Labels\":null}]}",
		 "{\"Volumes\":[{\"Name\":\"v\",\"Labels\":{\"a\":\"\"}}],\"Warnings\":null}\n"},
		{"[{\"label\":\"a\",\"kinds\":[\"volumes\"]}]", "GET /containers/json",
		 "[{\"Id\":\"1\",\"Labels\":{\"a\":\"b\"}}]", "[]\n"},
		{"[{\"name\":\"alpine\",\"kinds\":[\"images\"]}]", "GET /images/json",
		 "[{\"Id\":\"1\",\"RepoTags\":[\"alpine:3\"]},{\"Id\":\"2\",\"RepoTags\":["
		 "\"busybox:1\"]},"
		 "{\"Id\":\"3\",\"RepoTags\":null,\"RepoDigests\":null}]",
		 "[{\"Id\":\"1\",\"RepoTags\":[\"alpine:3\"]}]\n"},
		{"[{\"all\":true,\"kinds\":[\"containers\"]},{\"name\":\"alpine\",\"kinds\":["
		 "\"images\"]}]",
		 "GET /system/df",
		 "{\"LayersSize\":5,\"Images\":[{\"RepoTags\":[\"alpine:3\"]},{\"RepoTags\":[\"x:"
		 "1\"]}],"
		 "\"Containers\":[{\"Id\":\"1\"}],\"Volumes\":[{\"Name\":\"v\"}],\"BuildCache\":[{}"
		 "]}",
		 "{\"LayersSize\":5,\"Images\":[{\"RepoTags\":[\"alpine:3\"]}],"
		 "\"Containers\":[{\"Id\":\"1\"}],\"Volumes\":[]}\n"},
		{"[{\"name\":\"web\"}]", "GET /system/df",
		 "{\"ContainerUsage\":{\"Items\":[{\"Names\":[\"/web\"]},{\"Names\":[\"/"
		 "x\"]}],\"TotalCount\":2}}",
		 "{\"ContainerUsage\":{\"Items\":[{\"Names\":[\"/web\"]}]}}\n"},
		{"[{\"all\":true}]", "GET /system/df", "{\"BuildCache\":[{}]}",
		 "{\"BuildCache\":[{}]}\n"},
		{"[{\"name\":\"prod\"}]", "GET /networks/prod",
		 "{\"Name\":\"prod\",\"Containers\":{\"77\":{\"Name\":\"theirs\"}}}",
		 "{\"Name\":\"prod\",\"Containers\":{}}\n"},
	};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *got;
		struct drive d;

		drive_start(&d, be, &world);
		drive_see(&d, rows[i].sees);
		got = filtered(&d, rows[i].request, 200, span_of(rows[i].body));
		CHECK_STR(rows[i].sees, rows[i].want, got ? got : "(fails)");
		drive_end(&d);
	}
	arena_destroy(a);
	be->ops->close(be);
}

#define CONTAINER_EVENT(attributes)                                                                \
	"{\"Type\":\"container\",\"Action\":\"start\",\"Actor\":{\"ID\":\"77\",\"Attributes\":"    \
	"{" attributes "}}}"
#define OTHER_EVENT(type, id, attributes)                                                          \
	"{\"Type\":\"" type "\",\"Actor\":{\"ID\":\"" id "\",\"Attributes\":{" attributes "}}}"

static void shows_events_of_what_is_shown(void **state)
{
	static const struct {
		const char *sees, *row;
		bool want;
	} rows[] = {
		{"\"own\"", CONTAINER_EVENT("\"sallyport.owner\":\"alice\""), true},
		{"\"own\"", CONTAINER_EVENT("\"sallyport.owner\":\"bob\""), false},
		{"\"own\"", CONTAINER_EVENT("\"name\":\"x\""), false},
		{"[{\"label\":\"a=b\"}]", CONTAINER_EVENT("\"a\":\"b\""), true},
		{"[{\"label\":\"a=b\"}]", CONTAINER_EVENT("\"a\":\"c\""), false},
		{"[{\"name\":\"web-*\"}]", CONTAINER_EVENT("\"name\":\"web-1\""), true},
		{"[{\"name\":\"web-*\"}]", CONTAINER_EVENT("\"name\":\"db\",\"a\":\"web-1\""),
		 false},
		/* The engine's own words are no labels. */
		{"[{\"label\":\"name=web\"}]", CONTAINER_EVENT("\"name\":\"web\""), false},
		{"[{\"label\":\"image=web\"}]", CONTAINER_EVENT("\"image\":\"web\""), false},
		{"[{\"label\":\"exitCode\"}]", CONTAINER_EVENT("\"exitCode\":\"0\""), false},
		/* Of volumes and networks only names are told. */
		{"[{\"name\":\"v\"}]", OTHER_EVENT("volume", "v", "\"driver\":\"local\""), true},
		{"[{\"name\":\"v\"}]", OTHER_EVENT("volume", "w", "\"name\":\"v\""), false},
		{"[{\"name\":\"v\"}]", OTHER_EVENT("volume", "v", "\"container\":\"77\""), false},
		{"[{\"name\":\"v\"},{\"all\":true,\"kinds\":[\"containers\"]}]",
		 OTHER_EVENT("volume", "v", "\"container\":\"77\""), true},
		{"[{\"name\":\"n\"}]", OTHER_EVENT("network", "1", "\"name\":\"n\""), true},
		{"[{\"name\":\"n\"}]", OTHER_EVENT("network", "1", "\"name\":\"m\""), false},
		{"[{\"name\":\"n\",\"kinds\":[\"containers\"]}]",
		 OTHER_EVENT("network", "1", "\"name\":\"n\""), false},
		{"[{\"name\":\"n\"}]",
		 OTHER_EVENT("network", "1", "\"name\":\"n\",\"container\":\"77\""), false},
		{"\"own\"", OTHER_EVENT("network", "1", "\"sallyport.owner\":\"alice\""), false},
		/* Images, where they are limited; all else never. */
		{"\"own\"", OTHER_EVENT("image", "alpine:3", "\"name\":\"alpine\""), false},
		{"[{\"name\":\"alpine\",\"kinds\":[\"images\"]}]",
		 OTHER_EVENT("image", "sha256:1", "\"name\":\"alpine:3\""), true},
		{"[{\"name\":\"alpine\",\"kinds\":[\"images\"]}]",
		 OTHER_EVENT("image", "sha256:1", "\"name\":\"busybox:3\""), false},
		{"[{\"name\":\"*\"}]", OTHER_EVENT("daemon", "d", "\"name\":\"d\""), false},
		{"[{\"name\":\"*\"}]", OTHER_EVENT("plugin", "d", "\"name\":\"d\""), false},
		{"[{\"name\":\"*\"}]", OTHER_EVENT("secret", "d", "\"name\":\"d\""), false},
		/* What cannot be read is not shown. */
		{"[{\"name\":\"*\"}]", "{\"Type\":\"container\"}", false},
		{"[{\"name\":\"*\"}]", "{\"status\":\"start\",\"id\":\"77\"}", false},
		{"[{\"name\":\"*\"}]", "start", false},
		{"[{\"name\":\"*\"}]", CONTAINER_EVENT("\"name\":\"a\",\"name\":\"b\""), false},
		{"[{\"name\":\"a\"}]", CONTAINER_EVENT("\"name\":\"a\"") "{}", false},
	};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct span shown;
		struct drive d;

		drive_start(&d, be, &world);
		drive_see(&d, rows[i].sees);
		CHECK_INT("ready", STEP_READY, drive_request(&d, "GET /events"));
		CHECK_INT(rows[i].row, rows[i].want,
			  be->ops->row(be, &d.call, span_of(rows[i].row), a, &shown));
		drive_end(&d);
	}
	arena_destroy(a);
	be->ops->close(be);
}

static void says_nothing_of_build_caches(void **state)
{
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json"), doc;
	struct drive d;

	(void)state;
	drive_start(&d, be, &world);
	doc = drive_parse(
		d.arena, filtered(&d, "GET /v1.41/system/df", 200, drive_read(a, "reply-df.json")));
	CHECK_INT("BuildCache", 1, jv_get(&doc, "BuildCache") == NULL);
	drive_end(&d);
	arena_destroy(a);
	be->ops->close(be);
}

static void edits_replies(void **state)
{
	static const struct {
		const char *label, *request;
		int status;
		const char *body, *want; /* NULL: it cannot be understood */
	} rows[] = {
		{"an older engine's version", "GET /version", 200,
		 "{\"ApiVersion\":\"1.41\",\"Version\":\"20\"}",
		 "{\"ApiVersion\":\"1.41\",\"Version\":\"20\"}\n"},
		{"a newer engine's version", "GET /version", 200,
		 "{\"Components\":[{\"Details\":{\"ApiVersion\":\"1.60\"}}],\"ApiVersion\":\"1."
		 "60\"}",
		 "{\"Components\":[{\"Details\":{\"ApiVersion\":\"1.56\"}}],\"ApiVersion\":\"1."
		 "56\"}\n"},
		{"a much newer engine's", "GET /version", 200, "{\"ApiVersion\":\"1.100\"}",
		 "{\"ApiVersion\":\"1.56\"}\n"},
		{"an engine that takes only new versions: the gate takes older ones",
		 "GET /version", 200,
		 "{\"Components\":[{\"Details\":{\"ApiVersion\":\"1.52\",\"MinAPIVersion\":\"1."
		 "44\"}}],"
		 "\"ApiVersion\":\"1.52\",\"MinAPIVersion\":\"1.44\"}",
		 "{\"Components\":[{\"Details\":{\"ApiVersion\":\"1.52\",\"MinAPIVersion\":\"1."
		 "24\"}}],"
		 "\"ApiVersion\":\"1.52\",\"MinAPIVersion\":\"1.24\"}\n"},
		{"an engine that takes older ones than the gate", "GET /version", 200,
		 "{\"MinAPIVersion\":\"1.12\"}", "{\"MinAPIVersion\":\"1.24\"}\n"},
		{"proxies with passwords", "GET /info", 200,
		 "{\"HttpProxy\":\"http://u:p@x:1\",\"HttpsProxy\":\"a@b@y\",\"NoProxy\":\"z\"}",
		 "{\"HttpProxy\":\"http://x:1\",\"HttpsProxy\":\"y\",\"NoProxy\":\"z\"}\n"},
		{"proxies without", "GET /info", 200, "{\"HttpProxy\":\"http://x:1/\"}",
		 "{\"HttpProxy\":\"http://x:1/\"}\n"},
		{"what was removed", "POST /containers/prune", 200,
		 "{\"ContainersDeleted\":[\"ab\"],\"SpaceReclaimed\":7,\"Other\":\"/var/lib\"}",
		 "{\"ContainersDeleted\":[\"ab\"],\"SpaceReclaimed\":7}\n"},
		{"nothing was removed", "POST /networks/prune", 200, "{\"NetworksDeleted\":null}",
		 "{\"NetworksDeleted\":null}\n"},
		{"an error says its sentence", "GET /containers/json", 500,
		 "{\"message\":\"no\",\"detail\":\"/var/lib\"}", "{\"message\":\"no\"}\n"},
		{"a name that is taken", "GET /containers/json", 409,
		 "{\"message\":\"The name \\\"/x\\\" is in use by container \\\"f202\\\". "
		 "Rename\"}",
		 "{\"message\":\"The name \\\"/x\\\" is in use\"}\n"},
		{"an error without one", "GET /containers/json", 400, "[]",
		 "{\"message\":\"the engine refused without saying why\"}\n"},
		{"an empty list", "GET /containers/json", 200, "[]", "[]\n"},
		{"no list", "GET /containers/json", 200, "{}", NULL},
		{"null", "GET /volumes", 200, "{\"Volumes\":null}",
		 "{\"Volumes\":null,\"Warnings\":null}\n"},
		{"no JSON", "GET /containers/json", 200, "<html>", NULL},
		{"half a document", "GET /containers/json", 200, "[{\"Labels\":", NULL},
		{"nothing", "GET /containers/json", 200, "", NULL},
	};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct drive d;
		const char *got;

		drive_start(&d, be, &world);
		got = filtered(&d, rows[i].request, rows[i].status, span_of(rows[i].body));
		CHECK_STR(rows[i].label, rows[i].want ? rows[i].want : "(fails)",
			  got ? got : "(fails)");
		drive_end(&d);
	}
	arena_destroy(a);
	be->ops->close(be);
}

static void hides_values_of_environments(void **state)
{
	static const struct {
		const char *label, *env, *want;
	} rows[] = {
		{"values", "[\"TOKEN=hidden\",\"PATH=/bin\"]",
		 "[\"TOKEN=[redacted]\",\"PATH=[redacted]\"]"},
		{"a value with more of it", "[\"A=b=c\"]", "[\"A=[redacted]\"]"},
		{"an empty one", "[\"A=\"]", "[\"A=[redacted]\"]"},
		{"what has no name", "[\"hidden\",5]", "[]"},
		{"none", "[]", "[]"},
		{"null", "null", "[]"},
		{"no list", "{\"A\":\"hidden\"}", "[]"},
	};
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *body, *got;
		struct drive d;
		struct jv doc;

		drive_start(&d, be, &world);
		d.call.hides = HIDE_ENV;
		body = arena_take(d.arena, 1000);
		snprintf((char *)body, 1000,
			 "{\"Id\":\"x\",\"Config\":{\"Env\":%s,\"User\":\"5\"}}", rows[i].env);
		got = filtered(&d, "GET /v1.41/containers/run/json", 200, span_of(body));
		CHECK_INT(rows[i].label, REPLY_HELD, d.call.reply);
		doc = drive_parse(d.arena, got);
		CHECK_STR(rows[i].label, rows[i].want,
			  drive_text(d.arena, drive_at(&doc, "Config.Env")));
		CHECK_STR(rows[i].label, "\"5\"",
			  drive_text(d.arena, drive_at(&doc, "Config.User")));
		drive_end(&d);
	}
	arena_destroy(a);
	be->ops->close(be);
}

/* What a commit took over from a container. */
static void hides_environments_of_images(void **state)
{
	static const char body[] = "{\"Id\":\"x\",\"ContainerConfig\":{\"Env\":[\"A=hidden\"]},"
				   "\"Config\":{\"Env\":[\"A=hidden\"]}}";
	static const char hidden[] =
		"{\"Id\":\"x\",\"ContainerConfig\":{\"Env\":[\"A=[redacted]\"]},"
		"\"Config\":{\"Env\":[\"A=[redacted]\"]}}\n";
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");
	struct drive d;

	(void)state;
	drive_start(&d, be, &world);
	d.call.hides = HIDE_ENV;
	CHECK_STR("hidden", hidden,
		  filtered(&d, "GET /v1.41/images/busybox/json", 200, span_of(body)));
	CHECK_INT("held", REPLY_HELD, d.call.reply);
	drive_end(&d);
	drive_start(&d, be, &world);
	CHECK_INT("ready", STEP_READY, drive_request(&d, "GET /v1.41/images/busybox/json"));
	CHECK_INT("passed on else", REPLY_STREAM, d.call.reply);
	drive_end(&d);
	arena_destroy(a);
	be->ops->close(be);
}

/* A cap is a failure, not half a list. */
static void fails_when_a_reply_does_not_fit(void **state)
{
	struct backend *be = drive_open();
	struct arena *a = arena_create(DRIVE_ARENA_BYTES);
	struct jv world = drive_json(a, "world.json");
	struct err err = {0};
	struct drive d;
	struct buf out;

	(void)state;
	drive_start(&d, be, &world);
	drive_request(&d, "GET /containers/json");
	buf_init(&out, 100);
	CHECK_INT("small", -1,
		  be->ops->filter(be, &d.call, 200, drive_read(a, "reply-containers.json"), &out,
				  &err));
	CHECK_INT("kind", ERR_LIMIT, err.kind);
	buf_fini(&out);
	drive_end(&d);
	arena_destroy(a);
	be->ops->close(be);
}

static void keeps_known_headers(void **state)
{
	static const struct {
		const char *name, *value;
		bool keep;
		const char *want; /* NULL: as it is */
	} rows[] = {
		{"api-version", "1.41", true, NULL},
		{"api-version", "1.56", true, NULL},
		{"api-version", "1.57", true, "1.56"},
		{"api-version", "1.100", true, "1.56"},
		{"api-version", "2.0", true, NULL},
		{"ostype", "linux", true, NULL},
		{"docker-experimental", "false", true, NULL},
		{"content-type", "application/json", true, NULL},
		{"x-docker-container-path-stat", "e30=", true, NULL},
		{"builder-version", "2", true, "1"},
		{"server", "Docker/20.10.24", false, NULL},
		{"date", "x", false, NULL},
		{"set-cookie", "x", false, NULL},
		{"location", "/x", false, NULL},
		{"x-registry-auth", "x", false, NULL},
	};
	struct backend *be = drive_open();
	struct backend_call call = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct pair h = {span_of(rows[i].name), span_of(rows[i].value)};
		const char *value = "unset";
		bool keep = false;

		be->ops->reply_header(be, &call, &h, &keep, &value);
		CHECK_INT(rows[i].name, rows[i].keep, keep);
		CHECK_STR(rows[i].value, rows[i].want ? rows[i].want : "(same)",
			  value ? value : "(same)");
	}
	be->ops->close(be);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_list_is_not_an_empty_one),
		cmocka_unit_test(shows_only_own_rows),
		cmocka_unit_test(shows_what_visibility_says),
		cmocka_unit_test(shows_events_of_what_is_shown),
		cmocka_unit_test(says_nothing_of_build_caches),
		cmocka_unit_test(edits_replies),
		cmocka_unit_test(hides_values_of_environments),
		cmocka_unit_test(hides_environments_of_images),
		cmocka_unit_test(fails_when_a_reply_does_not_fit),
		cmocka_unit_test(keeps_known_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
