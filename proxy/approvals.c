#include "proxy/approvals.h"

#include "gate/base/shared.h"

#include <stdatomic.h>
#include <string.h>

#define OPERATOR_MS 100 /* that whoever serves no callers waits for the lock */
#define LAST_MS     2   /* that a worker does where it does not come again */

/*
 * What is said, and by how many, is one word, written after all that belongs to it: a process that
 * dies before has said nothing.
 */
struct slot {
	_Atomic uint32_t standing; /* enum approval_state, and four times how many have said it */
	struct hash key, caller;
	struct approval_row row; /* its state and said are not used */
	_Atomic uint32_t facts_len;
	char facts[APPROVALS_FACTS_MAX];
};

struct approvals {
	struct shared_lock lock;
	_Atomic uint64_t serial;
	struct slot slots[APPROVALS_MAX];
};

struct approvals *approvals_create(struct err *err)
{
	return shared_create(sizeof(struct approvals), -1, "the table of approvals", err);
}

void approvals_died(struct approvals *t, pid_t pid)
{
	shared_lock_died(&t->lock, pid);
}

/* --- entries --- */

static void stand(struct slot *s, enum approval_state state, uint32_t said)
{
	atomic_store(&s->standing, (uint32_t)state | said << 2);
}

static enum approval_state stands(const struct slot *s)
{
	return (enum approval_state)(atomic_load(&s->standing) & 3);
}

static uint32_t said(const struct slot *s)
{
	return atomic_load(&s->standing) >> 2;
}

static void end(struct slot *s)
{
	stand(s, APPROVAL_GONE, 0);
}

static enum approval_state state_of(struct slot *s, uint64_t now_ms)
{
	enum approval_state state = stands(s);

	if (state != APPROVAL_GONE && now_ms >= s->row.until_ms) {
		end(s);
		return APPROVAL_GONE;
	}
	if (state == APPROVAL_GRANTED && !s->row.times)
		return APPROVAL_GONE;
	return state;
}

static struct slot *find(struct approvals *t, const struct hash *key, uint64_t now_ms)
{
	for (size_t i = 0; i < APPROVALS_MAX; i++)
		if (state_of(&t->slots[i], now_ms) != APPROVAL_GONE &&
		    hash_eq(&t->slots[i].key, key))
			return &t->slots[i];
	return NULL;
}

static struct slot *find_id(struct approvals *t, const char *id, uint64_t now_ms)
{
	for (size_t i = 0; i < APPROVALS_MAX; i++)
		if (state_of(&t->slots[i], now_ms) != APPROVAL_GONE &&
		    strncmp(t->slots[i].row.what.id, id, sizeof(t->slots[i].row.what.id)) == 0)
			return &t->slots[i];
	return NULL;
}

/* A used grant may come back, so its place is taken last. */
static struct slot *find_room(struct approvals *t, const struct hash *caller, uint64_t now_ms)
{
	size_t own = 0, empty = APPROVALS_MAX, used = APPROVALS_MAX;

	for (size_t i = 0; i < APPROVALS_MAX; i++) {
		struct slot *s = &t->slots[i];

		if (state_of(s, now_ms) != APPROVAL_GONE)
			own += hash_eq(&s->caller, caller);
		else if (stands(s) == APPROVAL_GONE)
			empty = i;
		else
			used = i;
	}
	if (empty == APPROVALS_MAX)
		empty = used;
	return empty < APPROVALS_MAX && own < APPROVALS_OWN_MAX ? &t->slots[empty] : NULL;
}

static struct slot *slot_of(struct approvals *t, const struct approval_ref *ref)
{
	struct slot *s = &t->slots[ref->slot % APPROVALS_MAX];

	return ref->serial && s->row.serial == ref->serial && stands(s) != APPROVAL_GONE ? s : NULL;
}

static void refer(const struct approvals *t, const struct slot *s, struct approval_ref *ret)
{
	*ret = (struct approval_ref){(uint32_t)(s - t->slots), s->row.serial};
}

#define END(text) (text)[sizeof(text) - 1] = '\0'

/* Whoever wrote it, what is read ends within its field. */
static void copy_row(const struct slot *s, enum approval_state state, struct approval_row *ret)
{
	struct approval_text *t = &ret->what;

	*ret = s->row;
	ret->state = state;
	ret->said = said(s) < APPROVALS_BY_MAX ? said(s) : APPROVALS_BY_MAX;
	END(t->id);
	END(t->op);
	END(t->object);
	END(t->image);
	END(t->identity);
	END(t->owner);
	END(t->listener);
	END(t->backend);
	END(t->profile);
	END(t->rule);
	END(t->text);
}

static void fill(struct approvals *t, struct slot *s, const struct approval_question *q,
		 uint64_t now_ms)
{
	bool fits = q->facts.len <= APPROVALS_FACTS_MAX;

	end(s);
	s->key = q->key;
	s->caller = q->caller;
	s->row = (struct approval_row){
		.what = q->what,
		.has_uid = q->has_uid,
		.uid = q->uid,
		.need = q->need < APPROVALS_BY_MAX ? q->need : APPROVALS_BY_MAX,
		.serial = atomic_fetch_add(&t->serial, 1) + 1,
		.asked_ms = now_ms,
		.until_ms = now_ms + APPROVALS_OPEN_MS,
	};
	memcpy(s->facts, q->facts.at, fits ? q->facts.len : 0);
	atomic_store(&s->facts_len, fits ? (uint32_t)q->facts.len : 0);
	stand(s, APPROVAL_OPEN, 0);
}

/* --- workers --- */

enum approval_asked approvals_ask(struct approvals *t, const struct approval_question *q,
				  uint64_t now_ms, struct approval_ref *ret,
				  struct approval_row *ret_row)
{
	enum approval_asked how = ASKED_FULL;
	struct slot *s;

	*ret = (struct approval_ref){0};
	if (!shared_lock(&t->lock, 0))
		return ASKED_LOCKED;
	s = find(t, &q->key, now_ms);
	if (!s) {
		s = find_room(t, &q->caller, now_ms);
		if (s)
			fill(t, s, q, now_ms);
	}
	if (s)
		copy_row(s, state_of(s, now_ms), ret_row);
	if (s && state_of(s, now_ms) == APPROVAL_DENIED) {
		how = ASKED_DENIED;
	} else if (s) {
		s->row.waiting++;
		refer(t, s, ret);
		how = ASKED_OPEN;
	}
	shared_unlock(&t->lock);
	return how;
}

enum approval_state approvals_look(struct approvals *t, const struct approval_ref *ref,
				   uint64_t now_ms, struct approval_row *ret)
{
	enum approval_state state = APPROVAL_GONE;
	struct slot *s;

	if (!shared_lock(&t->lock, 0))
		return APPROVAL_OPEN; /* looked at again soon */
	s = slot_of(t, ref);
	if (s) {
		state = state_of(s, now_ms);
		copy_row(s, state, ret);
	}
	shared_unlock(&t->lock);
	return state;
}

void approvals_leave(struct approvals *t, struct approval_ref *ref, bool withdrawn)
{
	struct slot *s;

	if (!ref->serial || !shared_lock(&t->lock, LAST_MS))
		return;
	s = slot_of(t, ref);
	if (s && s->row.waiting)
		s->row.waiting--;
	if (s && withdrawn && !s->row.waiting && stands(s) == APPROVAL_OPEN)
		end(s);
	*ref = (struct approval_ref){0};
	shared_unlock(&t->lock);
}

bool approvals_take(struct approvals *t, const struct hash *key, uint64_t now_ms,
		    struct approval_ref *ret, struct approval_row *ret_row)
{
	struct slot *s;
	bool done = false;

	if (!shared_lock(&t->lock, 0))
		return false;
	s = find(t, key, now_ms);
	if (s && state_of(s, now_ms) == APPROVAL_GRANTED) {
		s->row.times--;
		refer(t, s, ret);
		copy_row(s, APPROVAL_GRANTED, ret_row);
		done = true;
	}
	shared_unlock(&t->lock);
	return done;
}

void approvals_give_back(struct approvals *t, const struct approval_ref *ref)
{
	struct slot *s;

	if (!ref->serial || !shared_lock(&t->lock, LAST_MS))
		return;
	s = slot_of(t, ref);
	if (s && stands(s) == APPROVAL_GRANTED && s->row.times < APPROVALS_TIMES_MAX)
		s->row.times++;
	shared_unlock(&t->lock);
}

/* --- operators --- */

static bool has_said(const struct slot *s, uint32_t uid)
{
	for (size_t i = 0; i < said(s) && i < APPROVALS_BY_MAX; i++)
		if (s->row.by[i] == uid)
			return true;
	return false;
}

/* A no, or the last yes: of all answers the shortest and rarest holds. */
static void conclude(struct slot *s, const struct approval_answer *a, uint64_t now_ms)
{
	uint64_t until = now_ms + a->for_ms;
	uint32_t before = said(s);

	s->row.by[before % APPROVALS_BY_MAX] = a->uid;
	if (!a->allow) {
		s->row.until_ms = until;
		stand(s, APPROVAL_DENIED, before + 1);
		return;
	}
	if (before == 0 || a->times < s->row.times)
		s->row.times = a->times;
	if (before == 0 || until < s->row.until_ms)
		s->row.until_ms = until;
	stand(s, before + 1 >= s->row.need ? APPROVAL_GRANTED : APPROVAL_OPEN, before + 1);
}

static enum approval_said judge(const struct slot *s, const struct approval_answer *a)
{
	if (!s || stands(s) != APPROVAL_OPEN || said(s) >= APPROVALS_BY_MAX)
		return SAID_MISSING;
	if (s->row.has_uid && s->row.uid == a->uid)
		return SAID_OWN;
	if (a->allow && has_said(s, a->uid))
		return SAID_TWICE;
	return a->allow && said(s) + 1 < s->row.need ? SAID_MORE : SAID_DONE;
}

enum approval_said approvals_say(struct approvals *t, const struct approval_answer *a,
				 bool only_try, uint64_t now_ms)
{
	enum approval_said how;
	struct slot *s;

	if (!shared_lock(&t->lock, OPERATOR_MS))
		return SAID_BUSY;
	s = find_id(t, a->id, now_ms);
	how = judge(s, a);
	if (!only_try && (how == SAID_MORE || how == SAID_DONE))
		conclude(s, a, now_ms);
	shared_unlock(&t->lock);
	return how;
}

/* qsort() may ask the system how much memory there is, which not every process may. */
static void sort_by_age(struct approval_row *rows, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct approval_row one = rows[i];
		size_t at = i;

		for (; at && rows[at - 1].serial > one.serial; at--)
			rows[at] = rows[at - 1];
		rows[at] = one;
	}
}

size_t approvals_list(struct approvals *t, uint64_t now_ms, struct approval_row *rows,
		      uint64_t *ret_serial)
{
	size_t n = 0;

	*ret_serial = 0;
	if (!shared_lock(&t->lock, OPERATOR_MS))
		return 0;
	for (size_t i = 0; i < APPROVALS_MAX; i++) {
		enum approval_state state = state_of(&t->slots[i], now_ms);

		if (state != APPROVAL_GONE)
			copy_row(&t->slots[i], state, &rows[n++]);
	}
	*ret_serial = atomic_load(&t->serial);
	shared_unlock(&t->lock);
	sort_by_age(rows, n);
	return n;
}

bool approvals_show(struct approvals *t, const char *id, uint64_t now_ms, struct approval_row *ret,
		    struct buf *facts)
{
	struct slot *s;

	if (!shared_lock(&t->lock, OPERATOR_MS))
		return false;
	s = find_id(t, id, now_ms);
	if (s) {
		uint32_t len = atomic_load(&s->facts_len); /* others could write it meanwhile */

		copy_row(s, state_of(s, now_ms), ret);
		if (len <= APPROVALS_FACTS_MAX)
			buf_put(facts, s->facts, len);
	}
	shared_unlock(&t->lock);
	return s != NULL;
}

uint64_t approvals_serial(struct approvals *t)
{
	return atomic_load(&t->serial);
}

void approvals_write(struct approvals *t, uint64_t now_ms, struct buf *out)
{
	size_t open = 0, granted = 0;

	if (!shared_lock(&t->lock, LAST_MS))
		return;
	for (size_t i = 0; i < APPROVALS_MAX; i++) {
		enum approval_state state = state_of(&t->slots[i], now_ms);

		open += state == APPROVAL_OPEN;
		granted += state == APPROVAL_GRANTED;
	}
	shared_unlock(&t->lock);
	buf_printf(out,
		   "# HELP sallyport_approvals Questions to operators that are open, and answers "
		   "that let something pass.\n"
		   "# TYPE sallyport_approvals gauge\n"
		   "sallyport_approvals{state=\"open\"} %zu\n"
		   "sallyport_approvals{state=\"granted\"} %zu\n",
		   open, granted);
}
