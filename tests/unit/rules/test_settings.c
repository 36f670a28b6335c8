#include "tests/unit/rules/kit.h"

#include <stdio.h>
#include <stdlib.h>

/* One profile with one setting; what the message says. */
static void wrong_settings_do_not_load(void **state)
{
	static const struct {
		const char *setting, *want;
	} rows[] = {
		/* names */
		{"image = { \"alpine\" }",
		 "test.lua:3: profile \"p\": unknown setting \"image\", the nearest is "
		 "\"images\""},
		{"capabilites = {}",
		 "unknown setting \"capabilites\", the nearest is \"capabilities\""},
		{"zzzzz = 1", "test.lua:3: profile \"p\": unknown setting \"zzzzz\"; known: doc, "},
		{"[1.5] = 1", "a setting is named by a string"},
		{"\"text\"", "entry 1 without a name is no rule(...)"},
		{"[5] = 1", "a setting is named by a string"},

		/* not yet */
		{"sandbox = 5", "sandbox: { image = "},
		{"sandbox = { lifetimes = 1 }", "sandbox: \"lifetimes\" is not known here"},
		{"sandbox = { lifetime = \"30\" }", "lifetime: a time like"},
		{"sandbox = { lifetime = 0 }", "lifetime: a time like"},
		{"sandbox = { disk = \"much\" }", "disk: a size like"},
		{"sandbox = { per_call = 1 }", "per_call: true or false is expected"},
		{"sandbox = { image = \"\" }", "image: an image is expected"},
		{"quota = 5",
		 "test.lua:3: profile \"p\": quota: { containers = 5, memory = \"6GiB\" } "
		 "is expected, not an integer"},
		{"quota = { container = 5 }",
		 "quota: \"container\" is not known here (containers memory cpus pids"},
		{"quota = { containers = -1 }", "quota: containers: a number from 0 to 1000000000"},
		{"quota = { containers = \"5\" }",
		 "quota: containers: a number from 0 to 1000000000"},
		{"quota = { containers = 1.5 }",
		 "quota: containers: a number from 0 to 1000000000"},
		{"quota = { memory = \"many\" }",
		 "quota: memory: a size like \"6GiB\" is expected"},
		{"quota = { memory = -1 }", "quota: memory: a size like \"6GiB\" is expected"},
		{"quota = { cpus = 0 }", "quota: cpus: a number of processors from 0.01 to 4096"},
		{"rate = \"20/min\"", "rate: { launch = \"20/min\" } is expected, not \"20/min\""},
		{"rate = { lanch = \"20/min\" }",
		 "rate: \"lanch\" is no operation, group or class; the nearest is launch"},
		{"rate = { launch = 20 }", "rate: launch: a rate like \"20/min\" (s, min, h, day) "
					   "is expected, not an integer"},
		{"rate = { launch = \"0/min\" }", "is expected, not \"0/min\""},
		{"rate = { launch = \"-1/min\" }", "is expected, not \"-1/min\""},
		{"rate = { launch = \"1000001/s\" }", "is expected, not \"1000001/s\""},
		{"rate = { launch = \"99999999999999999999/s\" }", "rate: launch: a rate like"},
		{"rate = { launch = \"20/week\" }", "is expected, not \"20/week\""},
		{"rate = { launch = \"20\" }", "is expected, not \"20\""},
		{"update = 5", "update: true, false or { within = \"10m\" } is expected"},
		{"update = { wihtin = \"10m\" }", "update: \"wihtin\" is not known here (within, "},
		{"update = { within = \"10\" }", "update: within: a time like \"10m\""},
		{"update = { within = 600 }", "update: within: a time like"},
		{"update = { within = \"0s\" }", "update: within: a time like"},
		{"update = { within = \"25h\" }", "update: within: a time like"},
		{"update = { within = \"9999999h\" }", "update: within: a time like"},
		{"update = { fresh = 1 }", "update: fresh: true or false is expected"},
		{"update = { changes = { \"mounts\" } }", "update: changes: a list of"},
		{"update = { moves = { \"a\" } }", "update: moves: a list of pairs"},
		{"update = { moves = { { \"a\" } } }", "update: moves: a list of pairs"},
		{"limits = { lifetime = \"30m\" }",
		 "limits: lifetime: this version cannot enforce it yet"},
		{"egress = { \"pypi.org:443\" }",
		 "egress: names and ports cannot be enforced by this version; only {} (none) can"},

		/* kinds */
		{"doc = 5",
		 "test.lua:3: profile \"p\": doc: a short string is expected, not an integer"},
		{"harden = \"yes\"", "harden: true or false is expected, not \"yes\""},
		{"harden = { root = true }",
		 "harden: \"root\" is not known here (read_only log_limits init auto_remove labels "
		 "are)"},
		{"harden = { read_only = 1 }", "harden: read_only: true or false is expected"},
		{"harden = { labels = \"x\" }",
		 "harden: labels: { name = \"value\" } is expected, not \"x\""},
		{"harden = { labels = { team = 1 } }",
		 "harden: labels: a text as the label's value is expected, not an integer"},
		{"harden = { labels = { [\"Sallyport.owner\"] = \"x\" } }",
		 "harden: labels: labels of the gate itself cannot be set"},
		{"harden = { labels = { [\"a=b\"] = \"x\" } }",
		 "harden: labels: \"a=b\": a name without"},
		{"harden = { labels = { [\"\"] = \"x\" } }", "harden: labels: \"\""},
		{"harden = { labels = { a = \"x\\ny\" } }", "harden: labels: \"a\""},
		{"harden = {}", "harden: true or false is expected, not an array"},
		{"harden = 1", "harden: true or false is expected, not an integer"},
		{"running = \"kill\"",
		 "running: \"report\", \"minimum\" or \"stop\" is expected, not \"kill\""},
		{"running = true",
		 "running: \"report\", \"minimum\" or \"stop\" is expected, not a boolean"},
		{"redact = { \"labels\" }",
		 "redact: [1]: \"env\" or \"mounts\" is expected, not \"labels\""},
		{"redact = \"env\"", "redact: a list is expected, not \"env\""},
		{"images = \"alpine\"", "images: a list is expected, not \"alpine\""},
		{"images = { alpine = true }", "images: a list is expected, not an object"},
		{"images = { 5 }", "images: [1]: a string is expected, not an integer"},
		{"images = { \"a\", \"\" }", "images: [2]: an empty string grants nothing"},
		{"images = { \"app:\" }",
		 "images: [1]: registry/repository[:tag][@digest] is expected, not \"app:\""},
		{"images = { \"a\", nil, \"b\" }",
		 "images: a list has holes, or keys that are no names"},
		{"images = { \"a\", x = 1 }", "images: a table has names and list entries at once"},
		{"images = { function() end }", "images: [1]: a function cannot stand here"},
		{"images = (function() local t = {} t[1] = t return t end)()",
		 "nested deeper than 16 levels, or a cycle"},
		{"images = { \"a\\xff\" }", "images: [1]: the text is not clean UTF-8"},
		{"doc = \"a\\0b\"", "doc: the text is not clean UTF-8"},
		{"limits = { cpus = 1/0 }", "limits: cpus: the number is not finite"},

		/* words */
		{"isolation = \"kernel\"",
		 "isolation: { min = \"kernel\", runtimes = { ... } } is expected, not \"kernel\""},
		{"isolation = { min = \"strong\" }",
		 "isolation: min: \"none\", \"process\", \"kernel\" or \"vm\" is expected, not "
		 "\"strong\""},
		{"host_tools = \"all\"",
		 "host_tools: \"confined\", \"bare\" or \"none\" is expected, not \"all\""},
		{"isolation = { minimum = \"vm\" }",
		 "isolation: \"minimum\" is not known here (min runtimes attested are)"},
		{"isolation = { attested = \"yes\" }",
		 "isolation: attested: true or false is expected"},
		{"isolation = { min = \"vm\", runtimes = \"kata\" }",
		 "isolation: runtimes: a list is expected"},
		{"users = \"root\"", "users: \"nonroot\" or \"any\" is expected, not \"root\""},
		{"visibility = \"some\"",
		 "visibility: \"own\", \"all\", or a list of \"own\", { label = \"NAME=VALUE\" }"},
		{"mode = \"off\"",
		 "mode: \"enforce\", \"warn\" or \"shadow\" is expected, not \"off\""},
		{"restart = { \"sometimes\" }",
		 "restart: [1]: no, on-failure, always or unless-stopped"},
		{"operations = { \"container.crate\" }",
		 "operations: [1]: \"container.crate\" is no operation, group or class; the "
		 "nearest is "
		 "container.create"},
		{"operations = { \"reed\" }",
		 "is no operation, group or class; the nearest is read"},
		{"operations = { \"everything\" }",
		 "\"everything\" is no operation, group or class"},
		{"capabilities = { \"ALL\" }",
		 "capabilities: [1]: ALL cannot be granted; name each capability"},
		{"capabilities = { \"cap_all\" }", "ALL cannot be granted"},
		{"capabilities = { \"NET_ADMINN\" }",
		 "\"NET_ADMINN\" is no capability; the nearest is NET_ADMIN"},
		{"networks = { \"host\" }",
		 "networks: [1]: the network \"host\" can never be granted"},
		{"networks = { \"container:x\" }",
		 "the network \"container:x\" can never be granted"},
		{"ports = { \"localhost\" }",
		 "ports: [1]: an address of the host, or \"*\" for all,"},
		{"labels = { \"sallyport.owner\" }",
		 "labels: [1]: labels of the gate itself cannot be granted"},

		/* mounts */
		{"mounts = { \"/srv\" }",
		 "mounts: [1]: { path, \"ro\" or \"rw\" } is expected, not \"/srv\""},
		{"mounts = { { \"/srv\", \"rx\" } }",
		 "mounts: [1]: \"ro\" or \"rw\" is expected, not \"rx\""},
		{"mounts = { { \"srv\" } }", "mounts: [1]: an absolute path without //, . and .."},
		{"mounts = { { \"/srv/../etc\" } }", "mounts: [1]: an absolute path"},
		{"mounts = { { \"/srv/\" } }", "mounts: [1]: an absolute path"},
		{"mounts = { { \"/srv/*\" } }", "mounts: [1]: an absolute path"},
		{"mounts = { { \"/srv/{identity.nam}\" } }", "mounts: [1]: an absolute path"},
		{"mounts = { { \"/\" } }", "mounts: [1]: the root of the host cannot be granted"},

		/* limits */
		{"limits = { memory = \"much\" }",
		 "limits: memory: a size like \"512MiB\" is expected, not \"much\""},
		{"limits = { memory = \"1MiB\" }", "limits: memory: at least 6MiB are needed"},
		{"limits = { memory = -1 }", "limits: memory: at least 6MiB are needed"},
		{"limits = { memory = true }",
		 "limits: memory: a size like \"512MiB\" is expected, not a boolean"},
		{"limits = { cpus = 0 }", "limits: cpus: a number of processors from 0.01 to 4096"},
		{"limits = { cpus = \"2\" }", "limits: cpus: a number of processors"},
		{"limits = { pids = 0 }", "limits: pids: a number of processes from 1"},
		{"limits = { container_pids = 0 }",
		 "limits: container_pids: a number of processes from 1"},
		{"limits = { pids = 5, container_pids = 5 }",
		 "pids and container_pids exclude each other"},
		{"limits = { pids = 1.5 }", "limits: pids: a number of processes from 1"},
		{"limits = { disk = 1 }",
		 "limits: \"disk\" is not known here (memory cpus pids container_pids are)"},
		{"limits = { \"2GiB\" }",
		 "limits: { memory = \"2GiB\", cpus = 2, pids = 256 } is expected"},

		/* together */
		{"egress = {}, networks = { \"a\" }",
		 "egress: {} grants only the network 'none', so networks must be empty"},
		{"extends = \"nobody\"", "extends: there is no profile \"nobody\""},
		{"extends = \"p\"", "extends: \"p\" extends itself"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char text[1024];
		const char *said;

		snprintf(text, sizeof(text), "-- a file\nreturn profile \"p\" {\n%s }",
			 rows[i].setting);
		said = kit_load_error(text);
		if (!strstr(said, rows[i].want))
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].setting, said,
				 rows[i].want);
		CHECK_INT(rows[i].setting, 0, strncmp(said, "test.lua:", 9));
	}
}

/* What is wrong with the file around it. */
static void wrong_files_do_not_load(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"", "test.lua: the file returns 0 values; one profile or one list is expected"},
		{"return 5", "test.lua: the file must return a profile, or a list of profiles"},
		{"return {}", "must return a profile"},
		{"return { 5 }", "must return a profile"},
		{"return profile", "must return a profile"},
		{"return profile \"x\"", "must return a profile"},
		{"return profile \"x\" {}, 5", "the file returns 2 values"},
		{"return profile \"a b\" {}", "test.lua:1: profile: a name of letters, digits"},
		{"return profile \"\" {}", "profile: a name of letters"},
		{"return profile { }", "profile: a name of letters"},
		{"return profile(\"x\", {})", "this is expected: profile \"x\" { ... }"},
		{"return profile \"x\" (5)", "a table is expected: profile \"x\" { ... }"},
		{"return { profile \"x\" {}, profile \"x\" {} }",
		 "profile \"x\" is defined twice; first in test.lua:1"},
		{"local p = profile \"x\" {}\nreturn profile \"y\" {}",
		 "test.lua:1: profile \"x\" is not returned by the file"},
		{"return profile \"x\" {", "test.lua:1:"},
		{"return profile \"x\" { images = img }",
		 "test.lua:1: there is no 'img' in the words of rules"},
		{"x = 1", "test.lua:1: 'x' cannot be set: the words of rules is read-only (use a "
			  "local variable)"},
		{"while true do end", "test.lua: loading takes: more than"},
		{"local t = {} while true do t = { t } end", "test.lua: loading takes: more"},
		{"\033Lua", "test.lua:1: the file is compiled Lua, not text"},
		{"\xef\xbb\xbf\033Lua", "test.lua:1: the file begins with a byte order mark"},
		{"#!/usr/bin/lua", "test.lua:1:"},
		{"deny('x')", "deny can only be said while a rule runs"},
		{"warn('x')", "warn can only be said while a rule runs"},
		{"return profile \"x\" { rule(\"a\") }", "rule: this is expected"},
		{"return profile \"x\" { rule(\"a\", 5) }", "rule: this is expected"},
		{"return profile \"x\" { rule(\"a b\", function() end) }",
		 "rule: a name of letters"},
		{"return profile \"x\" { rule(\"a\", { operatoins = {} }, function() end) }",
		 "rule: unknown option \"operatoins\""},
		{"return profile \"x\" { rule(\"a\", { mode = \"odd\" }, function() end) }",
		 "rule: mode is \"enforce\", \"warn\" or \"shadow\""},
		{"return profile \"x\" { rule(\"a\", { operations = { \"exce\" } }, function() "
		 "end) }",
		 "rule: \"exce\" is no operation, group or class; the nearest is exec"},
		{"return profile \"x\" { rule(\"a\", function() end), rule(\"a\", function() end) "
		 "}",
		 "two rules are named \"a\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *said = kit_load_error(rows[i].text);

		if (!strstr(said, rows[i].want))
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].text, said,
				 rows[i].want);
		CHECK_INT(rows[i].text, 1, strstr(said, "0x") == NULL);
	}
}

/* The message names the line of the setting, not of the profile. */
static void the_line_is_that_of_the_setting(void **state)
{
	const char *said = kit_load_error("local users = 1 -- users = 2\n"
					  "return {\n"
					  "profile \"first\" {\n"
					  "	doc = \"x\",\n"
					  "	users = \"nonroot\",\n"
					  "},\n"
					  "profile \"second\" {\n"
					  "	doc = \"about users = here\", -- users = 5\n"
					  "	my_users = nil,\n"
					  "	users\t = \"root\",\n"
					  "} }");

	(void)state;
	CHECK_INT(said, 1, strstr(said, "test.lua:10: profile \"second\": users:") != NULL);
}

static void a_large_file_is_refused(void **state)
{
	static char text[300000];

	(void)state;
	memset(text, ' ', sizeof(text) - 1);
	CHECK_STR("large", "test.lua: the file is larger than 256 KiB", kit_load_error(text));
}

/* Sources are what the caller says they are: all of them, or none. */
static void one_bad_file_refuses_all(void **state)
{
	struct rule_source sources[] = {
		{"good.lua", span_of("return profile \"a\" {}")},
		{"bad.lua", span_of("return profile \"b\" { extends = \"A\" }")}};
	struct err err = {0};

	(void)state;
	CHECK_INT("refused", 1, engine_open(sources, 2, &engine_default_limits, &err) == NULL);
	CHECK_STR("why",
		  "bad.lua:1: profile \"b\": extends: there is no profile \"A\"; the nearest is a",
		  err.msg);
}

static void shipped_profiles_load(void **state)
{
	static const char *const paths[] = {"rules/profiles/agent.lua", "tests/profiles/ref.lua"};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		char *text = kit_read(paths[i]);
		struct engine *eng = kit_open(text);

		CHECK_INT(paths[i], 1, engine_profile_at(eng, 0) != NULL);
		engine_close(eng);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_settings_do_not_load),
		cmocka_unit_test(wrong_files_do_not_load),
		cmocka_unit_test(the_line_is_that_of_the_setting),
		cmocka_unit_test(a_large_file_is_refused),
		cmocka_unit_test(one_bad_file_refuses_all),
		cmocka_unit_test(shipped_profiles_load),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
