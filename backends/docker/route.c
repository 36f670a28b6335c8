#include "backends/docker/docker_priv.h"
#include "backends/list_priv.h"

#include <string.h>

const struct docker_route docker_routes[] = {
#define ROUTE(method, pattern, since, until, op, way, body, reply, query)                          \
	{#method,           pattern,     since,       until,         OP_##op,                      \
	 docker_step_##way, REASON_NONE, BODY_##body, REPLY_##reply, query},
#define CLOSED(method, pattern, op, reason)                                                        \
	{#method, pattern, 0, 0, OP_##op, NULL, REASON_##reason, BODY_NONE, REPLY_STREAM, ""},
#define BODY_TAR     BODY_STREAM
#define BODY_CONTEXT BODY_REWRITE
#include "backends/docker/routes.def"
#undef BODY_CONTEXT
#undef BODY_TAR
#undef CLOSED
#undef ROUTE
};

/* Podman's compatible tree answers alike; its own adapter knows what it does otherwise. */
static bool is_docker(struct backend_call *call, const struct jv *version)
{
	const struct jv *parts = jv_get(version, "Components");

	for (size_t i = 0; parts && parts->kind == JV_ARRAY && i < parts->count; i++)
		if (strcmp(jv_str(&parts->items[i], "Name", ""), "Podman Engine") == 0) {
			docker_refuse(call, REASON_engine_reply, "Components", "Podman Engine")
				->text = "the service is Podman, which does other things than "
					 "Docker with some requests: the operator must write "
					 "kind = \"podman\" for this backend";
			return false;
		}
	return true;
}

const struct docker_flavor docker_plain = {
	.ops = &backend_docker,
	.routes = docker_routes,
	.route_count = sizeof(docker_routes) / sizeof(*docker_routes),
	.is_it = is_docker,
	.running = "[\"running\",\"paused\",\"restarting\"]",
};

#define JSON_TYPES "application/json"
/* The docker client says text/plain, docker-py nothing; a form would be read by the engine. */
#define TAR_TYPES "- text/plain application/x-tar application/tar application/octet-stream"

void docker_compile(struct docker_compiled *ret, const struct docker_route *from)
{
	struct span rest = span_of(from->query), word;

	ret->head = span_of(from->pattern + 1);
	ret->head.len = strcspn(from->pattern + 1, "/");
	while (rest.len) {
		struct docker_query_key *key = &ret->keys[ret->key_count++];

		span_cut(&rest, ' ', &word);
		key->kind = word.at[word.len - 1];
		word.len -= 2;
		key->repeats = word.at[word.len - 1] == '*';
		word.len -= key->repeats;
		key->name = word;
	}
}

/* --- version --- */

/* What the engine's router takes for a version: v (V too, which it does not) and digits, dots. */
static bool looks_like_version(struct span segment)
{
	if (segment.len < 2 || (segment.at[0] != 'v' && segment.at[0] != 'V'))
		return false;
	for (size_t i = 1; i < segment.len; i++)
		if (!strchr("0123456789.", segment.at[i]))
			return false;
	return true;
}

/* The minor of "v1.NN", or -1. */
static int minor_of(struct span segment)
{
	const char *p = segment.at;

	if (segment.len != 5 || memcmp(p, "v1.", 3) != 0)
		return -1;
	if (p[3] < '1' || p[3] > '9' || p[4] < '0' || p[4] > '9')
		return -1;
	return (p[3] - '0') * 10 + (p[4] - '0');
}

/* path is "" when nothing follows the version. */
static struct span first_segment(const char *path)
{
	const char *start = *path ? path + 1 : path;

	return (struct span){start, strcspn(start, "/")};
}

/* Cuts the version off *path; -1: refused. */
static int take_version(struct backend_call *call, struct docker_state *st, const char **path)
{
	struct span head = first_segment(*path);
	const char *rest = head.at + head.len;
	struct span next = *rest ? first_segment(rest) : (struct span){"", 0};
	int minor, taken = 0;

	st->asked_minor = DOCKER_MINOR_MAX;
	if (st->flavor->take_version)
		taken = st->flavor->take_version(call, path);
	if (taken)
		return taken < 0 ? -1 : 0;
	if (span_is(head, "libpod") || (looks_like_version(head) && span_is(next, "libpod"))) {
		call->op = OP_LIBPOD;
		docker_refuse(call, REASON_libpod, "path", *path);
		return -1;
	}
	if (!looks_like_version(head))
		return 0;
	minor = minor_of(head);
	if (minor < DOCKER_MINOR_MIN || minor > DOCKER_MINOR_MAX) {
		docker_refuse(call, REASON_version, "path", docker_cut(call, head));
		return -1;
	}
	st->asked_minor = minor;
	*path = rest;
	return 0;
}

/* --- matching --- */

/* No name or id has one of these, and each means something to some parser of targets. */
static bool has_odd_bytes(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.at[i] <= ' ' || strchr(";?#%\\\"<>", s.at[i]))
			return true;
	return false;
}

/* How much of path the name at pattern stands for; *after is the rest of the pattern. */
static size_t name_length(const char *pattern, const char *path, const char **after)
{
	const char *close = strchr(pattern, '}');
	size_t len = strlen(path), tail;

	*after = close + 1;
	tail = strlen(*after);
	if (close[-1] != '*')
		return strcspn(path, "/");
	return len > tail ? len - tail : 0;
}

/* *ret_name: what the first name of the pattern stands for. */
static bool matches(const char *pattern, const char *path, struct span *ret_name)
{
	struct span name = {NULL, 0};

	for (;;) {
		size_t same = strcspn(pattern, "{"), len;

		if (strncmp(pattern, path, same) != 0)
			return false;
		path += same;
		if (!pattern[same])
			break;
		len = name_length(pattern + same, path, &pattern);
		if (!len || len > DOCKER_PATH_NAME_MAX || has_odd_bytes((struct span){path, len}))
			return false;
		if (!name.at)
			name = (struct span){path, len};
		path += len;
	}
	*ret_name = name;
	return !*path;
}

static bool is_method(const char *method)
{
	static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "DELETE"};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(method, known[i]) == 0)
			return true;
	return false;
}

/* The row for the path, or NULL: refused. */
static const struct docker_route *find(const struct docker *d, struct backend_call *call,
				       struct docker_state *st, const char *path)
{
	struct span head = first_segment(path), name = {"", 0};
	bool other_method = false;

	for (size_t i = 0; i < d->flavor->route_count; i++) {
		const struct docker_route *row = &d->flavor->routes[i];

		if (!span_eq(d->compiled[i].head, head) || !matches(row->pattern, path, &name))
			continue;
		if (strcmp(row->method, call->req->method) != 0) {
			other_method = true;
			continue;
		}
		st->name = name;
		st->compiled = &d->compiled[i];
		return row;
	}
	docker_refuse(call, other_method ? REASON_method : REASON_unknown_endpoint, "path",
		      docker_cut(call, span_of(path)));
	return NULL;
}

/* --- query --- */

static bool is_repeated(const struct canonical *req, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (span_eq(req->query[i].key, req->query[at].key))
			return true;
	return false;
}

/* dockerode sends the whole body in the query as well; engines do not read it there. */
static bool is_of_body(const struct backend_call *call, struct span key)
{
	static const struct {
		enum operation op;
		enum docker_schema schema;
	} bodies[] = {
		{OP_CONTAINER_CREATE, SCHEMA_CONFIG},
		{OP_NETWORK_CREATE, SCHEMA_NETWORK},
		{OP_VOLUME_CREATE, SCHEMA_VOLUME},
	};

	for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++)
		if (bodies[i].op == call->op)
			return docker_field(bodies[i].schema, key);
	return false;
}

static bool check_query(struct backend_call *call, const struct docker_compiled *route)
{
	const struct canonical *req = call->req;

	for (size_t i = 0; i < req->query_count; i++) {
		struct span key = req->query[i].key, value = req->query[i].value;
		const struct docker_query_key *known = NULL;

		for (size_t k = 0; k < route->key_count && !known; k++)
			if (span_eq(route->keys[k].name, key))
				known = &route->keys[k];
		if (known && docker_query_fits(known->kind, value) &&
		    (known->repeats || !is_repeated(req, i)))
			continue;
		if (!known && is_of_body(call, key))
			continue;
		docker_refuse(call, REASON_query,
			      docker_text(call, "query.%s", docker_cut(call, key)),
			      docker_cut(call, value));
		return false;
	}
	return true;
}

/* --- bodies --- */

static bool in_list(const char *list, const char *word)
{
	struct span rest = span_of(list), one;

	while (rest.len) {
		span_cut(&rest, ' ', &one);
		if (span_is(one, word))
			return true;
	}
	return false;
}

/*
 * A form in the body would beat the query in the engine.  Bodies are written
 * anew or, for archives, sent under a type of our own; here a caller learns
 * early that it sends what is not read.
 */
static bool check_content_type(struct backend_call *call)
{
	const struct canonical *req = call->req;
	const char *type = req->content_type;
	bool fine = true;

	switch (call->body) {
	case BODY_NONE:
		fine = !req->has_body;
		/* dockerode repeats the query in a body, which engines do not read either. */
		if (!fine && strcmp(req->method, "POST") == 0 && in_list(JSON_TYPES, type)) {
			call->content_types = JSON_TYPES;
			call->body = BODY_JSON;
			fine = docker_state(call)->echoed = true;
		}
		break;
	case BODY_JSON:
		call->content_types = JSON_TYPES;
		fine = !req->has_body || in_list(JSON_TYPES, type);
		if (docker_state(call)->prefix) { /* Podman's own client says none */
			call->content_types = "- " JSON_TYPES;
			fine = fine || !*type;
		}
		if (call->op == OP_CONTAINER_START) { /* whose body is empty */
			call->content_types = "";
			fine = fine || !*type;
		}
		if (call->op == OP_CONTAINER_COMMIT) /* which may say nothing at all */
			call->content_types = "- " JSON_TYPES;
		break;
	case BODY_STREAM:
	case BODY_REWRITE:
		fine = !*type || in_list(TAR_TYPES, type);
		if (call->op == OP_CONTAINER_ARCHIVE_PUT && !req->has_body)
			docker_refuse(call, REASON_archive_content, "body", NULL)->text =
				"there is no archive";
		break;
	case BODY_KIND_COUNT:
		fine = false;
	}
	if (!fine)
		docker_refuse(call, REASON_content_type, "Content-Type", type);
	else if (req->content_coding && *req->content_coding && call->op != OP_IMAGE_BUILD)
		docker_refuse(call, REASON_content_type, "Content-Encoding", req->content_coding);
	return !call->refused.count;
}

/* What BuildKit builds comes through its tunnels. */
static bool refine_build(struct backend_call *call)
{
	struct span version = docker_query_value(call->req, "version");

	if (span_is(version, "2")) {
		call->body = call->req->has_body ? BODY_STREAM : BODY_NONE;
		return true;
	}
	if (!version.len || span_is(version, "1"))
		return true;
	docker_refuse_query(call, "version", "builders are 1 and 2");
	return false;
}

/* What depends on the query beside the path. */
static bool refine(struct backend_call *call)
{
	const struct canonical *req = call->req;
	struct span source = docker_query_value(req, "fromSrc");
	bool tunnels = call->op == OP_CONTAINER_ATTACH || call->op == OP_EXEC_START;
	const char *protocol = call->op == OP_SYSTEM_SESSION ? "h2c" : "tcp";

	if (call->op == OP_IMAGE_PULL && source.len) {
		call->op = OP_IMAGE_IMPORT;
		call->body = span_is(source, "-") ? BODY_STREAM : BODY_NONE;
	}
	if (call->op == OP_IMAGE_BUILD && !refine_build(call))
		return false;
	tunnels = tunnels || call->op == OP_SYSTEM_SESSION;
	if (tunnels && req->upgrade && strcmp(req->upgrade_to, protocol) == 0)
		call->reply = REPLY_HIJACK;
	else if (req->upgrade) {
		docker_refuse(call, REASON_upgrade, "Upgrade", req->upgrade_to);
		return false;
	}
	return true;
}

static bool in_versions(struct backend_call *call, const struct docker_route *route, int minor)
{
	if (minor >= route->since && (!route->until || minor <= route->until))
		return true;
	docker_refuse(call, REASON_unknown_endpoint, "path", route->pattern)->text =
		docker_text(call, "API 1.%d does not have this endpoint", minor);
	return false;
}

bool docker_echo(struct backend_call *call)
{
	const struct docker_compiled *route = docker_state(call)->compiled;
	enum jv_fault fault = JV_FAULT_NONE;
	struct err err = {0};
	struct jv doc;

	if (jv_parse(call->arena, call->req->body, &doc, &fault, &err) < 0 ||
	    doc.kind != JV_OBJECT) {
		docker_refuse(call, REASON_content_type, "body", NULL);
		return false;
	}
	for (size_t i = 0; i < doc.count; i++) {
		bool known = jv_is_neutral(&doc.members[i].value);

		for (size_t k = 0; k < route->key_count && !known; k++)
			known = span_eq(route->keys[k].name, doc.members[i].key);
		if (known)
			continue;
		docker_refuse(call, REASON_json_unknown,
			      docker_text(call, "%s", docker_cut(call, doc.members[i].key)), NULL);
		return false;
	}
	return true;
}

int docker_route_call(struct backend *be, struct backend_call *call)
{
	struct docker *d = docker_of(be);
	struct docker_state *st = arena_take(call->arena, sizeof(*st));
	const char *path = call->req->path;
	const struct docker_route *route;

	call->state = st;
	if (!st) {
		docker_refuse(call, REASON_no_memory, NULL, NULL);
		return -1;
	}
	st->flavor = d->flavor;
	if (!is_method(call->req->method)) {
		docker_refuse(call, REASON_method, "method", call->req->method);
		return -1;
	}
	if (take_version(call, st, &path) < 0)
		return -1;
	route = find(d, call, st, path);
	if (!route)
		return -1;
	st->route = route;
	call->op = route->op;
	call->looks_for_one = route->op == OP_PLUGIN_READ && st->name.len > 0;
	call->body = route->body;
	call->reply = route->reply;
	call->content_types = "";
	if (!route->step) {
		docker_refuse(call, route->closed, "path", docker_cut(call, span_of(path)));
		return -1;
	}
	if (!in_versions(call, route, st->asked_minor) || !check_query(call, st->compiled) ||
	    !refine(call) || !check_content_type(call))
		return -1;
	return 0;
}
