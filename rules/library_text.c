#include "rules/library_priv.h"

#include "rules/sandbox_priv.h"

#include <string.h>

#define SPLIT_MAX 1024

static int text_len(lua_State *lua)
{
	lua_pushinteger(lua, (lua_Integer)library_string(lua, 1, "len").len);
	return 1;
}

/* Positions count from 1; negative ones from the end. */
static lua_Integer position(lua_State *lua, int arg, lua_Integer fallback, size_t len)
{
	lua_Integer i = luaL_optinteger(lua, arg, fallback);

	if (i >= 0)
		return i;
	return i < -(lua_Integer)len ? 0 : (lua_Integer)len + i + 1;
}

static int text_sub(lua_State *lua)
{
	struct span s = library_string(lua, 1, "sub");
	lua_Integer from = position(lua, 2, 1, s.len), to = position(lua, 3, -1, s.len);

	if (from < 1)
		from = 1;
	if (to > (lua_Integer)s.len)
		to = (lua_Integer)s.len;
	if (from > to)
		lua_pushliteral(lua, "");
	else
		lua_pushlstring(lua, s.at + from - 1, (size_t)(to - from + 1));
	return 1;
}

static int text_byte(lua_State *lua)
{
	struct span s = library_string(lua, 1, "byte");
	lua_Integer at = position(lua, 2, 1, s.len);

	if (at < 1 || at > (lua_Integer)s.len)
		return 0;
	lua_pushinteger(lua, (unsigned char)s.at[at - 1]);
	return 1;
}

static int text_char(lua_State *lua)
{
	char *out = sandbox_of(lua)->scratch;
	int n = lua_gettop(lua);

	for (int i = 1; i <= n; i++) {
		lua_Integer c = luaL_checkinteger(lua, i);

		if (c < 0 || c > 255)
			return luaL_error(lua, "char: a byte is from 0 to 255");
		out[i - 1] = (char)c;
	}
	lua_pushlstring(lua, out, (size_t)n);
	return 1;
}

/* A copy of the first argument in the scratch room, which is large enough for any string here. */
static struct span copied(lua_State *lua, const char *function, char **ret_out)
{
	struct span s = library_string(lua, 1, function);

	if (s.len > SANDBOX_TEXT_MAX)
		luaL_error(lua, "%s: the text is longer than %d bytes", function, SANDBOX_TEXT_MAX);
	*ret_out = sandbox_of(lua)->scratch;
	return s;
}

/* ASCII only: what a locale would do to other bytes must not decide anything. */
static int text_lower(lua_State *lua)
{
	char *out;
	struct span s = copied(lua, "lower", &out);

	for (size_t i = 0; i < s.len; i++)
		out[i] = s.at[i] >= 'A' && s.at[i] <= 'Z' ? (char)(s.at[i] + 'a' - 'A') : s.at[i];
	lua_pushlstring(lua, out, s.len);
	return 1;
}

static int text_upper(lua_State *lua)
{
	char *out;
	struct span s = copied(lua, "upper", &out);

	for (size_t i = 0; i < s.len; i++)
		out[i] = s.at[i] >= 'a' && s.at[i] <= 'z' ? (char)(s.at[i] - 'a' + 'A') : s.at[i];
	lua_pushlstring(lua, out, s.len);
	return 1;
}

static int text_reverse(lua_State *lua)
{
	char *out;
	struct span s = copied(lua, "reverse", &out);

	for (size_t i = 0; i < s.len; i++)
		out[i] = s.at[s.len - 1 - i];
	lua_pushlstring(lua, out, s.len);
	return 1;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static int text_trim(lua_State *lua)
{
	struct span s = library_string(lua, 1, "trim");

	while (s.len && is_space(s.at[0]))
		s = span_skip(s, 1);
	while (s.len && is_space(s.at[s.len - 1]))
		s.len--;
	lua_pushlstring(lua, s.at, s.len);
	return 1;
}

static int text_starts(lua_State *lua)
{
	struct span s = library_string(lua, 1, "starts"), with = library_string(lua, 2, "starts");

	lua_pushboolean(lua, s.len >= with.len && memcmp(s.at, with.at, with.len) == 0);
	return 1;
}

static int text_ends(lua_State *lua)
{
	struct span s = library_string(lua, 1, "ends"), with = library_string(lua, 2, "ends");

	lua_pushboolean(lua, s.len >= with.len &&
				     memcmp(s.at + s.len - with.len, with.at, with.len) == 0);
	return 1;
}

static int text_contains(lua_State *lua)
{
	struct span s = library_string(lua, 1, "contains");
	struct span part = library_string(lua, 2, "contains");

	lua_pushboolean(lua, memmem(s.at, s.len, part.at, part.len) != NULL);
	return 1;
}

/* split("a,b", ","): the separator is one byte; empty parts are kept. */
static int text_split(lua_State *lua)
{
	struct span rest = library_string(lua, 1, "split");
	struct span by = library_string(lua, 2, "split"), part;
	bool more = true;

	if (by.len != 1)
		return luaL_error(lua, "split: the separator is one character");
	lua_newtable(lua);
	for (lua_Integer i = 1; more; i++) {
		if (i > SPLIT_MAX)
			return luaL_error(lua, "split: more than %d parts", SPLIT_MAX);
		more = span_cut(&rest, by.at[0], &part);
		lua_pushlstring(lua, part.at, part.len);
		lua_rawseti(lua, -2, i);
	}
	return 1;
}

static void append(lua_State *lua, size_t *len, struct span s)
{
	struct sandbox *sb = sandbox_of(lua);

	if (s.len > sizeof(sb->scratch) - *len)
		luaL_error(lua, "format: the text is longer than %d bytes", SANDBOX_TEXT_MAX);
	memcpy(sb->scratch + *len, s.at, s.len);
	*len += s.len;
}

/* format("%s of %d", ...): %s takes any value, %d a whole number, %% is itself. */
static int text_format(lua_State *lua)
{
	struct span f = library_string(lua, 1, "format");
	size_t len = 0;
	char number[64];
	int arg = 1;

	for (size_t i = 0; i < f.len; i++) {
		char kind = i + 1 < f.len ? f.at[i + 1] : '\0';

		if (f.at[i] != '%') {
			append(lua, &len, (struct span){f.at + i, 1});
			continue;
		}
		i++;
		if (kind == '%') {
			append(lua, &len, span_of("%"));
			continue;
		}
		if (kind != 's' && kind != 'd')
			return luaL_error(lua, "format: only %%s, %%d and %%%% are known");
		if (++arg > lua_gettop(lua))
			return luaL_error(lua, "format: a value is missing");
		if (kind == 'd')
			luaL_checkinteger(lua, arg);
		append(lua, &len, library_text(lua, arg, number));
	}
	sandbox_charge(lua, len);
	lua_pushlstring(lua, sandbox_of(lua)->scratch, len);
	return 1;
}

static const struct library_word words[] = {
#define STR(name, function, ...) {name, function},
#include "rules/library.def"
};

void library_open_text(lua_State *lua)
{
	lua_newtable(lua);
	library_add(lua, words, sizeof(words) / sizeof(*words));
}
