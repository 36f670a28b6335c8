/* What an engine was asked for explains what happens there; and the table holds what others wrote.
 */
#include "gate/base/clock.h"
#include "proxy/watched.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>

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

	return watched_explain(w, backend, &h, clock_boot_ms(), false);
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
	char *at;

	(void)state;
	watched_add(w, &text);
	at = memmem(w, TABLE, DECISION, strlen(DECISION));
	assert_non_null(at);
	memset(at, 'x', 40); /* the whole field */
	CHECK_INT("explained", 1, watched_explain(w, 0, &h, clock_boot_ms(), false));
	CHECK_INT("its start as well", 1, explains(w, 0, "c1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_decision_explains_one_start),
		cmocka_unit_test(long_names_explain_as_well),
		cmocka_unit_test(what_was_not_sent_explains_nothing),
		cmocka_unit_test(texts_without_an_end_are_read_no_further),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
