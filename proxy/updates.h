/*
 * updates.h - what containers were that update tools took away, so that they can
 * be made again: shared by all workers.
 *
 * One table in memory that processes share, made before they are forked, so
 * that it outlives each of them, and reloads; with a file behind it, restarts of
 * the gate, too.  An entry belongs to the caller who took the container away,
 * and is for its name; nobody else finds it.  It holds facts, as the log does,
 * and never a value that may be secret.  Entries are bounded in number, also for
 * one caller, and in size; what does not fit is not taken away (I2, I8).
 *
 * A slot is written between two changes of its counter, and read only if that
 * did not move; a writer that died in between leaves it to the next.
 */
#ifndef PROXY_UPDATES_H
#define PROXY_UPDATES_H

#include "backends/backend.h"
#include "gate/base/err.h"
#include "rules/identity.h"

#include <stdbool.h>
#include <stdint.h>

struct updates;

#define UPDATES_SLOTS     256   /* containers that are remembered at a time */
#define UPDATES_OWN_MAX   192   /* ... of one caller */
#define UPDATES_TEXT_MAX  24000 /* bytes of one */
#define UPDATES_SILENCE_S 10    /* a writer that takes longer has died */

/* path: the file behind it, which only root and the gate may write; "" for none. */
struct updates *updates_create(const char *path, struct err *err);

/* SEAL_KEY_BYTES random ones, made with the table. */
const unsigned char *updates_seal_key(const struct updates *t);

/* Whose, and of which container. */
struct updates_key {
	const struct identity *who;
	const char *backend, *name;
};

/*
 * Remembers text (JSON) until now + keep_s, in the place of what was there.
 * now: seconds since 1970.  False: there is no room, or it is too long.
 */
bool updates_put(struct updates *t, const struct updates_key *key, struct span text, int64_t now,
		 int64_t keep_s) __attribute__((warn_unused_result));

/* Appends what is remembered to *ret; false if there is nothing. */
bool updates_get(const struct updates *t, const struct updates_key *key, int64_t now,
		 struct buf *ret);

#endif
