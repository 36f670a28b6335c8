/*
 * An exchange and its caller's quota: counted by the adapter, looked at with what
 * others were let pass meanwhile (quotas.h), judged by rules, and held until
 * the service shows it.
 *
 *	quota_counts   step() is ready: count
 *	quota_look     the sums are facts; what others have overtaken is counted anew
 *	(rules judge)
 *	quota_take     what rules allowed is held, if it still fits; else counted anew
 *	quota_sent, quota_answered, quota_let_go
 */
#include "proxy/quotas.h"

#include "gate/base/clock.h"
#include "proxy/worker_priv.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define ROUNDS_MAX 8  /* counts of one exchange */
#define NAMES_MAX  8  /* of what the caller has, in facts */
#define STEPS      16 /* of the adapter, in one count */

struct quota_state {
	bool counting;
	int steps;
	unsigned kinds; /* bits 1 << enum quota: those that the profile limits and this concerns */
	uint64_t key, since_ns;
	struct quota_thing *shown;
	size_t shown_count;
	struct quota_thing asked[QUOTA_ASKS_MAX];
	size_t asked_count;
	size_t early; /* of these, the first so many are not held: nothing of it runs yet */
	bool over;    /* it does not fit; rules say whether it passes all the same */
	struct quota_hold hold;
	struct quota_use use;      /* as it was counted */
	int64_t more[QUOTA_COUNT]; /* that it would be, once what is asked for has been done */
	struct jv facts;
};

static unsigned wanted(unsigned kinds)
{
	static const unsigned of[QUOTA_OF_COUNT] = {
		[QUOTA_OF_RUNNING] = COUNT_RUNNING,
		[QUOTA_OF_VOLUMES] = COUNT_VOLUMES,
		[QUOTA_OF_VOLUME_SPACE] = COUNT_VOLUME_SPACE,
		[QUOTA_OF_IMAGE_SPACE] = COUNT_IMAGE_SPACE,
	};
	unsigned wants = 0;

	for (int q = 0; q < QUOTA_COUNT; q++)
		if (kinds & 1u << q)
			wants |= of[quota_of((enum quota)q)];
	if (kinds & (1u << QUOTA_MEMORY | 1u << QUOTA_CPUS | 1u << QUOTA_PIDS))
		wants |= COUNT_LIMITS;
	return wants;
}

/* Of somebody else's container nothing is the caller's. */
static bool is_anothers(const struct exchange *x)
{
	bool exists = x->call.op == OP_CONTAINER_START || x->call.op == OP_CONTAINER_RESTART ||
		      x->call.op == OP_CONTAINER_UPDATE;

	/* What replaces somebody else's belongs to that one. */
	if (x->call.op == OP_CONTAINER_CREATE && x->call.replaces.kind == JV_OBJECT)
		return strcmp(jv_str(&x->call.replaces, "owner", ""), x->call.owner) != 0;
	return exists && !x->call.object.mine;
}

/* --- counting --- */

static void also_look_at(struct exchange *x, const char *id)
{
	struct counting *c = &x->call.counting;

	for (size_t i = 0; i < c->also_count; i++)
		if (!strcmp(c->also[i], id))
			return;
	if (c->also_count < COUNT_ALSO_MAX)
		c->also[c->also_count++] = id;
}

static void busy(struct exchange *x)
{
	x->permitted = false;
	exchange_refuse(x, REASON_busy, "quota", "what is being started cannot be counted now");
}

/* Another process has the table, for a moment. */
static void once_more(struct exchange *x, void (*again)(struct exchange *x))
{
	x->permitted = false;
	if (!tables_wait(x, again))
		busy(x);
}

static void begin(struct exchange *x)
{
	struct quota_state *q = x->quota;
	struct quotas *table = x->worker->conf->quotas;
	struct hash doubts[QUOTA_LOOK_MAX];
	char hex[HASH_HEX_LEN + 1];
	size_t n = 0;

	if (table && !quotas_doubts(table, q->key, doubts, &n)) {
		once_more(x, begin);
		return;
	}
	x->call.counting = (struct counting){.wants = wanted(q->kinds)};
	if (!strcmp(x->call.object.kind ? x->call.object.kind : "", "container") &&
	    (x->call.counting.wants & COUNT_RUNNING))
		also_look_at(x, x->call.object.id);
	for (size_t i = 0; i < n; i++) {
		const char *id;

		hash_hex(&doubts[i], hex);
		id = arena_strndup(x->arena, hex, HASH_HEX_LEN);
		if (id)
			also_look_at(x, id);
	}
	q->steps = 0;
	x->quota_rounds++;
	q->counting = true;
	q->since_ns = clock_boot_ns();
	quota_go_on(x);
}

static bool is_offline(const struct exchange *x)
{
	return check_facts(x->worker) != NULL;
}

bool quota_counts(struct exchange *x)
{
	unsigned kinds = x->profile ? profile_counts(x->profile, x->call.op) : 0;

	if (!kinds || profile_grant(x->profile, x->call.op) != GRANT_JUDGE || is_anothers(x))
		return false;
	x->quota = arena_take(x->arena, sizeof(*x->quota));
	if (!x->quota) {
		exchange_refuse(x, REASON_no_memory, "", "");
		return true;
	}
	x->quota->kinds = kinds;
	x->quota->key = quota_key(x->service->conf->name, x->conn->who.owner);
	if (is_offline(x))
		return false;
	begin(x);
	return true;
}

bool quota_is_counting(const struct exchange *x)
{
	return x->quota && x->quota->counting;
}

void quota_go_on(struct exchange *x)
{
	struct quota_state *q = x->quota;

	switch (x->service->ops->count(x->service->backend, &x->call)) {
	case STEP_REFUSED:
		q->counting = false;
		exchange_deny(x);
		break;
	case STEP_LOOKUP:
		if (++q->steps > STEPS) {
			q->counting = false;
			exchange_refuse(x, REASON_internal, "", "the adapter counts without end");
			break;
		}
		x->state = X_LOOKUP;
		lookup_start(x);
		break;
	case STEP_READY:
		q->counting = false;
		exchange_judge_in_turn(x); /* others of its caller may have been judged meanwhile */
		break;
	}
}

/* --- what was counted, and what is asked for --- */

static int64_t limit_or_endless(int64_t limit)
{
	return limit > 0 ? limit : QUOTA_ENDLESS;
}

static void fill_container(struct quota_thing *t, int64_t memory, int64_t nano_cpus, int64_t pids)
{
	t->takes[QUOTA_CONTAINERS] = 1;
	t->takes[QUOTA_MEMORY] = limit_or_endless(memory);
	t->takes[QUOTA_CPUS] = limit_or_endless(nano_cpus);
	t->takes[QUOTA_PIDS] = limit_or_endless(pids);
}

static uint64_t hash_since(const char *since)
{
	const struct hash h = hash_of(span_of(since));

	return *since ? hash_number(&h) | 1 : 0;
}

/* Without limits in the count they are not part of any quota that is asked for. */
static struct quota_thing thing_of(const struct counted *one)
{
	struct quota_thing t = {.id = quota_id(one->kind, one->id),
				.runs = one->runs,
				.gone = one->gone,
				.since = hash_since(one->since)};

	if (!strcmp(one->kind, "volume"))
		t.takes[QUOTA_VOLUME_COUNT] = 1;
	else
		fill_container(&t, one->memory, one->nano_cpus, one->pids);
	return t;
}

static bool read_shown(struct exchange *x)
{
	const struct counting *c = &x->call.counting;
	struct quota_state *q = x->quota;

	q->shown = arena_take(x->arena, (c->count + 1) * sizeof(*q->shown));
	q->shown_count = 0;
	for (size_t i = 0; q->shown && i < c->count; i++)
		q->shown[q->shown_count++] = thing_of(&c->list[i]);
	return q->shown != NULL;
}

static struct quota_thing *ask_for(struct quota_state *q, struct hash id)
{
	assert(q->asked_count < QUOTA_ASKS_MAX);
	q->asked[q->asked_count] = (struct quota_thing){.id = id, .runs = true};
	return &q->asked[q->asked_count++];
}

/* As judged; for one that exists what the engine said last, should it have been changed since. */
static void ask_container(struct exchange *x)
{
	struct quota_state *q = x->quota;
	const struct jv *limits = jv_path(&x->call.workload.facts, "limits");
	bool exists = x->call.op != OP_CONTAINER_CREATE;
	struct quota_thing *t = ask_for(q, exists ? quota_id("container", x->call.object.id)
						  : quota_id("create", x->id));

	q->early = exists ? 0 : 1;
	t->runs = x->call.op != OP_CONTAINER_UPDATE;
	fill_container(t, jv_num(limits, "memory", 0), jv_num(limits, "nano_cpus", 0),
		       jv_num(limits, "pids", 0));
	for (size_t i = 0; exists && i < q->shown_count; i++) {
		const struct quota_thing *is = &q->shown[i];

		if (!hash_eq(&is->id, &t->id))
			continue;
		t->since = is->since;
		for (int k = 0; t->runs && k < QUOTA_COUNT; k++)
			if (t->takes[k] < is->takes[k])
				t->takes[k] = is->takes[k];
	}
}

/* Volumes that a create makes beside its container. */
static bool ask_volumes(struct exchange *x)
{
	const struct jv *mounts = jv_path(&x->call.workload.facts, "mounts");
	char name[80];

	for (size_t i = 0; mounts && mounts->kind == JV_ARRAY && i < mounts->count; i++) {
		const struct jv *m = &mounts->items[i];
		const char *source = jv_str(m, "source", "");

		if (strcmp(jv_str(m, "kind", ""), "volume") != 0 || jv_true(m, "exists"))
			continue;
		if (x->quota->asked_count == QUOTA_ASKS_MAX)
			return false;
		snprintf(name, sizeof(name), "%s %zu", x->id, i);
		ask_for(x->quota, *source ? quota_id("volume", source) : quota_id("unnamed", name))
			->takes[QUOTA_VOLUME_COUNT] = 1;
	}
	return true;
}

static bool read_asked(struct exchange *x)
{
	struct quota_state *q = x->quota;
	const char *name = x->call.object.name ? x->call.object.name : "";

	q->asked_count = q->early = 0;
	if (x->call.op == OP_VOLUME_CREATE)
		ask_for(q, *name ? quota_id("volume", name) : quota_id("unnamed", x->id))
			->takes[QUOTA_VOLUME_COUNT] = 1;
	else if (wanted(q->kinds) & (COUNT_RUNNING | COUNT_VOLUMES))
		ask_container(x);
	return x->call.op != OP_CONTAINER_CREATE || ask_volumes(x);
}

static struct quota_count count_of(const struct exchange *x, size_t skip)
{
	struct quota_state *q = x->quota;

	return (struct quota_count){
		.key = q->key,
		.since_ns = q->since_ns,
		.shown = q->shown,
		.shown_count = q->shown_count,
		.asked = q->asked + skip,
		.asked_count = q->asked_count - skip,
		.limits = profile_quota(x->profile),
		.last = x->quota_rounds >= ROUNDS_MAX,
	};
}

/* --- facts --- */

static struct jv amount(int64_t n)
{
	return jv_int(n == QUOTA_ENDLESS ? -1 : n);
}

/* "web (1073741824 bytes)": of what runs, for people. */
static struct jv names(struct exchange *x)
{
	const struct counting *c = &x->call.counting;
	struct jv list = jv_array();

	for (size_t i = 0; i < c->count && list.count < NAMES_MAX; i++)
		if (c->list[i].runs && *c->list[i].name)
			jv_push(x->arena, &list, jv_string(c->list[i].name));
	return list;
}

static void say(struct exchange *x, const struct quota_sums *sums)
{
	const struct counting *c = &x->call.counting;
	struct jv used = jv_object(), asked = jv_object();

	for (int k = 0; k < QUOTA_COUNT; k++) {
		enum quota q = (enum quota)k;
		int64_t size = q == QUOTA_VOLUMES ? c->volume_bytes : c->image_bytes;
		bool sized = q == QUOTA_VOLUMES || q == QUOTA_IMAGES;

		if (!(x->quota->kinds & 1u << k))
			continue;
		/* How large it will be, nobody knows: larger than nothing. */
		jv_set(x->arena, &asked, quota_fact(q), sized ? jv_int(1) : amount(sums->asked[k]));
		if (!sized)
			jv_set(x->arena, &used, quota_fact(q), amount(sums->used[k]));
		else if (size >= 0)
			jv_set(x->arena, &used, quota_fact(q), jv_int(size));
	}
	x->quota->facts = jv_object();
	jv_set(x->arena, &x->quota->facts, "used", used);
	jv_set(x->arena, &x->quota->facts, "asked", asked);
	jv_set(x->arena, &x->quota->facts, "by", names(x));
}

static void note_use(const struct exchange *x)
{
	struct quotas *table = x->worker->conf->quotas;

	if (table && *x->quota->use.owner)
		quota_uses_note(quotas_uses(table), &x->quota->use);
}

/* What an answer makes of it is seen when it is counted again: sizes, and what runs of what is
 * made. */
static bool is_later(const struct quota_state *q, enum quota kind)
{
	return kind == QUOTA_VOLUMES || kind == QUOTA_IMAGES ||
	       (q->early && quota_of(kind) == QUOTA_OF_RUNNING);
}

/* For people: status, metrics, doctor. */
static void keep_use(struct exchange *x, const struct quota_sums *sums)
{
	const struct counting *c = &x->call.counting;
	struct quota_use *use = &x->quota->use;

	*use = (struct quota_use){.backend =
					  (uint32_t)(x->service->conf - x->worker->conf->backends),
				  .known = x->quota->kinds,
				  .at = (int64_t)(clock_unix_ns() / 1000000000)};
	if (!quota_use_name(use, x->conn->who.owner, profile_name(x->profile)))
		return;
	for (int q = 0; q < QUOTA_COUNT; q++) {
		use->limits[q] = profile_quota(x->profile)[q];
		use->used[q] = q == QUOTA_VOLUMES  ? c->volume_bytes
			       : q == QUOTA_IMAGES ? c->image_bytes
						   : sums->used[q];
		x->quota->more[q] = is_later(x->quota, (enum quota)q) ? 0 : sums->asked[q];
		if (use->used[q] < 0) /* the engine does not say */
			use->known &= ~(1u << q);
	}
	note_use(x);
}

/* What a facts file gives as `counters` is what the owner has; what it does not is not known. */
static bool look_offline(struct exchange *x)
{
	const struct jv *counters = jv_get(check_facts(x->worker), "counters");
	struct jv used = jv_object();
	struct quota_sums sums;
	struct quota_count c;

	if (!read_asked(x)) {
		exchange_refuse(x, REASON_facts_too_large, "mounts", "");
		return false;
	}
	c = count_of(x, 0);
	x->quota->over = quotas_look(NULL, &c, 0, &sums) == QUOTA_OVER;
	say(x, &sums);
	for (int q = 0; q < QUOTA_COUNT; q++) {
		const char *fact = quota_fact((enum quota)q);
		const struct jv *n = jv_get(counters, fact);

		if ((x->quota->kinds & 1u << q) && n && n->kind == JV_INT)
			jv_set(x->arena, &used, fact, *n);
	}
	jv_set(x->arena, &x->quota->facts, "used", used);
	return true;
}

void quota_runs_already(struct exchange *x)
{
	unsigned kinds = x->profile ? profile_counts(x->profile, x->call.op) : 0;
	struct jv asked = jv_object();

	x->quota = kinds ? arena_take(x->arena, sizeof(*x->quota)) : NULL;
	for (int q = 0; x->quota && q < QUOTA_COUNT; q++)
		if (kinds & 1u << q)
			jv_set(x->arena, &asked, quota_fact((enum quota)q), jv_int(0));
	if (!x->quota)
		return;
	x->quota->facts = jv_object();
	jv_set(x->arena, &x->quota->facts, "asked", asked);
}

const struct jv *quota_facts(const struct exchange *x)
{
	return x->quota ? &x->quota->facts : NULL;
}

bool quota_look(struct exchange *x)
{
	struct quota_state *q = x->quota;
	struct quota_sums sums;
	struct quota_count c;
	enum quota_answer answer;

	if (!q)
		return true;
	if (is_offline(x))
		return look_offline(x);
	if (!read_shown(x)) {
		exchange_refuse(x, REASON_no_memory, "", "");
		return false;
	}
	if (!read_asked(x)) {
		exchange_refuse(x, REASON_facts_too_large, "mounts",
				"more volumes would be made than the gate counts at once");
		return false;
	}
	c = count_of(x, 0);
	answer = quotas_look(x->worker->conf->quotas, &c, clock_boot_ns(), &sums);
	switch (answer) {
	case QUOTA_FITS:
	case QUOTA_OVER:
		break;
	case QUOTA_AGAIN:
		begin(x);
		return false;
	case QUOTA_LOCKED:
		once_more(x, exchange_judge_in_turn);
		return false;
	case QUOTA_BUSY:
		busy(x);
		return false;
	}
	q->over = answer == QUOTA_OVER;
	say(x, &sums);
	keep_use(x, &sums);
	return true;
}

/* --- holding --- */

bool quota_take(struct exchange *x)
{
	struct quota_state *q = x->quota;
	struct quotas *table = x->worker->conf->quotas;
	struct quota_count c;

	if (!q || !table || q->asked_count <= q->early)
		return true;
	c = count_of(x, q->early);
	switch (quotas_take(table, &c, clock_boot_ns(), q->over, &q->hold)) {
	case QUOTA_FITS:
		return true;
	case QUOTA_AGAIN:
	case QUOTA_OVER: /* it did a moment ago: others have come between */
		x->permitted = false;
		if (c.last)
			busy(x);
		else
			begin(x);
		return false;
	case QUOTA_LOCKED:
		once_more(x, exchange_let_pass);
		return false;
	case QUOTA_BUSY:
		break;
	}
	busy(x);
	return false;
}

void quota_sent(struct exchange *x)
{
	if (x->quota && x->quota->hold.count)
		quotas_sent(x->worker->conf->quotas, &x->quota->hold);
}

void quota_answered(struct exchange *x, int http)
{
	struct quota_state *q = x->quota;

	if (!q || !q->hold.count)
		return;
	quotas_settle(x->worker->conf->quotas, &q->hold, clock_boot_ns());
	if (http >= 300)
		return;
	for (int k = 0; k < QUOTA_COUNT; k++)
		q->use.used[k] = quota_plus(q->use.used[k], q->more[k]);
	q->use.at = (int64_t)(clock_unix_ns() / 1000000000);
	note_use(x);
}

void quota_let_go(struct exchange *x)
{
	struct quota_state *q = x->quota;

	if (!q || !q->hold.count)
		return;
	if (x->forwarded)
		quotas_unsure(x->worker->conf->quotas, &q->hold, clock_boot_ns());
	else
		quotas_release(x->worker->conf->quotas, &q->hold);
}
