/*
 * listen.h - the sockets on which the gate can be reached.
 */
#ifndef GATE_LISTEN_H
#define GATE_LISTEN_H

#include "gate/base/err.h"

#include <sys/types.h>

struct listen_access {
	uid_t uid;
	gid_t gid;
	mode_t mode;
};

/*
 * Makes a listening, non-blocking unix socket with this owner and mode.  A
 * socket file that nobody answers on is removed first; anything else in its
 * place is an error, and so is a folder that does not exist.
 */
int listen_unix(const char *path, const struct listen_access *access, int *ret_fd, struct err *err);

/* A connected, blocking socket with a time limit on each read and write. */
int listen_connect(const char *path, unsigned limit_ms, int *ret_fd, struct err *err);

#endif
