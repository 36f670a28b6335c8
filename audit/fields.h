/*
 * fields.h - what is searched, shown, counted and exported of a record.
 *
 * A line is read as JSON, once; the index, `audit query`, `audit export` and
 * `audit report` all take their fields from here, so they cannot disagree.
 */
#ifndef AUDIT_FIELDS_H
#define AUDIT_FIELDS_H

#include "audit/record.h"
#include "gate/base/arena.h"
#include "gate/base/err.h"
#include "gate/base/jv.h"
#include "gate/base/span.h"

#include <stdint.h>

#define FIELDS_ARENA_MAX ((size_t)4 << 20) /* a line of the greatest length, read */

/* Strings are "" where the record has none; all lives in the arena. */
struct fields {
	struct jv tree; /* the whole line; null if it is too deep to be read as one */
	enum record_type type;
	uint64_t seq, t_ns; /* t_ns: UTC since 1970, 0 if it is no time */
	int64_t http;
	const char *log, *type_name, *time, *id, *of, *identity, *owner, *listener, *op, *op_class;
	const char *method, *path, *object, *object_kind, *object_id, *profile, *rule;
	const char *verdict, *would, *reason, *status, *text, *cause;
};

/*
 * What the log's own frame says is always there; a body that is not to be read as
 * JSON (too deep, numbers out of range) leaves the rest empty.  -1: it is no line
 * of a log, or it was altered.
 */
int fields_take(struct arena *a, struct span text, struct fields *ret, struct err *err);

/* The same but for the facts, which are the most of a record: the tree has none. */
int fields_take_searched(struct arena *a, struct span text, struct fields *ret, struct err *err);

/* Once more who asked and for what, where the tree says something else by now. */
void fields_take_who(struct fields *f);

/* Called with each name by which a record's objects can be found. */
typedef void fields_name_fn(void *arg, const char *name);
void fields_objects(const struct fields *f, fields_name_fn *fn, void *arg);

/* Appends all words that people look for. */
void fields_words(const struct fields *f, struct buf *out);

/* Nanoseconds since 1970 of a record's time; 0 if it is none. */
uint64_t fields_time(const char *text);

#endif
