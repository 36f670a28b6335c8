#include "proxy/quotas.h"

#include "gate/base/shared.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SETTLED_NS                                                                                 \
	(UINT64_C(60) * 1000000000) /* settled ones are kept so long, if there is room             \
				     */

enum state { FREE = 0, HELD, SENT, UNSURE, SETTLED };

struct entry {
	_Atomic uint32_t state;
	_Atomic int32_t pid;
	uint64_t key, serial;
	uint64_t granted_ns;
	_Atomic uint64_t changed_ns; /* settled, or unsure, since */
	_Atomic bool contested;      /* the same was sent once more before this came to an end */
	struct quota_thing thing;
};

struct quotas {
	struct shared_lock lock;
	uint64_t serial;
	uint64_t floor_ns; /* counts that began before this miss something */
	struct entry entries[QUOTA_SLOTS];
	struct quota_uses uses;
};

/* All that one owner has, each thing once; of use while a count is looked at. */
struct sum {
	struct quota_thing things[QUOTA_THINGS];
	size_t count;
	bool full;
	bool newer; /* something of it was let pass after the count began */
};

struct quotas *quotas_create(struct err *err)
{
	return shared_create(sizeof(struct quotas), -1, "the table of quotas", err);
}

struct quota_uses *quotas_uses(struct quotas *t)
{
	return &t->uses;
}

uint64_t quota_key(const char *backend, const char *owner)
{
	const struct hash engine = hash_of(span_of(backend));
	const struct span first = {(const char *)engine.bytes, sizeof(engine.bytes)};
	const struct hash both = hash_two(first, span_of(owner));

	return hash_number(&both);
}

struct hash quota_id(const char *kind, const char *id)
{
	struct hash ret;
	char head[40];

	if (!strcmp(kind, "container") && hash_parse(span_of(id), &ret) == 0)
		return ret;
	snprintf(head, sizeof(head), "%s\n", kind);
	return hash_two(span_of(head), span_of(id));
}

/* --- adding up --- */

int64_t quota_plus(int64_t a, int64_t b)
{
	/* Less than nothing is in the table only if somebody put it there. */
	return a < 0 || b < 0 || a > INT64_MAX - b ? QUOTA_ENDLESS : a + b;
}

static struct quota_thing *find(struct sum *s, const struct hash *id)
{
	for (size_t i = 0; i < s->count; i++)
		if (hash_eq(&s->things[i].id, id))
			return &s->things[i];
	return NULL;
}

static void merge(struct sum *s, const struct quota_thing *one)
{
	struct quota_thing *to = find(s, &one->id);

	if (one->gone)
		return;
	if (to) {
		to->runs = to->runs || one->runs;
		for (int q = 0; q < QUOTA_COUNT; q++)
			if (to->takes[q] < one->takes[q])
				to->takes[q] = one->takes[q];
	} else if (s->count == QUOTA_THINGS) {
		s->full = true;
	} else {
		s->things[s->count++] = *one;
	}
}

static const struct quota_thing *shown(const struct quota_count *c, const struct hash *id)
{
	for (size_t i = 0; i < c->shown_count; i++)
		if (hash_eq(&c->shown[i].id, id))
			return &c->shown[i];
	return NULL;
}

/* What was sent without an answer: has it been done, or can it not be done any more? */
static void resolve(struct entry *e, const struct quota_count *c, uint64_t now_ns)
{
	const struct quota_thing *is = shown(c, &e->thing.id);
	uint64_t unsure_ns = atomic_load(&e->changed_ns);
	bool started;

	if (now_ns > unsure_ns + QUOTA_UNSURE_NS) {
		atomic_store(&e->state, FREE);
		return;
	}
	if (!is || c->since_ns <= unsure_ns)
		return;
	/* Which of several starts it was that shows, nobody knows; the other may still come. */
	if (atomic_load(&e->contested) && !is->gone)
		return;
	started = is->since && e->thing.since && is->since != e->thing.since;
	if (is->gone || (started && !is->runs)) {
		atomic_store(&e->state, FREE);
	} else if (is->runs && (started || !e->thing.since)) {
		atomic_store(&e->changed_ns, now_ns);
		atomic_store(&e->state, SETTLED);
	}
}

/* Of settled ones nobody needs to know any more but who began to count long ago. */
static void drop(struct quotas *t, struct entry *e)
{
	uint64_t settled_ns = atomic_load(&e->changed_ns);

	if (settled_ns > t->floor_ns)
		t->floor_ns = settled_ns;
	atomic_store(&e->state, FREE);
}

static bool counts(struct quotas *t, struct entry *e, const struct quota_count *c, uint64_t now_ns)
{
	if (atomic_load(&e->state) == UNSURE)
		resolve(e, c, now_ns);
	switch (atomic_load(&e->state)) {
	case HELD:
	case SENT:
	case UNSURE:
		return true;
	case SETTLED:
		if (atomic_load(&e->changed_ns) >= c->since_ns)
			return true;
		if (now_ns > atomic_load(&e->changed_ns) + SETTLED_NS)
			drop(t, e);
		return false;
	case FREE:
	default:
		return false;
	}
}

static struct sum the_sum; /* large; a process has one thread */

/* What is shown is the longest part of the work, and needs no lock. */
static void add_shown(const struct quota_count *c)
{
	the_sum.count = 0;
	the_sum.full = the_sum.newer = false;
	for (size_t i = 0; i < c->shown_count; i++)
		merge(&the_sum, &c->shown[i]);
}

static void add_held(struct quotas *t, const struct quota_count *c, uint64_t now_ns, struct sum *s)
{
	for (size_t i = 0; t && i < QUOTA_SLOTS; i++) {
		struct entry *e = &t->entries[i];

		if (atomic_load(&e->state) == FREE || e->key != c->key || !counts(t, e, c, now_ns))
			continue;
		s->newer = s->newer || e->granted_ns > c->since_ns;
		merge(s, &e->thing);
	}
}

/* What comes to it by one thing that is asked for. */
static void ask(struct sum *s, const struct quota_thing *one, struct quota_sums *ret)
{
	const struct quota_thing *is = find(s, &one->id);
	bool runs = one->runs || (is && is->runs);

	for (int q = 0; q < QUOTA_COUNT; q++) {
		int64_t before = is && is->runs ? is->takes[q] : 0;
		int64_t after = runs ? one->takes[q] : 0;

		/* What starts has the limits to which it is being updated meanwhile. */
		if (runs && is && after < is->takes[q])
			after = is->takes[q];
		if (after == QUOTA_ENDLESS && before != QUOTA_ENDLESS)
			ret->asked[q] = QUOTA_ENDLESS;
		else if (after > before)
			ret->asked[q] = quota_plus(ret->asked[q], after - before);
	}
	merge(s, one);
}

static bool fits(const struct quota_sums *sums, const int64_t *limits)
{
	for (int q = 0; q < QUOTA_COUNT; q++)
		if (limits[q] >= 0 && sums->asked[q] > 0 &&
		    (sums->used[q] > limits[q] || sums->asked[q] > limits[q] - sums->used[q]))
			return false;
	return true;
}

/* After add_shown(). */
static enum quota_answer look(struct quotas *t, const struct quota_count *c, uint64_t now_ns,
			      struct quota_sums *ret)
{
	struct sum *s = &the_sum;

	*ret = (struct quota_sums){{0}, {0}};
	add_held(t, c, now_ns, s);
	for (size_t i = 0; i < s->count; i++)
		for (int q = 0; s->things[i].runs && q < QUOTA_COUNT; q++)
			ret->used[q] = quota_plus(ret->used[q], s->things[i].takes[q]);
	for (size_t i = 0; i < c->asked_count; i++)
		ask(s, &c->asked[i], ret);
	if (s->full)
		return QUOTA_BUSY;
	if (t && c->since_ns <= t->floor_ns)
		return c->last ? QUOTA_BUSY : QUOTA_AGAIN;
	if (fits(ret, c->limits))
		return QUOTA_FITS;
	return s->newer && !c->last ? QUOTA_AGAIN : QUOTA_OVER;
}

enum quota_answer quotas_look(struct quotas *t, const struct quota_count *c, uint64_t now_ns,
			      struct quota_sums *ret)
{
	enum quota_answer answer;

	add_shown(c);
	if (t && !shared_lock(&t->lock, 0)) {
		*ret = (struct quota_sums){{0}, {0}};
		return QUOTA_LOCKED;
	}
	answer = look(t, c, now_ns, ret);
	if (t)
		shared_unlock(&t->lock);
	return answer;
}

/* --- holding --- */

/* A free slot, or that of the oldest settled one; an owner has so many, not more. */
static struct entry *claim(struct quotas *t, uint64_t key)
{
	struct entry *room = NULL, *oldest = NULL;
	size_t own = 0;

	assert(t);
	for (size_t i = 0; i < QUOTA_SLOTS; i++) {
		struct entry *e = &t->entries[i];
		uint32_t state = atomic_load(&e->state);

		if (state == FREE) {
			room = room ? room : e;
			continue;
		}
		own += e->key == key && state != SETTLED;
		if (state == SETTLED &&
		    (!oldest || atomic_load(&e->changed_ns) < atomic_load(&oldest->changed_ns)))
			oldest = e;
	}
	if (own >= QUOTA_OWN_SLOTS)
		return NULL;
	if (!room && oldest)
		drop(t, oldest);
	return room ? room : oldest;
}

/* Whether something else of its id is under way; mark: what is, is contested from now on. */
static bool contest(struct quotas *t, const struct entry *by, bool mark)
{
	bool found = false;

	for (size_t i = 0; i < QUOTA_SLOTS; i++) {
		struct entry *e = &t->entries[i];
		uint32_t state = atomic_load(&e->state);

		if (state == FREE || state == SETTLED || e == by || e->key != by->key ||
		    !hash_eq(&e->thing.id, &by->thing.id))
			continue;
		if (mark)
			atomic_store(&e->contested, true);
		found = true;
	}
	return found;
}

static bool hold(struct quotas *t, const struct quota_count *c, uint64_t now_ns,
		 struct quota_hold *ret)
{
	for (size_t i = 0; i < c->asked_count; i++) {
		struct entry *e = claim(t, c->key);

		if (!e)
			return false;
		e->key = c->key;
		e->serial = ++t->serial;
		e->granted_ns = now_ns;
		e->thing = c->asked[i];
		atomic_store(&e->changed_ns, 0);
		atomic_store(&e->contested, contest(t, e, false));
		atomic_store(&e->pid, (int32_t)getpid());
		atomic_store(&e->state, HELD);
		ret->slot[ret->count] = (uint32_t)(e - t->entries);
		ret->serial[ret->count++] = e->serial;
	}
	return true;
}

enum quota_answer quotas_take(struct quotas *t, const struct quota_count *c, uint64_t now_ns,
			      bool force, struct quota_hold *ret)
{
	struct quota_sums sums;
	enum quota_answer answer;

	assert(t);
	ret->count = 0;
	if (c->asked_count > QUOTA_ASKS_MAX)
		return QUOTA_BUSY;
	add_shown(c);
	if (!shared_lock(&t->lock, 0))
		return QUOTA_LOCKED;
	answer = look(t, c, now_ns, &sums);
	if (force && (answer == QUOTA_OVER || answer == QUOTA_AGAIN))
		answer = QUOTA_FITS;
	if (answer == QUOTA_FITS && !hold(t, c, now_ns, ret)) {
		quotas_release(t, ret);
		answer = QUOTA_BUSY;
	}
	shared_unlock(&t->lock);
	return answer;
}

/* Its entry i, if it is in one of two states, else NULL. */
static struct entry *held(struct quotas *t, const struct quota_hold *h, size_t i)
{
	struct entry *e = &t->entries[h->slot[i]];
	uint32_t state = atomic_load(&e->state);

	return e->serial == h->serial[i] && (state == HELD || state == SENT) ? e : NULL;
}

static void move(struct quotas *t, const struct quota_hold *h, enum state to, uint64_t now_ns)
{
	for (size_t i = 0; i < h->count; i++) {
		struct entry *e = held(t, h, i);

		if (!e)
			continue;
		atomic_store(&e->changed_ns, now_ns);
		atomic_store(&e->state, to);
	}
}

void quotas_release(struct quotas *t, struct quota_hold *h)
{
	move(t, h, FREE, 0);
	h->count = 0;
}

/* What was held and never sent has contested nothing. */
void quotas_sent(struct quotas *t, const struct quota_hold *h)
{
	for (size_t i = 0; i < h->count; i++)
		if (held(t, h, i))
			contest(t, held(t, h, i), true);
	move(t, h, SENT, 0);
}

void quotas_settle(struct quotas *t, struct quota_hold *h, uint64_t now_ns)
{
	move(t, h, SETTLED, now_ns);
	h->count = 0;
}

void quotas_unsure(struct quotas *t, struct quota_hold *h, uint64_t now_ns)
{
	move(t, h, UNSURE, now_ns);
	h->count = 0;
}

bool quotas_doubts(struct quotas *t, uint64_t key, struct hash ret[QUOTA_LOOK_MAX],
		   size_t *ret_count)
{
	size_t n = 0;

	if (!shared_lock(&t->lock, 0))
		return false;
	for (size_t i = 0; i < QUOTA_SLOTS && n < QUOTA_LOOK_MAX; i++)
		if (atomic_load(&t->entries[i].state) == UNSURE && t->entries[i].key == key &&
		    t->entries[i].thing.takes[QUOTA_CONTAINERS])
			ret[n++] = t->entries[i].thing.id;
	shared_unlock(&t->lock);
	*ret_count = n;
	return true;
}

void quotas_died(struct quotas *t, pid_t pid, uint64_t now_ns)
{
	int32_t dead = (int32_t)pid;

	for (size_t i = 0; i < QUOTA_SLOTS; i++) {
		struct entry *e = &t->entries[i];
		uint32_t was_held = HELD, was_sent = SENT;

		if (atomic_load(&e->pid) != dead)
			continue;
		if (atomic_load(&e->state) == SENT)
			atomic_store(&e->changed_ns, now_ns);
		if (!atomic_compare_exchange_strong(&e->state, &was_held, FREE))
			atomic_compare_exchange_strong(&e->state, &was_sent, UNSURE);
	}
	shared_lock_died(&t->lock, pid);
	shared_lock_died(&t->uses.lock, pid);
}

void quotas_write(struct quotas *t, struct buf *out)
{
	static const char *const names[] = {[HELD] = "held", [SENT] = "sent", [UNSURE] = "unsure"};
	unsigned n[SETTLED + 1] = {0};

	for (size_t i = 0; i < QUOTA_SLOTS; i++)
		n[atomic_load(&t->entries[i].state) % (SETTLED + 1)]++;
	buf_puts(out, "# HELP sallyport_quota_under_way What counts against quotas and the engine "
		      "does not show yet: let pass, being done, not known whether it was done.\n"
		      "# TYPE sallyport_quota_under_way gauge\n");
	for (uint32_t state = HELD; state <= UNSURE; state++)
		buf_printf(out, "sallyport_quota_under_way{state=\"%s\"} %u\n", names[state],
			   n[state]);
}
