/*
 * tree_priv.h - a Lua table as a JSON tree.
 *
 * Keys 1..n make an array, string keys an object (its members sorted by name);
 * an empty table is an empty array.  Everything else is refused: a mixed
 * table, a function, a cycle, a number that is not finite, text that is not
 * clean UTF-8.
 */
#ifndef RULES_TREE_PRIV_H
#define RULES_TREE_PRIV_H

#include "gate/base/arena.h"
#include "gate/base/jv.h"

#include <lua.h>

#define TREE_DEPTH_MAX 16

/*
 * Converts the value at index; to be called under sandbox_call().  On failure
 * returns -1 and sets ERR_CONFIG: "KEY.KEY[2]: a function cannot stand here".
 */
int tree_of(lua_State *lua, int index, struct arena *a, struct jv *ret, struct err *err);

/* An empty table is an array; where an object is expected it is an empty one. */
static inline void tree_expect_object(struct jv *v)
{
	if (v->kind == JV_ARRAY && !v->count)
		*v = jv_object();
}

bool tree_is_utf8(struct span s); /* and without NUL and control bytes but tab and newline */

#endif
