/*
 * ledger.h - whose objects are that are older than the gate: the ledger of adoptions.
 *
 * What callers make carries the gate's label; what was there before has none,
 * and belongs to whom the operator gave it with `sallyport adopt`.  Containers
 * and networks are known by their full id.  A volume has none: it is known by
 * its name and the time at which it was made, so that another volume of that
 * name is another object.
 *
 *	{"version":1,"objects":[
 *	{"backend":"engine","kind":"volume","id":"db","name":"db",
 *	 "created":"2026-01-02T03:04:05Z","owner":"ci","by":"root","at":"..."},
 *	...
 *	]}
 *
 * The gate reads it when it starts, and puts each entry into the audit log
 * before it serves anybody (type "adopt").
 */
#ifndef GATE_LEDGER_H
#define GATE_LEDGER_H

#include "gate/config.h"

#define LEDGER_ENTRIES_MAX 4096
#define LEDGER_BYTES_MAX   ((size_t)4 << 20)

struct ledger_entry {
	const char *backend;
	const char *kind;    /* "container", "network", "volume" */
	const char *id;      /* full id; of a volume its name */
	const char *name;    /* when it was adopted; for people */
	const char *created; /* volumes: as the engine says it; else "" */
	const char *owner;
	const char *by, *at; /* who entered it, and when */
};

struct ledger {
	struct ledger_entry *entries; /* by backend, kind and id; room for LEDGER_ENTRIES_MAX */
	size_t count;
};

/*
 * Reads a ledger; a file that is not there is an empty one.  ERR_CONFIG: it is
 * not in its one form, or somebody but root and the gate's own user could write
 * it.  Everything lives in the arena.
 */
int ledger_read(const char *path, struct arena *a, struct ledger *ret, struct err *err);
int ledger_parse(struct span text, struct arena *a, struct ledger *ret, struct err *err);

/* One entry as it stands in the ledger and in the audit log, and back. */
void ledger_entry_write(struct buf *out, const struct ledger_entry *e);
int ledger_entry_parse(const struct jv *doc, struct ledger_entry *ret, struct err *err);

/* The entry for an object, or NULL. */
struct ledger_entry *ledger_find(const struct ledger *l, const char *backend, const char *kind,
				 const char *id);

/* Keeps the order.  ERR_INPUT: it is there already; ERR_LIMIT: there are too many. */
int ledger_add(struct ledger *l, const struct ledger_entry *e, struct err *err);
void ledger_drop(struct ledger *l, struct ledger_entry *e);

/* Replaces the file as a whole, durably. */
int ledger_write(const char *path, const struct ledger *l, struct err *err);

/* Reads the configuration's ledger, if it has one, and gives it to backends and auditor. */
int ledger_load(struct config *c, struct arena *a, struct err *err);

/* A reload: what was read at the start, and put on record then, goes on to hold. */
int ledger_carry(const struct config *from, struct config *to, struct arena *a, struct err *err);

#endif
