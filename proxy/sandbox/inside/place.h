/*
 * place.h - a path of a file verb: the folder that it is in, held, and the name there.
 *
 * With a fence (--beneath) no link leads out of it: the kernel resolves beneath the folder where
 * openat2 is there; elsewhere (gVisor) each component is opened without following links, so that a
 * link on the way is ELOOP.  Without one, links are followed as the sandbox sees them, magic links
 * excepted where openat2 is there.
 */
#ifndef PROXY_SANDBOX_INSIDE_PLACE_H
#define PROXY_SANDBOX_INSIDE_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

#define NAME_OCTETS_MAX 255

struct place {
	int folder; /* O_PATH */
	bool fenced;
	char name[NAME_OCTETS_MAX + 1]; /* "." for the folder itself */
	const char *said;               /* the path as it was given, for messages; the caller's */
};

/* What a file verb was given: [--beneath D] P and its options. */
struct words {
	const char *beneath, *path; /* still encoded */
	const char *said;
	bool parents, recursive;
	mode_t mode;    /* 0644 unless --mode */
	long long most; /* --max; 10000 unless given */
};

/* 0, or -1: not these words. */
int words_read(struct words *w, char **words);

/*
 * Finds it; parents: makes the folders on the way (0755).  0, or -1 with errno: EINVAL for a path
 * that names nothing ("", "..", relative without a fence), EXDEV for one that leaves the fence.
 */
int place_find(struct place *p, const struct words *w, bool parents);

/* Opens what is there; a link is followed only for reading and only without O_NOFOLLOW. */
int place_open(const struct place *p, int flags);

#endif
