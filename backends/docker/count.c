/*
 * What a caller has, as the engine shows it at this moment: containers that
 * run, with their limits, volumes, and what is on disk.
 *
 * First lists, and the containers whose ids the exchange gives; then, if limits
 * are wanted, every container of the list.  The answers are read where they are, not
 * kept: the next count asks anew.
 */
#include "backends/docker/docker_priv.h"

#include <stdio.h>
#include <string.h>

enum { ROUND_LISTS = 0, ROUND_LIMITS };

static void want(struct backend_call *call, const char *target, const char *table, const char *key)
{
	if (call->lookup_count < LOOKUPS_MAX)
		call->lookups[call->lookup_count++] = (struct lookup){
			.kind = LOOKUP_GET, .target = target, .table = table, .key = key};
}

static struct counted *add(struct backend_call *call, const char *kind, const char *id)
{
	static struct counted scratch;
	struct counting *c = &call->counting;

	for (size_t i = 0; i < c->count; i++)
		if (!strcmp(c->list[i].kind, kind) && !strcmp(c->list[i].id, id))
			return &c->list[i];
	if (c->count == COUNTED_MAX) {
		docker_refuse(call, REASON_facts_too_large, NULL, NULL)->text =
			"the caller has more than the gate counts";
		return &scratch;
	}
	c->list[c->count] = (struct counted){.kind = kind, .id = id, .name = "", .since = ""};
	return &c->list[c->count++];
}

/* --- what is asked --- */

/* What was given to the caller by the operator carries no label. */
static const char *own_filter(struct backend_call *call, enum reach_kind kind, const char *more)
{
	struct buf text, both;
	const char *ret;

	buf_init(&text, 4096);
	buf_init(&both, 8192);
	buf_puts(&text, "{");
	if (!docker_has_adopted(call, kind)) {
		buf_puts(&text, "\"label\":{");
		jv_write_str(&text,
			     span_of(docker_text(call, "%s=%s", GATE_LABEL_OWNER, call->owner)));
		buf_printf(&text, ":true}%s", *more ? "," : "");
	}
	buf_printf(&text, "%s}", more);
	docker_encode(&both, buf_span(&text), "");
	ret = arena_strndup(call->arena, buf_span(&both).at, buf_len(&both));
	buf_fini(&both);
	buf_fini(&text);
	return ret ? ret : "";
}

static void want_container(struct backend_call *call, const char *id)
{
	want(call, docker_target(call, "/containers/", span_of(id), "/json"), "containers", id);
}

static struct docker_space *known_space(struct docker *d, const struct backend_call *call,
					bool images)
{
	for (size_t i = 0; i < DOCKER_SPACES_MAX; i++) {
		struct docker_space *s = &d->spaces[i];

		if (s->images == images && !strcmp(s->owner, call->owner) &&
		    call->now_ms - s->at_ms < DOCKER_SPACE_FRESH_MS)
			return s;
	}
	return NULL;
}

static bool wants_space(struct docker *d, struct backend_call *call)
{
	struct counting *c = &call->counting;
	const struct docker_space *volumes = known_space(d, call, false);
	const struct docker_space *images = known_space(d, call, true);

	c->volume_bytes = volumes ? volumes->bytes : -1;
	c->image_bytes = images ? images->bytes : -1;
	return ((c->wants & COUNT_VOLUME_SPACE) && !volumes) ||
	       ((c->wants & COUNT_IMAGE_SPACE) && !images);
}

/* Engines before 1.42 tell all or nothing; behind 1.51 in another form. */
static const char *df_target(struct backend_call *call)
{
	int known = docker_state(call)->minor, minor = known > 51 ? 51 : known;
	unsigned wants = call->counting.wants;
	const char *type = !(wants & COUNT_IMAGE_SPACE)    ? "?type=volume"
			   : !(wants & COUNT_VOLUME_SPACE) ? "?type=image"
							   : "?type=image&type=volume";

	return docker_text(call, "/v1.%d/system/df%s", minor, minor < 42 ? "" : type);
}

/* In the form that the label beside it has: engines take no two forms in one filter. */
static const char *states_that_run(struct backend_call *call)
{
	const char *list = docker_state(call)->flavor->running, *ret;
	struct buf text;

	buf_init(&text, 256);
	for (const char *p = list; *p; p++)
		if (*p == '[')
			buf_puts(&text, "{");
		else
			buf_printf(&text, "%s%c", *p == ',' || *p == ']' ? ":true" : "",
				   *p == ']' ? '}' : *p);
	ret = docker_whole(call, buf_span(&text));
	buf_fini(&text);
	return ret;
}

static void begin(struct docker *d, struct backend_call *call)
{
	struct counting *c = &call->counting;
	int minor = docker_state(call)->minor;

	c->list = arena_take(call->arena, COUNTED_MAX * sizeof(*c->list));
	c->count = c->next = 0;
	call->lookup_count = 0;
	if (!c->list) {
		docker_refuse(call, REASON_no_memory, NULL, NULL);
		return;
	}
	if (c->wants & COUNT_RUNNING)
		want(call,
		     docker_text(
			     call, "/v1.%d/containers/json?filters=%s", minor,
			     own_filter(call, REACH_CONTAINERS,
					docker_text(call, "\"status\":%s", states_that_run(call)))),
		     "running", "");
	if (c->wants & COUNT_VOLUMES)
		want(call,
		     docker_text(call, "/v1.%d/volumes?filters=%s", minor,
				 own_filter(call, REACH_VOLUMES, "")),
		     "volumes", "");
	if (wants_space(d, call))
		want(call, df_target(call), "df", "");
	for (size_t i = 0; i < c->also_count; i++)
		want_container(call, c->also[i]);
}

/* --- what is answered --- */

static bool is_answer(struct backend_call *call, const struct lookup *l)
{
	if (!l->status)
		docker_refuse(call, l->late ? REASON_engine_timeout : REASON_engine_unreachable,
			      NULL, NULL);
	else if (l->status != 200 && !(l->status == 404 && !strcmp(l->table, "containers")))
		docker_refuse(call, REASON_engine_reply, l->table, NULL);
	return !call->refused.count;
}

/* Nothing is what an empty list says, and nothing else does. */
static bool is_list(struct backend_call *call, const struct lookup *l, const struct jv *rows)
{
	if (rows && rows->kind == JV_ARRAY)
		return true;
	docker_refuse(call, REASON_engine_reply, l->table, NULL);
	return false;
}

static void read_rows(struct backend_call *call, const struct lookup *l, enum reach_kind kind,
		      const struct jv *rows)
{
	for (size_t i = 0; is_list(call, l, rows) && i < rows->count; i++) {
		const struct docker_thing t = docker_row_thing(kind, &rows->items[i]);
		struct counted *one;

		if (!*t.id) {
			docker_refuse(call, REASON_engine_reply, l->table, NULL);
			return;
		}
		if (!docker_is_mine(call, &t))
			continue;
		one = add(call, docker_kind_name(kind), t.id);
		one->name = t.name;
		one->runs = true;
	}
}

static void read_container(struct backend_call *call, const struct lookup *l)
{
	const struct jv *doc = &l->body, *state = jv_get(doc, "State");
	const struct jv *host = jv_get(doc, "HostConfig");
	struct counted *one;
	struct docker_thing t;

	if (l->status == 404) {
		one = add(call, "container", l->key);
		one->gone = one->looked_at = true;
		one->runs = false;
		return;
	}
	t = docker_container_thing(doc);
	if (!docker_tells_state(doc) || !host || host->kind != JV_OBJECT ||
	    strcmp(t.id, l->key) != 0) {
		docker_refuse(call, REASON_engine_reply, "container", NULL);
		return;
	}
	one = add(call, "container", l->key);
	one->name = t.name;
	one->looked_at = true;
	one->since = jv_str(state, "StartedAt", "");
	one->runs = docker_is_mine(call, &t) &&
		    (jv_true(state, "Running") || jv_true(state, "Paused") ||
		     jv_true(state, "Restarting"));
	one->memory = jv_num(host, "Memory", 0);
	one->nano_cpus = docker_nano_cpus(host);
	one->pids = jv_num(host, "PidsLimit", 0);
}

static void keep_space(struct docker *d, const struct backend_call *call, bool images,
		       int64_t bytes)
{
	struct docker_space *s = &d->spaces[d->space_next++ % DOCKER_SPACES_MAX];

	snprintf(s->owner, sizeof(s->owner), "%s", call->owner);
	s->images = images;
	s->at_ms = call->now_ms;
	s->bytes = bytes;
}

/* Of a volume of which the engine does not know it, nobody knows what they take in sum. */
static int64_t volume_bytes(const struct backend_call *call, const struct jv *rows)
{
	int64_t sum = 0;

	if (!rows || rows->kind != JV_ARRAY)
		return -1;
	for (size_t i = 0; i < rows->count; i++) {
		const struct docker_thing t = docker_volume_thing(&rows->items[i]);
		int64_t size = jv_num(jv_get(&rows->items[i], "UsageData"), "Size", -1);

		if (*t.id && !docker_is_mine(call, &t))
			continue;
		if (!*t.id || size < 0 || size > INT64_MAX - sum)
			return -1;
		sum += size;
	}
	return sum;
}

/* All layers, less what only images take that others built: what is pulled belongs to nobody. */
static int64_t image_bytes(const struct backend_call *call, const struct jv *doc)
{
	const struct jv *rows = jv_get(doc, "Images");
	int64_t sum = jv_num(doc, "LayersSize", -1);

	for (size_t i = 0; rows && rows->kind == JV_ARRAY && i < rows->count && sum > 0; i++) {
		const struct jv *labels = jv_get(&rows->items[i], "Labels");
		const char *owner = jv_str(labels, GATE_LABEL_IMAGE_OWNER, "");
		int64_t size = jv_num(&rows->items[i], "Size", 0);
		int64_t shared = jv_num(&rows->items[i], "SharedSize", -1);

		if (*owner && strcmp(owner, call->owner) != 0 && shared >= 0 && size > shared)
			sum -= size - shared;
	}
	return sum;
}

static void read_space(struct docker *d, struct backend_call *call, const struct jv *doc)
{
	struct counting *c = &call->counting;

	if (c->wants & COUNT_VOLUME_SPACE)
		keep_space(d, call, false,
			   c->volume_bytes = volume_bytes(call, jv_get(doc, "Volumes")));
	if (c->wants & COUNT_IMAGE_SPACE)
		keep_space(d, call, true, c->image_bytes = image_bytes(call, doc));
}

static void read_answers(struct docker *d, struct backend_call *call)
{
	docker_translate(call);
	for (size_t i = 0; i < call->lookup_count && is_answer(call, &call->lookups[i]); i++) {
		const struct lookup *l = &call->lookups[i];

		if (!strcmp(l->table, "running"))
			read_rows(call, l, REACH_CONTAINERS, &l->body);
		else if (!strcmp(l->table, "volumes"))
			read_rows(call, l, REACH_VOLUMES, jv_get(&l->body, "Volumes"));
		else if (!strcmp(l->table, "df"))
			read_space(d, call, &l->body);
		else
			read_container(call, l);
	}
	call->lookup_count = 0;
}

/* Those of the list whose limits are not known yet. */
static void want_limits(struct backend_call *call)
{
	struct counting *c = &call->counting;

	if (!(c->wants & COUNT_LIMITS))
		return;
	for (; c->next < c->count && call->lookup_count < LOOKUPS_MAX; c->next++) {
		const struct counted *one = &c->list[c->next];

		if (c->next >= COUNT_LOOKED_MAX) {
			docker_refuse(call, REASON_facts_too_large, NULL, NULL)->text =
				"more containers run than the gate adds up";
			return;
		}
		if (!strcmp(one->kind, "container") && one->runs && !one->looked_at)
			want_container(call, one->id);
	}
}

enum step docker_count(struct backend *be, struct backend_call *call)
{
	struct docker *d = docker_of(be);
	struct counting *c = &call->counting;

	call->refused = (struct violations){.count = 0};
	if (c->round == ROUND_LISTS) {
		begin(d, call);
		c->round = ROUND_LIMITS;
		if (call->lookup_count && !call->refused.count)
			return STEP_LOOKUP;
	}
	read_answers(d, call);
	if (!call->refused.count)
		want_limits(call);
	if (arena_spent(call->arena))
		docker_refuse(call, REASON_no_memory, NULL, NULL);
	if (call->refused.count) {
		call->lookup_count = 0;
		return STEP_REFUSED;
	}
	return call->lookup_count ? STEP_LOOKUP : STEP_READY;
}
