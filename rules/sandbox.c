#include "rules/sandbox_priv.h"

#include "gate/base/clock.h"
#include "rules/heap_priv.h"

#include <assert.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>

#define HOOK_EVERY     1000
#define BYTES_PER_STEP 8 /* bytes that C handles in about the time of one instruction */

/* What is raised when a limit is hit: nothing is allocated for it, nothing in Lua can see it. */
static char limit_mark;

static void stop_now(lua_State *lua, enum sandbox_stop why) __attribute__((noreturn));
static void hook(lua_State *lua, lua_Debug *ar);

static void stop_now(lua_State *lua, enum sandbox_stop why)
{
	struct sandbox *sb = sandbox_of(lua);

	if (!sb->stop)
		sb->stop = why;
	/* Latched: should anything go on in spite of the error, the next instruction raises again.
	 */
	lua_sethook(lua, hook, LUA_MASKCOUNT, 1);
	lua_pushlightuserdata(lua, &limit_mark);
	lua_error(lua);
	abort();
}

static void count(lua_State *lua, int64_t steps)
{
	struct sandbox *sb = sandbox_of(lua);

	sb->instructions_left -= steps;
	if (sb->stop || sb->instructions_left < 0)
		stop_now(lua, STOP_INSTRUCTIONS);
	if (steps >= HOOK_EVERY && clock_thread_ns() > sb->deadline_ns)
		stop_now(lua, STOP_TIME);
}

static void hook(lua_State *lua, lua_Debug *ar)
{
	struct sandbox *sb = sandbox_of(lua);

	if (ar->event != LUA_HOOKLINE) {
		count(lua, HOOK_EVERY);
		return;
	}
	if (sb->on_line && lua_getinfo(lua, "S", ar) && *ar->source == '=')
		sb->on_line(sb->on_line_arg, ar->source + 1, ar->currentline);
}

void sandbox_charge(lua_State *lua, size_t bytes)
{
	count(lua, (int64_t)(bytes / BYTES_PER_STEP));
}

int sandbox_leave(lua_State *lua)
{
	stop_now(lua, STOP_HOST);
}

struct sandbox *sandbox_open(size_t memory_bytes, void *owner, struct err *err)
{
	struct sandbox *sb = calloc(1, sizeof(*sb));

	if (!sb) {
		err_sys(err, "memory for the rules");
		return NULL;
	}
	sb->owner = owner;
	sb->heap = heap_open(memory_bytes, err);
	if (!sb->heap) {
		free(sb);
		return NULL;
	}
	sb->lua = lua_newstate(heap_alloc, sb->heap);
	if (!sb->lua) {
		err_set(err, ERR_LIMIT, "%zu bytes are too few for rules", memory_bytes);
		sandbox_close(sb);
		return NULL;
	}
	*(struct sandbox **)lua_getextraspace(sb->lua) = sb;
	return sb;
}

/* The state is not closed but dropped with its memory: it holds nothing else, and nothing may run.
 */
void sandbox_close(struct sandbox *sb)
{
	if (!sb)
		return;
	heap_close(sb->heap);
	free(sb);
}

static int say_limit(const struct sandbox *sb, struct err *err)
{
	switch (sb->stop) {
	case STOP_INSTRUCTIONS:
		return err_set(err, ERR_LIMIT, "more than %lld instructions",
			       (long long)sb->limits.instructions);
	case STOP_TIME:
		return err_set(err, ERR_LIMIT, "more than %u ms", sb->limits.time_ms);
	case STOP_MEMORY:
		return err_set(err, ERR_LIMIT, "more memory than rules may take");
	case STOP_NONE:
	case STOP_RAISED:
	case STOP_HOST:
		break;
	}
	return -1;
}

/* The message of an error: text only, on one line. */
static int say_raised(struct sandbox *sb, struct err *err)
{
	const char *text = "an error that is no text";
	char line[ERR_MSG_MAX];
	size_t n = 0;

	if (lua_type(sb->lua, -1) == LUA_TSTRING)
		text = lua_tostring(sb->lua, -1);
	for (; text[n] && n < sizeof(line) - 1; n++)
		line[n] = (unsigned char)text[n] < 0x20 || text[n] == 0x7f ? ' ' : text[n];
	line[n] = '\0';
	sb->stop = STOP_RAISED;
	return err_set(err, ERR_CONFIG, "%s", line);
}

int sandbox_call(struct sandbox *sb, const struct sandbox_limits *limits, lua_CFunction fn,
		 void *argument, struct err *err)
{
	int status, result = 0;

	sb->limits = *limits;
	sb->instructions_left = limits->instructions;
	sb->deadline_ns = clock_thread_ns() + (uint64_t)limits->time_ms * 1000000;
	sb->stop = STOP_NONE;
	heap_set_block_max(sb->heap, limits->block_bytes);
	lua_sethook(sb->lua, hook, LUA_MASKCOUNT | (sb->on_line ? LUA_MASKLINE : 0), HOOK_EVERY);
	lua_pushcfunction(sb->lua, fn);
	lua_pushlightuserdata(sb->lua, argument);
	status = lua_pcall(sb->lua, 1, 0, 0);
	/* Also when the call came back well: a refused allocation must not be survived. */
	if (heap_spent(sb->heap) && !sb->stop)
		sb->stop = STOP_MEMORY;
	if (sb->stop)
		result = say_limit(sb, err);
	else if (status != LUA_OK)
		result = say_raised(sb, err);
	lua_settop(sb->lua, 0);
	return result;
}

void sandbox_compile(lua_State *lua, struct span text, const char *name, int env_index)
{
	char chunk[80];

	env_index = lua_absindex(lua, env_index);
	if (text.len >= 3 && memcmp(text.at, "\xef\xbb\xbf", 3) == 0)
		luaL_error(lua, "%s:1: the file begins with a byte order mark", name);
	if (text.len && text.at[0] == LUA_SIGNATURE[0])
		luaL_error(lua, "%s:1: the file is compiled Lua, not text", name);
	if (memchr(text.at, '\0', text.len))
		luaL_error(lua, "%s: the file holds a NUL byte", name);
	snprintf(chunk, sizeof(chunk), "=%s", name);
	if (luaL_loadbufferx(lua, text.at, text.len, chunk, "t") != LUA_OK)
		lua_error(lua);
	lua_pushvalue(lua, env_index);
	if (!lua_setupvalue(lua, -2, 1))
		lua_pop(lua, 1); /* a text without globals has no environment */
}
