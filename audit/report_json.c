#include "audit/report.h"

#include "gate/base/jv.h"

#include <inttypes.h>
#include <stdio.h>

static void put_str(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, "\"%s\":", key);
	jv_write_str(out, span_of(value));
	buf_puts(out, ",");
}

static void put_num(struct buf *out, const char *key, uint64_t value)
{
	buf_printf(out, "\"%s\":%" PRIu64 ",", key, value);
}

/* Instead of the comma behind the last member. */
static void end(struct buf *out, const char *close)
{
	if (buf_len(out) && out->mem[out->end - 1] == ',')
		out->end--;
	buf_puts(out, close);
}

static void put_verify(const struct report *r, struct buf *out)
{
	char root[HASH_HEX_LEN + 1], head[HASH_HEX_LEN + 1];

	hash_hex(&r->verify.root, root);
	hash_hex(&r->verify.head, head);
	buf_puts(out, "\"verify\":{");
	put_str(out, "state", report_state(r));
	put_str(out, "what", r->verify.what);
	put_num(out, "records", r->verify.records);
	put_num(out, "first_seq", r->verify.first_seq);
	put_num(out, "last_seq", r->verify.last_seq);
	put_str(out, "head", head);
	put_str(out, "root", root);
	put_str(out, "key", r->verify.key);
	put_num(out, "signed_records", r->verify.signed_size);
	put_num(out, "checkpoints", r->verify.checkpoints);
	put_num(out, "open_decisions", r->verify.open_decisions);
	end(out, "},");
}

static void put_period(const struct report *r, struct buf *out)
{
	buf_puts(out, "\"period\":{");
	put_str(out, "from", r->from);
	put_str(out, "to", r->to);
	put_num(out, "records", r->records);
	put_num(out, "first_seq", r->first_seq);
	put_num(out, "last_seq", r->last_seq);
	put_str(out, "first_hash", r->first_hash);
	put_str(out, "last_hash", r->last_hash);
	put_str(out, "first_time", r->first_time);
	put_str(out, "last_time", r->last_time);
	put_num(out, "gaps", r->gaps);
	put_num(out, "checkpoints", r->checkpoints);
	end(out, "},");
	put_num(out, "allowed", r->allowed);
	put_num(out, "refused", r->refused);
	put_num(out, "reads", r->reads);
	put_num(out, "malformed", r->malformed);
	put_num(out, "outcome_records", r->outcomes);
	put_num(out, "seen", r->seen);
	put_num(out, "judged", r->judged);
	put_num(out, "by_engine", r->by_engine);
	put_num(out, "unexplained", r->unexplained);
}

static void put_buckets(const struct report *r, struct buf *out)
{
	put_num(out, "bucket_seconds", r->bucket_ns / 1000000000);
	buf_puts(out, "\"over_time\":[");
	for (size_t i = 0; i < r->bucket_count; i++)
		buf_printf(out, "[%" PRIu64 ",%" PRIu64 "],", r->buckets[i].allowed,
			   r->buckets[i].refused);
	end(out, "],");
}

static void put_tally(const struct report_tally *t, struct buf *out)
{
	buf_printf(out, "\"%s\":[", t->name);
	for (size_t i = 0; i < t->count; i++) {
		buf_puts(out, "{");
		put_str(out, "name", t->rows[i].name);
		put_num(out, "allowed", t->rows[i].allowed);
		put_num(out, "refused", t->rows[i].refused);
		end(out, "},");
	}
	end(out, "],");
}

static void put_list(const struct report_list *l, struct buf *out)
{
	buf_printf(out, "\"%s\":{\"total\":%" PRIu64 ",\"records\":[", l->name, l->total);
	for (size_t i = 0; i < l->count; i++) {
		buf_puts(out, "{");
		put_num(out, "seq", l->events[i].seq);
		put_str(out, "time", l->events[i].time);
		put_str(out, "text", l->events[i].text);
		end(out, "},");
	}
	end(out, "]},");
}

void report_json(const struct report *r, struct buf *out)
{
	buf_puts(out, "{");
	put_str(out, "log", r->log);
	put_str(out, "dir", r->dir);
	put_str(out, "made", r->made);
	put_verify(r, out);
	put_period(r, out);
	put_buckets(r, out);
	for (int i = 0; i < TALLY_COUNT; i++)
		put_tally(&r->tallies[i], out);
	for (int i = 0; i < LIST_COUNT; i++)
		put_list(&r->lists[i], out);
	end(out, "}\n");
}
