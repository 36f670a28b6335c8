#include "proxy/sandbox/sandbox_priv.h"

#include "gate/base/clock.h"
#include "gate/base/utf8.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define INPUT_WAIT_MS 60000 /* a program may leave its input unread for so long */
#define EXECS_SHOWN   (RUNS_KEPT_MAX + 256)
#define WORDS_MAX     (ARGV_MAX + 16)

/* --- octets as JSON --- */

static bool is_utf8(struct span s)
{
	for (size_t i = 0; i < s.len;) {
		size_t n = utf8_len((const unsigned char *)s.at + i, s.len - i);

		if (!n)
			return false;
		i += n;
	}
	return true;
}

static char *base64(struct arena *a, struct span in)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *out = arena_take(a, (in.len + 2) / 3 * 4 + 1);
	size_t n = 0;

	for (size_t i = 0; out && i < in.len; i += 3) {
		size_t left = in.len - i;
		uint32_t bits = (uint32_t)(unsigned char)in.at[i] << 16;

		if (left > 1)
			bits |= (uint32_t)(unsigned char)in.at[i + 1] << 8;
		if (left > 2)
			bits |= (unsigned char)in.at[i + 2];
		out[n++] = digits[bits >> 18];
		out[n++] = digits[bits >> 12 & 63];
		out[n++] = left > 1 ? digits[bits >> 6 & 63] : '=';
		out[n++] = left > 2 ? digits[bits & 63] : '=';
	}
	return out;
}

/* What is no UTF-8 cannot stand in JSON as it is. */
static void put_octets(struct arena *a, struct jv *to, const char *key, const char *how,
		       struct span data)
{
	bool plain = is_utf8(data);

	jv_set(a, to, key, plain ? jv_span(data) : jv_string(base64(a, data)));
	jv_set(a, to, how, jv_string(plain ? "utf-8" : "base64"));
}

/* --- beginning one --- */

struct words {
	const char *list[WORDS_MAX];
	size_t count;
};

static void add(struct words *w, const char *word)
{
	w->list[w->count++] = word;
}

static const char *number(struct arena *a, const char *fmt, int64_t x, int64_t y)
{
	char text[64];
	int n = strchr(fmt, 'x')
			? snprintf(text, sizeof(text), "%lldx%lld", (long long)x, (long long)y)
			: snprintf(text, sizeof(text), "%lld", (long long)x);

	return arena_strndup(a, text, (size_t)n);
}

static struct words *words_of(struct call *c, const struct wanted_exec *w, int64_t output)
{
	struct words *out = arena_take(c->a, sizeof(*out));

	if (!out)
		return NULL;
	add(out, "run");
	add(out, "--cwd");
	add(out, *w->cwd ? w->cwd : WORK);
	if (w->timeout_ms) {
		add(out, "--timeout");
		add(out, number(c->a, "", w->timeout_ms, 0));
	}
	if (w->rows) {
		add(out, "--tty");
		add(out, number(c->a, "x", w->rows, w->cols));
	}
	add(out, "--output-max");
	add(out, number(c->a, "", output, 0));
	add(out, "--");
	for (const char **word = w->argv; *word; word++)
		add(out, *word);
	add(out, NULL);
	return arena_spent(c->a) ? NULL : out;
}

static struct jv box_env(struct call *c)
{
	enum jv_fault fault;
	struct err err = {0};
	struct jv env;

	/* jv_write() has written it. */
	return jv_parse(c->a, span_of(c->box->env), &env, &fault, &err) == 0 ? env : jv_array();
}

/* Of the same name the later one holds; some programs would see the first. */
static struct jv without(struct arena *a, const struct jv *env, const struct jv *later)
{
	struct jv out = jv_array();

	for (size_t i = 0; i < env->count; i++) {
		struct span value = env->items[i].str, name, other, its;
		bool twice = false;

		span_cut(&value, '=', &name);
		for (size_t k = 0; k < later->count && !twice; k++) {
			other = later->items[k].str;
			span_cut(&other, '=', &its);
			twice = span_eq(name, its);
		}
		if (!twice)
			jv_push(a, &out, env->items[i]);
	}
	return out;
}

int exec_begin(struct call *c, const struct command *cmd, int64_t output, bool flows,
	       const char *program)
{
	struct run *r = run_create(c->s, c->box, output);

	if (!r)
		return trouble_set(&c->trouble, c->a, CODE_no_memory, "no memory");
	r->flows = flows;
	snprintf(r->program, sizeof(r->program), "%s", program);
	if (table_add_run(c->s, c->box, r, c->a, &c->trouble) < 0) {
		run_unref(r);
		return -1;
	}
	if (driver_exec(c->s, c->box, cmd, c->a, r, &c->trouble) < 0) {
		table_drop_run(c->s, c->box, r);
		run_unref(r);
		return -1;
	}
	c->run = r;
	c->pumps = true;
	return 0;
}

static int begin(struct call *c, const struct wanted_exec *w)
{
	int64_t most = c->box->limits.output, output = w->output ? w->output : most;
	struct jv own = box_env(c), env = without(c->a, &own, &w->env);
	struct words *words = words_of(c, w, output);
	struct command cmd = {.who = &c->who, .env = &env, .more_env = &w->env};

	if (output > most)
		return trouble_set(&c->trouble, c->a, CODE_above_profile,
				   "output: the sandbox allows %lld bytes", (long long)most);
	if (!words)
		return trouble_set(&c->trouble, c->a, CODE_no_memory, "no memory");
	cmd.words = words->list;
	if (exec_begin(c, &cmd, output, false, w->argv[0]) < 0)
		return -1;
	c->run->tty = w->rows > 0;
	return 0;
}

/* As much of the input as is taken at once; pumps: nobody else does. */
static void feed(struct call *c, struct span input, bool more_comes, bool pumps)
{
	while (input.len) {
		size_t n = input.len < FRAME_DATA_MAX ? input.len : FRAME_DATA_MAX;

		if (run_send(c->run, FRAME_STDIN, (struct span){input.at, n},
			     pumps ? 0 : INPUT_WAIT_MS))
			input = span_skip(input, n);
		else if (!pumps || !run_step(c->run, c->r->fd, 1000))
			return;
	}
	if (!more_comes)
		run_send(c->run, FRAME_STDIN_END, (struct span){"", 0}, 0);
}

/* --- answers --- */

static void add_end(struct arena *a, struct jv *out, const struct run *r)
{
	bool ended = r->state == RUN_ENDED;

	jv_set(a, out, "exit_code", ended ? jv_int(r->code) : jv_null());
	jv_set(a, out, "signal", ended && r->signal ? jv_int(r->signal) : jv_null());
	jv_set(a, out, "timed_out", jv_bool(r->timed_out));
	jv_set(a, out, "truncated", jv_bool(r->truncated));
}

struct jv exec_tree(struct arena *a, struct run *r)
{
	static const char *const states[] = {"running", "ended", "lost"};
	struct jv out = jv_object();

	pthread_mutex_lock(&r->lock);
	jv_set(a, &out, "id", jv_string(r->id));
	jv_set(a, &out, "state", jv_string(states[r->state]));
	jv_set(a, &out, "program", jv_string(r->program));
	jv_set(a, &out, "started", api_time(a, r->started));
	if (r->state != RUN_RUNNING) {
		add_end(a, &out, r);
		jv_set(a, &out, "duration_ms", jv_int((int64_t)(r->ended_ms - r->began_ms)));
	}
	if (r->state != RUN_RUNNING && *r->message)
		jv_set(a, &out, "message",
		       jv_string(arena_strndup(a, r->message, strlen(r->message))));
	pthread_mutex_unlock(&r->lock);
	return out;
}

/* All of one stream. */
struct span exec_joined(struct call *c, enum frame_type wanted)
{
	struct span all = buf_span(&c->run->out);
	char *out = arena_take(c->a, all.len + 1);
	size_t n = 0;

	for (size_t at = 0; out && at < all.len;) {
		uint32_t len;

		memcpy(&len, all.at + at + 1, sizeof(len));
		if ((enum frame_type)(unsigned char)all.at[at] == wanted) {
			memcpy(out + n, all.at + at + CHUNK_HEAD, len);
			n += len;
		}
		at += CHUNK_HEAD + len;
	}
	return (struct span){out ? out : "", n};
}

/* It did not begin, or nobody knows how it ended. */
static int check_end(struct call *c)
{
	const struct run *r = c->run;

	if (r->state == RUN_LOST)
		return trouble_set(&c->trouble, c->a, CODE_exec_lost, "%s%s%s",
				   code_text(CODE_exec_lost), *r->message ? ": " : "", r->message);
	if (r->failed)
		return trouble_set(&c->trouble, c->a, CODE_exec_failed, "%s: %s (%s)", r->program,
				   r->message, r->error);
	return 0;
}

static void answer_whole(struct call *c)
{
	struct run *r = c->run;
	struct jv out = jv_object();

	run_to_end(r, c->r->fd);
	c->pumps = false;
	if (check_end(c) < 0) {
		api_fail(c);
		return;
	}
	jv_set(c->a, &out, "id", jv_string(r->id));
	add_end(c->a, &out, r);
	put_octets(c->a, &out, "stdout", "stdout_encoding", exec_joined(c, FRAME_STDOUT));
	put_octets(c->a, &out, "stderr", "stderr_encoding", exec_joined(c, FRAME_STDERR));
	jv_set(c->a, &out, "duration_ms", jv_int((int64_t)(r->ended_ms - r->began_ms)));
	api_answer(c, 200, &out);
	pthread_mutex_lock(&c->s->lock);
	run_forget_output(r); /* it was told */
	pthread_mutex_unlock(&c->s->lock);
}

/* --- a line each --- */

enum { PHASE_BEGIN = 0, PHASE_OUTPUT, PHASE_OVER };

static void put_started(struct call *c)
{
	struct jv out = jv_object();

	jv_set(c->a, &out, "type", jv_string("started"));
	jv_set(c->a, &out, "id", jv_string(c->run->id));
	api_row(c, &out);
}

static void put_output(struct call *c, enum frame_type type, struct span data)
{
	struct jv out = jv_object();

	jv_set(c->scratch, &out, "type", jv_string(type == FRAME_STDERR ? "stderr" : "stdout"));
	put_octets(c->scratch, &out, "data", "encoding", data);
	api_row(c, &out);
}

static void put_end(struct call *c)
{
	struct run *r = c->run;
	struct jv out = jv_object();
	bool lost = r->state == RUN_LOST;

	if (lost || r->failed) {
		jv_set(c->a, &out, "type", jv_string("error"));
		jv_set(c->a, &out, "code",
		       jv_string(code_name(lost ? CODE_exec_lost : CODE_exec_failed)));
		jv_set(c->a, &out, "message",
		       jv_string(*r->message ? r->message : code_text(CODE_exec_lost)));
	} else {
		jv_set(c->a, &out, "type", jv_string("exit"));
		add_end(c->a, &out, r);
	}
	api_row(c, &out);
}

static bool is_over(struct run *r)
{
	bool over;

	pthread_mutex_lock(&r->lock);
	over = r->state != RUN_RUNNING;
	pthread_mutex_unlock(&r->lock);
	return over;
}

static bool has_gone(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0;
}

/* Something has come, or it is over; false: its reader has gone. */
static bool wait_for_more(struct call *c)
{
	struct run *r = c->run;
	struct timespec ts;

	if (c->pumps) {
		run_step(r, c->r->fd, 60000);
		return true;
	}
	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec++;
	pthread_mutex_lock(&r->lock);
	if (r->state == RUN_RUNNING && c->at - r->out_from >= buf_len(&r->out))
		pthread_cond_timedwait(&r->changed, &r->lock, &ts);
	pthread_mutex_unlock(&r->lock);
	return !has_gone(c->r->fd);
}

/* Puts at least one line into the row, unless all is said; -1: nobody is there any more. */
static int next_row(struct call *c)
{
	enum frame_type type;
	struct span data;

	if (c->phase == PHASE_BEGIN) {
		put_started(c);
		c->phase = PHASE_OUTPUT;
	}
	while (c->phase == PHASE_OUTPUT && !buf_len(&c->row)) {
		bool over = is_over(c->run);

		arena_reset(c->scratch, 1u << 20);
		if (run_chunk(c->run, &c->at, &type, &data, c->scratch)) {
			if (data.len)
				put_output(c, type, data);
		} else if (over) {
			put_end(c);
			c->phase = PHASE_OVER;
		} else if (!wait_for_more(c)) {
			return -1;
		}
	}
	return 0;
}

static ssize_t more_rows(struct httpd_request *r, char *at, size_t room)
{
	struct call *c = r->state;
	struct span row;
	size_t n;

	if (!buf_len(&c->row) && next_row(c) < 0)
		return -1;
	row = buf_span(&c->row);
	n = row.len < room ? row.len : room;
	memcpy(at, row.at, n);
	buf_consume(&c->row, n);
	return (ssize_t)n;
}

static void answer_stream(struct call *c, int phase)
{
	c->phase = phase;
	c->scratch = arena_create(1u << 20);
	if (!c->scratch) {
		trouble_set(&c->trouble, c->a, CODE_no_memory, "no memory");
		api_fail(c);
		return;
	}
	httpd_reply_stream(c->r, 200, "application/x-ndjson", -1, more_rows);
}

/* From here on it runs by itself. */
static void answer_detached(struct call *c, const struct wanted_exec *w)
{
	struct jv out = jv_object();

	pthread_mutex_lock(&c->s->lock);
	c->run->refs++;
	c->box->refs++;
	pthread_mutex_unlock(&c->s->lock);
	if (!run_detach(c->run)) {
		run_unref(c->run);
		table_unref(c->s, c->box);
		trouble_set(&c->trouble, c->a, CODE_no_memory, "no thread could be started");
		api_fail(c);
		return;
	}
	c->pumps = false;
	feed(c, w->input, w->input_streams, false);
	jv_set(c->a, &out, "id", jv_string(c->run->id));
	api_answer(c, 202, &out);
}

/* Its sandbox ends with the answer. */
static int check_per_call(struct call *c, const struct wanted_exec *w)
{
	if (!c->box->per_call || (!w->detach && !w->input_streams))
		return 0;
	return trouble_set(&c->trouble, c->a, CODE_conflict,
			   "each command has a sandbox of its own here, which ends with it: leave "
			   "detach and stdin_stream out");
}

void exec_handle(struct call *c)
{
	struct wanted_exec w;

	if (request_exec(c->r, &w, &c->trouble) < 0 || check_per_call(c, &w) < 0 ||
	    (c->box->per_call && create_for_call(c) < 0) || begin(c, &w) < 0) {
		api_fail(c);
		return;
	}
	if (w.detach) {
		answer_detached(c, &w);
		return;
	}
	feed(c, w.input, w.input_streams, true);
	if (api_wants(c, "application/x-ndjson"))
		answer_stream(c, PHASE_BEGIN);
	else
		answer_whole(c);
}

/* --- those that there are --- */

int exec_find(struct call *c)
{
	c->run = table_find_run(c->s, c->box, c->exec_id);
	if (c->run)
		return 0;
	return trouble_set(&c->trouble, c->a, CODE_exec_not_found, "there is no command '%.40s'",
			   c->exec_id);
}

void exec_list(struct call *c)
{
	struct jv tree = jv_object(), *out = jv_set(c->a, &tree, "execs", jv_array());
	struct run *list[EXECS_SHOWN];
	size_t n = 0;

	pthread_mutex_lock(&c->s->lock);
	for (struct run *r = c->box->runs; r && n < EXECS_SHOWN; r = r->next) {
		r->refs++;
		list[n++] = r;
	}
	pthread_mutex_unlock(&c->s->lock);
	for (size_t i = 0; i < n; i++) {
		jv_push(c->a, out, exec_tree(c->a, list[i]));
	}
	api_answer(c, 200, &tree);
	for (size_t i = 0; i < n; i++)
		run_unref(list[i]);
}

void exec_show(struct call *c)
{
	struct jv tree;

	if (exec_find(c) < 0) {
		api_fail(c);
		return;
	}
	tree = exec_tree(c->a, c->run);
	api_answer(c, 200, &tree);
}

void exec_output(struct call *c)
{
	if (exec_find(c) < 0) {
		api_fail(c);
		return;
	}
	if (c->run->flows || c->run->forgotten) {
		trouble_set(
			&c->trouble, c->a, CODE_conflict,
			"its output is not kept: it was told already, or others took its place");
		api_fail(c);
		return;
	}
	answer_stream(c, PHASE_OUTPUT);
}

void exec_stdin_begin(struct call *c)
{
	if (exec_find(c) < 0) {
		api_fail(c);
		return;
	}
	c->r->pieces = true;
	c->r->body_max = UPLOAD_MAX;
}

bool exec_piece(struct call *c, struct span piece)
{
	while (piece.len && c->run) {
		size_t n = piece.len < FRAME_DATA_MAX ? piece.len : FRAME_DATA_MAX;

		if (run_send(c->run, FRAME_STDIN, (struct span){piece.at, n},
			     c->pumps ? 0 : INPUT_WAIT_MS)) {
			piece = span_skip(piece, n);
		} else if (!c->pumps) {
			trouble_set(&c->trouble, c->a, CODE_conflict,
				    "the command takes no input: it is over, or does not read");
			api_fail(c);
			return false;
		} else if (!run_step(c->run, c->r->fd, 60000)) {
			return true; /* what is wrong is said at the end */
		}
	}
	return true;
}

void exec_stdin(struct call *c)
{
	static const char *const known[] = {"eof", NULL};
	const char *eof = httpd_query(c->r, "eof");

	if (request_query(c->r, known, &c->trouble) < 0) {
		api_fail(c);
		return;
	}
	if (eof && strcmp(eof, "true") == 0)
		run_send(c->run, FRAME_STDIN_END, (struct span){"", 0}, INPUT_WAIT_MS);
	httpd_reply(c->r, 204, NULL, (struct span){"", 0});
}

static void send_or_fail(struct call *c, enum frame_type type, struct span data)
{
	if (run_send(c->run, type, data, 1000)) {
		httpd_reply(c->r, 204, NULL, (struct span){"", 0});
		return;
	}
	trouble_set(&c->trouble, c->a, CODE_conflict, "the command is over");
	api_fail(c);
}

void exec_resize(struct call *c)
{
	unsigned char data[4];
	int rows, cols;

	if (exec_find(c) < 0 || request_size(c->r, &rows, &cols, &c->trouble) < 0) {
		api_fail(c);
		return;
	}
	if (!c->run->tty) {
		trouble_set(&c->trouble, c->a, CODE_conflict, "the command has no terminal");
		api_fail(c);
		return;
	}
	data[0] = (unsigned char)(rows >> 8);
	data[1] = (unsigned char)rows;
	data[2] = (unsigned char)(cols >> 8);
	data[3] = (unsigned char)cols;
	send_or_fail(c, FRAME_RESIZE, (struct span){(const char *)data, sizeof(data)});
}

void exec_kill(struct call *c)
{
	unsigned char data;
	int number;

	if (exec_find(c) < 0 || request_signal(c->r, &number, &c->trouble) < 0) {
		api_fail(c);
		return;
	}
	data = (unsigned char)number;
	if (number != SIGKILL) {
		send_or_fail(c, FRAME_SIGNAL, (struct span){(const char *)&data, 1});
		return;
	}
	/* A frame would wait behind input that nobody reads. */
	pthread_mutex_lock(&c->run->lock);
	c->run->killed = c->run->state == RUN_RUNNING;
	pthread_mutex_unlock(&c->run->lock);
	run_cut(c->run);
	httpd_reply(c->r, 204, NULL, (struct span){"", 0});
}
