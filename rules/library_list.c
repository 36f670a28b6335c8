#include "rules/library_priv.h"

#include "rules/sandbox_priv.h"

#include <stdlib.h>
#include <string.h>

#define UNPACK_MAX 256
#define LISTED_MAX 12 /* entries that listed() names */

/* --- going through lists and tables --- */

static int next_entry(lua_State *lua)
{
	lua_Integer i = lua_tointeger(lua, 2) + 1;

	lua_settop(lua, 1);
	lua_pushinteger(lua, i);
	library_entry(lua, 1, (size_t)i);
	return lua_isnil(lua, -1) ? 1 : 2;
}

static int list_ipairs(lua_State *lua)
{
	if (lua_isnoneornil(lua, 1))
		return luaL_error(lua, "ipairs: this is nil (each() takes nil for an empty list)");
	library_length(lua, 1, "ipairs");
	lua_pushcfunction(lua, next_entry);
	lua_pushvalue(lua, 1);
	lua_pushinteger(lua, 0);
	return 3;
}

static int next_each(lua_State *lua)
{
	lua_Integer i = lua_tointeger(lua, lua_upvalueindex(2)) + 1;

	lua_pushinteger(lua, i);
	lua_replace(lua, lua_upvalueindex(2));
	library_entry(lua, lua_upvalueindex(1), (size_t)i);
	return 1;
}

static int next_of_nothing(lua_State *lua)
{
	lua_pushnil(lua);
	return 1;
}

/* for port in each(list) do ... end: values only, and nil is an empty list. */
static int list_each(lua_State *lua)
{
	if (library_length(lua, 1, "each") == 0) {
		lua_pushcfunction(lua, next_of_nothing);
		return 1;
	}
	lua_settop(lua, 1);
	lua_pushinteger(lua, 0);
	lua_pushcclosure(lua, next_each, 2);
	return 1;
}

/* --- pairs(): in order, so that the same facts give the same answer in every state --- */

struct key {
	int type; /* LUA_TSTRING or LUA_TNUMBER */
	bool is_whole;
	struct span text;
	lua_Integer whole;
	lua_Number number;
};

#define KEYS_MAX (SANDBOX_TEXT_MAX / sizeof(struct key))

static int compare_text(struct span a, struct span b)
{
	int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);

	return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_keys(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->type != y->type)
		return x->type == LUA_TSTRING ? 1 : -1;
	if (x->type == LUA_TSTRING)
		return compare_text(x->text, y->text);
	if (x->is_whole && y->is_whole)
		return (x->whole > y->whole) - (x->whole < y->whole);
	return (x->number > y->number) - (x->number < y->number);
}

/* The key on top of the stack; a string must stay alive as long as *k. */
static void note_key(lua_State *lua, struct key *k)
{
	*k = (struct key){.type = lua_type(lua, -1), .is_whole = lua_isinteger(lua, -1)};
	if (k->type == LUA_TSTRING)
		k->text.at = lua_tolstring(lua, -1, &k->text.len);
	else if (k->type == LUA_TNUMBER)
		k->number = lua_tonumber(lua, -1);
	else
		luaL_error(lua, "only strings and numbers have an order");
	if (k->is_whole)
		k->whole = lua_tointeger(lua, -1);
}

static void push_key(lua_State *lua, const struct key *k)
{
	if (k->type == LUA_TSTRING)
		lua_pushlstring(lua, k->text.at, k->text.len);
	else if (k->is_whole)
		lua_pushinteger(lua, k->whole);
	else
		lua_pushnumber(lua, k->number);
}

static size_t keys_of_table(lua_State *lua, struct key *keys)
{
	size_t n = 0;

	for (lua_pushnil(lua); lua_next(lua, 1); n++) {
		lua_pop(lua, 1);
		if (n == KEYS_MAX)
			luaL_error(lua, "pairs: more than %d keys", (int)KEYS_MAX);
		note_key(lua, &keys[n]);
	}
	return n;
}

static size_t keys_of_fact(lua_State *lua, const struct jv *fact, struct key *keys)
{
	size_t n = fact->count < KEYS_MAX ? fact->count : KEYS_MAX;

	if (n < fact->count)
		luaL_error(lua, "pairs: more than %d keys", (int)KEYS_MAX);
	for (size_t i = 0; i < n; i++) {
		keys[i] = (struct key){LUA_TNUMBER, true, {"", 0}, (lua_Integer)i + 1, 0};
		if (fact->kind == JV_OBJECT)
			keys[i] = (struct key){.type = LUA_TSTRING, .text = fact->members[i].key};
	}
	return n;
}

static int next_pair(lua_State *lua)
{
	lua_Integer i = lua_tointeger(lua, lua_upvalueindex(3)) + 1;

	lua_pushinteger(lua, i);
	lua_replace(lua, lua_upvalueindex(3));
	if (lua_rawgeti(lua, lua_upvalueindex(2), i) == LUA_TNIL)
		return 1;
	lua_pushvalue(lua, -1);
	lua_gettable(lua, lua_upvalueindex(1));
	return 2;
}

static int list_pairs(lua_State *lua)
{
	struct key *keys = (struct key *)(void *)sandbox_of(lua)->scratch;
	const struct jv *fact = facts_at(lua, 1);
	size_t n = 0;

	if (!fact && lua_type(lua, 1) != LUA_TTABLE)
		return luaL_error(lua, "pairs: a table is expected");
	n = fact ? keys_of_fact(lua, fact, keys) : keys_of_table(lua, keys);
	sandbox_charge(lua, n * 64);
	if (n)
		qsort(keys, n, sizeof(*keys), compare_keys);
	lua_settop(lua, 1);
	lua_createtable(lua, (int)n, 0);
	for (size_t i = 0; i < n; i++) {
		push_key(lua, &keys[i]);
		lua_rawseti(lua, 2, (lua_Integer)i + 1);
	}
	lua_pushinteger(lua, 0);
	lua_pushcclosure(lua, next_pair, 3);
	return 1;
}

/* --- texts made of lists --- */

struct text {
	struct sandbox *sb;
	size_t len;
};

static void put(lua_State *lua, struct text *t, struct span s)
{
	if (s.len > sizeof(t->sb->scratch) - t->len)
		luaL_error(lua, "a text is longer than %d bytes", SANDBOX_TEXT_MAX);
	memcpy(t->sb->scratch + t->len, s.at, s.len);
	t->len += s.len;
}

static void put_entry(lua_State *lua, struct text *t, size_t i, const char *function)
{
	char number[64];

	library_entry(lua, 1, i);
	if (lua_type(lua, -1) != LUA_TSTRING && lua_type(lua, -1) != LUA_TNUMBER)
		luaL_error(lua, "%s: entry %d is neither a string nor a number", function, (int)i);
	put(lua, t, library_text(lua, -1, number));
	lua_pop(lua, 1);
}

static int table_concat(lua_State *lua)
{
	struct text t = {.sb = sandbox_of(lua)};
	size_t n = library_length(lua, 1, "table.concat");
	struct span between = {"", 0};

	if (!lua_isnoneornil(lua, 2))
		between = library_string(lua, 2, "table.concat");
	for (size_t i = 1; i <= n; i++) {
		if (i > 1)
			put(lua, &t, between);
		put_entry(lua, &t, i, "table.concat");
	}
	sandbox_charge(lua, t.len + n * 16);
	lua_pushlstring(lua, t.sb->scratch, t.len);
	return 1;
}

/* listed(list): "a, b and 5 more", or the second argument if there is none; for hints. */
static int list_listed(lua_State *lua)
{
	struct text t = {.sb = sandbox_of(lua)};
	size_t n = library_length(lua, 1, "listed");

	for (size_t i = 1; i <= n && i <= LISTED_MAX; i++) {
		if (i > 1)
			put(lua, &t, span_of(", "));
		put_entry(lua, &t, i, "listed");
	}
	if (n > LISTED_MAX) {
		lua_pushfstring(lua, " and %d more", (int)(n - LISTED_MAX));
		put(lua, &t, span_of(lua_tostring(lua, -1)));
	}
	if (!n)
		put(lua, &t,
		    lua_isnoneornil(lua, 2) ? span_of("none") : library_string(lua, 2, "listed"));
	lua_pushlstring(lua, t.sb->scratch, t.len);
	return 1;
}

/* --- table.* : raw, and bounded by what is really in the table --- */

static size_t raw_length(lua_State *lua, const char *function)
{
	if (lua_type(lua, 1) != LUA_TTABLE)
		luaL_error(lua, "%s: a table of yours is expected", function);
	return (size_t)lua_rawlen(lua, 1);
}

static int table_insert(lua_State *lua)
{
	size_t n = raw_length(lua, "table.insert");
	lua_Integer at = (lua_Integer)n + 1;

	if (lua_gettop(lua) == 3)
		at = luaL_checkinteger(lua, 2);
	else if (lua_gettop(lua) != 2)
		return luaL_error(lua, "table.insert: two or three arguments are expected");
	if (at < 1 || at > (lua_Integer)n + 1)
		return luaL_error(lua, "table.insert: the position is outside the list");
	sandbox_charge(lua, (n + 1 - (size_t)at) * 16);
	for (lua_Integer i = (lua_Integer)n; i >= at; i--) {
		lua_rawgeti(lua, 1, i);
		lua_rawseti(lua, 1, i + 1);
	}
	lua_rawseti(lua, 1, at);
	return 0;
}

static int table_remove(lua_State *lua)
{
	size_t n = raw_length(lua, "table.remove");
	lua_Integer at = luaL_optinteger(lua, 2, (lua_Integer)n);

	if (!n)
		return 0;
	if (at < 1 || at > (lua_Integer)n)
		return luaL_error(lua, "table.remove: the position is outside the list");
	sandbox_charge(lua, (n - (size_t)at) * 16);
	lua_rawgeti(lua, 1, at);
	for (lua_Integer i = at; i < (lua_Integer)n; i++) {
		lua_rawgeti(lua, 1, i + 1);
		lua_rawseti(lua, 1, i);
	}
	lua_pushnil(lua);
	lua_rawseti(lua, 1, (lua_Integer)n);
	return 1;
}

/* Sorts a list of strings and numbers; there is no comparing function, which could run for ever. */
static int table_sort(lua_State *lua)
{
	struct key *keys = (struct key *)(void *)sandbox_of(lua)->scratch;
	size_t n = raw_length(lua, "table.sort");

	if (lua_gettop(lua) > 1)
		return luaL_error(lua, "table.sort: takes one list, and no function");
	if (n > KEYS_MAX)
		return luaL_error(lua, "table.sort: more than %d entries", (int)KEYS_MAX);
	sandbox_charge(lua, n * 64);
	luaL_checkstack(lua, (int)n + 8, "table.sort");
	for (size_t i = 0; i < n; i++) {
		lua_rawgeti(lua, 1, (lua_Integer)i + 1);
		note_key(lua, &keys[i]);
	}
	if (n)
		qsort(keys, n, sizeof(*keys), compare_keys);
	/* The strings stay on the stack, so what keys[] points to is alive. */
	for (size_t i = 0; i < n; i++) {
		push_key(lua, &keys[i]);
		lua_rawseti(lua, 1, (lua_Integer)i + 1);
	}
	return 0;
}

static int table_unpack(lua_State *lua)
{
	size_t n = library_length(lua, 1, "table.unpack");

	if (lua_gettop(lua) > 1 || n > UNPACK_MAX)
		return luaL_error(lua, "table.unpack: takes one list of at most %d entries",
				  UNPACK_MAX);
	luaL_checkstack(lua, UNPACK_MAX, "table.unpack");
	for (size_t i = 1; i <= n; i++)
		library_entry(lua, 1, i);
	return (int)n;
}

static const struct library_word list_words[] = {
#define LIST(name, function, ...) {name, function},
#include "rules/library.def"
};

static const struct library_word table_words[] = {
#define TABLE(name, function, ...) {name, function},
#include "rules/library.def"
};

void library_open_list(lua_State *lua)
{
	library_add(lua, list_words, sizeof(list_words) / sizeof(*list_words));
	lua_newtable(lua);
	library_add(lua, table_words, sizeof(table_words) / sizeof(*table_words));
	library_seal(lua, "table");
	lua_setfield(lua, -2, "table");
}
