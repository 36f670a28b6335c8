#include "rules/engine.h"
#include "rules/library_priv.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * A fact is a light userdata that points into the JSON tree: nothing is
 * converted that no rule reads, nothing is allocated but strings, and there is
 * nothing to write to.  No other light userdata ever reaches Lua code.
 */

/* Every name that a fact can have, so that a misspelt one is an error and not an absent fact. */
static const char *const known[] = {
#define FACT(path, kind, doc) path,
#include "rules/request.def"
#include "rules/workload.def"
#undef FACT
#define SETTING(name, kind, merge, enforced, doc) #name,
#include "rules/settings.def"
#undef SETTING
	"workload",
	"update.within.fresh.privileged.changes.moves.from.to",
	"isolation.min.runtimes.attested",
	"limits.memory.nano_cpus.pids.build_pids",
#define QUOTA(id, setting, fact, unit, of, doc) fact,
#include "rules/quota.def"
#undef QUOTA
	"harden.log_limits",
	"mounts.path.mode",
};

static void know_names(lua_State *lua)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct span rest = span_of(known[i]), part;

		while (rest.len) {
			span_cut(&rest, '.', &part);
			if (part.len > 2 && part.at[part.len - 1] == ']')
				part.len -= 2;
			lua_pushlstring(lua, part.at, part.len);
			lua_pushboolean(lua, 1);
			lua_rawset(lua, -3);
		}
	}
}

const struct jv *facts_at(lua_State *lua, int index)
{
	return lua_islightuserdata(lua, index) ? lua_touserdata(lua, index) : NULL;
}

void facts_push(lua_State *lua, const struct jv *v)
{
	if (!v || v->kind == JV_NULL)
		lua_pushnil(lua);
	else if (v->kind == JV_BOOL)
		lua_pushboolean(lua, v->b);
	else if (v->kind == JV_INT)
		lua_pushinteger(lua, v->i);
	else if (v->kind == JV_REAL)
		lua_pushnumber(lua, v->real);
	else if (v->kind == JV_STRING)
		lua_pushlstring(lua, v->str.at, v->str.len);
	else
		lua_pushlightuserdata(lua, (void *)v);
}

static int index_fact(lua_State *lua)
{
	const struct jv *v = facts_at(lua, 1), *found = NULL;

	if (v->kind == JV_OBJECT && lua_type(lua, 2) == LUA_TSTRING) {
		struct span key;

		key.at = lua_tolstring(lua, 2, &key.len);
		found = jv_get_span(v, key);
		lua_pushvalue(lua, 2);
		if (!found && lua_rawget(lua, lua_upvalueindex(1)) == LUA_TNIL)
			return luaL_error(lua, "there is no fact named '%s'", key.at);
	} else if (v->kind == JV_ARRAY && lua_isinteger(lua, 2)) {
		lua_Integer i = lua_tointeger(lua, 2);

		if (i >= 1 && (size_t)i <= v->count)
			found = &v->items[i - 1];
	} else {
		return luaL_error(lua, "a fact that is a%s has no entry of that kind",
				  v->kind == JV_ARRAY ? " list" : "n object");
	}
	facts_push(lua, found);
	return 1;
}

static int write_fact(lua_State *lua)
{
	return luaL_error(lua, "facts are read-only");
}

static int length_of_fact(lua_State *lua)
{
	const struct jv *v = facts_at(lua, 1);

	if (v->kind != JV_ARRAY)
		return luaL_error(lua, "a fact that is an object has no length");
	lua_pushinteger(lua, (lua_Integer)v->count);
	return 1;
}

void facts_open(lua_State *lua)
{
	lua_pushlightuserdata(lua, NULL);
	lua_createtable(lua, 0, 4);
	lua_newtable(lua);
	know_names(lua);
	lua_pushcclosure(lua, index_fact, 1);
	lua_setfield(lua, -2, "__index");
	lua_pushcfunction(lua, write_fact);
	lua_setfield(lua, -2, "__newindex");
	lua_pushcfunction(lua, length_of_fact);
	lua_setfield(lua, -2, "__len");
	lua_pushliteral(lua, "fact");
	lua_setfield(lua, -2, "__name");
	lua_setmetatable(lua, -2); /* that of all light userdata */
	lua_pop(lua, 1);
}

/* --- their names --- */

static const char *const paths[] = {
#define FACT(path, kind, doc) path,
#include "rules/request.def"
#undef FACT
#define FACT(path, kind, doc) "workload." path,
#include "rules/workload.def"
#undef FACT
};

bool facts_has_path(struct span path)
{
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		if (!strchr(paths[i], '[') && span_is(path, paths[i]))
			return true;
	return false;
}

static bool is_known_name(struct span name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		struct span rest = span_of(known[i]), part;

		while (rest.len) {
			span_cut(&rest, '.', &part);
			if (part.len > 2 && part.at[part.len - 1] == ']')
				part.len -= 2;
			if (span_eq(part, name))
				return true;
		}
	}
	return false;
}

int engine_check_facts(const struct jv *facts, struct err *err)
{
	for (size_t i = 0; facts->kind == JV_ARRAY && i < facts->count; i++)
		if (engine_check_facts(&facts->items[i], err) < 0)
			return -1;
	for (size_t i = 0; facts->kind == JV_OBJECT && i < facts->count; i++) {
		if (!is_known_name(facts->members[i].key))
			return err_set(err, ERR_CONFIG, "there is no fact named '%.64s'",
				       facts->members[i].key.at);
		if (engine_check_facts(&facts->members[i].value, err) < 0)
			return err_wrap(err, "%.64s", facts->members[i].key.at);
	}
	return 0;
}

/* --- their size --- */

static size_t string_size(struct span s, bool exact)
{
	size_t n = 2;

	if (!exact)
		return 2 + 6 * s.len;
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.at[i];

		if (c < 0x20 || c == 0x7f)
			n += 6;
		else
			n += c == '"' || c == '\\' ? 2 : 1;
	}
	return n;
}

static size_t number_size(const struct jv *v)
{
	char text[40];

	if (v->kind == JV_INT)
		return (size_t)snprintf(text, sizeof(text), "%lld", (long long)v->i);
	return (size_t)snprintf(text, sizeof(text), "%.17g", v->real);
}

/* Stops counting once it passes cap.  Not exact: every byte as if it were escaped. */
static size_t size_of(const struct jv *v, size_t cap, bool exact)
{
	size_t n = 2;

	switch (v->kind) {
	case JV_NULL:
	case JV_KIND_COUNT:
		return 4;
	case JV_BOOL:
		return v->b ? 4 : 5;
	case JV_INT:
	case JV_REAL:
		return number_size(v);
	case JV_STRING:
		return string_size(v->str, exact);
	case JV_ARRAY:
		for (size_t i = 0; i < v->count && n <= cap; i++)
			n += size_of(&v->items[i], cap - n, exact) + (i > 0);
		return n;
	case JV_OBJECT:
		for (size_t i = 0; i < v->count && n <= cap; i++) {
			n += string_size(v->members[i].key, exact) + 1 + (i > 0);
			if (n <= cap)
				n += size_of(&v->members[i].value, cap - n, exact);
		}
		return n;
	}
	return n;
}

bool facts_fit(const struct jv *v, size_t cap)
{
	return size_of(v, cap, false) <= cap || size_of(v, cap, true) <= cap;
}

/* --- making them --- */

const char *identity_method(const struct identity *who)
{
	if (who->cert)
		return who->has_token ? "cert+token" : "cert";
	return who->has_token      ? "token"
	       : who->by_container ? "container"
	       : who->has_cred     ? "peercred"
				   : "listener";
}

struct jv caller_tree(struct arena *a, const struct caller_container *c)
{
	struct jv out = jv_object(), *labels;

	jv_set(a, &out, "id", jv_string(c->id));
	jv_set(a, &out, "name", jv_string(c->name));
	jv_set(a, &out, "image", jv_string(c->image));
	jv_set(a, &out, "image_id", jv_string(c->image_id));
	if (*c->owner)
		jv_set(a, &out, "owner", jv_string(c->owner));
	if (!c->label_count)
		return out;
	labels = jv_set(a, &out, "labels", jv_array());
	for (size_t i = 0; i < c->label_count; i++) {
		struct jv *one = jv_push(a, labels, jv_object());

		jv_set(a, one, "name", jv_string(c->labels[i].name));
		jv_set(a, one, "value", jv_string(c->labels[i].value));
	}
	return out;
}

static void add_names(struct arena *a, struct jv *to, const char *key, const char *const *names)
{
	struct jv *list;

	if (!names || !*names)
		return;
	list = jv_set(a, to, key, jv_array());
	for (; *names; names++)
		jv_push(a, list, jv_string(*names));
}

static void add_cert(struct arena *a, struct jv *id, const struct identity_cert *cert)
{
	struct jv *to = jv_set(a, id, "cert", jv_object());

	jv_set(a, to, "sha256", jv_string(cert->sha256));
	jv_set(a, to, "spki", jv_string(cert->spki));
	if (*cert->subject)
		jv_set(a, to, "subject", jv_string(cert->subject));
	if (*cert->cn)
		jv_set(a, to, "cn", jv_string(cert->cn));
	add_names(a, to, "dns", cert->dns);
	add_names(a, to, "uris", cert->uris);
	add_names(a, to, "emails", cert->emails);
}

static void add_identity(struct arena *a, struct jv *facts, const struct identity *who)
{
	struct jv *id = jv_set(a, facts, "identity", jv_object());

	jv_set(a, id, "name", jv_string(who->name));
	jv_set(a, id, "owner", jv_string(who->owner));
	jv_set(a, id, "profile", jv_string(who->profile));
	jv_set(a, id, "listener", jv_string(who->listener));
	jv_set(a, id, "method", jv_string(identity_method(who)));
	if (who->address && *who->address)
		jv_set(a, id, "address", jv_string(who->address));
	if (who->cert)
		add_cert(a, id, who->cert);
	if (who->container)
		jv_set(a, id, "container", caller_tree(a, who->container));
	if (!who->has_cred)
		return;
	jv_set(a, id, "uid", jv_int(who->uid));
	jv_set(a, id, "gid", jv_int(who->gid));
}

struct jv engine_facts(struct arena *a, const struct question *q)
{
	struct jv facts = jv_object();
	struct jv *op = jv_set(a, &facts, "operation", jv_object());

	jv_set(a, op, "name", jv_string(operation_name(q->op)));
	jv_set(a, op, "class", jv_string(op_class_name(operation_class(q->op))));
	jv_set(a, op, "group", jv_string(operation_group(q->op)));
	if (q->who)
		add_identity(a, &facts, q->who);
	jv_set(a, &facts, "backend", jv_string(q->backend));
	if (q->object)
		jv_set(a, &facts, "object", *q->object);
	if (q->workload && q->workload->kind != JV_NULL)
		jv_set(a, &facts, "workload", *q->workload);
	if (q->quota && q->quota->kind != JV_NULL)
		jv_set(a, &facts, "quota", *q->quota);
	if (q->replaces && q->replaces->kind != JV_NULL)
		jv_set(a, &facts, "replaces", *q->replaces);
	if (q->now > 0)
		jv_set(a, &facts, "now", jv_int(q->now));
	return facts;
}
