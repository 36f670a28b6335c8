#include "tests/unit/rules/rows.h"

#include <stdio.h>

#define NET(x) OTHER("network.create", "host", "\"net\":{" x "}")
#define POINT(name, settings)                                                                      \
	"\"network\":{\"endpoints\":[{\"name\":\"" name "\",\"settings\":[" settings "]}]}"

static void judges_other_objects(void **state)
{
	static const struct row rows[] = {
		{"a plain volume", OTHER("volume.create", "host", "\"volume\":{\"options\":[]}"),
		 "allow"},
		{"a bind in disguise",
		 OTHER("volume.create", "host",
		       "\"volume\":{\"driver\":\"local\",\"options\":[\"device\",\"o\"]}"),
		 "driver_opts"},
		{"a driver",
		 OTHER("volume.create", "host",
		       "\"volume\":{\"driver\":\"vieux/sshfs\",\"options\":[\"sshcmd\"]}"),
		 "volume_driver driver_opts"},
		{"a volume with a foreign label",
		 OTHER("volume.create", "host",
		       "\"volume\":{\"options\":[]},\"labels\":[{\"name\":\"traefik.enable\"}]"),
		 "label"},

		{"an internal bridge",
		 NET("\"driver\":\"bridge\",\"internal\":true,\"options\":[]"), "allow"},
		{"a bridge with a way out",
		 NET("\"driver\":\"bridge\",\"internal\":false,\"options\":[]"), "network_create"},
		{"a network on an interface of the host",
		 NET("\"driver\":\"macvlan\",\"internal\":true,\"options\":[\"parent\"]"),
		 "network_create"},
		{"nothing is known of it", "{" OP("network.create", "host") "}", "fact_unknown"},
		{"connecting to another network",
		 OTHER("network.connect", "policy", POINT("prod", "\"Aliases\"")),
		 "network network_endpoint"},
		{"connecting to a granted network",
		 OTHER("network.connect", "policy", POINT("agents", "")), "allow"},
		{"connecting to nobody knows what",
		 OTHER("network.connect", "policy", "\"network\":{\"endpoints\":[]}"), "network"},

		{"renaming is closed", "{" OP("container.rename", "lifecycle") "}", "rename"},
		{"export is closed", "{" OP("container.export", "data-out") "}", "export"},
		{"an operation that does not exist", "{" OP("container.fly", "read") "}",
		 "operation"},
	};

	(void)state;
	rows_judge_ref(rows_caller, rows, sizeof(rows) / sizeof(*rows));
}

/* Limits of a container that runs; the profile grants the change of them. */
static void judges_updates(void **state)
{
	static const struct row rows[] = {
		{"within",
		 "\"limits\":{\"memory\":1073741824,\"pids\":100,\"lifted\":[]},\"restart\":\"no\"",
		 "allow"},
		{"lifted", "\"limits\":{\"swap\":-1,\"lifted\":[]},\"restart\":\"always\"",
		 "limits restart"},
		{"nothing is known", "\"name\":\"x\"", "fact_unknown"},
	};
	struct engine *eng =
		kit_open("return profile \"p\" { operations = { \"container.update\" }, "
			 "limits = { memory = \"2GiB\", pids = 512 } }");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct kit_answer ans;
		char facts[512];

		snprintf(facts, sizeof(facts),
			 "{" OP("container.update", "policy") ",\"workload\":{%s}}",
			 rows[i].change);
		kit_judge(eng, "p", facts, "", &ans);
		CHECK_STR(rows[i].label, rows[i].want, kit_reasons(&ans));
		kit_drop(&ans);
	}
	engine_close(eng);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judges_other_objects),
		cmocka_unit_test(judges_updates),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
