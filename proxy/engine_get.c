#include "proxy/engine_get.h"

#include "gate/base/clock.h"
#include "proxy/dial.h"
#include "proxy/upstream.h"

#include <stdio.h>

struct get {
	struct upcall *up;
	struct engine_answer *answer;
	bool over;
	struct err err; /* kind is ERR_NONE if it worked */
};

static void take(struct get *g)
{
	struct span s = upcall_body(g->up);

	buf_put(&g->answer->body, s.at, s.len);
	upcall_take(g->up, s.len);
	g->over = upcall_complete(g->up);
	if (!buf_spent(&g->answer->body))
		return;
	g->over = true;
	err_set(&g->err, ERR_LIMIT, "the answer is larger than %zu bytes", g->answer->body.cap);
}

static void on_head(void *arg, const struct reply_head *head)
{
	struct get *g = arg;

	g->answer->status = head->status;
	for (size_t i = 0; i < head->header_count; i++)
		if (span_is(head->headers[i].key, "etag") &&
		    head->headers[i].value.len < ENGINE_TAG_MAX)
			snprintf(g->answer->etag, ENGINE_TAG_MAX, "%.*s",
				 SPAN_FMT(head->headers[i].value));
	take(g);
}

static void on_data(void *arg)
{
	take(arg);
}

static void on_fail(void *arg, enum upcall_fault fault)
{
	static const char *const faults[] = {
		[UPCALL_FINE] = "",
		[UPCALL_UNREACHABLE] = "it closed the connection before it answered",
		[UPCALL_CUT] = "its answer ended in the middle",
		[UPCALL_NONSENSE] = "its answer is no HTTP",
	};
	struct get *g = arg;
	const char *why = upcall_why(g->up);

	g->over = true;
	err_set(&g->err, ERR_UPSTREAM, "%s", *why ? why : faults[fault]);
}

static const struct upcall_handlers handlers = {
	.head = on_head,
	.data = on_data,
	.fail = on_fail,
};

static int run(struct loop *l, struct upstream *u, struct get *g, const struct engine_question *q,
	       struct err *err)
{
	uint64_t until = clock_boot_ms() + q->limit_ms, now = until - q->limit_ms;
	struct upcall_request req = {0};
	char head[4096];
	int len = snprintf(head, sizeof(head),
			   "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: "
			   "sallyport-command\r\nConnection: close\r\n%s\r\n",
			   q->target, q->host, q->more);

	if (len < 0 || len >= (int)sizeof(head))
		return err_set(err, ERR_INPUT, "the target is too long");
	req.head = (struct span){head, (size_t)len};
	g->up = upcall_start(u, &req, &handlers, g, err);
	if (!g->up)
		return -1;
	for (; !g->over && now < until; now = clock_boot_ms())
		loop_turn(l, (int)(until - now));
	if (!g->over)
		err_set(&g->err, ERR_UPSTREAM, "no answer in time");
	upcall_release(g->up);
	if (g->err.kind != ERR_NONE)
		*err = g->err;
	return g->err.kind == ERR_NONE ? 0 : -1;
}

int engine_ask(const struct conf_backend *conf, const struct engine_question *q,
	       struct engine_answer *ret, struct err *err)
{
	struct get g = {.answer = ret};
	struct upstream *u = NULL;
	struct loop l = {.epfd = -1};
	struct dial *d;
	int rc = -1;

	*ret = (struct engine_answer){0};
	buf_init(&ret->body, q->body_max);
	d = dial_open(conf, err);
	if (d && loop_open(&l, err) < 0)
		dial_close(d);
	else if (d)
		u = upstream_open_dial(&l, d, NULL, NULL);
	if (u)
		rc = run(&l, u, &g, q, err);
	upstream_close(u);
	loop_close(&l);
	if (rc == 0)
		return 0;
	buf_fini(&ret->body);
	if (err->kind == ERR_NONE)
		err_set(err, ERR_SYSTEM, "no memory");
	return err_wrap(err, "%s", conf->address);
}

int engine_get(const struct conf_backend *conf, const char *target, unsigned limit_ms,
	       int *ret_status, struct buf *ret_body, struct err *err)
{
	const struct engine_question q = {target, "localhost", "", ENGINE_GET_BODY_MAX, limit_ms};
	struct engine_answer answer;

	if (engine_ask(conf, &q, &answer, err) < 0)
		return -1;
	*ret_status = answer.status;
	*ret_body = answer.body;
	return 0;
}
