/* cmd_mode.c - mode: a profile that only warns for a while. */
#include "gate/admin_ask.h"

#include <string.h>

#define ARENA_MAX ((size_t)8 << 20)

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

static int read_mode(const struct args *args, bool *ret_warn, struct err *err)
{
	const char *mode = args->rest_count == 2 ? args->rest[1] : "";

	*ret_warn = strcmp(mode, "warn") == 0;
	if (!*ret_warn && strcmp(mode, "enforce") != 0)
		return err_set(err, ERR_INPUT, "name one profile, and warn or enforce");
	if (*ret_warn == !args->lifetime)
		return err_set(err, ERR_INPUT,
			       *ret_warn ? "--for is missing: warn takes a time, at most 24h"
					 : "enforce takes no --for");
	return 0;
}

static int change(const struct args *args, struct arena *a)
{
	struct jv given = jv_object();
	int64_t seconds = args->lifetime ? command_seconds(args->lifetime) : 0;
	struct err err = {0};
	bool warn;

	if (read_mode(args, &warn, &err) < 0)
		return command_failed(&err);
	jv_set(a, &given, "profile", jv_string(args->rest[0]));
	jv_set(a, &given, "ticket", jv_string(args->ticket));
	if (!warn)
		return admin_command(args, VERB_mode_enforce, &given, "mode", print_ended, a);
	if (seconds <= 0 || seconds > EMERGENCY_MODE_MAX_S) {
		err_set(&err, ERR_INPUT,
			"--for takes a time such as 90s, 30m or 8h, at most 24h, not '%s'",
			args->lifetime);
		return command_failed(&err);
	}
	jv_set(a, &given, "seconds", jv_int(seconds));
	return admin_command(args, VERB_mode_warn, &given, "mode", print_begun, a);
}

int run_mode(const struct args *args)
{
	struct arena *a = arena_create(ARENA_MAX);
	int rc = a ? change(args, a) : EXIT_CANNOT;

	arena_destroy(a);
	return rc;
}

int run_mode_list(const struct args *args)
{
	struct arena *a = arena_create(ARENA_MAX);
	int rc =
		a ? admin_command(args, VERB_mode_list, NULL, "modes", print_list, a) : EXIT_CANNOT;

	arena_destroy(a);
	return rc;
}
