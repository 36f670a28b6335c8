/* Files: read up to a cap, and replaced whole or not at all. */
#include "gate/base/io.h"

#include "tests/unit/check.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];
static int folder = -1;

static int make_folder(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/test-io-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return folder < 0 ? -1 : 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlinkat(folder, "file", 0);
	close(folder);
	return rmdir(dir);
}

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void check_text(const char *label, const char *name, const char *want)
{
	struct err err = {0};
	struct buf text;

	CHECK_INT(label, 0, io_read_file(path_of(name), 4096, &text, &err));
	CHECK_INT(label, 1, span_is(buf_span(&text), want));
	buf_fini(&text);
}

static bool exists(const char *name)
{
	return faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void is_replaced_whole(void **state)
{
	struct err err = {0};
	struct stat st;

	(void)state;
	CHECK_INT("new", 0, io_replace(folder, "file", 0600, span_of("one"), &err));
	check_text("new", "file", "one");
	CHECK_INT("mode", 0, fstatat(folder, "file", &st, 0));
	CHECK_INT("mode", 0600, st.st_mode & 07777);
	CHECK_INT("a left-over", 0, symlinkat("elsewhere", folder, "file.tmp"));
	CHECK_INT("replaced", 0, io_replace(folder, "file", 0644, span_of("two"), &err));
	check_text("replaced", "file", "two");
	CHECK_INT("nothing beside it", 0, exists("file.tmp"));
	CHECK_INT("not through the left-over", 0, exists("elsewhere"));
	CHECK_INT("by a path", 0, io_replace(AT_FDCWD, path_of("file"), 0644, span_of(""), &err));
	check_text("by a path", "file", "");
	CHECK_STR("no word", "", err.msg);
}

static void what_fails_changes_nothing(void **state)
{
	char name[PATH_MAX + 8];
	struct err err = {0};

	(void)state;
	CHECK_INT("old", 0, io_replace(folder, "file", 0600, span_of("old"), &err));
	CHECK_INT("in the way", 0, mkdirat(folder, "file.tmp", 0700));
	CHECK_INT("cannot be made", -1, io_replace(folder, "file", 0600, span_of("new"), &err));
	check_text("cannot be made", "file", "old");
	CHECK_INT("out of the way", 0, unlinkat(folder, "file.tmp", AT_REMOVEDIR));
	CHECK_INT("a folder", 0, mkdirat(folder, "taken", 0700));
	CHECK_INT("its name is taken", -1, io_replace(folder, "taken", 0600, span_of("new"), &err));
	CHECK_INT("nothing is left over", 0, exists("taken.tmp"));
	CHECK_INT("out of the way", 0, unlinkat(folder, "taken", AT_REMOVEDIR));
	CHECK_INT("no such folder", -1,
		  io_replace(AT_FDCWD, path_of("none/file"), 0600, span_of("new"), &err));
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK_INT("no such name", -1, io_replace(folder, name, 0600, span_of("new"), &err));
}

static void no_more_than_the_cap_is_read(void **state)
{
	static const struct {
		const char *label, *text;
		int want;
	} rows[] = {{"nothing", "", 0},
		    {"less", "abc", 0},
		    {"just as much", "abcd", 0},
		    {"more", "abcde", -1}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct err err = {0};
		struct buf text;
		int ends[2];

		CHECK_INT(rows[i].label, 0, pipe2(ends, O_CLOEXEC));
		CHECK_INT(rows[i].label, 0,
			  io_write_all(ends[1], rows[i].text, strlen(rows[i].text), &err));
		close(ends[1]);
		CHECK_INT(rows[i].label, rows[i].want, io_read_fd(ends[0], 4, &text, &err));
		close(ends[0]);
		if (rows[i].want == 0)
			CHECK_INT(rows[i].label, 1, span_is(buf_span(&text), rows[i].text));
		else
			CHECK_STR(rows[i].label, "it is larger than 4 bytes", err.msg);
		buf_fini(&text);
	}
}

static void places_in_a_file_are_written(void **state)
{
	int fd = openat(folder, "file", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	(void)state;
	CHECK_INT("first", 0, io_write_at(fd, "abcdef", 6, 0));
	CHECK_INT("within", 0, io_write_at(fd, "XY", 2, 2));
	check_text("both", "file", "abXYef");
	close(fd);
	CHECK_INT("closed", -1, io_write_at(fd, "x", 1, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_replaced_whole),
		cmocka_unit_test(what_fails_changes_nothing),
		cmocka_unit_test(no_more_than_the_cap_is_read),
		cmocka_unit_test(places_in_a_file_are_written),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
