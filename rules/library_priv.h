/*
 * library_priv.h - what rules may call: a small, bounded, deterministic library.
 *
 * No function here reads anything outside its arguments, shows an address,
 * calls back into Lua, or takes time that is not charged to the caller's
 * instructions.  Tables are read raw.  Where a list is taken, a list of facts
 * will do as well.
 *
 * The words are rows of library.def.
 */
#ifndef RULES_LIBRARY_PRIV_H
#define RULES_LIBRARY_PRIV_H

#include "gate/base/jv.h"
#include "gate/base/span.h"

#include <lauxlib.h>
#include <lua.h>

/*
 * Pushes a new table with all words, to which the caller adds its own before
 * library_seal().  Once a state: it also sets up strings and facts.
 */
void library_open(lua_State *lua);

/*
 * Replaces the table on top by a read-only view of it.  name: what messages
 * call it.  As an environment it also refuses names that do not exist.
 */
void library_seal(lua_State *lua, const char *name);

/* --- facts (facts.c): JSON trees that Lua can read and not write --- */

/* v stays the caller's and must outlive the value in Lua.  NULL and null are nil. */
void facts_push(lua_State *lua, const struct jv *v);

/* NULL if the value is no fact. */
const struct jv *facts_at(lua_State *lua, int index);

void facts_open(lua_State *lua);

/* Whether it names a fact: "workload.image.name".  None that lies in a list does. */
bool facts_has_path(struct span path);

/* Whether v takes at most cap bytes as JSON. */
bool facts_fit(const struct jv *v, size_t cap);

/* --- for the parts of the library --- */

struct library_word {
	const char *name;
	lua_CFunction fn;
};

/* Sets each in the table on top. */
void library_add(lua_State *lua, const struct library_word *words, size_t count);

/* Raises "NAME: a string is expected, ..." unless it is one (numbers are none). */
struct span library_string(lua_State *lua, int arg, const char *function);

/* The length of a list: a table, facts, or nothing (0).  Raises for what is no list. */
size_t library_length(lua_State *lua, int arg, const char *function);

/* Pushes entry i (from 1) of what library_length() accepted. */
void library_entry(lua_State *lua, int arg, size_t i);

/* What tostring() makes of a value, without addresses; valid while the value is on the stack. */
struct span library_text(lua_State *lua, int index, char number[64]);

int match_regex(lua_State *lua); /* library_regex.c */

void library_open_text(lua_State *lua);  /* pushes the table of str.* */
void library_open_match(lua_State *lua); /* adds glob, image, regex ... to the table on top */
void library_open_list(lua_State *lua);  /* adds pairs, ipairs, each, listed, table to it */

#endif
