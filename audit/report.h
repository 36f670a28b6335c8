/*
 * report.h - what an auditor asks of a period: what was decided, by what rules, what
 * was let pass, what went wrong, and that the log of it is complete.
 *
 * It is read from the log itself, after verify_log() has looked at all of it; the
 * index has no part in it.  Memory is bounded: each table holds REPORT_NAMES names,
 * what comes behind them is counted as "(others)"; each list holds REPORT_EVENTS.
 */
#ifndef AUDIT_REPORT_H
#define AUDIT_REPORT_H

#include "audit/verify.h"
#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/hash.h"

#include <stddef.h>
#include <stdint.h>

#define REPORT_NAMES   200
#define REPORT_EVENTS  100
#define REPORT_BUCKETS 400
#define REPORT_NAME    120 /* bytes; longer ones are cut */
#define REPORT_TEXT    300
#define REPORT_OTHERS  "(others)"

enum report_tally_id {
#define TALLY(id, name, title, what, allowed, refused) TALLY_##id,
#define LIST(id, name, title, none)
#include "audit/report.def"
#undef TALLY
#undef LIST
	TALLY_COUNT
};

enum report_list_id {
#define TALLY(id, name, title, what, allowed, refused)
#define LIST(id, name, title, none) LIST_##id,
#include "audit/report.def"
#undef TALLY
#undef LIST
	LIST_COUNT
};

struct report_row {
	char name[REPORT_NAME];
	uint64_t allowed, refused;
};

struct report_tally {
	const char *name, *title, *what;
	const char *allowed, *refused; /* heads of its columns; "": it has no such */
	struct report_row rows[REPORT_NAMES + 1];
	size_t count;
};

struct report_event {
	uint64_t seq;
	char time[32], text[REPORT_TEXT];
};

struct report_list {
	const char *name, *title, *none;
	struct report_event events[REPORT_EVENTS];
	size_t count;   /* of events */
	uint64_t total; /* of which there were so many */
};

struct report_bucket {
	uint64_t allowed, refused;
};

struct report {
	char dir[256], log[160], from[32], to[32];
	char made[32]; /* "": it is not said, nor is dir */
	uint64_t from_ns, to_ns;
	uint64_t until_seq;                  /* 0: to the log's end */
	uint64_t buckets_from_ns, bucket_ns; /* whole hours or days, UTC */
	struct verify_report verify;
	/* in the period */
	uint64_t records, first_seq, last_seq, gaps, checkpoints;
	char first_time[32], last_time[32], first_hash[HASH_HEX_LEN + 1],
		last_hash[HASH_HEX_LEN + 1];
	uint64_t allowed, refused, reads, malformed, outcomes;
	uint64_t seen, judged, by_engine, unexplained; /* what happened in engines */
	struct report_bucket buckets[REPORT_BUCKETS + 1];
	size_t bucket_count;
	struct report_tally tallies[TALLY_COUNT];
	struct report_list lists[LIST_COUNT];
};

/*
 * Makes the report of records from from_ns up to to_ns (not part of it); a log that is
 * not whole gets one that says so (verify), of what stands before the fault.  NULL with
 * *err: it cannot be read at all.
 */
struct report *report_make(const char *dir, uint64_t from_ns, uint64_t to_ns, struct err *err);

/*
 * Likewise of the records below until_seq only, and without the time and place of its making:
 * the same log gives the same report.  verify: what else the log is held against.
 */
struct report *report_make_until(const char *dir, uint64_t from_ns, uint64_t to_ns,
				 uint64_t until_seq, const struct verify_options *verify,
				 struct err *err);
void report_destroy(struct report *r);

#define REPORT_OUT_MAX ((size_t)32 << 20)

void report_text(const struct report *r, struct buf *out);
/* One of its lists; where: behind how many more there are, e.g. ", which the log has". */
void report_list_text(const struct report_list *l, const char *where, struct buf *out);
void report_json(const struct report *r, struct buf *out);

/* One page: no scripts, nothing from elsewhere, every string escaped. */
void report_html(const struct report *r, struct buf *out);

/* "whole", or what is wrong in one word. */
const char *report_state(const struct report *r);

#endif
