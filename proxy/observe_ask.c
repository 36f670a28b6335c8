/* Asking an engine, without an exchange. */
#include "proxy/observe_priv.h"

#include <stdlib.h>

#define HEAD_MAX 1024

struct ask {
	struct observe *observe;
	size_t backend;
	struct upcall *up;
	ask_done *done;
	void *arg;
	int status;
	uint64_t asked_ms;
	struct buf body;
};

void observe_ask_end(struct ask *a)
{
	if (!a)
		return;
	if (a->up)
		upcall_release(a->up);
	buf_fini(&a->body);
	a->observe->of[a->backend].asked--;
	free(a);
}

bool observe_ask_late(const struct ask *a, uint64_t after_ms)
{
	return a->observe->worker->loop.now_ms - a->asked_ms > after_ms;
}

/* Whoever asked ends it. */
static void on_data(void *arg)
{
	struct ask *a = arg;
	struct span s = upcall_body(a->up);

	buf_put(&a->body, s.at, s.len);
	upcall_take(a->up, s.len);
	if (buf_spent(&a->body))
		a->done(a->observe, a->arg, 0, (struct span){"", 0});
	else if (upcall_complete(a->up))
		a->done(a->observe, a->arg, a->status, buf_span(&a->body));
}

static void on_head(void *arg, const struct reply_head *head)
{
	struct ask *a = arg;

	a->status = head->status;
	on_data(a);
}

static void on_fail(void *arg, enum upcall_fault fault)
{
	struct ask *a = arg;

	(void)fault;
	a->done(a->observe, a->arg, 0, (struct span){"", 0});
}

static const struct upcall_handlers handlers = {.head = on_head, .data = on_data, .fail = on_fail};

struct ask *observe_ask(struct observe *o, size_t backend, const char *target, size_t most,
			ask_done *done, void *arg)
{
	struct upcall_request req = {.repeatable = true};
	struct ask *a = calloc(1, sizeof(*a));
	struct err err = {0};
	struct buf head;

	if (!a)
		return NULL;
	*a = (struct ask){.observe = o,
			  .backend = backend,
			  .done = done,
			  .arg = arg,
			  .asked_ms = o->worker->loop.now_ms};
	buf_init(&a->body, most);
	buf_init(&head, HEAD_MAX);
	buf_printf(&head,
		   "GET %s HTTP/1.1\r\nHost: docker\r\nUser-Agent: sallyport-watcher\r\n\r\n",
		   target);
	req.head = buf_span(&head);
	o->of[backend].asked++;
	a->up = upcall_start(o->worker->services[backend].pool, &req, &handlers, a, &err);
	buf_fini(&head);
	if (a->up)
		return a;
	observe_ask_end(a);
	return NULL;
}
