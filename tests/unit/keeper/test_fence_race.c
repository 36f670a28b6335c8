/*
 * A thread swaps a folder and a link to the victim as fast as it can while everything that the
 * fence can do is done through that name: none of it ever reaches the victim.  The same test is
 * run over a fence that looks at names and then uses them: it is caught.
 *
 * usage: test_fence_race [--long]     a million swaps instead of a hundred thousand
 */
#include "gate/base/auto.h"
#include "gate/keeper/fence.h"
#include "tests/unit/keeper/folder.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define CI_SWAPS   100000
#define LONG_SWAPS 1000000
#define BITES      100000000 /* tries until the weak fence must have been caught */

static unsigned long wanted = CI_SWAPS;

struct arena {
	char *top;
	int top_fd, root;
	struct fence fence;
	atomic_ulong swaps;
	atomic_bool stop;
	unsigned long inside, refused; /* what the operations met */
};

static void *swapper(void *arg)
{
	struct arena *a = arg;

	while (!atomic_load(&a->stop)) {
		if (renameat2(a->root, "here", a->root, "there", RENAME_EXCHANGE) < 0)
			abort();
		atomic_fetch_add(&a->swaps, 1);
	}
	return NULL;
}

static void begin(struct arena *a, bool absolute)
{
	char text[512];

	memset(a, 0, sizeof(*a));
	a->top = folder_make();
	a->top_fd = open(a->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(a->top_fd, "root", 0755), 0);
	assert_int_equal(mkdirat(a->top_fd, "root/here", 0755), 0);
	assert_int_equal(mkdirat(a->top_fd, "victim", 0755), 0);
	assert_int_equal(mkdirat(a->top_fd, "victim/full", 0755), 0);
	folder_write(a->top_fd, "victim/file", "secret");
	folder_write(a->top_fd, "victim/full/deep", "secret");
	a->root = openat(a->top_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(text, sizeof(text), "%s/victim", absolute ? a->top : "..");
	assert_int_equal(symlinkat(text, a->root, "there"), 0);
	folder_write(a->root, "here/file", "mine");
	a->fence = (struct fence){.root = a->root};
}

static void end(struct arena *a)
{
	close(a->root);
	close(a->top_fd);
	folder_drop(a->top);
}

/* Anything of it changed, or anything new in it. */
static bool touched(const struct arena *a)
{
	char text[64];
	struct stat victim, full;

	if (strcmp(folder_read(a->top_fd, "victim/file", text, sizeof(text)), "secret") != 0 ||
	    strcmp(folder_read(a->top_fd, "victim/full/deep", text, sizeof(text)), "secret") != 0)
		return true;
	if (fstatat(a->top_fd, "victim", &victim, 0) < 0 ||
	    fstatat(a->top_fd, "victim/full", &full, 0) < 0)
		return true;
	return victim.st_nlink != 3 || (full.st_mode & 0777) != 0755 ||
	       faccessat(a->top_fd, "victim/new", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       faccessat(a->top_fd, "victim/moved", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int no_secret(void *arg, const struct fence_entry *e, struct err *err)
{
	(void)arg, (void)err;
	assert_string_not_equal(e->name, "full"); /* only the victim has one */
	return 0;
}

static void reads(const struct arena *a, struct err *err)
{
	auto_fd int fd = fence_open(&a->fence, "here/file", O_RDONLY, 0, err);
	char text[16] = "";

	if (fd >= 0)
		assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	assert_string_not_equal(text, "secret");
}

static void writes(const struct arena *a, const char *path, struct err *err)
{
	int fd = fence_open(&a->fence, path, O_WRONLY | O_CREAT | O_TRUNC, 0644, err);

	if (fd < 0)
		return;
	assert_int_equal(write(fd, "mine", 4), 4);
	close(fd);
}

static void replaces(const struct arena *a, struct err *err)
{
	char name[FENCE_NAME_MAX];
	auto_fd int folder = -1;
	int fd = fence_make(&a->fence, "here/file", 0644, &folder, name, err);

	if (fd < 0)
		return;
	close(fd);
	fence_keep(&a->fence, folder, name, "here/file", err);
}

/* Refusals are quick: without this they would be all that there is on a busy machine. */
static void refused(struct arena *a)
{
	a->refused++;
	for (int i = 0; i < 8; i++)
		sched_yield();
}

#define KINDS 10

static void one(struct arena *a, unsigned kind)
{
	struct fence *f = &a->fence;
	struct err err = {0};

	switch (kind % KINDS) {
	case 0:
		reads(a, &err);
		break;
	case 1:
		writes(a, "here/file", &err);
		break;
	case 2:
		writes(a, "here/new", &err);
		break;
	case 3:
		fence_rename(f, "here/new", "here/moved", true, &err);
		break;
	case 4:
		fence_remove(f, "here/moved", false, &err);
		break;
	case 5:
		fence_mkdir(f, "here/full/a/b", 0700, true, &err);
		break;
	case 6:
		fence_chmod(f, "here/full", 0700, &err);
		break;
	case 7:
		fence_remove(f, "here/full", true, &err);
		break;
	case 8:
		replaces(a, &err);
		break;
	case 9:
		fence_list(f, "here", 100, no_secret, NULL, &err);
		break;
	}
	if (err.sys == EXDEV || err.sys == ELOOP || err.sys == ENOTDIR)
		refused(a);
	else if (err.kind == ERR_NONE)
		a->inside++;
}

/* case 9 lists a folder in which case 5 has made "full": not while both run. */
static unsigned next_kind(unsigned kind)
{
	return kind % KINDS == 8 ? kind + 2 : kind + 1;
}

static void holds(bool absolute)
{
	struct arena a;
	pthread_t thread;

	begin(&a, absolute);
	assert_int_equal(pthread_create(&thread, NULL, swapper, &a), 0);
	for (unsigned kind = 0; atomic_load(&a.swaps) < wanted || a.inside < 100 || a.refused < 100;
	     kind = next_kind(kind))
		one(&a, kind);
	atomic_store(&a.stop, true);
	pthread_join(thread, NULL);
	CHECK_INT("the victim", 0, touched(&a));
	print_message("%lu swaps: %lu operations inside, %lu refused\n", (unsigned long)a.swaps,
		      a.inside, a.refused);
	end(&a);
}

/* Nothing but listing and reading: what is seen is never the victim's. */
static void never_shows(void **state)
{
	struct arena a;
	pthread_t thread;

	(void)state;
	begin(&a, true);
	assert_int_equal(pthread_create(&thread, NULL, swapper, &a), 0);
	while (atomic_load(&a.swaps) < wanted / 4 || a.inside < 100 || a.refused < 100) {
		one(&a, 0);
		one(&a, 9);
	}
	atomic_store(&a.stop, true);
	pthread_join(thread, NULL);
	end(&a);
}

static void holds_relative(void **state)
{
	(void)state;
	holds(false);
}

static void holds_absolute(void **state)
{
	(void)state;
	holds(true);
}

/* What the fence must not be: a look at the name, and then its use. */
static void weak_write(const char *top)
{
	char folder[512], path[600];
	struct stat st;
	int fd;

	snprintf(folder, sizeof(folder), "%s/root/here", top);
	snprintf(path, sizeof(path), "%s/file", folder);
	if (lstat(folder, &st) < 0 || !S_ISDIR(st.st_mode))
		return;
	fd = open(path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	assert_int_equal(write(fd, "taken", 5), 5);
	close(fd);
}

static void bites(void **state)
{
	struct arena a;
	pthread_t thread;
	unsigned long tries = 0;
	bool caught = false;

	(void)state;
	begin(&a, false);
	assert_int_equal(pthread_create(&thread, NULL, swapper, &a), 0);
	while (!caught && tries++ < BITES) {
		weak_write(a.top);
		caught = touched(&a);
	}
	atomic_store(&a.stop, true);
	pthread_join(thread, NULL);
	end(&a);
	CHECK_INT("a fence that looks and then uses is caught", 1, caught);
	print_message("caught after %lu tries\n", tries);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bites),
		cmocka_unit_test(holds_relative),
		cmocka_unit_test(holds_absolute),
		cmocka_unit_test(never_shows),
	};

	if (argc > 1 && strcmp(argv[1], "--long") == 0)
		wanted = LONG_SWAPS;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
