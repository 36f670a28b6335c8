#include "backends/docker/docker_priv.h"

#include <string.h>

/* --- references of what runs --- */

/* As the engine writes names to people: without docker.io and library. */
static const char *familiar(const char *name)
{
	static const char hub[] = "docker.io/", library[] = "library/";

	if (strncmp(name, hub, sizeof(hub) - 1) != 0)
		return name;
	name += sizeof(hub) - 1;
	return strncmp(name, library, sizeof(library) - 1) == 0 ? name + sizeof(library) - 1 : name;
}

const char *docker_reference_familiar(struct backend_call *call, const struct docker_reference *ref)
{
	struct docker_reference shown = *ref;

	shown.name = familiar(ref->name);
	return docker_reference_text(call, &shown);
}

static const char *missing_text(struct backend_call *call, const char *given,
				const struct docker_reference *ref)
{
	return docker_text(call, "No such image: %s",
			   ref->valid ? docker_reference_familiar(call, ref) : given);
}

/* All names of an image, in full. */
static struct jv names_of(struct backend_call *call, const struct jv *doc)
{
	static const char *const keys[] = {"RepoTags", "RepoDigests"};
	struct jv names = jv_array();

	for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
		const struct jv *list = jv_get(doc, keys[k]);

		for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
			struct docker_reference ref = {.tag = "", .digest = ""};

			if (list->items[i].kind == JV_STRING)
				ref = docker_reference(call->arena, list->items[i].str);
			if (ref.valid)
				jv_push(call->arena, &names,
					jv_string(docker_reference_text(call, &ref)));
		}
	}
	return names;
}

/*
 * Where the content came from.  A classic store writes RepoDigests when it
 * fetches from a registry or sends to one, and for nothing else: what is
 * tagged, loaded, imported, committed or built here has none of that
 * repository (tried on 20.10 and 26.1, with forged archives as well).  The
 * store of containerd writes one for every name, whoever gave it; there the id
 * is the digest itself, and nothing is known.
 */
static bool tells_origin(const struct jv *doc)
{
	const struct jv *list = jv_get(doc, "RepoDigests");
	const char *id = jv_str(doc, "Id", "");

	if (!list || list->kind == JV_NULL)
		return true;
	for (size_t i = 0; list->kind == JV_ARRAY && i < list->count; i++)
		if (list->items[i].kind != JV_STRING || span_ends(list->items[i].str, id))
			return false;
	return list->kind == JV_ARRAY;
}

static void say_origin(struct docker_reading *r, const struct jv *doc)
{
	const struct jv *list = jv_get(doc, "RepoDigests");
	struct jv digests = jv_array();

	if (!tells_origin(doc) || docker_state(r->call)->flavor->origin_is_hidden)
		return;
	for (size_t i = 0; list && i < list->count; i++) {
		struct docker_reference ref = docker_reference(r->call->arena, list->items[i].str);

		if (ref.valid && *ref.digest)
			jv_push(r->call->arena, &digests,
				jv_string(docker_reference_text(r->call, &ref)));
	}
	docker_fact(r, "image.digests", digests);
}

static bool is_named(struct backend_call *call, const struct jv *names,
		     const struct docker_reference *ref)
{
	struct docker_reference tagged = *ref, pinned = *ref;

	tagged.digest = "";
	pinned.tag = "";
	for (size_t i = 0; i < names->count; i++) {
		struct span one = names->items[i].str;

		if (*ref->digest ? span_is(one, docker_reference_text(call, &pinned))
				 : span_is(one, docker_reference_text(call, &tagged)))
			return true;
	}
	return false;
}

/*
 * By its id: the engine found it, though not under the name.  A document
 * without names is taken by the name that found it, unless that may be an id.
 */
static bool is_by_id(struct backend_call *call, const char *given, const struct jv *names,
		     const struct docker_reference *ref)
{
	if (!ref->valid)
		return true;
	if (is_named(call, names, ref) || *ref->digest)
		return false;
	return names->count || docker_looks_like_id(span_of(given));
}

static void say_reference(struct docker_reading *r, const struct docker_reference *ref)
{
	docker_fact(r, "image.name", jv_string(ref->name));
	if (*ref->tag)
		docker_fact(r, "image.tag", jv_string(ref->tag));
	if (*ref->digest)
		docker_fact(r, "image.digest", jv_string(ref->digest));
}

static void say_maker(struct docker_reading *r, const struct jv *doc)
{
	const char *owner = jv_str(jv_path(doc, "Config.Labels"), GATE_LABEL_IMAGE_OWNER, "");

	if (strcmp(owner, r->call->owner) == 0)
		docker_fact(r, "image.mine", jv_bool(true));
}

static void say_found(struct docker_reading *r, const char *given, const struct jv *doc,
		      const struct docker_reference *ref)
{
	struct jv names = names_of(r->call, doc);
	bool by_id = is_by_id(r->call, given, &names, ref);

	docker_fact(r, "image.present", jv_bool(true));
	docker_fact(r, "image.id", jv_string(jv_str(doc, "Id", "")));
	docker_fact(r, "image.by_id", jv_bool(by_id));
	say_maker(r, doc);
	say_origin(r, doc);
	if (by_id)
		docker_fact(r, "image.names", names);
	else
		say_reference(r, ref);
}

static void say_missing(struct docker_reading *r, const char *given,
			const struct docker_reference *ref)
{
	docker_fact(r, "image.present", jv_bool(false));
	docker_fact(r, "image.by_id", jv_bool(!ref->valid));
	if (ref->valid)
		say_reference(r, ref);
	r->call->instead = (struct violation){.reason = REASON_image_absent,
					      .rule = "canonical",
					      .field = "Image",
					      .value = docker_cut(r->call, span_of(given)),
					      .text = missing_text(r->call, given, ref),
					      .hint = ""};
}

/* None is named; or, offline, the file does not know it. */
static void say_unknown(struct docker_reading *r, const char *given,
			const struct docker_reference *ref)
{
	bool by_id = *given && (!ref->valid || span_starts(span_of(given), "sha256:"));

	docker_fact(r, "image.by_id", jv_bool(by_id));
	if (!by_id && ref->valid)
		say_reference(r, ref);
}

const struct lookup *docker_ask_image(struct backend_call *call, const char *given)
{
	static const struct lookup nothing = {.table = "", .key = "", .answered = true};
	struct docker_reference ref = docker_reference(call->arena, span_of(given));

	if (!*given)
		return &nothing; /* rules refuse it, beside all else that is wrong */
	if (!ref.valid && !docker_looks_like_id(span_of(given))) {
		docker_refuse(call, REASON_image, "Image", given)->text =
			"this is no reference of an image";
		return NULL;
	}
	return docker_ask(call, docker_target(call, "/images/", span_of(given), "/json"), "images",
			  given);
}

void docker_read_image(struct docker_reading *r, const char *given, const struct lookup *answer)
{
	struct docker_reference ref = docker_reference(r->call->arena, span_of(given));

	if (ref.valid && !*ref.tag && !*ref.digest)
		ref.tag = "latest";
	docker_fact(r, "image.given", jv_string(given));
	if (!answer->status)
		say_unknown(r, given, &ref);
	else if (answer->status == 404)
		say_missing(r, given, &ref);
	else if (answer->status == 200 && *jv_str(&answer->body, "Id", ""))
		say_found(r, given, &answer->body, &ref);
	else
		docker_refuse(r->call, REASON_engine_reply, "Image", given);
}

void docker_read_made_image(struct docker_reading *r, const char *given, const char *id,
			    const struct lookup *answer)
{
	struct docker_reference ref = docker_reference(r->call->arena, span_of(given));

	if (!*ref.tag && !*ref.digest)
		ref.tag = "latest";
	docker_fact(r, "image.given", jv_string(given));
	docker_fact(r, "image.present", jv_bool(true));
	docker_fact(r, "image.id", jv_string(id));
	docker_fact(r, "image.by_id", jv_bool(false));
	if (answer->status == 200) {
		say_maker(r, &answer->body);
		say_origin(r, &answer->body);
	}
	say_reference(r, &ref);
}

/* --- what is sent in the query --- */

void docker_refuse_query(struct backend_call *call, const char *key, const char *text)
{
	docker_refuse(call, REASON_query, docker_text(call, "query.%s", key), NULL)->text = text;
}

const char *docker_query_text(struct backend_call *call, const char *key)
{
	struct span v = docker_query_value(call->req, key);

	return docker_whole(call, v);
}

void docker_send(struct backend_call *call, const char *key, const char *value)
{
	if (*value)
		jv_add(call->arena, &docker_state(call)->asked, span_of(key), jv_string(value));
}

void docker_send_given(struct backend_call *call, const char *key)
{
	docker_send(call, key, docker_query_text(call, key));
}

/* --- references in queries --- */

struct docker_reference docker_reference_with_tag(struct backend_call *call, const char *image,
						  const char *image_key)
{
	static const struct docker_reference none = {.tag = "", .digest = ""};
	const char *tag = docker_query_text(call, "tag");
	struct docker_reference ref = docker_reference(call->arena, span_of(image));

	if (ref.valid && *tag && (*ref.tag || *ref.digest)) {
		docker_refuse_query(call, "tag", "the image names a tag or digest already");
		return none;
	}
	if (ref.valid && *tag)
		ref = docker_reference(call->arena,
				       span_of(docker_text(call, "%s%s%s", ref.name,
							   strchr(tag, ':') ? "@" : ":", tag)));
	if (!ref.valid)
		docker_refuse(call, REASON_image, image_key, image)->text =
			"this is no reference of an image";
	return ref;
}

bool docker_read_new_name(struct docker_reading *r)
{
	struct backend_call *call = r->call;
	const char *repo = docker_query_text(call, "repo"), *tag = docker_query_text(call, "tag");
	const char *given = docker_text(call, "%s%s%s", repo, *tag ? ":" : "", tag);
	struct docker_reference ref = docker_reference(call->arena, span_of(given));
	struct jv names = jv_array();

	if (*given && (!ref.valid || *ref.digest)) {
		docker_refuse(call, REASON_image, "query.repo", given)->text =
			"this is no name for an image";
		return false;
	}
	if (ref.valid && !*ref.tag)
		ref.tag = "latest";
	if (ref.valid)
		jv_push(call->arena, &names, jv_string(docker_reference_text(call, &ref)));
	docker_fact(r, "names", names);
	docker_send(call, "repo", ref.valid ? ref.name : "");
	docker_send(call, "tag", ref.valid ? ref.tag : "");
	return true;
}

static bool check_credentials(struct backend_call *call, const char *header, const char *shown)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789+/=_-";

	for (size_t i = 0; i < call->req->header_count; i++) {
		const struct pair *h = &call->req->headers[i];
		bool fine = h->value.len <= 8192;

		if (!span_is(h->key, header))
			continue;
		for (size_t k = 0; fine && k < h->value.len; k++)
			fine = memchr(letters, h->value.at[k], sizeof(letters) - 1) != NULL;
		if (fine)
			continue;
		docker_refuse(call, REASON_header, shown, NULL);
		return false;
	}
	return true;
}

bool docker_check_registry_auth(struct backend_call *call)
{
	return check_credentials(call, "x-registry-auth", "X-Registry-Auth");
}

/* Logins of several registries, which a build may need. */
bool docker_check_registry_config(struct backend_call *call)
{
	return check_credentials(call, "x-registry-config", "X-Registry-Config");
}

/* --- pull and import --- */

static void step_pull(struct backend_call *call, struct docker_reading *r)
{
	struct docker_reference ref = docker_reference_with_tag(
		call, docker_query_text(call, "fromImage"), "query.fromImage");
	const char *tag = *ref.digest ? ref.digest : ref.tag;

	if (!ref.valid || !docker_check_registry_auth(call))
		return;
	if (docker_query_value(call->req, "repo").len) {
		docker_refuse_query(call, "repo", "repo goes with fromSrc");
		return;
	}
	docker_fact(r, "pull.name", jv_string(ref.name));
	docker_fact(r, "pull.import", jv_bool(false));
	if (*tag)
		docker_fact(r, "pull.tag", jv_string(tag));
	docker_send(call, "fromImage", ref.name);
	docker_send(call, "tag", tag);
	docker_send_given(call, "platform");
}

/* What stands before the host can be a password, and what stands in the query a token. */
const char *docker_url_fact(struct backend_call *call, struct span url, enum withheld where)
{
	const char *end = url.at + url.len, *scheme = memmem(url.at, url.len, "://", 3);
	const char *host = scheme ? scheme + 3 : url.at, *path = host, *query, *at;
	struct span shown;

	while (path < end && !strchr("/?#", *path))
		path++;
	/* Engines take the source of an import for a URL, with a scheme or without. */
	at = scheme || where == WITHHELD_PULL_URL ? memrchr(host, '@', (size_t)(path - host))
						  : NULL;
	query = memchr(path, '?', (size_t)(end - path));
	if (at || (query && query + 1 < end))
		call->withheld |= where;
	if (query)
		end = query + 1; /* that there is one can be judged */
	shown = (struct span){at ? at + 1 : host, 0};
	shown.len = (size_t)(end - shown.at);
	return docker_word(call, span_of(docker_text(call, "%.*s%.*s", (int)(host - url.at), url.at,
						     SPAN_FMT(shown))));
}

static void step_import(struct backend_call *call, struct docker_reading *r)
{
	const char *source = docker_query_text(call, "fromSrc");

	if (docker_query_value(call->req, "fromImage").len) {
		docker_refuse_query(call, "fromSrc", "fromImage and fromSrc exclude each other");
		return;
	}
	docker_send_given(call, "fromSrc");
	if (!docker_read_new_name(r))
		return;
	docker_fact(r, "pull.import", jv_bool(true));
	if (strcmp(source, "-") != 0)
		docker_fact(r, "pull.url",
			    jv_string(docker_url_fact(call, span_of(source), WITHHELD_PULL_URL)));
	docker_send_given(call, "message");
	docker_send_given(call, "platform");
}

void docker_step_pull(struct docker *d, struct backend_call *call)
{
	struct docker_reading r = {.d = d, .call = call, .facts = jv_object()};

	docker_state(call)->asked = jv_object();
	if (call->op == OP_IMAGE_IMPORT)
		step_import(call, &r);
	else
		step_pull(call, &r);
	call->workload = (struct workload){.facts = r.facts};
	docker_speak(d, call);
}
