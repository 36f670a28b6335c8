/* The setting `sandbox`, in its one form: times in seconds, sizes in bytes. */
#include "rules/settings_priv.h"

#include "rules/match_priv.h"

#include <string.h>

#define LIFETIME_MAX 31536000 /* seconds: a year */

enum member_kind { MEMBER_TEXT = 0, MEMBER_TIME, MEMBER_SIZE, MEMBER_SWITCH };

static const struct member {
	const char *name;
	enum member_kind kind;
} members[] = {
	{"image", MEMBER_TEXT}, {"lifetime", MEMBER_TIME}, {"idle", MEMBER_TIME},
	{"disk", MEMBER_SIZE},  {"output", MEMBER_SIZE},   {"per_call", MEMBER_SWITCH},
};
#define MEMBERS (sizeof(members) / sizeof(*members))

static const struct member *find(struct span name)
{
	for (size_t i = 0; i < MEMBERS; i++)
		if (span_is(name, members[i].name))
			return &members[i];
	return NULL;
}

/* "90s", "30m", "2h", "1d", or a number of seconds. */
static bool read_time(const struct jv *v, int64_t *ret)
{
	static const char letters[] = "smhd";
	static const int64_t units[] = {1, 60, 3600, 86400};
	const char *unit;
	int64_t n = 0;

	if (v->kind == JV_INT) {
		*ret = v->i;
		return v->i > 0 && v->i <= LIFETIME_MAX;
	}
	if (v->kind != JV_STRING || v->str.len < 2 || v->str.len > 9)
		return false;
	for (size_t i = 0; i + 1 < v->str.len; i++) {
		if (v->str.at[i] < '0' || v->str.at[i] > '9')
			return false;
		n = n * 10 + (v->str.at[i] - '0');
	}
	unit = strchr(letters, v->str.at[v->str.len - 1]);
	if (!unit || !*unit)
		return false;
	*ret = n * units[unit - letters];
	return *ret > 0 && *ret <= LIFETIME_MAX;
}

static bool read_size(const struct jv *v, int64_t *ret)
{
	if (v->kind == JV_STRING)
		return size_parse(v->str, ret) && *ret >= 4096;
	*ret = v->i;
	return v->kind == JV_INT && v->i >= 4096;
}

static int check_member(const struct member *m, struct jv *v, struct err *err)
{
	int64_t n = 0;

	switch (m->kind) {
	case MEMBER_TEXT:
		if (v->kind == JV_STRING && v->str.len && v->str.len <= 512)
			return 0;
		return err_set(err, ERR_CONFIG, "%s: an image is expected", m->name);
	case MEMBER_TIME:
		if (!read_time(v, &n))
			return err_set(err, ERR_CONFIG,
				       "%s: a time like \"30m\" is expected (s, m, h, d)", m->name);
		break;
	case MEMBER_SIZE:
		if (!read_size(v, &n))
			return err_set(err, ERR_CONFIG,
				       "%s: a size like \"256MiB\" is expected, at least 4KiB",
				       m->name);
		break;
	case MEMBER_SWITCH:
		if (v->kind != JV_BOOL)
			return err_set(err, ERR_CONFIG, "%s: true or false is expected", m->name);
		return 0;
	}
	*v = jv_int(n);
	return 0;
}

int settings_check_sandbox(struct jv *v, struct arena *a, struct err *err)
{
	(void)a;
	if (v->kind == JV_ARRAY && !v->count)
		*v = jv_object();
	if (v->kind != JV_OBJECT)
		return err_set(err, ERR_CONFIG,
			       "{ image = \"...\", lifetime = \"30m\" } is expected");
	for (size_t i = 0; i < v->count; i++) {
		const struct member *m = find(v->members[i].key);

		if (!m)
			return err_set(err, ERR_CONFIG,
				       "\"%.40s\" is not known here (image, lifetime, idle, disk, "
				       "output and per_call are)",
				       v->members[i].key.at);
		if (check_member(m, &v->members[i].value, err) < 0)
			return -1;
	}
	return 0;
}

/* Whether the child's word is no looser.  What one of them does not say is looked at elsewhere. */
static bool is_within(const struct member *m, const struct jv *outer, const struct jv *inner)
{
	switch (m->kind) {
	case MEMBER_TEXT:
		return true;
	case MEMBER_TIME:
	case MEMBER_SIZE:
		return inner->i <= outer->i;
	case MEMBER_SWITCH:
		return inner->b || !outer->b;
	}
	return false;
}

int settings_sandbox_meet(const struct jv *parent, const struct jv *child, struct arena *a,
			  struct jv *ret, struct err *err)
{
	*ret = jv_object();
	for (size_t i = 0; i < MEMBERS; i++) {
		const char *name = members[i].name;
		const struct jv *outer = jv_get(parent, name), *inner = jv_get(child, name);

		if (outer && inner && !is_within(&members[i], outer, inner))
			return err_set(err, ERR_CONFIG, "%s", name);
		if (inner || outer)
			jv_set(a, ret, name, inner ? *inner : *outer);
	}
	return 0;
}

/* Of what outer bounds, inner must say at least as much. */
bool settings_sandbox_within(const struct jv *outer, const struct jv *inner)
{
	for (size_t i = 0; i < MEMBERS; i++) {
		const struct jv *most = jv_get(outer, members[i].name);
		const struct jv *its = jv_get(inner, members[i].name);

		if (most && members[i].kind != MEMBER_TEXT &&
		    (!its || !is_within(&members[i], most, its)))
			return false;
	}
	return true;
}
