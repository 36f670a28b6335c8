/*
 * erasable_priv.h - values that can be erased although records cannot be changed: the record
 * holds a commitment, and what it commits to is kept aside.
 *
 *	"c:HEX", HEX = SHA-256(32 bytes of salt, the value as it would stand in the record)
 *
 * Aside is a file for each segment, erasable/FIRST in the log's folder, a line a value, in
 * the records' order:
 *
 *	{"seq":N,"t":SECONDS,"identity":"...","salt":"HEX","value":"..."}
 *
 * Without the line nobody can tell the value, or try values out: the salt is gone with it.
 */
#ifndef AUDIT_ERASABLE_PRIV_H
#define AUDIT_ERASABLE_PRIV_H

#include "audit/auditor.h"
#include "audit/segment_priv.h"
#include "gate/base/buf.h"
#include "gate/base/hash.h"
#include "gate/base/jv.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define ERASABLE_FOLDER "erasable"
#define ERASABLE_TEXT   (2 + HASH_HEX_LEN)

/* --- the auditor's side: erasable.c --- */

struct erasable {
	unsigned words;   /* bits of erasable_word(); 0: nothing is kept aside */
	int dir_fd;       /* of the folder, or -1 */
	int fd;           /* of the segment's file, or -1 */
	uint64_t first;   /* of that segment */
	struct buf body;  /* the record as it is written */
	struct buf taken; /* its values, without their number yet */
	struct buf lines; /* of the group that is not on disk yet */
	uint64_t next;    /* the segment that these belong to */
	bool without;     /* the record is too long: values are neither committed to nor kept */
	bool troubled;    /* it was told that they cannot be kept */
};

int erasable_open(struct erasable *e, int log_fd, unsigned words, struct err *err);
void erasable_close(struct erasable *e);

/* The body with commitments, good until the next call; its values wait for erasable_put(). */
struct span erasable_take(struct erasable *e, struct span body);
/* They belong to this record, of the segment that begins with `first`. */
void erasable_put(struct erasable *e, uint64_t seq, uint64_t first);
/* All of them are on disk.  -1: they are lost, not told yet. */
int erasable_sync(struct erasable *e, struct err *err);

/* What is to be erased: all that is given must hold. */
struct erasure {
	const char *identity; /* "": of everybody */
	int64_t before_s;     /* 0: of any time */
};

/* Writes one segment's file anew without them; *ret_count rises. */
int erasable_erase(struct erasable *e, uint64_t first, const struct erasure *what,
		   uint64_t *ret_count, struct err *err);
/* Kept while it goes on: what was asked for; NULL: it has ended. */
void erasable_note(const struct erasable *e, const char *text);
/* False: nothing goes on.  out: ERASABLE_NOTE bytes. */
#define ERASABLE_NOTE 200
bool erasable_noted(const struct erasable *e, char out[ERASABLE_NOTE]);
/* That of a segment that was removed. */
void erasable_drop(const struct erasable *e, uint64_t first);

/* --- a reader's side: erasable_show.c --- */

struct erasable_reader {
	FILE *file; /* NULL: nothing is kept */
	char *line;
	size_t size, len;
	bool have; /* a line was read that is of a record further on */
};

void erasable_begin(struct erasable_reader *r, int log_fd, uint64_t first);
void erasable_end(struct erasable_reader *r);

/*
 * Puts the values of a record back into its tree, where what is kept is what was
 * committed to; an address that is erased becomes "".  Records come in their order.
 */
void erasable_show(struct erasable_reader *r, uint64_t seq, struct arena *a, struct jv *tree);

/* What reads a record must not take a commitment for an address: it becomes "". */
void erasable_hide(struct jv *tree);

/* One line; false: it is none. */
struct erasable_line {
	uint64_t seq;
	int64_t t_s;
	struct span identity, value; /* as they stand between quotes */
	uint8_t salt[HASH_BYTES];
};
bool erasable_line_parse(struct span text, struct erasable_line *ret);
void erasable_commitment(const uint8_t salt[HASH_BYTES], struct span value,
			 char out[ERASABLE_TEXT + 1]);

#endif
