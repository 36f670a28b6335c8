/*
 * verify_priv.h - `audit verify` in two parts: the lines (verify.c), and the tree
 * with its signatures (verify_tree.c).
 */
#ifndef AUDIT_VERIFY_PRIV_H
#define AUDIT_VERIFY_PRIV_H

#include "audit/line_priv.h"
#include "audit/note_priv.h"
#include "audit/open_set_priv.h"
#include "audit/record_priv.h"
#include "audit/segment_priv.h"
#include "audit/tree_priv.h"
#include "audit/verify.h"

#define VERIFY_KEYS_MAX  256   /* keys that followed each other */
#define VERIFY_HEADS_MAX 65536 /* checkpoints that were given */

/* A checkpoint that was given, or lies in the log's folder. */
struct verify_head {
	struct checkpoint note;
	bool own; /* the folder's */
};

struct verify_tree {
	struct tree tree;
	struct note_key *keys;
	size_t key_count;
	size_t signer; /* of the newest checkpoint: its key's place, from 1; 0: none */
	struct buf heads_text, own_text; /* what the heads point into */
	struct verify_head *heads;       /* by size */
	size_t head_count, head_room, head_next;
	struct tree edge;   /* pruned: of what was there before */
	uint64_t pruned_to; /* the highest size that a log_prune names */
};

struct verifier {
	struct verify_report *report;
	const struct verify_options *options;
	struct open_set open;
	uint64_t orphans; /* decisions that were pruned and may still get an outcome */
	int dir_fd;
	char segment[SEGMENT_NAME_MAX];
	uint64_t segment_first, at; /* offset of the line */
	char origin[LINE_ORIGIN_MAX + 1];
	uint64_t seq; /* of the next line */
	struct hash prev;
	uint32_t epoch;
	uint64_t mono;
	enum record_type last_type;
	struct verify_tree t;
};

/* Sets what is wrong with the line at hand; returns -1. */
int verify_bad(struct verifier *v, enum verify_result result, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Reads the folder's checkpoint, and those that were given. */
int verify_tree_open(struct verifier *v);
void verify_tree_close(struct verifier *v);

/* Holds a line against the tree of those before it, and adds it. */
int verify_tree_line(struct verifier *v, const struct line *line, enum record_type type);

/* What remains to be said when all lines are taken. */
int verify_tree_end(struct verifier *v);

#endif
