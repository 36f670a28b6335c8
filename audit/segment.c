#include "audit/segment_priv.h"

#include "audit/line_priv.h"
#include "gate/base/auto.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_DIGITS  20
#define SEGMENTS_MAX 1000000
#define PIECE_BYTES  (1u << 20)
#define TAIL_MAX     (1u << 30) /* a tail that is longer is not looked at: damage */

void segment_name(uint64_t first_seq, char out[SEGMENT_NAME_MAX])
{
	snprintf(out, SEGMENT_NAME_MAX, "%0*" PRIu64 ".log", NAME_DIGITS, first_seq);
}

static bool parse_name(const char *name, uint64_t *ret)
{
	uint64_t value = 0;

	if (strlen(name) != NAME_DIGITS + 4 || strcmp(name + NAME_DIGITS, ".log") != 0)
		return false;
	for (int i = 0; i < NAME_DIGITS; i++)
		if (name[i] < '0' || name[i] > '9' || __builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (unsigned)(name[i] - '0'), &value))
			return false;
	*ret = value;
	return true;
}

static int by_number(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static int add_number(struct segments *s, uint64_t first, struct err *err)
{
	if (s->count == SEGMENTS_MAX)
		return err_set(err, ERR_LIMIT, "more than %d log segments", SEGMENTS_MAX);
	if (!(s->count & (s->count - 1))) {
		size_t room = s->count ? s->count * 2 : 16;
		uint64_t *more;

		room = room < 16 ? 16 : room;
		more = realloc(s->first, room * sizeof(*more));
		if (!more)
			return err_set(err, ERR_LIMIT, "no memory for the list of log segments");
		s->first = more;
	}
	s->first[s->count++] = first;
	return 0;
}

int segments_list(int dir_fd, struct segments *ret, struct err *err)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int result = 0;

	*ret = (struct segments){0};
	if (!dir) {
		err_sys(err, "list the log directory");
		if (fd >= 0)
			close(fd);
		return -1;
	}
	while (result == 0 && (errno = 0, entry = readdir(dir))) {
		uint64_t first;

		if (parse_name(entry->d_name, &first))
			result = add_number(ret, first, err);
	}
	if (result == 0 && errno)
		result = err_sys(err, "list the log directory");
	closedir(dir);
	if (result < 0)
		segments_free(ret);
	else if (ret->count)
		qsort(ret->first, ret->count, sizeof(*ret->first), by_number);
	return result;
}

void segments_free(struct segments *s)
{
	free(s->first);
	*s = (struct segments){0};
}

int segment_open(int dir_fd, uint64_t first_seq, int flags, struct err *err)
{
	char name[SEGMENT_NAME_MAX];
	auto_fd int fd = -1;
	struct stat st;

	segment_name(first_seq, name);
	/* Non-blocking, so that a FIFO in its place cannot hold us. */
	fd = openat(dir_fd, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "open log segment %s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_CONFIG, "log segment %s is not a regular file", name);
	return take_fd(fd);
}

/* --- lines --- */

long segment_read(int fd, char *out, size_t len, uint64_t at)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, out + got, len - got, (off_t)(at + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (long)got;
}

bool line_reader_init(struct line_reader *r, int fd)
{
	*r = (struct line_reader){.fd = fd, .mem = malloc(PIECE_BYTES)};
	return r->mem != NULL;
}

void line_reader_fini(struct line_reader *r)
{
	free(r->mem);
	r->mem = NULL;
}

void line_reader_seek(struct line_reader *r, uint64_t offset)
{
	r->base = offset;
	r->len = r->pos = 0;
}

/* Moves what is left to the front and reads behind it. */
static bool refill(struct line_reader *r)
{
	size_t left = r->len - r->pos;
	long n;

	memmove(r->mem, r->mem + r->pos, left);
	r->base += r->pos;
	r->pos = 0;
	r->len = left;
	n = segment_read(r->fd, r->mem + left, PIECE_BYTES - left, r->base + left);
	if (n < 0) {
		r->error = errno;
		return false;
	}
	r->len += (size_t)n;
	return n > 0;
}

enum line_got line_reader_next(struct line_reader *r, struct span *ret)
{
	for (;;) {
		const char *start = r->mem + r->pos;
		size_t left = r->len - r->pos;
		const char *newline = left ? memchr(start, '\n', left) : NULL;

		if (newline) {
			*ret = (struct span){start, (size_t)(newline - start)};
			r->pos += ret->len + 1;
			return LINE_WHOLE;
		}
		if (left && *start == '\0')
			return LINE_NONE;
		if (left > RECORD_LINE_MAX)
			return LINE_PART;
		if (!refill(r))
			return r->error || left ? LINE_PART : LINE_NONE;
	}
}

/* --- the end --- */

static bool all_zero(const char *s, size_t len)
{
	return len == 0 || (*s == '\0' && memcmp(s, s + 1, len - 1) == 0);
}

/* The length of what stands behind `at`, without the zeros at the end. */
static int measure(int fd, uint64_t at, uint64_t *ret, struct err *err)
{
	auto_free char *piece = malloc(PIECE_BYTES);
	uint64_t offset = at;

	if (!piece)
		return err_set(err, ERR_LIMIT, "no memory to look at the log's end");
	*ret = 0;
	for (;;) {
		long n = segment_read(fd, piece, PIECE_BYTES, offset);

		if (n < 0)
			return err_sys(err, "read the log's end");
		if (n == 0)
			return 0;
		if (!all_zero(piece, (size_t)n)) {
			while (piece[n - 1] == '\0')
				n--;
			*ret = offset - at + (uint64_t)n;
		}
		offset += PIECE_BYTES;
	}
}

static bool is_line(struct span text)
{
	struct line l;

	return line_split(text, &l) && line_hash_ok(text, &l);
}

/* Any line that is whole by itself, wherever it begins. */
static bool has_line(struct span s)
{
	for (;;) {
		const char *at = memmem(s.at, s.len, LINE_START, sizeof(LINE_START) - 1);
		const char *newline;

		if (!at)
			return false;
		s = span_skip(s, (size_t)(at - s.at));
		newline = memchr(s.at, '\n', s.len);
		if (!newline)
			return false;
		if (is_line((struct span){s.at, (size_t)(newline - s.at)}))
			return true;
		s = span_skip(s, 1);
	}
}

/*
 * A write that a crash cut short leaves sectors with the new bytes and sectors
 * with the zeros from before.  So zeros with something behind them begin where
 * the write or a sector begins, and end with a sector.
 */
static bool has_odd_hole(struct span s, uint64_t at)
{
	const uint64_t sector = 512;

	for (size_t i = 0; i < s.len; i++) {
		bool zero = s.at[i] == '\0';
		bool was_zero = i > 0 && s.at[i - 1] == '\0';

		if (i > 0 && zero != was_zero && (at + i) % sector != 0)
			return true;
	}
	return false;
}

/* The whole text of a line, but with another byte where the newline should be. */
static bool has_lost_newline(struct span s)
{
	const char *zero = memchr(s.at, '\0', s.len);
	size_t len = zero ? (size_t)(zero - s.at) : s.len;

	return len > 1 && is_line((struct span){s.at, len - 1});
}

static bool is_torn(struct span s, uint64_t at)
{
	const char *newline = memchr(s.at, '\n', s.len);

	/* The first line has an end and no hole, but it is wrong. */
	if (newline && !memchr(s.at, '\0', (size_t)(newline - s.at)))
		return false;
	return !has_odd_hole(s, at) && !has_lost_newline(s) && !has_line(s);
}

int segment_tail(int fd, uint64_t at, struct tail *ret, struct err *err)
{
	auto_free char *mem = NULL;
	uint64_t bytes = 0;
	long n;

	if (measure(fd, at, &bytes, err) < 0)
		return -1;
	*ret = (struct tail){TAIL_CLEAN, at, bytes};
	if (!bytes)
		return 0;
	ret->kind = TAIL_DAMAGED;
	if (bytes > TAIL_MAX)
		return 0;
	mem = malloc(bytes);
	if (!mem)
		return err_set(err, ERR_LIMIT, "no memory to look at the log's end");
	n = segment_read(fd, mem, bytes, at);
	if (n < 0)
		return err_sys(err, "read the log's end");
	if ((uint64_t)n == bytes && is_torn((struct span){mem, bytes}, at))
		ret->kind = TAIL_TORN;
	return 0;
}
