#include "audit/cursor_priv.h"

#include "audit/record_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOKS         6 /* at a bad end, before it counts: the log may be written to */
#define LOOK_AFTER_MS 20

static enum cursor_got damaged(const struct cursor *c, struct err *err, const char *what)
{
	err_set(err, ERR_INPUT, "segment %020" PRIu64 ", record %" PRIu64 ": %s", c->segment,
		c->seq, what);
	return CURSOR_DAMAGED;
}

static enum cursor_got trouble(const struct cursor *c, struct err *err)
{
	errno = c->reader.error;
	err_sys(err, "read the audit log");
	return CURSOR_TROUBLE;
}

int cursor_open(struct cursor *c, const char *dir, struct err *err)
{
	*c = (struct cursor){.dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), .fd = -1};
	if (c->dir_fd < 0)
		return err_sys(err, "open %s", dir);
	if (line_reader_init(&c->reader, -1))
		return 0;
	close(c->dir_fd);
	c->dir_fd = -1;
	return err_set(err, ERR_LIMIT, "no memory to read the log");
}

void cursor_close(struct cursor *c)
{
	line_reader_fini(&c->reader);
	if (c->fd >= 0)
		close(c->fd);
	if (c->dir_fd >= 0)
		close(c->dir_fd);
	c->fd = c->dir_fd = -1;
}

static int enter(struct cursor *c, uint64_t first, struct err *err)
{
	int fd = segment_open(c->dir_fd, first, O_RDONLY, err);

	if (fd < 0)
		return -1;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = c->reader.fd = fd;
	c->segment = first;
	c->finished = false;
	c->reader.error = 0;
	line_reader_seek(&c->reader, 0);
	return 0;
}

/* The lowest segment that begins at `from` or behind it: 1, or 0 if there is none. */
static int segment_from(const struct cursor *c, uint64_t from, uint64_t *ret, struct err *err)
{
	struct segments all;
	int found = 0;

	if (segments_list(c->dir_fd, &all, err) < 0)
		return -1;
	for (size_t i = 0; !found && i < all.count; i++)
		if (all.first[i] >= from) {
			*ret = all.first[i];
			found = 1;
		}
	segments_free(&all);
	return found;
}

/* --- lines --- */

static enum cursor_got take(struct cursor *c, struct span text, const struct line *line,
			    struct cursor_line *ret, struct err *err)
{
	struct record_peek peek;

	if (!*c->log)
		snprintf(c->log, sizeof(c->log), "%.*s", SPAN_FMT(line->log));
	if (line->seq != c->seq)
		return damaged(c, err, "another number stands in its place");
	if (!span_is(line->log, c->log))
		return damaged(c, err, "it belongs to another log");
	if (c->linked && memcmp(&line->prev, &c->prev, sizeof(c->prev)) != 0)
		return damaged(c, err, "it does not follow the record before");
	if (c->finished)
		return damaged(c, err, "it stands behind log_seal");
	*ret = (struct cursor_line){text, line->seq, line->hash};
	c->finished = record_peek(line->body, &peek) && peek.type == RECORD_LOG_SEAL;
	c->linked = true;
	c->prev = line->hash;
	c->seq++;
	return CURSOR_LINE;
}

/* What stands in this segment. */
static enum cursor_got next_here(struct cursor *c, struct cursor_line *ret, struct err *err)
{
	struct span text;
	struct line line;

	if (line_reader_next(&c->reader, &text) != LINE_WHOLE) {
		if (c->reader.error)
			return trouble(c, err);
		line_reader_seek(&c->reader, line_reader_offset(&c->reader));
		return CURSOR_NONE;
	}
	if (line_split(text, &line) && line_hash_ok(text, &line))
		return take(c, text, &line, ret, err);
	if (!memchr(text.at, '\0', text.len))
		return damaged(c, err, "it was altered");
	line_reader_unread(&c->reader, text); /* it is being written, or was cut by a crash */
	line_reader_seek(&c->reader, line_reader_offset(&c->reader));
	return CURSOR_NONE;
}

enum cursor_got cursor_next(struct cursor *c, struct cursor_line *ret, struct err *err)
{
	enum cursor_got got = next_here(c, ret, err);
	uint64_t next = 0;
	int found;

	if (got != CURSOR_NONE)
		return got;
	found = segment_from(c, c->segment + 1, &next, err);
	if (found < 0)
		return CURSOR_TROUBLE;
	if (!found)
		return CURSOR_NONE;
	if (!c->finished) { /* it may have been sealed between the two looks */
		got = next_here(c, ret, err);
		return got != CURSOR_NONE ? got
					  : damaged(c, err, "it is missing, and a segment follows");
	}
	if (next != c->seq)
		return damaged(c, err, "it is missing");
	if (enter(c, next, err) < 0)
		return CURSOR_TROUBLE;
	return next_here(c, ret, err);
}

/* --- places --- */

/* The segment from which a record is reached: the last that does not begin behind it. */
static int segment_of(struct cursor *c, uint64_t seq, uint64_t *ret, struct err *err)
{
	struct segments all;

	if (segments_list(c->dir_fd, &all, err) < 0)
		return -1;
	if (!all.count)
		return err_set(err, ERR_CONFIG, "there are no log segments");
	c->first = *ret = all.first[0];
	for (size_t i = 0; i < all.count && all.first[i] <= seq; i++)
		*ret = all.first[i];
	segments_free(&all);
	return 0;
}

static enum cursor_got behind(struct cursor *c, const struct cursor_mark *mark, struct err *err)
{
	struct cursor_line line;
	enum cursor_got got = CURSOR_LINE;

	while (got == CURSOR_LINE && c->seq <= mark->seq)
		got = cursor_next(c, &line, err);
	if (got == CURSOR_NONE)
		return damaged(c, err, "the log ends before what was shipped: it was rolled back");
	if (got != CURSOR_LINE)
		return got;
	if (memcmp(&c->prev, &mark->hash, sizeof(c->prev)) == 0)
		return CURSOR_LINE;
	c->seq = mark->seq;
	return damaged(c, err, "it is not the record that was shipped under this number");
}

enum cursor_got cursor_seek(struct cursor *c, const struct cursor_mark *mark, struct err *err)
{
	uint64_t from = mark ? mark->seq + 1 : 0, segment = 0;
	struct cursor_line line;
	enum cursor_got got;

	if (segment_of(c, from, &segment, err) < 0 || enter(c, segment, err) < 0)
		return CURSOR_TROUBLE;
	c->seq = segment;
	c->linked = false;
	*c->log = '\0';
	got = next_here(c, &line, err); /* for its name */
	if (got != CURSOR_LINE)
		return got == CURSOR_NONE ? damaged(c, err, "the segment has no whole record")
					  : got;
	if (mark && strcmp(mark->log, c->log) != 0)
		return damaged(c, err, "it belongs to another log than what was shipped");
	if (mark && segment > from) {
		err_set(err, ERR_INPUT,
			"records %" PRIu64 " to %" PRIu64
			" were removed from the log before they were shipped",
			from, segment - 1);
		return CURSOR_GAP;
	}
	if (mark && segment < from)
		return behind(c, mark, err);
	line_reader_seek(&c->reader, 0);
	c->seq = segment;
	c->finished = false;
	c->linked = mark != NULL;
	if (mark)
		c->prev = mark->hash;
	return CURSOR_LINE;
}

/* --- the end --- */

static bool same_file(const struct cursor *c)
{
	char name[SEGMENT_NAME_MAX];
	struct stat here, there;

	segment_name(c->segment, name);
	return fstat(c->fd, &here) == 0 &&
	       fstatat(c->dir_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino &&
	       (uint64_t)here.st_size >= line_reader_offset(&c->reader);
}

/* A record that was whole a moment ago must still end where it ended. */
static bool newline_before(const struct cursor *c)
{
	uint64_t at = line_reader_offset(&c->reader);
	char last = '\n';

	return !at || (segment_read(c->fd, &last, 1, at - 1) == 1 && last == '\n');
}

static bool is_more(struct cursor *c)
{
	uint64_t at = line_reader_offset(&c->reader);
	struct span text;
	struct line line;
	bool more;

	line_reader_seek(&c->reader, at);
	more = line_reader_next(&c->reader, &text) == LINE_WHOLE && line_split(text, &line) &&
	       line_hash_ok(text, &line);
	line_reader_seek(&c->reader, at);
	return more;
}

enum cursor_got cursor_idle(struct cursor *c, bool thorough, struct err *err)
{
	const struct timespec pause = {0, LOOK_AFTER_MS * 1000000L};
	struct tail tail = {TAIL_CLEAN, 0, 0};

	if (!same_file(c) || !newline_before(c))
		return CURSOR_MOVED;
	for (int look = 0; thorough && look < LOOKS; look++) {
		if (look)
			nanosleep(&pause, NULL);
		if (is_more(c))
			return CURSOR_LINE;
		if (segment_tail(c->fd, line_reader_offset(&c->reader), &tail, err) < 0)
			return CURSOR_TROUBLE;
		if (tail.kind != TAIL_DAMAGED)
			return CURSOR_NONE;
	}
	return thorough ? damaged(c, err, "it was altered") : CURSOR_NONE;
}

int cursor_sync(struct cursor *c, struct err *err)
{
	return fdatasync(c->fd) < 0 ? err_sys(err, "sync the audit log") : 0;
}
