/* The sandbox API's parts: what callers send, what commands say, what is kept, what has to end. */
#include "gate/base/clock.h"
#include "proxy/sandbox/sandbox_priv.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOUR_MS 3600000u

/* --- bodies --- */

struct body {
	struct httpd_request r;
	struct trouble t;
};

static void begin(struct body *b, const char *text)
{
	memset(b, 0, sizeof(*b));
	b->r.arena = arena_create(REQUEST_ARENA);
	assert_non_null(b->r.arena);
	buf_init(&b->r.body, BODY_MAX);
	buf_puts(&b->r.body, text);
}

static void end(struct body *b)
{
	buf_fini(&b->r.body);
	arena_destroy(b->r.arena);
}

static void creates_are_read_strictly(void **state)
{
	static const struct {
		const char *body, *code, *part;
	} rows[] = {
		{"", NULL, ""},
		{"{}", NULL, ""},
		{"{\"image\":null,\"lifetime\":\"30m\",\"idle\":60,\"limits\":{\"memory\":"
		 "\"64MiB\","
		 "\"cpus\":0.5,\"pids\":10,\"disk\":4096,\"output\":\"1MiB\"}}",
		 NULL, ""},
		{"[]", "bad_json", "no JSON object"},
		{"{\"a\":1,\"a\":2}", "bad_json", ""},
		{"{} {}", "bad_json", ""},
		{"{\"imagee\":\"x\"}", "unknown_field", "did you mean 'image'"},
		{"{\"limits\":{\"mem\":1}}", "unknown_field", "limits.mem"},
		{"{\"image\":1}", "bad_request", "image must be a text"},
		{"{\"image\":\"a\\u0000b\"}", "bad_json", ""},
		{"{\"lifetime\":\"30\"}", "invalid", "lifetime"},
		{"{\"lifetime\":\"0s\"}", "invalid", "lifetime"},
		{"{\"lifetime\":-5}", "invalid", "lifetime"},
		{"{\"lifetime\":0.5}", "invalid", "at least a second"},
		{"{\"lifetime\":\"0x10s\"}", "invalid", "lifetime"},
		{"{\"lifetime\":\"infs\"}", "invalid", "lifetime"},
		{"{\"limits\":{\"memory\":\"64MB\"}}", "invalid", "memory"},
		{"{\"limits\":{\"cpus\":0}}", "invalid", "cpus"},
		{"{\"limits\":{\"pids\":1.5}}", "invalid", "pids"},
		{"{\"env\":{\"A=B\":\"x\"}}", "invalid", "A=B"},
		{"{\"env\":{\"A\":1}}", "bad_request", "env.A"},
		{"{\"labels\":{\"a\":1}}", "bad_request", "labels.a"},
		{"{\"labels\":{\"a=b\":\"c\"}}", "invalid", "a=b"},
		{"{\"files\":[1]}", "bad_request", "object"},
		{"{\"files\":[{\"path\":\"/work/a\"}]}", "invalid", "content"},
		{"{\"files\":[{\"path\":\"/work/a\",\"content\":\"\"}]}", NULL, ""},
		{"{\"files\":[{\"path\":\"a\",\"content\":\"\",\"content_base64\":\"\"}]}",
		 "bad_request", "not both"},
		{"{\"files\":[{\"path\":\"a\",\"content\":\"\",\"mode\":\"rw\"}]}", "invalid",
		 "mode"},
		{"{\"files\":[{\"path\":\"a\",\"content_base64\":\"YWI\"}]}", "invalid", "base64"},
		{"{\"files\":[{\"path\":\"a\",\"content_base64\":\"YW=j\"}]}", "invalid", "base64"},
		{"{\"files\":[{\"path\":\"a\",\"content_base64\":\"YWI=\"}]}", NULL, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wanted w;
		struct body b;
		int rc;

		begin(&b, rows[i].body);
		rc = request_create(&b.r, &w, &b.t);
		CHECK_INT(rows[i].body, rows[i].code ? -1 : 0, rc);
		CHECK_STR(rows[i].body, rows[i].code ? rows[i].code : "", b.t.code ? b.t.code : "");
		if (rows[i].code && !strstr(b.t.message, rows[i].part))
			CHECK_STR(rows[i].body, rows[i].part, b.t.message);
		end(&b);
	}
}

static void values_are_what_was_said(void **state)
{
	struct wanted w;
	struct body b;

	(void)state;
	begin(&b, "{\"lifetime\":\"2h\",\"idle\":90,\"per_call\":true,\"env\":{\"A\":\"b=c\"},"
		  "\"limits\":{\"memory\":\"64MiB\",\"cpus\":0.25},"
		  "\"files\":[{\"path\":\"a\",\"content_base64\":\"AAEC/w==\"}]}");
	assert_int_equal(0, request_create(&b.r, &w, &b.t));
	assert_int_equal(7200, w.lifetime_s);
	assert_int_equal(90, w.idle_s);
	assert_int_equal(1, w.per_call);
	assert_string_equal("A=b=c", w.env.items[0].str.at);
	assert_int_equal(64 << 20, w.limits.memory);
	assert_int_equal(250000000, w.limits.nano_cpus);
	assert_int_equal(4, w.files[0].content.len);
	assert_memory_equal("\0\1\2\xff", w.files[0].content.at, 4);
	end(&b);
}

static void commands_are_read_strictly(void **state)
{
	static const struct {
		const char *body, *code;
	} rows[] = {
		{"{\"argv\":[\"a\"]}", NULL},
		{"{\"argv\":[\"a\",\"\"],\"cwd\":\"/x\",\"timeout\":0.25,\"tty\":{\"rows\":2,"
		 "\"cols\":3}}",
		 NULL},
		{"{}", "bad_request"},
		{"{\"argv\":[]}", "bad_request"},
		{"{\"argv\":[\"\"]}", "invalid"},
		{"{\"argv\":\"a\"}", "bad_request"},
		{"{\"argv\":[1]}", "bad_request"},
		{"{\"argv\":[\"a\"],\"cwd\":\"x\"}", "invalid"},
		{"{\"argv\":[\"a\"],\"stdin\":\"x\",\"stdin_base64\":\"\"}", "bad_request"},
		{"{\"argv\":[\"a\"],\"stdin\":\"x\",\"stdin_stream\":true}", "bad_request"},
		{"{\"argv\":[\"a\"],\"tty\":{\"rows\":2}}", "invalid"},
		{"{\"argv\":[\"a\"],\"tty\":{\"rows\":2,\"cols\":70000}}", "invalid"},
		{"{\"argv\":[\"a\"],\"tty\":{\"rows\":2,\"cols\":3,\"x\":1}}", "unknown_field"},
		{"{\"argv\":[\"a\"],\"timeout\":\"5\"}", "invalid"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wanted_exec w;
		struct body b;

		begin(&b, rows[i].body);
		CHECK_INT(rows[i].body, rows[i].code ? -1 : 0, request_exec(&b.r, &w, &b.t));
		CHECK_STR(rows[i].body, rows[i].code ? rows[i].code : "", b.t.code ? b.t.code : "");
		end(&b);
	}
}

/* --- what commands say --- */

struct heard {
	char out[256], err[256];
	unsigned empty;
};

static void hear(void *arg, enum frame_type type, struct span data)
{
	struct heard *h = arg;

	h->empty += !data.len;
	strncat(type == FRAME_STDERR ? h->err : h->out, data.at, data.len);
}

/* The engine's head before frames; what they hold may be cut anywhere. */
#define OUTER(stream, n) stream "\0\0\0\0\0\0" n

static void frames_are_read_however_they_are_cut(void **state)
{
	static const char bytes[] = OUTER(
		"\1",
		"\x0c") "\x10\0\0\0\2hi"
			"\x11\0\0\0\4" OUTER("\1", "\x04") "oops" OUTER(
				"\1",
				"\x05") "\x10\0\0\0\0" OUTER("\1",
							     "\x10") "\x12\0\0\0\x0b{\"code\":3}\n";

	(void)state;
	for (size_t step = 1; step < sizeof(bytes); step++) {
		struct stream st = {.bad = false};
		struct heard h = {.empty = 0};

		for (size_t at = 0; at < sizeof(bytes) - 1; at += step) {
			size_t n = sizeof(bytes) - 1 - at;

			stream_feed(&st, (struct span){bytes + at, n < step ? n : step}, hear, &h);
		}
		assert_false(st.bad);
		assert_true(st.over);
		assert_string_equal("hi", h.out);
		assert_string_equal("oops", h.err);
		assert_int_equal(1, h.empty);
		assert_int_equal(11, st.end_len);
	}
}

/* What comes from a sandbox is from hostile hands. */
static void frames_that_make_no_sense_end_it(void **state)
{
	static const struct {
		const char *name;
		const char bytes[24];
		size_t len;
	} rows[] = {
		{"a type for the other way", OUTER("\1", "\5") "\0\0\0\0\1", 13},
		{"an unknown type", OUTER("\1", "\5") "\x63\0\0\0\1", 13},
		{"too long", OUTER("\1", "\5") "\x10\0\1\0\1", 13},
		{"an end that is too long", OUTER("\1", "\5") "\x12\0\0\x10\1", 13},
		{"an engine's head that is none", "HTTP/1.1", 8},
		{"another stream", OUTER("\3", "\5") "\x10\0\0\0\1", 13},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct stream st = {.bad = false};
		struct heard h = {.empty = 0};

		stream_feed(&st, (struct span){rows[i].bytes, rows[i].len}, hear, &h);
		CHECK_INT(rows[i].name, 1, st.bad);
		CHECK_INT(rows[i].name, 0, st.over);
	}
}

/* --- what is kept --- */

static struct box *a_box(const char *owner)
{
	struct box *b = box_create();

	assert_non_null(b);
	snprintf(b->who.listener, sizeof(b->who.listener), "api");
	snprintf(b->who.owner, sizeof(b->who.owner), "%s", owner);
	snprintf(b->who.profile, sizeof(b->who.profile), "box");
	snprintf(b->backend, sizeof(b->backend), "engine");
	b->state = BOX_RUNNING;
	return b;
}

static void what_is_kept_is_read_again(void **state)
{
	struct box *b = a_box("o\"wner"), *again = box_create();
	struct err err = {0};
	struct buf text;

	(void)state;
	b->who.has_cred = true;
	b->who.uid = 4000000000u;
	b->created = 1700000000;
	b->expires = 1700001800;
	b->idle_s = 60;
	b->limits = (struct limits){1, 2, 3, 4, 5};
	b->per_call = true;
	free(b->labels);
	b->labels = strdup("{\"a\":\"b\"}");
	buf_init(&text, 65536);
	kept_text(b, &text);
	assert_int_equal(0, kept_parse(buf_span(&text), again, &err));
	assert_string_equal(b->id, again->id);
	assert_string_equal("o\"wner", again->who.owner);
	assert_int_equal(4000000000u, again->who.uid);
	assert_int_equal(1700001800, again->expires);
	assert_memory_equal(&b->limits, &again->limits, sizeof(b->limits));
	assert_string_equal("{\"a\":\"b\"}", again->labels);
	assert_true(again->per_call);
	/* Cut anywhere it is nothing. */
	for (size_t n = 0; n + 2 < buf_len(&text); n += 7)
		assert_int_equal(-1, kept_parse((struct span){buf_span(&text).at, n}, again, &err));
	buf_fini(&text);
	box_free(b);
	box_free(again);
}

/* --- which there are, and which have to end --- */

static struct proxy_conf conf = {
	.sandboxes = {.max = 3, .owner_max = 2, .execs = 1, .lifetime_s = 7200}};

static struct sandboxes *table(void)
{
	struct sandboxes *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->conf.proxy = &conf;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	return s;
}

static struct box *put(struct sandboxes *s, const char *owner, uint64_t ends_ms)
{
	struct box *b = a_box(owner);
	struct arena *a = arena_create(65536);
	struct trouble t = {0};

	assert_int_equal(0, table_reserve(s, &b->who, a, &t));
	arena_destroy(a);
	b->ends_ms = ends_ms;
	b->refs = 1;
	assert_null(table_add(s, b));
	return b;
}

static void drop(struct sandboxes *s, struct box *b)
{
	table_remove(s, b);
	table_unref(s, b);
}

static void lifetimes_end_in_their_order(void **state)
{
	struct sandboxes *s = table();
	struct box *late = put(s, "a", 20000), *early = put(s, "a", 10000), *found;
	const char *why = "";
	uint64_t next;

	(void)state;
	assert_null(lifetimes_due(s, 9999, &why, &next));
	assert_int_equal(10000, next);
	found = lifetimes_due(s, 10000, &why, &next);
	assert_ptr_equal(early, found);
	assert_string_equal("expired", why);
	table_unref(s, found);
	drop(s, early);
	/* Nobody uses it: it ends before its time. */
	late->idle_at_ms = 12000;
	found = lifetimes_due(s, 12000, &why, &next);
	assert_ptr_equal(late, found);
	assert_string_equal("idle", why);
	table_unref(s, found);
	/* It could not be ended: tried again, and not before that. */
	late->state = BOX_ENDING;
	late->retry_ms = 30000;
	assert_null(lifetimes_due(s, 29999, &why, &next));
	assert_int_equal(30000, next);
	found = lifetimes_due(s, 30000, &why, &next);
	assert_ptr_equal(late, found);
	table_unref(s, found);
	/* What is being made has no end yet, and what another thread ends is its. */
	late->state = BOX_CREATING;
	assert_null(lifetimes_due(s, HOUR_MS, &why, &next));
	drop(s, late);
	free(s);
}

static void others_sandboxes_do_not_exist(void **state)
{
	struct sandboxes *s = table();
	struct box *b = put(s, "a", HOUR_MS), *found;
	struct caller other = b->who, same = b->who;

	(void)state;
	snprintf(other.owner, sizeof(other.owner), "b");
	assert_null(table_find(s, &other, b->id));
	other = b->who;
	snprintf(other.listener, sizeof(other.listener), "elsewhere");
	assert_null(table_find(s, &other, b->id));
	found = table_find(s, &same, b->id);
	assert_ptr_equal(b, found);
	table_unref(s, found);
	b->hidden = true;
	assert_null(table_find(s, &same, b->id));
	b->hidden = false;
	b->state = BOX_ENDING;
	assert_null(table_find(s, &same, b->id));
	drop(s, b);
	free(s);
}

static void there_are_so_many_and_no_more(void **state)
{
	struct sandboxes *s = table();
	struct box *one = put(s, "a", HOUR_MS), *two = put(s, "a", HOUR_MS), *three;
	struct arena *a = arena_create(65536);
	struct caller who = one->who;
	struct trouble t = {0};

	(void)state;
	assert_int_equal(-1, table_reserve(s, &who, a, &t));
	assert_string_equal("sandbox_limit", t.code);
	assert_int_equal(429, t.status);
	assert_non_null(t.retry_after);
	three = put(s, "b", HOUR_MS);
	snprintf(who.owner, sizeof(who.owner), "c");
	assert_int_equal(-1, table_reserve(s, &who, a, &t));
	drop(s, two);
	assert_int_equal(0, table_reserve(s, &who, a, &t));
	table_unreserve(s);
	drop(s, one);
	drop(s, three);
	assert_int_equal(0, s->box_count);
	arena_destroy(a);
	free(s);
}

static void a_key_makes_one_sandbox(void **state)
{
	struct sandboxes *s = table();
	struct box *one = a_box("a"), *same = a_box("a"), *others = a_box("b");

	(void)state;
	one->refs = same->refs = others->refs = 1;
	strcpy(one->key, "k");
	strcpy(same->key, "k");
	strcpy(others->key, "k");
	assert_null(table_add(s, one));
	assert_ptr_equal(one, table_add(s, same));
	assert_null(table_add(s, others));
	table_unref(s, one);
	box_free(same);
	s->box_count = 2;
	drop(s, one);
	drop(s, others);
	free(s);
}

static void so_many_commands_run_at_once(void **state)
{
	struct sandboxes *s = table();
	struct box *b = put(s, "a", HOUR_MS);
	struct arena *a = arena_create(65536);
	struct run *one = run_create(s, b, 4096), *two = run_create(s, b, 4096), *found;
	struct trouble t = {0};

	(void)state;
	b->idle_s = 60;
	assert_int_equal(0, table_add_run(s, b, one, a, &t));
	assert_int_equal(0, b->idle_at_ms);
	assert_int_equal(-1, table_add_run(s, b, two, a, &t));
	assert_string_equal("exec_limit", t.code);
	found = table_find_run(s, b, one->id);
	assert_ptr_equal(one, found);
	run_unref(found);
	table_drop_run(s, b, one);
	assert_null(table_find_run(s, b, one->id));
	assert_true(b->idle_at_ms > 0);
	run_unref(one);
	run_unref(two);
	drop(s, b);
	arena_destroy(a);
	free(s);
}

/* --- a command while it runs --- */

static void a_command_is_heard_to_its_end(void **state)
{
	static const char said[] = OUTER("\1", "\x1c") "\x10\0\0\0\2hi"
						       "\x12\0\0\0\x10{\"code\":7,\"x\":1}";
	struct sandboxes *s = table();
	struct box *b = put(s, "a", HOUR_MS);
	struct arena *a = arena_create(65536);
	struct run *r = run_create(s, b, 4096);
	enum frame_type type;
	struct trouble t = {0};
	struct span data;
	char got[64];
	uint64_t at = 0;
	int ends[2];

	(void)state;
	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	assert_int_equal(0, table_add_run(s, b, r, a, &t));
	run_attach(r, ends[0], (struct span){"", 0});
	assert_true(run_send(r, FRAME_STDIN, span_of("in"), 0));
	assert_true(run_send(r, FRAME_STDIN_END, (struct span){"", 0}, 0));
	assert_false(run_send(r, FRAME_STDIN, span_of("more"), 0));
	assert_int_equal(sizeof(said) - 1, write(ends[1], said, sizeof(said) - 1));
	run_to_end(r, -1);
	assert_int_equal(12, read(ends[1], got, sizeof(got)));
	assert_memory_equal("\0\0\0\0\2in\1\0\0\0\0", got, 12);
	assert_int_equal(RUN_ENDED, r->state);
	assert_int_equal(7, r->code);
	assert_true(run_chunk(r, &at, &type, &data, a));
	assert_true(span_is(data, "hi"));
	assert_false(run_chunk(r, &at, &type, &data, a));
	assert_int_equal(0, b->running);
	close(ends[1]);
	run_unref(r);
	drop(s, b);
	arena_destroy(a);
	free(s);
}

static void a_connection_that_ends_loses_the_command(void **state)
{
	struct sandboxes *s = table();
	struct box *b = put(s, "a", HOUR_MS);
	struct arena *a = arena_create(65536);
	struct run *r = run_create(s, b, 4096);
	struct trouble t = {0};
	int ends[2];

	(void)state;
	assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	assert_int_equal(0, table_add_run(s, b, r, a, &t));
	run_attach(r, ends[0], (struct span){"", 0});
	close(ends[1]);
	run_to_end(r, -1);
	assert_int_equal(RUN_LOST, r->state);
	run_unref(r);
	drop(s, b);
	arena_destroy(a);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(creates_are_read_strictly),
		cmocka_unit_test(values_are_what_was_said),
		cmocka_unit_test(commands_are_read_strictly),
		cmocka_unit_test(frames_are_read_however_they_are_cut),
		cmocka_unit_test(frames_that_make_no_sense_end_it),
		cmocka_unit_test(what_is_kept_is_read_again),
		cmocka_unit_test(lifetimes_end_in_their_order),
		cmocka_unit_test(others_sandboxes_do_not_exist),
		cmocka_unit_test(there_are_so_many_and_no_more),
		cmocka_unit_test(a_key_makes_one_sandbox),
		cmocka_unit_test(so_many_commands_run_at_once),
		cmocka_unit_test(a_command_is_heard_to_its_end),
		cmocka_unit_test(a_connection_that_ends_loses_the_command),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
