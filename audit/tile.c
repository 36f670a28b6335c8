#include "audit/tile_priv.h"

#include "gate/base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define TILE_BITS 8

_Static_assert(sizeof(struct hash) == HASH_BYTES, "hashes lie side by side");

void tile_path(unsigned level, uint64_t number, char out[TILE_PATH])
{
	unsigned groups[7], count = 0;
	int used = snprintf(out, TILE_PATH, "tile/%u", level);

	do
		groups[count++] = (unsigned)(number % 1000);
	while (number /= 1000);
	while (count--)
		used += snprintf(out + used, TILE_PATH - (size_t)used, "/%s%03u", count ? "x" : "",
				 groups[count]);
}

/* Makes each folder above the file. */
static void make_folders(int dir_fd, const char *path)
{
	char folder[TILE_PATH];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
		(void)mkdirat(dir_fd, folder, 0750); /* opening the file tells */
	}
}

static int open_new(int dir_fd, const char *path)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir_fd, path, flags, 0640);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	make_folders(dir_fd, path);
	return openat(dir_fd, path, flags, 0640);
}

int tile_write(int dir_fd, unsigned level, uint64_t number, const struct hash hashes[TILE_HASHES])
{
	char path[TILE_PATH], temporary[TILE_PATH + 8];
	struct iovec all = {(void *)hashes, TILE_BYTES};
	auto_fd int fd = -1;
	ssize_t n;

	tile_path(level, number, path);
	snprintf(temporary, sizeof(temporary), "tile/%u/new", level);
	fd = open_new(dir_fd, temporary);
	if (fd < 0)
		return -1;
	do
		n = pwritev(fd, &all, 1, 0);
	while (n < 0 && errno == EINTR);
	if (n != TILE_BYTES) {
		errno = n < 0 ? errno : ENOSPC;
		return -1;
	}
	if (renameat(dir_fd, temporary, dir_fd, path) == 0)
		return 0;
	if (errno != ENOENT)
		return -1;
	make_folders(dir_fd, path);
	return renameat(dir_fd, temporary, dir_fd, path);
}

bool tile_read(int dir_fd, unsigned level, uint64_t number, struct hash ret[TILE_HASHES])
{
	char path[TILE_PATH];
	auto_fd int fd = -1;
	struct stat st;

	tile_path(level, number, path);
	fd = openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == TILE_BYTES &&
	       pread(fd, ret, TILE_BYTES, 0) == TILE_BYTES;
}

int tile_sync(int dir_fd, unsigned level, uint64_t number)
{
	auto_fd int fd = -1, folder_fd = -1;
	char path[TILE_PATH];

	tile_path(level, number, path);
	fd = openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	*strrchr(path, '/') = '\0';
	folder_fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && folder_fd >= 0 && fsync(fd) == 0 && fsync(folder_fd) == 0 ? 0 : -1;
}

struct hash tile_root(const struct hash hashes[TILE_HASHES])
{
	struct tree t = {0};

	for (unsigned i = 0; i < TILE_HASHES; i++)
		tree_add(&t, &hashes[i], NULL);
	return t.edge[TILE_BITS];
}

void tiles_add(struct tiles *t, int dir_fd, const struct hash *leaf)
{
	struct hash nodes[TREE_LEVELS];
	uint64_t number = t->tree.size;
	unsigned top = tree_add(&t->tree, leaf, nodes);

	for (unsigned level = 0; level < TILE_LEVELS && level * TILE_BITS <= top; level++) {
		t->hashes[level][number % TILE_HASHES] = nodes[level * TILE_BITS];
		if (number % TILE_HASHES == TILE_HASHES - 1 && dir_fd >= 0 &&
		    tile_write(dir_fd, level, number / TILE_HASHES, t->hashes[level]) < 0) {
			t->failed++;
			t->error = errno;
		}
		number /= TILE_HASHES;
	}
}

/* A tile that is missing follows from those below; NOLINTNEXTLINE(misc-no-recursion): by level */
static bool load(int dir_fd, unsigned level, uint64_t number, struct hash ret[TILE_HASHES])
{
	struct hash below[TILE_HASHES];

	if (tile_read(dir_fd, level, number, ret))
		return true;
	for (unsigned i = 0; level && i < TILE_HASHES; i++) {
		if (!load(dir_fd, level - 1, number * TILE_HASHES + i, below))
			return false;
		ret[i] = tile_root(below);
	}
	return level > 0;
}

/* The hashes of a level that fill no tile yet are the roots of the full tiles below. */
static bool resume_level(struct tiles *t, int dir_fd, unsigned level)
{
	uint64_t count = t->tree.size >> (level * TILE_BITS), first = count & ~UINT64_C(255);
	struct hash below[TILE_HASHES];

	for (uint64_t i = first; i < count; i++) {
		if (!load(dir_fd, level - 1, i, below))
			return false;
		t->hashes[level][i - first] = tile_root(below);
	}
	return true;
}

/* That what was read belongs to the tree: each level's hashes make up its part of the edge. */
static bool fits_edge(const struct tiles *t, unsigned level)
{
	unsigned count = (unsigned)(t->tree.size >> (level * TILE_BITS) & (TILE_HASHES - 1));
	struct tree part = {0};

	for (unsigned i = 0; i < count; i++)
		tree_add(&part, &t->hashes[level][i], NULL);
	for (unsigned bit = 0; bit < TILE_BITS; bit++)
		if (count >> bit & 1 &&
		    memcmp(&part.edge[bit], &t->tree.edge[level * TILE_BITS + bit], HASH_BYTES) !=
			    0)
			return false;
	return true;
}

bool tiles_resume(struct tiles *t, int dir_fd, const struct tree *tree, const struct hash *leaves)
{
	t->tree = *tree;
	memcpy(t->hashes[0], leaves, (tree->size % TILE_HASHES) * sizeof(*leaves));
	if (!fits_edge(t, 0))
		return false;
	for (unsigned level = 1; level < TILE_LEVELS && tree->size >> (level * TILE_BITS); level++)
		if (!resume_level(t, dir_fd, level) || !fits_edge(t, level))
			return false;
	return true;
}
