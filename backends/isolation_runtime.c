/* isolation_runtime.c - the level of a runtime by what the service says of it. */
#include "backends/isolation_priv.h"

#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

enum family { FAMILY_OTHER = 0, FAMILY_RUNC, FAMILY_RUNSC, FAMILY_KATA, FAMILY_KRUN };
enum kind { KIND_PROGRAM = 0, KIND_SHIM, KIND_HANDLER, KIND_KEEPER };

struct program {
	enum kind kind;
	const char *name;
	enum family family;
	enum isolation level;
	const char *why, *source;
};

static const struct program programs[] = {
#define RUNTIME(kind, name, family, level, why, source)                                            \
	{KIND_##kind, name, FAMILY_##family, ISOLATION_##level, why, source},
#include "backends/runtimes.def"
#undef RUNTIME
};

struct switched { /* a flag or an option */
	enum family family;
	const char *name, *value;
	struct isolation_reason reason;
};

static const struct switched flags[] = {
#define FLAG(family, name, value, to, why, source)                                                 \
	{FAMILY_##family, name, value, {ISOLATION_##to, false, false, why, source}},
#include "backends/flags.def"
#undef FLAG
};

static const struct switched options[] = {
#define OPTION(family, name, value, to, why, source)                                               \
	{FAMILY_##family, name, value, {ISOLATION_##to, false, false, why, source}},
#include "backends/options.def"
#undef OPTION
};

static const struct isolation_reason *find_switched(const struct switched *table, size_t count,
						    enum family family, struct span name,
						    struct span value)
{
	for (size_t i = 0; i < count; i++)
		if (table[i].family == family && span_is(name, table[i].name) &&
		    isolation_fits(value, table[i].value))
			return &table[i].reason;
	return NULL;
}

const struct isolation_reason *isolation_gvisor_flag(struct span name, struct span value)
{
	return find_switched(flags, COUNT(flags), FAMILY_RUNSC, name, value);
}

const char *isolation_program(const char *name, const char **ret_source)
{
	for (size_t i = 0; i < COUNT(programs); i++)
		if (strcmp(programs[i].name, name) == 0) {
			*ret_source = programs[i].source;
			return programs[i].why;
		}
	return NULL;
}

static const char *source_in(const struct switched *table, size_t count, const char *why)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(table[i].reason.why, why) == 0)
			return table[i].reason.source;
	return "";
}

const char *isolation_runtime_source(const char *why)
{
	const char *source = source_in(flags, COUNT(flags), why);

	return *source ? source : source_in(options, COUNT(options), why);
}

bool isolation_is_krun(const char *program)
{
	return strcmp(program, "krun") == 0;
}

/* --- which program it is --- */

struct weighing {
	struct arena *arena;
	const struct isolation_facts *facts;
	const struct program *program; /* NULL: no table has it */
	bool debug;                    /* a variant for debugging */
	struct isolation_weighed *ret;
};

static struct span basename_of(struct span path)
{
	for (size_t i = path.len; i > 0; i--)
		if (path.at[i - 1] == '/')
			return span_skip(path, i);
	return path;
}

static const struct program *find_program(enum kind kind, struct span name)
{
	for (size_t i = 0; i < COUNT(programs); i++)
		if (programs[i].kind == kind && span_is(name, programs[i].name))
			return &programs[i];
	return NULL;
}

/* kata-qemu-debug is kata-qemu with less around it; of other families no such name is known. */
static const struct program *find_variant(enum kind kind, struct span name, bool *ret_debug)
{
	static const char *const endings[] = {"-debug", "-devkit"};
	const struct program *p = find_program(kind, name);

	for (size_t i = 0; !p && i < COUNT(endings); i++) {
		size_t len = strlen(endings[i]);

		if (!span_ends(name, endings[i]))
			continue;
		p = find_program(kind, (struct span){name.at, name.len - len});
		if (!p || p->family != FAMILY_KATA)
			return NULL;
		*ret_debug = true;
	}
	return p;
}

/* Whether rest is a version, "v2" behind this separator, at the end of name; cuts it off. */
static bool cut_version(struct span *name, char separator)
{
	size_t i = name->len;

	while (i > 0 && name->at[i - 1] >= '0' && name->at[i - 1] <= '9')
		i--;
	if (i == name->len || i < 3 || name->at[i - 1] != 'v' || name->at[i - 2] != separator)
		return false;
	name->len = i - 2;
	return true;
}

/* "io.containerd.NAME.v2", ".../containerd-shim-NAME-v2", or all of it. */
static const struct program *by_type(struct weighing *w, struct span type)
{
	static const char domain[] = "io.containerd.", shim[] = "containerd-shim-";
	struct span name = type;

	if (span_starts(type, "/")) {
		name = basename_of(type);
		if (!span_starts(name, shim) || !cut_version(&name, '-'))
			return NULL;
		name = span_skip(name, strlen(shim));
	} else if (span_starts(type, domain)) {
		if (!cut_version(&name, '.') || name.len <= strlen(domain))
			return NULL;
		name = span_skip(name, strlen(domain));
	} else if (!memchr(type.at, '.', type.len)) {
		return NULL;
	}
	return find_variant(KIND_SHIM, name, &w->debug);
}

static const struct program *by_path(struct weighing *w, struct span path)
{
	struct span name = basename_of(path);

	if (name.at == path.at && find_program(KIND_KEEPER, path))
		return find_program(KIND_KEEPER, path);
	if (span_starts(name, "containerd-shim-") && span_starts(path, "/"))
		return by_type(w, path);
	return find_variant(KIND_PROGRAM, name, &w->debug);
}

static const char *option_of(const struct isolation_facts *f, const char *key)
{
	for (size_t i = 0; i < f->option_count; i++)
		if (strcmp(f->options[i].key, key) == 0 && f->options[i].value)
			return f->options[i].value;
	return "";
}

static const char *text(const char *s)
{
	return s ? s : "";
}

/* A line that lowers as `why` says. */
static void note(struct weighing *w, struct span field, struct span value,
		 const struct isolation_reason *why, bool unknown)
{
	struct isolation_weighed *ret = w->ret;
	struct isolation_line *l;

	ret->level = isolation_left(ret->level, why);
	if (!*why->why)
		return;
	if (ret->line_count == ISOLATION_LINES_MAX) {
		ret->level = ISOLATION_NONE; /* more is wrong with it than can be listed */
		return;
	}
	l = &ret->lines[ret->line_count++];
	l->field = text(arena_strndup(w->arena, field.at, field.len));
	l->value = text(arena_strndup(w->arena, value.at, value.len));
	l->to = ret->level;
	l->alone = isolation_left(ret->base, why);
	l->why = why->why;
	l->source = why->source;
	l->unknown = unknown;
}

static void note_reason(struct weighing *w, const char *field, const char *value,
			enum isolation_lower id)
{
	note(w, span_of(field), span_of(value), isolation_reason(id), false);
}

/* A shim for runc runs what BinaryName says; one for another runs no stranger's program. */
static void take_binary(struct weighing *w, const char *binary)
{
	const struct program *named = by_path(w, span_of(binary));

	w->ret->from = "options.BinaryName";
	if (w->program && w->program->family != FAMILY_RUNC &&
	    (!named || named->family != w->program->family))
		named = NULL;
	w->program = w->program ? named : NULL;
}

static bool differ(const struct program *a, const struct program *b)
{
	return !a || !b || a->family != b->family || a->level != b->level;
}

static void find(struct weighing *w)
{
	const char *path = text(w->facts->path), *type = text(w->facts->type);
	const char *handler = text(w->facts->handler);
	const char *binary = option_of(w->facts, "BinaryName");

	w->ret->from = *path ? "path" : *type ? "type" : *handler ? "handler" : "";
	if (*path)
		w->program = by_path(w, span_of(path));
	else if (*type)
		w->program = by_type(w, span_of(type));
	else if (*handler)
		w->program = find_variant(KIND_HANDLER, span_of(handler), &w->debug);
	if (!*path && *binary)
		take_binary(w, binary);
}

/* --- what lowers it --- */

static void weigh_flag(struct weighing *w, struct span flag, struct span value)
{
	enum family family = w->program->family;
	const struct isolation_reason *why =
		find_switched(flags, COUNT(flags), family, flag, value);
	enum isolation_lower unknown =
		w->ret->base == ISOLATION_PROCESS ? LOWER_ARG_OF_CONTAINER : LOWER_ARG_UNKNOWN;

	note(w, flag, value, why ? why : isolation_reason(unknown), !why);
}

/*
 * "--flag=value", "-flag", "--flag value".  What stands behind a handler is the word of the
 * cluster's administrator, arguments and all.
 */
static void weigh_args(struct weighing *w)
{
	const struct isolation_facts *f = w->facts;

	if (f->args_unreadable)
		note_reason(w, "runtimeArgs", "", LOWER_ARG_UNREADABLE);
	for (size_t i = 0; i < f->arg_count; i++) {
		struct span rest = f->args[i], flag;

		if (!rest.len || rest.at[0] != '-') {
			note_reason(w, "runtimeArgs", "", LOWER_ARG_UNREADABLE);
			continue;
		}
		while (rest.len && rest.at[0] == '-')
			rest = span_skip(rest, 1);
		if (!span_cut(&rest, '=', &flag) && i + 1 < f->arg_count && f->args[i + 1].len &&
		    f->args[i + 1].at[0] != '-')
			rest = f->args[++i];
		weigh_flag(w, flag, rest);
	}
	if (!f->args_known &&
	    (w->program->family == FAMILY_RUNSC || w->program->family == FAMILY_KATA) &&
	    strcmp(w->ret->from, "handler") != 0)
		note_reason(w, "arguments", "", LOWER_ARGS_HIDDEN);
}

/* What is written and says nothing is as if it was not there. */
static bool is_neutral(const char *value)
{
	static const char *const neutral[] = {"", "false", "0", "null", "[]", "{}"};

	for (size_t i = 0; i < COUNT(neutral); i++)
		if (strcmp(value, neutral[i]) == 0)
			return true;
	return false;
}

static void weigh_options(struct weighing *w)
{
	for (size_t i = 0; i < w->facts->option_count; i++) {
		const struct isolation_option *o = &w->facts->options[i];
		const struct isolation_reason *why =
			find_switched(options, COUNT(options), w->program->family, span_of(o->key),
				      span_of(text(o->value)));

		if (is_neutral(text(o->value)) || strcmp(o->key, "BinaryName") == 0)
			continue;
		note(w, span_of(o->key), span_of(text(o->value)),
		     why ? why : isolation_reason(LOWER_OPTION_UNKNOWN), !why);
	}
}

/* A service that names a program twice means one of them, and it is not known which. */
static void compare_programs(struct weighing *w)
{
	const char *type = text(w->facts->type), *binary = option_of(w->facts, "BinaryName");

	if (!*text(w->facts->path))
		return;
	if (*type && differ(w->program, by_type(w, span_of(type))))
		note_reason(w, "type", type, LOWER_PROGRAMS_DIFFER);
	if (*binary && differ(w->program, by_path(w, span_of(binary))))
		note_reason(w, "BinaryName", binary, LOWER_PROGRAMS_DIFFER);
}

void isolation_weigh(struct arena *a, const struct isolation_facts *facts,
		     struct isolation_weighed *ret)
{
	struct weighing w = {.arena = a, .facts = facts, .ret = ret};

	*ret = (struct isolation_weighed){.program = "", .why = "", .source = ""};
	find(&w);
	if (!w.program)
		return;
	ret->program = w.program->name;
	ret->base = ret->level = w.program->level;
	ret->why = w.program->why;
	ret->source = w.program->source;
	if (ret->base == ISOLATION_NONE)
		return;
	compare_programs(&w);
	if (w.debug)
		note_reason(&w, "variant", "debug", LOWER_KATA_DEBUG);
	if (isolation_is_krun(ret->program))
		note_reason(&w, "image", "", LOWER_KRUN_IMAGE);
	weigh_args(&w);
	weigh_options(&w);
}
