/* What the auditor writes for workers that come, go, and claim. */
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
	asked = worker_decide(c, 1, "deny");
	CHECK_INT("signals do not stop it", 1, asked.granted);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	worker_turn(c, 0);
	CHECK_INT("down", 0, audit_client_up(c));
	CHECK_INT("log_open, gate_start, decision, gate_stop", 4, gate_verified(&g).records);
	all = gate_whole_log(&g);
	CHECK_INT("gate_stop is the last", 1, strstr(strstr(all, "gate_stop"), "\n")[1] == '\0');
	free(all);
	gate_start(&g);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	CHECK_INT("a clean start", 0, gate_log_count(&g, "gate_recover"));
	CHECK_INT("epochs", 1, gate_log_count(&g, "\"ep\":2,") > 0);
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
	CHECK_INT("gate_recover", 1, gate_log_count(&g, "\"type\":\"gate_recover\""));
	gate_verified(&g);
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
		struct asked asked = worker_decide(c, n, n % 2 ? "allow" : "deny");

		CHECK_INT("granted", 1, asked.granted);
		gate_check_anchor(&g, &asked.mark); /* it is there when the receipt is */
		if (n % 2)
			worker_outcome(c, n);
		CHECK_INT("tell", 0, audit_tell(c, &read_record));
	}
	audit_client_flush(c);
	gate_until_log_says(&g, 20, "\"type\":\"read\"");
	gate_until_log_says(&g, 10, "\"type\":\"outcome\"");
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	report = gate_verified(&g);
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
			CHECK_INT("granted", 1, worker_decide(c, n, "allow").granted);
		for (unsigned n = 0; n < 50; n++)
			worker_outcome(c, n);
		audit_client_destroy(c);
		CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
		CHECK_INT("outcomes", 50, gate_verified(&g).outcomes);
		CHECK_INT("unknown", 0, gate_verified(&g).unknown_outcomes);
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
		worker_turn(c, 10);
	gate_until_log_says(&g, 2000, "\"type\":\"read\"");
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

			CHECK_INT("require", 0,
				  audit_require(c[w], &r, worker_answered, &asked[w][n]));
			worker_turn(c[w], n % 10 ? 0 : 5);
			if (n >= 20 && asked[w][n - 20].granted)
				worker_outcome(c[w], w * 1000 + n - 20);
		}
	for (unsigned w = 0; w < 4; w++) {
		for (uint64_t end = clock_boot_ms() + PATIENCE_MS; !asked[w][99].calls;) {
			worker_turn(c[w], 10);
			CHECK_INT("in time", 1, clock_boot_ms() < end);
		}
		for (unsigned n = 0; n < 100; n++) {
			CHECK_INT("once", 1, asked[w][n].calls);
			CHECK_INT("granted", 1, asked[w][n].granted);
			gate_check_anchor(&g, &asked[w][n].mark);
		}
		audit_client_destroy(c[w]);
	}
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	CHECK_INT("many segments", 1, gate_log_count(&g, "\"type\":\"log_seal\"") > 5);
	CHECK_INT("none open", 0, gate_verified(&g).open_decisions);
	CHECK_INT("all decisions", 400, gate_verified(&g).allowed);
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
	CHECK_INT("1", 1, worker_decide(one, 1, "allow").granted);
	CHECK_INT("2", 1, worker_decide(one, 2, "allow").granted);
	CHECK_INT("3", 1, worker_decide(one, 3, "deny").granted);
	CHECK_INT("4", 1, worker_decide(two, 4, "allow").granted);
	worker_outcome(one, 2);
	audit_client_destroy(one);
	gate_until_log_says(&g, 1, "\"type\":\"outcome_unknown\"");
	snprintf(of, sizeof(of), "\"of\":\"%s\"", fixture_id(1));
	CHECK_INT("of 1", 1, gate_log_count(&g, of));
	worker_outcome(two, 4);
	gate_until_log_says(&g, 2, "\"type\":\"outcome\"");
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	CHECK_INT("none open", 0, gate_verified(&g).open_decisions);
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
	CHECK_INT("1", 1, worker_decide(one, 1, "allow").granted);
	CHECK_INT("2", 1, worker_decide(two, 2, "allow").granted);
	gate_kill(&g);
	audit_client_destroy(two); /* it died with it */
	worker_turn(one, 10);
	CHECK_INT("down", 0, audit_client_up(one));
	gate_start(&g);
	audit_client_attach(one, gate_connect(&g));
	worker_until_up(one);
	gate_until_log_says(&g, 1, "\"type\":\"outcome_unknown\"");
	snprintf(of, sizeof(of), "\"of\":\"%s\"", fixture_id(2));
	CHECK_INT("of 2", 1, gate_log_count(&g, of));
	worker_outcome(one, 1);
	gate_until_log_says(&g, 1, "\"type\":\"outcome\"");
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	CHECK_INT("none open", 0, gate_verified(&g).open_decisions);
	audit_client_destroy(one);
	fixture_remove(g.dir);
}

static const struct record sum_of_four = {.type = RECORD_SUPPRESSED,
					  .identity = "agent",
					  .op_class = "launch",
					  .profile = "main",
					  .reason = "rate",
					  .count = 4};

/* As a worker tells it that waits for its receipt. */
static struct asked tell_sum(struct audit_client *c, unsigned n)
{
	struct record r = sum_of_four;
	struct asked asked = {0};

	r.id = fixture_id(n);
	CHECK_INT("require", 0, audit_require(c, &r, worker_answered, &asked));
	audit_client_flush(c);
	while (!asked.calls)
		worker_turn(c, 10);
	return asked;
}

/* Who told a sum and has heard nothing, or died: the next one tells it again. */
static void a_sum_that_is_told_again_is_there_once(void **state)
{
	struct record last_word = sum_of_four;
	struct audit_client *one, *two;
	struct asked first, again;
	struct gate g;

	(void)state;
	gate_init(&g);
	gate_start(&g);
	one = worker_start(&g);
	two = worker_start(&g);
	first = tell_sum(one, 1);
	CHECK_INT("told", 1, first.granted);
	last_word.id = fixture_id(1);
	CHECK_INT("at an end", 0, audit_tell(one, &last_word));
	audit_client_flush(one);
	again = tell_sum(two, 1);
	CHECK_INT("by another", 1, again.granted);
	CHECK_INT("it is that record", first.mark.seq, again.mark.seq);
	audit_client_destroy(one);
	gate_kill(&g);
	gate_start(&g);
	worker_turn(two, 10);
	audit_client_attach(two, gate_connect(&g));
	worker_until_up(two);
	again = tell_sum(two, 1);
	CHECK_INT("to another auditor", 1, again.granted);
	CHECK_INT("it is still that one", first.mark.seq, again.mark.seq);
	CHECK_INT("the same hash", 1, hash_eq(&first.mark.hash, &again.mark.hash));
	CHECK_INT("another sum", 1, tell_sum(two, 2).mark.seq > first.mark.seq);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	CHECK_INT("each once", 2, gate_log_count(&g, "\"type\":\"suppressed\""));
	gate_verified(&g);
	audit_client_destroy(two);
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
		cmocka_unit_test(a_sum_that_is_told_again_is_there_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
