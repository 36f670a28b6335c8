/* What Podman's own tree has in a form of its own; most of it is read as the compatible one is. */
#include "backends/podman/podman_priv.h"

#include <string.h>

/* --- versions --- */

static bool take_number(struct span *s, int *ret)
{
	struct span part;
	int n = 0;

	span_cut(s, '.', &part);
	if (!part.len || part.len > 3 || (part.len > 1 && part.at[0] == '0'))
		return false;
	for (size_t i = 0; i < part.len; i++) {
		if (part.at[i] < '0' || part.at[i] > '9')
			return false;
		n = n * 10 + (part.at[i] - '0');
	}
	*ret = n;
	return true;
}

/* "v4.0.0" to what libpod.def was held against; the service itself takes any. */
static bool is_served(struct span version)
{
	struct span rest = span_skip(version, 1);
	int major, minor, patch;

	return version.len > 1 && version.at[0] == 'v' && take_number(&rest, &major) &&
	       take_number(&rest, &minor) && take_number(&rest, &patch) && !rest.len &&
	       major >= PODMAN_MAJOR_MIN && major <= PODMAN_MAJOR_MAX;
}

int podman_take_version(struct backend_call *call, const char **path)
{
	struct docker_state *st = docker_state(call);
	const char *start = **path ? *path + 1 : *path;
	struct span head = {start, strcspn(start, "/")};
	const char *rest = start + head.len;
	bool unversioned = span_is(head, "libpod");

	if (!unversioned && strncmp(rest, "/libpod", 7) != 0)
		return 0;
	if (!unversioned && rest[7] && rest[7] != '/')
		return 0;
	if (unversioned || !is_served(head)) {
		call->op = OP_LIBPOD;
		docker_refuse(call, REASON_version, "path", docker_cut(call, head))->hint =
			docker_text(call, "Use /v%d.0.0/libpod/... to /v%d.x.y/libpod/...",
				    PODMAN_MAJOR_MIN, PODMAN_MAJOR_MAX);
		return -1;
	}
	st->prefix = PODMAN_PREFIX;
	*path = rest;
	return 1;
}

/* --- refusals --- */

/* Podman's own client tells what is absent by these words at the end of the message. */
void podman_refusal(const char *message, struct buf *ret_body, const char **ret_content_type)
{
	static const struct {
		const char *mark, *cause;
	} absent[] = {
		{"No such container", "no such container"},
		{"No such exec", "no such exec session"},
		{"No such image", "image not known"},
		{"no such volume", "no such volume"},
		{" not found", "network not found"},
	};
	const char *cause = NULL;
	size_t line = strcspn(message, "\n");
	struct buf text;

	for (size_t i = 0; i < sizeof(absent) / sizeof(*absent) && !cause && !message[line]; i++)
		if (strstr(message, absent[i].mark))
			cause = absent[i].cause;
	buf_puts(ret_body, "{\"cause\":");
	jv_write_str(ret_body, span_of(cause ? cause : "refused"));
	buf_puts(ret_body, ",\"message\":");
	buf_init(&text, 65536);
	buf_printf(&text, "%s%s%s", message, cause ? ": " : "", cause ? cause : "");
	jv_write_str(ret_body, buf_span(&text));
	buf_fini(&text);
	buf_printf(ret_body, ",\"response\":%d}\n", cause ? 404 : 403);
	*ret_content_type = "application/json";
}

/* --- what is sent in the words of the compatible tree --- */

/* From here on the call is one of that tree: path, query and all. */
static void become(struct backend_call *call, const char *method, const char *pattern)
{
	struct docker_state *st = docker_state(call);
	const struct docker_route *row = st->flavor->routes;
	const struct docker_compiled *first = st->compiled - (st->route - row);

	for (size_t i = 0; i < st->flavor->route_count; i++)
		if (strcmp(row[i].pattern, pattern) == 0 && strcmp(row[i].method, method) == 0) {
			st->route = &row[i];
			st->compiled = &first[i];
			st->prefix = NULL;
			st->from_own = true;
			return;
		}
	docker_refuse(call, REASON_internal, NULL, NULL);
}

/* The name stands in the query there. */
static void name_in_query(struct backend_call *call, const char *name)
{
	struct canonical *req = arena_take(call->arena, sizeof(*req));
	struct pair *query = arena_take(call->arena, sizeof(*query));

	if (!req || !query)
		return;
	*query = (struct pair){span_of("name"), span_of(name)};
	*req = *call->req;
	req->query = query;
	req->query_count = *name ? 1 : 0;
	call->req = req;
}

void podman_step_create(struct docker *d, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	const char *name;

	if (st->prefix) { /* once: it is another call afterwards */
		if (!docker_body(call, SCHEMA_SPEC))
			return;
		name = jv_str(&st->body, "name", "");
		if (!podman_read_spec(call))
			return;
		name_in_query(call, name);
		become(call, "POST", "/containers/create");
	}
	docker_step_create(d, call);
}

void podman_step_volume_create(struct docker *d, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	const struct jv *labels, *more, *options;
	struct jv out = jv_object(), all = jv_object();

	if (st->prefix) {
		if (!docker_body(call, SCHEMA_LIBPOD_VOLUME))
			return;
		labels = jv_get(&st->body, "Label");
		more = jv_get(&st->body, "Labels");
		options = jv_get(&st->body, "Options");
		for (size_t i = 0; labels && i < labels->count; i++)
			jv_set_span(call->arena, &all, labels->members[i].key,
				    labels->members[i].value);
		for (size_t i = 0; more && i < more->count; i++)
			jv_set_span(call->arena, &all, more->members[i].key,
				    more->members[i].value);
		jv_set(call->arena, &out, "Name", jv_string(jv_str(&st->body, "Name", "")));
		jv_set(call->arena, &out, "Driver", jv_string(jv_str(&st->body, "Driver", "")));
		if (options && !jv_is_neutral(options))
			jv_set(call->arena, &out, "DriverOpts", *options);
		if (all.count)
			jv_set(call->arena, &out, "Labels", all);
		st->body = out;
		become(call, "POST", "/volumes/create");
	}
	docker_step_volume_create(d, call);
}

/* --- what differs --- */

/* Podman's client takes over the connection without asking for it, and reads bytes. */
void podman_step_exec_start(struct docker *d, struct backend_call *call)
{
	call->until_close = call->reply != REPLY_HIJACK;
	if (docker_body(call, SCHEMA_LIBPOD_EXEC_START))
		docker_step_exec_start(d, call);
}

/* A name without a registry would be looked for in those of the service. */
void podman_step_pull(struct docker *d, struct backend_call *call)
{
	struct docker_reading r = {.d = d, .call = call, .facts = jv_object()};
	const char *given = docker_query_text(call, "reference");
	struct docker_reference ref = docker_reference(call->arena, span_of(given));
	const char *tag = *ref.digest ? ref.digest : ref.tag;

	if (!docker_speak(d, call) || !docker_check_registry_auth(call))
		return;
	if (!ref.valid || !docker_names_registry(given)) {
		docker_refuse(call, REASON_image, "query.reference", given)->text =
			"an image that is to be pulled is named with its registry";
		return;
	}
	docker_state(call)->asked = jv_object();
	docker_fact(&r, "pull.name", jv_string(ref.name));
	docker_fact(&r, "pull.import", jv_bool(false));
	if (*tag)
		docker_fact(&r, "pull.tag", jv_string(tag));
	docker_send(call, "reference", docker_reference_text(call, &ref));
	docker_send_given(call, "policy");
	docker_send_given(call, "quiet");
	call->workload = (struct workload){.facts = r.facts};
}

/* What redact hides stands in other places here. */
static bool shows_all(struct backend_call *call)
{
	if (!call->hides)
		return true;
	docker_refuse(call, REASON_libpod, "path", NULL)->text =
		"the profile hides something of this, which is done in the compatible tree alone";
	return false;
}

void podman_step_shown(struct docker *d, struct backend_call *call)
{
	if (shows_all(call))
		docker_step_plain(d, call);
}

void podman_step_volumes(struct docker *d, struct backend_call *call)
{
	if (shows_all(call))
		docker_step_list(d, call);
}
