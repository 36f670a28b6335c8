#include "proxy/rates.h"

#include "gate/base/hash.h"
#include "gate/base/shared.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define TRIES  8
#define PROBES 32 /* slots that a key may stand in */
#define IDLE_NS                                                                                    \
	(UINT64_C(60) * 1000000000) /* a slot is another's this long after it is full again */

struct slot {
	_Atomic uint64_t key;  /* 0: free */
	_Atomic uint64_t next; /* when the next request would come, at its pace */
};

struct rates {
	struct slot slots[RATES_SLOTS];
};

struct rates *rates_create(struct err *err)
{
	return shared_create(sizeof(struct rates), -1, "the table of rates", err);
}

/* Callers without a name are told apart by their user. */
static uint64_t key_of(const struct identity *who, const struct rate *rate)
{
	char text[512];
	struct hash hash;
	int len = snprintf(text, sizeof(text), "%s\n%s\n%lld\n%s\n%s", who->name, who->owner,
			   !*who->name && who->has_cred ? (long long)who->uid : -1, who->profile,
			   rate->word);

	hash = hash_of(
		(struct span){text, (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1});
	return hash_number(&hash) ? hash_number(&hash) : 1;
}

static struct slot *find(struct rates *t, uint64_t key)
{
	for (size_t i = 0; i < PROBES; i++) {
		struct slot *s = &t->slots[(key + i) % RATES_SLOTS];

		if (atomic_load(&s->key) == key)
			return s;
	}
	return NULL;
}

/*
 * A free slot, or one whose caller has not asked for long.  Two workers may take
 * two slots for one key at the same time: both then look again, and the first
 * slot in the order of find() counts.
 */
static struct slot *claim(struct rates *t, uint64_t key, uint64_t now_ns)
{
	for (size_t i = 0; i < PROBES; i++) {
		struct slot *s = &t->slots[(key + i) % RATES_SLOTS];
		uint64_t old = atomic_load(&s->key);

		if (old == key)
			return s;
		if (old && atomic_load(&s->next) + IDLE_NS > now_ns)
			continue;
		if (atomic_compare_exchange_strong(&s->key, &old, key) || old == key)
			return find(t, key);
	}
	return NULL;
}

static bool advance(struct slot *s, const struct rate *rate, uint64_t now_ns, uint64_t *ret_wait_ns)
{
	uint64_t each = rate->period_ns / rate->count, next = atomic_load(&s->next);

	for (;;) {
		uint64_t from = next > now_ns ? next : now_ns;

		/* All of a period's may come at once: it may be ahead by a period, less one. */
		if (from - now_ns > rate->period_ns - each) {
			*ret_wait_ns = from - now_ns - (rate->period_ns - each);
			return false;
		}
		if (atomic_compare_exchange_weak(&s->next, &next, from + each))
			return true;
	}
}

bool rates_take(struct rates *t, const struct identity *who, const struct rate *rate,
		uint64_t now_ns, uint64_t *ret_wait_ns)
{
	uint64_t key = key_of(who, rate);

	*ret_wait_ns = rate->period_ns;
	for (int tries = 0; tries < TRIES; tries++) {
		struct slot *s = find(t, key);

		if (!s)
			s = claim(t, key, now_ns);
		if (!s || !advance(s, rate, now_ns, ret_wait_ns))
			return false;
		if (atomic_load(&s->key) == key)
			return true;
		/* It became another's meanwhile, after a long pause of this one. */
		atomic_fetch_sub(&s->next, rate->period_ns / rate->count);
	}
	return false;
}

void rates_give_back(struct rates *t, const struct identity *who, const struct rate *rate)
{
	struct slot *s = find(t, key_of(who, rate));

	if (s)
		atomic_fetch_sub(&s->next, rate->period_ns / rate->count);
}
