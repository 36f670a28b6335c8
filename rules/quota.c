#include "rules/quota.h"

#include "rules/engine_priv.h"

static const struct {
	const char *setting, *fact;
	enum quota_unit unit;
	enum quota_of of;
} rows[QUOTA_COUNT] = {
#define QUOTA(id, setting, fact, unit, of, doc) {#setting, fact, QUOTA_UNIT_##unit, QUOTA_OF_##of},
#include "rules/quota.def"
#undef QUOTA
};

/* As in rules/prelude/quota.lua; a test holds the two together. */
static const struct {
	enum operation op;
	unsigned of; /* bits 1 << enum quota_of */
} concerned[] = {
	{OP_CONTAINER_CREATE, 1 << QUOTA_OF_RUNNING | 1 << QUOTA_OF_VOLUMES},
	{OP_CONTAINER_START, 1 << QUOTA_OF_RUNNING | 1 << QUOTA_OF_VOLUME_SPACE},
	{OP_CONTAINER_RESTART, 1 << QUOTA_OF_RUNNING | 1 << QUOTA_OF_VOLUME_SPACE},
	{OP_CONTAINER_UPDATE, 1 << QUOTA_OF_RUNNING},
	{OP_VOLUME_CREATE, 1 << QUOTA_OF_VOLUMES | 1 << QUOTA_OF_VOLUME_SPACE},
	{OP_IMAGE_PULL, 1 << QUOTA_OF_IMAGE_SPACE},
	{OP_IMAGE_LOAD, 1 << QUOTA_OF_IMAGE_SPACE},
	{OP_IMAGE_IMPORT, 1 << QUOTA_OF_IMAGE_SPACE},
	{OP_IMAGE_BUILD, 1 << QUOTA_OF_IMAGE_SPACE},
	{OP_CONTAINER_COMMIT, 1 << QUOTA_OF_IMAGE_SPACE},
};

const char *quota_setting(enum quota q)
{
	return rows[q].setting;
}

const char *quota_fact(enum quota q)
{
	return rows[q].fact;
}

enum quota_unit quota_unit(enum quota q)
{
	return rows[q].unit;
}

enum quota_of quota_of(enum quota q)
{
	return rows[q].of;
}

bool quota_concerns(enum quota q, enum operation op)
{
	for (size_t i = 0; i < sizeof(concerned) / sizeof(*concerned); i++)
		if (concerned[i].op == op)
			return concerned[i].of & 1u << rows[q].of;
	return false;
}

const int64_t *profile_quota(const struct profile *p)
{
	return p->has_quota ? p->quota : NULL;
}

unsigned profile_counts(const struct profile *p, enum operation op)
{
	unsigned bits = 0;

	for (int q = 0; p->has_quota && q < QUOTA_COUNT; q++)
		if (p->quota[q] >= 0 && quota_concerns((enum quota)q, op))
			bits |= 1u << q;
	return bits;
}
