/*
 * cmd_sandbox_exec.c - a program in a sandbox as if it ran here: its input, output, signals,
 * terminal and exit status.
 *
 * The output is one answer, a line of JSON for each piece.  The input is sent by a process of its
 * own, so that a program that writes before it reads keeps nobody waiting.
 */
#include "gate/sandbox_client.h"

#include "gate/base/io.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define ARENA_MAX      ((size_t)8 << 20)
#define LINE_MAX_LEN   ((size_t)1 << 20)
#define EXIT_COULD_NOT 125

struct session {
	const struct args *args;
	struct api api;
	struct arena *a; /* for as long as it runs */
	struct arena *of_line;
	struct buf line;
	char id[64]; /* of the command; "": it has not begun */
	pid_t feeder;
	int status; /* what this process ends with */
	bool over;
	unsigned interrupted;
};

static volatile sig_atomic_t caught[NSIG];
static struct termios cooked;
static bool raw;

static void on_signal(int number)
{
	caught[number] = 1;
}

static void restore_terminal(void)
{
	if (raw)
		(void)tcsetattr(0, TCSANOW, &cooked);
	raw = false;
}

static void make_raw(void)
{
	struct termios t;

	if (tcgetattr(0, &cooked) < 0)
		return;
	t = cooked;
	cfmakeraw(&t);
	raw = tcsetattr(0, TCSANOW, &t) == 0;
	(void)atexit(restore_terminal);
}

static struct jv size_here(struct arena *a)
{
	struct jv size = jv_object();
	struct winsize w = {.ws_row = 24, .ws_col = 80};

	if (ioctl(0, TIOCGWINSZ, &w) < 0 || !w.ws_row || !w.ws_col)
		w = (struct winsize){.ws_row = 24, .ws_col = 80};
	jv_set(a, &size, "rows", jv_int(w.ws_row));
	jv_set(a, &size, "cols", jv_int(w.ws_col));
	return size;
}

/* --- what is asked for --- */

static int set_env(struct session *s, struct jv *body, struct err *err)
{
	const struct args_list *list = &s->args->env;
	struct jv env = jv_object();

	for (size_t i = 0; i < list->count; i++) {
		struct span value = span_of(list->items[i]), name;

		if (!strchr(list->items[i], '=') || !span_cut(&value, '=', &name) || !name.len)
			return err_set(err, ERR_INPUT, "--env takes NAME=VALUE");
		jv_set_span(s->a, &env, name, jv_span(value));
	}
	if (list->count)
		jv_set(s->a, body, "env", env);
	return 0;
}

static int make_body(struct session *s, struct jv *body, struct err *err)
{
	const struct args *args = s->args;
	struct jv argv = jv_array();

	*body = jv_object();
	for (size_t i = 1; i < args->rest_count; i++)
		jv_push(s->a, &argv, jv_string(args->rest[i]));
	jv_set(s->a, body, "argv", argv);
	if (args->cwd)
		jv_set(s->a, body, "cwd", jv_string(args->cwd));
	if (args->timeout)
		jv_set(s->a, body, "timeout", jv_string(args->timeout));
	if (args->output)
		jv_set(s->a, body, "output", jv_string(args->output));
	if (args->terminal)
		jv_set(s->a, body, "tty", size_here(s->a));
	if (args->detach)
		jv_set(s->a, body, "detach", jv_bool(true));
	else if (!args->no_input)
		jv_set(s->a, body, "stdin_stream", jv_bool(true));
	return set_env(s, body, err);
}

/* A small request about the command: its status, or -1. */
static int tell(struct session *s, const char *verb, const struct jv *body)
{
	char behind[128];
	struct api_question q = {.method = "POST", .type = "application/json"};
	struct api_answer r;
	struct err err = {0};
	struct buf text;
	int rc;

	snprintf(behind, sizeof(behind), "/exec/%s/%s", s->id, verb);
	if (api_target(s->a, s->args->rest[0], behind, NULL, &q.target, &err) < 0)
		return -1;
	buf_init(&text, 4096);
	jv_write(&text, body);
	q.body = buf_span(&text);
	rc = api_send(&s->api, &q, &r, &err);
	buf_fini(&text);
	if (rc < 0)
		return -1;
	rc = api_head(&r, &err) < 0 ? -1 : r.status;
	api_close(&r);
	return rc;
}

static void send_signal(struct session *s, const char *name)
{
	struct jv body = jv_object();

	jv_set(s->a, &body, "signal", jv_string(name));
	(void)tell(s, "kill", &body);
}

/* --- the input, in a process of its own --- */

static int send_input(const struct session *s, const char *target, const void *bytes, size_t len)
{
	struct api_question q = {.method = "POST",
				 .target = target,
				 .type = "application/octet-stream",
				 .body = {bytes, len}};
	struct api_answer r;
	struct err err = {0};
	int status = 0;

	if (api_send(&s->api, &q, &r, &err) < 0)
		return -1;
	if (api_head(&r, &err) == 0)
		status = r.status;
	api_close(&r);
	return status == 204 || status == 200 ? 0 : -1;
}

static void feed(struct session *s)
{
	static char piece[65536];
	char behind[128], ends[128];
	const char *target, *last;
	struct err err = {0};
	ssize_t n = 0;

	snprintf(behind, sizeof(behind), "/exec/%s/stdin", s->id);
	snprintf(ends, sizeof(ends), "/exec/%s/stdin?eof=true", s->id);
	if (api_target(s->a, s->args->rest[0], behind, NULL, &target, &err) < 0 ||
	    api_target(s->a, s->args->rest[0], ends, NULL, &last, &err) < 0)
		return;
	while ((n = read(0, piece, sizeof(piece))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || send_input(s, target, piece, (size_t)n) < 0)
			break;
	}
	if (n <= 0)
		(void)send_input(s, last, "", 0);
}

static void start_feeder(struct session *s)
{
	pid_t parent = getpid();

	s->feeder = fork();
	if (s->feeder != 0)
		return;
	/* What a terminal sends to both is the other one's. */
	for (int number = 1; number < NSIG; number++)
		if (number != SIGCHLD && number != SIGTERM)
			(void)signal(number, SIG_IGN);
	(void)signal(SIGTERM, SIG_DFL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		feed(s);
	_exit(0);
}

static void stop_feeder(struct session *s)
{
	if (s->feeder <= 0)
		return;
	(void)kill(s->feeder, SIGKILL);
	(void)waitpid(s->feeder, NULL, 0);
	s->feeder = 0;
}

/* --- the output --- */

static int digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Octets of base64, in place; what is none ends it. */
static size_t decode(struct span text, char *out)
{
	unsigned bits = 0, have = 0;
	size_t n = 0;

	for (size_t i = 0; i < text.len && digit(text.at[i]) >= 0; i++) {
		bits = bits << 6 | (unsigned)digit(text.at[i]);
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[n++] = (char)(bits >> have);
		}
	}
	return n;
}

static int put_output(struct session *s, const struct jv *row, int fd, struct err *err)
{
	const struct jv *data = jv_get(row, "data");
	struct span octets = data && data->kind == JV_STRING ? data->str : (struct span){"", 0};

	if (strcmp(jv_str(row, "encoding", "utf-8"), "base64") == 0) {
		char *room = arena_take(s->of_line, octets.len + 1);

		if (!room)
			return err_set(err, ERR_LIMIT, "no memory for the output");
		octets = (struct span){room, decode(octets, room)};
	}
	return io_write_all(fd, octets.at, octets.len, err);
}

static void begin(struct session *s, const struct jv *row)
{
	const char *id = jv_str(row, "id", "");

	if (*s->id || strlen(id) >= sizeof(s->id) || strpbrk(id, "/?#% "))
		return;
	memcpy(s->id, id, strlen(id) + 1);
	if (!s->args->no_input)
		start_feeder(s);
}

static int take_row(struct session *s, struct span text, struct err *err)
{
	enum jv_fault fault;
	const char *type;
	struct jv row;

	arena_reset(s->of_line, LINE_MAX_LEN);
	if (!text.len)
		return 0;
	if (jv_parse(s->of_line, text, &row, &fault, err) < 0)
		return err_wrap(err, "what the API says");
	type = jv_str(&row, "type", "");
	if (strcmp(type, "stdout") == 0)
		return put_output(s, &row, 1, err);
	if (strcmp(type, "stderr") == 0)
		return put_output(s, &row, 2, err);
	if (strcmp(type, "started") == 0)
		begin(s, &row);
	else if (strcmp(type, "exit") == 0) {
		s->status = (int)jv_num(&row, "exit_code", EXIT_COULD_NOT);
		s->over = true;
		if (jv_true(&row, "timed_out"))
			fprintf(stderr, "sallyport: its time is over: it was killed\n");
		if (jv_true(&row, "truncated"))
			fprintf(stderr, "sallyport: there was more output than it may have\n");
	} else if (strcmp(type, "error") == 0)
		return err_set(err, ERR_UPSTREAM, "%.300s", jv_str(&row, "message", "?"));
	return 0;
}

static int take_lines(struct session *s, struct err *err)
{
	for (;;) {
		struct span rest = buf_span(&s->line), line;
		struct span whole = rest;
		int rc;

		if (!memchr(rest.at, '\n', rest.len))
			return 0;
		span_cut(&rest, '\n', &line);
		rc = take_row(s, line, err);
		buf_consume(&s->line, whole.len - rest.len);
		if (rc < 0)
			return -1;
	}
}

/* --- signals of here --- */

static void pass_signals(struct session *s)
{
	struct jv size;

	if (caught[SIGWINCH]) {
		caught[SIGWINCH] = 0;
		size = size_here(s->a);
		(void)tell(s, "resize", &size);
	}
	if (caught[SIGINT]) {
		caught[SIGINT] = 0;
		send_signal(s, s->interrupted++ ? "KILL" : "INT");
	}
	if (caught[SIGTERM] || caught[SIGHUP]) {
		send_signal(s, caught[SIGTERM] ? "TERM" : "HUP");
		caught[SIGTERM] = caught[SIGHUP] = 0;
	}
}

static void catch_signals(bool terminal)
{
	static const int wanted[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
	struct sigaction act = {.sa_handler = on_signal};
	sigset_t block;

	sigemptyset(&block);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		if (wanted[i] == SIGWINCH && !terminal)
			continue;
		sigaddset(&block, wanted[i]);
		(void)sigaction(wanted[i], &act, NULL);
	}
	/* They are let in only while it waits. */
	(void)sigprocmask(SIG_BLOCK, &block, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
}

/* Before the command has begun a signal ends this process: whoever hung up is noticed. */
static void end_unbegun(void)
{
	if (caught[SIGINT] || caught[SIGTERM] || caught[SIGHUP])
		exit(EXIT_COULD_NOT);
}

/* Signals come in here alone, and end no read in the middle. */
static void wait_for_output(struct session *s, struct api_answer *r)
{
	struct pollfd p = {.fd = r->fd, .events = POLLIN};
	bool more = true;
	sigset_t none;

	sigemptyset(&none);
	while (more && !api_ready(r)) {
		if (ppoll(&p, 1, NULL, &none) > 0) {
			more = api_fetch(r);
			continue;
		}
		if (!*s->id)
			end_unbegun();
		pass_signals(s);
	}
}

static int stream(struct session *s, struct api_answer *r, struct err *err)
{
	static char piece[65536];
	ssize_t n;

	do {
		wait_for_output(s, r);
		n = api_read(r, piece, sizeof(piece), err);
		if (n > 0)
			buf_put(&s->line, piece, (size_t)n);
		if (n < 0 || take_lines(s, err) < 0)
			return -1;
		if (buf_spent(&s->line))
			return err_set(err, ERR_LIMIT, "a line of the answer is too long");
	} while (n > 0);
	return s->over ? 0 : err_set(err, ERR_UPSTREAM, "the answer ended before the command did");
}

static int print_detached(struct api_answer *r, struct arena *a, struct err *err)
{
	enum jv_fault fault;
	struct buf body;
	struct jv tree;
	int rc;

	if (api_collect(r, &body, err) < 0)
		return -1;
	rc = jv_parse(a, buf_span(&body), &tree, &fault, err);
	if (rc == 0) {
		api_print(stdout, "", jv_str(&tree, "id", "?"));
		putchar('\n');
	}
	buf_fini(&body);
	return rc;
}

static int refused(struct session *s, struct api_answer *r, struct err *err)
{
	struct buf body;

	if (api_collect(r, &body, err) < 0)
		return -1;
	api_tell(buf_span(&body), r->status);
	buf_fini(&body);
	s->status = EXIT_COULD_NOT;
	return 0;
}

static int run(struct session *s, struct err *err)
{
	struct api_question q = {
		.method = "POST", .accept = "application/x-ndjson", .type = "application/json"};
	struct api_answer r;
	struct buf text;
	struct jv body;
	int rc;

	if (make_body(s, &body, err) < 0 ||
	    api_target(s->a, s->args->rest[0], "/exec", NULL, &q.target, err) < 0)
		return -1;
	buf_init(&text, LINE_MAX_LEN);
	jv_write(&text, &body);
	q.body = buf_span(&text);
	rc = api_send(&s->api, &q, &r, err);
	buf_fini(&text);
	if (rc < 0)
		return -1;
	rc = api_head(&r, err);
	if (rc == 0 && r.status >= 300)
		rc = refused(s, &r, err);
	else if (rc == 0 && s->args->detach)
		rc = print_detached(&r, s->a, err);
	else if (rc == 0) {
		if (s->args->terminal && isatty(0))
			make_raw();
		catch_signals(s->args->terminal);
		rc = stream(s, &r, err);
	}
	stop_feeder(s);
	restore_terminal();
	api_close(&r);
	return rc;
}

int run_sandbox_exec(const struct args *args)
{
	struct session s = {
		.args = args, .a = arena_create(ARENA_MAX), .of_line = arena_create(ARENA_MAX)};
	struct err err = {0};
	int rc = -1;

	buf_init(&s.line, LINE_MAX_LEN);
	if (args->rest_count < 2)
		err_set(&err, ERR_INPUT, "name a sandbox and a program: ID -- PROGRAM [ARG...]");
	else if (s.a && s.of_line && api_find(args, &s.api, &err) == 0)
		rc = run(&s, &err);
	if (rc < 0) {
		(void)command_failed(&err);
		s.status = EXIT_COULD_NOT;
	}
	buf_fini(&s.line);
	arena_destroy(s.of_line);
	arena_destroy(s.a);
	return s.status;
}
