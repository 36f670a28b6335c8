/* Looking where callers run: see inside.h. */
#include "proxy/inside.h"

#include "proxy/cgroup.h"
#include "proxy/metrics.h"
#include "proxy/worker_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define NANOS          UINT64_C(1000000000)
#define TICKS_A_SECOND 100 /* of /proc/PID/stat: USER_HZ, the same on every Linux that we know */

enum look_at {
	LOOK_WAITS = 0, /* others come first */
	LOOK_CALLER,    /* the resolver looks at the process */
	LOOK_ENGINE,
	LOOK_TOGETHER /* the resolver looks at the container's first process as well */
};

/* One look at a caller, while it is under way. */
struct look_inside {
	struct look_inside *prev, *next; /* of the worker's */
	struct worker *worker;
	struct conn *conn;
	enum look_at at;
	uint64_t until_ms;
	uint64_t ticket; /* of a question to the resolver; 0: none */
	uint64_t start;  /* of the process */
	struct upcall *up;
	struct buf body;
	int status;
	struct caller_call call;
	struct inside *found; /* what the engine said */
	bool was_kept;        /* ... a moment ago */
};

/* --- the end of a look --- */

static void unlink_look(struct look_inside *l)
{
	if (l->prev)
		l->prev->next = l->next;
	else
		l->worker->looks = l->next;
	if (l->next)
		l->next->prev = l->prev;
}

/* Its memory goes with the next tick: whoever walks the list may stand on it. */
static void end_look(struct look_inside *l)
{
	struct worker *w = l->worker;

	unlink_look(l);
	l->conn->looking = NULL;
	if (l->up)
		upcall_release(l->up);
	buf_fini(&l->body);
	inside_unref(l->found);
	arena_destroy(l->call.arena);
	*l = (struct look_inside){.next = w->looks_over};
	w->looks_over = l;
}

void inside_sweep(struct worker *w)
{
	struct look_inside *l;

	while ((l = w->looks_over) != NULL) {
		w->looks_over = l->next;
		free(l);
	}
}

static bool is_same(const struct inside *a, const struct inside *b)
{
	if (a->place != b->place)
		return false;
	return a->place != CALLER_INSIDE ||
	       (!strcmp(a->container.id, b->container.id) && !strcmp(a->started_at, b->started_at));
}

/* Who was somewhere stays there as long as the connection lasts. */
static struct inside *held_against_the_first(struct conn *c, struct inside *in)
{
	if (in->place == CALLER_UNKNOWN)
		return in;
	if (!c->inside_first) {
		c->inside_first = inside_ref(in);
		return in;
	}
	if (is_same(c->inside_first, in))
		return in;
	inside_unref(in);
	return inside_unknown("the caller is not where it was when it connected", false);
}

static void know(struct conn *c, struct inside *in)
{
	inside_unref(c->inside);
	c->inside = in;
	c->who.container = in && in->place == CALLER_INSIDE ? &in->container : NULL;
}

static void pump(struct worker *w);

/* Takes in. */
static void settle(struct look_inside *l, struct inside *in)
{
	struct conn *c = l->conn;
	struct worker *w = l->worker;
	struct exchange *x = c->exchange;

	end_look(l);
	if (in)
		in = held_against_the_first(c, in);
	if (in)
		in->made_ms = w->loop.now_ms;
	know(c, in);
	metrics_add(w->conf->metrics, METRIC_callers_looked_at, 1);
	if (!in || in->place == CALLER_UNKNOWN)
		metrics_add(w->conf->metrics, METRIC_callers_unknown, 1);
	if (x && x->state == X_CALLER)
		exchange_caller_known(x);
}

static void not_known(struct look_inside *l, const char *why, bool trouble)
{
	settle(l, inside_unknown(why, trouble));
}

/* --- is it still the process that connected? --- */

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

/*
 * Without a descriptor of the process its number may have become another's
 * before we looked: of one that was started later, or of another user.
 */
static bool may_be_another(const struct conn *c, const struct jv *answer)
{
	uint64_t start = (uint64_t)jv_num(answer, "start", INT64_MAX);

	return start > c->accepted_boot_ns / (NANOS / TICKS_A_SECOND) ||
	       jv_num(answer, "uid", -1) != c->who.uid || jv_num(answer, "gid", -1) != c->who.gid;
}

/* NULL: it is. */
static const char *is_another(const struct look_inside *l, const struct jv *answer)
{
	const struct conn *c = l->conn;
	const char *state = jv_str(answer, "state", "");

	if (!strcmp(state, "gone"))
		return "the process that connected has ended";
	if (strcmp(state, "seen") != 0)
		return "the process that connected cannot be looked at";
	if (l->start && (uint64_t)jv_num(answer, "start", 0) != l->start)
		return "the process that connected has ended";
	if (c->pidfd >= 0 ? has_ended(c->pidfd) : may_be_another(c, answer))
		return "the process that connected has ended, or is not who it was";
	return NULL;
}

/* --- the resolver --- */

static bool ask_resolver(struct look_inside *l, enum look_at at, const char *question)
{
	struct worker *w = l->worker;
	struct span ticket = {(const char *)&l->ticket, sizeof(l->ticket)};

	l->at = at;
	l->ticket = ++w->next_ticket;
	return frame_alive(&w->resolver) && frame_put(&w->resolver, ticket, span_of(question));
}

static void ask_about_caller(struct look_inside *l)
{
	char question[64];

	snprintf(question, sizeof(question), "caller %d\n", (int)l->conn->who.pid);
	if (!ask_resolver(l, LOOK_CALLER, question))
		not_known(l, "the resolver does not answer", true);
}

static void ask_whether_together(struct look_inside *l)
{
	char question[200];

	if (!l->found->init) {
		not_known(l, "the engine does not say which process is the container's first",
			  false);
		return;
	}
	snprintf(question, sizeof(question), "caller %d\ninit %d\nid %s\n", (int)l->conn->who.pid,
		 (int)l->found->init, l->found->container.id);
	if (!ask_resolver(l, LOOK_TOGETHER, question))
		not_known(l, "the resolver does not answer", true);
}

static void ask_engine(struct look_inside *l);

/* Of the innermost alone: whether the engine knows that one decides about the others. */
static bool use_kept(struct look_inside *l)
{
	struct inside *kept = l->call.id_count
				      ? inside_recent(l->worker, l->conn->listener, l->call.ids[0])
				      : NULL;

	if (!kept)
		return false;
	l->found = inside_ref(kept);
	l->was_kept = true;
	return true;
}

/*
 * The innermost first.  A container of this engine may lie below the control groups of another
 * one of it (--cgroup-parent), and is not that one; of containers that another engine made in
 * one of this engine's, this one knows the outer alone.
 */
static void take_ids(struct look_inside *l, const struct jv *ids)
{
	_Static_assert(sizeof(l->call.ids) / sizeof(*l->call.ids) == CGROUP_IDS_MAX,
		       "room for each that a control group names");

	for (size_t i = ids && ids->kind == JV_ARRAY ? ids->count : 0; i-- > 0;)
		if (ids->items[i].kind == JV_STRING && l->call.id_count < CGROUP_IDS_MAX)
			l->call.ids[l->call.id_count++] = ids->items[i].str.at;
}

static void take_caller(struct look_inside *l, const struct jv *answer)
{
	const char *place = jv_str(answer, "place", "");

	l->start = (uint64_t)jv_num(answer, "start", 0);
	if (!strcmp(place, "outside")) {
		settle(l, inside_outside());
		return;
	}
	if (strcmp(place, "inside") != 0) {
		not_known(l, "its control groups and namespaces do not say where it runs", false);
		return;
	}
	take_ids(l, jv_get(answer, "ids"));
	if (use_kept(l))
		ask_whether_together(l);
	else
		ask_engine(l);
}

static void take_together(struct look_inside *l, const struct jv *answer)
{
	if (jv_true(answer, "together")) {
		settle(l, inside_ref(l->found));
		return;
	}
	if (!l->was_kept) {
		not_known(l, "it is not in the control groups and pid namespace of that container",
			  false);
		return;
	}
	/* The container may have been started anew since. */
	l->was_kept = false;
	inside_unref(l->found);
	l->found = NULL;
	ask_engine(l);
}

static void take_answer(struct look_inside *l, struct span text)
{
	struct jv answer = jv_null();
	enum jv_fault fault;
	struct err err = {0};
	const char *another;

	if (jv_parse(l->call.arena, text, &answer, &fault, &err) < 0) {
		not_known(l, "the resolver's answer cannot be read", true);
		return;
	}
	another = is_another(l, &answer);
	if (another)
		not_known(l, another, false);
	else if (l->at == LOOK_CALLER)
		take_caller(l, &answer);
	else
		take_together(l, &answer);
}

bool inside_answer(struct worker *w, uint64_t ticket, struct span answer)
{
	for (struct look_inside *l = w->looks; ticket && l; l = l->next) {
		if (l->ticket != ticket)
			continue;
		l->ticket = 0;
		take_answer(l, answer);
		pump(w);
		return true;
	}
	return false;
}

void inside_resolver_lost(struct worker *w)
{
	for (struct look_inside *l = w->looks, *next; l; l = next) {
		next = l->next;
		if (l->ticket)
			not_known(l, "the resolver has ended meanwhile", true);
	}
	pump(w);
}

/* --- the engine --- */

static const struct upcall_handlers engine_handlers;

static void start_get(struct look_inside *l)
{
	struct service *s = &l->worker->services[l->conn->listener->backend];
	struct upcall_request req = {.repeatable = true};
	struct err err = {0};
	struct buf head;

	buf_init(&head, 4096);
	buf_printf(&head, "GET %s HTTP/1.1\r\nHost: docker\r\n\r\n", l->call.lookup.target);
	req.head = buf_span(&head);
	buf_init(&l->body, LOOKUP_REPLY_MAX);
	if (!buf_spent(&head))
		l->up = upcall_start(s->pool, &req, &engine_handlers, l, &err);
	buf_fini(&head);
}

/* The adapter goes on with what it was told, or says what it wants to know. */
static void ask_engine(struct look_inside *l)
{
	struct service *s = &l->worker->services[l->conn->listener->backend];
	enum step step = STEP_REFUSED;

	l->at = LOOK_ENGINE;
	l->call.why = "this kind of backend does not know containers";
	if (s->ops->caller)
		step = s->ops->caller(s->backend, &l->call);
	if (step == STEP_LOOKUP) {
		start_get(l);
		if (!l->up)
			not_known(l, "the engine cannot be reached", true);
		return;
	}
	if (step == STEP_REFUSED) {
		not_known(l, l->call.why, l->call.trouble);
		return;
	}
	l->found = inside_of(&l->call);
	if (!l->found) {
		not_known(l, "no memory", true);
		return;
	}
	l->found->made_ms = l->worker->loop.now_ms;
	if (l->call.peer) {
		settle(l, inside_ref(l->found));
		return;
	}
	inside_keep(l->worker, l->conn->listener, l->found);
	ask_whether_together(l);
}

static void engine_answered(struct look_inside *l, int status)
{
	struct lookup *q = &l->call.lookup;
	struct worker *w = l->worker;
	enum jv_fault fault;
	struct err err = {0};

	q->answered = true;
	q->status = status;
	q->body = jv_null();
	if (status == 200 && (buf_spent(&l->body) || jv_parse(l->call.arena, buf_span(&l->body),
							      &q->body, &fault, &err) < 0))
		q->status = 0;
	buf_fini(&l->body);
	upcall_release(l->up);
	l->up = NULL;
	ask_engine(l);
	pump(w);
}

static void on_data(void *arg)
{
	struct look_inside *l = arg;
	struct span s = upcall_body(l->up);

	buf_put(&l->body, s.at, s.len);
	upcall_take(l->up, s.len);
	if (upcall_complete(l->up) || buf_spent(&l->body))
		engine_answered(l, l->status);
}

static void on_head(void *arg, const struct reply_head *head)
{
	((struct look_inside *)arg)->status = head->status;
	on_data(arg);
}

static void on_fail(void *arg, enum upcall_fault fault)
{
	(void)fault;
	engine_answered(arg, 0);
}

static const struct upcall_handlers engine_handlers = {
	.head = on_head,
	.data = on_data,
	.fail = on_fail,
};

/* --- whose turn it is --- */

/* Those under way, of which there are few however many wait. */
struct going {
	const struct look_inside *list[INSIDE_LOOKS_MAX];
	unsigned count;
};

static void find_going(const struct worker *w, struct going *ret)
{
	ret->count = 0;
	for (const struct look_inside *l = w->looks; l; l = l->next)
		if (l->at != LOOK_WAITS && ret->count < INSIDE_LOOKS_MAX)
			ret->list[ret->count++] = l;
}

static unsigned going_of(const struct going *g, const struct conn *of)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->count; i++)
		n += connection_same_caller(g->list[i]->conn, of);
	return n;
}

/*
 * The one that has waited longest, of the callers with the fewest under way; new ones are in
 * front.  NULL: nobody's turn it is.
 */
static struct look_inside *next_look(const struct worker *w)
{
	struct look_inside *best = NULL;
	unsigned least = INSIDE_LOOKS_OWN_MAX;
	struct going going;

	find_going(w, &going);
	if (going.count == INSIDE_LOOKS_MAX)
		return NULL;
	for (struct look_inside *l = w->looks; l; l = l->next) {
		unsigned n = l->at == LOOK_WAITS ? going_of(&going, l->conn) : INSIDE_LOOKS_OWN_MAX;

		if (n < INSIDE_LOOKS_OWN_MAX && n <= least) {
			best = l;
			least = n;
		}
	}
	return best;
}

static void pump(struct worker *w)
{
	struct look_inside *l;

	if (w->pumping) /* one that ended at once is not the end of all */
		return;
	w->pumping = true;
	while ((l = next_look(w)) != NULL) {
		if (l->call.peer)
			ask_engine(l);
		else
			ask_about_caller(l);
	}
	w->pumping = false;
}

static bool is_due(const struct exchange *x)
{
	const struct inside *in = x->conn->inside;
	bool reads = !strcmp(x->req.method, "GET") || !strcmp(x->req.method, "HEAD");

	if (!in || in->place == CALLER_UNKNOWN ||
	    (x->conn->pidfd >= 0 && has_ended(x->conn->pidfd)))
		return true;
	return x->worker->loop.now_ms - in->made_ms > (reads ? INSIDE_FRESH_MS : INSIDE_CHANGE_MS);
}

static struct look_inside *new_look(struct conn *c)
{
	struct worker *w = c->worker;
	struct look_inside *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->worker = w;
	l->conn = c;
	l->until_ms = w->loop.now_ms + INSIDE_LOOK_MS;
	l->call.arena = arena_create(ARENA_CAP);
	l->call.labels = c->listener->caller_labels;
	l->call.since_ns = c->accepted_unix_ns;
	if (conf_is_tcp(c->listener)) {
		l->call.peer = c->address;
		l->call.own = c->own_address;
	}
	buf_init(&l->body, 0);
	l->next = w->looks;
	if (l->next)
		l->next->prev = l;
	w->looks = l;
	c->looking = l;
	return l;
}

bool inside_look(struct exchange *x, bool anew)
{
	struct conn *c = x->conn;
	struct look_inside *l;

	if (!c->listener->looks_inside || x->worker->check || !(anew || is_due(x)))
		return false;
	if (!conf_is_tcp(c->listener) && (c->who.pid <= 1 || c->peer_gone)) {
		know(c, inside_unknown(c->peer_gone ? "the process that connected has ended"
						    : "its process is in a pid namespace that the "
						      "gate does not see",
				       false));
		return false;
	}
	l = new_look(c);
	if (!l || !l->call.arena) {
		if (l)
			end_look(l);
		know(c, NULL); /* no memory: unknown */
		return false;
	}
	pump(x->worker);
	return c->looking != NULL;
}

void inside_give_up(struct conn *c)
{
	if (c->looking)
		end_look(c->looking);
}

/* A facts file's "caller": { "container": {...} }. */
static void take_stated(struct conn *c)
{
	const struct jv *tree = jv_path(check_facts(c->worker), "caller.container");
	struct arena *a = tree ? arena_create(ARENA_CAP) : NULL;
	struct caller_call call = {.arena = a, .started_at = ""};

	if (a && caller_container_read(tree, a, &call.found))
		know(c, inside_of(&call));
	arena_destroy(a);
}

void inside_begin(struct conn *c)
{
	struct timespec now;
	socklen_t len = sizeof(c->pidfd);

	c->pidfd = -1;
	if (c->worker->check)
		take_stated(c);
	if (!c->listener->looks_inside || c->worker->check)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	c->accepted_unix_ns = (int64_t)now.tv_sec * (int64_t)NANOS + now.tv_nsec;
	clock_gettime(CLOCK_BOOTTIME, &now);
	c->accepted_boot_ns = (uint64_t)now.tv_sec * NANOS + (uint64_t)now.tv_nsec;
	/* Older kernels have none; and of a process that is gone there is none. */
	if (!conf_is_tcp(c->listener) &&
	    getsockopt(c->fd, SOL_SOCKET, SO_PEERPIDFD, &c->pidfd, &len) < 0) {
		/* It ended before it was accepted: its number says nothing any more. */
		c->peer_gone = errno != ENOPROTOOPT;
		c->pidfd = -1;
	}
}

void inside_end(struct conn *c)
{
	inside_give_up(c);
	if (c->pidfd >= 0)
		close(c->pidfd);
	c->pidfd = -1;
	inside_unref(c->inside);
	inside_unref(c->inside_first);
	c->inside = c->inside_first = NULL;
}

void inside_tick(struct worker *w)
{
	for (struct look_inside *l = w->looks, *next; l; l = next) {
		next = l->next;
		if (w->loop.now_ms >= l->until_ms)
			not_known(l, "it was not known in time", true);
	}
	pump(w);
	inside_sweep(w);
}
