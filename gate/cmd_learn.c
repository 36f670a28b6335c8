/* cmd_learn.c - learn: the smallest profile that allows what a log has seen allowed. */
#include "gate/command.h"

#include "gate/needs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_MAX ((size_t)256 << 20)
#define TEXT_MAX  ((size_t)1 << 20)
#define NAME      "learnt"

static int on_need(void *arg, const struct recorded *r, struct arena *a)
{
	(void)a;
	needs_add(arg, r);
	return 0;
}

/* --- the profile's text --- */

static void put_count(struct buf *out, const struct need *it)
{
	buf_printf(out, "%" PRIu64 " %s, first %s\n", it->count,
		   it->count == 1 ? "decision" : "decisions", it->first);
}

static void put_why(struct buf *out, const struct need *it)
{
	buf_puts(out, " -- ");
	put_count(out, it);
}

static void put_list(struct buf *out, const struct needs *n, const char *setting)
{
	bool any = false;

	for (size_t i = 0; i < n->count; i++) {
		const struct need *it = &n->list[i];

		if (strcmp(it->setting, setting) != 0)
			continue;
		if (!any)
			buf_printf(out, "\n\t%s = {\n", setting);
		any = true;
		buf_printf(out, "\t\t%s,", it->entry);
		put_why(out, it);
	}
	if (any)
		buf_puts(out, "\t},\n");
}

static void put_switch(struct buf *out, const struct needs *n, const char *setting,
		       const char *question)
{
	for (size_t i = 0; i < n->count; i++) {
		const struct need *it = &n->list[i];

		if (strcmp(it->setting, setting) != 0)
			continue;
		buf_printf(out, "\n\t-- TODO: %s\n\t%s = %s,", question, setting, it->entry);
		put_why(out, it);
	}
}

static void put_limit(struct buf *out, const char *name, const struct limit_seen *seen)
{
	if (!seen->with || seen->without)
		return;
	if (strcmp(name, "cpus") == 0)
		buf_printf(out, " cpus = %.9g,", (double)seen->most / 1e9);
	else
		buf_printf(out, " %s = %lld,", name, (long long)seen->most);
}

static void put_question_of_limit(struct buf *out, const char *name, const struct limit_seen *seen)
{
	if (seen->without)
		buf_printf(out,
			   "\t-- TODO: %" PRIu64 " of %" PRIu64 " launches had no limit of %s\n",
			   seen->without, seen->with + seen->without, name);
}

static void put_launches(struct buf *out, const struct needs *n)
{
	if (n->any_level)
		buf_printf(out,
			   "\n\t-- The weakest that was seen.\n\tisolation = { min = \"%s\" },\n",
			   isolation_name(n->weakest));
	if (!n->launches)
		return;
	buf_puts(out, "\n");
	put_question_of_limit(out, "memory", &n->memory);
	put_question_of_limit(out, "cpus", &n->nano_cpus);
	put_question_of_limit(out, "pids", &n->pids);
	buf_printf(out, "\t-- The most that was seen in %" PRIu64 " launches.\n\tlimits = {",
		   n->launches);
	put_limit(out, "memory", &n->memory);
	put_limit(out, "cpus", &n->nano_cpus);
	put_limit(out, "pids", &n->pids);
	buf_puts(out, " },\n");
	if (n->hardened)
		buf_printf(out,
			   "\n\t-- %" PRIu64 " launches left something open, which the gate filled "
			   "in.\n\tharden = true,\n",
			   n->hardened);
}

static void put_questions(struct buf *out, const struct needs *n)
{
	for (size_t i = 0; i < n->count; i++) {
		if (*n->list[i].setting)
			continue;
		buf_printf(out, "\n\t-- TODO: %s\n\t--      ", n->list[i].entry);
		put_count(out, &n->list[i]);
	}
	if (n->full)
		buf_puts(out, "\n\t-- TODO: there was more than this command can gather.\n");
}

static void compose(struct buf *out, const struct needs *n, const char *dir)
{
	static const char *const lists[] = {"images",      "local_images", "mounts",  "networks",
					    "ports",       "capabilities", "restart", "labels",
					    "log_drivers", "opaque"};

	buf_printf(
		out,
		"-- Learnt from %" PRIu64 " allowed decisions in %s,\n-- %.19sZ to %.19sZ.  It "
		"grants what they asked for, name by name; read every line before it is used.\n\n",
		n->decisions, dir, n->from ? n->from : "", n->to ? n->to : "");
	buf_puts(out, "return profile \"" NAME
		      "\" {\n\tdoc = \"TODO: say what this profile is for.\",\n");
	put_list(out, n, "operations");
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		put_list(out, n, lists[i]);
	put_switch(out, n, "users", "does it have to be root?");
	put_switch(out, n, "movable_mounts",
		   "others can move these directories; can only root write above them?");
	put_switch(out, n, "healthchecks", "are health checks needed?");
	put_switch(out, n, "own_images", "should it run what it builds?");
	put_launches(out, n);
	put_questions(out, n);
	buf_puts(out, "}\n");
}

/* --- the proof: the same decisions, judged by it --- */

struct proof {
	struct engine *engine;
	const struct profile *profile;
	uint64_t allowed, refused, unknown;
};

static int on_proof(void *arg, const struct recorded *r, struct arena *a)
{
	struct proof *p = arg;
	struct decision *d = arena_take(a, sizeof(*d));

	if (!d || strcmp(r->judged, "allow") != 0)
		return !d;
	if (recorded_judge(r, p->engine, p->profile, a, d) != REJUDGED)
		p->unknown++;
	else if (d->said == VERDICT_DENY || d->said == VERDICT_ASK)
		p->refused++;
	else
		p->allowed++;
	return 0;
}

static int prove(const char *dir, struct span text, struct proof *p, struct err *err)
{
	struct rule_source source = {NAME ".lua", text};
	int rc = -1;

	p->engine = engine_open(&source, 1, &engine_default_limits, err);
	if (!p->engine)
		return err_wrap(err, "what was learnt does not load");
	p->profile = engine_profile(p->engine, NAME);
	rc = recorded_each(dir, on_proof, p, err);
	engine_close(p->engine);
	return rc;
}

static int learn(const struct args *args, struct needs *n, struct err *err)
{
	struct proof p = {0};
	struct buf text;
	int rc;

	if (recorded_each(args->log, on_need, n, err) < 0)
		return -1;
	if (!n->decisions)
		return err_set(err, ERR_INPUT, "the log in %s has no decision that was allowed",
			       args->log);
	buf_init(&text, TEXT_MAX);
	compose(&text, n, args->log);
	rc = buf_spent(&text) || arena_spent(n->arena)
		     ? err_set(err, ERR_LIMIT, "there is too much to learn")
		     : prove(args->log, buf_span(&text), &p, err);
	if (rc == 0)
		printf("%.*s\n-- Judged again by this profile: %" PRIu64 " are allowed, %" PRIu64
		       " are not%s",
		       SPAN_FMT(buf_span(&text)), p.allowed, p.refused,
		       p.refused ? ", for what the TODOs say" : "");
	if (rc == 0 && p.unknown)
		printf(", %" PRIu64 " lack the facts to know", p.unknown);
	if (rc == 0)
		puts(".");
	buf_fini(&text);
	return rc < 0 ? -1 : p.refused || p.unknown ? EXIT_NO : EXIT_YES;
}

int run_learn(const struct args *args)
{
	struct arena *a = arena_create(ARENA_MAX);
	struct needs *n = a ? arena_take(a, sizeof(*n)) : NULL;
	struct err err = {0};
	int answer = -1;

	if (!n) {
		err_set(&err, ERR_SYSTEM, "no memory");
	} else {
		n->arena = a;
		answer = learn(args, n, &err);
	}
	arena_destroy(a);
	return answer < 0 ? command_failed(&err) : answer;
}
