/* match_net.c - host names, addresses and networks (match_priv.h). */
#include "rules/match_priv.h"

#include <arpa/inet.h>
#include <string.h>

/* --- host names --- */

static bool is_label_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

/* Labels of 1 to 63 bytes with dots between; not all digits in the last one, which addresses have.
 */
static bool is_host(struct span name)
{
	struct span label = {"", 0};
	bool letters = false;

	if (!name.len || name.len > HOST_MAX || name.at[name.len - 1] == '.')
		return false;
	while (name.len) {
		size_t before = name.len;

		span_cut(&name, '.', &label);
		if (!label.len || label.len > 63 || (before > label.len && !name.len))
			return false;
		letters = false;
		for (size_t i = 0; i < label.len; i++) {
			if (!is_label_byte(label.at[i]))
				return false;
			letters = letters || label.at[i] < '0' || label.at[i] > '9';
		}
	}
	return letters;
}

static struct span without_dot(struct span name)
{
	if (name.len > 1 && name.at[name.len - 1] == '.')
		name.len--;
	return name;
}

static bool same_letters(struct span a, struct span b)
{
	return a.len == b.len && strncasecmp(a.at, b.at, a.len) == 0;
}

bool host_pattern_is_valid(struct span pattern)
{
	if (span_starts(pattern, "*."))
		pattern = span_skip(pattern, 2);
	return is_host(without_dot(pattern));
}

bool host_match(struct span pattern, struct span name)
{
	name = without_dot(name);
	pattern = without_dot(pattern);
	if (!is_host(name))
		return false;
	if (!span_starts(pattern, "*."))
		return same_letters(pattern, name);
	pattern = span_skip(pattern, 1); /* ".example.org" */
	return name.len > pattern.len &&
	       same_letters(pattern, span_skip(name, name.len - pattern.len));
}

/* --- addresses --- */

struct address {
	unsigned char bytes[16]; /* IPv4 as ::ffff:a.b.c.d, so that both forms of one are equal */
};

static bool address_parse(struct span text, struct address *ret, bool *ret_four)
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
	char copy[INET6_ADDRSTRLEN];

	if (!text.len || text.len >= sizeof(copy) || memchr(text.at, 0, text.len))
		return false;
	memcpy(copy, text.at, text.len);
	copy[text.len] = 0;
	memcpy(ret->bytes, mapped, sizeof(mapped));
	*ret_four = inet_pton(AF_INET, copy, ret->bytes + 12) == 1;
	return *ret_four || inet_pton(AF_INET6, copy, ret->bytes) == 1;
}

static bool bits_parse(struct span text, unsigned most, unsigned *ret)
{
	unsigned value = 0;

	if (!text.len || text.len > 3 || (text.len > 1 && text.at[0] == '0'))
		return false;
	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return false;
		value = value * 10 + (unsigned)(text.at[i] - '0');
	}
	*ret = value;
	return value <= most;
}

static bool same_bits(const struct address *a, const struct address *b, unsigned bits)
{
	unsigned rest = bits % 8;
	unsigned char mask = (unsigned char)(0xff << (8 - rest));

	if (memcmp(a->bytes, b->bytes, bits / 8) != 0)
		return false;
	return !rest || ((a->bytes[bits / 8] ^ b->bytes[bits / 8]) & mask) == 0;
}

enum cidr_answer cidr_contains(struct span network, struct span address)
{
	struct address net, addr;
	struct span base;
	unsigned bits;
	bool four, other;
	size_t whole = network.len;

	span_cut(&network, '/', &base);
	if (!address_parse(base, &net, &four))
		return CIDR_MALFORMED;
	bits = four ? 32 : 128;
	if (base.len < whole && !bits_parse(network, bits, &bits))
		return CIDR_MALFORMED;
	if (!address_parse(address, &addr, &other))
		return CIDR_NO;
	return same_bits(&net, &addr, four ? bits + 96 : bits) ? CIDR_YES : CIDR_NO;
}

/* --- times --- */

bool duration_parse(struct span text, int64_t *ret_seconds)
{
	static const struct {
		const char *unit;
		int64_t seconds;
	} units[] = {{"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}, {"day", 86400}};
	int64_t value = 0;
	size_t i = 0;

	for (; i < text.len && text.at[i] >= '0' && text.at[i] <= '9'; i++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, text.at[i] - '0', &value))
			return false;
	for (size_t u = 0; i && u < sizeof(units) / sizeof(*units); u++)
		if (span_is(span_skip(text, i), units[u].unit))
			return !__builtin_mul_overflow(value, units[u].seconds, ret_seconds);
	return false;
}
