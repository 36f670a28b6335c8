#include "rules/rate.h"

#include "rules/engine_priv.h"

#define SECOND UINT64_C(1000000000)

static const struct {
	const char *name;
	uint64_t ns;
} units[] = {{"s", SECOND}, {"min", 60 * SECOND}, {"h", 3600 * SECOND}, {"day", 86400 * SECOND}};

bool rate_parse(struct span text, struct rate *ret)
{
	struct span rest = text, digits;
	uint32_t count = 0;

	if (!span_cut(&rest, '/', &digits) || !digits.len)
		return false;
	for (size_t i = 0; i < digits.len; i++) {
		if (digits.at[i] < '0' || digits.at[i] > '9' || count > RATE_COUNT_MAX)
			return false;
		count = 10 * count + (uint32_t)(digits.at[i] - '0');
	}
	if (count == 0 || count > RATE_COUNT_MAX)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (span_is(rest, units[i].name)) {
			ret->count = count;
			ret->period_ns = units[i].ns;
			return true;
		}
	return false;
}

bool rate_covers(const struct rate *outer, const struct rate *inner)
{
	return inner->count <= outer->count &&
	       (double)inner->count * (double)outer->period_ns <=
		       (double)outer->count * (double)inner->period_ns;
}

const struct rate *profile_rate(const struct profile *p, enum operation op, size_t i)
{
	if (p->mode != MODE_ENFORCE)
		return NULL;
	for (size_t r = 0; r < p->rate_count; r++)
		if (op_set_has(&p->rated[r], op) && i-- == 0)
			return &p->rates[r];
	return NULL;
}
