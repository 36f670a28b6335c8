/* What an archive of evidence is about: one pass over the log. */
#include "audit/evidence/evidence_priv.h"

#include "audit/record_priv.h"
#include "gate/base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROTATIONS_MAX ((size_t)1 << 20)

/* A line, and what is known of it without reading it as JSON. */
struct at {
	struct span text;
	struct line line;
	enum record_type type;
	uint64_t t_ns;
	char time[CLOCK_TEXT_MAX];
};

/* Of each segment. */
struct extent {
	uint64_t bytes, end; /* behind the last record that is covered */
	uint64_t first_ns, last_ns;
};

/* --- samples --- */

static void describe(const struct fields *f, char out[EVIDENCE_WHAT])
{
	const char *who = *f->identity ? f->identity : f->owner;

	if (*f->verdict)
		snprintf(out, EVIDENCE_WHAT, "%.40s %.60s%s%.40s: %.10s%s%.30s",
			 *f->op ? f->op : f->type_name, *f->object ? f->object : f->path,
			 *who ? " by " : "", who, f->verdict, *f->reason ? ", " : "", f->reason);
	else if (*f->status)
		snprintf(out, EVIDENCE_WHAT, "%.40s of %.40s: %.20s", *f->op ? f->op : f->type_name,
			 f->of, f->status);
	else
		snprintf(out, EVIDENCE_WHAT, "%.30s%s%.30s %.120s", f->type_name,
			 *f->cause ? ": " : "", f->cause, f->text);
}

static struct hash rank_of(const struct scan *s, const struct control *c, const struct hash *h)
{
	char prefix[EVIDENCE_SEED_MAX + 64], hex[HASH_HEX_LEN + 1];

	snprintf(prefix, sizeof(prefix), "%s\n%s\n", s->seed, c->id);
	hash_hex(h, hex);
	return hash_two(span_of(prefix), span_of(hex));
}

/* Keeps the lowest ranks, in order. */
static void sample(struct scan *s, struct control_found *c, const struct at *at,
		   const struct fields *f)
{
	struct sample one = {.rank = rank_of(s, c->control, &at->line.hash),
			     .seq = at->line.seq,
			     .segment = s->all.first[s->segment],
			     .offset = s->offset,
			     .len = at->text.len};
	size_t place = c->sample_count;

	while (place && memcmp(&one.rank, &c->samples[place - 1].rank, sizeof(one.rank)) < 0)
		place--;
	if (place == EVIDENCE_SAMPLES)
		return;
	memcpy(one.time, at->time, sizeof(one.time));
	describe(f, one.what);
	if (c->sample_count < EVIDENCE_SAMPLES)
		c->sample_count++;
	memmove(&c->samples[place + 1], &c->samples[place],
		(c->sample_count - place - 1) * sizeof(one));
	c->samples[place] = one;
}

/* --- records --- */

static void drop_loads(struct scan *s)
{
	while (s->load_count)
		free(s->loads[--s->load_count].text);
}

static int add_load(struct scan *s, const struct at *at, const struct fields *f, struct err *err)
{
	bool before = !s->any;
	struct rules_load *l;

	for (size_t i = 0; i < s->load_count; i++)
		if (s->loads[i].before == before && strcmp(s->loads[i].text, f->text) == 0) {
			s->loads[i].times++;
			return 0;
		}
	/* Of those before the period only the last counts. */
	if (before)
		drop_loads(s);
	if (s->load_count == EVIDENCE_LOADS) {
		s->loads_more++;
		return 0;
	}
	l = &s->loads[s->load_count++];
	*l = (struct rules_load){
		.seq = at->line.seq, .times = 1, .before = before, .text = strdup(f->text)};
	memcpy(l->time, at->time, sizeof(l->time));
	return l->text ? 0 : err_set(err, ERR_LIMIT, "no memory to read the log");
}

static uint64_t number(const struct fields *f, const char *name)
{
	int64_t n = jv_num(&f->tree, name, 0);

	return n > 0 ? (uint64_t)n : 0;
}

static void add_recovery(struct scan *s, const struct fields *f)
{
	if (number(f, "bytes"))
		s->torn++;
	else if (*jv_str(&f->tree, "file", ""))
		s->damaged++;
	else
		s->unclean++;
}

static void add_sum(struct scan *s, const struct fields *f)
{
	s->seen += number(f, "seen");
	s->decided += number(f, "decided");
	s->by_engine += number(f, "by_engine");
	s->unexplained += number(f, "unexplained");
	s->garbage += number(f, "garbage");
}

static int add_record(struct scan *s, const struct at *at, const struct fields *f, struct err *err)
{
	if (!s->any)
		s->first = at->line.seq;
	s->any = true;
	s->last = at->line.seq;
	s->records++;
	s->behind_anchor += at->line.seq >= s->anchor_size;
	s->types[f->type]++;
	if (f->type == RECORD_GATE_RECOVER)
		add_recovery(s, f);
	else if (f->type == RECORD_OBSERVED_SUM)
		add_sum(s, f);
	else if (f->type == RECORD_POLICY_LOAD && add_load(s, at, f, err) < 0)
		return -1;
	for (size_t i = 0; i < s->control_count; i++)
		if (control_matches(s->controls[i].control->query, f)) {
			s->controls[i].count++;
			sample(s, &s->controls[i], at, f);
		}
	return 0;
}

static void add_to_log(struct scan *s, const struct at *at, struct extent *e)
{
	if (!*s->log) {
		snprintf(s->log, sizeof(s->log), "%.*s", SPAN_FMT(at->line.log));
		memcpy(s->log_begin, at->time, sizeof(s->log_begin));
		s->log_first = at->line.seq;
	}
	memcpy(s->log_end, at->time, sizeof(s->log_end));
	if (at->line.seq + 1 == s->anchor_size)
		memcpy(s->anchor_time, at->time, sizeof(s->anchor_time));
	if (!e->end)
		e->first_ns = at->t_ns;
	e->last_ns = at->t_ns;
	e->end = at->line.seq + 1;
	e->bytes = s->offset + at->text.len + 1;
	if (at->type == RECORD_LOG_OPEN || at->type == RECORD_KEY_ROTATE)
		snprintf(s->key, sizeof(s->key), "%.*s",
			 SPAN_FMT(record_peek_str(at->line.body, "key")));
	if (at->type != RECORD_KEY_ROTATE)
		return;
	buf_put(&s->rotations, at->text.at, at->text.len);
	buf_puts(&s->rotations, "\n");
}

/* --- lines --- */

static int take(struct scan *s, const struct at *at, struct extent *e, struct err *err)
{
	bool in = at->t_ns >= s->ask->from_ns && at->t_ns < s->ask->to_ns;
	struct fields f;

	if (at->line.seq >= s->until) {
		s->uncovered += in;
		return 0;
	}
	add_to_log(s, at, e);
	if (!in && (s->any || at->type != RECORD_POLICY_LOAD))
		return 0;
	arena_reset(s->arena, FIELDS_ARENA_MAX);
	if (fields_take(s->arena, at->text, &f, err) < 0)
		return -1;
	if (!in)
		return add_load(s, at, &f, err);
	if (!s->any)
		s->first_segment = s->segment;
	s->last_segment = s->segment;
	return add_record(s, at, &f, err);
}

static int take_text(struct scan *s, struct span text, struct extent *e, struct err *err)
{
	struct at at = {.text = text};
	struct record_peek peek;

	if (!line_split(text, &at.line) || !record_peek(at.line.body, &peek))
		return err_set(err, ERR_INPUT,
			       "the log holds a line that is no record; 'audit verify' says more");
	if (!line_hash_ok(text, &at.line))
		return err_set(err, ERR_INPUT,
			       "record %" PRIu64 " was altered; 'audit verify' says more",
			       at.line.seq);
	at.type = peek.type;
	snprintf(at.time, sizeof(at.time), "%.*s", SPAN_FMT(at.line.time));
	at.t_ns = fields_time(at.time);
	return take(s, &at, e, err);
}

static int take_segment(struct scan *s, int dir_fd, struct line_reader *reader, struct extent *e,
			struct err *err)
{
	auto_fd int fd = segment_open(dir_fd, s->all.first[s->segment], O_RDONLY, err);
	struct span text;

	if (fd < 0)
		return -1;
	reader->fd = fd;
	line_reader_seek(reader, 0);
	while (line_reader_next(reader, &text) == LINE_WHOLE) {
		s->offset = line_reader_offset(reader) - text.len - 1;
		if (take_text(s, text, e, err) < 0)
			return -1;
	}
	if (!reader->error)
		return 0;
	errno = reader->error;
	return err_sys(err, "read the audit log");
}

/*
 * One more segment on each side, if else nothing would show that what is before the first
 * and behind the last record of the archive is not of the period.
 */
static void set_archive(struct scan *s, const struct extent *e)
{
	if (s->first_segment > 0 && e[s->first_segment].first_ns >= s->ask->from_ns)
		s->first_segment--;
	if (s->last_segment + 1 < s->all.count && e[s->last_segment].last_ns < s->ask->to_ns &&
	    e[s->last_segment + 1].end)
		s->last_segment++;
	s->archive_end = e[s->last_segment].end;
	s->last_bytes = e[s->last_segment].bytes;
}

static int read_all(struct scan *s, int dir_fd, struct extent *e, struct err *err)
{
	struct line_reader reader;
	int rc = 0;

	if (!line_reader_init(&reader, -1))
		return err_set(err, ERR_LIMIT, "no memory to read the log");
	for (s->segment = 0; rc == 0 && s->segment < s->all.count; s->segment++)
		rc = take_segment(s, dir_fd, &reader, &e[s->segment], err);
	line_reader_fini(&reader);
	if (rc == 0 && buf_spent(&s->rotations))
		rc = err_set(err, ERR_LIMIT, "too many keys");
	if (rc == 0 && s->any)
		set_archive(s, e);
	return rc;
}

static void set_controls(struct scan *s)
{
	for (size_t i = 0; i < evidence_control_count; i++)
		if (strcmp(evidence_controls[i].framework, s->ask->framework) == 0 &&
		    s->control_count < EVIDENCE_CONTROLS)
			s->controls[s->control_count++].control = &evidence_controls[i];
}

int scan_log(struct scan *s, struct err *err)
{
	auto_fd int dir_fd = open(s->ask->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct extent *extents = NULL;
	int rc;

	buf_init(&s->rotations, ROTATIONS_MAX);
	s->arena = arena_create(FIELDS_ARENA_MAX);
	clock_format(s->ask->from_ns, s->from);
	clock_format(s->ask->to_ns, s->to);
	set_controls(s);
	if (dir_fd < 0)
		return err_sys(err, "open %s", s->ask->dir);
	if (segments_list(dir_fd, &s->all, err) < 0)
		return -1;
	extents = calloc(s->all.count + 1, sizeof(*extents));
	rc = extents && s->arena ? read_all(s, dir_fd, extents, err)
				 : err_set(err, ERR_LIMIT, "no memory to read the log");
	free(extents);
	return rc;
}

void scan_free(struct scan *s)
{
	drop_loads(s);
	arena_destroy(s->arena);
	segments_free(&s->all);
	buf_fini(&s->rotations);
}
