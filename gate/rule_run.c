#include "gate/rule_run.h"

#include "proxy/decide.h"
#include "proxy/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rule_run {
	const struct rule_test *tests;
	struct engine_trace *trace;
	struct engine *engine;
	struct worker *worker;
	struct arena *arena;
	struct proxy_conf conf;
	size_t *listener_of; /* of each test */
};

/* --- a configuration with one identity and one listener for each kind of caller --- */

static bool same_caller(const struct rule_test *a, const struct rule_test *b)
{
	return strcmp(a->profile, b->profile) == 0 && jv_equal(&a->who, &b->who);
}

static void add_caller(struct rule_run *run, struct conf_identity *who, struct conf_listener *at,
		       size_t i)
{
	const struct rule_test *t = &run->tests[i];
	size_t n = run->conf.listener_count++, *index = arena_take(run->arena, sizeof(*index));
	const char *name = jv_str(&t->who, "name", "");

	if (!index)
		return;
	*index = n;
	who[n] = (struct conf_identity){
		.name = name,
		.profile = t->profile,
		.owner = jv_str(&t->who, "owner", name),
		.has_uid = jv_get(&t->who, "uid") != NULL,
		.has_gid = jv_get(&t->who, "gid") != NULL,
		.uid = (uint32_t)jv_num(&t->who, "uid", 0),
		.gid = (uint32_t)jv_num(&t->who, "gid", 0),
	};
	at[n] = (struct conf_listener){.name = arena_take(run->arena, 32),
				       .socket = "",
				       .fd = -1,
				       .identities = index,
				       .identity_count = 1,
				       .otherwise = ""};
	if (at[n].name)
		snprintf((char *)at[n].name, 32, "caller-%zu", n);
}

static int make_conf(struct rule_run *run, const struct profile_folder *folder, size_t count,
		     struct err *err)
{
	static const struct conf_backend backend = {
		.name = "engine", .kind = "docker", .socket = "/nonexistent", .sees_files = true};
	static const char *const nothing[] = {NULL};
	struct conf_identity *who = arena_take(run->arena, (count + 1) * sizeof(*who));
	struct conf_listener *at = arena_take(run->arena, (count + 1) * sizeof(*at));

	run->listener_of = arena_take(run->arena, (count + 1) * sizeof(*run->listener_of));
	run->conf = (struct proxy_conf){
		.backends = &backend,
		.backend_count = 1,
		.identities = who,
		.listeners = at,
		.rules = folder->sources,
		.rule_count = folder->source_count,
		.rule_limits = engine_default_limits,
		.limits = conf_default_limits,
		.protected_paths = nothing,
		.reads_without_log = true,
		.generation = "test",
	};
	for (size_t i = 0; i < count && !arena_spent(run->arena); i++) {
		size_t k = 0;

		while (k < i && !same_caller(&run->tests[k], &run->tests[i]))
			k++;
		if (k == i)
			add_caller(run, who, at, i);
		run->listener_of[i] = k == i ? run->conf.listener_count - 1 : run->listener_of[k];
	}
	run->conf.identity_count = run->conf.listener_count;
	return arena_spent(run->arena) ? err_set(err, ERR_LIMIT, "too many tests") : 0;
}

static int check_profiles(const struct rule_run *run, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++)
		if (!engine_profile(run->engine, run->tests[i].profile))
			return err_set(err, ERR_CONFIG, "%s:%d: there is no profile \"%s\" here",
				       run->tests[i].file, run->tests[i].line,
				       run->tests[i].profile);
	return 0;
}

struct rule_run *rule_run_open(const struct profile_folder *folder, const struct rule_test *tests,
			       size_t count, struct engine_trace *trace, struct err *err)
{
	struct rule_run *run = calloc(1, sizeof(*run));

	if (!run) {
		err_sys(err, "no memory");
		return NULL;
	}
	run->tests = tests;
	run->trace = trace;
	run->arena = arena_create((size_t)16 << 20);
	if (run->arena && make_conf(run, folder, count, err) == 0)
		run->engine = engine_open(folder->sources, folder->source_count,
					  &engine_default_limits, err);
	if (run->engine && check_profiles(run, count, err) == 0)
		run->worker = worker_open(&run->conf, err);
	if (run->worker)
		return run;
	rule_run_close(run);
	return NULL;
}

void rule_run_close(struct rule_run *run)
{
	if (!run)
		return;
	worker_close(run->worker);
	engine_close(run->engine);
	arena_destroy(run->arena);
	free(run);
}

struct engine *rule_run_engine(struct rule_run *run)
{
	return run->engine;
}

/* --- judging --- */

static int parse_line(const struct rule_test *t, char *text, size_t len, struct arena *a,
		      struct jv *ret, struct err *err)
{
	const char *end = memchr(text, '\n', len);
	const char *copy = end ? arena_strndup(a, text, (size_t)(end - text)) : NULL;
	enum jv_fault fault;

	if (!copy || end + 1 != text + len)
		return err_set(err, ERR_CONFIG, "%s:%d: this is not one request", t->file, t->line);
	return jv_parse(a, (struct span){copy, (size_t)(end - text)}, ret, &fault, err);
}

static int judge_request(struct rule_run *run, size_t i, struct arena *a, struct jv *ret,
			 struct err *err)
{
	const struct rule_test *t = &run->tests[i];
	struct check_request req = {
		.listener = run->conf.listeners[run->listener_of[i]].name,
		.identity = jv_str(&t->who, "name", ""),
		.facts = &t->world,
		.text = t->request,
		.trace = run->trace,
	};
	char *text = NULL;
	size_t len = 0;
	int rc;

	req.out = open_memstream(&text, &len);
	if (!req.out)
		return err_sys(err, "no memory");
	rc = worker_check(run->worker, &req, err);
	fclose(req.out);
	if (rc == 2)
		err_wrap(err, "%s:%d", t->file, t->line);
	rc = rc == 2 ? -1 : parse_line(t, text, len, a, ret, err);
	free(text);
	return rc;
}

/* The operation by its name; the rest of it follows. */
static int take_operation(const struct rule_test *t, struct jv *facts, enum operation *ret,
			  struct err *err)
{
	const struct jv *given = jv_get(facts, "operation");
	const struct jv *name = given && given->kind == JV_OBJECT ? jv_get(given, "name") : given;

	*ret = name && name->kind == JV_STRING ? operation_find(name->str) : OP_UNKNOWN;
	if (*ret == OP_UNKNOWN)
		return err_set(err, ERR_CONFIG, "%s:%d: facts: operation must name one", t->file,
			       t->line);
	return 0;
}

static int make_facts(const struct rule_test *t, struct arena *a, struct jv *ret,
		      enum operation *ret_op, struct err *err)
{
	const char *name = jv_str(&t->who, "name", "");
	struct caller_container container;
	const struct identity who = {
		.name = name,
		.owner = jv_str(&t->who, "owner", name),
		.profile = t->profile,
		.listener = "test",
		.has_cred = jv_get(&t->who, "uid") != NULL,
		.uid = (uint32_t)jv_num(&t->who, "uid", 0),
		.gid = (uint32_t)jv_num(&t->who, "gid", 0),
		.container = caller_container_read(jv_get(&t->who, "container"), a, &container)
				     ? &container
				     : NULL,
	};
	struct jv own = t->facts, rest = jv_object();
	struct question q = {.who = &who, .backend = "engine", .now = t->now};

	if (take_operation(t, &own, ret_op, err) < 0)
		return -1;
	q.op = *ret_op;
	*ret = engine_facts(a, &q);
	for (size_t i = 0; i < own.count; i++)
		if (!span_is(own.members[i].key, "operation"))
			jv_add(a, &rest, own.members[i].key, own.members[i].value);
	jv_merge(a, ret, &rest);
	if (engine_check_facts(ret, err) < 0)
		return err_wrap(err, "%s:%d: facts", t->file, t->line);
	return 0;
}

static struct jv answer_of(const struct decision *d, struct arena *a)
{
	struct jv line = jv_object(), *list;

	jv_set(a, &line, "verdict", jv_string(verdict_name(d->verdict)));
	list = jv_set(a, &line, "violations", jv_array());
	for (size_t i = 0; i < d->violations.count; i++) {
		const struct violation *v = &d->violations.list[i];
		struct jv *one = jv_push(a, list, jv_object());

		jv_set(a, one, "rule", jv_string(v->rule));
		jv_set(a, one, "reason", jv_string(reason_name(v->reason)));
		jv_set(a, one, "field", jv_string(v->field));
		jv_set(a, one, "value", jv_string(v->value));
		jv_set(a, one, "text", jv_string(*v->text ? v->text : reason_what(v->reason)));
	}
	list = jv_set(a, &line, "warnings", jv_array());
	for (size_t i = 0; i < d->warning_count; i++)
		jv_push(a, list, jv_string(d->warnings[i].text));
	return line;
}

static int judge_facts(struct rule_run *run, size_t i, struct arena *a, struct jv *ret,
		       struct err *err)
{
	const struct rule_test *t = &run->tests[i];
	struct violations refused = {0};
	struct decision *d = arena_take(a, sizeof(*d));
	struct judgement j = {.engine = run->engine,
			      .profile = engine_profile(run->engine, t->profile),
			      .refused = &refused};
	struct jv facts;

	if (!d)
		return err_set(err, ERR_LIMIT, "no memory");
	if (make_facts(t, a, &facts, &j.op, err) < 0)
		return -1;
	j.facts = &facts;
	engine_watch(run->engine, run->trace);
	if (decide(&j, a, d)) {
		/* The verdict says it, too. */
	}
	engine_watch(run->engine, NULL);
	*ret = answer_of(d, a);
	return 0;
}

/* --- comparing --- */

static bool fits(const struct rule_test *t, const struct jv *v)
{
	return (!*t->reason || strcmp(t->reason, jv_str(v, "reason", "")) == 0) &&
	       (!*t->rule || strcmp(t->rule, jv_str(v, "rule", "")) == 0) &&
	       (!*t->field || strcmp(t->field, jv_str(v, "field", "")) == 0) &&
	       (!*t->value || strcmp(t->value, jv_str(v, "value", "")) == 0);
}

static void put_expected(const struct rule_test *t, struct buf *out)
{
	const char *const parts[][2] = {{"reason", t->reason},
					{"rule", t->rule},
					{"field", t->field},
					{"value", t->value},
					{"warning", t->warning}};

	buf_printf(out, "%s", t->expect);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (*parts[i][1])
			buf_printf(out, ", %s %s", parts[i][0], parts[i][1]);
}

static void put_found(const struct jv *line, struct buf *out)
{
	const struct jv *list = jv_get(line, "violations");

	buf_printf(out, "%s", jv_str(line, "verdict", ""));
	for (size_t i = 0; list && i < list->count; i++) {
		const struct jv *v = &list->items[i];

		const char *field = jv_str(v, "field", ""), *value = jv_str(v, "value", "");

		buf_printf(out, "\n                 reason %s, rule %s%s%s%s%s: %s",
			   jv_str(v, "reason", ""), jv_str(v, "rule", ""), *field ? ", field " : "",
			   field, *value ? ", value " : "", value, jv_str(v, "text", ""));
	}
	list = jv_get(line, "warnings");
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		if (list->items[i].kind == JV_STRING)
			buf_printf(out, "\n                 warning %.*s",
				   SPAN_FMT(list->items[i].str));
}

/* A rule that breaks denies, too; a row that does not ask for that has not shown what it says. */
static bool has_broken(const struct rule_test *t, const struct jv *list)
{
	for (size_t i = 0; list && i < list->count && !*t->reason; i++) {
		enum reason why = reason_find(span_of(jv_str(&list->items[i], "reason", "")));

		if (why == REASON_rule_error || why == REASON_rule_limit)
			return true;
	}
	return false;
}

static bool has_warning(const struct jv *line, const char *text)
{
	const struct jv *list = jv_get(line, "warnings");

	for (size_t i = 0; *text && list && list->kind == JV_ARRAY && i < list->count; i++)
		if (list->items[i].kind == JV_STRING && span_is(list->items[i].str, text))
			return true;
	return !*text;
}

static void compare(const struct rule_test *t, struct rule_answer *ret)
{
	const struct jv *list = jv_get(&ret->line, "violations");
	bool why = *t->reason || *t->rule || *t->field || *t->value, met = !why;
	struct buf text;

	for (size_t i = 0; list && i < list->count && !met; i++)
		met = fits(t, &list->items[i]);
	if (met && !has_broken(t, list) && has_warning(&ret->line, t->warning) &&
	    strcmp(t->expect, jv_str(&ret->line, "verdict", "")) == 0)
		return;
	buf_init(&text, 1 << 16);
	buf_puts(&text, "expected     ");
	put_expected(t, &text);
	buf_puts(&text, "\n    found        ");
	put_found(&ret->line, &text);
	snprintf(ret->problem, sizeof(ret->problem), "%.*s", SPAN_FMT(buf_span(&text)));
	buf_fini(&text);
}

int rule_run_judge(struct rule_run *run, size_t i, struct arena *a, struct rule_answer *ret,
		   struct err *err)
{
	const struct rule_test *t = &run->tests[i];

	ret->problem[0] = '\0';
	if (run->trace)
		run->trace->count = 0;
	if ((t->request.len ? judge_request(run, i, a, &ret->line, err)
			    : judge_facts(run, i, a, &ret->line, err)) < 0)
		return -1;
	compare(t, ret);
	return 0;
}
