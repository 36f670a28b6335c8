/* One program of the caller: its output in frames, its input from frames, its end. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "proxy/sandbox/inside/names.h"
#include "proxy/sandbox/inside/spawn.h"
#include "proxy/sandbox/inside/tree.h"
#include "proxy/sandbox/inside/verbs.h"
#include "proxy/sandbox/inside/wire.h"

#define SILENCE_MS 200 /* a terminal's last output is on its way for no longer */

/* One output of the program. */
struct source {
	int fd; /* -1: closed */
	enum frame_type type;
	long left; /* after the program's end: what it had written and was not read; else -1 */
};

struct run {
	struct command cmd;
	pid_t pid;
	int in;          /* the program's stdin, -1: closed */
	size_t in_taken; /* of the frame in front */
	bool in_ends;    /* FRAME_STDIN_END was met */
	struct source sources[2];
	long long deadline_ms, output_left; /* -1: none */
	bool ended, timed_out, truncated, gone, immortal;
	int status;
};

static struct wire_in from_gate;
static struct wire_out to_gate;

static long long now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int number_read(const char *text, int base, long long most, long long *ret)
{
	char *end;
	long long n;

	errno = 0;
	n = text && *text >= '0' && *text <= '9' ? strtoll(text, &end, base) : -1;
	if (n < 0 || n > most || errno || *end)
		return -1;
	*ret = n;
	return 0;
}

static int read_size(char *text, struct command *cmd)
{
	char *by = text ? strchr(text, 'x') : NULL;
	long long rows, cols;

	if (!by)
		return -1;
	*by = '\0';
	if (number_read(text, 10, UINT16_MAX, &rows) < 0 ||
	    number_read(by + 1, 10, UINT16_MAX, &cols) < 0)
		return -1;
	cmd->rows = (uint16_t)rows;
	cmd->cols = (uint16_t)cols;
	cmd->tty = true;
	return 0;
}

/* One option and its value.  0, or -1: none of ours. */
static int read_option(struct run *r, const char *name, char *value)
{
	long long n;

	if (strcmp(name, "--cwd") == 0) {
		r->cmd.cwd = value;
		return value ? 0 : -1;
	}
	if (strcmp(name, "--timeout") == 0) {
		if (number_read(value, 10, INT32_MAX, &n) < 0 || n == 0)
			return -1;
		r->deadline_ms = n;
		return 0;
	}
	if (strcmp(name, "--tty") == 0)
		return read_size(value, &r->cmd);
	if (strcmp(name, "--output-max") == 0)
		return number_read(value, 10, INT64_MAX, &r->output_left);
	if (strcmp(name, "--env") == 0 && value && strchr(value, '=') > value) {
		r->cmd.env[r->cmd.env_count++] = value;
		return 0;
	}
	return -1;
}

static int read_words(struct run *r, char **words)
{
	unsigned count = 0;

	while (words[count])
		count++;
	r->cmd.env = calloc(count + 1, sizeof(*r->cmd.env));
	if (!r->cmd.env)
		return -1;
	for (; *words && strcmp(*words, "--") != 0; words += 2)
		if (read_option(r, words[0], words[1]) < 0)
			return -1;
	if (!words[0] || !words[1])
		return -1;
	r->cmd.argv = words + 1;
	return 0;
}

static void on_child(int number)
{
	(void)number; /* it ends the wait */
}

static void close_input(struct run *r)
{
	if (r->in >= 0 && !r->cmd.tty)
		(void)close(r->in);
	r->in = -1;
}

/* A terminal stays open: its end of input is a character. */
static void end_input(struct run *r)
{
	struct termios t;

	if (r->in >= 0 && r->cmd.tty && tcgetattr(r->in, &t) == 0 && (t.c_lflag & ICANON)) {
		ssize_t n = write(r->in, &t.c_cc[VEOF], 1);

		(void)n; /* a full terminal has a program that does not read */
	}
	close_input(r);
}

/* Nothing of the tree is left when it returns, or immortal says that something is. */
static void kill_all(struct run *r)
{
	if (tree_kill(r->pid, &r->ended, &r->status) < 0)
		r->immortal = true;
	r->ended = true;
}

/* 1: the frame is done with; 0: the program has yet to take it; -1: EPROTO. */
static int feed(struct run *r, const struct frame *f)
{
	while (r->in >= 0 && r->in_taken < f->length) {
		ssize_t n = write(r->in, f->data + r->in_taken, f->length - r->in_taken);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0)
			close_input(r); /* it does not read any more: the rest is thrown away */
		else
			r->in_taken += (size_t)n;
	}
	r->in_taken = 0;
	return 1;
}

static int take_frame(struct run *r, const struct frame *f)
{
	struct winsize size = {0};

	switch ((int)f->type) {
	case FRAME_STDIN:
		return r->in_ends && f->length ? -1 : feed(r, f);
	case FRAME_STDIN_END:
		end_input(r);
		r->in_ends = true;
		return f->length ? -1 : 1;
	case FRAME_SIGNAL:
		if (f->length != 1 || f->data[0] == 0 || f->data[0] >= NSIG)
			return -1;
		if (f->data[0] == SIGKILL)
			kill_all(r);
		else
			tree_signal(f->data[0]);
		return 1;
	case FRAME_RESIZE:
		if (f->length != 4 || !r->cmd.tty)
			return -1;
		size.ws_row = (unsigned short)(f->data[0] << 8 | f->data[1]);
		size.ws_col = (unsigned short)(f->data[2] << 8 | f->data[3]);
		if (r->sources[0].fd >= 0)
			(void)ioctl(r->sources[0].fd, TIOCSWINSZ, &size);
		return 1;
	}
	return -1;
}

/* 0, or -1: EPROTO. */
static int take_frames(struct run *r)
{
	struct frame f;
	int got, done = 1;

	while (done == 1 && !r->ended && (got = wire_next(&from_gate, &f))) {
		done = got < 0 ? -1 : take_frame(r, &f);
		if (done == 1)
			wire_drop(&from_gate);
	}
	return done < 0 ? -1 : 0;
}

static void close_source(struct run *r, struct source *s)
{
	if (r->in == s->fd)
		r->in = -1; /* a terminal is both */
	(void)close(s->fd);
	s->fd = -1;
}

/* Reads one frame's worth; to_gate is empty. */
static void read_source(struct run *r, struct source *s)
{
	size_t most = FRAME_DATA_MAX;
	ssize_t n;

	if (s->left >= 0 && (size_t)s->left < most)
		most = (size_t)s->left;
	n = read(s->fd, wire_room(&to_gate), most);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (s->left > 0 && n > 0)
		s->left -= n;
	if (n <= 0 || s->left == 0)
		close_source(r, s);
	if (n > 0 && r->output_left >= 0 && n > r->output_left) {
		n = (ssize_t)r->output_left;
		r->truncated = true;
	}
	if (n > 0) {
		wire_put(&to_gate, s->type, (size_t)n);
		r->output_left -= r->output_left >= 0 ? n : 0;
	}
}

/* The program has ended: only what it had written by then is waited for. */
static void count_rest(struct run *r)
{
	for (int i = 0; i < 2; i++) {
		struct source *s = &r->sources[i];
		int there = 0;

		if (s->fd < 0 || r->cmd.tty)
			continue;
		if (ioctl(s->fd, FIONREAD, &there) < 0 || there == 0)
			close_source(r, s);
		else
			s->left = there;
	}
}

static bool to_read(const struct run *r)
{
	return r->sources[0].fd >= 0 || r->sources[1].fd >= 0;
}

static long wait_ms(const struct run *r)
{
	long long left;

	if (r->ended)
		return r->cmd.tty ? SILENCE_MS : -1;
	if (r->deadline_ms < 0)
		return -1;
	left = r->deadline_ms - now_ms();
	return left < 0 ? 0 : (long)left;
}

enum { P_GATE, P_REPLY, P_OUT, P_ERR, P_IN, P_COUNT };

/* What is waited for.  An entry without events still tells that its other side has gone. */
static void ask(const struct run *r, struct pollfd p[P_COUNT])
{
	bool full = to_gate.from < to_gate.to;
	struct frame f;

	p[P_GATE] = (struct pollfd){.fd = 0, .events = POLLRDHUP};
	if (!r->ended && from_gate.have < sizeof(from_gate.data))
		p[P_GATE].events |= POLLIN;
	p[P_REPLY] = (struct pollfd){.fd = 1, .events = full ? POLLOUT : 0};
	for (int i = 0; i < 2; i++)
		p[P_OUT + i] =
			(struct pollfd){.fd = full ? -1 : r->sources[i].fd, .events = POLLIN};
	p[P_IN] = (struct pollfd){.fd = -1};
	if (r->in >= 0 && wire_next(&from_gate, &f) == 1)
		p[P_IN] = (struct pollfd){.fd = r->in, .events = POLLOUT};
}

/* Waits, with children let through.  False: it was silent for as long as it may be. */
static bool wait_for(const struct run *r, struct pollfd p[P_COUNT])
{
	long ms = wait_ms(r);
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	sigset_t none;
	int n;

	sigemptyset(&none);
	ask(r, p);
	n = ppoll(p, P_COUNT, ms < 0 ? NULL : &t, &none);
	if (n <= 0)
		for (int i = 0; i < P_COUNT; i++)
			p[i].revents = 0;
	return n != 0;
}

static void serve_outputs(struct run *r, const struct pollfd p[P_COUNT])
{
	static int first; /* neither of the two keeps the other waiting */

	for (int k = 0; k < 2 && to_gate.from == to_gate.to; k++) {
		int i = (first + k) % 2;

		if (p[P_OUT + i].fd >= 0 && p[P_OUT + i].revents && r->sources[i].fd >= 0)
			read_source(r, &r->sources[i]);
	}
	first = !first;
}

/* One turn.  0, or -1: EPROTO. */
static int turn(struct run *r)
{
	struct pollfd p[P_COUNT];
	bool none, heard = wait_for(r, p), was_ended = r->ended;

	if (!r->ended && tree_reap(r->pid, &r->status, &none))
		r->ended = true;
	if (!r->ended && r->deadline_ms >= 0 && now_ms() >= r->deadline_ms) {
		r->timed_out = true;
		kill_all(r);
	}
	if (p[P_GATE].revents & POLLIN && wire_fill(&from_gate) == WIRE_GONE)
		r->gone = true;
	if (p[P_GATE].revents & (POLLHUP | POLLRDHUP | POLLERR) || p[P_REPLY].revents & POLLERR)
		r->gone = true;
	if (r->gone)
		return 0;
	if (!r->ended && take_frames(r) < 0)
		return -1;
	if (p[P_REPLY].revents & POLLOUT && wire_flush(&to_gate) == WIRE_GONE)
		r->gone = true;
	serve_outputs(r, p);
	if (wire_flush(&to_gate) == WIRE_GONE)
		r->gone = true;
	if (r->ended && !was_ended)
		count_rest(r);
	else if (r->ended && r->cmd.tty && !heard && r->sources[0].fd >= 0)
		close_source(r, &r->sources[0]);
	return 0;
}

static int finish(const struct run *r)
{
	if (r->immortal)
		return wire_fail(EBUSY, "a process of this command does not die");
	if (WIFSIGNALED(r->status))
		return wire_end(128 + WTERMSIG(r->status), WTERMSIG(r->status), r->timed_out,
				r->truncated);
	return wire_end(WEXITSTATUS(r->status), 0, r->timed_out, r->truncated);
}

static int go(struct run *r)
{
	while (!r->gone && (!r->ended || to_read(r) || to_gate.from < to_gate.to))
		if (turn(r) < 0) {
			kill_all(r);
			if (wire_finish(&to_gate) == WIRE_GONE)
				return 1;
			return wire_fail(EPROTO, "what came on stdin is no frame for a run");
		}
	if (r->gone) {
		kill_all(r);
		return 1;
	}
	return finish(r);
}

/* Children are told only while it waits, so that none is missed. */
static void watch_children(void)
{
	struct sigaction act = {.sa_handler = on_child};
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, NULL);
	(void)sigaction(SIGCHLD, &act, NULL);
}

/* The run that the words ask for; *r is that of no program yet. */
static int run_words(struct run *r, char **words)
{
	char name[NAME_ENCODED(300)];
	struct ends ends;
	const char *what;

	if (read_words(r, words) < 0)
		return wire_fail(EINVAL, "run: options, then -- and a command");
	if (tree_init() < 0)
		return wire_fail(errno, "/proc is needed to end a tree of processes for certain");
	watch_children();
	if (r->deadline_ms >= 0)
		r->deadline_ms += now_ms();
	if (spawn(&r->cmd, &r->pid, &ends, &what) < 0)
		return wire_fail(errno, "%s %s", what,
				 name_encode(name, sizeof(name), r->cmd.argv[0]));
	r->in = ends.in;
	r->sources[0] = (struct source){ends.out, FRAME_STDOUT, -1};
	r->sources[1] = (struct source){ends.err, FRAME_STDERR, -1};
	return go(r);
}

int verb_run(char **words)
{
	struct run r = {.deadline_ms = -1, .output_left = -1, .in = -1};
	int status = run_words(&r, words);

	free(r.cmd.env);
	return status;
}
