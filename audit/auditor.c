#include "audit/auditor.h"

#include "audit/log_priv.h"
#include "audit/pairing_priv.h"
#include "audit/wire_priv.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CONNS_MAX     128
#define OPEN_MAX      262144     /* allowed decisions without an outcome, of all workers */
#define OPEN_CONN_MAX 65536      /* of one worker */
#define OUT_BYTES_MAX (8u << 20) /* answers that a worker does not read */
#define ANSWERS_MAX   16384      /* receipts in one group */
#define GROUP_BYTES   (1u << 20) /* a group is written when it has this size */
#define CHECK_MS      1000       /* how often the file is looked at */
#define EVENTS_MAX    64
#define STOP_ROUNDS   256 /* reads of one worker's last words */
#define EVENT_CONTROL UINT64_MAX

/* A worker. */
struct conn {
	struct frame_conn fc;
	uint32_t owner; /* in struct open_decision; never 0, never used twice */
	bool greeted;   /* its HELLO has come */
	bool mute;      /* cannot be written to; its end is still to be read */
	bool over;      /* to be closed */
	bool watching_out;
	size_t open; /* its decisions without an outcome */
	bool ack_due;
	uint64_t ack; /* the newest outcome's ticket */
};

/* A record in the group that waits for its receipt. */
struct answer {
	size_t conn;
	uint32_t owner;
	uint64_t ticket;
	struct audit_mark mark;
};

struct auditor {
	struct audit_log *log;
	struct open_set open;
	unsigned flush_ms, claim_ms;
	int epoll_fd;
	struct conn *conns[CONNS_MAX];
	uint32_t owners; /* given so far */
	struct answer *answers;
	size_t answer_count;
	bool acks_due;
	uint64_t now_ms;
	uint64_t flush_at_ms; /* 0: nothing waits */
	uint64_t claim_until_ms, check_at_ms;
	uint64_t refused; /* records that were none, not told yet */
	bool stop;
	struct err why;
	struct sigaction old_actions[5];
};

static const int ignored_signals[5] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGXFSZ};

/* --- opening --- */

static int tell_start(struct auditor *a, const char *build, const struct audit_log_found *found,
		      struct err *err)
{
	char torn_hash[HASH_HEX_LEN + 1];
	struct record start = {.type = RECORD_GATE_START, .text = build, .count = a->open.count};
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
	if (audit_log_add_own(a->log, &start) < 0 ||
	    (!found->fresh && (!found->ended || found->tail.bytes) &&
	     audit_log_add_own(a->log, &recover) < 0) ||
	    (found->not_looked_for && audit_log_add_own(a->log, &alarm) < 0))
		return err_set(err, ERR_LIMIT, "no memory for the first records");
	return audit_log_commit(a->log, err);
}

static void ignore_signals(struct auditor *a)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	for (int i = 0; i < 5; i++)
		sigaction(ignored_signals[i], &ignore, &a->old_actions[i]);
}

static void restore_signals(const struct auditor *a)
{
	for (int i = 0; i < 5; i++)
		sigaction(ignored_signals[i], &a->old_actions[i], NULL);
}

static int open_parts(struct auditor *a, const struct auditor_conf *conf, struct err *err)
{
	const struct audit_log_conf log_conf = {conf->dir, conf->origin, conf->segment_bytes};
	struct audit_log_found found;

	a->answers = calloc(ANSWERS_MAX, sizeof(*a->answers));
	if (!a->answers)
		return err_set(err, ERR_LIMIT, "no memory for the auditor");
	a->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (a->epoll_fd < 0)
		return err_sys(err, "epoll_create1");
	a->log = audit_log_open(&log_conf, &a->open, &found, err);
	if (!a->log)
		return -1;
	return tell_start(a, conf->build, &found, err);
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
	open_set_init(&a->open, OPEN_MAX);
	ignore_signals(a);
	if (open_parts(a, conf, err) == 0)
		return a;
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
	for (size_t i = 0; i < CONNS_MAX; i++)
		if (a->conns[i])
			free_conn(a->conns[i]);
	audit_log_close(a->log);
	open_set_fini(&a->open);
	if (a->epoll_fd >= 0)
		close(a->epoll_fd);
	free(a->answers);
	restore_signals(a);
	free(a);
}

const char *auditor_why(const struct auditor *a)
{
	return a->why.msg;
}

/* --- writing --- */

static bool sealed(const struct auditor *a)
{
	return a->log->sealed;
}

static void say(struct conn *conn, struct wire_head head, struct span body)
{
	if (!conn->mute && !wire_put(&conn->fc, head, body))
		conn->over = true; /* it does not read its answers */
}

static void give_receipts(struct auditor *a)
{
	for (size_t i = 0; i < a->answer_count; i++) {
		const struct answer *answer = &a->answers[i];
		struct conn *conn = a->conns[answer->conn];
		struct wire_receipt receipt = {.head = {WIRE_RECEIPT, 0, answer->ticket},
					       .seq = answer->mark.seq,
					       .hash = answer->mark.hash};

		if (conn && conn->owner == answer->owner)
			say(conn, receipt.head,
			    (struct span){(const char *)&receipt + sizeof(receipt.head),
					  sizeof(receipt) - sizeof(receipt.head)});
	}
	a->answer_count = 0;
}

static void give_acks(struct auditor *a)
{
	for (size_t i = 0; i < CONNS_MAX && a->acks_due; i++) {
		struct conn *conn = a->conns[i];

		if (conn && conn->ack_due) {
			say(conn, (struct wire_head){WIRE_ACK, 0, conn->ack}, (struct span){"", 0});
			conn->ack_due = false;
		}
	}
	a->acks_due = false;
}

/* All that is in the group becomes durable, then those who wait are told. */
static void commit(struct auditor *a)
{
	if (audit_log_commit(a->log, &a->why) < 0)
		return;
	a->flush_at_ms = 0;
	give_receipts(a);
	give_acks(a);
	if (audit_log_full(a->log))
		audit_log_rotate(a->log, &a->open, &a->why);
}

static void flush_by(struct auditor *a, unsigned ms)
{
	if (!a->flush_at_ms || a->now_ms + ms < a->flush_at_ms)
		a->flush_at_ms = a->now_ms + ms;
}

/* False: the log is sealed, or there is no memory. */
static bool make_room(struct auditor *a, size_t body_len)
{
	if (!sealed(a) && buf_room(&a->log->group) < body_len + RECORD_FRAME_MAX + 1)
		commit(a);
	return !sealed(a);
}

/* False: it is not in the log and never will be. */
static bool add(struct auditor *a, struct span body, struct audit_mark *ret)
{
	if (!make_room(a, body.len) || audit_log_add(a->log, body, ret) < 0)
		return false;
	flush_by(a, a->flush_ms);
	return true;
}

static void add_own(struct auditor *a, struct record *r)
{
	if (make_room(a, RECORD_BODY_MAX) && audit_log_add_own(a->log, r) == 0)
		flush_by(a, a->flush_ms);
}

/* --- open decisions --- */

/* Nobody is left who knows how these came out. */
static void give_up_owner(struct auditor *a, uint32_t owner, const char *why)
{
	struct decision_id *ids = malloc((a->open.count + 1) * sizeof(*ids));
	struct open_decision *d;
	size_t slot = 0, count = 0;

	if (!ids)
		return; /* they stay open; the next start finds them */
	while ((d = open_set_next(&a->open, &slot)))
		if (d->owner == owner)
			ids[count++] = d->id;
	for (size_t i = 0; i < count && !sealed(a); i++) {
		char of[37];
		struct record r = {
			.type = RECORD_OUTCOME_UNKNOWN, .of = of, .status = "unknown", .text = why};

		decision_id_format(&ids[i], of);
		open_set_drop(&a->open, &ids[i]);
		add_own(a, &r);
	}
	free(ids);
}

/* --- what a worker sends --- */

static bool may_send(enum record_type type, uint32_t flags)
{
	switch (type) {
	case RECORD_DECISION:
		return flags == WIRE_RECEIPT_WANTED;
	case RECORD_OUTCOME:
		return flags == WIRE_OUTCOME;
	case RECORD_READ:
	case RECORD_MALFORMED:
	case RECORD_POLICY_LOAD:
	case RECORD_POLICY_REJECT:
	case RECORD_WORKER_LOST:
	case RECORD_LOG_ALARM:
		return flags == WIRE_READ || flags == WIRE_RECEIPT_WANTED;
	case RECORD_NONE:
	case RECORD_GATE_START:
	case RECORD_GATE_STOP:
	case RECORD_GATE_RECOVER:
	case RECORD_LOG_OPEN:
	case RECORD_LOG_SEAL:
	case RECORD_OUTCOME_UNKNOWN:
	case RECORD_TYPE_COUNT:
		break;
	}
	return false;
}

/* The decision that an outcome completes, if it is this worker's to tell, or nobody's; or NULL. */
static const struct open_decision *find_own(const struct auditor *a, const struct conn *conn,
					    struct span of_text)
{
	const struct open_decision *d;
	struct decision_id of;

	if (decision_id_parse(of_text, &of) < 0)
		return NULL;
	d = open_set_find(&a->open, &of);
	return d && (d->owner == conn->owner || d->owner == 0) ? d : NULL;
}

static void owe_ack(struct auditor *a, struct conn *conn, uint64_t ticket)
{
	conn->ack = ticket;
	conn->ack_due = a->acks_due = true;
	flush_by(a, a->flush_ms);
}

static void on_outcome(struct auditor *a, struct conn *conn, uint64_t ticket, struct span body,
		       const struct record_peek *peek)
{
	const struct open_decision *d = find_own(a, conn, peek->of);
	struct audit_mark mark;

	owe_ack(a, conn, ticket);
	if (!d)
		return; /* sent again, or too late */
	if (d->owner == conn->owner)
		conn->open--;
	if (add(a, body, &mark))
		pairing_apply(&a->open, peek, mark.seq);
}

/* An allowed decision must be known as open before it is written. */
static bool open_decision(struct auditor *a, struct conn *conn, const struct record_peek *peek,
			  struct decision_id *ret)
{
	if (conn->open >= OPEN_CONN_MAX || decision_id_parse(peek->id, ret) < 0 ||
	    pairing_apply(&a->open, peek, a->log->writer.seq) != PAIRING_OPENED)
		return false;
	open_set_find(&a->open, ret)->owner = conn->owner;
	conn->open++;
	return true;
}

static bool on_wanted(struct auditor *a, size_t index, uint64_t ticket, struct span body,
		      const struct record_peek *peek)
{
	struct conn *conn = a->conns[index];
	struct answer answer = {.conn = index, .owner = conn->owner, .ticket = ticket};
	struct decision_id id;

	if (a->answer_count == ANSWERS_MAX)
		commit(a);
	if (!make_room(a, body.len) || (peek->allow && !open_decision(a, conn, peek, &id)))
		return false;
	if (!add(a, body, &answer.mark)) {
		if (peek->allow) {
			open_set_drop(&a->open, &id);
			conn->open--;
		}
		return false;
	}
	a->answers[a->answer_count++] = answer;
	return true;
}

static void on_record(struct auditor *a, size_t index, struct wire_head head, struct span body)
{
	struct conn *conn = a->conns[index];
	struct record_peek peek;
	struct audit_mark mark;
	bool good =
		record_valid(body) && record_peek(body, &peek) && may_send(peek.type, head.flags);

	if (!good)
		a->refused++;
	if (head.flags == WIRE_RECEIPT_WANTED) {
		if (good)
			good = on_wanted(a, index, head.ticket, body, &peek);
		if (!good)
			say(conn, (struct wire_head){WIRE_REFUSED, 0, head.ticket},
			    (struct span){"", 0});
	} else if (head.flags == WIRE_OUTCOME) {
		if (good)
			on_outcome(a, conn, head.ticket, body, &peek);
		else
			owe_ack(a, conn, head.ticket); /* again would not make it better */
	} else if (good) {
		add(a, body, &mark);
	}
}

static void on_claim(struct auditor *a, struct conn *conn, struct span ids)
{
	for (; ids.len >= sizeof(struct decision_id);
	     ids = span_skip(ids, sizeof(struct decision_id))) {
		struct open_decision *d;
		struct decision_id id;

		memcpy(&id, ids.at, sizeof(id));
		d = open_set_find(&a->open, &id);
		if (d && d->owner == 0) {
			d->owner = conn->owner;
			conn->open++;
		}
	}
}

static void on_hello(struct auditor *a, struct conn *conn)
{
	conn->greeted = true;
	say(conn, (struct wire_head){WIRE_UP, 0, a->log->writer.epoch},
	    span_of(a->log->writer.origin));
}

/* False: no worker of ours speaks like this. */
static bool on_frame(struct auditor *a, size_t index, struct span frame)
{
	struct conn *conn = a->conns[index];
	struct wire_head head;

	if (!wire_head(&frame, &head))
		return false;
	if (!conn->greeted) {
		if (head.kind != WIRE_HELLO || head.ticket != WIRE_VERSION)
			return false;
		on_hello(a, conn);
		return true;
	}
	if (head.kind == WIRE_CLAIM)
		on_claim(a, conn, frame);
	else if (head.kind == WIRE_RECORD)
		on_record(a, index, head, frame);
	else
		return false;
	return true;
}

/* --- connections --- */

static void read_conn(struct auditor *a, size_t index)
{
	struct conn *conn = a->conns[index];
	bool alive = frame_fill(&conn->fc);
	struct span frame;

	while (frame_next(&conn->fc, &frame))
		if (!on_frame(a, index, frame)) {
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
	give_up_owner(a, conn->owner, "its worker has ended");
	free_conn(conn); /* closing takes it out of the epoll set */
}

static void end_those_over(struct auditor *a)
{
	for (size_t i = 0; i < CONNS_MAX; i++)
		if (a->conns[i] && a->conns[i]->over)
			end_conn(a, i);
}

static void add_conn(struct auditor *a, int fd)
{
	struct conn *conn = calloc(1, sizeof(*conn));
	struct epoll_event event = {.events = EPOLLIN};
	struct err ignored;
	size_t i = 0;

	while (i < CONNS_MAX && a->conns[i])
		i++;
	event.data.u64 = i;
	if (!conn || i == CONNS_MAX || io_nonblock(fd, &ignored) < 0 ||
	    epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
		close(fd); /* the worker sees that it has no log */
		free(conn);
		return;
	}
	frame_init(&conn->fc, fd, OUT_BYTES_MAX);
	conn->owner = ++a->owners;
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
		if (tag == 'w' && count == 1)
			add_conn(a, fds[i]);
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
	for (size_t i = 0; i < CONNS_MAX; i++)
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
	add_own(a, &r);
}

static void do_what_is_due(struct auditor *a)
{
	if (a->claim_until_ms && a->now_ms >= a->claim_until_ms) {
		a->claim_until_ms = 0;
		give_up_owner(a, 0, "no worker claimed it after a restart");
	}
	if (a->now_ms >= a->check_at_ms) {
		a->check_at_ms = a->now_ms + CHECK_MS;
		tell_refused(a);
		if (!sealed(a))
			audit_log_check(a->log, &a->why);
	}
	if (!sealed(a) && (a->answer_count || buf_len(&a->log->group) >= GROUP_BYTES ||
			   (a->flush_at_ms && a->now_ms >= a->flush_at_ms)))
		commit(a);
}

static int wait_ms(const struct auditor *a)
{
	uint64_t due = a->check_at_ms, now = clock_boot_ms();

	if (a->flush_at_ms && a->flush_at_ms < due)
		due = a->flush_at_ms;
	if (a->claim_until_ms && a->claim_until_ms < due)
		due = a->claim_until_ms;
	return due > now ? (int)(due - now) : 0;
}

static int turn(struct auditor *a, int control_fd)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(a->epoll_fd, events, EVENTS_MAX, wait_ms(a));

	if (n < 0 && errno != EINTR)
		return err_sys(&a->why, "epoll_wait");
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
	flush_all(a);
	end_those_over(a);
	return 0;
}

/* What workers had sent before they were told to end. */
static void read_last_words(struct auditor *a)
{
	for (size_t i = 0; i < CONNS_MAX; i++)
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
	if (!sealed(a))
		commit(a);
	add_own(a, &r);
	if (!sealed(a))
		commit(a);
	flush_all(a);
	return sealed(a) ? AUDITOR_SEALED : AUDITOR_STOPPED;
}

/* Who waits for a receipt has its answer by this. */
static void tell_sealed(struct auditor *a)
{
	for (size_t i = 0; i < CONNS_MAX; i++)
		if (a->conns[i])
			say(a->conns[i], (struct wire_head){.kind = WIRE_SEALED},
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
	if (epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, control_fd, &event) < 0) {
		err_sys(&a->why, "watch the control socket");
		return status;
	}
	while (!a->stop && !sealed(a))
		if (turn(a, control_fd) < 0)
			return status;
	status = sealed(a) ? AUDITOR_SEALED : finish(a);
	if (status == AUDITOR_SEALED)
		tell_sealed(a);
	return status;
}
