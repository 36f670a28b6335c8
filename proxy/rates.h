/*
 * rates.h - how often each caller has asked, counted by all workers together.
 *
 * One table in memory that processes share: made before they are forked, so
 * that it outlives each of them, and reloads.  A caller and a rate have one 64-bit
 * word, the time at which their next request would come if they all came at their
 * pace (GCRA), which is moved by compare-and-swap: no lock, and exact whatever
 * many workers do at once.
 */
#ifndef PROXY_RATES_H
#define PROXY_RATES_H

#include "gate/base/err.h"
#include "rules/identity.h"
#include "rules/rate.h"

#include <stdbool.h>
#include <stdint.h>

struct rates;

#define RATES_SLOTS 16384 /* callers times rates that can be told apart at a time */

/* Shared by all processes forked from now on; never freed before they end. */
struct rates *rates_create(struct err *err);

/*
 * Takes one of what the caller may have at now_ns (CLOCK_BOOTTIME).  False:
 * nothing was taken, and *ret_wait_ns says when there will be one.  A full table
 * lets nothing through.
 */
bool rates_take(struct rates *t, const struct identity *who, const struct rate *rate,
		uint64_t now_ns, uint64_t *ret_wait_ns) __attribute__((warn_unused_result));

/* Gives back what was taken, when another rate refused the request. */
void rates_give_back(struct rates *t, const struct identity *who, const struct rate *rate);

#endif
