/*
 * Which rows of the stream of events cross.  A row is shown if the object that
 * it is about is, by what the row itself says of it.
 */
#include "backends/docker/docker_priv.h"

#include <string.h>

/* Among the labels of a container its events carry words of the engine's own. */
static struct jv labels_of(struct arena *a, const struct jv *attributes)
{
	static const char *const engines[] = {"name", "image", "exitCode", "signal", "execID"};
	struct jv labels = jv_object();

	for (size_t i = 0; attributes && attributes->kind == JV_OBJECT && i < attributes->count;
	     i++) {
		const struct jv_member *m = &attributes->members[i];
		bool is_label = true;

		for (size_t k = 0; k < sizeof(engines) / sizeof(*engines); k++)
			is_label = is_label && !span_is(m->key, engines[k]);
		if (is_label)
			jv_add(a, &labels, m->key, m->value);
	}
	return labels;
}

/* What happens to a network or a volume may name a container that is not shown. */
static bool names_hidden_container(const struct backend_call *call, const struct jv *attributes)
{
	return jv_get(attributes, "container") &&
	       reach_of_all(call->reach, REACH_CONTAINERS) == ACCESS_NONE;
}

static bool shows_image(const struct backend_call *call, const char *name, const struct jv *labels)
{
	const char *const names[] = {name, NULL};
	const struct reach_object o = {.kind = REACH_IMAGES, .names = names, .labels = labels};

	return reach_limits_images(call->reach) && reach_of(call->reach, &o) != ACCESS_NONE;
}

/* Whether a row about such an object, or about the engine itself, is shown. */
static bool shows_row(const struct backend_call *call, const struct jv *doc, struct arena *a)
{
	const struct jv *actor = jv_get(doc, "Actor");
	const struct jv *attributes = jv_get(actor, "Attributes");
	const char *type = jv_str(doc, "Type", "");
	struct jv labels = labels_of(a, attributes);
	struct docker_thing t = {.created = ""};

	if (reach_sees_all(call->reach))
		return true;
	t.id = jv_str(actor, "ID", "");
	t.name = jv_str(attributes, "name", "");
	if (!*t.id)
		return false;
	if (strcmp(type, "container") == 0) {
		t.kind = REACH_CONTAINERS;
		t.labels = &labels;
		return docker_sees(call, &t);
	}
	if (strcmp(type, "image") == 0)
		return shows_image(call, *t.name ? t.name : t.id, &labels);
	if (strcmp(type, "network") == 0)
		t.kind = REACH_NETWORKS;
	else if (strcmp(type, "volume") == 0)
		t = (struct docker_thing){REACH_VOLUMES, t.id, t.id, "", NULL};
	else
		return false;
	return docker_sees(call, &t) && !names_hidden_container(call, attributes);
}

/* The row anew, without what the call hides. */
static bool rewrite(const struct backend_call *call, struct span row, struct jv *doc,
		    struct arena *a, struct span *ret)
{
	struct buf b;
	bool fits;

	docker_hide(call, a, doc);
	/* Written anew a text is at most six times as long: \u0001. */
	buf_init(&b, 6 * row.len + 1024);
	jv_write(&b, doc);
	ret->len = buf_len(&b);
	ret->at = arena_strndup(a, buf_span(&b).at, buf_len(&b));
	fits = !buf_spent(&b) && !arena_spent(a);
	buf_fini(&b);
	return fits;
}

bool docker_row(struct backend *be, struct backend_call *call, struct span row, struct arena *a,
		struct span *ret)
{
	enum jv_fault fault;
	struct err err = {0};
	struct jv doc;

	(void)be;
	*ret = row;
	if (jv_parse(a, row, &doc, &fault, &err) < 0)
		return false;
	if (!shows_row(call, &doc, a) || arena_spent(a))
		return false;
	return !(call->hides & HIDE_MOUNTS) || rewrite(call, row, &doc, a, ret);
}
