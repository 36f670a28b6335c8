#include "proxy/watched.h"

#include "gate/base/clock.h"
#include "gate/base/hash.h"
#include "gate/base/shared.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GENERATION_BYTES 80
#define DECISION_BYTES   40

struct deed {
	_Atomic uint64_t ref; /* 0: none, or being written */
	_Atomic uint64_t ended_ms, at_ms;
	uint64_t noted_ns; /* by the clock of the day */
	_Atomic bool failed;
	_Atomic uint32_t used;
	_Atomic uint64_t used_by; /* a line */
	_Atomic int32_t pid;      /* of the worker that noted it; 0: the watcher did */
	bool many;
	uint8_t effect;
	uint16_t backend;
	char key[WATCHED_KEY], decision[DECISION_BYTES];
};

struct watched {
	char generation[GENERATION_BYTES]; /* of the last watcher; "" if there was none */
	_Atomic uint64_t next, lost;
	struct deed deeds[WATCHED_DEEDS];
	struct watched_backend backends[WATCHED_BACKENDS];
};

struct watched *watched_create(struct err *err)
{
	return shared_create(sizeof(struct watched), -1, "the table for watchers", err);
}

enum watched_turn watched_take(struct watched *w, const char *generation)
{
	char before[GENERATION_BYTES];

	memcpy(before, w->generation, sizeof(before));
	snprintf(w->generation, sizeof(w->generation), "%s", generation);
	if (!*before)
		return WATCHED_FIRST;
	return strncmp(before, w->generation, sizeof(before)) == 0 ? WATCHED_SAME : WATCHED_RELOAD;
}

/* --- deeds --- */

static bool is_over(const struct deed *d, uint64_t now_ms)
{
	uint64_t ended = atomic_load(&d->ended_ms);
	uint64_t stays = d->failed ? DEED_FAILED_MS : d->many ? DEED_MANY_MS : DEED_LATE_MS;

	return ended && now_ms > ended + stays;
}

/* A name that is longer than the field, as of an image with its digest, is known by its hash. */
static const char *in_short(const char *key, char out[WATCHED_KEY])
{
	char hex[HASH_HEX_LEN + 1];
	struct hash h;

	if (strlen(key) < WATCHED_KEY)
		return key;
	h = hash_of(span_of(key));
	hash_hex(&h, hex);
	snprintf(out, WATCHED_KEY, "#%s", hex);
	return out;
}

deed_ref watched_add(struct watched *w, const struct deed_text *text)
{
	char shortened[WATCHED_KEY];
	const char *key = in_short(text->key, shortened);
	uint64_t ref = atomic_fetch_add(&w->next, 1) + 1, now_ms = clock_boot_ms();
	struct deed *d = &w->deeds[ref % WATCHED_DEEDS];

	if (text->backend >= WATCHED_BACKENDS)
		return 0;
	if (atomic_load(&d->ref) && !d->many && !d->used && !is_over(d, now_ms))
		atomic_fetch_add(&w->lost, 1);
	atomic_store(&d->ref, 0);
	d->effect = (uint8_t)text->effect;
	d->backend = (uint16_t)text->backend;
	d->many = text->many;
	d->pid = text->before ? 0 : (int32_t)getpid();
	d->used = 0;
	d->used_by = 0;
	d->failed = false;
	d->ended_ms = 0;
	d->at_ms = text->before ? 0 : now_ms;
	d->noted_ns = text->before ? 0 : clock_unix_ns();
	snprintf(d->key, sizeof(d->key), "%s", key);
	snprintf(d->decision, sizeof(d->decision), "%s", text->decision);
	atomic_store(&d->ref, ref);
	return ref;
}

enum key { KEY_DECISION, KEY_OBJECT, KEY_ANY };
enum times { TIMES_ONCE, TIMES_MANY };

static const struct {
	enum operation op;
	enum effect effect;
	enum key key;
	enum times times;
} rows[] = {
#define EXPLAINS(op, effect, key, times) {OP_##op, EFFECT_##effect, KEY_##key, TIMES_##times},
#include "proxy/observe.def"
#undef EXPLAINS
};

void watched_note(struct watched *w, size_t backend, enum operation op, const char *object,
		  const char *decision, deed_ref *refs)
{
	size_t count = 0;

	for (size_t i = 0; i < DEEDS_OF_ONE; i++)
		refs[i] = 0;
	for (size_t i = 0; w && i < sizeof(rows) / sizeof(*rows) && count < DEEDS_OF_ONE; i++) {
		const struct deed_text text = {
			.backend = backend,
			.effect = rows[i].effect,
			.key = rows[i].key == KEY_DECISION ? decision
			       : rows[i].key == KEY_OBJECT ? object
							   : "",
			.decision = decision,
			.many = rows[i].times == TIMES_MANY,
		};

		if (rows[i].op == op)
			refs[count++] = watched_add(w, &text);
	}
}

void watched_ended(struct watched *w, const deed_ref *refs, bool sent, int http)
{
	for (size_t i = 0; w && i < DEEDS_OF_ONE; i++) {
		struct deed *d = &w->deeds[refs[i] % WATCHED_DEEDS];

		if (!refs[i] || atomic_load(&d->ref) != refs[i])
			continue;
		if (!sent)
			atomic_store(&d->ref, 0);
		d->failed = http >= 300;
		d->ended_ms = clock_boot_ms();
	}
}

/* A text in the table, which somebody else wrote, ends within its field or is none. */
static bool is_text(const char *field, size_t size, const char *text)
{
	return strlen(text) < size && strncmp(field, text, size) == 0;
}

static const char *key_of(const struct happening *h)
{
	if (h->effect == EFFECT_CREATE)
		return h->decision;
	/* A decision to connect is about the container. */
	return h->effect == EFFECT_EXEC || h->effect == EFFECT_CONNECT ? h->container : h->id;
}

/* A build's own containers carry no decision, and are of images without a name. */
static bool fits_any(const struct happening *h)
{
	return h->effect != EFFECT_CREATE || (!*h->decision && h->image_by_id);
}

static bool is_left(const struct deed *d, const struct watched_read *r)
{
	return d->many || !d->used || (r->line && d->used_by == r->line);
}

static bool fits(const struct deed *d, size_t backend, const struct happening *h,
		 const struct watched_read *r)
{
	char shortened[WATCHED_KEY];

	if (d->effect != h->effect || d->backend != backend || !is_left(d, r) ||
	    (!r->past && is_over(d, r->at_ms)) || d->at_ms > r->at_ms)
		return false;
	if (!*d->key)
		return fits_any(h);
	return is_text(d->key, sizeof(d->key), in_short(key_of(h), shortened));
}

static struct deed *deed_at(struct watched *w, uint64_t back, uint64_t *ret_ref)
{
	uint64_t ref = atomic_load(&w->next) - back;
	struct deed *d = &w->deeds[ref % WATCHED_DEEDS];

	*ret_ref = ref;
	return atomic_load(&d->ref) == ref ? d : NULL;
}

/* What starts of a build's container is the build's. */
static void note_start(struct watched *w, size_t backend, const struct happening *h,
		       const struct deed *of)
{
	char decision[DECISION_BYTES];
	const struct deed_text text = {.backend = backend,
				       .effect = EFFECT_START,
				       .key = h->id,
				       .decision = decision,
				       .before = true,
				       .many = true};

	memcpy(decision, of->decision, sizeof(decision));
	decision[sizeof(decision) - 1] = '\0';
	watched_add(w, &text);
}

static bool explain(struct watched *w, size_t backend, const struct happening *h,
		    const struct watched_read *r, uint64_t noted_until_ns)
{
	uint64_t all = atomic_load(&w->next), ref;

	for (uint64_t back = 0; back < all && back < WATCHED_DEEDS; back++) {
		struct deed *d = deed_at(w, back, &ref);

		if (!d || d->noted_ns > noted_until_ns || !fits(d, backend, h, r) ||
		    atomic_load(&d->ref) != ref)
			continue;
		d->used_by = r->line;
		d->used++;
		if (h->effect == EFFECT_CREATE && !*d->key)
			note_start(w, backend, h, d);
		return true;
	}
	return false;
}

bool watched_explain(struct watched *w, size_t backend, const struct happening *h,
		     const struct watched_read *r)
{
	return explain(w, backend, h, r, UINT64_MAX);
}

bool watched_explain_in_order(struct watched *w, size_t backend, const struct happening *h,
			      const struct watched_read *r)
{
	return explain(w, backend, h, r, h->at_ns);
}

bool watched_starts(const struct watched *w, size_t backend, const char *container)
{
	uint64_t now_ms = clock_boot_ms();

	for (size_t i = 0; i < WATCHED_DEEDS; i++) {
		const struct deed *d = &w->deeds[i];

		if (d->ref && d->effect == EFFECT_START && d->backend == backend && !d->used &&
		    !is_over(d, now_ms) && is_text(d->key, sizeof(d->key), container))
			return true;
	}
	return false;
}

uint64_t watched_lost(const struct watched *w)
{
	return atomic_load(&w->lost);
}

void watched_died(struct watched *w, pid_t pid)
{
	uint64_t now_ms = clock_boot_ms();

	for (size_t i = 0; w && i < WATCHED_DEEDS; i++) {
		struct deed *d = &w->deeds[i];
		uint64_t still = 0;

		if (atomic_load(&d->pid) == (int32_t)pid)
			atomic_compare_exchange_strong(&d->ended_ms, &still, now_ms);
	}
}

/* --- what was seen --- */

struct watched_backend *watched_of(struct watched *w, size_t backend)
{
	return w && backend < WATCHED_BACKENDS ? &w->backends[backend] : NULL;
}

uint64_t watched_line(struct span line)
{
	struct hash hash = hash_of(line);

	return hash_number(&hash) | 1;
}

void watched_known(struct watched_backend *b, uint64_t line)
{
	b->lines[b->next_line++ % WATCHED_LINES] = line;
}

bool watched_is_known(const struct watched_backend *b, uint64_t line)
{
	for (size_t i = 0; i < WATCHED_LINES; i++)
		if (b->lines[i] == line)
			return true;
	return false;
}

#define SECOND_NS    UINT64_C(1000000000)
#define LATE_SECONDS 2 /* between what an engine says of a start, and its event */

/* back: so many seconds before it; containers are made once, and started many times. */
static uint64_t found_key(const struct happening *h, uint64_t back)
{
	uint64_t second = h->effect == EFFECT_CREATE ? 0 : h->at_ns / SECOND_NS - back;
	char text[WATCHED_KEY];

	snprintf(text, sizeof(text), "%d %" PRIu64 " %s", (int)h->effect, second, h->id);
	return watched_line(span_of(text));
}

void watched_found(struct watched_backend *b, const struct happening *h)
{
	b->found[b->next_found++ % WATCHED_FOUND] = found_key(h, 0);
}

bool watched_was_found(struct watched_backend *b, const struct happening *h)
{
	if (h->effect != EFFECT_CREATE && h->effect != EFFECT_START)
		return false;
	for (uint64_t back = 0; back <= LATE_SECONDS; back++) {
		uint64_t key = found_key(h, back);

		for (size_t i = 0; i < WATCHED_FOUND; i++)
			if (b->found[i] == key) {
				b->found[i] = 0;
				return true;
			}
	}
	return false;
}
