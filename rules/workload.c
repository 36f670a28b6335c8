#include "rules/workload.h"

static const char *const levels[] = {"none", "process", "kernel", "vm"};
_Static_assert(sizeof(levels) / sizeof(*levels) == ISOLATION_COUNT, "a name each");

static const struct {
	const char *fact;
	enum jv_kind kind;
} hardens[] = {
	{"", JV_NULL},
#define HARDEN(id, fact, kind, doc) {fact, JV_##kind},
#include "rules/harden.def"
#undef HARDEN
};
_Static_assert(sizeof(hardens) / sizeof(*hardens) == HARDEN_COUNT, "a row each");

const char *isolation_name(enum isolation level)
{
	return levels[level];
}

int isolation_find(struct span name, enum isolation *ret)
{
	for (size_t i = 0; i < ISOLATION_COUNT; i++) {
		if (!span_is(name, levels[i]))
			continue;
		*ret = (enum isolation)i;
		return 0;
	}
	return -1;
}

const char *harden_fact(enum harden what)
{
	return hardens[what].fact;
}

enum jv_kind harden_kind(enum harden what)
{
	return hardens[what].kind;
}

enum harden harden_find(struct span fact)
{
	for (size_t i = 1; i < HARDEN_COUNT; i++)
		if (span_is(fact, hardens[i].fact))
			return (enum harden)i;
	return HARDEN_NONE;
}
