/*
 * test_base.c - the small things that everything stands on: caps hold, cut
 * messages stay cut, frames survive any chunking.
 */
#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "gate/base/clock.h"
#include "gate/base/err.h"
#include "gate/base/frame.h"
#include "gate/base/hash.h"
#include "gate/base/io.h"
#include "gate/base/log.h"
#include "gate/base/nearest.h"
#include "gate/base/span.h"
#include "gate/base/uuid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/check.h"

static void errors_are_wrapped_and_cut(void **state)
{
	struct err err = {0};
	char long_text[2 * ERR_MSG_MAX];

	(void)state;
	errno = ENOENT;
	CHECK_INT("returns", -1, err_sys(&err, "open %s", "x"));
	CHECK_STR("text", "open x: No such file or directory", err.msg);
	CHECK_INT("errno", ENOENT, err.sys);
	err_wrap(&err, "start");
	CHECK_STR("wrapped", "start: open x: No such file or directory", err.msg);
	memset(long_text, 'a', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	err_set(&err, ERR_INPUT, "%s", long_text);
	err_wrap(&err, "still terminated");
	CHECK_INT("cut", ERR_MSG_MAX - 1, strlen(err.msg));
}

static void errors_are_one_plain_line(void **state)
{
	struct err err = {0};

	(void)state;
	err_set(&err, ERR_INPUT, "operations: \"%s\" is unknown", "\tread\n\x1b[2J\x7f");
	CHECK_STR("set", "operations: \"?read??[2J?\" is unknown", err.msg);
	err_wrap(&err, "%s", "a\nb");
	CHECK_STR("wrapped", "a?b: operations: \"?read??[2J?\" is unknown", err.msg);
	errno = ENOENT;
	err_sys(&err, "open %s", "x\ry");
	CHECK_STR("of the system", "open x?y: No such file or directory", err.msg);
}

static void arenas_are_capped_and_reused(void **state)
{
	struct arena *a = arena_create(1000);
	unsigned char *p;

	(void)state;
	CHECK_INT("fits", 1, arena_take(a, 900) != NULL);
	CHECK_INT("does not fit", 1, arena_take(a, 101) == NULL);
	CHECK_INT("stays spent", 1, arena_take(a, 1) == NULL && arena_spent(a));
	arena_reset(a, 20000);
	CHECK_INT("whole again", 0, arena_spent(a));
	p = arena_take(a, 5000);
	for (size_t i = 0; i < 5000; i++)
		CHECK_INT("zeroed", 0, p[i]);
	memset(p, 0xff, 5000);
	CHECK_INT("more than one chunk", 1, arena_take(a, 9000) != NULL);
	arena_reset(a, 20000);
	p = arena_take(a, 5000);
	for (size_t i = 0; i < 5000; i++)
		CHECK_INT("zeroed again", 0, p[i]);
	arena_destroy(a);
}

static void buffers_are_queues_with_a_cap(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	buf_puts(&b, "0123456");
	buf_consume(&b, 5);
	buf_puts(&b, "789abcde");
	CHECK_INT("full to the byte", 10, buf_len(&b));
	CHECK_INT("content", 1, span_is(buf_span(&b), "56789abcde"));
	buf_puts(&b, "f");
	CHECK_INT("spent", 1, buf_spent(&b));
	CHECK_INT("nothing was added", 10, buf_len(&b));
	buf_clear(&b);
	buf_printf(&b, "%d-%s", 42, "x");
	CHECK_INT("printed", 1, span_is(buf_span(&b), "42-x"));
	buf_fini(&b);
}

static void frames_survive_any_chunking(void **state)
{
	int pair[2];
	struct err err = {0};
	struct frame_conn in;
	struct span got;
	char wire[4 + 5 + 4 + 0 + 4 + 3];
	size_t frames = 0;

	(void)state;
	memcpy(wire, "\5\0\0\0hello\0\0\0\0\3\0\0\0abc", sizeof(wire));
	CHECK_INT("pair", 0, io_pair(pair, &err));
	io_nonblock(pair[0], &err);
	frame_init(&in, pair[0], 1000);
	for (size_t i = 0; i < sizeof(wire); i++) {
		CHECK_INT("write", 1, write(pair[1], wire + i, 1));
		CHECK_INT("alive", 1, frame_fill(&in));
		while (frame_next(&in, &got)) {
			static const char *const want[] = {"hello", "", "abc"};

			CHECK_INT("frame", 1, span_is(got, want[frames]));
			frames++;
		}
	}
	CHECK_INT("all", 3, frames);
	close(pair[1]);
	CHECK_INT("end of file", 0, frame_fill(&in));
	frame_close(&in);
}

static void frames_too_large_end_the_connection(void **state)
{
	int pair[2];
	struct err err = {0};
	struct frame_conn c;
	struct span got;
	static char big[FRAME_MAX + 1];

	(void)state;
	CHECK_INT("pair", 0, io_pair(pair, &err));
	io_nonblock(pair[0], &err);
	frame_init(&c, pair[0], 1 << 20);
	CHECK_INT("not queued", 0,
		  frame_put(&c, (struct span){big, sizeof(big)}, (struct span){"", 0}));
	CHECK_INT("queued", 1, frame_put(&c, (struct span){big, 4}, (struct span){big, 4}));
	CHECK_INT("write", 4, write(pair[1], "\xff\xff\xff\x7f", 4));
	frame_fill(&c);
	CHECK_INT("no frame", 0, frame_next(&c, &got));
	CHECK_INT("closed", 0, frame_alive(&c));
	frame_close(&c);
	close(pair[1]);
}

static void descriptors_travel(void **state)
{
	int pair[2], passed[2], fds[IO_FDS_MAX];
	struct err err = {0};
	size_t count = 0;
	char tag = 0, byte = 0;

	(void)state;
	CHECK_INT("pair", 0, io_pair(pair, &err));
	CHECK_INT("pipe", 0, pipe(passed));
	CHECK_INT("sent", 0, io_send_fds(pair[0], 'x', &passed[1], 1, &err));
	CHECK_INT("received", 1, io_recv_fds(pair[1], &tag, fds, &count, &err));
	CHECK_INT("tag", 'x', tag);
	CHECK_INT("one", 1, count);
	CHECK_INT("it works", 1, write(fds[0], "y", 1));
	CHECK_INT("read", 1, read(passed[0], &byte, 1));
	close(pair[0]);
	CHECK_INT("end of file", 0, io_recv_fds(pair[1], &tag, fds, &count, &err));
	close(fds[0]);
	close(pair[1]);
	close(passed[0]);
	close(passed[1]);
}

static void hashes_and_ids(void **state)
{
	char hex[HASH_HEX_LEN + 1], a[UUID_TEXT_LEN + 1], b[UUID_TEXT_LEN + 1];
	struct hash h = hash_of(span_of("abc")), again;

	(void)state;
	hash_hex(&h, hex);
	CHECK_STR("FIPS 180-2", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
		  hex);
	CHECK_INT("parsed", 0, hash_parse(span_of(hex), &again));
	CHECK_INT("same", 0, memcmp(&h, &again, sizeof(h)));
	CHECK_INT("digits", 1, hash_is_hex(span_of(hex)));
	CHECK_INT("one less", 0, hash_is_hex(span_of(hex + 1)));
	CHECK_INT("none", 0, hash_is_hex(span_of("")));
	hex[0] = 'B';
	CHECK_INT("upper case is not ours", -1, hash_parse(span_of(hex), &again));
	CHECK_INT("nor are these digits", 0, hash_is_hex(span_of(hex)));
	again = hash_two(span_of("a"), span_of("bc"));
	CHECK_INT("two parts", 0, memcmp(&h, &again, sizeof(h)));
	for (int i = 0; i < 1000; i++) {
		uuid_make(a);
		uuid_make(b);
		CHECK_INT("version", '7', a[14]);
		CHECK_INT("variant", 1, strchr("89ab", a[19]) != NULL);
		CHECK_INT("differ", 1, strcmp(a, b) != 0);
	}
}

static void time_is_written_in_utc(void **state)
{
	char text[CLOCK_TEXT_MAX];

	(void)state;
	clock_format(1704067200123456789ull, text);
	CHECK_STR("text", "2024-01-01T00:00:00.123456789Z", text);
}

/* Lines that a caller can cause are few, and none is forged. */
static void log_lines_are_clean_and_few(void **state)
{
	struct log_kind kind = {0};
	int saved = dup(STDERR_FILENO), ends[2], lines = 0;
	char got[8192] = "";
	ssize_t n;

	(void)state;
	CHECK_INT("pipe", 0, pipe(ends));
	dup2(ends[1], STDERR_FILENO);
	log_line("%s", "a\nsallyport[x 1]: forged\x1b[0m");
	for (int i = 0; i < 1000; i++)
		log_often(&kind, "flood %d", i);
	kind.since_ms = 0; /* as if the time had passed */
	log_often(&kind, "later");
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(ends[1]);
	n = read(ends[0], got, sizeof(got) - 1);
	CHECK_INT("read", 1, n > 0);
	for (char *p = got; *p; p++)
		lines += *p == '\n';
	CHECK_INT("lines", 1 + LOG_BURST + 2, lines);
	CHECK_INT("escaped", 1, strstr(got, "a\\x0asallyport[x 1]: forged\\x1b[0m") != NULL);
	CHECK_INT("counted", 1, strstr(got, "995 lines like the next were left out") != NULL);
	close(ends[0]);
}

static int listen_at(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	unlink(path);
	CHECK_INT("bind", 0, bind(fd, (const struct sockaddr *)&at, sizeof(at)));
	return fd;
}

/*
 * The system's log has them, also when it was started anew, or nobody reads what the gate
 * writes; a flood is counted.
 */
static void alarms_reach_the_systems_log(void **state)
{
	int saved = dup(STDERR_FILENO), ends[2], fd, count = 0;
	char path[64], filler[4096] = "", got[8192];
	ssize_t n;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/sallyport-log-%d", (int)getpid());
	close(listen_at(path)); /* there, and nobody listens */
	CHECK_INT("pipe", 0, pipe2(ends, O_NONBLOCK));
	while (write(ends[1], filler, sizeof(filler)) > 0)
		;
	fcntl(ends[1], F_SETFL, 0); /* who writes to it now waits */
	dup2(ends[1], STDERR_FILENO);
	log_alarm_syslog(path);
	log_alarm("nobody hears this");
	fd = listen_at(path);
	log_alarm("the log is sealed: %s", "x\nsallyport: forged");
	for (int i = 0; i < 1000; i++)
		log_alarm("flood %d", i);
	dup2(saved, STDERR_FILENO);
	close(saved);
	n = recv(fd, got, sizeof(got) - 1, 0);
	CHECK_INT("it came", 1, n > 0);
	got[n > 0 ? n : 0] = '\0';
	CHECK_INT("an alert", 1, strncmp(got, "<33>sallyport[", 14) == 0);
	CHECK_INT("whole, one line", 1,
		  strstr(got, "ALARM the log is sealed: x\\x0asallyport: forged") != NULL);
	while (recv(fd, got, sizeof(got), 0) > 0)
		count++;
	CHECK_INT("few of many", 1, count > 5 && count < 30);
	close(fd);
	close(ends[0]);
	close(ends[1]);
	unlink(path);
}

/* Days that there are, and those that there are not. */
static void times_are_read(void **state)
{
	static const struct {
		const char *text;
		int64_t want;
	} rows[] = {
		{"1970-01-01", 0},
		{"2000-02-29", 951782400},
		{"2026-05-28T20:26:40Z", 1780000000},
		{"2100-03-01", 4107542400},
		{"2026-02-29", -1},
		{"2100-02-29", -1},
		{"2026-04-31", -1},
		{"2026-13-01", -1},
		{"2026-00-10", -1},
		{"1969-12-31", -1},
		{"2026-05-28T24:00:00Z", -1},
		{"2026-05-28T20:26:60Z", -1},
		{"2026-05-28T20:26:40", -1},
		{"2026-5-28", -1},
		{"2026-05-28 ", -1},
		{"+026-05-28", -1},
		{"", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_INT(rows[i].text, rows[i].want,
			  clock_parse(rows[i].text, strlen(rows[i].text)));
}

/* A third of a name's letters may be wrong; what is further away is a guess, and none is made. */
static void the_nearest_name_is_found(void **state)
{
	static const char *const known[] = {"socket", "owner",   "group",
					    "mode",   "backend", "volume.create"};
	static const struct {
		const char *typed, *want;
	} cases[] = {
		{"sockt", "socket"},
		{"sokcet", "socket"},
		{"Mode", "mode"},
		{"bakcend", "backend"},
		{"grp", "group"},
		{"x", ""},
		{"zzzzz", ""},
		{"", ""},
		{"volkreat", ""},
		{"volume.crate", "volume.create"},
		{"socketsocketsocketsocketsocketsocketsocketsocket1", ""},
	};

	char text[NEAREST_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct nearest near = nearest_to(span_of(cases[i].typed));

		for (size_t j = 0; j < sizeof(known) / sizeof(*known); j++)
			nearest_offer(&near, known[j]);
		CHECK_STR(cases[i].typed, cases[i].want, near.best ? near.best : "");
		CHECK_STR(cases[i].typed, *cases[i].want ? "; the nearest is " : "",
			  strncmp(nearest_said(near.best, text), "; the nearest is ", 17) == 0
				  ? "; the nearest is "
				  : text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_read),
		cmocka_unit_test(errors_are_wrapped_and_cut),
		cmocka_unit_test(errors_are_one_plain_line),
		cmocka_unit_test(arenas_are_capped_and_reused),
		cmocka_unit_test(buffers_are_queues_with_a_cap),
		cmocka_unit_test(frames_survive_any_chunking),
		cmocka_unit_test(frames_too_large_end_the_connection),
		cmocka_unit_test(descriptors_travel),
		cmocka_unit_test(hashes_and_ids),
		cmocka_unit_test(time_is_written_in_utc),
		cmocka_unit_test(the_nearest_name_is_found),
		cmocka_unit_test(log_lines_are_clean_and_few),
		cmocka_unit_test(alarms_reach_the_systems_log),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
