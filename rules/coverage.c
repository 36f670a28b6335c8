#include "rules/coverage.h"

#include "gate/base/buf.h"

#include <lauxlib.h>
#include <lua.h>
#include <string.h>

#define CODE_MAX    ((size_t)16 << 20)
#define NESTING_MAX 200 /* Lua's own limit of functions in functions */

/* The form of compiled code of Lua 5.4, as far as lines need it: see Lua's ldump.c. */
#define HEADER_BYTES 31
#define VERSION_AT   4
#define VERSION      0x54
#define INT_FLOAT    8      /* bytes of a number, whole or not */
#define JUMPS        (-128) /* in the line differences: look it up instead */

enum { TYPE_INT = 3, TYPE_SHORT = 4, TYPE_FLOAT = 19, TYPE_LONG = 20 };

struct reader {
	const unsigned char *at, *end;
	bool bad;
};

static const unsigned char *take(struct reader *r, size_t len)
{
	const unsigned char *from = r->at;

	if ((size_t)(r->end - r->at) < len) {
		r->bad = true;
		return NULL;
	}
	r->at += len;
	return from;
}

/* Seven bits a byte, the highest first; the last byte is marked. */
static size_t take_size(struct reader *r)
{
	size_t n = 0;

	for (int i = 0; i < 10; i++) {
		const unsigned char *b = take(r, 1);

		if (!b)
			return 0;
		n = n << 7 | (*b & 0x7fu);
		if (*b & 0x80)
			return n;
	}
	r->bad = true;
	return 0;
}

static void skip_string(struct reader *r)
{
	size_t size = take_size(r);

	if (size)
		take(r, size - 1);
}

static void skip_constants(struct reader *r)
{
	for (size_t n = take_size(r); n && !r->bad; n--) {
		const unsigned char *type = take(r, 1);

		if (!type)
			return;
		if (*type == TYPE_INT || *type == TYPE_FLOAT)
			take(r, INT_FLOAT);
		else if (*type == TYPE_SHORT || *type == TYPE_LONG)
			skip_string(r);
	}
}

/* The last instruction is the return that stands for the function's `end`. */
static void take_lines(struct reader *r, int line, bool counts, bool *ret)
{
	size_t n = take_size(r), jumps;
	const signed char *steps = (const signed char *)take(r, n);
	struct reader table;

	jumps = take_size(r);
	table = *r;
	for (size_t i = 0; i < jumps && !r->bad; i++) {
		take_size(r);
		take_size(r);
	}
	for (size_t pc = 0; steps && !r->bad && pc < n; pc++) {
		if (steps[pc] == JUMPS) {
			take_size(&table);
			line = (int)take_size(&table);
		} else {
			line += steps[pc];
		}
		if (counts && pc + 1 < n && line > 0 && line < COVERAGE_LINES_MAX)
			ret[line] = true;
	}
}

static void take_function(struct reader *r, int depth, bool *ret)
{
	int line;

	skip_string(r); /* source */
	line = (int)take_size(r);
	take_size(r); /* the last line */
	take(r, 3);   /* parameters, vararg, stack */
	take(r, 4 * take_size(r));
	skip_constants(r);
	take(r, 3 * take_size(r)); /* upvalues */
	for (size_t n = take_size(r); n && !r->bad && depth < NESTING_MAX; n--)
		take_function(r, depth + 1, ret);
	take_lines(r, line, depth > 0, ret);
	for (size_t n = take_size(r); n && !r->bad; n--) { /* local variables */
		skip_string(r);
		take_size(r);
		take_size(r);
	}
	for (size_t n = take_size(r); n && !r->bad; n--) /* names of upvalues */
		skip_string(r);
}

static int keep(lua_State *lua, const void *bytes, size_t len, void *to)
{
	(void)lua;
	buf_put(to, bytes, len);
	return buf_spent(to);
}

static int read_code(struct span code, const char *name, bool *ret, struct err *err)
{
	struct reader r = {(const unsigned char *)code.at,
			   (const unsigned char *)code.at + code.len, false};

	if (code.len > HEADER_BYTES && r.at[VERSION_AT] == VERSION) {
		take(&r, HEADER_BYTES + 1); /* and the number of the file's upvalues */
		take_function(&r, 0, ret);
		if (!r.bad && r.at == r.end)
			return 0;
	}
	return err_set(err, ERR_SYSTEM, "%s: its lines cannot be counted with this build of Lua",
		       name);
}

int coverage_lines(struct span text, const char *name, bool *ret, struct err *err)
{
	lua_State *lua = luaL_newstate();
	struct buf code;
	int rc = -1;

	if (!lua)
		return err_set(err, ERR_SYSTEM, "no memory");
	buf_init(&code, CODE_MAX);
	memset(ret, 0, COVERAGE_LINES_MAX * sizeof(*ret));
	if (luaL_loadbufferx(lua, text.at, text.len, name, "t") != LUA_OK)
		err_set(err, ERR_CONFIG, "%s: does not compile", name);
	else if (lua_dump(lua, keep, &code, 0) != 0)
		err_set(err, ERR_LIMIT, "%s: too large", name);
	else
		rc = read_code(buf_span(&code), name, ret, err);
	buf_fini(&code);
	lua_close(lua);
	return rc;
}
