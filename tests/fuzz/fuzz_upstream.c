/*
 * Replies of an engine: the first byte chooses the question and how the bytes
 * are cut into pieces, the rest is what comes back before the connection ends.
 */
#include "tests/fuzz/fuzz.h"

#include "proxy/upstream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TURNS_MAX 10000 /* a piece of one byte takes a turn */

struct seen {
	struct upcall *call;
	unsigned heads, fails;
	bool over;
};

static void take(struct seen *s)
{
	struct span body = upcall_body(s->call);

	HOLDS(body.len <= UPCALL_BUFFER);
	upcall_take(s->call, body.len);
	s->over = upcall_complete(s->call);
}

static void on_head(void *arg, const struct reply_head *head)
{
	struct seen *s = arg;

	HOLDS(!s->over && ++s->heads == 1);
	HOLDS(head->status >= 101 && head->status <= 999);
	for (size_t i = 0; i < head->header_count; i++) {
		struct span key = head->headers[i].key;

		HOLDS(key.len > 0);
		for (size_t k = 0; k < key.len; k++)
			HOLDS(key.at[k] < 'A' || key.at[k] > 'Z');
	}
	take(s); /* what came with it is not told again */
}

static void on_data(void *arg)
{
	struct seen *s = arg;

	HOLDS(!s->over && s->heads == 1);
	take(s);
}

static void on_room(void *arg)
{
	(void)arg;
}

static void on_fail(void *arg, enum upcall_fault fault)
{
	struct seen *s = arg;

	HOLDS(!s->over && fault != UPCALL_FINE);
	s->over = true;
	s->fails++;
}

static int listen_once(char *path, size_t size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(path, size, "%s/s", fuzz_folder());
	HOLDS(strlen(path) < sizeof(address.sun_path));
	strcpy(address.sun_path, path);
	HOLDS(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	HOLDS(listen(fd, 8) == 0);
	return fd;
}

static void answer(struct loop *l, struct seen *s, int peer, struct span reply, size_t piece)
{
	unsigned turns = 0;

	while (reply.len && !s->over && turns++ < TURNS_MAX) {
		struct span now = {reply.at, piece && piece < reply.len ? piece : reply.len};
		ssize_t sent = send(peer, now.at, now.len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent > 0)
			reply = span_skip(reply, (size_t)sent);
		else if (errno != EAGAIN)
			break;
		loop_turn(l, 0);
	}
	shutdown(peer, SHUT_WR);
	while (!s->over && turns++ < TURNS_MAX)
		loop_turn(l, 10);
	HOLDS(s->over);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct upcall_handlers handlers = {on_head, on_data, on_room, on_fail};
	static struct loop l;
	static char path[300];
	static int listener = -1;
	struct upcall_request req = {.head = span_of("GET /x HTTP/1.1\r\nHost: d\r\n\r\n")};
	struct seen s = {0};
	struct err err = {0};
	struct upstream *u;
	int peer;

	if (listener < 0) {
		listener = listen_once(path, sizeof(path));
		HOLDS(loop_open(&l, &err) == 0);
	}
	if (!size)
		return 0;
	req.is_head = *data & 1;
	if (req.is_head)
		req.head = span_of("HEAD /x HTTP/1.1\r\nHost: d\r\n\r\n");
	u = upstream_open(&l, path, NULL, NULL);
	s.call = upcall_start(u, &req, &handlers, &s, &err);
	HOLDS(s.call != NULL);
	peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	HOLDS(peer >= 0);
	answer(&l, &s, peer, (struct span){(const char *)data + 1, size - 1}, (*data >> 1) & 63);
	HOLDS(s.fails <= 1);
	upcall_release(s.call);
	upstream_close(u);
	close(peer);
	return 0;
}
