/* admin_process.c - the loop behind the admin socket: connections, records, the supervisor's words.
 */
#include "gate/admin_priv.h"

#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/base/jv.h"
#include "gate/base/log.h"
#include "proxy/metrics.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_MS    5000  /* a request must have come */
#define ANSWER_MS     10000 /* an answer must have been taken */
#define LOG_MS        2000  /* for the log, before it is ready without one */
#define TICK_MS       250
#define ASK_ANEW_MS   3000 /* without a connection to the auditor */
#define RATE_BURST    200  /* requests of one user; then ... */
#define RATE_MS       20   /* ... one each */
#define RATE_USERS    64
#define REFUSED_MS    10000 /* refusals for their number are on record this often */
#define ARGUMENTS_MAX 32768
#define LAST_WORDS    2000

#define ADMIN_OF(member, ptr) ((struct admin *)((char *)(ptr)-offsetof(struct admin, member)))

static struct log_kind refused;

/* --- how often one asks --- */

struct bucket {
	uid_t uid;
	uint64_t full_at_ms; /* when all that was taken is there again; 0: unused */
	uint64_t told_ms;
};

static struct bucket buckets[RATE_USERS];

/* That of the user, or the one that is full or fuller than others. */
static struct bucket *bucket_of(uid_t uid)
{
	struct bucket *best = &buckets[0];

	for (size_t i = 0; i < RATE_USERS; i++) {
		if (buckets[i].uid == uid && buckets[i].full_at_ms)
			return &buckets[i];
		if (buckets[i].full_at_ms < best->full_at_ms)
			best = &buckets[i];
	}
	*best = (struct bucket){.uid = uid};
	return best;
}

/* False: too often; *ret_tell: and that is to go on record. */
static bool may_ask_now(uid_t uid, bool *ret_tell)
{
	uint64_t now = clock_boot_ms();
	struct bucket *b = bucket_of(uid);
	uint64_t from = b->full_at_ms > now ? b->full_at_ms : now;

	*ret_tell = false;
	if (from + RATE_MS > now + RATE_BURST * RATE_MS) {
		*ret_tell = now >= b->told_ms;
		if (*ret_tell)
			b->told_ms = now + REFUSED_MS;
		return false;
	}
	b->full_at_ms = from + RATE_MS;
	return true;
}

/* --- one use --- */

static void free_use(struct admin_use *u)
{
	struct admin *a = u->a;

	audit_forget(a->audit, u);
	loop_unwatch(&a->loop, &u->watch);
	if (u->fd >= 0)
		close(u->fd);
	if (a->holder == u)
		a->holder = NULL;
	for (size_t i = 0; i < ADMIN_USES_MAX; i++)
		if (a->uses[i] == u)
			a->uses[i] = NULL;
	buf_fini(&u->in);
	buf_fini(&u->out);
	buf_fini(&u->result);
	arena_destroy(u->arena);
	free(u);
}

/* Whoever asked has gone; what was begun goes on to its end. */
static void lose_caller(struct admin_use *u)
{
	loop_unwatch(&u->a->loop, &u->watch);
	close(u->fd);
	u->fd = -1;
}

static void write_out(struct admin_use *u)
{
	struct span left = buf_span(&u->out);
	ssize_t n = u->fd >= 0 ? send(u->fd, left.at, left.len, MSG_NOSIGNAL | MSG_DONTWAIT) : -1;

	if (n > 0)
		buf_consume(&u->out, (size_t)n);
	if (!buf_len(&u->out) || (n < 0 && (u->fd < 0 || errno != EAGAIN))) {
		free_use(u);
		return;
	}
	loop_change(&u->a->loop, &u->watch, EPOLLOUT);
}

static void put_member(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, ",\"%s\":", key);
	jv_write_str(out, span_of(value));
}

static void answer(struct admin_use *u)
{
	if (u->own) {
		u->a->holder = NULL;
		return;
	}
	if (u->a->holder == u)
		u->a->holder = NULL;
	u->answered = true;
	u->deadline_ms = clock_boot_ms() + ANSWER_MS;
	buf_puts(&u->out, u->answer == ADMIN_DONE ? "{\"ok\":true" : "{\"ok\":false");
	put_member(&u->out, "id", u->id);
	if (u->answer) {
		put_member(&u->out, "reason", admin_answer_name(u->answer));
		put_member(&u->out, "text", *u->text ? u->text : admin_answer_text(u->answer));
	}
	buf_put(&u->out, buf_span(&u->result).at, buf_len(&u->result));
	buf_puts(&u->out, "}\n");
	if (buf_spent(&u->out))
		buf_clear(&u->out);
	write_out(u);
}

/* --- records --- */

static void fill_record(const struct admin_use *u, struct record *r)
{
	r->type = RECORD_ADMIN;
	r->op = u->op;
	if (*u->kept.row.name) {
		r->object_kind = "listener";
		r->object_name = u->kept.row.name;
	}
	if (*u->owner) {
		r->object_kind = "owner";
		r->object_name = u->owner;
	}
	if (*u->profile) {
		r->object_kind = "profile";
		r->object_name = u->profile;
	}
	if (u->req.verb == VERB_approvals_allow || u->req.verb == VERB_approvals_deny)
		r->approval_id = admin_arg(&u->req, "id")->text;
	if (u->own)
		return;
	r->auth_method = "peercred";
	r->has_cred = true;
	r->uid = u->peer.uid;
	r->gid = u->peer.gid;
	r->pid = u->peer.pid;
	r->rule = u->roles_text;
}

static void put_row(struct buf *out, const struct runtime_row *row)
{
	char until[CLOCK_TEXT_MAX];

	clock_format((uint64_t)row->until * 1000000000, until);
	buf_printf(out,
		   "{\"name\":\"%s\",\"profile\":\"%s\",\"owner\":\"%s\",\"path\":\"%s\","
		   "\"gid\":%u,\"mode\":%u,\"until\":\"%s\"}",
		   row->name, row->profile, row->owner, row->path, row->gid, row->mode, until);
}

/* What was asked for: the listener as it is to be, or the arguments as they came. */
/* False: there is more than a record is to have. */
static bool put_facts(const struct admin_use *u, struct buf *out)
{
	if (*u->kept.row.name)
		put_row(out, &u->kept.row);
	else if (u->req.given && u->req.given->count)
		jv_write(out, u->req.given);
	if (!buf_spent(out))
		return true;
	buf_clear(out);
	return false;
}

static void on_outcome(void *arg, const struct audit_receipt *receipt)
{
	struct admin_use *u = arg;

	if (!receipt)
		log_line("%s %s: its outcome could not be recorded", u->op, u->id);
	answer(u);
}

void admin_finish(struct admin_use *u, enum admin_answer how)
{
	char id[UUID_TEXT_LEN + 1];
	struct record r = {.id = id, .of = u->id, .status = how ? "fail" : "ok"};
	char why[ERR_MSG_MAX + 64];

	u->answer = how;
	u->reply = NULL;
	if (!u->own && !admin_verb_acts(u->req.verb)) {
		answer(u);
		return;
	}
	uuid_make(id);
	fill_record(u, &r);
	snprintf(why, sizeof(why), "%s%s%s", admin_answer_name(how), *u->text ? ": " : "", u->text);
	r.err = how ? why : NULL;
	r.text = u->note;
	if (audit_require(u->a->audit, &r, on_outcome, u) < 0)
		on_outcome(u, NULL);
}

static void on_refused(void *arg, const struct audit_receipt *receipt)
{
	(void)receipt;
	answer(arg);
}

static void on_decided(void *arg, const struct audit_receipt *receipt)
{
	struct admin_use *u = arg;

	if (receipt || (!u->own && !admin_verb_acts(u->req.verb))) {
		u->act(u);
		return;
	}
	u->answer = ANSWER_no_log;
	answer(u);
}

/*
 * A look is served without a log, as reads are, if the configuration lets them: who looks
 * wants to know why there is none.
 */
static void without_log(struct admin_use *u)
{
	bool looks = !u->own && !u->answer && !admin_verb_acts(u->req.verb) &&
		     u->a->conf->config->proxy.reads_without_log;

	if (looks) {
		u->act(u);
		return;
	}
	if (!u->answer)
		u->answer = ANSWER_no_log;
	log_often(&refused, "%s by uid %u could not be recorded: %s", u->op, u->peer.uid,
		  admin_answer_name(u->answer));
	answer(u);
}

void admin_decide(struct admin_use *u, enum admin_answer how, const char *note)
{
	struct record r = {.id = u->id,
			   .verdict = how ? "deny" : "allow",
			   .reason = admin_answer_name(how),
			   .text = how && *u->text ? u->text : note};
	struct buf facts;
	int rc;

	u->answer = how;
	metrics_add(u->a->conf->metrics, METRIC_admin_uses, !u->own);
	metrics_add(u->a->conf->metrics, METRIC_admin_refused, how != ADMIN_DONE);
	buf_init(&facts, ARGUMENTS_MAX);
	fill_record(u, &r);
	if (!put_facts(u, &facts)) /* said at such length that it is left out */
		r.masked = span_of("[\"facts\"]");
	r.facts = buf_span(&facts);
	rc = audit_require(u->a->audit, &r, how ? on_refused : on_decided, u);
	buf_fini(&facts);
	if (rc < 0)
		without_log(u);
}

void admin_note(struct admin *a, const struct admin_noted *what)
{
	char id[UUID_TEXT_LEN + 1];
	struct record r = {.type = RECORD_ADMIN,
			   .id = id,
			   .op = what->op,
			   .object_kind = what->kind,
			   .object_name = what->name,
			   .status = "ok",
			   .text = what->text,
			   .facts = what->facts};

	uuid_make(id);
	if (audit_tell(a->audit, &r) < 0)
		log_line("%s of %s could not be recorded", what->op, what->name);
}

void admin_note_row(struct admin *a, const char *op, const struct runtime_row *row,
		    const char *text)
{
	struct buf facts;

	buf_init(&facts, ARGUMENTS_MAX);
	put_row(&facts, row);
	admin_note(a, &(struct admin_noted){op, "listener", row->name, text, buf_span(&facts)});
	buf_fini(&facts);
}

/* --- requests --- */

static void refuse(struct admin_use *u, enum admin_answer why, const struct err *err)
{
	snprintf(u->text, sizeof(u->text), "%s", err->msg);
	admin_decide(u, why, NULL);
}

static void on_request(struct admin_use *u, struct span line)
{
	struct err err = {0};
	bool tell = false;
	enum admin_answer wrong;

	loop_change(&u->a->loop, &u->watch, 0); /* a hang-up is told all the same */
	uuid_make(u->id);
	wrong = may_ask_now(u->peer.uid, &tell) ? ADMIN_DONE : ANSWER_too_often;
	if (wrong && !tell) {
		u->answer = wrong;
		answer(u);
		return;
	}
	if (!wrong)
		wrong = admin_request_read(u->arena, line, &u->req, &err);
	if (*admin_verb_name(u->req.verb))
		u->op = admin_verb_name(u->req.verb);
	/* Who may not learns nothing about what else is wrong. */
	if (u->req.verb != VERB_COUNT && !(admin_verb_roles(u->req.verb) & u->roles)) {
		err = (struct err){0};
		wrong = ANSWER_not_permitted;
	}
	if (!wrong && u->a->over)
		wrong = ANSWER_stopping;
	if (wrong) {
		refuse(u, wrong, &err);
		return;
	}
	u->deadline_ms = clock_boot_ms() + ADMIN_WORK_MS;
	/* A process that has just begun, perhaps in place of one that died, has no log yet. */
	u->waits = admin_needs_turn(u) || !u->a->ready;
	if (!u->waits)
		admin_begin(u);
}

static void take_turns(struct admin *a)
{
	struct admin_use *first = NULL;

	if (!a->ready)
		return;
	for (size_t i = 0; i < ADMIN_USES_MAX; i++) {
		struct admin_use *u = a->uses[i];

		if (!u || !u->waits || admin_needs_turn(u))
			continue;
		u->waits = false;
		admin_begin(u);
	}
	if (a->holder)
		return;
	for (size_t i = 0; i < ADMIN_USES_MAX; i++) {
		struct admin_use *u = a->uses[i];

		if (u && u->waits && (!first || u->since_ms < first->since_ms))
			first = u;
	}
	if (!first)
		return;
	first->waits = false;
	a->holder = first;
	admin_begin(first);
}

/* One line and nothing behind it. */
static void read_in(struct admin_use *u)
{
	char *at = buf_reserve(&u->in, buf_room(&u->in));
	ssize_t n = at ? recv(u->fd, at, buf_room(&u->in), MSG_DONTWAIT) : -1;
	const char *end;
	struct span got;

	if (n < 0 && at && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		free_use(u); /* it went without having asked */
		return;
	}
	buf_commit(&u->in, (size_t)n);
	got = buf_span(&u->in);
	end = memchr(got.at, '\n', got.len);
	if (!end && buf_room(&u->in))
		return;
	if (!end || end != got.at + got.len - 1)
		on_request(u, (struct span){"", 0});
	else
		on_request(u, (struct span){got.at, got.len - 1});
}

static void on_caller(struct watch *watch, uint32_t events)
{
	struct admin_use *u = (struct admin_use *)watch;

	if (u->answered)
		write_out(u);
	else if (!*u->id && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		read_in(u);
	else if (events & (EPOLLHUP | EPOLLERR))
		lose_caller(u);
}

static struct admin_use *make_use(struct admin *a, int fd)
{
	struct admin_use *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	*u = (struct admin_use){.watch = {.fd = -1}, .a = a, .fd = fd, .op = "request"};
	u->since_ms = clock_boot_ms();
	u->deadline_ms = u->since_ms + REQUEST_MS;
	u->req.verb = VERB_COUNT;
	buf_init(&u->in, ADMIN_REQUEST_MAX + 1);
	buf_init(&u->out, ADMIN_ANSWER_MAX);
	buf_init(&u->result, ADMIN_ANSWER_MAX);
	u->arena = arena_create(2 * ADMIN_ANSWER_MAX);
	if (u->arena && admin_peer_of(fd, &u->peer) == 0)
		return u;
	arena_destroy(u->arena);
	free(u);
	return NULL;
}

static size_t count_of(const struct admin *a, uid_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < ADMIN_USES_MAX; i++)
		n += a->uses[i] && a->uses[i]->peer.uid == uid;
	return n;
}

static void take_caller(struct admin *a, int fd)
{
	struct admin_use *u = make_use(a, fd);
	struct err err = {0};
	size_t i = 0;

	while (i < ADMIN_USES_MAX && a->uses[i])
		i++;
	if (!u || i == ADMIN_USES_MAX || count_of(a, u->peer.uid) >= ADMIN_USES_UID ||
	    loop_watch(&a->loop, &u->watch, fd, EPOLLIN, on_caller, &err) < 0) {
		log_often(&refused, "the admin socket: a connection too many; it was closed");
		if (u)
			free_use(u); /* with its descriptor */
		else
			close(fd);
		return;
	}
	u->roles = admin_roles_of(&a->conf->config->admin, &u->peer, a->conf->starter);
	admin_roles_text(u->roles, u->roles_text);
	a->uses[i] = u;
}

static void on_listener(struct watch *watch, uint32_t events)
{
	struct admin *a = ADMIN_OF(listen_watch, watch);
	int fd;

	(void)events;
	for (int i = 0; i < ADMIN_USES_MAX; i++) {
		fd = accept4(a->conf->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		take_caller(a, fd);
	}
}

static void look_at_deadlines(struct admin *a)
{
	uint64_t now = clock_boot_ms();

	for (size_t i = 0; i < ADMIN_USES_MAX; i++) {
		struct admin_use *u = a->uses[i];

		if (!u || now < u->deadline_ms)
			continue;
		if (*u->id && !u->answered && u->reply && a->holder != u) {
			admin_finish(u, ANSWER_no_answer);
		} else if (!*u->id || u->answered) {
			free_use(u);
		}
	}
}

/* --- the supervisor --- */

void admin_ask_word(struct admin_use *u, struct admin_word *word, admin_reply_fn *reply)
{
	struct err err = {0};

	word->ticket = u->ticket = ++u->a->next_ticket;
	u->reply = reply;
	if (io_send_note(u->a->control, 'q', (struct span){(const char *)word, sizeof(*word)}, NULL,
			 0, &err) < 0)
		u->a->over = true; /* the supervisor is gone, and so are we */
}

void admin_ask(struct admin_use *u, enum admin_ask ask, const struct runtime_row *row,
	       admin_reply_fn *reply)
{
	struct admin_word word;

	memset(&word, 0, sizeof(word));
	word.ask = ask;
	if (row)
		word.row = *row;
	admin_ask_word(u, &word, reply);
}

static struct admin_use *use_of(struct admin *a, uint64_t ticket)
{
	if (a->keeper.ticket == ticket)
		return &a->keeper;
	for (size_t i = 0; i < ADMIN_USES_MAX; i++)
		if (a->uses[i] && a->uses[i]->ticket == ticket)
			return a->uses[i];
	return NULL;
}

/* What stands in a memory file, from its begin, without its newline. */
static void read_text(int fd, struct buf *out)
{
	ssize_t n = 1;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return;
	while (n > 0 && buf_room(out)) {
		size_t want = buf_room(out) < 65536 ? buf_room(out) : 65536;
		char *at = buf_reserve(out, want);

		n = at ? read(fd, at, want) : -1;
		if (n > 0)
			buf_commit(out, (size_t)n);
	}
}

static void on_reply(struct admin *a, const struct admin_reply *reply, int fd)
{
	struct admin_use *u = reply->ticket ? use_of(a, reply->ticket) : NULL;
	struct span text;
	struct buf buf;

	if (!u || !u->reply)
		return;
	u->ticket = 0;
	buf_init(&buf, ADMIN_ANSWER_MAX);
	if (fd >= 0)
		read_text(fd, &buf);
	text = buf_span(&buf);
	while (text.len && text.at[text.len - 1] == '\n')
		text.len--;
	u->reply(u, reply, text.len ? text : span_of("{}"));
	buf_fini(&buf);
}

static void follow_audit(struct admin *a);

static void on_word(struct admin *a, char tag, const int *fds, size_t count)
{
	struct admin_reply reply;
	struct err err = {0};

	if (tag == 'a' && count == 1 && io_nonblock(fds[0], &err) == 0) {
		audit_client_attach(a->audit, fds[0]);
		follow_audit(a);
		return;
	}
	if ((tag == 'k' || tag == 'x') && io_recv_note(a->control, &reply, sizeof(reply), &err) < 0)
		a->over = true;
	else if (tag == 'k')
		on_reply(a, &reply, count ? fds[0] : -1);
	else if (tag == 'x')
		admin_on_ended(a, &reply.row);
	else if (tag == 'e')
		admin_on_reloaded(a);
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}

static void on_control(struct watch *watch, uint32_t events)
{
	struct admin *a = ADMIN_OF(control_watch, watch);
	int fds[IO_FDS_MAX];
	struct err err = {0};
	size_t count = 0;
	char tag;

	(void)events;
	if (io_recv_fds(a->control, &tag, fds, &count, &err) == 1)
		on_word(a, tag, fds, count);
	else
		a->over = true;
}

/* --- the log --- */

static void on_audit(struct watch *watch, uint32_t events)
{
	struct admin *a = ADMIN_OF(audit_watch, watch);

	(void)events;
	audit_client_read(a->audit);
	follow_audit(a);
}

static void follow_audit(struct admin *a)
{
	int fd = audit_client_fd(a->audit);
	uint32_t want = EPOLLIN | (audit_client_waiting(a->audit) ? EPOLLOUT : 0);
	struct err err = {0};

	if (fd == a->audit_watch.fd) {
		loop_change(&a->loop, &a->audit_watch, want);
		return;
	}
	loop_forget(&a->loop, &a->audit_watch);
	if (fd >= 0 && loop_watch(&a->loop, &a->audit_watch, fd, want, on_audit, &err) < 0)
		log_line("auditor: %s", err.msg);
}

/* --- the loop --- */

/* What there was before is there again, and on record, before anybody is told that the gate is
 * ready. */
static void get_ready(struct admin *a)
{
	bool up = audit_client_up(a->audit), waited = clock_boot_ms() >= a->started_ms + LOG_MS;
	struct err err = {0};

	if (up && !a->holder && admin_restore_next(a))
		return;
	if (a->ready || a->holder || !(up || waited))
		return;
	a->ready = true;
	if (io_send_fds(a->control, 'y', NULL, 0, &err) < 0)
		a->over = true;
}

/* A connection may end though both processes live. */
static void ask_for_log(struct admin *a)
{
	struct err err = {0};

	if (audit_client_fd(a->audit) >= 0)
		a->log_seen_ms = a->loop.now_ms;
	if (a->loop.now_ms - a->log_seen_ms < ASK_ANEW_MS)
		return;
	a->log_seen_ms = a->loop.now_ms;
	io_send_fds(a->control, 'a', NULL, 0, &err);
}

static void turn(struct admin *a)
{
	audit_client_flush(a->audit);
	follow_audit(a);
	loop_turn(&a->loop, TICK_MS);
	if (a->loop.now_ms >= audit_client_deadline(a->audit)) {
		audit_client_tick(a->audit, a->loop.now_ms);
		follow_audit(a);
	}
	get_ready(a);
	take_turns(a);
	ask_for_log(a);
	if (a->loop.now_ms < a->tick_ms)
		return;
	a->tick_ms = a->loop.now_ms + TICK_MS;
	admin_approvals_tick(a);
	if (a->ready) /* so that the end of one finds a log to stand in */
		admin_modes_tick(a);
	look_at_deadlines(a);
}

static void send_last_records(struct admin *a)
{
	uint64_t until = clock_boot_ms() + LAST_WORDS;

	audit_client_flush(a->audit);
	while (audit_client_waiting(a->audit) && clock_boot_ms() < until) {
		follow_audit(a);
		loop_turn(&a->loop, TICK_MS);
		audit_client_flush(a->audit);
	}
}

static int open_admin(struct admin *a, int control, struct err *err)
{
	jv_init();
	a->listen_watch.fd = a->control_watch.fd = a->audit_watch.fd = -1;
	a->control = control;
	a->keeper =
		(struct admin_use){.watch = {.fd = -1}, .a = a, .fd = -1, .own = true, .op = ""};
	a->audit = audit_client_create();
	a->state.list = calloc(RUNTIME_MAX, sizeof(*a->state.list));
	a->started_ms = a->log_seen_ms = clock_boot_ms();
	admin_emergency_open(a);
	if (!a->audit || !a->state.list)
		return err_sys(err, "no memory");
	if (a->conf->state >= 0 && admin_state_read(a->conf->state, &a->state, err) < 0) {
		log_line("no listener is made, and none of those of before is there, until this is "
			 "mended or removed: %s",
			 err->msg);
		a->damaged = true;
		*err = (struct err){0};
	}
	if (loop_open(&a->loop, err) < 0 ||
	    loop_watch(&a->loop, &a->control_watch, control, EPOLLIN, on_control, err) < 0)
		return -1;
	return loop_watch(&a->loop, &a->listen_watch, a->conf->socket, EPOLLIN, on_listener, err);
}

int admin_run(const struct admin_conf *conf, int control)
{
	static struct admin a;
	struct err err = {0};

	a = (struct admin){.conf = conf};
	a.loop.epfd = -1;
	if (open_admin(&a, control, &err) < 0) {
		log_line("%s", err.msg);
		return 2;
	}
	while (!a.over)
		turn(&a);
	send_last_records(&a);
	for (size_t i = 0; i < ADMIN_USES_MAX; i++)
		if (a.uses[i])
			free_use(a.uses[i]);
	audit_client_destroy(a.audit);
	free(a.state.list);
	loop_close(&a.loop);
	return 0;
}
