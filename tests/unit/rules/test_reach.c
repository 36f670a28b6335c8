/* What `visibility` says, in all its forms; what lies within what. */
#include "rules/reach.h"
#include "tests/unit/check.h"
#include "tests/unit/rules/kit.h"

#include <stdio.h>
#include <string.h>

static struct reach read_one(struct arena *a, const char *text, struct err *err)
{
	struct reach ret = {NULL, 0};
	enum jv_fault fault;
	struct jv value;

	if (strcmp(text, "own") == 0 || strcmp(text, "all") == 0)
		value = jv_string(text);
	else if (jv_parse(a, span_of(text), &value, &fault, err) < 0)
		fail_msg("%s: %s", text, err->msg);
	if (reach_read(&value, a, &ret, err) < 0)
		ret.count = 0;
	return ret;
}

static void gives_the_highest_access(void **state)
{
	static const struct {
		const char *reach;
		enum reach_kind kind;
		bool mine;
		const char *name, *labels;
		enum access want;
	} rows[] = {
		{"own", REACH_CONTAINERS, true, "a", "{}", ACCESS_FULL},
		{"own", REACH_CONTAINERS, false, "a", "{}", ACCESS_NONE},
		{"own", REACH_VOLUMES, true, "a", "{}", ACCESS_FULL},
		{"own", REACH_NETWORKS, true, "a", "{}", ACCESS_FULL},
		{"own", REACH_IMAGES, false, "a", "{}", ACCESS_FULL},
		{"all", REACH_CONTAINERS, false, "a", "{}", ACCESS_FULL},
		{"all", REACH_NETWORKS, false, "a", "{}", ACCESS_FULL},
		{"[]", REACH_CONTAINERS, true, "a", "{}", ACCESS_NONE},
		{"[{\"all\":true}]", REACH_VOLUMES, false, "a", "{}", ACCESS_READ},
		{"[{\"all\":true}]", REACH_VOLUMES, true, "a", "{}", ACCESS_READ},
		{"[\"own\",{\"all\":true}]", REACH_VOLUMES, true, "a", "{}", ACCESS_FULL},
		{"[{\"own\":true,\"access\":\"data\"}]", REACH_VOLUMES, true, "a", "{}",
		 ACCESS_DATA},
		{"[{\"own\":true,\"access\":\"data\"}]", REACH_VOLUMES, false, "a", "{}",
		 ACCESS_NONE},
		{"[{\"name\":\"web-*\"}]", REACH_CONTAINERS, false, "web-1", "{}", ACCESS_READ},
		{"[{\"name\":\"web-*\"}]", REACH_CONTAINERS, false, "my-web-1", "{}", ACCESS_NONE},
		{"[{\"name\":\"*\"}]", REACH_CONTAINERS, false, "", "{}", ACCESS_NONE},
		{"[{\"name\":\"web-*\"}]", REACH_IMAGES, false, "other", "{}", ACCESS_FULL},
		{"[{\"name\":\"web\",\"kinds\":[\"images\"]}]", REACH_IMAGES, false, "web:2", "{}",
		 ACCESS_READ},
		{"[{\"name\":\"web\",\"kinds\":[\"images\"]}]", REACH_IMAGES, false,
		 "docker.io/library/web:2", "{}", ACCESS_READ},
		{"[{\"name\":\"web\",\"kinds\":[\"images\"]}]", REACH_IMAGES, false,
		 "reg.example/web:2", "{}", ACCESS_NONE},
		{"[{\"name\":\"web\",\"kinds\":[\"images\"]}]", REACH_CONTAINERS, true, "web", "{}",
		 ACCESS_NONE},
		{"[{\"label\":\"a=b\"}]", REACH_CONTAINERS, false, "x", "{\"a\":\"b\"}",
		 ACCESS_READ},
		{"[{\"label\":\"a=b\"}]", REACH_CONTAINERS, false, "x", "{\"a\":\"bb\"}",
		 ACCESS_NONE},
		{"[{\"label\":\"a=b\"}]", REACH_CONTAINERS, false, "x", "{\"A\":\"b\"}",
		 ACCESS_NONE},
		{"[{\"label\":\"a=b=c\"}]", REACH_CONTAINERS, false, "x", "{\"a\":\"b=c\"}",
		 ACCESS_READ},
		{"[{\"label\":\"a=\"}]", REACH_CONTAINERS, false, "x", "{\"a\":\"\"}", ACCESS_READ},
		{"[{\"label\":\"a=\"}]", REACH_CONTAINERS, false, "x", "{\"a\":\"b\"}",
		 ACCESS_NONE},
		{"[{\"label\":\"a\"}]", REACH_CONTAINERS, false, "x", "{\"a\":\"\"}", ACCESS_READ},
		{"[{\"label\":\"a\"}]", REACH_CONTAINERS, false, "x", "{\"b\":\"a\"}", ACCESS_NONE},
		{"[{\"label\":\"a=b*\",\"access\":\"full\"},{\"all\":true}]", REACH_CONTAINERS,
		 false, "x", "{\"a\":\"bc\"}", ACCESS_FULL},
		{"[{\"label\":\"a=b*\",\"access\":\"full\"},{\"all\":true}]", REACH_CONTAINERS,
		 false, "x", "{}", ACCESS_READ},
		{"[{\"all\":true,\"kinds\":[\"volumes\"]}]", REACH_CONTAINERS, false, "x", "{}",
		 ACCESS_NONE},
	};
	struct arena *a = arena_create(1 << 20);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *const names[] = {rows[i].name, NULL};
		struct reach_object o = {
			.kind = rows[i].kind, .mine = rows[i].mine, .names = names};
		struct err err = {0};
		struct reach r = read_one(a, rows[i].reach, &err);
		enum jv_fault fault;
		struct jv labels;
		char label[300];

		snprintf(label, sizeof(label), "%s %s %s", rows[i].reach, rows[i].name,
			 rows[i].labels);
		CHECK_STR(label, "", err.msg);
		CHECK_INT(label, 0, jv_parse(a, span_of(rows[i].labels), &labels, &fault, &err));
		o.labels = &labels;
		CHECK_INT(label, rows[i].want, reach_of(&r, &o));
	}
	arena_destroy(a);
}

static void zeroed_memory_sees_nothing(void **state)
{
	static const struct reach nothing;
	static const struct reach_entry zero;
	const struct reach one = {&zero, 1};
	const struct reach_object o = {.kind = REACH_CONTAINERS, .mine = true};

	(void)state;
	CHECK_INT("no entry", ACCESS_NONE, reach_of(&nothing, &o));
	CHECK_INT("an empty entry", ACCESS_NONE, reach_of(&one, &o));
	CHECK_INT("not all", 0, reach_sees_all(&nothing));
}

static void says_what_is_wrong(void **state)
{
	static const struct {
		const char *reach, *want;
	} rows[] = {
		{"{}", "\"own\", \"all\", or a list"},
		{"[\"some\"]", "[1]: \"own\", \"all\" or a table is expected"},
		{"[\"own\",7]", "[2]: \"own\", \"all\" or a table is expected"},
		{"[{}]", "[1]: exactly one of all, own, label and name is expected"},
		{"[{\"all\":true,\"name\":\"x\"}]", "exactly one of all, own, label and name"},
		{"[{\"all\":false}]", "all = true is expected"},
		{"[{\"own\":1}]", "own = true is expected"},
		{"[{\"name\":\"\"}]", "name = a glob is expected"},
		{"[{\"name\":5}]", "name = a glob is expected"},
		{"[{\"name\":\"x:\",\"kinds\":[\"images\"]}]", "for images name = registry"},
		{"[{\"label\":\"\"}]", "label = \"NAME\" or \"NAME=VALUE\" is expected"},
		{"[{\"label\":\"=x\"}]", "a label is named in full"},
		{"[{\"label\":\"a*=x\"}]", "a label is named in full"},
		{"[{\"label\":\"sallyport.owner=bob\"}]",
		 "labels of the gate itself say nothing here"},
		{"[{\"all\":true,\"access\":\"write\"}]",
		 "access = \"read\", \"data\" or \"full\""},
		{"[{\"all\":true,\"access\":\"none\"}]", "access = \"read\", \"data\" or \"full\""},
		{"[{\"all\":true,\"kinds\":[]}]", "kinds = a list of"},
		{"[{\"all\":true,\"kinds\":[\"pods\"]}]", "kinds = a list of"},
		{"[{\"all\":true,\"acess\":\"read\"}]", "\"acess\" is not known here"},
	};
	struct arena *a = arena_create(1 << 20);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct err err = {0};

		read_one(a, rows[i].reach, &err);
		if (err.kind != ERR_CONFIG || !strstr(err.msg, rows[i].want))
			fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].reach, err.msg,
				 rows[i].want);
	}
	arena_destroy(a);
}

static void knows_what_lies_within_what(void **state)
{
	static const struct {
		const char *outer, *inner;
		bool want;
	} rows[] = {
		{"all", "own", true},
		{"own", "all", false},
		{"own", "[]", true},
		{"all", "[{\"label\":\"a\"},{\"name\":\"x\"},\"own\"]", true},
		{"own", "[\"own\",{\"name\":\"x\"}]", false},
		{"own", "[{\"own\":true,\"access\":\"read\"}]", true},
		{"[{\"own\":true}]", "own", false},
		{"[{\"all\":true}]", "own", false},
		{"[{\"all\":true}]", "[{\"own\":true}]", true},
		{"[{\"all\":true,\"access\":\"data\"}]", "[{\"name\":\"x\",\"access\":\"full\"}]",
		 false},
		{"[{\"all\":true,\"kinds\":[\"volumes\"]}]", "[{\"all\":true}]", false},
		{"[{\"all\":true,\"kinds\":[\"volumes\"]},{\"all\":true,\"kinds\":[\"containers\","
		 "\"networks\"]}]",
		 "[{\"all\":true}]", true},
		{"[{\"label\":\"a\"}]", "[{\"label\":\"a=b\"}]", true},
		{"[{\"label\":\"a=b\"}]", "[{\"label\":\"a\"}]", false},
		{"[{\"label\":\"a=b*\"}]", "[{\"label\":\"a=bc\"}]", true},
		{"[{\"label\":\"a=bc\"}]", "[{\"label\":\"a=b*\"}]", false},
		{"[{\"label\":\"a\"}]", "[{\"label\":\"b\"}]", false},
		{"[{\"name\":\"web-*\"}]", "[{\"name\":\"web-1\"}]", true},
		{"[{\"name\":\"web-*\"}]", "[{\"name\":\"*\"}]", false},
		{"[{\"name\":\"web-*\"}]", "[{\"label\":\"web-1\"}]", false},
		{"own", "[\"own\",{\"name\":\"x\",\"kinds\":[\"images\"]}]", true},
		{"[\"own\",{\"name\":\"x\",\"kinds\":[\"images\"]}]", "own", false},
		{"[\"own\",{\"name\":\"reg/x*\",\"kinds\":[\"images\"]}]",
		 "[\"own\",{\"name\":\"reg/xy\",\"kinds\":[\"images\"]}]", true},
		{"[\"own\",{\"name\":\"x\",\"kinds\":[\"images\"]}]",
		 "[\"own\",{\"name\":\"y\",\"kinds\":[\"images\"]}]", false},
	};
	struct arena *a = arena_create(1 << 20);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct err err = {0};
		struct reach outer = read_one(a, rows[i].outer, &err);
		struct reach inner = read_one(a, rows[i].inner, &err);
		char label[400];
		size_t at;

		snprintf(label, sizeof(label), "%s within %s", rows[i].inner, rows[i].outer);
		CHECK_STR(label, "", err.msg);
		CHECK_INT(label, rows[i].want, reach_covers(&outer, &inner, &at));
	}
	arena_destroy(a);
}

/* By class, so that a new operation is not forgotten. */
static void operations_take_what_their_class_takes(void **state)
{
	(void)state;
	for (int op = 0; op < OP_COUNT; op++) {
		enum op_class cls = operation_class((enum operation)op);
		enum access want = cls == CLASS_READ       ? ACCESS_READ
				   : cls == CLASS_DATA_OUT ? ACCESS_DATA
							   : ACCESS_FULL;

		CHECK_INT(operation_name((enum operation)op), want,
			  reach_needed((enum operation)op));
	}
}

static void is_read_from_profiles(void **state)
{
	struct engine *eng =
		kit_open("return { profile \"a\" { visibility = { \"own\", { label = "
			 "\"traefik.enable=true\" }, "
			 "{ name = \"web-*\", access = \"full\", kinds = { \"containers\" } } } }, "
			 "profile \"b\" { extends = \"a\" }, profile \"c\" {} }");
	const struct reach *b = profile_reach(engine_profile(eng, "b"));
	const struct reach *c = profile_reach(engine_profile(eng, "c"));

	(void)state;
	CHECK_INT("inherited", 3, b->count);
	CHECK_INT("own", REACH_BY_OWNER, b->entries[0].by);
	CHECK_INT("own in full", ACCESS_FULL, b->entries[0].access);
	CHECK_INT("label", 1, span_is(b->entries[1].label, "traefik.enable"));
	CHECK_INT("value", 1, span_is(b->entries[1].value, "true"));
	CHECK_INT("label to be read", ACCESS_READ, b->entries[1].access);
	CHECK_INT("kinds", REACH_CONTAINERS, b->entries[2].kinds);
	CHECK_INT("one's own by default", REACH_BY_OWNER, c->entries[0].by);
	CHECK_INT("and no more", 1, c->count);
	engine_close(eng);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_the_highest_access),
		cmocka_unit_test(zeroed_memory_sees_nothing),
		cmocka_unit_test(says_what_is_wrong),
		cmocka_unit_test(knows_what_lies_within_what),
		cmocka_unit_test(operations_take_what_their_class_takes),
		cmocka_unit_test(is_read_from_profiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
