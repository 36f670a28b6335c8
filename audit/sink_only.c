/* sink_only.c - what a narrowed sink gets of the log. */
#include "audit/line_priv.h"
#include "audit/record_priv.h"
#include "audit/sink_priv.h"

#include <string.h>

enum only {
#define ONLY(name, doc, holds) ONLY_##name,
#include "audit/sink_only.def"
#undef ONLY
	ONLY_COUNT
};

static const struct {
	const char *name, *doc;
} words[ONLY_COUNT] = {
#define ONLY(name, doc, holds) {#name, doc},
#include "audit/sink_only.def"
#undef ONLY
};

bool sink_only_at(size_t i, const char **ret_name, const char **ret_doc)
{
	if (i >= ONLY_COUNT)
		return false;
	*ret_name = words[i].name;
	*ret_doc = words[i].doc;
	return true;
}

unsigned sink_only_find(const char *name)
{
	for (unsigned i = 0; i < ONLY_COUNT; i++)
		if (strcmp(words[i].name, name) == 0)
			return 1u << i;
	return 0;
}

static bool has(const struct fields *f, const char *member)
{
	return jv_get(&f->tree, member) != NULL;
}

static bool is_emergency(const struct fields *f)
{
	return has(f, "override") || strcmp(f->reason, "quarantined") == 0 ||
	       (f->type == RECORD_ADMIN && (span_starts(span_of(f->op), "quarantine") ||
					    span_starts(span_of(f->op), "mode.")));
}

bool sink_only_alarms(unsigned only)
{
	return only & 1u << ONLY_alarms;
}

static bool holds_one(unsigned only, const struct fields *f)
{
	const bool holds[ONLY_COUNT] = {
#define ONLY(name, doc, holds) [ONLY_##name] = (holds),
#include "audit/sink_only.def"
#undef ONLY
	};

	for (unsigned i = 0; i < ONLY_COUNT; i++)
		if ((only & 1u << i) && holds[i])
			return true;
	return false;
}

bool sink_only_wants(unsigned only, enum record_type type, struct span text, struct arena *a)
{
	struct err err = {0};
	struct fields f;
	struct line line;

	if (!line_split(text, &line) || (sink_only_alarms(only) && record_alarms(type, line.body)))
		return true;
	if (!(only & ~(1u << ONLY_alarms)))
		return false;
	arena_reset(a, 2 * FIELDS_ARENA_MAX);
	/* One that cannot be read is for the sink to say. */
	return fields_take(a, text, &f, &err) < 0 || holds_one(only, &f);
}
