#include "gate/client_stub.h"

#include "gate/base/clock.h"
#include "gate/base/io.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECTIONS_MAX 16
#define WORDS_MAX       256
#define TURN_MS         50
#define FOLDER_MAX      96 /* a socket's path has at most 107 bytes */

struct stub {
	char folder[FOLDER_MAX], path[FOLDER_MAX + 2];
	int listener;
	pid_t client;
	int status; /* of the client, once it has ended */
	struct {
		int fd;
		struct buf in;
	} conns[CONNECTIONS_MAX];
	size_t conn_count;
	struct buf *out;
	bool enough; /* something would have been changed */
};

/* --- reading requests --- */

/* The value of a header of the head, with the space before it, or an empty span. */
static struct span header(struct span head, const char *name)
{
	size_t len = strlen(name);
	struct span line;

	while (head.len) {
		span_cut(&head, '\n', &line);
		if (line.len > len && strncasecmp(line.at, name, len) == 0 && line.at[len] == ':')
			return span_skip(line, len + 1);
	}
	return (struct span){"", 0};
}

/* How long the whole request is, or 0 while it is not complete. */
static size_t request_length(struct span in)
{
	const char *end = memmem(in.at, in.len, "\r\n\r\n", 4);
	size_t head = end ? (size_t)(end - in.at) + 4 : 0, body;
	struct span value;

	if (!end)
		return 0;
	value = header((struct span){in.at, head}, "Transfer-Encoding");
	if (value.len) {
		end = memmem(in.at + head, in.len - head, "0\r\n\r\n", 5);
		return end ? (size_t)(end - in.at) + 5 : 0;
	}
	value = header((struct span){in.at, head}, "Content-Length");
	body = value.len ? (size_t)strtoul(value.at, NULL, 10) : 0;
	return in.len - head >= body ? head + body : 0;
}

static bool path_ends(struct span path, const char *end)
{
	size_t len = strlen(end);

	return path.len >= len && memcmp(path.at + path.len - len, end, len) == 0;
}

/* --- answering --- */

static void answer(int fd, const char *status, const char *body, bool with_body)
{
	char text[1024];
	int len = snprintf(text, sizeof(text),
			   "HTTP/1.1 %s\r\nContent-Type: application/json\r\nApi-Version: 1.41\r\n"
			   "OSType: linux\r\nContent-Length: %zu\r\n\r\n%s",
			   status, strlen(body), with_body ? body : "");
	struct err unheard = {0};

	io_write_all(fd, text, (size_t)len, &unheard); /* a client that has gone is none of ours */
}

static const char *acquaintance(struct span path)
{
	if (path_ends(path, "/_ping"))
		return "OK";
	if (path_ends(path, "/version"))
		return "{\"ApiVersion\":\"1.41\",\"MinAPIVersion\":\"1.12\",\"Version\":\"20.10."
		       "0\",\"Os\":\"linux\",\"Arch\":\"amd64\"}";
	if (path_ends(path, "/info"))
		return "{\"ServerVersion\":\"20.10.0\",\"OSType\":\"linux\"}";
	return NULL;
}

static void take_request(struct stub *s, int fd, struct span request)
{
	struct span rest = request, method, path;
	const char *known;

	span_cut(&rest, ' ', &method);
	span_cut(&rest, ' ', &path);
	rest = path;
	span_cut(&rest, '?', &path);
	known = acquaintance(path);
	if (known) {
		answer(fd, "200 OK", known, !span_is(method, "HEAD"));
		return;
	}
	buf_put(s->out, request.at, request.len);
	if (span_is(method, "GET") || span_is(method, "HEAD")) {
		bool list = path_ends(path, "s/json") || path_ends(path, "/networks");

		answer(fd, "200 OK", list ? "[]" : "{}", span_is(method, "GET"));
		return;
	}
	answer(fd, "403 Forbidden", "{\"message\":\"this was only to see what would be asked\"}",
	       true);
	s->enough = true;
}

static void drop(struct stub *s, size_t i)
{
	close(s->conns[i].fd);
	buf_fini(&s->conns[i].in);
	s->conns[i] = s->conns[--s->conn_count];
}

/* False when the connection is over. */
static bool serve(struct stub *s, size_t i)
{
	struct buf *in = &s->conns[i].in;
	char bytes[65536];
	ssize_t n = read(s->conns[i].fd, bytes, sizeof(bytes));
	size_t len;

	if (n <= 0)
		return false;
	buf_put(in, bytes, (size_t)n);
	while (!s->enough && (len = request_length(buf_span(in))) > 0) {
		take_request(s, s->conns[i].fd, (struct span){buf_span(in).at, len});
		buf_consume(in, len);
	}
	return !buf_spent(in);
}

static void accept_one(struct stub *s)
{
	int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (s->conn_count == CONNECTIONS_MAX) {
		close(fd);
		return;
	}
	s->conns[s->conn_count].fd = fd;
	buf_init(&s->conns[s->conn_count++].in, s->out->cap);
}

static void turn(struct stub *s)
{
	struct pollfd polled[CONNECTIONS_MAX + 1] = {{.fd = s->listener, .events = POLLIN}};
	size_t count = s->conn_count;

	for (size_t i = 0; i < count; i++)
		polled[i + 1] = (struct pollfd){.fd = s->conns[i].fd, .events = POLLIN};
	if (poll(polled, count + 1, TURN_MS) <= 0)
		return;
	for (size_t i = count; i-- > 0;)
		if (polled[i + 1].revents && !serve(s, i))
			drop(s, i);
	if (polled[0].revents)
		accept_one(s);
}

/* --- the client --- */

static void become_client(const struct stub *s, const char *const *words, size_t count)
{
	char *argv[WORDS_MAX + 1], host[128];
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert(count > 0 && count <= WORDS_MAX);
	for (size_t i = 0; i < count; i++)
		argv[i] = (char *)words[i];
	argv[count] = NULL;
	snprintf(host, sizeof(host), "unix://%s", s->path);
	if (setenv("DOCKER_HOST", host, 1) == 0 && unsetenv("DOCKER_CONTEXT") == 0 &&
	    unsetenv("DOCKER_TLS_VERIFY") == 0 && dup2(nowhere, 0) == 0 && dup2(nowhere, 1) == 1 &&
	    dup2(nowhere, 2) == 2)
		execvp(argv[0], argv);
	_exit(127);
}

static int start(struct stub *s, const char *const *words, size_t count, struct err *err)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const char *tmp = getenv("TMPDIR");

	if (!tmp || !*tmp || strlen(tmp) > FOLDER_MAX - sizeof("/sallyport-XXXXXX"))
		tmp = "/tmp";
	snprintf(s->folder, sizeof(s->folder), "%s/sallyport-XXXXXX", tmp);
	if (!mkdtemp(s->folder)) {
		s->folder[0] = 0;
		return err_sys(err, "make a folder for a socket in %s", tmp);
	}
	snprintf(s->path, sizeof(s->path), "%s/s", s->folder);
	memcpy(at.sun_path, s->path, strlen(s->path) + 1);
	s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(s->listener, CONNECTIONS_MAX) < 0)
		return err_sys(err, "listen on %s", s->path);
	s->client = fork();
	if (s->client < 0)
		return err_sys(err, "start %s", words[0]);
	if (s->client == 0)
		become_client(s, words, count);
	return 0;
}

static bool has_ended(struct stub *s)
{
	if (s->client > 0 && waitpid(s->client, &s->status, WNOHANG) == s->client)
		s->client = 0;
	return s->client == 0;
}

static void finish(struct stub *s)
{
	if (s->client > 0) {
		kill(s->client, SIGKILL);
		waitpid(s->client, &s->status, 0);
	}
	while (s->conn_count)
		drop(s, 0);
	if (s->listener >= 0)
		close(s->listener);
	if (*s->path)
		unlink(s->path);
	if (*s->folder)
		rmdir(s->folder);
}

static int say_nothing_asked(const struct stub *s, const char *program, struct err *err)
{
	if (WIFEXITED(s->status) && WEXITSTATUS(s->status) == 127)
		return err_set(err, ERR_INPUT, "%s cannot be run: is it installed?", program);
	return err_set(err, ERR_INPUT,
		       "%s asked the engine for nothing: run it by itself to see what it says",
		       program);
}

int client_stub_run(const char *const *words, size_t count, struct buf *out, struct err *err)
{
	struct stub s = {.listener = -1, .out = out};
	uint64_t deadline = clock_boot_ms() + CLIENT_STUB_MS;
	bool over = false;
	int rc;

	if (!count || count > WORDS_MAX)
		return err_set(err, ERR_INPUT, "the client's command has 1 to %d words", WORDS_MAX);
	rc = start(&s, words, count, err);
	while (rc == 0 && !s.enough && !over && clock_boot_ms() < deadline) {
		over = has_ended(&s); /* what it sent before it ended is still read */
		turn(&s);
	}
	if (rc == 0 && buf_spent(out))
		rc = err_set(err, ERR_LIMIT, "%s asks for more than can be held", words[0]);
	else if (rc == 0 && !buf_len(out))
		rc = say_nothing_asked(&s, words[0], err);
	finish(&s);
	return rc;
}
