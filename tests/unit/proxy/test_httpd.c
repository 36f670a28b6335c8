#include "proxy/httpd.h"

#include "gate/base/auto.h"
#include "gate/base/io.h"
#include "tests/unit/check.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#define CONNECTIONS 4
#define HELD_MAX    1000

struct served {
	int listener, done;
	struct sockaddr_un addr;
	struct httpd *h;
};

struct summed {
	size_t bytes, left;
};

static void begin(void *arg, struct httpd_request *r)
{
	(void)arg;
	r->state = calloc(1, sizeof(struct summed));
	r->pieces = !strcmp(r->path, "/pieces");
	if (r->pieces)
		r->body_max = 1 << 20;
	if (!strcmp(r->path, "/no"))
		httpd_reply(r, 403, NULL, span_of("no"));
}

static bool piece(void *arg, struct httpd_request *r, struct span part)
{
	struct summed *s = r->state;

	(void)arg;
	s->bytes += part.len;
	if (!memchr(part.at, '!', part.len))
		return true;
	httpd_reply(r, 422, NULL, span_of("a !"));
	return false;
}

static ssize_t more(struct httpd_request *r, char *at, size_t room)
{
	struct summed *s = r->state;
	size_t n = s->left < room ? s->left : room;

	if (!strcmp(r->path, "/cut") && s->left < 100000)
		return -1;
	memset(at, 'x', n);
	s->left -= n;
	return (ssize_t)n;
}

static void echo(struct httpd_request *r, struct span extra)
{
	struct err err = {0};
	char bytes[256];
	ssize_t n;

	io_write_all(r->fd, extra.at, extra.len, &err);
	while ((n = read(r->fd, bytes, sizeof(bytes))) > 0)
		io_write_all(r->fd, bytes, (size_t)n, &err);
}

static void handle(void *arg, struct httpd_request *r)
{
	struct summed *s = r->state;
	const char *x = httpd_query(r, "x"), *header = httpd_header(r, "x-test");
	char text[200];

	(void)arg;
	s->left = 200000;
	if (!strcmp(r->path, "/stream") || !strcmp(r->path, "/cut")) {
		httpd_reply_stream(r, 200, NULL, -1, more);
	} else if (!strcmp(r->path, "/echo")) {
		httpd_reply_upgrade(r, "tcp", NULL, echo);
	} else {
		snprintf(text, sizeof(text), "%s %s x=%s test=%s body=%zu pieces=%zu", r->method,
			 r->path, x ? x : "-", header ? header : "-", buf_len(&r->body), s->bytes);
		httpd_reply_header(r, "X-More", "1");
		httpd_reply(r, 200, "text/plain", span_of(text));
	}
}

static void done(void *arg, struct httpd_request *r)
{
	(void)arg;
	free(r->state);
}

static int set_up(void **state)
{
	static struct served s;
	struct err err = {0};
	struct httpd_conf conf = {.connections = CONNECTIONS,
				  .idle_s = 20,
				  .held_max = HELD_MAX,
				  .arena_max = 1 << 18,
				  .begin = begin,
				  .piece = piece,
				  .handle = handle,
				  .done = done};

	signal(SIGPIPE, SIG_IGN);
	s.addr.sun_family = AF_UNIX;
	snprintf(s.addr.sun_path + 1, sizeof(s.addr.sun_path) - 1, "test-httpd-%d", (int)getpid());
	s.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(s.listener, (struct sockaddr *)&s.addr, sizeof(s.addr)) < 0 ||
	    listen(s.listener, 16) < 0)
		return -1;
	conf.listener = s.listener;
	s.h = httpd_start(&conf, &err);
	*state = &s;
	return s.h ? 0 : -1;
}

static int tear_down(void **state)
{
	struct served *s = *state;

	httpd_stop(s->h);
	close(s->listener);
	return 0;
}

static int dial(const struct served *s)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_return_code(connect(fd, (const struct sockaddr *)&s->addr, sizeof(s->addr)), 0);
	return fd;
}

/* Sends it and reads to the end of the connection. */
static void ask(const struct served *s, struct span request, struct buf *ret)
{
	struct err err = {0};
	auto_fd int fd = dial(s);
	ssize_t n = 1;

	buf_init(ret, 1 << 20);
	io_write_all(fd, request.at, request.len, &err);
	while (n > 0) {
		char *at = buf_reserve(ret, 65536);

		n = read(fd, at, 65536);
		if (n > 0)
			buf_commit(ret, (size_t)n);
	}
	buf_put(ret, "", 1);
}

static void test_answers(void **state)
{
	static const struct {
		const char *request, *status, *holds;
	} rows[] = {
		{"GET /a%20b/%25c?x=1%202 HTTP/1.1\r\nX-Test: y\r\n", "200",
		 "GET /a b/%c x=1 2 test=y body=0 pieces=0"},
		{"GET / HTTP/1.1\r\n", "200", "X-More: 1"},
		{"POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "200", "body=3 pieces=0"},
		{"POST /pieces HTTP/1.1\r\nTransfer-Encoding: "
		 "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n",
		 "200", "body=0 pieces=5"},
		{"POST /pieces HTTP/1.1\r\nTransfer-Encoding: "
		 "chunked\r\n\r\n3\r\na!c\r\n2\r\nde\r\n0\r\n",
		 "422", "a !"},
		{"POST /no HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "403", "no"},
		{"POST /no HTTP/1.1\r\nContent-Length: 900000000\r\n", "403", "no"},
		{"POST /a HTTP/1.1\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n", "413",
		 "too long"},
		{"GET /a?x=1&x=2 HTTP/1.1\r\n", "400", "more than one way"},
		{"GET /a?x=%00 HTTP/1.1\r\n", "400", "more than one way"},
		{"GET /a%00 HTTP/1.1\r\n", "400", "more than one way"},
		{"GET /a%4 HTTP/1.1\r\n", "400", "more than one way"},
		{"GET http://other/a HTTP/1.1\r\n", "400", "more than one way"},
		{"POST /a HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
		 "400", "more than one way"},
		{"POST /a HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", "400",
		 ""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char request[512];
		struct buf got;
		const char *text, *line = strchr(rows[i].request, '\r');
		int n = snprintf(request, sizeof(request),
				 "%.*s\r\nHost: x\r\nConnection: close%s\r\n",
				 (int)(line - rows[i].request), rows[i].request, line);

		ask(*state, (struct span){request, (size_t)n}, &got);
		text = buf_span(&got).at;
		if (strncmp(text, "HTTP/1.1 100", 12) == 0)
			text = strstr(text, "\r\n\r\n") + 4;
		if (strncmp(text + 9, rows[i].status, 3) != 0 || !strstr(text, rows[i].holds))
			fail_msg("%s: %s", rows[i].request, text);
		buf_fini(&got);
	}
}

static void test_too_long_in_pieces(void **state)
{
	struct buf request, got;

	buf_init(&request, 8 << 20);
	buf_puts(&request, "POST /pieces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
			   "Transfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 20; i++) {
		char *at;

		buf_puts(&request, "20000\r\n");
		at = buf_reserve(&request, 0x20000);
		memset(at, 'y', 0x20000);
		buf_commit(&request, 0x20000);
		buf_puts(&request, "\r\n");
	}
	buf_puts(&request, "0\r\n\r\n");
	ask(*state, buf_span(&request), &got);
	assert_non_null(strstr(buf_span(&got).at, " 413 "));
	buf_fini(&request);
	buf_fini(&got);
}

static size_t count_of(const struct buf *b, char c)
{
	struct span s = buf_span(b);
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++)
		n += s.at[i] == c;
	return n;
}

static void test_streams(void **state)
{
	struct buf got;

	ask(*state, span_of("GET /stream HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"), &got);
	CHECK_INT("bytes", 200000, count_of(&got, 'x'));
	assert_true(span_ends(buf_span(&got), "0\r\n\r\n") ||
		    strstr(buf_span(&got).at + buf_len(&got) - 8, "0\r\n\r\n"));
	buf_fini(&got);
	ask(*state, span_of("GET /cut HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"), &got);
	assert_null(strstr(buf_span(&got).at + buf_len(&got) - 8, "0\r\n\r\n"));
	buf_fini(&got);
}

static size_t read_until(int fd, char *text, size_t size, const char *end)
{
	size_t n = 0;

	while (n + 1 < size && read(fd, text + n, 1) == 1) {
		text[++n] = '\0';
		if (n >= strlen(end) && !strcmp(text + n - strlen(end), end))
			break;
	}
	return n;
}

static void test_upgrade(void **state)
{
	struct err err = {0};
	auto_fd int fd = dial(*state);
	const char *request = "POST /echo HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n"
			      "Upgrade: tcp\r\n\r\nearly";
	char text[1000];

	assert_return_code(io_write_all(fd, request, strlen(request), &err), 0);
	read_until(fd, text, sizeof(text), "\r\n\r\n");
	CHECK_INT(text, 0, strncmp(text, "HTTP/1.1 101", 12));
	assert_return_code(io_write_all(fd, " late", 5, &err), 0);
	assert_return_code(shutdown(fd, SHUT_WR), 0);
	CHECK_INT("echo", 10, read_until(fd, text, sizeof(text), "\n"));
	CHECK_STR("echo", "early late", text);
}

static void test_many_and_the_cap(void **state)
{
	struct err err = {0};
	const char *request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
	int fds[CONNECTIONS];
	struct buf got;
	char text[1000];

	for (int i = 0; i < CONNECTIONS; i++) {
		fds[i] = dial(*state);
		for (int again = 0; again < 2; again++) { /* kept alive */
			assert_return_code(io_write_all(fds[i], request, strlen(request), &err), 0);
			assert_true(read_until(fds[i], text, sizeof(text), "pieces=0") > 8);
		}
	}
	for (int i = 0; i < CONNECTIONS; i++)
		close(fds[i]);
	/* Room again, as soon as their threads have ended. */
	do {
		ask(*state, span_of("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
		    &got);
		assert_true(buf_len(&got) > 0);
		text[0] = *buf_span(&got).at;
		buf_fini(&got);
	} while (text[0] != 'H');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),          cmocka_unit_test(test_too_long_in_pieces),
		cmocka_unit_test(test_streams),          cmocka_unit_test(test_upgrade),
		cmocka_unit_test(test_many_and_the_cap),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
