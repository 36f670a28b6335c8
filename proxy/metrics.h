/*
 * metrics.h - what all workers together have counted since the gate was started.
 *
 * One table in shared memory, as rates.h has one: it outlives workers and
 * reloads, and whichever worker is asked knows all.  Counting never waits and never
 * fails; what finds no room in the table is counted as `other`.
 */
#ifndef PROXY_METRICS_H
#define PROXY_METRICS_H

#include "gate/base/buf.h"
#include "gate/base/err.h"

#include <stdint.h>

struct metrics;

enum metric {
#define COUNTER(id, name, help) METRIC_##id,
#include "proxy/metrics.def"
#undef COUNTER
	METRIC_COUNT
};

#define METRICS_DECISIONS_MAX 4096 /* profile, operation, verdict, reason */
#define METRICS_TEXT_MAX      ((size_t)2 << 20)

/* Shared by all processes forked from now on; never freed before they end. */
struct metrics *metrics_create(struct err *err);

/* A NULL table counts nothing. */
void metrics_add(struct metrics *m, enum metric which, uint64_t n);
void metrics_decision(struct metrics *m, const char *profile, const char *operation,
		      const char *verdict, const char *reason);
void metrics_request(struct metrics *m, uint64_t took_ms);

/* How the log is, and its alarms. */
struct audit_state;
void metrics_write_audit(const struct audit_state *s, struct buf *out);

/* In Prometheus' text format; audit_up: as this worker sees it. */
void metrics_write(const struct metrics *m, const char *generation, bool audit_up, struct buf *out);

#endif
