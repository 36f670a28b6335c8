/* What was taken away is remembered: for whom it was, so long, and whatever dies meanwhile. */
#include "proxy/updates.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct identity alice = {.name = "alice", .owner = "a", .profile = "p"};
static const struct identity bob = {.name = "bob", .owner = "b", .profile = "p"};
static const struct identity first = {.name = "", .owner = "x", .has_cred = true, .uid = 1};
static const struct identity second = {.name = "", .owner = "x", .has_cred = true, .uid = 2};

static struct updates *table(const char *path)
{
	struct err err = {0};
	struct updates *t = updates_create(path, &err);

	CHECK_STR("table", "", err.msg);
	return t;
}

static bool put(struct updates *t, const struct identity *who, const char *name, const char *text,
		int64_t now)
{
	const struct updates_key key = {who, "engine", name};

	return updates_put(t, &key, span_of(text), now, 600);
}

/* "" if nothing is remembered. */
static const char *get(struct updates *t, const struct identity *who, const char *backend,
		       const char *name, int64_t now)
{
	static char text[UPDATES_TEXT_MAX + 1];
	const struct updates_key key = {who, backend, name};
	struct buf got;

	buf_init(&got, UPDATES_TEXT_MAX);
	text[0] = '\0';
	if (updates_get(t, &key, now, &got))
		snprintf(text, sizeof(text), "%.*s", SPAN_FMT(buf_span(&got)));
	buf_fini(&got);
	return text;
}

static void it_is_the_callers_own(void **state)
{
	struct updates *t = table("");

	(void)state;
	CHECK_INT("put", 1, put(t, &alice, "web", "{1}", 1000));
	CHECK_STR("its own", "{1}", get(t, &alice, "engine", "web", 1001));
	CHECK_STR("another name", "", get(t, &alice, "engine", "web2", 1001));
	CHECK_STR("another caller", "", get(t, &bob, "engine", "web", 1001));
	CHECK_STR("another engine", "", get(t, &alice, "other", "web", 1001));
	CHECK_STR("in time", "{1}", get(t, &alice, "engine", "web", 1599));
	CHECK_STR("too late", "", get(t, &alice, "engine", "web", 1600));
	CHECK_INT("the same name again", 1, put(t, &alice, "web", "{2}", 1002));
	CHECK_STR("counts", "{2}", get(t, &alice, "engine", "web", 1003));
	CHECK_INT("without a name", 1, put(t, &first, "web", "{3}", 1000));
	CHECK_STR("told apart by user", "", get(t, &second, "engine", "web", 1001));
	CHECK_STR("told apart by user", "{3}", get(t, &first, "engine", "web", 1001));
}

static void it_has_its_bounds(void **state)
{
	static char large[UPDATES_TEXT_MAX + 2];
	struct updates *t = table("");
	char name[20];
	int fit = 0, others = 0;

	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	CHECK_INT("too long", 0, put(t, &alice, "web", large, 1000));
	large[UPDATES_TEXT_MAX] = '\0';
	CHECK_INT("just fits", 1, put(t, &alice, "0", large, 1000));
	for (int i = 0; i < 2 * UPDATES_SLOTS; i++) {
		snprintf(name, sizeof(name), "%d", i);
		fit += put(t, &alice, name, "{}", 1000);
	}
	CHECK_INT("one caller's part", UPDATES_OWN_MAX, fit);
	CHECK_INT("what is there can be replaced", 1, put(t, &alice, "0", "{9}", 1001));
	for (int i = 0; i < 2 * UPDATES_SLOTS; i++) {
		snprintf(name, sizeof(name), "%d", i);
		others += put(t, &bob, name, "{}", 1000);
	}
	CHECK_INT("the rest", UPDATES_SLOTS - UPDATES_OWN_MAX, others);
	CHECK_STR("nothing was driven out", "{9}", get(t, &alice, "engine", "0", 1002));
	CHECK_INT("what is over makes room", 1, put(t, &bob, "again", "{}", 2000));
}

/* Each process writes its own under its own names, and the last one under a name counts. */
static void processes_share_it(void **state)
{
	struct updates *t = table("");
	int wrong = 0;

	(void)state;
	for (int p = 0; p < 4; p++) {
		char name[20], text[40];

		if (fork())
			continue;
		for (int i = 0; i < 400; i++) {
			snprintf(name, sizeof(name), "c%d-%d", p, i % 20);
			snprintf(text, sizeof(text), "{%d,%d}", p, i);
			if (!put(t, &alice, name, text, 1000) ||
			    strcmp(get(t, &alice, "engine", name, 1001), text) != 0)
				_exit(1);
		}
		_exit(0);
	}
	for (int p = 0; p < 4; p++) {
		int status;

		wait(&status);
		wrong += status != 0;
	}
	CHECK_INT("processes that lost something", 0, wrong);
	CHECK_STR("they are gone, and it is there", "{3,399}",
		  get(t, &alice, "engine", "c3-19", 1001));
}

static void a_file_outlives_the_gate(void **state)
{
	char dir[] = "/tmp/updatesXXXXXX", path[64];
	unsigned char key[SEAL_KEY_BYTES];
	struct updates *t;
	struct err err = {0};

	(void)state;
	CHECK_INT("folder", 1, mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/memory", dir);
	t = table(path);
	memcpy(key, updates_seal_key(t), sizeof(key));
	CHECK_INT("put", 1, put(t, &alice, "web", "{1}", 1000));
	t = table(path); /* another mapping, as after a restart */
	CHECK_STR("still there", "{1}", get(t, &alice, "engine", "web", 1001));
	CHECK_INT("the key, too", 0, memcmp(key, updates_seal_key(t), sizeof(key)));
	CHECK_INT("mode", 0, chmod(path, 0644));
	CHECK_INT("others may not read it", 1, updates_create(path, &err) == NULL);
	CHECK_INT("which is a mistake of the operator", ERR_CONFIG, err.kind);
	CHECK_INT("cut", 0, chmod(path, 0600) || truncate(path, 10));
	t = table(path); /* what is no such table is made one */
	CHECK_STR("empty", "", get(t, &alice, "engine", "web", 1001));
	CHECK_INT("and of use", 1, put(t, &alice, "web", "{2}", 1000));
	CHECK_INT("removed", 0, unlink(path) || rmdir(dir));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_the_callers_own),
		cmocka_unit_test(it_has_its_bounds),
		cmocka_unit_test(processes_share_it),
		cmocka_unit_test(a_file_outlives_the_gate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
