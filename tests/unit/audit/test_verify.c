/* `audit verify` and `audit tail`: what they say of a log, also of one that is written to. */
#include "tests/unit/audit/fixture.h"
#include "tests/unit/check.h"

#include "audit/tree_priv.h"

#include "gate/base/clock.h"
#include "gate/base/io.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_FILE "00000000000000000000.log"
#define A_ID       "01900000-0000-7000-8000-00000000000a"
#define B_ID       "01900000-0000-7000-8000-00000000000b"
#define OPEN       "\"type\":\"log_open\""
#define START      "\"type\":\"gate_start\""
#define READ       "\"type\":\"read\""
#define ALLOW_A    "\"type\":\"decision\",\"id\":\"" A_ID "\",\"verdict\":\"allow\""
#define DENY_A     "\"type\":\"decision\",\"id\":\"" A_ID "\",\"verdict\":\"deny\""
#define OUTCOME_A  "\"type\":\"outcome\",\"id\":\"" B_ID "\",\"of\":\"" A_ID "\""
#define UNKNOWN_A  "\"type\":\"outcome_unknown\",\"of\":\"" A_ID "\""

#define PATIENCE_MS 20000

static struct verify_report verified(const char *dir)
{
	struct verify_report report;

	verify_log(dir, NULL, &report);
	return report;
}

/* A segment that has others before it begins with what these were. */
static const char *with_edge(const char *body, const struct tree *tree)
{
	static char text[TREE_EDGE_MAX + 64], edge[TREE_EDGE_MAX];

	if (tree->size == 0 || strcmp(body, OPEN) != 0)
		return body;
	tree_edge_format(tree, edge);
	snprintf(text, sizeof(text), "%s,\"edge\":%s", body, edge);
	return text;
}

/* A file with lines that are good one by one; "+" begins the next epoch, "~" another log. */
static void write_lines(const char *path, const char *const *bodies, uint64_t seq,
			struct hash *hash)
{
	struct line_writer w = {.origin = "test/log", .epoch = 1};
	static struct tree tree;
	struct buf out;

	if (seq == 0)
		tree = (struct tree){0};
	buf_init(&out, 1 << 20);
	line_writer_set(&w, seq, hash);
	for (; *bodies; bodies++) {
		const char *body = *bodies;

		if (*body == '+') {
			w.epoch++;
			body++;
		}
		if (*body == '~') {
			strcpy(w.origin, "other/log");
			body++;
		}
		CHECK_INT("fits", 1, line_write(&w, &out, span_of(with_edge(body, &tree))));
		tree_add(&tree, &w.hash, NULL);
	}
	*hash = w.hash;
	fixture_write(path, buf_span(&out).at, buf_len(&out));
	buf_fini(&out);
}

/* Logs whose hashes are all right, since whoever made them could make hashes. */
static void says_what_is_wrong(void **state)
{
	static const struct {
		const char *label;
		const char *bodies[8];
		enum verify_result want;
		uint64_t bad_seq;
		const char *what;
	} cases[] = {
		{"fine", {OPEN, START, READ}, VERIFY_FINE, 0, ""},
		{"a pair", {OPEN, START, ALLOW_A, OUTCOME_A}, VERIFY_FINE, 0, ""},
		{"an open decision", {OPEN, START, ALLOW_A}, VERIFY_FINE, 0, ""},
		{"unknown", {OPEN, START, ALLOW_A, UNKNOWN_A}, VERIFY_FINE, 0, ""},
		{"sealed", {OPEN, START, "\"type\":\"log_seal\",\"count\":3"}, VERIFY_FINE, 0, ""},
		{"the next run", {OPEN, START, "+" START, READ}, VERIFY_FINE, 0, ""},
		{"a future type", {OPEN, "\"type\":\"novelty\",\"x\":1"}, VERIFY_FINE, 0, ""},
		{"outcome of nothing",
		 {OPEN, START, OUTCOME_A},
		 VERIFY_ALTERED,
		 2,
		 "no open decision"},
		{"outcome of a denial",
		 {OPEN, DENY_A, OUTCOME_A},
		 VERIFY_ALTERED,
		 2,
		 "no open decision"},
		{"two outcomes",
		 {OPEN, ALLOW_A, OUTCOME_A, OUTCOME_A},
		 VERIFY_ALTERED,
		 3,
		 "no open decision"},
		{"unknown after outcome",
		 {OPEN, ALLOW_A, OUTCOME_A, UNKNOWN_A},
		 VERIFY_ALTERED,
		 3,
		 "no open decision"},
		{"an id twice", {OPEN, ALLOW_A, ALLOW_A}, VERIFY_ALTERED, 2, "in use"},
		{"an epoch begins anyhow", {OPEN, START, "+" READ}, VERIFY_ALTERED, 2, "epoch"},
		{"epochs jump", {OPEN, "++" START}, VERIFY_ALTERED, 1, ""},
		{"no log_open", {START, READ}, VERIFY_ALTERED, 0, "log_open"},
		{"log_open in the middle", {OPEN, START, OPEN}, VERIFY_ALTERED, 2, "log_open"},
		{"behind log_seal",
		 {OPEN, "\"type\":\"log_seal\",\"count\":2", READ},
		 VERIFY_ALTERED,
		 2,
		 "log_seal"},
		{"a wrong count",
		 {OPEN, "\"type\":\"log_seal\",\"count\":3"},
		 VERIFY_ALTERED,
		 1,
		 "counts"},
		{"another log", {OPEN, START, "~" READ}, VERIFY_ALTERED, 2, "another log"},
		{"no record", {OPEN, "\"id\":\"x\""}, VERIFY_ALTERED, 1, "no record"},
	};
	char dir[FIXTURE_PATH];

	(void)state;
	fixture_dir(dir);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct hash hash = {{0}};
		struct verify_report report;

		write_lines(fixture_path(dir, FIRST_FILE), cases[i].bodies, 0, &hash);
		report = verified(dir);
		CHECK_INT(cases[i].label, cases[i].want, report.result);
		CHECK_INT(cases[i].label, cases[i].bad_seq, report.bad_seq);
		if (!strstr(report.what, cases[i].what))
			fail_msg("%s: says \"%s\"", cases[i].label, report.what);
		CHECK_INT(cases[i].label, cases[i].want == VERIFY_FINE, report.what[0] == '\0');
	}
	fixture_remove(dir);
}

static void segments_must_fit_together(void **state)
{
	static const char *const whole[] = {OPEN, START, "\"type\":\"log_seal\",\"count\":3", NULL};
	static const char *const no_seal[] = {OPEN, START, READ, NULL};
	static const char *const second[] = {OPEN, READ, NULL};
	const char *first_path, *second_path;
	const struct hash zero = {{0}};
	char dir[FIXTURE_PATH];
	struct hash hash = zero;
	size_t len;
	char *bytes;

	(void)state;
	fixture_dir(dir);
	first_path = fixture_path(dir, FIRST_FILE);
	second_path = fixture_path(dir, "00000000000000000003.log");
	write_lines(first_path, whole, 0, &hash);
	write_lines(second_path, second, 3, &hash);
	CHECK_STR("fine", "", verified(dir).what);

	hash = zero;
	write_lines(second_path, second, 3, &hash);
	CHECK_INT("another chain", VERIFY_ALTERED, verified(dir).result);
	CHECK_INT("another chain", 3, verified(dir).bad_seq);

	hash = zero;
	write_lines(first_path, no_seal, 0, &hash);
	write_lines(second_path, second, 3, &hash);
	CHECK_INT("no log_seal", VERIFY_GAP, verified(dir).result);

	hash = zero;
	write_lines(first_path, whole, 0, &hash);
	bytes = fixture_read(first_path, &len);
	bytes = realloc(bytes, len + 10);
	memset(bytes + len, 0, 10);
	fixture_write(first_path, bytes, len + 10);
	free(bytes);
	write_lines(second_path, second, 3, &hash);
	CHECK_INT("zeros in a finished segment", VERIFY_ALTERED, verified(dir).result);
	fixture_remove(dir);
}

static void an_anchor_finds_what_was_cut(void **state)
{
	static const char *const long_one[] = {OPEN, START, READ, READ, NULL};
	static const char *const short_one[] = {OPEN, START, READ, NULL};
	static const char *const other_one[] = {OPEN, START, START, READ, NULL};
	struct verify_anchor last, first;
	struct verify_report report;
	struct hash hash = {{0}};
	char dir[FIXTURE_PATH];
	const char *path;

	(void)state;
	fixture_dir(dir);
	path = fixture_path(dir, FIRST_FILE);
	write_lines(path, long_one, 0, &hash);
	report = verified(dir);
	last = (struct verify_anchor){3, report.head};
	CHECK_INT("head", 0, memcmp(&hash, &report.head, sizeof(hash)));
	verify_log(dir, &(struct verify_options){.receipt = &last}, &report);
	CHECK_INT("itself", VERIFY_FINE, report.result);
	first = last;
	first.seq = 2;
	verify_log(dir, &(struct verify_options){.receipt = &first}, &report);
	CHECK_INT("a hash of another record", VERIFY_CUT, report.result);
	CHECK_INT("a hash of another record", 2, report.bad_seq);

	memset(&hash, 0, sizeof(hash));
	write_lines(path, short_one, 0, &hash);
	CHECK_INT("cut, without an anchor", VERIFY_FINE, verified(dir).result);
	verify_log(dir, &(struct verify_options){.receipt = &last}, &report);
	CHECK_INT("cut", VERIFY_CUT, report.result);

	memset(&hash, 0, sizeof(hash));
	write_lines(path, other_one, 0, &hash);
	verify_log(dir, &(struct verify_options){.receipt = &last}, &report);
	CHECK_INT("rewritten", VERIFY_CUT, report.result);
	fixture_remove(dir);
}

static void what_cannot_be_read_is_said(void **state)
{
	char dir[FIXTURE_PATH];

	(void)state;
	fixture_dir(dir);
	CHECK_INT("no segments", VERIFY_UNREADABLE, verified(dir).result);
	CHECK_INT("says so", 1, verified(dir).what[0] != '\0');
	CHECK_INT("link", 0, symlink("/etc/passwd", fixture_path(dir, FIRST_FILE)));
	CHECK_INT("symbolic link", VERIFY_UNREADABLE, verified(dir).result);
	fixture_remove(dir);
	CHECK_INT("no directory", VERIFY_UNREADABLE, verified(dir).result);
	CHECK_INT("says so", 1, verified(dir).what[0] != '\0');
}

/* --- a log that is written to --- */

/* Writes groups and rotates, until the pipe is closed on the other side. */
static void write_for_ever(const char *dir, int until)
{
	struct pollfd p = {.fd = until, .events = POLLIN};
	struct audit_log_found found;
	struct open_set set;
	struct audit_log *l;
	struct err err;
	struct record start = {.type = RECORD_GATE_START};

	open_set_init(&set, 10);
	l = fixture_open(dir, 1 << 17, &set, &found);
	audit_log_add_own(l, &start);
	/* In bursts, so that readers can keep up with a log that grows. */
	for (unsigned n = 0; poll(&p, 1, n % 4 == 3) == 0; n++) {
		for (unsigned i = 0; i < 1 + n % 23; i++) {
			struct record r = fixture_decision(n, "deny");

			if (audit_log_add_own(l, &r) < 0)
				abort();
		}
		if (audit_log_commit(l, &err) < 0 ||
		    (audit_log_full(l) && audit_log_rotate(l, &set, &err) < 0))
			abort();
	}
	audit_log_close(l);
}

static pid_t start_writer(const char *dir, int *ret_end)
{
	int fds[2];
	pid_t pid;

	CHECK_INT("pipe", 0, pipe2(fds, O_CLOEXEC));
	pid = fork();
	if (pid == 0) {
		close(fds[1]);
		write_for_ever(dir, fds[0]);
		_exit(0);
	}
	close(fds[0]);
	*ret_end = fds[1];
	return pid;
}

static void check_ended(pid_t pid)
{
	int status;

	CHECK_INT("waitpid", pid, waitpid(pid, &status, 0));
	CHECK_INT("ended well", 0, status);
}

static void a_running_log_verifies(void **state)
{
	struct verify_report report = {0};
	char dir[FIXTURE_PATH];
	int end, looks = 0;
	pid_t writer;

	(void)state;
	fixture_dir(dir);
	writer = start_writer(dir, &end);
	while (looks < 60 || report.records < 3000) {
		report = verified(dir);
		if (report.records == 0 && report.result == VERIFY_UNREADABLE)
			continue; /* it has not begun yet */
		CHECK_STR("verify", "", report.what);
		CHECK_INT("verify", VERIFY_FINE, report.result);
		looks++;
	}
	close(end);
	check_ended(writer);
	CHECK_STR("in the end", "", verified(dir).what);
	CHECK_INT("in the end", 0, verified(dir).torn_tail);
	fixture_remove(dir);
}

/* --- tail --- */

/* What log_tail() prints, as text (malloc). */
static char *tail_text(const char *dir, uint64_t count)
{
	char path[] = "/tmp/sallyport-tail-XXXXXX";
	int fd = mkstemp(path);
	struct err err = {0};
	size_t len;
	char *text;

	assert_true(fd >= 0);
	CHECK_INT("tail", 0, log_tail(dir, count, false, fd, &err));
	text = fixture_read(path, &len);
	close(fd);
	unlink(path);
	return text;
}

static int count_of(const char *text, const char *what)
{
	int count = 0;

	for (; (text = strstr(text, what)); text++)
		count++;
	return count;
}

static void tail_prints_the_last_records(void **state)
{
	struct audit_log_found found;
	char dir[FIXTURE_PATH];
	struct open_set set;
	struct audit_log *l;
	struct err err = {0};

	(void)state;
	fixture_dir(dir);
	open_set_init(&set, 10);
	l = fixture_open(dir, 8192, &set, &found);
	for (unsigned n = 0; n < 30; n++) {
		struct record r = fixture_read_record(n);

		fixture_append(l, &r);
		if (n % 10 == 9)
			CHECK_INT("rotate", 0, audit_log_rotate(l, &set, &err));
	}
	for (uint64_t count = 0; count < 50; count++) {
		char *text = tail_text(dir, count), last[40], first[40];
		uint64_t all = l->writer.seq, lines = count < all ? count : all;

		CHECK_INT("lines", lines, count_of(text, "\n"));
		snprintf(last, sizeof(last), "\"seq\":%llu,", (unsigned long long)all - 1);
		snprintf(first, sizeof(first), "\"seq\":%llu,", (unsigned long long)(all - lines));
		CHECK_INT("the last", lines > 0, count_of(text, last));
		CHECK_INT("the first", lines > 0, count_of(text, first));
		free(text);
	}
	audit_log_close(l);
	fixture_remove(dir);
	CHECK_INT("no log", -1, log_tail(dir, 1, false, 1, &err));
	CHECK_INT("says so", 1, err.msg[0] != '\0');
}

/* Reads what a follower prints; checks that sequence numbers have no gap. */
static void read_follower(int fd, uint64_t lines)
{
	struct buf in;
	uint64_t next = 0, seen = 0;

	buf_init(&in, 1 << 20);
	while (seen < lines) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		char *at = buf_reserve(&in, 65536);
		struct span rest, text;
		ssize_t n;

		CHECK_INT("in time", 1, poll(&p, 1, PATIENCE_MS));
		n = read(fd, at, 65536);
		CHECK_INT("read", 1, n > 0);
		buf_commit(&in, (size_t)n);
		for (rest = buf_span(&in); span_cut(&rest, '\n', &text); seen++) {
			struct line line;

			CHECK_INT("whole lines", 1, line_split(text, &line));
			CHECK_INT("good lines", 1, line_hash_ok(text, &line));
			if (seen)
				CHECK_INT("one after the other", next, line.seq);
			next = line.seq + 1;
			buf_consume(&in, text.len + 1);
		}
	}
	buf_fini(&in);
}

static void tail_follows_over_segments(void **state)
{
	struct err err = {0};
	char dir[FIXTURE_PATH];
	pid_t writer, follower;
	int end, out[2];

	(void)state;
	fixture_dir(dir);
	writer = start_writer(dir, &end);
	while (verified(dir).records < 10)
		;
	CHECK_INT("pipe", 0, pipe2(out, O_CLOEXEC));
	follower = fork();
	if (follower == 0) {
		signal(SIGPIPE, SIG_IGN);
		close(out[0]);
		close(end);
		/* It ends when nobody reads any more, and says so. */
		_exit(log_tail(dir, 5, true, out[1], &err) == -1 && err.msg[0] ? 0 : 1);
	}
	close(out[1]);
	read_follower(out[0], 2000); /* several segments of 128 KiB */
	close(end);
	check_ended(writer);
	close(out[0]);
	check_ended(follower);
	fixture_remove(dir);
}

/* Between the end of a segment and the next one's first line a crash may lie, and a start. */
static void tail_waits_for_the_next_segment(void **state)
{
	static const char *const first[] = {OPEN, START, "\"type\":\"log_seal\",\"count\":3", NULL};
	static const char *const second[] = {OPEN, READ, NULL};
	struct pollfd p = {.events = POLLIN};
	struct hash hash = {{0}};
	struct err err = {0};
	char dir[FIXTURE_PATH];
	pid_t follower;
	int out[2];

	(void)state;
	fixture_dir(dir);
	write_lines(fixture_path(dir, FIRST_FILE), first, 0, &hash);
	CHECK_INT("pipe", 0, pipe2(out, O_CLOEXEC));
	follower = fork();
	if (follower == 0) {
		signal(SIGPIPE, SIG_IGN);
		close(out[0]);
		_exit(log_tail(dir, 5, true, out[1], &err) == -1 ? 0 : 1);
	}
	close(out[1]);
	read_follower(out[0], 3);
	p.fd = out[0];
	CHECK_INT("nothing more", 0, poll(&p, 1, 350)); /* it looked a few times */
	write_lines(fixture_path(dir, "next"), second, 3, &hash);
	CHECK_INT("rename", 0,
		  rename(fixture_path(dir, "next"), fixture_path(dir, "00000000000000000003.log")));
	read_follower(out[0], 2);
	close(out[0]);
	check_ended(follower);
	fixture_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_is_wrong),
		cmocka_unit_test(segments_must_fit_together),
		cmocka_unit_test(an_anchor_finds_what_was_cut),
		cmocka_unit_test(what_cannot_be_read_is_said),
		cmocka_unit_test(a_running_log_verifies),
		cmocka_unit_test(tail_prints_the_last_records),
		cmocka_unit_test(tail_follows_over_segments),
		cmocka_unit_test(tail_waits_for_the_next_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
