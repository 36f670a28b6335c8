#include "rules/engine_priv.h"

#include "gate/base/nearest.h"
#include "rules/library_priv.h"
#include "rules/tree_priv.h"

#include <lauxlib.h>
#include <string.h>

/*
 * The words that profiles and standard checks are written in.  Everything here
 * runs under sandbox_call(), so nothing is owned.
 */

static char profile_mark, rule_mark, exception_mark; /* the kinds of what the words return */

/* --- helpers --- */

static int where(lua_State *lua)
{
	lua_Debug ar;

	if (!lua_getstack(lua, 1, &ar) || !lua_getinfo(lua, "l", &ar))
		return 0;
	return ar.currentline;
}

/* A rule that runs must not make profiles: what they are made of outlives the judgement. */
static void only_while_loading(lua_State *lua, const char *word)
{
	if (!engine_of(lua)->reading)
		luaL_error(lua, "%s can only be said while a file is loaded", word);
}

static const char *keep(lua_State *lua, struct span s)
{
	const char *copy = arena_strndup(engine_of(lua)->memory, s.at, s.len);

	if (!copy)
		luaL_error(lua, "profiles take too much memory");
	return copy;
}

static bool is_name(struct span s)
{
	if (!s.len || s.len > NAME_MAX_LEN)
		return false;
	for (size_t i = 0; i < s.len; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
			    s.at[i]) ||
		    !s.at[i])
			return false;
	return true;
}

static struct span take_name(lua_State *lua, const char *what)
{
	struct span name = {"", 0};

	only_while_loading(lua, what);
	if (lua_type(lua, 1) == LUA_TSTRING)
		name.at = lua_tolstring(lua, 1, &name.len);
	if (!is_name(name))
		luaL_error(lua,
			   "%s: a name of letters, digits, '.', '_' and '-' is expected, at "
			   "most %d",
			   what, NAME_MAX_LEN);
	return (struct span){keep(lua, name), name.len};
}

/* A small object that Lua code can hold and not look into. */
static void push_mark(lua_State *lua, const char *mark, const void *what)
{
	const void **box = lua_newuserdatauv(lua, 2 * sizeof(*box), 0);

	box[0] = mark;
	box[1] = what;
}

static void *marked(lua_State *lua, int index, const char *mark)
{
	void **box = lua_touserdata(lua, index);

	if (lua_type(lua, index) != LUA_TUSERDATA || lua_rawlen(lua, index) != 2 * sizeof(*box))
		return NULL;
	return box[0] == mark ? box[1] : NULL;
}

static struct item *new_item(lua_State *lua, struct span name)
{
	struct engine *eng = engine_of(lua);
	struct item *it = &eng->items[eng->item_count];

	if (eng->item_count == ITEMS_MAX)
		luaL_error(lua, "more than %d rules", ITEMS_MAX);
	*it = (struct item){.name = name.at,
			    .doc = "",
			    .file = eng->reading->source->name,
			    .index = eng->item_count};
	return it;
}

/* Keeps the function on top of the stack and pops it. */
static void take_function(lua_State *lua, struct item *it)
{
	lua_Debug ar;

	lua_pushvalue(lua, -1);
	lua_getinfo(lua, ">S", &ar);
	it->line = ar.linedefined;
	it->function = luaL_ref(lua, LUA_REGISTRYINDEX);
}

static void take_operations(lua_State *lua, int list, const char *who, struct op_set *ret)
{
	for (size_t i = 1, n = library_length(lua, list, who); i <= n; i++) {
		struct span word;
		char near[NEAREST_TEXT_MAX];

		library_entry(lua, list, i);
		word = library_string(lua, -1, who);
		if (!op_set_add_word(ret, word))
			luaL_error(lua, "%s: \"%s\" is no operation, group or class%s", who,
				   word.at, nearest_said(op_word_nearest(word), near));
		lua_pop(lua, 1);
	}
}

static enum rule_mode mode_of(struct span word, bool *ret_known)
{
	*ret_known = true;
	for (int m = 0; m < MODE_COUNT; m++)
		if (span_is(word, rule_mode_name((enum rule_mode)m)))
			return (enum rule_mode)m;
	*ret_known = false;
	return MODE_ENFORCE;
}

/* --- rule("name", { operations = {...}, mode = "warn" }, function(req) ... end) --- */

static void take_option(lua_State *lua, struct item *it)
{
	const char *key = lua_type(lua, -2) == LUA_TSTRING ? lua_tostring(lua, -2) : "?";
	bool known;

	if (strcmp(key, "operations") == 0) {
		it->concerns = (struct op_set){{0}};
		take_operations(lua, lua_gettop(lua), "rule", &it->concerns);
	} else if (strcmp(key, "mode") == 0) {
		it->mode = mode_of(library_string(lua, -1, "rule: mode"), &known);
		it->has_mode = true;
		if (!known)
			luaL_error(lua, "rule: mode is \"enforce\", \"warn\" or \"shadow\"");
	} else if (strcmp(key, "doc") == 0) {
		it->doc = keep(lua, library_string(lua, -1, "rule: doc"));
	} else if (strcmp(key, "examples") == 0) {
		examples_take(lua, lua_gettop(lua), it);
	} else {
		luaL_error(lua,
			   "rule: unknown option \"%s\" (operations, mode, doc and examples are "
			   "known)",
			   key);
	}
}

static int word_rule(lua_State *lua)
{
	struct item *it = new_item(lua, take_name(lua, "rule"));
	int options = lua_gettop(lua) == 3 ? 2 : 0;

	if (lua_gettop(lua) < 2 || lua_gettop(lua) > 3 || !lua_isfunction(lua, -1) ||
	    (options && !lua_istable(lua, options)))
		return luaL_error(lua, "rule: this is expected: rule(\"name\", { options }, "
				       "function(req) ... end)");
	op_set_add_word(&it->concerns, span_of("launch"));
	if (options)
		for (lua_pushnil(lua); lua_next(lua, options); lua_pop(lua, 1))
			take_option(lua, it);
	take_function(lua, it);
	engine_of(lua)->item_count++;
	push_mark(lua, &rule_mark, it);
	return 1;
}

/* --- exception { rule =, when =, owner =, ticket =, reason =, expires = } --- */

static int word_exception(lua_State *lua)
{
	only_while_loading(lua, "exception");
	if (lua_gettop(lua) != 1 || !lua_istable(lua, 1))
		return luaL_error(lua, "this is expected: exception { rule =, when =, owner =, "
				       "ticket =, reason =, expires = }");
	push_mark(lua, &exception_mark, exception_take(lua));
	return 1;
}

/* --- profile "name" { ... } --- */

static struct profile *new_profile(lua_State *lua, struct span name, int line)
{
	struct engine *eng = engine_of(lua);
	struct profile *p;

	if (eng->profile_count == PROFILES_MAX)
		luaL_error(lua, "more than %d profiles", PROFILES_MAX);
	for (size_t i = 0; i < eng->profile_count; i++) {
		p = eng->profiles[i];
		if (strcmp(p->name, name.at) == 0)
			luaL_error(lua, "profile \"%s\" is defined twice; first in %s:%d", name.at,
				   p->file, p->at.line);
	}
	p = arena_take(eng->memory, sizeof(*p));
	if (!p) {
		luaL_error(lua, "profiles take too much memory");
		return NULL;
	}
	p->name = name.at;
	p->file = eng->reading->source->name;
	p->at = (struct place){p->file, eng->reading->source->text, line, p->name, ""};
	p->source = eng->reading->index;
	eng->profiles[eng->profile_count++] = p;
	return p;
}

static void fail(lua_State *lua)
{
	sandbox_leave(lua);
}

static void take_exception(lua_State *lua, struct profile *p, struct exception *x)
{
	if (p->exception_count == PROFILE_EXCEPTIONS_MAX)
		luaL_error(lua, "profile \"%s\": more than %d exceptions", p->name,
			   PROFILE_EXCEPTIONS_MAX);
	if (x->profile)
		luaL_error(lua,
			   "profile \"%s\": an exception belongs to one profile; this one is "
			   "that of \"%s\"",
			   p->name, x->profile->name);
	x->profile = p;
	p->exceptions[p->exception_count++] = x;
}

static void take_rules(lua_State *lua, struct profile *p, size_t count)
{
	struct engine *eng = engine_of(lua);

	for (size_t i = 1; i <= count; i++) {
		const struct item *it;
		struct exception *x;

		lua_rawgeti(lua, 1, (lua_Integer)i);
		it = marked(lua, -1, &rule_mark);
		x = marked(lua, -1, &exception_mark);
		lua_pop(lua, 1);
		if (x) {
			take_exception(lua, p, x);
			continue;
		}
		if (!it) {
			err_set(eng->reading->err, ERR_CONFIG,
				"entry %zu without a name is no rule(...) and no exception {...}",
				i);
			settings_blame(&p->at, "", eng->reading->err);
			fail(lua);
		}
		if (p->item_count == PROFILE_ITEMS_MAX)
			luaL_error(lua, "profile \"%s\": more than %d rules", p->name,
				   PROFILE_ITEMS_MAX);
		p->items[p->item_count++] = it;
	}
}

static void take_settings(lua_State *lua, struct profile *p)
{
	struct engine *eng = engine_of(lua);
	struct jv raw = jv_object();
	size_t rules = (size_t)lua_rawlen(lua, 1);

	for (lua_pushnil(lua); lua_next(lua, 1); lua_pop(lua, 1)) {
		struct jv *value;
		const char *key;

		if (lua_isinteger(lua, -2) && lua_tointeger(lua, -2) >= 1 &&
		    (size_t)lua_tointeger(lua, -2) <= rules)
			continue;
		if (lua_type(lua, -2) != LUA_TSTRING)
			luaL_error(lua, "profile \"%s\": a setting is named by a string", p->name);
		key = keep(lua, library_string(lua, -2, "profile"));
		value = jv_set(eng->memory, &raw, key, jv_null());
		if (tree_of(lua, -1, eng->memory, value, eng->reading->err) < 0) {
			settings_blame(&p->at, key, eng->reading->err);
			fail(lua);
		}
	}
	if (settings_check(&p->at, &raw, eng->memory, &p->given, eng->reading->err) < 0)
		fail(lua);
	take_rules(lua, p, rules);
}

static int profile_table(lua_State *lua)
{
	struct span name = {.at = lua_touserdata(lua, lua_upvalueindex(1))};
	int line = (int)lua_tointeger(lua, lua_upvalueindex(2));
	struct profile *p;

	only_while_loading(lua, "profile");
	name.len = strlen(name.at);
	if (lua_gettop(lua) != 1 || !lua_istable(lua, 1))
		return luaL_error(lua, "a table is expected: profile \"%s\" { ... }", name.at);
	p = new_profile(lua, name, line);
	take_settings(lua, p);
	push_mark(lua, &profile_mark, p);
	return 1;
}

static int word_profile(lua_State *lua)
{
	struct span name = take_name(lua, "profile");

	if (lua_gettop(lua) != 1)
		return luaL_error(lua, "this is expected: profile \"%s\" { ... }", name.at);
	lua_pushlightuserdata(lua, (void *)name.at);
	lua_pushinteger(lua, where(lua));
	lua_pushcclosure(lua, profile_table, 2);
	return 1;
}

static void take_profile(lua_State *lua, int index)
{
	struct profile *p = marked(lua, index, &profile_mark);

	if (p)
		p->returned = true;
	else
		luaL_error(lua, "%s: the file must return a profile, or a list of profiles",
			   engine_of(lua)->reading->source->name);
}

void language_take_profiles(lua_State *lua, int first)
{
	struct engine *eng = engine_of(lua);
	int count = lua_gettop(lua) - first + 1;

	if (count != 1)
		luaL_error(lua,
			   "%s: the file returns %d values; one profile or one list is expected",
			   eng->reading->source->name, count);
	if (lua_istable(lua, first)) {
		size_t n = (size_t)lua_rawlen(lua, first);

		for (size_t i = 1; i <= n; i++) {
			lua_rawgeti(lua, first, (lua_Integer)i);
			take_profile(lua, -1);
			lua_pop(lua, 1);
		}
		if (!n)
			take_profile(lua, first);
	} else {
		take_profile(lua, first);
	}
	for (size_t i = 0; i < eng->profile_count; i++)
		if (eng->profiles[i]->source == eng->reading->index && !eng->profiles[i]->returned)
			luaL_error(lua,
				   "%s:%d: profile \"%s\" is not returned by the file, so it "
				   "would not count",
				   eng->profiles[i]->file, eng->profiles[i]->at.line,
				   eng->profiles[i]->name);
}

/* --- the words of the standard checks --- */

static void field_of(lua_State *lua, const char *key)
{
	lua_pushstring(lua, key);
	lua_rawget(lua, 1);
}

static int check_table(lua_State *lua)
{
	struct span name = {.at = lua_touserdata(lua, lua_upvalueindex(1))};
	struct engine *eng = engine_of(lua);
	struct item *it;

	only_while_loading(lua, "check");
	name.len = strlen(name.at);
	luaL_checktype(lua, 1, LUA_TTABLE);
	it = new_item(lua, name);
	it->is_check = true;
	field_of(lua, "doc");
	it->doc = keep(lua, library_string(lua, -1, "check: doc"));
	field_of(lua, "also_closed");
	it->also_closed = lua_toboolean(lua, -1);
	field_of(lua, "concerns");
	take_operations(lua, lua_gettop(lua), "check: concerns", &it->concerns);
	field_of(lua, "reasons");
	for (size_t i = 1, n = library_length(lua, -1, "check: reasons"); i <= n; i++) {
		enum reason r;

		library_entry(lua, -1, i);
		r = reason_find(library_string(lua, -1, "check: reasons"));
		if (r == REASON_NONE)
			return luaL_error(lua, "check: \"%s\" is no reason", lua_tostring(lua, -1));
		it->reasons.bits[r / 64] |= (uint64_t)1 << (r % 64);
		lua_pop(lua, 1);
	}
	field_of(lua, "judge");
	luaL_checktype(lua, -1, LUA_TFUNCTION);
	take_function(lua, it);
	eng->item_count++;
	eng->check_count = eng->item_count;
	return 0;
}

static int word_check(lua_State *lua)
{
	struct span name = take_name(lua, "check");

	lua_pushlightuserdata(lua, (void *)name.at);
	lua_pushcclosure(lua, check_table, 1);
	return 1;
}

/* harden(function(req, granted) ... end), once. */
static int word_harden(lua_State *lua)
{
	only_while_loading(lua, "harden");
	luaL_checktype(lua, 1, LUA_TFUNCTION);
	lua_settop(lua, 1);
	engine_of(lua)->harden_function = luaL_ref(lua, LUA_REGISTRYINDEX);
	return 0;
}

/* The operations that judge what a container is: when it is made, whenever it comes to run, when
   somebody talks to what runs in it, and when files are put into it, which it then runs; or what
   steps of a build are. */
static void push_what_runs(lua_State *lua, bool builds)
{
	static const char *const names[] = {
		"container.create",  "container.start",       "container.restart",
		"container.unpause", "container.attach",      "exec.create",
		"exec.start",        "container.archive.put", "image.build"};
	size_t count = sizeof(names) / sizeof(*names) - !builds;

	lua_newtable(lua);
	for (size_t i = 0; i < count; i++) {
		lua_pushstring(lua, names[i]);
		lua_rawseti(lua, -2, (lua_Integer)i + 1);
	}
}

static const struct library_word check_words[] = {
	{"check", word_check},
	{"harden", word_harden},
	{"refuse", saying_refuse},
	{"refuse_update", saying_refuse_update},
	{"change", saying_change},
	{"seccomp_more", word_seccomp_more},
	{"seccomp_sha256", word_seccomp_sha256},
	{"warn", saying_warn},
};

static const struct library_word profile_words[] = {
#define PROFILE(name, function, ...) {name, function},
#include "rules/library.def"
};

/* Pushes the library at `library` with more words, sealed, and pops it into the registry. */
static int environment(lua_State *lua, int library, const struct library_word *words, size_t count,
		       const char *name)
{
	lua_newtable(lua);
	for (lua_pushnil(lua); lua_next(lua, library); lua_pop(lua, 1)) {
		lua_pushvalue(lua, -2);
		lua_pushvalue(lua, -2);
		lua_rawset(lua, -5);
	}
	library_add(lua, words, count);
	library_seal(lua, name);
	return luaL_ref(lua, LUA_REGISTRYINDEX);
}

void language_open(lua_State *lua)
{
	struct engine *eng = engine_of(lua);
	int library;

	library_open(lua);
	library = lua_gettop(lua);
	eng->profile_words =
		environment(lua, library, profile_words,
			    sizeof(profile_words) / sizeof(*profile_words), "the words of rules");
	push_what_runs(lua, false);
	lua_setfield(lua, library, "what_runs");
	push_what_runs(lua, true);
	lua_setfield(lua, library, "what_runs_or_builds");
	eng->check_words =
		environment(lua, library, check_words, sizeof(check_words) / sizeof(*check_words),
			    "the words of standard checks");
	lua_pop(lua, 1);
}
