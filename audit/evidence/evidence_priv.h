/*
 * evidence_priv.h - how an archive of evidence is made: the log is read once for what is in the
 * period (scan.c), then pages and files are written (pages.c, html.c, make.c).
 */
#ifndef AUDIT_EVIDENCE_EVIDENCE_PRIV_H
#define AUDIT_EVIDENCE_EVIDENCE_PRIV_H

#include "audit/evidence/evidence.h"
#include "audit/fields.h"
#include "audit/line_priv.h"
#include "audit/note_priv.h"
#include "audit/prove_priv.h"
#include "audit/record.h"
#include "audit/report.h"
#include "audit/segment_priv.h"
#include "gate/base/buf.h"
#include "gate/base/clock.h"

#define EVIDENCE_SAMPLES  25 /* a control */
#define EVIDENCE_CONTROLS 64 /* of one framework */
#define EVIDENCE_WHAT     200
#define EVIDENCE_LOADS    256 /* different sets of rules */
#define EVIDENCE_PAGE_MAX ((size_t)16 << 20)

/* --- controls.c --- */

struct control {
	const char *framework, *id, *title, *answer, *query;
};

extern const struct control evidence_controls[]; /* of all frameworks */
extern const size_t evidence_control_count;

const char *evidence_framework_title(const char *name); /* "" if there is none */

/* Whether a record answers a query of controls.def. */
bool control_matches(const char *query, const struct fields *f);

/* False: it is none; for the tests of the table. */
bool control_query_valid(const char *query);

/* The commands that show what a query means, a line each. */
void control_commands(const char *query, const char *from, const char *to, struct buf *out);

/* --- scan.c --- */

struct sample {
	struct hash rank; /* SHA-256 over seed, control and the record's hash: the lowest count */
	uint64_t seq, segment, offset;
	size_t len;
	char time[CLOCK_TEXT_MAX], what[EVIDENCE_WHAT];
};

struct control_found {
	const struct control *control;
	uint64_t count;
	struct sample samples[EVIDENCE_SAMPLES]; /* by rank */
	size_t sample_count;
};

struct rules_load {
	uint64_t seq, times;
	bool before; /* in force when the period began */
	char time[CLOCK_TEXT_MAX];
	char *text; /* as long as its record's */
};

struct scan {
	const struct evidence_ask *ask;
	const char *seed;
	uint64_t until; /* records below are covered by the checkpoint */
	struct segments all;
	char from[CLOCK_TEXT_MAX], to[CLOCK_TEXT_MAX];
	/* of the whole log, as far as it is covered */
	uint64_t log_first;
	char key[NOTE_VKEY_MAX]; /* that signs at its end */
	char log[LINE_ORIGIN_MAX + 1], log_begin[CLOCK_TEXT_MAX], log_end[CLOCK_TEXT_MAX];
	uint64_t anchor_size; /* 0: none */
	char anchor_time[CLOCK_TEXT_MAX];
	/* of the period */
	uint64_t records, first, last, uncovered, behind_anchor;
	uint64_t types[RECORD_TYPE_COUNT];
	uint64_t torn, damaged, unclean; /* gate_recover: three kinds */
	uint64_t seen, decided, by_engine, unexplained, garbage;
	struct control_found controls[EVIDENCE_CONTROLS];
	size_t control_count;
	struct rules_load loads[EVIDENCE_LOADS];
	size_t load_count;
	uint64_t loads_more; /* that found no place */
	/* what of the log is put in: segments, by their places in all */
	size_t first_segment, last_segment;
	uint64_t archive_end, last_bytes; /* behind the last record; bytes of the last segment */
	struct buf rotations;             /* lines of key_rotate behind these */
	/* while it is read */
	struct arena *arena;
	size_t segment;
	uint64_t offset;
	bool any;
};

/* s->ask, seed, until and anchor_size are given.  -1: *err. */
int scan_log(struct scan *s, struct err *err);
void scan_free(struct scan *s); /* what it holds; not s */

/* --- pages --- */

struct evidence {
	const struct evidence_ask *ask;
	struct prover *prover;
	const struct checkpoint *head;
	struct report *report;
	struct scan *scan;
	struct buf anchor;  /* the newest note of the anchor's file that the checkpoint has grown
			       from */
	struct buf outside; /* it, and a newer one, as a text for verify_log() */
	const char *seed;
	char seed_text[EVIDENCE_SEED_MAX], root[HASH_HEX_LEN + 1];
	char verifier[HASH_HEX_LEN + 1]; /* the hash of verify.py */
};

void page_readme(const struct evidence *e, struct buf *out);
void page_completeness(const struct evidence *e, struct buf *out);
void page_unsure(const struct evidence *e, struct buf *out);
void page_rules(const struct evidence *e, struct buf *out);
void page_control(const struct evidence *e, const struct control_found *c, struct buf *out);
void page_html(const struct evidence *e, struct buf *out);
void page_summary(const struct evidence *e, struct buf *out); /* JSON, for verify.py */

/* --- the embedded verify.py --- */

struct verifier_file {
	const char *name, *text;
	size_t len;
};

extern const struct verifier_file verifier_files[];
extern const size_t verifier_file_count;

#endif
