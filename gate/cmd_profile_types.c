/*
 * cmd_profile_types.c - what an editor needs to know of profiles: annotations for
 * the Lua language server, made from the tables that the loader itself is made from.
 *
 * rules/meta/sallyport.lua is what this prints; a test compares them.
 */
#include "gate/command.h"

#include "gate/base/buf.h"
#include "gate/base/span.h"
#include "rules/operation.h"

#include <string.h>

/* --- settings --- */

/* A kind of settings.def as a type of annotations; a kind without a line here does not compile. */
#define TYPE_STRING  "string"
#define TYPE_STRINGS "string[]"
#define TYPE_BOOL    "boolean"
#define TYPE_ISOLATION                                                                             \
	"{ min?: \"none\"|\"process\"|\"kernel\"|\"vm\", runtimes?: string[], attested?: boolean " \
	"}"
#define TYPE_MOUNTS     "{ [1]: string, [2]: \"ro\"|\"rw\" }[]"
#define TYPE_EGRESS     "string[]"
#define TYPE_HOST_TOOLS "\"none\"|\"confined\"|\"bare\""
#define TYPE_USERS      "\"nonroot\"|\"any\""
#define TYPE_LIMITS                                                                                \
	"{ memory?: string|integer, cpus?: number, pids?: integer, container_pids?: integer, "     \
	"lifetime?: string }"
#define TYPE_QUOTA      "table<string, string|number>"
#define TYPE_RATE       "table<OperationWord, string>"
#define TYPE_OPERATIONS "OperationWord[]"
#define TYPE_HARDEN                                                                                \
	"boolean|{ read_only?: boolean, init?: boolean, auto_remove?: boolean, labels?: "          \
	"table<string, string>, log_limits?: boolean }"
#define TYPE_UPDATE                                                                                \
	"boolean|{ within?: string, fresh?: boolean, privileged?: boolean, changes?: "             \
	"(\"command\"|\"env\"|\"labels\")[], moves?: { [1]: string, [2]: string }[] }"
#define TYPE_SANDBOX                                                                               \
	"{ image?: string, lifetime?: string|integer, idle?: string|integer, disk?: "              \
	"string|integer, output?: string|integer, per_call?: boolean }"
#define TYPE_VISIBILITY "\"own\"|\"all\"|(\"own\"|VisibilityEntry)[]"
#define TYPE_SECCOMP    "string"
#define TYPE_APPARMOR   "string"
#define TYPE_DENIAL     "\"full\"|\"code\""
#define TYPE_RUNNING    "\"report\"|\"minimum\"|\"stop\""
#define TYPE_MODE       "\"enforce\"|\"warn\"|\"shadow\""
#define TYPE_MODES      "table<string, \"enforce\"|\"warn\"|\"shadow\">"

static void settings(FILE *out)
{
	fputs("---@class Settings\n", out);
#define SETTING(name, kind, merge, enforced, doc)                                                  \
	fprintf(out, "---@field %s? %s %s\n", #name, TYPE_##kind, doc);
#include "rules/settings.def"
#undef SETTING
	fputs("---@field [integer] Rule|Exception\n\n", out);
}

/* --- words of operations and reasons --- */

static void choice(FILE *out, const char *word, const char *doc)
{
	fprintf(out, "---| \"%s\"%s%s\n", word, *doc ? " # " : "", doc);
}

static bool is_first_of_group(int op)
{
	for (int i = OP_UNKNOWN + 1; i < op; i++)
		if (strcmp(operation_group(i), operation_group(op)) == 0)
			return false;
	return *operation_group(op) && op_class_find(span_of(operation_group(op))) == CLASS_NONE;
}

/* One a line, so that two changes of the tables do not meet in one. */
static void aliases(FILE *out)
{
	fputs("---@alias OperationWord\n", out);
	for (int cls = CLASS_NONE + 1; cls < CLASS_COUNT; cls++)
		choice(out, op_class_name(cls), "");
	for (int op = OP_UNKNOWN + 1; op < OP_COUNT; op++)
		if (is_first_of_group(op))
			choice(out, operation_group(op), "");
	for (int op = OP_UNKNOWN + 1; op < OP_COUNT; op++)
		choice(out, operation_name(op), operation_doc(op));
	fputs("\n---@alias Reason\n", out);
	for (int r = REASON_NONE + 1; r < REASON_COUNT; r++)
		choice(out, reason_name(r), reason_what(r));
	fputc('\n', out);
}

/* --- facts --- */

static const struct fact {
	const char *path, *kind, *doc;
} facts[] = {
#define FACT(path, kind, doc) {path, #kind, doc},
#include "rules/request.def"
#undef FACT
#define FACT(path, kind, doc) {"workload." path, #kind, doc},
#include "rules/workload.def"
#undef FACT
};
#define FACTS (sizeof(facts) / sizeof(*facts))

/* The step of the path behind `below` (of whole steps), and whether more follow. */
static bool step_of(const struct fact *f, struct span below, struct span *ret_step, bool *ret_more)
{
	struct span rest = span_of(f->path);

	if (below.len) {
		if (rest.len <= below.len || !span_eq((struct span){rest.at, below.len}, below) ||
		    rest.at[below.len] != '.')
			return false;
		rest = span_skip(rest, below.len + 1);
	}
	*ret_more = memchr(rest.at, '.', rest.len) != NULL;
	span_cut(&rest, '.', ret_step);
	return true;
}

/* Whether an earlier fact has the same step below. */
static bool seen_before(size_t at, struct span below, struct span step)
{
	struct span other;
	bool more;

	for (size_t i = 0; i < at; i++)
		if (step_of(&facts[i], below, &other, &more) && span_eq(other, step))
			return true;
	return false;
}

/* "workload.mounts[]" is the class Fact.workload.mounts; all of them: Request. */
static void class_name(FILE *out, struct span path)
{
	if (!path.len) {
		fputs("Request", out);
		return;
	}
	fputs("Fact.", out);
	for (size_t i = 0; i < path.len; i++)
		if (path.at[i] != '[' && path.at[i] != ']')
			fputc(path.at[i], out);
}

static void field(FILE *out, const struct fact *f, struct span step, bool more)
{
	bool list = step.len > 2 && step.at[step.len - 1] == ']';
	struct span whole = {f->path, (size_t)(step.at + step.len - f->path)};

	fprintf(out, "---@field %.*s? ", (int)(step.len - (list ? 2 : 0)), step.at);
	if (more)
		class_name(out, whole);
	else
		fputs(strcmp(f->kind, "BOOL") == 0  ? "boolean"
		      : strcmp(f->kind, "INT") == 0 ? "integer"
						    : "string",
		      out);
	fprintf(out, "%s%s%s\n", list ? "[]" : "", more ? "" : " ", more ? "" : f->doc);
}

static void class_of(FILE *out, struct span below)
{
	struct span step;
	bool more;

	fputs("---@class ", out);
	class_name(out, below);
	fputc('\n', out);
	for (size_t i = 0; i < FACTS; i++)
		if (step_of(&facts[i], below, &step, &more) && !seen_before(i, below, step))
			field(out, &facts[i], step, more);
	fputc('\n', out);
}

/* A class for every path that facts lie below, the outermost first. */
static void classes(FILE *out)
{
	struct span all = {"", 0};

	class_of(out, all);
	for (size_t i = 0; i < FACTS; i++)
		for (const char *dot = strchr(facts[i].path, '.'); dot;
		     dot = strchr(dot + 1, '.')) {
			struct span path = {facts[i].path, (size_t)(dot - facts[i].path)}, step;
			bool more, before = false;

			for (size_t k = 0; k < i && !before; k++)
				before = step_of(&facts[k], path, &step, &more);
			if (!before)
				class_of(out, path);
		}
	fputs("---@alias Identity Fact.identity\n\n", out);
}

/* --- words --- */

struct word {
	const char *table, *name, *arguments, *returns, *doc;
};

static void parameter(FILE *out, struct span argument)
{
	struct span name;
	bool optional;

	span_cut(&argument, ':', &name);
	argument = span_skip(argument, 1);
	optional = argument.at[argument.len - 1] == '?';
	fprintf(out, "---@param %.*s%s %.*s\n", SPAN_FMT(name), optional ? "?" : "",
		(int)(argument.len - optional), argument.at);
}

/* The next argument: commas within parentheses belong to a type. */
static bool next_argument(struct span *rest, struct span *ret)
{
	int depth = 0;
	size_t i = 0;

	if (!rest->len)
		return false;
	for (; i < rest->len && (rest->at[i] != ',' || depth); i++)
		depth += rest->at[i] == '(' ? 1 : rest->at[i] == ')' ? -1 : 0;
	*ret = (struct span){rest->at, i};
	*rest = span_skip(*rest, i + 2 < rest->len ? i + 2 : rest->len);
	return true;
}

static void word(FILE *out, const struct word *w)
{
	struct span rest = span_of(w->arguments), argument;
	const char *between = "";

	fprintf(out, "---%s\n", w->doc);
	while (next_argument(&rest, &argument))
		parameter(out, argument);
	if (*w->returns)
		fprintf(out, "---@return %s\n", w->returns);
	fprintf(out, "function %s%s%s(", w->table, *w->table ? "." : "", w->name);
	for (rest = span_of(w->arguments); next_argument(&rest, &argument); between = ", ") {
		struct span name;

		span_cut(&argument, ':', &name);
		fprintf(out, "%s%.*s", between, SPAN_FMT(name));
	}
	fputs(") end\n\n", out);
}

static void words(FILE *out)
{
	static const struct word all[] = {
#define PROFILE(name, function, ...) {"", name, __VA_ARGS__},
#define BASE(name, function, ...)    {"", name, __VA_ARGS__},
#define LIST(name, function, ...)    {"", name, __VA_ARGS__},
#define MATCH(name, function, ...)   {"", name, __VA_ARGS__},
#define STR(name, function, ...)     {"str", name, __VA_ARGS__},
#define TABLE(name, function, ...)   {"table", name, __VA_ARGS__},
#define MATH(name, function, ...)    {"math", name, __VA_ARGS__},
#define IMAGE(name, function, ...)   {"image", name, __VA_ARGS__},
#define PATH(name, function, ...)    {"path", name, __VA_ARGS__},
#define HOST(name, function, ...)    {"host", name, __VA_ARGS__},
#define CIDR(name, function, ...)    {"cidr", name, __VA_ARGS__},
#define REGEX(name, function, ...)   {"regex", name, __VA_ARGS__},
#include "rules/library.def"
	};
	const char *table = "";

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (*all[i].table && strcmp(all[i].table, table) != 0)
			fprintf(out, "%s = {}\n\n", all[i].table);
		table = all[i].table;
		word(out, &all[i]);
	}
}

static const char said[] =
	"---@class Profile\n"
	"---@class Rule\n"
	"---@class Exception\n\n"
	"---@class VisibilityEntry\n"
	"---@field label? string NAME, or NAME=VALUE with a glob for the value.\n"
	"---@field name? string A glob over names.\n"
	"---@field all? true\n"
	"---@field access? \"read\"|\"data\"|\"full\"\n"
	"---@field kinds? (\"containers\"|\"volumes\"|\"networks\"|\"images\")[]\n\n"
	"---@class RuleOptions\n"
	"---@field operations? OperationWord[] What the rule concerns; the class launch by "
	"default.\n"
	"---@field mode? \"enforce\"|\"warn\"|\"shadow\"\n"
	"---@field doc? string\n"
	"---@field examples? { match?: Request[], not_match?: Request[] } Must hold, or nothing "
	"loads.\n\n"
	"---@class ExceptionTerms\n"
	"---@field rule string The rule or standard check whose violations pass.\n"
	"---@field value? string\n"
	"---@field field? string\n"
	"---@field code? Reason\n"
	"---@field when? table<string, any>|fun(req: Request): boolean\n"
	"---@field owner string Who answers for it.\n"
	"---@field ticket string\n"
	"---@field reason string\n"
	"---@field expires string The last day, as \"2026-12-31\", UTC.\n\n"
	"---@class Saying\n"
	"---@field field? string Where in the request.\n"
	"---@field value? any What stood there.\n"
	"---@field hint? string What would be accepted.\n"
	"---@field reason? Reason\n\n"
	"---@class ImageReference\n"
	"---@field name string\n"
	"---@field tag? string\n"
	"---@field digest? string\n\n";

int run_profile_types(const struct args *args)
{
	(void)args;
	fputs("---@meta\n"
	      "-- What profiles are written in, for editors: `sallyport profile types` made this "
	      "file.\n\n",
	      stdout);
	aliases(stdout);
	fputs(said, stdout);
	settings(stdout);
	classes(stdout);
	words(stdout);
	fputs("string = str\n", stdout);
	return EXIT_YES;
}
