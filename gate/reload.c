/* reload.c - the supervisor's way from one generation of configuration and rules to the next. */
#include "gate/supervisor_priv.h"

#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/base/log.h"
#include "gate/notify.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void reload_open(struct supervisor *s)
{
	buf_init(&s->reload.why, ERR_MSG_MAX);
}

void reload_close(struct supervisor *s)
{
	buf_fini(&s->reload.why);
}

uint64_t reload_deadline(const struct supervisor *s)
{
	return s->reload.phase == RELOAD_IDLE ? UINT64_MAX : s->reload.deadline_ms;
}

static void enter(struct supervisor *s, enum reload_phase phase)
{
	s->reload.phase = phase;
	s->reload.deadline_ms = clock_boot_ms() + RELOAD_PATIENCE_MS;
}

/* What could not be read, started or switched to: the old generation goes on. */
static void end(struct supervisor *s, const char *why)
{
	struct reload *r = &s->reload;

	r->count++;
	r->failed = *why != '\0';
	r->ended_at = (int64_t)(clock_unix_ns() / 1000000000);
	snprintf(r->reason, sizeof(r->reason), "%s", why);
	for (char *c = r->reason; *c; c++) /* it may tell of bytes that were found in a file */
		if (*c < ' ' || *c > '~')
			*c = '?';
	if (r->failed)
		log_line("reload: %s; generation %.12s stays", why, s->generation);
	else
		log_line("reload: generation %.12s serves", s->generation);
	r->phase = RELOAD_IDLE;
	notify_manager("READY=1");
	admin_on_reload_ended(s);
	if (r->again && !s->stopping)
		reload_ask(s);
}

static void kill_unfinished(struct supervisor *s)
{
	if (s->reader.pid) {
		s->reader.leaving = true;
		kill(s->reader.pid, SIGKILL);
	}
	for (size_t i = 0; i < s->conf->workers; i++)
		if (s->coming[i].pid) {
			s->coming[i].leaving = true;
			kill(s->coming[i].pid, SIGKILL);
		}
}

void reload_give_up(struct supervisor *s, const char *why)
{
	enum reload_phase phase = s->reload.phase;

	if (phase == RELOAD_IDLE)
		return;
	kill_unfinished(s);
	if (phase == RELOAD_STARTING)
		s->conf->forget_next(s->conf->arg);
	end(s, why);
}

/* Those of a reload that was given up must have gone before another begins. */
static bool is_clear(const struct supervisor *s)
{
	bool clear = !s->reader.pid;

	for (size_t i = 0; i < s->conf->workers; i++)
		clear = clear && !s->coming[i].pid;
	return clear;
}

void reload_ask(struct supervisor *s)
{
	struct reload *r = &s->reload;

	if (!s->conf->next) {
		log_line("SIGHUP: nothing is reloaded here");
		return;
	}
	r->again = r->phase != RELOAD_IDLE || !s->ever_ready || !is_clear(s);
	if (r->again || s->stopping)
		return;
	notify_manager("RELOADING=1");
	buf_clear(&r->why);
	enter(s, RELOAD_READING); /* the reader is missing now, and so is started */
}

/* Takes the bundle; workers of the next generation are missing then, and so are started. */
static void take_bundle(struct supervisor *s, int fd)
{
	const char *generation = "";
	struct err err = {0};

	if (s->reload.phase != RELOAD_READING) {
		close(fd);
	} else if (s->conf->next(s->conf->arg, fd, &generation, &err) < 0) {
		end(s, err.msg);
	} else if (strcmp(generation, s->generation) == 0) {
		s->conf->forget_next(s->conf->arg);
		log_line("reload: nothing has changed");
		end(s, "");
	} else {
		snprintf(s->reload.generation, GENERATION_MAX, "%s", generation);
		enter(s, RELOAD_STARTING);
	}
}

bool reload_can_go_back(const struct supervisor *s)
{
	return s->conf->next && s->reload.phase == RELOAD_IDLE && !s->reload.again &&
	       s->ever_ready && !s->stopping && is_clear(s);
}

void reload_go_back(struct supervisor *s, int bundle)
{
	notify_manager("RELOADING=1");
	enter(s, RELOAD_READING);
	take_bundle(s, bundle);
}

static void read_reason(struct supervisor *s)
{
	struct buf *why = &s->reload.why;
	char text[ERR_MSG_MAX];
	ssize_t n;

	while ((n = recv(s->reader.control, text, sizeof(text), MSG_DONTWAIT)) > 0)
		buf_put(why, text, (size_t)n < buf_room(why) ? (size_t)n : buf_room(why));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	process_cut(s, &s->reader);
	if (s->reload.phase != RELOAD_READING)
		return;
	s->reader.leaving = true;
	snprintf(text, sizeof(text), "%.*s", (int)buf_len(why), buf_span(why).at);
	end(s, *text ? text : "the reader of the configuration did not say what is wrong");
}

void reload_on_reader(struct supervisor *s)
{
	int fds[IO_FDS_MAX];
	struct err err = {0};
	size_t count = 0;
	char tag;

	if (s->reader.control < 0)
		return;
	if (s->reader.failing) {
		read_reason(s);
		return;
	}
	if (io_recv_fds(s->reader.control, &tag, fds, &count, &err) != 1) {
		if (err.sys != EAGAIN)
			process_cut(s, &s->reader); /* on_death() says how it ended */
		return;
	}
	for (size_t i = 1; i < count; i++)
		close(fds[i]);
	if (tag == 'b' && count >= 1) {
		s->reader.leaving = true;
		take_bundle(s, fds[0]);
		return;
	}
	if (count)
		close(fds[0]);
	s->reader.failing = true;
	read_reason(s);
}

void reload_on_death(struct supervisor *s, const struct process *p, const char *how)
{
	bool reading = p == &s->reader && s->reload.phase == RELOAD_READING;
	bool starting = p != &s->reader && s->reload.phase == RELOAD_STARTING && !p->leaving;
	char why[ERR_MSG_MAX];

	if (!reading && !starting)
		return;
	snprintf(why, sizeof(why), "%s ended: %s (its own lines on standard error say more)",
		 reading ? "the reader of the configuration" : "a worker with the new rules", how);
	reload_give_up(s, why);
}

static size_t ready_workers(const struct supervisor *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->conf->workers; i++)
		n += s->coming[i].pid && s->coming[i].ready;
	return n;
}

/* The old workers accept nobody any more, and then the new ones begin. */
static void switch_over(struct supervisor *s)
{
	int bundle = s->conf->next_bundle ? s->conf->next_bundle(s->conf->arg) : -1;

	/* What is left of each place is how often it was started again. */
	supervisor_let_go(s, bundle);
	memcpy(s->generation, s->reload.generation, GENERATION_MAX);
	s->conf->switch_to_next(s->conf->arg);
	for (size_t i = 0; i < s->conf->workers; i++) {
		s->coming[i].restarts = s->workers[i].restarts;
		supervisor_move(s, &s->coming[i], &s->workers[i]);
		supervisor_tell(&s->workers[i], 'g');
	}
	supervisor_end_watcher(s);
	end(s, "");
}

void reload_go_on(struct supervisor *s)
{
	struct reload *r = &s->reload;

	if (r->phase == RELOAD_IDLE && r->again && s->ever_ready && !s->stopping && is_clear(s))
		reload_ask(s);
	if (r->phase == RELOAD_STARTING && ready_workers(s) == s->conf->workers &&
	    supervisor_has_room(s))
		switch_over(s);
	if (r->phase != RELOAD_IDLE && clock_boot_ms() >= r->deadline_ms)
		reload_give_up(s, r->phase == RELOAD_READING
					  ? "reading the configuration took too long"
					  : "the new workers were not ready in time");
}
