/*
 * test_relay.c - bytes both ways, half-close both ways, and an end at once
 * when a peer is gone.
 */
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "proxy/relay.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/check.h"

struct fixture {
	struct loop loop;
	int caller[2], service[2]; /* [0] the relay's end, [1] ours */
	struct relay *relay;
	int done;
	uint64_t up, down;
};

static void on_done(void *arg, uint64_t up, uint64_t down)
{
	struct fixture *f = arg;

	f->done++;
	f->up = up;
	f->down = down;
	f->relay = NULL;
}

static void start(struct fixture *f, const char *early_caller, const char *early_service)
{
	struct err err = {0};
	struct buf a, b;

	*f = (struct fixture){.done = 0};
	CHECK_INT("loop", 0, loop_open(&f->loop, &err));
	CHECK_INT("pair", 0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, f->caller));
	CHECK_INT("pair", 0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, f->service));
	buf_init(&a, 1000);
	buf_init(&b, 1000);
	buf_puts(&a, early_caller);
	buf_puts(&b, early_service);
	f->relay = relay_start(&f->loop, f->caller[0], &a, f->service[0], &b, on_done, f, &err);
	CHECK_STR("started", "", err.msg);
	buf_fini(&a);
	buf_fini(&b);
}

static void stop(struct fixture *f)
{
	if (f->relay)
		relay_stop(f->relay);
	for (int i = 0; i < 2; i++)
		if (f->caller[i] >= 0)
			close(f->caller[i]);
	if (f->service[1] >= 0)
		close(f->service[1]);
	loop_close(&f->loop);
}

static void hang_up(int *fd)
{
	close(*fd);
	*fd = -1;
}

static void turns(struct fixture *f, int n)
{
	for (int i = 0; i < n; i++)
		loop_turn(&f->loop, 5);
}

static void expect(const char *label, int fd, const char *want)
{
	char got[256] = "";
	ssize_t n = read(fd, got, sizeof(got) - 1);

	CHECK_INT(label, (long)strlen(want), n);
	CHECK_STR(label, want, got);
}

static void early_bytes_come_first(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, "from-caller ", "from-service ");
	CHECK_INT("write", 1, write(f.caller[1], "a", 1));
	CHECK_INT("write", 1, write(f.service[1], "b", 1));
	turns(&f, 4);
	expect("service", f.service[1], "from-caller a");
	expect("caller", f.caller[1], "from-service b");
	stop(&f);
}

static void half_close_goes_through(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, "", "");
	CHECK_INT("write", 2, write(f.caller[1], "hi", 2));
	shutdown(f.caller[1], SHUT_WR);
	turns(&f, 4);
	expect("service reads", f.service[1], "hi");
	expect("service sees the end", f.service[1], "");
	CHECK_INT("not over", 0, f.done);
	CHECK_INT("answer", 1, write(f.service[1], "2", 1));
	turns(&f, 4);
	expect("caller reads", f.caller[1], "2");
	hang_up(&f.service[1]);
	turns(&f, 4);
	CHECK_INT("over", 1, f.done);
	CHECK_INT("bytes up", 2, f.up);
	CHECK_INT("bytes down", 1, f.down);
	stop(&f);
}

static void a_caller_who_is_gone_ends_it(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, "", "");
	CHECK_INT("write", 4, write(f.caller[1], "last", 4));
	hang_up(&f.caller[1]);
	turns(&f, 4);
	CHECK_INT("over", 1, f.done);
	expect("what was sent arrives", f.service[1], "last");
	expect("and the end", f.service[1], "");
	stop(&f);
}

static void a_service_that_is_gone_ends_it(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, "", "");
	CHECK_INT("write", 3, write(f.service[1], "bye", 3));
	hang_up(&f.service[1]);
	turns(&f, 4);
	CHECK_INT("over", 1, f.done);
	expect("what was sent arrives", f.caller[1], "bye");
	stop(&f);
}

static void a_stuck_service_is_given_up(void **state)
{
	struct fixture f;
	char block[4096] = {0};

	(void)state;
	start(&f, "", "");
	for (int i = 0; i < 2000; i++) {
		if (write(f.caller[1], block, sizeof(block)) < 0)
			turns(&f, 1);
	}
	hang_up(&f.caller[1]);
	turns(&f, 2);
	CHECK_INT("still trying", 0, f.done);
	CHECK_INT("not yet", 0, relay_expire(f.relay, clock_boot_ms()));
	CHECK_INT("given up", 1, relay_expire(f.relay, clock_boot_ms() + RELAY_LINGER_MS + 1000));
	CHECK_INT("over", 1, f.done);
	stop(&f);
}

/* Events of one more turn; what is known already must not wake the loop for ever. */
static int events_in_a_turn(struct fixture *f)
{
	loop_turn(&f->loop, 5);
	return f->loop.batch_at;
}

static void what_is_known_is_not_told_again(void **state)
{
	static char block[65536];
	struct fixture f;

	(void)state;
	start(&f, "", "");
	shutdown(f.caller[1], SHUT_WR);
	turns(&f, 4);
	CHECK_INT("after the caller's end", 0, events_in_a_turn(&f));
	while (write(f.service[1], block, sizeof(block)) > 0)
		turns(&f, 2);
	CHECK_INT("a full caller", 0, events_in_a_turn(&f));
	hang_up(&f.service[1]);
	turns(&f, 4);
	CHECK_INT("not over before the caller has all", 0, f.done);
	CHECK_INT("after the service has gone", 0, events_in_a_turn(&f));
	while (read(f.caller[1], block, sizeof(block)) > 0)
		turns(&f, 4);
	CHECK_INT("over", 1, f.done);
	stop(&f);
}

/* Push-back: what nobody reads is not read from the other side either. */
static void bulk_goes_through_with_push_back(void **state)
{
	enum { TOTAL = 8 << 20 };
	static char block[65536], got[65536];
	size_t sent = 0, received = 0, most_ahead = 0;
	struct fixture f;

	(void)state;
	start(&f, "", "");
	while (received < TOTAL) {
		size_t left = TOTAL - sent < sizeof(block) ? TOTAL - sent : sizeof(block);
		ssize_t n = left ? write(f.service[1], block, left) : 0;

		sent += n > 0 ? (size_t)n : 0;
		if (n <= 0) {
			most_ahead = sent - received > most_ahead ? sent - received : most_ahead;
			loop_turn(&f.loop, 0);
			n = read(f.caller[1], got, sizeof(got));
			received += n > 0 ? (size_t)n : 0;
		}
	}
	CHECK_INT("all of it", TOTAL, received);
	CHECK_INT("bounded", 1, most_ahead < (2 << 20));
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(early_bytes_come_first),
		cmocka_unit_test(half_close_goes_through),
		cmocka_unit_test(a_caller_who_is_gone_ends_it),
		cmocka_unit_test(a_service_that_is_gone_ends_it),
		cmocka_unit_test(a_stuck_service_is_given_up),
		cmocka_unit_test(what_is_known_is_not_told_again),
		cmocka_unit_test(bulk_goes_through_with_push_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
