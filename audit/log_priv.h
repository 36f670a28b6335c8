/*
 * log_priv.h - writes the log's files.
 *
 * Records are added to a group; audit_log_commit() puts the group on disk with
 * one pwritev() and one fdatasync().  What was added counts only then.
 *
 * After any error the log is sealed: nothing more is written by this process,
 * since what the kernel has of a file whose fsync failed is not known.  Opening
 * it anew reads what really is on disk.
 *
 * All descriptors are close-on-exec; files are opened below a directory that is
 * held open, without following links.
 */
#ifndef AUDIT_LOG_PRIV_H
#define AUDIT_LOG_PRIV_H

#include "audit/line_priv.h"
#include "audit/open_set_priv.h"
#include "audit/record_priv.h"
#include "audit/segment_priv.h"
#include "audit/signing_priv.h"
#include "audit/tile_priv.h"
#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/hash.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define AUDIT_LOG_GROUP_MAX  (4u << 20)                /* bytes in one group */
#define AUDIT_LOG_LEAVES_MAX (AUDIT_LOG_GROUP_MAX / 4) /* a line has more than 128 bytes */

/* Where a record stands. */
struct audit_mark {
	uint64_t seq;
	struct hash hash;
};

/* As many as there can be in the workers' table, and others that are told meanwhile. */
#define TOLD_SUMS 2048

/* Records `suppressed` of the newest segment: the same sum may be told again. */
struct told_sum {
	struct decision_id id;
	struct audit_mark mark;
};

struct told_sums {
	struct told_sum sums[TOLD_SUMS];
	size_t count, next; /* next: takes the place of the oldest */
};

struct audit_log {
	char *dir;
	uint64_t segment_bytes;
	int dir_fd, lock_fd, fd;
	int shown_fd; /* by which others see that it is written; or -1 */
	int next_fd;  /* the next segment, under its other name; or -1 */
	struct stat dir_stat, lock_stat;
	uint64_t first;  /* sequence number of the segment's first line */
	uint64_t used;   /* bytes written in the segment */
	uint64_t zeroed; /* zeros were written up to here, so that a commit changes no metadata */
	struct line_writer writer;
	char vkey[NOTE_VKEY_MAX]; /* "": nobody signs */
	struct buf group, scratch;
	struct buf leaves;   /* hashes of the group's records, for the tree */
	struct tiles *tiles; /* the tree of all that is on disk */
	bool tiles_off; /* tiles of removed segments are lost, so no further ones are written */
	bool sealed;
	struct err why; /* it is sealed */
	struct told_sums told;
};

struct audit_log_conf {
	const char *dir, *origin;
	uint64_t segment_bytes;
	struct signing *signing; /* initialised; opened with the log.  NULL: nobody signs */
	const struct signing_conf *signing_conf;
};

/* What was found when the log was opened. */
struct audit_log_found {
	bool fresh; /* there was no log yet */
	bool ended; /* its last record was a gate_stop */
	struct tail tail;
	struct hash tail_hash;   /* of a torn tail */
	char tail_file[64];      /* where its bytes were kept */
	uint64_t not_looked_for; /* open decisions in segments that are too far back */
	int64_t last_day;        /* of the last record, since 1970 */
	int64_t leap;            /* second at which times last left out a whole day, or 0 */
	bool tiles_lost;         /* of removed segments: no tiles are written any more */
};

/*
 * Locks the directory, checks the newest segment, trims a torn tail, and goes on
 * behind it with the next epoch.  open receives the allowed decisions that have
 * no outcome.  NULL: in use, damaged (ERR_INPUT), or a system error.
 */
struct audit_log *audit_log_open(const struct audit_log_conf *conf, struct open_set *open,
				 struct audit_log_found *ret, struct err *err);
void audit_log_close(struct audit_log *l);

/* NULL: it was not told, or long ago. */
const struct told_sum *told_find(const struct told_sums *t, const struct decision_id *id);
void told_keep(struct told_sums *t, const struct decision_id *id, const struct audit_mark *mark);

/* Adds a record to the group.  -1: the group is full (commit, then try again). */
int audit_log_add(struct audit_log *l, struct span body, struct audit_mark *ret);

/* Adds one of the log's own records; it gets an id.  The group has room for a few of them. */
int audit_log_add_own(struct audit_log *l, struct record *r);

/* Puts the group on disk.  -1: the log is sealed, err says why. */
int audit_log_commit(struct audit_log *l, struct err *err);

/* True when the segment has its size.  The group must be empty to begin a new one. */
bool audit_log_full(const struct audit_log *l);
/* 1: there is no room for another segment; nothing has changed.  -1: sealed. */
int audit_log_rotate(struct audit_log *l, const struct open_set *open, struct err *err);

/* Nothing more is written, because of this error. */
void audit_log_seal(struct audit_log *l, const struct err *err);

/* Seals the log if its file or directory is no longer the one that is written to. */
int audit_log_check(struct audit_log *l, struct err *err);

/* Why the directory cannot be opened, from errno. */
int audit_log_no_folder(const char *dir, struct err *err);

/* --- for recover.c --- */

/* Creates the segment that begins with the next line, and goes on in it. */
int audit_log_begin(struct audit_log *l, const struct open_set *open, const char *before,
		    struct err *err);
void audit_log_preallocate(int fd, uint64_t bytes, int *ret_error);

#endif
