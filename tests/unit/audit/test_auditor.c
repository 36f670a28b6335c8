/* The auditor as a process of its own, with workers that may die, and killed itself. */
#include "audit/auditor.h"
#include "audit/client.h"
#include "audit/wire_priv.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "tests/unit/audit/faults.h"
#include "tests/unit/audit/fixture.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 20000

/* A running auditor. */
struct gate {
	char dir[FIXTURE_PATH];
	pid_t pid;
	int control;
	int syncs_fd; /* it writes here how often it synced */
	struct fault fault;
	unsigned flush_ms, claim_ms;
	uint64_t segment_bytes;
};

static void child(const struct gate *g, int control, int syncs_fd)
{
	const struct auditor_conf conf = {.dir = g->dir,
					  .origin = "test/log",
					  .segment_bytes = g->segment_bytes,
					  .flush_ms = g->flush_ms,
					  .claim_ms = g->claim_ms,
					  .build = "test"};
	struct err err = {0};
	struct auditor *a = auditor_open(&conf, &err);
	int status, syncs;

	if (!a) {
		fprintf(stderr, "auditor: %s\n", err.msg);
		_exit(98);
	}
	faults_set(g->fault);
	status = auditor_run(a, control);
	syncs = faults_calls(FAULT_FDATASYNC);
	if (write(syncs_fd, &syncs, sizeof(syncs)) != (ssize_t)sizeof(syncs))
		_exit(97);
	if ((status == AUDITOR_STOPPED) != (auditor_why(a)[0] == '\0'))
		_exit(96);
	auditor_close(a);
	_exit(status);
}

static void gate_start(struct gate *g)
{
	struct err err = {0};
	int pair[2], syncs[2];

	CHECK_INT("pair", 0, io_pair(pair, &err));
	CHECK_INT("pipe", 0, pipe2(syncs, O_CLOEXEC));
	g->pid = fork();
	if (g->pid == 0) {
		close(pair[0]);
		child(g, pair[1], syncs[1]);
	}
	close(pair[1]);
	close(syncs[1]);
	g->control = pair[0];
	g->syncs_fd = syncs[0];
}

static void gate_init(struct gate *g)
{
	*g = (struct gate){.flush_ms = 5, .claim_ms = 60000, .segment_bytes = 1 << 20};
	fixture_dir(g->dir);
}

static int gate_wait(struct gate *g)
{
	int status;

	CHECK_INT("waitpid", g->pid, waitpid(g->pid, &status, 0));
	close(g->syncs_fd);
	if (g->control >= 0)
		close(g->control);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int gate_stop(struct gate *g)
{
	close(g->control);
	g->control = -1;
	return gate_wait(g);
}

static void gate_kill(struct gate *g)
{
	kill(g->pid, SIGKILL);
	CHECK_INT("killed", 1000 + SIGKILL, gate_wait(g));
}

/* A new connection to the auditor. */
static int gate_connect(struct gate *g)
{
	struct err err = {0};
	int pair[2];

	CHECK_INT("pair", 0, io_pair(pair, &err));
	CHECK_INT("non-blocking", 0, io_nonblock(pair[0], &err));
	CHECK_INT("send", 0, io_send_fds(g->control, 'w', &pair[1], 1, &err));
	close(pair[1]);
	return pair[0];
}

/* --- workers --- */

/* One turn of a worker's loop. */
static void turn(struct audit_client *c, int wait_ms)
{
	struct pollfd p = {.fd = audit_client_fd(c), .events = POLLIN};

	audit_client_flush(c);
	p.events = (short)(POLLIN | (audit_client_waiting(c) ? POLLOUT : 0));
	if (poll(&p, 1, wait_ms) > 0)
		audit_client_read(c);
	audit_client_tick(c, clock_boot_ms());
}

static void until_up(struct audit_client *c)
{
	for (uint64_t end = clock_boot_ms() + PATIENCE_MS; !audit_client_up(c);) {
		turn(c, 10);
		CHECK_INT("up in time", 1, clock_boot_ms() < end);
	}
}

static struct audit_client *worker_start(struct gate *g)
{
	struct audit_client *c = audit_client_create();

	assert_non_null(c);
	audit_client_attach(c, gate_connect(g));
	until_up(c);
	return c;
}

struct asked {
	int calls;
	bool granted;
	struct audit_mark mark;
};

static void on_done(void *arg, const struct audit_receipt *receipt)
{
	struct asked *a = arg;

	a->calls++;
	a->granted = receipt != NULL;
	if (receipt)
		a->mark = (struct audit_mark){receipt->seq, receipt->hash};
}

/* Asks and waits for the answer. */
static struct asked decide(struct audit_client *c, unsigned n, const char *verdict)
{
	const struct record r = fixture_decision(n, verdict);
	struct asked asked = {0};

	if (audit_require(c, &r, on_done, &asked) < 0)
		return asked;
	for (uint64_t end = clock_boot_ms() + PATIENCE_MS; !asked.calls;) {
		turn(c, 10);
		CHECK_INT("answered in time", 1, clock_boot_ms() < end);
	}
	return asked;
}

static void tell_outcome(struct audit_client *c, unsigned n)
{
	const struct record r = fixture_outcome(n);

	CHECK_INT("tell", 0, audit_tell(c, &r));
	audit_client_flush(c);
}

static struct verify_report verified(const struct gate *g)
{
	struct verify_report report;

	verify_log(g->dir, NULL, &report);
	CHECK_STR("verify", "", report.what);
	CHECK_INT("verify", VERIFY_FINE, report.result);
	return report;
}

static void check_anchor(const struct gate *g, const struct audit_mark *mark)
{
	const struct verify_anchor anchor = {mark->seq, mark->hash};
	struct verify_report report;

	verify_log(g->dir, &anchor, &report);
	CHECK_STR("anchor", "", report.what);
	CHECK_INT("anchor", VERIFY_FINE, report.result);
}

/* All lines of the log, one after the other (malloc). */
static char *whole_log(const struct gate *g)
{
	int dir_fd = open(g->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *all = calloc(1, 1), name[SEGMENT_NAME_MAX];
	struct segments segments;
	struct err err = {0};

	CHECK_INT("list", 0, segments_list(dir_fd, &segments, &err));
	for (size_t i = 0; i < segments.count; i++) {
		size_t len, old = strlen(all);
		char *bytes;

		segment_name(segments.first[i], name);
		bytes = fixture_read(fixture_path(g->dir, name), &len);
		len = strlen(bytes);
		all = realloc(all, old + len + 1);
		memcpy(all + old, bytes, len + 1);
		free(bytes);
	}
	segments_free(&segments);
	close(dir_fd);
	return all;
}

static int count_in_log(const struct gate *g, const char *text)
{
	char *all = whole_log(g);
	int count = 0;

	for (const char *at = all; (at = strstr(at, text)); at++)
		count++;
	free(all);
	return count;
}

/* Waits until the log says text so often. */
static void until_log_says(const struct gate *g, int want, const char *text)
{
	const struct timespec pause = {0, 2000000};

	for (uint64_t end = clock_boot_ms() + PATIENCE_MS; count_in_log(g, text) < want;) {
		nanosleep(&pause, NULL);
		if (clock_boot_ms() > end)
			fail_msg("the log does not say %s", text);
	}
	CHECK_INT(text, want, count_in_log(g, text));
}

/* --- tests --- */

static void starts_and_stops(void **state)
{
	struct audit_client *c;
	struct asked asked;
	struct gate g;
	char *all;

	(void)state;
	gate_init(&g);
	gate_start(&g);
	c = worker_start(&g);
	kill(g.pid, SIGTERM);
	kill(g.pid, SIGINT);
	asked = decide(c, 1, "deny");
	CHECK_INT("signals do not stop it", 1, asked.granted);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	turn(c, 0);
	CHECK_INT("down", 0, audit_client_up(c));
	CHECK_INT("log_open, gate_start, decision, gate_stop", 4, verified(&g).records);
	all = whole_log(&g);
	CHECK_INT("gate_stop is the last", 1, strstr(strstr(all, "gate_stop"), "\n")[1] == '\0');
	free(all);
	gate_start(&g);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	CHECK_INT("a clean start", 0, count_in_log(&g, "gate_recover"));
	CHECK_INT("epochs", 1, count_in_log(&g, "\"ep\":2,") > 0);
	audit_client_destroy(c);
	fixture_remove(g.dir);
}

static void an_end_without_gate_stop_is_on_record(void **state)
{
	struct gate g;

	(void)state;
	gate_init(&g);
	gate_start(&g);
	audit_client_destroy(worker_start(&g));
	gate_kill(&g);
	gate_start(&g);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	CHECK_INT("gate_recover", 1, count_in_log(&g, "\"type\":\"gate_recover\""));
	verified(&g);
	fixture_remove(g.dir);
}

static void writes_what_workers_tell(void **state)
{
	const struct record read_record = fixture_read_record(500);
	struct audit_client *c;
	struct verify_report report;
	struct gate g;

	(void)state;
	gate_init(&g);
	gate_start(&g);
	c = worker_start(&g);
	for (unsigned n = 0; n < 20; n++) {
		struct asked asked = decide(c, n, n % 2 ? "allow" : "deny");

		CHECK_INT("granted", 1, asked.granted);
		check_anchor(&g, &asked.mark); /* it is there when the receipt is */
		if (n % 2)
			tell_outcome(c, n);
		CHECK_INT("tell", 0, audit_tell(c, &read_record));
	}
	audit_client_flush(c);
	until_log_says(&g, 20, "\"type\":\"read\"");
	until_log_says(&g, 10, "\"type\":\"outcome\"");
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	report = verified(&g);
	CHECK_INT("decisions", 20, report.decisions);
	CHECK_INT("allowed", 10, report.allowed);
	CHECK_INT("denied", 10, report.denied);
	CHECK_INT("outcomes", 10, report.outcomes);
	CHECK_INT("reads", 20, report.reads);
	CHECK_INT("open", 0, report.open_decisions);
	CHECK_INT("unknown", 0, report.unknown_outcomes);
	audit_client_destroy(c);
	fixture_remove(g.dir);
}

/* What was sent before the end is written, and only then gate_stop. */
static void last_words_are_written(void **state)
{
	struct audit_client *c;
	struct gate g;

	(void)state;
	for (int round = 0; round < 10; round++) {
		gate_init(&g);
		gate_start(&g);
		c = worker_start(&g);
		for (unsigned n = 0; n < 50; n++)
			CHECK_INT("granted", 1, decide(c, n, "allow").granted);
		for (unsigned n = 0; n < 50; n++)
			tell_outcome(c, n);
		audit_client_destroy(c);
		CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
		CHECK_INT("outcomes", 50, verified(&g).outcomes);
		CHECK_INT("unknown", 0, verified(&g).unknown_outcomes);
		fixture_remove(g.dir);
	}
}

static void reads_are_flushed_together(void **state)
{
	const struct record r = fixture_read_record(1);
	struct audit_client *c;
	struct gate g;
	int syncs;

	(void)state;
	gate_init(&g);
	g.flush_ms = 50;
	gate_start(&g);
	c = worker_start(&g);
	for (int n = 0; n < 2000; n++) {
		CHECK_INT("tell", 0, audit_tell(c, &r));
		audit_client_flush(c);
	}
	while (audit_client_waiting(c))
		turn(c, 10);
	until_log_says(&g, 2000, "\"type\":\"read\"");
	close(g.control);
	g.control = -1;
	CHECK_INT("syncs", sizeof(syncs), read(g.syncs_fd, &syncs, sizeof(syncs)));
	CHECK_INT("status", AUDITOR_STOPPED, gate_wait(&g));
	CHECK_INT("few of them", 1, syncs > 0 && syncs < 100);
	audit_client_destroy(c);
	fixture_remove(g.dir);
}

static void segments_are_rotated(void **state)
{
	struct audit_client *c[4];
	struct asked asked[4][100] = {{{0}}};
	struct gate g;

	(void)state;
	gate_init(&g);
	g.segment_bytes = 8192;
	gate_start(&g);
	for (int w = 0; w < 4; w++)
		c[w] = worker_start(&g);
	for (unsigned n = 0; n < 100; n++)
		for (unsigned w = 0; w < 4; w++) {
			const struct record r = fixture_decision(w * 1000 + n, "allow");

			CHECK_INT("require", 0, audit_require(c[w], &r, on_done, &asked[w][n]));
			turn(c[w], n % 10 ? 0 : 5);
			if (n >= 20 && asked[w][n - 20].granted)
				tell_outcome(c[w], w * 1000 + n - 20);
		}
	for (unsigned w = 0; w < 4; w++) {
		for (uint64_t end = clock_boot_ms() + PATIENCE_MS; !asked[w][99].calls;) {
			turn(c[w], 10);
			CHECK_INT("in time", 1, clock_boot_ms() < end);
		}
		for (unsigned n = 0; n < 100; n++) {
			CHECK_INT("once", 1, asked[w][n].calls);
			CHECK_INT("granted", 1, asked[w][n].granted);
			check_anchor(&g, &asked[w][n].mark);
		}
		audit_client_destroy(c[w]);
	}
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	CHECK_INT("many segments", 1, count_in_log(&g, "\"type\":\"log_seal\"") > 5);
	CHECK_INT("none open", 0, verified(&g).open_decisions);
	CHECK_INT("all decisions", 400, verified(&g).allowed);
	fixture_remove(g.dir);
}

static void a_worker_that_ends_leaves_unknown_outcomes(void **state)
{
	struct audit_client *one, *two;
	struct gate g;
	char of[80];

	(void)state;
	gate_init(&g);
	gate_start(&g);
	one = worker_start(&g);
	two = worker_start(&g);
	CHECK_INT("1", 1, decide(one, 1, "allow").granted);
	CHECK_INT("2", 1, decide(one, 2, "allow").granted);
	CHECK_INT("3", 1, decide(one, 3, "deny").granted);
	CHECK_INT("4", 1, decide(two, 4, "allow").granted);
	tell_outcome(one, 2);
	audit_client_destroy(one);
	until_log_says(&g, 1, "\"type\":\"outcome_unknown\"");
	snprintf(of, sizeof(of), "\"of\":\"%s\"", fixture_id(1));
	CHECK_INT("of 1", 1, count_in_log(&g, of));
	tell_outcome(two, 4);
	until_log_says(&g, 2, "\"type\":\"outcome\"");
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	CHECK_INT("none open", 0, verified(&g).open_decisions);
	audit_client_destroy(two);
	fixture_remove(g.dir);
}

static void claims_keep_decisions_open(void **state)
{
	struct audit_client *one, *two;
	struct gate g;
	char of[80];

	(void)state;
	gate_init(&g);
	g.claim_ms = 200;
	gate_start(&g);
	one = worker_start(&g);
	two = worker_start(&g);
	CHECK_INT("1", 1, decide(one, 1, "allow").granted);
	CHECK_INT("2", 1, decide(two, 2, "allow").granted);
	gate_kill(&g);
	audit_client_destroy(two); /* it died with it */
	turn(one, 10);
	CHECK_INT("down", 0, audit_client_up(one));
	gate_start(&g);
	audit_client_attach(one, gate_connect(&g));
	until_up(one);
	until_log_says(&g, 1, "\"type\":\"outcome_unknown\"");
	snprintf(of, sizeof(of), "\"of\":\"%s\"", fixture_id(2));
	CHECK_INT("of 2", 1, count_in_log(&g, of));
	tell_outcome(one, 1);
	until_log_says(&g, 1, "\"type\":\"outcome\"");
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	CHECK_INT("none open", 0, verified(&g).open_decisions);
	audit_client_destroy(one);
	fixture_remove(g.dir);
}

/* --- a worker that was taken over --- */

static void raw_open(struct frame_conn *fc, struct gate *g)
{
	frame_init(fc, gate_connect(g), 1 << 20);
	wire_put(fc, (struct wire_head){.kind = WIRE_HELLO, .ticket = WIRE_VERSION},
		 (struct span){"", 0});
}

static void raw_record(struct frame_conn *fc, uint32_t flags, uint64_t ticket, const char *body)
{
	CHECK_INT("put", 1,
		  wire_put(fc, (struct wire_head){WIRE_RECORD, flags, ticket}, span_of(body)));
	CHECK_INT("flush", 1, wire_flush(fc));
}

/* The next frame's head; kind 0 at the end of the connection. */
static struct wire_head raw_next(struct frame_conn *fc)
{
	struct wire_head head = {0};
	struct span frame;

	for (;;) {
		struct pollfd p = {.fd = fc->fd, .events = POLLIN};

		if (frame_next(fc, &frame)) {
			CHECK_INT("head", 1, wire_head(&frame, &head));
			return head;
		}
		CHECK_INT("in time", 1, poll(&p, 1, PATIENCE_MS));
		if (!frame_fill(fc) && !buf_len(&fc->in))
			return (struct wire_head){0};
	}
}

static char *raw_decision(unsigned n)
{
	static char text[256];

	snprintf(text, sizeof(text), "\"type\":\"decision\",\"id\":\"%s\",\"verdict\":\"allow\"",
		 fixture_id(n));
	return text;
}

static char *raw_outcome(unsigned n)
{
	static char text[256];

	snprintf(text, sizeof(text), "\"type\":\"outcome\",\"id\":\"%s\",\"of\":\"%s\"",
		 fixture_id(n + 1000), fixture_id(n));
	return text;
}

static void what_is_no_record_is_refused(void **state)
{
	static const struct {
		const char *label, *body;
	} cases[] = {
		{"empty", ""},
		{"newline", "\"type\":\"decision\",\"text\":\"\n\""},
		{"own seq", "\"type\":\"decision\",\"seq\":1"},
		{"gate_stop", "\"type\":\"gate_stop\""},
		{"log_seal", "\"type\":\"log_seal\",\"count\":1"},
		{"outcome_unknown", "\"type\":\"outcome_unknown\""},
		{"an outcome that wants a receipt", "\"type\":\"outcome\""},
		{"unknown type", "\"type\":\"other\""},
		{"allowed without an id", "\"type\":\"decision\",\"verdict\":\"allow\""},
		{"allowed with a bad id",
		 "\"type\":\"decision\",\"id\":\"x\",\"verdict\":\"allow\""},
	};
	struct frame_conn fc;
	struct gate g;
	char big[RECORD_BODY_MAX + 100];

	(void)state;
	gate_init(&g);
	gate_start(&g);
	raw_open(&fc, &g);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		raw_record(&fc, WIRE_RECEIPT_WANTED, i, cases[i].body);
	CHECK_INT("up", WIRE_UP, raw_next(&fc).kind);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct wire_head head = raw_next(&fc);

		CHECK_INT(cases[i].label, WIRE_REFUSED, head.kind);
		CHECK_INT(cases[i].label, i, head.ticket);
	}
	snprintf(big, sizeof(big), "\"type\":\"decision\",\"text\":\"%0*d\"", RECORD_BODY_MAX, 0);
	raw_record(&fc, WIRE_RECEIPT_WANTED, 50, big);
	CHECK_INT("too long", WIRE_REFUSED, raw_next(&fc).kind);
	raw_record(&fc, WIRE_RECEIPT_WANTED, 51, raw_decision(1));
	CHECK_INT("good", WIRE_RECEIPT, raw_next(&fc).kind);
	raw_record(&fc, WIRE_RECEIPT_WANTED, 52, raw_decision(1));
	CHECK_INT("twice", WIRE_REFUSED, raw_next(&fc).kind);
	until_log_says(&g, 1, "\"type\":\"log_alarm\"");
	frame_close(&fc);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	verified(&g);
	fixture_remove(g.dir);
}

static void an_outcome_comes_once_and_from_its_worker(void **state)
{
	struct frame_conn one, two;
	struct gate g;

	(void)state;
	gate_init(&g);
	gate_start(&g);
	raw_open(&one, &g);
	raw_open(&two, &g);
	raw_record(&one, WIRE_RECEIPT_WANTED, 1, raw_decision(1));
	CHECK_INT("up", WIRE_UP, raw_next(&one).kind);
	CHECK_INT("receipt", WIRE_RECEIPT, raw_next(&one).kind);
	/* Another worker's, by an outcome or a claim. */
	raw_record(&two, WIRE_OUTCOME, 7, raw_outcome(1));
	CHECK_INT("up", WIRE_UP, raw_next(&two).kind);
	CHECK_INT("acknowledged", WIRE_ACK, raw_next(&two).kind);
	CHECK_INT("not written", 0, count_in_log(&g, "\"type\":\"outcome\""));
	/* Twice. */
	raw_record(&one, WIRE_OUTCOME, 3, raw_outcome(1));
	CHECK_INT("ack", WIRE_ACK, raw_next(&one).kind);
	CHECK_INT("written when acknowledged", 1, count_in_log(&g, "\"type\":\"outcome\""));
	raw_record(&one, WIRE_OUTCOME, 4, raw_outcome(1));
	CHECK_INT("ack", 4, raw_next(&one).ticket);
	CHECK_INT("once", 1, count_in_log(&g, "\"type\":\"outcome\""));
	frame_close(&one);
	frame_close(&two);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	verified(&g);
	fixture_remove(g.dir);
}

static void who_speaks_nonsense_is_cut_off(void **state)
{
	static const struct {
		const char *label;
		struct wire_head head;
		bool hello;
		const char *body;
	} cases[] = {
		{"no hello", {WIRE_RECORD, WIRE_READ, 0}, false, "\"type\":\"read\""},
		{"wrong version", {WIRE_HELLO, 0, 999}, false, ""},
		{"hello twice", {WIRE_HELLO, 0, WIRE_VERSION}, true, ""},
		{"unknown kind", {12345, 0, 0}, true, ""},
		{"the auditor's kind", {WIRE_RECEIPT, 0, 0}, true, ""},
	};
	struct audit_client *c;
	struct gate g;

	(void)state;
	gate_init(&g);
	gate_start(&g);
	c = worker_start(&g);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct frame_conn fc;
		struct wire_head head;

		frame_init(&fc, gate_connect(&g), 1 << 20);
		if (cases[i].hello)
			wire_put(&fc, (struct wire_head){WIRE_HELLO, 0, WIRE_VERSION},
				 (struct span){"", 0});
		wire_put(&fc, cases[i].head, span_of(cases[i].body));
		wire_flush(&fc);
		do
			head = raw_next(&fc);
		while (head.kind == WIRE_UP);
		CHECK_INT(cases[i].label, 0, head.kind);
		frame_close(&fc);
	}
	CHECK_INT("others are served", 1, decide(c, 1, "deny").granted);
	audit_client_destroy(c);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	fixture_remove(g.dir);
}

/* --- trouble --- */

static void a_disk_error_seals_and_all_are_told(void **state)
{
	static const struct {
		const char *label;
		struct fault fault;
	} cases[] = {
		{"fdatasync EIO once",
		 {.calls = FAULT_FDATASYNC, .after = 1, .effect = FAULT_ERROR, .error = EIO}},
		{"pwritev ENOSPC once",
		 {.calls = FAULT_PWRITEV, .after = 1, .effect = FAULT_ERROR, .error = ENOSPC}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct asked asked[10] = {{0}};
		struct audit_client *c;
		struct record r;
		struct gate g;

		gate_init(&g);
		g.fault = cases[i].fault;
		gate_start(&g);
		c = worker_start(&g);
		CHECK_INT(cases[i].label, 1, decide(c, 1, "allow").granted);
		for (unsigned n = 0; n < 10; n++) {
			r = fixture_decision(10 + n, "allow");
			CHECK_INT("require", 0, audit_require(c, &r, on_done, &asked[n]));
		}
		while (audit_client_fd(c) >= 0)
			turn(c, 10);
		for (int n = 0; n < 10; n++) {
			CHECK_INT(cases[i].label, 1, asked[n].calls);
			CHECK_INT(cases[i].label, 0, asked[n].granted);
		}
		CHECK_INT(cases[i].label, AUDITOR_SEALED, gate_wait(&g));
		/* The supervisor starts another one. */
		g.fault = (struct fault){0};
		gate_start(&g);
		audit_client_attach(c, gate_connect(&g));
		until_up(c);
		tell_outcome(c, 1);
		CHECK_INT("goes on", 1, decide(c, 30, "deny").granted);
		CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
		CHECK_INT(cases[i].label, 1, count_in_log(&g, "\"type\":\"gate_recover\""));
		CHECK_INT(cases[i].label, 1, verified(&g).outcomes);
		audit_client_destroy(c);
		fixture_remove(g.dir);
	}
}

static void a_removed_file_seals(void **state)
{
	struct audit_client *c;
	struct gate g;

	(void)state;
	gate_init(&g);
	gate_start(&g);
	c = worker_start(&g);
	CHECK_INT("before", 1, decide(c, 1, "deny").granted);
	unlink(fixture_path(g.dir, "00000000000000000000.log"));
	CHECK_INT("status", AUDITOR_SEALED, gate_wait(&g));
	turn(c, 10);
	CHECK_INT("down", 0, audit_client_up(c));
	audit_client_destroy(c);
	fixture_remove(g.dir);
}

/* --- killed at any moment --- */

#define KILLS     25
#define WORKERS   2
#define IN_FLIGHT 20

struct flight {
	unsigned n;
	bool waiting, open;
	struct asked asked;
};

/* A worker that always has decisions and outcomes in flight. */
struct busy {
	struct audit_client *client;
	struct flight flights[IN_FLIGHT];
	struct audit_mark *marks; /* all receipts */
	size_t mark_count;
	unsigned granted, closed;
};

static unsigned next_id;

static void fly(struct busy *b, struct flight *f)
{
	struct record r;

	if (f->waiting && f->asked.calls) {
		CHECK_INT("once", 1, f->asked.calls);
		f->waiting = false;
		f->open = f->asked.granted;
		if (f->open) {
			b->marks = realloc(b->marks, (b->mark_count + 1) * sizeof(*b->marks));
			b->marks[b->mark_count++] = f->asked.mark;
			b->granted++;
		}
	} else if (f->open && rand() % 3) {
		tell_outcome(b->client, f->n);
		f->open = false;
		b->closed++;
	} else if (!f->open && !f->waiting) {
		f->n = ++next_id;
		f->asked = (struct asked){0};
		r = fixture_decision(f->n, "allow");
		f->waiting = audit_require(b->client, &r, on_done, &f->asked) == 0;
	}
}

static int by_seq(const void *left, const void *right)
{
	const struct audit_mark *a = left, *b = right;

	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* Each receipt's hash stands at its number. */
static void check_marks(const struct gate *g, struct busy *b)
{
	char *all = whole_log(g), *line = all;
	size_t next = 0;

	qsort(b->marks, b->mark_count, sizeof(*b->marks), by_seq);
	for (uint64_t seq = 0; *line; seq++) {
		char *end = strchr(line, '\n'), hex[HASH_HEX_LEN + 1];

		if (next < b->mark_count && b->marks[next].seq == seq) {
			hash_hex(&b->marks[next].hash, hex);
			CHECK_INT("the record of the receipt", 0,
				  memcmp(end - HASH_HEX_LEN - 2, hex, HASH_HEX_LEN));
			next++;
		}
		line = end + 1;
	}
	CHECK_INT("all are there", b->mark_count, next);
	free(all);
}

static void killed_at_any_moment(void **state)
{
	struct busy busy[WORKERS] = {{0}};
	struct verify_report report;
	unsigned granted = 0;
	struct gate g;

	(void)state;
	srand(11);
	gate_init(&g);
	g.segment_bytes = 65536;
	gate_start(&g);
	for (int w = 0; w < WORKERS; w++)
		busy[w].client = worker_start(&g);
	for (int k = 0; k < KILLS; k++) {
		int turns = 5 + rand() % 100;

		for (int t = 0; t < turns; t++)
			for (int w = 0; w < WORKERS; w++) {
				for (int i = 0; i < IN_FLIGHT; i++)
					fly(&busy[w], &busy[w].flights[i]);
				turn(busy[w].client, rand() % 2);
			}
		gate_kill(&g);
		gate_start(&g);
		for (int w = 0; w < WORKERS; w++) {
			audit_client_attach(busy[w].client, gate_connect(&g));
			until_up(busy[w].client);
			CHECK_INT("goes on", 1, decide(busy[w].client, ++next_id, "deny").granted);
		}
	}
	for (int w = 0; w < WORKERS; w++) {
		audit_client_flush(busy[w].client);
		audit_client_attach(busy[w].client, -1);
		granted += busy[w].granted;
	}
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	/* What nobody claims is unknown after another start. */
	g.claim_ms = 1;
	report = verified(&g);
	gate_start(&g);
	until_log_says(&g, (int)(report.unknown_outcomes + report.open_decisions),
		       "\"type\":\"outcome_unknown\"");
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	report = verified(&g);
	CHECK_INT("none open", 0, report.open_decisions);
	CHECK_INT("each allowed one ended once", report.allowed,
		  report.outcomes + report.unknown_outcomes);
	CHECK_INT("much was granted", 1, granted > 500 && report.allowed >= granted);
	for (int w = 0; w < WORKERS; w++) {
		check_marks(&g, &busy[w]);
		audit_client_destroy(busy[w].client);
		free(busy[w].marks);
	}
	fixture_remove(g.dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_and_stops),
		cmocka_unit_test(an_end_without_gate_stop_is_on_record),
		cmocka_unit_test(writes_what_workers_tell),
		cmocka_unit_test(last_words_are_written),
		cmocka_unit_test(reads_are_flushed_together),
		cmocka_unit_test(segments_are_rotated),
		cmocka_unit_test(a_worker_that_ends_leaves_unknown_outcomes),
		cmocka_unit_test(claims_keep_decisions_open),
		cmocka_unit_test(what_is_no_record_is_refused),
		cmocka_unit_test(an_outcome_comes_once_and_from_its_worker),
		cmocka_unit_test(who_speaks_nonsense_is_cut_off),
		cmocka_unit_test(a_disk_error_seals_and_all_are_told),
		cmocka_unit_test(a_removed_file_seals),
		cmocka_unit_test(killed_at_any_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
