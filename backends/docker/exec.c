#include "backends/docker/docker_priv.h"

#include <string.h>

static void say_user(struct docker_reading *r, const struct docker_command *cmd)
{
	const struct jv *root = jv_path(&r->facts, "user.root");
	bool known = root != NULL, is_root = root && root->b;

	if (*cmd->user)
		is_root = docker_user_is_root(span_of(cmd->user), &known);
	docker_fact(r, "exec.user", jv_string(cmd->user));
	if (known)
		docker_fact(r, "exec.root", jv_bool(is_root));
}

static void say_env(struct docker_reading *r, const struct jv *env)
{
	struct jv *names = docker_fact_list(r, "exec.env");

	for (size_t i = 0; env && env->kind == JV_ARRAY && i < env->count; i++) {
		struct span rest = env->items[i].str, name;

		span_cut(&rest, '=', &name);
		jv_push(r->call->arena, names, jv_string(docker_word(r->call, name)));
	}
}

/*
 * The facts of a command, beside all those of the container that doc shows: a
 * command is held no better than what it runs in, which others may have made.
 */
static void read_command(struct docker *d, struct backend_call *call, const struct jv *doc,
			 const struct docker_command *cmd)
{
	struct docker_reading r;

	if (!docker_read_made(d, call, doc, jv_get(doc, "HostConfig"), &r))
		return;
	if (cmd->privileged) {
		docker_lower(&r, LOWER_EXEC_PRIVILEGED, "Privileged", "true");
		docker_finish_isolation(&r);
	}
	if (isolation_is_krun(jv_str(jv_get(&r.facts, "isolation"), "program", ""))) {
		docker_lower(&r, LOWER_KRUN_EXEC, "Cmd", cmd->program);
		docker_finish_isolation(&r);
	}
	docker_fact(&r, "exec.privileged", jv_bool(cmd->privileged));
	say_user(&r, cmd);
	docker_fact(&r, "exec.program", jv_string(cmd->program));
	if (cmd->has_arguments)
		call->withheld |= WITHHELD_ARGUMENTS;
	if (*cmd->workdir)
		docker_fact(&r, "exec.workdir", jv_string(cmd->workdir));
	say_env(&r, cmd->env);
	call->workload = (struct workload){r.facts, r.level};
}

static bool has_more_than(const struct jv *list, size_t words)
{
	return list && list->kind == JV_ARRAY && list->count > words;
}

/* The words of a command, the program first. */
static bool read_words(struct backend_call *call, const char *program, const struct jv *more,
		       struct docker_words *ret)
{
	size_t count = more && more->kind == JV_ARRAY ? more->count : 0;
	struct span *list = arena_take(call->arena, (count + 1) * sizeof(*list));

	if (!list)
		return false;
	*ret = (struct docker_words){list, 0};
	if (program)
		list[ret->count++] = span_of(program);
	for (size_t i = 0; i < count; i++)
		if (more->items[i].kind == JV_STRING)
			list[ret->count++] = more->items[i].str;
	return true;
}

/* --- create --- */

static const char *program_of(const struct jv *cmd)
{
	if (cmd && cmd->kind == JV_STRING)
		return cmd->str.at;
	return cmd && cmd->kind == JV_ARRAY && cmd->count ? cmd->items[0].str.at : "";
}

void docker_step_exec_create(struct docker *d, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	const struct jv *body = &st->body, *doc;
	struct docker_command cmd;
	struct docker_words words;

	if (!docker_body(call, SCHEMA_EXEC))
		return;
	doc = docker_container(d, call, st->name);
	if (!doc)
		return;
	st->target = call->object.id;
	cmd = (struct docker_command){
		.user = jv_str(body, "User", ""),
		.program = program_of(jv_get(body, "Cmd")),
		.workdir = jv_str(body, "WorkingDir", ""),
		.privileged = jv_true(body, "Privileged"),
		.has_arguments = has_more_than(jv_get(body, "Cmd"), 1),
		.env = jv_get(body, "Env"),
	};
	if (read_words(call, NULL, jv_get(body, "Cmd"), &words) &&
	    docker_helper_command(call, doc, &words, &cmd))
		read_command(d, call, doc, &cmd);
}

/* --- what exists --- */

static const void *no_such_exec(struct backend_call *call, const char *given)
{
	docker_refuse(call, REASON_owner, "exec", NULL)->text =
		docker_text(call, "No such exec instance: %s", given);
	return NULL;
}

/* The exec that the path names, and its container; NULL: not known yet, or refused. */
static const struct jv *resolve(struct docker *d, struct backend_call *call,
				const struct jv **ret_container)
{
	struct docker_state *st = docker_state(call);
	const char *given = docker_whole(call, st->name);
	const struct lookup *answer;
	const struct jv *container;
	const char *id;

	if (!docker_speak(d, call))
		return NULL;
	answer = docker_ask(call, docker_target(call, "/exec/", st->name, "/json"), "execs", given);
	if (!answer)
		return NULL;
	if (answer->status >= 500) {
		docker_refuse(call, REASON_engine_reply, "exec", NULL);
		return NULL;
	}
	id = jv_str(&answer->body, "ContainerID", "");
	if (answer->status != 200 || !*id)
		return no_such_exec(call, given);
	container = docker_container(d, call, span_of(id));
	if (call->refused.count && call->refused.list[0].reason == REASON_owner) {
		call->refused = (struct violations){.count = 0};
		return no_such_exec(call, given);
	}
	if (!container)
		return NULL;
	st->target = jv_str(&answer->body, "ID", given);
	call->object.kind = "exec";
	call->object.id = st->target;
	*ret_container = container;
	return &answer->body;
}

void docker_step_exec(struct docker *d, struct backend_call *call)
{
	const struct jv *container;

	resolve(d, call, &container);
}

static void check_tunnel(struct backend_call *call, const struct jv *exec)
{
	struct violation *v;

	if (!jv_true(exec, "OpenStdin") || call->reply == REPLY_HIJACK ||
	    jv_true(&docker_state(call)->body, "Detach"))
		return;
	v = docker_refuse(call, REASON_upgrade, "AttachStdin", "true");
	v->text = "input needs a connection upgrade";
	v->hint = "Send Connection: Upgrade and Upgrade: tcp.";
}

void docker_step_exec_start(struct docker *d, struct backend_call *call)
{
	const struct jv *exec, *container, *process;
	struct docker_command cmd;
	struct docker_words words;

	if (!docker_body(call, SCHEMA_EXEC_START))
		return;
	exec = resolve(d, call, &container);
	if (!exec)
		return;
	check_tunnel(call, exec);
	process = jv_get(exec, "ProcessConfig");
	cmd = (struct docker_command){
		.user = jv_str(process, "user", ""),
		.program = jv_str(process, "entrypoint", ""),
		.workdir = "",
		.privileged = jv_true(process, "privileged"),
		.has_arguments = has_more_than(jv_get(process, "arguments"), 0),
	};
	if (read_words(call, cmd.program, jv_get(process, "arguments"), &words) &&
	    docker_helper_command(call, container, &words, &cmd))
		read_command(d, call, container, &cmd);
}
