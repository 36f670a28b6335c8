#include "gate/command.h"

#include "gate/base/clock.h"
#include "gate/base/jv.h"
#include "gate/serve.h"
#include "gate/status_ask.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#define ANSWER_MAX   ((size_t)1 << 20) /* bytes of a status as a tree */
#define ASK_EVERY_MS 50
#define PATIENCE_MS  150000 /* above all that the gate itself waits for */

/* The arena holds only the last answer. */
static int ask(const struct config *c, struct arena *a, struct jv *ret, struct err *err)
{
	arena_reset(a, ANSWER_MAX);
	if (status_ask(c->status_socket, a, ret, err) < 0)
		return err_wrap(err, "the gate does not answer");
	return 0;
}

static const struct jv *reload_of(const struct jv *status)
{
	static const struct jv none = {.kind = JV_OBJECT};
	const struct jv *reload = jv_get(status, "reload");

	return reload ? reload : &none;
}

static bool has_ended(const struct jv *status, int64_t before)
{
	const char *state = jv_str(reload_of(status), "state", "none");

	return jv_num(reload_of(status), "count", 0) > before &&
	       (strcmp(state, "done") == 0 || strcmp(state, "failed") == 0);
}

/* Asks for it, and waits until it has ended.  0 or -1; *ret: the status then. */
static int reload(const struct config *c, struct arena *a, struct jv *ret, struct err *err)
{
	uint64_t give_up_ms = clock_boot_ms() + PATIENCE_MS;
	int64_t before;
	pid_t pid;

	if (ask(c, a, ret, err) < 0)
		return -1;
	before = jv_num(reload_of(ret), "count", 0);
	pid = (pid_t)jv_num(ret, "pid", 0);
	if (pid <= 1 || kill(pid, SIGHUP) < 0)
		return err_sys(err, "ask process %d to reload", (int)pid);
	while (!has_ended(ret, before)) {
		if (clock_boot_ms() >= give_up_ms)
			return err_set(err, ERR_LIMIT, "the gate did not say how the reload ended");
		poll(NULL, 0, ASK_EVERY_MS);
		if (ask(c, a, ret, err) < 0)
			return -1;
	}
	return 0;
}

static int show(const struct jv *status, bool json)
{
	const char *reason = jv_str(reload_of(status), "reason", "");
	const char *generation = jv_str(status, "generation", "?");
	bool failed = *reason != '\0';
	struct buf text;

	if (json) {
		buf_init(&text, STATUS_MAX);
		jv_write(&text, reload_of(status));
		printf("%.*s\n", SPAN_FMT(buf_span(&text)));
		buf_fini(&text);
	} else if (failed) {
		printf("not reloaded: %s\ngeneration %.12s stays in force\n", reason, generation);
	} else {
		printf("reloaded: generation %.12s is in force\n", generation);
	}
	return failed ? EXIT_NO : EXIT_YES;
}

int run_reload(const struct args *args)
{
	struct arena *a = arena_create(ANSWER_MAX);
	struct err err = {0};
	struct loaded loaded;
	struct jv status;
	int answer;

	if (!a || load(args->config, &loaded, &err) < 0) {
		arena_destroy(a);
		fputs("not reloaded; if the gate runs, the old rules stay in force\n", stderr);
		return command_failed(&err);
	}
	if (reload(&loaded.config, a, &status, &err) == 0)
		answer = show(&status, args->json);
	else
		answer = command_failed(&err);
	unload(&loaded);
	arena_destroy(a);
	return answer;
}
