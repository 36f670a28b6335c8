/*
 * engines.h - how the guarded services are, as far as the gate knows: one table in
 * shared memory, as metrics.h has one.  The watcher asks them (pulse.c) and writes their
 * state; workers add to the counters; whoever tells of it reads: `status`, /ready,
 * /metrics.  It outlives workers, watchers and reloads; backends are the same in all of
 * them, and known by their index.
 */
#ifndef PROXY_ENGINES_H
#define PROXY_ENGINES_H

#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "proxy/conf.h"
#include "proxy/rejudge.h"

#include <stdbool.h>
#include <stdint.h>

enum engine_state {
	ENGINE_UNKNOWN = 0, /* it was not asked yet */
	ENGINE_UP,
	ENGINE_UNREACHABLE, /* no connection comes about */
	ENGINE_SILENT,      /* it takes connections, and does not answer a simple question */
	ENGINE_ODD,         /* it answers, but not as it should */
	ENGINE_STATE_COUNT
};

const char *engine_state_name(enum engine_state s); /* "up", "unreachable" */
const char *engine_state_text(enum engine_state s); /* for people */

enum engine_counter {
#define ENGINE_COUNTER(id, name, help) ENGINE_##id,
#include "proxy/engines.def"
#undef ENGINE_COUNTER
	ENGINE_COUNTER_COUNT
};

struct engines;

/* For so many backends.  Shared by all processes forked from now on; never freed. */
struct engines *engines_create(size_t count, struct err *err);

/* A NULL table counts nothing, and knows nothing. */
void engines_add(struct engines *e, size_t backend, enum engine_counter which, uint64_t n);

/* api: the newest that it speaks, "1.41"; "" if it did not say. */
void engines_set(struct engines *e, size_t backend, enum engine_state state, const char *api);

struct engine_look {
	enum engine_state state;
	int64_t since; /* seconds since 1970; 0: never */
	char api[16];
	bool mounted; /* its socket's file was mounted where the gate runs */
};

void engines_set_mounted(struct engines *e, size_t backend);

void engines_look(const struct engines *e, size_t backend, struct engine_look *ret);

/* The last time that what runs there was judged again: all of it, or some (rejudge.h). */
struct engine_round {
	int64_t at; /* seconds since 1970; 0: never */
	enum rejudge_cause cause;
	uint64_t judged, reported, stopped, unknown, left_out;
};

void engines_judged(struct engines *e, size_t backend, const struct engine_round *r);
void engines_round(const struct engines *e, size_t backend, struct engine_round *ret);

/* In Prometheus' text format. */
void engines_write(const struct engines *e, const struct proxy_conf *conf, struct buf *out);

#endif
