#include "proxy/engine_get.h"

#include "gate/base/clock.h"
#include "proxy/dial.h"
#include "proxy/upstream.h"

#include <stdio.h>

struct get {
	struct upcall *up;
	struct buf *body;
	int status;
	bool over;
	struct err err; /* kind is ERR_NONE if it worked */
};

static void take(struct get *g)
{
	struct span s = upcall_body(g->up);

	buf_put(g->body, s.at, s.len);
	upcall_take(g->up, s.len);
	g->over = upcall_complete(g->up);
	if (!buf_spent(g->body))
		return;
	g->over = true;
	err_set(&g->err, ERR_LIMIT, "the answer is larger than %zu bytes", ENGINE_GET_BODY_MAX);
}

static void on_head(void *arg, const struct reply_head *head)
{
	struct get *g = arg;

	g->status = head->status;
	take(g);
}

static void on_data(void *arg)
{
	take(arg);
}

static void on_room(void *arg)
{
	(void)arg;
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
	.room = on_room,
	.fail = on_fail,
};

static int run(struct loop *l, struct upstream *u, struct get *g, const char *target,
	       unsigned limit_ms, struct err *err)
{
	uint64_t until = clock_boot_ms() + limit_ms, now = until - limit_ms;
	struct upcall_request req = {0};
	char head[4096];
	int len = snprintf(head, sizeof(head),
			   "GET %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: "
			   "sallyport-command\r\nConnection: close\r\n\r\n",
			   target);

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

int engine_get(const struct conf_backend *conf, const char *target, unsigned limit_ms,
	       int *ret_status, struct buf *ret_body, struct err *err)
{
	struct get g = {.body = ret_body};
	struct upstream *u = NULL;
	struct loop l = {.epfd = -1};
	struct dial *d;
	int rc = -1;

	buf_init(ret_body, ENGINE_GET_BODY_MAX);
	d = dial_open(conf, err);
	if (d && loop_open(&l, err) < 0)
		dial_close(d);
	else if (d)
		u = upstream_open_dial(&l, d, NULL, NULL);
	if (u)
		rc = run(&l, u, &g, target, limit_ms, err);
	upstream_close(u);
	loop_close(&l);
	*ret_status = g.status;
	if (rc == 0)
		return 0;
	buf_fini(ret_body);
	if (err->kind == ERR_NONE)
		err_set(err, ERR_SYSTEM, "no memory");
	return err_wrap(err, "%s", conf->address);
}
