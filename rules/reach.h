/*
 * reach.h - which objects a caller sees, and how much it may do with them.
 *
 * Plain data, made from the setting `visibility`:
 *
 *	visibility = { "own", { label = "traefik.enable=true" },
 *		{ name = "web-*", access = "full", kinds = { "containers" } } }
 *
 * Entries add up: an object has the highest access that any of them gives.
 * Backends ask with what the service says of the object now, never with what
 * the caller says of it.  Zeroed memory sees nothing.
 *
 * Images belong to nobody.  They are seen by all, unless an entry names the
 * kind "images": then by these entries alone.
 */
#ifndef RULES_REACH_H
#define RULES_REACH_H

#include "gate/base/arena.h"
#include "gate/base/err.h"
#include "gate/base/jv.h"
#include "rules/operation.h"

#include <stdbool.h>
#include <stddef.h>

/* Each includes those before it. */
enum access {
	ACCESS_NONE = 0, /* for the caller it is not there */
	ACCESS_READ,     /* operations of class read */
	ACCESS_DATA,     /* and of class data-out: logs, copies, exports */
	ACCESS_FULL,     /* whatever the profile's operations grant */
	ACCESS_COUNT
};

/* Kinds of objects, as bits. */
enum reach_kind {
	REACH_CONTAINERS = 1,
	REACH_VOLUMES = 2,
	REACH_NETWORKS = 4,
	REACH_IMAGES = 8,
};

#define REACH_OWNED (REACH_CONTAINERS | REACH_VOLUMES | REACH_NETWORKS)

enum reach_by {
	REACH_BY_NOTHING = 0,
	REACH_BY_OWNER, /* the caller's own */
	REACH_BY_ALL,
	REACH_BY_LABEL,
	REACH_BY_NAME
};

struct reach_entry {
	enum reach_by by;
	enum access access;
	unsigned kinds;
	struct span name;  /* BY_NAME: a glob; of images a pattern like those of `images` */
	struct span label; /* BY_LABEL: its name, exactly */
	struct span value; /* BY_LABEL: a glob */
	bool any_value;    /* BY_LABEL: no value was given */
};

#define REACH_MAX 64 /* entries of one profile */

struct reach {
	const struct reach_entry *entries;
	size_t count;
};

/* What a service says of one object. */
struct reach_object {
	enum reach_kind kind;
	bool mine;
	const char *const *names; /* images may have several; NULL at the end */
	const struct jv *labels;  /* an object of strings; NULL if there are none */
};

/*
 * Reads a value of the setting, in any of its forms: "own", "all", or a list.
 * ERR_CONFIG says which entry is wrong.  Strings come from the value, entries
 * from the arena.
 */
int reach_read(const struct jv *value, struct arena *a, struct reach *ret, struct err *err);

/*
 * Whether whatever inner shows is shown by outer with at least that access;
 * false when in doubt.  *ret_at: the first entry of inner that is not.
 */
bool reach_covers(const struct reach *outer, const struct reach *inner, size_t *ret_at);

enum access reach_of(const struct reach *r, const struct reach_object *o);

/* What all objects of a kind have, whatever they are. */
enum access reach_of_all(const struct reach *r, enum reach_kind kind);

/* All objects of all kinds are seen: nothing in a list or a stream needs to be hidden. */
bool reach_sees_all(const struct reach *r);

/* Images are seen by entries. */
bool reach_limits_images(const struct reach *r);

/* The one entry through which objects of this kind can be seen, or NULL: none, or several. */
const struct reach_entry *reach_only(const struct reach *r, enum reach_kind kind);

/* The access that an operation on one object takes; by its class. */
enum access reach_needed(enum operation op);

/* An entry in words, for people: label "traefik.enable=true" (read). */
void reach_say(const struct reach_entry *e, char *out, size_t size);

#endif
