/*
 * Which container a caller runs in.  On a unix socket its control groups have
 * been read, and name one or several ids: the one that this engine knows is asked
 * for.  On TCP its address is looked for on the network that our own address
 * is the gateway of.
 *
 * Paths have no version in front: what is read here is the same in all.
 */
#include "backends/docker/docker_priv.h"
#include "backends/docker/networks_priv.h"
#include "gate/base/hash.h"

#include <stdio.h>
#include <time.h>

enum asking { ASK_BEGIN = 0, ASK_NETWORKS, ASK_NETWORK, ASK_CONTAINER, ASK_IMAGE };

struct caller_state {
	enum asking asking;
	size_t at;           /* of call->ids */
	const char *network; /* id of the one that the caller's address is on */
	const struct jv *labels;
};

static enum step unknown(struct caller_call *call, const char *why)
{
	call->why = why;
	return STEP_REFUSED;
}

static enum step ask(struct caller_call *call, enum asking what, const char *target,
		     const char *table, const char *key)
{
	((struct caller_state *)call->state)->asking = what;
	call->lookup =
		(struct lookup){.kind = LOOKUP_GET, .target = target, .table = table, .key = key};
	return STEP_LOOKUP;
}

static const char *joined(struct caller_call *call, const char *before, const char *id,
			  const char *behind)
{
	char text[256];

	snprintf(text, sizeof(text), "%s%s%s", before, id, behind);
	return arena_strndup(call->arena, text, strlen(text));
}

/* Full ids alone, which no name can be: they go into a path. */
static bool is_full_id(const char *id)
{
	return hash_is_hex(span_of(id));
}

static enum step ask_container(struct caller_call *call, const char *id)
{
	return ask(call, ASK_CONTAINER, joined(call, "/containers/", id, "/json"), "containers",
		   id);
}

/* --- addresses --- */

static enum step read_networks(struct caller_call *call, struct caller_state *st)
{
	st->network = docker_network_of(&call->lookup.body, call->peer, call->own, &call->why);
	if (!st->network)
		return STEP_REFUSED;
	return ask(call, ASK_NETWORK, joined(call, "/networks/", st->network, ""), "networks",
		   st->network);
}

static enum step read_network(struct caller_call *call, const struct caller_state *st)
{
	const char *id;

	if (strcmp(jv_str(&call->lookup.body, "Id", ""), st->network) != 0)
		return unknown(call, "the engine answers with another network");
	id = docker_container_at(&call->lookup.body, call->peer);
	if (!id)
		return unknown(call, "no container, or more than one, has the caller's address");
	return ask_container(call, id);
}

/* --- the container --- */

/* "2026-11-29T14:37:14.286195728Z"; -1: it is no time. */
static int64_t time_of(const char *text)
{
	struct tm tm = {.tm_isdst = 0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	int64_t nanos = 0, unit = 100000000;

	if (!rest || tm.tm_year < 70)
		return -1;
	if (*rest == '.')
		for (rest++; *rest >= '0' && *rest <= '9'; rest++, unit /= 10)
			nanos += (*rest - '0') * unit;
	if (strcmp(rest, "Z") != 0)
		return -1;
	return (int64_t)timegm(&tm) * 1000000000 + nanos;
}

/* The address was its own when the connection began, and is still. */
static bool has_address(const struct caller_call *call, const struct caller_state *st,
			const struct jv *body)
{
	const struct jv *networks = jv_path(body, "NetworkSettings.Networks");

	for (size_t i = 0; networks && networks->kind == JV_OBJECT && i < networks->count; i++) {
		const struct jv *one = &networks->members[i].value;

		if (strcmp(jv_str(one, "NetworkID", ""), st->network) == 0)
			return docker_same_address(jv_str(one, "IPAddress", ""), call->peer) ||
			       docker_same_address(jv_str(one, "GlobalIPv6Address", ""),
						   call->peer);
	}
	return false;
}

static const char *check_running(struct caller_call *call, const struct caller_state *st,
				 const struct jv *body)
{
	int64_t started;

	call->started_at = jv_str(jv_get(body, "State"), "StartedAt", "");
	started = time_of(call->started_at);
	if (!jv_true(jv_get(body, "State"), "Running"))
		return "the container does not run";
	if (started < 0)
		return "the engine does not say when the container was started";
	if (!call->peer)
		return NULL;
	if (started > call->since_ns)
		return "the container was started after the connection was made";
	return has_address(call, st, body) ? NULL : "the container has another address by now";
}

static bool fits(const char *text)
{
	return *text && strlen(text) <= CALLER_TEXT_MAX;
}

/* What the gate or a builder through it has marked is not the operator's own. */
static const char *maker_of(const struct jv *labels)
{
	const char *owner = jv_str(labels, GATE_LABEL_OWNER, "");

	if (!*owner)
		owner = jv_str(labels, GATE_LABEL_IMAGE_OWNER, "");
	for (size_t i = 0; !*owner && labels && labels->kind == JV_OBJECT && i < labels->count; i++)
		if (span_starts(labels->members[i].key, GATE_LABEL_PREFIX) &&
		    !span_is(labels->members[i].key, GATE_LABEL_SELF) &&
		    !jv_is_neutral(&labels->members[i].value))
			owner = "unknown";
	return owner;
}

static enum step read_container(struct caller_call *call, struct caller_state *st)
{
	const struct jv *body = &call->lookup.body;
	const char *name = jv_str(body, "Name", "");
	int64_t pid = jv_num(jv_get(body, "State"), "Pid", 0);
	struct caller_container *c = &call->found;

	*c = (struct caller_container){
		.id = jv_str(body, "Id", ""),
		.name = *name == '/' ? name + 1 : name,
		.image = jv_str(jv_get(body, "Config"), "Image", ""),
		.image_id = jv_str(body, "Image", ""),
	};
	st->labels = jv_path(body, "Config.Labels");
	c->owner = maker_of(st->labels);
	call->init = pid > 1 && pid <= INT32_MAX ? (int32_t)pid : 0;
	if (!is_full_id(c->id) || strcmp(c->id, call->lookup.key) != 0)
		return unknown(call, "the engine answers with another container");
	if (!fits(c->name) || !fits(c->image) || !fits(c->image_id) || strchr(c->name, '/'))
		return unknown(call, "the engine does not say what the container is");
	call->why = check_running(call, st, body);
	if (call->why)
		return STEP_REFUSED;
	if (st->labels && st->labels->kind != JV_OBJECT && st->labels->kind != JV_NULL)
		return unknown(call, "the engine does not say which labels the container has");
	if (!st->labels || !st->labels->count || !call->labels)
		return STEP_READY;
	if (!span_starts(span_of(c->image_id), "sha256:") || !is_full_id(c->image_id + 7))
		return unknown(call, "the engine does not say which image the container has");
	return ask(call, ASK_IMAGE, joined(call, "/images/", c->image_id, "/json"), "images",
		   c->image_id);
}

/* --- labels --- */

static bool can_be_shown(const struct jv_member *label)
{
	return label->value.kind == JV_STRING && label->key.len <= CALLER_LABEL_NAME_MAX &&
	       label->value.str.len <= CALLER_TEXT_MAX &&
	       !memchr(label->key.at, '\0', label->key.len) &&
	       !memchr(label->value.str.at, '\0', label->value.str.len);
}

/*
 * Who makes an image chooses its labels, and containers inherit them: a label says
 * something of the container only if it was given to it.  Rules may ask whether a
 * label is absent, so none that they could see is left out: a container with too many
 * of them, or too long ones, is not known.
 */
static enum step read_image(struct caller_call *call, struct caller_state *st)
{
	const struct jv *of_image = jv_path(&call->lookup.body, "Config.Labels");
	struct caller_label *list = arena_take(call->arena, CALLER_LABELS_MAX * sizeof(*list));
	size_t count = 0;

	if (!list)
		return unknown(call, "no memory");
	if (strcmp(jv_str(&call->lookup.body, "Id", ""), call->found.image_id) != 0)
		return unknown(call, "the engine answers with another image");
	for (size_t i = 0; i < st->labels->count; i++) {
		const struct jv_member *m = &st->labels->members[i];
		const struct jv *inherited = jv_get_span(of_image, m->key);

		if (!caller_label_is_listed(call->labels, m->key) ||
		    (inherited && jv_equal(inherited, &m->value)))
			continue;
		if (count == CALLER_LABELS_MAX || !can_be_shown(m))
			return unknown(call, "the container has more labels, or longer ones, than "
					     "are shown of a caller");
		list[count++] = (struct caller_label){m->key.at, m->value.str.at};
	}
	call->found.labels = list;
	call->found.label_count = count;
	return STEP_READY;
}

/* --- one step after the other --- */

static enum step begin(struct caller_call *call)
{
	struct caller_state *st = arena_take(call->arena, sizeof(*st));

	call->state = st;
	if (!st)
		return unknown(call, "no memory");
	if (call->peer)
		return ask(call, ASK_NETWORKS, "/networks", "networks", "");
	if (!call->id_count || !is_full_id(call->ids[0]))
		return unknown(call, "its control groups name no container");
	return ask_container(call, call->ids[0]);
}

/* Of containers in one another the engine knows its own alone. */
static enum step not_found(struct caller_call *call, struct caller_state *st)
{
	if (st->asking == ASK_CONTAINER && ++st->at < call->id_count &&
	    is_full_id(call->ids[st->at]))
		return ask_container(call, call->ids[st->at]);
	return unknown(call, st->asking == ASK_CONTAINER ? "the engine knows no such container"
							 : "the engine does not know its image");
}

enum step docker_caller(struct backend *be, struct caller_call *call)
{
	struct caller_state *st = call->state;

	(void)be;
	if (!st)
		return begin(call);
	call->trouble = call->lookup.status == 0 || call->lookup.status >= 500;
	if (call->trouble)
		return unknown(call, "the engine gave no answer");
	if (call->lookup.status == 404)
		return not_found(call, st);
	if (call->lookup.status != 200)
		return unknown(call, "the engine does not tell");
	switch (st->asking) {
	case ASK_NETWORKS:
		return read_networks(call, st);
	case ASK_NETWORK:
		return read_network(call, st);
	case ASK_CONTAINER:
		return read_container(call, st);
	case ASK_IMAGE:
		return read_image(call, st);
	case ASK_BEGIN:
		break;
	}
	return unknown(call, "nothing was asked");
}
