/*
 * operation.h - the vocabulary of what is asked for, and of what is wrong with it.
 *
 * Backends name an operation, rules judge it, the log records it.  All three
 * lists here are made from tables: operations.def, reasons.def, and the
 * classes below.  Zeroed memory is an unknown operation without a class,
 * which nothing allows.
 */
#ifndef RULES_OPERATION_H
#define RULES_OPERATION_H

#include "gate/base/span.h"

#include <stdbool.h>
#include <stddef.h>

enum op_class {
	CLASS_NONE = 0,
	CLASS_READ,      /* looks at things; changes nothing */
	CLASS_LAUNCH,    /* makes something that will run */
	CLASS_EXEC,      /* runs a command in, or talks to, something that runs */
	CLASS_LIFECYCLE, /* starts, stops, waits for, removes what exists */
	CLASS_DATA_IN,   /* carries bytes to the engine: archives, images, builds */
	CLASS_DATA_OUT,  /* carries content out: logs, archives, exports, pushes */
	CLASS_POLICY,    /* changes the limits or networks of what runs */
	CLASS_HOST,      /* touches the host or the engine as a whole */
	CLASS_COUNT
};

enum operation {
	OP_UNKNOWN = 0,
#define OPERATION(id, name, cls, group, doc) OP_##id,
#include "rules/operations.def"
#undef OPERATION
	OP_COUNT
};

enum reason {
	REASON_NONE = 0,
#define REASON(id, status, what, hint) REASON_##id,
#include "rules/reasons.def"
#undef REASON
	REASON_COUNT
};

/* "unknown" for OP_UNKNOWN; else the name in operations.def. */
const char *operation_name(enum operation op);
enum op_class operation_class(enum operation op);

/* Whether a profile fills in what such a request leaves open: launches, and builds, which launch.
 */
bool operation_hardens(enum operation op);
const char *operation_group(enum operation op); /* "" if it is in none */
const char *operation_doc(enum operation op);
bool operation_by_name(enum operation op);       /* a profile's class does not grant it */
enum operation operation_find(struct span name); /* OP_UNKNOWN if there is none */

const char *op_class_name(enum op_class cls);
enum op_class op_class_find(struct span name);

/* True for all that needs a durable record before it is forwarded: all but reads. */
bool op_class_changes_state(enum op_class cls);

const char *reason_name(enum reason r); /* "privileged"; stable, part of the interface */
int reason_status(enum reason r);       /* the HTTP status of the refusal */
const char *reason_what(enum reason r); /* one sentence for people */
const char *reason_hint(enum reason r); /* what to do, if the rule says nothing better */
bool reason_is_floor(enum reason r);    /* floor.def: no operator's word sets it aside */
enum reason reason_find(struct span name);

/*
 * One thing that is wrong with a request.  Strings belong to the request's
 * arena or are static; those that do not apply are "".
 */
struct violation {
	enum reason reason;
	const char *rule;  /* the rule that found it; "canonical" for the gate itself */
	const char *field; /* where in the request, e.g. "HostConfig.Binds[0]" */
	const char *value; /* what stood there, redacted and cut to VIOLATION_VALUE_MAX */
	const char *text;  /* why, in a sentence; "" takes reason_what() */
	const char *hint;  /* what would be accepted; "" takes reason_hint() */
};

#define VIOLATION_VALUE_MAX 200 /* bytes of a value that a person is shown */
#define VIOLATIONS_MAX      32  /* kept for one request; more are counted, not kept */

struct violations {
	struct violation list[VIOLATIONS_MAX];
	size_t count;   /* kept in list */
	size_t dropped; /* found beyond what was kept */
};

/* Returns the new entry to be completed, or a scratch one when the list is full. */
struct violation *violations_add(struct violations *v, enum reason r);

#endif
