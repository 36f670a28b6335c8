#include "rules/library_priv.h"

#include "rules/sandbox_priv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- helpers for all parts --- */

void library_add(lua_State *lua, const struct library_word *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		lua_pushcfunction(lua, words[i].fn);
		lua_setfield(lua, -2, words[i].name);
	}
}

static const char *kind_of(lua_State *lua, int index)
{
	const struct jv *fact = facts_at(lua, index);

	if (fact)
		return fact->kind == JV_ARRAY ? "a list of facts" : "a fact with members";
	switch (lua_type(lua, index)) {
	case LUA_TNONE:
	case LUA_TNIL:
		return "nil";
	case LUA_TBOOLEAN:
		return "a boolean";
	case LUA_TNUMBER:
		return "a number";
	case LUA_TSTRING:
		return "a string";
	case LUA_TTABLE:
		return "a table";
	case LUA_TFUNCTION:
		return "a function";
	default:
		return "an object";
	}
}

struct span library_string(lua_State *lua, int arg, const char *function)
{
	struct span s = {"", 0};

	if (lua_type(lua, arg) != LUA_TSTRING)
		luaL_error(lua, "%s: argument %d must be a string, this is %s", function, arg,
			   kind_of(lua, arg));
	s.at = lua_tolstring(lua, arg, &s.len);
	sandbox_charge(lua, s.len);
	return s;
}

size_t library_length(lua_State *lua, int arg, const char *function)
{
	const struct jv *fact = facts_at(lua, arg);

	if (lua_isnoneornil(lua, arg))
		return 0;
	if (fact && fact->kind == JV_ARRAY)
		return fact->count;
	if (lua_type(lua, arg) != LUA_TTABLE)
		luaL_error(lua, "%s: argument %d must be a list, this is %s", function, arg,
			   kind_of(lua, arg));
	return (size_t)lua_rawlen(lua, arg);
}

void library_entry(lua_State *lua, int arg, size_t i)
{
	const struct jv *fact = facts_at(lua, arg);

	if (!fact)
		lua_rawgeti(lua, arg, (lua_Integer)i);
	else
		facts_push(lua, i <= fact->count ? &fact->items[i - 1] : NULL);
}

struct span library_text(lua_State *lua, int index, char number[64])
{
	struct span s = {"", 0};

	switch (lua_type(lua, index)) {
	case LUA_TSTRING:
		s.at = lua_tolstring(lua, index, &s.len);
		return s;
	case LUA_TNUMBER:
		if (lua_isinteger(lua, index))
			snprintf(number, 64, "%lld", (long long)lua_tointeger(lua, index));
		else
			snprintf(number, 64, "%.14g", (double)lua_tonumber(lua, index));
		return span_of(number);
	case LUA_TBOOLEAN:
		return span_of(lua_toboolean(lua, index) ? "true" : "false");
	case LUA_TNIL:
	case LUA_TNONE:
		return span_of("nil");
	case LUA_TFUNCTION:
		return span_of("function");
	case LUA_TLIGHTUSERDATA:
		return span_of("fact");
	default:
		return span_of("table");
	}
}

/* --- base --- */

static int base_assert(lua_State *lua)
{
	if (lua_toboolean(lua, 1))
		return lua_gettop(lua);
	if (lua_type(lua, 2) != LUA_TSTRING)
		return luaL_error(lua, "assertion failed");
	lua_settop(lua, 2);
	return lua_error(lua);
}

static int base_error(lua_State *lua)
{
	struct span text = library_string(lua, 1, "error");

	luaL_where(lua, 1);
	lua_pushlstring(lua, text.at, text.len < 1024 ? text.len : 1024);
	lua_concat(lua, 2);
	return lua_error(lua);
}

static int base_tostring(lua_State *lua)
{
	char number[64];
	struct span s = library_text(lua, 1, number);

	lua_pushlstring(lua, s.at, s.len);
	return 1;
}

static int base_tonumber(lua_State *lua)
{
	if (lua_type(lua, 1) == LUA_TSTRING) {
		struct span s = library_string(lua, 1, "tonumber");

		if (s.len > 64 || lua_stringtonumber(lua, s.at) != s.len + 1)
			lua_pushnil(lua);
		return 1;
	}
	lua_settop(lua, 1);
	if (lua_type(lua, 1) != LUA_TNUMBER)
		lua_pushnil(lua);
	return 1;
}

static int base_type(lua_State *lua)
{
	int type = lua_type(lua, 1);

	if (type == LUA_TNONE)
		return luaL_error(lua, "type: a value is expected");
	/* Facts and modules are read like tables, so that is what they are called. */
	if (type == LUA_TLIGHTUSERDATA || type == LUA_TUSERDATA)
		type = LUA_TTABLE;
	lua_pushstring(lua, lua_typename(lua, type));
	return 1;
}

static int base_select(lua_State *lua)
{
	int count = lua_gettop(lua) - 1;
	lua_Integer from;

	if (lua_type(lua, 1) == LUA_TSTRING && strcmp(lua_tostring(lua, 1), "#") == 0) {
		lua_pushinteger(lua, count);
		return 1;
	}
	from = luaL_checkinteger(lua, 1);
	if (from < 1)
		return luaL_error(lua, "select: the first is number 1");
	return from > count ? 0 : count - (int)from + 1;
}

/* get(req, "workload.network.ports"): nil as soon as a step is missing. */
static int base_get(lua_State *lua)
{
	struct span rest = library_string(lua, 2, "get"), step;

	lua_pushvalue(lua, 1);
	while (rest.len && !lua_isnil(lua, -1)) {
		if (!facts_at(lua, -1) && lua_type(lua, -1) != LUA_TTABLE)
			return luaL_error(lua, "get: there is nothing below %s", kind_of(lua, -1));
		span_cut(&rest, '.', &step);
		lua_pushlstring(lua, step.at, step.len);
		if (facts_at(lua, -2))
			lua_gettable(lua, -2);
		else
			lua_rawget(lua, -2);
		lua_remove(lua, -2);
	}
	return 1;
}

static const struct library_word base_words[] = {
#define BASE(name, function, ...) {name, function},
#include "rules/library.def"
};

/* --- math --- */

static int math_round(lua_State *lua, double (*towards)(double))
{
	double d;

	if (lua_isinteger(lua, 1)) {
		lua_settop(lua, 1);
		return 1;
	}
	d = towards((double)luaL_checknumber(lua, 1));
	if (d >= -9.2e18 && d <= 9.2e18)
		lua_pushinteger(lua, (lua_Integer)d);
	else
		lua_pushnumber(lua, d);
	return 1;
}

static int math_floor(lua_State *lua)
{
	return math_round(lua, floor);
}

static int math_ceil(lua_State *lua)
{
	return math_round(lua, ceil);
}

static int math_extreme(lua_State *lua, int op)
{
	int best = 1, count = lua_gettop(lua);

	luaL_checknumber(lua, 1);
	for (int i = 2; i <= count; i++) {
		luaL_checknumber(lua, i);
		if (op == LUA_OPLT ? lua_compare(lua, i, best, LUA_OPLT)
				   : lua_compare(lua, best, i, LUA_OPLT))
			best = i;
	}
	lua_pushvalue(lua, best);
	return 1;
}

static int math_min(lua_State *lua)
{
	return math_extreme(lua, LUA_OPLT);
}

static int math_max(lua_State *lua)
{
	return math_extreme(lua, LUA_OPLE);
}

static int math_abs(lua_State *lua)
{
	if (lua_isinteger(lua, 1)) {
		lua_Integer n = lua_tointeger(lua, 1);

		lua_pushinteger(lua, n < 0 ? (lua_Integer)(0 - (lua_Unsigned)n) : n);
	} else {
		lua_pushnumber(lua, fabs((double)luaL_checknumber(lua, 1)));
	}
	return 1;
}

static int math_tointeger(lua_State *lua)
{
	int exact = 0;
	lua_Integer n = 0;

	if (lua_type(lua, 1) == LUA_TNUMBER)
		n = lua_tointegerx(lua, 1, &exact);
	if (exact)
		lua_pushinteger(lua, n);
	else
		lua_pushnil(lua);
	return 1;
}

static int math_type(lua_State *lua)
{
	if (lua_type(lua, 1) != LUA_TNUMBER)
		lua_pushnil(lua);
	else
		lua_pushstring(lua, lua_isinteger(lua, 1) ? "integer" : "float");
	return 1;
}

static const struct library_word math_words[] = {
#define MATH(name, function, ...) {name, function},
#include "rules/library.def"
};

static void open_math(lua_State *lua)
{
	lua_newtable(lua);
	library_add(lua, math_words, sizeof(math_words) / sizeof(*math_words));
	lua_pushnumber(lua, HUGE_VAL);
	lua_setfield(lua, -2, "huge");
	lua_pushinteger(lua, LUA_MAXINTEGER);
	lua_setfield(lua, -2, "maxinteger");
	lua_pushinteger(lua, LUA_MININTEGER);
	lua_setfield(lua, -2, "mininteger");
	library_seal(lua, "math");
}

/* --- sealing --- */

static int refuse_unknown(lua_State *lua)
{
	return luaL_error(lua, "there is no '%s' in %s",
			  lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : "?",
			  lua_tostring(lua, lua_upvalueindex(1)));
}

static int refuse_write(lua_State *lua)
{
	return luaL_error(lua, "'%s' cannot be set: %s is read-only (use a local variable)",
			  lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : "?",
			  lua_tostring(lua, lua_upvalueindex(1)));
}

void library_seal(lua_State *lua, const char *name)
{
	int table = lua_gettop(lua);

	/* What the table lacks is an error, not nil: a misspelt word must not read as "absent". */
	lua_createtable(lua, 0, 1);
	lua_pushstring(lua, name);
	lua_pushcclosure(lua, refuse_unknown, 1);
	lua_setfield(lua, -2, "__index");
	lua_setmetatable(lua, table);
	/* Rules get a view without a table of its own, so there is nothing to overwrite. */
	lua_newuserdatauv(lua, 0, 0);
	lua_createtable(lua, 0, 3);
	lua_pushvalue(lua, table);
	lua_setfield(lua, -2, "__index");
	lua_pushstring(lua, name);
	lua_pushcclosure(lua, refuse_write, 1);
	lua_setfield(lua, -2, "__newindex");
	lua_pushstring(lua, name);
	lua_setfield(lua, -2, "__name");
	lua_setmetatable(lua, -2);
	lua_replace(lua, table);
}

/* The methods of strings: the same words, reached through a metatable that nothing can touch. */
static void open_strings(lua_State *lua)
{
	library_open_text(lua);
	lua_pushliteral(lua, "");
	lua_createtable(lua, 0, 1);
	lua_pushvalue(lua, -3);
	lua_setfield(lua, -2, "__index");
	lua_setmetatable(lua, -2);
	lua_pop(lua, 1);
	library_seal(lua, "str");
}

void library_open(lua_State *lua)
{
	facts_open(lua);
	lua_newtable(lua);
	library_add(lua, base_words, sizeof(base_words) / sizeof(*base_words));
	library_open_list(lua);
	library_open_match(lua);
	open_strings(lua);
	lua_pushvalue(lua, -1);
	lua_setfield(lua, -3, "string");
	lua_setfield(lua, -2, "str");
	open_math(lua);
	lua_setfield(lua, -2, "math");
}
