#include "proxy/sandbox/sandbox_priv.h"

#include "audit/client.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/base/log.h"
#include "gate/base/uuid.h"
#include "proxy/loop.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TICK_MS     250
#define LOG_MS      2000 /* for the log, before callers are served without one */
#define ASK_ANEW_MS 3000
#define IDLE_S      300 /* a caller's connection without a request */

#define PARTS_OF(member, ptr) ((struct parts *)((char *)(ptr)-offsetof(struct parts, member)))

/* What the process's own thread has; nobody else touches it. */
struct parts {
	struct sandboxes *s;
	struct loop loop;
	struct watch control_watch, audit_watch, wake_watch;
	struct audit_client *audit;
	uint64_t log_seen_ms;
	bool over;
};

/* --- the log --- */

static void on_audit(struct watch *watch, uint32_t events);

static void follow_audit(struct parts *p)
{
	int fd = audit_client_fd(p->audit);
	uint32_t want = EPOLLIN | (audit_client_waiting(p->audit) ? EPOLLOUT : 0);
	struct err err = {0};

	if (fd == p->audit_watch.fd) {
		loop_change(&p->loop, &p->audit_watch, want);
		return;
	}
	loop_forget(&p->loop, &p->audit_watch);
	if (fd >= 0 && loop_watch(&p->loop, &p->audit_watch, fd, want, on_audit, &err) < 0)
		log_line("auditor: %s", err.msg);
}

static void on_audit(struct watch *watch, uint32_t events)
{
	struct parts *p = PARTS_OF(audit_watch, watch);

	(void)events;
	audit_client_read(p->audit);
	follow_audit(p);
}

struct noted {
	struct trail *trail;
	struct note *note;
};

static void tell(struct trail *tr, struct note *n, bool durable)
{
	pthread_mutex_lock(&tr->lock);
	n->durable = durable;
	n->done = true;
	pthread_cond_broadcast(&tr->done);
	pthread_mutex_unlock(&tr->lock);
}

static void on_durable(void *arg, const struct audit_receipt *receipt)
{
	struct noted *about = arg;

	tell(about->trail, about->note, receipt != NULL);
	free(about);
}

static void record_one(struct parts *p, struct note *n)
{
	struct noted *about = malloc(sizeof(*about));
	char id[UUID_TEXT_LEN + 1];

	uuid_make(id);
	n->record.id = id;
	if (about)
		*about = (struct noted){&p->s->trail, n};
	if (about && audit_require(p->audit, &n->record, on_durable, about) == 0)
		return;
	free(about);
	tell(&p->s->trail, n, false);
}

static void on_wake(struct watch *watch, uint32_t events)
{
	struct parts *p = PARTS_OF(wake_watch, watch);
	struct trail *tr = &p->s->trail;
	struct note *list;
	uint64_t count;

	(void)events;
	if (read(tr->wake, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&tr->lock);
	list = tr->first;
	tr->first = NULL;
	tr->last = &tr->first;
	pthread_mutex_unlock(&tr->lock);
	while (list) {
		struct note *n = list;

		list = n->next; /* its thread goes on as soon as it is told */
		record_one(p, n);
	}
}

/* --- the supervisor --- */

void server_want_link(struct sandboxes *s)
{
	struct err err = {0};

	pthread_mutex_lock(&s->control_lock);
	if (io_send_fds(s->conf.control, 'c', NULL, 0, &err) < 0)
		s->over = true;
	pthread_mutex_unlock(&s->control_lock);
}

static void on_control(struct watch *watch, uint32_t events)
{
	struct parts *p = PARTS_OF(control_watch, watch);
	int fds[IO_FDS_MAX];
	struct err err = {0};
	size_t count = 0;
	char tag;

	(void)events;
	if (io_recv_fds(p->s->conf.control, &tag, fds, &count, &err) != 1) {
		p->over = true;
		return;
	}
	if (tag == 'a' && count == 1 && io_nonblock(fds[0], &err) == 0) {
		audit_client_attach(p->audit, fds[0]);
		follow_audit(p);
		return;
	}
	if (tag == 'c' && count == 1) {
		links_add(&p->s->links, fds[0]);
		return;
	}
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}

/* A connection may end though both processes live. */
static void ask_for_log(struct parts *p)
{
	struct err err = {0};

	if (audit_client_fd(p->audit) >= 0)
		p->log_seen_ms = p->loop.now_ms;
	if (p->loop.now_ms - p->log_seen_ms < ASK_ANEW_MS)
		return;
	p->log_seen_ms = p->loop.now_ms;
	pthread_mutex_lock(&p->s->control_lock);
	io_send_fds(p->s->conf.control, 'a', NULL, 0, &err);
	pthread_mutex_unlock(&p->s->control_lock);
}

static void turn(struct parts *p)
{
	audit_client_flush(p->audit);
	follow_audit(p);
	loop_turn(&p->loop, TICK_MS);
	if (p->loop.now_ms >= audit_client_deadline(p->audit)) {
		audit_client_tick(p->audit, p->loop.now_ms);
		follow_audit(p);
	}
	ask_for_log(p);
}

/* --- beginning and end --- */

static int start_fronts(struct sandboxes *s, struct err *err)
{
	for (size_t i = 0; i < s->front_count; i++) {
		const struct httpd_conf conf = {
			.listener = s->fronts[i].listener->fd,
			.connections = s->conf.proxy->sandboxes.connections,
			.idle_s = IDLE_S,
			.held_max = BODY_MAX,
			.arena_max = REQUEST_ARENA,
			.begin = call_begin,
			.piece = call_piece,
			.handle = call_handle,
			.done = call_done,
			.arg = &s->fronts[i],
		};

		s->fronts[i].http = httpd_start(&conf, err);
		if (!s->fronts[i].http)
			return err_wrap(err, "listener %s", s->fronts[i].listener->name);
	}
	return 0;
}

/* Whoever waits for a record is told that there is none. */
static void end_trail(struct trail *tr)
{
	pthread_mutex_lock(&tr->lock);
	tr->over = true;
	for (struct note *n = tr->first; n; n = n->next)
		n->done = true;
	tr->first = NULL;
	tr->last = &tr->first;
	pthread_cond_broadcast(&tr->done);
	pthread_mutex_unlock(&tr->lock);
}

static void end_runs(struct sandboxes *s)
{
	pthread_mutex_lock(&s->lock);
	s->over = true;
	for (struct box *b = s->boxes; b; b = b->next)
		for (struct run *r = b->runs; r; r = r->next)
			run_cut(r);
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* Sandboxes go on; what runs in them ends, since nobody would hear of it. */
static void end_all(struct parts *p)
{
	struct sandboxes *s = p->s;

	end_runs(s);
	links_close(&s->links);
	end_trail(&s->trail);
	audit_client_attach(p->audit, -1); /* tells those whose records were on their way */
	for (size_t i = 0; i < s->front_count; i++)
		httpd_stop(s->fronts[i].http);
}

static int open_parts(struct parts *p, struct sandboxes *s, struct err *err)
{
	*p = (struct parts){.s = s, .loop = {.epfd = -1}};
	p->control_watch.fd = p->audit_watch.fd = p->wake_watch.fd = -1;
	p->audit = audit_client_create();
	if (!p->audit)
		return err_sys(err, "no memory");
	if (loop_open(&p->loop, err) < 0 ||
	    loop_watch(&p->loop, &p->control_watch, s->conf.control, EPOLLIN, on_control, err) < 0)
		return -1;
	return loop_watch(&p->loop, &p->wake_watch, s->trail.wake, EPOLLIN, on_wake, err);
}

static int serve(struct parts *p, struct err *err)
{
	struct sandboxes *s = p->s;
	uint64_t patience_ms = clock_boot_ms() + LOG_MS;
	pthread_t lifetimes;

	p->log_seen_ms = clock_boot_ms();
	while (!p->over && !audit_client_up(p->audit) && clock_boot_ms() < patience_ms)
		turn(p);
	if (pthread_create(&lifetimes, NULL, lifetimes_main, s) != 0)
		return err_sys(err, "start a thread");
	pthread_detach(lifetimes);
	if (start_fronts(s, err) < 0)
		return -1;
	pthread_mutex_lock(&s->control_lock);
	io_send_fds(s->conf.control, 'y', NULL, 0, err);
	pthread_mutex_unlock(&s->control_lock);
	while (!p->over)
		turn(p);
	return 0;
}

int sandboxes_run(struct sandboxes *s)
{
	struct err err = {0};
	struct parts p;
	int rc = open_parts(&p, s, &err);

	if (rc == 0)
		rc = serve(&p, &err);
	if (err.kind != ERR_NONE)
		log_line("%s", err.msg);
	if (rc == 0)
		end_all(&p);
	return rc == 0 ? 0 : 2;
}

static int find_fronts(struct sandboxes *s, struct err *err)
{
	const struct proxy_conf *c = s->conf.proxy;

	s->fronts = calloc(c->listener_count + 1, sizeof(*s->fronts));
	if (!s->fronts)
		return err_sys(err, "no memory");
	for (size_t i = 0; i < c->listener_count; i++)
		if (c->listeners[i].sandbox_count)
			s->fronts[s->front_count++] =
				(struct front){.s = s, .listener = &c->listeners[i]};
	return 0;
}

struct sandboxes *sandboxes_open(const struct sandbox_conf *conf, struct err *err)
{
	struct sandboxes *s = calloc(1, sizeof(*s));

	if (!s) {
		err_sys(err, "no memory");
		return NULL;
	}
	jv_init();
	s->conf = *conf;
	links_init(&s->links);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	pthread_mutex_init(&s->control_lock, NULL);
	pthread_mutex_init(&s->trail.lock, NULL);
	pthread_cond_init(&s->trail.done, NULL);
	s->trail.last = &s->trail.first;
	s->trail.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->trail.wake >= 0 && find_fronts(s, err) == 0 && kept_read_all(s, err) == 0)
		return s;
	if (err->kind == ERR_NONE)
		err_sys(err, "make an event descriptor");
	sandboxes_close(s);
	return NULL;
}

/* The process ends: threads that still have something of it in hand end with it. */
void sandboxes_close(struct sandboxes *s)
{
	if (s->trail.wake >= 0)
		close(s->trail.wake);
	s->trail.wake = -1;
}
