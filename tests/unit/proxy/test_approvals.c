/* The table of approvals: who may answer, how often and how long an answer counts, and its bounds.
 */
#include "proxy/approvals.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOW    UINT64_C(1000000)
#define MINUTE UINT64_C(60000)
#define ASKER  2001

static struct approvals *table(void)
{
	struct err err = {0};
	struct approvals *t = approvals_create(&err);

	CHECK_INT("table", 1, t != NULL);
	return t;
}

static struct approval_question question(const char *text, const char *caller)
{
	struct approval_question q = {.key = hash_of(span_of(text)),
				      .caller = hash_of(span_of(caller)),
				      .facts = span_of("{\"a\":1}"),
				      .has_uid = true,
				      .uid = ASKER,
				      .need = 1};

	snprintf(q.what.id, sizeof(q.what.id), "%.30s", text);
	return q;
}

static enum approval_asked ask(struct approvals *t, const struct approval_question *q, uint64_t now,
			       struct approval_ref *ref)
{
	struct approval_row row;

	return approvals_ask(t, q, now, ref, &row);
}

static enum approval_said say(struct approvals *t, const char *id, uint32_t uid, bool allow,
			      uint64_t now)
{
	const struct approval_answer a = {
		.id = id, .uid = uid, .allow = allow, .for_ms = 10 * MINUTE, .times = 2};

	return approvals_say(t, &a, false, now);
}

static int take_all(struct approvals *t, const struct approval_question *q, uint64_t now)
{
	struct approval_ref ref;
	struct approval_row row;
	int n = 0;

	while (n < 100 && approvals_take(t, &q->key, now, &ref, &row))
		n++;
	return n;
}

static void passes_so_often_and_so_long(void **state)
{
	static const struct {
		const char *label;
		uint64_t after_ms;
		bool answered, allow;
		int pass;
	} rows[] = {
		{"nobody has answered", 0, false, false, 0},
		{"a no", 0, true, false, 0},
		{"a yes, twice", 0, true, true, 2},
		{"just before its end", 10 * MINUTE - 1, true, true, 2},
		{"at its end", 10 * MINUTE, true, true, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct approvals *t = table();
		struct approval_question q = question("q", "alice"), other = question("p", "alice");
		struct approval_ref ref;

		CHECK_INT(rows[i].label, ASKED_OPEN, ask(t, &q, NOW, &ref));
		if (rows[i].answered)
			CHECK_INT(rows[i].label, SAID_DONE, say(t, "q", 1, rows[i].allow, NOW));
		CHECK_INT(rows[i].label, 0, take_all(t, &other, NOW + rows[i].after_ms));
		CHECK_INT(rows[i].label, rows[i].pass, take_all(t, &q, NOW + rows[i].after_ms));
	}
}

static void says_who_may_answer(void **state)
{
	struct approvals *t = table();
	struct approval_question q = question("one", "alice"), two = question("two", "alice");
	struct approval_ref ref;

	(void)state;
	two.need = 2;
	ask(t, &q, NOW, &ref);
	ask(t, &two, NOW, &ref);
	CHECK_INT("no such question", SAID_MISSING, say(t, "three", 1, true, NOW));
	CHECK_INT("the asker", SAID_OWN, say(t, "one", ASKER, true, NOW));
	CHECK_INT("the asker says no", SAID_OWN, say(t, "one", ASKER, false, NOW));
	CHECK_INT("another", SAID_DONE, say(t, "one", 1, true, NOW));
	CHECK_INT("it is answered", SAID_MISSING, say(t, "one", 2, false, NOW));
	CHECK_INT("the first of two", SAID_MORE, say(t, "two", 1, true, NOW));
	CHECK_INT("one is not enough", 0, take_all(t, &two, NOW));
	CHECK_INT("the same again", SAID_TWICE, say(t, "two", 1, true, NOW));
	CHECK_INT("the second of two", SAID_DONE, say(t, "two", 2, true, NOW));
	CHECK_INT("two are", 2, take_all(t, &two, NOW));
}

static void a_no_outweighs_the_first_yes(void **state)
{
	struct approvals *t = table();
	struct approval_question q = question("two", "alice");
	struct approval_ref ref;

	(void)state;
	q.need = 2;
	ask(t, &q, NOW, &ref);
	CHECK_INT("the first", SAID_MORE, say(t, "two", 1, true, NOW));
	CHECK_INT("a no", SAID_DONE, say(t, "two", 2, false, NOW));
	CHECK_INT("asked again", ASKED_DENIED, ask(t, &q, NOW + MINUTE, &ref));
	CHECK_INT("after its time", ASKED_OPEN, ask(t, &q, NOW + 10 * MINUTE, &ref));
	CHECK_INT("nothing is left of the first", SAID_MORE,
		  say(t, "two", 1, true, NOW + 10 * MINUTE));
}

static void like_questions_are_one(void **state)
{
	struct approvals *t = table();
	struct approval_question q = question("q", "alice");
	struct approval_ref first, second;
	struct approval_row rows[APPROVALS_MAX];
	uint64_t serial;

	(void)state;
	ask(t, &q, NOW, &first);
	ask(t, &q, NOW, &second);
	CHECK_INT("one question", 1, (int)approvals_list(t, NOW, rows, &serial));
	CHECK_INT("two wait for it", 2, (int)rows[0].waiting);
	approvals_leave(t, &first, true);
	CHECK_INT("one of them has gone", 1, (int)approvals_list(t, NOW, rows, &serial));
	approvals_leave(t, &second, true);
	CHECK_INT("and the other", 0, (int)approvals_list(t, NOW, rows, &serial));
	ask(t, &q, NOW, &first);
	approvals_leave(t, &first, false);
	CHECK_INT("waited too long", 1, (int)approvals_list(t, NOW, rows, &serial));
	CHECK_INT("nobody cares", 0,
		  (int)approvals_list(t, NOW + APPROVALS_OPEN_MS, rows, &serial));
}

static void what_was_not_used_stays(void **state)
{
	struct approvals *t = table();
	struct approval_question q = question("q", "alice");
	struct approval_ref ref;
	struct approval_row row;

	(void)state;
	ask(t, &q, NOW, &ref);
	CHECK_INT("yes", SAID_DONE, say(t, "q", 1, true, NOW));
	CHECK_INT("first", 1, approvals_take(t, &q.key, NOW, &ref, &row));
	CHECK_INT("second", 1, approvals_take(t, &q.key, NOW, &ref, &row));
	CHECK_INT("third", 0, approvals_take(t, &q.key, NOW, &ref, &row));
	approvals_give_back(t, &ref);
	CHECK_INT("again", 1, take_all(t, &q, NOW));
}

static void is_bounded(void **state)
{
	struct approvals *t = table();
	struct approval_ref ref;
	char text[32], caller[32];
	int open = 0;

	(void)state;
	for (int i = 0; i < APPROVALS_OWN_MAX + 4; i++) {
		snprintf(text, sizeof(text), "own %d", i);
		struct approval_question q = question(text, "alice");

		open += ask(t, &q, NOW, &ref) == ASKED_OPEN;
	}
	CHECK_INT("one caller's", APPROVALS_OWN_MAX, open);
	for (int i = 0; i < APPROVALS_MAX; i++) {
		snprintf(text, sizeof(text), "all %d", i);
		snprintf(caller, sizeof(caller), "caller %d", i);
		struct approval_question q = question(text, caller);

		open += ask(t, &q, NOW, &ref) == ASKED_OPEN;
	}
	CHECK_INT("all", APPROVALS_MAX, open);
	struct approval_question late = question("late", "dave");

	CHECK_INT("full", ASKED_FULL, ask(t, &late, NOW, &ref));
	CHECK_INT("when they have ended", ASKED_OPEN, ask(t, &late, NOW + APPROVALS_OPEN_MS, &ref));
}

static void long_facts_are_left_out(void **state)
{
	static char text[APPROVALS_FACTS_MAX + 1];
	struct approvals *t = table();
	struct approval_question q = question("q", "alice"), p = question("p", "alice");
	struct approval_ref ref;
	struct approval_row row;
	struct buf facts;

	(void)state;
	memset(text, 'x', sizeof(text));
	q.facts = (struct span){text, sizeof(text)};
	ask(t, &q, NOW, &ref);
	ask(t, &p, NOW, &ref);
	buf_init(&facts, APPROVALS_FACTS_MAX);
	CHECK_INT("long", 1, approvals_show(t, "q", NOW, &row, &facts));
	CHECK_INT("none", 0, (int)buf_len(&facts));
	CHECK_INT("short", 1, approvals_show(t, "p", NOW, &row, &facts));
	CHECK_INT("all", 7, (int)buf_len(&facts));
	buf_fini(&facts);
}

/* The lock is its first word. */
static void a_dead_process_frees_the_lock(void **state)
{
	struct approvals *t = table();
	struct approval_question q = question("q", "alice");
	struct approval_ref ref;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		*(volatile int32_t *)(void *)t = (int32_t)getpid();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	CHECK_INT("it cannot be had", ASKED_LOCKED, ask(t, &q, NOW, &ref));
	CHECK_INT("nor taken from", 0, take_all(t, &q, NOW));
	approvals_died(t, getpid());
	CHECK_INT("another's death", ASKED_LOCKED, ask(t, &q, NOW, &ref));
	approvals_died(t, pid);
	CHECK_INT("its own", ASKED_OPEN, ask(t, &q, NOW, &ref));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passes_so_often_and_so_long),
		cmocka_unit_test(says_who_may_answer),
		cmocka_unit_test(a_no_outweighs_the_first_yes),
		cmocka_unit_test(like_questions_are_one),
		cmocka_unit_test(what_was_not_used_stays),
		cmocka_unit_test(is_bounded),
		cmocka_unit_test(long_facts_are_left_out),
		cmocka_unit_test(a_dead_process_frees_the_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
