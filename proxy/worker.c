/*
 * A worker: what it is made of, and its loop.
 */
#include "proxy/worker.h"

#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/base/log.h"
#include "gate/base/uuid.h"
#include "proxy/behalf.h"
#include "proxy/dial.h"
#include "proxy/worker_priv.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RESOLVER_QUEUE   (1u << 20) /* bytes of questions */
#define READS_HELD_MS    2          /* records of reads wait this long for company */
#define ASK_ANEW_MS      3000       /* without a connection to auditor or resolver */
#define LAST_WORDS_MS    2000       /* for records, when the worker ends */
#define BEGINNING_MAX    65536      /* bytes: names of all profiles, whose the rules are */
#define MHD_RUNS         8          /* before others get their turn */
#define STOP_PATIENCE_MS 7000       /* then streams are ended and recorded, before we are killed */
#define LOG_PATIENCE_MS  2000       /* for the log, before the first caller is served */

const struct conf_limits conf_default_limits = {
	.connections = 4096,
	.connections_per_uid = 1024,
	.handshakes = 256,
	.body_bytes = 1u << 20,
	.context_bytes = 64u << 20,
	.bodies_bytes = 64u << 20,
	.head_ms = 30000,
	.body_ms = 30000,
	.engine_ms = 60000,
	.engine_waiting = 1024,
	.ask_ms = 20000,
};

#define WORKER_OF(member, ptr) ((struct worker *)((char *)(ptr)-offsetof(struct worker, member)))

/* --- the auditor and the resolver --- */

static void on_audit(struct watch *watch, uint32_t events);

/* The client opens and closes its descriptor by itself; the watch follows. */
static void follow_audit(struct worker *w)
{
	int fd = audit_client_fd(w->audit);
	uint32_t want = EPOLLIN | (audit_client_waiting(w->audit) ? EPOLLOUT : 0);
	struct err err = {0};

	if (fd != w->audit_watch.fd) {
		loop_forget(&w->loop, &w->audit_watch);
		if (fd >= 0 && loop_watch(&w->loop, &w->audit_watch, fd, want, on_audit, &err) < 0)
			log_line("auditor: %s", err.msg);
		return;
	}
	loop_change(&w->loop, &w->audit_watch, want);
}

static void on_audit(struct watch *watch, uint32_t events)
{
	struct worker *w = WORKER_OF(audit_watch, watch);

	(void)events;
	audit_client_read(w->audit);
	follow_audit(w);
}

static void on_resolver(struct watch *watch, uint32_t events)
{
	struct worker *w = WORKER_OF(resolver_watch, watch);
	bool alive = true;

	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		alive = frame_fill(&w->resolver);
	lookup_path_answer(w);
	if (alive && frame_alive(&w->resolver))
		return;
	frame_close(&w->resolver);
	loop_forget(&w->loop, &w->resolver_watch);
	lookup_resolver_lost(w);
}

static void attach_resolver(struct worker *w, int fd)
{
	struct err err = {0};

	loop_unwatch(&w->loop, &w->resolver_watch);
	frame_close(&w->resolver);
	lookup_resolver_lost(w);
	frame_init(&w->resolver, fd, RESOLVER_QUEUE);
	if (loop_watch(&w->loop, &w->resolver_watch, fd, EPOLLIN, on_resolver, &err) < 0)
		log_line("resolver: %s", err.msg);
}

static void flush_resolver(struct worker *w)
{
	if (!frame_alive(&w->resolver) || !frame_waiting(&w->resolver))
		return;
	if (!frame_flush(&w->resolver)) {
		loop_forget(&w->loop, &w->resolver_watch);
		lookup_resolver_lost(w);
		return;
	}
	loop_change(&w->loop, &w->resolver_watch,
		    EPOLLIN | (frame_waiting(&w->resolver) ? EPOLLOUT : 0));
}

/* --- what a worker is made of --- */

static void service_lost(void *arg)
{
	struct service *s = arg;

	engines_add(s->worker->conf->engines, (size_t)(s - s->worker->services), ENGINE_losses, 1);
	s->ops->forget(s->backend);
}

static int open_service(struct worker *w, size_t i, struct err *err)
{
	struct service *s = &w->services[i];
	const struct conf_backend *conf = &w->conf->backends[i];
	struct backend_conf backend = {.name = conf->name};
	struct dial *dial;

	s->worker = w;
	s->conf = conf;
	s->ops = backend_find(conf->kind);
	if (!s->ops)
		return err_set(err, ERR_CONFIG, "backend %s: no kind is called '%s'", conf->name,
			       conf->kind);
	s->backend = s->ops->open(&backend, err);
	if (!s->backend)
		return err_wrap(err, "backend %s", conf->name);
	dial = dial_open(conf, err);
	if (!dial)
		return err_wrap(err, "backend %s", conf->name);
	s->pool = upstream_open_dial(&w->loop, dial, service_lost, s);
	return s->pool ? 0 : err_sys(err, "allocate a pool");
}

static int open_tls(struct worker *w, size_t i, struct err *err)
{
	const struct conf_listener *conf = &w->conf->listeners[i];
	struct tls_files files = {.optional = conf->tls && conf->tls->optional};
	enum tls_file wrong;

	/* `check` has no callers, and no keys. */
	if (!conf->tls || !conf->tls->files[TLS_KEY].text.len)
		return 0;
	for (enum tls_file f = 0; f < TLS_FILE_COUNT; f++)
		files.text[f] = conf->tls->files[f].text;
	w->listeners[i].tls = tls_server_open(&files, &wrong, err);
	if (w->listeners[i].tls)
		return 0;
	return err_wrap(err, "listener %s: %s %s", conf->name, tls_file_name(wrong),
			conf->tls->files[wrong].path);
}

static int check_profiles(const struct worker *w, struct err *err)
{
	const struct proxy_conf *conf = w->conf;

	for (size_t i = 0; i < conf->identity_count; i++)
		if (!engine_profile(w->rules, conf->identities[i].profile))
			return err_set(err, ERR_CONFIG, "identity %s: no profile is called '%s'",
				       conf->identities[i].name, conf->identities[i].profile);
	for (size_t i = 0; i < conf->listener_count; i++) {
		const char *otherwise = conf->listeners[i].otherwise;

		if (otherwise && *otherwise && !engine_profile(w->rules, otherwise))
			return err_set(err, ERR_CONFIG, "listener %s: no profile is called '%s'",
				       conf->listeners[i].name, otherwise);
	}
	return 0;
}

static int fill_worker(struct worker *w, const struct proxy_conf *conf, struct err *err)
{
	jv_init();
	tzset(); /* the HTTP library's Date header reads the zone file once */
	w->audit_watch.fd = w->resolver_watch.fd = w->control_watch.fd = w->mhd_watch.fd = -1;
	frame_init(&w->resolver, -1, 0);
	w->services = calloc(conf->backend_count + 1, sizeof(*w->services));
	w->listeners = calloc(conf->listener_count + 1, sizeof(*w->listeners));
	w->audit = audit_client_create();
	if (conf->emergency)
		w->emergency = calloc(1, sizeof(*w->emergency));
	if (!w->services || !w->listeners || !w->audit || (conf->emergency && !w->emergency))
		return err_sys(err, "allocate a worker");
	audit_client_hold_reads(w->audit, READS_HELD_MS);
	for (size_t i = 0; i < conf->listener_count; i++)
		w->listeners[i].watch.fd = -1;
	if (loop_open(&w->loop, err) < 0)
		return -1;
	if (runtime_inherit(w, err) < 0)
		return -1;
	w->rules = engine_open(conf->rules, conf->rule_count, &conf->rule_limits, err);
	if (!w->rules || check_profiles(w, err) < 0)
		return -1;
	for (size_t i = 0; i < conf->backend_count; i++)
		if (open_service(w, i, err) < 0)
			return -1;
	if (w->watcher)
		return watcher_fill(w, err);
	for (size_t i = 0; i < conf->listener_count; i++)
		if (open_tls(w, i, err) < 0)
			return -1;
	return front_open(w, err);
}

struct worker *worker_open(const struct proxy_conf *conf, struct err *err)
{
	return worker_open_as(conf, NULL, err);
}

struct worker *worker_open_as(const struct proxy_conf *conf, struct watcher *watcher,
			      struct err *err)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (!w) {
		err_sys(err, "allocate a worker");
		return NULL;
	}
	w->conf = conf;
	w->watcher = watcher;
	w->loop.epfd = -1;
	w->control_fd = -1;
	if (fill_worker(w, conf, err) == 0)
		return w;
	worker_close(w);
	return NULL;
}

void worker_close(struct worker *w)
{
	if (!w)
		return;
	if (w->watcher)
		watcher_free(w);
	front_close(w);
	tls_wire_close_all(w);
	for (size_t i = 0; w->listeners && i < w->conf->listener_count; i++)
		tls_server_close(w->listeners[i].tls);
	inside_sweep(w);
	inside_drop_recent(w);
	exchange_free_spare(w);
	for (size_t i = 0; w->services && i < w->conf->backend_count; i++) {
		upstream_close(w->services[i].pool);
		if (w->services[i].backend)
			w->services[i].ops->close(w->services[i].backend);
	}
	if (w->audit)
		audit_client_destroy(w->audit);
	runtime_close(w);
	frame_close(&w->resolver);
	engine_close(w->rules);
	loop_close(&w->loop);
	free(w->services);
	free(w->emergency);
	free(w->listeners);
	free(w);
}

/* --- the supervisor's word --- */

void worker_tell(struct worker *w, enum record_type type, const char *text)
{
	char id[UUID_TEXT_LEN + 1];
	struct record r = {.type = type, .id = id, .text = text};

	uuid_make(id);
	if (audit_tell(w->audit, &r) < 0)
		log_line("%s could not be recorded: %s", record_type_name(type), text);
}

/* Which rules are in force here. */
static void tell_beginning(struct worker *w)
{
	struct buf text;

	buf_init(&text, BEGINNING_MAX);
	buf_printf(&text, "generation %s; profiles",
		   w->conf->generation ? w->conf->generation : "-");
	for (size_t i = 0; engine_profile_at(w->rules, i); i++)
		buf_printf(&text, " %s:%.12s", profile_name(engine_profile_at(w->rules, i)),
			   profile_hash(engine_profile_at(w->rules, i)));
	if (w->conf->rules_origin)
		buf_printf(&text, "; %s", w->conf->rules_origin);
	buf_put(&text, "", 1);
	worker_tell(w, RECORD_POLICY_LOAD,
		    buf_spent(&text) ? "rules whose names are too many to be told"
				     : buf_span(&text).at);
	buf_fini(&text);
}

/* What became of the process before this one. */
static void tell_predecessor(struct worker *w)
{
	if (w->conf->replaces && *w->conf->replaces)
		worker_tell(w, RECORD_WORKER_LOST, w->conf->replaces);
}

/* From here on its rules are in force, and it accepts callers. */
static void begin(struct worker *w)
{
	struct err err = {0};

	tell_predecessor(w);
	if (w->watcher) {
		watcher_begin(w);
		return;
	}
	tell_beginning(w);
	if (connection_listen(w, &err) == 0)
		return;
	log_line("%s", err.msg);
	w->failed = w->stopping = true;
}

static void drop_fds(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}

/* A row follows the word.  False: it did not come, so nothing that follows can be read. */
static bool obey_row(struct worker *w, char tag, int *fds, size_t *count)
{
	struct runtime_row row;
	struct err err = {0};

	if (io_recv_note(w->control_fd, &row, sizeof(row), &err) < 0)
		return false;
	if (tag == 'x')
		runtime_end(w, row.id);
	if (tag == 'l' && *count == 1) {
		*count = 0;
		if (runtime_add(w, &row, fds[0], &err) < 0)
			log_line("%s", err.msg);
	}
	return true;
}

static void obey(struct worker *w, char tag, int *fds, size_t count)
{
	struct err err = {0};

	if ((tag == 'l' || tag == 'x') && !obey_row(w, tag, fds, &count)) {
		log_line("the supervisor's words end in the middle: ended");
		w->control_fd = -1;
	}
	if (tag == 's' || tag == 'd') {
		w->stopping = true;
		w->stop_ms = tag == 's' ? w->loop.now_ms + STOP_PATIENCE_MS : UINT64_MAX;
		connection_wind_down(w);
	}
	if ((tag == 'd' || tag == 'n') && count == 1) {
		streams_follow(w, fds[0]);
		return;
	}
	if (tag == 'g' && !w->stopping)
		begin(w);
	if (tag == 'c' && count == 1 && !w->stopping) {
		if (behalf_adopt(w, fds[0], &err) < 0)
			log_line("%s", err.msg);
		return;
	}
	if ((tag == 'a' || tag == 'r') && count == 1 && io_nonblock(fds[0], &err) == 0) {
		if (tag == 'a') {
			audit_client_attach(w->audit, fds[0]);
			follow_audit(w);
		} else {
			attach_resolver(w, fds[0]);
		}
		return;
	}
	drop_fds(fds, count);
}

static void on_control(struct watch *watch, uint32_t events)
{
	struct worker *w = WORKER_OF(control_watch, watch);
	struct err err = {0};
	int fds[IO_FDS_MAX];
	size_t count = 0;
	char tag;

	(void)events;
	if (io_recv_fds(w->control_fd, &tag, fds, &count, &err) == 1) {
		obey(w, tag, fds, count);
		return;
	}
	loop_unwatch(&w->loop, &w->control_watch);
	w->control_fd = -1; /* the supervisor is gone */
}

/* --- the loop --- */

/*
 * A connection may end though both processes live (one found the other's words
 * odd).  The supervisor gives a new one; when a process died, it does by itself.
 */
static void ask_for(struct worker *w, bool connected, uint64_t *seen_ms, char tag)
{
	struct err err = {0};

	if (connected)
		*seen_ms = w->loop.now_ms;
	if (w->control_fd < 0 || w->loop.now_ms - *seen_ms < ASK_ANEW_MS)
		return;
	*seen_ms = w->loop.now_ms;
	log_line("the connection to the %s is gone: asking for another",
		 tag == 'a' ? "auditor" : "resolver");
	io_send_fds(w->control_fd, tag, NULL, 0, &err);
}

static void ask_anew(struct worker *w)
{
	ask_for(w, audit_client_fd(w->audit) >= 0, &w->audit_seen_ms, 'a');
	ask_for(w, frame_alive(&w->resolver), &w->resolver_seen_ms, 'r');
}

/* The next turn comes in time for what the log's client has promised. */
static int time_to_wait(const struct worker *w, int timeout_ms)
{
	uint64_t due = audit_client_deadline(w->audit);

	if (w->mhd_due || due <= w->loop.now_ms)
		return 0;
	if (w->tables_due)
		timeout_ms = 1;
	return due - w->loop.now_ms < (uint64_t)timeout_ms ? (int)(due - w->loop.now_ms)
							   : timeout_ms;
}

void worker_turn(struct worker *w, int timeout_ms)
{
	w->turn++;
	for (int i = 0; w->mhd_due && i < MHD_RUNS; i++)
		front_run(w);
	audit_client_flush(w->audit);
	follow_audit(w);
	flush_resolver(w);
	loop_turn(&w->loop, time_to_wait(w, timeout_ms));
	tables_retry(w);
	if (w->loop.now_ms >= audit_client_deadline(w->audit)) {
		audit_client_tick(w->audit, w->loop.now_ms);
		follow_audit(w);
	}
	if (w->loop.now_ms < w->tick_ms)
		return;
	w->tick_ms = w->loop.now_ms + WORKER_TICK_MS;
	for (size_t i = 0; i < w->conf->backend_count; i++)
		engines_add(w->conf->engines, i, ENGINE_dials,
			    upstream_take_dials(w->services[i].pool));
	ask_anew(w);
	inside_tick(w);
	suppress_tick(w);
	if (w->watcher)
		watcher_tick(w);
	else
		front_tick(w);
}

static bool is_done(const struct worker *w)
{
	if (w->control_fd < 0)
		return true;
	if (!w->stopping)
		return false;
	return w->loop.now_ms >= w->stop_ms ||
	       (w->watcher ? watcher_idle(w) : (!w->conns && !w->wires));
}

static bool is_informed(struct worker *w)
{
	return audit_client_up(w->audit) && quarantine_is_known(w);
}

/*
 * Whoever came before the log's connection is up, or before it is known who is under quarantine,
 * would be refused; a lost log is not waited for.
 */
static void await_log(struct worker *w)
{
	uint64_t give_up_ms = clock_boot_ms() + LOG_PATIENCE_MS;

	while (!is_done(w) && !is_informed(w) && clock_boot_ms() < give_up_ms)
		worker_turn(w, WORKER_TICK_MS);
}

/* What was just queued is still to be sent, held reads as well. */
static void send_last_records(struct worker *w)
{
	uint64_t until = w->loop.now_ms + LAST_WORDS_MS;

	audit_client_hold_reads(w->audit, 0);
	audit_client_flush(w->audit);
	while (audit_client_waiting(w->audit) && w->loop.now_ms < until) {
		follow_audit(w);
		loop_turn(&w->loop, WORKER_TICK_MS);
		audit_client_flush(w->audit);
	}
}

int worker_run(struct worker *w, int control_fd)
{
	struct err err = {0};

	w->control_fd = control_fd;
	w->audit_seen_ms = w->resolver_seen_ms = w->loop.now_ms;
	if (loop_watch(&w->loop, &w->control_watch, control_fd, EPOLLIN, on_control, &err) == 0) {
		await_log(w);
		io_send_fds(control_fd, 'y', NULL, 0, &err);
	}
	if (err.kind != ERR_NONE) {
		log_line("%s", err.msg);
		return 1;
	}
	while (!is_done(w))
		worker_turn(w, WORKER_TICK_MS);
	front_close(w);
	suppress_end(w);
	send_last_records(w);
	return w->failed ? 1 : 0;
}
