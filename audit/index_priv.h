/*
 * index_priv.h - the index's parts: its file (index.c), what is put in
 * (index_fill.c), where it is (index_place.c), how it is asked (query.c), and where
 * not (index_narrow.c).
 */
#ifndef AUDIT_INDEX_PRIV_H
#define AUDIT_INDEX_PRIV_H

#include "audit/index.h"
#include "audit/segment_priv.h"
#include "gate/base/hash.h"

#include <limits.h>
#include <sqlite3.h>

#define INDEX_VERSION 2
#define INDEX_BLOCK   4096 /* records whose times are known by the least and the greatest */
#define INDEX_NAMES   256  /* remembered, so that not each is looked up */
#define INDEX_NAME    64

enum index_statement {
	PUT_RECORD = 0,
	PUT_WORDS,
	PUT_OBJECT,
	PUT_OUTCOME,
	PUT_TIMES,
	FIND_ID,
	STATEMENTS
};

struct index_name {
	char text[INDEX_NAME];
	int64_t id;
};

/* The last record that the index knows, and where the next one begins. */
struct index_state {
	char log[160];
	uint64_t first_seq, last_seq;
	struct hash last_hash;
	uint64_t segment, at, next; /* offsets in that segment: of the last, of the next */
	uint64_t records;
};

/* The least and the greatest time of the records of a block that were put in just now. */
struct index_times {
	int64_t block, least, most;
};

struct log_index {
	char dir[PATH_MAX], file[PATH_MAX];
	int dir_fd, lock_fd; /* lock_fd: one process at a time changes the file, or -1 */
	sqlite3 *db;
	bool made, stale; /* stale: a line said otherwise; make it anew */
	struct index_state state;
	struct index_times times;
	sqlite3_stmt *put[STATEMENTS];
	sqlite3_stmt *name_get, *name_put;
	struct index_name names[INDEX_NAMES];
	/* the segment that is read from at the moment */
	int segment_fd;
	uint64_t segment;
	struct arena *arena;
	struct buf words;
};

/* --- index.c --- */

int index_trouble(struct log_index *ix, const char *doing, struct err *err);
int index_run(struct log_index *ix, const char *sql, struct err *err);
sqlite3_stmt *index_prepare(struct log_index *ix, const char *sql, struct err *err);

/* Nobody else changes the file, or puts another in its place, until index_unlock(). */
int index_lock(struct log_index *ix, struct err *err);
void index_unlock(struct log_index *ix);

/* Closes the file and makes it anew; to be called under the lock. */
int index_make(struct log_index *ix, struct err *err);

/* True if the trouble lies in the file: made anew, it would be gone. */
bool index_damaged(const struct log_index *ix);

/* --- index_fill.c --- */

/* Puts in all records behind the state's. */
int index_fill(struct log_index *ix, struct err *err);
void index_fill_end(struct log_index *ix); /* its statements */

/* The number that stands for a text; 0 for "", -1 on error.  add: it is put in if it is new. */
int64_t index_name(struct log_index *ix, const char *text, bool add, struct err *err);

/* --- index_narrow.c --- */

struct index_term {
	const char *column;
	int64_t name;
};

/* Which of them the fewest records have; count where all are too common to be counted. */
int index_rarest(struct log_index *ix, const struct index_term *terms, size_t count, size_t *ret,
		 struct err *err);

/*
 * The numbers from *ret_first to before *ret_end hold all records of that time (0: no limit),
 * and others.  0: there are none.
 */
int index_blocks(struct log_index *ix, uint64_t since_ns, uint64_t until_ns, int64_t *ret_first,
		 int64_t *ret_end, struct err *err);

/* --- index_place.c --- */

/* Where the index of this log is by default. */
int index_place(const char *dir, char ret[PATH_MAX], struct err *err);

/* A file that only this user can write, or none at all. */
int index_place_safe(const char *file, struct err *err);

#endif
