/* The whole archive on one page: no scripts, nothing from elsewhere, every string escaped. */
#include "audit/evidence/evidence_priv.h"

#include "audit/report_style.h"
#include "audit/safe_priv.h"

#include <inttypes.h>
#include <string.h>

static void put_head(const struct evidence *e, struct buf *out)
{
	buf_puts(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
		      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		      "style-src 'unsafe-inline'\">\n<title>Evidence of ");
	safe_html(out, e->scan->log);
	buf_printf(out,
		   "</title>\n<style>%s pre{white-space:pre-wrap;overflow-wrap:anywhere;font:13px/"
		   "1.5 ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}</style></head>\n"
		   "<body><main>\n<h1>Evidence of ",
		   report_style);
	safe_html_apart(out, e->scan->log);
	buf_printf(out, "</h1>\n<p class=\"soft\">%s. %.10s %.5s to %.10s %.5s UTC.</p>\n",
		   evidence_framework_title(e->ask->framework), e->scan->from, e->scan->from + 11,
		   e->scan->to, e->scan->to + 11);
}

static void put_card(struct buf *out, const char *class, uint64_t n, const char *what)
{
	buf_printf(out, "<div class=\"card %s\"><b>", class);
	safe_count(out, n);
	buf_printf(out, "</b><span>%s</span></div>\n", what);
}

static void put_cards(const struct evidence *e, struct buf *out)
{
	const struct scan *s = e->scan;
	uint64_t trouble = s->types[RECORD_LOG_ALARM] + s->types[RECORD_OBSERVED_GAP] + s->damaged;
	uint64_t open = s->anchor_size ? s->behind_anchor : s->records;

	buf_puts(out, "<div class=\"cards\">\n<div class=\"card good\"><b>Whole</b><span>the log, "
		      "as verified</span></div>\n");
	put_card(out, "", s->records, "records of the period");
	put_card(out, s->unexplained ? "bad" : "", s->unexplained, "happenings unexplained");
	put_card(out, trouble ? "bad" : "", trouble, "alarms, gaps, damage");
	put_card(out, open ? "bad" : "", open, "records behind the last anchor");
	buf_puts(out, "</div>\n");
}

static const char *behind_title(const char *text)
{
	const char *gap = strstr(text, "\n\n");

	return gap ? gap + 2 : text;
}

/* A page of text stands as it is, but for its title. */
static void put_page(struct buf *out, const char *title, const struct evidence *e,
		     void (*page)(const struct evidence *, struct buf *))
{
	struct buf text;

	buf_init(&text, EVIDENCE_PAGE_MAX);
	page(e, &text);
	buf_put(&text, "", 1);
	buf_printf(out, "<h2>%s</h2>\n<pre>", title);
	if (buf_spent(&text))
		out->spent = true;
	else
		safe_html_lines(out, behind_title(buf_span(&text).at));
	buf_puts(out, "</pre>\n");
	buf_fini(&text);
}

static void put_samples(const struct control_found *c, struct buf *out)
{
	buf_puts(out, "<table><tr><th class=\"n\">Sample</th><th>Time</th><th>What</th></tr>\n");
	for (size_t i = 0; i < c->sample_count; i++) {
		buf_puts(out, "<tr><td class=\"n\">");
		safe_count(out, c->samples[i].seq);
		buf_printf(out, "</td><td class=\"when\">%.19sZ</td><td class=\"name\">",
			   c->samples[i].time);
		safe_html_apart(out, c->samples[i].what);
		buf_puts(out, "</td></tr>\n");
	}
	buf_puts(out, "</table>\n");
}

static void put_control(const struct evidence *e, const struct control_found *c, struct buf *out)
{
	struct buf commands;

	buf_puts(out, "<h2>");
	safe_html(out, c->control->id);
	buf_puts(out, " ");
	safe_html(out, c->control->title);
	buf_puts(out, "</h2>\n<p>");
	safe_html(out, c->control->answer);
	buf_puts(out, "</p>\n<p class=\"soft\">");
	safe_count(out, c->count);
	buf_puts(out, " records: <code>");
	safe_html(out, c->control->query);
	buf_puts(out, "</code></p>\n<pre>");
	buf_init(&commands, EVIDENCE_PAGE_MAX);
	control_commands(c->control->query, e->scan->from, e->scan->to, &commands);
	buf_put(&commands, "", 1);
	safe_html_lines(out, buf_span(&commands).at);
	buf_fini(&commands);
	buf_puts(out, "</pre>\n");
	if (c->sample_count)
		put_samples(c, out);
	else
		buf_puts(out, "<p class=\"none\">There is no such record in the period.</p>\n");
}

void page_html(const struct evidence *e, struct buf *out)
{
	put_head(e, out);
	put_cards(e, out);
	put_page(out, "About this archive", e, page_readme);
	put_page(out, "Completeness", e, page_completeness);
	put_page(out, "What cannot be excluded", e, page_unsure);
	put_page(out, "Rules", e, page_rules);
	for (size_t i = 0; i < e->scan->control_count; i++)
		put_control(e, &e->scan->controls[i], out);
	buf_puts(out, "<footer>Made by sallyport " SALLYPORT_VERSION
		      ". The records are the evidence; this page is a view of them.</footer>\n"
		      "</main></body></html>\n");
}
