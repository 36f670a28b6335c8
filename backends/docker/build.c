#include "backends/docker/build_priv.h"

#include <string.h>

bool docker_build_is_opaque(const struct backend_call *call)
{
	return call->op == OP_SYSTEM_SESSION ||
	       span_is(docker_query_value(call->req, "version"), "2");
}

struct docker_build *docker_build(struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	struct span given = docker_query_value(call->req, "dockerfile");
	struct docker_build *b = st->build;

	if (!b)
		b = st->build = call->reading; /* NULL: nothing was read yet */
	if (b)
		return b;
	b = arena_take(call->arena, sizeof(*b));
	if (b && (!tar_clean(given.len ? given : span_of("Dockerfile"), b->name) || !*b->name)) {
		docker_refuse_query(call, "dockerfile",
				    "a plain path within the build context is expected");
		return NULL;
	}
	if (b)
		b->tar = tar_open(call->arena, b->name);
	if (!b || !b->tar) {
		docker_refuse(call, REASON_no_memory, NULL, NULL);
		return NULL;
	}
	st->build = call->reading = b;
	return b;
}

/* --- names that are written --- */

static bool is_mine(struct backend_call *call, const struct jv *image)
{
	const struct jv *labels = jv_path(image, "Config.Labels");

	return !strcmp(jv_str(labels, GATE_LABEL_IMAGE_OWNER, ""), call->owner);
}

static void read_name(struct docker_reading *r, struct span given, const char *field)
{
	struct backend_call *call = r->call;
	struct docker_reference ref = docker_reference(call->arena, given);
	const struct lookup *answer;
	const char *name;

	if (!ref.valid || *ref.digest) {
		docker_refuse(call, REASON_image, field, docker_cut(call, given))->text =
			"this is no name for an image";
		return;
	}
	if (!*ref.tag)
		ref.tag = "latest";
	name = docker_reference_text(call, &ref);
	jv_push(call->arena, docker_fact_list(r, "names"), jv_string(name));
	jv_add(call->arena, &docker_state(call)->asked, span_of("t"), jv_string(name));
	answer = docker_ask_image(call, name);
	if (answer && answer->status == 200 && !is_mine(call, &answer->body))
		jv_push(call->arena, docker_fact_list(r, "build.taken"), jv_string(name));
}

static void read_names(struct docker_reading *r)
{
	const struct canonical *req = r->call->req;

	docker_fact(r, "names", jv_array());
	docker_fact(r, "build.taken", jv_array());
	for (size_t i = 0; i < req->query_count; i++)
		if (span_is(req->query[i].key, "t") && req->query[i].value.len)
			read_name(r, req->query[i].value, "query.t");
}

/* --- images that go in --- */

static const char *absent_text(struct backend_call *call, const char *given)
{
	return docker_text(
		call,
		"No such image: %s; a build through the gate does not fetch it, since its "
		"ONBUILD triggers could not be judged",
		given);
}

/* A step's container has the labels of its image: by this one it would be somebody else's. */
static void refuse_anothers(struct backend_call *call, const struct jv *image, const char *field)
{
	const char *owner = jv_str(jv_path(image, "Config.Labels"), GATE_LABEL_OWNER, "");
	struct violation *v;

	if (!*owner || strcmp(owner, call->owner) == 0)
		return;
	v = docker_refuse(call, REASON_label, field, GATE_LABEL_OWNER);
	v->text = "by a label of this image the containers of the build's steps would belong to "
		  "somebody else";
	v->hint = "Take an image that does not say whose containers are.";
}

static void add_image(struct docker_reading *r, const char *given, const char *field, bool copied,
		      bool may_be_absent)
{
	struct backend_call *call = r->call;
	struct docker_reading one = {.d = r->d, .call = call, .facts = jv_object()};
	const struct lookup *answer = docker_ask_image(call, given);
	struct jv *image;

	if (!answer || (may_be_absent && answer->status == 404))
		return;
	docker_read_image(&one, given, answer);
	if (!copied && answer->status == 200)
		refuse_anothers(call, &answer->body, field);
	if (call->instead.reason == REASON_image_absent) {
		call->instead.field = field;
		call->instead.text = absent_text(call, given);
	}
	image = (struct jv *)jv_get(&one.facts, "image");
	if (!image || call->refused.count)
		return;
	jv_set(call->arena, image, "field", jv_string(field));
	jv_set(call->arena, image, "copied", jv_bool(copied));
	jv_push(call->arena, docker_fact_list(r, "build.images"), *image);
	if (may_be_absent)
		jv_push(call->arena, docker_fact_list(r, "build.cache"), jv_string(given));
}

/* Layers of these are taken where they fit; those that are not here are not sent. */
static void read_cache(struct docker_reading *r)
{
	struct backend_call *call = r->call;
	struct span text = docker_query_value(call->req, "cachefrom");
	enum jv_fault fault = JV_FAULT_NONE;
	struct err err = {0};
	struct jv list;
	struct buf out;

	docker_fact(r, "build.cache", jv_array());
	if (!text.len || span_is(text, "null") || span_is(text, "[]") || span_is(text, "{}"))
		return;
	if (jv_parse(call->arena, text, &list, &fault, &err) < 0 || list.kind != JV_ARRAY) {
		docker_refuse_query(call, "cachefrom", "a list of images is expected");
		return;
	}
	for (size_t i = 0; i < list.count; i++) {
		if (list.items[i].kind != JV_STRING || !list.items[i].str.len) {
			docker_refuse_query(call, "cachefrom", "a list of images is expected");
			return;
		}
		add_image(r, list.items[i].str.at, "query.cachefrom", true, true);
	}
	buf_init(&out, 65536);
	jv_write(&out, docker_fact_list(r, "build.cache"));
	if (docker_fact_list(r, "build.cache")->count)
		docker_send(call, "cachefrom", docker_whole(call, buf_span(&out)));
	buf_fini(&out);
}

/* --- together --- */

static void say_names_of(struct docker_reading *r, const struct jv *map, const char *fact)
{
	struct jv *list = docker_fact_list(r, fact);

	for (size_t i = 0; i < map->count; i++)
		jv_push(r->call->arena, list, jv_string(docker_word(r->call, map->members[i].key)));
}

static void say_does(struct docker_reading *r, const struct docker_build *b,
		     const struct dockerfile_does *does)
{
	struct backend_call *call = r->call;

	docker_fact(r, "build.dockerfile", jv_string(b->name));
	docker_fact(r, "build.sha256", jv_string(b->sha256));
	docker_fact(r, "build.runs", jv_bool(does->runs));
	docker_fact_list(r, "build.images");
	docker_fact(r, "build.urls", does->urls);
	say_names_of(r, &b->args, "build.args");
	docker_fact(r, "command.healthcheck", jv_bool(does->healthcheck));
	docker_fact(r, "user.given", jv_string(""));
	if (!does->root_unknown || does->root)
		docker_fact(r, "user.root", jv_bool(does->root));
	for (size_t i = 0; i < does->labels.count; i++)
		jv_push(call->arena, docker_fact_list(r, "labels"), does->labels.items[i]);
	for (size_t i = 0; i < does->images.count; i++)
		add_image(r, jv_str(&does->images.items[i], "given", ""),
			  jv_str(&does->images.items[i], "field", ""),
			  jv_true(&does->images.items[i], "copied"), false);
}

static struct docker_reading reading_of(struct docker *d, struct backend_call *call,
					const struct docker_info *info)
{
	struct docker_state *st = docker_state(call);

	return (struct docker_reading){.d = d,
				       .call = call,
				       .info = info,
				       .config = &st->body,
				       .host = jv_get(&st->body, "HostConfig"),
				       .facts = jv_object()};
}

/* Nothing runs: then it needs no network, and gets none. */
static void close_network(struct docker_reading *r)
{
	if (jv_true(jv_get(&r->facts, "network"), "given"))
		return;
	docker_fact(r, "network.mode", jv_string("none"));
}

static void read_build(struct docker *d, struct backend_call *call, struct docker_build *b,
		       const struct docker_info *info)
{
	struct docker_reading r = reading_of(d, call, info);
	struct dockerfile_does does;

	docker_state(call)->asked = jv_object();
	call->instead = (struct violation){.reason = REASON_NONE};
	read_names(&r);
	read_cache(&r);
	if (call->refused.count || !dockerfile_does(&r, &b->file, b->name, &b->args, &does))
		return;
	docker_read_workload(&r);
	say_does(&r, b, &does);
	if (!does.runs)
		close_network(&r);
	docker_build_ask(call, b, does.runs);
	call->workload = (struct workload){r.facts, r.level};
}

/*
 * BuildKit runs its steps with runc, whatever the engine's default is, and what
 * the tunnels carry is not seen: of all facts only these are known.
 */
static void read_opaque(struct docker *d, struct backend_call *call, const struct docker_info *info)
{
	struct docker_reading r = reading_of(d, call, info);

	docker_read_workload(&r);
	docker_fact(&r, "opaque", jv_string("buildkit"));
	docker_lower(&r, LOWER_BUILDKIT, "version", "2");
	docker_finish_isolation(&r);
	if (call->op == OP_IMAGE_BUILD) {
		docker_state(call)->asked = jv_object();
		read_names(&r);
		docker_build_ask(call, docker_state(call)->build, true);
	}
	docker_warn(call, "opaque: buildkit; what this exchange carries is not seen");
	call->workload = (struct workload){r.facts, r.level};
}

/* The client sends its files through the session; a URL would be fetched by the engine. */
static bool check_opaque(struct backend_call *call)
{
	struct span remote = docker_query_value(call->req, "remote");

	if (!remote.len || span_is(remote, "client-session"))
		return true;
	call->withheld |= WITHHELD_VALUE;
	docker_refuse(call, REASON_build, "query.remote", NULL)->text =
		"the engine would fetch what nobody has judged";
	return false;
}

void docker_step_build(struct docker *d, struct backend_call *call)
{
	struct docker_build *b = docker_build(call);
	const struct docker_info *info;
	bool opaque = docker_build_is_opaque(call);

	if (!b || !docker_build_query(call, b) || (opaque && !check_opaque(call)))
		return;
	if (!opaque && !b->read) {
		docker_refuse(call, REASON_build_context, "body", NULL)->text =
			"there is no build context";
		return;
	}
	if (!docker_check_registry_config(call) || !docker_speak(d, call))
		return;
	info = docker_know(d, call);
	if (info && opaque)
		read_opaque(d, call, info);
	else if (info)
		read_build(d, call, b, info);
}

bool docker_build_again(struct docker *d, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);

	if (!st->build || !st->info || docker_build_is_opaque(call))
		return false;
	read_build(d, call, st->build, st->info);
	return !call->refused.count;
}

/* POST /session and /grpc: HTTP/2 from here on, in which the client and BuildKit speak. */
void docker_step_tunnel(struct docker *d, struct backend_call *call)
{
	struct docker_state *st = docker_state(call);
	const struct docker_info *info;

	if (call->reply != REPLY_HIJACK) {
		docker_refuse(call, REASON_upgrade, "Upgrade", call->req->upgrade_to)->hint =
			"Set DOCKER_BUILDKIT=0; or send Connection: Upgrade and Upgrade: h2c.";
		return;
	}
	st->body = jv_object();
	jv_set(call->arena, &st->body, "HostConfig", jv_object());
	if (!docker_speak(d, call))
		return;
	info = docker_know(d, call);
	if (info)
		read_opaque(d, call, info);
}
