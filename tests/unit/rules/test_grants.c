#include "tests/unit/rules/rows.h"

#include <stdlib.h>

#define OWN(control, kind, movable)                                                                \
	BIND("/run/g/own.sock",                                                                    \
	     ",\"host\":{\"control\":\"" control "\",\"kind\":\"" kind "\",\"movable\":" movable   \
	     ",\"real\":\"/run/g/own.sock\",\"protected\":\"/run/g/own.sock\"}")

/* Settings that grant more than the reference policy does. */
static void grants_what_settings_say(void **state)
{
	static const struct row rows[] = {
		{"capabilities = { \"cap_net_raw\" }",
		 W("\"capabilities\":{\"add\":[{\"name\":\"NET_RAW\"}]}"), "allow"},
		{"capabilities = { \"NET_RAW\" }",
		 W("\"capabilities\":{\"add\":[{\"name\":\"NET_ADMIN\"}]}"), "capability"},
		{"users = \"any\"",
		 W("\"user\":{\"root\":true,\"groups\":[{\"name\":\"docker\",\"field\":\"f\"}]}"),
		 "allow"},
		{"healthchecks = true", W("\"command\":{\"healthcheck\":true}"), "allow"},
		{"healthchecks = false", W("\"command\":{\"healthcheck\":true}"), "healthcheck"},
		{"restart = { \"always\" }", W("\"restart\":\"always\""), "allow"},
		{"restart = { \"always\" }", W("\"restart\":\"on-failure\""), "restart"},
		{"restart, t.isolation = { \"always\" }, { min = \"kernel\", attested = true }",
		 W("\"restart\":\"always\""), "restart"},
		{"labels = { \"org.example.*\" }",
		 W("\"labels\":[{\"name\":\"org.example.team\"}]"), "allow"},
		{"labels = { \"**\" }", W("\"labels\":[{\"name\":\"Sallyport.owner\"}]"), "label"},
		{"log_drivers = { \"syslog\" }", W("\"log\":{\"driver\":\"syslog\"}"), "allow"},
		{"log_drivers = { \"syslog\" }", W("\"log\":{\"driver\":\"json-file\"}"),
		 "log_driver"},
		{"ports = { \"*\" }",
		 W("\"network\":{\"publish_all\":true,\"ports\":[{\"port\":\"1/"
		   "tcp\",\"address\":\"\"}]}"),
		 "allow"},
		{"networks = { \"agents\", \"bridge\" }",
		 W("\"network\":{\"mode\":\"default\",\"endpoints\":[]}"), "allow"},
		{"networks = { \"team-*\" }",
		 W("\"network\":{\"mode\":\"team-a\",\"endpoints\":[]}"), "allow"},
		{"networks = { \"*\" }",
		 W("\"network\":{\"mode\":\"agents\",\"endpoints\":[{\"name\":\"host\","
		   "\"settings\":[]}]}"),
		 "network"},
		{"egress = {}", W("\"network\":{\"mode\":\"agents\",\"endpoints\":[]}"), "network"},
		{"egress = {}", W("\"network\":{\"mode\":\"none\",\"endpoints\":[]}"), "allow"},
		{"mounts = { { \"/srv/ws\" } }", "", "bind"},
		{"movable_mounts = true", BIND("/srv/ws/a", MOVABLE), "allow"},
		{"own_socket = false", OWN("own", "socket", "false"), "bind_protected"},
		{"own_socket = true", OWN("own", "socket", "false"), "allow"},
		{"own_socket = true", OWN("own", "socket", "true"), "bind_movable"},
		{"own_socket, t.movable_mounts = true, true", OWN("own", "socket", "true"),
		 "allow"},
		{"own_socket = true", OWN("own", "directory", "false"), "bind_protected"},
		{"own_socket = true", OWN("own", "unknown", "false"), "bind_protected"},
		{"own_socket = true", OWN("engine", "socket", "false"), "bind_protected"},
		{"own_socket, t.mounts = true, { { \"/run\", \"rw\" } }",
		 OWN("engine", "socket", "false"), "bind_protected"},
		{"own_socket = true",
		 BIND("/run", ",\"host\":{\"kind\":\"directory\",\"real\":\"/run\","
			      "\"protected\":\"/run/g/own.sock\"}"),
		 "bind_protected bind"},
		{"own_socket = true", BIND("/srv/ws/s", "," HOST("socket", "/srv/ws/s")), "bind"},
		{"own_socket = true",
		 MOUNT("\"kind\":\"bind\",\"source\":\"/run/g/own.sock\",\"read_only\":false,"
		       "\"options\":[\"Z\"],\"host\":{\"control\":\"own\",\"kind\":\"socket\"}"),
		 "propagation"},
		{"restart, t.movable_mounts = { \"always\" }, true",
		 "{\"workload\":{\"restart\":\"always\",\"mounts\":[{\"kind\":\"bind\",\"source\":"
		 "\"/srv/ws/"
		 "a\",\"read_only\":false,\"options\":[]" MOVABLE "}]}}",
		 "restart"},
		{"mounts = { { \"/srv/ws\" } }",
		 MOUNT("\"kind\":\"bind\",\"source\":\"/srv/ws/"
		       "a\",\"read_only\":true,\"options\":[]," HOST("directory", "/srv/ws/a")),
		 "allow"},
		{"mounts = { { \"/srv/ws\" }, { \"/srv/ws/{identity.name}\", \"rw\" } }",
		 BIND("/srv/ws/ann/x", "," HOST("directory", "/srv/ws/ann/x")), "allow"},
		{"mounts = { { \"/srv/ws\" }, { \"/srv/ws/{identity.name}\", \"rw\" } }",
		 BIND("/srv/ws/bob", "," HOST("directory", "/srv/ws/bob")), "bind"},
		{"mounts = { { \"/srv/ws/{identity.name}\", \"rw\" } }",
		 "{\"identity\":{\"name\":\"\"}}", "bind"},
		{"mounts = { { \"/srv/{identity.name}\", \"rw\" } }",
		 "{\"identity\":{\"name\":\"..\"}}", "bind"},
		{"mounts = { { \"/srv/{identity.name}\", \"rw\" } }",
		 "{\"identity\":{\"name\":\"ws/a\"}}", "bind"},
		{"mounts = { { \"/srv/{identity.name}\", \"rw\" } }", "{\"identity\":null}",
		 "bind"},
		{"isolation = { min = \"vm\" }", "", "runtime"},
		{"isolation = { min = \"process\" }", W("\"isolation\":{\"level\":\"process\"}"),
		 "allow"},
		{"isolation = nil", W("\"isolation\":{\"level\":\"none\"}"), "runtime"},
		{"limits = nil", W("\"limits\":{\"memory\":null,\"pids\":null}"), "allow"},
		{"limits = { cpus = 1.5 }", W("\"limits\":{\"nano_cpus\":1500000000}"), "allow"},
		{"limits = { cpus = 1.5 }", W("\"limits\":{\"nano_cpus\":1500000001}"), "limits"},
		{"limits = { cpus = 1.5 }", "", "limits"},
		{"networks = nil", "", "network"},
		{"mounts = nil", "", "bind"},
	};

	(void)state;
	rows_judge_settings(rows, sizeof(rows) / sizeof(*rows));
}

/* A denial says where, what, why, and what would have been accepted. */
static void says_what_would_pass(void **state)
{
	static const struct {
		const char *label, *change, *field, *value, *hint;
	} rows[] = {
		{"bind", BIND("/etc", "," HOST("directory", "/etc")), "m", "/etc",
		 "Host paths that may be mounted: /srv/ws (rw)."},
		{"image", W("\"image\":{\"name\":\"evil/x\",\"given\":\"evil/x:1\"}"),
		 "image.given", "evil/x:1",
		 "Images that may be used: reg.example/team/*, docker.io/library/alpine."},
		{"network", W("\"network\":{\"mode\":\"prod\",\"endpoints\":[]}"), "network.mode",
		 "prod", "Networks that may be used: none, agents."},
		{"port",
		 W("\"network\":{\"ports\":[{\"port\":\"22/"
		   "tcp\",\"address\":\"\",\"field\":\"f\"}]}"),
		 "f", "all addresses -> 22/tcp",
		 "Addresses on which ports may be published: 127.0.0.1."},
		{"limits", W("\"limits\":{\"memory\":4294967296}"), "limits.memory", "4294967296",
		 "Ask for at most 2GiB."},
		{"privileged", W("\"privileged\":true"), "privileged", "true", ""},
		{"capability", W("\"capabilities\":{\"add\":[{\"name\":\"ALL\",\"field\":\"f\"}]}"),
		 "f", "ALL", "Capabilities that may be added: none."},
		{"runtime", W("\"isolation\":{\"level\":\"process\",\"runtime\":\"runc\"}"),
		 "isolation.runtime", "runc", "Runtimes of this engine that reach it: runsc."},
	};
	struct engine *eng = kit_open_ref();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kit_answer ans;
		const struct violation *v = &ans.decision.violations.list[0];

		kit_judge(eng, "ref", kit_create, rows[i].change, &ans);
		CHECK_STR(rows[i].label, rows[i].label, reason_name(v->reason));
		CHECK_STR(rows[i].label, rows[i].field, v->field);
		CHECK_STR(rows[i].label, rows[i].value, v->value);
		CHECK_STR(rows[i].label, rows[i].hint, v->hint);
		CHECK_STR(rows[i].label, v->rule, ans.decision.rule);
		kit_drop(&ans);
	}
	engine_close(eng);
}

/* What lowers the isolation is named. */
static void names_what_lowers(void **state)
{
	struct engine *eng = kit_open_ref();
	struct kit_answer ans;

	(void)state;
	kit_judge(eng, "ref", kit_create,
		  W("\"isolation\":{\"level\":\"none\",\"lowered\":[{\"field\":\"HostConfig."
		    "PidMode\","
		    "\"value\":\"host\",\"to\":\"none\",\"why\":\"sees the host\"}]}"),
		  &ans);
	CHECK_STR("text",
		  "the isolation would be none, the profile asks for kernel; lowered by "
		  "HostConfig.PidMode (sees the host)",
		  ans.decision.violations.list[0].text);
	kit_drop(&ans);
	engine_close(eng);
}

/* The shipped profile does what it is for, and not more. */
static void the_agent_profile_lets_agents_work(void **state)
{
	static const struct row rows[] = {
		{"busybox", W("\"name\":\"x\""), "allow"},
		{"another tag of busybox", W("\"image\":{\"tag\":\"1.36\"}"), "image"},
		{"any tag of python",
		 W("\"image\":{\"name\":\"docker.io/library/python\",\"tag\":\"3.12-slim\"}"),
		 "allow"},
		{"a network", W("\"network\":{\"mode\":\"default\"}"), "network"},
		{"a directory of the host",
		 BIND("/srv/agents/ann", "," HOST("directory", "/srv/agents/ann")), "bind"},
		{"more memory", W("\"limits\":{\"memory\":2147483648}"), "limits"},
		{"the engine's socket",
		 BIND("/run/docker.sock", ",\"host\":{\"kind\":\"socket\",\"real\":\"/run/"
					  "docker.sock\",\"protected\":\"/run/"
					  "docker.sock\"}"),
		 "bind_protected bind"},
	};
	static const char base[] = W(
		"\"image\":{\"name\":\"docker.io/library/busybox\",\"tag\":\"latest\",\"digests\":["
		"\"docker.io/library/busybox@sha256:aa\",\"docker.io/library/python@sha256:bb\"]},"
		"\"isolation\":{\"level\":\"process\"},\"mounts\":[],\"network\":{\"mode\":"
		"\"none\",\"endpoints\":[]},\"limits\":{\"memory\":268435456,\"nano_cpus\":"
		"1000000000,\"pids\":64}");
	char *text = kit_read("rules/profiles/agent.lua");
	struct engine *eng = kit_open(text);
	struct arena *a = arena_create(1 << 20);
	struct buf out;
	struct jv facts = kit_merged(a, kit_create, base);

	(void)state;
	buf_init(&out, 1 << 16);
	jv_write(&out, &facts);
	buf_put(&out, "", 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kit_answer ans;

		kit_judge(eng, "agent", buf_span(&out).at, rows[i].change, &ans);
		CHECK_STR(rows[i].label, rows[i].want, kit_reasons(&ans));
		kit_drop(&ans);
	}
	buf_fini(&out);
	arena_destroy(a);
	engine_close(eng);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grants_what_settings_say),
		cmocka_unit_test(says_what_would_pass),
		cmocka_unit_test(names_what_lowers),
		cmocka_unit_test(the_agent_profile_lets_agents_work),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
