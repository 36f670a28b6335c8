/*
 * segment_priv.h - the files of a log: their names, their lines, their ends.
 *
 * A segment is named by the sequence number of its first line.  The newest one
 * is preallocated: zeros behind the last line mean "not written yet".
 */
#ifndef AUDIT_SEGMENT_PRIV_H
#define AUDIT_SEGMENT_PRIV_H

#include "audit/record.h"
#include "gate/base/err.h"
#include "gate/base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEGMENT_NAME_MAX 32 /* with the NUL */

void segment_name(uint64_t first_seq, char out[SEGMENT_NAME_MAX]);

/* The numbers of all segments of a directory, lowest first. */
struct segments {
	uint64_t *first;
	size_t count;
};

int segments_list(int dir_fd, struct segments *ret, struct err *err);
void segments_free(struct segments *s);

/* For reading; no symbolic links, regular files only.  -1 on error. */
int segment_open(int dir_fd, uint64_t first_seq, int flags, struct err *err);

/*
 * Reads a file's lines in large pieces.  The file may grow meanwhile.
 */
struct line_reader {
	int fd; /* not owned */
	char *mem;
	size_t len;    /* bytes in mem */
	size_t pos;    /* of the next line in mem */
	uint64_t base; /* file offset of mem[0] */
	int error;     /* errno of a read that failed, or 0 */
};

enum line_got {
	LINE_NONE = 0, /* the end of the file, or zeros */
	LINE_WHOLE,    /* ended by a newline, which is not part of it */
	LINE_PART      /* no newline within the longest line, or a read failed */
};

/* False: no memory. */
bool line_reader_init(struct line_reader *r, int fd);
void line_reader_fini(struct line_reader *r);

/* Continues at a line's beginning with what the file holds now. */
void line_reader_seek(struct line_reader *r, uint64_t offset);

/* *ret is valid until the next call, and only for LINE_WHOLE. */
enum line_got line_reader_next(struct line_reader *r, struct span *ret);

/* The file offset behind the last whole line that was given. */
static inline uint64_t line_reader_offset(const struct line_reader *r)
{
	return r->base + r->pos;
}

/* Gives the last line back, so that the offset is where it begins. */
static inline void line_reader_unread(struct line_reader *r, struct span line)
{
	r->pos -= line.len + 1;
}

/* What stands behind the last good line. */
enum tail_kind {
	TAIL_DAMAGED = 0, /* no torn write looks like this: altered, or a valid line follows */
	TAIL_CLEAN,       /* nothing but zeros */
	TAIL_TORN         /* the remains of a write that did not come to its end */
};

struct tail {
	enum tail_kind kind;
	uint64_t at, bytes; /* of what is not zero */
};

/* Looks at a file from an offset on, where a line should begin.  -1 on error. */
int segment_tail(int fd, uint64_t at, struct tail *ret, struct err *err);

/* pread() through short reads and EINTR; returns the bytes up to the end of file, or -1. */
long segment_read(int fd, char *out, size_t len, uint64_t at);

#endif
