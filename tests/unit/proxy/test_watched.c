/* What an engine was asked for explains what happens there; and the table holds what others wrote.
 */
#include "gate/base/clock.h"
#include "proxy/watched.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DECISION "01900000-0000-7000-8000-000000000001"
#define TABLE    ((size_t)1 << 20) /* bytes of it that are looked through */

static struct watched *table(void)
{
	struct err err = {0};
	struct watched *w = watched_create(&err);

	CHECK_STR("table", "", err.msg);
	return w;
}

static struct happening start_of(const char *container)
{
	return (struct happening){.effect = EFFECT_START,
				  .kind = "container",
				  .id = container,
				  .container = container,
				  .name = "",
				  .image = "",
				  .decision = ""};
}

static bool explains(struct watched *w, size_t backend, const char *container)
{
	const struct happening h = start_of(container);
	const struct watched_read now = {.at_ms = clock_boot_ms()};

	return watched_explain(w, backend, &h, &now);
}

static void a_decision_explains_one_start(void **state)
{
	struct watched *w = table();
	deed_ref refs[DEEDS_OF_ONE];

	(void)state;
	CHECK_INT("nobody decided", 0, explains(w, 0, "c1"));
	watched_note(w, 0, OP_CONTAINER_START, "c1", DECISION, refs);
	CHECK_INT("is awaited", 1, watched_starts(w, 0, "c1"));
	CHECK_INT("a longer name", 0, explains(w, 0, "c11"));
	CHECK_INT("a shorter name", 0, explains(w, 0, "c"));
	CHECK_INT("another engine", 0, explains(w, 1, "c1"));
	CHECK_INT("explained", 1, explains(w, 0, "c1"));
	CHECK_INT("used up", 0, explains(w, 0, "c1"));
	CHECK_INT("is awaited no more", 0, watched_starts(w, 0, "c1"));
}

/* Read late: a container was attached by its start, and then by a decision. */
static void a_later_decision_comes_last(void **state)
{
	struct watched *w = table();
	struct watched_read now = {.line = 0};
	deed_ref refs[DEEDS_OF_ONE];
	struct happening h = start_of("c1");

	(void)state;
	h.effect = EFFECT_CONNECT;
	h.at_ns = clock_unix_ns();
	watched_note(w, 0, OP_NETWORK_CONNECT, "c1", DECISION, refs);
	now.at_ms = clock_boot_ms();
	CHECK_INT("from before it", 0, watched_explain_in_order(w, 0, &h, &now));
	CHECK_INT("an engine whose clock is slow", 1, watched_explain(w, 0, &h, &now));
	watched_note(w, 0, OP_NETWORK_CONNECT, "c1", DECISION, refs);
	now.at_ms = clock_boot_ms();
	h.at_ns = clock_unix_ns();
	CHECK_INT("from after it", 1, watched_explain_in_order(w, 0, &h, &now));
	CHECK_INT("used up", 0, watched_explain_in_order(w, 0, &h, &now));
}

/* A watcher died when it had used a decision up, and before it knew the line. */
static void a_line_that_is_read_again_is_explained_again(void **state)
{
	struct watched *w = table();
	struct watched_read first = {.line = watched_line(span_of("a"))}, second = first;
	deed_ref refs[DEEDS_OF_ONE];
	const struct happening h = start_of("c1");

	(void)state;
	watched_note(w, 0, OP_CONTAINER_START, "c1", DECISION, refs);
	first.at_ms = second.at_ms = clock_boot_ms();
	second.line = watched_line(span_of("b"));
	CHECK_INT("explained", 1, watched_explain(w, 0, &h, &first));
	CHECK_INT("another one", 0, watched_explain(w, 0, &h, &second));
	CHECK_INT("the same", 1, watched_explain(w, 0, &h, &first));
}

/* What it had begun can come for a while; what it ended before stays as it was. */
static void a_dead_workers_decisions_come_to_an_end(void **state)
{
	struct watched *w = table();
	struct watched_read later = {.line = 0};
	deed_ref refs[DEEDS_OF_ONE];
	const struct happening h = start_of("c1");
	uint64_t before_ms;

	(void)state;
	watched_note(w, 0, OP_CONTAINER_START, "c1", DECISION, refs);
	later.at_ms = clock_boot_ms() + DEED_LATE_MS + 1;
	watched_died(w, getpid() + 1);
	CHECK_INT("another one died", 1, watched_explain(w, 0, &h, &later));
	watched_note(w, 0, OP_CONTAINER_START, "c1", DECISION, refs);
	watched_note(w, 0, OP_CONTAINER_START, "c1", DECISION, refs);
	before_ms = clock_boot_ms();
	watched_died(w, getpid());
	later.at_ms = clock_boot_ms() + DEED_LATE_MS + 1; /* however long that took */
	CHECK_INT("too late", 0, watched_explain(w, 0, &h, &later));
	later.at_ms = before_ms + DEED_LATE_MS - 1;
	CHECK_INT("late", 1, watched_explain(w, 0, &h, &later));
	watched_died(NULL, getpid());
}

/* A list told of it; then its event comes, once. */
static void what_a_list_told_is_no_news(void **state)
{
	struct watched_backend *b = watched_of(table(), 0);
	struct happening h = start_of("c1"), other = start_of("c2");

	(void)state;
	h.at_ns = UINT64_C(1700000000000000000);
	other.at_ns = h.at_ns;
	watched_found(b, &h);
	CHECK_INT("another container", 0, watched_was_found(b, &other));
	h.at_ns += UINT64_C(5000000000);
	CHECK_INT("a later start", 0, watched_was_found(b, &h));
	h.at_ns -= UINT64_C(3800000000);
	CHECK_INT("the next second", 1, watched_was_found(b, &h));
	CHECK_INT("once", 0, watched_was_found(b, &h));
	h.effect = EFFECT_EXEC;
	watched_found(b, &h);
	CHECK_INT("lists tell of no command", 0, watched_was_found(b, &h));
}

/* An image with its registry and its digest takes more than a field; two that begin alike are two.
 */
static void long_names_explain_as_well(void **state)
{
	struct watched *w = table();
	deed_ref refs[DEEDS_OF_ONE];
	char name[300], other[300];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	memcpy(other, name, sizeof(name));
	other[sizeof(other) - 2] = 'o';
	watched_note(w, 0, OP_CONTAINER_START, name, DECISION, refs);
	CHECK_INT("another long name", 0, explains(w, 0, other));
	CHECK_INT("explained", 1, explains(w, 0, name));
	CHECK_INT("used up", 0, explains(w, 0, name));
}

static void what_was_not_sent_explains_nothing(void **state)
{
	struct watched *w = table();
	deed_ref refs[DEEDS_OF_ONE];

	(void)state;
	watched_note(w, 0, OP_CONTAINER_START, "c1", DECISION, refs);
	watched_ended(w, refs, false, 0);
	CHECK_INT("not sent", 0, explains(w, 0, "c1"));
}

/* A worker that was taken over can write anything there; who reads it does not read on behind it.
 */
static void texts_without_an_end_are_read_no_further(void **state)
{
	struct watched *w = table();
	const struct deed_text text = {
		.effect = EFFECT_CREATE, .key = "", .decision = DECISION, .many = true};
	const struct happening h = {.effect = EFFECT_CREATE,
				    .kind = "container",
				    .id = "c1",
				    .container = "c1",
				    .name = "",
				    .image = "",
				    .decision = "",
				    .image_by_id = true};
	struct watched_read now = {.line = 0};
	char *at;

	(void)state;
	watched_add(w, &text);
	now.at_ms = clock_boot_ms();
	at = memmem(w, TABLE, DECISION, strlen(DECISION));
	assert_non_null(at);
	memset(at, 'x', 40); /* the whole field */
	CHECK_INT("explained", 1, watched_explain(w, 0, &h, &now));
	CHECK_INT("its start as well", 1, explains(w, 0, "c1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_decision_explains_one_start),
		cmocka_unit_test(a_later_decision_comes_last),
		cmocka_unit_test(a_line_that_is_read_again_is_explained_again),
		cmocka_unit_test(a_dead_workers_decisions_come_to_an_end),
		cmocka_unit_test(what_a_list_told_is_no_news),
		cmocka_unit_test(long_names_explain_as_well),
		cmocka_unit_test(what_was_not_sent_explains_nothing),
		cmocka_unit_test(texts_without_an_end_are_read_no_further),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
