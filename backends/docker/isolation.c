/* isolation.c - what the engine says of its runtimes, as backends/isolation.h takes it. */
#include "backends/docker/docker_priv.h"

#include <string.h>

/* --- runtimes --- */

static void take_args(struct arena *a, const struct jv *args, struct isolation_facts *ret)
{
	size_t count = args && args->kind == JV_ARRAY ? args->count : 0;
	struct span *list = arena_take(a, (count + 1) * sizeof(*list));

	ret->args_known = list != NULL;
	for (size_t i = 0; list && i < count; i++)
		if (args->items[i].kind == JV_STRING)
			list[ret->arg_count++] = args->items[i].str;
		else
			ret->args_unreadable = true;
	if (args && args->kind != JV_ARRAY && args->kind != JV_NULL)
		ret->args_unreadable = true;
	ret->args = list;
}

static const char *as_text(struct arena *a, const struct jv *v)
{
	const char *copy;
	struct buf text;

	if (v->kind == JV_STRING)
		return arena_strndup(a, v->str.at, v->str.len);
	buf_init(&text, 4096);
	jv_write(&text, v);
	copy = arena_strndup(a, buf_span(&text).at, buf_len(&text));
	buf_fini(&text);
	return copy;
}

static void take_options(struct arena *a, const struct jv *options, struct isolation_facts *ret)
{
	size_t count = options && options->kind == JV_OBJECT ? options->count : 0;
	struct isolation_option *list = arena_take(a, (count + 1) * sizeof(*list));

	for (size_t i = 0; list && i < count; i++) {
		const struct jv_member *m = &options->members[i];

		list[i].key = arena_strndup(a, m->key.at, m->key.len);
		list[i].value = as_text(a, &m->value);
	}
	ret->options = list;
	ret->option_count = arena_spent(a) ? 0 : count;
}

/* --NAME, --NAME=true, or with one dash, as Go takes it. */
static bool has_flag(const struct isolation_facts *facts, const char *name)
{
	for (size_t i = 0; i < facts->arg_count; i++) {
		struct span arg = facts->args[i], key;

		while (arg.len && arg.at[0] == '-')
			arg = span_skip(arg, 1);
		if (span_is(arg, name) || (span_cut(&arg, '=', &key) && span_is(key, name) &&
					   (span_is(arg, "true") || span_is(arg, "1"))))
			return true;
	}
	return false;
}

void docker_read_runtime(struct arena *a, const char *name, const struct jv *doc,
			 struct docker_runtime *ret)
{
	const char *path = jv_str(doc, "path", ""), *type = jv_str(doc, "runtimeType", "");
	struct isolation_facts facts = {.path = path, .type = type};
	const char *said = *path ? path : type;

	take_args(a, jv_get(doc, "runtimeArgs"), &facts);
	facts.args_known = facts.args_known && !jv_true(doc, "argsHidden");
	take_options(a, jv_get(doc, "options"), &facts);
	*ret = (struct docker_runtime){.name = name};
	isolation_weigh(a, &facts, &ret->is);
	ret->uses_filters =
		strcmp(ret->is.program, "runsc") != 0 || has_flag(&facts, "oci-seccomp");
	if (strcmp(ret->is.from, "options.BinaryName") == 0)
		said = jv_str(jv_get(doc, "options"), "BinaryName", "");
	ret->path = arena_strndup(a, said, strlen(said));
	if (!ret->path)
		ret->path = "";
	if (arena_spent(a))
		ret->is.level = ret->is.base = ISOLATION_NONE;
}

/* --- what lowers --- */

static void add_lowered(struct docker_reading *r, const char *field, const char *value,
			const char *why)
{
	struct jv *entry =
		jv_push(r->call->arena, docker_fact_list(r, "isolation.lowered"), jv_object());

	jv_set(r->call->arena, entry, "field", jv_string(field));
	jv_set(r->call->arena, entry, "value", jv_string(docker_word(r->call, span_of(value))));
	jv_set(r->call->arena, entry, "to", jv_string(isolation_name(r->level)));
	jv_set(r->call->arena, entry, "why", jv_string(why));
}

void docker_lower_by(struct docker_reading *r, const struct isolation_reason *why,
		     const char *field, const char *value)
{
	r->level = isolation_left(r->level, why);
	add_lowered(r, field, value, why->why);
}

void docker_lower(struct docker_reading *r, enum isolation_lower why, const char *field,
		  const char *value)
{
	docker_lower_by(r, isolation_reason(why), field, value);
}

/* --- the base --- */

static const struct docker_runtime *find_runtime(const struct docker_info *info, const char *name)
{
	for (size_t i = 0; i < info->runtime_count; i++)
		if (strcmp(info->runtimes[i].name, name) == 0)
			return &info->runtimes[i];
	return NULL;
}

static void list_runtimes(struct docker_reading *r)
{
	struct jv *list = docker_fact_list(r, "isolation.runtimes");

	for (size_t i = 0; i < r->info->runtime_count; i++) {
		const struct docker_runtime *rt = &r->info->runtimes[i];
		struct jv *entry = jv_push(r->call->arena, list, jv_object());

		jv_set(r->call->arena, entry, "name", jv_string(rt->name));
		jv_set(r->call->arena, entry, "level", jv_string(isolation_name(rt->is.level)));
	}
}

static void add_reason(struct docker_reading *r, enum isolation_lower why)
{
	jv_push(r->call->arena, docker_fact_list(r, "isolation.adds"),
		jv_string(isolation_reason(why)->why));
}

/* What the engine adds for all that it runs; with the host's user ids asked for, not that. */
static void say_service(struct docker_reading *r)
{
	bool of_host = strcmp(jv_str(r->host, "UsernsMode", ""), "host") == 0;

	if (r->info->rootless)
		add_reason(r, LOWER_ROOTLESS);
	if (r->info->maps_users && !of_host)
		add_reason(r, LOWER_USERNS);
}

void docker_read_isolation(struct docker_reading *r)
{
	bool fixed = docker_state(r->call)->flavor->runtime_is_fixed && !r->made;
	const char *given = fixed ? "" : jv_str(r->host, "Runtime", "");
	bool shown_otherwise = *given && strcmp(given, r->info->runtime_alias) == 0;
	const char *name = *given && !shown_otherwise ? given : r->info->default_runtime;
	const struct docker_runtime *rt = find_runtime(r->info, name);

	docker_fact(r, "isolation.runtime_given", jv_bool(*given != '\0'));
	if (*name)
		docker_fact(r, "isolation.runtime", jv_string(name));
	list_runtimes(r);
	r->level = rt ? rt->is.base : ISOLATION_NONE;
	if (r->info->known)
		docker_fact(r, "isolation.base", jv_string(isolation_name(r->level)));
	if (!rt)
		return;
	if (*rt->path)
		docker_fact(r, "isolation.runtime_path", jv_string(rt->path));
	if (*rt->is.from)
		docker_fact(r, "isolation.from", jv_string(rt->is.from));
	if (*rt->is.program)
		docker_fact(r, "isolation.program", jv_string(rt->is.program));
	for (size_t i = 0; i < rt->is.line_count; i++) {
		const struct isolation_line *l = &rt->is.lines[i];

		r->level = l->to;
		add_lowered(r, docker_text(r->call, "Runtimes.%s.%s", name, l->field), l->value,
			    l->why);
	}
	r->level = rt->is.level;
	say_service(r);
}

void docker_finish_isolation(struct docker_reading *r)
{
	if (r->info->known)
		docker_fact(r, "isolation.level", jv_string(isolation_name(r->level)));
	else
		r->level = ISOLATION_NONE;
}

/* --- for doctor --- */

static void add_note(struct isolation_service *s, bool is, enum isolation_lower why)
{
	if (is && s->note_count < ISOLATION_NOTES_MAX)
		s->notes[s->note_count++] = why;
}

void docker_isolation(const struct jv *doc, struct arena *a, struct isolation_service *ret)
{
	struct docker_info *info = arena_take(a, sizeof(*info));

	*ret = (struct isolation_service){.default_runtime = ""};
	if (!info)
		return;
	docker_read_info(a, doc, info);
	ret->default_runtime = info->default_runtime;
	for (size_t i = 0; i < info->runtime_count && i < ISOLATION_RUNTIMES_MAX; i++)
		ret->runtimes[ret->runtime_count++] = (struct isolation_runtime){
			info->runtimes[i].name, info->runtimes[i].path, info->runtimes[i].is};
	add_note(ret, info->unfiltered, LOWER_SERVICE_SECCOMP_OFF);
	add_note(ret, info->rootless, LOWER_ROOTLESS);
	add_note(ret, info->maps_users, LOWER_USERNS);
}
