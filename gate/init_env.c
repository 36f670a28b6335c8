/* init_env.c - the variables of other docker-socket proxies as a profile (init_env.def). */
#include "gate/init.h"

#include "gate/base/span.h"

#include <stdbool.h>
#include <string.h>

#define WIDTH 96 /* of a line of operations */

static const struct variable {
	const char *name;
	bool fallback;
	const char *reading, *writing, *closed;
} variables[] = {
#define VARIABLE(name, fallback, reading, writing, closed)                                         \
	{name, fallback, reading, writing, closed},
#define SWITCH(name, operation) {name, false, operation, "", ""},
#define IGNORED(name, why)
#include "gate/init_env.def"
#undef VARIABLE
#undef SWITCH
#undef IGNORED
};
#define VARIABLES (sizeof(variables) / sizeof(*variables))

static const struct {
	const char *name, *why;
} ignored[] = {
#define VARIABLE(name, fallback, reading, writing, closed)
#define SWITCH(name, operation)
#define IGNORED(name, why) {name, why},
#include "gate/init_env.def"
#undef VARIABLE
#undef SWITCH
#undef IGNORED
};

static int read_switch(const char *name, const char *value, bool fallback, bool *ret,
		       struct err *err)
{
	static const struct {
		const char *word;
		bool on;
	} words[] = {{"1", true},  {"true", true},   {"yes", true}, {"on", true},  {"", false},
		     {"0", false}, {"false", false}, {"no", false}, {"off", false}};

	*ret = fallback;
	if (!value)
		return 0;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strcmp(value, words[i].word) == 0) {
			*ret = words[i].on;
			return 0;
		}
	return err_set(err, ERR_INPUT, "the variable %s is '%.40s'; it is 1 or 0", name, value);
}

/* The words as strings with commas, on lines that people can read. */
static void write_operations(struct buf *out, const char *words)
{
	struct span rest = span_of(words), word;
	size_t width = 0;

	while (rest.len) {
		span_cut(&rest, ' ', &word);
		if (!width || width + word.len > WIDTH) {
			buf_printf(out, "%s\t\t", width ? "\n" : "");
			width = 8;
		} else {
			buf_printf(out, " ");
		}
		buf_printf(out, "\"%.*s\",", SPAN_FMT(word));
		width += word.len + 4;
	}
	if (width)
		buf_printf(out, "\n");
}

/* A comment over as many lines as it takes. */
static void write_comment(struct buf *out, const char *text)
{
	struct span rest = span_of(text), word;
	size_t width = 0;

	while (rest.len) {
		span_cut(&rest, ' ', &word);
		if (width && width + word.len > WIDTH) {
			buf_puts(out, "\n");
			width = 0;
		}
		buf_printf(out, "%s%.*s", width ? " " : "\t\t-- ", SPAN_FMT(word));
		width += width ? word.len + 1 : word.len + 11;
	}
	buf_puts(out, "\n");
}

static void write_variable(struct buf *out, const struct variable *v, bool post, bool set)
{
	bool writes = post && *v->writing;

	if (!*v->reading && !writes && !*v->closed)
		return;
	buf_printf(out, "\n\t\t-- %s=1%s%s\n", v->name, writes ? " with POST=1" : "",
		   set ? "" : ", as it is when not set");
	if (*v->closed)
		write_comment(out, v->closed);
	write_operations(out, v->reading);
	if (writes)
		write_operations(out, v->writing);
}

static bool changes_things(const bool *on, bool post)
{
	for (size_t i = 0; i < VARIABLES; i++)
		if (on[i] && ((post && *variables[i].writing) ||
			      strncmp(variables[i].name, "ALLOW_", 6) == 0))
			return true;
	return false;
}

static void write_rest(struct buf *out, bool changes, bool post)
{
	buf_printf(out,
		   "\t},\n\n"
		   "\t-- The other proxy shows every object to every caller%s.\n"
		   "\tvisibility = %s,\n"
		   "\tredact = { \"env\" },   -- it shows passwords in environments as well; this "
		   "does not\n",
		   changes ? ", and lets it be changed" : "",
		   changes ? "\"all\"" : "{ { all = true } }");
	if (post)
		buf_printf(out,
			   "\n\t-- A person decides these.  What is not listed is not granted.\n"
			   "\timages   = {},         -- such as \"docker.io/library/*\"\n"
			   "\tmounts   = {},         -- such as { \"/srv/data\", \"ro\" }\n"
			   "\tnetworks = { \"default\" },\n"
			   "\tports    = {},         -- such as \"127.0.0.1\"\n"
			   "\tusers    = \"any\",      -- \"nonroot\" is safer\n"
			   "\trestart  = { \"always\", \"unless-stopped\", \"on-failure\" },\n"
			   "\tharden   = true,\n");
	buf_printf(out, "}\n");
}

/* Whoever forgot to set them would get the other proxy's defaults, and not know it. */
static bool any_is_set(const char *(*value)(const char *name))
{
	for (size_t i = 0; i < VARIABLES; i++)
		if (value(variables[i].name))
			return true;
	return value("POST") != NULL;
}

int init_env_profile(const char *(*value)(const char *name), struct buf *out, struct err *err)
{
	bool on[VARIABLES], post;

	if (!any_is_set(value))
		return err_set(
			err, ERR_INPUT,
			"none of the proxy's variables is in the environment (CONTAINERS, POST, "
			"...): set them as its container has them");
	if (read_switch("POST", value("POST"), false, &post, err) < 0)
		return -1;
	for (size_t i = 0; i < VARIABLES; i++)
		if (read_switch(variables[i].name, value(variables[i].name), variables[i].fallback,
				&on[i], err) < 0)
			return -1;
	buf_printf(out, "-- Made by `sallyport init --from-env` of the variables of a "
			"docker-socket proxy.\n");
	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		if (value(ignored[i].name))
			buf_printf(out, "-- %s is not needed: %s.\n", ignored[i].name,
				   ignored[i].why);
	buf_printf(out,
		   "\nreturn profile \"from-env\" {\n"
		   "\tdoc = \"What the variables of another docker-socket proxy stood for.\",\n\n"
		   "\toperations = {");
	for (size_t i = 0; i < VARIABLES; i++)
		if (on[i])
			write_variable(out, &variables[i], post, value(variables[i].name) != NULL);
	write_rest(out, changes_things(on, post), post);
	return 0;
}
