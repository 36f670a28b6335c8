/* copy_body.c - PUT /containers/{id}/archive: each entry is looked at before it is sent on. */
#include "backends/docker/build_priv.h"
#include "backends/docker/docker_priv.h"

#define INTAKE_ENOUGH 65536 /* bytes that one call gives; then the caller is asked to wait */

static enum intake refuse(struct backend_call *call, const struct tar *t)
{
	enum reason reason = tar_fault(t) == TAR_LARGE    ? REASON_too_large
			     : tar_fault(t) == TAR_MEMORY ? REASON_no_memory
							  : REASON_archive_content;

	docker_refuse(call, reason, "body", tar_name(t))->text = tar_why(t);
	return INTAKE_REFUSED;
}

/*
 * A copy is judged by the container and the caller, so it is known at once;
 * what is in the archive is held against one rule for all, entry by entry.
 */
enum intake docker_intake_copy(struct backend_call *call, struct span *piece, bool over,
			       struct buf *ret)
{
	struct docker_state *state = docker_state(call);
	struct span now = *piece;

	if (!call->reading)
		call->reading = tar_open_copy(call->arena);
	state->copy = call->reading;
	if (!state->copy) {
		docker_refuse(call, REASON_no_memory, "body", NULL);
		return INTAKE_REFUSED;
	}
	if (now.len > INTAKE_ENOUGH)
		now.len = INTAKE_ENOUGH;
	*piece = span_skip(*piece, now.len);
	if (tar_feed(state->copy, now, ret) < 0 || (over && tar_end(state->copy, ret) < 0))
		return refuse(call, state->copy);
	return INTAKE_KNOWN;
}
