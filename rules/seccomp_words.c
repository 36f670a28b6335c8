#include "rules/engine_priv.h"

#include "gate/base/capability.h"
#include "rules/library_priv.h"

#include <lauxlib.h>

#define ROOM     ((size_t)8 << 20) /* for reading one */
#define TOLD_MAX 8
#define COST     4096 /* bytes that are charged for comparing, whatever the profiles */

static const struct seccomp_known *known_at(lua_State *lua, int arg, const char *function)
{
	const char *name = library_string(lua, arg, function).at;
	const struct seccomp_known *known = seccomp_list_find(&engine_of(lua)->seccomp, name);

	if (!known)
		luaL_error(lua, "%s: no seccomp profile is named \"%s\"", function, name);
	return known;
}

int word_seccomp_sha256(lua_State *lua)
{
	lua_pushstring(lua, known_at(lua, 1, "seccomp_sha256")->sha256);
	return 1;
}

/* Names of capabilities: a list of texts, or of facts with a name. */
static uint64_t capabilities_at(lua_State *lua, int arg)
{
	uint64_t all = 0;

	for (size_t i = 1; i <= library_length(lua, arg, "seccomp_more"); i++) {
		library_entry(lua, arg, i);
		if (lua_type(lua, -1) != LUA_TSTRING) {
			lua_getfield(lua, -1, "name");
			lua_remove(lua, -2);
		}
		all |= capability_bit(library_string(lua, -1, "seccomp_more"));
		lua_pop(lua, 1);
	}
	return all;
}

struct told {
	char text[TOLD_MAX][160];
	size_t count;
};

/* No Lua in here: what it takes is given back whatever happens. */
static void compare(struct span text, const struct seccomp_profile *outer,
		    const struct seccomp_place *at, struct told *ret)
{
	struct arena *a = arena_create(ROOM);
	struct seccomp_more more[TOLD_MAX] = {{.call = ""}};
	struct err err = {0};
	const struct seccomp_profile *inner =
		a ? seccomp_profile_parse(a, text, SECCOMP_REQUEST, &err) : NULL;

	ret->count = 1;
	if (!at->machine)
		snprintf(ret->text[0], sizeof(ret->text[0]),
			 "something: the engine's processor is not known");
	else if (!inner)
		snprintf(ret->text[0], sizeof(ret->text[0]), "something: it cannot be read");
	else
		ret->count = seccomp_profile_more(inner, outer, at, more, TOLD_MAX);
	for (size_t i = 0; inner && at->machine && i < ret->count && i < TOLD_MAX; i++)
		seccomp_more_say(&more[i], ret->text[i], sizeof(ret->text[i]));
	if (ret->count > TOLD_MAX)
		ret->count = TOLD_MAX;
	arena_destroy(a);
}

int word_seccomp_more(lua_State *lua)
{
	struct span text = library_string(lua, 1, "seccomp_more");
	const struct seccomp_known *known = known_at(lua, 2, "seccomp_more");
	struct seccomp_place at = {.machine =
					   seccomp_machine(library_string(lua, 3, "seccomp_more"))};
	struct told told;

	at.capabilities = capability_engine_default();
	at.capabilities &= ~capabilities_at(lua, 5);
	at.capabilities |= capabilities_at(lua, 4);
	sandbox_charge(lua, COST + text.len);
	compare(text, known->profile, &at, &told);
	lua_createtable(lua, (int)told.count, 0);
	for (size_t i = 0; i < told.count; i++) {
		lua_pushstring(lua, told.text[i]);
		lua_rawseti(lua, -2, (lua_Integer)i + 1);
	}
	return 1;
}
