#include "rules/engine_priv.h"

#include "rules/heap_priv.h"
#include "rules/library_priv.h"
#include "rules/update_priv.h"

#include <assert.h>
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

/* --- under sandbox_call(): a Lua error leaves these by longjmp, so they own nothing --- */

/* What the rule that has just run said, from what was there before. */
static enum rule_outcome outcome_of(const struct judging *call, const struct judging *before)
{
	if (call->hard_count > before->hard_count)
		return OUTCOME_DENIED;
	if (call->ask_count > before->ask_count)
		return OUTCOME_ASKED;
	if (call->soft_count + call->soft_ask_count > before->soft_count + before->soft_ask_count)
		return OUTCOME_SOFTENED;
	return OUTCOME_PASSED;
}

static struct rule_trace *traced(const struct engine *eng, const struct item *it)
{
	for (size_t i = 0; eng->trace && i < eng->trace->count; i++)
		if (eng->trace->list[i].rule == it->name && eng->trace->list[i].line == it->line)
			return &eng->trace->list[i];
	return NULL;
}

static void run_item(lua_State *lua, struct judging *call, const struct item *it)
{
	int top = lua_gettop(lua);
	struct rule_trace *t = traced(engine_of(lua), it);
	struct judging before = *call;
	size_t warned = call->decision->warning_count, excepted = call->decision->excepted_count;

	call->item = it;
	if (t)
		t->outcome = OUTCOME_FAILED; /* unless it comes back */
	lua_rawgeti(lua, LUA_REGISTRYINDEX, it->function);
	facts_push(lua, call->facts);
	/* Standard checks see the settings; rules are the settings' equals. */
	if (it->is_check)
		facts_push(lua, &call->profile->settings);
	lua_call(lua, it->is_check ? 2 : 1, LUA_MULTRET);
	for (int i = top + 1; i <= lua_gettop(lua); i++)
		if (!saying_is_verdict(lua, i))
			luaL_error(lua, "%s:%d: rule \"%s\" returned a %s, which is no verdict",
				   it->file, it->line, it->name, luaL_typename(lua, i));
	lua_settop(lua, top);
	if (!t)
		return;
	t->outcome = outcome_of(call, &before);
	if (t->outcome == OUTCOME_PASSED &&
	    (call->decision->excepted_count > excepted || call->kept_count > before.kept_count))
		t->outcome = OUTCOME_SOFTENED;
	else if (t->outcome == OUTCOME_PASSED && call->decision->warning_count > warned)
		t->outcome = OUTCOME_WARNED;
}

/* Who wrote the rules said for this one alone how it judges. */
static bool has_its_mode(const struct judging *call, const struct item *it)
{
	return it->has_mode ||
	       (it->is_check && jv_get(jv_get(&call->profile->settings, "modes"), it->name));
}

/* Whether an operator's word can set it aside: who may operate is not who may approve. */
static bool is_firm(const struct judging *call, const struct item *it, enum reason r, bool ask)
{
	return ask || reason_is_floor(r) || has_its_mode(call, it);
}

enum rule_mode judging_mode(const struct judging *call, const struct item *it, enum reason r,
			    bool ask)
{
	enum rule_mode own = it->has_mode   ? it->mode
			     : it->is_check ? (enum rule_mode)call->profile->check_modes[it->index]
					    : call->profile->mode;

	if (call->alone)
		return MODE_ENFORCE;
	if (own != MODE_ENFORCE || !call->override || is_firm(call, it, r, ask))
		return own;
	return call->override->mode;
}

static bool is_update(const struct item *it)
{
	return it->is_check && strcmp(it->name, "update") == 0;
}

static bool applies(const struct judging *call, const struct item *it)
{
	if (call->again && it->is_check && strcmp(it->name, "quota") == 0)
		return false;
	return op_set_has(&it->concerns, call->op) && (!call->closed || it->also_closed);
}

static int judge_protected(lua_State *lua)
{
	struct judging *call = lua_touserdata(lua, 1);
	const struct engine *eng = engine_of(lua);

	for (size_t i = 0; i < eng->check_count; i++)
		if (applies(call, &eng->items[i]))
			run_item(lua, call, &eng->items[i]);
	for (size_t i = 0; i < call->profile->item_count; i++)
		if (applies(call, call->profile->items[i]))
			run_item(lua, call, call->profile->items[i]);
	return 0;
}

static int harden_protected(lua_State *lua)
{
	struct judging *call = lua_touserdata(lua, 1);

	lua_rawgeti(lua, LUA_REGISTRYINDEX, engine_of(lua)->harden_function);
	facts_push(lua, call->facts);
	facts_push(lua, &call->profile->settings);
	lua_call(lua, 2, 0);
	return 0;
}

/* --- around it --- */

static int run(struct engine *eng, lua_CFunction fn, struct judging *call, struct err *err)
{
	int result;

	assert(!eng->call);
	eng->call = call;
	result = sandbox_call(eng->sb, &eng->judge_limits, fn, call, err);
	eng->call = NULL;
	heap_restore(eng->sb->heap);
	call->excepting = false;
	if (result < 0 && eng->sb->stop == STOP_HOST)
		err_set(err, ERR_LIMIT, "the request needs more memory than it may take");
	return result;
}

static bool needs_lua(const struct engine *eng, const struct judging *call)
{
	if (!call->closed)
		return profile_grant(call->profile, call->op) == GRANT_JUDGE;
	for (size_t i = 0; i < eng->check_count; i++)
		if (applies(call, &eng->items[i]))
			return true;
	return false;
}

static enum operation operation_of(const struct jv *facts)
{
	const struct jv *name = jv_path(facts, "operation.name");

	return name && name->kind == JV_STRING ? operation_find(name->str) : OP_UNKNOWN;
}

/* Denies, with the trouble before whatever else was found. */
static int trouble(struct judging *call, enum reason reason, const struct err *err)
{
	struct decision *d = call->decision;
	struct violations *v = &d->violations;
	const char *text = arena_strndup(call->arena, err->msg, strlen(err->msg));

	if (v->count == VIOLATIONS_MAX) {
		v->count--;
		v->dropped++;
	}
	memmove(&v->list[1], &v->list[0], v->count * sizeof(*v->list));
	v->list[0] = (struct violation){
		reason, call->item ? call->item->name : "gate", "", "", text ? text : "", ""};
	v->count++;
	d->verdict = d->would = VERDICT_DENY;
	d->rule = v->list[0].rule;
	return -1;
}

static enum reason reason_of_stop(enum sandbox_stop stop)
{
	switch (stop) {
	case STOP_INSTRUCTIONS:
	case STOP_TIME:
	case STOP_MEMORY:
		return REASON_rule_limit;
	case STOP_HOST:
		return REASON_no_memory;
	case STOP_RAISED:
	case STOP_NONE:
		break;
	}
	return REASON_rule_error;
}

/* Denials first, then what asks a person; what a mode softened stands behind, for the record. */
static void put_in_order(struct judging *call)
{
	struct violations *v = &call->decision->violations, sorted = *v;
	size_t n = 0;

	for (int rank = 0; rank < 3; rank++)
		for (size_t i = 0; i < v->count; i++)
			if (rank == (call->soft[i] ? 2 : call->ask[i] ? 1 : 0))
				sorted.list[n++] = v->list[i];
	*v = sorted;
}

static void conclude(struct judging *call)
{
	struct decision *d = call->decision;

	put_in_order(call);
	d->verdict = call->hard_count  ? VERDICT_DENY
		     : call->ask_count ? VERDICT_ASK
				       : VERDICT_ALLOW;
	d->would = call->soft_count       ? VERDICT_DENY
		   : call->soft_ask_count ? VERDICT_ASK
					  : d->verdict;
	if (d->verdict == VERDICT_DENY)
		d->would = VERDICT_DENY;
	d->rule = d->verdict == VERDICT_ALLOW ? "operations" : d->violations.list[0].rule;
}

static void refuse_operation(struct judging *call)
{
	struct violation *v = violations_add(&call->decision->violations, REASON_operation);

	*v = profile_refusal(call->profile, call->op, call->arena);
	call->hard_count++;
}

static void begin(struct judging *call)
{
	struct decision *d = call->decision;

	d->verdict = d->would = VERDICT_DENY;
	d->override = call->override;
	d->mode = call->override && call->profile->mode == MODE_ENFORCE ? call->override->mode
									: call->profile->mode;
	d->profile = call->profile->name;
	d->profile_hash = call->profile->hash;
	d->rule = "";
	d->violations.count = d->violations.dropped = 0;
	d->warning_count = 0;
	d->excepted_count = 0;
}

/* All rules that the profile has, none of which has run. */
static void begin_trace(struct engine *eng, const struct profile *p)
{
	struct engine_trace *t = eng->trace;

	if (!t)
		return;
	t->count = 0;
	for (size_t i = 0; i < eng->check_count + p->item_count && t->count < TRACE_MAX; i++) {
		const struct item *it =
			i < eng->check_count ? &eng->items[i] : p->items[i - eng->check_count];

		t->list[t->count++] = (struct rule_trace){it->name, it->doc,      it->file,
							  it->line, it->is_check, OUTCOME_NOT_RUN};
	}
}

static void on_line(void *arg, const char *file, int line)
{
	const struct engine_trace *t = arg;

	t->on_line(t->arg, file, line);
}

void engine_watch(struct engine *eng, struct engine_trace *trace)
{
	eng->trace = trace;
	eng->sb->on_line = trace && trace->on_line ? on_line : NULL;
	eng->sb->on_line_arg = trace;
}

static int alone_protected(lua_State *lua)
{
	struct judging *call = lua_touserdata(lua, 1);

	run_item(lua, call, call->alone);
	return 0;
}

/* Seven parameters: the contract has them. NOLINTNEXTLINE(readability-function-size) */
int rule_run_alone(struct engine *eng, const struct profile *p, const struct item *it,
		   const struct jv *facts, struct arena *a, struct decision *ret, struct err *err)
{
	struct judging call = {
		.profile = p, .facts = facts, .arena = a, .decision = ret, .alone = it};

	begin(&call);
	call.held_off = true;
	return run(eng, alone_protected, &call, err);
}

/* --- updates --- */

/* Where the check of updates only looks on, the others judge as ever. */
static bool is_enforced(const struct engine *eng, const struct judging *call)
{
	for (size_t i = 0; i < eng->check_count; i++)
		if (is_update(&eng->items[i]))
			return judging_mode(call, &eng->items[i], REASON_update_looser, false) ==
			       MODE_ENFORCE;
	return false;
}

/* Whether what is looser may pass all the same: then it is for the others to judge. */
static bool may_be_excepted(const struct profile *p)
{
	for (size_t i = 0; i < p->exception_count; i++)
		if (strcmp(p->exceptions[i]->rule, "update") == 0)
			return true;
	return false;
}

static int weigh_update(const struct engine *eng, struct judging *call)
{
	struct violations *faults;

	if (!call->profile->update || !update_compares(call->op))
		return 0;
	faults = arena_take(call->arena, sizeof(*faults));
	if (!faults)
		return -1;
	*faults = update_faults(call->facts, call->profile->update, call->op, call->arena);
	call->update = faults;
	/* Behind a fault that denies anyway the others have nothing to say. */
	call->keeps =
		jv_get(call->facts, "replaces") &&
		(!faults->count || (is_enforced(eng, call) && !may_be_excepted(call->profile)));
	return 0;
}

static const char *put_together(struct arena *a, const char *text, const struct violation *why)
{
	char both[400];
	const char *copy, *said = *why->text ? why->text : reason_what(why->reason);

	snprintf(both, sizeof(both), "%s: %.60s: %.240s", text, reason_name(why->reason), said);
	copy = arena_strndup(a, both, strlen(both));
	return copy ? copy : "";
}

static void refuse_to_part(struct judging *call, struct violations *ret,
			   const struct violation *why)
{
	struct violation *v = violations_add(ret, REASON_update_would_not_return);

	v->rule = "update";
	v->field = why->field;
	v->value = why->value;
	v->text = put_together(call->arena, reason_what(REASON_update_would_not_return), why);
	v->hint = "";
}

/* What would be deleted with it, and no re-creation brings back. */
static bool loses_something(struct judging *call, struct violations *ret)
{
	const struct jv *loses = jv_path(call->facts, "replaces.loses");
	bool any = loses && loses->kind == JV_ARRAY && loses->count;
	struct violation why = {.reason = REASON_update_would_not_return,
				.field = "mounts",
				.value = "",
				.text = "its volumes without a name would be deleted with it"};

	if (any && loses->items[0].kind == JV_STRING)
		why.value = loses->items[0].str.at;
	if (any)
		refuse_to_part(call, ret, &why);
	return any;
}

static bool is_absent_image(struct judging *call, struct violations *ret)
{
	const struct jv *present = jv_path(call->facts, "workload.image.present");
	struct violation why = {
		.reason = REASON_image_absent, .field = "image.given", .value = "", .text = ""};

	if (present && present->kind == JV_BOOL && present->b)
		return false;
	why.value = jv_str(jv_path(call->facts, "workload.image"), "given", "");
	refuse_to_part(call, ret, &why);
	return true;
}

static int judge_as(struct engine *eng, struct judging *call, struct err *err);

static bool is_known(const struct jv *facts)
{
	return facts && facts->kind == JV_OBJECT;
}

/* What is taken away because an exception would let it come again is so on record. */
static void note_exceptions(struct judging *call, const struct decision *again)
{
	struct decision *d = call->decision;

	for (size_t i = 0; i < again->excepted_count && d->excepted_count < EXCEPTION_USES_MAX; i++)
		d->excepted[d->excepted_count++] = again->excepted[i];
}

/*
 * What takes a container away is judged as if its re-creation came now.  0, or
 * -1 when that could not be judged.
 */
static int judge_return(struct engine *eng, struct judging *call, struct violations *ret,
			struct err *err)
{
	struct violation unknown = {
		.reason = REASON_fact_unknown, .field = "workload", .value = "", .text = ""};
	struct decision *again = arena_take(call->arena, sizeof(*again));
	struct engine_trace *trace = eng->trace;
	struct jv facts;
	int result;

	if (!again)
		return err_set(err, ERR_LIMIT, "the request needs more memory than it may take");
	if (!is_known(jv_get(call->facts, "replaces")) ||
	    !is_known(jv_get(call->facts, "workload"))) {
		refuse_to_part(call, ret, &unknown);
		return 0;
	}
	if (loses_something(call, ret) || is_absent_image(call, ret))
		return 0;
	facts = update_recreation(call->facts, call->arena);
	eng->trace = NULL; /* who looks on sees what is asked for */
	result = judge_as(eng,
			  &(struct judging){.profile = call->profile,
					    .facts = &facts,
					    .arena = call->arena,
					    .op = OP_CONTAINER_CREATE,
					    .decision = again,
					    .again = true},
			  err);
	eng->trace = trace;
	if (result == 0 && again->verdict != VERDICT_ALLOW)
		refuse_to_part(call, ret, &again->violations.list[0]);
	else if (result == 0)
		note_exceptions(call, again);
	return result;
}

static int weigh_parting(struct engine *eng, struct judging *call, struct err *err)
{
	struct violations *faults;

	if (!call->profile->update || call->closed || !update_parts(call->op))
		return 0;
	faults = arena_take(call->arena, sizeof(*faults));
	if (!faults)
		return err_set(err, ERR_LIMIT, "the request needs more memory than it may take");
	call->update = faults;
	return judge_return(eng, call, faults, err);
}

static int judge_as(struct engine *eng, struct judging *call, struct err *err)
{
	begin(call);
	begin_trace(eng, call->profile);
	call->closed = !op_set_has(&call->profile->granted, call->op);
	if (!facts_fit(call->facts, FACTS_MAX)) {
		err_set(err, ERR_LIMIT, "the facts of the request take more than %d bytes",
			FACTS_MAX);
		return trouble(call, REASON_facts_too_large, err);
	}
	if (weigh_parting(eng, call, err) < 0)
		return trouble(call, REASON_rule_error, err);
	if (weigh_update(eng, call) < 0) {
		err_set(err, ERR_LIMIT, "the request needs more memory than it may take");
		return trouble(call, REASON_no_memory, err);
	}
	if (needs_lua(eng, call) && run(eng, judge_protected, call, err) < 0)
		return trouble(call, reason_of_stop(eng->sb->stop), err);
	if (call->closed)
		refuse_operation(call);
	if (arena_spent(call->arena)) {
		err_set(err, ERR_LIMIT, "the request needs more memory than it may take");
		return trouble(call, REASON_no_memory, err);
	}
	conclude(call);
	return 0;
}

int engine_judge_under(struct engine *eng, const struct matter *what, struct arena *a,
		       struct decision *ret, struct err *err)
{
	struct judging call = {
		.profile = what->profile,
		.facts = what->facts,
		.override = what->override,
		.arena = a,
		.op = operation_of(what->facts),
		.decision = ret,
	};

	return judge_as(eng, &call, err);
}

int engine_judge(struct engine *eng, const struct profile *p, const struct jv *facts,
		 struct arena *a, struct decision *ret, struct err *err)
{
	return engine_judge_under(eng, &(struct matter){p, facts, NULL}, a, ret, err);
}

/* Seven parameters: the contract has them. NOLINTNEXTLINE(readability-function-size) */
int engine_harden(struct engine *eng, const struct profile *p, const struct jv *facts,
		  struct arena *a, struct change ret[CHANGES_MAX], size_t *ret_count,
		  struct err *err)
{
	struct judging call = {.profile = p, .facts = facts, .arena = a, .changes = ret};

	*ret_count = 0;
	if (p->update && jv_get(facts, "replaces"))
		return 0; /* it stays what it was */
	if (!p->hardens || !operation_hardens(operation_of(facts)))
		return 0;
	if (!facts_fit(facts, FACTS_MAX))
		return err_set(err, ERR_LIMIT, "the facts of the request take more than %d bytes",
			       FACTS_MAX);
	if (run(eng, harden_protected, &call, err) < 0)
		return -1;
	*ret_count = call.change_count;
	return 0;
}
