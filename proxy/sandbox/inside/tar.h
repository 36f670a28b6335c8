/*
 * tar.h - the head of a tar's member: ustar, with what does not fit in a pax record before it.
 */
#ifndef PROXY_SANDBOX_INSIDE_TAR_H
#define PROXY_SANDBOX_INSIDE_TAR_H

#include <stddef.h>
#include <stdint.h>

#define TAR_BLOCK    512
#define TAR_PATH_MAX 4096  /* octets of a name or a link's target, with its NUL */
#define TAR_NAME_MAX 255   /* of one component */
#define TAR_PAX_MAX  65536 /* octets of the records before one member */

struct tar_head {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], unused[12];
};
_Static_assert(sizeof(struct tar_head) == TAR_BLOCK, "a head is one block");

/* The sum of a head's octets, its own field counted as blanks. */
unsigned tar_sum(const struct tar_head *h);

/* Where the octets of a tar come from.  Fills all of buffer: 0; -1 with errno, or WIRE_GONE. */
struct tar_source {
	int (*read)(void *ctx, void *buffer, size_t size);
	void *ctx;
};

/*
 * Unpacks into a folder and nowhere else: no link is followed, members are replaced and never
 * written through.  Devices, FIFOs and sparse files are refused (EPERM), names that are absolute or
 * hold ".." too (EXDEV).  Owners are not kept, nor set-uid bits; folders stay writable.
 *
 * 0, -1 with errno, or what the source said.  *what: the member, for a message; it may be odd.
 */
int tar_unpack(int folder, const struct tar_source *from, const char **what);

#endif
