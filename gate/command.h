/*
 * command.h - verbs and their options, from commands.def.
 *
 * Every verb ends with one of three answers: yes, no, could not.
 */
#ifndef GATE_COMMAND_H
#define GATE_COMMAND_H

#include "gate/base/err.h"
#include "gate/base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	EXIT_YES = 0,
	EXIT_NO = 1,
	EXIT_CANNOT = 2,
};

#define ARGS_REST_MAX 256
#define ARGS_LIST_MAX 64

/* An option that may be given more than once. */
struct args_list {
	const char *items[ARGS_LIST_MAX];
	size_t count;
};

/* What was written behind a verb; what was not given is NULL, false or 0. */
struct args {
	const char *config, *listener, *identity, *facts, *anchor, *from, *key;
	bool json, follow, help, vkey, accept_damage;
	const char *junit, *log, *id, *other; /* tools for authors of profiles */
	bool coverage, checks;
	uint64_t fail_under;
	/* audit query, report, export */
	const char *op, *verdict, *reason, *rule, *profile, *object, *type, *text;
	const char *since, *until, *format, *index;
	const char *witness;                  /* audit verify, witness */
	bool once, accept_gap, schema;        /* audit ship */
	bool csv;                             /* audit access-review */
	const char *framework, *seed, *rules; /* audit evidence */
	bool verifier;
	bool has_count;
	uint64_t count;
	const char *rest[ARGS_REST_MAX]; /* plain arguments */
	size_t rest_count;
	bool dashes; /* the plain arguments stood behind "--" */

	const char *owner, *filter, *kind, *backend; /* adopt */
	bool dry_run;

	const char *socket, *path, *lifetime, *name, *group,
		*mode; /* listener; socket: who asks it */
	const char *out, *url, *to, *ca, *commit, *author, *approver, *ticket; /* bundle */
	bool kill, release; /* quarantine, with a ticket */

	/* sandbox */
	const char *token_file, *image, *idle, *memory, *cpus, *pids, *disk, *output, *cwd,
		*timeout;
	struct args_list env, labels;
	bool terminal, no_input, detach;

	const char *clients, *dir; /* init */
	bool from_env;
};

typedef int command_fn(const struct args *args);

#define COMMAND(id, name, arguments, rest, summary) command_fn run_##id;
#define OPTION(id, field, name, letter, kind, what, doc)
#include "gate/commands.def"
#undef COMMAND
#undef OPTION

struct command; /* one row of commands.def */

/* The command that argv begins with, and how many words its name has; or NULL. */
const struct command *command_find(int argc, char *const *argv, int *ret_words, struct err *err);
const struct command *command_at(size_t i); /* NULL behind the last */
const char *command_name(const struct command *c);
const char *command_summary(const struct command *c);

/* argv: what stands behind the verb. */
int command_parse(const struct command *c, int argc, char *const *argv, struct args *ret,
		  struct err *err);
int command_run(const struct command *c, const struct args *args);
/* "90", "90s", "30m", "8h", "7d"; 0: it is none of these. */
int64_t command_seconds(const char *text);
void command_help(const struct command *c, FILE *out);

/* explain --id: a decision in the log, judged again.  Belongs to `explain`. */
int explain_id(const struct args *args);

/* Says what went wrong on stderr and returns EXIT_CANNOT. */
int command_failed(const struct err *err);

/* Digits only, and no more than fit: 0, or -1. */
int command_count(struct span digits, uint64_t *ret);

#endif
