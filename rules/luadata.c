#include "rules/luadata.h"

#include "rules/library_priv.h"
#include "rules/sandbox_priv.h"
#include "rules/tree_priv.h"

#include <stdio.h>
#include <string.h>

#define MEMORY_BYTES ((size_t)8 << 20)
#define SOURCE_MAX   ((size_t)256 * 1024)
#define ENTRIES_MAX  1024

static const struct sandbox_limits limits = {
	.instructions = 10000000,
	.time_ms = 2000,
	.block_bytes = (size_t)2 << 20,
};

struct reading {
	struct span text;
	const char *origin;
	const struct luadata_word *words;
	size_t word_count;
	struct arena *arena;
	struct jv entries;
	struct err *err;
	const struct luadata_word *open; /* a word that has its name and waits for its table */
	int open_line;
};

static struct reading *reading_of(lua_State *lua)
{
	return sandbox_of(lua)->owner;
}

static int line_of_caller(lua_State *lua)
{
	lua_Debug ar;

	if (!lua_getstack(lua, 1, &ar) || !lua_getinfo(lua, "l", &ar))
		return 0;
	return ar.currentline;
}

static void fail(lua_State *lua, int line, const char *word)
{
	struct reading *r = reading_of(lua);

	err_wrap(r->err, "%s:%d: %s", r->origin, line, word);
	sandbox_leave(lua);
}

static void add_entry(lua_State *lua, const struct luadata_word *word, int line, struct span name,
		      int table)
{
	struct reading *r = reading_of(lua);
	struct jv *entry = jv_push(r->arena, &r->entries, jv_object()), value;

	if (r->entries.count > ENTRIES_MAX)
		luaL_error(lua, "more than %d entries", ENTRIES_MAX);
	if (tree_of(lua, table, r->arena, &value, r->err) < 0)
		fail(lua, line, word->word);
	tree_expect_object(&value);
	jv_set(r->arena, entry, "word", jv_string(word->word));
	if (word->named)
		jv_set(r->arena, entry, "name", jv_span(name));
	jv_set(r->arena, entry, "line", jv_int(line));
	jv_set(r->arena, entry, "value", value);
}

static void check_table(lua_State *lua, const struct luadata_word *word, int line)
{
	struct reading *r = reading_of(lua);

	if (lua_type(lua, 1) == LUA_TTABLE && lua_gettop(lua) == 1)
		return;
	err_set(r->err, ERR_CONFIG, "a table is expected: %s%s { ... }", word->word,
		word->named ? " \"name\"" : "");
	fail(lua, line, word->word);
}

static void refuse_open(lua_State *lua)
{
	struct reading *r = reading_of(lua);

	if (!r->open)
		return;
	err_set(r->err, ERR_CONFIG, "a table is expected behind the name: %s \"name\" { ... }",
		r->open->word);
	fail(lua, r->open_line, r->open->word);
}

/* The second half of `word "name" { ... }`. */
static int named_table(lua_State *lua)
{
	const struct luadata_word *word = lua_touserdata(lua, lua_upvalueindex(1));
	int line = (int)lua_tointeger(lua, lua_upvalueindex(3));
	struct span name;

	check_table(lua, word, line);
	if (reading_of(lua)->open != word)
		return luaL_error(lua, "%s: one table for each name", word->word);
	reading_of(lua)->open = NULL;
	name.at = lua_tolstring(lua, lua_upvalueindex(2), &name.len);
	name.at = arena_strndup(reading_of(lua)->arena, name.at, name.len);
	add_entry(lua, word, line, name, 1);
	return 0;
}

static int say_word(lua_State *lua)
{
	const struct luadata_word *word = lua_touserdata(lua, lua_upvalueindex(1));
	struct reading *r = reading_of(lua);
	int line = line_of_caller(lua);
	size_t len;

	refuse_open(lua);
	if (!word->named) {
		check_table(lua, word, line);
		add_entry(lua, word, line, (struct span){"", 0}, 1);
		return 0;
	}
	if (lua_type(lua, 1) != LUA_TSTRING || !*lua_tolstring(lua, 1, &len) || len > 64 ||
	    !tree_is_utf8((struct span){lua_tostring(lua, 1), len}) || lua_gettop(lua) != 1) {
		err_set(r->err, ERR_CONFIG,
			"a name of at most 64 characters is expected: %s \"name\" { ... }",
			word->word);
		fail(lua, line, word->word);
	}
	r->open = word;
	r->open_line = line;
	lua_pushlightuserdata(lua, (void *)word);
	lua_pushvalue(lua, 1);
	lua_pushinteger(lua, line);
	lua_pushcclosure(lua, named_table, 3);
	return 1;
}

static int read_protected(lua_State *lua)
{
	struct reading *r = lua_touserdata(lua, 1);

	library_open(lua);
	for (size_t i = 0; i < r->word_count; i++) {
		lua_pushlightuserdata(lua, (void *)&r->words[i]);
		lua_pushcclosure(lua, say_word, 1);
		lua_setfield(lua, -2, r->words[i].word);
	}
	library_seal(lua, "the words of this file");
	sandbox_compile(lua, r->text, r->origin, -1);
	lua_call(lua, 0, 0);
	refuse_open(lua);
	return 0;
}

/* Lua names no line where its own stack ends, nor a file where it may choose not to. */
static bool says_where(const struct err *err, const char *origin)
{
	size_t len = strlen(origin);

	return strncmp(err->msg, origin, len) == 0 && err->msg[len] == ':';
}

/* Seven parameters: the contract has them. NOLINTNEXTLINE(readability-function-size) */
int luadata_read(struct span text, const char *origin, const struct luadata_word *words,
		 size_t word_count, struct arena *a, struct jv *ret, struct err *err)
{
	struct reading r = {text, origin, words, word_count, a, jv_array(), err, NULL, 0};
	struct sandbox *sb;
	int result;

	if (text.len > SOURCE_MAX)
		return err_set(err, ERR_CONFIG, "%s:1: the file is larger than %zu KiB", origin,
			       SOURCE_MAX / 1024);
	sb = sandbox_open(MEMORY_BYTES, &r, err);
	if (!sb)
		return -1;
	result = sandbox_call(sb, &limits, read_protected, &r, err);
	/* Limits have no line of their own; what they report is the operator's to mend all the
	 * same. */
	if (result < 0 && sb->stop != STOP_RAISED && sb->stop != STOP_HOST) {
		err->kind = ERR_CONFIG;
		err_wrap(err, "%s:1: the file takes", origin);
	}
	sandbox_close(sb);
	if (result < 0 && !says_where(err, origin))
		err_wrap(err, "%s:1", origin);
	if (result < 0)
		return -1;
	if (arena_spent(a))
		return err_set(err, ERR_LIMIT, "%s:1: the file holds too much", origin);
	*ret = r.entries;
	return 0;
}
