/*
 * record_priv.h - reading what record_write() wrote, without a JSON tree.
 *
 * The auditor, recovery and `audit verify` all learn of a record through
 * record_peek(), so they cannot disagree about what it says.
 */
#ifndef AUDIT_RECORD_PRIV_H
#define AUDIT_RECORD_PRIV_H

#include "audit/record.h"
#include "gate/base/span.h"

#include <stdbool.h>
#include <stddef.h>

/* What the auditor puts around a record's members stays below this. */
#define RECORD_FRAME_MAX 512
#define RECORD_BODY_MAX  (RECORD_LINE_MAX - RECORD_FRAME_MAX)

struct record_peek {
	enum record_type type; /* RECORD_NONE for a type that is not known */
	struct span id, of;    /* empty if absent */
	bool allow;            /* a decision whose verdict is "allow" */
};

/* False: the text does not begin as a record does. */
bool record_peek(struct span body, struct record_peek *ret);

/* The value of the first number of this name, 0 if absent; for the log's own records. */
uint64_t record_peek_uint(struct span body, const char *name);

/* The value of the first string of this name that has no escapes; empty if absent. */
struct span record_peek_str(struct span body, const char *name);

/* The text of the first array of this name, brackets included; empty if absent. */
struct span record_peek_array(struct span body, const char *name);

/* Behind the last quote of a string; `at` is behind its first. */
const char *record_string_end(const char *at, const char *end);

/* The first object that stands behind this text, as `"auth":{`, braces included; empty if absent.
 */
struct span record_peek_object(struct span body, const char *opening);

/*
 * A record that somebody should look at: of the log itself, of what happens past the gate
 * (with `observe = "alarm"` a log_alarm; what may not have been seen), of what runs
 * and may not, of a process that died, and of the clock.
 */
bool record_alarms(enum record_type type, struct span body);

/*
 * True if body is what record_write() could have written: members of
 * record.def in their order, JSON values, UTF-8, no control bytes.  A worker
 * may have been taken over; what it sends must not break the line's form nor
 * say one of the auditor's own members a second time.
 */
bool record_valid(struct span body);

#endif
