/* A worker that was taken over: what it may not say. */
#include "audit/wire_priv.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "tests/unit/audit/running.h"
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

/* --- a worker that was taken over --- */

static void raw_open_as(struct frame_conn *fc, struct gate *g, char tag)
{
	frame_init(fc, gate_connect_as(g, tag), 1 << 20);
	wire_put(fc, (struct wire_head){.kind = WIRE_HELLO, .ticket = WIRE_VERSION},
		 (struct span){"", 0});
}

static void raw_open(struct frame_conn *fc, struct gate *g)
{
	raw_open_as(fc, g, 'w');
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
	gate_until_log_says(&g, 1, "\"type\":\"log_alarm\"");
	frame_close(&fc);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	gate_verified(&g);
	fixture_remove(g.dir);
}

/* Who serves callers cannot say what the operator did, and the other way round. */
static void uses_of_the_admin_socket_come_from_its_process(void **state)
{
	static const char use[] = "\"type\":\"admin\",\"op\":\"reload\",\"verdict\":\"allow\"";
	static const struct {
		char tag;
		const char *label, *body;
		enum wire_kind want;
	} rows[] = {
		{'w', "a worker's use", use, WIRE_REFUSED},
		{'w', "a worker's decision", NULL, WIRE_RECEIPT},
		{'m', "a use", use, WIRE_RECEIPT},
		{'m', "a decision of the admin process", NULL, WIRE_REFUSED},
		{'m', "its read", "\"type\":\"read\"", WIRE_REFUSED},
		{'m', "its alarm", "\"type\":\"log_alarm\",\"count\":1", WIRE_RECEIPT},
	};
	struct gate g;

	(void)state;
	gate_init(&g);
	gate_start(&g);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct frame_conn fc;

		raw_open_as(&fc, &g, rows[i].tag);
		raw_record(&fc, WIRE_RECEIPT_WANTED, 1,
			   rows[i].body ? rows[i].body : raw_decision((unsigned)i));
		CHECK_INT("up", WIRE_UP, raw_next(&fc).kind);
		CHECK_INT(rows[i].label, rows[i].want, raw_next(&fc).kind);
		frame_close(&fc);
	}
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	gate_verified(&g);
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
	CHECK_INT("not written", 0, gate_log_count(&g, "\"type\":\"outcome\""));
	/* Twice. */
	raw_record(&one, WIRE_OUTCOME, 3, raw_outcome(1));
	CHECK_INT("ack", WIRE_ACK, raw_next(&one).kind);
	CHECK_INT("written when acknowledged", 1, gate_log_count(&g, "\"type\":\"outcome\""));
	raw_record(&one, WIRE_OUTCOME, 4, raw_outcome(1));
	CHECK_INT("ack", 4, raw_next(&one).ticket);
	CHECK_INT("once", 1, gate_log_count(&g, "\"type\":\"outcome\""));
	frame_close(&one);
	frame_close(&two);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	gate_verified(&g);
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
	CHECK_INT("others are served", 1, worker_decide(c, 1, "deny").granted);
	audit_client_destroy(c);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	fixture_remove(g.dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_record_is_refused),
		cmocka_unit_test(uses_of_the_admin_socket_come_from_its_process),
		cmocka_unit_test(an_outcome_comes_once_and_from_its_worker),
		cmocka_unit_test(who_speaks_nonsense_is_cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
