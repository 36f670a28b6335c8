/* explain.c - what each rule said, what decided, what would pass; also of a record in the log. */
#include "gate/explain.h"

#include "backends/isolation.h"
#include "gate/command.h"
#include "gate/grants.h"
#include "gate/recorded.h"
#include "gate/serve.h"

#include <stdlib.h>
#include <string.h>

void explain_isolation(const struct jv *facts, FILE *out)
{
	const struct jv *isolation = facts ? jv_path(facts, "workload.isolation") : NULL;
	struct buf text;

	if (!isolation)
		return;
	fputs("  isolation, as it comes about\n", out);
	buf_init(&text, 65536);
	isolation_derive(isolation, "    ", &text);
	fprintf(out, "%.*s", SPAN_FMT(buf_span(&text)));
	buf_fini(&text);
}

void explain_rules(const struct engine_trace *trace, FILE *out)
{
	fputs("  rules, in their order\n", out);
	for (size_t i = 0; i < trace->count; i++) {
		const struct rule_trace *t = &trace->list[i];

		if (t->outcome == OUTCOME_NOT_RUN)
			continue;
		fprintf(out, "    %-9s %-22s %s%s(%s:%d)\n", rule_outcome_name(t->outcome), t->rule,
			t->doc, *t->doc ? " " : "", t->file, t->line);
	}
}

static struct jv as_tree(const struct violation *v, struct arena *a)
{
	struct jv tree = jv_object();

	jv_set(a, &tree, "rule", jv_string(v->rule));
	jv_set(a, &tree, "reason", jv_string(reason_name(v->reason)));
	jv_set(a, &tree, "field", jv_string(v->field ? v->field : ""));
	jv_set(a, &tree, "value", jv_string(v->value ? v->value : ""));
	return tree;
}

static void one_change(const struct jv *facts, const char *op, const struct violation *v, FILE *out)
{
	const char *hint = v->hint && *v->hint ? v->hint : reason_hint(v->reason);
	struct arena *a = arena_create(65536);
	enum grants_answer answer;
	struct buf line;
	struct jv tree;

	if (!a)
		return;
	buf_init(&line, 8192);
	tree = as_tree(v, a);
	answer = grants_line(facts, op, &tree, &line);
	fprintf(out, "    %s (%s): the request: %s\n", v->rule, reason_name(v->reason), hint);
	if (answer == GRANTS_LINE)
		fprintf(out, "      or the profile: %.*s\n", SPAN_FMT(buf_span(&line)));
	else if (answer == GRANTS_RULE)
		fprintf(out, "      or the profile: another rule, or %.*s\n",
			SPAN_FMT(buf_span(&line)));
	else if (buf_len(&line))
		fprintf(out, "      %.*s\n", SPAN_FMT(buf_span(&line)));
	buf_fini(&line);
	arena_destroy(a);
}

void explain_changes(const struct jv *facts, const char *op, const struct decision *d, FILE *out)
{
	if (d->excepted_count) {
		fputs("  exceptions that let it pass\n", out);
		for (size_t i = 0; i < d->excepted_count; i++)
			fprintf(out, "    %s (%s) %s = %s: %s of %s, until %s\n",
				d->excepted[i].rule, d->excepted[i].reason, d->excepted[i].field,
				d->excepted[i].value, d->excepted[i].ticket, d->excepted[i].owner,
				d->excepted[i].expires);
	}
	if (!d->violations.count)
		return;
	fputs(d->verdict == VERDICT_ALLOW ? "  what enforce mode would have refused\n"
					  : "  the smallest change that would pass: all of these\n",
	      out);
	for (size_t i = 0; i < d->violations.count; i++)
		one_change(facts, op, &d->violations.list[i], out);
}

/* --- explain --id ID --log DIR --- */

struct search {
	const struct args *args;
	const struct proxy_conf *conf;
	struct engine *engine;
	struct engine_trace *trace;
	bool found;
};

static void print_facts(const struct recorded *r)
{
	struct buf text;

	if (!r->facts)
		return;
	buf_init(&text, (size_t)1 << 20);
	jv_write(&text, r->facts);
	printf("  facts      %.*s\n", SPAN_FMT(buf_span(&text)));
	buf_fini(&text);
}

static void print_then(const struct recorded *r)
{
	const struct jv *req = jv_get(&r->record, "req");

	printf("%s %s\n", jv_str(req, "method", ""), jv_str(req, "path", ""));
	printf("  decision   %s, %s\n", r->id, r->time);
	printf("  operation  %s: %s\n", r->op_name, operation_doc(r->op));
	printf("  caller     %s, profile \"%s\"\n", *r->identity ? r->identity : "without a name",
	       r->profile);
	print_facts(r);
	explain_isolation(r->facts, stdout);
	printf("  verdict    %s%s%s\n", r->verdict, *r->reason ? ", " : "", r->reason);
}

static int on_decision(void *arg, const struct recorded *r, struct arena *a)
{
	struct search *s = arg;
	struct decision *d;
	const struct profile *p;

	if (strcmp(r->id, s->args->id) != 0)
		return 0;
	s->found = true;
	print_then(r);
	d = arena_take(a, sizeof(*d));
	p = recorded_profile(r, s->conf, s->engine);
	engine_watch(s->engine, s->trace);
	switch (d ? recorded_judge(r, s->engine, p, a, d) : REJUDGED_UNASKED) {
	case REJUDGED_UNASKED:
		puts("  It was refused before any rule was asked; the record says why.");
		return 1;
	case REJUDGED_WITHOUT_FACTS:
		puts("  The rules of this configuration need facts that the record does not have.");
		return 1;
	case REJUDGED:
		break;
	}
	printf("  by the rules of this configuration: %s%s\n", verdict_name(d->said),
	       strcmp(r->hash, d->profile_hash) == 0 ? "" : " (they are not those of then)");
	explain_rules(s->trace, stdout);
	explain_changes(r->facts, r->op_name, d, stdout);
	return 1;
}

static int explain_recorded(const struct args *args, const struct config *config, struct err *err)
{
	struct search s = {.args = args, .conf = &config->proxy};
	int rc = -1;

	s.trace = calloc(1, sizeof(*s.trace));
	if (!s.trace)
		return err_sys(err, "no memory");
	s.engine = engine_open(config->proxy.rules, config->proxy.rule_count,
			       &config->proxy.rule_limits, err);
	if (s.engine)
		rc = recorded_each(args->log, on_decision, &s, err);
	engine_close(s.engine);
	free(s.trace);
	if (rc >= 0 && !s.found)
		return err_set(err, ERR_INPUT, "the log in %s has no decision %s", args->log,
			       args->id);
	return rc;
}

int explain_id(const struct args *args)
{
	struct err err = {0};
	struct loaded loaded;
	int rc;

	if (!args->log) {
		err_set(&err, ERR_INPUT, "--id needs --log, the folder of the audit log");
		return command_failed(&err);
	}
	if (load(args->config, &loaded, &err) < 0)
		return command_failed(&err);
	rc = explain_recorded(args, &loaded.config, &err);
	unload(&loaded);
	return rc < 0 ? command_failed(&err) : EXIT_YES;
}
