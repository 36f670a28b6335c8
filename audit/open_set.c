#include "audit/open_set_priv.h"

#include "gate/base/uuid.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SMALLEST 64

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool dash_at(size_t i)
{
	return i == 8 || i == 13 || i == 18 || i == 23;
}

int decision_id_parse(struct span text, struct decision_id *ret)
{
	struct decision_id id;
	size_t n = 0;

	if (text.len != UUID_TEXT_LEN)
		return -1;
	for (size_t i = 0; i < text.len; i++) {
		int hi, lo;

		if (dash_at(i)) {
			if (text.at[i] != '-')
				return -1;
			continue;
		}
		hi = digit(text.at[i++]);
		lo = digit(text.at[i]);
		if (hi < 0 || lo < 0)
			return -1;
		id.bytes[n++] = (unsigned char)(hi << 4 | lo);
	}
	*ret = id;
	return 0;
}

void decision_id_format(const struct decision_id *id, char out[37])
{
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0, n = 0; i < UUID_TEXT_LEN; n++) {
		if (dash_at(i))
			out[i++] = '-';
		out[i++] = hex[id->bytes[n] >> 4];
		out[i++] = hex[id->bytes[n] & 15];
	}
	out[UUID_TEXT_LEN] = '\0';
}

void open_set_init(struct open_set *s, size_t cap)
{
	*s = (struct open_set){.cap = cap};
	if (getrandom(&s->seed, sizeof(s->seed), 0) != (ssize_t)sizeof(s->seed))
		abort(); /* as in uuid_make(): a kernel without random bytes */
}

void open_set_fini(struct open_set *s)
{
	free(s->slots);
	*s = (struct open_set){.cap = s->cap, .seed = s->seed};
}

static size_t home_of(const struct open_set *s, const struct decision_id *id)
{
	uint64_t a, b;
	__uint128_t product;

	memcpy(&a, id->bytes, 8);
	memcpy(&b, id->bytes + 8, 8);
	product = (__uint128_t)(a ^ s->seed) * (b ^ (s->seed * 0x9e3779b97f4a7c15u | 1));
	return (size_t)((uint64_t)product ^ (uint64_t)(product >> 64)) & (s->size - 1);
}

/* The slot that holds id, or the free one where it belongs. */
static struct open_decision *slot_of(const struct open_set *s, const struct decision_id *id)
{
	size_t i = home_of(s, id);

	while (s->slots[i].used && memcmp(&s->slots[i].id, id, sizeof(*id)) != 0)
		i = (i + 1) & (s->size - 1);
	return &s->slots[i];
}

static bool grow(struct open_set *s)
{
	struct open_set bigger = *s;

	bigger.size = s->size ? s->size * 2 : SMALLEST;
	bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < s->size; i++)
		if (s->slots[i].used)
			*slot_of(&bigger, &s->slots[i].id) = s->slots[i];
	free(s->slots);
	*s = bigger;
	return true;
}

struct open_decision *open_set_add(struct open_set *s, const struct decision_id *id)
{
	struct open_decision *slot;

	if (s->count >= s->cap || (s->count * 2 >= s->size && !grow(s)))
		return NULL;
	slot = slot_of(s, id);
	if (slot->used)
		return NULL;
	*slot = (struct open_decision){.id = *id, .used = true};
	s->count++;
	return slot;
}

struct open_decision *open_set_find(const struct open_set *s, const struct decision_id *id)
{
	struct open_decision *slot = s->size ? slot_of(s, id) : NULL;

	return slot && slot->used ? slot : NULL;
}

void open_set_drop(struct open_set *s, const struct decision_id *id)
{
	struct open_decision *gone = open_set_find(s, id);
	size_t hole, i;

	if (!gone)
		return;
	s->count--;
	/* Those behind the hole that would no longer be found move into it. */
	hole = i = (size_t)(gone - s->slots);
	for (;;) {
		size_t home;

		i = (i + 1) & (s->size - 1);
		if (!s->slots[i].used)
			break;
		home = home_of(s, &s->slots[i].id);
		if (((i - home) & (s->size - 1)) < ((i - hole) & (s->size - 1)))
			continue;
		s->slots[hole] = s->slots[i];
		hole = i;
	}
	s->slots[hole].used = false;
}

struct open_decision *open_set_next(const struct open_set *s, size_t *slot)
{
	while (*slot < s->size) {
		struct open_decision *d = &s->slots[(*slot)++];

		if (d->used)
			return d;
	}
	return NULL;
}
