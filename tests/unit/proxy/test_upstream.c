/*
 * test_upstream.c - a call against a scripted service: what is given, what is
 * kept for the next call, and what is not to be trusted any more.
 */
#include "proxy/upstream.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/check.h"

struct fixture {
	struct loop loop;
	struct upstream *pool;
	char path[64];
	int listener, peer; /* the service's ends */
	struct upcall *call;
	int status, heads, datas, rooms, fails, lost;
	enum upcall_fault fault;
	size_t header_count;
	char body[256];
	size_t body_len;
	bool takes_nothing;
};

static void take_body(struct fixture *f)
{
	struct span s = f->takes_nothing ? (struct span){"", 0} : upcall_body(f->call);
	size_t room = sizeof(f->body) - 1 - f->body_len, n = s.len < room ? s.len : room;

	memcpy(f->body + f->body_len, s.at, n);
	f->body_len += n;
	f->body[f->body_len] = '\0';
	upcall_take(f->call, s.len);
}

static void on_head(void *arg, const struct reply_head *head)
{
	struct fixture *f = arg;

	f->heads++;
	f->status = head->status;
	f->header_count = head->header_count;
	if (f->status != 101)
		take_body(f);
}

static void on_data(void *arg)
{
	struct fixture *f = arg;

	f->datas++;
	take_body(f);
}

static void on_room(void *arg)
{
	((struct fixture *)arg)->rooms++;
}

static void on_fail(void *arg, enum upcall_fault fault)
{
	struct fixture *f = arg;

	f->fails++;
	f->fault = fault;
}

static void on_lost(void *arg)
{
	((struct fixture *)arg)->lost++;
}

static const struct upcall_handlers handlers = {on_head, on_data, on_room, on_fail};

static void start(struct fixture *f)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct err err = {0};

	*f = (struct fixture){.peer = -1};
	snprintf(f->path, sizeof(f->path), "/tmp/test-upstream-%d.sock", (int)getpid());
	unlink(f->path);
	strcpy(addr.sun_path, f->path);
	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	CHECK_INT("bind", 0, bind(f->listener, (struct sockaddr *)&addr, sizeof(addr)));
	CHECK_INT("listen", 0, listen(f->listener, 8));
	CHECK_INT("loop", 0, loop_open(&f->loop, &err));
	f->pool = upstream_open(&f->loop, f->path, on_lost, f);
	CHECK_INT("pool", 1, f->pool != NULL);
}

static void stop(struct fixture *f)
{
	if (f->call)
		upcall_release(f->call);
	upstream_close(f->pool);
	loop_close(&f->loop);
	if (f->peer >= 0)
		close(f->peer);
	close(f->listener);
	unlink(f->path);
}

static void turns(struct fixture *f, int n)
{
	for (int i = 0; i < n; i++)
		loop_turn(&f->loop, 5);
}

static void call(struct fixture *f, const struct upcall_request *req)
{
	struct err err = {0};

	f->status = f->heads = f->datas = f->rooms = f->fails = 0;
	f->body_len = 0;
	f->body[0] = '\0';
	f->call = upcall_start(f->pool, req, &handlers, f, &err);
	CHECK_STR("start", "", err.msg);
}

static const struct upcall_request get = {.head = {"GET /x HTTP/1.1\r\n\r\n", 19},
					  .repeatable = true};
static const struct upcall_request upload = {
	.head = {"PUT /x HTTP/1.1\r\nContent-Length: 100\r\n\r\n", 40}, .streams_body = true};

static void get_x(struct fixture *f)
{
	call(f, &get);
}

static void release(struct fixture *f)
{
	upcall_release(f->call);
	f->call = NULL;
}

/* The service takes a new connection, if there is one. */
static bool accept_new(struct fixture *f)
{
	int fd = accept4(f->listener, NULL, NULL, SOCK_NONBLOCK);

	if (fd < 0)
		return false;
	if (f->peer >= 0)
		close(f->peer);
	f->peer = fd;
	return true;
}

static void say(struct fixture *f, const char *text)
{
	CHECK_INT("say", (long)strlen(text), send(f->peer, text, strlen(text), MSG_NOSIGNAL));
	turns(f, 3);
}

static void swallow(struct fixture *f)
{
	char bytes[65536];

	while (read(f->peer, bytes, sizeof(bytes)) > 0)
		;
}

struct reply_row {
	const char *label, *reply;
	bool hang_up;
	int status, fails;
	enum upcall_fault fault;
	const char *body;
	bool kept;
};

static const struct reply_row replies[] = {
	{"with a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", false, 200, 0, 0, "hi",
	 true},
	{"chunked, with a trailer",
	 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n", false,
	 200, 0, 0, "hi", true},
	{"to the end", "HTTP/1.1 200 OK\r\n\r\nhi", true, 200, 0, 0, "hi", false},
	{"without a body", "HTTP/1.1 204 No\r\n\r\n", false, 204, 0, 0, "", true},
	{"not modified", "HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n", false, 304, 0, 0, "",
	 true},
	{"says close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", false,
	 200, 0, 0, "hi", false},
	{"1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", false, 200, 0, 0, "hi", false},
	{"behind interim ones",
	 "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 103 H\r\nA: b\r\n\r\nHTTP/1.1 204 N\r\n\r\n", false, 204,
	 0, 0, "", true},
	{"with bytes behind it",
	 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\n", false, 200, 0, 0,
	 "hi", false},
	{"cut in the body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi", true, 200, 1,
	 UPCALL_CUT, "hi", false},
	{"cut in the head", "HTTP/1.1 200 OK\r\nConte", true, 0, 1, UPCALL_UNREACHABLE, "", false},
	{"nothing", "", true, 0, 1, UPCALL_UNREACHABLE, "", false},
	{"only an interim one", "HTTP/1.1 100 C\r\n\r\n", true, 0, 1, UPCALL_CUT, "", false},
	{"not HTTP", "SSH-2.0-x\r\n\r\n", false, 0, 1, UPCALL_NONSENSE, "", false},
	{"a status that is none", "HTTP/1.1 042 X\r\nContent-Length: 0\r\n\r\n", false, 0, 1,
	 UPCALL_NONSENSE, "", false},
	{"two framings",
	 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nhi", false, 0,
	 1, UPCALL_NONSENSE, "", false},
	{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
	 false, 0, 1, UPCALL_NONSENSE, "", false},
	{"a broken chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n", false, 0,
	 1, UPCALL_NONSENSE, "", false},
};

static void reply_is_read(const struct reply_row *row)
{
	struct fixture f;

	start(&f);
	get_x(&f);
	CHECK_INT(row->label, 1, accept_new(&f));
	say(&f, row->reply);
	if (row->hang_up)
		shutdown(f.peer, SHUT_RDWR);
	turns(&f, 3);
	CHECK_INT(row->label, row->fails, f.fails);
	CHECK_INT(row->label, row->fault, f.fault);
	CHECK_INT(row->label, row->status, f.status);
	if (!row->fails) {
		CHECK_INT(row->label, 1, upcall_complete(f.call));
		CHECK_STR(row->label, row->body, f.body);
	}
	release(&f);
	get_x(&f);
	CHECK_INT(row->label, !row->kept, accept_new(&f));
	stop(&f);
}

static void replies_are_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(replies) / sizeof(*replies); i++)
		reply_is_read(&replies[i]);
}

static void a_head_is_not_kept_waiting_for_a_body(void **state)
{
	struct upcall_request head = get;
	struct fixture f;

	(void)state;
	head.is_head = true;
	start(&f);
	call(&f, &head);
	accept_new(&f);
	say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
	CHECK_INT("complete", 1, upcall_complete(f.call));
	CHECK_INT("length", 1000, upcall_length(f.call));
	release(&f);
	get_x(&f);
	CHECK_INT("kept", 0, accept_new(&f));
	stop(&f);
}

/* What the service reads next on that connection it would take for the body. */
static void an_early_reply_ends_the_connection(void **state)
{
	static const struct {
		const char *label;
		size_t before, behind;
		bool kept;
	} rows[] = {
		{"nothing was sent", 0, 100, false},
		{"half was sent", 50, 50, false},
		{"none was left but the end", 100, 0, false},
	};
	static const char body[100];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct fixture f;

		start(&f);
		call(&f, &upload);
		CHECK_INT(rows[i].label, rows[i].before,
			  upcall_send(f.call, (struct span){body, rows[i].before}));
		accept_new(&f);
		say(&f, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
		CHECK_INT(rows[i].label, 404, f.status);
		CHECK_INT(rows[i].label, rows[i].behind,
			  upcall_send(f.call, (struct span){body, rows[i].behind}));
		upcall_send_end(f.call);
		release(&f);
		get_x(&f);
		CHECK_INT(rows[i].label, !rows[i].kept, accept_new(&f));
		stop(&f);
	}
}

static void a_whole_upload_keeps_the_connection(void **state)
{
	static const char body[100];
	struct fixture f;

	(void)state;
	start(&f);
	call(&f, &upload);
	CHECK_INT("sent", 100, upcall_send(f.call, (struct span){body, 100}));
	upcall_send_end(f.call);
	accept_new(&f);
	say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	release(&f);
	get_x(&f);
	CHECK_INT("kept", 0, accept_new(&f));
	stop(&f);
}

static void an_upgraded_connection_is_never_kept(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	get_x(&f);
	accept_new(&f);
	say(&f, "HTTP/1.1 101 UP\r\nConnection: upgrade\r\nUpgrade: tcp\r\n\r\nraw");
	CHECK_INT("status", 101, f.status);
	release(&f);
	get_x(&f);
	CHECK_INT("a new one", 1, accept_new(&f));
	stop(&f);
}

static void bytes_behind_a_101_are_handed_over(void **state)
{
	struct fixture f;
	struct buf left;
	int fd;

	(void)state;
	start(&f);
	get_x(&f);
	accept_new(&f);
	say(&f, "HTTP/1.1 101 UP\r\nConnection: upgrade\r\nUpgrade: tcp\r\n\r\nraw");
	fd = upcall_hijack(f.call, &left);
	f.call = NULL;
	CHECK_INT("descriptor", 1, fd >= 0);
	CHECK_INT("bytes", 1, span_is(buf_span(&left), "raw"));
	buf_fini(&left);
	close(fd);
	stop(&f);
}

/* Blocked until the service reads; told once there is room, whatever else comes with it. */
static void a_blocked_upload_is_told_of_room(void **state)
{
	static char block[65536];
	const char *noise[] = {"", "HTTP/1.1 100 Continue\r\n\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(noise) / sizeof(*noise); i++) {
		struct fixture f;

		start(&f);
		call(&f, &upload);
		accept_new(&f);
		while (upcall_send(f.call, (struct span){block, sizeof(block)}) == sizeof(block))
			;
		CHECK_INT("blocked", 0, f.rooms);
		turns(&f, 3);
		CHECK_INT("still blocked", 0, f.rooms);
		/* All of it is read and something is said before the loop looks again. */
		for (int round = 0; round < 64 && !f.rooms; round++) {
			swallow(&f);
			if (round == 0)
				CHECK_INT("say", (long)strlen(noise[i]),
					  send(f.peer, noise[i], strlen(noise[i]), MSG_NOSIGNAL));
			turns(&f, 1);
		}
		CHECK_INT("room", 1, f.rooms);
		stop(&f);
	}
}

static void a_dead_kept_connection_is_replaced(void **state)
{
	struct fixture f;

	(void)state;
	start(&f);
	get_x(&f);
	accept_new(&f);
	say(&f, "HTTP/1.1 204 N\r\n\r\n");
	release(&f);
	get_x(&f); /* goes out on the kept connection, which ends now */
	shutdown(f.peer, SHUT_RDWR);
	turns(&f, 3);
	CHECK_INT("dialled again", 1, accept_new(&f));
	CHECK_INT("no failure", 0, f.fails);
	say(&f, "HTTP/1.1 204 N\r\n\r\n");
	CHECK_INT("answered", 204, f.status);
	stop(&f);
}

static void what_changes_state_is_never_sent_twice(void **state)
{
	struct upcall_request post = {.head = {"POST /x HTTP/1.1\r\n\r\n", 20}};
	struct fixture f;

	(void)state;
	start(&f);
	get_x(&f);
	accept_new(&f);
	say(&f, "HTTP/1.1 204 N\r\n\r\n");
	release(&f);
	call(&f, &post);
	shutdown(f.peer, SHUT_RDWR);
	turns(&f, 3);
	CHECK_INT("not dialled", 0, accept_new(&f));
	CHECK_INT("told", 1, f.fails);
	CHECK_INT("fault", UPCALL_UNREACHABLE, f.fault);
	stop(&f);
}

static void an_idle_connection_that_speaks_or_ends_is_dropped(void **state)
{
	struct fixture f;

	(void)state;
	for (int speaks = 0; speaks < 2; speaks++) {
		start(&f);
		get_x(&f);
		accept_new(&f);
		say(&f, "HTTP/1.1 204 N\r\n\r\n");
		release(&f);
		if (speaks)
			say(&f, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
		else
			shutdown(f.peer, SHUT_RDWR);
		turns(&f, 3);
		CHECK_INT("told", 1, f.lost);
		get_x(&f);
		CHECK_INT("a new one", 1, accept_new(&f));
		stop(&f);
	}
}

/* Memory is bounded by what the caller takes, not by what the service sends. */
static void a_reply_that_is_not_taken_stops_the_service(void **state)
{
	static char block[65536];
	struct fixture f;
	size_t sent = 0;

	(void)state;
	start(&f);
	get_x(&f);
	accept_new(&f);
	say(&f, "HTTP/1.1 200 OK\r\n\r\n");
	f.takes_nothing = true;
	for (int quiet = 0; quiet < 5;) {
		ssize_t n = send(f.peer, block, sizeof(block), MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		quiet = n > 0 ? 0 : quiet + 1;
		loop_turn(&f.loop, 1);
	}
	CHECK_INT("bounded", 1, sent < (2u << 20));
	CHECK_INT("held", 1, upcall_body(f.call).len <= UPCALL_BUFFER);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replies_are_read),
		cmocka_unit_test(a_head_is_not_kept_waiting_for_a_body),
		cmocka_unit_test(an_early_reply_ends_the_connection),
		cmocka_unit_test(a_whole_upload_keeps_the_connection),
		cmocka_unit_test(an_upgraded_connection_is_never_kept),
		cmocka_unit_test(bytes_behind_a_101_are_handed_over),
		cmocka_unit_test(a_blocked_upload_is_told_of_room),
		cmocka_unit_test(a_dead_kept_connection_is_replaced),
		cmocka_unit_test(what_changes_state_is_never_sent_twice),
		cmocka_unit_test(an_idle_connection_that_speaks_or_ends_is_dropped),
		cmocka_unit_test(a_reply_that_is_not_taken_stops_the_service),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
