/* A worker's end, against an auditor that this test plays. */
#include "audit/client.h"
#include "audit/wire_priv.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "tests/unit/audit/fixture.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ASKED_MAX 20000

/* The client, and the other end of its socket. */
struct pair {
	struct audit_client *client;
	struct frame_conn auditor;
};

/* What a done function was told. */
struct asked {
	int calls;
	bool granted;
	uint64_t seq;
	char log[LINE_ORIGIN_MAX + 1];
	unsigned char first_hash_byte;
};

static void on_done(void *arg, const struct audit_receipt *receipt)
{
	struct asked *a = arg;

	a->calls++;
	a->granted = receipt != NULL;
	if (!receipt)
		return;
	a->seq = receipt->seq;
	a->first_hash_byte = receipt->hash.bytes[0];
	snprintf(a->log, sizeof(a->log), "%s", receipt->log);
}

static void connect_pair(struct pair *p)
{
	struct err err = {0};
	int fds[2];

	CHECK_INT("pair", 0, io_pair(fds, &err));
	frame_init(&p->auditor, fds[1], 16u << 20);
	audit_client_attach(p->client, fds[0]);
	audit_client_flush(p->client);
}

static void send_frame(struct pair *p, struct wire_head head, struct span body)
{
	CHECK_INT("put", 1, wire_put(&p->auditor, head, body));
	CHECK_INT("flush", 1, wire_flush(&p->auditor));
	audit_client_read(p->client);
}

static void say_up(struct pair *p)
{
	send_frame(p, (struct wire_head){.kind = WIRE_UP, .ticket = 1}, span_of("test/log"));
}

static void say(struct pair *p, enum wire_kind kind, uint64_t ticket)
{
	send_frame(p, (struct wire_head){.kind = kind, .ticket = ticket}, (struct span){"", 0});
}

static void say_receipt(struct pair *p, uint64_t ticket, uint64_t seq)
{
	struct wire_receipt r = {.seq = seq, .hash.bytes = {0xab}};

	send_frame(p, (struct wire_head){.kind = WIRE_RECEIPT, .ticket = ticket},
		   (struct span){(const char *)&r + sizeof(r.head), sizeof(r) - sizeof(r.head)});
}

static void hang_up(struct pair *p)
{
	frame_close(&p->auditor);
	audit_client_read(p->client);
}

/* The next frame from the client; fails the test if there is none. */
static struct wire_head expect(struct pair *p, const char *label, enum wire_kind kind,
			       struct span *ret_body)
{
	struct wire_head head = {0};

	audit_client_flush(p->client);
	frame_fill(&p->auditor);
	if (!frame_next(&p->auditor, ret_body))
		fail_msg("%s: no frame", label);
	CHECK_INT(label, 1, wire_head(ret_body, &head));
	CHECK_INT(label, kind, head.kind);
	return head;
}

static void expect_nothing(struct pair *p, const char *label)
{
	struct span body;

	audit_client_flush(p->client);
	frame_fill(&p->auditor);
	CHECK_INT(label, 0, frame_next(&p->auditor, &body));
}

/* A record from the client, that says `text`; returns its ticket. */
static uint64_t expect_record(struct pair *p, const char *label, uint32_t flags, const char *text)
{
	struct span body;
	struct wire_head head = expect(p, label, WIRE_RECORD, &body);

	CHECK_INT(label, flags, head.flags);
	if (!memmem(body.at, body.len, text, strlen(text)))
		fail_msg("%s: %.*s does not say %s", label, SPAN_FMT(body), text);
	return head.ticket;
}

static void pair_open(struct pair *p)
{
	struct span body;

	*p = (struct pair){.client = audit_client_create()};
	assert_non_null(p->client);
	connect_pair(p);
	CHECK_INT("hello", WIRE_VERSION, expect(p, "hello", WIRE_HELLO, &body).ticket);
	say_up(p);
	CHECK_INT("up", 1, audit_client_up(p->client));
}

static void pair_close(struct pair *p)
{
	audit_client_destroy(p->client);
	frame_close(&p->auditor);
}

static int require(struct pair *p, unsigned n, struct asked *asked)
{
	const struct record r = fixture_decision(n, "allow");

	return audit_require(p->client, &r, on_done, asked);
}

static void nothing_is_taken_before_the_log_is_up(void **state)
{
	struct pair p = {.client = audit_client_create()};
	const struct record read_record = fixture_read_record(1), outcome = fixture_outcome(2);
	struct asked asked = {0};
	struct span body;

	(void)state;
	CHECK_INT("no fd", -1, audit_client_fd(p.client));
	CHECK_INT("not connected", -1, require(&p, 1, &asked));
	connect_pair(&p);
	CHECK_INT("fd", 1, audit_client_fd(p.client) >= 0);
	CHECK_INT("not answered", -1, require(&p, 1, &asked));
	CHECK_INT("read", -1, audit_tell(p.client, &read_record));
	CHECK_INT("lost", 1, audit_client_lost(p.client));
	CHECK_INT("outcome is kept", 0, audit_tell(p.client, &outcome));
	expect(&p, "hello", WIRE_HELLO, &body);
	expect_record(&p, "outcome", WIRE_OUTCOME, fixture_id(2));
	say_up(&p);
	expect_record(&p, "what was lost", WIRE_READ, "\"type\":\"log_alarm\"");
	CHECK_INT("up", 0, require(&p, 1, &asked));
	CHECK_INT("never called", 0, asked.calls);
	pair_close(&p);
}

static void a_receipt_is_given_once(void **state)
{
	struct asked asked[3] = {{0}};
	uint64_t ticket[3];
	struct pair p;

	(void)state;
	pair_open(&p);
	for (unsigned i = 0; i < 3; i++)
		CHECK_INT("require", 0, require(&p, i, &asked[i]));
	for (unsigned i = 0; i < 3; i++)
		ticket[i] = expect_record(&p, "decision", WIRE_RECEIPT_WANTED, fixture_id(i));
	CHECK_INT("not from within", 0, asked[0].calls + asked[1].calls + asked[2].calls);
	say_receipt(&p, ticket[1], 7);
	CHECK_INT("only the second", 1, asked[1].calls);
	CHECK_INT("granted", 1, asked[1].granted);
	CHECK_INT("seq", 7, asked[1].seq);
	CHECK_INT("hash", 0xab, asked[1].first_hash_byte);
	CHECK_STR("log", "test/log", asked[1].log);
	say_receipt(&p, ticket[0], 6);
	say(&p, WIRE_REFUSED, ticket[2]);
	CHECK_INT("refused", 1, asked[2].calls);
	CHECK_INT("refused", 0, asked[2].granted);
	expect_nothing(&p, "nothing was aborted");
	hang_up(&p);
	for (int i = 0; i < 3; i++)
		CHECK_INT("once", 1, asked[i].calls);
	pair_close(&p);
}

enum ending { END_HANG_UP, END_SEALED, END_GARBAGE, END_WRONG_TICKET, END_REPLACED, END_COUNT };

static void end_auditor(struct pair *p, enum ending how)
{
	switch (how) {
	case END_HANG_UP:
		hang_up(p);
		break;
	case END_SEALED:
		say(p, WIRE_SEALED, 0);
		break;
	case END_GARBAGE:
		send_frame(p, (struct wire_head){.kind = 77}, (struct span){"x", 1});
		break;
	case END_WRONG_TICKET:
		say_receipt(p, 12345, 1);
		break;
	case END_REPLACED:
		audit_client_attach(p->client, -1);
		break;
	case END_COUNT:
		break;
	}
}

static void without_an_auditor_each_gets_null_once(void **state)
{
	static const char *const labels[END_COUNT] = {"hang up", "sealed", "garbage",
						      "wrong ticket", "replaced"};

	(void)state;
	for (int how = 0; how < END_COUNT; how++) {
		struct asked asked[50] = {{0}};
		struct pair p;

		pair_open(&p);
		for (unsigned i = 0; i < 50; i++)
			CHECK_INT(labels[how], 0, require(&p, i, &asked[i]));
		end_auditor(&p, how);
		CHECK_INT(labels[how], 0, audit_client_up(p.client));
		CHECK_INT(labels[how], -1, require(&p, 99, &asked[0]));
		audit_client_read(p.client);
		audit_client_tick(p.client, clock_boot_ms() + 10000);
		audit_client_flush(p.client);
		audit_client_attach(p.client, -1);
		for (int i = 0; i < 50; i++) {
			CHECK_INT(labels[how], 1, asked[i].calls);
			CHECK_INT(labels[how], 0, asked[i].granted);
		}
		pair_close(&p);
	}
}

static void the_wait_has_a_limit(void **state)
{
	struct asked asked[2] = {{0}};
	uint64_t ticket, start = clock_boot_ms();
	struct pair p;

	(void)state;
	pair_open(&p);
	CHECK_INT("no deadline", 1, audit_client_deadline(p.client) == UINT64_MAX);
	CHECK_INT("require", 0, require(&p, 1, &asked[0]));
	ticket = expect_record(&p, "decision", WIRE_RECEIPT_WANTED, fixture_id(1));
	CHECK_INT("deadline", 1, audit_client_deadline(p.client) >= start + AUDIT_WAIT_MS);
	audit_client_tick(p.client, start + AUDIT_WAIT_MS - 1);
	CHECK_INT("not yet", 0, asked[0].calls);
	audit_client_tick(p.client, clock_boot_ms() + AUDIT_WAIT_MS);
	CHECK_INT("given up", 1, asked[0].calls);
	CHECK_INT("given up", 0, asked[0].granted);
	CHECK_INT("no deadline", 1, audit_client_deadline(p.client) == UINT64_MAX);
	CHECK_INT("the log is still up", 1, audit_client_up(p.client));
	/* It is durable after all: the log must say that nothing came of it. */
	say_receipt(&p, ticket, 9);
	CHECK_INT("once", 1, asked[0].calls);
	expect_record(&p, "aborted", WIRE_OUTCOME, "\"status\":\"aborted\"");
	CHECK_INT("others go on", 0, require(&p, 2, &asked[1]));
	pair_close(&p);
}

static void a_forgotten_one_is_not_called(void **state)
{
	struct asked asked[2] = {{0}};
	uint64_t ticket[2];
	struct pair p;

	(void)state;
	pair_open(&p);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_INT("require", 0, require(&p, i, &asked[i]));
		ticket[i] = expect_record(&p, "decision", WIRE_RECEIPT_WANTED, fixture_id(i));
	}
	audit_forget(p.client, &asked[0]);
	say_receipt(&p, ticket[0], 1);
	say_receipt(&p, ticket[1], 2);
	CHECK_INT("forgotten", 0, asked[0].calls);
	CHECK_INT("not forgotten", 1, asked[1].calls);
	expect_record(&p, "aborted", WIRE_OUTCOME, fixture_id(0));
	expect_nothing(&p, "only that");
	pair_close(&p);
}

static void tell_outcome(struct pair *p, unsigned n)
{
	const struct record r = fixture_outcome(n);

	CHECK_INT("tell", 0, audit_tell(p->client, &r));
}

/* Grants a decision, so that it is open. */
static void grant(struct pair *p, unsigned n)
{
	struct asked asked = {0};

	CHECK_INT("require", 0, require(p, n, &asked));
	say_receipt(p, expect_record(p, "decision", WIRE_RECEIPT_WANTED, fixture_id(n)), n);
	CHECK_INT("granted", 1, asked.granted);
}

static void outcomes_are_sent_again_in_order(void **state)
{
	struct asked lost = {0};
	struct decision_id ids[8], want;
	struct span body;
	uint64_t ticket = 0;
	bool claimed[6] = {false};
	struct pair p;

	(void)state;
	pair_open(&p);
	for (unsigned n = 1; n <= 5; n++)
		grant(&p, n);
	for (unsigned n = 1; n <= 4; n++)
		tell_outcome(&p, n);
	for (unsigned n = 1; n <= 4; n++) {
		uint64_t t = expect_record(&p, "outcome", WIRE_OUTCOME, fixture_id(n));

		if (n == 2)
			ticket = t;
	}
	say(&p, WIRE_ACK, ticket); /* 1 and 2 are done with */
	CHECK_INT("require", 0, require(&p, 6, &lost));
	hang_up(&p);
	CHECK_INT("lost", 1, lost.calls);
	tell_outcome(&p, 5); /* while nobody is there */
	for (int again = 0; again < 2; again++) {
		connect_pair(&p);
		expect(&p, "hello", WIRE_HELLO, &body);
		expect(&p, "claims", WIRE_CLAIM, &body);
		CHECK_INT("3, 4 and 5", 3 * sizeof(*ids), body.len);
		memcpy(ids, body.at, body.len);
		for (int i = 0; i < 3; i++)
			for (unsigned n = 1; n <= 5; n++) {
				decision_id_parse(span_of(fixture_id(n)), &want);
				claimed[n] |= memcmp(&want, &ids[i], sizeof(want)) == 0;
			}
		CHECK_INT("claims", 1, !claimed[1] && !claimed[2] && claimed[3] && claimed[4]);
		for (unsigned n = 3; n <= 5; n++)
			ticket = expect_record(&p, "again", WIRE_OUTCOME, fixture_id(n));
		expect_nothing(&p, "no decision");
		if (again == 0)
			hang_up(&p);
	}
	say_up(&p);
	say(&p, WIRE_ACK, ticket);
	hang_up(&p);
	connect_pair(&p);
	expect(&p, "hello", WIRE_HELLO, &body);
	expect_nothing(&p, "all are acknowledged");
	pair_close(&p);
}

static void an_ack_of_nothing_ends_the_connection(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p);
	say(&p, WIRE_ACK, 0);
	CHECK_INT("gone", -1, audit_client_fd(p.client));
	pair_close(&p);
}

/* Nobody reads on the other end. */
static void queues_are_bounded(void **state)
{
	struct asked *asked = calloc(ASKED_MAX, sizeof(*asked));
	const struct record read_record = fixture_read_record(1), outcome = fixture_outcome(1);
	int taken = 0, told = 0, kept = 0;
	struct pair p;

	(void)state;
	pair_open(&p);
	while (taken < ASKED_MAX && require(&p, (unsigned)taken, &asked[taken]) == 0) {
		taken++;
		audit_client_flush(p.client);
	}
	CHECK_INT("decisions", 1, taken > 1000 && taken < ASKED_MAX);
	while (told < 1000000 && audit_tell(p.client, &read_record) == 0)
		told++;
	CHECK_INT("reads", 1, told < 1000000);
	while (kept < 1000000 && audit_tell(p.client, &outcome) == 0)
		kept++;
	CHECK_INT("outcomes", 1, kept >= taken && kept < 1000000);
	CHECK_INT("lost", 2, audit_client_lost(p.client));
	CHECK_INT("waits for room", 1, audit_client_waiting(p.client));
	hang_up(&p);
	for (int i = 0; i < taken; i++)
		CHECK_INT("once", 1, asked[i].calls);
	free(asked);
	pair_close(&p);
}

static void reads_wait_for_company_if_asked_to(void **state)
{
	const struct record r = fixture_read_record(1);
	struct asked asked = {0};
	struct pair p;

	(void)state;
	pair_open(&p);
	CHECK_INT("tell", 0, audit_tell(p.client, &r));
	expect_record(&p, "at once", WIRE_READ, "read");
	audit_client_hold_reads(p.client, 60000);
	CHECK_INT("tell", 0, audit_tell(p.client, &r));
	CHECK_INT("tell", 0, audit_tell(p.client, &r));
	expect_nothing(&p, "held");
	CHECK_INT("not waiting for room", 0, audit_client_waiting(p.client));
	CHECK_INT("deadline", 1, audit_client_deadline(p.client) <= clock_boot_ms() + 60000);
	CHECK_INT("require", 0, require(&p, 1, &asked));
	expect_record(&p, "company", WIRE_READ, "read");
	expect_record(&p, "company", WIRE_READ, "read");
	expect_record(&p, "a decision does not wait", WIRE_RECEIPT_WANTED, "decision");
	for (int i = 0; i < 1000; i++)
		CHECK_INT("tell", 0, audit_tell(p.client, &r));
	expect_record(&p, "many do not wait", WIRE_READ, "read");
	pair_close(&p);
}

/* A done function that asks and tells again. */
struct again {
	struct pair *pair;
	struct asked asked;
	int calls;
};

static void ask_again(void *arg, const struct audit_receipt *receipt)
{
	struct again *a = arg;

	(void)receipt;
	a->calls++;
	require(a->pair, 50, &a->asked);
	tell_outcome(a->pair, 1);
}

static void done_may_ask_and_tell(void **state)
{
	const struct record r = fixture_decision(1, "allow");
	struct pair p;
	struct again a = {.pair = &p};

	(void)state;
	pair_open(&p);
	CHECK_INT("require", 0, audit_require(p.client, &r, ask_again, &a));
	say_receipt(&p, expect_record(&p, "decision", WIRE_RECEIPT_WANTED, "decision"), 1);
	CHECK_INT("called", 1, a.calls);
	expect_record(&p, "asked again", WIRE_RECEIPT_WANTED, fixture_id(50));
	expect_record(&p, "told", WIRE_OUTCOME, fixture_id(1));
	CHECK_INT("require", 0, audit_require(p.client, &r, ask_again, &a));
	hang_up(&p);
	CHECK_INT("called", 2, a.calls);
	CHECK_INT("the one that was asked again", 1, a.asked.calls);
	pair_close(&p);
}

static void ids_must_be_ids(void **state)
{
	struct record r = fixture_decision(1, "allow"), outcome = fixture_outcome(1);
	struct asked asked = {0};
	struct pair p;

	(void)state;
	pair_open(&p);
	r.id = "x";
	CHECK_INT("allow", -1, audit_require(p.client, &r, on_done, &asked));
	outcome.of = NULL;
	CHECK_INT("outcome", -1, audit_tell(p.client, &outcome));
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_taken_before_the_log_is_up),
		cmocka_unit_test(a_receipt_is_given_once),
		cmocka_unit_test(without_an_auditor_each_gets_null_once),
		cmocka_unit_test(the_wait_has_a_limit),
		cmocka_unit_test(a_forgotten_one_is_not_called),
		cmocka_unit_test(outcomes_are_sent_again_in_order),
		cmocka_unit_test(an_ack_of_nothing_ends_the_connection),
		cmocka_unit_test(queues_are_bounded),
		cmocka_unit_test(reads_wait_for_company_if_asked_to),
		cmocka_unit_test(done_may_ask_and_tell),
		cmocka_unit_test(ids_must_be_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
