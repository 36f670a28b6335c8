#include "rules/engine_priv.h"

#include "gate/base/buf.h"
#include "rules/tree_priv.h"

#include <lauxlib.h>
#include <string.h>

#define EXAMPLES_MAX 64 /* of one rule, of each kind */
#define ARENA_MAX    ((size_t)1 << 20)
#define SHOWN_MAX    200 /* bytes of facts in a message */

/* --- loading; under sandbox_call() --- */

static int wrong(lua_State *lua, const struct item *it)
{
	return luaL_error(
		lua,
		"rule \"%s\": examples = { match = { { facts }, ... }, not_match = { ... } } "
		"is expected",
		it->name);
}

/* The facts of each example must be facts: a misspelt one would prove nothing. */
static void take_list(lua_State *lua, const struct item *it, const char *kind, struct jv *list)
{
	struct err *err = engine_of(lua)->reading->err;

	if (list->kind != JV_ARRAY || list->count > EXAMPLES_MAX)
		luaL_error(lua, "rule \"%s\": examples: %s is a list of at most %d tables of facts",
			   it->name, kind, EXAMPLES_MAX);
	for (size_t i = 0; i < list->count; i++) {
		tree_expect_object(&list->items[i]);
		if (list->items[i].kind != JV_OBJECT)
			wrong(lua, it);
		if (engine_check_facts(&list->items[i], err) == 0)
			continue;
		err_wrap(err, "%s: rule \"%s\": examples: %s[%zu]", it->file, it->name, kind,
			 i + 1);
		sandbox_leave(lua);
	}
}

int examples_take(lua_State *lua, int table, struct item *it)
{
	struct engine *eng = engine_of(lua);
	struct jv tree = jv_object();

	if (tree_of(lua, table, eng->memory, &tree, eng->reading->err) < 0) {
		err_wrap(eng->reading->err, "%s: rule \"%s\": examples", it->file, it->name);
		sandbox_leave(lua);
	}
	tree_expect_object(&tree);
	if (tree.kind != JV_OBJECT)
		return wrong(lua, it);
	for (size_t i = 0; i < tree.count; i++) {
		struct span key = tree.members[i].key;
		struct jv *to = span_is(key, "match")       ? &it->match
				: span_is(key, "not_match") ? &it->not_match
							    : NULL;

		if (!to)
			return wrong(lua, it);
		*to = tree.members[i].value;
		take_list(lua, it, key.at, to);
	}
	return 0;
}

/* --- judging them --- */

/* An example says what matters to its rule; the rest is a request of somebody's. */
static struct jv complete(struct arena *a, const struct item *it, const struct jv *example)
{
	const struct identity who = {.name = "example",
				     .owner = "example",
				     .profile = "",
				     .listener = "example",
				     .address = ""};
	const struct jv nothing = jv_object();
	struct question q = {.who = &who, .backend = "example", .workload = &nothing, .now = 1};
	struct jv facts;

	for (int op = OP_UNKNOWN + 1; op < OP_COUNT && !q.op; op++)
		if (op_set_has(&it->concerns, (enum operation)op))
			q.op = (enum operation)op;
	facts = engine_facts(a, &q);
	jv_merge(a, &facts, example);
	return facts;
}

static int say(const struct item *it, const char *kind, size_t i, const char *what,
	       const struct jv *example, struct err *err)
{
	struct buf text;

	buf_init(&text, 65536);
	jv_write(&text, example);
	err_set(err, ERR_CONFIG, "%s:%d: rule \"%s\": examples: %s[%zu] %s: %.*s", it->file,
		it->line, it->name, kind, i + 1, what,
		(int)(buf_len(&text) < SHOWN_MAX ? buf_len(&text) : SHOWN_MAX), buf_span(&text).at);
	buf_fini(&text);
	return -1;
}

/* What the rule said of it, as a sentence. */
static void describe(const struct decision *d, char *out, size_t room)
{
	const struct violation *v = &d->violations.list[0];

	snprintf(out, room, "is refused (%.80s%s%.40s%s%.60s), and must not be", v->text,
		 *v->field ? "; " : "", v->field, *v->value ? " = " : "", v->value);
}

static int check_one(struct engine *eng, const struct profile *p, const struct item *it,
		     const struct jv *example, const char *kind, size_t i, struct err *err)
{
	struct arena *a = arena_create(ARENA_MAX);
	struct decision d = {0};
	struct err trouble = {0};
	char text[ERR_MSG_MAX];
	bool must = strcmp(kind, "match") == 0;
	struct jv facts;
	int rc = 0;

	if (!a)
		return err_set(err, ERR_SYSTEM, "no memory");
	facts = complete(a, it, example);
	if (rule_run_alone(eng, p, it, &facts, a, &d, &trouble) < 0) {
		snprintf(text, sizeof(text), "fails (%.150s)", trouble.msg);
		rc = say(it, kind, i, text, example, err);
	} else if (must && !d.violations.count) {
		rc = say(it, kind, i, "is not refused, and must be", example, err);
	} else if (!must && d.violations.count) {
		describe(&d, text, sizeof(text));
		rc = say(it, kind, i, text, example, err);
	}
	arena_destroy(a);
	return rc;
}

static int check_list(struct engine *eng, const struct profile *p, const struct item *it,
		      const struct jv *list, const char *kind, struct err *err)
{
	for (size_t i = 0; list->kind == JV_ARRAY && i < list->count; i++)
		if (check_one(eng, p, it, &list->items[i], kind, i, err) < 0)
			return -1;
	return 0;
}

int examples_check_all(struct engine *eng, struct err *err)
{
	for (size_t i = 0; i < eng->profile_count; i++) {
		const struct profile *p = eng->profiles[i];

		for (size_t k = p->inherited_count; k < p->item_count; k++)
			if (check_list(eng, p, p->items[k], &p->items[k]->match, "match", err) <
				    0 ||
			    check_list(eng, p, p->items[k], &p->items[k]->not_match, "not_match",
				       err) < 0)
				return -1;
	}
	return 0;
}
