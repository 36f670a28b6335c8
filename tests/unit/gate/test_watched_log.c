/* test_watched_log.c - up to when engines were watched, as the log tells a gate that starts. */
#include "gate/watched_log.h"

#include "audit/fields.h"
#include "gate/base/jv.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB    ((off_t)1 << 20)
#define SUM(t) "{\"type\":\"observed_sum\",\"backend\":\"engine\",\"to\":\"" t "\"}\n"
#define DECISION                                                                                   \
	"{\"type\":\"decision\",\"op\":\"container.start\",\"verdict\":\"allow\","                 \
	"\"backend\":\"engine\",\"id\":\"d-1\",\"res\":[{\"id\":\"" OBJECT "\"}]}\n"
#define OBJECT "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define FIRST  "2026-01-01T00:00:00.000000001Z"
#define LAST   "2026-01-01T00:01:00.000000002Z"

/* A text at a place of a segment; between them is nothing, which takes no room on the disk. */
struct part {
	int segment;
	off_t at;
	const char *text;
};

static void put(const char *dir, const struct part *p)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%020d.log", dir, p->segment);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	CHECK_INT(p->text, (int)strlen(p->text), (int)pwrite(fd, p->text, strlen(p->text), p->at));
	close(fd);
}

static void drop(const char *dir, const struct part *p)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%020d.log", dir, p->segment);
	unlink(path);
}

static void the_last_sum_is_found(void **state)
{
	static const struct {
		const char *label;
		struct part parts[3];
		const char *want;
		bool starts;
	} rows[] = {
		{"nothing", {{0, 0, ""}}, "", false},
		{"one", {{0, 0, SUM(FIRST)}}, FIRST, false},
		{"the last", {{0, 0, SUM(FIRST)}, {0, 4 * MIB, "\n" SUM(LAST)}}, LAST, false},
		{"behind a large part of a segment",
		 {{0, 0, SUM(FIRST)}, {0, 200 * MIB, "\n" SUM(LAST) DECISION}},
		 LAST,
		 true},
		{"before a large part of a segment",
		 {{0, 4096, "\n" SUM(LAST)}, {0, 200 * MIB, "\n" DECISION}},
		 LAST,
		 true},
		{"over the edge of a piece",
		 {{0, 0, SUM(FIRST)}, {0, 3 * MIB - 10, "\n" SUM(LAST)}, {0, 4 * MIB - 1, "\n"}},
		 LAST,
		 false},
		{"in the segment before",
		 {{0, 0, "\n" SUM(LAST)}, {7, 200 * MIB, "\n" DECISION}},
		 LAST,
		 true},
	};
	const struct conf_backend engine = {.name = "engine"};
	const struct proxy_conf conf = {.backends = &engine, .backend_count = 1};

	(void)state;
	jv_init();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char dir[] = "/tmp/sallyport-test-XXXXXX";
		struct err err = {0};
		struct watched *w = watched_create(&err);
		uint64_t want = *rows[i].want ? fields_time(rows[i].want) : 0;

		CHECK_INT(rows[i].label, 1, w && mkdtemp(dir));
		for (size_t j = 0; j < 3 && rows[i].parts[j].text; j++)
			put(dir, &rows[i].parts[j]);
		watched_restore(w, &conf, dir);
		CHECK_INT(rows[i].label, (long long)want, (long long)watched_of(w, 0)->last_ns);
		CHECK_INT(rows[i].label, rows[i].starts, watched_starts(w, 0, OBJECT));
		for (size_t j = 0; j < 3 && rows[i].parts[j].text; j++)
			drop(dir, &rows[i].parts[j]);
		rmdir(dir);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_sum_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
