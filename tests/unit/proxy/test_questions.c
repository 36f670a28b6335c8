/* Whose question the resolver gets next: one caller's many do not keep out another's one. */
#include "gate/base/io.h"
#include "proxy/worker_priv.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <unistd.h>

#define RUNS_EACH 20

struct asker {
	struct exchange x;
	struct lookup_run runs[LOOKUPS_MAX];
};

static struct worker *w;
static struct frame_conn resolver; /* the other end */

static int open_worker(void **state)
{
	struct err err = {0};
	int pair[2];

	(void)state;
	w = calloc(1, sizeof(*w));
	if (!w || io_pair(pair, &err) < 0 || io_nonblock(pair[0], &err) < 0 ||
	    io_nonblock(pair[1], &err) < 0)
		return -1;
	frame_init(&w->resolver, pair[0], 1u << 20);
	frame_init(&resolver, pair[1], 1u << 20);
	return 0;
}

static int close_worker(void **state)
{
	(void)state;
	frame_close(&w->resolver);
	frame_close(&resolver);
	free(w);
	return 0;
}

static void ask(struct asker *a, const char *owner, size_t count)
{
	*a = (struct asker){.x = {.worker = w, .runs = a->runs}};
	a->x.call.owner = owner;
	a->x.call.lookup_count = a->x.runs_open = count;
	for (size_t i = 0; i < count; i++) {
		a->x.call.lookups[i].target = owner;
		a->runs[i] = (struct lookup_run){.x = &a->x,
						 .lookup = &a->x.call.lookups[i],
						 .ticket = ++w->next_ticket,
						 .waits = true};
	}
	a->x.next = w->exchanges;
	w->exchanges = &a->x;
	questions_send(w);
}

/* How many questions of an owner have come; the last ticket of all in *ret. */
static unsigned came(const char *owner, uint64_t *ret)
{
	struct span frame;
	unsigned n = 0;

	assert_true(frame_flush(&w->resolver));
	frame_fill(&resolver);
	while (frame_next(&resolver, &frame)) {
		memcpy(ret, frame.at, sizeof(*ret));
		n += span_is(span_skip(frame, sizeof(*ret)), owner);
	}
	return n;
}

static void one_owner_has_a_few_under_way(void **state)
{
	static struct asker many, one;
	uint64_t last = 0;

	(void)state;
	ask(&many, "many", RUNS_EACH);
	CHECK_INT("of twenty", QUESTIONS_OWN_MAX, came("many", &last));
	ask(&one, "one", 1);
	CHECK_INT("the other's is sent at once", 1, came("one", &last));
	questions_answered(w, last); /* the other's */
	questions_send(w);
	CHECK_INT("which makes no room for the many", 0, came("many", &last));
	questions_answered(w, 1);
	questions_send(w);
	CHECK_INT("an answer of theirs does", 1, came("many", &last));
	CHECK_INT("the oldest is next", QUESTIONS_OWN_MAX + 1, last);
}

static void the_one_with_the_fewest_is_next(void **state)
{
	static struct asker askers[QUESTIONS_MAX / QUESTIONS_OWN_MAX], late;
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	uint64_t last = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(askers) / sizeof(*askers); i++) {
		ask(&askers[i], names[i], RUNS_EACH);
		CHECK_INT(names[i], QUESTIONS_OWN_MAX, came(names[i], &last));
	}
	ask(&late, "late", 2);
	CHECK_INT("all places are taken", 0, came("late", &last));
	questions_answered(w, 1); /* of the first, who has older questions that wait */
	questions_send(w);
	CHECK_INT("the late one is next", 1, came("late", &last));
}

static void who_hung_up_still_counts(void **state)
{
	static struct asker gone, again;
	uint64_t last = 0;

	(void)state;
	ask(&gone, "same", QUESTIONS_OWN_MAX);
	CHECK_INT("sent", QUESTIONS_OWN_MAX, came("same", &last));
	w->exchanges = NULL; /* its exchange is gone, and the resolver works on all the same */
	ask(&again, "same", 1);
	CHECK_INT("not sent", 0, came("same", &last));
	questions_lost(w);
	questions_send(w);
	CHECK_INT("a new resolver has nothing to do", 1, came("same", &last));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_owner_has_a_few_under_way, open_worker,
						close_worker),
		cmocka_unit_test_setup_teardown(the_one_with_the_fewest_is_next, open_worker,
						close_worker),
		cmocka_unit_test_setup_teardown(who_hung_up_still_counts, open_worker,
						close_worker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
