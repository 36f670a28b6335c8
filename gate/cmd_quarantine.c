/* cmd_quarantine.c - quarantine: an owner whose every request is refused for a while. */
#include "gate/admin_ask.h"

static const struct jv *one_of(const struct jv *answer)
{
	return jv_get(answer, "quarantine");
}

static void print_begun(const struct jv *answer)
{
	printf("%s is under quarantine, ticket %s\n", jv_str(one_of(answer), "owner", "?"),
	       jv_str(one_of(answer), "ticket", "?"));
	if (!jv_true(answer, "known"))
		fprintf(stderr, "note: nobody has this name or owner now; is it the right one?\n");
	if (!jv_true(answer, "kept"))
		fprintf(stderr,
			"note: it is not kept, and ends with the gate: see admin { state }\n");
}

static void print_released(const struct jv *answer)
{
	printf("%s is not under quarantine any more\n", jv_str(one_of(answer), "owner", "?"));
}

static void print_list(const struct jv *answer)
{
	const struct jv *list = jv_get(answer, "quarantines");

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		const struct jv *q = &list->items[i];

		printf("%-24s %-16s since %.19sZ%s\n", jv_str(q, "owner", "?"),
		       jv_str(q, "ticket", "?"), jv_str(q, "since", "?"),
		       jv_true(q, "kill") ? "  (what it runs is stopped)" : "");
	}
}

static int fill(const struct args *args, struct arena *a, struct jv *to, struct err *err)
{
	if (args->rest_count != 1 || (args->kill && args->release))
		return err_set(err, ERR_INPUT,
			       "name one identity or owner, and --kill or --release");
	jv_set(a, to, "name", jv_string(args->rest[0]));
	jv_set(a, to, "ticket", jv_string(args->ticket));
	if (args->kill)
		jv_set(a, to, "kill", jv_bool(true));
	return 0;
}

int run_quarantine(const struct args *args)
{
	static const struct admin_question begin = {VERB_quarantine, fill, "quarantine",
						    print_begun},
					   release = {VERB_quarantine_release, fill, "quarantine",
						      print_released};

	return admin_command(args, args->release ? &release : &begin);
}

int run_quarantine_list(const struct args *args)
{
	static const struct admin_question q = {VERB_quarantine_list, NULL, "quarantines",
						print_list};

	return admin_command(args, &q);
}
