#include "audit/state.h"

#include "gate/base/shared.h"

#include <stdatomic.h>
#include <stddef.h>

struct audit_state {
	_Atomic uint32_t stage;
	_Atomic uint64_t alarms;
};

static const char *const names[] = {
	[AUDIT_DOWN] = "down", [AUDIT_UP] = "up",           [AUDIT_WARN] = "warn",
	[AUDIT_LOW] = "low",   [AUDIT_RESERVE] = "reserve", [AUDIT_SEALED] = "sealed",
};
_Static_assert(sizeof(names) / sizeof(*names) == AUDIT_STAGE_COUNT, "a name each");

const char *audit_stage_name(enum audit_stage s)
{
	return names[s];
}

struct audit_state *audit_state_create(struct err *err)
{
	return shared_create(sizeof(struct audit_state), -1, "the table for the log's state", err);
}

void audit_state_set(struct audit_state *s, enum audit_stage stage)
{
	if (s)
		atomic_store(&s->stage, (uint32_t)stage);
}

enum audit_stage audit_state_get(const struct audit_state *s)
{
	uint32_t stage = s ? atomic_load(&s->stage) : AUDIT_DOWN;

	return stage < AUDIT_STAGE_COUNT ? (enum audit_stage)stage : AUDIT_DOWN;
}

void audit_state_alarm(struct audit_state *s)
{
	if (s)
		atomic_fetch_add(&s->alarms, 1);
}

uint64_t audit_state_alarms(const struct audit_state *s)
{
	return s ? atomic_load(&s->alarms) : 0;
}
