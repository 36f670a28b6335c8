/* Sinks: what a record looks like elsewhere, the state file, and the reader that never skips. */
#include "tests/unit/audit/fixture.h"
#include "tests/unit/check.h"

#include "audit/sink_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define DENIED                                                                                     \
	"\"type\":\"decision\",\"id\":\"i-1\",\"actor\":{\"identity\":\"a\\\"]\\\\b\\nc\"},"       \
	"\"op\":\"exec.start\",\"pol\":{\"rule\":\"privileges\"},\"verdict\":\"deny\","            \
	"\"reason\":\"privileged\""
#define ALARM "\"type\":\"log_alarm\",\"id\":\"x\",\"cause\":\"space\""

static struct arena *arena;
static struct buf line, out;

/* A record with this number, taken apart; its line is in `line`. */
static struct fields record_of(const char *body)
{
	static const struct hash none;
	struct line_writer w = {.origin = "gate.example/host7", .epoch = 1};
	struct err err = {0};
	struct fields f;

	arena_reset(arena, 2 * FIELDS_ARENA_MAX);
	buf_clear(&line);
	buf_clear(&out);
	line_writer_set(&w, 42, &none);
	CHECK_INT(body, 1, line_write(&w, &line, span_of(body)));
	CHECK_INT(err.msg, 0,
		  fields_take(arena, (struct span){buf_span(&line).at, buf_len(&line) - 1}, &f,
			      &err));
	return f;
}

static struct span text_of(void)
{
	return (struct span){buf_span(&line).at, buf_len(&line) - 1};
}

static int begin(void **state)
{
	(void)state;
	arena = arena_create(2 * FIELDS_ARENA_MAX);
	buf_init(&line, RECORD_LINE_MAX + 1);
	buf_init(&out, 1 << 20);
	return arena ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	arena_destroy(arena);
	buf_fini(&line);
	buf_fini(&out);
	return 0;
}

/* --- renderers --- */

static bool holds(const char *part)
{
	struct span s = buf_span(&out);

	return memmem(s.at, s.len, part, strlen(part)) != NULL;
}

static void test_syslog_has_its_form(void **state)
{
	static const struct {
		const char *body, *part;
	} rows[] = {
		{DENIED, "<108>1 2"},
		{ALARM, "<105>1 2"},
		{"\"type\":\"gate_start\"", "<110>1 2"},
		{DENIED, "Z host sallyport - decision [sallyport@32473 log=\"gate.example/host7\" "
			 "seq=\"42\" h=\""},
		{DENIED, " identity=\"a\\\"\\]\\\\b?c\" "},
		{DENIED, " verdict=\"deny\" reason=\"privileged\"] {\"v\":1,"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct fields f = record_of(rows[i].body);

		sink_render_syslog(&f, text_of(), EXPORT_NONE, "ho st", arena, &out);
		CHECK_INT(rows[i].part, 1, holds(rows[i].part));
		CHECK_INT("one line", 1, memchr(buf_span(&out).at, '\n', buf_len(&out)) == NULL);
		CHECK_INT("the record ends it", 1,
			  memcmp(buf_span(&out).at + buf_len(&out) - text_of().len, text_of().at,
				 text_of().len) == 0);
	}
}

static void test_syslog_takes_exports(void **state)
{
	struct fields f = record_of(DENIED);

	(void)state;
	sink_render_syslog(&f, text_of(), EXPORT_CEF, "h", arena, &out);
	CHECK_INT("cef", 1, holds("] CEF:0|"));
}

static void test_journal_fields_go_by_length(void **state)
{
	struct fields f = record_of(DENIED);

	(void)state;
	sink_render_journal(&f, text_of(), &out);
	CHECK_INT("first", 1,
		  memcmp(buf_span(&out).at, "PRIORITY\n\1\0\0\0\0\0\0\0004\n", 19) == 0);
	CHECK_INT("a newline is no end", 1, holds("a\"]\\b\nc\n"));
	CHECK_INT("nothing empty", 0, holds("SALLYPORT_OF\n"));
}

/* --- the state file --- */

#define HEX  "0959b48736f1baa67f571e6c8e1558e22dc2b43e807af8623242479b4bb0ab39"
#define GOOD "sallyport-sink 1\nlog gate.example/host7\nseq 42\nhash " HEX "\n"

static void test_a_state_is_one_or_none(void **state)
{
	static const struct {
		const char *text;
		int rc;
	} rows[] = {
		{GOOD, 0},
		{"", -1},
		{"sallyport-sink 2\nlog a\nseq 42\nhash " HEX "\n", -1},
		{"sallyport-sink 1\nlog a\nseq 042\nhash " HEX "\n", -1},
		{"sallyport-sink 1\nlog a\nseq -1\nhash " HEX "\n", -1},
		{"sallyport-sink 1\nlog a\nseq 18446744073709551615\nhash " HEX "\n", -1},
		{"sallyport-sink 1\nlog a\nseq 18446744073709551616\nhash " HEX "\n", -1},
		{"sallyport-sink 1\nlog a b\nseq 1\nhash " HEX "\n", -1},
		{"sallyport-sink 1\nlog \nseq 1\nhash " HEX "\n", -1},
		{"sallyport-sink 1\nlog a\nseq 1\nhash " HEX, -1},
		{"sallyport-sink 1\nlog a\nseq 1\nhash 09\n", -1},
		{GOOD "more\n", -1},
		{"sallyport-sink 1\nseq 1\nlog a\nhash " HEX "\n", -1},
	};
	struct cursor_mark mark;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_INT(rows[i].text, rows[i].rc, sink_state_parse(span_of(rows[i].text), &mark));
	CHECK_INT("good", 0, sink_state_parse(span_of(GOOD), &mark));
	CHECK_INT("seq", 42, (int)mark.seq);
	CHECK_INT("log", 0, strcmp(mark.log, "gate.example/host7"));
}

static void test_a_state_comes_back(void **state)
{
	char dir[FIXTURE_PATH];
	struct sink_conf conf = {.name = "s"};
	struct cursor_mark mark = {.log = "a/b", .seq = 7}, back;
	struct err err = {0};

	(void)state;
	fixture_dir(dir);
	conf.state = dir;
	CHECK_INT("none", 0, sink_state_read(&conf, &back, &err));
	CHECK_INT(err.msg, 0, sink_state_keep(&conf, &mark, &err));
	CHECK_INT(err.msg, 1, sink_state_read(&conf, &back, &err));
	CHECK_INT("seq", 7, (int)back.seq);
	fixture_write(fixture_path(dir, "s.state"), "x", 1);
	CHECK_INT("no state", -1, sink_state_read(&conf, &back, &err));
	fixture_remove(dir);
}

/* --- the reader --- */

static uint64_t read_all(struct cursor *c, enum cursor_got *ret)
{
	struct cursor_line l;
	struct err err = {0};
	uint64_t n = 0;

	while ((*ret = cursor_next(c, &l, &err)) == CURSOR_LINE)
		n++;
	return n;
}

/* A log of this program's own, over several segments: read as a whole, and on from each record. */
static void test_the_reader_reads_what_was_written(void **state)
{
	char dir[FIXTURE_PATH];
	struct open_set open;
	struct audit_log_found found;
	struct audit_log *l;
	struct cursor c;
	struct cursor_mark mark = {.seq = 0};
	struct cursor_line one;
	struct err err = {0};
	enum cursor_got got;
	uint64_t all;

	(void)state;
	fixture_dir(dir);
	open_set_init(&open, 1000);
	l = fixture_open(dir, 65536, &open, &found);
	for (unsigned n = 0; n < 40; n++) {
		struct record r = fixture_decision(n, "deny");

		fixture_append(l, &r);
		if (n % 15 == 14)
			CHECK_INT(err.msg, 0, audit_log_rotate(l, &open, &err));
	}
	CHECK_INT(err.msg, 0, cursor_open(&c, dir, &err));
	CHECK_INT(err.msg, CURSOR_LINE, cursor_seek(&c, NULL, &err));
	all = read_all(&c, &got);
	CHECK_INT("the end", CURSOR_NONE, got);
	CHECK_INT("nothing behind it", CURSOR_NONE, cursor_idle(&c, true, &err));
	CHECK_INT("segments", 1, all > 40 + 4);
	for (uint64_t n = 0; n < all; n++) {
		CHECK_INT(err.msg, CURSOR_LINE, cursor_seek(&c, NULL, &err));
		for (uint64_t i = 0; i <= n; i++)
			CHECK_INT(err.msg, CURSOR_LINE, cursor_next(&c, &one, &err));
		snprintf(mark.log, sizeof(mark.log), "%s", c.log);
		mark.seq = one.seq;
		mark.hash = one.hash;
		CHECK_INT(err.msg, CURSOR_LINE, cursor_seek(&c, &mark, &err));
		CHECK_INT("what is left", (int)(all - n - 1), (int)read_all(&c, &got));
		mark.hash.bytes[0] ^= 1;
		got = cursor_seek(&c, &mark, &err);
		if (got == CURSOR_LINE) /* it is held against the next one */
			got = cursor_next(&c, &one, &err);
		CHECK_INT("another record", 1, got == CURSOR_DAMAGED);
	}
	cursor_close(&c);
	audit_log_close(l);
	open_set_fini(&open);
	fixture_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_syslog_has_its_form, begin, end),
		cmocka_unit_test_setup_teardown(test_syslog_takes_exports, begin, end),
		cmocka_unit_test_setup_teardown(test_journal_fields_go_by_length, begin, end),
		cmocka_unit_test(test_a_state_is_one_or_none),
		cmocka_unit_test(test_a_state_comes_back),
		cmocka_unit_test(test_the_reader_reads_what_was_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
