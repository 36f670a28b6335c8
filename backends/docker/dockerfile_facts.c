#include "backends/docker/dockerfile_priv.h"

#include <ctype.h>
#include <string.h>

struct stage {
	struct span name;   /* "" if none */
	struct span user;   /* who its commands run as from here on; "" is root */
	bool user_unknown;  /* the image is not known */
	bool triggers_user; /* an ONBUILD USER, for what is built from it */
};

struct reader {
	struct docker_reading *r;
	struct backend_call *call;
	const struct dockerfile *file;
	const char *name; /* of the file */
	const struct jv *build_args;
	struct jv args; /* of the ARGs above the first FROM */
	struct stage stages[DOCKERFILE_STAGES_MAX];
	size_t stage_count;
	const char *where; /* of the instruction: "Dockerfile:7" */
	char escape;
	bool later; /* an ONBUILD: it runs in another build */
	struct dockerfile_does *does;
};

static bool refuse(struct reader *d, struct span value, const char *why)
{
	docker_refuse(d->call, REASON_build_file, d->where, docker_cut(d->call, value))->text = why;
	return false;
}

/* What stands there can be a password, or the value of a variable. */
static bool refuse_unseen(struct reader *d, const char *why)
{
	d->call->withheld |= WITHHELD_VALUE;
	return refuse(d, span_of(""), why);
}

static struct stage *now(struct reader *d)
{
	return &d->stages[d->stage_count - 1];
}

/* --- flags --- */

struct flags {
	struct span from; /* of COPY; "" if none */
	bool has_from;
};

static bool is_plain_flag(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!isalnum((unsigned char)s.at[i]) && !strchr("-=._/:@,+~{}$", s.at[i]))
			return false;
	return true;
}

/* allowed: names between spaces.  *args is left behind the flags. */
static bool take_flags(struct reader *d, struct span *args, const char *allowed, struct flags *ret)
{
	struct span rest = *args, word;

	*ret = (struct flags){.from = {"", 0}};
	while (span_starts(rest, "--")) {
		struct span value, key, names = span_of(allowed), one;
		bool known = false;

		dockerfile_word(&rest, d->escape, &word);
		value = word;
		if (!is_plain_flag(word) || !span_cut(&value, '=', &key))
			return refuse(d, word, "this flag is not one that the gate reads");
		while (names.len && !known) {
			span_cut(&names, ' ', &one);
			known = span_eq(one, key);
		}
		if (!known)
			return refuse(d, word,
				      "the classic builder has no such flag, or it is "
				      "not granted; BuildKit's are refused");
		if (span_is(key, "--from")) {
			if (ret->has_from)
				return refuse(d, word, "the flag comes twice");
			ret->from = value;
			ret->has_from = true;
		}
		while (rest.len && (*rest.at == ' ' || *rest.at == '\t'))
			rest = span_skip(rest, 1);
	}
	*args = rest;
	return true;
}

/* --- images --- */

static bool same_folded(struct span a, struct span b)
{
	return a.len == b.len && a.len && strncasecmp(a.at, b.at, a.len) == 0;
}

/* The stage that is meant, among those that are complete; NULL if none. */
static const struct stage *find_stage(const struct reader *d, struct span name, bool by_number)
{
	size_t number = 0;

	for (size_t i = d->stage_count - 1; i > 0; i--)
		if (same_folded(d->stages[i - 1].name, name))
			return &d->stages[i - 1];
	for (size_t i = 0; i < name.len; i++) {
		if (!isdigit((unsigned char)name.at[i]) || name.len > 4)
			return NULL;
		number = number * 10 + (size_t)(name.at[i] - '0');
	}
	return by_number && name.len && number + 1 < d->stage_count ? &d->stages[number] : NULL;
}

/* Notes an image; its document, or NULL: not known (yet). */
static const struct lookup *need_image(struct reader *d, const char *given, bool copied)
{
	struct backend_call *call = d->call;
	struct docker_reference ref = docker_reference(call->arena, span_of(given));
	struct jv *entry;

	if (!ref.valid && !docker_looks_like_id(span_of(given))) {
		refuse(d, span_of(given), "this is no reference of an image");
		return NULL;
	}
	entry = jv_push(call->arena, &d->does->images, jv_object());
	jv_set(call->arena, entry, "given", jv_string(given));
	jv_set(call->arena, entry, "field", jv_string(d->where));
	jv_set(call->arena, entry, "copied", jv_bool(copied));
	return docker_ask_image(call, given);
}

static bool do_line(struct reader *d, const struct instruction *one);

/* ONBUILD lines of an image come first in what is built from it. */
static bool do_triggers(struct reader *d, const char *image, const struct lookup *answer)
{
	const struct jv *list = jv_path(&answer->body, "Config.OnBuild");
	const char *where = d->where, *why = NULL;
	char escape = d->escape;
	struct instruction one;

	if (!list || list->kind != JV_ARRAY)
		return true;
	if (list->count > DOCKERFILE_TRIGGERS_MAX)
		return refuse(d, span_of(image), "the image has too many ONBUILD triggers");
	for (size_t i = 0; i < list->count; i++) {
		struct span line = list->items[i].kind == JV_STRING ? list->items[i].str
								    : (struct span){"", 0};

		d->where = docker_text(d->call, "%s, ONBUILD of %s", where, image);
		if (!dockerfile_one(line, &one, &why))
			return refuse_unseen(d, why);
		if (!strcmp(one.name, "FROM") || !strcmp(one.name, "ONBUILD"))
			return refuse_unseen(d, "a trigger is no FROM and no ONBUILD");
		d->escape = '\\'; /* whatever this file's is */
		if (!do_line(d, &one))
			return false;
	}
	d->escape = escape;
	d->where = where;
	return true;
}

static bool begin_stage(struct reader *d, struct span name)
{
	if (d->stage_count == DOCKERFILE_STAGES_MAX)
		return refuse(d, name, "there are too many stages");
	d->stages[d->stage_count++] = (struct stage){.name = name, .user = {"", 0}};
	return true;
}

static bool do_from(struct reader *d, struct span args)
{
	struct span image = {"", 0}, as = {"", 0}, name = {"", 0}, more;
	const struct lookup *answer;
	const struct stage *stage;
	const char *given, *why;
	struct flags flags;

	if (!take_flags(d, &args, "", &flags))
		return false;
	if (!dockerfile_word(&args, d->escape, &image) ||
	    (dockerfile_word(&args, d->escape, &as) &&
	     (!same_folded(as, span_of("as")) || !dockerfile_word(&args, d->escape, &name))) ||
	    dockerfile_word(&args, d->escape, &more))
		return refuse(d, image, "FROM takes an image, and AS with a name");
	given = dockerfile_expand(d->call, image, &d->args, &why);
	if (!given)
		return refuse(d, image, why);
	if (!begin_stage(d, name))
		return false;
	stage = find_stage(d, span_of(given), false);
	if (stage) {
		now(d)->user = stage->user;
		now(d)->user_unknown = stage->user_unknown || stage->triggers_user;
		return true;
	}
	if (!strcmp(given, "scratch"))
		return true;
	answer = need_image(d, given, false);
	now(d)->user_unknown = !answer || answer->status != 200;
	if (!answer || answer->status != 200)
		return !d->call->refused.count;
	now(d)->user = span_of(jv_str(jv_get(&answer->body, "Config"), "User", ""));
	return do_triggers(d, given, answer);
}

/* --- COPY and ADD --- */

static bool looks_like_url(struct span s)
{
	return memmem(s.at, s.len, "://", 3) || span_starts(s, "git@") ||
	       (s.len >= 4 && strncasecmp(s.at, "http", 4) == 0 && memchr(s.at, ':', s.len));
}

static bool add_source(struct reader *d, struct span source)
{
	struct span plain;
	struct jv *entry;

	if (memchr(source.at, '$', source.len) || !dockerfile_unquote(source, d->escape, &plain))
		return refuse_unseen(d, "sources of ADD with variables, quotes or escapes could "
					"be URLs and are refused: use COPY");
	if (!looks_like_url(plain))
		return true;
	entry = jv_push(d->call->arena, &d->does->urls, jv_object());
	jv_set(d->call->arena, entry, "value",
	       jv_string(docker_url_fact(d->call, plain, WITHHELD_BUILD_URL)));
	jv_set(d->call->arena, entry, "field", jv_string(d->where));
	return true;
}

static bool add_list(struct reader *d, struct span args)
{
	enum jv_fault fault = JV_FAULT_NONE;
	struct err err = {0};
	struct jv list;

	if (jv_parse(d->call->arena, args, &list, &fault, &err) < 0 || list.kind != JV_ARRAY)
		return refuse_unseen(d, "this begins like a JSON list and is none");
	for (size_t i = 0; i < list.count; i++)
		if (list.items[i].kind != JV_STRING || !add_source(d, list.items[i].str))
			return d->call->refused.count ? false
						      : refuse_unseen(d, "a list of strings is "
									 "expected");
	return true;
}

/* The last word is where it goes to, and looked at like the others: that costs nothing. */
static bool do_add(struct reader *d, struct span args)
{
	struct flags flags;
	struct span word;

	if (!take_flags(d, &args, "--chown", &flags))
		return false;
	if (args.len && args.at[0] == '[')
		return add_list(d, args);
	while (dockerfile_word(&args, d->escape, &word))
		if (!add_source(d, word))
			return false;
	return true;
}

static bool do_copy(struct reader *d, struct span args)
{
	struct flags flags;
	const char *given;

	if (!take_flags(d, &args, "--chown --from", &flags))
		return false;
	if (!flags.has_from || find_stage(d, flags.from, true))
		return true;
	given = docker_whole(d->call, flags.from);
	if (!flags.from.len || strchr(given, '$'))
		return refuse(d, flags.from, "--from names a stage or an image");
	need_image(d, given, true);
	return !d->call->refused.count;
}

/* --- the others --- */

static bool do_run(struct reader *d, struct span args)
{
	struct stage *stage = now(d);
	struct flags flags;
	bool known = true, root;

	if (!take_flags(d, &args, "", &flags))
		return false;
	root = docker_user_is_root(stage->user, &known);
	d->does->runs = true;
	d->does->root_unknown = d->does->root_unknown || d->later || stage->user_unknown || !known;
	d->does->root = d->does->root || (root && known && !d->later && !stage->user_unknown);
	return true;
}

static bool do_user(struct reader *d, struct span args)
{
	struct span plain = {"", 0};

	now(d)->user = args;
	now(d)->user_unknown = memchr(args.at, '$', args.len) != NULL ||
			       !dockerfile_unquote(args, d->escape, &plain);
	if (!now(d)->user_unknown)
		now(d)->user = plain;
	return true;
}

static bool add_label(struct reader *d, struct span key)
{
	struct span plain;
	struct jv *entry;

	if (memchr(key.at, '$', key.len) || !dockerfile_unquote(key, d->escape, &plain))
		return refuse(d, key, "a label's name with variables or escapes is refused");
	entry = jv_push(d->call->arena, &d->does->labels, jv_object());
	jv_set(d->call->arena, entry, "name", jv_string(docker_word(d->call, plain)));
	jv_set(d->call->arena, entry, "field", jv_string(d->where));
	return true;
}

/* `name=value name=value`, or `name the rest`. */
static bool do_label(struct reader *d, struct span args)
{
	struct span word, key;
	bool first = true;

	while (dockerfile_word(&args, d->escape, &word)) {
		struct span value = word;
		bool pair = span_cut(&value, '=', &key);

		/* "a=b"=c: the sign stands within quotes. */
		if (pair && key.len && strchr("\"'", key.at[0]) &&
		    (key.len < 2 || key.at[key.len - 1] != key.at[0]))
			return refuse_unseen(d, "a label's name with quotes in it is refused");
		if (!add_label(d, pair ? key : word))
			return false;
		if (!pair)
			return first || refuse_unseen(d, "a label needs a value");
		first = false;
	}
	return true;
}

/* Engines expand and unquote names as well. */
static bool is_plain_name(struct span name)
{
	for (size_t i = 0; i < name.len; i++)
		if (!isalnum((unsigned char)name.at[i]) && name.at[i] != '_')
			return false;
	return name.len && !isdigit((unsigned char)name.at[0]);
}

/*
 * Those above the first FROM can be used in FROM.  alone: it is the only one of
 * its line; others see the values from before the line, or one another.
 */
static bool declare(struct reader *d, struct span word, bool alone)
{
	struct span value = word, name, plain;
	const struct jv *given;
	const char *text, *why;
	bool has_value = span_cut(&value, '=', &name);

	if (!has_value)
		name = word;
	if (!is_plain_name(name))
		return refuse_unseen(d, "a variable's name has letters, digits and _");
	if (!alone && has_value && memchr(value.at, '$', value.len))
		return refuse_unseen(d, "a variable in a value is read where one ARG has one line");
	given = jv_get_span(d->build_args, name);
	if (given && given->kind == JV_STRING) {
		jv_set_span(d->call->arena, &d->args, name, *given);
		return true;
	}
	if (!has_value) { /* engines forget what it was */
		jv_set_span(d->call->arena, &d->args, name, jv_null());
		return true;
	}
	if (!dockerfile_unquote(value, d->escape, &plain) ||
	    (value.len && value.at[0] == '\'' && memchr(plain.at, '$', plain.len)))
		return refuse_unseen(d, "quotes within the value are refused");
	text = dockerfile_expand(d->call, plain, &d->args, &why);
	if (!text)
		return refuse_unseen(d, why);
	jv_set_span(d->call->arena, &d->args, name, jv_string(text));
	return true;
}

static bool do_arg(struct reader *d, struct span args)
{
	struct span word, rest = args;
	size_t count = 0;

	if (d->stage_count)
		return true;
	while (dockerfile_word(&rest, d->escape, &word))
		count++;
	while (dockerfile_word(&args, d->escape, &word))
		if (!declare(d, word, count == 1))
			return false;
	return true;
}

static bool do_healthcheck(struct reader *d, struct span args)
{
	if (!same_folded(args, span_of("none")))
		d->does->healthcheck = true;
	return true;
}

/* Judged as if it were done now. */
static bool do_onbuild(struct reader *d, struct span args)
{
	struct instruction one;
	char escape = d->escape;
	const char *why;
	bool fine;

	if (!dockerfile_one(args, &one, &why))
		return refuse_unseen(d, why);
	if (!strcmp(one.name, "FROM") || !strcmp(one.name, "ONBUILD") ||
	    !strcmp(one.name, "MAINTAINER"))
		return refuse_unseen(d, "a trigger is no FROM, ONBUILD or MAINTAINER");
	if (!strcmp(one.name, "USER")) { /* of whoever builds from it */
		now(d)->triggers_user = true;
		return true;
	}
	d->later = true;
	d->escape = '\\'; /* it is read again as a file of its own */
	fine = do_line(d, &one);
	d->escape = escape;
	d->later = false;
	return fine;
}

static const struct {
	const char *name;
	bool (*does)(struct reader *d, struct span args);
} ways[] = {
	{"FROM", do_from}, {"COPY", do_copy},       {"ADD", do_add},
	{"RUN", do_run},   {"USER", do_user},       {"LABEL", do_label},
	{"ARG", do_arg},   {"ONBUILD", do_onbuild}, {"HEALTHCHECK", do_healthcheck},
};

static bool has_flags(const char *name)
{
	return !strcmp(name, "FROM") || !strcmp(name, "COPY") || !strcmp(name, "ADD") ||
	       !strcmp(name, "RUN") || !strcmp(name, "HEALTHCHECK");
}

/* What is not among the ways changes only what the image says of itself. */
static bool do_line(struct reader *d, const struct instruction *one)
{
	if (!d->stage_count && strcmp(one->name, "FROM") != 0 && strcmp(one->name, "ARG") != 0)
		return refuse_unseen(d, "the first instruction is FROM");
	/* Engines take "--" alone for the end of flags, and those that are none are mistakes. */
	if (!has_flags(one->name) && span_starts(one->args, "--"))
		return refuse_unseen(d, "the instruction has no flags");
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(ways[i].name, one->name))
			return ways[i].does(d, one->args);
	return true;
}

bool dockerfile_does(struct docker_reading *r, const struct dockerfile *file, const char *name,
		     const struct jv *build_args, struct dockerfile_does *ret)
{
	struct reader *d = arena_take(r->call->arena, sizeof(*d));

	*ret = (struct dockerfile_does){
		.images = jv_array(), .urls = jv_array(), .labels = jv_array()};
	if (!d) {
		docker_refuse(r->call, REASON_no_memory, NULL, NULL);
		return false;
	}
	*d = (struct reader){.r = r,
			     .call = r->call,
			     .file = file,
			     .name = name,
			     .build_args = build_args,
			     .args = jv_object(),
			     .escape = file->escape,
			     .does = ret};
	d->where = docker_text(d->call, "%s:%d", name, file->line);
	if (file->why)
		return refuse(d, span_of(""), file->why);
	for (size_t i = 0; i < file->count; i++) {
		d->where = docker_text(d->call, "%s:%d", name, file->list[i].line);
		if (!do_line(d, &file->list[i]))
			return false;
	}
	if (!d->stage_count)
		return refuse(d, span_of(""), "there is no FROM in it");
	return true;
}
