/*
 * confine_box.h - the walls of a sandbox that the kernel's libraries know: system call filters,
 * Landlock, no capabilities.
 *
 * For single-threaded processes that start something hostile.  As in confine.h, there is no partial
 * result: after a failure the process must exit.
 */
#ifndef GATE_BASE_CONFINE_BOX_H
#define GATE_BASE_CONFINE_BOX_H

#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/span.h"

#include <stddef.h>

#define CONFINE_PROGRAM_MAX 32768 /* bytes: what the kernel takes (4096 instructions) */

/* confine_box.def as programs; they are initialised by the call, and the caller's. */
int confine_programs(struct buf *ret_list, struct buf *ret_floor, struct err *err);

/* Installs one; they add up.  no_new_privs must be set. */
int confine_program(struct span program, struct err *err);

/* No capability, now or by executing anything, and no way to have one again. */
int confine_powerless(struct err *err);

/* A keyring of its own instead of one that the starter's processes share. */
int confine_keyring(struct err *err);

enum confine_use {
	CONFINE_LOOK = 0, /* names of what is there, here and below; nothing is opened */
	CONFINE_READ,     /* read and execute, all below it */
	CONFINE_WRITE,    /* the same, and change; no devices are made */
	CONFINE_DEVICES,  /* open what is there, with its ioctls */
};

struct confine_path {
	int fd; /* O_PATH */
	enum confine_use use;
};

/*
 * Nothing but these paths, by Landlock; no signals and no abstract sockets to processes outside,
 * where the kernel has that.  least: the ABI below which it fails; where there is no Landlock at
 * all and least is 0, nothing is done.
 */
int confine_paths(const struct confine_path *paths, size_t count, unsigned least, struct err *err);

/* Only: no signals to processes outside; nothing where the kernel lacks that. */
int confine_signals(struct err *err);

#endif
