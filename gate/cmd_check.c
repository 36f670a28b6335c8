/* cmd_check.c - check and explain: the gate's judgement without the gate. */
#include "gate/command.h"

#include "gate/base/io.h"
#include "gate/client_stub.h"
#include "gate/explain.h"
#include "gate/serve.h"
#include "proxy/worker.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define REQUESTS_MAX    ((size_t)64 << 20) /* bytes of one file of requests */
#define FACTS_FILE_MAX  ((size_t)16 << 20)
#define FACTS_ARENA_MAX ((size_t)128 << 20)

static int read_facts(const char *path, struct arena *a, struct jv *ret, struct err *err)
{
	enum jv_fault fault;
	struct buf text;
	int rc;

	if (io_read_file(path, FACTS_FILE_MAX, &text, err) < 0)
		return -1;
	rc = jv_parse(a, buf_span(&text), ret, &fault, err);
	buf_fini(&text);
	if (rc < 0)
		return err_wrap(err, "%s", path);
	if (ret->kind != JV_OBJECT)
		return err_set(err, ERR_INPUT, "%s: is no JSON object", path);
	return 0;
}

static int judge_file(struct worker *w, struct check_request *req, const char *name,
		      struct err *err)
{
	struct buf text;
	int rc;

	if (io_read_file(strcmp(name, "-") == 0 ? "/dev/stdin" : name, REQUESTS_MAX, &text, err) <
	    0)
		return -1;
	req->text = buf_span(&text);
	rc = worker_check(w, req, err);
	buf_fini(&text);
	return rc;
}

/* explain -- docker run ...: what the client itself would ask for. */
static int judge_client(struct worker *w, struct check_request *req, const struct args *args)
{
	struct err err = {0};
	struct buf text;
	int rc;

	buf_init(&text, REQUESTS_MAX);
	rc = client_stub_run(args->rest, args->rest_count, &text, &err);
	if (rc == 0) {
		req->text = buf_span(&text);
		rc = worker_check(w, req, &err);
	}
	if ((rc < 0 || rc == EXIT_CANNOT) && err.kind != ERR_NONE)
		rc = command_failed(&err);
	buf_fini(&text);
	return rc;
}

/* The worse of two answers: could not, then no, then yes. */
static int worse(int a, int b)
{
	return a > b ? a : b;
}

static int judge_all(struct worker *w, struct check_request *req, const struct args *args)
{
	int answer = EXIT_YES;

	for (size_t i = 0; i < args->rest_count; i++) {
		struct err err = {0};
		int rc = judge_file(w, req, args->rest[i], &err);

		if ((rc < 0 || rc == EXIT_CANNOT) && err.kind != ERR_NONE)
			command_failed(&err);
		answer = worse(answer, rc < 0 ? EXIT_CANNOT : rc);
	}
	return answer;
}

/* Who may not open the engine's socket is told by the answers that it cannot be reached. */
static void say_unreachable(const struct proxy_conf *conf, const struct check_request *req)
{
	for (size_t i = 0; i < conf->listener_count && !req->facts; i++) {
		const struct conf_listener *l = &conf->listeners[i];
		const char *address = conf->backends[l->backend].address;

		if (!l->metrics && strcmp(l->name, req->listener) == 0 &&
		    strncmp(address, "unix://", 7) == 0 && access(address + 7, W_OK) < 0)
			fprintf(stderr,
				"sallyport: backend %s: %s: %s: what it would say of the request "
				"is not "
				"known\n",
				conf->backends[l->backend].name, address + 7, strerror(errno));
	}
}

static int open_and_judge(const struct proxy_conf *conf, struct check_request *req,
			  const struct args *args)
{
	struct err err = {0};
	struct worker *w = worker_open(conf, &err);
	int answer;

	if (!w)
		return command_failed(&err);
	say_unreachable(conf, req);
	answer =
		args->dashes && req->explain ? judge_client(w, req, args) : judge_all(w, req, args);
	worker_close(w);
	return answer;
}

static void explain_more(const struct check_request *req, const struct jv *facts, const char *op,
			 const struct decision *d)
{
	explain_isolation(facts, req->out);
	if (d->judged)
		explain_rules(req->trace, req->out);
	explain_changes(facts, op, d, req->out);
	req->trace->count = 0;
}

static int check(const struct args *args, bool explain)
{
	static struct engine_trace trace;
	struct check_request req = {
		.listener = args->listener ? args->listener : "",
		.identity = args->identity ? args->identity : "",
		.explain = explain,
		.out = stdout,
		.trace = explain ? &trace : NULL,
		.more = explain ? explain_more : NULL,
	};
	struct arena *a = arena_create(FACTS_ARENA_MAX);
	struct err err = {0};
	struct loaded loaded;
	struct jv facts;
	int answer;

	if (!args->rest_count)
		err_set(&err, ERR_INPUT, "name a file with HTTP requests, or '-'");
	else if (!a)
		err_set(&err, ERR_SYSTEM, "no memory");
	else if (args->facts && read_facts(args->facts, a, &facts, &err) == 0)
		req.facts = &facts;
	if (err.kind != ERR_NONE || load(args->config, &loaded, &err) < 0) {
		arena_destroy(a);
		return command_failed(&err);
	}
	answer = open_and_judge(&loaded.config.proxy, &req, args);
	unload(&loaded);
	arena_destroy(a);
	return answer;
}

int run_check(const struct args *args)
{
	return check(args, false);
}

int run_explain(const struct args *args)
{
	return args->id ? explain_id(args) : check(args, true);
}
