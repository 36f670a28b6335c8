/* The auditor whose disk fails, and one that is killed at any moment. */
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
		CHECK_INT(cases[i].label, 1, worker_decide(c, 1, "allow").granted);
		for (unsigned n = 0; n < 10; n++) {
			r = fixture_decision(10 + n, "allow");
			CHECK_INT("require", 0, audit_require(c, &r, worker_answered, &asked[n]));
		}
		while (audit_client_fd(c) >= 0)
			worker_turn(c, 10);
		for (int n = 0; n < 10; n++) {
			CHECK_INT(cases[i].label, 1, asked[n].calls);
			CHECK_INT(cases[i].label, 0, asked[n].granted);
		}
		CHECK_INT(cases[i].label, AUDITOR_SEALED, gate_wait(&g));
		/* The supervisor starts another one. */
		g.fault = (struct fault){0};
		gate_start(&g);
		audit_client_attach(c, gate_connect(&g));
		worker_until_up(c);
		worker_outcome(c, 1);
		CHECK_INT("goes on", 1, worker_decide(c, 30, "deny").granted);
		CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
		CHECK_INT(cases[i].label, 1, gate_log_count(&g, "\"type\":\"gate_recover\""));
		CHECK_INT(cases[i].label, 1, gate_verified(&g).outcomes);
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
	CHECK_INT("before", 1, worker_decide(c, 1, "deny").granted);
	unlink(fixture_path(g.dir, "00000000000000000000.log"));
	CHECK_INT("status", AUDITOR_SEALED, gate_wait(&g));
	worker_turn(c, 10);
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
		worker_outcome(b->client, f->n);
		f->open = false;
		b->closed++;
	} else if (!f->open && !f->waiting) {
		f->n = ++next_id;
		f->asked = (struct asked){0};
		r = fixture_decision(f->n, "allow");
		f->waiting = audit_require(b->client, &r, worker_answered, &f->asked) == 0;
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
	char *all = gate_whole_log(g), *line = all;
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
				worker_turn(busy[w].client, rand() % 2);
			}
		gate_kill(&g);
		gate_start(&g);
		for (int w = 0; w < WORKERS; w++) {
			audit_client_attach(busy[w].client, gate_connect(&g));
			worker_until_up(busy[w].client);
			CHECK_INT("goes on", 1,
				  worker_decide(busy[w].client, ++next_id, "deny").granted);
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
	report = gate_verified(&g);
	gate_start(&g);
	gate_until_log_says(&g, (int)(report.unknown_outcomes + report.open_decisions),
			    "\"type\":\"outcome_unknown\"");
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	report = gate_verified(&g);
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
		cmocka_unit_test(a_disk_error_seals_and_all_are_told),
		cmocka_unit_test(a_removed_file_seals),
		cmocka_unit_test(killed_at_any_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
