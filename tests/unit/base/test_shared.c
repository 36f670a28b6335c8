/* A process has the tables that it keeps, with what stands in them, and no others. */
#include "gate/base/shared.h"
#include "tests/unit/check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BYTES ((size_t)4096)

static char *table(int fd)
{
	struct err err = {0};
	char *t = shared_create(BYTES, fd, "the table", &err);

	CHECK_STR("made", "", err.msg);
	return t;
}

static bool is_mapped(void *at)
{
	return msync(at, BYTES, MS_ASYNC) == 0;
}

static void what_is_not_kept_is_out_of_reach(void **state)
{
	char *own = table(-1), *another = table(-1), *third = table(-1);
	const void *keep[] = {NULL, own};

	(void)state;
	strcpy(own, "kept");
	shared_keep(keep, 2);
	CHECK_STR("kept", "kept", own);
	CHECK_INT("another", 0, is_mapped(another));
	CHECK_INT("third", 0, is_mapped(third));
	shared_keep(NULL, 0);
	CHECK_INT("own", 0, is_mapped(own));
}

static void children_share_it(void **state)
{
	char *own = table(-1);
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		const void *keep[] = {own};

		shared_keep(keep, 1);
		strcpy(own, "child");
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	CHECK_STR("seen", "child", own);
	shared_keep(NULL, 0);
}

static void a_file_behind_it_is_what_it_was(void **state)
{
	FILE *f = tmpfile();
	char *own;

	(void)state;
	fputs("before", f);
	fflush(f);
	CHECK_INT("room", 0, ftruncate(fileno(f), BYTES));
	own = table(fileno(f));
	CHECK_STR("read", "before", own);
	own[0] = 'B';
	shared_keep(NULL, 0);
	rewind(f);
	CHECK_INT("written", 'B', fgetc(f));
	fclose(f);
}

static void what_cannot_be_made_is_told(void **state)
{
	struct err err = {0};

	(void)state;
	assert_null(shared_create(BYTES, 1 << 20, "the table of tests", &err));
	CHECK_INT("names it", 0, strncmp(err.msg, "make the table of tests: ", 25));
}

static void one_has_the_lock_until_it_dies(void **state)
{
	struct err err = {0};
	struct shared_lock *l = shared_create(sizeof(*l), -1, "a lock", &err);
	pid_t pid;

	(void)state;
	CHECK_INT("nobody has it", 1, shared_lock(l, 0));
	CHECK_INT("somebody has it", 0, shared_lock(l, 0));
	CHECK_INT("also in a moment", 0, shared_lock(l, 2));
	shared_unlock(l);
	pid = fork();
	if (pid == 0)
		_exit(shared_lock(l, 0) ? 0 : 1);
	CHECK_INT("waitpid", pid, waitpid(pid, NULL, 0));
	CHECK_INT("it died with it", 0, shared_lock(l, 0));
	shared_lock_died(l, pid + 1);
	CHECK_INT("another one died", 0, shared_lock(l, 0));
	shared_lock_died(l, pid);
	CHECK_INT("its death is known at once", 1, shared_lock(l, 0));
}

/* Measured in time of its own: how busy others are is not its affair. */
static void who_cannot_wait_does_not(void **state)
{
	struct err err = {0};
	struct shared_lock *l = shared_create(sizeof(*l), -1, "a lock", &err);
	struct timespec before, after;

	(void)state;
	CHECK_INT("somebody has it", 1, shared_lock(l, 0));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	for (int i = 0; i < 100; i++)
		CHECK_INT("not to be had", 0, shared_lock(l, 0));
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	CHECK_INT("a millisecond each at the very most", 1,
		  (after.tv_sec - before.tv_sec) * 1000 +
				  (after.tv_nsec - before.tv_nsec) / 1000000 <
			  100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_kept_is_out_of_reach),
		cmocka_unit_test(children_share_it),
		cmocka_unit_test(a_file_behind_it_is_what_it_was),
		cmocka_unit_test(what_cannot_be_made_is_told),
		cmocka_unit_test(one_has_the_lock_until_it_dies),
		cmocka_unit_test(who_cannot_wait_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
