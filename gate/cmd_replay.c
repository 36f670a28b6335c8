/* cmd_replay.c - replay: recorded decisions, judged again by other rules. */
#include "gate/command.h"

#include "gate/recorded.h"
#include "gate/serve.h"

#include <inttypes.h>
#include <string.h>

#define ARENA_MAX    ((size_t)64 << 20)
#define GROUPS_MAX   512
#define EXAMPLES_MAX 3

struct example {
	const char *id, *time, *op, *identity, *field, *value;
};

/* Decisions that come out otherwise, by what is to blame. */
struct group {
	const char *from, *to, *rule, *reason, *profile;
	uint64_t count;
	struct example examples[EXAMPLES_MAX];
	size_t example_count;
};

struct replay {
	const struct proxy_conf *conf;
	struct engine *engine;
	struct arena *arena;
	uint64_t total, same, flips, unasked, without_facts;
	uint64_t unexplained; /* flips under the very rules that decided */
	struct group groups[GROUPS_MAX];
	size_t group_count;
	bool full;
	struct jv blank;
};

static const char *kept(struct replay *rp, const char *s)
{
	const char *copy = arena_strndup(rp->arena, s, strlen(s));

	return copy ? copy : "";
}

static const char *first_rule(const struct recorded *r)
{
	const struct jv *list = r->violations;

	return list && list->count ? jv_str(&list->items[0], "rule", "")
				   : jv_str(jv_get(&r->record, "pol"), "rule", "");
}

/* Of a denial that goes: the rule that gave it.  Of one that comes: the rule that gives it. */
static struct group *group_of(struct replay *rp, const struct recorded *r, const struct decision *d)
{
	const struct violation *v = d->violations.count ? &d->violations.list[0] : NULL;
	const char *to = verdict_name(d->said);
	const char *rule = v ? v->rule : first_rule(r);
	const char *reason = v ? reason_name(v->reason) : r->reason;
	struct group *g = rp->groups;

	for (; g < rp->groups + rp->group_count; g++)
		if (strcmp(g->from, r->judged) == 0 && strcmp(g->to, to) == 0 &&
		    strcmp(g->rule, rule) == 0 && strcmp(g->reason, reason) == 0 &&
		    strcmp(g->profile, d->profile) == 0)
			return g;
	if (rp->group_count == GROUPS_MAX)
		return NULL;
	rp->group_count++;
	*g = (struct group){kept(rp, r->judged),  to, kept(rp, rule), kept(rp, reason),
			    kept(rp, d->profile), 0,  {{0}},          0};
	return g;
}

static void add_flip(struct replay *rp, const struct recorded *r, const struct decision *d)
{
	struct group *g = group_of(rp, r, d);
	const struct violation *v = d->violations.count ? &d->violations.list[0] : NULL;
	const struct jv *old =
		r->violations && r->violations->count ? &r->violations->items[0] : &rp->blank;

	rp->flips++;
	if (strcmp(r->hash, d->profile_hash) == 0)
		rp->unexplained++;
	if (!g) {
		rp->full = true;
		return;
	}
	g->count++;
	if (g->example_count == EXAMPLES_MAX)
		return;
	g->examples[g->example_count++] = (struct example){
		kept(rp, r->id),
		kept(rp, r->time),
		kept(rp, r->op_name),
		kept(rp, r->identity),
		kept(rp, v ? v->field : jv_str(old, "field", "")),
		kept(rp, v ? v->value : jv_str(old, "value", "")),
	};
}

static int on_decision(void *arg, const struct recorded *r, struct arena *a)
{
	struct replay *rp = arg;
	struct decision *d = arena_take(a, sizeof(*d));

	if (!d)
		return 1;
	switch (recorded_judge(r, rp->engine, recorded_profile(r, rp->conf, rp->engine), a, d)) {
	case REJUDGED_UNASKED:
		rp->unasked++;
		return 0;
	case REJUDGED_WITHOUT_FACTS:
		rp->without_facts++;
		return 0;
	case REJUDGED:
		break;
	}
	rp->total++;
	/* Without a profile nothing was asked, and the answer is no. */
	if (strcmp(verdict_name(d->judged ? d->said : VERDICT_DENY), r->judged) == 0)
		rp->same++;
	else
		add_flip(rp, r, d);
	return 0;
}

/* --- what is printed --- */

static void print_json(struct replay *rp)
{
	const struct {
		const char *name;
		uint64_t n;
	} counts[] = {
		{"judged", rp->total},      {"same", rp->same},
		{"flipped", rp->flips},     {"unexplained", rp->unexplained},
		{"not_asked", rp->unasked}, {"without_facts", rp->without_facts},
	};
	struct jv tree = jv_object(), *list;
	struct buf text;

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		jv_set(rp->arena, &tree, counts[i].name, jv_int((int64_t)counts[i].n));
	list = jv_set(rp->arena, &tree, "flips", jv_array());
	for (size_t i = 0; i < rp->group_count; i++) {
		const struct group *g = &rp->groups[i];
		struct jv *one = jv_push(rp->arena, list, jv_object()), *examples;

		jv_set(rp->arena, one, "from", jv_string(g->from));
		jv_set(rp->arena, one, "to", jv_string(g->to));
		jv_set(rp->arena, one, "rule", jv_string(g->rule));
		jv_set(rp->arena, one, "reason", jv_string(g->reason));
		jv_set(rp->arena, one, "profile", jv_string(g->profile));
		jv_set(rp->arena, one, "count", jv_int((int64_t)g->count));
		examples = jv_set(rp->arena, one, "examples", jv_array());
		for (size_t k = 0; k < g->example_count; k++) {
			const struct example *e = &g->examples[k];
			struct jv *x = jv_push(rp->arena, examples, jv_object());

			jv_set(rp->arena, x, "id", jv_string(e->id));
			jv_set(rp->arena, x, "t", jv_string(e->time));
			jv_set(rp->arena, x, "op", jv_string(e->op));
			jv_set(rp->arena, x, "identity", jv_string(e->identity));
			jv_set(rp->arena, x, "field", jv_string(e->field));
			jv_set(rp->arena, x, "value", jv_string(e->value));
		}
	}
	buf_init(&text, (size_t)16 << 20);
	jv_write(&text, &tree);
	printf("%.*s\n", SPAN_FMT(buf_span(&text)));
	buf_fini(&text);
}

static void print_groups(const struct replay *rp)
{
	for (size_t i = 0; i < rp->group_count; i++) {
		const struct group *g = &rp->groups[i];

		printf("\n%s -> %s: %" PRIu64 " by rule %s (%s) of profile \"%s\"\n", g->from,
		       g->to, g->count, *g->rule ? g->rule : "operations",
		       *g->reason ? g->reason : "granted", g->profile);
		for (size_t k = 0; k < g->example_count; k++) {
			const struct example *e = &g->examples[k];

			printf("  %s  %.19sZ  %s by %s%s%s%s%s\n", e->id, e->time, e->op,
			       *e->identity ? e->identity : "a caller without a name",
			       *e->field ? ": " : "", e->field, *e->value ? " = " : "", e->value);
		}
	}
}

static void print_text(const struct replay *rp)
{
	printf("%" PRIu64 " decisions judged again: %" PRIu64 " come out the same, %" PRIu64
	       " otherwise\n",
	       rp->total, rp->same, rp->flips);
	if (rp->unasked)
		printf("%" PRIu64 " were refused before any rule was asked, and would be again\n",
		       rp->unasked);
	if (rp->without_facts)
		printf("%" PRIu64
		       " cannot be judged: these rules look at facts that the record does "
		       "not have\n",
		       rp->without_facts);
	if (rp->unexplained)
		printf("%" PRIu64 " came out otherwise although the rules are the same: please "
		       "report this\n",
		       rp->unexplained);
	print_groups(rp);
	if (rp->full)
		puts("\nThere are more kinds of them than are shown.");
}

static int replay(const struct args *args, const struct config *config, struct err *err)
{
	struct replay *rp;
	struct arena *a = arena_create(ARENA_MAX);
	int answer = EXIT_CANNOT;

	rp = a ? arena_take(a, sizeof(*rp)) : NULL;
	if (!rp)
		return err_set(err, ERR_SYSTEM, "no memory");
	rp->arena = a;
	rp->conf = &config->proxy;
	rp->blank = jv_object();
	rp->engine = engine_open(config->proxy.rules, config->proxy.rule_count,
				 &config->proxy.rule_limits, err);
	if (rp->engine && recorded_each(args->log, on_decision, rp, err) == 0) {
		if (args->json)
			print_json(rp);
		else
			print_text(rp);
		answer = rp->flips ? EXIT_NO : EXIT_YES;
	}
	engine_close(rp->engine);
	arena_destroy(a);
	return answer;
}

int run_replay(const struct args *args)
{
	struct err err = {0};
	struct loaded loaded;
	int answer;

	if (load(args->config, &loaded, &err) < 0)
		return command_failed(&err);
	answer = replay(args, &loaded.config, &err);
	unload(&loaded);
	return err.kind != ERR_NONE ? command_failed(&err) : answer;
}
