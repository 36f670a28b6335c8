#include "proxy/token.h"

#include <strings.h>

static bool is_named(struct span key, const char *name)
{
	return key.len == strlen(name) && strncasecmp(key.at, name, key.len) == 0;
}

/* RFC 6750: the scheme's name in any case, one space at least, characters of b64token. */
static enum token_fault read_value(struct span value, struct span *ret)
{
	static const char scheme[] = "bearer ";

	if (value.len < sizeof(scheme) || strncasecmp(value.at, scheme, sizeof(scheme) - 1) != 0)
		return TOKEN_ODD;
	*ret = span_skip(value, sizeof(scheme) - 1);
	while (ret->len && ret->at[0] == ' ')
		*ret = span_skip(*ret, 1);
	if (!ret->len || ret->len > TOKEN_LEN_MAX)
		return TOKEN_ODD;
	for (size_t i = 0; i < ret->len; i++)
		if (ret->at[i] <= ' ' || ret->at[i] > '~')
			return TOKEN_ODD;
	return TOKEN_FINE;
}

enum token_fault token_presented(const struct pair *headers, size_t count, struct span *ret)
{
	enum token_fault fault = TOKEN_NONE;

	for (size_t i = 0; i < count; i++) {
		if (!is_named(headers[i].key, "authorization"))
			continue;
		if (fault != TOKEN_NONE)
			return TOKEN_ODD;
		fault = read_value(headers[i].value, ret);
	}
	return fault;
}

bool token_matches(const struct hash *known, struct span token)
{
	struct hash hash = hash_of(token);
	unsigned differs = 0;

	for (size_t i = 0; i < HASH_BYTES; i++)
		differs |= known->bytes[i] ^ hash.bytes[i];
	return differs == 0;
}
