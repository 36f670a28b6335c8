/* The table of metrics: what many processes count, how it is written, and what finds no room. */
#include "proxy/metrics.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct metrics *table(void)
{
	struct err err = {0};
	struct metrics *m = metrics_create(&err);

	CHECK_INT("table", 1, m != NULL);
	return m;
}

static bool says(const struct metrics *m, const char *line)
{
	struct buf out;
	bool found;

	buf_init(&out, METRICS_TEXT_MAX);
	metrics_write(m, "0123456789abcdef", true, &out);
	CHECK_INT("fits", 0, buf_spent(&out));
	buf_put(&out, "", 1);
	found = strstr(buf_span(&out).at, line) != NULL;
	if (!found)
		print_message("not in:\n%.3000s\n", buf_span(&out).at);
	buf_fini(&out);
	return found;
}

static void what_processes_count_adds_up(void **state)
{
	struct metrics *m = table();

	(void)state;
	for (int i = 0; i < 16; i++)
		if (fork() == 0) {
			for (int k = 0; k < 1000; k++) {
				metrics_add(m, METRIC_connections, 1);
				metrics_decision(m, "p", "exec.start", "deny", "privileged");
			}
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	CHECK_INT("counter", 1, says(m, "\nsallyport_connections_total 16000\n"));
	CHECK_INT("decisions", 1,
		  says(m, "\nsallyport_decisions_total{profile=\"p\",operation=\"exec.start\","
			  "verdict=\"deny\",reason=\"privileged\"} 16000\n"));
	CHECK_INT("info", 1,
		  says(m, "sallyport_build_info{version=\"" SALLYPORT_VERSION
			  "\",generation=\"0123456789ab\"} 1\n"));
}

static void times_go_into_buckets(void **state)
{
	static const uint64_t took[] = {0, 1, 2, 30, 100000};
	struct metrics *m = table();

	(void)state;
	for (size_t i = 0; i < sizeof(took) / sizeof(*took); i++)
		metrics_request(m, took[i]);
	CHECK_INT("1 ms", 1, says(m, "_bucket{le=\"0.001\"} 2\n"));
	CHECK_INT("2 ms", 1, says(m, "_bucket{le=\"0.002\"} 3\n"));
	CHECK_INT("50 ms", 1, says(m, "_bucket{le=\"0.05\"} 4\n"));
	CHECK_INT("30 s", 1, says(m, "_bucket{le=\"30\"} 4\n"));
	CHECK_INT("all", 1, says(m, "_bucket{le=\"+Inf\"} 5\n"));
	CHECK_INT("sum", 1, says(m, "sallyport_request_seconds_sum 100.033\n"));
	CHECK_INT("count", 1, says(m, "sallyport_request_seconds_count 5\n"));
}

/* Memory is bounded, whatever there is to tell apart; nothing is lost. */
static void what_finds_no_room_is_other(void **state)
{
	struct metrics *m = table();
	unsigned long long sum = 0, n;
	const char *at;
	struct buf out;

	(void)state;
	for (int i = 0; i < 3 * METRICS_DECISIONS_MAX; i++) {
		char name[32];

		snprintf(name, sizeof(name), "p%d", i);
		metrics_decision(m, name, "exec.start", "allow", "");
	}
	buf_init(&out, METRICS_TEXT_MAX);
	metrics_write(m, "g", false, &out);
	buf_put(&out, "", 1);
	CHECK_INT("fits", 0, buf_spent(&out));
	CHECK_INT("the log is down", 1,
		  strstr(buf_span(&out).at, "sallyport_audit_up 0\n") != NULL);
	for (at = buf_span(&out).at; (at = strstr(at, "\"} ")); at += 3)
		if (sscanf(at + 3, "%llu", &n) == 1 && n < 1000000)
			sum += n;
	/* build_info's 1 and the empty buckets of the histogram stand there as well. */
	CHECK_INT("all are counted", 3 * METRICS_DECISIONS_MAX + 1, sum);
	buf_fini(&out);
}

static void without_a_table_nothing_is_counted(void **state)
{
	(void)state;
	metrics_add(NULL, METRIC_streams, 1);
	metrics_decision(NULL, "p", "o", "allow", "");
	metrics_request(NULL, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_processes_count_adds_up),
		cmocka_unit_test(times_go_into_buckets),
		cmocka_unit_test(what_finds_no_room_is_other),
		cmocka_unit_test(without_a_table_nothing_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
