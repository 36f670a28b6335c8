#include "gate/command.h"

#include "backends/backend.h"
#include "gate/base/jv.h"
#include "gate/base/nearest.h"
#include "gate/http_get.h"
#include "gate/serve.h"

#include <string.h>
#include <unistd.h>

#define LIMIT_MS  10000
#define LISTING   "/containers/json?limit=1"
#define SHOWN_MAX 300 /* bytes of a refusal */

static const struct conf_listener *find_listener(const struct proxy_conf *p, const char *name,
						 struct err *err)
{
	char hint[NEAREST_TEXT_MAX];
	struct nearest near = nearest_to(span_of(name ? name : ""));

	for (size_t i = 0; i < p->listener_count; i++) {
		if (p->listeners[i].metrics || *p->listeners[i].tcp)
			continue;
		if (!name || strcmp(p->listeners[i].name, name) == 0)
			return &p->listeners[i];
		nearest_offer(&near, p->listeners[i].name);
	}
	if (!name)
		err_set(err, ERR_INPUT,
			"no listener is a socket that callers use; health does not ask by tcp");
	else
		err_set(err, ERR_INPUT,
			"no listener is called '%s'%s; those of tcp and metrics are not asked",
			name, nearest_text(&near, hint));
	return NULL;
}

/* What the adapter says proves that its service works. */
static int target_of(const struct conf_backend *conf, char *ret, size_t size, struct err *err)
{
	const struct backend_ops *ops = backend_find(conf->kind);
	const struct backend_conf open_conf = {.name = conf->name};
	struct backend *be = ops->open(&open_conf, err);

	if (!be)
		return -1;
	snprintf(ret, size, "%s", ops->health_target ? ops->health_target(be) : LISTING);
	ops->close(be);
	return 0;
}

/* The text of {"message":TEXT}, whose lines are meant to be read; else the bytes as they are. */
static void print_refusal(struct span body)
{
	struct arena *a = arena_create(65536);
	const char *message = "";
	enum jv_fault fault;
	struct err err = {0};
	struct jv tree;

	if (a && jv_parse(a, body, &tree, &fault, &err) == 0)
		message = jv_str(&tree, "message", "");
	if (*message)
		printf("%s\n", message);
	else
		printf("%.*s\n", (int)(body.len < SHOWN_MAX ? body.len : SHOWN_MAX), body.at);
	if (strstr(message, "[identity_unknown,"))
		printf("health asks as the user who runs it (uid %u): run it as one of the "
		       "listener's identities.\n",
		       (unsigned)geteuid());
	arena_destroy(a);
}

static int ask(const struct conf_listener *l, const char *target)
{
	struct err err = {0};
	struct buf body;
	int status;

	if (http_get(l->socket, target, LIMIT_MS, &status, &body, &err) < 0) {
		printf("listener %s: %s\n", l->name, err.msg);
		return EXIT_NO;
	}
	if (status == 200) {
		printf("listener %s: GET %s works\n", l->name, target);
	} else {
		printf("listener %s: GET %s was answered with status %d: ", l->name, target,
		       status);
		print_refusal(buf_span(&body));
	}
	buf_fini(&body);
	return status == 200 ? EXIT_YES : EXIT_NO;
}

int run_health(const struct args *args)
{
	const struct conf_listener *l;
	struct err err = {0};
	struct loaded loaded;
	char target[256];
	int answer = EXIT_CANNOT;

	if (load(args->config, &loaded, &err) < 0)
		return command_failed(&err);
	l = find_listener(&loaded.config.proxy, args->listener, &err);
	if (l &&
	    target_of(&loaded.config.proxy.backends[l->backend], target, sizeof(target), &err) == 0)
		answer = ask(l, target);
	else
		command_failed(&err);
	unload(&loaded);
	return answer;
}
