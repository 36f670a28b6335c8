#include "audit/report.h"

#include "audit/safe_priv.h"
#include "gate/base/clock.h"

#include <inttypes.h>
#include <string.h>

#define BAR    40
#define BAR_OF 60 /* buckets that are shown one by one; more are left to HTML and JSON */

static void put_head(const struct report *r, struct buf *out)
{
	buf_puts(out, "Audit report of ");
	safe_text(out, r->log);
	buf_printf(out, "\n  period       %.19sZ to %.19sZ\n", r->from, r->to);
	if (!*r->made)
		return;
	buf_printf(out, "  made         %.19sZ from ", r->made);
	safe_text(out, r->dir);
	buf_puts(out, "\n");
}

static void put_completeness(const struct report *r, struct buf *out)
{
	const struct verify_report *v = &r->verify;

	buf_printf(out, "\nCompleteness: %s\n", report_state(r));
	if (*v->what) {
		buf_puts(out, "  what is wrong  ");
		safe_text(out, v->what);
		buf_puts(out, "\n");
	}
	buf_printf(out,
		   "  the log      %" PRIu64 " records, %" PRIu64 " to %" PRIu64
		   "; every hash, the chain, the tree and %" PRIu64 " checkpoints were checked\n",
		   v->records, v->first_seq, v->last_seq, v->checkpoints);
	buf_printf(out, "  signed       %" PRIu64 " records by %s\n", v->signed_size,
		   *v->key ? v->key : "nobody");
	if (!r->records) {
		buf_puts(out, "  the period   has no records\n");
		return;
	}
	buf_printf(out, "  the period   %" PRIu64 " records, %" PRIu64 " gaps\n", r->records,
		   r->gaps);
	buf_printf(out,
		   "  observed     %" PRIu64 " happenings in engines: %" PRIu64
		   " were decided, %" PRIu64 " the engine's own, %" PRIu64 " unexplained\n",
		   r->seen, r->judged, r->by_engine, r->unexplained);
	buf_printf(out, "  first        %" PRIu64 "  %s\n               %s\n", r->first_seq,
		   r->first_time, r->first_hash);
	buf_printf(out, "  last         %" PRIu64 "  %s\n               %s\n", r->last_seq,
		   r->last_time, r->last_hash);
}

static void put_decisions(const struct report *r, struct buf *out)
{
	buf_printf(out,
		   "\nDecisions: %" PRIu64 "\n  allowed %12" PRIu64 "\n  refused %12" PRIu64
		   "\n  of which reads %5" PRIu64 ", malformed %" PRIu64 "\n",
		   r->allowed + r->refused, r->allowed, r->refused, r->reads, r->malformed);
}

static void put_times(const struct report *r, struct buf *out)
{
	uint64_t most = 1;

	if (r->bucket_count > BAR_OF && r->bucket_ns < UINT64_C(86400000000000))
		return;
	for (size_t i = 0; i < r->bucket_count; i++)
		if (r->buckets[i].allowed + r->buckets[i].refused > most)
			most = r->buckets[i].allowed + r->buckets[i].refused;
	buf_puts(out, "\nOver time (# allowed, x refused)\n");
	for (size_t i = 0; i < r->bucket_count; i++) {
		const struct report_bucket *b = &r->buckets[i];
		char when[CLOCK_TEXT_MAX];

		if (!b->allowed && !b->refused)
			continue;
		clock_format(r->buckets_from_ns + i * r->bucket_ns, when);
		buf_printf(out, "  %.16s %10" PRIu64 " %10" PRIu64 " ", when, b->allowed,
			   b->refused);
		for (uint64_t n = 0; n < b->allowed * BAR / most; n++)
			buf_puts(out, "#");
		for (uint64_t n = 0; n < b->refused * BAR / most; n++)
			buf_puts(out, "x");
		buf_puts(out, "\n");
	}
}

static void put_tally(const struct report_tally *t, struct buf *out)
{
	buf_printf(out, "\n%s (%s)\n", t->title, t->what);
	if (!t->count)
		buf_puts(out, "  none\n");
	else
		buf_printf(out, "  %10s %10s\n", t->allowed, t->refused);
	for (size_t i = 0; i < t->count; i++) {
		if (*t->allowed)
			buf_printf(out, "  %10" PRIu64, t->rows[i].allowed);
		else
			buf_puts(out, "            ");
		if (*t->refused)
			buf_printf(out, " %10" PRIu64 "  ", t->rows[i].refused);
		else
			buf_puts(out, "             ");
		safe_text(out, t->rows[i].name);
		buf_puts(out, "\n");
	}
}

void report_list_text(const struct report_list *l, const char *where, struct buf *out)
{
	buf_printf(out, "\n%s: ", l->title);
	if (!l->total) {
		buf_printf(out, "%s\n", l->none);
		return;
	}
	buf_printf(out, "%" PRIu64 "\n", l->total);
	for (size_t i = 0; i < l->count; i++) {
		buf_printf(out, "  %8" PRIu64 "  %.19sZ  ", l->events[i].seq, l->events[i].time);
		safe_text(out, l->events[i].text);
		buf_puts(out, "\n");
	}
	if (l->total > l->count)
		buf_printf(out, "  and %" PRIu64 " more%s\n", l->total - l->count, where);
}

void report_text(const struct report *r, struct buf *out)
{
	put_head(r, out);
	put_completeness(r, out);
	put_decisions(r, out);
	put_times(r, out);
	for (int i = 0; i < TALLY_COUNT; i++)
		put_tally(&r->tallies[i], out);
	for (int i = 0; i < LIST_COUNT; i++)
		report_list_text(&r->lists[i], "", out);
}
