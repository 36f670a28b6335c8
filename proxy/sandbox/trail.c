/* trail.c - what the API itself decides and does, on record: threads wait for the process's loop.
 */
#include "proxy/sandbox/sandbox_priv.h"

#include "gate/base/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void fill(struct record *r, const char *op, const struct caller *who)
{
	*r = (struct record){.type = RECORD_SANDBOX, .op = op};
	r->listener = who->listener;
	r->identity = who->identity;
	r->owner = who->owner;
	r->profile = who->profile;
	r->address = who->address;
	if (who->own)
		return;
	r->auth_method = who->has_cred ? "peercred" : "token";
	r->has_cred = who->has_cred;
	r->uid = who->uid;
	r->gid = who->gid;
	r->pid = who->pid;
}

bool trail_note(struct sandboxes *s, const struct told *what)
{
	struct trail *tr = &s->trail;
	const struct trouble *why = what->why;
	struct note n = {.done = false};
	uint64_t one = 1;

	fill(&n.record, what->op, what->who);
	n.record.object_kind = "sandbox";
	n.record.object_name = what->id;
	n.record.verdict = why ? "deny" : "allow";
	n.record.reason = why ? why->code : NULL;
	n.record.text = why ? why->message : what->text;
	n.record.facts = what->facts;
	pthread_mutex_lock(&tr->lock);
	if (!tr->over) {
		*tr->last = &n;
		tr->last = &n.next;
		if (write(tr->wake, &one, sizeof(one)) < 0)
			n.done = false; /* it is awake already */
		while (!n.done)
			pthread_cond_wait(&tr->done, &tr->lock);
	}
	pthread_mutex_unlock(&tr->lock);
	return n.durable;
}

#define REFUSALS_BURST 100
#define REFUSAL_MS     50 /* then one each */

/* False: it is only counted. */
static bool may_tell(struct trail *tr, unsigned *ret_untold)
{
	uint64_t now = clock_boot_ms(), from;
	bool may;

	pthread_mutex_lock(&tr->lock);
	from = tr->full_at_ms > now ? tr->full_at_ms : now;
	may = from + REFUSAL_MS <= now + REFUSALS_BURST * REFUSAL_MS;
	*ret_untold = may ? tr->untold : 0;
	tr->untold = may ? 0 : tr->untold + 1;
	if (may)
		tr->full_at_ms = from + REFUSAL_MS;
	pthread_mutex_unlock(&tr->lock);
	return may;
}

void trail_refusal(struct sandboxes *s, const char *op, const struct caller *who, const char *id,
		   const struct trouble *why)
{
	struct trouble told = *why;
	char text[640];
	unsigned untold;

	if (!may_tell(&s->trail, &untold))
		return;
	if (untold) {
		snprintf(text, sizeof(text), "%s (and %u refusals before it, not told)",
			 why->message, untold);
		told.message = text;
	}
	trail_note(s, &(struct told){.op = op, .who = who, .id = id, .why = &told});
}
