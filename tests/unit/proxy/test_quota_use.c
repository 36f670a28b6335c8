/* What owners have of their quotas: the fullest are shown, the oldest make room, names end. */
#include "proxy/quota_use.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct quota_uses *table(void)
{
	struct quota_uses *u = calloc(1, sizeof(*u));

	CHECK_INT("there is one", 1, u != NULL);
	return u;
}

static struct quota_use use_of(const char *owner, int64_t at, int64_t used, int64_t limit)
{
	struct quota_use use = {.at = at, .known = 1u << QUOTA_CONTAINERS};

	CHECK_INT(owner, 1, quota_use_name(&use, owner, "p"));
	for (int q = 0; q < QUOTA_COUNT; q++)
		use.limits[q] = -1;
	use.used[QUOTA_CONTAINERS] = used;
	use.limits[QUOTA_CONTAINERS] = limit;
	return use;
}

static void the_fullest_come_first(void **state)
{
	static const struct {
		const char *owner;
		int64_t used, limit;
		unsigned percent;
	} rows[] = {{"half", 5, 10, 50},
		    {"empty", 0, 10, 0},
		    {"over", 12, 10, 120},
		    {"endless", QUOTA_ENDLESS, 10, 999},
		    {"nothing allowed", 0, 0, 100},
		    {"huge", INT64_MAX / 2, INT64_MAX - 1, 50},
		    {"far over", INT64_MAX - 1, 1, 999}};
	static const char *const order[] = {"endless", "far over", "over", "nothing allowed",
					    "half",    "huge",     "empty"};
	struct quota_use found[QUOTA_USE_SHOWN];
	struct quota_uses *u = table();
	size_t more;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct quota_use use = use_of(rows[i].owner, 1, rows[i].used, rows[i].limit);

		CHECK_INT(rows[i].owner, rows[i].percent, quota_use_percent(&use));
		quota_uses_note(u, &use);
	}
	CHECK_INT("all of them", sizeof(rows) / sizeof(*rows), quota_uses_read(u, found, &more));
	CHECK_INT("none left", 0, more);
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		CHECK_STR("order", order[i], found[i].owner);
	free(u);
}

/* Each request counts; the lock that all workers share is for what is new. */
static void what_is_noted_already_is_not_written(void **state)
{
	struct quota_use now = use_of("alice", 1, 3, 5);
	struct quota_uses *u = table();
	uint64_t turn;

	(void)state;
	quota_uses_note(u, &now);
	turn = u->rows[0].turn;
	quota_uses_note(u, &now);
	CHECK_INT("the same", (long)turn, (long)u->rows[0].turn);
	now.used[QUOTA_CONTAINERS] = 4;
	quota_uses_note(u, &now);
	CHECK_INT("another number", (long)turn + 2, (long)u->rows[0].turn);
	now.limits[QUOTA_CONTAINERS] = 6;
	quota_uses_note(u, &now);
	CHECK_INT("another limit", (long)turn + 4, (long)u->rows[0].turn);
	now.known |= 1u << QUOTA_VOLUME_COUNT;
	quota_uses_note(u, &now);
	CHECK_INT("another kind", (long)turn + 6, (long)u->rows[0].turn);
	now.at = 2;
	quota_uses_note(u, &now);
	CHECK_INT("later", (long)turn + 8, (long)u->rows[0].turn);
	free(u);
}

static void a_later_count_adds_to_what_is_known(void **state)
{
	struct quota_use now = use_of("alice", 1, 3, 5), found[QUOTA_USE_SHOWN];
	struct quota_uses *u = table();
	size_t more;

	(void)state;
	quota_uses_note(u, &now);
	now.known = 1u << QUOTA_VOLUME_COUNT;
	now.used[QUOTA_CONTAINERS] = 77; /* not counted */
	now.used[QUOTA_VOLUME_COUNT] = 2;
	now.limits[QUOTA_VOLUME_COUNT] = 4;
	now.at = 9;
	quota_uses_note(u, &now);
	CHECK_INT("one row", 1, quota_uses_read(u, found, &more));
	CHECK_INT("of before", 3, found[0].used[QUOTA_CONTAINERS]);
	CHECK_INT("new", 2, found[0].used[QUOTA_VOLUME_COUNT]);
	CHECK_INT("both known", 1u << QUOTA_CONTAINERS | 1u << QUOTA_VOLUME_COUNT, found[0].known);
	CHECK_INT("when", 9, found[0].at);
	CHECK_INT("another profile", 1, quota_use_name(&now, "alice", "q"));
	quota_uses_note(u, &now);
	CHECK_INT("is another row", 2, quota_uses_read(u, found, &more));
	free(u);
}

static void there_is_an_end_to_it(void **state)
{
	struct quota_use found[QUOTA_USE_SHOWN], use;
	struct quota_uses *u = table();
	char name[QUOTA_USE_NAME + 2];
	size_t more;

	(void)state;
	for (int i = 0; i < QUOTA_USES + 5; i++) {
		snprintf(name, sizeof(name), "owner-%d", i);
		use = use_of(name, 100 + i, i < 5 ? 10 : 1, 10);
		quota_uses_note(u, &use);
	}
	CHECK_INT("so many are shown", QUOTA_USE_SHOWN, quota_uses_read(u, found, &more));
	CHECK_INT("of so many", QUOTA_USES - QUOTA_USE_SHOWN, more);
	CHECK_INT("the five that were full had to go", 10, quota_use_percent(&found[0]));
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK_INT("too long a name", 0, quota_use_name(&use, name, "p"));
	free(u);
}

/* Any worker could write anything there. */
static void what_others_wrote_is_not_trusted(void **state)
{
	struct quota_use found[QUOTA_USE_SHOWN], use = use_of("alice", 1, 3, 5);
	static const struct conf_backend backends[] = {{.name = "engine"}};
	const struct proxy_conf conf = {.backends = (struct conf_backend *)backends,
					.backend_count = 1};
	struct quota_uses *u = table();
	struct buf text;
	size_t more;

	(void)state;
	quota_uses_note(u, &use);
	memset(u->rows[0].use.owner, '"', sizeof(u->rows[0].use.owner));
	u->rows[0].use.known = ~0u;
	u->rows[1].turn = 3; /* its writer died */
	u->rows[2].turn = 2;
	u->rows[2].use = use;
	u->rows[2].use.backend = 7;
	CHECK_INT("two can be read", 2, quota_uses_read(u, found, &more));
	CHECK_INT("a name ends", QUOTA_USE_NAME, strlen(found[0].owner));
	CHECK_INT("what has no limit is none", 1u << QUOTA_CONTAINERS, found[0].known);
	buf_init(&text, 1 << 20);
	quota_uses_write(u, &conf, &text);
	buf_put(&text, "", 1);
	assert_non_null(strstr(buf_span(&text).at, "owner=\"\\\"\\\""));
	assert_non_null(strstr(buf_span(&text).at, "profile=\"p\",quota=\"containers\"} 3\n"));
	buf_fini(&text);
	free(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_fullest_come_first),
		cmocka_unit_test(what_is_noted_already_is_not_written),
		cmocka_unit_test(a_later_count_adds_to_what_is_known),
		cmocka_unit_test(there_is_an_end_to_it),
		cmocka_unit_test(what_others_wrote_is_not_trusted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
