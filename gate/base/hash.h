/*
 * hash.h - SHA-256, by GnuTLS (it uses the processor's SHA instructions).
 */
#ifndef GATE_BASE_HASH_H
#define GATE_BASE_HASH_H

#include "gate/base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_BYTES   32
#define HASH_HEX_LEN 64

struct hash {
	unsigned char bytes[HASH_BYTES];
};

/* The hash of a, then b, as if they were one piece. */
struct hash hash_two(struct span a, struct span b);

static inline struct hash hash_of(struct span s)
{
	return hash_two(s, (struct span){"", 0});
}

/* Of bytes that come piece by piece: begin, add, end, which frees it. */
struct hash_stream {
	void *context;
};

void hash_begin(struct hash_stream *s);
void hash_add(struct hash_stream *s, const void *bytes, size_t len);
struct hash hash_end(struct hash_stream *s);

static inline bool hash_eq(const struct hash *a, const struct hash *b)
{
	return memcmp(a->bytes, b->bytes, HASH_BYTES) == 0;
}

/* Its first bytes as a number, for tables. */
static inline uint64_t hash_number(const struct hash *h)
{
	uint64_t ret;

	memcpy(&ret, h->bytes, sizeof(ret));
	return ret;
}

/* Writes 64 lower-case digits and a NUL. */
void hash_hex(const struct hash *h, char out[HASH_HEX_LEN + 1]);

/* Whether text is exactly 64 lower-case hexadecimal digits: a hash, or an engine's full id. */
bool hash_is_hex(struct span text);

/* 0, or -1 if text is not exactly 64 lower-case hexadecimal digits. */
int hash_parse(struct span text, struct hash *ret);

#endif
