#include "proxy/pulse.h"

#include "gate/base/log.h"
#include "proxy/engines.h"
#include "proxy/worker_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct beat {
	struct pulse *pulse;
	size_t backend;
	struct upcall *up; /* NULL: none is under way */
	uint64_t due_ms, late_ms;
	int status;
	char api[16];
};

struct pulse {
	struct worker *worker;
	struct beat *beats; /* one a backend */
};

static void *pulse_open(struct worker *w, struct err *err)
{
	struct pulse *p = calloc(1, sizeof(*p));

	if (p)
		p->beats = calloc(w->conf->backend_count + 1, sizeof(*p->beats));
	if (!p || !p->beats) {
		err_sys(err, "allocate what is asked of engines");
		free(p);
		return NULL;
	}
	p->worker = w;
	for (size_t i = 0; i < w->conf->backend_count; i++)
		p->beats[i] = (struct beat){.pulse = p, .backend = i};
	return p;
}

static void pulse_close(void *module)
{
	struct pulse *p = module;

	for (size_t i = 0; i < p->worker->conf->backend_count; i++)
		if (p->beats[i].up)
			upcall_release(p->beats[i].up);
	free(p->beats);
	free(p);
}

static void end(struct beat *b, enum engine_state state, const char *why)
{
	const struct worker *w = b->pulse->worker;
	const char *name = w->conf->backends[b->backend].name;
	struct engine_look before;

	if (b->up)
		upcall_release(b->up);
	b->up = NULL;
	b->due_ms = w->loop.now_ms + PULSE_MS;
	engines_look(w->conf->engines, b->backend, &before);
	engines_set(w->conf->engines, b->backend, state, b->api);
	if (before.state == state)
		return;
	if (state != ENGINE_UP)
		log_line("backend %s: %s%s%s", name, engine_state_text(state), *why ? ": " : "",
			 why);
	else if (before.state != ENGINE_UNKNOWN)
		log_line("backend %s: it answers again", name);
}

/* --- the answer --- */

static void take(struct beat *b)
{
	upcall_take(b->up, upcall_body(b->up).len);
	if (upcall_complete(b->up))
		end(b, b->status == 200 ? ENGINE_UP : ENGINE_ODD, "");
}

static void on_head(void *arg, const struct reply_head *head)
{
	struct beat *b = arg;

	b->status = head->status;
	b->api[0] = '\0';
	for (size_t i = 0; i < head->header_count; i++)
		if (span_is(head->headers[i].key, "api-version"))
			snprintf(b->api, sizeof(b->api), "%.*s", SPAN_FMT(head->headers[i].value));
	take(b);
}

static void on_data(void *arg)
{
	take(arg);
}

static void on_fail(void *arg, enum upcall_fault fault)
{
	struct beat *b = arg;
	char why[UPCALL_WHY_MAX];

	snprintf(why, sizeof(why), "%s", upcall_why(b->up));
	end(b, fault == UPCALL_UNREACHABLE ? ENGINE_UNREACHABLE : ENGINE_ODD, why);
}

static const struct upcall_handlers handlers = {
	.head = on_head,
	.data = on_data,
	.fail = on_fail,
};

/* --- the question --- */

static void ask(struct beat *b)
{
	struct worker *w = b->pulse->worker;
	struct service *s = &w->services[b->backend];
	unsigned patience = w->conf->limits.engine_ms;
	struct upcall_request req = {.repeatable = true};
	struct err err = {0};
	char head[512];
	int len = snprintf(head, sizeof(head),
			   "GET %s HTTP/1.1\r\nHost: docker\r\nUser-Agent: sallyport-pulse\r\n\r\n",
			   s->ops->health_target(s->backend));

	req.head = (struct span){head, (size_t)len};
	b->late_ms = w->loop.now_ms + (patience < PULSE_ANSWER_MS ? patience : PULSE_ANSWER_MS);
	b->up = upcall_start(s->pool, &req, &handlers, b, &err);
	if (!b->up)
		end(b, ENGINE_UNREACHABLE, err.msg);
}

static void pulse_tick(void *module)
{
	struct pulse *p = module;
	uint64_t now = p->worker->loop.now_ms;

	for (size_t i = 0; i < p->worker->conf->backend_count; i++) {
		struct beat *b = &p->beats[i];

		if (b->up && now >= b->late_ms)
			end(b, ENGINE_SILENT, "");
		else if (!b->up && now >= b->due_ms && !p->worker->stopping &&
			 p->worker->services[i].ops->health_target)
			ask(b);
	}
}

/* What has changed is to be known soon. */
static void pulse_look(void *module, size_t backend, enum watcher_why why)
{
	(void)why;
	((struct pulse *)module)->beats[backend].due_ms = 0;
}

static void pulse_lost(void *module, size_t backend)
{
	((struct pulse *)module)->beats[backend].due_ms = 0;
}

const struct watcher_module pulse_module = {
	.name = "pulse",
	.open = pulse_open,
	.close = pulse_close,
	.look = pulse_look,
	.lost = pulse_lost,
	.tick = pulse_tick,
};
