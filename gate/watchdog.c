/*
 * An auditor that hangs holds up whatever changes state, and cannot say so: its loop turns once a
 * second, and one that has not turned for long is killed, so that another one takes its place.
 */
#include "audit/state.h"
#include "gate/base/clock.h"
#include "gate/base/log.h"
#include "gate/supervisor_priv.h"

#include <inttypes.h>
#include <signal.h>

#define PAUSE_MS 500

static bool is_watched(const struct supervisor *s)
{
	return s->conf->audit && s->auditor.pid && s->auditor.ready && !s->auditor.leaving;
}

/* It is not there yet, or has made progress. */
static bool goes_on(struct watchdog *w, const struct supervisor *s, uint64_t beats)
{
	return !w->looked_ms || w->pid != s->auditor.pid || w->beats != beats;
}

static void end_it(struct supervisor *s)
{
	struct watchdog *w = &s->watchdog;

	log_alarm("the auditor %d has made no progress for %" PRIu64
		  " ms: it is killed, and nothing "
		  "that changes anything is forwarded until another one writes the log",
		  (int)w->pid, w->still_ms);
	audit_state_set_hung(s->conf->audit, w->still_ms);
	audit_state_set(s->conf->audit, AUDIT_SEALED);
	kill(w->pid, SIGKILL);
	w->still_ms = 0; /* if the kernel holds it, it is told again */
}

void watchdog_look(struct supervisor *s)
{
	uint64_t now = clock_boot_ms(), beats, step;
	struct watchdog *w = &s->watchdog;

	if (!is_watched(s)) {
		w->looked_ms = 0;
		return;
	}
	if (now < watchdog_due(s))
		return;
	beats = audit_state_beats(s->conf->audit);
	if (goes_on(w, s, beats)) {
		*w = (struct watchdog){s->auditor.pid, beats, now, 0};
		return;
	}
	/* For longer than that it was this process, or the whole host, that stood still. */
	step = now - w->looked_ms;
	w->still_ms += step < 2 * PAUSE_MS ? step : 2 * PAUSE_MS;
	w->looked_ms = now;
	if (w->still_ms >= s->conf->hung_ms)
		end_it(s);
}

uint64_t watchdog_due(const struct supervisor *s)
{
	if (!is_watched(s))
		return UINT64_MAX;
	return s->watchdog.looked_ms + (s->watchdog.looked_ms ? PAUSE_MS : 0);
}
