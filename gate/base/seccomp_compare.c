/*
 * Comparing: each syscall's conditions are boxes, one range or mask an argument.
 */
#include "gate/base/capability.h"
#include "gate/base/seccomp_priv.h"

#include <seccomp.h>
#include <stdlib.h>
#include <string.h>

/* --- conditions as sets of values --- */

struct values {
	bool range; /* lo to hi; else those that are `two` under the mask, or all but lo */
	bool other;
	uint64_t lo, hi;
	uint64_t mask, two;
};

static struct values range(uint64_t lo, uint64_t hi)
{
	return (struct values){.range = true, .lo = lo, .hi = hi};
}

static struct values nothing(void)
{
	return range(1, 0);
}

static struct values all_but(uint64_t v)
{
	if (v == 0)
		return range(1, UINT64_MAX);
	if (v == UINT64_MAX)
		return range(0, UINT64_MAX - 1);
	return (struct values){.other = true, .lo = v};
}

static struct values values_of(const struct seccomp_condition *c)
{
	switch (c->op) {
	case SECCOMP_NE:
		return all_but(c->value);
	case SECCOMP_LT:
		return c->value ? range(0, c->value - 1) : nothing();
	case SECCOMP_LE:
		return range(0, c->value);
	case SECCOMP_EQ:
		return range(c->value, c->value);
	case SECCOMP_GE:
		return range(c->value, UINT64_MAX);
	case SECCOMP_GT:
		return c->value < UINT64_MAX ? range(c->value + 1, UINT64_MAX) : nothing();
	case SECCOMP_MASKED_EQ:
		if (c->value == UINT64_MAX)
			return range(c->two, c->two);
		if (!c->value)
			return range(0, UINT64_MAX);
		return (struct values){.mask = c->value, .two = c->two};
	case SECCOMP_OPERATOR_COUNT:
		break;
	}
	return nothing();
}

static bool is_mask(const struct values *v)
{
	return !v->range && !v->other;
}

static bool is_nothing(const struct values *v)
{
	return v->range && v->lo > v->hi;
}

static uint64_t least(const struct values *v)
{
	return v->range ? v->lo : is_mask(v) ? v->two : 0;
}

static uint64_t greatest(const struct values *v)
{
	return v->range ? v->hi : is_mask(v) ? v->two | ~v->mask : UINT64_MAX;
}

static bool holds(const struct values *v, uint64_t x)
{
	if (v->range)
		return x >= v->lo && x <= v->hi;
	return v->other ? x != v->lo : (x & v->mask) == v->two;
}

/* Whether all of inner is in outer; false when in doubt. */
static bool values_within(const struct values *inner, const struct values *outer)
{
	if (is_nothing(inner))
		return true;
	if (outer->range)
		return least(inner) >= outer->lo && greatest(inner) <= outer->hi;
	if (outer->other)
		return !holds(inner, outer->lo);
	if (is_mask(inner))
		return !(outer->mask & ~inner->mask) && (inner->two & outer->mask) == outer->two;
	return inner->range && inner->lo == inner->hi && holds(outer, inner->lo);
}

/* Whether they have nothing in common; false when in doubt. */
static bool values_apart(const struct values *a, const struct values *b)
{
	if (is_nothing(a) || is_nothing(b) || least(a) > greatest(b) || least(b) > greatest(a))
		return true;
	if (a->range && a->lo == a->hi)
		return !holds(b, a->lo);
	if (b->range && b->lo == b->hi)
		return !holds(a, b->lo);
	return is_mask(a) && is_mask(b) && ((a->two ^ b->two) & a->mask & b->mask);
}

/* --- one syscall in a profile --- */

struct entry {
	int nr;
	struct span name;
	const struct seccomp_rule *rule;
};

struct flat {
	const struct seccomp_profile *profile;
	struct entry *list;
	size_t count;
};

static int by_call(const struct entry *a, const struct entry *b)
{
	size_t n = a->name.len < b->name.len ? a->name.len : b->name.len;
	int order;

	if (a->nr != b->nr)
		return a->nr < b->nr ? -1 : 1;
	if (a->nr != SECCOMP_NO_NUMBER)
		return 0;
	order = memcmp(a->name.at, b->name.at, n);
	return order ? order : (a->name.len > b->name.len) - (a->name.len < b->name.len);
}

/* Shell's; the library's qsort() asks the system how much memory there is, which a confined
   process may not. */
static void sort(struct entry *list, size_t count)
{
	for (size_t gap = count / 2; gap; gap /= 2)
		for (size_t i = gap; i < count; i++) {
			struct entry one = list[i];
			size_t k = i;

			for (; k >= gap && by_call(&one, &list[k - gap]) < 0; k -= gap)
				list[k] = list[k - gap];
			list[k] = one;
		}
}

/* What the default does anyway says nothing. */
static void flatten(const struct seccomp_profile *p, const struct seccomp_place *at, bool more,
		    struct flat *ret)
{
	ret->profile = p;
	ret->count = 0;
	ret->list = calloc(p->name_total + 1, sizeof(*ret->list));
	for (size_t i = 0; ret->list && i < p->rule_count; i++) {
		const struct seccomp_rule *r = &p->rules[i];

		if (!seccomp_rule_counts(p, r, at, more))
			continue;
		for (size_t n = 0; n < r->name_count; n++)
			ret->list[ret->count++] =
				(struct entry){r->names[n].nr, r->names[n].text, r};
	}
	if (ret->count)
		sort(ret->list, ret->count);
}

/* The rules of one call. */
struct view {
	const struct entry *list;
	size_t count;
	enum seccomp_action action, usual;
	bool any, always, unclear;
};

static bool only_equal(const struct seccomp_rule *r)
{
	for (size_t i = 0; i < r->arg_count; i++)
		if (r->args[i].op != SECCOMP_EQ && r->args[i].op != SECCOMP_MASKED_EQ)
			return false;
	return true;
}

/*
 * Several rules of one call with other comparisons than "equal": libseccomp (2.5.4, tried)
 * makes a filter of some of them that is neither one nor the other.
 */
static bool is_miscompiled(const struct entry *from, size_t count)
{
	bool equal = true;

	for (size_t i = 0; i < count; i++) {
		if (!from[i].rule->arg_count)
			return false; /* which then is all that counts */
		equal = equal && only_equal(from[i].rule);
	}
	return count > 1 && !equal;
}

static struct view view_of(const struct flat *f, const struct entry *from, size_t count)
{
	struct view v = {.list = from, .count = count, .usual = f->profile->action};

	v.action = v.usual;
	v.unclear = is_miscompiled(from, count);
	for (size_t i = 0; i < count; i++) {
		enum seccomp_action action = from[i].rule->action;

		v.unclear = v.unclear || action != from[0].rule->action;
		v.action = action;
		v.any = true;
		v.always = v.always || !from[i].rule->arg_count;
	}
	if (!v.unclear && v.action == v.usual)
		v.any = v.always = false;
	return v;
}

static bool box_of(const struct seccomp_rule *r, struct values ret[SECCOMP_ARGS_MAX])
{
	for (size_t i = 0; i < SECCOMP_ARGS_MAX; i++)
		ret[i] = range(0, UINT64_MAX);
	for (size_t i = 0; i < r->arg_count; i++)
		ret[r->args[i].index] = values_of(&r->args[i]);
	for (size_t i = 0; i < SECCOMP_ARGS_MAX; i++)
		if (is_nothing(&ret[i]))
			return false;
	return true;
}

static bool is_never(const struct seccomp_rule *r)
{
	struct values box[SECCOMP_ARGS_MAX];

	return !box_of(r, box);
}

static bool rule_within(const struct seccomp_rule *inner, const struct seccomp_rule *outer)
{
	struct values a[SECCOMP_ARGS_MAX], b[SECCOMP_ARGS_MAX];

	if (!box_of(inner, a))
		return true;
	box_of(outer, b);
	for (size_t i = 0; i < SECCOMP_ARGS_MAX; i++)
		if (!values_within(&a[i], &b[i]))
			return false;
	return true;
}

static bool rules_apart(const struct seccomp_rule *x, const struct seccomp_rule *y)
{
	struct values a[SECCOMP_ARGS_MAX], b[SECCOMP_ARGS_MAX];

	if (!box_of(x, a) || !box_of(y, b))
		return true;
	for (size_t i = 0; i < SECCOMP_ARGS_MAX; i++)
		if (values_apart(&a[i], &b[i]))
			return true;
	return false;
}

/* Each box of inner in one of outer. */
static bool view_within(const struct view *inner, const struct view *outer)
{
	if (!inner->any || (outer->any && outer->always))
		return true;
	for (size_t i = 0; i < inner->count; i++) {
		bool within = is_never(inner->list[i].rule);

		for (size_t k = 0; outer->any && k < outer->count && !within; k++)
			within = rule_within(inner->list[i].rule, outer->list[k].rule);
		if (!within)
			return false;
	}
	return true;
}

static bool views_apart(const struct view *a, const struct view *b)
{
	if (!a->any || !b->any)
		return true;
	for (size_t i = 0; i < a->count; i++)
		for (size_t k = 0; k < b->count; k++)
			if (!rules_apart(a->list[i].rule, b->list[k].rule))
				return false;
	return true;
}

/* In each of the four places where a call can lie: within the rules of both, of one, of none. */
static bool no_more(const struct view *inner, const struct view *outer)
{
	if (inner->unclear || outer->unclear)
		return false;
	if (inner->any && outer->any && inner->action > outer->action && !views_apart(inner, outer))
		return false;
	if (inner->any && inner->action > outer->usual && !view_within(inner, outer))
		return false;
	if (outer->any && inner->usual > outer->action && !view_within(outer, inner))
		return false;
	return inner->usual <= outer->usual || (inner->any && inner->always) ||
	       (outer->any && outer->always);
}

/* --- two profiles --- */

struct result {
	struct seccomp_more *list;
	size_t max, count;
};

static void tell(struct result *r, struct seccomp_more one)
{
	if (r->count < r->max)
		r->list[r->count] = one;
	r->count++;
}

static enum seccomp_action strongest(const struct view *v)
{
	enum seccomp_action most = v->always ? v->action : v->usual;

	for (size_t i = 0; i < v->count; i++)
		if (v->list[i].rule->action > most)
			most = v->list[i].rule->action;
	return most;
}

static enum seccomp_action weakest(const struct view *v)
{
	enum seccomp_action least_of = v->always ? v->action : v->usual;

	for (size_t i = 0; i < v->count; i++)
		if (v->list[i].rule->action < least_of)
			least_of = v->list[i].rule->action;
	return least_of;
}

static bool has_arguments(const struct view *v)
{
	return v->any && !v->always;
}

static size_t run_of(const struct flat *f, size_t from)
{
	size_t n = from;

	while (n < f->count && by_call(&f->list[n], &f->list[from]) == 0)
		n++;
	return n - from;
}

static void compare_call(const struct view *in, const struct view *out, struct result *r)
{
	if (no_more(in, out))
		return;
	tell(r, (struct seccomp_more){
			.call = (in->count ? in : out)->list->name.at,
			.inner = strongest(in),
			.outer = weakest(out),
			.arguments = has_arguments(in) || has_arguments(out),
			.unclear = in->unclear || out->unclear,
		});
}

static void compare_calls(const struct flat *inner, const struct flat *outer, struct result *r)
{
	size_t i = 0, o = 0;

	while (i < inner->count || o < outer->count) {
		int order = i == inner->count   ? 1
			    : o == outer->count ? -1
						: by_call(&inner->list[i], &outer->list[o]);
		size_t i_count = order <= 0 ? run_of(inner, i) : 0;
		size_t o_count = order >= 0 ? run_of(outer, o) : 0;
		struct view in = view_of(inner, inner->list + i, i_count);
		struct view out = view_of(outer, outer->list + o, o_count);

		compare_call(&in, &out, r);
		i += i_count;
		o += o_count;
	}
}

/* --- architectures: the native one always counts --- */

static bool has_arch(const struct seccomp_profile *p, const char *native, struct span arch)
{
	if (span_is(arch, native))
		return true;
	for (size_t i = 0; i < p->arch_count; i++) {
		if (p->mapped && !span_is(p->arches[i].native, native))
			continue;
		for (size_t k = 0; k < p->arches[i].other_count; k++)
			if (span_eq(p->arches[i].others[k], arch))
				return true;
	}
	return false;
}

static void compare_arches(const struct seccomp_profile *inner, const struct seccomp_profile *outer,
			   const char *native, struct result *r)
{
	for (size_t i = 0; i < inner->arch_count; i++) {
		const struct seccomp_arches *a = &inner->arches[i];

		if (inner->mapped && !span_is(a->native, native))
			continue;
		for (size_t k = 0; k < a->other_count; k++)
			if (!has_arch(outer, native, a->others[k]))
				tell(r, (struct seccomp_more){.call = a->others[k].at,
							      .inner = SECCOMP_ALLOW,
							      .outer = SECCOMP_KILL_PROCESS});
	}
}

size_t seccomp_profile_more(const struct seccomp_profile *inner,
			    const struct seccomp_profile *outer, const struct seccomp_place *at,
			    struct seccomp_more *ret, size_t max)
{
	const char *machine = at->machine ? at->machine : seccomp_this_machine();
	const char *native = machine ? seccomp_arch_of(machine) : NULL;
	struct result r = {ret, max, 0};
	struct flat in, out;

	flatten(inner, at, true, &in);
	flatten(outer, at, false, &out);
	/* Without memory, or on a machine that nobody knows, nothing is shown to be no more. */
	if (!native || !in.list || !out.list || inner->action > outer->action)
		tell(&r, (struct seccomp_more){
				 .call = "*", .inner = inner->action, .outer = outer->action});
	if (native && in.list && out.list) {
		compare_arches(inner, outer, native, &r);
		compare_calls(&in, &out, &r);
	}
	free(in.list);
	free(out.list);
	return r.count;
}

const char *seccomp_profile_unclear(const struct seccomp_profile *p, const struct seccomp_place *at,
				    size_t i)
{
	const char *found = NULL;
	struct flat f;

	flatten(p, at, true, &f);
	for (size_t from = 0, n; from < f.count && !found; from += n) {
		n = run_of(&f, from);
		if (view_of(&f, f.list + from, n).unclear && i-- == 0)
			found = f.list[from].name.at;
	}
	free(f.list);
	return found;
}

/* --- whatever capabilities --- */

static uint64_t mentioned(const struct seccomp_profile *p)
{
	uint64_t all = 0;

	for (size_t i = 0; i < p->rule_count; i++)
		all |= p->rules[i].includes.capabilities | p->rules[i].excludes.capabilities;
	return all;
}

struct union_of {
	struct arena *arena;
	struct result result;
};

static void join(struct union_of *u, const struct seccomp_more *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t known = u->result.count < u->result.max ? u->result.count : u->result.max;
		bool seen = false;

		for (size_t k = 0; k < known && !seen; k++)
			seen = strcmp(u->result.list[k].call, list[i].call) == 0;
		if (!seen)
			tell(&u->result, list[i]);
	}
}

size_t seccomp_profile_more_anywhere(const struct seccomp_profile *inner,
				     const struct seccomp_profile *outer, struct arena *a,
				     struct seccomp_more *ret, size_t max)
{
	uint64_t usual = capability_engine_default();
	uint64_t named = mentioned(inner) | mentioned(outer);
	struct union_of u = {a, {ret, max, 0}};
	size_t room = inner->name_total + outer->name_total + SECCOMP_ARCHES_MAX * 2 + 1;
	struct seccomp_more *found = arena_take(a, room * sizeof(*found));

	if (!found) {
		tell(&u.result, (struct seccomp_more){.call = "*"});
		return u.result.count;
	}
	for (unsigned i = 0; i <= 64; i++) {
		uint64_t bit = i < 64 ? UINT64_C(1) << i : 0;
		struct seccomp_place at = {.capabilities = usual ^ bit};
		size_t count;

		if (bit && !(named & bit))
			continue;
		count = seccomp_profile_more(inner, outer, &at, found, room);
		join(&u, found, count < room ? count : room);
	}
	return u.result.count;
}

/* --- what we take a profile to do --- */

enum seccomp_action seccomp_profile_action(const struct seccomp_profile *p,
					   const struct seccomp_place *at, int nr,
					   const uint64_t args[SECCOMP_ARGS_MAX])
{
	struct flat f;
	enum seccomp_action found = p->action;

	flatten(p, at, false, &f);
	for (size_t i = 0; f.list && i < f.count; i++) {
		struct values box[SECCOMP_ARGS_MAX];
		bool in = f.list[i].nr == nr && box_of(f.list[i].rule, box);

		for (size_t k = 0; in && k < SECCOMP_ARGS_MAX; k++)
			in = holds(&box[k], args[k]);
		if (in)
			found = f.list[i].rule->action;
	}
	free(f.list);
	return found;
}
