#include "gate/command.h"

#include "gate/admin.h"
#include "gate/base/nearest.h"
#include "gate/config.h"
#include "gate/lint.h"
#include "gate/privs.h"
#include "rules/operation.h"

#include <string.h>

static void list_operations(FILE *out)
{
	for (int op = OP_UNKNOWN + 1; op < OP_COUNT; op++) {
		const char *group = operation_group(op);

		fprintf(out, "%-24s %-10s %-16s %s%s\n", operation_name(op),
			op_class_name(operation_class(op)), *group ? group : "-", operation_doc(op),
			operation_by_name(op) ? " Granted by its name alone." : "");
	}
}

static void list_reasons(FILE *out)
{
	for (int r = REASON_NONE + 1; r < REASON_COUNT; r++)
		fprintf(out, "%-20s %d  %s%s\n%-20s      %s\n", reason_name(r), reason_status(r),
			reason_what(r), reason_is_floor(r) ? " (firm)" : "", "", reason_hint(r));
	fputs("\n(firm): no 'sallyport mode PROFILE warn' sets it aside.\n", out);
}

static void list_sinks(FILE *out)
{
	const char *name, *doc;

	for (size_t i = 0; sink_only_at(i, &name, &doc); i++)
		fprintf(out, "%-12s %s\n", name, doc);
}

static void list_settings(FILE *out)
{
	static const struct {
		const char *name, *enforced, *doc;
	} rows[] = {
#define SETTING(name, kind, merge, enforced, doc) {#name, #enforced, doc},
#include "rules/settings.def"
#undef SETTING
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		fprintf(out, "%-14s %s%s\n", rows[i].name, rows[i].doc,
			strcmp(rows[i].enforced, "ENFORCED") == 0 ? "" : " Not in this version.");
}

static void list_clients(FILE *out)
{
#define CLIENT(name, profile, own, how, with)                                                      \
	fprintf(out, "%-16s rules/profiles/%s.lua\n", name, profile);
#include "gate/init.def"
#undef CLIENT
}

static void list_facts(FILE *out)
{
	static const struct {
		const char *path, *kind, *doc;
	} rows[] = {
#define FACT(path, kind, doc) {path, #kind, doc},
#include "rules/request.def"
#undef FACT
#define FACT(path, kind, doc) {"workload." path, #kind, doc},
#include "rules/workload.def"
#undef FACT
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		fprintf(out, "%-44s %-6s %s\n", rows[i].path, rows[i].kind, rows[i].doc);
}

/* One row: how it is called, then what it does. */
static void list_word(FILE *out, const char *table, const char *name, const char *arguments,
		      const char *returns, const char *doc)
{
	fprintf(out, "%s%s(%s)%s%s\n    %s\n", table, name, arguments, *returns ? ": " : "",
		returns, doc);
}

static void list_words(FILE *out)
{
#define ROW(table, name, arguments, returns, doc)                                                  \
	list_word(out, table, name, arguments, returns, doc);
#define PROFILE(name, function, ...) ROW("", name, __VA_ARGS__)
#define BASE(name, function, ...)    ROW("", name, __VA_ARGS__)
#define LIST(name, function, ...)    ROW("", name, __VA_ARGS__)
#define MATCH(name, function, ...)   ROW("", name, __VA_ARGS__)
#define STR(name, function, ...)     ROW("str.", name, __VA_ARGS__)
#define TABLE(name, function, ...)   ROW("table.", name, __VA_ARGS__)
#define MATH(name, function, ...)    ROW("math.", name, __VA_ARGS__)
#define IMAGE(name, function, ...)   ROW("image.", name, __VA_ARGS__)
#define PATH(name, function, ...)    ROW("path.", name, __VA_ARGS__)
#define HOST(name, function, ...)    ROW("host.", name, __VA_ARGS__)
#define CIDR(name, function, ...)    ROW("cidr.", name, __VA_ARGS__)
#define REGEX(name, function, ...)   ROW("regex.", name, __VA_ARGS__)
#include "rules/library.def"
#undef ROW
}

static void list_tests(FILE *out)
{
#define KEY(name, kind, doc) fprintf(out, "%-10s %s\n", #name, doc);
#include "gate/rule_tests.def"
#undef KEY
}

static void list_lint(FILE *out)
{
	for (int c = 0; c < LINT_COUNT; c++)
		fprintf(out, "%-20s %-8s %s. %s\n", lint_code_name(c),
			lint_level_name(lint_level_of(c)), lint_why(c), lint_fix(c));
}

static void list_syscalls(FILE *out)
{
	struct privs_row row;

	for (size_t i = 0; privs_row(i, &row); i++)
		fprintf(out, "%-10s %-18s %s\n", row.role, row.name, row.reason);
}

static const struct {
	const char *name, *doc;
	void (*list)(FILE *out);
} tables[] = {
	{"clients", "what `sallyport init --for` has a profile for", list_clients},
	{"config", "every word and key of the configuration", config_help},
	{"settings", "every setting of a trust profile", list_settings},
	{"facts", "what rules can see of a request", list_facts},
	{"tests", "what a row of a rule test may say", list_tests},
	{"lint", "every mistake that lint looks for", list_lint},
	{"operations", "everything that can be asked for", list_operations},
	{"sinks", "what a sink of the log can be narrowed to", list_sinks},
	{"reasons", "every reason for which a request is refused", list_reasons},
	{"admin", "what can be asked over the admin socket, and by whom", admin_help},
	{"syscalls", "what each process may still ask of the kernel", list_syscalls},
	{"words", "what profiles and their rules are written in", list_words},
};
#define TABLES (sizeof(tables) / sizeof(*tables))

static void overview(FILE *out)
{
	const struct command *c;

	fputs("usage: sallyport VERB ...\n\n"
	      "A policy-enforcing gate in front of container engines.\n\n",
	      out);
	for (size_t i = 0; (c = command_at(i)); i++)
		fprintf(out, "  %-16s %s\n", command_name(c), command_summary(c));
	fputs("\nTables, with 'sallyport help TABLE':\n\n", out);
	for (size_t i = 0; i < TABLES; i++)
		fprintf(out, "  %-16s %s\n", tables[i].name, tables[i].doc);
	fputs("\nExit status: 0 yes, 1 no, 2 could not.  'audit verify' and 'audit ship' have 3 "
	      "and 4 as "
	      "well, and\n'serve' ends with 78 where starting it again does not help: see there.\n",
	      out);
}

/* "audit" is no verb, but there are two that begin with it. */
static bool family_help(const char *topic, FILE *out)
{
	size_t len = strlen(topic), n = 0;
	const struct command *c;

	for (size_t i = 0; (c = command_at(i)); i++) {
		const char *name = command_name(c);

		if (strncmp(name, topic, len) != 0 || name[len] != ' ')
			continue;
		if (n++)
			fputc('\n', out);
		command_help(c, out);
	}
	return n > 0;
}

static int unknown_topic(const char *topic)
{
	char hint[NEAREST_TEXT_MAX];
	struct nearest near = nearest_to(span_of(topic));
	const struct command *c;
	struct err err = {0};

	for (size_t i = 0; (c = command_at(i)); i++)
		nearest_offer(&near, command_name(c));
	for (size_t i = 0; i < TABLES; i++)
		nearest_offer(&near, tables[i].name);
	err_set(&err, ERR_INPUT,
		"there is no help on '%s'%s; 'sallyport help' lists verbs and tables", topic,
		nearest_text(&near, hint));
	return command_failed(&err);
}

int run_help(const struct args *args)
{
	const struct command *c;
	char topic[128];

	if (!args->rest_count) {
		overview(stdout);
		return EXIT_YES;
	}
	snprintf(topic, sizeof(topic), "%s%s%s", args->rest[0], args->rest_count > 1 ? " " : "",
		 args->rest_count > 1 ? args->rest[1] : "");
	for (size_t i = 0; i < TABLES; i++)
		if (strcmp(tables[i].name, topic) == 0) {
			tables[i].list(stdout);
			return EXIT_YES;
		}
	for (size_t i = 0; (c = command_at(i)); i++)
		if (strcmp(command_name(c), topic) == 0) {
			command_help(c, stdout);
			return EXIT_YES;
		}
	return family_help(topic, stdout) ? EXIT_YES : unknown_topic(topic);
}

int run_version(const struct args *args)
{
	(void)args;
	puts("sallyport " SALLYPORT_VERSION);
	return EXIT_YES;
}
