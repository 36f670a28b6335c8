/*
 * library_regex.c - regex.match(): PCRE2 within limits.
 *
 * A pattern is compiled for each call, since no state survives a judgement.
 * Nothing in here raises while PCRE2's memory is held.
 */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "rules/library_priv.h"
#include "rules/sandbox_priv.h"

#include <pcre2.h>
#include <string.h>

#define REGEX_MAX   256   /* bytes of a pattern */
#define REGEX_TEXT  4096  /* bytes of a text */
#define REGEX_STEPS 20000 /* of PCRE2's matcher */
#define REGEX_DEPTH 1000  /* of its backtracking */
#define REGEX_KIB   512   /* of its memory */
#define REGEX_COST  16384 /* bytes that are charged for compiling, whatever the pattern */

#define OPTIONS (PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOTALL)

/* 1: it fits; or PCRE2's own code: no match, or what went wrong. */
static int match(const pcre2_code *code, struct span text)
{
	pcre2_match_context *limits = pcre2_match_context_create(NULL);
	pcre2_match_data *data = pcre2_match_data_create(1, NULL);
	int status = PCRE2_ERROR_NOMEMORY;

	if (limits && data) {
		pcre2_set_match_limit(limits, REGEX_STEPS);
		pcre2_set_depth_limit(limits, REGEX_DEPTH);
		pcre2_set_heap_limit(limits, REGEX_KIB);
		status = pcre2_match(code, (PCRE2_SPTR)text.at, text.len, 0, 0, data, limits);
	}
	pcre2_match_data_free(data);
	pcre2_match_context_free(limits);
	return status >= 0 ? 1 : status; /* 0: it fits, and groups had no room */
}

/* As match(); errors of compiling are above 100. */
static int compile_and_match(struct span pattern, struct span text)
{
	int status = 0;
	PCRE2_SIZE at = 0;
	pcre2_code *code =
		pcre2_compile((PCRE2_SPTR)pattern.at, pattern.len, OPTIONS, &status, &at, NULL);

	if (code)
		status = match(code, text);
	pcre2_code_free(code);
	return status;
}

int match_regex(lua_State *lua)
{
	struct span pattern = library_string(lua, 1, "regex.match"),
		    text = library_string(lua, 2, "regex.match");
	unsigned char why[120];
	int status;

	if (pattern.len > REGEX_MAX)
		return luaL_error(lua, "regex.match: a pattern has at most %d bytes", REGEX_MAX);
	sandbox_charge(lua, REGEX_COST + text.len * 8);
	/* "It does not fit" would skip a rule that denies what fits. */
	if (text.len > REGEX_TEXT || memchr(text.at, 0, text.len))
		return luaL_error(lua, "regex.match: a text has at most %d bytes, and no NUL",
				  REGEX_TEXT);
	status = compile_and_match(pattern, text);
	if (status == 1 || status == PCRE2_ERROR_NOMATCH) {
		lua_pushboolean(lua, status == 1);
		return 1;
	}
	pcre2_get_error_message(status, why, sizeof(why));
	return luaL_error(lua, "regex.match: '%s': %s", pattern.at, (const char *)why);
}
