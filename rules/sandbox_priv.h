/*
 * sandbox_priv.h - one Lua state that can neither escape nor outlast its limits.
 *
 * The state has no library of Lua's own: what rules may call is in library.c,
 * made of functions that are bounded, deterministic, and show no addresses.
 * There is no load, pcall, coroutine, metatable access or string pattern, so
 * nothing can catch a limit or hide from the hook.
 *
 * Everything that may raise a Lua error runs inside sandbox_call().  A Lua
 * error leaves C frames by longjmp, so what runs there owns nothing: no auto_
 * variables, no locks, no open files.
 */
#ifndef RULES_SANDBOX_PRIV_H
#define RULES_SANDBOX_PRIV_H

#include "gate/base/err.h"
#include "gate/base/span.h"

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest text that a function of the library makes, in bytes. */
#define SANDBOX_TEXT_MAX 65536

struct sandbox_limits {
	int64_t instructions;
	unsigned time_ms;   /* of processor time: a busy machine is not the rule's fault */
	size_t block_bytes; /* largest single allocation */
};

enum sandbox_stop {
	STOP_NONE = 0,
	STOP_RAISED, /* an error that Lua code or the library raised */
	STOP_INSTRUCTIONS,
	STOP_TIME,
	STOP_MEMORY,
	STOP_HOST /* sandbox_leave(): the C side knows why */
};

struct sandbox {
	lua_State *lua;
	struct heap *heap;
	void *owner; /* for the C functions of whoever opened it */

	/* Called for each line that runs; NULL: nobody looks on. */
	void (*on_line)(void *arg, const char *file, int line);
	void *on_line_arg;

	/* of the running call */
	struct sandbox_limits limits;
	int64_t instructions_left;
	uint64_t deadline_ns;
	enum sandbox_stop stop; /* latched */

	_Alignas(max_align_t) char scratch[SANDBOX_TEXT_MAX]; /* where the library builds texts */
};

/*
 * A state with an empty registry.  memory_bytes: the most it may take, ever.
 * It belongs to one thread.
 */
struct sandbox *sandbox_open(size_t memory_bytes, void *owner, struct err *err);
void sandbox_close(struct sandbox *sb); /* NULL is allowed */

static inline struct sandbox *sandbox_of(lua_State *lua)
{
	return *(struct sandbox **)lua_getextraspace(lua);
}

/*
 * Runs fn(argument as light userdata) protected and limited.  On failure returns
 * -1 with ERR_CONFIG or ERR_LIMIT, and says in sb->stop what it was.  After
 * STOP_HOST *err is as fn left it.
 */
int sandbox_call(struct sandbox *sb, const struct sandbox_limits *limits, lua_CFunction fn,
		 void *argument, struct err *err) __attribute__((warn_unused_result));

/* From within: ends the call; the reason is known to the C side.  Cannot be caught. */
int sandbox_leave(lua_State *lua) __attribute__((noreturn));

/* From within: counts work that C does for Lua, about `bytes` bytes of it, as instructions. */
void sandbox_charge(lua_State *lua, size_t bytes);

/*
 * Compiles text and leaves the function on the stack; its globals are the
 * environment at env_index.  Raises when the text is no clean text (a byte
 * order mark, NUL, compiled code) or does not compile.
 */
void sandbox_compile(lua_State *lua, struct span text, const char *name, int env_index);

#endif
