#include "proxy/suppressed.h"

#include "gate/base/hash.h"
#include "gate/base/shared.h"
#include "gate/base/uuid.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROBES     32 /* slots that a key may stand in */
#define COUNT_BITS 40
#define COUNT_MAX  ((UINT64_C(1) << COUNT_BITS) - 1)

/*
 * FILLING: a window that is being begun, by the process whose number is in the place of the
 * count.  OPEN: it is counted in.  CLOSED: nothing of it changes any more.
 */
enum state { FREE = 0, FILLING, OPEN, CLOSED };

/* The fields below belong to who fills the slot, and are read by others behind that. */
struct slot {
	_Atomic uint64_t word; /* how often it was begun, enum state, count */
	_Atomic uint64_t key, until_ns, again_ns;
	_Atomic uint64_t first_ns, last_ns;
	struct suppressed_sum what;
};

struct suppressed {
	struct slot slots[SUPPRESSED_SLOTS];
};

struct suppressed *suppressed_create(struct err *err)
{
	return shared_create(sizeof(struct suppressed), -1, "the table of what is only counted",
			     err);
}

static enum state state_of(uint64_t word)
{
	return (enum state)(word >> COUNT_BITS & 3);
}

static uint64_t count_of(uint64_t word)
{
	return word & COUNT_MAX;
}

/* The same turn of the slot, in another state. */
static uint64_t word_in(uint64_t word, enum state state, uint64_t count)
{
	uint64_t turn = word >> (COUNT_BITS + 2);

	return turn << (COUNT_BITS + 2) | (uint64_t)state << COUNT_BITS | count;
}

static uint64_t next_turn(uint64_t word)
{
	return word_in(word + (UINT64_C(1) << (COUNT_BITS + 2)), FREE, 0);
}

static bool move(struct slot *s, uint64_t from, uint64_t to)
{
	return atomic_compare_exchange_strong(&s->word, &from, to);
}

/* Callers without a name are told apart by their user. */
static uint64_t key_of(const struct identity *who, const char *op_class)
{
	char text[1024];
	struct hash hash;
	int len = snprintf(text, sizeof(text), "%s\n%s\n%lld\n%s\n%s\n%s", who->name, who->owner,
			   !*who->name && who->has_cred ? (long long)who->uid : -1, who->profile,
			   who->listener, op_class);

	hash = hash_of(
		(struct span){text, (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1});
	return hash_number(&hash);
}

static bool add_one(struct slot *s, uint64_t word, const struct suppressed_time *now,
		    char ret_id[SUPPRESSED_ID])
{
	if (count_of(word) == COUNT_MAX)
		return false;
	if (!count_of(word))
		atomic_store(&s->first_ns, now->unix_ns);
	atomic_store(&s->last_ns, now->unix_ns);
	snprintf(ret_id, SUPPRESSED_ID, "%.*s", SUPPRESSED_ID - 1, s->what.id);
	return move(s, word, word + 1);
}

static bool is_over(const struct slot *s, uint64_t boot_ns)
{
	return atomic_load(&s->until_ns) <= boot_ns;
}

/* A window that is over: what is in it is a sum now; with nothing in it the slot is free. */
static uint64_t close_window(struct slot *s, uint64_t word)
{
	uint64_t to = count_of(word) ? word_in(word, CLOSED, count_of(word)) : next_turn(word);

	return move(s, word, to) ? to : atomic_load(&s->word);
}

static void begin_window(struct slot *s, uint64_t key, const struct identity *who,
			 const char *op_class, const struct suppressed_time *now)
{
	uint64_t free_word = atomic_load(&s->word);
	uint64_t filling = word_in(free_word, FILLING, (uint64_t)getpid());

	if (state_of(free_word) != FREE || !move(s, free_word, filling))
		return; /* another has it: its window is as good, or the next one's */
	uuid_make(s->what.id);
	snprintf(s->what.identity, sizeof(s->what.identity), "%s", who->name);
	snprintf(s->what.owner, sizeof(s->what.owner), "%s", who->owner);
	snprintf(s->what.profile, sizeof(s->what.profile), "%s", who->profile);
	snprintf(s->what.listener, sizeof(s->what.listener), "%s", who->listener);
	snprintf(s->what.op_class, sizeof(s->what.op_class), "%s", op_class);
	atomic_store(&s->key, key);
	atomic_store(&s->again_ns, 0);
	atomic_store(&s->until_ns, now->boot_ns + SUPPRESSED_WINDOW_NS);
	move(s, filling, word_in(filling, OPEN, 0));
}

bool suppressed_count(struct suppressed *t, const struct identity *who, const char *op_class,
		      const struct suppressed_time *now, char ret_id[SUPPRESSED_ID])
{
	uint64_t key = key_of(who, op_class);
	struct slot *room = NULL;

	for (size_t i = 0; i < PROBES; i++) {
		struct slot *s = &t->slots[(key + i) % SUPPRESSED_SLOTS];
		uint64_t word = atomic_load(&s->word);

		if (state_of(word) == OPEN && is_over(s, now->boot_ns))
			word = close_window(s, word);
		/* Others count in it as well; once it is closed nobody does. */
		while (state_of(word) == OPEN && atomic_load(&s->key) == key &&
		       !is_over(s, now->boot_ns) && count_of(word) < COUNT_MAX) {
			if (add_one(s, word, now, ret_id))
				return true;
			word = atomic_load(&s->word);
		}
		if (state_of(word) == FREE && !room)
			room = s;
	}
	if (room)
		begin_window(room, key, who, op_class, now);
	return false;
}

/* False: it is not to be told, or not by us. */
static bool take_sum(struct slot *s, uint64_t boot_ns, bool all, struct suppressed_sum *ret)
{
	uint64_t word = atomic_load(&s->word), again = atomic_load(&s->again_ns);

	while (state_of(word) == OPEN && (all || is_over(s, boot_ns)))
		word = close_window(s, word);
	if (state_of(word) != CLOSED || (again > boot_ns && !all) ||
	    !atomic_compare_exchange_strong(&s->again_ns, &again, boot_ns + SUPPRESSED_AGAIN_NS))
		return false;
	*ret = s->what;
	ret->ref.word = word;
	ret->count = count_of(word);
	ret->first_ns = atomic_load(&s->first_ns);
	ret->last_ns = atomic_load(&s->last_ns);
	if (ret->last_ns < ret->first_ns)
		ret->last_ns = ret->first_ns;
	return atomic_load(&s->word) == word;
}

/* Another worker may have been taken over: what it left here ends all the same. */
static void end_texts(struct suppressed_sum *sum)
{
	sum->id[sizeof(sum->id) - 1] = '\0';
	sum->identity[sizeof(sum->identity) - 1] = '\0';
	sum->owner[sizeof(sum->owner) - 1] = '\0';
	sum->profile[sizeof(sum->profile) - 1] = '\0';
	sum->listener[sizeof(sum->listener) - 1] = '\0';
	sum->op_class[sizeof(sum->op_class) - 1] = '\0';
}

bool suppressed_next(struct suppressed *t, uint64_t boot_ns, bool all, size_t *at,
		     struct suppressed_sum *ret)
{
	while (*at < SUPPRESSED_SLOTS) {
		size_t i = (*at)++;

		if (!take_sum(&t->slots[i], boot_ns, all, ret))
			continue;
		ret->ref.slot = (uint32_t)i;
		end_texts(ret);
		return true;
	}
	return false;
}

bool suppressed_told(struct suppressed *t, const struct suppressed_ref *ref)
{
	return move(&t->slots[ref->slot], ref->word, next_turn(ref->word));
}

void suppressed_untold(struct suppressed *t, const struct suppressed_ref *ref)
{
	struct slot *s = &t->slots[ref->slot];

	if (atomic_load(&s->word) == ref->word)
		atomic_store(&s->again_ns, 0);
}

/* The window that it was about to begin had nothing in it. */
void suppressed_died(struct suppressed *t, pid_t pid)
{
	for (size_t i = 0; i < SUPPRESSED_SLOTS; i++) {
		uint64_t word = atomic_load(&t->slots[i].word);

		if (state_of(word) == FILLING && count_of(word) == (uint64_t)pid)
			(void)move(&t->slots[i], word, next_turn(word));
	}
}
