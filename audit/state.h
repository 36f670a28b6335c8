/*
 * state.h - how the log is, for those who tell of it: one small table in shared memory,
 * written by the auditor, which outlives auditors.
 */
#ifndef AUDIT_STATE_H
#define AUDIT_STATE_H

#include "gate/base/err.h"

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

#endif
