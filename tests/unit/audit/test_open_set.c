/* The set of open decisions against a plain list. */
#include "audit/open_set_priv.h"
#include "audit/pairing_priv.h"
#include "tests/unit/audit/fixture.h"
#include "tests/unit/check.h"

#include <stdlib.h>

#define KINDS 500

static void ids_are_read_strictly(void **state)
{
	static const struct {
		const char *label, *text;
		int want;
	} cases[] = {
		{"good", "0190abcd-0123-7abc-8def-0123456789ab", 0},
		{"upper case", "0190ABCD-0123-7abc-8def-0123456789ab", -1},
		{"short", "0190abcd-0123-7abc-8def-0123456789a", -1},
		{"long", "0190abcd-0123-7abc-8def-0123456789abc", -1},
		{"dash moved", "0190abcd0-123-7abc-8def-0123456789ab", -1},
		{"dash at the end", "0190abcd-0123-7abc-8def-0123456789a-", -1},
		{"empty", "", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct decision_id id;
		char back[37];

		CHECK_INT(cases[i].label, cases[i].want,
			  decision_id_parse(span_of(cases[i].text), &id));
		if (cases[i].want < 0)
			continue;
		decision_id_format(&id, back);
		CHECK_STR(cases[i].label, cases[i].text, back);
	}
}

static struct decision_id id_of(unsigned n)
{
	struct decision_id id;

	CHECK_INT("id", 0, decision_id_parse(span_of(fixture_id(n)), &id));
	return id;
}

static void behaves_like_a_list(void **state)
{
	bool there[KINDS] = {false};
	struct open_set set;
	size_t count = 0;

	(void)state;
	open_set_init(&set, 400);
	srand(7);
	for (int step = 0; step < 100000; step++) {
		unsigned n = (unsigned)rand() % KINDS;
		struct decision_id id = id_of(n);

		CHECK_INT("find", there[n], open_set_find(&set, &id) != NULL);
		if (rand() % 2) {
			bool want = !there[n] && count < 400;

			CHECK_INT("add", want, open_set_add(&set, &id) != NULL);
			count += want;
			there[n] |= want;
		} else {
			open_set_drop(&set, &id);
			count -= there[n];
			there[n] = false;
		}
		CHECK_INT("count", count, set.count);
	}
	for (size_t slot = 0, left = count;; left--) {
		struct open_decision *d = open_set_next(&set, &slot);

		CHECK_INT("next", left > 0, d != NULL);
		if (!d)
			break;
	}
	open_set_fini(&set);
	CHECK_INT("empty again", 0, set.count);
	open_set_fini(&set);
}

static void outcomes_need_an_open_decision(void **state)
{
	static const struct {
		const char *label;
		unsigned n;
		enum record_type type;
		bool allow;
		enum pairing want;
	} steps[] = {
		{"outcome of nothing", 1, RECORD_OUTCOME, false, PAIRING_WRONG},
		{"denial", 1, RECORD_DECISION, false, PAIRING_NOTHING},
		{"outcome of a denial", 1, RECORD_OUTCOME, false, PAIRING_WRONG},
		{"allowed", 1, RECORD_DECISION, true, PAIRING_OPENED},
		{"twice", 1, RECORD_DECISION, true, PAIRING_WRONG},
		{"another", 2, RECORD_DECISION, true, PAIRING_OPENED},
		{"a read", 1, RECORD_READ, false, PAIRING_NOTHING},
		{"outcome", 1, RECORD_OUTCOME, false, PAIRING_CLOSED},
		{"outcome twice", 1, RECORD_OUTCOME, false, PAIRING_WRONG},
		{"unknown after outcome", 1, RECORD_OUTCOME_UNKNOWN, false, PAIRING_WRONG},
		{"unknown", 2, RECORD_OUTCOME_UNKNOWN, false, PAIRING_CLOSED},
		{"outcome after unknown", 2, RECORD_OUTCOME, false, PAIRING_WRONG},
	};
	struct open_set set;

	(void)state;
	open_set_init(&set, 10);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		const struct record_peek peek = {.type = steps[i].type,
						 .id = span_of(fixture_id(steps[i].n)),
						 .of = span_of(fixture_id(steps[i].n)),
						 .allow = steps[i].allow};

		CHECK_INT(steps[i].label, steps[i].want, pairing_apply(&set, &peek, i));
	}
	CHECK_INT("none open", 0, set.count);
	open_set_fini(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_are_read_strictly),
		cmocka_unit_test(behaves_like_a_list),
		cmocka_unit_test(outcomes_need_an_open_decision),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
