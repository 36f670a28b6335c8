/* cmd_approvals.c - what rules ask a person for, and that person's answer. */
#include "gate/admin_ask.h"

#include "gate/printed.h"

#include <stdlib.h>
#include <string.h>

#define ARENA_MAX ((size_t)16 << 20)

/* What is in it are the asker's own words, and who decides reads them in a terminal. */
static void print_plain(struct buf *line)
{
	struct buf out;

	buf_init(&out, 6 * ADMIN_ANSWER_MAX);
	buf_put(line, "", 1);
	printed_plain(&out, buf_spent(line) ? "?" : buf_span(line).at, 0);
	printf("%.*s\n", SPAN_FMT(buf_span(&out)));
	fflush(stdout);
	buf_fini(&out);
}

static void print_row(const struct jv *r)
{
	const char *who = jv_str(r, "identity", ""), *object = jv_str(r, "object", ""),
		   *image = jv_str(r, "image", "");
	struct buf line;

	buf_init(&line, ADMIN_ANSWER_MAX);
	buf_printf(&line, "%s %-7s %s%s%s%s%s by %s under %s, rule %s: %s (%lld held, %lld s left)",
		   jv_str(r, "id", "?"), jv_str(r, "state", "?"), jv_str(r, "op", "?"),
		   *object ? " " : "", object, *image ? " of " : "", image,
		   *who ? who : jv_str(r, "owner", "?"), jv_str(r, "profile", "?"),
		   jv_str(r, "rule", "?"), jv_str(r, "text", ""),
		   (long long)jv_num(r, "waiting", 0), (long long)jv_num(r, "left_s", 0));
	print_plain(&line);
	buf_fini(&line);
}

static void print_facts(const struct jv *facts)
{
	struct buf text;

	buf_init(&text, ADMIN_ANSWER_MAX);
	jv_write(&text, facts);
	print_plain(&text);
	buf_fini(&text);
}

static bool is_list(const struct jv *v)
{
	return v && v->kind == JV_ARRAY;
}

static void print_list(const struct jv *answer)
{
	const struct jv *list = jv_get(answer, "approvals");

	for (size_t i = 0; is_list(list) && i < list->count; i++)
		print_row(&list->items[i]);
}

static void print_one(const struct jv *answer)
{
	const struct jv *r = jv_get(answer, "approval"), *facts = jv_get(r, "facts");

	print_row(r);
	if (facts)
		print_facts(facts);
	else
		printf("its facts are too long to be shown; the log has them: audit query --id "
		       "%s\n",
		       jv_str(r, "id", "?"));
}

static void print_allowed(const struct jv *answer)
{
	puts(jv_true(answer, "more") ? "on record; another person must allow it as well"
				     : "allowed, on record: it passes now if it waits, else when "
				       "it comes again");
}

static void print_denied(const struct jv *answer)
{
	(void)answer;
	puts("denied, on record");
}

static int fill(const struct args *args, struct arena *a, struct jv *to, struct err *err)
{
	int64_t seconds = args->lifetime ? command_seconds(args->lifetime) : 1;

	if (args->rest_count != 1)
		return err_set(err, ERR_INPUT, "name the question by its id: approvals list");
	if (seconds <= 0)
		return err_set(err, ERR_INPUT,
			       "--for takes a time such as 90s, 30m or 8h, not '%s'",
			       args->lifetime);
	jv_set(a, to, "id", jv_string(args->rest[0]));
	if (args->lifetime)
		jv_set(a, to, "seconds", jv_int(seconds));
	if (args->has_count)
		jv_set(a, to, "times", jv_int((int64_t)args->count));
	return 0;
}

int run_approvals_list(const struct args *args)
{
	static const struct admin_question q = {VERB_approvals_list, NULL, "approvals", print_list};

	return admin_command(args, &q);
}

int run_approvals_show(const struct args *args)
{
	static const struct admin_question q = {VERB_approvals_show, fill, "approval", print_one};

	return admin_command(args, &q);
}

int run_approvals_allow(const struct args *args)
{
	static const struct admin_question q = {VERB_approvals_allow, fill, NULL, print_allowed};

	return admin_command(args, &q);
}

int run_approvals_deny(const struct args *args)
{
	static const struct admin_question q = {VERB_approvals_deny, fill, NULL, print_denied};

	return admin_command(args, &q);
}

/* --- watch --- */

struct watching {
	const struct args *args;
	const char *socket;
	int64_t serial; /* of the newest that is known */
	uint64_t shown;
};

static bool has_enough(const struct watching *w)
{
	return w->args->has_count && w->shown >= w->args->count;
}

/* Questions that are newer. */
static void print_new(struct watching *w, const struct jv *answer)
{
	const struct jv *list = jv_get(answer, "approvals");

	for (size_t i = 0; is_list(list) && i < list->count && !has_enough(w); i++) {
		const struct jv *r = &list->items[i];

		if (jv_num(r, "serial", 0) <= w->serial ||
		    strcmp(jv_str(r, "state", ""), "open") != 0)
			continue;
		w->shown++;
		if (w->args->json)
			admin_print_json(r);
		else
			print_row(r);
	}
	w->serial = jv_num(answer, "serial", w->serial);
}

/* EXIT_YES: and on. */
static int watch_once(struct watching *w)
{
	struct arena *a = arena_create(ARENA_MAX);
	struct jv given = jv_object(), answer;
	struct err err = {0};
	int rc = EXIT_NO;

	if (!a)
		return EXIT_CANNOT;
	jv_set(a, &given, "after", jv_int(w->serial));
	if (admin_ask_gate(w->socket, VERB_approvals_wait, &given, a, &answer, &err) < 0) {
		rc = command_failed(&err);
	} else if (!jv_true(&answer, "ok")) {
		admin_print_refusal(admin_verb_name(VERB_approvals_wait), &answer);
	} else {
		print_new(w, &answer);
		rc = EXIT_YES;
	}
	arena_destroy(a);
	return rc;
}

int run_approvals_watch(const struct args *args)
{
	struct arena *a = arena_create(ARENA_MAX);
	struct err err = {0};
	const char *socket = a ? admin_socket_of(args, a, &err) : NULL;
	struct watching w = {.args = args, .socket = socket};
	int rc = socket ? EXIT_YES : a ? command_failed(&err) : EXIT_CANNOT;

	while (rc == EXIT_YES && !has_enough(&w))
		rc = watch_once(&w);
	arena_destroy(a);
	return rc;
}
