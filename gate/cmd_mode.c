/* cmd_mode.c - mode: a profile that only warns for a while. */
#include "gate/admin_ask.h"

#include <string.h>

static const struct jv *one_of(const struct jv *answer)
{
	return jv_get(answer, "mode");
}

static void print_begun(const struct jv *answer)
{
	printf("profile %s only warns until %.19sZ, ticket %s; what would give a workload the host "
	       "stays refused\n",
	       jv_str(one_of(answer), "profile", "?"), jv_str(one_of(answer), "until", "?"),
	       jv_str(one_of(answer), "ticket", "?"));
	if (!jv_true(answer, "kept"))
		fprintf(stderr,
			"note: it is not kept, and ends with the gate: see admin { state }\n");
}

static void print_ended(const struct jv *answer)
{
	printf("profile %s judges as it is written\n", jv_str(one_of(answer), "profile", "?"));
}

static void print_list(const struct jv *answer)
{
	const struct jv *list = jv_get(answer, "modes");

	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++) {
		const struct jv *m = &list->items[i];

		printf("%-24s %-8s %-16s since %.19sZ until %.19sZ\n", jv_str(m, "profile", "?"),
		       jv_str(m, "mode", "?"), jv_str(m, "ticket", "?"), jv_str(m, "since", "?"),
		       jv_str(m, "until", "?"));
	}
}

static bool warns(const struct args *args)
{
	return args->rest_count == 2 && strcmp(args->rest[1], "warn") == 0;
}

static int fill(const struct args *args, struct arena *a, struct jv *to, struct err *err)
{
	int64_t seconds = args->lifetime ? command_seconds(args->lifetime) : 0;

	if (!warns(args) && (args->rest_count != 2 || strcmp(args->rest[1], "enforce") != 0))
		return err_set(err, ERR_INPUT, "name one profile, and warn or enforce");
	if (warns(args) == !args->lifetime)
		return err_set(err, ERR_INPUT,
			       warns(args) ? "--for is missing: warn takes a time, at most 24h"
					   : "enforce takes no --for");
	jv_set(a, to, "profile", jv_string(args->rest[0]));
	jv_set(a, to, "ticket", jv_string(args->ticket));
	if (!warns(args))
		return 0;
	if (seconds <= 0 || seconds > EMERGENCY_MODE_MAX_S)
		return err_set(err, ERR_INPUT,
			       "--for takes a time such as 90s, 30m or 8h, at most 24h, not '%s'",
			       args->lifetime);
	jv_set(a, to, "seconds", jv_int(seconds));
	return 0;
}

int run_mode(const struct args *args)
{
	static const struct admin_question warn = {VERB_mode_warn, fill, "mode", print_begun},
					   enforce = {VERB_mode_enforce, fill, "mode", print_ended};

	return admin_command(args, warns(args) ? &warn : &enforce);
}

int run_mode_list(const struct args *args)
{
	static const struct admin_question q = {VERB_mode_list, NULL, "modes", print_list};

	return admin_command(args, &q);
}
