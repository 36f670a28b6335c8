/* What is known of where callers run: made, counted, and kept for a moment. */
#include "proxy/worker_priv.h"

#include <stdlib.h>
#include <string.h>

#define INSIDE_ARENA 32768 /* bytes: labels are capped in number and length */

static struct inside *make(enum caller_place place)
{
	struct inside *in = calloc(1, sizeof(*in));

	if (!in)
		return NULL;
	in->refs = 1;
	in->place = place;
	return in;
}

struct inside *inside_ref(struct inside *in)
{
	in->refs++;
	return in;
}

void inside_unref(struct inside *in)
{
	if (!in || --in->refs)
		return;
	arena_destroy(in->arena);
	free(in);
}

struct inside *inside_unknown(const char *why, bool trouble)
{
	struct inside *in = make(CALLER_UNKNOWN);

	if (in) {
		in->why = why;
		in->trouble = trouble;
	}
	return in;
}

struct inside *inside_outside(void)
{
	return make(CALLER_OUTSIDE);
}

static const char *copied(struct inside *in, const char *text)
{
	return arena_strndup(in->arena, text, strlen(text));
}

static void copy_labels(struct inside *in, const struct caller_container *from)
{
	struct caller_label *labels = arena_take(in->arena, from->label_count * sizeof(*labels));

	for (size_t i = 0; labels && i < from->label_count; i++)
		labels[i] = (struct caller_label){copied(in, from->labels[i].name),
						  copied(in, from->labels[i].value)};
	in->container.labels = labels;
	in->container.label_count = labels ? from->label_count : 0;
}

struct inside *inside_of(const struct caller_call *call)
{
	const struct caller_container *from = &call->found;
	struct inside *in = make(CALLER_INSIDE);

	if (!in)
		return NULL;
	in->arena = arena_create(INSIDE_ARENA);
	if (!in->arena)
		goto no_memory;
	in->container = (struct caller_container){
		.id = copied(in, from->id),
		.name = copied(in, from->name),
		.image = copied(in, from->image),
		.image_id = copied(in, from->image_id),
		.owner = copied(in, from->owner),
	};
	copy_labels(in, from);
	in->started_at = copied(in, call->started_at);
	in->init = call->init;
	if (!arena_spent(in->arena))
		return in;
no_memory:
	inside_unref(in);
	return NULL;
}

static bool is_fresh(const struct worker *w, const struct inside_slot *slot)
{
	return slot->in && w->loop.now_ms - slot->in->made_ms <= INSIDE_RECENT_MS;
}

struct inside *inside_recent(const struct worker *w, const void *listener, const char *id)
{
	for (size_t i = 0; i < INSIDE_RECENT_MAX; i++) {
		const struct inside_slot *slot = &w->inside_recent[i];

		if (is_fresh(w, slot) && slot->listener == listener &&
		    !strcmp(slot->in->container.id, id))
			return slot->in;
	}
	return NULL;
}

static struct inside_slot *oldest(struct worker *w)
{
	struct inside_slot *best = &w->inside_recent[0];

	for (size_t i = 0; i < INSIDE_RECENT_MAX; i++) {
		struct inside_slot *slot = &w->inside_recent[i];

		if (!slot->in)
			return slot;
		if (slot->in->made_ms < best->in->made_ms)
			best = slot;
	}
	return best;
}

void inside_keep(struct worker *w, const void *listener, struct inside *in)
{
	struct inside_slot *slot = oldest(w);

	/* The newer counts. */
	for (size_t i = 0; i < INSIDE_RECENT_MAX; i++)
		if (w->inside_recent[i].in && w->inside_recent[i].listener == listener &&
		    !strcmp(w->inside_recent[i].in->container.id, in->container.id))
			slot = &w->inside_recent[i];
	inside_unref(slot->in);
	*slot = (struct inside_slot){listener, inside_ref(in)};
}

void inside_drop_recent(struct worker *w)
{
	for (size_t i = 0; i < INSIDE_RECENT_MAX; i++) {
		inside_unref(w->inside_recent[i].in);
		w->inside_recent[i].in = NULL;
	}
}
