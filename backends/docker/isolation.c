#include "backends/docker/docker_priv.h"

#include <string.h>

/* --- runtimes --- */

static struct span basename_of(struct span path)
{
	for (size_t i = path.len; i > 0; i--)
		if (path.at[i - 1] == '/')
			return span_skip(path, i);
	return path;
}

/* By the program's name or, for shims, by the part of the type that names it. */
static enum isolation level_of(struct span program)
{
	static const struct {
		const char *name;
		enum isolation level;
	} known[] = {
		{"runc", ISOLATION_PROCESS},  {"crun", ISOLATION_PROCESS},
		{"youki", ISOLATION_PROCESS}, {"runsc", ISOLATION_KERNEL},
		{"krun", ISOLATION_VM},       {"firecracker", ISOLATION_VM},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (span_is(program, known[i].name))
			return known[i].level;
	return span_starts(program, "kata") ? ISOLATION_VM : ISOLATION_NONE;
}

/* "io.containerd.runsc.v1" -> "runsc" */
static struct span program_of_type(struct span type)
{
	struct span step, last = {"", 0}, before = {"", 0};
	bool more;

	do {
		more = span_cut(&type, '.', &step);
		before = last;
		last = step;
	} while (more);
	return last.len >= 2 && last.at[0] == 'v' ? before : last;
}

static void note(struct docker_runtime *rt, struct arena *a, struct span flag, struct span value,
		 enum isolation to, const char *why)
{
	struct docker_lowering *low;

	if (rt->level > to)
		rt->level = to;
	if (rt->lowered_count == DOCKER_LOWERINGS_MAX) {
		rt->level = ISOLATION_NONE; /* more is wrong with it than can be listed */
		return;
	}
	low = &rt->lowered[rt->lowered_count++];
	low->flag = arena_strndup(a, flag.at, flag.len);
	low->value = arena_strndup(a, value.at, value.len);
	low->to = to;
	low->why = why;
	low->unknown = false;
}

static void weigh_flag(struct docker_runtime *rt, struct arena *a, struct span flag,
		       struct span value)
{
	static const struct {
		const char *name, *value;
		enum isolation to;
		const char *why;
	} flags[] = {
#define FLAG(name, value, to, why) {name, value, ISOLATION_##to, why},
#include "backends/docker/runsc.def"
#undef FLAG
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		if (!span_is(flag, flags[i].name) ||
		    (*flags[i].value != '*' && !span_is(value, flags[i].value)))
			continue;
		if (*flags[i].why)
			note(rt, a, flag, value, flags[i].to, flags[i].why);
		return;
	}
	note(rt, a, flag, value, ISOLATION_PROCESS,
	     "the flag weakens the sandbox, or the gate does not know it");
	if (rt->lowered_count)
		rt->lowered[rt->lowered_count - 1].unknown = true;
}

/* "--flag=value", "-flag", "--flag value" */
static void weigh_flags(struct docker_runtime *rt, struct arena *a, const struct jv *args)
{
	for (size_t i = 0; args && args->kind == JV_ARRAY && i < args->count; i++) {
		struct span rest = args->items[i].str, flag;
		const struct jv *next = i + 1 < args->count ? &args->items[i + 1] : NULL;

		if (args->items[i].kind != JV_STRING || !rest.len || rest.at[0] != '-') {
			note(rt, a, span_of("runtimeArgs"), span_of(""), ISOLATION_PROCESS,
			     "an argument that the gate cannot read");
			continue;
		}
		while (rest.len && rest.at[0] == '-')
			rest = span_skip(rest, 1);
		if (!span_cut(&rest, '=', &flag) && next && next->kind == JV_STRING &&
		    next->str.len && next->str.at[0] != '-') {
			rest = next->str;
			i++;
		}
		weigh_flag(rt, a, flag, rest);
	}
}

void docker_read_runtime(struct arena *a, const char *name, const struct jv *doc,
			 struct docker_runtime *ret)
{
	const char *path = jv_str(doc, "path", ""), *type = jv_str(doc, "runtimeType", "");
	const struct jv *options = jv_get(doc, "options");
	const char *binary = jv_str(options, "BinaryName", "");
	struct span program = *path ? basename_of(span_of(path)) : program_of_type(span_of(type));

	if (!*path && *binary && span_is(program, "runc"))
		program = basename_of(span_of(binary));
	*ret = (struct docker_runtime){.name = name};
	ret->path = arena_strndup(a, *path ? path : type, strlen(*path ? path : type));
	ret->base = ret->level = level_of(program);
	if (!ret->path)
		ret->path = "";
	if (ret->base != ISOLATION_KERNEL)
		return;
	weigh_flags(ret, a, jv_get(doc, "runtimeArgs"));
	if (*jv_str(options, "ConfigPath", ""))
		note(ret, a, span_of("ConfigPath"), span_of(jv_str(options, "ConfigPath", "")),
		     ISOLATION_PROCESS, "the gate cannot see the runtime's configuration file");
}

/* --- what lowers --- */

static void lower_to(struct docker_reading *r, enum isolation to, const char *field,
		     const char *value, const char *why)
{
	struct jv *entry =
		jv_push(r->call->arena, docker_fact_list(r, "isolation.lowered"), jv_object());

	if (r->level > to)
		r->level = to;
	jv_set(r->call->arena, entry, "field", jv_string(field));
	jv_set(r->call->arena, entry, "value", jv_string(docker_word(r->call, span_of(value))));
	jv_set(r->call->arena, entry, "to", jv_string(isolation_name(r->level)));
	jv_set(r->call->arena, entry, "why", jv_string(why));
}

void docker_lower(struct docker_reading *r, enum isolation to, const char *field, const char *value,
		  const char *why)
{
	lower_to(r, to, field, value, why);
}

void docker_lower_step(struct docker_reading *r, const char *field, const char *value,
		       const char *why)
{
	lower_to(r, r->level > ISOLATION_NONE ? (enum isolation)(r->level - 1) : ISOLATION_NONE,
		 field, value, why);
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
		jv_set(r->call->arena, entry, "level", jv_string(isolation_name(rt->level)));
	}
}

void docker_read_isolation(struct docker_reading *r)
{
	const char *given = jv_str(r->host, "Runtime", "");
	const char *name = *given ? given : r->info->default_runtime;
	const struct docker_runtime *rt = find_runtime(r->info, name);

	docker_fact(r, "isolation.runtime_given", jv_bool(*given != '\0'));
	if (*name)
		docker_fact(r, "isolation.runtime", jv_string(name));
	list_runtimes(r);
	r->level = rt ? rt->base : ISOLATION_NONE;
	if (r->info->known)
		docker_fact(r, "isolation.base", jv_string(isolation_name(r->level)));
	if (!rt)
		return;
	if (*rt->path)
		docker_fact(r, "isolation.runtime_path", jv_string(rt->path));
	for (size_t i = 0; i < rt->lowered_count; i++)
		docker_lower(r, rt->lowered[i].to,
			     docker_text(r->call, "Runtimes.%s.%s", name, rt->lowered[i].flag),
			     rt->lowered[i].value, rt->lowered[i].why);
	if (r->level > rt->level)
		r->level = rt->level;
}

void docker_finish_isolation(struct docker_reading *r)
{
	if (r->info->known)
		docker_fact(r, "isolation.level", jv_string(isolation_name(r->level)));
	else
		r->level = ISOLATION_NONE;
}
