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

static int match_duration(lua_State *lua)
{
	int64_t n;

	if (lua_isinteger(lua, 1)) {
		lua_settop(lua, 1);
		return 1;
	}
	if (!duration_parse(library_string(lua, 1, "duration"), &n))
		return luaL_error(lua, "duration: '%s' is no time (like 90s, 30m, 12h or 7d)",
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

/* The pattern on top of the stack. */
static void take_pattern(lua_State *lua, const char *function, struct span name,
			 struct image_ref *ret)
{
	struct span text = library_string(lua, -1, function);

	charge_glob(lua, text, name);
	if (!image_parse(text, ret))
		luaL_error(lua, "%s: '%s' is no pattern of images", function, text.at);
}

/* image.match(patterns, name, tag, digest): whether one of the patterns grants it. */
static int match_image(lua_State *lua)
{
	struct span name = library_string(lua, 2, "image.match"), tag = optional(lua, 3),
		    digest = optional(lua, 4);
	bool hit = false;

	for (size_t i = 1, n = library_length(lua, 1, "image.match"); i <= n && !hit; i++) {
		struct image_ref pattern;

		library_entry(lua, 1, i);
		take_pattern(lua, "image.match", name, &pattern);
		hit = image_match(&pattern, name, tag, digest);
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

		library_entry(lua, 1, i);
		take_pattern(lua, "image.named", name, &pattern);
		hit = name.len && glob_match(pattern.name, name);
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

/* Of the fact or table at that place of the stack; empty if it has none. */
static struct span text_of(lua_State *lua, int at, const char *key)
{
	struct span s = {"", 0};

	if (!facts_at(lua, at) && !lua_istable(lua, at))
		return s;
	lua_pushvalue(lua, at);
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
	struct span pattern = library_string(lua, 1, "path.fill");
	char out[PATH_MAX_LEN + 1];
	struct path_words words;
	int container;

	if (!facts_at(lua, 2) && !lua_istable(lua, 2)) {
		lua_pushnil(lua);
		return 1;
	}
	words.name = text_of(lua, 2, "name");
	words.owner = text_of(lua, 2, "owner");
	lua_pushliteral(lua, "container");
	lua_gettable(lua, 2);
	container = lua_gettop(lua);
	words.container_id = text_of(lua, container, "id");
	words.container_name = text_of(lua, container, "name");
	/* Whoever made it through the gate has chosen its name. */
	if (text_of(lua, container, "owner").len)
		words.container_name = (struct span){"", 0};
	if (path_fill(pattern, &words, out, sizeof(out)))
		lua_pushstring(lua, out);
	else
		lua_pushnil(lua);
	return 1;
}

/* A matcher over one pattern or a list of them; raises for one that is malformed. */
typedef bool matches(lua_State *lua, struct span pattern, struct span text);

static int match_some(lua_State *lua, const char *function, matches *one)
{
	struct span text = library_string(lua, 2, function);
	bool hit = false;

	if (lua_type(lua, 1) == LUA_TSTRING) {
		lua_pushboolean(lua, one(lua, library_string(lua, 1, function), text));
		return 1;
	}
	for (size_t i = 1, n = library_length(lua, 1, function); i <= n && !hit; i++) {
		library_entry(lua, 1, i);
		hit = one(lua, library_string(lua, -1, function), text);
		lua_pop(lua, 1);
	}
	lua_pushboolean(lua, hit);
	return 1;
}

static bool one_glob(lua_State *lua, struct span pattern, struct span text)
{
	charge_glob(lua, pattern, text);
	if (!glob_can_tell(pattern, text))
		luaL_error(lua,
			   "glob: a pattern has at most %d bytes, and a text that it might fit %d",
			   GLOB_MAX, GLOB_TEXT);
	return glob_match(pattern, text);
}

static int match_glob(lua_State *lua)
{
	return match_some(lua, "glob", one_glob);
}

static bool one_host(lua_State *lua, struct span pattern, struct span name)
{
	sandbox_charge(lua, pattern.len + name.len);
	if (!host_pattern_is_valid(pattern))
		luaL_error(lua, "host.match: '%s' is no host name, and not *. before one",
			   pattern.at);
	return host_match(pattern, name);
}

static int match_host(lua_State *lua)
{
	return match_some(lua, "host.match", one_host);
}

static bool one_cidr(lua_State *lua, struct span network, struct span address)
{
	enum cidr_answer answer = cidr_contains(network, address);

	sandbox_charge(lua, network.len + address.len);
	if (answer == CIDR_MALFORMED)
		luaL_error(lua, "cidr.contains: '%s' is no network, like 10.0.0.0/8", network.at);
	return answer == CIDR_YES;
}

static int match_cidr(lua_State *lua)
{
	return match_some(lua, "cidr.contains", one_cidr);
}

/* The words by where they stand: alone, or in a table of that name. */

static const struct library_word words[] = {
#define MATCH(name, function, ...) {name, function},
#include "rules/library.def"
};

static const struct library_word image_words[] = {
#define IMAGE(name, function, ...) {name, function},
#include "rules/library.def"
};

static const struct library_word path_words[] = {
#define PATH(name, function, ...) {name, function},
#include "rules/library.def"
};

static const struct library_word host_words[] = {
#define HOST(name, function, ...) {name, function},
#include "rules/library.def"
};

static const struct library_word cidr_words[] = {
#define CIDR(name, function, ...) {name, function},
#include "rules/library.def"
};

static const struct library_word regex_words[] = {
#define REGEX(name, function, ...) {name, function},
#include "rules/library.def"
};

/* The words, in a table of that name within the table on top. */
static void add_table(lua_State *lua, const char *name, const struct library_word *in, size_t count)
{
	lua_newtable(lua);
	library_add(lua, in, count);
	library_seal(lua, name);
	lua_setfield(lua, -2, name);
}

#define ADD_TABLE(lua, name, in) add_table(lua, name, in, sizeof(in) / sizeof(*(in)))

void library_open_match(lua_State *lua)
{
	library_add(lua, words, sizeof(words) / sizeof(*words));
	ADD_TABLE(lua, "image", image_words);
	ADD_TABLE(lua, "path", path_words);
	ADD_TABLE(lua, "host", host_words);
	ADD_TABLE(lua, "cidr", cidr_words);
	ADD_TABLE(lua, "regex", regex_words);
}
