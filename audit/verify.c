#include "audit/verify_priv.h"

#include "audit/pairing_priv.h"
#include "gate/base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OPEN_MAX      (1u << 24) /* decisions without an outcome that are kept in mind */
#define LOOKS         6          /* at a bad end, before it counts: the log may be written to */
#define LOOK_AFTER_MS 20
#define PROGRESS_AT   65536 /* records */

int verify_bad(struct verifier *v, enum verify_result result, const char *fmt, ...)
{
	struct verify_report *r = v->report;
	size_t used;
	va_list ap;

	r->result = result;
	r->bad_seq = v->seq;
	r->bad_offset = v->at;
	snprintf(r->bad_file, sizeof(r->bad_file), "%s", v->segment);
	snprintf(r->what, sizeof(r->what), "%s: record %llu at byte %llu: ", v->segment,
		 (unsigned long long)v->seq, (unsigned long long)v->at);
	used = strlen(r->what);
	va_start(ap, fmt);
	vsnprintf(r->what + used, sizeof(r->what) - used, fmt, ap);
	va_end(ap);
	return -1;
}

static void count(struct verify_report *r, const struct record_peek *peek)
{
	r->records++;
	r->decisions += peek->type == RECORD_DECISION;
	r->allowed += peek->allow;
	r->denied += peek->type == RECORD_DECISION && !peek->allow;
	r->outcomes += peek->type == RECORD_OUTCOME;
	r->unknown_outcomes += peek->type == RECORD_OUTCOME_UNKNOWN;
	r->reads += peek->type == RECORD_READ;
}

static int check_place(struct verifier *v, const struct line *line)
{
	if (v->report->records == 0) {
		snprintf(v->origin, sizeof(v->origin), "%.*s", SPAN_FMT(line->log));
		if (v->seq) { /* what was before is pruned */
			v->prev = line->prev;
			v->epoch = line->epoch;
		}
	}
	if (line->seq > v->seq)
		return verify_bad(v, VERIFY_GAP, "records are missing; the next is %llu",
				  (unsigned long long)line->seq);
	if (line->seq < v->seq)
		return verify_bad(v, VERIFY_ALTERED, "it has the number %llu",
				  (unsigned long long)line->seq);
	if (memcmp(&line->prev, &v->prev, sizeof(v->prev)) != 0)
		return verify_bad(v, VERIFY_ALTERED, "it does not follow the record before");
	if (!span_is(line->log, v->origin))
		return verify_bad(v, VERIFY_ALTERED, "it belongs to another log");
	return 0;
}

/* A new run of the auditor begins with gate_start, or with the segment that a crash left out. */
static int check_epoch(struct verifier *v, const struct line *line, enum record_type type)
{
	bool may_begin = type == RECORD_GATE_START || type == RECORD_LOG_OPEN;

	if (line->epoch == v->epoch)
		return line->mono >= v->mono
			       ? 0
			       : verify_bad(v, VERIFY_ALTERED,
					    "its time is before that of the record before");
	if (line->epoch != v->epoch + 1 || !may_begin)
		return verify_bad(v, VERIFY_ALTERED, "epoch %u follows epoch %u", line->epoch,
				  v->epoch);
	return 0;
}

static int check_segment_link(struct verifier *v, enum record_type type)
{
	bool first = v->seq == v->segment_first;

	if (first != (type == RECORD_LOG_OPEN))
		return verify_bad(v, VERIFY_ALTERED,
				  first ? "a segment does not begin with log_open"
					: "a log_open in the middle of a segment");
	if (!first && v->last_type == RECORD_LOG_SEAL)
		return verify_bad(v, VERIFY_ALTERED, "a record behind log_seal");
	return 0;
}

static int check_seal(struct verifier *v, const struct line *line, enum record_type type)
{
	uint64_t lines = v->seq - v->segment_first + 1;

	if (type == RECORD_LOG_SEAL && record_peek_uint(line->body, "count") != lines)
		return verify_bad(v, VERIFY_ALTERED, "log_seal counts other records");
	return 0;
}

static int check_anchor(struct verifier *v, const struct line *line)
{
	const struct verify_anchor *receipt = v->options->receipt;

	if (receipt && receipt->seq == v->seq &&
	    memcmp(&receipt->hash, &line->hash, sizeof(line->hash)) != 0)
		return verify_bad(
			v, VERIFY_CUT,
			"it is not the record of the receipt: the log was rewritten, or the "
			"receipt is of another log");
	return 0;
}

static int check_line(struct verifier *v, const struct line *line)
{
	struct record_peek peek;

	if (!record_peek(line->body, &peek))
		return verify_bad(v, VERIFY_ALTERED, "it is no record");
	if (check_place(v, line) < 0 || check_epoch(v, line, peek.type) < 0 ||
	    check_segment_link(v, peek.type) < 0 || check_seal(v, line, peek.type) < 0 ||
	    check_anchor(v, line) < 0 || verify_tree_line(v, line, peek.type) < 0)
		return -1;
	if (pairing_apply(&v->open, &peek, v->seq) == PAIRING_WRONG &&
	    (peek.allow || v->orphans-- == 0))
		return verify_bad(v, VERIFY_ALTERED,
				  peek.allow ? "a decision whose id is in use"
					     : "an outcome of no open decision");
	count(v->report, &peek);
	v->report->last_seq = v->seq;
	v->report->head = line->hash;
	v->prev = line->hash;
	v->epoch = line->epoch;
	v->mono = line->mono;
	v->last_type = peek.type;
	v->seq++;
	if (v->options->progress && v->report->records % PROGRESS_AT == 0)
		v->options->progress(v->options->progress_arg, v->report->records);
	return 0;
}

/* 1: the line is good and counted; 0: it is not all there (yet); -1: it is wrong. */
static int take_line(struct verifier *v, struct span text)
{
	struct line line;

	if (line_split(text, &line) && line_hash_ok(text, &line))
		return check_line(v, &line) < 0 ? -1 : 1;
	if (memchr(text.at, '\0', text.len))
		return 0;
	return verify_bad(v, VERIFY_ALTERED, "it was altered");
}

/* Takes lines until there is none, or one is not good.  -1: a line is wrong. */
static int take_lines(struct verifier *v, struct line_reader *reader)
{
	struct span text;
	int taken = 1;

	while (taken > 0 && line_reader_next(reader, &text) == LINE_WHOLE) {
		v->at = line_reader_offset(reader) - text.len - 1;
		taken = take_line(v, text);
		if (taken > 0)
			v->at = line_reader_offset(reader);
		if (taken == 0)
			line_reader_unread(reader, text);
	}
	if (reader->error) {
		errno = reader->error;
		return verify_bad(v, VERIFY_UNREADABLE, "cannot be read: %s", strerror(errno));
	}
	return taken < 0 ? -1 : 0;
}

static int look_at_end(struct verifier *v, const struct line_reader *reader, struct tail *ret)
{
	struct err err = {0};

	if (segment_tail(reader->fd, line_reader_offset(reader), ret, &err) < 0)
		return verify_bad(v, VERIFY_UNREADABLE, "%s", err.msg);
	return 0;
}

/* In the newest segment: what is not good yet may be a write that goes on just now. */
static int take_newest(struct verifier *v, struct line_reader *reader)
{
	const struct timespec pause = {0, LOOK_AFTER_MS * 1000000L};
	struct tail tail = {0};

	for (int look = 0; look < LOOKS; look++) {
		uint64_t seq = v->seq;

		if (look)
			nanosleep(&pause, NULL);
		line_reader_seek(reader, line_reader_offset(reader));
		if (take_lines(v, reader) < 0 || look_at_end(v, reader, &tail) < 0)
			return -1;
		if (tail.kind == TAIL_CLEAN)
			break;
		if (v->seq != seq)
			look = 0;
	}
	if (tail.kind == TAIL_DAMAGED)
		return verify_bad(v, VERIFY_ALTERED, "it was altered");
	v->report->torn_tail = tail.kind == TAIL_TORN;
	if (v->seq == v->segment_first)
		return verify_bad(v, VERIFY_ALTERED, "the segment has no whole record");
	return 0;
}

static int take_finished(struct verifier *v, struct line_reader *reader)
{
	struct stat st;

	if (take_lines(v, reader) < 0)
		return -1;
	if (fstat(reader->fd, &st) < 0)
		return verify_bad(v, VERIFY_UNREADABLE, "%s", strerror(errno));
	if (line_reader_offset(reader) != (uint64_t)st.st_size)
		return verify_bad(v, VERIFY_ALTERED, "it was altered");
	if (v->last_type != RECORD_LOG_SEAL)
		return verify_bad(v, VERIFY_GAP, "the segment does not end with log_seal");
	return 0;
}

static int take_segment(struct verifier *v, uint64_t first, bool newest)
{
	struct line_reader reader;
	struct err err = {0};
	auto_fd int fd = -1;
	int result;

	segment_name(first, v->segment);
	v->segment_first = first;
	v->at = 0;
	if (v->report->records == 0)
		v->seq = first;
	if (first > v->seq)
		return verify_bad(v, VERIFY_GAP, "the segment before is missing");
	if (first < v->seq)
		return verify_bad(v, VERIFY_ALTERED, "a segment that begins too early");
	fd = segment_open(v->dir_fd, first, O_RDONLY, &err);
	if (fd < 0)
		return verify_bad(v, VERIFY_UNREADABLE, "%s", err.msg);
	if (!line_reader_init(&reader, fd))
		return verify_bad(v, VERIFY_UNREADABLE, "no memory");
	result = newest ? take_newest(v, &reader) : take_finished(v, &reader);
	line_reader_fini(&reader);
	return result;
}

static int take_all(struct verifier *v, const struct segments *all)
{
	for (size_t i = 0; i < all->count; i++)
		if (take_segment(v, all->first[i], i + 1 == all->count) < 0)
			return -1;
	if (v->options->receipt && v->options->receipt->seq >= v->seq)
		return verify_bad(v, VERIFY_CUT,
				  "the log ends before the record of the receipt (%llu)",
				  (unsigned long long)v->options->receipt->seq);
	if (v->options->receipt && v->options->receipt->seq < all->first[0])
		return verify_bad(v, VERIFY_GAP, "the record of the receipt (%llu) was pruned",
				  (unsigned long long)v->options->receipt->seq);
	return verify_tree_end(v);
}

static void unreadable(struct verify_report *ret, const char *why)
{
	ret->result = VERIFY_UNREADABLE;
	snprintf(ret->what, sizeof(ret->what), "%s", why);
}

void verify_log(const char *dir, const struct verify_options *options, struct verify_report *ret)
{
	static const struct verify_options none;
	struct verifier v = {.report = ret, .options = options ? options : &none};
	struct segments all = {0};
	auto_fd int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err = {0};

	*ret = (struct verify_report){.result = VERIFY_UNREADABLE};
	if (dir_fd < 0) {
		err_sys(&err, "open %s", dir);
		unreadable(ret, err.msg);
		return;
	}
	if (segments_list(dir_fd, &all, &err) < 0) {
		unreadable(ret, err.msg);
		return;
	}
	if (!all.count) {
		unreadable(ret, "there are no log segments");
		return;
	}
	v.dir_fd = dir_fd;
	open_set_init(&v.open, OPEN_MAX);
	if (verify_tree_open(&v) == 0 && take_all(&v, &all) == 0)
		ret->result = VERIFY_FINE;
	ret->open_decisions = v.open.count;
	open_set_fini(&v.open);
	verify_tree_close(&v);
	segments_free(&all);
}
