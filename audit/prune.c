/*
 * prune.c - old segments are removed: whole ones from the front, never the newest,
 * and only what a signed checkpoint covers (in evidence mode: one that is known outside, and
 * what every sink has).
 *
 * What proofs need of the removed records are the hashes in the tiles.  So first each
 * tile is put on disk, a few at a time, and all of them are held against the edge that
 * the first segment that is kept begins with; then a log_prune is put on disk; then the
 * files are removed, the oldest first.  A crash between leaves a log that is good.
 */
#include "audit/auditor_priv.h"

#include "audit/history_priv.h"
#include "gate/base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOOK_MS       60000
#define TILES_AT_ONCE 16
#define AT_ONCE       64 /* segments that one log_prune names */
#define DAY_S         86400
#define HELD_TEXT     320
#define TOO_OLD       "older than log.retention.days"
#define TOO_MANY      "the log is larger than log.retention.bytes"

static int64_t now_s(void)
{
	return (int64_t)(clock_unix_ns() / 1000000000);
}

void auditor_prune_leap(struct auditor *a)
{
	a->pruning.leap = now_s();
}

int auditor_prune_init(struct auditor *a, const struct auditor_conf *conf,
		       const struct audit_log_found *found, struct err *err)
{
	struct pruning *p = &a->pruning;

	p->keep = conf->retention;
	p->leap = found->leap;
	if (!found->fresh && now_s() / DAY_S > found->last_day + 1)
		auditor_prune_leap(a);
	return auditor_outside_init(a, conf, err);
}

/* --- what may go --- */

/*
 * A clock that leapt makes everything look old, so for a day nothing is: time enough
 * to set it right.  A leap that was taken back has not happened.
 */
static bool clock_believed(const struct pruning *p)
{
	int64_t now = now_s();

	return !p->leap || now < p->leap || now >= p->leap + DAY_S;
}

static bool is_old(const struct auditor *a, uint64_t next)
{
	const struct pruning *p = &a->pruning;
	struct err ignored;
	int64_t begun;

	return p->keep.days && clock_believed(p) &&
	       history_begun(a->log->dir_fd, next, &begun, &ignored) == 0 &&
	       begun < now_s() - (int64_t)p->keep.days * DAY_S;
}

/* The records below `next` are fixed by a signature, and their tiles are full. */
static bool is_covered(const struct auditor *a, uint64_t next)
{
	uint64_t full = (next + TILE_HASHES - 1) / TILE_HASHES * TILE_HASHES;

	return next <= a->signing.last_size && full <= a->log->tiles->tree.size;
}

/* As evidence: they are known outside, and elsewhere.  If not, why says what is missing. */
static bool is_elsewhere(const struct auditor *a, uint64_t next, char *why, size_t size)
{
	char sinks[160];

	*why = '\0';
	if (a->pruning.keep.mode != RETENTION_EVIDENCE)
		return true;
	if (next > a->pruning.outside)
		snprintf(why, size, "%s of %llu records only", auditor_outside_what(a),
			 (unsigned long long)a->pruning.outside);
	else if (next > a->pruning.exported) {
		auditor_sinks_format(a, sinks, sizeof(sinks));
		snprintf(why, size, "not every sink has them: %s", sinks);
	}
	return !*why;
}

/* What ought to go is kept: told when it is so in two looks, and when that is over. */
static void tell_held(struct auditor *a, const char *why)
{
	struct pruning *p = &a->pruning;
	char text[HELD_TEXT + 80], ended[CLOCK_TEXT_MAX];
	struct record r = {.type = RECORD_LOG_ALARM, .cause = "retention", .began = p->held_since};

	p->held_looks = *why ? p->held_looks + 1 : 0;
	if (*why && !*p->held_since && p->held_looks >= 2) {
		clock_format(clock_unix_ns(), p->held_since);
		snprintf(text, sizeof(text), "segments that should go are kept as evidence: %s",
			 why);
		r.text = text;
		auditor_add_own(a, &r);
	} else if (!*why && *p->held_since) {
		clock_format(clock_unix_ns(), ended);
		r.ended = ended;
		r.text = "nothing is kept as evidence that should go";
		auditor_add_own(a, &r);
		*p->held_since = '\0';
	}
}

static uint64_t bytes_of(const struct auditor *a, uint64_t first)
{
	char name[SEGMENT_NAME_MAX];
	struct stat st;

	segment_name(first, name);
	return fstatat(a->log->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_size
									    : 0;
}

static void choose(struct auditor *a, const struct segments *all, char *why, size_t size)
{
	struct pruning *p = &a->pruning;
	uint64_t bytes = 0;

	for (size_t i = 0; i < all->count; i++)
		bytes += bytes_of(a, all->first[i]);
	for (size_t i = 0; i + 1 < all->count && i < AT_ONCE; i++) {
		uint64_t next = all->first[i + 1];
		bool many = p->keep.bytes && bytes > p->keep.bytes;

		if (!is_covered(a, next) || (!many && !is_old(a, next)) ||
		    !is_elsewhere(a, next, why, size))
			return;
		p->first = all->first[0];
		p->size = next;
		p->why = many ? TOO_MANY : TOO_OLD;
		bytes -= bytes_of(a, all->first[i]);
	}
}

static void cannot(struct auditor *a, const char *why)
{
	struct record r = {.type = RECORD_LOG_ALARM, .cause = "prune", .text = why};

	a->pruning.size = 0;
	if (a->pruning.told)
		return;
	a->pruning.told = true;
	auditor_add_own(a, &r);
}

static void look(struct auditor *a)
{
	char why[HELD_TEXT] = "";
	struct segments all;
	struct err err = {0};

	if (segments_list(a->log->dir_fd, &all, &err) < 0) {
		cannot(a, err.msg);
		return;
	}
	if (a->pruning.keep.mode == RETENTION_EVIDENCE) {
		a->pruning.exported = auditor_exported(a);
		a->pruning.outside = auditor_outside(a);
	}
	if (all.count > 1)
		choose(a, &all, why, sizeof(why));
	segments_free(&all);
	tell_held(a, why);
	if (a->pruning.size &&
	    history_edge(a->log->dir_fd, a->pruning.first, &a->pruning.tree, &err) < 0)
		cannot(a, err.msg);
}

/* --- the tiles of what goes --- */

/* A tile that could not be written in its time is made now: the records are still there. */
static bool load_tile(struct auditor *a, uint64_t number, struct hash ret[TILE_HASHES])
{
	int dir_fd = a->log->dir_fd;
	uint64_t from = number * TILE_HASHES;
	struct err ignored;
	struct segments all;
	bool made;

	if (!tile_read(dir_fd, 0, number, ret)) {
		if (segments_list(dir_fd, &all, &ignored) < 0)
			return false;
		made = history_leaves(dir_fd, &all, from, from + TILE_HASHES, ret) &&
		       tile_write(dir_fd, 0, number, ret) == 0;
		segments_free(&all);
		if (!made)
			return false;
	}
	return tile_sync(dir_fd, 0, number) == 0;
}

static bool keep_tile(struct auditor *a)
{
	struct pruning *p = &a->pruning;
	struct hash hashes[TILE_HASHES];
	uint64_t number = p->tree.size / TILE_HASHES;

	if (!load_tile(a, number, hashes))
		return false;
	do
		tree_add(&p->tree, &hashes[p->tree.size % TILE_HASHES], NULL);
	while (p->tree.size % TILE_HASHES && p->tree.size < p->size);
	return true;
}

/* --- removing --- */

static void remove_files(struct auditor *a)
{
	struct segments all;
	struct err err = {0};
	char name[SEGMENT_NAME_MAX];

	if (segments_list(a->log->dir_fd, &all, &err) < 0) {
		cannot(a, err.msg);
		return;
	}
	for (size_t i = 0; i < all.count && all.first[i] < a->pruning.size; i++) {
		segment_name(all.first[i], name);
		if (unlinkat(a->log->dir_fd, name, 0) < 0) {
			err_sys(&err, "remove %s", name);
			cannot(a, err.msg);
			break; /* a gap is worse than a log that is too long */
		}
		erasable_drop(&a->erasable, all.first[i]);
	}
	segments_free(&all);
	(void)fsync(a->log->dir_fd); /* if it comes back, it is removed again */
}

static void prune(struct auditor *a)
{
	struct pruning *p = &a->pruning;
	struct hash root = tree_root(&p->tree);
	char hex[HASH_HEX_LEN + 1], exported[512] = "";
	struct record r = {.type = RECORD_LOG_PRUNE,
			   .text = p->why,
			   .first = p->first,
			   .size = p->size,
			   .count = p->size - p->first,
			   .root = hex,
			   .anchor = a->outside.name,
			   .exported = exported};

	if (p->keep.mode == RETENTION_EVIDENCE)
		auditor_sinks_format(a, exported, sizeof(exported));
	hash_hex(&root, hex);
	auditor_add_own(a, &r);
	auditor_commit(a);
	if (!auditor_sealed(a))
		remove_files(a);
	p->size = 0;
}

void auditor_prune(struct auditor *a)
{
	struct pruning *p = &a->pruning;
	struct tree edge;
	struct err err = {0};

	if (auditor_sealed(a) || p->keep.mode == RETENTION_FOREVER)
		return;
	if (!p->size && a->now_ms >= p->look_at_ms) {
		p->look_at_ms = a->now_ms + LOOK_MS;
		look(a);
	}
	for (int i = 0; p->size && p->tree.size < p->size && i < TILES_AT_ONCE; i++)
		if (!keep_tile(a))
			cannot(a, "hashes of old records are missing from the tiles, so their "
				  "segments are kept");
	if (!p->size || p->tree.size < p->size)
		return;
	if (history_edge(a->log->dir_fd, p->size, &edge, &err) < 0)
		cannot(a, err.msg);
	else if (!tree_same(&edge, &p->tree))
		cannot(a, "the tiles are not those of the old records, so their segments are kept");
	else
		prune(a);
}
