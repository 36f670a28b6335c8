/*
 * span.h - a piece of somebody else's bytes: not owned, not terminated.
 *
 * What comes from outside may hold NULs, so it travels as a span and is
 * compared at its full length.
 */
#ifndef GATE_BASE_SPAN_H
#define GATE_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
	const char *at;
	size_t len;
};

/* For printf's "%.*s". */
#define SPAN_FMT(s) (int)(s).len, (s).at

static inline struct span span_of(const char *s)
{
	return (struct span){s, s ? strlen(s) : 0};
}

static inline bool span_is(struct span s, const char *want)
{
	return strlen(want) == s.len && (s.len == 0 || memcmp(s.at, want, s.len) == 0);
}

static inline bool span_eq(struct span a, struct span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static inline bool span_starts(struct span s, const char *prefix)
{
	size_t n = strlen(prefix);

	return s.len >= n && memcmp(s.at, prefix, n) == 0;
}

static inline bool span_ends(struct span s, const char *suffix)
{
	size_t n = strlen(suffix);

	return s.len >= n && memcmp(s.at + s.len - n, suffix, n) == 0;
}

/* The part of s from byte n on; empty if s is shorter. */
static inline struct span span_skip(struct span s, size_t n)
{
	if (!s.len) /* it may point nowhere */
		return s;
	return n >= s.len ? (struct span){s.at + s.len, 0} : (struct span){s.at + n, s.len - n};
}

/* Cuts up to the first c off the front of *rest; false if c is not there. */
bool span_cut(struct span *rest, char c, struct span *ret);

#endif
