#include "gate/admin.h"

#include "proxy/emergency.h"

#include <assert.h>
#include <string.h>

enum admin_kind { ADMIN_NAME = 0, ADMIN_PATH, ADMIN_NUMBER, ADMIN_WORD, ADMIN_FLAG };
enum admin_need { ADMIN_OPTIONAL = 0, ADMIN_REQUIRED };

struct verb_row {
	const char *name;
	unsigned roles;
	bool acts;
	const char *doc;
};

static const struct verb_row verbs[] = {
#define ADMIN_VERB(id, name, roles, acts, doc) {name, roles, acts, doc},
#define ADMIN_ARG(verb, key, kind, need, least, most, doc)
#include "gate/admin.def"
#undef ADMIN_VERB
#undef ADMIN_ARG
};
_Static_assert(sizeof(verbs) / sizeof(*verbs) == VERB_COUNT, "a row each");

struct arg_row {
	enum admin_verb verb;
	const char *key;
	enum admin_kind kind;
	enum admin_need need;
	uint64_t least, most;
	const char *doc;
};

static const struct arg_row args[] = {
#define ADMIN_VERB(id, name, roles, acts, doc)
#define ADMIN_ARG(verb, key, kind, need, least, most, doc)                                         \
	{VERB_##verb, key, ADMIN_##kind, ADMIN_##need, least, most, doc},
#include "gate/admin.def"
#undef ADMIN_VERB
#undef ADMIN_ARG
};
#define ARGS (sizeof(args) / sizeof(*args))

static const struct {
	const char *name, *text;
} answers[ADMIN_ANSWER_COUNT] = {
	[ADMIN_DONE] = {"", ""},
#define ADMIN_ANSWER(id, doc) [ANSWER_##id] = {#id, doc},
#include "gate/admin_answers.def"
#undef ADMIN_ANSWER
};

const char *admin_answer_name(enum admin_answer a)
{
	return (unsigned)a < ADMIN_ANSWER_COUNT ? answers[a].name : "";
}

const char *admin_answer_text(enum admin_answer a)
{
	return (unsigned)a < ADMIN_ANSWER_COUNT ? answers[a].text : "";
}

const char *admin_verb_name(enum admin_verb v)
{
	return (unsigned)v < VERB_COUNT ? verbs[v].name : "";
}

unsigned admin_verb_roles(enum admin_verb v)
{
	return (unsigned)v < VERB_COUNT ? verbs[v].roles : 0;
}

bool admin_verb_acts(enum admin_verb v)
{
	return (unsigned)v >= VERB_COUNT || verbs[v].acts;
}

/* Where the arguments of a verb begin; they are next to each other. */
static size_t first_arg(enum admin_verb v)
{
	size_t i = 0;

	while (i < ARGS && args[i].verb != v)
		i++;
	return i;
}

const struct admin_value *admin_arg(const struct admin_request *r, const char *key)
{
	size_t first = first_arg(r->verb);

	for (size_t i = first; i < ARGS && args[i].verb == r->verb; i++)
		if (strcmp(args[i].key, key) == 0)
			return &r->args[i - first];
	assert(!"a verb asks for an argument that it has not");
	return NULL;
}

static bool is_path(struct span s)
{
	while (s.len) {
		const char *slash;
		size_t step;

		if (s.at[0] != '/')
			return false;
		s = span_skip(s, 1);
		slash = s.len ? memchr(s.at, '/', s.len) : NULL;
		step = slash ? (size_t)(slash - s.at) : s.len;
		if (!runtime_is_name(s.at, step))
			return false;
		s = span_skip(s, step);
	}
	return true;
}

static bool fits(const struct arg_row *row, const struct jv *v)
{
	if (row->kind == ADMIN_NUMBER)
		return v->kind == JV_INT && v->i >= 0 && (uint64_t)v->i >= row->least &&
		       (uint64_t)v->i <= row->most;
	if (row->kind == ADMIN_FLAG)
		return v->kind == JV_BOOL;
	if (v->kind != JV_STRING || v->str.len < row->least || v->str.len > row->most)
		return false;
	if (row->kind == ADMIN_WORD)
		return emergency_is_word(v->str.at, v->str.len, row->most);
	return row->kind == ADMIN_PATH ? is_path(v->str) : runtime_is_name(v->str.at, v->str.len);
}

/* What the kinds of arguments are called, and whether their range is of bytes. */
static const struct {
	const char *text;
	bool ranged, bytes;
} kinds[] = {
	[ADMIN_NAME] = {"a name (letters, digits, '.', '_', '-')", true, true},
	[ADMIN_PATH] = {"an absolute path whose steps are names", true, true},
	[ADMIN_NUMBER] = {"a whole number", true, false},
	[ADMIN_WORD] = {"a word (letters, digits, '.', '_', '-', '@', '#', '/', ':', '+')", true,
			true},
	[ADMIN_FLAG] = {"true or false", false, false},
};

static void say_kind(const struct arg_row *row, struct err *err)
{
	if (!kinds[row->kind].ranged)
		err_set(err, ERR_INPUT, "'%s' must be %s", row->key, kinds[row->kind].text);
	else
		err_set(err, ERR_INPUT, "'%s' must be %s of %llu to %llu%s", row->key,
			kinds[row->kind].text, (unsigned long long)row->least,
			(unsigned long long)row->most, kinds[row->kind].bytes ? " bytes" : "");
}

static enum admin_answer read_arg(const struct arg_row *row, const struct jv *v,
				  struct admin_value *ret, struct err *err)
{
	*ret = (struct admin_value){.text = ""};
	if (!v && row->need == ADMIN_OPTIONAL)
		return ADMIN_DONE;
	if (!v)
		err_set(err, ERR_INPUT, "'%s' is missing: %s", row->key, row->doc);
	else if (!fits(row, v))
		say_kind(row, err);
	else if (row->kind == ADMIN_FLAG)
		*ret = (struct admin_value){true, "", v->b};
	else if (row->kind == ADMIN_NUMBER)
		*ret = (struct admin_value){true, "", (uint64_t)v->i};
	else
		*ret = (struct admin_value){true, v->str.at, 0};
	return !v || !ret->given ? ANSWER_bad_argument : ADMIN_DONE;
}

static enum admin_answer read_args(const struct jv *given, struct admin_request *ret,
				   struct err *err)
{
	size_t first = first_arg(ret->verb), count = 0, found = 0;

	for (size_t i = first; i < ARGS && args[i].verb == ret->verb; i++, count++) {
		enum admin_answer wrong =
			read_arg(&args[i], jv_get(given, args[i].key), &ret->args[count], err);

		if (wrong)
			return wrong;
		found += ret->args[count].given;
	}
	if (given && given->count != found) {
		err_set(err, ERR_INPUT, "'%s' was given what it does not take",
			admin_verb_name(ret->verb));
		return ANSWER_bad_argument;
	}
	return ADMIN_DONE;
}

static enum admin_verb find_verb(struct span name)
{
	for (size_t i = 0; i < VERB_COUNT; i++)
		if (span_is(name, verbs[i].name))
			return (enum admin_verb)i;
	return VERB_COUNT;
}

static enum admin_answer malformed(struct err *err, const char *what)
{
	err_set(err, ERR_INPUT, "%s", what);
	return ANSWER_malformed;
}

enum admin_answer admin_request_read(struct arena *a, struct span line, struct admin_request *ret,
				     struct err *err)
{
	const struct jv *verb, *given;
	enum jv_fault fault;
	struct jv *doc = arena_take(a, sizeof(*doc));

	*ret = (struct admin_request){.verb = VERB_COUNT};
	if (line.len > ADMIN_REQUEST_MAX || !doc)
		return malformed(err, "the request is too long");
	if (jv_parse(a, line, doc, &fault, err) < 0)
		return ANSWER_malformed;
	verb = jv_get(doc, "verb");
	given = jv_get(doc, "args");
	if (doc->kind != JV_OBJECT || !verb || verb->kind != JV_STRING ||
	    doc->count != (given ? 2u : 1u) || (given && given->kind != JV_OBJECT))
		return malformed(err, "a request is {\"verb\":\"NAME\",\"args\":{...}}");
	ret->verb = find_verb(verb->str);
	ret->given = given;
	if (ret->verb == VERB_COUNT) {
		err_set(err, ERR_INPUT, "no verb is called '%.64s'", verb->str.at);
		return ANSWER_unknown_verb;
	}
	return read_args(given, ret, err);
}

void admin_help(FILE *out)
{
	char roles[32];

	fputs("What can be asked over the admin socket, as one line of JSON: "
	      "{\"verb\":\"NAME\",\"args\":{...}}\n",
	      out);
	for (size_t i = 0; i < VERB_COUNT; i++) {
		admin_roles_text(verbs[i].roles, roles);
		fprintf(out, "\n%s   (%s)\n    %s\n", verbs[i].name, roles, verbs[i].doc);
		for (size_t k = first_arg((enum admin_verb)i); k < ARGS && args[k].verb == i; k++)
			fprintf(out, "    %-10s %s%s\n", args[k].key, args[k].doc,
				args[k].need == ADMIN_REQUIRED ? "" : " (may be left out)");
	}
	fputs("\nWhy something was not done:\n", out);
	for (size_t i = 1; i < ADMIN_ANSWER_COUNT; i++)
		fprintf(out, "    %-18s %s\n", answers[i].name, answers[i].text);
}
