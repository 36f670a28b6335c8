#include "gate/base/auto.h"
#include "gate/base/clock.h"
#include "gate/keeper/box_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

struct box {
	enum box_mode mode;
	pthread_mutex_t talk; /* one order and its answer at a time */
	int commands, events, root;
	pid_t pid;
	uint32_t last_id;
	bool gone;
	struct box_groups groups;
};

static const struct span nothing = {"", 0};

/* In the child: the socket becomes stdin, and this very program a launcher. */
static void become_launcher(int sock, bool bare) __attribute__((noreturn));

static void become_launcher(int sock, bool bare)
{
	static char name[] = "sallyport", verb[] = BOX_LAUNCH_VERB, word[] = "bare";
	char *argv[] = {name, verb, bare ? word : NULL, NULL};
	char *env[] = {NULL};
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(sock, STDIN_FILENO) >= 0)
		execve("/proc/self/exe", argv, env);
	_exit(2);
}

int box_launcher_start(bool bare, pid_t *ret_pid, struct err *err)
{
	int ends[2];
	pid_t pid;

	if (box_pair(ends, err) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		become_launcher(ends[1], bare);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return err_sys(err, "fork");
	}
	*ret_pid = pid;
	return ends[0];
}

/* A receive that waits no longer than that is an error of its own. */
static int set_patience(int sock, struct err *err)
{
	const struct timeval t = {BOX_ANSWER_MS / 1000, 0};

	if (setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) < 0 ||
	    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)) < 0)
		return err_sys(err, "time-outs of a socket");
	return 0;
}

int box_layers(int launcher, struct box_layer out[BOX_LAYERS_MAX], size_t *ret_count,
	       struct err *err)
{
	const struct box_wire_ask ask = {BOX_ASK_LAYERS};
	auto_fd int mine = -1, theirs = -1;
	int ends[2];
	ssize_t n;

	if (box_pair(ends, err) < 0)
		return -1;
	mine = ends[0];
	theirs = ends[1];
	if (set_patience(mine, err) < 0 ||
	    box_send(launcher, (struct span){(const char *)&ask, sizeof(ask)}, nothing, &theirs, 1,
		     err) < 0)
		return -1;
	close(take_fd(theirs));
	n = box_recv(mine, out, sizeof(*out) * BOX_LAYERS_MAX, NULL, NULL, err);
	if (n <= 0 || (size_t)n % sizeof(*out))
		return n < 0 ? -1 : err_set(err, ERR_SYSTEM, "the launcher of boxes is gone");
	*ret_count = (size_t)n / sizeof(*out);
	return 0;
}

int box_missing(int launcher, char *ret, size_t size, struct err *err)
{
	struct box_layer layers[BOX_LAYERS_MAX];
	size_t count;

	if (box_layers(launcher, layers, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (layers[i].required && !layers[i].there) {
			snprintf(ret, size, "%s: %s", layers[i].name, layers[i].why);
			return 1;
		}
	return 0;
}

static struct box *box_new(const struct box_conf *c, struct err *err)
{
	struct box *b = calloc(1, sizeof(*b));

	if (!b) {
		err_set(err, ERR_LIMIT, "out of memory");
		return NULL;
	}
	b->mode = c->mode;
	b->commands = b->events = b->root = -1;
	pthread_mutex_init(&b->talk, NULL);
	return b;
}

static void box_free(struct box *b)
{
	const int fds[] = {b->commands, b->events, b->root};

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	pthread_mutex_destroy(&b->talk);
	free(b);
}

static int ask_launcher(const struct box *b, int launcher, const struct box_conf *c,
			const int theirs[2], struct err *err)
{
	int fds[BOX_FDS_MAX] = {theirs[0], theirs[1]};
	size_t count = 2;
	struct buf message;
	int status;

	if (c->mode == BOX_BARE && c->folder >= 0)
		fds[count++] = c->folder;
	buf_init(&message, BOX_MESSAGE_MAX);
	status = box_plan_write(c, &message, err);
	for (size_t i = 0; status == 0 && i < c->bind_count; i++)
		fds[count++] = c->binds[i].fd;
	for (size_t i = 0; i < b->groups.count; i++)
		fds[count++] = b->groups.of[i].procs;
	if (status == 0)
		status = box_send(launcher, buf_span(&message), nothing, fds, count, err);
	buf_fini(&message);
	return status;
}

/* An answer of the init; with its descriptor, if there is one. */
static int hear(const struct box *b, struct box_answer *ret, int *ret_fd, struct err *err)
{
	int fds[BOX_FDS_MAX];
	size_t count = 0;
	ssize_t n = box_recv(b->commands, ret, sizeof(*ret), fds, &count, err);

	*ret_fd = count ? fds[0] : -1;
	for (size_t i = 1; i < count; i++)
		close(fds[i]);
	if (n < 0)
		return err_wrap(err, "the sandbox does not answer");
	if (n != (ssize_t)sizeof(*ret))
		return err_set(err, ERR_SYSTEM, "the sandbox is gone");
	if (ret->error == ERR_NONE)
		return 0;
	ret->text[sizeof(ret->text) - 1] = '\0';
	err_set(err, (enum err_kind)ret->error, "%s", ret->text);
	err->sys = ret->sys;
	return -1;
}

static int hear_pid(struct box *b, struct err *err)
{
	struct box_event e;
	ssize_t n = box_recv(b->events, &e, sizeof(e), NULL, NULL, err);

	if (n < 0)
		return -1;
	if (n != (ssize_t)sizeof(e) || e.kind != BOX_EVENT_STARTED)
		return err_set(err, ERR_SYSTEM, "the sandbox ended at its start");
	b->pid = (pid_t)e.id;
	return 0;
}

static int start(struct box *b, int launcher, const struct box_conf *c, struct err *err)
{
	auto_fd int their_commands = -1, their_events = -1;
	struct box_answer a;
	int pair[2];

	if (box_pair(pair, err) < 0)
		return -1;
	b->commands = pair[0];
	their_commands = pair[1];
	if (box_pair(pair, err) < 0)
		return -1;
	b->events = pair[0];
	their_events = pair[1];
	if (set_patience(b->commands, err) < 0 || set_patience(b->events, err) < 0)
		return -1;
	if (box_groups_make(c, &b->groups, err) < 0)
		return -1;
	if (ask_launcher(b, launcher, c, (int[]){their_commands, their_events}, err) < 0)
		return -1;
	/* Theirs alone from here on, or their end would not be seen. */
	close(take_fd(their_commands));
	close(take_fd(their_events));
	return hear(b, &a, &b->root, err) < 0 ? -1 : hear_pid(b, err);
}

struct box *box_start(int launcher, const struct box_conf *conf, struct err *err)
{
	struct box *b = box_new(conf, err);
	struct err unheard;

	if (!b)
		return NULL;
	if (start(b, launcher, conf, err) == 0)
		return b;
	box_end(b, &unheard);
	err_wrap(err, "sandbox %s", conf->name ? conf->name : "");
	return NULL;
}

int box_root(const struct box *b)
{
	return b->root;
}

pid_t box_pid(const struct box *b)
{
	return b->pid;
}

static int put_words(struct buf *b, const char *const *words, uint32_t *ret_count)
{
	uint32_t count = 0;

	for (; words[count]; count++)
		buf_put(b, words[count], strlen(words[count]) + 1);
	*ret_count = count;
	return buf_spent(b) ? -1 : 0;
}

static int write_order(const struct box_command *c, struct box_order *o, struct buf *words,
		       struct err *err)
{
	static const char *const none[] = {NULL};

	if (!c->argv || !c->argv[0] || !*c->argv[0])
		return err_set(err, ERR_INPUT, "no command");
	if (c->cwd && *c->cwd != '/')
		return err_set(err, ERR_INPUT, "a working folder that is not absolute");
	if (box_env_check(c->env ? c->env : none, c->loader_env, err) < 0)
		return -1;
	o->kind = BOX_ORDER_SPAWN;
	o->has_cwd = c->cwd != NULL;
	o->tty = c->tty;
	o->rows = c->rows;
	o->cols = c->cols;
	if (put_words(words, c->argv, &o->argc) < 0 ||
	    put_words(words, c->env ? c->env : none, &o->envc) < 0)
		return err_set(err, ERR_LIMIT, "more than %d bytes of arguments and environment",
			       BOX_WORDS_MAX);
	if (c->cwd)
		buf_put(words, c->cwd, strlen(c->cwd) + 1);
	return buf_spent(words) ? err_set(err, ERR_LIMIT, "a working folder that is too long") : 0;
}

struct asked {
	struct box_order order;
	struct span words;
	const int *fds; /* three, or NULL */
};

/* One order and its answer. */
static int command(struct box *b, const struct asked *q, struct box_answer *ret, int *ret_fd,
		   struct err *err)
{
	const struct span head = {(const char *)&q->order, sizeof(q->order)};
	int status;

	pthread_mutex_lock(&b->talk);
	status = box_send(b->commands, head, q->words, q->fds, q->fds ? 3 : 0, err);
	if (status == 0)
		status = hear(b, ret, ret_fd, err);
	/* Who does not answer an order would answer the next one with it: the init ends. */
	if (status < 0 && ret->error == ERR_NONE)
		shutdown(b->commands, SHUT_RDWR);
	pthread_mutex_unlock(&b->talk);
	return status;
}

/* Descriptors cannot be "none" in a message. */
static int open_null(const struct box_command *c, struct err *err)
{
	bool wanted = false;
	int fd;

	for (int i = 0; i < 3; i++)
		wanted |= !c->tty && c->stdio[i] < 0;
	if (!wanted)
		return -1;
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	return fd < 0 ? (err_sys(err, "open /dev/null"), -2) : fd;
}

static int spawn(struct box *b, const struct box_command *c, struct asked *q, struct box_child *ret,
		 struct err *err)
{
	auto_fd int null = open_null(c, err);
	int fds[3], tty = -1;
	struct box_answer a = {0};

	if (null == -2)
		return -1;
	for (int i = 0; i < 3; i++)
		fds[i] = c->stdio[i] < 0 ? null : c->stdio[i];
	q->fds = c->tty ? NULL : fds;
	if (command(b, q, &a, &tty, err) < 0) {
		if (tty >= 0)
			close(tty);
		return -1;
	}
	*ret = (struct box_child){.id = q->order.id, .pid = a.pid, .tty = tty};
	return 0;
}

int box_spawn(struct box *b, const struct box_command *c, struct box_child *ret, struct err *err)
{
	struct asked q = {.order.id = __atomic_add_fetch(&b->last_id, 1, __ATOMIC_RELAXED)};
	struct buf words;
	int status;

	buf_init(&words, BOX_WORDS_MAX);
	status = write_order(c, &q.order, &words, err);
	q.words = buf_span(&words);
	if (status == 0)
		status = spawn(b, c, &q, ret, err);
	buf_fini(&words);
	return status;
}

int box_signal(struct box *b, uint32_t id, int signo, struct err *err)
{
	const struct asked q = {
		.order = {.kind = BOX_ORDER_SIGNAL, .id = id, .signo = signo},
		.words = nothing,
	};
	struct box_answer a = {0};
	int fd = -1;

	return command(b, &q, &a, &fd, err);
}

int box_fd(const struct box *b)
{
	return b->events;
}

int box_next_exit(struct box *b, struct box_exit *ret)
{
	struct box_event e;
	ssize_t n;

	do
		n = recv(b->events, &e, sizeof(e), MSG_DONTWAIT);
	while ((n < 0 && errno == EINTR) || (n == sizeof(e) && e.kind == BOX_EVENT_STARTED));
	if (n < 0 && errno == EAGAIN)
		return 0;
	*ret = (struct box_exit){.code = -1, .oom = box_groups_oom(&b->groups)};
	if (n == sizeof(e) && e.kind == BOX_EVENT_ENDED) {
		ret->id = e.id;
		if (WIFEXITED(e.status))
			ret->code = WEXITSTATUS(e.status);
		else
			ret->signal = WTERMSIG(e.status);
		return 1;
	}
	if (__atomic_exchange_n(&b->gone, true, __ATOMIC_RELAXED))
		return 0; /* once is enough */
	return 1;
}

void box_use(const struct box *b, struct box_use *ret)
{
	box_groups_use(&b->groups, ret);
}

/* Both launcher and init hold the other end until nothing is left. */
static int wait_gone(const struct box *b, struct err *err)
{
	uint64_t until = clock_boot_ms() + BOX_ANSWER_MS;
	struct box_event e;

	if (b->events < 0)
		return 0;
	shutdown(b->events, SHUT_WR);
	for (;;) {
		uint64_t now = clock_boot_ms();
		struct pollfd p = {b->events, POLLIN, 0};
		ssize_t n = recv(b->events, &e, sizeof(e), MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return 0;
		if (now >= until)
			return err_set(err, ERR_SYSTEM, "the sandbox does not end");
		if (n < 0)
			poll(&p, 1, (int)(until - now));
	}
}

int box_end(struct box *b, struct err *err)
{
	int status;

	if (!b)
		return 0;
	status = wait_gone(b, err);
	if (b->root >= 0)
		close(take_fd(b->root));
	if (box_groups_end(&b->groups, err) < 0)
		status = -1;
	box_free(b);
	return status;
}
