#include "rules/library_priv.h"

#include "rules/match_priv.h"
#include "rules/sandbox_priv.h"

/* The matchers of match.h, as rules see them. */

static void charge_glob(lua_State *lua, struct span pattern, struct span text)
{
	sandbox_charge(lua, pattern.len + text.len);
	if (pattern.len <= GLOB_MAX && text.len <= GLOB_TEXT)
		sandbox_charge(lua, pattern.len * text.len / 4);
}

/* glob(pattern, s); pattern may be a list: true if one of them matches. */
static int match_glob(lua_State *lua)
{
	struct span text = library_string(lua, 2, "glob"), pattern;
	bool hit = false;

	if (lua_type(lua, 1) == LUA_TSTRING) {
		pattern = library_string(lua, 1, "glob");
		charge_glob(lua, pattern, text);
		lua_pushboolean(lua, glob_match(pattern, text));
		return 1;
	}
	for (size_t i = 1, n = library_length(lua, 1, "glob"); i <= n && !hit; i++) {
		library_entry(lua, 1, i);
		pattern = library_string(lua, -1, "glob");
		charge_glob(lua, pattern, text);
		hit = glob_match(pattern, text);
		lua_pop(lua, 1);
	}
	lua_pushboolean(lua, hit);
	return 1;
}

static int match_bytes(lua_State *lua)
{
	int64_t n;

	if (lua_isinteger(lua, 1)) {
		lua_settop(lua, 1);
		return 1;
	}
	if (!size_parse(library_string(lua, 1, "bytes"), &n))
		return luaL_error(lua, "bytes: '%s' is no size (like 512MiB or 2GiB)",
				  lua_tostring(lua, 1));
	lua_pushinteger(lua, n);
	return 1;
}

static void set_text(lua_State *lua, const char *key, struct span s)
{
	if (!s.len)
		return;
	lua_pushlstring(lua, s.at, s.len);
	lua_setfield(lua, -2, key);
}

/* image.parse("alpine:3.19"): { name = "docker.io/library/alpine", tag = "3.19" }, or nil. */
static int match_image_parse(lua_State *lua)
{
	struct image_ref ref;

	if (!image_parse(library_string(lua, 1, "image.parse"), &ref)) {
		lua_pushnil(lua);
		return 1;
	}
	lua_createtable(lua, 0, 3);
	set_text(lua, "name", ref.name);
	set_text(lua, "tag", ref.tag);
	set_text(lua, "digest", ref.digest);
	return 1;
}

static struct span optional(lua_State *lua, int arg)
{
	return lua_isnoneornil(lua, arg) ? (struct span){"", 0}
					 : library_string(lua, arg, "image.match");
}

/* image.match(patterns, name, tag, digest): whether one of the patterns grants it. */
static int match_image(lua_State *lua)
{
	struct span name = library_string(lua, 2, "image.match"), tag = optional(lua, 3),
		    digest = optional(lua, 4);
	bool hit = false;

	for (size_t i = 1, n = library_length(lua, 1, "image.match"); i <= n && !hit; i++) {
		struct image_ref pattern;
		struct span text;

		library_entry(lua, 1, i);
		text = library_string(lua, -1, "image.match");
		charge_glob(lua, text, name);
		hit = image_parse(text, &pattern) && image_match(&pattern, name, tag, digest);
		lua_pop(lua, 1);
	}
	lua_pushboolean(lua, hit);
	return 1;
}

/* image.named(patterns, name): whether one of the patterns grants any image of that name. */
static int match_image_named(lua_State *lua)
{
	struct span name = library_string(lua, 2, "image.named");
	bool hit = false;

	for (size_t i = 1, n = library_length(lua, 1, "image.named"); i <= n && !hit; i++) {
		struct image_ref pattern;
		struct span text;

		library_entry(lua, 1, i);
		text = library_string(lua, -1, "image.named");
		charge_glob(lua, text, name);
		hit = image_parse(text, &pattern) && name.len && glob_match(pattern.name, name);
		lua_pop(lua, 1);
	}
	lua_pushboolean(lua, hit);
	return 1;
}

static int match_path_within(lua_State *lua)
{
	struct span path = library_string(lua, 1, "path.within");

	lua_pushboolean(lua, path_within(path, library_string(lua, 2, "path.within")));
	return 1;
}

static struct span identity_value(lua_State *lua, const char *key)
{
	struct span s = {"", 0};

	lua_pushvalue(lua, 2);
	lua_pushstring(lua, key);
	lua_gettable(lua, -2);
	if (lua_type(lua, -1) == LUA_TSTRING)
		s.at = lua_tolstring(lua, -1, &s.len);
	/* Left on the stack, so that the text stays alive. */
	return s;
}

/* path.fill(pattern, req.identity): the path meant for that caller, or nil if there is none. */
static int match_path_fill(lua_State *lua)
{
	struct span pattern = library_string(lua, 1, "path.fill"), name, owner;
	char out[PATH_MAX_LEN + 1];

	if (!facts_at(lua, 2) && !lua_istable(lua, 2)) {
		lua_pushnil(lua);
		return 1;
	}
	name = identity_value(lua, "name");
	owner = identity_value(lua, "owner");
	if (path_fill(pattern, name, owner, out, sizeof(out)))
		lua_pushstring(lua, out);
	else
		lua_pushnil(lua);
	return 1;
}

static const struct library_word words[] = {
	{"glob", match_glob},
	{"bytes", match_bytes},
};

static const struct library_word image_words[] = {
	{"parse", match_image_parse},
	{"match", match_image},
	{"named", match_image_named},
};

static const struct library_word path_words[] = {
	{"within", match_path_within},
	{"fill", match_path_fill},
};

void library_open_match(lua_State *lua)
{
	library_add(lua, words, sizeof(words) / sizeof(*words));
	lua_newtable(lua);
	library_add(lua, image_words, sizeof(image_words) / sizeof(*image_words));
	library_seal(lua, "image");
	lua_setfield(lua, -2, "image");
	lua_newtable(lua);
	library_add(lua, path_words, sizeof(path_words) / sizeof(*path_words));
	library_seal(lua, "path");
	lua_setfield(lua, -2, "path");
}
