#include "gate/base/capability.h"
#include "gate/base/jv.h"
#include "gate/base/seccomp_priv.h"

#include <seccomp.h>
#include <stdio.h>
#include <string.h>

static const char *const actions[] = {
#define ACTION(id, name, value) name,
#include "gate/base/seccomp_profile.def"
#undef ACTION
};
_Static_assert(sizeof(actions) / sizeof(*actions) == SECCOMP_ACTION_COUNT, "a row each");

static const char *const operators[] = {
#define OPERATOR(id, name) name,
#include "gate/base/seccomp_profile.def"
#undef OPERATOR
};
_Static_assert(sizeof(operators) / sizeof(*operators) == SECCOMP_OPERATOR_COUNT, "a row each");

static const struct {
	const char *machine, *kernel, *arch;
} machines[] = {
#define MACHINE(go, kernel, arch) {go, kernel, arch},
#include "gate/base/seccomp_profile.def"
#undef MACHINE
};
#define MACHINES (sizeof(machines) / sizeof(*machines))

const char *seccomp_action_name(enum seccomp_action a)
{
	return actions[a];
}

const char *seccomp_operator_name(enum seccomp_operator op)
{
	return operators[op];
}

const char *seccomp_machine(struct span kernel_name)
{
	for (size_t i = 0; i < MACHINES; i++)
		if (span_is(kernel_name, machines[i].kernel) ||
		    span_is(kernel_name, machines[i].machine))
			return machines[i].machine;
	return NULL;
}

const char *seccomp_arch_of(const char *machine)
{
	for (size_t i = 0; i < MACHINES; i++)
		if (strcmp(machine, machines[i].machine) == 0)
			return machines[i].arch;
	return NULL;
}

static uint32_t token_of(struct span arch)
{
	char name[32];

	if (arch.len <= 10 || arch.len >= sizeof(name) || !span_starts(arch, "SCMP_ARCH_"))
		return 0;
	for (size_t i = 10; i < arch.len; i++)
		name[i - 10] =
			(char)(arch.at[i] | (arch.at[i] >= 'A' && arch.at[i] <= 'Z' ? 32 : 0));
	name[arch.len - 10] = 0;
	return seccomp_arch_resolve_name(name);
}

const char *seccomp_this_machine(void)
{
	for (size_t i = 0; i < MACHINES; i++)
		if (token_of(span_of(machines[i].arch)) == seccomp_arch_native())
			return machines[i].machine;
	return NULL;
}

/* --- reading --- */

struct reading {
	struct arena *arena;
	enum seccomp_form form;
	struct seccomp_profile *profile;
	struct err *err;
};

static int wrong(const struct reading *r, const char *what)
{
	return err_set(r->err, ERR_INPUT, "%s", what);
}

/* Keys beyond these that carry a value are refused; `keys` ends with NULL. */
static int only_keys(const struct reading *r, const struct jv *object, const char *const *keys)
{
	if (object->kind != JV_OBJECT)
		return err_set(r->err, ERR_INPUT, "an object is wanted, not %s",
			       jv_kind_name(object->kind));
	for (size_t i = 0; i < object->count; i++) {
		const struct jv_member *m = &object->members[i];
		size_t k = 0;

		while (keys[k] && !span_is(m->key, keys[k]))
			k++;
		if (!keys[k] && !jv_is_neutral(&m->value))
			return err_set(r->err, ERR_INPUT, "the key \"%.*s\" is not known",
				       (int)(m->key.len > 64 ? 64 : m->key.len), m->key.at);
	}
	return 0;
}

/* NULL if it is absent, null or empty: *ret_ok says whether that is all. */
static const struct jv *list_of(const struct reading *r, const struct jv *object, const char *key,
				bool *ret_ok)
{
	const struct jv *list = jv_get(object, key);

	*ret_ok = !list || list->kind == JV_NULL || list->kind == JV_ARRAY;
	if (!*ret_ok)
		err_set(r->err, ERR_INPUT, "%s: a list is wanted", key);
	return list && list->kind == JV_ARRAY && list->count ? list : NULL;
}

static int read_word(const struct reading *r, const struct jv *v, const char *const *words,
		     size_t count, size_t *ret)
{
	if (!v || v->kind != JV_STRING)
		return wrong(r, "a name is wanted");
	for (size_t i = 0; i < count; i++)
		if (span_is(v->str, words[i])) {
			*ret = i;
			return 0;
		}
	return err_set(r->err, ERR_INPUT, "\"%.*s\" is not known",
		       (int)(v->str.len > 64 ? 64 : v->str.len), v->str.at);
}

static int read_action(const struct reading *r, const struct jv *object, const char *key,
		       enum seccomp_action *ret)
{
	const struct jv *v = jv_get(object, key);
	size_t i = SECCOMP_KILL_THREAD;

	/* An old name, which all readers take for this one. */
	if (!(v && v->kind == JV_STRING && span_is(v->str, "SCMP_ACT_KILL")) &&
	    read_word(r, v, actions, SECCOMP_ACTION_COUNT, &i) < 0)
		return err_wrap(r->err, "%s", key);
	*ret = (enum seccomp_action)i;
	return 0;
}

static int read_errno(const struct reading *r, const struct jv *object, const char *key, int *ret)
{
	const struct jv *v = jv_get(object, key);

	*ret = -1;
	if (!v || v->kind == JV_NULL)
		return 0;
	if (v->kind != JV_INT || v->i < 0 || v->i > 4095)
		return err_set(r->err, ERR_INPUT, "%s: a number of 0 to 4095 is wanted", key);
	*ret = (int)v->i;
	return 0;
}

static int read_words(const struct reading *r, const struct jv *list, const struct span **ret,
		      size_t *ret_count)
{
	struct span *words;

	*ret_count = 0;
	if (!list)
		return 0;
	if (list->count > SECCOMP_ARCHES_MAX)
		return wrong(r, "too many entries");
	words = arena_take(r->arena, list->count * sizeof(*words));
	if (!words)
		return err_set(r->err, ERR_LIMIT, "no memory");
	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].kind != JV_STRING || !list->items[i].str.len)
			return wrong(r, "a list of names is wanted");
		words[i] = list->items[i].str;
	}
	*ret = words;
	*ret_count = list->count;
	return 0;
}

static int read_capabilities(const struct reading *r, const struct jv *list, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; list && i < list->count; i++) {
		struct span name = list->items[i].kind == JV_STRING ? list->items[i].str
								    : (struct span){"", 0};
		uint64_t bit = span_starts(name, "CAP_") && !span_is(name, "CAP_ALL")
				       ? capability_bit(span_skip(name, 4))
				       : 0;

		if (!bit)
			return err_set(r->err, ERR_INPUT,
				       "caps[%zu]: the capability is not known; they are written "
				       "CAP_SYS_ADMIN",
				       i);
		*ret |= bit;
	}
	return 0;
}

static int read_kernel(const struct reading *r, const struct jv *v, struct span *ret)
{
	*ret = (struct span){"", 0};
	if (!v || v->kind == JV_NULL)
		return 0;
	if (v->kind != JV_STRING || v->str.len > 32)
		return wrong(r, "minKernel: a version as \"4.8\" is wanted");
	*ret = v->str;
	return 0;
}

static int read_when(const struct reading *r, const struct jv *entry, const char *key,
		     struct seccomp_when *ret)
{
	static const char *const keys[] = {"caps", "arches", "minKernel", NULL};
	const struct jv *v = jv_get(entry, key), *caps, *arches;
	bool fine_caps, fine_arches;

	*ret = (struct seccomp_when){.kernel = {"", 0}};
	if (!v || v->kind == JV_NULL)
		return 0;
	if (only_keys(r, v, keys) < 0)
		return err_wrap(r->err, "%s", key);
	caps = list_of(r, v, "caps", &fine_caps);
	arches = list_of(r, v, "arches", &fine_arches);
	if (!fine_caps || !fine_arches || read_capabilities(r, caps, &ret->capabilities) < 0 ||
	    read_words(r, arches, &ret->machines, &ret->machine_count) < 0 ||
	    read_kernel(r, jv_get(v, "minKernel"), &ret->kernel) < 0)
		return err_wrap(r->err, "%s", key);
	return 0;
}

static int read_number(const struct reading *r, const struct jv *object, const char *key,
		       uint64_t *ret)
{
	const struct jv *v = jv_get(object, key);

	*ret = 0;
	if (!v || v->kind == JV_NULL)
		return 0;
	if (v->kind != JV_INT || v->i < 0)
		return err_set(r->err, ERR_INPUT, "%s: a number from 0 on is wanted", key);
	*ret = (uint64_t)v->i;
	return 0;
}

static int read_condition(const struct reading *r, const struct jv *v,
			  struct seccomp_condition *ret)
{
	static const char *const keys[] = {"index", "value", "valueTwo", "op", NULL};
	uint64_t index;
	size_t op;

	if (only_keys(r, v, keys) < 0 || read_number(r, v, "index", &index) < 0 ||
	    read_number(r, v, "value", &ret->value) < 0 ||
	    read_number(r, v, "valueTwo", &ret->two) < 0)
		return -1;
	if (read_word(r, jv_get(v, "op"), operators, SECCOMP_OPERATOR_COUNT, &op) < 0)
		return err_wrap(r->err, "op");
	if (index >= SECCOMP_ARGS_MAX)
		return wrong(r, "index: a syscall has the arguments 0 to 5");
	ret->index = (unsigned)index;
	ret->op = (enum seccomp_operator)op;
	if (ret->op != SECCOMP_MASKED_EQ && ret->two)
		return wrong(r, "valueTwo: only SCMP_CMP_MASKED_EQ has one");
	if (ret->op == SECCOMP_MASKED_EQ && ret->two & ~ret->value)
		return wrong(r, "valueTwo: it has bits outside the mask, which is value");
	return 0;
}

static int read_conditions(const struct reading *r, const struct jv *entry,
			   struct seccomp_rule *ret)
{
	bool fine;
	const struct jv *list = list_of(r, entry, "args", &fine);
	unsigned seen = 0;

	if (!fine)
		return -1;
	for (size_t i = 0; list && i < list->count; i++) {
		struct seccomp_condition one;

		if (read_condition(r, &list->items[i], &one) < 0)
			return err_wrap(r->err, "args[%zu]", i);
		if (seen & 1U << one.index)
			return err_set(r->err, ERR_INPUT,
				       "args[%zu]: two conditions for one argument, of which "
				       "runtimes make "
				       "either both or one of both",
				       i);
		seen |= 1U << one.index;
		ret->args[ret->arg_count++] = one;
	}
	return 0;
}

static bool is_call_name(struct span name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.at[i];

		if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_')
			return false;
	}
	return name.len > 0 && name.len <= 64;
}

static int read_names(const struct reading *r, const struct jv *entry, struct seccomp_rule *ret)
{
	const struct jv *list = jv_get(entry, "names");

	if (!list || list->kind != JV_ARRAY || !list->count)
		return wrong(r, "names: a list of syscalls is wanted");
	r->profile->name_total += list->count;
	if (list->count > SECCOMP_NAMES_MAX || r->profile->name_total > SECCOMP_NAMES_MAX)
		return err_set(r->err, ERR_LIMIT, "more than %d syscalls", SECCOMP_NAMES_MAX);
	ret->names = arena_take(r->arena, list->count * sizeof(*ret->names));
	if (!ret->names)
		return err_set(r->err, ERR_LIMIT, "no memory");
	for (size_t i = 0; i < list->count; i++) {
		const struct jv *name = &list->items[i];

		if (name->kind != JV_STRING || !is_call_name(name->str))
			return err_set(r->err, ERR_INPUT, "names[%zu]: no name of a syscall", i);
		ret->names[i].text = name->str;
		ret->names[i].nr = seccomp_syscall_resolve_name(name->str.at);
	}
	ret->name_count = list->count;
	return 0;
}

static int read_rule(const struct reading *r, const struct jv *entry, struct seccomp_rule *ret)
{
	/* "errno" is Podman's, for people; "comment" is Docker's. */
	static const char *const keys[] = {"names",   "action",   "errnoRet", "errno", "args",
					   "comment", "includes", "excludes", NULL};

	if (only_keys(r, entry, keys) < 0 || read_names(r, entry, ret) < 0 ||
	    read_action(r, entry, "action", &ret->action) < 0 ||
	    read_errno(r, entry, "errnoRet", &ret->errno_ret) < 0 ||
	    read_conditions(r, entry, ret) < 0 ||
	    read_when(r, entry, "includes", &ret->includes) < 0)
		return -1;
	return read_when(r, entry, "excludes", &ret->excludes);
}

static int read_rules(const struct reading *r, const struct jv *doc)
{
	struct seccomp_profile *p = r->profile;
	bool fine;
	const struct jv *list = list_of(r, doc, "syscalls", &fine);

	if (!fine || !list)
		return fine ? 0 : -1;
	if (list->count > SECCOMP_RULES_MAX)
		return err_set(r->err, ERR_LIMIT, "syscalls: more than %d entries",
			       SECCOMP_RULES_MAX);
	p->rules = arena_take(r->arena, list->count * sizeof(*p->rules));
	if (!p->rules)
		return err_set(r->err, ERR_LIMIT, "no memory");
	for (size_t i = 0; i < list->count; i++)
		if (read_rule(r, &list->items[i], &p->rules[i]) < 0)
			return err_wrap(r->err, "syscalls[%zu]", i);
	p->rule_count = list->count;
	return 0;
}

static int known_arches(const struct reading *r, const struct seccomp_arches *a)
{
	if (a->native.len && !token_of(a->native))
		return wrong(r, "an architecture that is not known");
	for (size_t i = 0; i < a->other_count; i++)
		if (!token_of(a->others[i]))
			return wrong(r, "an architecture that is not known");
	return 0;
}

static int read_mapped(const struct reading *r, const struct jv *v, struct seccomp_arches *ret)
{
	static const char *const keys[] = {"architecture", "subArchitectures", NULL};
	const struct jv *native = jv_get(v, "architecture"), *others;
	bool fine;

	if (only_keys(r, v, keys) < 0)
		return -1;
	if (!native || native->kind != JV_STRING)
		return wrong(r, "architecture: a name is wanted");
	others = list_of(r, v, "subArchitectures", &fine);
	if (!fine || read_words(r, others, &ret->others, &ret->other_count) < 0)
		return -1;
	ret->native = native->str;
	return known_arches(r, ret);
}

static int read_arches(const struct reading *r, const struct jv *doc)
{
	struct seccomp_profile *p = r->profile;
	bool fine_map, fine_list;
	const struct jv *map = list_of(r, doc, "archMap", &fine_map);
	const struct jv *list = list_of(r, doc, "architectures", &fine_list);

	if (!fine_map || !fine_list)
		return -1;
	if (map && list)
		return wrong(r, "archMap and architectures: only one of them may be there");
	p->arch_count = map ? map->count : list ? 1 : 0;
	if (p->arch_count > SECCOMP_ARCHES_MAX)
		return wrong(r, "archMap: too many entries");
	p->mapped = map != NULL;
	p->arches = arena_take(r->arena, p->arch_count * sizeof(*p->arches));
	if (!p->arches)
		return err_set(r->err, ERR_LIMIT, "no memory");
	for (size_t i = 0; map && i < map->count; i++)
		if (read_mapped(r, &map->items[i], &p->arches[i]) < 0)
			return err_wrap(r->err, "archMap[%zu]", i);
	if (list && (read_words(r, list, &p->arches[0].others, &p->arches[0].other_count) < 0 ||
		     known_arches(r, &p->arches[0]) < 0))
		return err_wrap(r->err, "architectures");
	return 0;
}

static int read_flags(const struct reading *r, const struct jv *doc)
{
	bool fine;
	const struct jv *list = list_of(r, doc, "flags", &fine);

	for (size_t i = 0; list && i < list->count; i++) {
		if (list->items[i].kind != JV_STRING ||
		    !span_is(list->items[i].str, "SECCOMP_FILTER_FLAG_LOG"))
			return err_set(r->err, ERR_INPUT,
				       "flags[%zu]: only SECCOMP_FILTER_FLAG_LOG may be set", i);
		r->profile->logs = true;
	}
	return fine ? 0 : -1;
}

static struct span trimmed(struct span s)
{
	while (s.len && *s.at == ' ')
		s = span_skip(s, 1);
	return s;
}

static int read_mark(const struct reading *r, const struct jv *v, struct seccomp_mark *ret)
{
	struct span rest;

	if (v->kind != JV_STRING)
		return wrong(r, "a text as \"unshare: the reason\" is wanted");
	rest = v->str;
	if (!span_cut(&rest, ':', &ret->call) || !trimmed(rest).len)
		return wrong(r, "a reason is wanted, as in \"unshare: the reason\"");
	ret->reason = trimmed(rest);
	return 0;
}

static int read_weaker(const struct reading *r, const struct jv *list)
{
	struct seccomp_profile *p = r->profile;

	if (!list)
		return 0;
	if (list->count > SECCOMP_NAMES_MAX)
		return wrong(r, "too many entries");
	p->weaker = arena_take(r->arena, list->count * sizeof(*p->weaker));
	if (!p->weaker)
		return err_set(r->err, ERR_LIMIT, "no memory");
	for (size_t i = 0; i < list->count; i++)
		if (read_mark(r, &list->items[i], &p->weaker[i]) < 0)
			return err_wrap(r->err, "weaker[%zu]", i);
	p->weaker_count = list->count;
	return 0;
}

static int read_own(const struct reading *r, const struct jv *doc)
{
	static const char *const keys[] = {"weaker", "newer", NULL};
	const struct jv *own = jv_get(doc, "sallyport"), *weaker, *newer;
	bool fine_weaker, fine_newer;

	if (!own || own->kind == JV_NULL || r->form == SECCOMP_REQUEST)
		return 0;
	if (only_keys(r, own, keys) < 0)
		return err_wrap(r->err, "sallyport");
	weaker = list_of(r, own, "weaker", &fine_weaker);
	newer = list_of(r, own, "newer", &fine_newer);
	if (!fine_weaker || !fine_newer || read_weaker(r, weaker) < 0 ||
	    read_words(r, newer, &r->profile->newer, &r->profile->newer_count) < 0)
		return err_wrap(r->err, "sallyport");
	return 0;
}

static int read_profile(const struct reading *r, const struct jv *doc)
{
	/* "defaultErrno" is Podman's, for people. */
	static const char *const keys[] = {
		"defaultAction", "defaultErrnoRet", "defaultErrno", "archMap",   "architectures",
		"flags",         "syscalls",        "comment",      "sallyport", NULL};
	static const char *const request_keys[] = {
		"defaultAction", "defaultErrnoRet", "defaultErrno", "archMap",
		"architectures", "flags",           "syscalls",     NULL};

	if (only_keys(r, doc, r->form == SECCOMP_FILE ? keys : request_keys) < 0 ||
	    read_action(r, doc, "defaultAction", &r->profile->action) < 0 ||
	    read_errno(r, doc, "defaultErrnoRet", &r->profile->errno_ret) < 0 ||
	    read_arches(r, doc) < 0 || read_flags(r, doc) < 0 || read_rules(r, doc) < 0)
		return -1;
	return read_own(r, doc);
}

const struct seccomp_profile *seccomp_profile_parse(struct arena *a, struct span text,
						    enum seccomp_form form, struct err *err)
{
	struct reading r = {a, form, arena_take(a, sizeof(*r.profile)), err};
	enum jv_fault fault;
	struct jv doc;

	if (text.len > SECCOMP_TEXT_MAX) {
		err_set(err, ERR_LIMIT, "a profile of system calls has at most %zu bytes",
			SECCOMP_TEXT_MAX);
		return NULL;
	}
	if (!r.profile) {
		err_set(err, ERR_LIMIT, "no memory");
		return NULL;
	}
	if (jv_parse(a, text, &doc, &fault, err) < 0 || read_profile(&r, &doc) < 0)
		return NULL;
	return r.profile;
}

const char *seccomp_profile_unknown(const struct seccomp_profile *p, size_t i)
{
	for (size_t k = 0; k < p->rule_count; k++)
		for (size_t n = 0; n < p->rules[k].name_count; n++) {
			const struct seccomp_name *name = &p->rules[k].names[n];

			if (name->nr == SECCOMP_NO_NUMBER && !seccomp_is_newer(p, name->text) &&
			    i-- == 0)
				return name->text.at;
		}
	return NULL;
}

bool seccomp_is_newer(const struct seccomp_profile *p, struct span call)
{
	for (size_t i = 0; i < p->newer_count; i++)
		if (span_eq(p->newer[i], call))
			return true;
	return false;
}

bool seccomp_profile_weaker(const struct seccomp_profile *p, size_t i, struct span *ret_call,
			    struct span *ret_reason)
{
	if (i >= p->weaker_count)
		return false;
	*ret_call = p->weaker[i].call;
	*ret_reason = p->weaker[i].reason;
	return true;
}

/* --- whether a rule counts --- */

static bool has_machine(const struct seccomp_when *w, const char *machine)
{
	for (size_t i = 0; i < w->machine_count; i++)
		if (span_is(w->machines[i], machine))
			return true;
	return false;
}

bool seccomp_rule_counts(const struct seccomp_profile *p, const struct seccomp_rule *r,
			 const struct seccomp_place *at, bool more)
{
	const struct seccomp_when *in = &r->includes, *ex = &r->excludes;
	const char *machine = at->machine ? at->machine : seccomp_this_machine();

	if (!machine || has_machine(ex, machine) || (ex->capabilities & at->capabilities))
		return false;
	if ((in->machine_count && !has_machine(in, machine)) ||
	    (in->capabilities & ~at->capabilities))
		return false;
	if (in->kernel.len || ex->kernel.len)
		return (r->action > p->action) == more;
	return true;
}
