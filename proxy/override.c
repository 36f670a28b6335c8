/*
 * override.c - a profile that only warns, for as long as an operator says so.
 *
 * It is looked up for each decision, so it ends by itself.  A quarantine is looked at before,
 * and wins.
 */
#include "proxy/metrics.h"
#include "proxy/worker_priv.h"

#include <string.h>

const struct override *override_of(struct worker *w, const struct profile *p, struct arena *a)
{
	const struct emergency_mode *m;
	struct override *o;
	char *ticket;

	if (!w->conf->emergency || !p)
		return NULL;
	emergency_look(w->conf->emergency, w->emergency);
	m = w->emergency->turn ? emergency_mode(w->emergency, profile_name(p)) : NULL;
	if (!m)
		return NULL;
	o = arena_take(a, sizeof(*o));
	ticket = arena_strndup(a, m->ticket, strlen(m->ticket));
	if (!o || !ticket)
		return NULL; /* what is refused then is refused */
	*o = (struct override){MODE_WARN, ticket};
	return o;
}

bool override_let_pass(const struct decision *d)
{
	return d->override && d->judged && d->would != d->said;
}
