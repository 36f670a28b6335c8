#include "gate/rule_coverage.h"

#include "gate/base/buf.h"
#include "rules/coverage.h"

#include "rules/seccomp.h"

#include <stdlib.h>
#include <string.h>

#define RULES_MAX 1024
#define FILES_MAX 512

struct seen_rule {
	const char *rule, *file;
	int line;
	unsigned passed, objected;
};

struct seen_file {
	const char *name;
	bool code[COVERAGE_LINES_MAX], ran[COVERAGE_LINES_MAX];
};

struct rule_coverage {
	bool checks;
	struct seen_rule rules[RULES_MAX];
	size_t rule_count;
	struct seen_file *files[FILES_MAX];
	size_t file_count;
};

static int add_file(struct rule_coverage *c, const struct rule_source *source, struct err *err)
{
	struct seen_file *f;

	if (c->file_count == FILES_MAX)
		return err_set(err, ERR_LIMIT, "too many files");
	f = calloc(1, sizeof(*f));
	if (!f)
		return err_sys(err, "no memory");
	c->files[c->file_count++] = f;
	f->name = source->name;
	return coverage_lines(source->text, source->name, f->code, err);
}

struct rule_coverage *rule_coverage_open(const struct profile_folder *folder, bool checks,
					 struct err *err)
{
	struct rule_coverage *c = calloc(1, sizeof(*c));
	struct rule_source source;
	int rc = 0;

	if (!c) {
		err_sys(err, "no memory");
		return NULL;
	}
	c->checks = checks;
	for (size_t i = 0; rc == 0 && i < folder->source_count; i++)
		rc = seccomp_is_file(folder->sources[i].name)
			     ? 0
			     : add_file(c, &folder->sources[i], err);
	for (size_t i = 0; rc == 0 && checks && engine_prelude_at(i, &source); i++)
		rc = add_file(c, &source, err);
	if (rc == 0)
		return c;
	rule_coverage_close(c);
	return NULL;
}

void rule_coverage_close(struct rule_coverage *c)
{
	for (size_t i = 0; c && i < c->file_count; i++)
		free(c->files[i]);
	free(c);
}

/* --- rules --- */

/* A rule stands in one place, however many profiles inherit it. */
static struct seen_rule *rule_at(struct rule_coverage *c, const char *rule, const char *file,
				 int line)
{
	struct seen_rule *r = c->rules;

	for (; r < c->rules + c->rule_count; r++)
		if (r->line == line && strcmp(r->rule, rule) == 0 && strcmp(r->file, file) == 0)
			return r;
	if (c->rule_count == RULES_MAX)
		return NULL;
	c->rule_count++;
	*r = (struct seen_rule){.rule = rule, .file = file, .line = line};
	return r;
}

void rule_coverage_expect(struct rule_coverage *c, const struct engine *eng)
{
	const struct profile *p;

	for (size_t i = 0; (p = engine_profile_at(eng, i)); i++) {
		struct rule_view v;

		for (size_t k = 0; profile_rule_at(eng, p, k, &v); k++)
			if (!v.is_check || c->checks)
				rule_at(c, v.name, v.file, v.line);
	}
}

void rule_coverage_add(struct rule_coverage *c, const struct engine_trace *trace)
{
	for (size_t i = 0; i < trace->count; i++) {
		const struct rule_trace *t = &trace->list[i];
		struct seen_rule *r;

		if (t->is_check && !c->checks)
			continue;
		r = rule_at(c, t->rule, t->file, t->line);
		if (!r)
			continue;
		switch (t->outcome) {
		case OUTCOME_PASSED:
		case OUTCOME_WARNED:
			r->passed++;
			break;
		case OUTCOME_ASKED:
		case OUTCOME_DENIED:
		case OUTCOME_SOFTENED:
			r->objected++;
			break;
		case OUTCOME_NOT_RUN:
		case OUTCOME_FAILED:
		case OUTCOME_COUNT:
			break;
		}
	}
}

void rule_coverage_line(void *arg, const char *file, int line)
{
	struct rule_coverage *c = arg;

	if (line <= 0 || line >= COVERAGE_LINES_MAX)
		return;
	for (size_t i = 0; i < c->file_count; i++)
		if (strcmp(c->files[i]->name, file) == 0)
			c->files[i]->ran[line] = true;
}

/* --- results --- */

static void count_lines(const struct seen_file *f, unsigned *lines, unsigned *seen)
{
	for (int n = 1; n < COVERAGE_LINES_MAX; n++) {
		*lines += f->code[n];
		*seen += f->code[n] && f->ran[n];
	}
}

struct coverage_sum rule_coverage_sum(const struct rule_coverage *c)
{
	struct coverage_sum s = {0};

	for (size_t i = 0; i < c->rule_count; i++) {
		s.outcomes += 2;
		s.outcomes_seen += !!c->rules[i].passed + !!c->rules[i].objected;
	}
	for (size_t i = 0; i < c->file_count; i++)
		count_lines(c->files[i], &s.lines, &s.lines_seen);
	return s;
}

/* 3, 7-9 */
static void put_missing(const struct seen_file *f, struct buf *out)
{
	for (int n = 1; n < COVERAGE_LINES_MAX; n++) {
		int last = n;

		if (!f->code[n] || f->ran[n])
			continue;
		for (int k = n + 1; k < COVERAGE_LINES_MAX && !(f->code[k] && f->ran[k]); k++)
			if (f->code[k])
				last = k;
		buf_printf(out, last == n ? "%s%d" : "%s%d-%d", buf_len(out) ? ", " : "", n, last);
		n = last;
	}
}

void rule_coverage_print(const struct rule_coverage *c, FILE *out)
{
	fputs("\nRules: how often each let a request pass, and objected to one\n", out);
	for (size_t i = 0; i < c->rule_count; i++) {
		const struct seen_rule *r = &c->rules[i];

		fprintf(out, "  %-28s passed %4u, objected %4u%s%s  %s:%d\n", r->rule, r->passed,
			r->objected, r->passed ? "" : "  NEVER PASSED",
			r->objected ? "" : "  NEVER OBJECTED", r->file, r->line);
	}
	fputs("Lines of their functions\n", out);
	for (size_t i = 0; i < c->file_count; i++) {
		unsigned lines = 0, seen = 0;
		struct buf missing;

		count_lines(c->files[i], &lines, &seen);
		if (!lines)
			continue;
		buf_init(&missing, 65536);
		put_missing(c->files[i], &missing);
		fprintf(out, "  %-40s %u of %u%s%.*s\n", c->files[i]->name, seen, lines,
			buf_len(&missing) ? "; not run: " : "", SPAN_FMT(buf_span(&missing)));
		buf_fini(&missing);
	}
}

struct jv rule_coverage_tree(const struct rule_coverage *c, struct arena *a)
{
	struct jv tree = jv_object(), *rules = jv_set(a, &tree, "rules", jv_array()), *files;

	for (size_t i = 0; i < c->rule_count; i++) {
		const struct seen_rule *r = &c->rules[i];
		struct jv *one = jv_push(a, rules, jv_object());

		jv_set(a, one, "rule", jv_string(r->rule));
		jv_set(a, one, "file", jv_string(r->file));
		jv_set(a, one, "line", jv_int(r->line));
		jv_set(a, one, "passed", jv_int(r->passed));
		jv_set(a, one, "objected", jv_int(r->objected));
	}
	files = jv_set(a, &tree, "files", jv_array());
	for (size_t i = 0; i < c->file_count; i++) {
		struct jv *one = jv_push(a, files, jv_object()), *missing;
		unsigned lines = 0, seen = 0;

		count_lines(c->files[i], &lines, &seen);
		jv_set(a, one, "file", jv_string(c->files[i]->name));
		jv_set(a, one, "lines", jv_int(lines));
		jv_set(a, one, "run", jv_int(seen));
		missing = jv_set(a, one, "not_run", jv_array());
		for (int n = 1; n < COVERAGE_LINES_MAX; n++)
			if (c->files[i]->code[n] && !c->files[i]->ran[n])
				jv_push(a, missing, jv_int(n));
	}
	return tree;
}
