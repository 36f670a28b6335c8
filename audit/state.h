/*
 * state.h - how the log is, for those who tell of it: one small table in shared memory,
 * written by the auditor, which outlives auditors.
 */
#ifndef AUDIT_STATE_H
#define AUDIT_STATE_H

#include "gate/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum audit_stage {
	AUDIT_DOWN = 0, /* no auditor has said anything yet */
	AUDIT_UP,
	AUDIT_WARN,    /* room runs out */
	AUDIT_LOW,     /* only what stops or removes something is taken, and reads */
	AUDIT_RESERVE, /* no decision is taken any more */
	AUDIT_SEALED,  /* nothing is written until another auditor can */
	AUDIT_STAGE_COUNT
};

const char *audit_stage_name(enum audit_stage s); /* "up" */

struct audit_state;

/* Shared by all processes forked from now on; never freed before they end. */
struct audit_state *audit_state_create(struct err *err);

/* All take NULL, which keeps nothing. */
void audit_state_set(struct audit_state *s, enum audit_stage stage);
enum audit_stage audit_state_get(const struct audit_state *s);
void audit_state_alarm(struct audit_state *s);
uint64_t audit_state_alarms(const struct audit_state *s);

/* The auditor's loop has turned: it does so once a second even where nobody asks for anything. */
void audit_state_beat(struct audit_state *s);
uint64_t audit_state_beats(const struct audit_state *s);

/* An auditor that had not turned for so long was ended; the next one tells, and sets it to 0. */
void audit_state_set_hung(struct audit_state *s, uint64_t ms);
uint64_t audit_state_hung(const struct audit_state *s);

/* How far a sink is, as the auditor last saw it; those behind the first few are not kept. */
#define AUDIT_SINKS_MAX 32

struct audit_sink {
	char name[65];
	bool known;        /* it has acknowledged something of this log */
	uint64_t seq;      /* the last that it acknowledged */
	uint64_t behind;   /* records of the log that it has not */
	char trouble[160]; /* what holds it up; "": nothing that is known */
};

/* count: how many there are; called again whenever that was looked at. */
void audit_state_sinks(struct audit_state *s, const struct audit_sink *sinks, size_t count);
/* False behind the last. */
bool audit_state_sink(const struct audit_state *s, size_t i, struct audit_sink *ret);

#endif
