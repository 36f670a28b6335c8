#include "gate/command.h"

#include "gate/base/auto.h"
#include "gate/base/jv.h"
#include "gate/listen.h"
#include "gate/serve.h"

#include <errno.h>
#include <unistd.h>

#define LIMIT_MS   5000
#define STATUS_MAX 65536

static int read_status(const char *path, struct buf *ret, struct err *err)
{
	auto_fd int fd = -1;
	ssize_t n;

	if (listen_connect(path, LIMIT_MS, &fd, err) < 0)
		return -1;
	do {
		char *at = buf_reserve(ret, buf_room(ret) < 4096 ? buf_room(ret) : 4096);

		n = at ? read(fd, at, buf_room(ret) < 4096 ? buf_room(ret) : 4096) : -1;
		if (n > 0)
			buf_commit(ret, (size_t)n);
	} while (n > 0);
	if (n < 0)
		return err_sys(err, "read the status");
	if (!buf_len(ret))
		return err_set(err, ERR_SYSTEM,
			       "the gate says nothing: only root and its own user may ask");
	return 0;
}

static void print_status(const struct jv *tree)
{
	const struct jv *list = jv_get(tree, "processes");

	printf("sallyport %s, pid %lld, %s, up %lld s\n", jv_str(tree, "version", "?"),
	       (long long)jv_num(tree, "pid", 0),
	       jv_true(tree, "stopping") ? "stopping"
	       : jv_true(tree, "ready")  ? "ready"
					 : "not ready",
	       (long long)jv_num(tree, "uptime_s", 0));
	printf("configuration %s\ngeneration    %s\naudit log     %s\n\n",
	       jv_str(tree, "config", "?"), jv_str(tree, "generation", "?"),
	       jv_str(tree, "audit", "?"));
	for (size_t i = 0; list && list->kind == JV_ARRAY && i < list->count; i++)
		printf("%-10s pid %-8lld %-10s up %lld s, %lld restarts\n",
		       jv_str(&list->items[i], "role", "?"),
		       (long long)jv_num(&list->items[i], "pid", 0),
		       jv_str(&list->items[i], "state", "?"),
		       (long long)jv_num(&list->items[i], "uptime_s", 0),
		       (long long)jv_num(&list->items[i], "restarts", 0));
}

static int show(const char *socket, const struct args *args, struct arena *a)
{
	struct err err = {0};
	enum jv_fault fault;
	struct buf text;
	struct jv tree;
	int answer;

	buf_init(&text, STATUS_MAX);
	if (read_status(socket, &text, &err) < 0) {
		if (err.sys == EACCES)
			printf("not known: %s; only root and the gate's own user may ask\n",
			       err.msg);
		else
			printf("not running: %s\n", err.msg);
		buf_fini(&text);
		return EXIT_NO;
	}
	if (jv_parse(a, buf_span(&text), &tree, &fault, &err) < 0) {
		answer = command_failed(&err);
	} else {
		if (args->json)
			printf("%.*s", SPAN_FMT(buf_span(&text)));
		else
			print_status(&tree);
		answer = jv_true(&tree, "ready") ? EXIT_YES : EXIT_NO;
	}
	buf_fini(&text);
	return answer;
}

int run_status(const struct args *args)
{
	struct err err = {0};
	struct loaded loaded;
	int answer;

	if (load(args->config, &loaded, &err) < 0)
		return command_failed(&err);
	answer = show(loaded.config.status_socket, args, loaded.arena);
	unload(&loaded);
	return answer;
}
