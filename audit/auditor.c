#include "audit/auditor_priv.h"

#include "audit/requests_priv.h"
#include "audit/state.h"

#include "gate/base/clock.h"
#include "gate/base/io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define OPEN_MAX          262144     /* allowed decisions without an outcome, of all workers */
#define OUT_BYTES_MAX     (8u << 20) /* answers that a worker does not read */
#define GROUP_BYTES       (1u << 20) /* a group is written when it has this size */
#define CHECK_MS          1000       /* how often the file is looked at */
#define EVENTS_MAX        64
#define ADOPTIONS_AT_ONCE 128 /* records in one write */
#define STOP_ROUNDS       256 /* reads of one worker's last words */
#define EVENT_CONTROL     UINT64_MAX

static const int ignored_signals[AUDITOR_SIGNALS] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGXFSZ};

/* --- opening --- */

static int tell_start(struct auditor *a, const char *build, const struct audit_log_found *found,
		      struct err *err)
{
	char torn_hash[HASH_HEX_LEN + 1];
	struct record start = {.type = RECORD_GATE_START,
			       .text = build,
			       .count = a->open.count,
			       .tsync = auditor_tsync()};
	struct record recover = {.type = RECORD_GATE_RECOVER,
				 .text = "the last run did not end with gate_stop"};
	struct record alarm = {.type = RECORD_LOG_ALARM,
			       .text = "open decisions too far back to be looked for",
			       .count = found->not_looked_for};

	if (found->tail.bytes) {
		recover.text = "a torn tail was trimmed";
		recover.at = found->tail.at;
		recover.bytes = found->tail.bytes;
		recover.file = found->tail_file;
		hash_hex(&found->tail_hash, torn_hash);
		recover.sha256 = torn_hash;
	}
	struct record aside = {.type = RECORD_GATE_RECOVER,
			       .text = "damage was accepted: a new log begins",
			       .cause = a->aside_why.msg,
			       .file = a->aside};

	if (audit_log_add_own(a->log, &start) < 0 ||
	    (*a->aside && audit_log_add_own(a->log, &aside) < 0) ||
	    (!found->fresh && (!found->ended || found->tail.bytes) &&
	     audit_log_add_own(a->log, &recover) < 0) ||
	    (found->not_looked_for && audit_log_add_own(a->log, &alarm) < 0))
		return err_set(err, ERR_LIMIT, "no memory for the first records");
	return audit_log_commit(a->log, err);
}

/* What the ledger says is in force from here on, so it is on disk first. */
static int tell_adoptions(struct auditor *a, const struct auditor_conf *conf, struct err *err)
{
	for (size_t i = 0; i < conf->adoption_count; i++) {
		const struct audit_adoption *one = &conf->adoptions[i];
		struct record r = {.type = RECORD_ADOPT,
				   .backend = one->backend,
				   .owner = one->owner,
				   .object_kind = one->kind,
				   .object_name = one->name,
				   .object_id = one->id,
				   .facts = one->entry};

		if (audit_log_add_own(a->log, &r) < 0)
			return err_set(err, ERR_LIMIT, "no memory for the records of adoptions");
		if (i % ADOPTIONS_AT_ONCE == ADOPTIONS_AT_ONCE - 1 &&
		    audit_log_commit(a->log, err) < 0)
			return -1;
	}
	return audit_log_commit(a->log, err);
}

/* The one before could not say so itself. */
static void tell_hung(struct auditor *a)
{
	uint64_t ms = audit_state_hung(a->state);
	char text[96];
	struct record r = {.type = RECORD_LOG_ALARM, .cause = "hung", .text = text};

	if (!ms)
		return;
	snprintf(text, sizeof(text),
		 "the auditor before made no progress for %llu ms and was ended",
		 (unsigned long long)ms);
	auditor_add_own(a, &r);
	auditor_commit(a);
	if (!auditor_sealed(a))
		audit_state_set_hung(a->state, 0);
}

static void ignore_signals(struct auditor *a)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	for (int i = 0; i < AUDITOR_SIGNALS; i++)
		sigaction(ignored_signals[i], &ignore, &a->old_actions[i]);
}

static void restore_signals(const struct auditor *a)
{
	for (int i = 0; i < AUDITOR_SIGNALS; i++)
		sigaction(ignored_signals[i], &a->old_actions[i], NULL);
}

static int open_parts(struct auditor *a, const struct auditor_conf *conf, struct err *err)
{
	const struct signing_conf signing = {conf->keys, conf->anchor_file, conf->anchor_syslog};
	const struct audit_log_conf log_conf = {conf->dir, conf->origin, conf->segment_bytes,
						&a->signing, &signing};
	struct audit_log_found found;

	a->answers = calloc(AUDITOR_ANSWERS_MAX, sizeof(*a->answers));
	if (!a->answers)
		return err_set(err, ERR_LIMIT, "no memory for the auditor");
	a->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (a->epoll_fd < 0)
		return err_sys(err, "epoll_create1");
	a->log = audit_log_open(&log_conf, &a->open, &found, err);
	if (!a->log)
		return -1;
	if (auditor_prune_init(a, conf, &found, err) < 0 || auditor_sinks_init(a, conf, err) < 0)
		return -1;
	a->covered = a->signing.last_size;
	a->state = conf->state;
	a->tell = conf->tell;
	if (auditor_space_init(a, conf, err) < 0)
		return -1;
	if (erasable_open(&a->erasable, a->log->dir_fd, conf->erasable, err) < 0)
		return -1;
	requests_open(a->log->dir_fd);
	auditor_watch_clock(a);
	if (tell_start(a, conf->build, &found, err) < 0)
		return -1;
	tell_hung(a);
	auditor_erase_begin(a);
	auditor_space_back(a);
	auditor_watch_space(a);
	return tell_adoptions(a, conf, err);
}

/* What could not be gone on with is set aside, once, and a new log begins. */
static int accept_damage(struct auditor *a, const struct auditor_conf *conf, struct err *err)
{
	if (err->kind != ERR_INPUT || a->log)
		return -1;
	a->aside_why = *err;
	signing_close(&a->signing);
	signing_init(&a->signing);
	if (place_set_aside(conf->dir, a->aside, err) < 0)
		return -1;
	free(a->answers);
	close(a->epoll_fd);
	open_set_fini(&a->open);
	auditor_sinks_fini(a);
	erasable_close(&a->erasable);
	return open_parts(a, conf, err);
}

struct auditor *auditor_open(const struct auditor_conf *conf, struct err *err)
{
	struct auditor *a = calloc(1, sizeof(*a));

	if (!a) {
		err_set(err, ERR_LIMIT, "no memory for the auditor");
		return NULL;
	}
	a->epoll_fd = -1;
	a->flush_ms = conf->flush_ms;
	a->claim_ms = conf->claim_ms;
	a->checkpoint_ms = conf->checkpoint_ms;
	a->checkpoint_records = conf->checkpoint_records;
	signing_init(&a->signing);
	open_set_init(&a->open, OPEN_MAX);
	ignore_signals(a);
	if (conf->unsafe_fs || place_check_fs(conf->dir, err) == 0) {
		if (open_parts(a, conf, err) == 0 ||
		    (conf->accept_damage && accept_damage(a, conf, err) == 0))
			return a;
	}
	auditor_close(a);
	return NULL;
}

static void free_conn(struct conn *conn)
{
	frame_close(&conn->fc);
	free(conn);
}

void auditor_close(struct auditor *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < AUDITOR_CONNS_MAX; i++)
		if (a->conns[i])
			free_conn(a->conns[i]);
	audit_log_close(a->log);
	signing_close(&a->signing);
	open_set_fini(&a->open);
	if (a->epoll_fd >= 0)
		close(a->epoll_fd);
	free(a->answers);
	auditor_sinks_fini(a);
	erasable_close(&a->erasable);
	restore_signals(a);
	free(a);
}

const char *auditor_why(const struct auditor *a)
{
	return a->why.msg;
}

/* --- connections --- */

static void read_conn(struct auditor *a, size_t index)
{
	struct conn *conn = a->conns[index];
	bool alive = frame_fill(&conn->fc);
	struct span frame;

	while (frame_next(&conn->fc, &frame))
		if (!session_frame(a, index, frame)) {
			conn->over = true;
			return;
		}
	if (!alive || !frame_alive(&conn->fc))
		conn->over = true;
}

static void end_conn(struct auditor *a, size_t index)
{
	struct conn *conn = a->conns[index];

	a->conns[index] = NULL;
	auditor_give_up(a, conn->owner, "its worker has ended");
	free_conn(conn); /* closing takes it out of the epoll set */
}

static void end_those_over(struct auditor *a)
{
	for (size_t i = 0; i < AUDITOR_CONNS_MAX; i++)
		if (a->conns[i] && a->conns[i]->over)
			end_conn(a, i);
}

static void add_conn(struct auditor *a, int fd, char tag)
{
	struct conn *conn = calloc(1, sizeof(*conn));
	struct epoll_event event = {.events = EPOLLIN};
	struct err ignored;
	size_t i = 0;

	while (i < AUDITOR_CONNS_MAX && a->conns[i])
		i++;
	event.data.u64 = i;
	if (!conn || i == AUDITOR_CONNS_MAX || io_nonblock(fd, &ignored) < 0 ||
	    epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		close(fd); /* the worker sees that it has no log */
		free(conn);
		return;
	}
	frame_init(&conn->fc, fd, OUT_BYTES_MAX);
	conn->owner = ++a->owners;
	conn->is_admin = tag == 'm';
	conn->is_sandbox = tag == 'b';
	a->conns[i] = conn;
}

static void read_control(struct auditor *a, int control_fd)
{
	int fds[IO_FDS_MAX];
	struct err err = {0};
	size_t count = 0;
	char tag = 0;
	int got = io_recv_fds(control_fd, &tag, fds, &count, &err);

	if (got < 0 && (err.sys == EAGAIN || err.sys == EINTR))
		return;
	if (got <= 0) {
		a->stop = true;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if ((tag == 'w' || tag == 'm' || tag == 'b') && count == 1)
			add_conn(a, fds[i], tag);
		else
			close(fds[i]);
	}
}

static void flush_conn(struct auditor *a, size_t index)
{
	struct conn *conn = a->conns[index];
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = index};
	bool waits;

	if (frame_waiting(&conn->fc) && !wire_flush(&conn->fc))
		conn->mute = true;
	waits = frame_waiting(&conn->fc);
	if (waits == conn->watching_out || !frame_alive(&conn->fc))
		return;
	event.events |= waits ? EPOLLOUT : 0;
	conn->watching_out = waits;
	epoll_ctl(a->epoll_fd, EPOLL_CTL_MOD, conn->fc.fd, &event);
}

static void flush_all(struct auditor *a)
{
	for (size_t i = 0; i < AUDITOR_CONNS_MAX; i++)
		if (a->conns[i])
			flush_conn(a, i);
}

/* --- the loop --- */

static void tell_refused(struct auditor *a)
{
	struct record r = {.type = RECORD_LOG_ALARM,
			   .text = "a worker sent what is no record",
			   .count = a->refused};

	if (!a->refused)
		return;
	a->refused = 0;
	auditor_add_own(a, &r);
}

static void do_what_is_due(struct auditor *a)
{
	if (a->claim_until_ms && a->now_ms >= a->claim_until_ms) {
		a->claim_until_ms = 0;
		auditor_give_up(a, 0, "no worker claimed it after a restart");
	}
	if (a->now_ms >= a->check_at_ms) {
		a->check_at_ms = a->now_ms + CHECK_MS;
		tell_refused(a);
		auditor_watch_clock(a);
		auditor_watch_space(a);
		requests_take(a->log->dir_fd, auditor_on_request, a);
		auditor_watch_sinks(a);
		auditor_erase(a);
		auditor_prune(a);
		if (!auditor_sealed(a))
			audit_log_check(a->log, &a->why);
	}
	auditor_space_end(a);
	if (!auditor_sealed(a) && (a->answer_count || buf_len(&a->log->group) >= GROUP_BYTES ||
				   (a->flush_at_ms && a->now_ms >= a->flush_at_ms)))
		auditor_commit(a);
}

static int wait_ms(const struct auditor *a)
{
	uint64_t due = a->check_at_ms, now = clock_boot_ms();

	if (a->flush_at_ms && a->flush_at_ms < due)
		due = a->flush_at_ms;
	if (a->claim_until_ms && a->claim_until_ms < due)
		due = a->claim_until_ms;
	if (a->checkpoint_ms && a->log->tiles->tree.size > a->covered && a->checkpoint_at_ms < due)
		due = a->checkpoint_at_ms;
	return due > now ? (int)(due - now) : 0;
}

static int turn(struct auditor *a, int control_fd)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(a->epoll_fd, events, EVENTS_MAX, wait_ms(a));

	if (n < 0 && errno != EINTR)
		return err_sys(&a->why, "epoll_wait");
	audit_state_beat(a->state);
	a->now_ms = clock_boot_ms();
	for (int i = 0; i < n; i++) {
		uint64_t index = events[i].data.u64;

		if (index == EVENT_CONTROL)
			read_control(a, control_fd);
		else if (a->conns[index] && (events[i].events & ~(uint32_t)EPOLLOUT))
			read_conn(a, index);
	}
	end_those_over(a);
	do_what_is_due(a);
	auditor_space_say(a);
	flush_all(a);
	/* Behind the answers: it takes two more syncs. */
	if (auditor_checkpoint_due(a))
		auditor_checkpoint(a, true);
	end_those_over(a);
	return 0;
}

/* What workers had sent before they were told to end. */
static void read_last_words(struct auditor *a)
{
	for (size_t i = 0; i < AUDITOR_CONNS_MAX; i++)
		for (int round = 0; round < STOP_ROUNDS && a->conns[i] && !a->conns[i]->over;
		     round++) {
			uint64_t before = a->log->writer.seq;

			read_conn(a, i);
			if (a->log->writer.seq == before)
				break;
		}
	end_those_over(a);
}

static int finish(struct auditor *a)
{
	struct record r = {.type = RECORD_GATE_STOP};

	read_last_words(a);
	auditor_erase_stop(a);
	if (!auditor_sealed(a))
		auditor_commit(a);
	auditor_add_own(a, &r);
	if (!auditor_sealed(a))
		auditor_commit(a);
	flush_all(a);
	auditor_checkpoint(a, false);
	return auditor_sealed(a) ? AUDITOR_SEALED : AUDITOR_STOPPED;
}

/* Who waits for a receipt has its answer by this. */
static void tell_sealed(struct auditor *a)
{
	for (size_t i = 0; i < AUDITOR_CONNS_MAX; i++)
		if (a->conns[i])
			auditor_say(a->conns[i], (struct wire_head){.kind = WIRE_SEALED},
				    (struct span){"", 0});
	flush_all(a);
}

int auditor_run(struct auditor *a, int control_fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = EVENT_CONTROL};
	int status = AUDITOR_FAILED;

	a->now_ms = clock_boot_ms();
	a->claim_until_ms = a->now_ms + a->claim_ms;
	a->check_at_ms = a->now_ms + CHECK_MS;
	auditor_space_say(a);
	if (epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, control_fd, &event) < 0) {
		err_sys(&a->why, "watch the control socket");
		return status;
	}
	while (!a->stop && !auditor_sealed(a))
		if (turn(a, control_fd) < 0)
			return status;
	status = auditor_sealed(a) ? AUDITOR_SEALED : finish(a);
	if (status == AUDITOR_SEALED)
		tell_sealed(a);
	return status;
}
