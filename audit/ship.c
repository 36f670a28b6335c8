#include "audit/sink_priv.h"

#include "audit/record_priv.h"

#include "gate/base/auto.h"
#include "gate/base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FOLLOW_MS     100
#define LOOK_MS       10000 /* a closer look at the end of a log that is idle */
#define BACK_OFF_MS   1000
#define BACK_OFF_MAX  60000
#define LAG_MS        60000
#define DAY_S         86400
#define LOOKED_AT_MAX 65536 /* records in one go */
#define LAST_MS       60000
#define KEEP_MS       10000 /* how far alarms were looked for is kept so often */

static const struct {
	const char *name;
	const struct sink_ops *ops;
} kinds[] = {
	[SINK_NONE] = {"", NULL},
	[SINK_POSTGRES] = {"postgres", &sink_postgres},
	[SINK_SYSLOG] = {"syslog", &sink_syslog},
	[SINK_JOURNALD] = {"journald", &sink_journald},
	[SINK_HTTPS] = {"https", &sink_https},
};

enum sink_kind sink_kind_find(const char *name)
{
	for (size_t i = SINK_NONE + 1; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return (enum sink_kind)i;
	return SINK_NONE;
}

struct shipping {
	const char *dir;
	const struct sink_conf *conf;
	const struct ship_options *options;
	const struct sink_ops *ops;
	struct sink *sink;
	struct cursor cursor;
	struct batch *batch;
	struct cursor_mark mark; /* that the sink has acknowledged */
	bool marked;
	uint64_t looked_ms, lag_ms;
	bool troubled;  /* it has been told that the sink takes nothing */
	bool cleared;   /* what held it up before is forgotten */
	bool stateless; /* it has been told that the state file cannot be written */
	/* Of a sink that is narrowed: */
	struct arena *arena; /* for a record that is taken apart */
	struct ship_watch watch;
	bool ended;                /* the last record that was read is gate_stop */
	struct cursor_mark passed; /* the last that was read, and need not be sent */
	uint64_t passed_ms;        /* when that was last kept */
};

/* What becomes of a round: a result that ends it all, or one of these. */
enum round { ROUND_AGAIN = -1, ROUND_FAILED = -2 };

static bool stopped(const struct shipping *s)
{
	return s->options->stop && *s->options->stop;
}

/* What the log cannot say of itself, for a sink that takes alarms. */
static void watch_log(struct shipping *s)
{
	if (!sink_only_alarms(s->conf->only) || s->options->once)
		return;
	ship_watch_look(&s->watch, s->ended);
	(void)ship_watch_send(&s->watch, s->ops, s->conf, s->options->dialer);
}

static void wait_ms(struct shipping *s, uint64_t ms)
{
	const struct timespec step = {0, FOLLOW_MS * 1000000L};

	for (uint64_t passed = 0; passed < ms && !stopped(s); passed += FOLLOW_MS) {
		nanosleep(&step, NULL);
		watch_log(s);
	}
}

/* The last thing that is said: it is tried for a while. */
static void say_last(struct shipping *s, const char *cause, const char *text)
{
	const struct timespec step = {0, FOLLOW_MS * 1000000L};
	uint64_t until = clock_boot_ms() + (s->options->once ? 0 : LAST_MS);

	if (!sink_only_alarms(s->conf->only))
		return;
	ship_watch_say(&s->watch, cause, text);
	while (!ship_watch_send(&s->watch, s->ops, s->conf, s->options->dialer) && !stopped(s) &&
	       clock_boot_ms() < until)
		nanosleep(&step, NULL);
}

static int alarm_of(struct shipping *s, enum ship_result result, const struct err *err)
{
	sink_trouble_keep(s->conf, err->msg);
	say_last(s, result == SHIP_GAP ? "gap" : "damaged", err->msg);
	s->options->tell("ALARM sink %s: %s: %s; nothing more is shipped", s->conf->name,
			 result == SHIP_GAP ? "records are lost to it" : "the log is damaged",
			 err->msg);
	return (int)result;
}

/* What a look at the log has come to, when it is neither a record nor the end. */
static int log_trouble(struct shipping *s, enum cursor_got got, const struct err *err)
{
	if (got == CURSOR_GAP)
		return alarm_of(s, SHIP_GAP, err);
	if (got == CURSOR_DAMAGED)
		return alarm_of(s, SHIP_DAMAGED, err);
	sink_trouble_keep(s->conf, err->msg);
	s->options->tell("sink %s: the log in %s: %s", s->conf->name, s->dir, err->msg);
	return ROUND_FAILED;
}

/* --- where to go on --- */

/* A log that was set aside by `serve --accept-damage` is followed by NAME/2, NAME/3 ... */
static bool follows(const struct shipping *s, const char *before, const char *now)
{
	const char *slash = strrchr(now, '/');
	char aside[64];
	struct stat st;
	size_t len;
	unsigned long n;
	char *end;

	if (!slash)
		return false;
	n = strtoul(slash + 1, &end, 10);
	if (slash[1] < '1' || slash[1] > '9' || *end || n < 2)
		return false;
	len = (size_t)(slash - now);
	if (strncmp(before, now, len) != 0 || (before[len] && before[len] != '/'))
		return false;
	snprintf(aside, sizeof(aside), "damaged-%lu", n - 1);
	return fstatat(s->cursor.dir_fd, aside, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The state of another log than the one that is here: fine only behind accepted damage. */
static int change_of_log(struct shipping *s, struct err *err)
{
	if (strcmp(s->mark.log, s->cursor.log) == 0)
		return 0;
	if (!follows(s, s->mark.log, s->cursor.log)) {
		err_set(err, ERR_INPUT, "this is the log %s, and %s was shipped before",
			s->cursor.log, s->mark.log);
		return alarm_of(s, SHIP_DAMAGED, err);
	}
	s->options->tell("sink %s: the log %s was set aside; of it, records up to %" PRIu64
			 " were shipped. It goes on with %s",
			 s->conf->name, s->mark.log, s->mark.seq, s->cursor.log);
	s->marked = false;
	return 0;
}

static int find_mark(struct shipping *s, struct err *err)
{
	int rc;

	if (s->ops->own_position)
		rc = s->ops->position(s->sink, &s->mark, err);
	else if (sink_state_own(s->conf, err) < 0) /* before anything is sent */
		rc = -1;
	else
		rc = sink_state_read(s->conf, &s->mark, err);
	s->marked = rc > 0;
	return rc < 0 ? -1 : 0;
}

static int begin_anew(struct shipping *s, bool told)
{
	struct err err = {0};
	enum cursor_got got = cursor_seek(&s->cursor, NULL, &err);

	if (got != CURSOR_LINE)
		return log_trouble(s, got, &err);
	if (told && s->cursor.first)
		s->options->tell("sink %s: it begins with record %" PRIu64
				 "; those before were removed from the log",
				 s->conf->name, s->cursor.first);
	return 0;
}

static int seek(struct shipping *s)
{
	struct err err = {0};
	enum cursor_got got;

	if (!s->marked)
		return begin_anew(s, true);
	got = cursor_seek(&s->cursor, &s->mark, &err);
	if (got == CURSOR_LINE)
		return 0;
	if (got != CURSOR_GAP || !s->options->accept_gap)
		return log_trouble(s, got, &err);
	s->options->tell("sink %s: %s; it goes on behind them, as --accept-gap says", s->conf->name,
			 err.msg);
	return begin_anew(s, false);
}

/* --- batches --- */

/* A sink that is narrowed does not get the others. */
static bool is_passed(struct shipping *s, const struct cursor_line *text)
{
	struct record_peek peek;
	struct line line;

	if (!s->conf->only)
		return false;
	if (!line_split(text->text, &line) || !record_peek(line.body, &peek))
		return false;
	s->ended = peek.type == RECORD_GATE_STOP;
	snprintf(s->passed.log, sizeof(s->passed.log), "%s", s->cursor.log);
	s->passed.seq = text->seq;
	s->passed.hash = text->hash;
	return !sink_only_wants(s->conf->only, peek.type, text->text, s->arena);
}

/* Takes what is there, up to a batch. */
static enum cursor_got fill(struct shipping *s, struct err *err)
{
	struct batch *b = s->batch;
	struct cursor_line line;
	enum cursor_got got = CURSOR_LINE;
	unsigned looked_at = 0;

	buf_clear(&b->text);
	b->count = 0;
	while (got == CURSOR_LINE && b->count < BATCH_LINES && looked_at++ < LOOKED_AT_MAX &&
	       buf_len(&b->text) + RECORD_LINE_MAX <= BATCH_BYTES) {
		got = cursor_next(&s->cursor, &line, err);
		if (got != CURSOR_LINE)
			break;
		if (is_passed(s, &line))
			continue;
		b->lines[b->count++] =
			(struct batch_line){buf_len(&b->text), line.text.len, line.seq, line.hash};
		buf_put(&b->text, line.text.at, line.text.len);
	}
	return got;
}

static int keep_mark(struct shipping *s, size_t done, struct err *err)
{
	const struct batch_line *last;

	if (!done)
		return 0;
	last = &s->batch->lines[done - 1];
	snprintf(s->mark.log, sizeof(s->mark.log), "%s", s->cursor.log);
	s->mark.seq = last->seq;
	s->mark.hash = last->hash;
	s->marked = true;
	if (sink_state_keep(s->conf, &s->mark, err) == 0)
		return 0;
	if (!s->ops->own_position)
		return -1;
	if (!s->stateless) /* it is for `doctor` alone then */
		s->options->tell("sink %s: %s; `sallyport doctor` cannot see how far it is",
				 s->conf->name, err->msg);
	s->stateless = true;
	return 0;
}

/* All that was read is done with, by being sent or not being an alarm. */
static int keep_passed(struct shipping *s, struct err *err)
{
	uint64_t now = clock_boot_ms();

	if (!s->conf->only || !*s->passed.log || (s->marked && s->mark.seq == s->passed.seq) ||
	    (!s->options->once && now < s->passed_ms + KEEP_MS))
		return 0;
	if (cursor_sync(&s->cursor, err) < 0)
		return -1;
	s->passed_ms = now;
	s->mark = s->passed;
	s->marked = true;
	return sink_state_keep(s->conf, &s->mark, err);
}

static int sink_trouble(struct shipping *s, const struct err *err)
{
	if (!s->troubled)
		s->options->tell("sink %s: %s; what it has not taken waits in the log",
				 s->conf->name, err->msg);
	if (!s->troubled)
		sink_trouble_keep(s->conf, err->msg);
	s->troubled = true;
	return ROUND_FAILED;
}

static int send_batch(struct shipping *s)
{
	struct err err = {0}, keep_err = {0};
	size_t done = 0;
	int rc;

	if (buf_spent(&s->batch->text)) {
		err_set(&err, ERR_LIMIT, "no memory for a batch");
		return sink_trouble(s, &err);
	}
	if (cursor_sync(&s->cursor, &err) < 0)
		return log_trouble(s, CURSOR_TROUBLE, &err);
	rc = s->ops->send(s->sink, s->batch, &done, &err);
	if (keep_mark(s, done, &keep_err) < 0)
		return sink_trouble(s, &keep_err);
	if (rc < 0)
		return sink_trouble(s, &err);
	if (s->troubled)
		s->options->tell("sink %s: it takes records again", s->conf->name);
	s->troubled = false;
	return 0;
}

/* --- rounds --- */

static void watch_lag(struct shipping *s)
{
	struct sink_lag lag;
	struct err err = {0};
	uint64_t now = clock_boot_ms();

	if (now < s->lag_ms)
		return;
	s->lag_ms = now + LAG_MS;
	if (sink_lag(s->dir, s->conf, &lag, &err) == 0 && lag.needs_oldest)
		s->options->tell("sink %s: it has taken records up to %" PRIu64
				 " and still needs the oldest segment of the log, which is the "
				 "next to be removed",
				 s->conf->name, lag.seq);
}

static int idle(struct shipping *s)
{
	uint64_t now = clock_boot_ms();
	bool once = s->options->once, thorough = once || now >= s->looked_ms;
	struct err err = {0};
	enum cursor_got got;

	if (!once)
		wait_ms(s, FOLLOW_MS);
	if (thorough)
		s->looked_ms = now + LOOK_MS;
	got = cursor_idle(&s->cursor, thorough, &err);
	if (got == CURSOR_MOVED)
		return once ? ROUND_FAILED : ROUND_AGAIN;
	if (got == CURSOR_LINE)
		return 0;
	if (got != CURSOR_NONE)
		return log_trouble(s, got, &err);
	return once ? ROUND_AGAIN : 0;
}

/* What held it up before, this process or the one before it, does no more. */
static void forget_trouble(struct shipping *s)
{
	if (!s->cleared)
		sink_trouble_keep(s->conf, "");
	s->cleared = true;
}

/* Ships until something ends it; ROUND_AGAIN in once mode is the log's end. */
static int work(struct shipping *s)
{
	while (!stopped(s)) {
		struct err err = {0};
		enum cursor_got got = fill(s, &err);
		int rc = 0;

		watch_log(s);
		if (s->batch->count)
			rc = send_batch(s);
		if (rc == 0 && keep_passed(s, &err) < 0)
			rc = sink_trouble(s, &err);
		if (rc == 0 && (got == CURSOR_LINE || got == CURSOR_NONE))
			forget_trouble(s);
		if (rc == 0 && got != CURSOR_LINE && got != CURSOR_NONE)
			rc = log_trouble(s, got, &err);
		if (rc == 0 && got == CURSOR_NONE)
			rc = idle(s);
		if (rc == 0)
			watch_lag(s);
		if (rc != 0)
			return rc;
	}
	return SHIP_FINE;
}

/* From a connection to its end. */
static int begin(struct shipping *s)
{
	struct err err = {0};
	int rc;

	s->cleared = false;
	s->passed.log[0] = '\0'; /* what was read and not sent is read again */
	if (cursor_open(&s->cursor, s->dir, &err) < 0) {
		rc = log_trouble(s, CURSOR_TROUBLE, &err);
		return s->options->once ? SHIP_CANNOT : rc;
	}
	rc = begin_anew(s, false); /* for the log's name */
	if (rc != 0)
		return rc;
	snprintf(s->watch.log, sizeof(s->watch.log), "%s", s->cursor.log);
	s->sink = s->ops->open(s->conf, s->options->dialer, s->cursor.log, &err);
	if (!s->sink || find_mark(s, &err) < 0)
		return sink_trouble(s, &err);
	rc = s->marked ? change_of_log(s, &err) : 0;
	if (rc == 0)
		rc = seek(s);
	return rc != 0 ? rc : work(s);
}

static void end(struct shipping *s)
{
	if (s->sink)
		s->ops->close(s->sink);
	s->sink = NULL;
	cursor_close(&s->cursor);
}

static enum ship_result rounds(struct shipping *s)
{
	uint64_t pause = BACK_OFF_MS;

	while (!stopped(s)) {
		uint64_t before = s->mark.seq;
		int rc;

		s->cursor.dir_fd = s->cursor.fd = -1;
		rc = begin(s);
		end(s);
		if (rc >= 0)
			return (enum ship_result)rc;
		if (s->options->once)
			return rc == ROUND_AGAIN ? SHIP_FINE : SHIP_BEHIND;
		if (rc == ROUND_AGAIN)
			continue;
		pause = s->mark.seq != before ? BACK_OFF_MS : pause;
		wait_ms(s, pause);
		pause = pause * 2 < BACK_OFF_MAX ? pause * 2 : BACK_OFF_MAX;
	}
	return SHIP_FINE;
}

enum ship_result ship(const char *dir, const struct sink_conf *conf,
		      const struct ship_options *options)
{
	struct shipping s = {.dir = dir,
			     .conf = conf,
			     .options = options,
			     .ops = kinds[conf->kind].ops,
			     .watch = {.dir = dir}};
	enum ship_result result;

	s.batch = calloc(1, sizeof(*s.batch));
	s.arena = arena_create(2 * FIELDS_ARENA_MAX);
	if (!s.batch || !s.ops || !s.arena) {
		arena_destroy(s.arena);
		free(s.batch);
		return SHIP_CANNOT;
	}
	buf_init(&s.batch->text, BATCH_BYTES);
	result = rounds(&s);
	buf_fini(&s.batch->text);
	arena_destroy(s.arena);
	free(s.batch);
	return result;
}

/* --- for `doctor` --- */

static uint64_t bytes_of(int dir_fd, uint64_t first, int64_t *ret_age_days)
{
	char name[SEGMENT_NAME_MAX];
	struct stat st;

	segment_name(first, name);
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (ret_age_days)
		*ret_age_days = ((int64_t)(clock_unix_ns() / 1000000000) - st.st_mtime) / DAY_S;
	return (uint64_t)st.st_size;
}

int sink_lag(const char *dir, const struct sink_conf *conf, struct sink_lag *ret, struct err *err)
{
	auto_fd int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct cursor_mark mark = {.seq = 0};
	struct segments all;
	int known;

	*ret = (struct sink_lag){.known = false};
	if (dir_fd < 0)
		return err_sys(err, "open %s", dir);
	known = sink_state_read(conf, &mark, err);
	if (known < 0 || segments_list(dir_fd, &all, err) < 0)
		return -1;
	ret->known = known > 0;
	ret->seq = mark.seq;
	for (size_t i = 0; i < all.count; i++)
		ret->log_bytes += bytes_of(dir_fd, all.first[i], i ? NULL : &ret->oldest_days);
	if (known && all.count && all.first[0] > mark.seq + 1)
		ret->lost = all.first[0] - mark.seq - 1;
	ret->needs_oldest = all.count > 1 && (!known || mark.seq + 1 < all.first[1]);
	segments_free(&all);
	return 0;
}
