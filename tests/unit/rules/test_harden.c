#include "tests/unit/rules/kit.h"

#include <stdio.h>

/* "fact=value fact=value": what hardening wants for base with change merged in. */
static const char *changes(struct engine *eng, const char *change)
{
	static char text[1024];
	struct arena *a = arena_create(1 << 20);
	struct jv facts = kit_merged(a, kit_create, change);
	struct change list[CHANGES_MAX];
	struct buf out;
	struct err err = {0};
	size_t count = 99;

	buf_init(&out, sizeof(text) - 1);
	CHECK_INT(change, 0,
		  engine_harden(eng, engine_profile_at(eng, 0), &facts, a, list, &count, &err));
	for (size_t i = 0; i < count; i++) {
		buf_printf(&out, "%s%s=", i ? " " : "", harden_fact(list[i].what));
		jv_write(&out, &list[i].value);
		CHECK_INT(change, harden_kind(list[i].what), list[i].value.kind);
		CHECK_STR(change, "harden", list[i].rule);
	}
	snprintf(text, sizeof(text), "%.*s", SPAN_FMT(buf_span(&out)));
	buf_fini(&out);
	arena_destroy(a);
	return text;
}

#define W(x) "{\"workload\":{" x "}}"

static void fills_what_is_absent(void **state)
{
	static const struct {
		const char *label, *change, *want;
	} rows[] = {
		{"nothing is absent", "", ""},
		{"not for what exists",
		 "{\"operation\":{\"name\":\"container.start\"},\"workload\":{\"no_new_"
		 "privileges\":false}}",
		 ""},
		{"nothing would run", "{\"workload\":null}", ""},
		{"everything is absent",
		 W("\"isolation\":{\"level\":\"process\",\"base\":\"process\",\"runtime\":\"runc\","
		   "\"runtime_given\":"
		   "false},\"network\":{\"given\":false,\"mode\":\"default\",\"endpoints\":[]},"
		   "\"capabilities\":{"
		   "\"drop_all\":false},\"no_new_privileges\":false,\"user\":{\"given\":\"\","
		   "\"root\":true,"
		   "\"effective\":\"root\"},\"limits\":{\"memory\":null,\"pids\":null}"),
		 "isolation.runtime=\"runsc\" network.mode=\"none\" capabilities.drop_all=true "
		 "no_new_privileges=true user.given=\"65534:65534\" limits.memory=2147483648 "
		 "limits.pids=512"},
		{"the runtime is strong enough",
		 W("\"isolation\":{\"base\":\"kernel\",\"runtime\":\"runsc\",\"runtime_given\":"
		   "false}"),
		 ""},
		{"the runtime is named",
		 W("\"isolation\":{\"level\":\"process\",\"base\":\"process\",\"runtime_given\":"
		   "true}"),
		 ""},
		{"the default runtime's own flags weaken it",
		 W("\"isolation\":{\"level\":\"process\",\"base\":\"kernel\",\"runtime\":\"weak\","
		   "\"runtime_given\":"
		   "false,\"runtimes\":[{\"name\":\"weak\",\"level\":\"process\"},{\"name\":"
		   "\"runsc\",\"level\":"
		   "\"kernel\"}]}"),
		 "isolation.runtime=\"runsc\""},
		{"the preferred runtime is too weak here, the next is not",
		 W("\"isolation\":{\"base\":\"process\",\"runtime\":\"runc\",\"runtime_given\":"
		   "false,\"runtimes\":[{"
		   "\"name\":\"runsc\",\"level\":\"process\"},{\"name\":\"kata\",\"level\":\"vm\"}]"
		   "}"),
		 "isolation.runtime=\"kata\""},
		{"no runtime is strong enough",
		 W("\"isolation\":{\"base\":\"process\",\"runtime_given\":false,\"runtimes\":[{"
		   "\"name\":\"runc\","
		   "\"level\":\"process\"}]}"),
		 ""},
		{"whether it was named is not known",
		 W("\"isolation\":{\"base\":\"process\",\"runtime_given\":null}"), ""},
		{"an end point is named, the mode is not",
		 W("\"network\":{\"given\":false,\"mode\":\"default\"}"), ""},
		{"the image's user is not known",
		 W("\"user\":{\"given\":\"\",\"root\":null,\"effective\":null}"),
		 "user.given=\"65534:65534\""},
		{"what is switched off stays so, to be judged",
		 W("\"no_new_privileges\":false,\"security\":[{\"name\":\"no-new-privileges\","
		   "\"value\":\"false\"}]"),
		 ""},
		{"root is asked for", W("\"user\":{\"given\":\"0\",\"root\":true}"), ""},
		{"a file without bounds", W("\"log\":{\"driver\":\"json-file\",\"options\":[]}"),
		 "log.limits=\"10m:3\""},
		{"the engine would keep such a file",
		 W("\"log\":{\"driver\":null,\"default\":\"json-file\",\"options\":null}"),
		 "log.limits=\"10m:3\""},
		{"the operator has another default",
		 W("\"log\":{\"driver\":null,\"default\":\"journald\"}"), ""},
		{"the operator has another default, the request has not",
		 W("\"log\":{\"driver\":\"json-file\",\"default\":\"journald\"}"),
		 "log.limits=\"10m:3\""},
		{"another driver", W("\"log\":{\"driver\":\"local\",\"default\":\"json-file\"}"),
		 ""},
		{"the default is not known", W("\"log\":null"), ""},
		{"options that are given stay, to be judged",
		 W("\"log\":{\"driver\":\"json-file\",\"options\":[\"max-size\"]}"), ""},
		{"no init unless it is said", W("\"init\":false,\"init_given\":false"), ""},
		{"not removed unless it is said", W("\"auto_remove\":false,\"restart\":\"no\""),
		 ""},
		{"limits that are given stay", W("\"limits\":{\"memory\":99999999999}"), ""},
	};
	struct engine *eng = kit_open_ref();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_STR(rows[i].label, rows[i].want, changes(eng, rows[i].change));
	engine_close(eng);
}

#define SOCKET                                                                                     \
	"{\"kind\":\"bind\",\"host\":{\"control\":\"engine\",\"instead\":\"/run/g/own.sock\"}}"
#define ENGINE W("\"mounts\":[" SOCKET "]")

static void settings_decide(void **state)
{
	static const struct {
		const char *settings, *change, *want;
	} rows[] = {
		{"harden = false", W("\"no_new_privileges\":false"), ""},
		{"doc = \"nothing said\"", W("\"no_new_privileges\":false"), ""},
		{"harden = true, users = \"any\"", W("\"user\":{\"given\":\"\",\"root\":true}"),
		 ""},
		{"harden = true, networks = { \"agents\" }",
		 W("\"network\":{\"given\":false,\"mode\":\"default\",\"endpoints\":[]}"),
		 "network.mode=\"none\""},
		{"harden = true, networks = { \"default\" }",
		 W("\"network\":{\"given\":false,\"mode\":\"default\",\"endpoints\":[]}"), ""},
		{"harden = true, networks = { \"bridge\" }",
		 W("\"network\":{\"given\":false,\"mode\":\"default\",\"endpoints\":[]}"), ""},
		{"harden = true", W("\"limits\":{\"memory\":null,\"pids\":null}"), ""},
		{"harden = true", W("\"read_only\":false"), ""},
		{"harden = { read_only = false }", W("\"read_only\":false"), ""},
		{"harden = { read_only = false }", W("\"no_new_privileges\":false"),
		 "no_new_privileges=true"},
		{"harden = { read_only = true }", W("\"read_only\":false"),
		 "read_only=true scratch=\"/tmp:67108864\" scratch=\"/run:67108864\""},
		{"harden = { read_only = true }", W("\"read_only\":true"), ""},
		{"harden = { read_only = true }", W("\"read_only\":null"), ""},
		{"harden = { read_only = true }",
		 W("\"read_only\":false,\"mounts\":[{\"kind\":\"tmpfs\",\"target\":\"/tmp/\"},"
		   "{\"kind\":\"bind\",\"target\":\"/run/x\"}]"),
		 "read_only=true scratch=\"/run:67108864\""},
		{"harden = { read_only = true }, limits = { memory = \"32MiB\" }",
		 W("\"read_only\":false"),
		 "read_only=true scratch=\"/tmp:33554432\" scratch=\"/run:33554432\""},
		{"harden = { read_only = true, log_limits = false }",
		 W("\"read_only\":true,\"log\":{\"driver\":\"json-file\"}"), ""},
		{"harden = { log_limits = true }", W("\"log\":{\"driver\":\"json-file\"}"),
		 "log.limits=\"10m:3\""},
		{"harden = false", W("\"log\":{\"driver\":\"json-file\"}"), ""},
		{"harden = true, log_drivers = { \"local\" }",
		 W("\"log\":{\"driver\":null,\"default\":\"json-file\"}"), ""},
		{"harden = { init = true }", W("\"init\":false,\"init_given\":false"), "init=true"},
		{"harden = { init = true }", W("\"init\":false,\"init_given\":true"), ""},
		{"harden = { init = true }", W("\"init\":true,\"init_given\":true"), ""},
		{"harden = { init = true }", W("\"init\":null"), ""},
		{"harden = { init = false }", W("\"init\":false,\"init_given\":false"), ""},
		{"harden = { auto_remove = true }", W("\"auto_remove\":false,\"restart\":\"no\""),
		 "auto_remove=true"},
		{"harden = { auto_remove = true }",
		 W("\"auto_remove\":false,\"restart\":\"always\""), ""},
		{"harden = { auto_remove = true }", W("\"auto_remove\":false,\"restart\":null"),
		 ""},
		{"harden = { auto_remove = true }", W("\"auto_remove\":true"), ""},
		{"harden = { labels = { team = \"x\" } }", "", "label=\"team=x\""},
		{"harden = { labels = { team = \"x\", tier = \"\" } }",
		 W("\"labels\":[{\"name\":\"te\"},{\"name\":\"team.x\"}]"),
		 "label=\"team=x\" label=\"tier=\""},
		{"harden = { labels = { team = \"x\" } }", W("\"labels\":[{\"name\":\"team\"}]"),
		 ""},
		{"own_socket = true", ENGINE, "own_socket=\"/run/g/own.sock\""},
		{"own_socket = true",
		 W("\"mounts\":[{\"kind\":\"bind\",\"host\":{\"control\":\"engine\"}}]"), ""},
		{"own_socket = false, harden = true", ENGINE, ""},
		{"own_socket = true", W("\"no_new_privileges\":false"), ""},
		{"own_socket = true, harden = true",
		 W("\"no_new_privileges\":false,\"mounts\":[{\"kind\":\"tmpfs\"}," SOCKET "," SOCKET
		   "]"),
		 "own_socket=\"/run/g/own.sock\" no_new_privileges=true"},
		{"pin = true", "", "image.pinned=\"reg.example/team/app:1@sha256:bb\""},
		{"pin = true", W("\"no_new_privileges\":false"),
		 "image.pinned=\"reg.example/team/app:1@sha256:bb\""},
		{"pin = true, harden = true", W("\"no_new_privileges\":false"),
		 "image.pinned=\"reg.example/team/app:1@sha256:bb\" no_new_privileges=true"},
		{"pin = false", "", ""},
		{"pin = true", W("\"image\":{\"digests\":[]}"), "image.pinned=\"sha256:aa\""},
		{"pin = true", W("\"image\":{\"digests\":null}"), "image.pinned=\"sha256:aa\""},
		{"pin = true", W("\"image\":{\"digests\":[\"evil.example/x@sha256:cc\"]}"),
		 "image.pinned=\"sha256:aa\""},
		{"pin = true", W("\"image\":{\"digest\":\"sha256:bb\"}"), ""},
		{"pin = true", W("\"image\":{\"by_id\":true,\"name\":null}"), ""},
		{"pin = true", W("\"image\":{\"present\":false,\"id\":null,\"digests\":null}"), ""},
		{"pin = true", W("\"image\":null"), ""},
		{"harden = true, limits = { cpus = 0.5 }", "", "limits.nano_cpus=500000000"},
		{"harden = true, isolation = { min = \"vm\" }",
		 W("\"isolation\":{\"base\":\"process\",\"runtime\":\"runc\",\"runtime_given\":"
		   "false,\"runtimes\":[{"
		   "\"name\":\"z\",\"level\":\"vm\"},{\"name\":\"b\",\"level\":\"vm\"},{\"name\":"
		   "\"a\",\"level\":"
		   "\"kernel\"}]}"),
		 "isolation.runtime=\"b\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct engine *eng;
		char text[256];

		snprintf(text, sizeof(text),
			 "return profile \"p\" { operations = { \"container.run\" }, %s }",
			 rows[i].settings);
		eng = kit_open(text);
		CHECK_STR(rows[i].settings, rows[i].want, changes(eng, rows[i].change));
		engine_close(eng);
	}
}

/* Trouble is an error, with no changes: the caller denies. */
static void trouble_changes_nothing(void **state)
{
	struct engine *eng = kit_open_ref();
	struct arena *a = arena_create(1 << 20);
	struct jv facts = kit_merged(a, kit_create, W("\"user\":5,\"no_new_privileges\":false"));
	struct change list[CHANGES_MAX];
	struct err err = {0};
	size_t count = 99;

	(void)state;
	CHECK_INT("fails", -1,
		  engine_harden(eng, engine_profile(eng, "ref"), &facts, a, list, &count, &err));
	CHECK_INT("kind", ERR_CONFIG, err.kind);
	CHECK_INT("nothing", 0, count);
	arena_destroy(a);
	engine_close(eng);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fills_what_is_absent),
		cmocka_unit_test(settings_decide),
		cmocka_unit_test(trouble_changes_nothing),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
