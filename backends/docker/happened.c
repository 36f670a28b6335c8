/* What the engine says has happened: read for the watcher, who has nobody's request in hand. */
#include "backends/docker/docker_priv.h"

#include "gate/base/clock.h"
#include "gate/base/hash.h"

#include <string.h>

#define NAME_MAX 255 /* of what goes on record */

/* Without a version: what is read of events has been the same in all of them. */
void docker_watch(struct backend *be, const char *since, struct buf *ret_head)
{
	(void)be;
	buf_printf(ret_head,
		   "GET /events%s%s HTTP/1.1\r\nHost: docker\r\nUser-Agent: "
		   "sallyport-watcher\r\n\r\n",
		   *since ? "?since=" : "", since);
}

static const struct {
	const char *type, *action;
	enum effect effect;
	enum operation op;
} rows[] = {
#define EVENT(type, action, effect, op) {type, action, EFFECT_##effect, OP_##op},
#include "backends/docker/happened.def"
#undef EVENT
};

static const struct {
	const char *action;
	enum life life;
} lives[] = {{"kill", LIFE_KILL}, {"die", LIFE_DIE}, {"stop", LIFE_STOP}, {"destroy", LIFE_GONE}};

static const char *shortened(struct arena *a, const char *text)
{
	const char *copy = arena_strndup(a, text, strnlen(text, NAME_MAX));

	return copy ? copy : "";
}

/* "exec_create: ls" is the action exec_create with the command ls. */
static bool is_action(const char *text, const char *action, const char **ret_command)
{
	size_t len = strlen(action);

	if (strncmp(text, action, len) != 0 || (text[len] && text[len] != ':'))
		return false;
	*ret_command = text[len] ? text + len + 1 + strspn(text + len + 1, " ") : "";
	return true;
}

static int read_container(const struct jv *attributes, struct arena *a, struct happening *ret)
{
	if (!hash_is_hex(span_of(ret->id)))
		return -1;
	ret->container = ret->id;
	ret->image = shortened(a, jv_str(attributes, "image", ""));
	ret->image_by_id = strncmp(ret->image, "sha256:", 7) == 0;
	ret->decision = shortened(a, jv_str(attributes, GATE_LABEL_ID, ""));
	if (ret->effect != EFFECT_EXEC && ret->effect != EFFECT_EXEC_START)
		return 0;
	ret->kind = "exec";
	ret->id = shortened(a, jv_str(attributes, "execID", ""));
	return hash_is_hex(span_of(ret->id)) ? 0 : -1;
}

static int read_object(const struct jv *attributes, struct arena *a, struct happening *ret)
{
	if (strcmp(ret->kind, "container") == 0)
		return read_container(attributes, a, ret);
	if (strcmp(ret->kind, "network") != 0)
		return 0;
	ret->container = shortened(a, jv_str(attributes, "container", ""));
	return hash_is_hex(span_of(ret->id)) && hash_is_hex(span_of(ret->container)) ? 0 : -1;
}

static void read_action(const char *type, const char *action, struct happening *ret)
{
	const char *command;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (strcmp(rows[i].type, type) == 0 &&
		    is_action(action, rows[i].action, &command)) {
			ret->effect = rows[i].effect;
			ret->op = rows[i].op;
			ret->kind = rows[i].type;
			ret->command = command;
		}
	for (size_t i = 0; strcmp(type, "container") == 0 && i < sizeof(lives) / sizeof(*lives);
	     i++)
		if (strcmp(action, lives[i].action) == 0) {
			ret->life = lives[i].life;
			ret->kind = "container";
		}
}

static const struct happening nothing = {
	.kind = "",
	.id = "",
	.name = "",
	.container = "",
	.image = "",
	.decision = "",
	.command = "",
};

int docker_happened(struct backend *be, struct span line, struct arena *a, struct happening *ret)
{
	const struct jv *actor, *attributes, *nano;
	enum jv_fault fault;
	struct err err = {0};
	struct jv doc;

	(void)be;
	*ret = nothing;
	if (jv_parse(a, line, &doc, &fault, &err) < 0 || doc.kind != JV_OBJECT)
		return -1;
	actor = jv_get(&doc, "Actor");
	attributes = jv_get(actor, "Attributes");
	nano = jv_get(&doc, "timeNano");
	if (!nano || nano->kind != JV_INT || nano->i <= 0)
		return -1;
	ret->at_ns = (uint64_t)nano->i;
	ret->id = shortened(a, jv_str(actor, "ID", ""));
	ret->name = shortened(a, jv_str(attributes, "name", ""));
	read_action(jv_str(&doc, "Type", ""), jv_str(&doc, "Action", ""), ret);
	if (ret->effect == EFFECT_NONE && ret->life == LIFE_NONE)
		return *jv_str(&doc, "Type", "") && *jv_str(&doc, "Action", "") ? 0 : -1;
	if (read_object(attributes, a, ret) < 0)
		return -1;
	return arena_spent(a) ? -1 : 0;
}

/* --- what nobody asked for --- */

static bool restarts(const struct jv *container)
{
	const char *policy = jv_str(jv_path(container, "HostConfig.RestartPolicy"), "Name", "");

	return strcmp(policy, "always") == 0 || strcmp(policy, "unless-stopped") == 0 ||
	       strcmp(policy, "on-failure") == 0;
}

static void put_words(struct buf *out, const struct jv *list, size_t from)
{
	for (size_t i = from; list && list->kind == JV_ARRAY && i < list->count; i++)
		if (list->items[i].kind == JV_STRING) {
			buf_puts(out, buf_len(out) ? " " : "");
			buf_put(out, list->items[i].str.at, list->items[i].str.len);
		}
}

/* As the engine says the command of a health check in its events. */
static bool is_health_check(const char *command, const struct jv *container)
{
	const struct jv *test = jv_path(container, "Config.Healthcheck.Test");
	const struct jv *shell = jv_path(container, "Config.Shell");
	struct buf words;
	bool same;

	if (!test || test->kind != JV_ARRAY || test->count < 2 || test->items[0].kind != JV_STRING)
		return false;
	buf_init(&words, 65536);
	if (span_is(test->items[0].str, "CMD-SHELL")) {
		if (shell && shell->kind == JV_ARRAY && shell->count)
			put_words(&words, shell, 0);
		else
			buf_puts(&words, "/bin/sh -c");
	}
	put_words(&words, test, 1);
	same = !buf_spent(&words) && span_is(buf_span(&words), command);
	buf_fini(&words);
	return same;
}

const char *docker_by_itself(struct backend *be, const struct happening *h,
			     const struct jv *container)
{
	(void)be;
	if (h->effect == EFFECT_START && restarts(container))
		return "restarted_by_engine";
	if (h->effect == EFFECT_EXEC && is_health_check(h->command, container))
		return "health_check";
	return NULL;
}

/* --- what is there --- */

void docker_inspect_target(const char *id, struct buf *ret)
{
	buf_printf(ret, "/containers/%.64s/json", id);
}

int docker_listed(const struct jv *row, struct arena *a, struct happening *ret, bool *ret_runs)
{
	const struct jv *names = jv_get(row, "Names");
	int64_t created = jv_num(row, "Created", 0);

	*ret = nothing;
	ret->effect = EFFECT_CREATE;
	ret->op = OP_CONTAINER_CREATE;
	ret->kind = "container";
	ret->id = ret->container = shortened(a, jv_str(row, "Id", ""));
	if (names && names->kind == JV_ARRAY && names->count && names->items[0].kind == JV_STRING)
		ret->name = shortened(a, names->items[0].str.at +
						 span_starts(names->items[0].str, "/"));
	ret->image = shortened(a, jv_str(row, "Image", ""));
	ret->image_by_id = strncmp(ret->image, "sha256:", 7) == 0;
	ret->decision = shortened(a, jv_str(jv_get(row, "Labels"), GATE_LABEL_ID, ""));
	ret->at_ns = created > 0 ? (uint64_t)created * 1000000000 : 0;
	*ret_runs = strcmp(jv_str(row, "State", ""), "running") == 0;
	return hash_is_hex(span_of(ret->id)) && !arena_spent(a) ? 0 : -1;
}

uint64_t docker_started_ns(const struct jv *container)
{
	const struct jv *state = jv_get(container, "State");
	const char *text = jv_str(state, "StartedAt", "");
	char whole[] = "0000-00-00T00:00:00Z";
	int64_t seconds;

	if (strlen(text) < sizeof(whole) - 1)
		return 0;
	memcpy(whole, text, sizeof(whole) - 2); /* without its fraction */
	seconds = clock_parse(whole, sizeof(whole) - 1);
	return jv_true(state, "Running") && seconds > 0 ? (uint64_t)seconds * 1000000000 : 0;
}
