/* What an engine says of its events: read strictly, and what it did by itself is known. */
#include "backends/backend.h"
#include "tests/unit/check.h"

#include <string.h>

#define ID                "1111111111111111111111111111111111111111111111111111111111111111"
#define OTHER             "2222222222222222222222222222222222222222222222222222222222222222"
#define AT                ",\"timeNano\":1700000000000000001}"
#define ACTOR(attributes) "\"Actor\":{\"ID\":\"" ID "\",\"Attributes\":{" attributes "}}"
#define OF(type, action, attributes)                                                               \
	"{\"Type\":\"" type "\",\"Action\":\"" action "\"," ACTOR(attributes) AT

#define BAD(name, text)                                                                            \
	{                                                                                          \
		.label = name, .line = text, .want = -1                                            \
	}

static struct backend *open_docker(void)
{
	const struct backend_conf conf = {.name = "engine"};
	struct err err = {0};
	struct backend *be = backend_find("docker")->open(&conf, &err);

	CHECK_STR("opens", "", err.msg);
	return be;
}

static void events_are_read(void **state)
{
	static const struct {
		const char *label, *line;
		int want;
		enum effect effect;
		enum life life;
		const char *id, *container, *decision, *command;
	} rows[] = {
		{"create", OF("container", "create", "\"sallyport.decision\":\"d\""), 0,
		 EFFECT_CREATE, LIFE_NONE, ID, ID, "d", ""},
		{"start", OF("container", "start", "\"image\":\"i\""), 0, EFFECT_START, LIFE_NONE,
		 ID, ID, "", ""},
		{"exec", OF("container", "exec_create: ls -l", "\"execID\":\"" OTHER "\""), 0,
		 EFFECT_EXEC, LIFE_NONE, OTHER, ID, "", "ls -l"},
		{"exec start", OF("container", "exec_start: ls", "\"execID\":\"" OTHER "\""), 0,
		 EFFECT_EXEC_START, LIFE_NONE, OTHER, ID, "", "ls"},
		{"connect", OF("network", "connect", "\"container\":\"" OTHER "\""), 0,
		 EFFECT_CONNECT, LIFE_NONE, ID, OTHER, "", ""},
		{"tag", OF("image", "tag", "\"name\":\"a:1\""), 0, EFFECT_TAG, LIFE_NONE, ID, "",
		 "", ""},
		{"pull", OF("image", "pull", ""), 0, EFFECT_IMAGE, LIFE_NONE, ID, "", "", ""},
		{"die", OF("container", "die", ""), 0, EFFECT_NONE, LIFE_DIE, ID, ID, "", ""},
		{"stop", OF("container", "stop", ""), 0, EFFECT_NONE, LIFE_STOP, ID, ID, "", ""},
		{"of no interest", OF("volume", "mount", ""), 0, EFFECT_NONE, LIFE_NONE, ID, "", "",
		 ""},
		{"a longer word", OF("container", "starting", ""), 0, EFFECT_NONE, LIFE_NONE, ID,
		 "", "", ""},
		BAD("an exec without its id", OF("container", "exec_create: x", "")),
		BAD("a short id",
		    "{\"Type\":\"container\",\"Action\":\"start\",\"Actor\":{\"ID\":\"1\"}" AT),
		BAD("no container", OF("network", "connect", "")),
		BAD("no time", "{\"Type\":\"container\",\"Action\":\"start\"," ACTOR("") "}"),
		BAD("a time that is none",
		    "{\"Type\":\"container\",\"Action\":\"start\"," ACTOR("") ",\"timeNano\":-1}"),
		BAD("a key twice", "{\"Type\":\"container\",\"Type\":\"image\"," ACTOR("") AT),
		BAD("nothing", ""),
		BAD("no object", "[1]"),
		BAD("no type", "{\"Action\":\"start\"," ACTOR("") AT),
	};
	struct backend *be = open_docker();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(1 << 20);
		struct happening h;

		CHECK_INT(rows[i].label, rows[i].want,
			  be->ops->happened(be, span_of(rows[i].line), a, &h));
		if (rows[i].want == 0) {
			CHECK_INT(rows[i].label, rows[i].effect, h.effect);
			CHECK_INT(rows[i].label, rows[i].life, h.life);
			CHECK_STR(rows[i].label, rows[i].id, h.id);
			CHECK_STR(rows[i].label, rows[i].container, h.container);
			CHECK_STR(rows[i].label, rows[i].decision, h.decision);
			CHECK_STR(rows[i].label, rows[i].command, h.command);
		}
		arena_destroy(a);
	}
	be->ops->close(be);
}

static void what_engines_do_by_themselves(void **state)
{
	static const struct {
		const char *label, *container;
		enum effect effect;
		const char *command;
		bool want;
	} rows[] = {
		{"a policy", "{\"HostConfig\":{\"RestartPolicy\":{\"Name\":\"always\"}}}",
		 EFFECT_START, "", true},
		{"none", "{\"HostConfig\":{\"RestartPolicy\":{\"Name\":\"no\"}}}", EFFECT_START, "",
		 false},
		{"nothing is known", "null", EFFECT_START, "", false},
		{"a check", "{\"Config\":{\"Healthcheck\":{\"Test\":[\"CMD\",\"curl\",\"x\"]}}}",
		 EFFECT_EXEC, "curl x", true},
		{"of a shell", "{\"Config\":{\"Healthcheck\":{\"Test\":[\"CMD-SHELL\",\"a b\"]}}}",
		 EFFECT_EXEC, "/bin/sh -c a b", true},
		{"of another shell",
		 "{\"Config\":{\"Shell\":[\"/bin/ash\",\"-c\"],\"Healthcheck\":{\"Test\":["
		 "\"CMD-SHELL\",\"a\"]}}}",
		 EFFECT_EXEC, "/bin/ash -c a", true},
		{"another command", "{\"Config\":{\"Healthcheck\":{\"Test\":[\"CMD\",\"curl\"]}}}",
		 EFFECT_EXEC, "curl -k", false},
		{"no check", "{\"Config\":{\"Healthcheck\":{\"Test\":[\"NONE\"]}}}", EFFECT_EXEC,
		 "NONE", false},
		{"a policy is no exec",
		 "{\"HostConfig\":{\"RestartPolicy\":{\"Name\":\"always\"}}}", EFFECT_EXEC, "",
		 false},
	};
	struct backend *be = open_docker();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct happening h = {.effect = rows[i].effect, .command = rows[i].command};
		struct arena *a = arena_create(1 << 20);
		enum jv_fault fault;
		struct err err = {0};
		struct jv doc;

		CHECK_INT(rows[i].label, 0,
			  jv_parse(a, span_of(rows[i].container), &doc, &fault, &err));
		CHECK_INT(rows[i].label, rows[i].want, be->ops->by_itself(be, &h, &doc) != NULL);
		arena_destroy(a);
	}
	be->ops->close(be);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_read),
		cmocka_unit_test(what_engines_do_by_themselves),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
