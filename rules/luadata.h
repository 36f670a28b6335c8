/*
 * luadata.h - reads a Lua file that holds data: the configuration.
 *
 * The file runs sandboxed and capped (no library but a few pure functions).
 * It says things by calling the given words:
 *
 *	log { dir = "/var/log/sallyport" }              -- named = false
 *	listener "agents" { socket = "/run/x.sock" }    -- named = true
 *
 * Each call becomes one entry of an array:
 *	{"word":"listener","name":"agents","line":12,"value":{...}}
 * A Lua table with keys 1..n becomes an array, one with string keys an object;
 * a mixed one, a function or a cycle is refused with file and line.
 */
#ifndef RULES_LUADATA_H
#define RULES_LUADATA_H

#include "gate/base/arena.h"
#include "gate/base/err.h"
#include "gate/base/jv.h"

#include <stdbool.h>

struct luadata_word {
	const char *word;
	bool named;
};

/* origin: the file's name in messages.  -1 with ERR_CONFIG: "origin:line: ...". */
int luadata_read(struct span text, const char *origin, const struct luadata_word *words,
		 size_t word_count, struct arena *a, struct jv *ret, struct err *err);

#endif
