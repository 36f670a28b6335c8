/*
 * index_speed [RECORDS] - how long the index takes to make, and how long a query takes
 * beside a raw SQLite query for the same numbers.
 *
 * Default 20,000 records, for CI; 10000000 needs about 12 GiB below $TMPDIR.  It fails if
 * what is found is not the same, if a query walks through the log instead of its index,
 * or if memory grew with the log; times are told, not judged.
 */
#include "tests/unit/audit/fixture.h"
#include "tests/unit/check.h"

#include "audit/index.h"
#include "audit/line_priv.h"
#include "audit/segment_priv.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define SEGMENT_RECORDS 100000
#define ROUNDS          7
#define MEMORY_KIB      (160 * 1024)

/* Sanitizers keep what was freed. */
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true
#elif defined(__has_feature)
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED false
#endif

static uint64_t records = 20000;
static char dir[FIXTURE_PATH];

static void body_of(uint64_t n, struct buf *out)
{
	if (n % 2)
		buf_printf(out,
			   "\"type\":\"outcome\",\"id\":\"%s\",\"of\":\"%s\",\"outcome\":{"
			   "\"status\":\"%s\",\"http\":201}",
			   fixture_id((unsigned)n), fixture_id((unsigned)n - 1),
			   n % 1001 ? "ok" : "fail");
	else
		buf_printf(
			out,
			"\"type\":\"decision\",\"id\":\"%s\",\"actor\":{\"identity\":\"agent-"
			"%" PRIu64 "\",\"owner\":\"team-%" PRIu64 "\"},\"op\":\"%s\",\"req\":{"
			"\"method\":\"POST\",\"path\":\"/containers/create\"},\"res\":[{\"type\":"
			"\"container\",\"name\":\"box-%" PRIu64 "\"}],\"pol\":{\"profile\":"
			"\"p%" PRIu64 "\",\"rule\":\"%s\"},\"verdict\":\"%s\"%s",
			fixture_id((unsigned)n), n % 97, n % 11,
			n % 3 ? "container.create" : "exec.start", n, n % 7,
			n % 10 ? "settings" : "privileges", n % 10 ? "allow" : "deny",
			n % 10 ? "" : ",\"reason\":\"privileged\"");
}

static void write_segment(struct line_writer *w, struct buf *out, struct buf *body, uint64_t until)
{
	char name[SEGMENT_NAME_MAX];
	struct err err = {0};
	int fd;

	segment_name(w->seq, name);
	fd = open(fixture_path(dir, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (w->seq < until) {
		buf_clear(body);
		body_of(w->seq, body);
		if (buf_room(out) < RECORD_LINE_MAX + 1) {
			CHECK_INT(err.msg, 0,
				  io_write_all(fd, buf_span(out).at, buf_len(out), &err));
			buf_clear(out);
		}
		CHECK_INT("line", 1, line_write(w, out, buf_span(body)));
	}
	CHECK_INT(err.msg, 0, io_write_all(fd, buf_span(out).at, buf_len(out), &err));
	buf_clear(out);
	close(fd);
}

static void write_log(void)
{
	struct line_writer w = {.origin = "test/speed", .epoch = 1};
	static const struct hash none;
	struct buf out, body;

	buf_init(&out, 1 << 20);
	buf_init(&body, 4096);
	line_writer_set(&w, 0, &none);
	while (w.seq < records)
		write_segment(&w, &out, &body,
			      w.seq + SEGMENT_RECORDS < records ? w.seq + SEGMENT_RECORDS
								: records);
	buf_fini(&out);
	buf_fini(&body);
}

static int count_hit(void *arg, const struct log_hit *hit)
{
	uint64_t *sum = arg;

	*sum += hit->fields.seq;
	return 0;
}

/* Nanoseconds of the best of some rounds. */
static uint64_t our_time(struct log_index *ix, const struct log_query *q, uint64_t *ret_sum)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t begin = clock_boot_ns(), sum = 0;
		struct err err = {0};

		CHECK_INT("query", 0, log_index_query(ix, q, count_hit, &sum, &err));
		*ret_sum = sum;
		if (clock_boot_ns() - begin < best)
			best = clock_boot_ns() - begin;
	}
	return best;
}

static uint64_t raw_time(sqlite3 *db, const char *sql, const char *value, uint64_t *ret_sum)
{
	uint64_t best = UINT64_MAX;
	sqlite3_stmt *s;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t begin = clock_boot_ns(), sum = 0;

		CHECK_INT(sql, SQLITE_OK, sqlite3_prepare_v2(db, sql, -1, &s, NULL));
		sqlite3_bind_text(s, 1, value, -1, SQLITE_STATIC);
		while (sqlite3_step(s) == SQLITE_ROW)
			sum += (uint64_t)sqlite3_column_int64(s, 0);
		/* Each row looked at is one step: an index walks no more than it finds. */
		CHECK_INT(sql, 0, sqlite3_stmt_status(s, SQLITE_STMTSTATUS_FULLSCAN_STEP, 0));
		sqlite3_finalize(s);
		*ret_sum = sum;
		if (clock_boot_ns() - begin < best)
			best = clock_boot_ns() - begin;
	}
	return best;
}

#define NEWEST(where)                                                                              \
	"SELECT seq FROM records WHERE " where " AND joined=0 ORDER BY seq DESC LIMIT 100"
#define BY(column) NEWEST(column "=(SELECT id FROM names WHERE text=?1)")

static void compare(struct log_index *ix, sqlite3 *db)
{
	static const struct {
		const char *label, *sql, *value;
		struct log_query q;
	} cases[] = {
		{"identity", BY("identity"), "agent-42", {.identity = "agent-42", .limit = 100}},
		{"owner", BY("owner"), "team-4", {.owner = "team-4", .limit = 100}},
		{"op", BY("op"), "exec.start", {.op = "exec.start", .limit = 100}},
		{"verdict", BY("verdict"), "deny", {.verdict = "deny", .limit = 100}},
		{"reason", BY("reason"), "privileged", {.reason = "privileged", .limit = 100}},
		{"rule", BY("rule"), "privileges", {.rule = "privileges", .limit = 100}},
		{"profile", BY("profile"), "p3", {.profile = "p3", .limit = 100}},
		{"object",
		 "SELECT seq FROM objects WHERE name=?1",
		 "box-5000",
		 {.object = "box-5000", .limit = 100}},
		{"id",
		 "SELECT seq FROM records WHERE id=?1",
		 "01900000-0000-7000-8000-000000001388",
		 {.id = "01900000-0000-7000-8000-000000001388", .limit = 100}},
		{"text",
		 "SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY rowid DESC LIMIT 100",
		 "\"box-5000\"",
		 {.text = "box-5000", .limit = 100}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t ours, raw, sum = 0, raw_sum = 0;

		ours = our_time(ix, &cases[i].q, &sum);
		raw = raw_time(db, cases[i].sql, cases[i].value, &raw_sum);
		CHECK_INT(cases[i].label, raw_sum, sum);
		CHECK_INT(cases[i].label, 1, sum > 0);
		print_message("%-10s %8.3f ms, raw SQLite %8.3f ms, ratio %.1f\n", cases[i].label,
			      (double)ours / 1e6, (double)raw / 1e6, (double)ours / (double)raw);
	}
}

static int take_time(void *arg, const struct log_hit *hit)
{
	*(uint64_t *)arg = hit->fields.t_ns;
	return 0;
}

struct counted {
	uint64_t count, first, last;
};

static int count_numbers(void *arg, const struct log_hit *hit)
{
	struct counted *c = arg;

	c->first = c->count++ ? c->first : hit->fields.seq;
	c->last = hit->fields.seq;
	return 0;
}

/* By time, over several blocks of records: as by the numbers of the records. */
static void finds_by_time(struct log_index *ix)
{
	uint64_t from = records / 4 * 2, to = from + records / 8 * 2, since = 0, until = 0;
	char id[40];
	struct log_query q = {.id = id};
	struct counted found = {0};
	struct err err = {0};

	snprintf(id, sizeof(id), "%s", fixture_id((unsigned)from));
	CHECK_INT("since", 0, log_index_query(ix, &q, take_time, &since, &err));
	snprintf(id, sizeof(id), "%s", fixture_id((unsigned)to));
	CHECK_INT("until", 0, log_index_query(ix, &q, take_time, &until, &err));
	q = (struct log_query){.since_ns = since, .until_ns = until};
	CHECK_INT("times", 1, since && until > since);
	CHECK_INT("by time", 0, log_index_query(ix, &q, count_numbers, &found, &err));
	CHECK_INT("how many", (to - from) / 2, found.count);
	CHECK_INT("from", from, found.first);
	CHECK_INT("to", to - 2, found.last);
}

static void finds_as_fast_as_sqlite(void **state)
{
	struct err err = {0};
	struct log_index *ix;
	struct rusage usage;
	uint64_t begin;
	sqlite3 *db;

	(void)state;
	fixture_dir(dir);
	write_log();
	begin = clock_boot_ms();
	ix = log_index_open(dir, NULL, &err);
	CHECK_STR("index", "", err.msg);
	print_message("%" PRIu64 " records indexed in %.1f s\n", records,
		      (double)(clock_boot_ms() - begin) / 1e3);
	CHECK_INT("raw", SQLITE_OK, sqlite3_open(log_index_file(ix), &db));
	compare(ix, db);
	finds_by_time(ix);
	sqlite3_close(db);
	log_index_close(ix);
	begin = clock_boot_ms();
	ix = log_index_open(dir, NULL, &err);
	CHECK_INT("again", 0, log_index_was_made(ix));
	print_message("opened again in %.3f s\n", (double)(clock_boot_ms() - begin) / 1e3);
	log_index_close(ix);
	getrusage(RUSAGE_SELF, &usage);
	print_message("at most %ld KiB of memory\n", usage.ru_maxrss);
	if (!SANITIZED)
		CHECK_INT("memory", 1, usage.ru_maxrss < MEMORY_KIB);
	fixture_remove(dir);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(finds_as_fast_as_sqlite)};

	if (argc > 1)
		records = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
