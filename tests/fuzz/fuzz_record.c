/* The log: what a worker may send, and files of whatever bytes. */
#include "tests/fuzz/fuzz.h"

#include "audit/record_priv.h"
#include "audit/verify.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* In the place of the library's: nobody writes to these logs while they are looked at. */
int nanosleep(const struct timespec *wanted, struct timespec *left)
{
	(void)wanted;
	(void)left;
	return 0;
}

/* What the auditor takes is a member list: with braces around it, it is one JSON object. */
static void check_valid(struct arena *a, struct span body)
{
	enum jv_fault fault = JV_FAULT_NONE;
	struct record_peek peek;
	struct err err = {0};
	struct buf b;
	struct jv v;

	buf_init(&b, 1u << 20);
	buf_puts(&b, "{");
	buf_put(&b, body.at, body.len);
	buf_puts(&b, "}");
	HOLDS(record_peek(body, &peek));
	/* Deep facts and big numbers are the one thing that the strict reader does not take. */
	if (jv_parse(a, buf_span(&b), &v, &fault, &err) == 0) {
		HOLDS(v.kind == JV_OBJECT && jv_get(&v, "type"));
		HOLDS(!jv_get(&v, "h") && !jv_get(&v, "prev") && !jv_get(&v, "seq"));
		HOLDS(peek.allow == (peek.type == RECORD_DECISION &&
				     strcmp(jv_str(&v, "verdict", ""), "allow") == 0));
	} else {
		HOLDS(fault == JV_FAULT_LIMIT || fault == JV_FAULT_DUPLICATE ||
		      fault == JV_FAULT_ENCODING);
	}
	for (size_t i = 0; i < body.len; i++)
		HOLDS((unsigned char)body.at[i] >= ' ');
	buf_fini(&b);
}

static void check_file(const uint8_t *data, size_t size)
{
	struct verify_report report;
	char path[400];
	int fd;

	snprintf(path, sizeof(path), "%s/00000000000000000000.log", fuzz_folder());
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	HOLDS(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
	verify_log(fuzz_folder(), NULL, &report);
	HOLDS(report.result == VERIFY_FINE || *report.what);
	HOLDS(report.records <= size && report.allowed <= report.decisions);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_create(FUZZ_ARENA_BYTES);
	struct span body = fuzz_text(a, data, size);
	struct record_peek peek;

	if (record_peek(body, &peek)) {
		HOLDS(peek.type < RECORD_TYPE_COUNT);
		HOLDS(peek.id.len <= size && peek.of.len <= size);
	}
	record_peek_uint(body, "count");
	if (record_valid(body))
		check_valid(a, body);
	check_file(data, size);
	arena_destroy(a);
	return 0;
}
