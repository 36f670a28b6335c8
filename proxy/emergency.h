/*
 * emergency.h - what an operator has put above the rules for a while, shared by all
 * processes: whose every request is refused (quarantine), and which profiles only warn.
 *
 * One table in memory that is made before processes are forked, so that it outlives each
 * of them, and reloads.  The admin process alone writes it, and keeps a file of it over
 * restarts (gate/emergency_state.c); in all others it can only be read.  A reader has a view of its
 * own, which is brought up to date before every decision.
 *
 * Until what was in force before the gate's start has been read nobody knows who is under
 * quarantine, and nothing is allowed (I2).
 */
#ifndef PROXY_EMERGENCY_H
#define PROXY_EMERGENCY_H

#include "gate/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EMERGENCY_OWNERS     128 /* under quarantine at once */
#define EMERGENCY_OWNER_MAX  159 /* bytes, without the NUL */
#define EMERGENCY_TICKET_MAX 64

struct quarantine {
	uint64_t id;   /* the newest has the highest */
	int64_t since; /* seconds since 1970 */
	uint32_t kill; /* what it runs is stopped */
	char owner[EMERGENCY_OWNER_MAX + 1];
	char ticket[EMERGENCY_TICKET_MAX + 1];
};

#define EMERGENCY_MODES       32 /* profiles that only warn, at once */
#define EMERGENCY_PROFILE_MAX 64
#define EMERGENCY_MODE_MAX_S  86400 /* no longer than that at once */

/*
 * A profile that only warns (struct override), until the first of two clocks says so: who sets
 * the host's clock back prolongs nothing.
 */
struct emergency_mode {
	uint64_t ends_ms;     /* on clock_boot_ms() */
	int64_t since, until; /* seconds since 1970; until is the first in which it does not hold */
	char profile[EMERGENCY_PROFILE_MAX + 1];
	char ticket[EMERGENCY_TICKET_MAX + 1];
};

/* Zeroed memory knows nothing, so refuses. */
struct emergency_view {
	uint64_t turn; /* 0: nothing is known */
	uint64_t last_id;
	size_t owner_count, mode_count;
	struct quarantine owners[EMERGENCY_OWNERS];
	struct emergency_mode modes[EMERGENCY_MODES];
};

struct emergency;

struct emergency *emergency_create(struct err *err);
void emergency_destroy(struct emergency *t);

/* In this process it can only be read from here on, whatever becomes of the process. */
void emergency_only_read(struct emergency *t);

/* What is in force from here on.  One process at a time may; *next gets its turn. */
void emergency_publish(struct emergency *t, struct emergency_view *next);

/* Brings the view up to date; true: it has changed. */
bool emergency_look(const struct emergency *t, struct emergency_view *view);

/* NULL: not under quarantine, as far as this view knows. */
const struct quarantine *emergency_quarantine(const struct emergency_view *view, const char *owner);

/*
 * Begins one, or changes that of the same owner; *ret is in the view.  NULL: there are too many,
 * or a text is too long or empty.
 */
struct quarantine *emergency_begin(struct emergency_view *view, const char *owner,
				   const char *ticket, bool kill);
void emergency_end(struct emergency_view *view, const char *owner);

/* NULL: none was set for this profile, as far as this view knows, or it has ended. */
const struct emergency_mode *emergency_mode(const struct emergency_view *view, const char *profile);
bool emergency_mode_holds(const struct emergency_mode *m);

/*
 * Sets one, or sets that of the same profile anew.  seconds: from now; 1 to EMERGENCY_MODE_MAX_S.
 * NULL: there are too many, or something is not what it should be.
 */
struct emergency_mode *emergency_mode_begin(struct emergency_view *view, const char *profile,
					    const char *ticket, uint64_t seconds);
void emergency_mode_end(struct emergency_view *view, const char *profile);

/* Letters, digits and . _ - @ # / : + of at most that many bytes, at least one. */
bool emergency_is_word(const char *text, size_t len, size_t most);

#endif
