/*
 * rate.h - how often a caller may ask: "20/min" of a word of operations.def.
 *
 * A rate says how many in a period; they may come at once, and then room for one
 * more comes back each period / count.
 */
#ifndef RULES_RATE_H
#define RULES_RATE_H

#include "gate/base/span.h"
#include "rules/operation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RATES_MAX      16      /* of a profile */
#define RATE_COUNT_MAX 1000000 /* in one period */

struct rate {
	const char *word; /* "launch" */
	const char *text; /* "20/min" */
	uint32_t count;
	uint64_t period_ns; /* a second, a minute, an hour or a day */
};

/* "20/min"; units are s, min, h and day.  Sets count and period_ns. */
bool rate_parse(struct span text, struct rate *ret);

/* Whether `inner` never lets more through than `outer`. */
bool rate_covers(const struct rate *outer, const struct rate *inner);

struct profile;

/*
 * Rate i of those that count this operation; NULL behind the last.  A profile
 * that is not enforced limits nothing.
 */
const struct rate *profile_rate(const struct profile *p, enum operation op, size_t i);

#endif
