/* The table of rates: the pace, and that many processes together take no more than there is. */
#include "proxy/rates.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static const struct identity alice = {.name = "alice", .owner = "a", .profile = "p"};
static const struct identity bob = {.name = "bob", .owner = "b", .profile = "p"};
static const struct rate twenty = {"launch", "20/min", 20, 60 * SECOND};
static const struct rate three = {"exec", "3/s", 3, SECOND};

static struct rates *table(void)
{
	struct err err = {0};
	struct rates *t = rates_create(&err);

	CHECK_INT("table", 1, t != NULL);
	return t;
}

static int take(struct rates *t, const struct identity *who, const struct rate *rate, uint64_t now)
{
	uint64_t wait;
	int n = 0;

	while (n < 100 && rates_take(t, who, rate, now, &wait))
		n++;
	return n;
}

static void keeps_the_pace(void **state)
{
	static const struct {
		const char *name;
		uint64_t at_ms;
		int fit;
	} rows[] = {
		{"all at once", 0, 20},
		{"no more in the same moment", 0, 0},
		{"not before its time", 2999, 0},
		{"one after a twentieth", 3000, 1},
		{"two after two", 9000, 2},
		{"never more than all", 3600000, 20},
		{"a clock that goes back", 9000, 0},
	};
	struct rates *t = table();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_INT(rows[i].name, rows[i].fit,
			  take(t, &alice, &twenty, SECOND + rows[i].at_ms * 1000000));
}

static void says_how_long_to_wait(void **state)
{
	struct rates *t = table();
	uint64_t wait = 0;

	(void)state;
	CHECK_INT("all", 20, take(t, &alice, &twenty, SECOND));
	CHECK_INT("none left", 0, rates_take(t, &alice, &twenty, SECOND, &wait));
	CHECK_INT("a twentieth of a minute", 3 * SECOND, wait);
	CHECK_INT("a little before", 0, rates_take(t, &alice, &twenty, SECOND + wait - 1, &wait));
	CHECK_INT("nearly there", 1, wait);
	CHECK_INT("there", 1, rates_take(t, &alice, &twenty, SECOND + 3 * SECOND, &wait));
}

static void callers_and_rates_are_told_apart(void **state)
{
	struct identity stranger = {
		.name = "", .owner = "s", .profile = "p", .has_cred = true, .uid = 7};
	struct rates *t = table();

	(void)state;
	CHECK_INT("alice", 20, take(t, &alice, &twenty, SECOND));
	CHECK_INT("bob", 20, take(t, &bob, &twenty, SECOND));
	CHECK_INT("another rate", 3, take(t, &alice, &three, SECOND));
	CHECK_INT("a caller without a name", 3, take(t, &stranger, &three, SECOND));
	stranger.uid = 8;
	CHECK_INT("another one", 3, take(t, &stranger, &three, SECOND));
}

static void what_is_given_back_can_be_taken(void **state)
{
	struct rates *t = table();

	(void)state;
	CHECK_INT("all", 3, take(t, &alice, &three, SECOND));
	rates_give_back(t, &alice, &three);
	CHECK_INT("one again", 1, take(t, &alice, &three, SECOND));
}

/* Callers that come and go for ever find room; those that are at it keep theirs. */
static void old_callers_make_room(void **state)
{
	struct rates *t = table();
	int refused = 0;
	uint64_t wait;

	(void)state;
	for (int i = 0; i < 4 * RATES_SLOTS; i++) {
		char name[16];
		struct identity who = {.name = name, .owner = "x", .profile = "p"};

		snprintf(name, sizeof(name), "%d", i);
		/* A minute passes for every thousand callers. */
		refused +=
			!rates_take(t, &who, &three, (uint64_t)(1 + i / 1000) * 90 * SECOND, &wait);
	}
	CHECK_INT("refused", 0, refused);
}

static void is_exact_for_many_processes(void **state)
{
	int *taken = mmap(NULL, 64 * sizeof(int), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const struct rate many = {"launch", "1000/min", 1000, 60 * SECOND};
	struct rates *t = table();
	int sum = 0;

	(void)state;
	for (int i = 0; i < 64; i++)
		if (fork() == 0) {
			uint64_t wait;

			for (int k = 0; k < 50; k++)
				taken[i] += rates_take(t, &alice, &many, SECOND, &wait);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	for (int i = 0; i < 64; i++)
		sum += taken[i];
	CHECK_INT("3200 asked, 1000 got", 1000, sum);
	munmap(taken, 64 * sizeof(int));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_pace),
		cmocka_unit_test(says_how_long_to_wait),
		cmocka_unit_test(callers_and_rates_are_told_apart),
		cmocka_unit_test(what_is_given_back_can_be_taken),
		cmocka_unit_test(old_callers_make_room),
		cmocka_unit_test(is_exact_for_many_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
