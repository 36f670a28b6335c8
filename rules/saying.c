#include "rules/engine_priv.h"

#include "rules/library_priv.h"
#include "rules/update_priv.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

/* Everything here runs under sandbox_call(), so nothing is owned. */

/* What deny() and its like return: it reads as nothing, and is told from every other value. */
static const struct jv verdict_mark = {.kind = JV_NULL};

/* --- what a rule or a check says of a request --- */

static struct judging *judging_of(lua_State *lua, const char *word)
{
	struct judging *call = engine_of(lua)->call;

	if (!call || !call->item || call->excepting)
		luaL_error(lua, "%s can only be said while a rule runs", word);
	return call;
}

/* A copy for the request: at most max bytes, cut between characters, control bytes as spaces. */
static const char *copied(lua_State *lua, struct judging *call, struct span s, size_t max)
{
	char *copy;

	if (s.len > max)
		for (s.len = max; s.len && ((unsigned char)s.at[s.len] & 0xc0) == 0x80;)
			s.len--;
	copy = arena_strndup(call->arena, s.at, s.len);
	if (!copy)
		sandbox_leave(lua);
	for (char *p = copy; p < copy + s.len; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = ' ';
	return copy;
}

#define TEXT_MAX 400 /* bytes of a violation's sentence or hint */

/* An option of the table at index 2, as text; "" if it is absent. */
static const char *option(lua_State *lua, struct judging *call, const char *key, size_t max)
{
	const char *result = "";
	char number[64];

	if (!lua_istable(lua, 2))
		return result;
	lua_pushstring(lua, key);
	if (lua_rawget(lua, 2) == LUA_TSTRING || lua_isnumber(lua, -1) || lua_isboolean(lua, -1))
		result = copied(lua, call, library_text(lua, -1, number), max);
	else if (!lua_isnil(lua, -1))
		luaL_error(lua, "%s must be a text", key);
	lua_pop(lua, 1);
	return result;
}

static bool option_is_true(lua_State *lua, const char *key)
{
	bool result = false;

	if (lua_istable(lua, 2)) {
		lua_pushstring(lua, key);
		lua_rawget(lua, 2);
		result = lua_isboolean(lua, -1) && lua_toboolean(lua, -1);
		lua_pop(lua, 1);
	}
	return result;
}

static void check_options(lua_State *lua, const char *word)
{
	static const char *const known[] = {"field", "value", "hint", "reason", "text", "unknown"};

	if (lua_gettop(lua) > 2 || !(lua_isnoneornil(lua, 2) || lua_istable(lua, 2)))
		luaL_error(lua,
			   "%s: this is expected: %s(\"text\", { field =, value =, hint =, "
			   "reason = })",
			   word, word);
	if (!lua_istable(lua, 2))
		return;
	for (lua_pushnil(lua); lua_next(lua, 2); lua_pop(lua, 1)) {
		const char *key = lua_type(lua, -2) == LUA_TSTRING ? lua_tostring(lua, -2) : "?";
		bool found = false;

		for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
			found = found || strcmp(key, known[i]) == 0;
		if (!found)
			luaL_error(lua, "%s: unknown option \"%s\"", word, key);
	}
}

static enum rule_mode mode_in_force(const struct judging *call, const struct violation *v, bool ask)
{
	return judging_mode(call, call->item, v->reason, ask);
}

static void add_warning(struct judging *call, const char *text)
{
	struct decision *d = call->decision;

	if (d->warning_count < WARNINGS_MAX)
		d->warnings[d->warning_count++] = (struct warning){call->item->name, text};
}

/* The place for one more; when all are taken, one that a mode softened makes room for one that
 * counts. */
static struct violation *place_for(struct judging *call, bool soft, size_t *ret_index)
{
	struct violations *v = &call->decision->violations;

	if (v->count < VIOLATIONS_MAX) {
		*ret_index = v->count++;
		return &v->list[*ret_index];
	}
	v->dropped++;
	for (size_t i = VIOLATIONS_MAX; i-- > 0 && !soft;) {
		if (!call->soft[i])
			continue;
		*ret_index = i;
		return &v->list[i];
	}
	return NULL;
}

static void add_violation(struct judging *call, const struct violation *v, bool soft, bool ask)
{
	size_t i;
	struct violation *slot = place_for(call, soft, &i);

	call->hard_count += !soft && !ask;
	call->ask_count += !soft && ask;
	call->soft_count += soft && !ask;
	call->soft_ask_count += soft && ask;
	if (soft && mode_in_force(call, v, ask) == MODE_WARN)
		add_warning(call, *v->text ? v->text : reason_what(v->reason));
	if (!slot)
		return;
	*slot = *v;
	call->soft[i] = soft;
	call->ask[i] = ask;
}

/* An exception that is used is on record, and its end is told before it comes. */
static void use_exception(lua_State *lua, struct judging *call, const struct exception *x,
			  const struct violation *v)
{
	struct decision *d = call->decision;
	int64_t left = x->ends - jv_num(call->facts, "now", 0);
	char text[TEXT_MAX];

	d->excepted[d->excepted_count++] = (struct exception_use){
		v->rule,   reason_name(v->reason), v->field, v->value, x->owner, x->ticket,
		x->expires};
	if (left > EXCEPTION_WARN_S)
		return;
	snprintf(text, sizeof(text),
		 "the exception that lets this pass ends with %s (%.60s, %.60s)", x->expires,
		 x->ticket, x->owner);
	add_warning(call, copied(lua, call, span_of(text), TEXT_MAX));
}

/* What is found counts, unless an exception of the profile is about it. */
static void found(lua_State *lua, struct judging *call, const struct violation *v, bool unknown,
		  bool ask)
{
	bool full = call->decision->excepted_count == EXCEPTION_USES_MAX;
	bool kept = call->keeps && !unknown && call->item->is_check &&
		    update_keeps(call->item->name, v->reason, call->profile->update);
	const struct exception *x = unknown || full || kept ? NULL : exception_for(lua, call, v);

	if (kept)
		call->kept_count++;
	else if (x)
		use_exception(lua, call, x, v);
	else
		/* What is not known is never softened: nobody could say what the mode lets pass. */
		add_violation(call, v, !unknown && mode_in_force(call, v, ask) != MODE_ENFORCE,
			      ask);
}

bool saying_is_verdict(lua_State *lua, int index)
{
	return lua_isnil(lua, index) || facts_at(lua, index) == &verdict_mark;
}

static int return_mark(lua_State *lua)
{
	lua_pushlightuserdata(lua, (void *)&verdict_mark);
	return 1;
}

static int object_to(lua_State *lua, const char *word, bool ask)
{
	struct judging *call = judging_of(lua, word);
	struct violation v = {.reason = REASON_rule, .rule = call->item->name};
	const char *reason;

	v.text = copied(lua, call, library_string(lua, 1, word), TEXT_MAX);
	check_options(lua, word);
	v.field = option(lua, call, "field", VIOLATION_VALUE_MAX);
	v.value = option(lua, call, "value", VIOLATION_VALUE_MAX);
	v.hint = option(lua, call, "hint", TEXT_MAX);
	reason = option(lua, call, "reason", NAME_MAX_LEN);
	if (*reason)
		v.reason = reason_find(span_of(reason));
	if (v.reason == REASON_NONE)
		return luaL_error(lua, "%s: \"%s\" is no reason code", word, reason);
	found(lua, call, &v, option_is_true(lua, "unknown"), ask);
	return return_mark(lua);
}

int saying_deny(lua_State *lua)
{
	return object_to(lua, "deny", false);
}

int saying_ask(lua_State *lua)
{
	return object_to(lua, "ask", true);
}

int saying_warn(lua_State *lua)
{
	struct judging *call = judging_of(lua, "warn");

	add_warning(call, copied(lua, call, library_string(lua, 1, "warn"), TEXT_MAX));
	return return_mark(lua);
}

/* refuse("reason", { field =, value =, text =, hint =, unknown = }): what standard checks say. */
int saying_refuse(lua_State *lua)
{
	struct judging *call = judging_of(lua, "refuse");
	struct violation v = {.rule = call->item->name};
	bool unknown = option_is_true(lua, "unknown");

	v.reason = reason_find(library_string(lua, 1, "refuse"));
	if (v.reason == REASON_NONE ||
	    !(call->item->reasons.bits[v.reason / 64] >> (v.reason % 64) & 1))
		return luaL_error(lua, "refuse: \"%s\" is not among the reasons of this check",
				  lua_tostring(lua, 1));
	check_options(lua, "refuse");
	v.field = option(lua, call, "field", VIOLATION_VALUE_MAX);
	v.value = option(lua, call, "value", VIOLATION_VALUE_MAX);
	v.text = option(lua, call, "text", TEXT_MAX);
	v.hint = option(lua, call, "hint", TEXT_MAX);
	found(lua, call, &v, unknown, false);
	return 0;
}

/* refuse_update(): what is wrong with it as an update. */
int saying_refuse_update(lua_State *lua)
{
	struct judging *call = judging_of(lua, "refuse_update");

	for (size_t i = 0; call->update && i < call->update->count; i++)
		found(lua, call, &call->update->list[i], false, false);
	return 0;
}

/* --- change("fact", value): what hardening wants --- */

static struct jv change_value(lua_State *lua, struct judging *call, enum jv_kind kind)
{
	char number[64];

	if (kind == JV_BOOL && lua_isboolean(lua, 2))
		return jv_bool(lua_toboolean(lua, 2));
	if (kind == JV_INT && lua_isinteger(lua, 2))
		return jv_int(lua_tointeger(lua, 2));
	if (kind == JV_STRING && lua_type(lua, 2) == LUA_TSTRING)
		return jv_string(
			copied(lua, call, library_text(lua, 2, number), VIOLATION_VALUE_MAX));
	luaL_error(lua, "change: the value must be a %s", jv_kind_name(kind));
	return jv_null();
}

int saying_change(lua_State *lua)
{
	struct judging *call = engine_of(lua)->call;
	enum harden what;

	if (!call || !call->changes)
		return luaL_error(lua, "change can only be said while hardening");
	what = harden_find(library_string(lua, 1, "change"));
	if (what == HARDEN_NONE)
		return luaL_error(lua, "change: \"%s\" may not be changed", lua_tostring(lua, 1));
	if (call->change_count == CHANGES_MAX)
		return luaL_error(lua, "change: more than %d changes", CHANGES_MAX);
	call->changes[call->change_count++] =
		(struct change){what, change_value(lua, call, harden_kind(what)), "harden", ""};
	return 0;
}
