#include "rules/settings_priv.h"

#include "rules/match_priv.h"
#include "rules/tree_priv.h"
#include "rules/update_priv.h"

#include <string.h>

#define MOVES_MAX 64

/* "90s", "10m", "1h"; 0 if it is none. */
static int64_t seconds_of(const struct jv *v)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
	int64_t n = 0;
	size_t i = 0;

	if (v->kind != JV_STRING)
		return 0;
	for (; i < v->str.len && i < 6 && v->str.at[i] >= '0' && v->str.at[i] <= '9'; i++)
		n = n * 10 + (v->str.at[i] - '0');
	for (size_t u = 0; u < sizeof(units) / sizeof(*units); u++)
		if (i && i + 1 == v->str.len && v->str.at[i] == units[u].unit)
			return n * units[u].seconds;
	return 0;
}

static int check_within(struct jv *v, struct err *err)
{
	int64_t seconds = seconds_of(v);

	if (seconds < 1 || seconds > UPDATE_WITHIN_MAX)
		return err_set(err, ERR_CONFIG,
			       "within: a time like \"10m\", from \"1s\" to \"24h\", is expected");
	*v = jv_int(seconds);
	return 0;
}

static int check_changes(const struct jv *v, struct err *err)
{
	bool fine = v->kind == JV_ARRAY;

	for (size_t i = 0; fine && i < v->count; i++)
		fine = v->items[i].kind == JV_STRING &&
		       (span_is(v->items[i].str, "command") || span_is(v->items[i].str, "env") ||
			span_is(v->items[i].str, "labels"));
	return fine ? 0
		    : err_set(err, ERR_CONFIG,
			      "changes: a list of \"command\", \"env\" and \"labels\" is expected");
}

static bool is_glob(const struct jv *v)
{
	return v->kind == JV_STRING && v->str.len && v->str.len <= GLOB_MAX;
}

/* { { "from", "to" } } becomes { { from =, to = } }. */
static int check_moves(struct jv *v, struct arena *a, struct err *err)
{
	bool fine = v->kind == JV_ARRAY && v->count <= MOVES_MAX;

	for (size_t i = 0; fine && i < v->count; i++) {
		struct jv *pair = &v->items[i], move = jv_object();

		fine = pair->kind == JV_ARRAY && pair->count == 2 && is_glob(&pair->items[0]) &&
		       is_glob(&pair->items[1]);
		if (!fine)
			break;
		jv_set(a, &move, "from", pair->items[0]);
		jv_set(a, &move, "to", pair->items[1]);
		*pair = move;
	}
	return fine ? 0
		    : err_set(err, ERR_CONFIG,
			      "moves: a list of pairs of repositories in full, { { "
			      "\"docker.io/old/app\", \"ghcr.io/new/app\" } }, is expected");
}

static int check_member(const char *name, struct jv *v, struct arena *a, struct err *err)
{
	if (strcmp(name, "within") == 0)
		return check_within(v, err);
	if (strcmp(name, "changes") == 0)
		return check_changes(v, err);
	if (strcmp(name, "moves") == 0)
		return check_moves(v, a, err);
	if (strcmp(name, "fresh") != 0 && strcmp(name, "privileged") != 0)
		return err_set(err, ERR_CONFIG,
			       "\"%.40s\" is not known here (within, fresh, privileged, changes "
			       "and moves are)",
			       name);
	return v->kind == JV_BOOL ? 0
				  : err_set(err, ERR_CONFIG, "%s: true or false is expected", name);
}

int settings_check_update(struct jv *v, struct arena *a, struct err *err)
{
	struct jv out = jv_object();

	tree_expect_object(v);
	if (v->kind == JV_BOOL && !v->b)
		return 0;
	if (v->kind != JV_OBJECT && v->kind != JV_BOOL)
		return err_set(err, ERR_CONFIG, "true, false or { within = \"10m\" } is expected");
	jv_set(a, &out, "within", jv_int(UPDATE_WITHIN_DEFAULT));
	jv_set(a, &out, "fresh", jv_bool(false));
	jv_set(a, &out, "privileged", jv_bool(false));
	jv_set(a, &out, "changes", jv_array());
	jv_set(a, &out, "moves", jv_array());
	for (size_t i = 0; v->kind == JV_OBJECT && i < v->count; i++) {
		struct jv value = v->members[i].value;

		if (check_member(v->members[i].key.at, &value, a, err) < 0)
			return -1;
		jv_set(a, &out, v->members[i].key.at, value);
	}
	*v = out;
	return 0;
}

/* --- does one grant no more than another? --- */

static bool list_within(const struct jv *outer, const struct jv *inner)
{
	for (size_t i = 0; i < inner->count; i++) {
		bool found = false;

		for (size_t k = 0; k < outer->count && !found; k++)
			found = jv_equal(&outer->items[k], &inner->items[i]);
		if (!found)
			return false;
	}
	return true;
}

static bool is_on(const struct jv *v)
{
	return v && v->kind == JV_OBJECT;
}

/* Without `update` whatever the lists grant may be made, which `fresh` grants, too. */
bool settings_update_within(const struct jv *outer, const struct jv *inner)
{
	if (!is_on(inner))
		return !is_on(outer) || jv_true(outer, "fresh");
	if (!is_on(outer))
		return false;
	return jv_num(inner, "within", 0) <= jv_num(outer, "within", 0) &&
	       (jv_true(outer, "fresh") || !jv_true(inner, "fresh")) &&
	       (jv_true(outer, "privileged") || !jv_true(inner, "privileged")) &&
	       list_within(jv_get(outer, "changes"), jv_get(inner, "changes")) &&
	       list_within(jv_get(outer, "moves"), jv_get(inner, "moves"));
}
