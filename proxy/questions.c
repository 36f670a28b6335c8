/*
 * What is asked of the resolver, by turns: of each owner no more than a few
 * questions are under way, and the owner with the fewest is next.  A question
 * that nobody waits for any more counts until the resolver has answered it: it
 * works on it all the same.
 */
#include "proxy/worker_priv.h"

#include <stdio.h>
#include <string.h>

static unsigned under_way(const struct worker *w, const char *owner)
{
	unsigned n = 0;

	for (size_t i = 0; i < QUESTIONS_MAX; i++)
		n += w->questions[i].ticket && !strcmp(w->questions[i].owner, owner);
	return n;
}

static struct question_slot *find_slot(struct worker *w, uint64_t ticket)
{
	for (size_t i = 0; i < QUESTIONS_MAX; i++)
		if (w->questions[i].ticket == ticket)
			return &w->questions[i];
	return NULL;
}

/* The oldest that waits, of the owner with the fewest under way. */
static struct lookup_run *next_one(struct worker *w)
{
	struct lookup_run *best = NULL;
	unsigned least = QUESTIONS_OWN_MAX;

	for (struct exchange *x = w->exchanges; x; x = x->next) {
		unsigned n = x->runs_open ? under_way(w, x->call.owner) : QUESTIONS_OWN_MAX;

		for (size_t i = 0; n < QUESTIONS_OWN_MAX && i < x->call.lookup_count; i++) {
			struct lookup_run *run = &x->runs[i];

			if (!run->waits ||
			    (best && (n > least || (n == least && run->ticket > best->ticket))))
				continue;
			best = run;
			least = n;
		}
	}
	return best;
}

static bool put_question(struct worker *w, struct question_slot *slot, struct lookup_run *run)
{
	struct span ticket = {(const char *)&run->ticket, sizeof(run->ticket)};

	if (!frame_put(&w->resolver, ticket, span_of(run->lookup->target)))
		return false;
	slot->ticket = run->ticket;
	snprintf(slot->owner, sizeof(slot->owner), "%s", run->x->call.owner);
	run->waits = false;
	return true;
}

void questions_send(struct worker *w)
{
	struct question_slot *slot;
	struct lookup_run *run;

	while ((slot = find_slot(w, 0)) && (run = next_one(w)))
		if (!put_question(w, slot, run))
			return; /* the next answer makes room */
}

void questions_answered(struct worker *w, uint64_t ticket)
{
	struct question_slot *slot = ticket ? find_slot(w, ticket) : NULL;

	if (slot)
		slot->ticket = 0;
}

void questions_lost(struct worker *w)
{
	memset(w->questions, 0, sizeof(w->questions));
}
