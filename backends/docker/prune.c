#include "backends/docker/docker_priv.h"

#include <string.h>

/* Older engines do not read labels here, and would remove everybody's. */
#define LABELS_SINCE 30

/* From this version on an engine keeps named volumes unless it is told otherwise. */
#define NAMED_VOLUMES_SINCE 42

static bool is_known(struct backend_call *call, struct span key)
{
	return span_is(key, "label") || span_is(key, "label!") || span_is(key, "until") ||
	       (call->op == OP_VOLUME_PRUNE && span_is(key, "all"));
}

/* Only filters of which it is known that all must hold. */
static bool check_filters(struct backend_call *call)
{
	const struct jv *filters = &docker_state(call)->filters;

	for (size_t i = 0; i < filters->count; i++) {
		struct span key = filters->members[i].key;

		if (is_known(call, key))
			continue;
		docker_refuse(call, REASON_query, "query.filters", docker_cut(call, key))->text =
			"this filter is not known here";
		return false;
	}
	return true;
}

/*
 * The caller's own alone, also for those who see all: whom a list shows is not
 * whom it empties.  Who does not see its own either removes nothing.
 */
static bool sees_own(const struct backend_call *call)
{
	const struct reach_object own = {
		.kind = call->op == OP_VOLUME_PRUNE    ? REACH_VOLUMES
			: call->op == OP_NETWORK_PRUNE ? REACH_NETWORKS
						       : REACH_CONTAINERS,
		.mine = true,
	};

	return reach_of(call->reach, &own) == ACCESS_FULL;
}

void docker_step_prune(struct docker *d, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	bool old_client = st->asked_minor < NAMED_VOLUMES_SINCE;

	if (!docker_filters_read(call) || !check_filters(call) || !docker_speak(d, call))
		return;
	if (st->minor < LABELS_SINCE) {
		docker_refuse(call, REASON_owner, "path", st->route->pattern)->text =
			"this engine is too old to be told whose objects to remove";
		return;
	}
	if (!sees_own(call)) {
		docker_refuse(call, REASON_read_only, "path", st->route->pattern)->text =
			"the profile's visibility gives no full access to your own objects";
		return;
	}
	docker_filters_and(call, "label",
			   docker_text(call, "%s=%s", GATE_LABEL_OWNER, call->owner));
	if (call->op == OP_VOLUME_PRUNE && old_client && st->minor >= NAMED_VOLUMES_SINCE &&
	    !jv_get(&st->filters, "all"))
		docker_filters_and(call, "all", "true");
}
