/* The report as one page; its charts are drawn here, and no script runs in it. */
#include "audit/report.h"

#include "audit/report_style.h"
#include "audit/safe_priv.h"
#include "gate/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CHART_W 960
#define CHART_H 220
#define LEFT    48 /* for the numbers at the side */
#define BOTTOM  24
#define TOP     10
#define DATE_W  64 /* a date below the chart */

static void put_card(struct buf *out, const char *class, uint64_t n, const char *what)
{
	buf_printf(out, "<div class=\"card %s\"><b>", class);
	safe_count(out, n);
	buf_printf(out, "</b><span>%s</span></div>\n", what);
}

static void put_head(const struct report *r, struct buf *out)
{
	buf_puts(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
		      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		      "style-src 'unsafe-inline'\">\n<title>Audit report of ");
	safe_html(out, r->log);
	buf_printf(out, "</title>\n<style>%s</style></head>\n<body><main>\n<h1>Audit report of ",
		   report_style);
	safe_html_apart(out, r->log);
	buf_printf(out, "</h1>\n<p class=\"soft\">%.10s %.5s to %.10s %.5s UTC.", r->from,
		   r->from + 11, r->to, r->to + 11);
	if (*r->made)
		buf_printf(out, " Made on %.10s at %.5s UTC.", r->made, r->made + 11);
	buf_puts(out, "</p>\n");
}

static void put_cards(const struct report *r, struct buf *out)
{
	bool whole = r->verify.result == VERIFY_FINE && !r->gaps;

	buf_printf(out,
		   "<div class=\"cards\">\n<div class=\"card %s\"><b>%s</b><span>the log, "
		   "as verified</span></div>\n",
		   whole ? "good" : "bad", whole ? "Whole" : report_state(r));
	put_card(out, "", r->allowed, "requests allowed");
	put_card(out, "", r->refused, "requests refused");
	put_card(out, r->lists[LIST_ALARMS].total ? "bad" : "", r->lists[LIST_ALARMS].total,
		 "alarms of the log");
	put_card(out, r->lists[LIST_UNKNOWN].total ? "bad" : "", r->lists[LIST_UNKNOWN].total,
		 "outcomes unknown");
	put_card(out, r->lists[LIST_ATTEST_FAILED].total ? "bad" : "",
		 r->lists[LIST_ATTEST_FAILED].total, "attestations failed");
	buf_puts(out, "</div>\n");
}

static void put_record(struct buf *out, const char *what, uint64_t seq, const char *time,
		       const char *hash)
{
	buf_printf(out, "<dt>%s</dt><dd>", what);
	safe_count(out, seq);
	buf_printf(out, ", %.19sZ<br><span class=\"hash\">%s</span></dd>\n", time, hash);
}

static void put_completeness(const struct report *r, struct buf *out)
{
	const struct verify_report *v = &r->verify;

	buf_puts(out, "<h2>Completeness</h2>\n<dl>\n<dt>State of the log</dt><dd>");
	safe_html(out, report_state(r));
	if (*v->what) {
		buf_puts(out, ": ");
		safe_html_apart(out, v->what);
	}
	buf_puts(out, "</dd>\n<dt>Checked</dt><dd>");
	safe_count(out, v->records);
	buf_puts(out, " records of the whole log: each hash, the chain, the numbering and the "
		      "Merkle tree; ");
	safe_count(out, v->checkpoints);
	buf_puts(out, " checkpoints on record</dd>\n<dt>Signed</dt><dd>");
	safe_count(out, v->signed_size);
	buf_puts(out, " records by ");
	safe_html_apart(out, *v->key ? v->key : "nobody");
	buf_puts(out, "</dd>\n<dt>In the period</dt><dd>");
	safe_count(out, r->records);
	buf_printf(out, " records, %" PRIu64 " gaps</dd>\n", r->gaps);
	buf_printf(out,
		   "<dt>Observed</dt><dd>%" PRIu64 " happenings in engines: %" PRIu64
		   " were decided, %" PRIu64 " the engine's own, %" PRIu64 " unexplained</dd>\n",
		   r->seen, r->judged, r->by_engine, r->unexplained);
	if (r->records) {
		put_record(out, "First record", r->first_seq, r->first_time, r->first_hash);
		put_record(out, "Last record", r->last_seq, r->last_time, r->last_hash);
	}
	buf_puts(out, "</dl>\n");
}

/* --- the chart --- */

static uint64_t highest(const struct report *r)
{
	uint64_t most = 0, step = 1;

	for (size_t i = 0; i < r->bucket_count; i++)
		if (r->buckets[i].allowed + r->buckets[i].refused > most)
			most = r->buckets[i].allowed + r->buckets[i].refused;
	/* Up to a number that four lines divide well. */
	while (step * 40 < most)
		step *= 10;
	for (uint64_t n = 4; n <= 40; n += 4)
		if (step * n >= most)
			return step * n;
	return most + 1;
}

static void put_lines(struct buf *out, uint64_t most)
{
	for (unsigned i = 0; i <= 4; i++) {
		unsigned y = TOP + (CHART_H - TOP - BOTTOM) * (4 - i) / 4;

		buf_printf(out,
			   "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%u\" y2=\"%u\"/>"
			   "<text x=\"%d\" y=\"%u\" text-anchor=\"end\">",
			   LEFT, CHART_W, y, y, LEFT - 6, y + 4);
		safe_count(out, most * i / 4);
		buf_puts(out, "</text>\n");
	}
}

static void put_bar(const struct report *r, struct buf *out, size_t i, uint64_t most)
{
	const struct report_bucket *b = &r->buckets[i];
	double step = (double)(CHART_W - LEFT) / (double)r->bucket_count;
	double room = CHART_H - TOP - BOTTOM, x = LEFT + step * (double)i;
	double gap = step > 4 ? step * 0.15 : 0, base = CHART_H - BOTTOM;
	double allowed = room * (double)b->allowed / (double)most;
	double refused = room * (double)b->refused / (double)most;
	char when[CLOCK_TEXT_MAX];

	if (!b->allowed && !b->refused)
		return;
	/* What there is can be seen, however little it is beside the rest. */
	allowed = b->allowed && allowed < 1 ? 1 : allowed;
	refused = b->refused && refused < 1 ? 1 : refused;
	clock_format(r->buckets_from_ns + i * r->bucket_ns, when);
	buf_printf(out,
		   "<g><title>%.16s: %" PRIu64 " allowed, %" PRIu64 " refused</title>"
		   "<rect class=\"a\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>"
		   "<rect class=\"d\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/></g>\n",
		   when, b->allowed, b->refused, x, base - allowed, step - gap, allowed, x,
		   base - allowed - refused, step - gap, refused);
}

static void put_dates(const struct report *r, struct buf *out)
{
	size_t every = r->bucket_count / 6 + 1;
	bool hours = r->bucket_ns < UINT64_C(86400000000000);

	for (size_t i = 0; i < r->bucket_count; i += every) {
		double x = LEFT + (double)(CHART_W - LEFT) * (double)i / (double)r->bucket_count;
		char when[CLOCK_TEXT_MAX];

		clock_format(r->buckets_from_ns + i * r->bucket_ns, when);
		when[10] = ' ';
		if (x > CHART_W - DATE_W)
			break;
		buf_printf(out, "<text x=\"%.1f\" y=\"%d\">%.*s</text>\n", x, CHART_H - 6,
			   hours ? 11 : 10, hours ? when + 5 : when);
	}
}

static void put_chart(const struct report *r, struct buf *out)
{
	uint64_t most = highest(r), hours = r->bucket_ns / UINT64_C(3600000000000);

	buf_puts(out, "<h2>Decisions over time</h2>\n<p class=\"soft\"><span class=\"key "
		      "allow\"></span>allowed<span class=\"key deny\"></span>refused</p>\n<p "
		      "class=\"soft\">");
	if (hours == 1)
		buf_puts(out, "By the hour, UTC.</p>\n");
	else if (hours == 24)
		buf_puts(out, "By the day, UTC.</p>\n");
	else
		buf_printf(out, "In steps of %" PRIu64 " days, UTC.</p>\n", hours / 24);
	buf_printf(out,
		   "<svg class=\"time\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Decisions "
		   "over time: %" PRIu64 " allowed, %" PRIu64 " refused\">\n",
		   CHART_W, CHART_H, r->allowed, r->refused);
	put_lines(out, most);
	for (size_t i = 0; i < r->bucket_count; i++)
		put_bar(r, out, i, most);
	put_dates(r, out);
	buf_puts(out, "</svg>\n");
}

/* --- tables --- */

static void put_cell(struct buf *out, const char *head, uint64_t n)
{
	if (!*head)
		return;
	buf_puts(out, "<td class=\"n\">");
	safe_count(out, n);
	buf_puts(out, "</td>");
}

static void put_row(const struct report_tally *t, const struct report_row *row, uint64_t most,
		    struct buf *out)
{
	double allowed = 100.0 * (double)row->allowed / (double)most;
	double refused = 100.0 * (double)row->refused / (double)most;

	buf_puts(out, "<tr><td class=\"name\">");
	safe_html_apart(out, row->name);
	buf_puts(out, "</td>");
	put_cell(out, t->allowed, row->allowed);
	put_cell(out, t->refused, row->refused);
	buf_printf(out,
		   "<td class=\"bar\"><svg height=\"14\" viewBox=\"0 0 100 14\" "
		   "preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"a\" y=\"2\" "
		   "width=\"%.2f\" height=\"10\"/><rect class=\"d\" x=\"%.2f\" y=\"2\" "
		   "width=\"%.2f\" height=\"10\"/></svg></td></tr>\n",
		   allowed, allowed, refused);
}

static void put_heads(const struct report_tally *t, struct buf *out)
{
	const char *const heads[] = {t->allowed, t->refused};

	buf_puts(out, "<table><tr><th>Name</th>");
	for (size_t i = 0; i < 2; i++)
		if (*heads[i])
			buf_printf(out, "<th class=\"n\">%s</th>", heads[i]);
	buf_puts(out, "<th class=\"bar\"></th></tr>\n");
}

static void put_tally(const struct report_tally *t, struct buf *out)
{
	uint64_t most = 1;

	buf_printf(out, "<h2>%s</h2>\n<p class=\"soft\">%c%s.</p>\n", t->title,
		   t->what[0] - 'a' + 'A', t->what + 1);
	if (!t->count) {
		buf_puts(out, "<p class=\"none\">None in this period.</p>\n");
		return;
	}
	for (size_t i = 0; i < t->count; i++)
		if (t->rows[i].allowed + t->rows[i].refused > most)
			most = t->rows[i].allowed + t->rows[i].refused;
	put_heads(t, out);
	for (size_t i = 0; i < t->count; i++)
		put_row(t, &t->rows[i], most, out);
	buf_puts(out, "</table>\n");
}

static void put_list(const struct report_list *l, struct buf *out)
{
	buf_printf(out, "<h2>%s</h2>\n", l->title);
	if (!l->total) {
		buf_printf(out, "<p class=\"none\">%c%s.</p>\n", l->none[0] - 'a' + 'A',
			   l->none + 1);
		return;
	}
	buf_puts(out, "<table><tr><th class=\"n\">Record</th><th>Time</th><th>What</th></tr>\n");
	for (size_t i = 0; i < l->count; i++) {
		buf_puts(out, "<tr><td class=\"n\">");
		safe_count(out, l->events[i].seq);
		buf_printf(out, "</td><td class=\"when\">%.19sZ</td><td class=\"name\">",
			   l->events[i].time);
		safe_html_apart(out, l->events[i].text);
		buf_puts(out, "</td></tr>\n");
	}
	buf_puts(out, "</table>\n");
	if (l->total > l->count) {
		buf_puts(out, "<p class=\"soft\">And ");
		safe_count(out, l->total - l->count);
		buf_puts(out, " more.</p>\n");
	}
}

void report_html(const struct report *r, struct buf *out)
{
	put_head(r, out);
	put_cards(r, out);
	put_completeness(r, out);
	put_chart(r, out);
	for (int i = 0; i < TALLY_COUNT; i++)
		put_tally(&r->tallies[i], out);
	for (int i = 0; i < LIST_COUNT; i++)
		put_list(&r->lists[i], out);
	buf_puts(out, "<footer>Made by sallyport " SALLYPORT_VERSION);
	if (*r->made) {
		buf_puts(out, " from <code>");
		safe_html_apart(out, r->dir);
		buf_puts(out, "</code>");
	}
	buf_puts(out,
		 ". The log is the evidence; this page is a view of it. Without a "
		 "checkpoint or receipt that was kept elsewhere, a log that was cut at its end "
		 "or written anew as a whole cannot be told from a true one: see "
		 "<code>sallyport audit verify --from</code>.</footer>\n"
		 "</main></body></html>\n");
}
