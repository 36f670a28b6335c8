/* What is only counted above a rate: windows, sums, many processes, and deaths in the middle. */
#include "proxy/suppressed.h"
#include "tests/unit/check.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define START  (UINT64_C(100) * SECOND)
#define MANY   8
#define EACH   20000

static const struct identity alice = {
	.name = "alice", .owner = "a", .profile = "p", .listener = "l"};
static const struct identity bob = {.name = "bob", .owner = "b", .profile = "p", .listener = "l"};

static struct suppressed *table(void)
{
	struct err err = {0};
	struct suppressed *t = suppressed_create(&err);

	CHECK_INT("table", 1, t != NULL);
	return t;
}

static bool count(struct suppressed *t, const struct identity *who, const char *op_class,
		  uint64_t at_ns)
{
	const struct suppressed_time now = {at_ns, at_ns + 7};
	char id[SUPPRESSED_ID];

	return suppressed_count(t, who, op_class, &now, id);
}

static bool next(struct suppressed *t, uint64_t at_ns, struct suppressed_sum *ret)
{
	size_t at = 0;

	return suppressed_next(t, at_ns, false, &at, ret);
}

/* All that there is, and it is on disk then. */
static uint64_t take_all(struct suppressed *t, uint64_t at_ns)
{
	struct suppressed_sum sum;
	uint64_t all = 0;

	for (size_t at = 0; suppressed_next(t, at_ns, true, &at, &sum);) {
		if (suppressed_told(t, &sum.ref))
			all += sum.count;
	}
	return all;
}

static void the_first_of_a_window_is_whole(void **state)
{
	static const struct {
		const char *name;
		const struct identity *who;
		const char *op_class;
		uint64_t after_ns;
		bool counted;
	} rows[] = {
		{"the first", &alice, "launch", 0, false},
		{"the second", &alice, "launch", 1, true},
		{"another class", &alice, "exec", 2, false},
		{"another caller", &bob, "launch", 3, false},
		{"the last of the window", &alice, "launch", SUPPRESSED_WINDOW_NS - 1, true},
		{"the first of the next", &alice, "launch", SUPPRESSED_WINDOW_NS, false},
		{"the second of it", &alice, "launch", SUPPRESSED_WINDOW_NS + 1, true},
	};
	struct suppressed *t = table();
	struct suppressed_sum sum;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_INT(rows[i].name, rows[i].counted,
			  count(t, rows[i].who, rows[i].op_class, START + rows[i].after_ns));
	CHECK_INT("a sum", 1, next(t, START + SUPPRESSED_WINDOW_NS + 1, &sum));
	CHECK_INT("of two", 2, sum.count);
	CHECK_INT("the first", START + 1 + 7, sum.first_ns);
	CHECK_INT("the last", START + SUPPRESSED_WINDOW_NS - 1 + 7, sum.last_ns);
	CHECK_STR("who", "alice", sum.identity);
	CHECK_STR("owner", "a", sum.owner);
	CHECK_STR("profile", "p", sum.profile);
	CHECK_STR("listener", "l", sum.listener);
	CHECK_STR("class", "launch", sum.op_class);
}

static void who_is_counted_knows_the_sum(void **state)
{
	const struct suppressed_time now = {START, START};
	char id[SUPPRESSED_ID] = "";
	struct suppressed *t = table();
	struct suppressed_sum sum;

	(void)state;
	CHECK_INT("whole", 0, suppressed_count(t, &alice, "launch", &now, id));
	CHECK_STR("has its own", "", id);
	CHECK_INT("counted", 1, suppressed_count(t, &alice, "launch", &now, id));
	CHECK_INT("a sum", 1, next(t, START + SUPPRESSED_WINDOW_NS, &sum));
	CHECK_STR("that of the sum", sum.id, id);
}

static void a_sum_stays_until_it_is_told(void **state)
{
	struct suppressed *t = table();
	struct suppressed_sum first, again;
	uint64_t over = START + SUPPRESSED_WINDOW_NS;

	(void)state;
	CHECK_INT("whole", 0, count(t, &alice, "launch", START));
	CHECK_INT("counted", 1, count(t, &alice, "launch", START));
	CHECK_INT("not yet", 0, next(t, over - 1, &first));
	CHECK_INT("over", 1, next(t, over, &first));
	CHECK_INT("one tells it", 0, next(t, over, &again));
	CHECK_INT("who told it does not answer", 1, next(t, over + SUPPRESSED_AGAIN_NS, &again));
	CHECK_STR("it is the same", first.id, again.id);
	suppressed_untold(t, &again.ref);
	CHECK_INT("it could not be recorded", 1, next(t, over + SUPPRESSED_AGAIN_NS, &again));
	CHECK_INT("told", 1, suppressed_told(t, &again.ref));
	CHECK_INT("told before", 0, suppressed_told(t, &first.ref));
	suppressed_untold(t, &first.ref);
	CHECK_INT("it is on disk", 0, next(t, over + 9 * SUPPRESSED_AGAIN_NS, &again));
	CHECK_INT("and the slot is free", 0, count(t, &alice, "launch", over));
	CHECK_INT("for another", 1, count(t, &alice, "launch", over));
	CHECK_INT("of which no late answer takes anything", 1, take_all(t, over));
}

/* What does not fit is recorded whole, and those that are counted are not disturbed. */
static void a_full_table_counts_no_more(void **state)
{
	struct suppressed *t = table();
	uint64_t counted = 0;

	(void)state;
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 4 * SUPPRESSED_SLOTS; i++) {
			char name[16];
			struct identity who = {
				.name = name, .owner = "x", .profile = "p", .listener = "l"};

			snprintf(name, sizeof(name), "%d", i);
			counted += count(t, &who, "read", START);
		}
	CHECK_INT("as many as fit", 1, counted > 0 && counted <= SUPPRESSED_SLOTS);
	CHECK_INT("are in sums", counted, take_all(t, START));
	CHECK_INT("then there is room", 0, count(t, &alice, "read", START));
	CHECK_INT("again", 1, count(t, &alice, "read", START));
}

struct tally {
	_Atomic uint64_t whole, counted, told;
};

/*
 * Its windows are short, so that they end while others count in them.  Clocks differ, so that a sum
 * may be told by several: it counts once.
 */
static void ask(struct suppressed *t, struct tally *all)
{
	for (uint64_t i = 0; i < EACH; i++) {
		uint64_t at_ns = START + i * (SUPPRESSED_WINDOW_NS / 50);
		struct suppressed_sum sum;
		size_t at = 0;

		if (count(t, i % 3 ? &alice : &bob, "launch", at_ns))
			all->counted++;
		else
			all->whole++;
		while (i % 10 == 0 && suppressed_next(t, at_ns, false, &at, &sum)) {
			if (suppressed_told(t, &sum.ref))
				all->told += sum.count;
		}
	}
}

static void is_exact_for_many_processes(void **state)
{
	struct tally *all =
		mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct suppressed *t = table();
	uint64_t told;

	(void)state;
	for (int i = 0; i < MANY; i++)
		if (fork() == 0) {
			ask(t, all);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	told = all->told + take_all(t, START);
	CHECK_INT("all were answered", MANY * EACH, all->whole + all->counted);
	CHECK_INT("what was counted is told", all->counted, told);
	CHECK_INT("most was counted", 1, all->counted > all->whole);
	munmap(all, sizeof(*all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_of_a_window_is_whole),
		cmocka_unit_test(who_is_counted_knows_the_sum),
		cmocka_unit_test(a_sum_stays_until_it_is_told),
		cmocka_unit_test(a_full_table_counts_no_more),
		cmocka_unit_test(is_exact_for_many_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
