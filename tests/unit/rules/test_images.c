#include "tests/unit/rules/rows.h"

#include <stdlib.h>

/* --- what runs, and what is mounted --- */

#define IMAGE(x)        W("\"image\":{" x "}")
#define TEAMS           "\"digests\":[\"reg.example/team/app@sha256:bb\"]"
#define EVIL_DIGEST     "\"digests\":[\"evil.example/x@sha256:cc\"]"
#define BY_ID(names, x) IMAGE("\"by_id\":true,\"name\":null,\"names\":[" names "]," x)
#define DATA(x)                                                                                    \
	MOUNT("\"kind\":\"image\",\"source\":\"reg.example/team/data:1\",\"image\":{\"given\":"    \
	      "\"reg.example/team/data:1\",\"tag\":\"1\",\"by_id\":false," x "}")
#define DATA_NAME "\"name\":\"reg.example/team/data\""

static void judges_what_runs(void **state)
{
	static const struct row rows[] = {
		{"another image", W("\"image\":{\"name\":\"docker.io/library/busybox\"}"), "image"},
		{"a registry that begins alike",
		 W("\"image\":{\"name\":\"reg.example.evil.test/team/app\"}"), "image"},
		{"another port of the registry",
		 W("\"image\":{\"name\":\"reg.example:5000/team/app\"}"), "image"},
		{"a folder that begins alike", W("\"image\":{\"name\":\"reg.example/team-x/app\"}"),
		 "image"},
		{"a folder further down", W("\"image\":{\"name\":\"reg.example/team/a/b\"}"),
		 "image"},
		{"a granted image by digest", IMAGE("\"tag\":null,\"digest\":\"sha256:bb\""),
		 "allow"},
		{"made, loaded or only named here", IMAGE("\"digests\":[]"), "image_local"},
		{"other content under a granted name", IMAGE(EVIL_DIGEST), "image_local"},
		{"of a repository that begins alike",
		 IMAGE("\"digests\":[\"reg.example/team/app2@sha256:bb\"]"), "image_local"},
		{"of two repositories, one of which is its name",
		 IMAGE("\"digests\":[\"evil.example/x@sha256:cc\","
		       "\"reg.example/team/app@sha256:bb\"]"),
		 "allow"},
		{"an engine that cannot tell", IMAGE("\"digests\":null"), "image_local"},
		{"nothing there: the engine will say so",
		 IMAGE("\"present\":false,\"digests\":null"), "allow"},
		{"nobody knows whether it is there", IMAGE("\"present\":null,\"digests\":null"),
		 "image_local"},
		{"another image, made here", IMAGE("\"name\":\"x/y\",\"digests\":[]"), "image"},
		{"an id of a granted image",
		 BY_ID("\"evil.example/x:1\",\"reg.example/team/app@sha256:ab\"", TEAMS), "allow"},
		{"an id with a granted name, from elsewhere",
		 BY_ID("\"reg.example/team/app:1\",\"evil.example/x@sha256:cc\"", EVIL_DIGEST),
		 "image_local"},
		{"an id with a granted name, made here",
		 BY_ID("\"reg.example/team/app:1\"", "\"digests\":[]"), "image_local"},
		{"an id of which the engine cannot tell",
		 BY_ID("\"reg.example/team/app:1\"", "\"digests\":null"), "image_local"},
		{"an id without names", W("\"image\":{\"by_id\":true,\"name\":null,\"names\":[]}"),
		 "image"},
		{"an id of another image",
		 W("\"image\":{\"by_id\":true,\"name\":null,\"names\":[\"evil.example/x:1\"]}"),
		 "image"},

		{"a mount of a granted image",
		 DATA(DATA_NAME ",\"digests\":[\"reg.example/team/data@sha256:dd\"]"), "allow"},
		{"a mount of one that was made here", DATA(DATA_NAME ",\"digests\":[]"),
		 "image_local"},
		{"a mount of another image", DATA("\"name\":\"evil.example/x\"," EVIL_DIGEST),
		 "image"},
		{"a mount of which nothing is known",
		 MOUNT("\"kind\":\"image\",\"source\":\"reg.example/team/data:1\""), "image"},
	};

	(void)state;
	rows_judge_ref(kit_create, rows, sizeof(rows) / sizeof(*rows));
}

/* --- what settings grant --- */

static void grants_what_settings_say(void **state)
{
	static const struct row rows[] = {
		{"images = { \"reg.example/team/app:2\" }", "", "image"},
		{"images = { \"reg.example/team/app:1\" }", "", "allow"},
		{"images = { \"reg.example/team/app:1\" }",
		 W("\"image\":{\"digest\":\"sha256:ab\"}"), "image"},
		{"images = { \"reg.example/**@sha256:*\" }", "", "image"},
		{"images = { \"reg.example/**@sha256:*\" }",
		 W("\"image\":{\"digest\":\"sha256:ab\"}"), "allow"},
		{"images = nil", "", "image"},

		{"local_images = { \"reg.example/team/*\" }", IMAGE("\"digests\":[]"), "allow"},
		{"local_images = { \"reg.example/team/*\" }", IMAGE("\"digests\":null"), "allow"},
		{"local_images = { \"mine/*\" }", IMAGE("\"digests\":[]"), "image_local"},
		{"local_images = { \"mine/*\" }",
		 IMAGE("\"name\":\"docker.io/mine/x\",\"digests\":[]"), "allow"},
		{"local_images, t.images = { \"reg.example/team/app:1\" }, {}",
		 IMAGE("\"digests\":[]"), "allow"},
		{"local_images, t.images = { \"reg.example/team/app:2\" }, {}",
		 IMAGE("\"digests\":[]"), "image"},
		{"local_images = { \"mine/*\" }", BY_ID("\"docker.io/mine/x:1\"", "\"digests\":[]"),
		 "allow"},

		/* The list says what the content is. */
		{"images = { \"reg.example/team/app@sha256:ab\" }",
		 IMAGE("\"digest\":\"sha256:ab\",\"digests\":null"), "allow"},
		{"images = { \"reg.example/team/app@sha256:ab\" }",
		 IMAGE("\"digest\":\"sha256:abab\",\"digests\":null"), "image"},
		{"images = { \"reg.example/team/app@sha256:*\" }",
		 IMAGE("\"digest\":\"sha256:ab\",\"digests\":null"), "image_local"},
		{"images = { \"reg.example/team/app@sha256:ab\" }",
		 BY_ID("\"reg.example/team/app@sha256:ab\"", "\"digests\":null"), "allow"},
	};

	(void)state;
	rows_judge_settings(rows, sizeof(rows) / sizeof(*rows));
}

/* --- fetching --- */

#define PULL(x) OTHER("image.pull", "data-in", "\"pull\":{" x "}")

static void judges_what_is_fetched(void **state)
{
	static const struct row rows[] = {
		{"a granted image", PULL("\"name\":\"reg.example/team/app\",\"tag\":\"1\""),
		 "allow"},
		{"by digest", PULL("\"name\":\"reg.example/team/app\",\"tag\":\"sha256:ab\""),
		 "allow"},
		{"all tags", PULL("\"name\":\"reg.example/team/app\""), "image_tag"},
		{"another registry",
		 PULL("\"name\":\"reg.example.evil.test/team/app\",\"tag\":\"1\""), "image"},
		{"another registry, all tags", PULL("\"name\":\"evil.example/x\""), "image"},
		{"nothing is known of it", "{" OP("image.pull", "data-in") "}", "fact_unknown"},
		{"an URL is closed and says why",
		 OTHER("image.import", "data-in",
		       "\"pull\":{\"import\":true,\"url\":\"http://x/\"}"),
		 "import_url operation"},
		{"an import over a granted name",
		 OTHER("image.import", "data-in",
		       "\"pull\":{\"import\":true},\"names\":[\"reg.example/team/app:1\"]"),
		 "image_retag operation"},
		{"a tag over a granted name",
		 OTHER("image.tag", "policy", "\"names\":[\"reg.example/team/app:1\"]"),
		 "image_retag operation"},
		{"a tag that is not granted", OTHER("image.tag", "policy", "\"names\":[\"x:1\"]"),
		 "operation"},
	};

	(void)state;
	rows_judge_ref(rows_caller, rows, sizeof(rows) / sizeof(*rows));
}

/* --- publishing --- */

#define SAVE(x) OTHER("image.save", "data-out", "\"images\":[" x "]")
#define APP                                                                                        \
	"{\"name\":\"reg.example/team/app\",\"tag\":\"1\",\"by_id\":false,\"field\":\"f\"," TEAMS  \
	"}"
#define EVIL      "{\"name\":\"evil.example/x\",\"tag\":\"1\",\"by_id\":false,\"field\":\"f\"}"
#define MADE_HERE "{\"name\":\"reg.example/team/app\",\"tag\":\"1\",\"by_id\":false,\"digests\":[]}"
#define TAG(i, n) OTHER("image.tag", "policy", "\"image\":" i ",\"names\":[" n "]")
#define PUSH(i)   OTHER("image.push", "data-out", "\"image\":" i)
#define COMMIT(o, x)                                                                               \
	"{" OP("container.commit", "data-in") ",\"object\":{\"kind\":\"container\",\"mine\":" o    \
					      "},\"workload\":{" x "}}"
#define ASK(x) OTHER("registry.search", "data-out", "\"registry\":{" x "}")

/* What only some profiles grant. */
static void judges_publishing(void **state)
{
	static const struct row rows[] = {
		{"a granted image is read", SAVE(APP), "allow"},
		{"two of them", SAVE(APP "," APP), "allow"},
		{"another one is not", SAVE(EVIL), "export"},
		{"nor beside a granted one", SAVE(APP "," EVIL), "export"},
		{"by an id that has a granted name",
		 SAVE("{\"by_id\":true,\"names\":[\"evil.example/x:1\",\"reg.example/team/"
		      "app:1\"]," TEAMS "}"),
		 "allow"},
		{"by an id that has none",
		 SAVE("{\"by_id\":true,\"names\":[\"evil.example/x:1\"]}"), "export"},
		{"by an id of which nothing is known", SAVE("{\"by_id\":true}"), "export"},
		{"one that was made here", SAVE(MADE_HERE), "image_local"},
		{"none", SAVE(""), "fact_unknown"},
		{"nothing is known of them", "{" OP("image.save", "data-out") "}", "fact_unknown"},

		{"another name for a granted image", TAG(APP, "\"mine/x:1\""), "allow"},
		{"a granted name for a granted image", TAG(APP, "\"reg.example/team/b:1\""),
		 "image_retag"},
		{"a granted name for another one", TAG(EVIL, "\"reg.example/team/b:1\""),
		 "image_retag image"},
		{"another name for another one", TAG(EVIL, "\"mine/x:1\""), "image"},
		{"another name for what was made here", TAG(MADE_HERE, "\"mine/x:1\""),
		 "image_local"},
		{"a name for nobody knows what",
		 OTHER("image.tag", "policy", "\"names\":[\"x:1\"]"), "fact_unknown"},

		{"a granted image is sent", PUSH(APP), "allow"},
		{"another one is not", PUSH(EVIL), "image"},
		{"nor one that was made here", PUSH(MADE_HERE), "image_local"},
		{"nor all tags at once",
		 PUSH("{\"name\":\"reg.example/team/app\",\"by_id\":false}"), "image_tag"},

		{"an own container becomes an image",
		 COMMIT("true", "\"names\":[\"mine/"
				"x:1\"],\"labels\":[],\"command\":{\"healthcheck\":false}"),
		 "allow"},
		{"with a granted name",
		 COMMIT("true", "\"names\":[\"reg.example/team/"
				"app:1\"],\"command\":{\"healthcheck\":false}"),
		 "image_retag"},
		{"not one's own", COMMIT("false", "\"command\":{\"healthcheck\":false}"), "owner"},
		{"with a health check", COMMIT("true", "\"command\":{\"healthcheck\":true}"),
		 "healthcheck"},
		{"with the gate's label",
		 COMMIT("true", "\"labels\":[{\"name\":\"sallyport.owner\",\"field\":\"f\"}],"
				"\"command\":{\"healthcheck\":false}"),
		 "label"},

		{"a granted registry is asked", ASK("\"host\":\"reg.example\""), "allow"},
		{"another one is not", ASK("\"host\":\"10.0.0.5:5000\""), "registry"},
		{"nor one that begins alike", ASK("\"host\":\"reg.exam\""), "registry"},
		{"about a granted image",
		 ASK("\"host\":\"reg.example\",\"name\":\"reg.example/team/app\""), "allow"},
		{"about another one", ASK("\"host\":\"reg.example\",\"name\":\"reg.example/x\""),
		 "registry"},
		{"nobody knows which", OTHER("registry.search", "data-out", "\"name\":\"x\""),
		 "fact_unknown"},

		{"pruning is granted as it stands", "{" OP("container.prune", "host") "}", "allow"},
	};
	struct engine *eng = kit_open(
		"return profile \"p\" { images = { \"reg.example/team/*\" }, operations = { "
		"\"image.save\", \"image.tag\", \"image.push\", \"container.commit\", "
		"\"registry.search\", \"container.prune\" } }");

	(void)state;
	rows_judge(eng, "p", rows_caller, rows, sizeof(rows) / sizeof(*rows));
	engine_close(eng);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(judges_what_runs),
		cmocka_unit_test(grants_what_settings_say),
		cmocka_unit_test(judges_what_is_fetched),
		cmocka_unit_test(judges_publishing),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
