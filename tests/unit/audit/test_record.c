/* A record is one line of JSON, whatever its strings hold. */
#include "audit/line_priv.h"
#include "audit/record_priv.h"
#include "gate/base/arena.h"
#include "gate/base/jv.h"
#include "tests/unit/audit/fixture.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <stdlib.h>

#define ARENA_BYTES (8u << 20)

/* The record's members, as text; the caller frees it. */
static char *text_of(const struct record *r)
{
	struct buf out;
	char *text;

	buf_init(&out, RECORD_BODY_MAX);
	record_write(&out, r);
	CHECK_INT("fits", 0, buf_spent(&out));
	text = strndup(buf_span(&out).at, buf_len(&out));
	CHECK_INT("no NUL", buf_len(&out), strlen(text));
	buf_fini(&out);
	return text;
}

/* Parses a record's members as an object. */
static const struct jv *parse(struct arena *a, const char *members)
{
	size_t len = strlen(members);
	char *object = arena_take(a, len + 3);
	struct jv *tree = arena_take(a, sizeof(*tree));
	enum jv_fault fault;
	struct err err = {0};

	assert_non_null(object);
	sprintf(object, "{%s}", members);
	if (jv_parse(a, (struct span){object, len + 2}, tree, &fault, &err) < 0)
		fail_msg("%s: %.300s", err.msg, object);
	return tree;
}

static void members_have_their_order(void **state)
{
	const struct record r = {
		.type = RECORD_DECISION,
		.id = "I",
		.of = "O",
		.surface = "docker",
		.backend = "engine",
		.listener = "agents",
		.identity = "bot",
		.owner = "team",
		.auth_method = "peercred",
		.address = "10.0.0.7",
		.has_cred = true,
		.pid = -1,
		.op = "container.create",
		.op_class = "launch",
		.method = "POST",
		.path = "/containers/create",
		.object_kind = "image",
		.object_id = "sha256:1",
		.object_name = "alpine",
		.body_bytes = 7,
		.body_sha256 = "aa",
		.sent_sha256 = "bb",
		.verdict = "allow",
		.would = "deny",
		.mode = "shadow",
		.reason = "privileged",
		.rule = "r1",
		.profile = "p",
		.profile_sha256 = "cc",
		.facts = {"{\"a\":1}", 7},
		.masked = {"[5]", 3},
		.violations = {"[2]", 3},
		.changes = {"[3]", 3},
		.warnings = {"[4]", 3},
		.eval_us = 5,
		.status = "ok",
		.http = 201,
		.err = "E",
		.bytes_in = 8,
		.bytes_out = UINT64_MAX,
		.dur_ms = 9,
		.created = "c0ffee",
		.client_gone = true,
		.text = "T",
		.count = 10,
		.at = 11,
		.bytes = 12,
		.sha256 = "dd",
		.file = "f",
		.head = "ee",
		.open = 13,
		.oldest = 14,
	};
	static const char want[] =
		"\"type\":\"decision\",\"id\":\"I\",\"of\":\"O\",\"surf\":\"docker\","
		"\"backend\":\"engine\",\"listener\":\"agents\",\"mode\":\"shadow\","
		"\"actor\":{\"identity\":\"bot\",\"owner\":\"team\","
		"\"auth\":{\"method\":\"peercred\",\"addr\":\"10.0.0.7\",\"uid\":0,\"gid\":0,"
		"\"pid\":-1}},"
		"\"op\":\"container.create\",\"class\":\"launch\","
		"\"req\":{\"method\":\"POST\",\"path\":\"/containers/create\",\"bytes\":7,"
		"\"sha256\":\"aa\",\"sent_sha256\":\"bb\"},"
		"\"res\":[{\"type\":\"image\",\"name\":\"alpine\",\"id\":\"sha256:1\"}],"
		"\"pol\":{\"profile\":\"p\",\"profile_sha256\":\"cc\",\"rule\":\"r1\",\"eval_us\":"
		"5},"
		"\"verdict\":\"allow\",\"reason\":\"privileged\",\"would\":\"deny\","
		"\"violations\":[2],\"warnings\":[4],\"mut\":[3],\"facts\":{\"a\":1},\"masked\":[5]"
		","
		"\"outcome\":{\"status\":\"ok\",\"http\":201,\"err\":\"E\",\"in\":8,"
		"\"out\":18446744073709551615,\"dur_ms\":9,\"client\":\"gone\","
		"\"created\":[\"c0ffee\"]},"
		"\"text\":\"T\",\"count\":10,\"at\":11,\"bytes\":12,\"sha256\":\"dd\",\"file\":"
		"\"f\","
		"\"head\":\"ee\",\"open\":13,\"oldest\":14";
	char *text = text_of(&r);

	(void)state;
	CHECK_STR("all members", want, text);
	CHECK_INT("valid", 1, record_valid(span_of(text)));
	free(text);
}

static void absent_members_are_left_out(void **state)
{
	const struct record empty = {.type = RECORD_READ, .id = "", .path = ""};
	char *text = text_of(&empty);

	(void)state;
	CHECK_STR("empty", "\"type\":\"read\"", text);
	CHECK_INT("valid", 1, record_valid(span_of(text)));
	free(text);
}

static void every_type_has_a_name_that_is_read_back(void **state)
{
	(void)state;
	for (int t = RECORD_NONE + 1; t < RECORD_TYPE_COUNT; t++) {
		const struct record r = {.type = t, .id = "x", .of = "y"};
		char *text = text_of(&r);
		struct record_peek peek;

		CHECK_INT(text, 1, record_peek(span_of(text), &peek));
		CHECK_INT(text, t, peek.type);
		CHECK_INT(text, 1, span_is(peek.id, "x"));
		CHECK_INT(text, 1, span_is(peek.of, "y"));
		free(text);
	}
}

/* One line that says what the string said, as far as JSON can. */
static void hostile_bytes_stay_inside_their_string(void **state)
{
	static const struct {
		const char *label, *value, *want;
	} cases[] = {
		{"plain", "/containers/json", "/containers/json"},
		{"newline", "a\nb", "a\nb"},
		{"carriage return", "a\rb", "a\rb"},
		{"ESC", "\x1b[2J", "\x1b[2J"},
		{"DEL", "\x7f", "\x7f"},
		{"all controls", "\x01\x02\x08\x09\x0b\x0c\x1f", "\x01\x02\x08\x09\x0b\x0c\x1f"},
		{"C1 control",
		 "\xc2\x9b"
		 "31m",
		 "\xc2\x9b"
		 "31m"},
		{"line separator", "\xe2\x80\xa8\xe2\x80\xa9", "\xe2\x80\xa8\xe2\x80\xa9"},
		{"quote and backslash", "\"\\\"", "\"\\\""},
		{"ends the line", "\",\"h\":\"x\"}", "\",\"h\":\"x\"}"},
		{"ends the line and begins one", "\",\"h\":\"x\"}\n{\"v\":1",
		 "\",\"h\":\"x\"}\n{\"v\":1"},
		{"forged verdict", "x\",\"verdict\":\"allow", "x\",\"verdict\":\"allow"},
		{"UTF-8", "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\xb3",
		 "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\xb3"},
		{"lone continuation", "a\x80z", "a\xef\xbf\xbdz"},
		{"cut sequence", "a\xe2\x82", "a\xef\xbf\xbd\xef\xbf\xbd"},
		{"overlong", "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
		{"surrogate", "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"beyond Unicode", "\xf4\x90\x80\x80",
		 "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{"0xff", "\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *s = cases[i].value, *label = cases[i].label;
		const struct record r = {.type = RECORD_DECISION,
					 .id = s,
					 .of = s,
					 .identity = s,
					 .path = s,
					 .object_name = s,
					 .verdict = "deny",
					 .rule = s,
					 .created = s,
					 .text = s};
		struct arena *a = arena_create(ARENA_BYTES);
		char *text = text_of(&r);
		const struct jv *tree = parse(a, text);
		struct record_peek peek;

		for (const char *p = text; *p; p++)
			CHECK_INT(label, 1, (unsigned char)*p >= 0x20 && *p != 0x7f);
		CHECK_STR(label, cases[i].want, jv_str(tree, "id", ""));
		CHECK_STR(label, cases[i].want, jv_str(tree, "text", ""));
		CHECK_STR(label, cases[i].want, jv_str(jv_get(tree, "req"), "path", ""));
		CHECK_STR(label, cases[i].want, jv_str(jv_get(tree, "actor"), "identity", ""));
		CHECK_INT(label, 1, record_valid(span_of(text)));
		CHECK_INT(label, 1, record_peek(span_of(text), &peek));
		CHECK_INT(label, 0, peek.allow);
		free(text);
		arena_destroy(a);
	}
}

static void json_with_control_bytes_becomes_a_string(void **state)
{
	const struct record r = {.type = RECORD_DECISION, .facts = {"{\"a\":\n1,\0}", 10}};
	struct arena *a = arena_create(ARENA_BYTES);
	char *text = text_of(&r);

	(void)state;
	CHECK_STR("facts", "{\"a\":\n1,\xef\xbf\xbd}", jv_str(parse(a, text), "facts", ""));
	free(text);
	arena_destroy(a);
}

static void json_is_safe_to_show(void **state)
{
	static const char facts[] = "{\"a\":\"\xc2\x9b\x7f\xe2\x80\xa8\xff\xc3\xbc\\\"\"}";
	static const char want[] = "\"type\":\"decision\",\"facts\":{\"a\":"
				   "\"\\u009b\\u007f\\u2028\xef\xbf\xbd\xc3\xbc\\\"\"}";
	const struct record r = {.type = RECORD_DECISION, .facts = {facts, sizeof(facts) - 1}};
	char *text = text_of(&r);

	(void)state;
	CHECK_STR("facts", want, text);
	CHECK_INT("valid", 1, record_valid(span_of(text)));
	free(text);
}

/* A JSON array of `len` bytes. */
static struct span big_json(char *mem, size_t len, char fill)
{
	memset(mem, fill, len);
	memcpy(mem, "[\"", 2);
	memcpy(mem + len - 2, "\"]", 2);
	return (struct span){mem, len};
}

static void too_long_records_are_cut_and_say_so(void **state)
{
	enum { MEGA = 1 << 20 };
	static char facts[MEGA], violations[MEGA], warnings[MEGA], path[MEGA];
	static const struct {
		const char *label;
		size_t facts, violations, warnings, path;
		const char *lost[4];
	} cases[] = {
		{"fits", 40000, 1000, 1000, 1000, {0}},
		{"facts", MEGA, 1000, 1000, 1000, {"facts"}},
		{"facts by little", 60000, 4000, 1000, 2000, {"facts"}},
		{"violations", 1000, MEGA, 1000, 1000, {"facts", "violations"}},
		{"warnings", 1000, 1000, MEGA, 1000, {"facts", "violations", "warnings"}},
		{"a string", 1000, 1000, 1000, MEGA, {"facts", "violations", "warnings"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct record r = {.type = RECORD_DECISION, .verdict = "deny", .rule = "last"};
		struct arena *a = arena_create(ARENA_BYTES);
		const struct jv *tree;
		char *text;

		r.facts = big_json(facts, cases[i].facts, 'f');
		r.violations = big_json(violations, cases[i].violations, 'v');
		r.warnings = big_json(warnings, cases[i].warnings, 'w');
		memset(path, 'p', MEGA);
		path[cases[i].path - 1] = '\0';
		r.path = path;
		text = text_of(&r);
		CHECK_INT(cases[i].label, 1, strlen(text) <= RECORD_BODY_MAX);
		CHECK_INT(cases[i].label, 1, record_valid(span_of(text)));
		tree = parse(a, text);
		CHECK_INT(cases[i].label, cases[i].lost[0] != NULL, jv_true(tree, "trunc"));
		CHECK_INT(cases[i].label, cases[i].lost[0] == NULL, jv_get(tree, "facts") != NULL);
		for (int n = 0; n < 4 && cases[i].lost[n]; n++) {
			struct span text_lost = n == 0   ? r.facts
						: n == 1 ? r.violations
							 : r.warnings;
			struct hash h = hash_of(text_lost);
			char hex[HASH_HEX_LEN + 1], name[40];

			hash_hex(&h, hex);
			snprintf(name, sizeof(name), "%s_sha256", cases[i].lost[n]);
			CHECK_INT(cases[i].label, 1, jv_get(tree, cases[i].lost[n]) == NULL);
			CHECK_STR(cases[i].label, hex, jv_str(tree, name, ""));
		}
		CHECK_STR(cases[i].label, "last", jv_str(jv_get(tree, "pol"), "rule", ""));
		free(text);
		arena_destroy(a);
	}
}

/* The last cut must hold for any strings: all at their worst. */
static void even_all_strings_at_once_fit(void **state)
{
	enum { MEGA = 1 << 20 };
	char *s = malloc(MEGA);
	struct record r = {.type = RECORD_DECISION};
	const char **strings[] = {&r.id,        &r.of,          &r.surface,        &r.backend,
				  &r.listener,  &r.identity,    &r.owner,          &r.op,
				  &r.op_class,  &r.method,      &r.path,           &r.object_kind,
				  &r.object_id, &r.object_name, &r.body_sha256,    &r.sent_sha256,
				  &r.verdict,   &r.would,       &r.mode,           &r.reason,
				  &r.rule,      &r.profile,     &r.profile_sha256, &r.status,
				  &r.err,       &r.created,     &r.text,           &r.sha256,
				  &r.file,      &r.head};
	struct arena *a = arena_create(ARENA_BYTES);
	char *text;

	(void)state;
	memset(s, '\x01', MEGA);
	s[MEGA - 1] = '\0';
	for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++)
		*strings[i] = s;
	text = text_of(&r);
	CHECK_INT("trunc", 1, jv_true(parse(a, text), "trunc"));
	CHECK_INT("valid", 1, record_valid(span_of(text)));
	free(text);
	free(s);
	arena_destroy(a);
}

static void cuts_between_characters(void **state)
{
	char *s = malloc(200001);
	struct record r = {.type = RECORD_DECISION, .path = s};
	struct arena *a = arena_create(ARENA_BYTES);
	char *text;

	(void)state;
	for (int i = 0; i < 50000; i++)
		memcpy(s + 4 * i, "\xf0\x9f\x90\xb3", 4);
	memmove(s + 1, s, 199999);
	s[0] = 'x';
	s[200000] = '\0';
	text = text_of(&r);
	CHECK_INT("no replacement", 1,
		  strstr(jv_str(jv_get(parse(a, text), "req"), "path", ""), "\xef\xbf\xbd") ==
			  NULL);
	free(text);
	free(s);
	arena_destroy(a);
}

static void too_little_room_spends_the_buffer(void **state)
{
	const struct record r = fixture_decision(1, "allow");
	struct buf out;

	(void)state;
	buf_init(&out, 100);
	record_write(&out, &r);
	CHECK_INT("spent", 1, buf_spent(&out));
	CHECK_INT("nothing written", 0, buf_len(&out));
	buf_fini(&out);
}

static void appends_to_what_is_there(void **state)
{
	const struct record r = {.type = RECORD_READ, .id = "i"};
	struct buf out;

	(void)state;
	buf_init(&out, RECORD_BODY_MAX);
	buf_puts(&out, "{");
	record_write(&out, &r);
	buf_put(&out, "}", 2);
	CHECK_STR("appended", "{\"type\":\"read\",\"id\":\"i\"}", buf_span(&out).at);
	buf_fini(&out);
}

/* What a worker that was taken over might send. */
static void only_records_are_valid(void **state)
{
	static const struct {
		const char *label, *text;
		bool want;
	} cases[] = {
		{"type only", "\"type\":\"read\"", true},
		{"objects", "\"type\":\"read\",\"facts\":{\"a\":[1,{},[],\"x\",null,true,false]}",
		 true},
		{"spaces between", "\"type\":\"read\",\"facts\":{ \"a\" : [ 1 , 2 ] }", true},
		{"numbers", "\"type\":\"read\",\"facts\":[0,-1,1.5,1e+20,-0.5E-3]", true},
		{"escapes", "\"type\":\"read\",\"text\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"",
		 true},
		{"nothing", "", false},
		{"braces", "{\"type\":\"read\"}", false},
		{"no quotes", "type:read", false},
		{"unknown member", "\"type\":\"read\",\"seq\":5", false},
		{"the auditor's member", "\"type\":\"read\",\"h\":\"00\"", false},
		{"the auditor's member first", "\"v\":1,\"type\":\"read\"", false},
		{"a member twice", "\"type\":\"read\",\"type\":\"decision\"", false},
		{"another order", "\"id\":\"x\",\"type\":\"read\"", false},
		{"a nested name on top", "\"type\":\"read\",\"profile\":\"x\"", false},
		{"closes the object", "\"type\":\"read\"},\"id\":\"x\"", false},
		{"closes too much", "\"type\":\"read\",\"facts\":{}}", false},
		{"closes wrongly", "\"type\":\"read\",\"facts\":[}", false},
		{"closes wrongly deeper", "\"type\":\"read\",\"facts\":{\"a\":[1}]", false},
		{"open string", "\"type\":\"read", false},
		{"open object", "\"type\":\"read\",\"facts\":{\"a\":1", false},
		{"comma at the end", "\"type\":\"read\",", false},
		{"comma in an array", "\"type\":\"read\",\"facts\":[1,]", false},
		{"newline", "\"type\":\"read\",\"text\":\"a\nb\"", false},
		{"newline between", "\"type\":\"read\",\n\"text\":\"a\"", false},
		{"not UTF-8", "\"type\":\"read\",\"text\":\"\xff\"", false},
		{"bad escape", "\"type\":\"read\",\"text\":\"\\x\"", false},
		{"bad \\u", "\"type\":\"read\",\"text\":\"\\u12g4\"", false},
		{"cut escape", "\"type\":\"read\",\"text\":\"\\", false},
		{"cut \\u", "\"type\":\"read\",\"text\":\"\\u12", false},
		{"NUL", "\"type\":\"read\",\"text\":\"\\u0000\"", false},
		{"half a character", "\"type\":\"read\",\"text\":\"\\ud83d\"", false},
		{"two halves", "\"type\":\"read\",\"text\":\"\\uD83D\\uDC33\"", false},
		{"below the halves", "\"type\":\"read\",\"text\":\"\\ud7ff\"", true},
		{"leading zero", "\"type\":\"read\",\"count\":01", false},
		{"minus only", "\"type\":\"read\",\"count\":-", false},
		{"dot only", "\"type\":\"read\",\"count\":1.", false},
		{"NaN", "\"type\":\"read\",\"count\":NaN", false},
		{"cut word", "\"type\":\"read\",\"trunc\":tru", false},
		{"no value", "\"type\":\"read\",\"count\":", false},
		{"something behind", "\"type\":\"read\"x", false},
		{"key without quotes", "\"type\":\"read\",\"facts\":{a:1}", false},
		{"unquoted after key", "\"type\"\"read\"", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		/* Exactly sized, so that a sanitizer sees a read behind the end. */
		size_t len = strlen(cases[i].text);
		char *exact = malloc(len + 1);

		memcpy(exact, cases[i].text, len);
		exact = realloc(exact, len ? len : 1);
		CHECK_INT(cases[i].label, cases[i].want, record_valid((struct span){exact, len}));
		free(exact);
	}
}

/* What is taken from a worker, and only that, is JSON for the strict reader as well. */
static void what_is_valid_is_json(void **state)
{
	static const char bytes[] = "\"\\{}[],:0123456789-.eEutrnflasd \x01\x7f\x80\xc2\xe2\xff";
	static const char facts[] = "{\"a\":[1,-2.5e3,true,null],\"b\":\"\\u00e9\"}";
	const struct record r = {.type = RECORD_DECISION,
				 .id = "i",
				 .path = "/a\nb",
				 .verdict = "deny",
				 .facts = {facts, sizeof(facts) - 1},
				 .http = 200};
	char *whole = text_of(&r);
	size_t len = strlen(whole);
	int valid = 0;

	(void)state;
	srand(3);
	for (int i = 0; i < 100000; i++) {
		struct arena *a = arena_create(ARENA_BYTES);
		char *object = arena_take(a, len + 3);
		enum jv_fault fault = JV_FAULT_NONE;
		struct err err;
		struct jv tree;

		sprintf(object, "{%s}", whole);
		for (int n = rand() % 3; n >= 0; n--)
			object[1 + (size_t)rand() % len] =
				bytes[(size_t)rand() % (sizeof(bytes) - 1)];
		if (record_valid((struct span){object + 1, len})) {
			valid++;
			/* The strict reader has limits of its own, which are no matter of form. */
			if (jv_parse(a, (struct span){object, len + 2}, &tree, &fault, &err) < 0 &&
			    fault != JV_FAULT_LIMIT && fault != JV_FAULT_DUPLICATE)
				fail_msg("%s: %s", err.msg, object);
		}
		arena_destroy(a);
	}
	CHECK_INT("some were valid", 1, valid > 1000 && valid < 90000);
	free(whole);
}

static void depth_has_a_limit(void **state)
{
	char text[4096] = "\"type\":\"read\",\"facts\":";
	size_t used = strlen(text);

	(void)state;
	memset(text + used, '[', 1000);
	memset(text + used + 1000, ']', 1000);
	CHECK_INT("1000 deep", 0, record_valid((struct span){text, used + 2000}));
	memset(text + used, '[', 40);
	memset(text + used + 40, ']', 40);
	CHECK_INT("40 deep", 1, record_valid((struct span){text, used + 80}));
}

static void peek_sees_only_the_real_verdict(void **state)
{
	static const struct {
		const char *label, *text;
		bool want, allow;
	} cases[] = {
		{"allow", "\"type\":\"decision\",\"id\":\"x\",\"verdict\":\"allow\"", true, true},
		{"deny", "\"type\":\"decision\",\"id\":\"x\",\"verdict\":\"deny\"", true, false},
		{"longer", "\"type\":\"decision\",\"verdict\":\"allowed\"", true, false},
		{"in facts",
		 "\"type\":\"decision\",\"verdict\":\"deny\",\"facts\":{\"a\":1,\"verdict\":"
		 "\"allow\"}",
		 true, false},
		{"in a string",
		 "\"type\":\"decision\",\"text\":\"x\\\",\\\"verdict\\\":\\\"allow\"", true, false},
		{"not a decision", "\"type\":\"read\",\"verdict\":\"allow\"", true, false},
		{"unknown type", "\"type\":\"other\",\"verdict\":\"allow\"", true, false},
		{"no type", "\"id\":\"x\"", false, false},
		{"open type", "\"type\":\"read", false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct record_peek peek;

		CHECK_INT(cases[i].label, cases[i].want,
			  record_peek(span_of(cases[i].text), &peek));
		CHECK_INT(cases[i].label, cases[i].allow, peek.allow);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_have_their_order),
		cmocka_unit_test(absent_members_are_left_out),
		cmocka_unit_test(every_type_has_a_name_that_is_read_back),
		cmocka_unit_test(hostile_bytes_stay_inside_their_string),
		cmocka_unit_test(json_with_control_bytes_becomes_a_string),
		cmocka_unit_test(json_is_safe_to_show),
		cmocka_unit_test(too_long_records_are_cut_and_say_so),
		cmocka_unit_test(even_all_strings_at_once_fit),
		cmocka_unit_test(cuts_between_characters),
		cmocka_unit_test(too_little_room_spends_the_buffer),
		cmocka_unit_test(appends_to_what_is_there),
		cmocka_unit_test(only_records_are_valid),
		cmocka_unit_test(what_is_valid_is_json),
		cmocka_unit_test(depth_has_a_limit),
		cmocka_unit_test(peek_sees_only_the_real_verdict),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
