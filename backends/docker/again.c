/*
 * What runs, judged again: it is read as if it were to be started now, by start.c, and
 * looked at by attest.c; here is what stands before and behind that.
 */
#include "backends/docker/docker_priv.h"

#include <stdio.h>
#include <string.h>

#define HEAD_END " HTTP/1.1\r\nHost: docker\r\n"

/* --- all that runs --- */

/* Without a version: what is read of it has been the same in all of them. */
void docker_running(struct backend *be, const char *const *ids, size_t count, struct buf *ret_head)
{
	struct buf filters;

	buf_init(&filters, 65536);
	buf_printf(&filters, "{\"status\":%s", docker_of(be)->flavor->running);
	for (size_t i = 0; i < count; i++) {
		buf_puts(&filters, i ? "," : ",\"id\":[");
		jv_write_str(&filters, span_of(ids[i]));
	}
	buf_puts(&filters, count ? "]}" : "}");
	buf_puts(ret_head, "GET /containers/json?filters=");
	docker_encode(ret_head, buf_span(&filters), "");
	buf_puts(ret_head, HEAD_END "User-Agent: sallyport-watcher\r\n\r\n");
	ret_head->spent = ret_head->spent || buf_spent(&filters);
	buf_fini(&filters);
}

/* "" for what is nobody's, and for the gate itself. */
static const char *owner_of(struct backend_call *call, const struct docker_thing *t)
{
	return docker_is_gates_own(call, t) ? "" : docker_owner(call, t);
}

const char *docker_running_row(struct backend *be, struct backend_call *call, const struct jv *row)
{
	struct docker_thing thing;

	(void)be;
	thing = docker_row_thing(REACH_CONTAINERS, row);
	if (!*thing.id)
		return NULL;
	docker_object(call, &thing);
	return *owner_of(call, &thing) ? thing.id : "";
}

/* --- one of them --- */

void docker_restart(struct backend *be, const char *id, struct canonical *ret, struct arena *a)
{
	static const char before[] = "/containers/", after[] = "/start";
	size_t size = strlen(id) + sizeof(before) + sizeof(after);
	char *path = arena_take(a, size);

	(void)be;
	if (path)
		snprintf(path, size, "%s%s%s", before, id, after);
	*ret = (struct canonical){.method = "POST",
				  .path = path ? path : "",
				  .content_type = "",
				  .content_coding = "",
				  .upgrade_to = ""};
}

static bool comes_back(const struct jv *doc)
{
	const char *policy = jv_str(jv_path(doc, "HostConfig.RestartPolicy"), "Name", "");

	return *policy && strcmp(policy, "no") != 0;
}

static void read_document(struct backend_call *call, const struct jv *doc, struct again *ret)
{
	const struct docker_thing thing = docker_container_thing(doc);
	const struct jv *state = jv_get(doc, "State");
	const char *minimum = jv_str(thing.labels, GATE_LABEL_ISOLATION, "");

	ret->runs = jv_true(state, "Running") || jv_true(state, "Paused") ||
		    jv_true(state, "Restarting");
	ret->owner = owner_of(call, &thing);
	/* Labels of the gate count only beside its own owner: images may carry any. */
	if (*jv_str(thing.labels, GATE_LABEL_OWNER, "")) {
		ret->profile = jv_str(thing.labels, GATE_LABEL_PROFILE, "");
		ret->listener = jv_str(thing.labels, GATE_LABEL_LISTENER, "");
		ret->has_minimum = *minimum && isolation_find(span_of(minimum), &ret->minimum) == 0;
	}
	ret->comes_back = comes_back(doc);
	docker_object(call, &thing);
}

enum step docker_again(struct backend *be, struct backend_call *call, struct again *ret)
{
	struct docker *d = docker_of(be);
	struct docker_state *st = docker_state(call);
	const struct lookup *answer = NULL;

	*ret = (struct again){.owner = "", .profile = "", .listener = ""};
	docker_harvest(call);
	call->refused = (struct violations){.count = 0};
	if (docker_speak(d, call))
		answer = docker_ask(call, docker_target(call, "/containers/", st->name, "/json"),
				    "containers", docker_cut(call, st->name));
	if (answer && answer->status != 404 &&
	    (answer->status != 200 || !docker_tells_state(&answer->body) ||
	     !span_is(st->name, jv_str(&answer->body, "Id", ""))))
		docker_refuse(call, REASON_engine_reply, "container", NULL);
	else if (answer && answer->status == 200)
		read_document(call, &answer->body, ret);
	if (arena_spent(call->arena))
		docker_refuse(call, REASON_no_memory, NULL, NULL);
	if (call->refused.count)
		return STEP_REFUSED;
	return answer ? STEP_READY : STEP_LOOKUP;
}

/* --- stopping it --- */

int docker_stop(struct backend *be, struct backend_call *call, enum stop_part part,
		struct outgoing *ret, enum operation *ret_op, struct err *err)
{
	static const char policy[] = "{\"RestartPolicy\":{\"Name\":\"no\"}}";
	const struct docker_state *st = docker_state(call);

	(void)be;
	if (!st->minor)
		return err_set(err, ERR_UPSTREAM, "the engine's version is not known");
	buf_printf(&ret->head, "POST /v1.%d/containers/", st->minor);
	docker_encode(&ret->head, st->name, "");
	if (part == STOP_NOW) {
		*ret_op = OP_CONTAINER_KILL;
		buf_puts(&ret->head, "/kill" HEAD_END "Content-Length: 0\r\n\r\n");
	} else if (st->flavor->no_policy_changes) {
		/* What is stopped in so many words does not come back by itself. */
		*ret_op = OP_CONTAINER_STOP;
		buf_puts(&ret->head, "/stop?t=0" HEAD_END "Content-Length: 0\r\n\r\n");
	} else {
		*ret_op = OP_CONTAINER_UPDATE;
		buf_printf(&ret->head,
			   "/update" HEAD_END
			   "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
			   sizeof(policy) - 1);
		buf_puts(&ret->body, policy);
	}
	ret->streams_body = false;
	if (buf_spent(&ret->head) || buf_spent(&ret->body))
		return err_set(err, ERR_LIMIT, "the rendered request is too large");
	return 0;
}
