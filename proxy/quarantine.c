/*
 * quarantine.c - an owner whose every request is refused, for as long as an operator says so.
 *
 * It is looked at when it is known who asks, again before what was asked for is decided, and
 * a third time before it is sent: what was under way when it began does not slip through.
 */
#include "gate/base/log.h"
#include "proxy/metrics.h"
#include "proxy/worker_priv.h"

#include <stdio.h>
#include <string.h>

enum standing { STANDING_FREE = 0, STANDING_QUARANTINED, STANDING_UNKNOWN };

static enum standing standing_of(struct worker *w, const char *owner, const struct quarantine **ret)
{
	if (!w->conf->emergency)
		return STANDING_FREE; /* `check` */
	emergency_look(w->conf->emergency, w->emergency);
	if (!w->emergency->turn)
		return STANDING_UNKNOWN;
	*ret = emergency_quarantine(w->emergency, owner);
	return *ret ? STANDING_QUARANTINED : STANDING_FREE;
}

bool quarantine_is_known(struct worker *w)
{
	const struct quarantine *q;

	return standing_of(w, "", &q) != STANDING_UNKNOWN;
}

bool quarantine_holds(const struct exchange *x)
{
	const struct quarantine *q;

	return x->conn && !x->conn->own &&
	       standing_of(x->worker, x->conn->who.owner, &q) != STANDING_FREE;
}

void quarantine_blame(struct violation *v, const struct quarantine *q, struct arena *a)
{
	char text[200];

	snprintf(text, sizeof(text),
		 "the owner is under quarantine, ticket %.64s: everything is refused", q->ticket);
	v->rule = "quarantine";
	v->text = arena_strndup(a, text, strlen(text));
	if (!v->text)
		v->text = "";
}

bool quarantine_refuses(struct exchange *x)
{
	const struct quarantine *q = NULL;

	switch (standing_of(x->worker, x->conn->who.owner, &q)) {
	case STANDING_FREE:
		return false;
	case STANDING_QUARANTINED:
		metrics_add(x->worker->conf->metrics, METRIC_quarantined, 1);
		quarantine_blame(violations_add(&x->call.refused, REASON_quarantined), q, x->arena);
		return true;
	case STANDING_UNKNOWN:
		break;
	}
	violations_add(&x->call.refused, REASON_quarantine_unknown)->rule = "quarantine";
	return true;
}

/* What an engine has been told already, and what changes something, is finished all the same. */
static void end_connection(struct conn *c, const struct quarantine *q)
{
	struct exchange *x = c->exchange;

	if (x && x->head_seen && !*x->err)
		snprintf(x->err, sizeof(x->err), "ended: its owner is under quarantine, ticket %s",
			 q->ticket);
	connection_give_up(c);
}

void quarantine_tick(struct worker *w)
{
	const struct quarantine *q;
	size_t ended = 0;

	if (!w->conf->emergency)
		return;
	emergency_look(w->conf->emergency, w->emergency);
	if (w->emergency->turn == w->emergency_seen)
		return;
	w->emergency_seen = w->emergency->turn;
	for (struct conn *c = w->conns; c; c = c->next) {
		q = c->who.owner ? emergency_quarantine(w->emergency, c->who.owner) : NULL;
		if (!q || c->given_up)
			continue;
		end_connection(c, q);
		ended++;
	}
	if (ended)
		log_line("%zu connections of owners under quarantine ended", ended);
}
