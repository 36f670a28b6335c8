/*
 * turns.c - whose request took long to judge waits with the next one.
 *
 * A rule holds its worker's loop for as long as its limits let it.  So that one caller's do not
 * slow down everybody in that worker, the next request of the same caller is judged when a hundred
 * times what they took has passed: they have a hundredth of the worker, not all of it.  Who waits
 * too long for that is refused.  Whose turn comes is judged by what holds then, not by what was
 * looked up before the wait.
 */
#include "gate/base/clock.h"
#include "gate/base/hash.h"
#include "proxy/metrics.h"
#include "proxy/worker_priv.h"

#include <string.h>

#define LONG_NS      2000000 /* of processor time; one that a limit ended is long, too */
#define PAUSE_TIMES  100
#define PAUSE_MAX_MS 2000
#define WAIT_MAX_MS  5000
#define TURN_MS      1000 /* after which the next one has its turn, whatever became of it */

/* By owner and profile: what takes long is the profile's rules, with what this owner sends. */
static uint64_t key_of(const struct conn *c)
{
	struct buf text;
	struct hash h;

	buf_init(&text, 4096);
	buf_printf(&text, "%s\n%s", c->who.profile ? c->who.profile : "",
		   c->who.owner ? c->who.owner : "");
	h = hash_of(buf_span(&text));
	buf_fini(&text);
	return hash_number(&h);
}

/* That caller's place, or the one that is free first. */
static struct pause *place_of(struct worker *w, uint64_t key)
{
	struct pause *best = &w->pauses[0];

	for (size_t i = 0; i < PAUSES_MAX; i++) {
		if (w->pauses[i].key == key)
			return &w->pauses[i];
		if (w->pauses[i].until_ms < best->until_ms)
			best = &w->pauses[i];
	}
	return best;
}

void turns_leave(struct exchange *x)
{
	struct pause *p;
	uint64_t key;

	if (!x->turn_taken || !x->conn)
		return;
	key = key_of(x->conn);
	p = place_of(x->worker, key);
	if (p->key == key)
		p->taken_until_ms = 0;
	x->turn_taken = false;
}

void turns_took(struct exchange *x, uint64_t ns, bool limited)
{
	struct worker *w = x->worker;
	uint64_t pause = ns * PAUSE_TIMES / 1000000, key, until_ms;
	struct pause *p;

	turns_leave(x);
	if (w->check || (ns < LONG_NS && !limited))
		return;
	key = key_of(x->conn);
	p = place_of(w, key);
	until_ms = clock_boot_ms() + (pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS);
	/* What is short, or began before, does not end what is longer. */
	if (p->key != key || p->until_ms < until_ms)
		p->until_ms = until_ms;
	p->key = key;
	if (p->until_ms > w->pauses_until_ms)
		w->pauses_until_ms = p->until_ms;
}

/* By what its requests took, or since one of them is on its turn. */
static bool is_paused(const struct exchange *x)
{
	struct worker *w = x->worker;
	uint64_t now_ms = clock_boot_ms(), key;
	const struct pause *p;

	if (w->pauses_until_ms <= now_ms)
		return false;
	key = key_of(x->conn);
	p = place_of(w, key);
	return p->key == key &&
	       (p->until_ms > now_ms || (!x->turn_taken && p->taken_until_ms > now_ms));
}

static bool has_waited_too_long(struct exchange *x)
{
	if (x->worker->loop.now_ms - x->turn_since_ms < WAIT_MAX_MS)
		return false;
	x->turn_since_ms = 0;
	exchange_refuse(x, REASON_rule_limit, "",
			"requests of this caller take long to judge, and too many of them wait for "
			"their turn");
	return true;
}

bool turns_wait(struct exchange *x)
{
	struct worker *w = x->worker;

	if (!is_paused(x)) {
		x->turn_since_ms = 0;
		return false;
	}
	x->turn_taken = false;
	if (!x->turn_since_ms) {
		metrics_add(w->conf->metrics, METRIC_judged_late, 1);
		x->turn_since_ms = w->loop.now_ms;
	}
	if (has_waited_too_long(x))
		return true;
	x->state = X_LOOKUP;
	x->deadline_ms = 0;
	w->turns_due = true;
	return true;
}

/*
 * One request of a caller at a time, for as long as looking things up for it may take: if all
 * that wait did, the service would be asked for them again with each turn.
 */
static void take_turn(struct exchange *x)
{
	struct worker *w = x->worker;
	uint64_t key = key_of(x->conn);
	struct pause *p = place_of(w, key);

	p->key = key;
	p->taken_until_ms = clock_boot_ms() + TURN_MS;
	if (p->taken_until_ms > w->pauses_until_ms)
		w->pauses_until_ms = p->taken_until_ms;
	x->turn_taken = true;
	exchange_again(x);
}

/* Waits for nothing else: what was looked up for it is answered, and nothing is now. */
static bool waits_for_turn(const struct exchange *x)
{
	return x->turn_since_ms && !x->turn_taken && x->state == X_LOOKUP && !x->runs_open &&
	       !x->table_free;
}

void turns_tick(struct worker *w)
{
	if (!w->turns_due)
		return;
	w->turns_due = false;
	for (struct exchange *x = w->exchanges, *next; x; x = next) {
		next = x->next;
		if (!waits_for_turn(x))
			continue;
		if (!is_paused(x))
			take_turn(x);
		else if (!has_waited_too_long(x))
			w->turns_due = true;
	}
}
