/* lifetimes.c - the thread that ends what has lived long enough, or that nobody uses. */
#include "proxy/sandbox/sandbox_priv.h"

#include "gate/base/clock.h"
#include "gate/base/log.h"

#include <string.h>
#include <time.h>

#define LOOK_MS   60000
#define LOOKED_AT 10000 /* sandboxes, at the start */
#define RETRY_MS  15000 /* between two tries to end one */

static struct log_kind refused;

/* The lock is held.  Why it is to end now; NULL: not yet, and *ret_ms is when. */
static const char *why_now(const struct box *b, uint64_t now_ms, uint64_t *ret_ms)
{
	uint64_t at = b->ends_ms;
	const char *why = "expired";

	*ret_ms = UINT64_MAX;
	if (b->state == BOX_CREATING)
		return NULL;
	if (b->idle_at_ms && b->idle_at_ms < at) {
		at = b->idle_at_ms;
		why = "idle";
	}
	if (b->state == BOX_ENDING) { /* it could not be ended */
		at = b->retry_ms;
		why = "expired";
		if (!at)
			return NULL;
	}
	if (at <= now_ms)
		return why;
	*ret_ms = at;
	return NULL;
}

struct box *lifetimes_due(struct sandboxes *s, uint64_t now_ms, const char **ret_op,
			  uint64_t *ret_next_ms)
{
	struct box *found = NULL;

	*ret_next_ms = now_ms + LOOK_MS;
	pthread_mutex_lock(&s->lock);
	for (struct box *b = s->boxes; b && !found; b = b->next) {
		uint64_t at;
		const char *why = why_now(b, now_ms, &at);

		if (why) {
			found = b;
			b->refs++;
			*ret_op = why;
		} else if (at < *ret_next_ms) {
			*ret_next_ms = at;
		}
	}
	pthread_mutex_unlock(&s->lock);
	return found;
}

/* What was there before this process: is it still? */
static void look_back(struct sandboxes *s)
{
	struct box *list[LOOKED_AT];
	size_t n = 0;

	pthread_mutex_lock(&s->lock);
	for (struct box *b = s->boxes; b && n < LOOKED_AT; b = b->next) {
		if (b->retry_ms == UINT64_MAX)
			continue;
		b->refs++;
		list[n++] = b;
	}
	pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; i < n; i++) {
		bool known = false;

		if (!driver_exists(s, list[i], &known) && known) {
			trail_note(s, &(struct told){.op = "sandbox.gone",
						     .who = &list[i]->who,
						     .id = list[i]->id,
						     .text = "it had ended without the gate"});
			kept_remove(s, list[i]);
			table_remove(s, list[i]);
		}
		table_unref(s, list[i]);
	}
}

static void end_one(struct sandboxes *s, struct box *b, const char *why)
{
	struct trouble t = {0};

	if (end_box(s, b, strcmp(why, "idle") == 0 ? "sandbox.idle" : "sandbox.expired", &t) == 0)
		return;
	log_often(&refused, "sandbox %s could not be ended, and will be tried again (status %d)",
		  b->id, t.status);
	pthread_mutex_lock(&s->lock);
	b->retry_ms = clock_boot_ms() + RETRY_MS;
	pthread_mutex_unlock(&s->lock);
}

static void wait_until(struct sandboxes *s, uint64_t at_ms)
{
	uint64_t now = clock_boot_ms(), left = at_ms > now ? at_ms - now : 0;
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += (time_t)(left / 1000);
	ts.tv_nsec += (long)(left % 1000) * 1000000;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	pthread_mutex_lock(&s->lock);
	if (!s->over)
		pthread_cond_timedwait(&s->changed, &s->lock, &ts);
	pthread_mutex_unlock(&s->lock);
}

void *lifetimes_main(void *arg)
{
	struct sandboxes *s = arg;

	look_back(s);
	while (!s->over) {
		const char *why = "";
		uint64_t next_ms;
		struct box *b = lifetimes_due(s, clock_boot_ms(), &why, &next_ms);

		if (!b) {
			wait_until(s, next_ms);
			continue;
		}
		end_one(s, b, why);
		table_unref(s, b);
	}
	return NULL;
}
