#include "audit/index_priv.h"

#include "gate/base/hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BESIDE "index.sqlite"

/* Whoever else can write the folder could put a file there that is none of ours. */
static bool is_own_folder(const char *dir)
{
	struct stat st;

	return stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH)) && access(dir, W_OK | X_OK) == 0;
}

static int cache_folder(char ret[PATH_MAX], struct err *err)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char parent[PATH_MAX];
	int n;

	if (cache && *cache == '/')
		n = snprintf(parent, sizeof(parent), "%s", cache);
	else if (home && *home == '/')
		n = snprintf(parent, sizeof(parent), "%s/.cache", home);
	else
		return err_set(err, ERR_CONFIG,
			       "no place for the index: name one with --index FILE");
	if (n >= PATH_MAX - 128)
		return err_set(err, ERR_LIMIT, "the cache folder's name is too long");
	(void)mkdir(parent, 0700);
	snprintf(ret, PATH_MAX, "%.*s/sallyport", PATH_MAX - 128, parent);
	if (mkdir(ret, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make %s for the index", ret);
	if (!is_own_folder(ret))
		return err_set(err, ERR_CONFIG, "%s is not this user's alone", ret);
	return 0;
}

int index_place(const char *dir, char ret[PATH_MAX], struct err *err)
{
	char folder[PATH_MAX], hex[HASH_HEX_LEN + 1];
	struct hash hash = hash_of(span_of(dir));

	if (strlen(dir) >= PATH_MAX - 128)
		return err_set(err, ERR_LIMIT, "the log folder's name is too long");
	if (is_own_folder(dir)) {
		snprintf(ret, PATH_MAX, "%.*s/" BESIDE, PATH_MAX - 128, dir);
		return 0;
	}
	if (cache_folder(folder, err) < 0)
		return -1;
	hash_hex(&hash, hex);
	snprintf(ret, PATH_MAX, "%.*s/%.32s.sqlite", PATH_MAX - 128, folder, hex);
	return 0;
}

int index_place_safe(const char *file, struct err *err)
{
	struct stat st;

	if (lstat(file, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(err, "look at %s", file);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return err_set(err, ERR_CONFIG,
			       "%s is not a file that this user alone can write: name another "
			       "with --index FILE",
			       file);
	return 0;
}
