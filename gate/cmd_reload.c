#include "gate/command.h"

#include "gate/admin_ask.h"

#include <string.h>

#define ARENA_MAX ((size_t)8 << 20)

static const struct jv *member(const struct jv *of, const char *key)
{
	static const struct jv none = {.kind = JV_OBJECT};
	const struct jv *found = jv_get(of, key);

	return found ? found : &none;
}

static void print_json(const struct jv *v)
{
	struct buf text;

	buf_init(&text, ADMIN_ANSWER_MAX);
	jv_write(&text, v);
	printf("%.*s\n", SPAN_FMT(buf_span(&text)));
	buf_fini(&text);
}

static int show(enum admin_verb verb, const struct jv *answer, bool json)
{
	const struct jv *status = member(answer, "status"), *reload = member(status, "reload");
	const char *generation = jv_str(status, "generation", "?");
	bool ok = jv_true(answer, "ok");

	if (!ok && !jv_get(answer, "status")) {
		admin_print_refusal(admin_verb_name(verb), answer);
		return EXIT_NO;
	}
	if (json)
		print_json(reload);
	else if (ok)
		printf("reloaded: generation %.12s is in force\n", generation);
	else
		printf("not reloaded: %s\ngeneration %.12s stays in force\n",
		       jv_str(reload, "reason", "?"), generation);
	return ok ? EXIT_YES : EXIT_NO;
}

/* The gate answers when the reload has ended. */
static int reload(const struct args *args, enum admin_verb verb, const struct jv *given,
		  struct arena *a)
{
	struct err err = {0};
	const char *socket = admin_socket_of(args, a, &err);
	struct jv answer;

	if (!socket) {
		fputs("not reloaded; if the gate runs, the old rules stay in force\n", stderr);
		return command_failed(&err);
	}
	if (admin_ask_gate(socket, verb, given, a, &answer, &err) < 0) {
		err_wrap(&err, "the gate does not answer");
		return command_failed(&err);
	}
	return show(verb, &answer, args->json);
}

int run_reload(const struct args *args)
{
	struct arena *a = arena_create(ARENA_MAX);
	int answer;

	if (!a)
		return EXIT_CANNOT;
	answer = reload(args, VERB_reload, NULL, a);
	arena_destroy(a);
	return answer;
}

int run_rollback(const struct args *args)
{
	struct arena *a = arena_create(ARENA_MAX);
	struct jv given = jv_object();
	struct err err = {0};
	int answer;

	if (!a)
		return EXIT_CANNOT;
	if (args->rest_count == 1) {
		jv_set(a, &given, "generation", jv_string(args->rest[0]));
		answer = reload(args, VERB_rollback, &given, a);
	} else {
		err_set(&err, ERR_INPUT, "name the generation to return to; `status` lists them");
		answer = command_failed(&err);
	}
	arena_destroy(a);
	return answer;
}
