/* The table of quotas: what is held counts once, whoever holds it, until the service shows it. */
#include "proxy/quotas.h"

#include "gate/base/clock.h"
#include "tests/unit/check.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static struct quotas *table(void)
{
	struct err err;
	struct quotas *t = quotas_create(&err);

	CHECK_INT("there is one", 1, t != NULL);
	return t;
}

static struct quota_thing container(int n, int64_t memory)
{
	char name[32];
	struct quota_thing t = {.runs = true, .since = 7};

	snprintf(name, sizeof(name), "%d", n);
	t.id = quota_id("container", name);
	t.takes[QUOTA_CONTAINERS] = 1;
	t.takes[QUOTA_MEMORY] = memory;
	return t;
}

static const int64_t *limits(int64_t containers, int64_t memory)
{
	static int64_t all[QUOTA_COUNT];

	for (int q = 0; q < QUOTA_COUNT; q++)
		all[q] = -1;
	all[QUOTA_CONTAINERS] = containers;
	all[QUOTA_MEMORY] = memory;
	return all;
}

static struct quota_count count(uint64_t since, const struct quota_thing *asked,
				const int64_t *most)
{
	return (struct quota_count){
		.key = 1, .since_ns = since, .asked = asked, .asked_count = 1, .limits = most};
}

static void what_is_held_counts(void **state)
{
	struct quotas *t = table();
	struct quota_thing one = container(1, 100), two = container(2, 100);
	struct quota_count c = count(10, &one, limits(1, -1)), d = count(30, &two, limits(1, -1));
	struct quota_hold hold, other;
	struct quota_sums sums;

	(void)state;
	CHECK_INT("the first", QUOTA_FITS, quotas_take(t, &c, 20, false, &hold));
	CHECK_INT("no second", QUOTA_OVER, quotas_take(t, &d, 40, false, &other));
	CHECK_INT("the same again", QUOTA_FITS, quotas_look(t, &c, 40, &sums));
	CHECK_INT("takes nothing more", 0, sums.asked[QUOTA_CONTAINERS]);
	d.key = 2;
	CHECK_INT("of another owner", QUOTA_FITS, quotas_look(t, &d, 40, &sums));
	d.key = 1;
	quotas_release(t, &hold);
	CHECK_INT("let go", QUOTA_FITS, quotas_take(t, &d, 50, false, &other));
	quotas_release(t, &hold);
	CHECK_INT("letting go twice", QUOTA_OVER,
		  quotas_look(t,
			      &(struct quota_count){.key = 1,
						    .since_ns = 60,
						    .asked = &one,
						    .asked_count = 1,
						    .limits = limits(1, -1)},
			      70, &sums));
}

static void what_came_between_is_counted_anew(void **state)
{
	struct quotas *t = table();
	struct quota_thing one = container(1, 100), two = container(2, 100);
	struct quota_count c = count(10, &one, limits(1, -1)), d = count(10, &two, limits(1, -1));
	struct quota_hold hold;
	struct quota_sums sums;

	(void)state;
	CHECK_INT("the first", QUOTA_FITS, quotas_take(t, &c, 20, false, &hold));
	CHECK_INT("began before that", QUOTA_AGAIN, quotas_look(t, &d, 25, &sums));
	d.last = true;
	CHECK_INT("and will not again", QUOTA_OVER, quotas_look(t, &d, 25, &sums));
	d.last = false;
	quotas_sent(t, &hold);
	quotas_settle(t, &hold, 30);
	CHECK_INT("answered, after it began", QUOTA_AGAIN, quotas_look(t, &d, 35, &sums));
	d.since_ns = 31;
	CHECK_INT("begins now, and is shown nothing", QUOTA_FITS, quotas_look(t, &d, 35, &sums));
	d.shown = &one;
	d.shown_count = 1;
	CHECK_INT("is shown that it runs", QUOTA_OVER, quotas_look(t, &d, 35, &sums));
	d.since_ns = 25;
	CHECK_INT("held and shown is one", QUOTA_OVER, quotas_look(t, &d, 35, &sums));
	CHECK_INT("one", 1, sums.used[QUOTA_CONTAINERS]);
}

static void sums_are_exact(void **state)
{
	struct quotas *t = table();
	struct quota_thing shown[] = {container(1, 600), container(2, QUOTA_ENDLESS)};
	struct quota_thing three = container(3, 400), more = container(1, 900);
	struct quota_count c = count(10, &three, limits(-1, 1000));
	struct quota_sums sums;

	(void)state;
	c.shown = shown;
	c.shown_count = 1;
	CHECK_INT("just fits", QUOTA_FITS, quotas_look(t, &c, 20, &sums));
	three.takes[QUOTA_MEMORY] = 401;
	CHECK_INT("one too many", QUOTA_OVER, quotas_look(t, &c, 20, &sums));
	three.takes[QUOTA_MEMORY] = QUOTA_ENDLESS;
	CHECK_INT("without a limit", QUOTA_OVER, quotas_look(t, &c, 20, &sums));
	c.asked = &more;
	more.runs = false;
	CHECK_INT("an update", QUOTA_FITS, quotas_look(t, &c, 20, &sums));
	CHECK_INT("asks for what comes to it", 300, sums.asked[QUOTA_MEMORY]);
	shown[0].runs = false;
	CHECK_INT("of what does not run", QUOTA_FITS, quotas_look(t, &c, 20, &sums));
	CHECK_INT("asks for nothing", 0, sums.asked[QUOTA_MEMORY]);
	shown[0].runs = true;
	c.shown_count = 2;
	three = container(3, 1);
	c.asked = &three;
	CHECK_INT("beside one without a limit", QUOTA_OVER, quotas_look(t, &c, 20, &sums));
	c.asked = &shown[1];
	CHECK_INT("which may start again", QUOTA_FITS, quotas_look(t, &c, 20, &sums));
}

static void an_update_in_flight_counts_with_a_start(void **state)
{
	struct quotas *t = table();
	struct quota_thing more = container(1, 900), start = container(1, 600);
	struct quota_thing other = container(2, 200);
	struct quota_count c = count(10, &more, limits(-1, 1000));
	struct quota_hold hold, held;
	struct quota_sums sums;

	(void)state;
	more.runs = false;
	CHECK_INT("an update of what does not run", QUOTA_FITS,
		  quotas_take(t, &c, 11, false, &hold));
	c = count(20, &start, limits(-1, 1000));
	CHECK_INT("it is started meanwhile", QUOTA_FITS, quotas_take(t, &c, 21, false, &held));
	c = count(30, &other, limits(-1, 1000));
	CHECK_INT("and has what it was updated to", QUOTA_OVER, quotas_look(t, &c, 31, &sums));
	CHECK_INT("once", 900, sums.used[QUOTA_MEMORY]);
}

static void a_start_has_the_limits_of_an_update_in_flight(void **state)
{
	struct quotas *t = table();
	struct quota_thing more = container(1, 900), start = container(1, 600);
	struct quota_count c = count(10, &more, limits(-1, 800)), before;
	struct quota_hold hold, held;
	struct quota_sums sums;

	(void)state;
	more.runs = false;
	CHECK_INT("an update of what does not run", QUOTA_FITS,
		  quotas_take(t, &c, 20, false, &hold));
	before = count(15, &start, limits(-1, 800));
	CHECK_INT("counted before it", QUOTA_AGAIN, quotas_take(t, &before, 21, false, &held));
	c = count(30, &start, limits(-1, 800));
	CHECK_INT("it would have these", QUOTA_OVER, quotas_take(t, &c, 31, false, &held));
	CHECK_INT("and is told so", QUOTA_OVER, quotas_look(t, &c, 31, &sums));
	CHECK_INT("all of them", 900, sums.asked[QUOTA_MEMORY]);
	start.takes[QUOTA_MEMORY] = QUOTA_ENDLESS;
	CHECK_INT("without a limit", QUOTA_OVER, quotas_look(t, &c, 31, &sums));
	start.takes[QUOTA_MEMORY] = 600;
	quotas_release(t, &hold);
	CHECK_INT("nothing came of it", QUOTA_FITS, quotas_take(t, &c, 32, false, &held));
}

static void what_rules_let_pass_is_held(void **state)
{
	struct quotas *t = table();
	struct quota_thing one = container(1, 100);
	struct quota_count c = count(10, &one, limits(0, -1));
	struct quota_hold hold;
	struct quota_sums sums;

	(void)state;
	CHECK_INT("over", QUOTA_OVER, quotas_take(t, &c, 20, false, &hold));
	CHECK_INT("all the same", QUOTA_FITS, quotas_take(t, &c, 20, true, &hold));
	c.asked_count = 0;
	CHECK_INT("is counted", QUOTA_FITS, quotas_look(t, &c, 30, &sums));
	CHECK_INT("is counted", 1, sums.used[QUOTA_CONTAINERS]);
}

/* In a process that is then killed. */
static void take_and_die(struct quotas *t, const struct quota_count *c, bool sends)
{
	pid_t pid = fork();
	struct quota_hold hold;

	if (pid == 0) {
		if (quotas_take(t, c, c->since_ns + 1, false, &hold) == QUOTA_FITS && sends)
			quotas_sent(t, &hold);
		raise(SIGKILL);
	}
	waitpid(pid, NULL, 0);
	quotas_died(t, pid, c->since_ns + 2);
}

static void a_dead_process_holds_what_it_sent(void **state)
{
	struct quotas *t = table();
	struct quota_thing one = container(1, 100), two = container(2, 100), shown = one;
	struct quota_count c = count(10, &one, limits(1, -1)), d = count(30, &two, limits(1, -1));
	struct hash doubts[QUOTA_LOOK_MAX];
	size_t doubt_count = 0;
	struct quota_sums sums;

	(void)state;
	take_and_die(t, &c, false);
	CHECK_INT("nothing was sent", QUOTA_FITS, quotas_look(t, &d, 40, &sums));
	take_and_die(t, &c, true);
	CHECK_INT("it was sent", QUOTA_OVER, quotas_look(t, &d, 40, &sums));
	CHECK_INT("it can be told", 1, quotas_doubts(t, 1, doubts, &doubt_count));
	CHECK_INT("that is in doubt", 1, doubt_count);
	CHECK_INT("that one", 0, memcmp(&doubts[0], &one.id, sizeof(one.id)));
	d.shown = &shown;
	d.shown_count = 1;
	shown.runs = false;
	CHECK_INT("it does not run yet", QUOTA_OVER, quotas_look(t, &d, 50, &sums));
	shown.since = 8;
	d.since_ns = 12; /* as the engine was before the process died */
	CHECK_INT("seen before it was in doubt", QUOTA_OVER, quotas_look(t, &d, 50, &sums));
	d.since_ns = 40;
	CHECK_INT("it ran and has ended", QUOTA_FITS, quotas_look(t, &d, 50, &sums));
	take_and_die(t, &c, true);
	shown.since = 9;
	shown.runs = true;
	CHECK_INT("it runs", QUOTA_OVER, quotas_look(t, &d, 60, &sums));
	CHECK_INT("it can be told", 1, quotas_doubts(t, 1, doubts, &doubt_count));
	CHECK_INT("no doubt left", 0, doubt_count);
	d.shown_count = 0;
	d.since_ns = 61;
	CHECK_INT("and ends", QUOTA_FITS, quotas_look(t, &d, 70, &sums));
	take_and_die(t, &c, true);
	shown.gone = true;
	d.shown_count = 1;
	CHECK_INT("it was removed", QUOTA_FITS, quotas_look(t, &d, 80, &sums));
	take_and_die(t, &c, true);
	d.shown_count = 0;
	CHECK_INT("nobody knows", QUOTA_OVER, quotas_look(t, &d, 90, &sums));
	CHECK_INT("for long", QUOTA_FITS, quotas_look(t, &d, 100 + QUOTA_UNSURE_NS, &sums));
}

/*
 * One start was sent by a process that died, another one was let pass and answered: that the
 * container ran and has ended may be of the other, and the first may still come.
 */
static void a_start_that_another_overtook_counts_on(void **state)
{
	struct quotas *t = table();
	struct quota_thing one = container(1, 100), two = container(2, 100), shown = one;
	struct quota_count c = count(10, &one, limits(1, -1)), d = count(30, &two, limits(1, -1));
	struct quota_hold hold;
	struct quota_sums sums;

	(void)state;
	take_and_die(t, &c, true);
	c.since_ns = 20;
	CHECK_INT("the same once more", QUOTA_FITS, quotas_take(t, &c, 21, false, &hold));
	quotas_sent(t, &hold);
	quotas_settle(t, &hold, 22);
	shown.since = 8;
	shown.runs = false;
	d.shown = &shown;
	d.shown_count = 1;
	CHECK_INT("one of them has run", QUOTA_OVER, quotas_look(t, &d, 40, &sums));
	shown.gone = true;
	CHECK_INT("none can come any more", QUOTA_FITS, quotas_look(t, &d, 50, &sums));
}

static void a_full_table_lets_nothing_through(void **state)
{
	struct quotas *t = table();
	struct quota_hold first, hold;
	int busy = 0;

	(void)state;
	for (int i = 0; i < QUOTA_SLOTS + 100; i++) {
		struct quota_thing one = container(i, 1);
		struct quota_count c = count(10, &one, limits(1 << 30, -1));

		c.key = (uint64_t)(1 + i / 400);
		busy += quotas_take(t, &c, 20, false, i ? &hold : &first) == QUOTA_BUSY;
	}
	CHECK_INT("those that found no room", 100, busy);
	quotas_settle(t, &first, 30);
	{
		struct quota_thing one = container(9999, 1);
		struct quota_count c = count(30, &one, limits(1 << 30, -1));

		c.key = 99;
		CHECK_INT("began before what was dropped", QUOTA_FITS,
			  quotas_take(t, &c, 40, false, &hold));
		CHECK_INT("has to count anew", QUOTA_AGAIN, quotas_take(t, &c, 40, false, &hold));
		c.since_ns = 41;
		CHECK_INT("no more room", QUOTA_BUSY, quotas_take(t, &c, 50, false, &hold));
	}
	t = table();
	busy = 0;
	for (int i = 0; i < QUOTA_OWN_SLOTS + 10; i++) {
		struct quota_thing one = container(i, 1);
		struct quota_count c = count(10, &one, limits(1 << 30, -1));

		busy += quotas_take(t, &c, 20, false, &hold) == QUOTA_BUSY;
	}
	CHECK_INT("one owner's share", 10, busy);
}

/* Each counts, asks, counts again as long as it is told to; what it got stays held. */
static int get_some(struct quotas *t, int from, int tries, const int64_t *most)
{
	int got = 0;

	for (int i = 0; i < tries; i++) {
		struct quota_thing one = container(from + i, 3);
		struct quota_hold hold;
		enum quota_answer answer;

		do {
			struct quota_count c = count(clock_boot_ns(), &one, most);

			answer = quotas_take(t, &c, clock_boot_ns(), false, &hold);
		} while (answer == QUOTA_AGAIN || answer == QUOTA_LOCKED);
		got += answer == QUOTA_FITS;
	}
	return got;
}

static void is_exact_for_many_processes(void **state)
{
	int *got = mmap(NULL, 64 * sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	struct quotas *t = table();
	int sum = 0;

	(void)state;
	for (int i = 0; i < 64; i++)
		if (fork() == 0) {
			got[i] = get_some(t, 100 * i, 20, limits(100, 200));
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	for (int i = 0; i < 64; i++)
		sum += got[i];
	CHECK_INT("3 each of 200: as many as fit", 66, sum);
	munmap(got, 64 * sizeof(int));
}

/* Whoever is killed with the lock, or with half an entry, leaves a table that works. */
static void killed_processes_leave_nothing_behind(void **state)
{
	struct quotas *t = table();
	struct quota_thing one = container(-1, 1);
	struct quota_sums sums;

	(void)state;
	for (int i = 0; i < 300; i++) {
		struct quota_count c;
		pid_t pid = fork();

		if (pid == 0)
			for (;;) {
				struct quota_hold hold;
				struct quota_thing two = container(i, 1);

				c = count(clock_boot_ns(), &two, limits(1000, -1));
				if (quotas_take(t, &c, clock_boot_ns(), false, &hold) == QUOTA_FITS)
					quotas_release(t, &hold);
			}
		usleep((useconds_t)(i % 40) * 25);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		quotas_died(t, pid, clock_boot_ns());
		c = count(clock_boot_ns(), &one, limits(1000, -1));
		CHECK_INT("works", QUOTA_FITS, quotas_look(t, &c, clock_boot_ns(), &sums));
		CHECK_INT("nothing is held", 0, sums.used[QUOTA_CONTAINERS]);
	}
}

static void ids_and_keys_are_told_apart(void **state)
{
	struct hash a = quota_id("volume", "x"), b = quota_id("unnamed", "x");

	(void)state;
	CHECK_INT("kinds", 1, memcmp(&a, &b, sizeof(a)) != 0);
	CHECK_INT("engines", 1, quota_key("a", "bc") != quota_key("ab", "c"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_held_counts),
		cmocka_unit_test(what_came_between_is_counted_anew),
		cmocka_unit_test(sums_are_exact),
		cmocka_unit_test(an_update_in_flight_counts_with_a_start),
		cmocka_unit_test(a_start_has_the_limits_of_an_update_in_flight),
		cmocka_unit_test(what_rules_let_pass_is_held),
		cmocka_unit_test(a_dead_process_holds_what_it_sent),
		cmocka_unit_test(a_start_that_another_overtook_counts_on),
		cmocka_unit_test(a_full_table_lets_nothing_through),
		cmocka_unit_test(is_exact_for_many_processes),
		cmocka_unit_test(killed_processes_leave_nothing_behind),
		cmocka_unit_test(ids_and_keys_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
