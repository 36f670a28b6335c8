/* folder.h - a folder of a test's own, removed at its end. */
#ifndef TESTS_UNIT_KEEPER_FOLDER_H
#define TESTS_UNIT_KEEPER_FOLDER_H

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/check.h"

static inline char *folder_make(void)
{
	const char *tmp = getenv("TMPDIR");
	char *path = NULL;

	assert_true(asprintf(&path, "%s/sp-keeper-XXXXXX", tmp && *tmp ? tmp : "/tmp") > 0);
	assert_non_null(mkdtemp(path));
	return path;
}

static inline int folder_drop_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st, (void)flag, (void)at;
	return remove(path);
}

static inline void folder_drop(char *path)
{
	nftw(path, folder_drop_one, 16, FTW_DEPTH | FTW_PHYS);
	free(path);
}

static inline void folder_write(int folder, const char *name, const char *text)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* Of a small file; "-" if it cannot be read. */
static inline const char *folder_read(int folder, const char *name, char *out, size_t size)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	snprintf(out + (n < 0 ? 0 : n), size - (size_t)(n < 0 ? 0 : n), "%s", n < 0 ? "-" : "");
	if (fd >= 0)
		close(fd);
	return out;
}

#endif
