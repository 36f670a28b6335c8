/* cmd_test.c - test: tables of requests and facts beside profiles, and what must come of them. */
#include "gate/command.h"

#include "gate/rule_coverage.h"
#include "gate/rule_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_MAX     ((size_t)256 << 20)
#define ROW_ARENA_MAX ((size_t)16 << 20)

struct results {
	const struct args *args;
	FILE *junit; /* NULL: not asked for */
	struct arena *arena;
	struct jv rows, coverages;
	unsigned passed, failed;
	bool below; /* the floor of --fail-under */
};

/* --- reporting one row --- */

static void put_xml(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			fputs("&amp;", out);
		else if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '"')
			fputs("&quot;", out);
		else
			fputc((unsigned char)*text < 0x20 && *text != '\n' ? ' ' : *text, out);
	}
}

static void report_junit(FILE *out, const struct rule_test *t, const char *problem)
{
	fputs("  <testcase classname=\"", out);
	put_xml(out, t->file);
	fputs("\" name=\"", out);
	put_xml(out, t->name);
	fprintf(out, "\" line=\"%d\"", t->line);
	if (!*problem) {
		fputs("/>\n", out);
		return;
	}
	fputs("><failure message=\"not as expected\">", out);
	put_xml(out, problem);
	fputs("</failure></testcase>\n", out);
}

static void report(struct results *r, const struct rule_test *t, const struct rule_answer *ans)
{
	bool good = !*ans->problem;
	struct jv *one;

	r->passed += good;
	r->failed += !good;
	if (r->junit)
		report_junit(r->junit, t, ans->problem);
	if (!r->args->json) {
		if (!good)
			printf("FAIL %s:%d: %s\n    %s\n", t->file, t->line, t->name, ans->problem);
		return;
	}
	one = jv_push(r->arena, &r->rows, jv_object());
	jv_set(r->arena, one, "file", jv_string(t->file));
	jv_set(r->arena, one, "line", jv_int(t->line));
	jv_set(r->arena, one, "name", jv_string(t->name));
	jv_set(r->arena, one, "passed", jv_bool(good));
	if (!good)
		jv_set(r->arena, one, "problem",
		       jv_string(arena_strndup(r->arena, ans->problem, strlen(ans->problem))));
}

/* --- running one folder --- */

static int run_rows(struct results *r, struct rule_run *run, const struct rule_test *tests,
		    size_t count, struct rule_coverage *cov, const struct engine_trace *trace,
		    struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		struct arena *a = arena_create(ROW_ARENA_MAX);
		struct rule_answer ans;
		int rc;

		if (!a)
			return err_sys(err, "no memory");
		rc = rule_run_judge(run, i, a, &ans, err);
		if (rc == 0)
			report(r, &tests[i], &ans);
		if (rc == 0 && cov)
			rule_coverage_add(cov, trace);
		arena_destroy(a);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static unsigned percent(unsigned part, unsigned whole)
{
	return whole ? part * 100 / whole : 100;
}

static void conclude_coverage(struct results *r, const char *dir, const struct rule_coverage *cov)
{
	struct coverage_sum s = rule_coverage_sum(cov);
	unsigned outcomes = percent(s.outcomes_seen, s.outcomes);
	unsigned lines = percent(s.lines_seen, s.lines);
	bool below = r->args->has_count &&
		     (outcomes < r->args->fail_under || lines < r->args->fail_under);
	struct jv *one;

	r->below = r->below || below;
	if (r->args->json) {
		one = jv_push(r->arena, &r->coverages, rule_coverage_tree(cov, r->arena));
		jv_set(r->arena, one, "folder", jv_string(dir));
		jv_set(r->arena, one, "outcomes_percent", jv_int(outcomes));
		jv_set(r->arena, one, "lines_percent", jv_int(lines));
		return;
	}
	if (r->args->coverage)
		rule_coverage_print(cov, stdout);
	printf("%s: %u %% of outcomes (%u of %u), %u %% of lines (%u of %u)%s\n", dir, outcomes,
	       s.outcomes_seen, s.outcomes, lines, s.lines_seen, s.lines,
	       below ? ": below the floor" : "");
}

static int run_tests(struct results *r, const char *dir, const struct profile_folder *folder,
		     const struct rule_test *tests, size_t count, struct err *err)
{
	bool covers = r->args->coverage || r->args->has_count;
	struct rule_coverage *cov =
		covers ? rule_coverage_open(folder, r->args->checks, err) : NULL;
	struct engine_trace *trace = calloc(1, sizeof(*trace));
	struct rule_run *run = NULL;
	int rc = -1;

	if (!trace)
		err_sys(err, "no memory");
	if (trace && cov) {
		trace->on_line = rule_coverage_line;
		trace->arg = cov;
	}
	if (trace && (cov || !covers))
		run = rule_run_open(folder, tests, count, cov ? trace : NULL, err);
	if (run && cov)
		rule_coverage_expect(cov, rule_run_engine(run));
	if (run)
		rc = run_rows(r, run, tests, count, cov, trace, err);
	if (rc == 0 && cov)
		conclude_coverage(r, dir, cov);
	rule_run_close(run);
	rule_coverage_close(cov);
	free(trace);
	return rc;
}

static int run_folder(struct results *r, const char *dir, struct err *err)
{
	struct profile_folder *folder = arena_take(r->arena, sizeof(*folder));
	struct rule_test *tests = arena_take(r->arena, TESTS_MAX * sizeof(*tests));
	size_t count = 0;

	if (!folder || !tests)
		return err_set(err, ERR_LIMIT, "no memory");
	if (profile_folder_read(dir, r->arena, folder, err) < 0)
		return -1;
	for (size_t i = 0; i < folder->test_count; i++) {
		size_t more;

		if (rule_tests_read(&folder->tests[i], r->arena, tests + count, TESTS_MAX - count,
				    &more, err) < 0)
			return -1;
		count += more;
	}
	if (!count)
		return err_set(
			err, ERR_INPUT,
			"%s: there are no tests; they stand in *_test.lua beside the profiles",
			dir);
	return run_tests(r, dir, folder, tests, count, err);
}

/* --- the whole --- */

static void print_json(struct results *r)
{
	struct jv tree = jv_object();
	struct buf text;

	jv_set(r->arena, &tree, "passed", jv_int(r->passed));
	jv_set(r->arena, &tree, "failed", jv_int(r->failed));
	jv_set(r->arena, &tree, "tests", r->rows);
	if (r->coverages.count)
		jv_set(r->arena, &tree, "coverage", r->coverages);
	buf_init(&text, (size_t)64 << 20);
	jv_write(&text, &tree);
	printf("%.*s\n", SPAN_FMT(buf_span(&text)));
	buf_fini(&text);
}

/* A report that could not be written whole is none. */
static int close_junit(struct results *r, struct err *err)
{
	if (!r->junit)
		return 0;
	fputs("</testsuite>\n", r->junit);
	if (ferror(r->junit) | fclose(r->junit))
		return err_set(err, ERR_SYSTEM, "%s: could not be written", r->args->junit);
	return 0;
}

static int run_all(struct results *r, struct err *err)
{
	const struct args *args = r->args;

	if (!args->rest_count)
		return err_set(err, ERR_INPUT, "name folders with profiles and *_test.lua");
	if (args->has_count && args->fail_under > 100)
		return err_set(err, ERR_INPUT, "--fail-under takes a percentage");
	if (args->junit) {
		r->junit = fopen(args->junit, "we");
		if (!r->junit)
			return err_sys(err, "%s", args->junit);
		fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite "
		      "name=\"sallyport\">\n",
		      r->junit);
	}
	for (size_t i = 0; i < args->rest_count; i++)
		if (run_folder(r, args->rest[i], err) < 0)
			return -1;
	return 0;
}

int run_test(const struct args *args)
{
	struct results r = {.args = args, .arena = arena_create(ARENA_MAX)};
	struct err err = {0};
	int rc;

	if (!r.arena) {
		err_sys(&err, "no memory");
		return command_failed(&err);
	}
	r.rows = r.coverages = jv_array();
	rc = run_all(&r, &err);
	if (close_junit(&r, &err) < 0)
		rc = -1;
	if (rc == 0 && args->json)
		print_json(&r);
	else if (rc == 0)
		printf("%u passed, %u failed\n", r.passed, r.failed);
	arena_destroy(r.arena);
	if (rc < 0)
		return command_failed(&err);
	return r.failed || r.below ? EXIT_NO : EXIT_YES;
}
