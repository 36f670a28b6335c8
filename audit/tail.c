#include "audit/verify.h"

#include "audit/line_priv.h"
#include "audit/record_priv.h"
#include "audit/segment_priv.h"
#include "gate/base/auto.h"
#include "gate/base/buf.h"
#include "gate/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define FOLLOW_MS 100
#define OUT_BYTES 65536

/* A place in the log, and the reader that is there. */
struct place {
	int dir_fd, out_fd;
	struct segments all;
	size_t index; /* of the segment */
	int fd;
	bool finished; /* the last line that was printed ends its segment */
	struct line_reader reader;
	struct buf out; /* so that not each line is a write */
};

static int open_place(struct place *p, struct err *err)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = segment_open(p->dir_fd, p->all.first[p->index], O_RDONLY, err);
	if (p->fd < 0)
		return -1;
	p->reader.fd = p->fd;
	p->finished = false;
	line_reader_seek(&p->reader, 0);
	return 0;
}

static int read_trouble(const struct place *p, struct err *err)
{
	errno = p->reader.error;
	return err_sys(err, "read the audit log");
}

static int count_lines(struct place *p, uint64_t *ret, struct err *err)
{
	struct span text;

	if (open_place(p, err) < 0)
		return -1;
	for (*ret = 0; line_reader_next(&p->reader, &text) == LINE_WHOLE; ++*ret)
		;
	return p->reader.error ? read_trouble(p, err) : 0;
}

/* Goes to where the last `count` lines begin. */
static int go_back(struct place *p, uint64_t count, struct err *err)
{
	uint64_t lines, behind = 0;
	struct span text;

	for (p->index = p->all.count - 1;; p->index--) {
		if (count_lines(p, &lines, err) < 0)
			return -1;
		behind += lines;
		if (behind >= count || p->index == 0)
			break;
	}
	line_reader_seek(&p->reader, 0);
	for (; behind > count; behind--)
		if (line_reader_next(&p->reader, &text) != LINE_WHOLE)
			return p->reader.error ? read_trouble(p, err) : 0;
	return 0;
}

static int flush(struct place *p, struct err *err)
{
	struct span s = buf_span(&p->out);

	if (io_write_all(p->out_fd, s.at, s.len, err) < 0)
		return -1;
	buf_clear(&p->out);
	return 0;
}

static int print(struct place *p, struct span text, struct err *err)
{
	if (buf_room(&p->out) < text.len + 1 && flush(p, err) < 0)
		return -1;
	buf_put(&p->out, text.at, text.len);
	buf_put(&p->out, "\n", 1);
	return buf_spent(&p->out) ? err_set(err, ERR_LIMIT, "no memory to print") : 0;
}

/* Prints whole lines up to the segment's end. */
static int print_segment(struct place *p, struct err *err)
{
	struct span text;

	while (line_reader_next(&p->reader, &text) == LINE_WHOLE) {
		struct record_peek peek;
		struct line line;

		/* A write that is still going on: one of its pages is there, and one before it not
		 * yet. */
		if (memchr(text.at, 0, text.len)) {
			line_reader_unread(&p->reader, text);
			break;
		}
		if (print(p, text, err) < 0)
			return -1;
		p->finished = line_split(text, &line) && record_peek(line.body, &peek) &&
			      peek.type == RECORD_LOG_SEAL;
	}
	if (p->reader.error)
		return read_trouble(p, err);
	return flush(p, err);
}

/* 1: a segment behind this one is there now. */
static int next_segment(struct place *p, struct err *err)
{
	uint64_t here = p->all.first[p->index];
	struct segments now;

	if (segments_list(p->dir_fd, &now, err) < 0)
		return -1;
	for (size_t i = 0; i < now.count; i++)
		if (now.first[i] > here) {
			segments_free(&p->all);
			p->all = now;
			p->index = i;
			return open_place(p, err) < 0 ? -1 : 1;
		}
	segments_free(&now);
	return 0;
}

/* Waits, and ends when nobody reads what is printed. */
static int pause_or_end(const struct place *p, struct err *err)
{
	struct pollfd out = {.fd = p->out_fd};

	if (poll(&out, 1, FOLLOW_MS) > 0 && (out.revents & (POLLERR | POLLNVAL)))
		return err_set(err, ERR_SYSTEM, "nobody reads the output any more");
	return 0;
}

static int print_on(struct place *p, bool follow, struct err *err)
{
	for (;;) {
		int next = 0;

		if (print_segment(p, err) < 0)
			return -1;
		if (p->index + 1 < p->all.count) {
			p->index++;
			next = open_place(p, err) < 0 ? -1 : 1;
		} else if (!follow) {
			return 0;
		} else if (p->finished) {
			next = next_segment(p, err);
		}
		if (next < 0)
			return -1;
		if (next)
			continue;
		if (pause_or_end(p, err) < 0)
			return -1;
		line_reader_seek(&p->reader, line_reader_offset(&p->reader));
	}
}

int log_tail(const char *dir, uint64_t count, bool follow, int out_fd, struct err *err)
{
	auto_fd int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct place p = {.dir_fd = dir_fd, .out_fd = out_fd, .fd = -1};
	int result = -1;

	if (dir_fd < 0)
		return err_sys(err, "open %s", dir);
	if (segments_list(dir_fd, &p.all, err) < 0)
		return -1;
	buf_init(&p.out, OUT_BYTES + RECORD_LINE_MAX + 1);
	if (!p.all.count)
		err_set(err, ERR_CONFIG, "there are no log segments in %s", dir);
	else if (!line_reader_init(&p.reader, -1))
		err_set(err, ERR_LIMIT, "no memory to read the log");
	else if (go_back(&p, count, err) == 0)
		result = print_on(&p, follow, err);
	line_reader_fini(&p.reader);
	buf_fini(&p.out);
	segments_free(&p.all);
	if (p.fd >= 0)
		close(p.fd);
	return result;
}
