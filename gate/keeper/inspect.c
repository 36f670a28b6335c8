/* inspect.c - sandboxes as an engine would show them. */
#include "gate/base/clock.h"
#include "gate/base/hash.h"
#include "gate/keeper/state_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS 1000000000u

const char *time_text(struct arena *a, uint64_t ns)
{
	char text[CLOCK_TEXT_MAX];

	if (!ns)
		return "0001-01-01T00:00:00Z";
	clock_format(ns, text);
	return keeper_text(a, text);
}

static const char *stage_word(const struct container *c)
{
	switch (c->stage) {
	case STAGE_CREATED:
	case STAGE_STARTING:
		return "created";
	case STAGE_RUNNING:
	case STAGE_ENDING:
		return "running";
	case STAGE_EXITED:
		return "exited";
	case STAGE_GONE:
		break;
	}
	return "dead";
}

static bool runs(const struct container *c)
{
	return c->stage == STAGE_RUNNING || c->stage == STAGE_ENDING;
}

static struct jv state_of(struct arena *a, const struct container *c)
{
	struct jv s = jv_object();

	jv_set(a, &s, "Status", jv_string(stage_word(c)));
	jv_set(a, &s, "Running", jv_bool(runs(c)));
	jv_set(a, &s, "Paused", jv_bool(false));
	jv_set(a, &s, "Restarting", jv_bool(false));
	jv_set(a, &s, "OOMKilled", jv_bool(c->oom));
	jv_set(a, &s, "Dead", jv_bool(false));
	jv_set(a, &s, "Pid", jv_int(c->stage == STAGE_RUNNING ? c->pid : 0));
	jv_set(a, &s, "ExitCode", jv_int(c->exit_code));
	jv_set(a, &s, "Error", jv_string(""));
	jv_set(a, &s, "StartedAt", jv_string(time_text(a, c->started_ns)));
	jv_set(a, &s, "FinishedAt", jv_string(time_text(a, c->finished_ns)));
	return s;
}

static struct jv words_of(struct arena *a, const char *const *list)
{
	struct jv words = jv_array();

	for (size_t i = 0; list[i]; i++)
		jv_push(a, &words, jv_string(list[i]));
	return words;
}

/* What the request brought, and what the image would have: without the tree below. */
static struct jv config_of(const struct keeper *k, struct arena *a, const struct container *c)
{
	struct jv config = jv_object();

	for (size_t i = 0; i < c->config.count; i++) {
		const struct jv_member *m = &c->config.members[i];

		if (!span_is(m->key, "HostConfig") && !span_is(m->key, "NetworkingConfig"))
			jv_add(a, &config, m->key, m->value);
	}
	jv_set(a, &config, "Env", words_of(a, c->plan.env));
	if (!*jv_str(&config, "User", ""))
		jv_set(a, &config, "User", jv_string(k->user));
	if (!*jv_str(&config, "Hostname", ""))
		jv_set(a, &config, "Hostname", jv_string(keeper_text(a, c->id)));
	return config;
}

static const char *mode_word(const struct container *c)
{
	return c->plan.mode == BOX_BARE ? "bare" : "confined";
}

static struct jv host_of(struct arena *a, const struct container *c)
{
	struct jv host = jv_object();

	for (size_t i = 0; i < c->host.count; i++)
		jv_add(a, &host, c->host.members[i].key, c->host.members[i].value);
	jv_set(a, &host, "Runtime", jv_string(mode_word(c)));
	return host;
}

static struct jv networks_of(struct arena *a, const struct container *c)
{
	struct jv settings = jv_object();
	struct jv *networks = jv_set(a, &settings, "Networks", jv_object());

	if (c->plan.mode == BOX_CONFINED)
		jv_set(a, networks, "none", jv_object());
	return settings;
}

/* A name that is nobody else's, as engines give volumes that an image asks for. */
static const char *volume_name(struct arena *a, const char *path)
{
	char hex[HASH_HEX_LEN + 1];
	struct hash h = hash_of(span_of(path));

	hash_hex(&h, hex);
	return keeper_text(a, hex);
}

static void add_mount(struct arena *a, struct jv *list, const char *type, const char *source,
		      const char *target, bool writable)
{
	struct jv *m = jv_push(a, list, jv_object());

	jv_set(a, m, "Type", jv_string(type));
	if (!strcmp(type, "volume"))
		jv_set(a, m, "Name", jv_string(volume_name(a, source)));
	jv_set(a, m, "Source", jv_string(source));
	jv_set(a, m, "Destination", jv_string(target));
	jv_set(a, m, "Mode", jv_string(writable ? "" : "ro"));
	jv_set(a, m, "RW", jv_bool(writable));
	jv_set(a, m, "Propagation", jv_string("rprivate"));
}

/* The folders of the host, and the devices that every box has, are the image's, so they are shown
 * as what an image brings. */
static struct jv mounts_of(const struct keeper *k, struct arena *a, const struct container *c)
{
	static const char *const devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
					      "/dev/random", "/dev/urandom", "/dev/tty"};
	struct jv list = jv_array();
	const struct plan *p = &c->plan;

	for (size_t i = 0; p->mode == BOX_CONFINED && i < sizeof(devices) / sizeof(*devices); i++)
		add_mount(a, &list, "volume", devices[i], devices[i], false);
	for (size_t i = 0; p->mode == BOX_CONFINED && k->conf->read_only[i]; i++)
		add_mount(a, &list, "volume", k->conf->read_only[i], k->conf->read_only[i], false);
	for (size_t i = 0; i < p->bind_count; i++)
		add_mount(a, &list, "bind", p->binds[i].source, p->binds[i].target,
			  p->binds[i].writable);
	return list;
}

void route_inspect(struct call *call)
{
	struct container *c = call_container(call);
	struct arena *a = call->r->arena;
	struct jv doc = jv_object();
	char *name;

	if (!c)
		return;
	name = arena_take(a, KEEPER_NAME_MAX + 2);
	if (name)
		snprintf(name, KEEPER_NAME_MAX + 2, "/%s", c->name);
	pthread_mutex_lock(&call->k->lock);
	jv_set(a, &doc, "Id", jv_string(c->id));
	jv_set(a, &doc, "Created", jv_string(time_text(a, c->created_ns)));
	jv_set(a, &doc, "Path", jv_string(c->plan.argv[0]));
	jv_set(a, &doc, "Args", words_of(a, c->plan.argv + 1));
	jv_set(a, &doc, "State", state_of(a, c));
	jv_set(a, &doc, "Image", jv_string(call->k->image_id));
	jv_set(a, &doc, "Name", jv_string(name));
	jv_set(a, &doc, "RestartCount", jv_int(0));
	jv_set(a, &doc, "Driver", jv_string("host"));
	jv_set(a, &doc, "Platform", jv_string("linux"));
	jv_set(a, &doc, "MountLabel", jv_string(""));
	jv_set(a, &doc, "ProcessLabel", jv_string(""));
	jv_set(a, &doc, "AppArmorProfile", jv_string(""));
	jv_set(a, &doc, "ExecIDs", jv_null());
	jv_set(a, &doc, "HostConfig", host_of(a, c));
	jv_set(a, &doc, "Mounts", mounts_of(call->k, a, c));
	jv_set(a, &doc, "Config", config_of(call->k, a, c));
	jv_set(a, &doc, "NetworkSettings", networks_of(a, c));
	pthread_mutex_unlock(&call->k->lock);
	say_json(call, 200, &doc);
	call_release(call, c);
}

/* --- the list --- */

static const struct jv *filter_values(const struct jv *filters, const char *key, struct jv *scratch,
				      struct arena *a)
{
	const struct jv *v = jv_get(filters, key);

	if (!v || v->kind != JV_OBJECT)
		return v;
	*scratch = jv_array();
	for (size_t i = 0; i < v->count; i++)
		jv_push(a, scratch, jv_span(v->members[i].key));
	return scratch;
}

static bool has_label(const struct container *c, struct span want)
{
	const struct jv *labels = jv_get(&c->config, "Labels"), *v;
	struct span value = want, name;
	bool has_value = span_cut(&value, '=', &name);

	v = jv_get_span(labels, name);
	return v && (!has_value || (v->kind == JV_STRING && span_eq(v->str, value)));
}

static bool fits_one(const struct container *c, const char *key, struct span want)
{
	if (!strcmp(key, "id"))
		return want.len <= KEEPER_ID_LEN && !memcmp(c->id, want.at, want.len);
	if (!strcmp(key, "name"))
		return span_is(want, c->name) ||
		       (want.len && *want.at == '/' && span_is(span_skip(want, 1), c->name));
	if (!strcmp(key, "status"))
		return span_is(want, stage_word(c));
	return span_is(want, KEEPER_IMAGE);
}

/* All labels that are named, and one of the values of each other key. */
static bool fits(const struct container *c, const struct jv *filters, struct arena *a)
{
	static const char *const keys[] = {"id", "name", "status", "ancestor"};
	struct jv scratch;
	const struct jv *labels = filter_values(filters, "label", &scratch, a);

	for (size_t i = 0; labels && i < labels->count; i++)
		if (labels->items[i].kind != JV_STRING || !has_label(c, labels->items[i].str))
			return false;
	for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
		const struct jv *list = filter_values(filters, keys[k], &scratch, a);
		bool any = !list || !list->count;

		for (size_t i = 0; list && i < list->count && !any; i++)
			any = list->items[i].kind == JV_STRING &&
			      fits_one(c, keys[k], list->items[i].str);
		if (!any)
			return false;
	}
	return true;
}

static bool read_filters(struct call *call, struct jv *ret)
{
	static const char *const known[] = {"id", "name", "status", "ancestor", "label"};
	const char *text = httpd_query(call->r, "filters");
	enum jv_fault fault;
	struct err err = {0};

	*ret = jv_object();
	if (!text || !*text)
		return true;
	if (jv_parse(call->r->arena, span_of(text), ret, &fault, &err) < 0 ||
	    ret->kind != JV_OBJECT) {
		say(call, 400, "filters: a JSON object is expected");
		return false;
	}
	for (size_t i = 0; i < ret->count; i++) {
		bool found = false;

		for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++)
			found = found || span_is(ret->members[i].key, known[k]);
		if (!found) {
			say(call, 400, "Invalid filter '%.60s'", ret->members[i].key.at);
			return false;
		}
	}
	return true;
}

static const char *command_text(struct arena *a, const struct container *c)
{
	char text[160];
	size_t n = 0;

	for (size_t i = 0; c->plan.argv[i] && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? " " : "",
				      c->plan.argv[i]);
	return keeper_text(a, text);
}

static void add_row(struct call *call, struct jv *list, const struct container *c)
{
	struct arena *a = call->r->arena;
	struct jv *row = jv_push(a, list, jv_object()), *names, *host;
	const struct jv *labels = jv_get(&c->config, "Labels");
	char *name = arena_take(a, KEEPER_NAME_MAX + 2);

	if (name)
		snprintf(name, KEEPER_NAME_MAX + 2, "/%s", c->name);
	jv_set(a, row, "Id", jv_string(keeper_text(a, c->id)));
	names = jv_set(a, row, "Names", jv_array());
	jv_push(a, names, jv_string(name));
	jv_set(a, row, "Image", jv_string(KEEPER_IMAGE));
	jv_set(a, row, "ImageID", jv_string(call->k->image_id));
	jv_set(a, row, "Command", jv_string(command_text(a, c)));
	jv_set(a, row, "Created", jv_int((int64_t)(c->created_ns / NS)));
	jv_set(a, row, "Ports", jv_array());
	jv_set(a, row, "Labels", labels ? *labels : jv_object());
	jv_set(a, row, "State", jv_string(stage_word(c)));
	jv_set(a, row, "Status", jv_string(runs(c) ? "Up" : stage_word(c)));
	host = jv_set(a, row, "HostConfig", jv_object());
	jv_set(a, host, "NetworkMode", jv_string(jv_str(&c->host, "NetworkMode", "default")));
	jv_set(a, row, "NetworkSettings", networks_of(a, c));
	jv_set(a, row, "Mounts", mounts_of(call->k, a, c));
}

void route_list(struct call *call)
{
	struct jv list = jv_array(), filters;
	const char *limit = httpd_query(call->r, "limit");
	size_t most = limit ? strtoul(limit, NULL, 10) : 0;
	bool all = query_true(call, "all") || most;
	struct buf out;

	if (!read_filters(call, &filters))
		return;
	all = all || jv_get(&filters, "status");
	buf_init(&out, (size_t)64 << 20);
	pthread_mutex_lock(&call->k->lock);
	for (struct container *c = call->k->containers; c; c = c->next)
		if ((all || runs(c)) && fits(c, &filters, call->r->arena) &&
		    (!most || list.count < most))
			add_row(call, &list, c);
	jv_write(&out, &list); /* labels are the containers' */
	pthread_mutex_unlock(&call->k->lock);
	buf_puts(&out, "\n");
	if (buf_spent(&out) || arena_spent(call->r->arena))
		say(call, 500, "the list is too long");
	else
		httpd_reply(call->r, 200, "application/json", buf_span(&out));
	buf_fini(&out);
}
