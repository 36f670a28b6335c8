/*
 * fence.h - file operations that cannot leave a folder.
 *
 * A path is resolved by the kernel beneath a held descriptor (openat2 with RESOLVE_BENEATH and
 * RESOLVE_NO_MAGICLINKS), and what is done is done to the descriptor that came out, or to one name
 * in it.  Nothing is looked at by name and then used by name, so whoever swaps folders for links in
 * the meantime gains nothing.  A kernel without openat2 gets ENOSYS, never a weaker way.
 *
 * Paths are relative to the root; a leading "/" means the root itself.  Links on the way are
 * followed as long as they stay beneath the root (FENCE_NO_LINKS: not at all); a link as the last
 * component is followed by fence_open() for reading only, and never when something is made,
 * replaced, changed or removed.  ".." that would leave the root, absolute links and magic links are
 * refused with EXDEV or ELOOP.
 *
 * Errors: ERR_INPUT for a path that cannot be one (empty, NUL, over FENCE_PATH_MAX), ERR_LIMIT for
 * what passes a cap, ERR_SYSTEM with sys for the rest: ENOENT, EEXIST, ENOTDIR, EXDEV (outside),
 * ELOOP, EACCES, and EINVAL with a message for what is neither file nor folder.
 *
 * Threads: no state; any number at once.
 */
#ifndef GATE_KEEPER_FENCE_H
#define GATE_KEEPER_FENCE_H

#include "gate/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define FENCE_PATH_MAX   4096
#define FENCE_NAME_MAX   256
#define FENCE_DEPTH_MAX  64      /* of what fence_remove() removes */
#define FENCE_COUNT_MAX  1000000 /* likewise, files and folders */
#define FENCE_TARGET_MAX 1024    /* a link's text in a listing; longer ones are cut */

enum {
	FENCE_ONE_DEVICE = 1, /* no mount below the root is entered (RESOLVE_NO_XDEV) */
	FENCE_NO_HARDLINKS =
		2,          /* a file with several names is not opened for writing, nor changed */
	FENCE_NO_LINKS = 4, /* no symbolic link is followed */
};

struct fence {
	int root;       /* a folder, O_PATH will do; stays the caller's */
	unsigned rules; /* FENCE_* */
};

/*
 * flags: O_RDONLY, O_WRONLY or O_RDWR; O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY.  Only files
 * and folders are opened, and nothing ever waits for a FIFO.  O_TRUNC happens after the checks.
 * Returns a close-on-exec descriptor.
 */
int fence_open(const struct fence *f, const char *path, int flags, mode_t mode, struct err *err);

/* parents: makes what is missing on the way, too, and it is no error if the folder is there. */
int fence_mkdir(const struct fence *f, const char *path, mode_t mode, bool parents,
		struct err *err);

/*
 * Makes a file beside the path, for fence_keep() to put in its place: readers see the old content
 * or all of the new one.  Returns its descriptor; name gets what it is called until then, in
 * *ret_folder, which the caller closes.
 */
int fence_make(const struct fence *f, const char *path, mode_t mode, int *ret_folder,
	       char name[FENCE_NAME_MAX], struct err *err);
int fence_keep(const struct fence *f, int folder, const char *name, const char *path,
	       struct err *err);

/* A file, link, empty folder; with recursive a folder and all in it.  Nothing is followed. */
int fence_remove(const struct fence *f, const char *path, bool recursive, struct err *err);

/* replace: whether something may be there already. */
int fence_rename(const struct fence *f, const char *from, const char *to, bool replace,
		 struct err *err);

/* Of the thing itself: a link is not followed.  Descriptors of files are opened for nothing else.
 */
int fence_stat(const struct fence *f, const char *path, struct stat *ret,
	       char target[FENCE_TARGET_MAX], struct err *err);

/* follow: what a last link leads to, as long as that is beneath the root. */
int fence_stat_followed(const struct fence *f, const char *path, struct stat *ret, struct err *err);

/* The lower nine bits; setuid, setgid and sticky are refused.  Never through a link. */
int fence_chmod(const struct fence *f, const char *path, mode_t mode, struct err *err);

/* A link in the fence; its text may say anything: it is judged when it is used. */
int fence_symlink(const struct fence *f, const char *text, const char *path, struct err *err);

struct fence_entry {
	const char *name;
	struct stat stat;
	const char *target; /* of a link; else "" */
};

/*
 * Calls back for each entry but "." and "..", in no order; at most max of them, then ERR_LIMIT.
 * What vanishes meanwhile is left out.  A callback that returns -1 ends it (and sets err).
 */
typedef int fence_entry_fn(void *arg, const struct fence_entry *e, struct err *err);

int fence_list(const struct fence *f, const char *path, size_t max, fence_entry_fn *each, void *arg,
	       struct err *err);

#endif
