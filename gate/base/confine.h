/*
 * confine.h - gives up, for good, what a process will not need again.
 *
 * Order in every process: ids, capabilities, no_new_privs, the filter; the
 * filter forbids changing the others.  There is no partial result: a process in
 * which one of these failed must exit.  Call before the first byte from outside
 * is read.
 */
#ifndef GATE_BASE_CONFINE_H
#define GATE_BASE_CONFINE_H

#include "gate/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One system call that stays possible. */
struct confine_call {
	const char *name;
	int arg;        /* -1: whatever its arguments; else the one that must be `value` */
	uint64_t value; /* compared with the low 32 bits of that argument */
};

#define CONFINE_GROUPS_MAX 8

struct confine_ids {
	uid_t uid;
	gid_t gid;
	gid_t groups[CONFINE_GROUPS_MAX]; /* supplementary; all others are dropped */
	size_t group_count;
};

#define CONFINE_CAP(nr) (UINT64_C(1) << (nr))

/*
 * Becomes another user; caller is root.  keep: capabilities (CONFINE_CAP) that
 * stay permitted and effective, usually 0.  Refuses uid and gid 0, and proves
 * that root cannot be regained.
 */
int confine_become(const struct confine_ids *ids, uint64_t keep, struct err *err);

/*
 * Keeps no more than these capabilities; what is not permitted already is left
 * out.  The bounding set is cut to `permitted` while the process may do that.
 */
int confine_caps(uint64_t permitted, uint64_t effective, struct err *err);

/* The permitted capabilities of this process. */
uint64_t confine_permitted(void);

/* No gain of privileges by executing files. */
int confine_no_new_privs(struct err *err);

/* No core file, and no reading of this process by others of the same user. */
int confine_no_dumps(struct err *err);

/* Everything that is not in the list kills the process from now on.  Names that
   this architecture lacks are passed over; unknown ones are an error. */
int confine_calls(const struct confine_call *calls, size_t count, struct err *err);

/* The name of a system call of this architecture, or its number. */
void confine_call_name(int nr, char *out, size_t size);

/* What the kernel offers, for `doctor`. */
bool confine_has_filter(void);
int confine_landlock_version(void); /* 0: none */

#endif
