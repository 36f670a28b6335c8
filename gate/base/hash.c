#include "gate/base/hash.h"

#include <gnutls/crypto.h>
#include <stdlib.h>
#include <string.h>

struct hash hash_two(struct span a, struct span b)
{
	/* One context a process: making one costs more than hashing a record. */
	static gnutls_hash_hd_t ctx;
	struct hash h;

	if (!ctx && gnutls_hash_init(&ctx, GNUTLS_DIG_SHA256) < 0)
		abort();
	if (gnutls_hash(ctx, a.at, a.len) < 0 || gnutls_hash(ctx, b.at, b.len) < 0)
		abort();
	gnutls_hash_output(ctx, h.bytes); /* and starts anew */
	return h;
}

void hash_begin(struct hash_stream *s)
{
	gnutls_hash_hd_t ctx;

	if (gnutls_hash_init(&ctx, GNUTLS_DIG_SHA256) < 0)
		abort();
	s->context = ctx;
}

void hash_add(struct hash_stream *s, const void *bytes, size_t len)
{
	if (gnutls_hash(s->context, bytes, len) < 0)
		abort();
}

struct hash hash_end(struct hash_stream *s)
{
	struct hash h;

	gnutls_hash_deinit(s->context, h.bytes);
	s->context = NULL;
	return h;
}

void hash_hex(const struct hash *h, char out[HASH_HEX_LEN + 1])
{
	static const char hex[] = "0123456789abcdef";

	for (int i = 0; i < HASH_BYTES; i++) {
		*out++ = hex[h->bytes[i] >> 4];
		*out++ = hex[h->bytes[i] & 15];
	}
	*out = '\0';
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hash_is_hex(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!((text.at[i] >= '0' && text.at[i] <= '9') ||
		      (text.at[i] >= 'a' && text.at[i] <= 'f')))
			return false;
	return text.len == HASH_HEX_LEN;
}

int hash_parse(struct span text, struct hash *ret)
{
	struct hash h;

	if (text.len != HASH_HEX_LEN)
		return -1;
	for (size_t i = 0; i < HASH_BYTES; i++) {
		int hi = digit(text.at[2 * i]), lo = digit(text.at[2 * i + 1]);

		if (hi < 0 || lo < 0)
			return -1;
		h.bytes[i] = (unsigned char)(hi << 4 | lo);
	}
	*ret = h;
	return 0;
}
