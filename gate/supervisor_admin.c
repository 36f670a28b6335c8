/* supervisor_admin.c - what the supervisor does for the process behind the admin socket. */
#include "gate/supervisor_priv.h"

#include "gate/base/auto.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/base/log.h"
#include "gate/status_ask.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void send_note(struct process *p, char tag, const void *note, size_t len, int fd)
{
	struct err err = {0};

	if (p->control < 0)
		return;
	if (io_send_note(p->control, tag, (struct span){note, len}, &fd, fd >= 0 ? 1 : 0, &err) ==
		    0 ||
	    err.sys == EPIPE)
		return;
	log_line("%s %d does not read its control socket (%s): ended", role_name(p->role),
		 (int)p->pid, err.msg);
	kill(p->pid, SIGKILL);
}

/* Those that finish what was begun have connections of it as well. */
static void tell_workers(struct supervisor *s, char tag, const struct runtime_row *row, int fd)
{
	for (size_t i = 0; supervisor_worker_at(s, i); i++)
		send_note(supervisor_worker_at(s, i), tag, row, sizeof(*row), fd);
}

static void reply_with(struct supervisor *s, const struct admin_reply *reply, int fd)
{
	send_note(&s->admin, 'k', reply, sizeof(*reply), fd);
}

/* In memory that the reader maps or reads at leisure: it would not fit into a socket. */
static int status_fd(const struct supervisor *s)
{
	auto_fd int fd = memfd_create("sallyport-status", MFD_CLOEXEC);
	struct err err = {0};
	struct buf text;
	int rc;

	if (fd < 0) {
		log_line("the status cannot be told: %s", strerror(errno));
		return -1;
	}
	buf_init(&text, STATUS_MAX);
	status_write(s, &text);
	rc = buf_spent(&text) ? err_set(&err, ERR_LIMIT, "it is too long")
			      : io_write_all(fd, buf_span(&text).at, buf_len(&text), &err);
	buf_fini(&text);
	if (rc < 0)
		log_line("the status cannot be told: %s", err.msg);
	return rc < 0 ? -1 : take_fd(fd);
}

/* The answer goes first: the end of the reload may follow at once. */
static void roll_back(struct supervisor *s, const struct admin_word *w, struct admin_reply *reply)
{
	char generation[RUNTIME_NAME_MAX + 1];
	int bundle = -1;

	memcpy(generation, w->row.name, sizeof(generation));
	generation[RUNTIME_NAME_MAX] = '\0';
	reply->reloads = s->reload.count;
	if (!reload_can_go_back(s)) {
		reply->code = ANSWER_reload_goes_on;
	} else {
		bundle = s->conf->kept ? s->conf->kept(s->conf->arg, generation) : -1;
		if (bundle < 0)
			reply->code = ANSWER_generation_missing;
	}
	reply_with(s, reply, -1);
	if (bundle >= 0)
		reload_go_back(s, bundle);
}

static void answer_word(struct supervisor *s, const struct admin_word *w)
{
	struct admin_reply reply;
	auto_fd int fd = -1;

	memset(&reply, 0, sizeof(reply));
	reply.ticket = w->ticket;
	if (w->ask == ASK_STATUS) {
		fd = status_fd(s);
		reply.code = fd < 0 ? ANSWER_no_answer : ADMIN_DONE;
	} else if (s->stopping) {
		reply.code = ANSWER_stopping;
	} else if (w->ask == ASK_RELOAD) {
		reply.reloads = s->reload.count;
		reload_ask(s);
	} else if (w->ask == ASK_ROLLBACK) {
		roll_back(s, w, &reply);
		return;
	} else {
		const struct runtime_listener *made = NULL;
		bool gone = false;

		s->conf->admin(s->conf->arg, w, &reply, &made, &gone);
		if (made)
			tell_workers(s, 'l', &made->row, made->fd);
		if (gone)
			tell_workers(s, 'x', &reply.row, -1);
	}
	reply_with(s, &reply, fd);
}

void admin_on_word(struct supervisor *s)
{
	struct process *p = &s->admin;
	struct admin_word word;
	ssize_t n = recv(p->control, &word, sizeof(word), MSG_DONTWAIT);

	/* It comes in one piece with its tag, or something is wrong. */
	if (n == (ssize_t)sizeof(word))
		answer_word(s, &word);
	else
		kill(p->pid, SIGKILL);
}

void admin_on_reload_ended(struct supervisor *s)
{
	send_note(&s->admin, 'e', "", 0, -1);
}

void admin_look_around(struct supervisor *s)
{
	struct admin_reply ended;

	if (!s->conf->expired)
		return;
	memset(&ended, 0, sizeof(ended));
	while (s->conf->expired(s->conf->arg, &ended.row)) {
		log_line("listener %s: its lifetime has ended", ended.row.name);
		tell_workers(s, 'x', &ended.row, -1);
		send_note(&s->admin, 'x', &ended, sizeof(ended), -1);
	}
}

uint64_t admin_due(const struct supervisor *s)
{
	return s->conf->due ? s->conf->due(s->conf->arg) : UINT64_MAX;
}
