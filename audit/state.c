#include "audit/state.h"

#include "gate/base/shared.h"

#include <stdatomic.h>
#include <string.h>

struct audit_state {
	_Atomic uint32_t stage;
	_Atomic uint64_t alarms;
	_Atomic uint64_t sinks_version; /* odd while they are written, by the auditor alone */
	_Atomic size_t sink_count;
	struct audit_sink sinks[AUDIT_SINKS_MAX];
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

void audit_state_sinks(struct audit_state *s, const struct audit_sink *sinks, size_t count)
{
	if (!s)
		return;
	if (count > AUDIT_SINKS_MAX)
		count = AUDIT_SINKS_MAX;
	/* Of an auditor that died in the middle it may be odd still. */
	atomic_store(&s->sinks_version, (atomic_load(&s->sinks_version) + 1) | 1);
	memcpy(s->sinks, sinks, count * sizeof(*sinks));
	atomic_store(&s->sink_count, count);
	atomic_fetch_add(&s->sinks_version, 1);
}

bool audit_state_sink(const struct audit_state *s, size_t i, struct audit_sink *ret)
{
	uint64_t before = s ? atomic_load(&s->sinks_version) : 1;

	if (before % 2 || i >= AUDIT_SINKS_MAX || i >= atomic_load(&s->sink_count))
		return false;
	*ret = s->sinks[i];
	atomic_thread_fence(memory_order_acquire);
	ret->name[sizeof(ret->name) - 1] = '\0';
	ret->trouble[sizeof(ret->trouble) - 1] = '\0';
	return atomic_load(&s->sinks_version) == before;
}
