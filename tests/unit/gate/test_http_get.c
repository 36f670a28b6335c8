/* Answers of an engine as `health` and `doctor` read them. */
#include "gate/http_get.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEAD "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n"

static void reads_answers(void **state)
{
	static const struct {
		const char *label, *answer;
		int status;
		const char *body, *error;
	} cases[] = {
		{"until the end", HEAD "\r\nhello", 200, "hello", ""},
		{"nothing behind the head", HEAD "\r\n", 200, "", ""},
		{"another status", "HTTP/1.1 503 Busy\r\n\r\nno", 503, "no", ""},
		{"old HTTP", "HTTP/1.0 200 OK\r\n\r\nx", 200, "x", ""},
		{"chunks",
		 HEAD
		 "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n",
		 200, "hello0123456789", ""},
		{"chunks in other letters",
		 HEAD "transfer-ENCODING: Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", 200, "a", ""},
		{"a chunk that is cut", HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhel", 0, "",
		 "the answer is no HTTP: it ends within a chunk"},
		{"a last chunk that is missing",
		 HEAD "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n", 0, "",
		 "the answer is no HTTP: it ends within a chunk"},
		{"a chunk of odd size", HEAD "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 0, "",
		 "the answer is no HTTP: a chunk without a size"},
		{"a chunk of no size", HEAD "Transfer-Encoding: chunked\r\n\r\n\r\n", 0, "",
		 "the answer is no HTTP: a chunk without a size"},
		{"a chunk that is huge",
		 HEAD "Transfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\n", 0, "",
		 "the answer is no HTTP: a chunk without a size"},
		{"no HTTP", "SSH-2.0-OpenSSH\r\n\r\n", 0, "",
		 "the answer is no HTTP: no status line"},
		{"a status of letters", "HTTP/1.1 2x0 OK\r\n\r\n", 0, "",
		 "the answer is no HTTP: no status line"},
		{"nothing", "", 0, "", "the answer is no HTTP: no status line"},
		{"half a head", HEAD, 0, "", "the answer is no HTTP: it ends within its head"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct err err = {0};
		char body[64] = "";
		int status = 0;
		struct buf got;

		if (http_get_parse(span_of(cases[i].answer), &status, &got, &err) == 0) {
			snprintf(body, sizeof(body), "%.*s", SPAN_FMT(buf_span(&got)));
			buf_fini(&got);
		}
		CHECK_STR(cases[i].label, cases[i].error, err.msg);
		CHECK_INT(cases[i].label, cases[i].status, status);
		CHECK_STR(cases[i].label, cases[i].body, body);
	}
}

/* One process answers once with text, or with silence. */
static pid_t serve(const char *path, const char *text)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char request[1024];
	pid_t pid;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	CHECK_INT("bind", 0, bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	CHECK_INT("listen", 0, listen(fd, 1));
	pid = fork();
	if (pid == 0) {
		int peer = accept(fd, NULL, NULL);
		ssize_t n = read(peer, request, sizeof(request) - 1);

		request[n > 0 ? n : 0] = '\0';
		if (!strstr(request, "GET /x HTTP/1.1\r\nHost: localhost\r\n"))
			_exit(1);
		if (text && write(peer, text, strlen(text)) < 0)
			_exit(1);
		if (!text) /* until the other side gives up */
			while (read(peer, request, sizeof(request)) > 0)
				;
		_exit(0);
	}
	close(fd);
	return pid;
}

static void asks_over_a_socket(void **state)
{
	static const struct {
		const char *label, *text, *error;
	} cases[] = {
		{"an answer", HEAD "\r\nhi", ""},
		{"silence", NULL, "no answer in time"},
	};
	char dir[] = "/tmp/sallyport-test-XXXXXX", path[64];

	(void)state;
	CHECK_INT("dir", 1, mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/s", dir);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		pid_t pid = serve(path, cases[i].text);
		struct err err = {0};
		struct buf body = {0};
		int status = 0, ended;

		http_get(path, "/x", 300, &status, &body, &err);
		CHECK_INT(cases[i].label, 1, strstr(err.msg, cases[i].error) != NULL);
		CHECK_INT(cases[i].label, cases[i].text ? 200 : 0, status);
		buf_fini(&body);
		waitpid(pid, &ended, 0);
		CHECK_INT(cases[i].label, 0, ended);
		unlink(path);
	}
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_answers),
		cmocka_unit_test(asks_over_a_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
