#include "rules/tree_priv.h"

#include "rules/library_priv.h"
#include "rules/sandbox_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct walk {
	lua_State *lua;
	struct arena *arena;
	struct err *err;
};

static int convert(struct walk *w, int index, int depth, struct jv *ret);

static size_t sequence_length(unsigned char c)
{
	return c < 0x80                ? 1
	       : c >= 0xc2 && c < 0xe0 ? 2
	       : c >= 0xe0 && c < 0xf0 ? 3
	       : c >= 0xf0 && c < 0xf5 ? 4
				       : 0;
}

bool tree_is_utf8(struct span s)
{
	const unsigned char *p = (const unsigned char *)s.at;

	for (size_t i = 0; i < s.len;) {
		size_t n = sequence_length(p[i]);

		if (!n || n > s.len - i)
			return false;
		if (n == 1 && (p[i] == 0x7f || (p[i] < 0x20 && p[i] != '\t' && p[i] != '\n')))
			return false;
		for (size_t k = 1; k < n; k++)
			if ((p[i + k] & 0xc0) != 0x80)
				return false;
		if ((p[i] == 0xe0 && p[i + 1] < 0xa0) || (p[i] == 0xed && p[i + 1] > 0x9f) ||
		    (p[i] == 0xf0 && p[i + 1] < 0x90) || (p[i] == 0xf4 && p[i + 1] > 0x8f))
			return false;
		i += n;
	}
	return true;
}

static int convert_text(struct walk *w, int index, struct span *ret)
{
	struct span s;
	char *copy;

	s.at = lua_tolstring(w->lua, index, &s.len);
	if (!tree_is_utf8(s))
		return err_set(w->err, ERR_CONFIG, "the text is not clean UTF-8");
	copy = arena_strndup(w->arena, s.at, s.len);
	if (!copy)
		return err_set(w->err, ERR_LIMIT, "there is too much of it");
	*ret = (struct span){copy, s.len};
	return 0;
}

static int convert_number(struct walk *w, int index, struct jv *ret)
{
	double d;

	if (lua_isinteger(w->lua, index)) {
		*ret = jv_int(lua_tointeger(w->lua, index));
		return 0;
	}
	d = (double)lua_tonumber(w->lua, index);
	if (!isfinite(d))
		return err_set(w->err, ERR_CONFIG, "the number is not finite");
	*ret = (struct jv){.kind = JV_REAL, .real = d};
	return 0;
}

static int convert_list(struct walk *w, int table, size_t count, int depth, struct jv *ret)
{
	*ret = jv_array();
	for (size_t i = 1; i <= count; i++) {
		struct jv item = jv_null();

		lua_rawgeti(w->lua, table, (lua_Integer)i);
		if (convert(w, lua_gettop(w->lua), depth + 1, &item) < 0)
			return err_wrap(w->err, "[%zu]", i);
		lua_pop(w->lua, 1);
		jv_push(w->arena, ret, item);
	}
	return 0;
}

static int compare_members(const void *a, const void *b)
{
	const struct jv_member *x = a, *y = b;
	size_t n = x->key.len < y->key.len ? x->key.len : y->key.len;
	int order = memcmp(x->key.at, y->key.at, n);

	return order ? order : (x->key.len > y->key.len) - (x->key.len < y->key.len);
}

static int convert_object(struct walk *w, int table, int depth, struct jv *ret)
{
	*ret = jv_object();
	for (lua_pushnil(w->lua); lua_next(w->lua, table); lua_pop(w->lua, 1)) {
		struct span key = {"", 0};
		struct jv value = jv_null();

		if (convert_text(w, -2, &key) < 0)
			return -1;
		if (convert(w, lua_gettop(w->lua), depth + 1, &value) < 0)
			return err_wrap(w->err, "%s", key.at);
		jv_add(w->arena, ret, key, value);
	}
	if (ret->count)
		qsort(ret->members, ret->count, sizeof(*ret->members), compare_members);
	return 0;
}

static int convert_table(struct walk *w, int table, int depth, struct jv *ret)
{
	size_t texts = 0, others = 0, length = (size_t)lua_rawlen(w->lua, table);

	if (depth >= TREE_DEPTH_MAX)
		return err_set(w->err, ERR_CONFIG, "nested deeper than %d levels, or a cycle",
			       TREE_DEPTH_MAX);
	for (lua_pushnil(w->lua); lua_next(w->lua, table); lua_pop(w->lua, 1)) {
		if (lua_type(w->lua, -2) == LUA_TSTRING)
			texts++;
		else
			others++;
	}
	if (texts && others)
		return err_set(w->err, ERR_CONFIG, "a table has names and list entries at once");
	if (others != length && !texts)
		return err_set(w->err, ERR_CONFIG, "a list has holes, or keys that are no names");
	return texts ? convert_object(w, table, depth, ret)
		     : convert_list(w, table, length, depth, ret);
}

static int convert(struct walk *w, int index, int depth, struct jv *ret)
{
	int type = lua_type(w->lua, index);

	luaL_checkstack(w->lua, 8, "too deep");
	switch (type) {
	case LUA_TBOOLEAN:
		*ret = jv_bool(lua_toboolean(w->lua, index));
		return 0;
	case LUA_TNUMBER:
		return convert_number(w, index, ret);
	case LUA_TSTRING:
		ret->kind = JV_STRING;
		return convert_text(w, index, &ret->str);
	case LUA_TTABLE:
		return convert_table(w, index, depth, ret);
	default:
		return err_set(w->err, ERR_CONFIG, "a %s cannot stand here",
			       type == LUA_TFUNCTION ? "function" : "value of that kind");
	}
}

int tree_of(lua_State *lua, int index, struct arena *a, struct jv *ret, struct err *err)
{
	struct walk w = {lua, a, err};

	if (convert(&w, lua_absindex(lua, index), 0, ret) < 0)
		return -1;
	if (arena_spent(a))
		return err_set(err, ERR_LIMIT, "there is too much of it");
	return 0;
}
