#include "gate/command.h"

#include "gate/base/nearest.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum option_kind { OPTION_FLAG = 0, OPTION_TEXT, OPTION_MUST, OPTION_COUNT, OPTION_MANY };

enum command_id {
#define COMMAND(id, name, arguments, rest, summary) ID_##id,
#define OPTION(id, field, name, letter, kind, what, doc)
#include "gate/commands.def"
#undef COMMAND
#undef OPTION
};

struct command {
	const char *name, *arguments;
	size_t rest_max;
	const char *summary;
	command_fn *run;
};

static const struct command commands[] = {
#define COMMAND(id, name, arguments, rest, summary) {name, arguments, rest, summary, run_##id},
#define OPTION(id, field, name, letter, kind, what, doc)
#include "gate/commands.def"
#undef COMMAND
#undef OPTION
};
#define COMMANDS (sizeof(commands) / sizeof(*commands))

struct option {
	enum command_id command;
	const char *name;
	char letter; /* 0: none */
	enum option_kind kind;
	size_t offset; /* into struct args */
	const char *what, *doc;
};

static const struct option options[] = {
#define COMMAND(id, name, arguments, rest, summary)
#define OPTION(id, field, name, letter, kind, what, doc)                                           \
	{ID_##id, name, letter, OPTION_##kind, offsetof(struct args, field), what, doc},
#include "gate/commands.def"
#undef COMMAND
#undef OPTION
};
#define OPTIONS (sizeof(options) / sizeof(*options))

static bool has_option(const struct command *c, const struct option *o)
{
	return o->command == (enum command_id)(c - commands);
}

/* How many words of argv spell the name of c; 0 if they do not. */
static int spelled(const struct command *c, int argc, char *const *argv)
{
	const char *at = c->name;

	for (int i = 0; i < argc; i++) {
		size_t len = strcspn(at, " ");

		if (strlen(argv[i]) != len || memcmp(argv[i], at, len) != 0)
			return 0;
		at += len;
		if (!*at)
			return i + 1;
		at++;
	}
	return 0;
}

static bool begins_a_pair(const char *word)
{
	for (size_t i = 0; i < COMMANDS; i++) {
		size_t first = strcspn(commands[i].name, " ");

		if (commands[i].name[first] && strlen(word) == first &&
		    strncmp(word, commands[i].name, first) == 0)
			return true;
	}
	return false;
}

static int unknown_verb(int argc, char *const *argv, struct err *err)
{
	bool pair = argc > 1 && argv[1][0] != '-' && begins_a_pair(argv[0]);
	char typed[128], hint[NEAREST_TEXT_MAX];
	struct nearest near;

	snprintf(typed, sizeof(typed), "%s%s%s", argv[0], pair ? " " : "", pair ? argv[1] : "");
	near = nearest_to(span_of(typed));
	for (size_t i = 0; i < COMMANDS; i++)
		nearest_offer(&near, commands[i].name);
	return err_set(err, ERR_INPUT, "no verb is called '%s'%s; 'sallyport help' lists them",
		       typed, nearest_text(&near, hint));
}

const struct command *command_find(int argc, char *const *argv, int *ret_words, struct err *err)
{
	for (size_t i = 0; i < COMMANDS; i++) {
		int words = spelled(&commands[i], argc, argv);

		if (words) {
			*ret_words = words;
			return &commands[i];
		}
	}
	unknown_verb(argc, argv, err);
	return NULL;
}

const struct command *command_at(size_t i)
{
	return i < COMMANDS ? &commands[i] : NULL;
}

const char *command_name(const struct command *c)
{
	return c->name;
}

const char *command_summary(const struct command *c)
{
	return c->summary;
}

int command_run(const struct command *c, const struct args *args)
{
	return c->run(args);
}

static int store_one_more(const struct option *o, const char *value, struct args_list *to,
			  struct err *err)
{
	if (to->count == ARGS_LIST_MAX)
		return err_set(err, ERR_INPUT, "--%s may be given %d times", o->name,
			       ARGS_LIST_MAX);
	to->items[to->count++] = value;
	return 0;
}

static int store(const struct option *o, const char *value, struct args *ret, struct err *err)
{
	char *to = (char *)ret + o->offset;

	switch (o->kind) {
	case OPTION_FLAG:
		if (value)
			return err_set(err, ERR_INPUT, "--%s takes no value", o->name);
		*(bool *)to = true;
		return 0;
	case OPTION_TEXT:
	case OPTION_MUST:
		*(const char **)to = value;
		return 0;
	case OPTION_COUNT:
		if (command_count(span_of(value), (uint64_t *)to) < 0)
			return err_set(err, ERR_INPUT, "--%s takes a whole number, not '%s'",
				       o->name, value);
		ret->has_count = true;
		return 0;
	case OPTION_MANY:
		return store_one_more(o, value, (struct args_list *)(void *)to, err);
	}
	return 0;
}

static const struct option *find_long(const struct command *c, const char *name, size_t len)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (has_option(c, &options[i]) && strlen(options[i].name) == len &&
		    memcmp(options[i].name, name, len) == 0)
			return &options[i];
	return NULL;
}

static const struct option *find_letter(const struct command *c, char letter)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (has_option(c, &options[i]) && letter && options[i].letter == letter)
			return &options[i];
	return NULL;
}

static int unknown_option(const struct command *c, const char *word, struct err *err)
{
	char hint[NEAREST_TEXT_MAX], typed[64];
	struct nearest near;

	snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(word, "="), word);
	near = nearest_to(span_of(typed + strspn(typed, "-")));
	for (size_t i = 0; i < OPTIONS; i++)
		if (has_option(c, &options[i]))
			nearest_offer(&near, options[i].name);
	return err_set(err, ERR_INPUT, "'%s' has no option '%s'%s", c->name, typed,
		       nearest_text(&near, hint));
}

/* One word that begins with '-'; *used counts the words that it takes. */
static int parse_option(const struct command *c, char *const *argv, int left, struct args *ret,
			int *used, struct err *err)
{
	const char *word = argv[0], *value = NULL;
	const struct option *o;

	*used = 1;
	if (word[1] == '-') {
		size_t len = strcspn(word + 2, "=");

		o = find_long(c, word + 2, len);
		if (word[2 + len] == '=')
			value = word + 2 + len + 1;
	} else {
		o = find_letter(c, word[1]);
		if (word[2])
			value = word + 2;
	}
	if (!o)
		return unknown_option(c, word, err);
	if (o->kind != OPTION_FLAG && !value) {
		if (left < 2)
			return err_set(err, ERR_INPUT, "--%s needs a value: %s", o->name, o->what);
		value = argv[1];
		*used = 2;
	}
	return store(o, value, ret, err);
}

static int parse_plain(const struct command *c, const char *word, struct args *ret, struct err *err)
{
	if (ret->rest_count == c->rest_max || ret->rest_count == ARGS_REST_MAX)
		return err_set(err, ERR_INPUT, "'%s' does not know what to do with '%s'", c->name,
			       word);
	ret->rest[ret->rest_count++] = word;
	return 0;
}

static int check_given(const struct command *c, const struct args *args, struct err *err)
{
	for (size_t i = 0; i < OPTIONS; i++) {
		const struct option *o = &options[i];
		const char *value;

		if (!has_option(c, o) || o->kind != OPTION_MUST)
			continue;
		memcpy(&value, (const char *)args + o->offset, sizeof(value));
		if (!value)
			return err_set(err, ERR_INPUT, "'%s' needs --%s %s", c->name, o->name,
				       o->what);
	}
	return 0;
}

int command_parse(const struct command *c, int argc, char *const *argv, struct args *ret,
		  struct err *err)
{
	bool plain_only = false;

	*ret = (struct args){0};
	for (int at = 0, used = 1; at < argc; at += used) {
		const char *word = argv[at];
		bool plain = plain_only || word[0] != '-' || !word[1];
		int rc = 0;

		used = 1;
		if (plain)
			rc = parse_plain(c, word, ret, err);
		else if (strcmp(word, "--") == 0)
			plain_only = true, ret->dashes = ret->rest_count == 0;
		else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
			ret->help = true;
		else
			rc = parse_option(c, argv + at, argc - at, ret, &used, err);
		if (rc < 0)
			return -1;
	}
	return ret->help ? 0 : check_given(c, ret, err);
}

void command_help(const struct command *c, FILE *out)
{
	fprintf(out, "usage: sallyport %s%s%s\n\n%s\n", c->name, *c->arguments ? " " : "",
		c->arguments, c->summary);
	for (size_t i = 0; i < OPTIONS; i++) {
		const struct option *o = &options[i];
		char letter[5] = "    ", left[64];

		if (!has_option(c, o))
			continue;
		if (o->letter)
			snprintf(letter, sizeof(letter), "-%c, ", o->letter);
		snprintf(left, sizeof(left), "%s--%s %s", letter, o->name, o->what);
		fprintf(out, "  %-28s %s\n", left, o->doc);
	}
}

int command_failed(const struct err *err)
{
	fprintf(stderr, "sallyport: %s\n", err->msg);
	return EXIT_CANNOT;
}

int command_count(struct span digits, uint64_t *ret)
{
	uint64_t n = 0;

	if (digits.len == 0 || digits.len > 18)
		return -1;
	for (size_t i = 0; i < digits.len; i++) {
		if (digits.at[i] < '0' || digits.at[i] > '9')
			return -1;
		n = n * 10 + (uint64_t)(digits.at[i] - '0');
	}
	*ret = n;
	return 0;
}

int64_t command_seconds(const char *text)
{
	static const struct {
		char letter;
		int64_t seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
	size_t digits = strspn(text, "0123456789");
	int64_t n = digits && digits <= 9 ? strtoll(text, NULL, 10) : 0;

	if (!text[digits])
		return n;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units) && !text[digits + 1]; i++)
		if (text[digits] == units[i].letter)
			return n * units[i].seconds;
	return 0;
}
