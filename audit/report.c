/* What is gathered for a report: one pass over the log. */
#include "audit/report.h"

#include "audit/fields.h"
#include "audit/read.h"
#include "gate/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_HOUR (UINT64_C(3600) * 1000000000)
#define NS_PER_DAY  (24 * NS_PER_HOUR)

/* --- tables and lists --- */

static void tally_many(struct report *r, enum report_tally_id id, const char *name, bool allowed,
		       uint64_t times)
{
	struct report_tally *t = &r->tallies[id];
	char cut[REPORT_NAME];
	size_t i;

	if (!*name)
		return;
	snprintf(cut, sizeof(cut), "%s", name);
	for (i = 0; i < t->count && i < REPORT_NAMES && strcmp(t->rows[i].name, cut) != 0; i++)
		;
	if (i == REPORT_NAMES)
		snprintf(cut, sizeof(cut), REPORT_OTHERS);
	if (i == t->count) {
		memcpy(t->rows[i].name, cut, sizeof(cut));
		t->count++;
	}
	*(allowed ? &t->rows[i].allowed : &t->rows[i].refused) += times;
}

static void tally(struct report *r, enum report_tally_id id, const char *name, bool allowed)
{
	tally_many(r, id, name, allowed, 1);
}

static void list(struct report *r, enum report_list_id id, const struct fields *f, const char *text)
{
	struct report_list *l = &r->lists[id];
	struct report_event *e = &l->events[l->count];

	l->total++;
	if (l->count == REPORT_EVENTS)
		return;
	l->count++;
	e->seq = f->seq;
	snprintf(e->time, sizeof(e->time), "%s", f->time);
	snprintf(e->text, sizeof(e->text), "%s", text);
}

/* --- records --- */

static void add_items(struct report *r, const struct fields *f)
{
	const struct jv *mut = jv_get(&f->tree, "mut"), *list = jv_get(&f->tree, "exceptions");

	for (size_t i = 0; mut && mut->kind == JV_ARRAY && i < mut->count; i++)
		tally(r, TALLY_CHANGES, jv_str(&mut->items[i], "field", ""), true);
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		const struct jv *e = &list->items[i];
		char text[REPORT_NAME];

		snprintf(text, sizeof(text), "%.40s, %.30s, %.40s", jv_str(e, "rule", "?"),
			 jv_str(e, "owner", "no owner"), jv_str(e, "ticket", "no ticket"));
		tally(r, TALLY_EXCEPTIONS, text, true);
	}
}

/* What an operator had set to warn only; by itself a mode of the profile's own is no such thing. */
static void add_override(struct report *r, const struct fields *f, bool allowed)
{
	const struct jv *o = jv_get(&f->tree, "override");
	char text[REPORT_NAME];

	if (!o || o->kind != JV_OBJECT)
		return;
	snprintf(text, sizeof(text), "%.50s, %.60s", f->profile, jv_str(o, "ticket", "no ticket"));
	tally(r, TALLY_OVERRIDES, text, allowed);
}

static void add_decision(struct report *r, const struct fields *f)
{
	bool allowed = strcmp(f->verdict, "allow") == 0;
	const char *would = jv_str(&f->tree, "would", f->verdict);
	uint64_t bucket = (f->t_ns - r->buckets_from_ns) / r->bucket_ns;

	*(allowed ? &r->allowed : &r->refused) += 1;
	r->reads += f->type == RECORD_READ;
	r->malformed += f->type == RECORD_MALFORMED;
	if (bucket < r->bucket_count)
		*(allowed ? &r->buckets[bucket].allowed : &r->buckets[bucket].refused) += 1;
	tally(r, TALLY_OWNERS, *f->owner ? f->owner : "(nobody)", allowed);
	tally(r, TALLY_IDENTITIES, *f->identity ? f->identity : "(without a name)", allowed);
	tally(r, TALLY_PROFILES, *f->profile ? f->profile : "(none)", allowed);
	tally(r, TALLY_CLASSES, *f->op_class ? f->op_class : "(none)", allowed);
	tally(r, TALLY_OPERATIONS, *f->op ? f->op : f->type_name, allowed);
	tally(r, TALLY_RULES, *f->rule ? f->rule : "(none)", allowed);
	if (!allowed)
		tally(r, TALLY_REASONS, *f->reason ? f->reason : "(none)", false);
	if (!allowed || strcmp(would, "allow") != 0)
		add_override(r, f, allowed);
	add_items(r, f);
}

static void add_attestation(struct report *r, const struct fields *f)
{
	const struct jv *a = jv_get(&f->tree, "attestation"), *differs, *unknown;
	char text[REPORT_TEXT];

	if (!a || a->kind != JV_OBJECT)
		return;
	differs = jv_get(a, "differs");
	unknown = jv_get(a, "unknown");
	if (differs && differs->count) {
		tally(r, TALLY_ATTESTED, "differs", false);
		snprintf(text, sizeof(text), "%.40s of decision %.40s: %.160s", f->op, f->of,
			 differs->kind == JV_ARRAY && differs->items[0].kind == JV_STRING
				 ? differs->items[0].str.at
				 : "it differs");
		list(r, LIST_ATTEST_FAILED, f, text);
		return;
	}
	tally(r, TALLY_ATTESTED,
	      unknown && unknown->count ? "partly unknown" : jv_str(a, "state", "unknown"), true);
}

static void add_outcome(struct report *r, const struct fields *f)
{
	char text[REPORT_TEXT];

	r->outcomes++;
	tally(r, TALLY_STATUSES, *f->status ? f->status : "unknown", strcmp(f->status, "ok") == 0);
	add_attestation(r, f);
	if (f->type != RECORD_OUTCOME_UNKNOWN)
		return;
	snprintf(text, sizeof(text), "decision %.40s: %.200s", f->of, f->text);
	list(r, LIST_UNKNOWN, f, text);
}

static void add_policy(struct report *r, const struct fields *f)
{
	const char *hash = jv_str(jv_get(&f->tree, "pol"), "profile_sha256", "");
	char text[REPORT_TEXT];

	snprintf(text, sizeof(text), "%s%.100s%s%.64s %.100s",
		 f->type == RECORD_POLICY_REJECT ? "refused: " : "", f->profile,
		 *hash ? " sha256 " : "", hash, f->text);
	list(r, LIST_POLICIES, f, text);
}

static void add_alarm_to(struct report *r, enum report_list_id id, const struct fields *f)
{
	const char *began = jv_str(&f->tree, "began", ""), *ended = jv_str(&f->tree, "ended", "");
	int64_t count = jv_num(&f->tree, "count", 0) + jv_num(&f->tree, "refused", 0);
	char text[REPORT_TEXT], many[40] = "";

	if (count)
		snprintf(many, sizeof(many), ", %" PRId64 " records", count);
	snprintf(text, sizeof(text), "%.40s%s%.120s%s%.32s%s%.32s%s", f->cause,
		 *f->cause && *f->text ? ": " : "", f->text, *began ? ", began " : "", began,
		 *ended ? ", ended " : "", ended, many);
	list(r, id, f, text);
}

static void add_reader(struct report *r, const struct fields *f)
{
	char text[REPORT_TEXT];

	snprintf(text, sizeof(text), "%.120s by uid %" PRId64, f->text,
		 jv_num(jv_path(&f->tree, "actor.auth"), "uid", -1));
	list(r, LIST_READERS, f, text);
}

static void add_named(struct report *r, enum report_list_id id, const struct fields *f)
{
	char text[REPORT_TEXT];

	snprintf(text, sizeof(text), "%.30s%s%.200s", f->type_name, *f->text ? ": " : "", f->text);
	list(r, id, f, text);
}

/* What only looked is in the log, and would bury the rest here. */
static void add_admin(struct report *r, const struct fields *f)
{
	bool decided = *f->verdict != '\0', refused = decided && strcmp(f->verdict, "allow") != 0;
	char text[REPORT_TEXT];

	if (!refused && !*f->status)
		return;
	snprintf(text, sizeof(text), "%.40s%s%.64s by uid %" PRId64 ": %s%s%.64s%s%.80s", f->op,
		 *f->object ? " " : "", f->object,
		 jv_num(jv_path(&f->tree, "actor.auth"), "uid", -1),
		 refused ? "refused" : f->status, *f->reason ? ", " : "", f->reason,
		 *f->text ? "; " : "", f->text);
	list(r, LIST_ADMIN, f, text);
}

static void add_clock(struct report *r, const struct fields *f)
{
	char text[REPORT_TEXT];

	snprintf(text, sizeof(text), "from %.32s to %.32s", jv_str(&f->tree, "from", "?"),
		 jv_str(&f->tree, "to", "?"));
	list(r, LIST_CLOCKS, f, text);
}

static uint64_t number(const struct fields *f, const char *name)
{
	int64_t n = jv_num(&f->tree, name, 0);

	return n > 0 ? (uint64_t)n : 0;
}

static void add_sum(struct report *r, const struct fields *f)
{
	const char *backend = jv_str(&f->tree, "backend", "?");
	uint64_t explained = number(f, "decided") + number(f, "by_engine");

	r->seen += number(f, "seen");
	r->judged += number(f, "decided");
	r->by_engine += number(f, "by_engine");
	r->unexplained += number(f, "unexplained");
	tally_many(r, TALLY_OBSERVED, backend, true, explained);
	tally_many(r, TALLY_OBSERVED, backend, false, number(f, "unexplained"));
}

static void add_suppressed(struct report *r, const struct fields *f)
{
	char text[REPORT_NAME];

	snprintf(text, sizeof(text), "%.40s, %.40s, %.20s",
		 *f->identity ? f->identity
		 : *f->owner  ? f->owner
			      : "(without a name)",
		 *f->profile ? f->profile : "(none)", *f->op_class ? f->op_class : "(none)");
	tally_many(r, TALLY_SUPPRESSED, text, false, number(f, "count"));
}

static void add_observed(struct report *r, const struct fields *f)
{
	const char *backend = jv_str(&f->tree, "backend", "?");
	char text[REPORT_TEXT];

	if (number(f, "count"))
		snprintf(text, sizeof(text), "%.60s: %" PRIu64 " more", backend,
			 number(f, "count"));
	else
		snprintf(text, sizeof(text), "%.60s: %.40s of %.20s %.64s (%.40s) %.60s", backend,
			 f->op, f->object_kind, f->object_id, f->cause, f->text);
	list(r, LIST_PAST, f, text);
}

static void add_by_type(struct report *r, const struct fields *f)
{
	switch (f->type) {
	case RECORD_DECISION:
	case RECORD_READ:
	case RECORD_MALFORMED:
		add_decision(r, f);
		return;
	case RECORD_OUTCOME:
	case RECORD_OUTCOME_UNKNOWN:
		add_outcome(r, f);
		return;
	case RECORD_POLICY_LOAD:
	case RECORD_POLICY_REJECT:
		add_policy(r, f);
		return;
	case RECORD_GATE_START:
	case RECORD_GATE_STOP:
		add_named(r, LIST_STARTS, f);
		return;
	case RECORD_GATE_RECOVER:
		add_named(r, LIST_RECOVERIES, f);
		return;
	case RECORD_LOG_ALARM:
		add_alarm_to(r, LIST_ALARMS, f);
		return;
	case RECORD_WORKER_LOST:
		add_named(r, LIST_LOST, f);
		return;
	case RECORD_CHECKPOINT:
		r->checkpoints++;
		return;
	case RECORD_CLOCK_STEP:
		add_clock(r, f);
		return;
	case RECORD_KEY_ROTATE:
	case RECORD_LOG_PRUNE:
	case RECORD_LOG_ERASE:
		add_named(r, LIST_KEYS, f);
		return;
	case RECORD_ADOPT:
		add_named(r, LIST_ADOPTED, f);
		return;
	case RECORD_REJUDGED:
		add_named(r, LIST_REJUDGED, f);
		return;
	case RECORD_ADMIN:
		add_admin(r, f);
		return;
	case RECORD_LOG_READ:
		add_reader(r, f);
		return;
	case RECORD_OBSERVED:
		add_observed(r, f);
		return;
	case RECORD_OBSERVED_GAP:
		add_alarm_to(r, LIST_UNSEEN, f);
		return;
	case RECORD_OBSERVED_SUM:
		add_sum(r, f);
		return;
	case RECORD_SUPPRESSED:
		add_suppressed(r, f);
		return;
	case RECORD_APPROVAL: /* its decision has been counted */
	case RECORD_SANDBOX:  /* what it asked of workers is */
	case RECORD_LOG_OPEN:
	case RECORD_LOG_SEAL:
	case RECORD_NONE:
	case RECORD_TYPE_COUNT:
		return;
	}
}

static void add_record(struct report *r, const struct fields *f, struct span line)
{
	/* `","h":"` and 64 digits end each line; its hash has been looked at. */
	struct span hash = span_skip(line, line.len - HASH_HEX_LEN - 2);

	if (!r->records++) {
		r->first_seq = f->seq;
		snprintf(r->first_time, sizeof(r->first_time), "%s", f->time);
		snprintf(r->first_hash, sizeof(r->first_hash), "%.64s", hash.at);
	} else if (f->seq != r->last_seq + 1) {
		r->gaps++;
	}
	r->last_seq = f->seq;
	snprintf(r->last_time, sizeof(r->last_time), "%s", f->time);
	snprintf(r->last_hash, sizeof(r->last_hash), "%.64s", hash.at);
	add_by_type(r, f);
}

struct gathering {
	struct report *report;
	struct arena *arena;
	struct err *err;
};

static int on_line(void *arg, struct span line)
{
	struct gathering *g = arg;
	struct fields f;

	arena_reset(g->arena, FIELDS_ARENA_MAX);
	if (fields_take(g->arena, line, &f, g->err) < 0)
		return -1;
	if (!*g->report->log)
		snprintf(g->report->log, sizeof(g->report->log), "%s", f.log);
	if (g->report->until_seq && f.seq >= g->report->until_seq)
		return 0;
	if (f.t_ns >= g->report->from_ns && f.t_ns < g->report->to_ns)
		add_record(g->report, &f, line);
	return 0;
}

static int more_first(const void *a, const void *b)
{
	const struct report_row *x = a, *y = b;
	uint64_t of_x = x->allowed + x->refused, of_y = y->allowed + y->refused;

	if (strcmp(x->name, REPORT_OTHERS) == 0 || strcmp(y->name, REPORT_OTHERS) == 0)
		return strcmp(x->name, REPORT_OTHERS) == 0 ? 1 : -1;
	return of_x == of_y ? strcmp(x->name, y->name) : of_x < of_y ? 1 : -1;
}

/* Hours for a few days, days for a year, else as many days as it takes. */
static void set_buckets(struct report *r)
{
	uint64_t period = r->to_ns - r->from_ns;

	r->bucket_ns = period <= 4 * NS_PER_DAY ? NS_PER_HOUR : NS_PER_DAY;
	while (period / r->bucket_ns >= REPORT_BUCKETS - 1)
		r->bucket_ns += NS_PER_DAY;
	r->buckets_from_ns = r->from_ns - r->from_ns % r->bucket_ns;
	r->bucket_count =
		(size_t)((r->to_ns - r->buckets_from_ns + r->bucket_ns - 1) / r->bucket_ns);
}

static void set_names(struct report *r)
{
	static const char *const tallies[TALLY_COUNT][5] = {
#define TALLY(id, name, title, what, allowed, refused) {name, title, what, allowed, refused},
#define LIST(id, name, title, none)
#include "audit/report.def"
#undef TALLY
#undef LIST
	};
	static const char *const lists[LIST_COUNT][3] = {
#define TALLY(id, name, title, what, allowed, refused)
#define LIST(id, name, title, none) {name, title, none},
#include "audit/report.def"
#undef TALLY
#undef LIST
	};

	for (int i = 0; i < TALLY_COUNT; i++) {
		r->tallies[i].name = tallies[i][0];
		r->tallies[i].title = tallies[i][1];
		r->tallies[i].what = tallies[i][2];
		r->tallies[i].allowed = tallies[i][3];
		r->tallies[i].refused = tallies[i][4];
	}
	for (int i = 0; i < LIST_COUNT; i++) {
		r->lists[i].name = lists[i][0];
		r->lists[i].title = lists[i][1];
		r->lists[i].none = lists[i][2];
	}
}

static int gather(struct report *r, const char *dir, struct err *err)
{
	struct err why = {0};
	struct gathering g = {r, arena_create(FIELDS_ARENA_MAX), &why};
	int rc = g.arena ? log_read(dir, on_line, &g, &why)
			 : err_set(&why, ERR_LIMIT, "no memory for a report");

	arena_destroy(g.arena);
	for (int i = 0; i < TALLY_COUNT; i++)
		qsort(r->tallies[i].rows, r->tallies[i].count, sizeof(struct report_row),
		      more_first);
	/* What is wrong is part of the report, if there is anything to report on. */
	if (rc >= 0 || r->verify.result != VERIFY_FINE || r->verify.torn_tail)
		return 0;
	*err = why;
	return -1;
}

static struct report *create(const char *dir, uint64_t from_ns, uint64_t to_ns, struct err *err)
{
	struct report *r;

	if (from_ns >= to_ns) {
		err_set(err, ERR_INPUT, "the period ends before it begins");
		return NULL;
	}
	r = calloc(1, sizeof(*r));
	if (!r) {
		err_set(err, ERR_LIMIT, "no memory for a report");
		return NULL;
	}
	set_names(r);
	snprintf(r->dir, sizeof(r->dir), "%s", dir);
	r->from_ns = from_ns;
	r->to_ns = to_ns;
	clock_format(from_ns, r->from);
	clock_format(to_ns, r->to);
	set_buckets(r);
	return r;
}

/* Takes r. */
static struct report *fill(struct report *r, const struct verify_options *verify, const char *dir,
			   struct err *err)
{
	verify_log(dir, verify, &r->verify);
	if (r->verify.result == VERIFY_UNREADABLE)
		err_set(err, ERR_INPUT, "%s", r->verify.what);
	else if (gather(r, dir, err) == 0)
		return r;
	report_destroy(r);
	return NULL;
}

struct report *report_make(const char *dir, uint64_t from_ns, uint64_t to_ns, struct err *err)
{
	struct report *r = create(dir, from_ns, to_ns, err);

	if (!r)
		return NULL;
	clock_format(clock_unix_ns(), r->made);
	return fill(r, NULL, dir, err);
}

struct report *report_make_until(const char *dir, uint64_t from_ns, uint64_t to_ns,
				 uint64_t until_seq, const struct verify_options *verify,
				 struct err *err)
{
	struct report *r = create(dir, from_ns, to_ns, err);

	if (!r)
		return NULL;
	r->until_seq = until_seq;
	return fill(r, verify, dir, err);
}

void report_destroy(struct report *r)
{
	free(r);
}

const char *report_state(const struct report *r)
{
	switch (r->verify.result) {
	case VERIFY_FINE:
		return r->gaps ? "not in order of time" : "whole";
	case VERIFY_ALTERED:
		return "altered";
	case VERIFY_CUT:
		return "cut";
	case VERIFY_GAP:
		return "with gaps";
	case VERIFY_UNREADABLE:
		return "unreadable";
	}
	return "unreadable";
}
