/*
 * drive.h - plays the exchange for an adapter: a request and a world in, what
 * the adapter says and asks out.
 *
 * The world is a tree of documents as the engine gives them, by table and key
 * ("containers" -> "web"); containers are also found by a part of their id.
 */
#ifndef TESTS_UNIT_BACKENDS_DRIVE_H
#define TESTS_UNIT_BACKENDS_DRIVE_H

#include "backends/backend.h"

#include <stdio.h>

struct drive {
	struct arena *arena;
	struct backend *be;
	struct canonical req;
	struct backend_call call;
	const struct jv *world;
	struct arena *small; /* the call's arena, if not the same */
	bool offline, unreachable;
	const char *seccomp; /* the filter that the profile demands; NULL: none */
	bool has_own_socket; /* "/run/gate/own.sock" */
	bool far;            /* the engine's processes cannot be looked at */
	bool wants_attested;
	int rounds;   /* how often answers were fetched */
	size_t asked; /* lookups in all */
	int route_result;
};

#define DRIVE_ARENA_BYTES (16u << 20)

/* Reads a whole file of tests/unit/backends/data into the arena; fails the test if it cannot. */
struct span drive_read(struct arena *a, const char *name);
struct jv drive_json(struct arena *a, const char *name);
struct jv drive_parse(struct arena *a, const char *text);

/* The adapter for Docker; fails the test if it cannot be opened. */
struct backend *drive_open(void);

/* For fuzz targets: opened once, with world.json, for as long as the program runs. */
struct backend *drive_once(const struct jv **ret_world);

/* be: opened by the caller, who may keep it for its caches.  The caller is "alice". */
void drive_start(struct drive *d, struct backend *be, const struct jv *world);
void drive_end(struct drive *d);

/* The profile's visibility, as JSON; "own" unless it is said. */
void drive_see(struct drive *d, const char *visibility);
/* One more entry of the ledger; they come in order. */
void drive_adopt(struct drive *d, const char *entry);

/* text: "METHOD TARGET\nName: value\nBODY", with or without an empty line before the body; routes
 * and steps until something is decided. */
enum step drive_request(struct drive *d, const char *text);
/* Answers lookups and steps on, after check() or step() asked. */
void drive_answer(struct drive *d);

/* Head and body as they would be sent, in the arena. */
const char *drive_rendered(struct drive *d, const char **ret_body);

/* "mounts[0].source" in a tree, or NULL. */
const struct jv *drive_at(const struct jv *tree, const char *path);

const char *drive_text(struct arena *a, const struct jv *v);

#endif
