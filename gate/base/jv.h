/*
 * jv.h - JSON values: JSON read strictly into an arena, and written in one way.
 *
 * Reading is jansson's, behind a strict layer: one document, UTF-8, no key
 * twice, no NUL, no number that does not fit, a depth limit, nothing behind
 * the document.  What passes has one meaning only.
 *
 * A tree is plain data in an arena: no reference counts, nothing to free.
 * Objects keep the order in which their members were set.
 */
#ifndef GATE_BASE_JV_H
#define GATE_BASE_JV_H

#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define JV_DEPTH_MAX 32

/* Once a process, before it is confined: the hash seed is read from a file. */
void jv_init(void);

enum jv_kind {
	JV_NULL = 0,
	JV_BOOL,
	JV_INT,
	JV_REAL,
	JV_STRING,
	JV_ARRAY,
	JV_OBJECT,
	JV_KIND_COUNT
};

struct jv {
	enum jv_kind kind;
	bool b;       /* JV_BOOL */
	size_t count; /* JV_ARRAY, JV_OBJECT */
	size_t size;  /* slots behind items or members */
	union {
		int64_t i;
		double real;
		struct span str;           /* UTF-8; NUL-terminated behind its end */
		struct jv *items;          /* JV_ARRAY */
		struct jv_member *members; /* JV_OBJECT */
	};
};

struct jv_member {
	struct span key;
	struct jv value;
};

/* Why a text was refused; the names are part of the stable reason codes. */
enum jv_fault {
	JV_FAULT_NONE = 0,
	JV_FAULT_EMPTY, /* no bytes, or white space only */
	JV_FAULT_SYNTAX,
	JV_FAULT_ENCODING,  /* not UTF-8, a BOM, a NUL, a lone surrogate */
	JV_FAULT_DUPLICATE, /* a key comes twice in one object */
	JV_FAULT_LIMIT,     /* too deep, or a number out of range */
	JV_FAULT_TRAILING,  /* something stands behind the document */
	JV_FAULT_MEMORY     /* the arena is spent */
};

/*
 * Parses text into *ret, strings included, all in the arena.  On failure
 * returns -1, sets *ret_fault and an ERR_INPUT (or ERR_LIMIT) that says where.
 */
int jv_parse(struct arena *a, struct span text, struct jv *ret, enum jv_fault *ret_fault,
	     struct err *err);

/* "null", "boolean", "integer", "number", "string", "array", "object" */
const char *jv_kind_name(enum jv_kind kind);

/* The member of an object, or NULL; NULL too if obj is NULL or no object. */
const struct jv *jv_get(const struct jv *obj, const char *key);

const struct jv *jv_get_span(const struct jv *obj, struct span key);

/* jv_get() along "a.b.c"; NULL where a step is missing. */
const struct jv *jv_path(const struct jv *obj, const char *path);

/* The string of a member, or fallback when it is absent or of another kind. */
const char *jv_str(const struct jv *obj, const char *key, const char *fallback);

/* The integer of a member, or fallback. */
int64_t jv_num(const struct jv *obj, const char *key, int64_t fallback);

/* True if the member is the boolean true. */
bool jv_true(const struct jv *obj, const char *key);

/* null, false, 0, "", [] and {}: what clients send for "not used". */
bool jv_is_neutral(const struct jv *v);

/* Same kind and same content; the order of members does not matter. */
bool jv_equal(const struct jv *a, const struct jv *b);

/*
 * Making trees.  A spent arena is noticed at the end (arena_spent()): the
 * calls below then do nothing and return a scratch value.
 */
static inline struct jv jv_null(void)
{
	return (struct jv){.kind = JV_NULL};
}

static inline struct jv jv_bool(bool b)
{
	return (struct jv){.kind = JV_BOOL, .b = b};
}

static inline struct jv jv_int(int64_t i)
{
	return (struct jv){.kind = JV_INT, .i = i};
}

/* Refers to s, which must live as long as the tree; NULL gives null. */
struct jv jv_string(const char *s);
struct jv jv_span(struct span s);

static inline struct jv jv_array(void)
{
	return (struct jv){.kind = JV_ARRAY};
}

static inline struct jv jv_object(void)
{
	return (struct jv){.kind = JV_OBJECT};
}

/* Appends to an array; returns the stored value, to be filled further. */
struct jv *jv_push(struct arena *a, struct jv *array, struct jv value);

/* Sets or replaces a member; key is kept, not copied. */
struct jv *jv_set(struct arena *a, struct jv *object, const char *key, struct jv value);
struct jv *jv_set_span(struct arena *a, struct jv *object, struct span key, struct jv value);

/*
 * Puts the members of one object into another: objects member by member,
 * everything else replaced.  An empty array, which may have been {} in Lua,
 * leaves an object as it is.
 */
void jv_merge(struct arena *a, struct jv *into, const struct jv *from);

/* Appends a member that is known to be new (jv_set() looks for an old one). */
struct jv *jv_add(struct arena *a, struct jv *object, struct span key, struct jv value);

/*
 * Writing.  Compact, UTF-8, control bytes as \u00XX, bytes that are not UTF-8
 * as U+FFFD; numbers that are not finite as null.  So the output is one line.
 */
void jv_write(struct buf *out, const struct jv *v);
void jv_write_str(struct buf *out, struct span s);

#endif
