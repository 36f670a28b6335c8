#include "audit/state.h"

#include "gate/base/shared.h"

#include <stdatomic.h>
#include <string.h>

#define READS 8 /* of a table that was replaced meanwhile */

struct sink_table {
	size_t count;
	struct audit_sink sinks[AUDIT_SINKS_MAX];
};

struct audit_state {
	_Atomic uint32_t stage;
	_Atomic uint64_t alarms;
	_Atomic uint64_t beats, hung_ms;
	/* The auditor alone writes them, the table that nobody reads; an auditor that dies
	   meanwhile leaves the other as it was. */
	_Atomic uint64_t sinks_version;
	struct sink_table sinks[2];
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

void audit_state_beat(struct audit_state *s)
{
	if (s)
		atomic_fetch_add(&s->beats, 1);
}

uint64_t audit_state_beats(const struct audit_state *s)
{
	return s ? atomic_load(&s->beats) : 0;
}

void audit_state_set_hung(struct audit_state *s, uint64_t ms)
{
	if (s)
		atomic_store(&s->hung_ms, ms);
}

uint64_t audit_state_hung(const struct audit_state *s)
{
	return s ? atomic_load(&s->hung_ms) : 0;
}

void audit_state_sinks(struct audit_state *s, const struct audit_sink *sinks, size_t count)
{
	struct sink_table *next;
	uint64_t version;

	if (!s)
		return;
	version = atomic_load(&s->sinks_version) + 1;
	next = &s->sinks[version % 2];
	next->count = count < AUDIT_SINKS_MAX ? count : AUDIT_SINKS_MAX;
	memcpy(next->sinks, sinks, next->count * sizeof(*sinks));
	atomic_store(&s->sinks_version, version);
}

bool audit_state_sink(const struct audit_state *s, size_t i, struct audit_sink *ret)
{
	for (int n = 0; s && i < AUDIT_SINKS_MAX && n < READS; n++) {
		uint64_t version = atomic_load(&s->sinks_version);
		const struct sink_table *table = &s->sinks[version % 2];
		bool there = i < table->count;

		*ret = table->sinks[i];
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load(&s->sinks_version) != version)
			continue;
		ret->name[sizeof(ret->name) - 1] = '\0';
		ret->trouble[sizeof(ret->trouble) - 1] = '\0';
		return there;
	}
	return false;
}
