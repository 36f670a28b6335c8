/* What an owner under quarantine runs is stopped, where the operator wants it. */
#include "proxy/rejudge_priv.h"

#define ROUNDS    3
#define FIRST_MS  2000 /* between the first and the second round */
#define SECOND_MS 8000
#define FAILED_MS 500

const struct quarantine *rejudge_kills(struct worker *w, const char *owner)
{
	const struct quarantine *q;

	if (!w->conf->emergency)
		return NULL;
	emergency_look(w->conf->emergency, w->emergency);
	q = emergency_quarantine(w->emergency, owner);
	return q && q->kill ? q : NULL;
}

static uint64_t newest(const struct emergency_view *view)
{
	uint64_t id = 0;

	for (size_t i = 0; i < view->owner_count && i < EMERGENCY_OWNERS; i++)
		if (view->owners[i].kill && view->owners[i].id > id)
			id = view->owners[i].id;
	return id;
}

bool kill_round_is_due(struct kill_rounds *k, struct worker *w)
{
	uint64_t id;

	if (!w->conf->emergency)
		return false;
	emergency_look(w->conf->emergency, w->emergency);
	id = newest(w->emergency);
	if (id > k->last_id) {
		*k = (struct kill_rounds){.last_id = id, .left = ROUNDS};
	} else if (!id) {
		k->left = 0; /* all were released meanwhile */
	}
	if (!k->left || w->loop.now_ms < k->due_ms)
		return false;
	k->left--;
	k->due_ms = w->loop.now_ms + (k->left + 1 == ROUNDS ? FIRST_MS : SECOND_MS);
	return true;
}

void kill_round_failed(struct kill_rounds *k, uint64_t now_ms)
{
	k->left++;
	k->due_ms = now_ms + FAILED_MS;
}

bool look_quarantined(struct look *l)
{
	const struct quarantine *q = rejudge_kills(l->of->worker, l->again.owner);
	struct exchange *x = l->x;

	if (!q)
		return false;
	l->conn.who.owner = l->again.owner;
	x->decision.verdict = x->decision.would = VERDICT_DENY;
	x->decision.profile = l->again.profile;
	quarantine_blame(violations_add(&x->decision.violations, REASON_quarantined), q, x->arena);
	l->why = x->decision.violations.list[0].text;
	l->seen.running = RUNNING_STOP;
	look_report(l, FINDING_STOP);
	look_stop(l);
	return true;
}
