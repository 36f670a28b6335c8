#include "gate/admin_ask.h"

#include "gate/base/auto.h"
#include "gate/base/io.h"
#include "gate/listen.h"
#include "gate/serve.h"

#include <stdio.h>
#include <unistd.h>

#define ARENA_MAX ((size_t)16 << 20)
#define PIECE     4096
#define LIMIT_MS  20000
#define WAIT_MS   (ADMIN_WORK_MS + 10000)

static int read_answer(int fd, struct buf *ret, struct err *err)
{
	ssize_t n;

	do {
		size_t want = buf_room(ret) < PIECE ? buf_room(ret) : PIECE;
		char *at = want ? buf_reserve(ret, want) : NULL;

		n = at ? read(fd, at, want) : -1;
		if (n > 0)
			buf_commit(ret, (size_t)n);
	} while (n > 0);
	if (n < 0)
		return err_sys(err, "read the answer");
	if (!buf_len(ret))
		return err_set(err, ERR_SYSTEM, "the gate says nothing");
	return 0;
}

static int send_request(int fd, enum admin_verb verb, const struct jv *args, struct arena *a,
			struct err *err)
{
	struct jv request = jv_object();
	struct buf text;
	int rc;

	jv_set(a, &request, "verb", jv_string(admin_verb_name(verb)));
	if (args)
		jv_set(a, &request, "args", *args);
	buf_init(&text, ADMIN_REQUEST_MAX + 1);
	jv_write(&text, &request);
	buf_puts(&text, "\n");
	rc = buf_spent(&text) ? err_set(err, ERR_INPUT, "the request is too long")
			      : io_write_all(fd, buf_span(&text).at, buf_len(&text), err);
	buf_fini(&text);
	return rc;
}

/* It is answered when something has happened. */
static bool waits(enum admin_verb verb)
{
	return verb == VERB_reload || verb == VERB_rollback || verb == VERB_approvals_wait;
}

int admin_ask_gate(const char *socket, enum admin_verb verb, const struct jv *args, struct arena *a,
		   struct jv *ret, struct err *err)
{
	auto_fd int fd = -1;
	enum jv_fault fault;
	struct buf text;
	int rc;

	if (listen_connect(socket, waits(verb) ? WAIT_MS : LIMIT_MS, &fd, err) < 0 ||
	    send_request(fd, verb, args, a, err) < 0)
		return -1;
	buf_init(&text, ADMIN_ANSWER_MAX);
	rc = read_answer(fd, &text, err);
	if (rc == 0)
		rc = jv_parse(a, buf_span(&text), ret, &fault, err);
	if (rc == 0 && !jv_get(ret, "ok"))
		rc = err_set(err, ERR_INPUT, "%s is no admin socket of the gate", socket);
	buf_fini(&text);
	return rc;
}

const char *admin_socket_of(const struct args *args, struct arena *a, struct err *err)
{
	struct loaded loaded;
	const char *path;

	if (args->socket)
		return args->socket;
	if (!args->config) {
		err_set(err, ERR_INPUT, "give --config FILE or --socket PATH");
		return NULL;
	}
	if (load(args->config, &loaded, err) < 0)
		return NULL;
	path = arena_strndup(a, loaded.config.status_socket, strlen(loaded.config.status_socket));
	unload(&loaded);
	if (!path)
		err_set(err, ERR_SYSTEM, "no memory");
	return path;
}

static void print_who_may(const char *verb)
{
	char roles[32];

	for (int v = 0; v < VERB_COUNT; v++) {
		if (strcmp(admin_verb_name((enum admin_verb)v), verb) != 0)
			continue;
		admin_roles_text(admin_verb_roles((enum admin_verb)v), roles);
		fprintf(stderr,
			"Roles that may: %s; admin { ... } in the configuration says who has "
			"them.\n",
			roles);
	}
}

void admin_print_refusal(const char *verb, const struct jv *answer)
{
	const char *reason = jv_str(answer, "reason", "?"), *text = jv_str(answer, "text", "");

	fprintf(stderr, "%s: %s%s%s\n", verb, reason, *text ? ": " : "", text);
	if (strcmp(reason, admin_answer_name(ANSWER_not_permitted)) == 0)
		print_who_may(verb);
}

void admin_print_json(const struct jv *v)
{
	struct buf text;

	buf_init(&text, ADMIN_ANSWER_MAX);
	jv_write(&text, v);
	printf("%.*s\n", SPAN_FMT(buf_span(&text)));
	fflush(stdout); /* whoever follows wants it now */
	buf_fini(&text);
}

static int ask_and_show(const struct args *args, const struct admin_question *q, struct arena *a)
{
	struct jv given = jv_object(), answer;
	struct err err = {0};
	const char *socket;
	const struct jv *shown;

	if (q->fill && q->fill(args, a, &given, &err) < 0)
		return command_failed(&err);
	socket = admin_socket_of(args, a, &err);
	if (!socket ||
	    admin_ask_gate(socket, q->verb, q->fill ? &given : NULL, a, &answer, &err) < 0)
		return command_failed(&err);
	shown = q->key ? jv_get(&answer, q->key) : NULL;
	if (args->json)
		admin_print_json(shown && jv_true(&answer, "ok") ? shown : &answer);
	else if (jv_true(&answer, "ok"))
		q->print(&answer);
	else
		admin_print_refusal(admin_verb_name(q->verb), &answer);
	return jv_true(&answer, "ok") ? EXIT_YES : EXIT_NO;
}

int admin_command(const struct args *args, const struct admin_question *q)
{
	struct arena *a = arena_create(ARENA_MAX);
	int rc = a ? ask_and_show(args, q, a) : EXIT_CANNOT;

	arena_destroy(a);
	return rc;
}
