/*
 * seccomp.c - filters of system calls and AppArmor profiles: what a request names, and what
 * the trust profile demands.
 *
 * A filter of the request's own is read strictly and written anew, so that the engine reads
 * what was judged.
 */
#include "rules/seccomp.h"
#include "backends/docker/docker_priv.h"
#include "gate/base/hash.h"
#include "gate/base/seccomp_profile.h"

#include <string.h>

/* --- what is given --- */

static const struct docker_runtime *runtime_of(const struct docker_reading *r)
{
	const char *name = jv_str(r->host, "Runtime", "");

	if (!*name)
		name = r->info->default_runtime;
	for (size_t i = 0; i < r->info->runtime_count; i++)
		if (strcmp(r->info->runtimes[i].name, name) == 0)
			return &r->info->runtimes[i];
	return NULL;
}

void docker_begin_security(struct docker_reading *r)
{
	const struct docker_runtime *runtime = runtime_of(r);

	docker_fact(r, "seccomp.given", jv_string("default"));
	docker_fact(r, "seccomp.available",
		    jv_bool(r->info->seccomp && !docker_state(r->call)->flavor->filters_are_paths));
	docker_fact(r, "seccomp.applied", jv_bool(runtime && runtime->uses_filters));
	if (r->info->machine)
		docker_fact(r, "seccomp.machine", jv_string(r->info->machine));
	docker_fact(r, "apparmor.given", jv_string(""));
	docker_fact(r, "apparmor.available", jv_bool(r->info->apparmor));
}

/* What allows more than engines do by themselves lowers the isolation, unless the operator's own
   profile does. */
static bool is_looser(const struct seccomp_profile *p)
{
	const struct seccomp_file *file = seccomp_file_find(SECCOMP_DEFAULT);
	struct arena *a = arena_create((size_t)4 << 20);
	const struct seccomp_profile *usual = NULL;
	struct err err = {0};
	bool looser = true;

	if (a)
		usual = seccomp_profile_parse(a, (struct span){file->text, file->length},
					      SECCOMP_FILE, &err);
	if (usual) {
		struct seccomp_more one;

		looser = seccomp_profile_more_anywhere(p, usual, a, &one, 1) > 0;
	}
	arena_destroy(a);
	return looser;
}

static void refuse_filter(struct docker_reading *r, const char *field, const char *why)
{
	struct violation *v = docker_refuse(r->call, REASON_seccomp_invalid, field, "seccomp");

	v->text = docker_text(r->call, "the profile of system calls: %s", why);
}

/* As the gate writes it. */
static struct span written(struct docker_reading *r, const struct seccomp_profile *p)
{
	struct buf text;
	const char *copy;
	size_t len;

	buf_init(&text, SECCOMP_TEXT_MAX * 2);
	seccomp_profile_write(p, &text);
	copy = docker_whole(r->call, buf_span(&text));
	len = buf_len(&text);
	buf_fini(&text);
	return (struct span){copy, *copy ? len : 0};
}

static void keep_filter(struct docker_reading *r, const struct seccomp_profile *p,
			const char *field)
{
	struct span text = written(r, p);
	struct hash h = hash_of(text);
	char hex[HASH_HEX_LEN + 1];
	bool demanded = r->call->seccomp.len && span_eq(text, r->call->seccomp);

	hash_hex(&h, hex);
	docker_fact(r, "seccomp.given", jv_string("own"));
	docker_fact(r, "seccomp.field", jv_string(field));
	docker_fact(r, "seccomp.sha256", jv_string(docker_text(r->call, "%s", hex)));
	if (demanded)
		return;
	docker_fact(r, "seccomp.profile", jv_span(text));
	if (is_looser(p))
		docker_lower(r, LOWER_SECCOMP_OTHER, field, hex);
}

void docker_read_filter(struct docker_reading *r, struct span value, const char *field)
{
	const char *before = jv_str(jv_get(&r->facts, "seccomp"), "given", "default");
	const struct seccomp_profile *p;
	struct err err = {0};

	if (span_is(value, "builtin"))
		return;
	if (span_is(value, "unconfined")) {
		docker_fact(r, "seccomp.given", jv_string("unconfined"));
		docker_lower(r, LOWER_SECCOMP_OTHER, field, "unconfined");
		return;
	}
	if (strcmp(before, "default") != 0) {
		refuse_filter(r, field, "one is given already");
		return;
	}
	p = seccomp_profile_parse(r->call->arena, value, SECCOMP_REQUEST, &err);
	if (p)
		keep_filter(r, p, field);
	else
		refuse_filter(r, field, err.msg);
}

void docker_read_apparmor(struct docker_reading *r, struct span value)
{
	docker_fact(r, "apparmor.given", jv_string(docker_word(r->call, value)));
}

/* --- what is demanded --- */

void docker_add_security(struct backend_call *call, struct jv *host, const char *name,
			 struct span value)
{
	const struct jv *old = jv_get(host, "SecurityOpt");
	const char *text = docker_text(call, "%s=%.*s", name, SPAN_FMT(value));
	struct jv list = jv_array();

	for (size_t i = 0; old && old->kind == JV_ARRAY && i < old->count; i++)
		if (!span_is(old->items[i].str, "seccomp=builtin") &&
		    !span_is(old->items[i].str, "seccomp:builtin"))
			jv_push(call->arena, &list, old->items[i]);
	jv_push(call->arena, &list, jv_string(text));
	jv_set(call->arena, host, "SecurityOpt", list);
}

int docker_set_seccomp(struct backend_call *call, struct jv *host, struct err *err)
{
	if (!call->seccomp.len)
		return err_set(err, ERR_CONFIG, "the profile demands no filter of system calls");
	docker_add_security(call, host, "seccomp", call->seccomp);
	return 0;
}

/* A request's own filter in the gate's spelling: what is sent is what was judged. */
void docker_write_filters(struct backend_call *call, struct jv *host)
{
	const struct jv *given = jv_get(&call->workload.facts, "seccomp");
	const char *text = jv_str(given, "profile", call->seccomp.len ? call->seccomp.at : "");
	const struct jv *old = jv_get(host, "SecurityOpt");
	struct jv list = jv_array();

	if (strcmp(jv_str(given, "given", ""), "own") != 0 || !old || old->kind != JV_ARRAY)
		return;
	for (size_t i = 0; i < old->count; i++) {
		struct span option = old->items[i].str;
		bool filter = span_starts(option, "seccomp=") || span_starts(option, "seccomp:");

		/* "builtin" says nothing, and the other one is the one that counts. */
		if (!filter)
			jv_push(call->arena, &list, old->items[i]);
	}
	jv_push(call->arena, &list, jv_string(docker_text(call, "seccomp=%s", text)));
	jv_set(call->arena, host, "SecurityOpt", list);
}
