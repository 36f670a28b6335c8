#include "proxy/watcher.h"

#include "gate/base/log.h"
#include "proxy/observe_priv.h"
#include "proxy/pulse.h"
#include "proxy/rejudge.h"
#include "proxy/watched.h"
#include "proxy/worker_priv.h"

#include <stdlib.h>
#include <string.h>

#define RETRY_FIRST_MS 250
#define RETRY_MAX_MS   5000
#define ANSWER_MS      10000 /* for the head of the answer */
#define HEAD_MAX       1024

/* All of them, in the order in which they are called. */
enum { OBSERVE, REJUDGE, PULSE, MODULES };
static const struct watcher_module *const modules[MODULES] = {
	[OBSERVE] = &observe_module,
	[REJUDGE] = &rejudge_module,
	[PULSE] = &pulse_module,
};

/* The connection on which an engine says what happens. */
struct link {
	struct worker *worker;
	size_t backend;
	struct upcall *up; /* NULL: none */
	bool answered;     /* the engine has said that events follow */
	bool seen;         /* it has been before */
	bool said;         /* that it cannot be reached */
	uint64_t asked_ms, retry_ms, pause_ms;
	struct buf line; /* the beginning of one */
	bool too_long;   /* the rest of this one is dropped */
};

struct watcher {
	struct link *links;
	void *modules[MODULES];
	enum watched_turn turn;
	bool begun;
};

/* --- modules --- */

static void call_look(struct link *l, enum watcher_why why)
{
	for (size_t i = 0; i < MODULES; i++)
		if (modules[i]->look)
			modules[i]->look(l->worker->watcher->modules[i], l->backend, why);
}

static void call_lost(struct link *l)
{
	for (size_t i = 0; i < MODULES; i++)
		if (modules[i]->lost)
			modules[i]->lost(l->worker->watcher->modules[i], l->backend);
}

static void call_event(struct link *l, struct span line)
{
	for (size_t i = 0; i < MODULES; i++)
		if (modules[i]->event)
			modules[i]->event(l->worker->watcher->modules[i], l->backend, line);
}

static const char *call_since(struct link *l)
{
	for (size_t i = 0; i < MODULES; i++)
		if (modules[i]->since)
			return modules[i]->since(l->worker->watcher->modules[i], l->backend);
	return "";
}

/* --- lines --- */

/* A line without its end is kept for the next piece; one that is longer than may be is one empty.
 */
static void take_line(struct link *l, struct span piece, bool ends)
{
	if (!l->too_long && piece.len > buf_room(&l->line))
		l->too_long = true;
	if (!l->too_long)
		buf_put(&l->line, piece.at, piece.len);
	if (!ends)
		return;
	call_event(l, l->too_long ? (struct span){"", 0} : buf_span(&l->line));
	buf_clear(&l->line);
	l->too_long = false;
}

static void take_piece(struct link *l, struct span piece)
{
	while (piece.len) {
		const char *end = memchr(piece.at, '\n', piece.len);
		size_t len = end ? (size_t)(end - piece.at) : piece.len;

		take_line(l, (struct span){piece.at, len}, end != NULL);
		piece = span_skip(piece, len + (end ? 1 : 0));
	}
}

/* --- the connection --- */

static void hang_up(struct link *l)
{
	bool was = l->answered;

	if (l->up)
		upcall_release(l->up);
	l->up = NULL;
	l->answered = l->too_long = false;
	buf_clear(&l->line);
	l->retry_ms = l->worker->loop.now_ms + l->pause_ms;
	l->pause_ms = l->pause_ms * 2 < RETRY_MAX_MS ? l->pause_ms * 2 : RETRY_MAX_MS;
	l->worker->services[l->backend].ops->forget(l->worker->services[l->backend].backend);
	if (was)
		call_lost(l);
}

static void unheard(struct link *l, const char *why)
{
	if (!l->said)
		log_line("backend %s: what happens there is not seen: %s",
			 l->worker->conf->backends[l->backend].name, why);
	l->said = true;
	hang_up(l);
}

static void on_data(void *arg)
{
	struct link *l = arg;
	struct span s = upcall_body(l->up);

	take_piece(l, s);
	upcall_take(l->up, s.len);
	if (upcall_complete(l->up))
		unheard(l, "the engine has ended the stream of its events");
}

static void on_head(void *arg, const struct reply_head *head)
{
	struct link *l = arg;
	enum watched_turn turn = l->worker->watcher->turn;
	enum watcher_why why = turn == WATCHED_FIRST    ? WATCHER_START
			       : turn == WATCHED_RELOAD ? WATCHER_RELOAD
							: WATCHER_RECONNECT;

	if (head->status != 200) {
		unheard(l, "the engine refuses to tell");
		return;
	}
	if (l->said)
		log_line("backend %s: what happens there is seen again",
			 l->worker->conf->backends[l->backend].name);
	l->said = false;
	l->answered = true;
	l->pause_ms = RETRY_FIRST_MS;
	call_look(l, l->seen ? WATCHER_RECONNECT : why);
	l->seen = true;
	on_data(l); /* what came with it */
}

static void on_fail(void *arg, enum upcall_fault fault)
{
	static const char *const why[] = {"", "it cannot be reached", "it has gone",
					  "it does not speak HTTP"};

	unheard(arg, why[fault]);
}

static const struct upcall_handlers handlers = {
	.head = on_head,
	.data = on_data,
	.fail = on_fail,
};

static void ask(struct link *l)
{
	struct service *s = &l->worker->services[l->backend];
	struct upcall_request req = {0};
	struct err err = {0};
	struct buf head;

	buf_init(&head, HEAD_MAX);
	s->ops->watch(s->backend, call_since(l), &head);
	req.head = buf_span(&head);
	l->asked_ms = l->worker->loop.now_ms;
	if (!buf_spent(&head))
		l->up = upcall_start(s->pool, &req, &handlers, l, &err);
	buf_fini(&head);
	if (!l->up)
		unheard(l, err.msg);
}

/* --- the process --- */

void watcher_begin(struct worker *w)
{
	w->watcher->turn = watched_take(w->conf->watched, w->conf->generation);
	w->watcher->begun = true;
}

void watcher_tick(struct worker *w)
{
	struct watcher *me = w->watcher;

	for (size_t i = 0; me->begun && !w->stopping && i < w->conf->backend_count; i++) {
		struct link *l = &me->links[i];

		if (!l->up && w->loop.now_ms >= l->retry_ms)
			ask(l);
		else if (l->up && !l->answered && w->loop.now_ms - l->asked_ms > ANSWER_MS)
			unheard(l, "it does not answer");
	}
	for (size_t i = 0; i < MODULES; i++)
		if (modules[i]->tick)
			modules[i]->tick(me->modules[i]);
}

bool watcher_idle(const struct worker *w)
{
	for (size_t i = 0; i < MODULES; i++)
		if (modules[i]->idle && !modules[i]->idle(w->watcher->modules[i]))
			return false;
	return true;
}

#define LINE_MAX_BYTES 65536 /* of an event; the engine's own are below 4 KiB and the labels */

int watcher_fill(struct worker *w, struct err *err)
{
	struct watcher *me = w->watcher;

	me->links = calloc(w->conf->backend_count + 1, sizeof(*me->links));
	if (!me->links)
		return err_sys(err, "allocate a watcher");
	for (size_t i = 0; i < w->conf->backend_count; i++) {
		me->links[i] = (struct link){.worker = w, .backend = i, .pause_ms = RETRY_FIRST_MS};
		buf_init(&me->links[i].line, LINE_MAX_BYTES);
	}
	for (size_t i = 0; i < MODULES; i++) {
		me->modules[i] = modules[i]->open(w, err);
		if (!me->modules[i])
			return err_wrap(err, "%s", modules[i]->name);
	}
	return 0;
}

struct worker *watcher_open(const struct proxy_conf *conf, struct err *err)
{
	struct watcher *me = calloc(1, sizeof(*me));

	if (!me) {
		err_sys(err, "allocate a watcher");
		return NULL;
	}
	return worker_open_as(conf, me, err);
}

void watcher_free(struct worker *w)
{
	struct watcher *me = w->watcher;

	for (size_t i = 0; i < MODULES; i++)
		if (me->modules[i] && modules[i]->close)
			modules[i]->close(me->modules[i]);
	for (size_t i = 0; me->links && i < w->conf->backend_count; i++) {
		if (me->links[i].up)
			upcall_release(me->links[i].up);
		buf_fini(&me->links[i].line);
	}
	free(me->links);
	free(me);
}
