/*
 * cursor_priv.h - a place in the log from which records are read on, each held against
 * the one before: its own hash, its number, the hash that it names, the log's name.
 *
 * It reads what `audit tail -f` would print.  It never passes over anything.
 */
#ifndef AUDIT_CURSOR_PRIV_H
#define AUDIT_CURSOR_PRIV_H

#include "audit/line_priv.h"
#include "audit/segment_priv.h"

/* A record: the last that is done with. */
struct cursor_mark {
	char log[LINE_ORIGIN_MAX + 1];
	uint64_t seq;
	struct hash hash;
};

enum cursor_got {
	CURSOR_TROUBLE = 0, /* it cannot be read now */
	CURSOR_NONE,        /* no more records yet */
	CURSOR_LINE,
	CURSOR_GAP,     /* records were removed */
	CURSOR_DAMAGED, /* altered, cut, another log */
	CURSOR_MOVED    /* of an idle look: the files are others now, seek again */
};

struct cursor {
	int dir_fd;
	int fd; /* of the segment */
	uint64_t segment;
	struct line_reader reader;
	bool linked;   /* prev is known */
	bool finished; /* the last line ends its segment */
	uint64_t seq;  /* of the next record */
	struct hash prev;
	char log[LINE_ORIGIN_MAX + 1];
	uint64_t first; /* the lowest number that the log held when it was opened */
};

struct cursor_line {
	struct span text; /* valid until the next call */
	uint64_t seq;
	struct hash hash;
};

int cursor_open(struct cursor *c, const char *dir, struct err *err);
void cursor_close(struct cursor *c);

/*
 * Goes behind a record, or with NULL to the log's first.  CURSOR_LINE: it is there
 * (which says nothing of whether there is more); the others: *err says what is wrong.
 */
enum cursor_got cursor_seek(struct cursor *c, const struct cursor_mark *mark, struct err *err);

enum cursor_got cursor_next(struct cursor *c, struct cursor_line *ret, struct err *err);

/*
 * Where cursor_next() gave CURSOR_NONE: is this the end of the log that it was?
 * CURSOR_NONE: it is; CURSOR_LINE: there is more by now.  thorough: what stands behind
 * the end is looked at as well, which reads all the room that the file has.
 */
enum cursor_got cursor_idle(struct cursor *c, bool thorough, struct err *err);

/* All that was read is on disk when this returns 0. */
int cursor_sync(struct cursor *c, struct err *err);

#endif
