#include "backends/docker/docker_priv.h"

#include <string.h>

/* --- reading whole images --- */

/* What is read: one tag, or an id.  NULL: not known yet, or refused. */
static const char *read_one(struct docker_reading *r, struct jv *images, const char *given,
			    const char *field)
{
	struct backend_call *call = r->call;
	const struct lookup *answer = docker_ask_image(call, given);
	struct docker_reading one = {.d = r->d, .call = call, .facts = jv_object()};
	struct docker_reference ref = docker_reference(call->arena, span_of(given));
	struct jv *image;

	if (!answer)
		return NULL;
	if (answer->status == 200 &&
	    !docker_admit_image(call, &answer->body, given,
				docker_text(call, "No such image: %s", given)))
		return NULL;
	docker_read_image(&one, given, answer);
	image = (struct jv *)jv_get(&one.facts, "image");
	if (!image || call->refused.count)
		return NULL;
	jv_set(call->arena, image, "field", jv_string(field));
	jv_push(call->arena, images, *image);
	if (jv_true(image, "by_id"))
		return jv_str(image, "id", given);
	if (!*ref.tag && !*ref.digest) {
		docker_warn(call, docker_text(call, "of %s only the tag latest is read", given));
		ref.tag = "latest";
	}
	return docker_reference_text(call, &ref);
}

static void finish_save(struct docker_reading *r, struct jv images)
{
	docker_fact(r, "images", images);
	docker_send_given(r->call, "platform");
	r->call->workload = (struct workload){.facts = r->facts};
}

/* GET /images/get?names=...&names=... */
void docker_step_save(struct docker *d, struct backend_call *call)
{
	struct docker_reading r = {.d = d, .call = call, .facts = jv_object()};
	const struct canonical *req = call->req;
	struct jv images = jv_array();
	size_t named = 0;

	docker_state(call)->asked = jv_object();
	if (!docker_speak(d, call))
		return;
	for (size_t i = 0; i < req->query_count; i++) {
		struct span value = req->query[i].value;
		const char *name;

		if (!span_is(req->query[i].key, "names") || !value.len)
			continue;
		name = read_one(&r, &images, docker_whole(call, value),
				docker_text(call, "query.names[%zu]", named++));
		if (name)
			docker_send(call, "names", name);
	}
	if (!named)
		docker_refuse_query(call, "names", "no image is named");
	finish_save(&r, images);
}

/* GET /images/{name}/get */
void docker_step_save_one(struct docker *d, struct backend_call *call)
{
	struct docker_reading r = {.d = d, .call = call, .facts = jv_object()};
	struct docker_state *st = docker_state(call);
	const char *given = docker_whole(call, st->name);
	struct jv images = jv_array();

	st->asked = jv_object();
	if (!docker_speak(d, call))
		return;
	st->target = read_one(&r, &images, given, "path");
	finish_save(&r, images);
}

/* --- another name, and sending away --- */

void docker_step_tag(struct docker *d, struct backend_call *call)
{
	struct docker_reading r = {.d = d, .call = call, .facts = jv_object()};
	struct docker_state *st = docker_state(call);
	const char *given = docker_whole(call, st->name);
	const struct lookup *answer;

	st->asked = jv_object();
	if (!docker_query_value(call->req, "repo").len) {
		docker_refuse_query(call, "repo", "no new name is given");
		return;
	}
	if (!docker_read_new_name(&r) || !docker_speak(d, call))
		return;
	answer = docker_ask_image(call, given);
	if (!answer)
		return;
	if (answer->status == 200 &&
	    !docker_admit_image(call, &answer->body, given,
				docker_text(call, "No such image: %s", given)))
		return;
	docker_read_image(&r, given, answer);
	st->target = jv_str(jv_get(&r.facts, "image"), "id", given);
	call->object =
		(struct object){.kind = "image", .id = st->target, .name = given, .owner = ""};
	call->workload = (struct workload){.facts = r.facts};
}

/* By its name alone: that is what is sent away, whatever stands behind it. */
static bool admit_name(struct backend_call *call, const struct docker_reference *ref)
{
	const char *name = docker_reference_text(call, ref);
	struct jv doc = jv_object(), names = jv_array();

	jv_push(call->arena, &names, jv_string(name));
	jv_set(call->arena, &doc, "RepoTags", names);
	return docker_admit_image(call, &doc, name, docker_text(call, "No such image: %s", name));
}

/* What has a registry's name may have been made here; sent there it would be the registry's. */
static bool read_pushed(struct docker_reading *r, const struct docker_reference *ref)
{
	const char *name = docker_reference_familiar(r->call, ref);
	const struct lookup *answer;

	if (!*ref->tag) { /* all that it has; rules refuse it where that matters */
		docker_fact(r, "image.name", jv_string(ref->name));
		docker_fact(r, "image.by_id", jv_bool(false));
		return true;
	}
	answer = docker_ask_image(r->call, name);
	if (answer)
		docker_read_image(r, name, answer);
	return answer && !r->call->refused.count;
}

/* Sent with its registry, so that no engine reads the name in another way. */
void docker_step_push(struct docker *d, struct backend_call *call)
{
	struct docker_reading r = {.d = d, .call = call, .facts = jv_object()};
	struct docker_state *st = docker_state(call);
	const char *given = docker_whole(call, st->name);
	struct docker_reference ref = docker_reference_with_tag(call, given, "path");

	st->asked = jv_object();
	if (!ref.valid || !docker_check_registry_auth(call))
		return;
	if (*ref.digest) {
		docker_refuse(call, REASON_image, "path", given)->text =
			"an engine pushes tags, not digests";
		return;
	}
	if (!admit_name(call, &ref) || !docker_speak(d, call) || !read_pushed(&r, &ref))
		return;
	docker_fact(&r, "image.given", jv_string(given));
	docker_fact(&r, "registry.host", jv_string(docker_registry_of(call, span_of(ref.name))));
	st->target = ref.name;
	docker_send(call, "tag", ref.tag);
	docker_send_given(call, "platform");
	call->object = (struct object){.kind = "image", .id = "", .name = ref.name, .owner = ""};
	call->workload = (struct workload){.facts = r.facts};
}

/* --- asking registries --- */

/* "reg.example/word" asks that registry; a word alone asks Docker Hub. */
void docker_step_search(struct docker *d, struct backend_call *call)
{
	struct docker_reading r = {.d = d, .call = call, .facts = jv_object()};
	struct span term = docker_query_value(call->req, "term");

	if (!docker_check_registry_auth(call) || !docker_filters_read(call))
		return;
	if (strstr(docker_query_text(call, "term"), "://")) {
		docker_refuse_query(call, "term", "a term has no scheme");
		return;
	}
	docker_fact(&r, "registry.host", jv_string(docker_registry_of(call, term)));
	call->workload = (struct workload){.facts = r.facts};
	docker_speak(d, call);
}

void docker_step_distribution(struct docker *d, struct backend_call *call)
{
	struct docker_reading r = {.d = d, .call = call, .facts = jv_object()};
	struct docker_state *st = docker_state(call);
	struct docker_reference ref = docker_reference(call->arena, st->name);

	if (!docker_check_registry_auth(call))
		return;
	if (!ref.valid) {
		docker_refuse(call, REASON_image, "path", docker_cut(call, st->name))->text =
			"this is no reference of an image";
		return;
	}
	if (!*ref.tag && !*ref.digest)
		ref.tag = "latest";
	docker_fact(&r, "registry.host", jv_string(docker_registry_of(call, span_of(ref.name))));
	docker_fact(&r, "registry.name", jv_string(ref.name));
	st->target = docker_reference_text(call, &ref);
	call->workload = (struct workload){.facts = r.facts};
	docker_speak(d, call);
}
