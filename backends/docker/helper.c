/*
 * The program that the gate puts into each sandbox: which mount that is, and what a command that
 * goes through it really runs.
 */
#include "backends/docker/docker_priv.h"

#include <string.h>

bool docker_helper_mount(const struct docker_reading *r, const char *source, struct span target,
			 bool read_only)
{
	const struct backend_call *call = r->call;

	return call->helper && *call->helper && strcmp(source, call->helper) == 0 &&
	       span_is(target, DOCKER_HELPER_TARGET) && read_only &&
	       (call->from_sandboxes || r->made);
}

/* The inspected container has it there, and cannot have another program in its place. */
static bool has_helper(const struct backend_call *call, const struct jv *doc)
{
	const struct jv *mounts = jv_get(doc, "Mounts");

	for (size_t i = 0; mounts && mounts->kind == JV_ARRAY && i < mounts->count; i++) {
		const struct jv *m = &mounts->items[i], *rw = jv_get(m, "RW");

		if (call->helper && *call->helper &&
		    strcmp(jv_str(m, "Destination", ""), DOCKER_HELPER_TARGET) == 0)
			return strcmp(jv_str(m, "Source", ""), call->helper) == 0 && rw &&
			       rw->kind == JV_BOOL && !rw->b;
	}
	return false;
}

static const struct verb {
	const char *name;
	enum operation also;
} verbs[] = {
	{"run", OP_UNKNOWN},
	{"connect", OP_UNKNOWN},
	{"get", OP_CONTAINER_ARCHIVE_GET},
	{"list", OP_CONTAINER_ARCHIVE_GET},
	{"stat", OP_CONTAINER_ARCHIVE_GET},
	{"tar", OP_CONTAINER_ARCHIVE_GET},
	{"put", OP_CONTAINER_ARCHIVE_PUT},
	{"remove", OP_CONTAINER_ARCHIVE_PUT},
	{"mkdir", OP_CONTAINER_ARCHIVE_PUT},
	{"untar", OP_CONTAINER_ARCHIVE_PUT},
};

static bool takes_value(struct span option)
{
	static const char *const known[] = {"--cwd", "--timeout", "--tty", "--output-max", "--env"};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (span_is(option, known[i]))
			return true;
	return false;
}

/* Behind "run": options with a value each, "--", and what is run. */
static bool read_run(struct backend_call *call, const struct docker_words *w, size_t at,
		     struct docker_command *cmd)
{
	struct jv env = jv_array(), *kept;

	while (at + 1 < w->count && takes_value(w->list[at])) {
		if (span_is(w->list[at], "--cwd"))
			cmd->workdir = docker_whole(call, w->list[at + 1]);
		else if (span_is(w->list[at], "--env"))
			jv_push(call->arena, &env, jv_span(w->list[at + 1]));
		at += 2;
	}
	if (at + 1 >= w->count || !span_is(w->list[at], "--"))
		return false;
	for (size_t i = 0; cmd->env && cmd->env->kind == JV_ARRAY && i < cmd->env->count; i++)
		jv_push(call->arena, &env, cmd->env->items[i]);
	kept = arena_take(call->arena, sizeof(*kept));
	if (!kept)
		return false;
	*kept = env;
	cmd->env = kept;
	cmd->program = docker_whole(call, w->list[at + 1]);
	cmd->has_arguments = at + 2 < w->count;
	return true;
}

bool docker_helper_command(struct backend_call *call, const struct jv *doc,
			   const struct docker_words *w, struct docker_command *cmd)
{
	const struct verb *verb = NULL;

	if (w->count < 1 || !span_is(w->list[0], DOCKER_HELPER_TARGET) || !has_helper(call, doc))
		return true;
	for (size_t i = 0; w->count > 1 && i < sizeof(verbs) / sizeof(*verbs); i++)
		if (span_is(w->list[1], verbs[i].name))
			verb = &verbs[i];
	if (!verb || (verb == &verbs[0] && !read_run(call, w, 2, cmd))) {
		docker_refuse(call, REASON_json_unknown, "Cmd", NULL)->text =
			"the gate does not know this command of its own helper";
		return false;
	}
	call->also = verb->also;
	return true;
}
