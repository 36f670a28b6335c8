/* cmd_profile_diff.c - profile diff: in what one profile grants more or less than another. */
#include "gate/command.h"

#include "gate/base/jv.h"
#include "gate/serve.h"
#include "rules/engine.h"

#include <string.h>

/* One side: a profile, and the engine that knows its rules. */
struct side {
	const struct proxy_conf *conf;
	struct engine *engine;
	const struct profile *profile;
};

struct diff {
	const struct args *args;
	struct arena *arena;
	struct side a, b;
	struct jv rows;
	bool more, undecided;
};

static const char *relation_name(enum relation r)
{
	switch (r) {
	case RELATION_EQUAL:
		return "equal";
	case RELATION_TIGHTER:
		return "tighter";
	case RELATION_LOOSER:
		return "looser";
	case RELATION_BOTH:
		return "both";
	case RELATION_OTHER:
		return "differs";
	}
	return "differs";
}

static void say(struct diff *d, const char *relation, const char *what, const char *detail)
{
	struct jv *one;

	if (!d->args->json) {
		printf("%-11s %-18s %s\n", relation, what, detail);
		return;
	}
	one = jv_push(d->arena, &d->rows, jv_object());
	jv_set(d->arena, one, "relation",
	       jv_string(arena_strndup(d->arena, relation, strlen(relation))));
	jv_set(d->arena, one, "what", jv_string(arena_strndup(d->arena, what, strlen(what))));
	jv_set(d->arena, one, "detail", jv_string(arena_strndup(d->arena, detail, strlen(detail))));
}

/* --- settings --- */

static bool has_entry(const struct jv *list, const struct jv *entry)
{
	for (size_t i = 0; i < list->count; i++)
		if (jv_equal(&list->items[i], entry))
			return true;
	return false;
}

static void put_entries(struct buf *out, const char *sign, const struct jv *of,
			const struct jv *other)
{
	for (size_t i = 0; i < of->count; i++) {
		if (has_entry(other, &of->items[i]))
			continue;
		buf_printf(out, "%s%s ", buf_len(out) ? "  " : "", sign);
		jv_write(out, &of->items[i]);
	}
}

static void describe(const struct jv *x, const struct jv *y, struct buf *out)
{
	if (x && y && x->kind == JV_ARRAY && y->kind == JV_ARRAY) {
		put_entries(out, "-", x, y);
		put_entries(out, "+", y, x);
	} else {
		if (x)
			jv_write(out, x);
		else
			buf_puts(out, "nothing said");
		buf_puts(out, " -> ");
		if (y)
			jv_write(out, y);
		else
			buf_puts(out, "nothing said");
	}
	buf_put(out, "", 1);
}

static void compare_setting(struct diff *d, const char *name)
{
	enum relation r = profile_compare(d->a.profile, d->b.profile, name, d->arena);
	struct buf text;

	d->more = d->more || r == RELATION_LOOSER || r == RELATION_BOTH;
	if (r == RELATION_EQUAL && !d->args->json)
		return;
	buf_init(&text, 1 << 20);
	if (r != RELATION_EQUAL)
		describe(jv_get(profile_settings(d->a.profile), name),
			 jv_get(profile_settings(d->b.profile), name), &text);
	say(d, relation_name(r), name, buf_len(&text) ? buf_span(&text).at : "");
	buf_fini(&text);
}

/* --- rules: they only object, so one more is tighter, whatever it says --- */

static bool find_rule(const struct side *s, const char *name, struct rule_view *ret)
{
	for (size_t i = 0; profile_rule_at(s->engine, s->profile, i, ret); i++)
		if (!ret->is_check && strcmp(ret->name, name) == 0)
			return true;
	return false;
}

static struct span file_text(const struct side *s, const char *file)
{
	for (size_t i = 0; i < s->conf->rule_count; i++)
		if (strcmp(s->conf->rules[i].name, file) == 0)
			return s->conf->rules[i].text;
	return (struct span){"", 0};
}

/* A function also depends on what stands around it, so the whole file must be the same. */
static bool same_function(const struct diff *d, const struct rule_view *x,
			  const struct rule_view *y)
{
	return strcmp(x->file, y->file) == 0 && x->line == y->line &&
	       span_eq(file_text(&d->a, x->file), file_text(&d->b, y->file));
}

static void compare_rule(struct diff *d, const struct rule_view *x)
{
	struct rule_view y;
	char what[128];

	snprintf(what, sizeof(what), "rule %s", x->name);
	if (!find_rule(&d->b, x->name, &y)) {
		d->more = true;
		say(d, "looser", what, "is not there any more");
	} else if (!same_function(d, x, &y)) {
		d->undecided = true;
		say(d, "undecided", what,
		    "is a function that differs; 'sallyport replay' shows what that changes for "
		    "recorded decisions");
	} else if (x->mode != y.mode) {
		d->more = d->more || y.mode > x->mode;
		say(d, y.mode > x->mode ? "looser" : "tighter", what, rule_mode_name(y.mode));
	} else if (d->args->json) {
		say(d, "equal", what, "");
	}
}

static void compare_rules(struct diff *d)
{
	struct rule_view v, unused;
	char what[128];

	for (size_t i = 0; profile_rule_at(d->a.engine, d->a.profile, i, &v); i++)
		if (!v.is_check)
			compare_rule(d, &v);
	for (size_t i = 0; profile_rule_at(d->b.engine, d->b.profile, i, &v); i++) {
		if (v.is_check || find_rule(&d->a, v.name, &unused))
			continue;
		snprintf(what, sizeof(what), "rule %s", v.name);
		say(d, "tighter", what, "is new");
	}
}

/* --- exceptions --- */

static bool find_exception(const struct side *s, const struct exception_view *want)
{
	struct exception_view x;

	for (size_t i = 0; engine_exception_at(s->engine, i, &x); i++)
		if (strcmp(x.profile, profile_name(s->profile)) == 0 &&
		    strcmp(x.rule, want->rule) == 0 && strcmp(x.ticket, want->ticket) == 0 &&
		    strcmp(x.file, want->file) == 0 && x.line == want->line && x.ends == want->ends)
			return true;
	return false;
}

static void compare_exceptions(struct diff *d, const struct side *from, const struct side *to,
			       bool added)
{
	struct exception_view x;
	char what[128], detail[256];

	for (size_t i = 0; engine_exception_at(from->engine, i, &x); i++) {
		if (strcmp(x.profile, profile_name(from->profile)) != 0)
			continue;
		if (find_exception(to, &x) &&
		    span_eq(file_text(from, x.file), file_text(to, x.file)))
			continue;
		d->more = d->more || added;
		snprintf(what, sizeof(what), "exception %s", x.rule);
		snprintf(detail, sizeof(detail), "%s %.60s of %.60s, until %s",
			 added ? "has" : "had", x.ticket, x.owner, x.expires);
		say(d, added ? "looser" : "tighter", what, detail);
	}
}

/* --- the whole --- */

static int find_profile(struct side *s, const struct proxy_conf *conf, const char *name,
			struct err *err)
{
	s->conf = conf;
	s->engine = engine_open(conf->rules, conf->rule_count, &conf->rule_limits, err);
	if (!s->engine)
		return -1;
	s->profile = engine_profile(s->engine, name);
	return s->profile ? 0 : err_set(err, ERR_INPUT, "no profile is called '%s'", name);
}

static int conclude(struct diff *d)
{
	const char *answer = d->more        ? "grants something that the first does not"
			     : d->undecided ? "cannot be shown to grant no more: a function differs"
					    : "grants no more than the first";
	struct jv tree = jv_object();
	struct buf text;

	if (!d->args->json) {
		printf("\"%s\" %s\n", d->args->rest[1], answer);
		return d->more || d->undecided ? EXIT_NO : EXIT_YES;
	}
	jv_set(d->arena, &tree, "answer",
	       jv_string(d->more        ? "more"
			 : d->undecided ? "undecided"
					: "no more"));
	jv_set(d->arena, &tree, "rows", d->rows);
	buf_init(&text, (size_t)4 << 20);
	jv_write(&text, &tree);
	printf("%.*s\n", SPAN_FMT(buf_span(&text)));
	buf_fini(&text);
	return d->more || d->undecided ? EXIT_NO : EXIT_YES;
}

static int diff(const struct args *args, const struct config *first, const struct config *second,
		struct arena *a, struct err *err)
{
	struct diff d = {.args = args, .arena = a, .rows = jv_array()};
	const char *name;
	int answer = EXIT_CANNOT;

	if (find_profile(&d.a, &first->proxy, args->rest[0], err) == 0 &&
	    find_profile(&d.b, &second->proxy, args->rest[1], err) == 0) {
		for (size_t i = 0; (name = profile_setting_at(i)); i++)
			compare_setting(&d, name);
		compare_rules(&d);
		compare_exceptions(&d, &d.b, &d.a, true);
		compare_exceptions(&d, &d.a, &d.b, false);
		answer = conclude(&d);
	}
	engine_close(d.a.engine);
	engine_close(d.b.engine);
	return answer;
}

int run_profile_diff(const struct args *args)
{
	struct loaded first, second = {.bundle = {.fd = -1}};
	struct err err = {0};
	int answer;

	if (args->rest_count != 2) {
		err_set(&err, ERR_INPUT, "name two profiles");
		return command_failed(&err);
	}
	if (load(args->config, &first, &err) < 0)
		return command_failed(&err);
	if (args->other && load(args->other, &second, &err) < 0)
		answer = EXIT_CANNOT;
	else
		answer = diff(args, &first.config, args->other ? &second.config : &first.config,
			      first.arena, &err);
	unload(&second);
	unload(&first);
	return err.kind != ERR_NONE ? command_failed(&err) : answer;
}
