/* cmd_denials.c - denials: what was refused last, and the line of the profile that would grant it.
 */
#include "gate/command.h"

#include "gate/grants.h"
#include "gate/recorded.h"

#include <stdlib.h>
#include <string.h>

#define LAST_DEFAULT 10
#define LAST_MAX     10000

/* The last so many, in a ring; each in memory of its own. */
struct denials {
	char **lines; /* JSON texts of records */
	size_t size, next, count;
	bool oom;
};

static int on_decision(void *arg, const struct recorded *r, struct arena *a)
{
	struct denials *d = arg;
	struct buf text;

	(void)a;
	/* What a mode let pass would have been refused, too. */
	if (strcmp(r->verdict, "allow") == 0 && strcmp(r->would, "allow") == 0)
		return 0;
	buf_init(&text, (size_t)1 << 20);
	jv_write(&text, &r->record);
	buf_put(&text, "", 1);
	free(d->lines[d->next]);
	d->lines[d->next] = buf_spent(&text) ? NULL : strdup(buf_span(&text).at);
	d->oom = d->oom || !d->lines[d->next];
	buf_fini(&text);
	d->next = (d->next + 1) % d->size;
	d->count++;
	return d->oom;
}

/* Each violation with the line that would grant it, as a tree. */
static struct jv ways(const struct jv *record, struct arena *a)
{
	const struct jv *list = jv_get(record, "violations"), *facts = jv_get(record, "facts");
	struct jv out = jv_array();

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		struct jv *one = jv_push(a, &out, list->items[i]);
		struct buf line;
		enum grants_answer answer;
		const char *copy;

		buf_init(&line, 8192);
		answer = grants_line(facts, jv_str(record, "op", ""), one, &line);
		copy = arena_strndup(a, buf_span(&line).at, buf_len(&line));
		buf_fini(&line);
		jv_set(a, one, "grants",
		       jv_string(answer == GRANTS_LINE   ? "line"
				 : answer == GRANTS_RULE ? "exception"
							 : "nothing"));
		jv_set(a, one, "line", jv_string(copy));
	}
	return out;
}

static void print_text(const struct jv *record, const struct jv *list)
{
	const char *who = jv_str(jv_get(record, "actor"), "identity", "");

	printf("%s  %.19sZ  %s by %s under \"%s\"%s\n", jv_str(record, "id", ""),
	       jv_str(record, "t", ""), jv_str(record, "op", ""),
	       *who ? who : "a caller without a name", jv_str(jv_get(record, "pol"), "profile", ""),
	       strcmp(jv_str(record, "verdict", ""), "allow") == 0 ? " (allowed on trial)" : "");
	for (size_t i = 0; i < list->count; i++) {
		const struct jv *v = &list->items[i];
		const char *line = jv_str(v, "line", "");
		enum reason reason = reason_find(span_of(jv_str(v, "reason", "")));

		printf("  %s [%s]%s%s%s%s: %s\n", jv_str(v, "rule", ""), jv_str(v, "reason", ""),
		       *jv_str(v, "field", "") ? " " : "", jv_str(v, "field", ""),
		       *jv_str(v, "value", "") ? " = " : "", jv_str(v, "value", ""),
		       jv_str(v, "text", reason_what(reason)));
		if (strcmp(jv_str(v, "grants", ""), "line") == 0)
			printf("    %s\n", line);
		else if (strcmp(jv_str(v, "grants", ""), "exception") == 0)
			printf("    a rule of the profile: change it, or %s\n", line);
		else
			printf("    %s\n",
			       *line ? line
				     : "no line of a profile would; the request must change");
	}
}

static int print_all(const struct denials *d, const struct args *args, struct err *err)
{
	size_t kept = d->count < d->size ? d->count : d->size;

	for (size_t i = 0; i < kept; i++) {
		const char *text = d->lines[(d->next + d->size - kept + i) % d->size];
		struct arena *a = arena_create((size_t)4 << 20);
		enum jv_fault fault;
		struct jv record, list;
		struct buf out;
		int rc;

		if (!a)
			return err_sys(err, "no memory");
		rc = jv_parse(a, span_of(text), &record, &fault, err);
		if (rc == 0) {
			list = ways(&record, a);
			jv_set(a, &record, "violations", list);
		}
		if (rc == 0 && args->json) {
			buf_init(&out, (size_t)1 << 20);
			jv_write(&out, &record);
			printf("%.*s\n", SPAN_FMT(buf_span(&out)));
			buf_fini(&out);
		} else if (rc == 0) {
			print_text(&record, &list);
		}
		arena_destroy(a);
		if (rc < 0)
			return -1;
	}
	if (!kept && !args->json)
		puts("nothing was refused");
	return 0;
}

int run_denials(const struct args *args)
{
	struct denials d = {.size = args->has_count ? args->count : LAST_DEFAULT};
	struct err err = {0};
	int rc = -1;

	if (d.size < 1 || d.size > LAST_MAX) {
		err_set(&err, ERR_INPUT, "--last takes 1 to %d", LAST_MAX);
		return command_failed(&err);
	}
	d.lines = calloc(d.size, sizeof(*d.lines));
	if (!d.lines)
		err_sys(&err, "no memory");
	else
		rc = recorded_each(args->log, on_decision, &d, &err);
	if (d.oom)
		err_set(&err, ERR_SYSTEM, "no memory");
	if (rc == 0)
		rc = print_all(&d, args, &err);
	for (size_t i = 0; d.lines && i < d.size; i++)
		free(d.lines[i]);
	free(d.lines);
	return rc == 0 ? EXIT_YES : command_failed(&err);
}
