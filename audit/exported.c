/*
 * exported.c - how far the sinks are: as the shippers' state files say, which are read
 * every few seconds.
 *
 * A state is believed only if it names a record of this log by its hash: one that is of
 * another log, or of a log that was rolled back since, makes nothing removable.
 */
#include "audit/auditor_priv.h"

#include "audit/history_priv.h"
#include "audit/sink_priv.h"
#include "gate/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 5000

/* Does it get on? */
struct sink_pace {
	uint64_t had;                    /* records that it had when it last got on */
	uint64_t since_ms;               /* when that was; 0: it was not looked at yet */
	char late_since[CLOCK_TEXT_MAX]; /* "": it was not told that it is late */
};

int auditor_sinks_init(struct auditor *a, const struct auditor_conf *conf, struct err *err)
{
	struct sinks *s = &a->sinks;

	*s = (struct sinks){
		.list = conf->sinks, .count = conf->sink_count, .late_ms = conf->sinks_late_ms};
	s->seen = calloc(conf->sink_count + 1, sizeof(*s->seen));
	s->paces = calloc(conf->sink_count + 1, sizeof(*s->paces));
	return s->seen && s->paces ? 0 : err_set(err, ERR_LIMIT, "no memory for the sinks");
}

void auditor_sinks_fini(struct auditor *a)
{
	free(a->sinks.seen);
	free(a->sinks.paces);
	a->sinks = (struct sinks){.list = NULL};
}

/* The hash of a record, from the tree; false: it cannot be told. */
static bool record_hash(const struct auditor *a, uint64_t seq, struct hash *ret)
{
	const struct tiles *t = a->log->tiles;
	struct hash tile[TILE_HASHES];
	struct segments all;
	struct err ignored;
	bool found;

	if (seq / TILE_HASHES == t->tree.size / TILE_HASHES) {
		*ret = t->hashes[0][seq % TILE_HASHES];
		return true;
	}
	if (tile_read(a->log->dir_fd, 0, seq / TILE_HASHES, tile)) {
		*ret = tile[seq % TILE_HASHES];
		return true;
	}
	if (segments_list(a->log->dir_fd, &all, &ignored) < 0)
		return false;
	found = history_leaves(a->log->dir_fd, &all, seq, seq + 1, ret);
	segments_free(&all);
	return found;
}

/* What is wrong with it, or NULL. */
static const char *not_believed(const struct auditor *a, const struct cursor_mark *mark)
{
	struct hash hash;

	if (strcmp(mark->log, a->log->writer.origin) != 0)
		return "its state is of another log";
	if (mark->seq >= a->log->tiles->tree.size)
		return "its state names a record that the log does not have";
	if (!record_hash(a, mark->seq, &hash) || memcmp(&hash, &mark->hash, sizeof(hash)) != 0)
		return "its state names another record than the log has there";
	return NULL;
}

static void look_at(const struct auditor *a, const struct sink_conf *sink, struct audit_sink *ret)
{
	struct cursor_mark mark;
	struct err err = {0};
	const char *wrong = NULL;
	int known = sink_state_read(sink, &mark, &err);

	*ret = (struct audit_sink){.known = false, .behind = a->log->tiles->tree.size};
	snprintf(ret->name, sizeof(ret->name), "%s", sink->name);
	if (known > 0)
		wrong = not_believed(a, &mark);
	if (known > 0 && !wrong) {
		ret->known = true;
		ret->seq = mark.seq;
		ret->behind = a->log->tiles->tree.size - mark.seq - 1;
	}
	if (known < 0 || wrong)
		snprintf(ret->trouble, sizeof(ret->trouble), "%.*s", (int)sizeof(ret->trouble) - 1,
			 wrong ? wrong : err.msg);
	else
		sink_trouble_read(sink, ret->trouble, sizeof(ret->trouble));
}

static void look(struct auditor *a)
{
	for (size_t i = 0; i < a->sinks.count; i++)
		look_at(a, &a->sinks.list[i], &a->sinks.seen[i]);
	audit_state_sinks(a->state, a->sinks.seen, a->sinks.count);
}

static void tell_late(struct auditor *a, const struct audit_sink *sink, struct sink_pace *pace,
		      bool late)
{
	char text[sizeof(sink->name) + sizeof(sink->trouble) + 64], ended[CLOCK_TEXT_MAX];
	struct record r = {.type = RECORD_LOG_ALARM,
			   .cause = "sink",
			   .text = text,
			   .count = sink->behind,
			   .began = pace->late_since};

	if (late) {
		clock_format(clock_unix_ns(), pace->late_since);
		snprintf(text, sizeof(text), "sink '%s' gets no records%s%s", sink->name,
			 *sink->trouble ? ": " : "", sink->trouble);
	} else {
		clock_format(clock_unix_ns(), ended);
		r.ended = ended;
		snprintf(text, sizeof(text), "sink '%s' gets records again", sink->name);
	}
	auditor_add_own(a, &r);
	if (!late)
		*pace->late_since = '\0';
}

static void watch_pace(struct auditor *a, const struct audit_sink *sink, struct sink_pace *pace)
{
	uint64_t has = sink->known ? sink->seq + 1 : 0;
	bool late;

	if (!pace->since_ms || has != pace->had || !sink->behind) {
		pace->had = has;
		pace->since_ms = a->now_ms;
	}
	late = a->now_ms - pace->since_ms >= a->sinks.late_ms;
	if (a->sinks.late_ms && late != (*pace->late_since != '\0'))
		tell_late(a, sink, pace, late);
}

void auditor_watch_sinks(struct auditor *a)
{
	if (!a->sinks.count || a->now_ms < a->sinks.look_at_ms)
		return;
	a->sinks.look_at_ms = a->now_ms + LOOK_MS;
	look(a);
	for (size_t i = 0; i < a->sinks.count; i++)
		watch_pace(a, &a->sinks.seen[i], &a->sinks.paces[i]);
}

uint64_t auditor_exported(struct auditor *a)
{
	uint64_t lowest = UINT64_MAX;

	look(a);
	for (size_t i = 0; i < a->sinks.count; i++) {
		const struct audit_sink *s = &a->sinks.seen[i];
		uint64_t has = s->known ? s->seq + 1 : 0;

		if (a->sinks.list[i].only)
			continue; /* it does not get all, so it is no evidence */
		lowest = has < lowest ? has : lowest;
	}
	return lowest;
}

void auditor_sinks_format(const struct auditor *a, char *out, size_t size)
{
	size_t used = 0;

	*out = '\0';
	for (size_t i = 0; i < a->sinks.count && used < size; i++) {
		const struct audit_sink *s = &a->sinks.seen[i];
		int n = s->known ? snprintf(out + used, size - used, "%s%s %" PRIu64, i ? ", " : "",
					    s->name, s->seq)
				 : snprintf(out + used, size - used, "%s%s none", i ? ", " : "",
					    s->name);

		used += n > 0 ? (size_t)n : 0;
	}
}
