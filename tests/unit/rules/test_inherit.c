#include "tests/unit/rules/kit.h"

#include <stdio.h>

/* A parent with one setting, a child with the same one. */
static void children_only_tighten(void **state)
{
	static const struct {
		const char *setting, *parent, *child, *want; /* want "": loads */
	} rows[] = {
		{"images", "{ \"a.b/*\" }", "{ \"a.b/c\" }", ""},
		{"images", "{ \"a.b/*\" }", "{ \"a.b/c:1\", \"a.b/d@sha256:*\" }", ""},
		{"images", "{ \"a.b/*\" }", "{ \"a.b/**\" }",
		 "a.b/** is more than \"base\" grants"},
		{"images", "{ \"a.b/c:1\" }", "{ \"a.b/c\" }", "a.b/c is more than"},
		{"images", "{ \"a.b/c:1\" }", "{ \"a.b/c:1@sha256:*\" }", "is more than"},
		{"images", "{ \"alpine\" }", "{ \"docker.io/library/alpine:3\" }", ""},
		{"images", "{ \"alpine\" }", "{ \"busybox\" }",
		 "docker.io/library/busybox is more than"},
		{"images", "nil", "{ \"alpine\" }", "is more than"},
		{"images", "{ \"alpine\" }", "{}", ""},
		{"mounts", "{ { \"/srv\", \"rw\" } }", "{ { \"/srv/a\", \"ro\" } }", ""},
		{"mounts", "{ { \"/srv\", \"rw\" } }", "{ { \"/srv/{identity.name}\", \"rw\" } }",
		 ""},
		{"mounts", "{ { \"/srv\" } }", "{ { \"/srv/a\", \"rw\" } }", "/srv/a is more than"},
		{"mounts", "{ { \"/srv\", \"rw\" } }", "{ { \"/srvx\" } }", "/srvx is more than"},
		{"networks", "{ \"team-*\" }", "{ \"team-a\" }", ""},
		{"networks", "{ \"team-a\" }", "{ \"team-*\" }", "team-* is more than"},
		{"ports", "{ \"*\" }", "{ \"127.0.0.1\" }", ""},
		{"ports", "{ \"127.0.0.1\" }", "{ \"*\" }", "* is more than"},
		{"capabilities", "{ \"KILL\", \"CHOWN\" }", "{ \"cap_kill\" }", ""},
		{"capabilities", "{ \"KILL\" }", "{ \"CHOWN\" }", "CHOWN is more than"},
		{"users", "\"any\"", "\"nonroot\"", ""},
		{"users", "\"nonroot\"", "\"any\"", "any is more than"},
		{"users", "nil", "\"any\"", "any is more than"},
		{"host_tools", "\"bare\"", "\"confined\"", ""},
		{"host_tools", "\"confined\"", "\"none\"", ""},
		{"host_tools", "\"confined\"", "\"bare\"", "bare is more than"},
		{"host_tools", "nil", "\"confined\"", "confined is more than"},
		{"limits", "{ memory = \"2GiB\" }", "{ memory = \"1GiB\" }", ""},
		{"limits", "{ memory = \"2GiB\" }", "{ memory = \"2GiB\", pids = 5 }", ""},
		{"limits", "{ memory = \"2GiB\" }", "{ memory = \"3GiB\" }", "memory is more than"},
		{"limits", "nil", "{ memory = \"3GiB\" }", ""},
		{"limits", "{ container_pids = 5 }", "{ pids = 5 }", ""},
		{"limits", "{ container_pids = 5 }", "{ container_pids = 4 }", ""},
		{"limits", "{ pids = 5 }", "{ container_pids = 4 }", ""},
		{"limits", "{ pids = 5 }", "{ container_pids = 6 }", "pids is more than"},
		{"quota", "{ containers = 5 }", "{ containers = 4, cpus = 2 }", ""},
		{"quota", "{ containers = 5 }", "{ containers = 6 }", "containers is more than"},
		{"quota", "{ cpus = 2 }", "{ cpus = 2.5 }", "nano_cpus is more than"},
		{"quota", "nil", "{ containers = 6 }", ""},
		{"sandbox", "{ lifetime = '30m' }", "{ lifetime = 1800, idle = '5m' }", ""},
		{"sandbox", "{ lifetime = '30m' }", "{ lifetime = '31m' }", "lifetime"},
		{"sandbox", "{ disk = '1MiB' }", "{ disk = '2MiB' }", "disk"},
		{"sandbox", "{ per_call = true }", "{ per_call = false }", "per_call"},
		{"sandbox", "{ image = 'a' }", "{ image = 'b' }", ""},
		{"isolation", "{ min = \"kernel\" }", "{ min = \"vm\" }", ""},
		{"isolation", "{ attested = true }", "{ min = \"vm\" }", ""},
		{"isolation", "{ attested = false }", "{ attested = true }", ""},
		{"isolation", "{ attested = true }", "{ attested = false }",
		 "attested = false is more than"},
		{"isolation", "{ min = \"kernel\" }", "{ min = \"process\" }",
		 "process is more than"},
		{"isolation", "{ min = \"kernel\" }", "{ runtimes = { \"runsc\" } }",
		 "process is more than"},
		{"operations", "{ \"read\", \"container.run\" }",
		 "{ \"container.start\", \"container.list\" }", ""},
		{"operations", "{ \"container.run\" }", "{ \"launch\" }", ""},
		{"operations", "{ \"container.run\" }", "{ \"read\" }", "read is more than"},
		{"operations", "{ \"container.create\" }", "{ \"container.run\" }",
		 "container.run is more than"},
		{"operations", "{ \"data-in\" }", "{ \"image.load\" }", ""},
		{"operations", "{ \"data-in\" }", "{ \"image.build\" }",
		 "image.build is more than"},
		{"operations", "{ \"image.build\", \"data-in\" }", "{ \"image.build\" }", ""},
		{"log_drivers", "nil", "{ \"local\" }", ""},
		{"log_drivers", "nil", "{ \"syslog\" }", "syslog is more than"},
		{"restart", "{ \"always\" }", "{}", ""},
		{"restart", "nil", "{ \"always\" }", "always is more than"},
		{"labels", "{ \"a.**\" }", "{ \"a.b\" }", ""},
		{"labels", "nil", "{ \"com.docker.compose.project\" }", ""},
		{"labels", "nil", "{ \"traefik.*\" }", "traefik.* is more than"},
		{"harden", "true", "true", ""},
		{"harden", "true", "false", "false is more than"},
		{"harden", "nil", "true", ""},
		{"harden", "true", "{ read_only = true }", ""},
		{"harden", "{ read_only = true }", "true", ""},
		{"harden", "{ read_only = true }", "{ read_only = true }", ""},
		{"harden", "{ read_only = false }", "{ read_only = true }", ""},
		{"harden", "{ read_only = true }", "{ read_only = false }",
		 "read_only = false is more than"},
		{"harden", "{ read_only = true }", "false", "false is more than"},
		{"harden", "{ read_only = false }", "false", "false is more than"},
		{"harden", "true", "{ log_limits = false }", "log_limits = false is more than"},
		{"harden", "{ log_limits = false }", "true", ""},
		{"harden", "{ log_limits = false }", "{ log_limits = false }", ""},
		{"harden", "false", "{ log_limits = false }", ""},
		{"harden", "{ init = true }", "{ init = false }", "init = false is more than"},
		{"harden", "{ auto_remove = true }", "{ read_only = true }", ""},
		{"harden", "{ auto_remove = true }", "{ auto_remove = false }",
		 "auto_remove = false is more than"},
		{"harden", "{ labels = { a = \"1\" } }", "{ labels = { a = \"1\", b = \"2\" } }",
		 ""},
		{"harden", "{ labels = { a = \"1\" } }", "{ labels = { a = \"2\" } }",
		 "a=2 is more than"},
		{"local_images", "{ \"mine/*\" }", "{ \"mine/x:1\" }", ""},
		{"local_images", "{ \"mine/*\" }", "{}", ""},
		{"local_images", "{ \"mine/*\" }", "{ \"**\" }", "** is more than"},
		{"local_images", "nil", "{ \"mine/x\" }", "docker.io/mine/x is more than"},
		{"pin", "true", "true", ""},
		{"pin", "nil", "true", ""},
		{"pin", "true", "false", "false is more than"},
		{"running", "nil", "\"stop\"", ""},
		{"running", "nil", "\"minimum\"", ""},
		{"running", "nil", "\"report\"", "report is more than"},
		{"running", "\"report\"", "\"minimum\"", ""},
		{"running", "\"report\"", "\"report\"", ""},
		{"running", "\"stop\"", "\"minimum\"", "minimum is more than"},
		{"redact", "{ \"env\" }", "{}", ""},
		{"redact", "nil", "{ \"env\" }", ""},
		{"movable_mounts", "true", "false", ""},
		{"movable_mounts", "nil", "true", "true is more than"},
		{"healthchecks", "true", "true", ""},
		{"healthchecks", "true", "false", ""},
		{"healthchecks", "false", "true", "true is more than"},
		{"healthchecks", "nil", "true", "true is more than"},
		{"visibility", "\"all\"", "\"own\"", ""},
		{"visibility", "\"all\"", "{ \"own\", { name = \"web-*\" } }", ""},
		{"visibility", "{ { name = \"web-*\" } }", "{ { name = \"web-1\" } }", ""},
		{"visibility", "{ { name = \"web-*\" } }", "{ { name = \"db\" } }",
		 "name \"db\" (read) is more than"},
		{"visibility", "{ { label = \"a=b\" } }",
		 "{ { label = \"a=b\", access = \"full\" } }", "label \"a=b\" (full) is more than"},
		{"visibility", "{ \"own\", { name = \"x\", kinds = { \"images\" } } }", "\"own\"",
		 "every image is more than"},
		{"visibility", "nil", "\"all\"", "all (full) is more than"},
		{"egress", "nil", "{}", ""},
		{"mode", "\"enforce\"", "\"shadow\"", "shadow is more than"},
		{"mode", "nil", "\"warn\"", "warn is more than"},
		{"mode", "\"warn\"", "\"shadow\"", "shadow is more than"},
		{"mode", "\"shadow\"", "\"warn\"", ""},
		{"mode", "\"warn\"", "\"enforce\"", ""},
		{"doc", "\"a\"", "\"b\"", ""},
		{"rate", "{ launch = \"20/min\" }", "{ launch = \"10/min\" }", ""},
		{"rate", "{ launch = \"20/min\" }", "{ exec = \"1000/s\" }", ""},
		{"rate", "{ launch = \"20/min\" }", "{ launch = \"20/s\" }", "launch is more than"},
		{"rate", "{ launch = \"20/min\" }", "{ launch = \"21/min\" }",
		 "launch is more than"},
		{"rate", "{ launch = \"20/min\" }", "{ launch = \"600/h\" }",
		 "launch is more than"},
		{"rate", "nil", "{ launch = \"20/min\" }", ""},
		{"update", "true", "true", ""},
		{"update", "{ within = \"10m\" }", "{ within = \"5m\" }", ""},
		{"update", "{ within = \"5m\" }", "{ within = \"10m\" }", "this is more than"},
		{"update", "true", "{ fresh = true }", "this is more than"},
		{"update", "{ fresh = true }", "true", ""},
		{"update", "true", "{ privileged = true }", "this is more than"},
		{"update", "{ privileged = true }", "true", ""},
		{"update", "true", "{ changes = { \"env\" } }", "this is more than"},
		{"update", "{ changes = { \"env\", \"labels\" } }", "{ changes = { \"env\" } }",
		 ""},
		{"update", "true", "{ moves = { { \"a\", \"b\" } } }", "this is more than"},
		{"update", "true", "false", "this is more than"},
		{"update", "{ fresh = true }", "false", ""},
		{"update", "nil", "true", "this is more than"},
		{"update", "nil", "false", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct rule_source source = {"test.lua", {0}};
		struct engine *eng;
		struct err err = {0};
		char text[1024], label[300];

		snprintf(label, sizeof(label), "%s: %s, %s", rows[i].setting, rows[i].parent,
			 rows[i].child);
		/* The child stands first: the order of files and profiles has no meaning. */
		snprintf(text, sizeof(text),
			 "return {\nprofile \"child\" { extends = \"base\",\n%s = %s },\nprofile "
			 "\"base\" { %s = %s "
			 "} }",
			 rows[i].setting, rows[i].child, rows[i].setting, rows[i].parent);
		source.text = span_of(text);
		eng = engine_open(&source, 1, &engine_default_limits, &err);
		if (!*rows[i].want)
			CHECK_STR(label, "", err.msg);
		else if (!strstr(err.msg, rows[i].want) || !strstr(err.msg, rows[i].setting))
			fail_msg("%s: \"%s\" does not say \"%s\"", label, err.msg, rows[i].want);
		CHECK_INT(label, !*rows[i].want, eng != NULL);
		if (!eng)
			CHECK_INT(label, 0,
				  strncmp(err.msg, "test.lua:3: profile \"child\": ", 28));
		engine_close(eng);
	}
}

/* What any generation hides stays hidden. */
static void what_is_hidden_stays_hidden(void **state)
{
	static const struct {
		const char *parent, *child;
		unsigned want;
	} rows[] = {
		{"nil", "nil", HIDE_NOTHING},
		{"{}", "{}", HIDE_NOTHING},
		{"{ \"env\" }", "nil", HIDE_ENV},
		{"{ \"env\" }", "{}", HIDE_ENV},
		{"nil", "{ \"env\" }", HIDE_ENV},
		{"{}", "{ \"env\" }", HIDE_ENV},
		{"{ \"env\" }", "{ \"env\" }", HIDE_ENV},
		{"{ \"env\" }", "{ \"mounts\" }", HIDE_ENV | HIDE_MOUNTS},
		{"{ \"mounts\" }", "{}", HIDE_MOUNTS},
		{"{ \"mounts\" }", "nil", HIDE_MOUNTS},
		{"{ \"mounts\", \"env\" }", "{ \"env\" }", HIDE_ENV | HIDE_MOUNTS},
		{"nil", "{ \"mounts\" }", HIDE_MOUNTS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char text[300];
		struct engine *eng;

		snprintf(text, sizeof(text),
			 "return { profile \"a\" { redact = %s }, profile \"b\" { extends = \"a\", "
			 "redact = %s } }",
			 rows[i].parent, rows[i].child);
		eng = kit_open(text);
		CHECK_INT(text, rows[i].want, profile_hides(engine_profile(eng, "b")));
		engine_close(eng);
	}
}

/* What a parent fills in, a child that says something else fills in, too. */
static void hardening_adds_up(void **state)
{
	static const struct {
		const char *parent, *child, *want; /* want: settings.harden as JSON */
	} rows[] = {
		{"true", "true", "true"},
		{"nil", "true", "true"},
		{"true", "nil", "true"},
		{"{ read_only = true }", "true",
		 "{\"read_only\":true,\"log_limits\":true,\"init\":false,\"auto_remove\":false}"},
		{"{ log_limits = false }", "{ init = true }",
		 "{\"read_only\":false,\"log_limits\":true,\"init\":true,\"auto_remove\":false}"},
		{"{ log_limits = false }", "{ log_limits = false, auto_remove = true }",
		 "{\"read_only\":false,\"log_limits\":false,\"init\":false,\"auto_remove\":true}"},
		{"{ labels = { a = \"1\" } }", "{ labels = { b = \"2\" } }",
		 "{\"read_only\":false,\"log_limits\":true,\"init\":false,\"auto_remove\":false,"
		 "\"labels\":[\"a=1\",\"b=2\"]}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char text[400], got[400];
		struct engine *eng;
		struct buf out;

		snprintf(text, sizeof(text),
			 "return { profile \"a\" { harden = %s }, profile \"b\" { extends = \"a\", "
			 "harden = %s } }",
			 rows[i].parent, rows[i].child);
		eng = kit_open(text);
		buf_init(&out, sizeof(got) - 1);
		jv_write(&out, jv_get(profile_settings(engine_profile(eng, "b")), "harden"));
		snprintf(got, sizeof(got), "%.*s", SPAN_FMT(buf_span(&out)));
		CHECK_STR(text, rows[i].want, got);
		buf_fini(&out);
		engine_close(eng);
	}
}

#define READ "{\"operation\":{\"name\":\"container.list\"}}"

/* What a child does not say holds as its parent says it, over all generations. */
static void what_is_not_said_is_inherited(void **state)
{
	struct rule_source sources[] = {
		{"c.lua", span_of("return profile \"c\" { extends = \"b\", rule(\"third\", { "
				  "operations = { \"read\" "
				  "} }, function() deny(\"3\") end) }")},
		{"a.lua", span_of("return profile \"a\" { operations = { \"read\", \"exec\" }, "
				  "visibility = \"all\", "
				  "users = \"any\", rule(\"first\", { operations = { \"read\" } }, "
				  "function() "
				  "deny(\"1\") end) }")},
		{"b.lua", span_of("return profile \"b\" { extends = \"a\", visibility = \"own\", "
				  "harden = true, "
				  "rule(\"second\", { operations = { \"read\" } }, function() "
				  "deny(\"2\") end) }")},
	};
	struct err err = {0};
	struct engine *eng = engine_open(sources, 3, &engine_default_limits, &err);
	const struct profile *a, *c;
	struct kit_answer ans;

	(void)state;
	CHECK_STR("loads", "", err.msg);
	a = engine_profile(eng, "a");
	c = engine_profile(eng, "c");
	CHECK_INT("operations", GRANT_JUDGE, profile_grant(c, OP_EXEC_CREATE));
	CHECK_INT("the parent's visibility", 1, reach_sees_all(profile_reach(a)));
	CHECK_INT("the nearest visibility", 0, reach_sees_all(profile_reach(c)));
	CHECK_INT("the parent does not harden", 0, profile_hardens(a));
	CHECK_INT("the child hardens", 1, profile_hardens(c));
	CHECK_STR("in order of name", "a", profile_name(engine_profile_at(eng, 0)));
	CHECK_STR("in order of name", "c", profile_name(engine_profile_at(eng, 2)));
	CHECK_INT("no more", 1, engine_profile_at(eng, 3) == NULL);
	CHECK_INT("an unknown one", 1, engine_profile(eng, "d") == NULL);

	kit_judge(eng, "c", READ, "", &ans);
	CHECK_INT("all rules ran", 3, ans.decision.violations.count);
	CHECK_STR("the oldest first", "first", ans.decision.violations.list[0].rule);
	CHECK_STR("the youngest last", "third", ans.decision.violations.list[2].rule);
	kit_drop(&ans);
	kit_judge(eng, "a", READ, "", &ans);
	CHECK_INT("the parent has its own only", 1, ans.decision.violations.count);
	kit_drop(&ans);
	engine_close(eng);
}

static void a_child_without_a_way_out_has_no_networks(void **state)
{
	struct engine *eng = kit_open(
		"return { profile \"a\" { networks = { \"x\" }, operations = { "
		"\"container.run\" }, images = { \"**\" }, mounts = { { \"/srv\", \"rw\" } } },\n"
		"profile \"b\" { extends = \"a\", egress = {} } }");
	struct kit_answer ans;

	(void)state;
	kit_judge(eng, "b", kit_create,
		  "{\"workload\":{\"network\":{\"mode\":\"x\",\"endpoints\":[]}}}", &ans);
	CHECK_STR("closed", "network", kit_reasons(&ans));
	kit_drop(&ans);
	engine_close(eng);
	CHECK_INT("cannot be reopened", 1,
		  strstr(kit_load_error("return { profile \"a\" { networks = { \"x\" } }, profile "
					"\"b\" { extends = "
					"\"a\", egress = {} }, profile \"c\" { extends = \"b\", "
					"networks = { \"x\" } "
					"} }"),
			 "networks") != NULL);
}

/* The first `last` of a chain in which each extends the one before, youngest first or last. */
static const char *chain_error(int last, bool youngest_first)
{
	static char text[2048];
	size_t used = (size_t)snprintf(text, sizeof(text), "return { ");

	for (int i = 0; i <= last; i++) {
		int n = youngest_first ? last - i : i;

		if (n)
			used += (size_t)snprintf(text + used, sizeof(text) - used,
						 "profile \"p%d\" { extends = \"p%d\" }, ", n,
						 n - 1);
		else
			used += (size_t)snprintf(text + used, sizeof(text) - used,
						 "profile \"p0\" {}, ");
	}
	snprintf(text + used, sizeof(text) - used, "}");
	if (last > 8)
		return kit_load_error(text);
	engine_close(kit_open(text));
	return "";
}

static void circles_and_long_chains_do_not_load(void **state)
{
	(void)state;
	CHECK_INT("a circle", 1,
		  strstr(kit_load_error("return { profile \"a\" { extends = \"b\" }, profile \"b\" "
					"{ extends = \"a\" "
					"} }"),
			 "extends itself") != NULL);
	for (int first = 0; first <= 1; first++) {
		CHECK_STR("eight above", "", chain_error(8, first));
		CHECK_INT("nine above", 1,
			  strstr(chain_error(9, first), "more than 8 profiles in a row") != NULL);
	}
	CHECK_INT("two rules of one name", 1,
		  strstr(kit_load_error("return { profile \"a\" { rule(\"r\", function() end) }, "
					"profile \"b\" { "
					"extends = \"a\", rule(\"r\", function() end) } }"),
			 "two rules are named \"r\"") != NULL);
}

static const char *hash_in(struct rule_source *sources, size_t count, const char *name)
{
	static char hash[4][65];
	static int turn;
	struct err err = {0};
	struct engine *eng = engine_open(sources, count, &engine_default_limits, &err);

	CHECK_STR("loads", "", err.msg);
	turn = (turn + 1) % 4;
	snprintf(hash[turn], sizeof(hash[turn]), "%s", profile_hash(engine_profile(eng, name)));
	engine_close(eng);
	CHECK_INT("64 digits", 64, strlen(hash[turn]));
	return hash[turn];
}

/* The hash says which text was evaluated: its own file, its ancestors', the standard checks. */
static void hashes_are_stable(void **state)
{
	struct rule_source one[] = {{"a.lua", span_of("return profile \"a\" { harden = true }")},
				    {"b.lua", span_of("return profile \"b\" { extends = \"a\" }")}};
	struct rule_source swapped[] = {one[1], one[0]};
	struct rule_source parent[] = {
		{"a.lua", span_of("return profile \"a\" { harden = false }")}, one[1]};
	struct rule_source renamed[] = {{"z.lua", one[0].text}, one[1]};
	struct rule_source two[] = {
		{"a.lua", span_of("return { profile \"a\" {}, profile \"b\" {} }")}};

	(void)state;
	CHECK_STR("again", hash_in(one, 2, "b"), hash_in(one, 2, "b"));
	CHECK_STR("in another order", hash_in(one, 2, "b"), hash_in(swapped, 2, "b"));
	CHECK_STR("without the child", hash_in(one, 2, "a"), hash_in(one, 1, "a"));
	CHECK_STR("in a file of another name", hash_in(one, 2, "b"), hash_in(renamed, 2, "b"));
	CHECK_INT("another parent", 1, strcmp(hash_in(one, 2, "b"), hash_in(parent, 2, "b")) != 0);
	CHECK_INT("parent and child", 1, strcmp(hash_in(one, 2, "a"), hash_in(one, 2, "b")) != 0);
	CHECK_INT("two in one file", 1, strcmp(hash_in(two, 1, "a"), hash_in(two, 1, "b")) != 0);
}

/* What a child says for itself is what counts, and what only its parent says holds for it. */
static void what_is_said_is_what_holds(void **state)
{
	static const struct {
		const char *setting, *child, *parent; /* as JSON, of the effective profiles */
	} rows[] = {
		{"doc", "\"C\"", "\"B\""},
		{"extends", "\"base\"", "\"\""},
		{"egress", "[]", "null"},
		{"rate", "{\"launch\":\"2/min\",\"exec\":\"5/s\"}", "{\"launch\":\"3/min\"}"},
		{"mode", "\"enforce\"", "\"enforce\""},
	};
	const struct rule_source source = {
		"test.lua",
		span_of("return {\nprofile \"base\" { doc = \"B\", rate = { launch = \"3/min\" } "
			"},\n"
			"profile \"child\" { extends = \"base\", doc = \"C\", egress = {},\n"
			"rate = { launch = \"2/min\", exec = \"5/s\" } } }")};
	struct err err = {0};
	struct engine *eng = engine_open(&source, 1, &engine_default_limits, &err);

	(void)state;
	CHECK_STR("loads", "", err.msg);
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(*rows); i++) {
		const char *of = i % 2 ? "base" : "child";
		const char *want = i % 2 ? rows[i / 2].parent : rows[i / 2].child;
		const struct jv *found =
			jv_get(profile_settings(engine_profile(eng, of)), rows[i / 2].setting);
		struct jv nothing = jv_null();
		struct buf out;

		buf_init(&out, 4096);
		jv_write(&out, found ? found : &nothing);
		buf_put(&out, "", 1);
		CHECK_STR(rows[i / 2].setting, want, buf_span(&out).at);
		buf_fini(&out);
	}
	engine_close(eng);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_said_is_what_holds),
		cmocka_unit_test(children_only_tighten),
		cmocka_unit_test(what_is_hidden_stays_hidden),
		cmocka_unit_test(hardening_adds_up),
		cmocka_unit_test(what_is_not_said_is_inherited),
		cmocka_unit_test(a_child_without_a_way_out_has_no_networks),
		cmocka_unit_test(circles_and_long_chains_do_not_load),
		cmocka_unit_test(hashes_are_stable),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
