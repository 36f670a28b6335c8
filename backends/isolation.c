#include "backends/isolation_priv.h"

#include <stdio.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* --- the tables --- */

enum { STEP_TO = 1, STEP_STEP, STEP_ADDS };

static const struct isolation_reason reasons[] = {
#define LOWER(id, effect, level, why, source)                                                      \
	{ISOLATION_##level, STEP_##effect == STEP_STEP, STEP_##effect == STEP_ADDS, why, source},
#define CAPABILITY(name, level, why, source)
#include "backends/lowers.def"
#undef LOWER
#undef CAPABILITY
};

static const struct {
	const char *name;
	struct isolation_reason reason;
} capabilities[] = {
#define LOWER(id, effect, level, why, source)
#define CAPABILITY(name, level, why, source) {name, {ISOLATION_##level, false, false, why, source}},
#include "backends/lowers.def"
#undef LOWER
#undef CAPABILITY
};

static const struct {
	const char *name, *value;
	struct isolation_reason reason;
} annotations[] = {
#define ANNOTATION(name, value, to, why, source)                                                   \
	{name, value, {ISOLATION_##to, false, false, why, source}},
#include "backends/annotations.def"
#undef ANNOTATION
};

const struct isolation_reason *isolation_reason(enum isolation_lower id)
{
	return &reasons[id];
}

const struct isolation_reason *isolation_capability(const char *name)
{
	for (size_t i = 0; i < COUNT(capabilities); i++)
		if (strcmp(capabilities[i].name, name) == 0)
			return &capabilities[i].reason;
	return NULL;
}

bool isolation_fits(struct span given, const char *pattern)
{
	size_t len = strlen(pattern);

	if (!len || pattern[len - 1] != '*')
		return span_is(given, pattern);
	return given.len >= len - 1 && memcmp(given.at, pattern, len - 1) == 0;
}

#define GVISOR_FLAG "dev.gvisor.flag."

const struct isolation_reason *isolation_annotation(struct span name, struct span value)
{
	const struct isolation_reason *flag = NULL;
	size_t i = 0;

	if (span_starts(name, GVISOR_FLAG))
		flag = isolation_gvisor_flag(span_skip(name, strlen(GVISOR_FLAG)), value);
	if (flag)
		return flag;
	/* The last row takes all. */
	while (i < COUNT(annotations) - 1 && !(isolation_fits(name, annotations[i].name) &&
					       isolation_fits(value, annotations[i].value)))
		i++;
	return &annotations[i].reason;
}

enum isolation isolation_left(enum isolation level, const struct isolation_reason *why)
{
	enum isolation below = level > ISOLATION_NONE ? (enum isolation)(level - 1) : level;

	if (why->adds)
		return level;
	if (why->step)
		return below;
	return why->to < level ? why->to : level;
}

/* --- sources --- */

const char *isolation_source(const char *why)
{
	for (size_t i = 0; i < COUNT(reasons); i++)
		if (strcmp(reasons[i].why, why) == 0)
			return reasons[i].source;
	for (size_t i = 0; i < COUNT(capabilities); i++)
		if (strcmp(capabilities[i].reason.why, why) == 0)
			return capabilities[i].reason.source;
	for (size_t i = 0; i < COUNT(annotations); i++)
		if (strcmp(annotations[i].reason.why, why) == 0)
			return annotations[i].reason.source;
	return isolation_runtime_source(why);
}

/* --- for people --- */

/* One that leaves the level as it was is no lowering, but should be known. */
static enum isolation say_line(struct buf *out, const char *indent, enum isolation before,
			       const struct isolation_line *l)
{
	const char *source = isolation_source(l->why);

	buf_printf(out, "%s%-8s %s%s%s: %s%s%s%s; %s is left\n", indent,
		   before == l->to ? "keeps" : "lowered", l->field, *l->value ? " = " : "",
		   l->value, l->why, *source ? " (" : "", source, *source ? ")" : "",
		   isolation_name(l->to));
	return l->to;
}

static void say_lowered(const struct jv *list, enum isolation before, const char *indent,
			struct buf *out)
{
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		const struct jv *one = &list->items[i];
		struct isolation_line l = {.field = jv_str(one, "field", ""),
					   .value = jv_str(one, "value", ""),
					   .why = jv_str(one, "why", "")};

		isolation_find(span_of(jv_str(one, "to", "")), &l.to);
		before = say_line(out, indent, before, &l);
	}
}

static void say_adds(const struct jv *list, const char *indent, struct buf *out)
{
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		struct span why =
			list->items[i].kind == JV_STRING ? list->items[i].str : span_of("");

		buf_printf(out, "%s%-8s %.*s (%s); the level stays\n", indent, "adds",
			   SPAN_FMT(why), why.len ? isolation_source(why.at) : "");
	}
}

static void say_base(const char *base, const struct isolation_runtime *rt, const char *indent,
		     struct buf *out)
{
	const char *source = "", *why = isolation_program(rt->is.program, &source);

	buf_printf(out, "%s%-8s %s: ", indent, "base", base);
	if (*rt->name)
		buf_printf(out, "runtime '%s': ", rt->name);
	if (*rt->is.from)
		buf_printf(out, "its %s is %s: ", rt->is.from, rt->said);
	if (why)
		buf_printf(out, "%s: %s (%s)\n", rt->is.program, why, source);
	else if (*rt->is.from)
		buf_puts(out, "a program that no table knows (backends/runtimes.def)\n");
	else
		buf_puts(out, "the service does not say which program it is\n");
}

void isolation_derive(const struct jv *isolation, const char *indent, struct buf *out)
{
	const struct isolation_runtime rt = {
		.name = jv_str(isolation, "runtime", ""),
		.said = jv_str(isolation, "runtime_path", ""),
		.is = {.from = jv_str(isolation, "from", ""),
		       .program = jv_str(isolation, "program", "")},
	};
	const char *base = jv_str(isolation, "base", "unknown");
	enum isolation level = ISOLATION_NONE;

	isolation_find(span_of(base), &level);
	say_base(base, &rt, indent, out);
	say_lowered(jv_get(isolation, "lowered"), level, indent, out);
	say_adds(jv_get(isolation, "adds"), indent, out);
	buf_printf(out, "%s%-8s %s\n", indent, "result", jv_str(isolation, "level", "unknown"));
}

enum isolation isolation_best(const struct isolation_service *s)
{
	enum isolation best = ISOLATION_NONE;

	for (size_t i = 0; i < s->runtime_count; i++)
		if (s->runtimes[i].is.level > best)
			best = s->runtimes[i].is.level;
	for (size_t i = 0; i < s->note_count; i++)
		best = isolation_left(best, isolation_reason(s->notes[i]));
	return best;
}

void isolation_derive_runtime(const struct isolation_runtime *rt, const char *indent,
			      struct buf *out)
{
	const struct isolation_weighed *w = &rt->is;
	enum isolation before = w->base;

	say_base(isolation_name(w->base), rt, indent, out);
	for (size_t i = 0; i < w->line_count; i++)
		before = say_line(out, indent, before, &w->lines[i]);
	buf_printf(out, "%s%-8s %s\n", indent, "result", isolation_name(w->level));
}
