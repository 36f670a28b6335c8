#include "rules/engine_priv.h"

#include "gate/base/clock.h"
#include "gate/base/nearest.h"
#include "rules/library_priv.h"
#include "rules/match_priv.h"
#include "rules/tree_priv.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

/* What a judgement knows of an exception's `when`. */
enum { NOT_ASKED = 0, HOLDS, DOES_NOT };

/* --- loading; under sandbox_call(), so nothing is owned --- */

static const char *text_option(lua_State *lua, const char *key)
{
	const char *copy = "";

	lua_pushstring(lua, key);
	if (lua_rawget(lua, 1) != LUA_TNIL) {
		struct span s = library_string(lua, -1, "exception");

		if (!tree_is_utf8(s) || !s.len || s.len > GLOB_MAX)
			luaL_error(lua, "exception: %s must be a text of at most %d bytes", key,
				   GLOB_MAX);
		copy = arena_strndup(engine_of(lua)->memory, s.at, s.len);
		if (!copy)
			luaL_error(lua, "profiles take too much memory");
	}
	lua_pop(lua, 1);
	return copy;
}

static void refuse_other_options(lua_State *lua)
{
	static const char *const known[] = {"rule",    "when", "owner", "ticket", "reason",
					    "expires", "code", "field", "value",  NULL};

	for (lua_pushnil(lua); lua_next(lua, 1); lua_pop(lua, 1)) {
		const char *key = lua_type(lua, -2) == LUA_TSTRING ? lua_tostring(lua, -2) : "?";
		const char *const *k = known;

		while (*k && strcmp(*k, key) != 0)
			k++;
		if (!*k)
			luaL_error(lua,
				   "exception: unknown option \"%s\" (rule, when, owner, ticket, "
				   "reason, expires, code, field and value are known)",
				   key);
	}
}

/* A day counts to its end. */
static int64_t end_of(const char *text)
{
	int64_t s = clock_parse(text, strlen(text));

	return s < 0 ? s : s + (strlen(text) == 10 ? 86400 : 0);
}

static bool is_plain(const struct jv *v)
{
	return v->kind == JV_STRING || v->kind == JV_INT || v->kind == JV_BOOL;
}

static void check_when(lua_State *lua, const struct jv *when)
{
	if (when->kind != JV_OBJECT || !when->count)
		luaL_error(lua, "exception: when names no fact; an exception without a condition "
				"would be a change of the profile");
	for (size_t i = 0; i < when->count; i++) {
		const struct jv *v = &when->members[i].value;
		bool fine = is_plain(v) || (v->kind == JV_ARRAY && v->count);

		for (size_t k = 0; v->kind == JV_ARRAY && k < v->count; k++)
			fine = fine && is_plain(&v->items[k]);
		if (!facts_has_path(when->members[i].key))
			luaL_error(lua,
				   "exception: when: \"%s\" is no fact, or lies in a list; ask "
				   "with a function there",
				   when->members[i].key.at);
		if (!fine)
			luaL_error(lua,
				   "exception: when: %s must be a text, a whole number, true, "
				   "false, or a list of these",
				   when->members[i].key.at);
	}
}

static void take_when(lua_State *lua, struct exception *x)
{
	struct engine *eng = engine_of(lua);

	x->function = LUA_NOREF;
	lua_pushstring(lua, "when");
	lua_rawget(lua, 1);
	if (lua_isfunction(lua, -1)) {
		x->function = luaL_ref(lua, LUA_REGISTRYINDEX);
		return;
	}
	if (!lua_istable(lua, -1))
		luaL_error(lua, "exception: when is a table of facts, or function(req) ... end; it "
				"cannot be left out");
	if (tree_of(lua, -1, eng->memory, &x->when, eng->reading->err) < 0) {
		err_wrap(eng->reading->err, "%s:%d: exception: when", x->file, x->line);
		sandbox_leave(lua);
	}
	check_when(lua, &x->when);
	lua_pop(lua, 1);
}

static void check_complete(lua_State *lua, const struct exception *x)
{
	const struct {
		const char *name, *value;
	} needed[] = {
		{"rule", x->rule},     {"owner", x->owner},     {"ticket", x->ticket},
		{"reason", x->reason}, {"expires", x->expires},
	};

	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		if (!*needed[i].value)
			luaL_error(lua,
				   "exception: %s is missing; who made it, why, and until "
				   "when must be said",
				   needed[i].name);
	if (x->ends < 0)
		luaL_error(lua,
			   "exception: expires is a day like \"2026-12-31\", or a second like "
			   "\"2026-12-31T18:00:00Z\", not \"%s\"",
			   x->expires);
	if (*x->code && reason_find(span_of(x->code)) == REASON_NONE)
		luaL_error(lua, "exception: \"%s\" is no reason code", x->code);
}

struct exception *exception_take(lua_State *lua)
{
	struct engine *eng = engine_of(lua);
	struct exception *x = &eng->exceptions[eng->exception_count];
	lua_Debug ar;

	if (eng->exception_count == EXCEPTIONS_MAX)
		luaL_error(lua, "more than %d exceptions", EXCEPTIONS_MAX);
	*x = (struct exception){.file = eng->reading->source->name, .function = LUA_NOREF};
	if (lua_getstack(lua, 1, &ar) && lua_getinfo(lua, "l", &ar))
		x->line = ar.currentline;
	refuse_other_options(lua);
	x->rule = text_option(lua, "rule");
	x->owner = text_option(lua, "owner");
	x->ticket = text_option(lua, "ticket");
	x->reason = text_option(lua, "reason");
	x->expires = text_option(lua, "expires");
	x->code = text_option(lua, "code");
	x->field = text_option(lua, "field");
	x->value = text_option(lua, "value");
	x->ends = end_of(x->expires);
	check_complete(lua, x);
	take_when(lua, x);
	eng->exception_count++;
	return x;
}

/* --- after loading: what it is about --- */

static bool names_check(const struct engine *eng, const char *rule)
{
	for (size_t i = 0; i < eng->check_count; i++)
		if (strcmp(eng->items[i].name, rule) == 0)
			return true;
	return false;
}

static int unknown_rule(const struct engine *eng, const struct profile *p,
			const struct exception *x, struct err *err)
{
	struct nearest near = nearest_to(span_of(x->rule));
	char text[NEAREST_TEXT_MAX];

	for (size_t i = 0; i < eng->check_count; i++)
		nearest_offer(&near, eng->items[i].name);
	for (size_t i = 0; i < p->item_count; i++)
		nearest_offer(&near, p->items[i]->name);
	return err_set(err, ERR_CONFIG,
		       "%s:%d: profile \"%s\": exception: no rule or standard check is named "
		       "\"%.64s\"%s",
		       x->file, x->line, p->name, x->rule, nearest_said(near.best, text));
}

/* An exception for the one would be one for the other. */
static int refuse_a_checks_name(const struct engine *eng, const struct profile *p, struct err *err)
{
	for (size_t i = p->inherited_count; i < p->item_count; i++)
		if (names_check(eng, p->items[i]->name))
			return err_set(err, ERR_CONFIG,
				       "%s:%d: profile \"%s\": a standard check is named \"%s\"; "
				       "give the rule another name",
				       p->items[i]->file, p->items[i]->line, p->name,
				       p->items[i]->name);
	return 0;
}

static int check_one(const struct engine *eng, const struct profile *p, const struct exception *x,
		     struct err *err)
{
	size_t i = 0;

	while (i < p->item_count && strcmp(p->items[i]->name, x->rule) != 0)
		i++;
	if (i == p->item_count && !names_check(eng, x->rule))
		return unknown_rule(eng, p, x, err);
	if (p->parent && (i == p->item_count || i < p->inherited_count))
		return err_set(err, ERR_CONFIG,
			       "%s:%d: profile \"%s\": exception: \"%s\" also guards \"%s\", which "
			       "this profile may only tighten; make the exception there, or extend "
			       "nothing",
			       x->file, x->line, p->name, x->rule, p->parent->name);
	return 0;
}

int exception_check_all(struct engine *eng, struct err *err)
{
	for (size_t i = 0; i < eng->profile_count; i++) {
		const struct profile *p = eng->profiles[i];

		if (refuse_a_checks_name(eng, p, err) < 0)
			return -1;
		for (size_t k = 0; k < p->exception_count; k++)
			if (check_one(eng, p, p->exceptions[k], err) < 0)
				return -1;
	}
	return 0;
}

/* Every value that is asked for is a glob of stars, and no word of the violation narrows it. */
static bool holds_always(const struct exception *x)
{
	if (x->function != LUA_NOREF || *x->field || *x->value || *x->code)
		return false;
	for (size_t i = 0; i < x->when.count; i++) {
		const struct jv *v = &x->when.members[i].value;

		if (v->kind != JV_STRING || strspn(v->str.at, "*") != v->str.len)
			return false;
	}
	return true;
}

bool engine_exception_at(const struct engine *eng, size_t i, struct exception_view *ret)
{
	const struct exception *x = &eng->exceptions[i];

	if (i >= eng->exception_count)
		return false;
	*ret = (struct exception_view){x->profile ? x->profile->name : "",
				       x->rule,
				       x->owner,
				       x->ticket,
				       x->reason,
				       x->expires,
				       x->file,
				       x->line,
				       x->ends,
				       holds_always(x)};
	return true;
}

/* --- judging; under sandbox_call() --- */

static bool value_fits(const struct jv *want, const struct jv *found)
{
	if (want->kind == JV_STRING)
		return found->kind == JV_STRING && glob_match(want->str, found->str);
	return jv_equal(want, found);
}

static bool fact_fits(const struct jv *facts, const struct jv_member *m)
{
	const struct jv *found = jv_path(facts, m->key.at);

	if (!found || found->kind == JV_NULL)
		return false;
	if (m->value.kind != JV_ARRAY)
		return value_fits(&m->value, found);
	for (size_t i = 0; i < m->value.count; i++)
		if (value_fits(&m->value.items[i], found))
			return true;
	return false;
}

static bool when_holds(lua_State *lua, struct judging *call, const struct exception *x)
{
	bool result = true;

	if (x->function == LUA_NOREF) {
		for (size_t i = 0; i < x->when.count && result; i++) {
			sandbox_charge(lua, GLOB_TEXT);
			result = fact_fits(call->facts, &x->when.members[i]);
		}
		return result;
	}
	luaL_checkstack(lua, 4, "too deep");
	call->excepting = true; /* an error ends the judgement, so this need not be undone then */
	lua_rawgeti(lua, LUA_REGISTRYINDEX, x->function);
	facts_push(lua, call->facts);
	lua_call(lua, 1, 1);
	call->excepting = false;
	if (!lua_isboolean(lua, -1))
		luaL_error(lua,
			   "%s:%d: exception for \"%s\": when returned a %s, not true or false",
			   x->file, x->line, x->rule, luaL_typename(lua, -1));
	result = lua_toboolean(lua, -1);
	lua_pop(lua, 1);
	return result;
}

/* A text that was cut could have gone on otherwise. */
static bool text_fits(const char *pattern, const char *text)
{
	if (!*pattern)
		return true;
	return text && *text && strlen(text) < VIOLATION_VALUE_MAX - 4 &&
	       glob_match(span_of(pattern), span_of(text));
}

static bool is_about(const struct exception *x, const struct violation *v)
{
	return strcmp(x->rule, v->rule) == 0 &&
	       (!*x->code || strcmp(x->code, reason_name(v->reason)) == 0) &&
	       text_fits(x->field, v->field) && text_fits(x->value, v->value);
}

const struct exception *exception_for(lua_State *lua, struct judging *call,
				      const struct violation *v)
{
	int64_t now = jv_num(call->facts, "now", 0);

	for (size_t i = 0; i < call->profile->exception_count && now > 0 && !call->held_off; i++) {
		const struct exception *x = call->profile->exceptions[i];

		if (now >= x->ends || !is_about(x, v))
			continue;
		if (call->held[i] == NOT_ASKED)
			call->held[i] = when_holds(lua, call, x) ? HOLDS : DOES_NOT;
		if (call->held[i] == HOLDS)
			return x;
	}
	return NULL;
}
