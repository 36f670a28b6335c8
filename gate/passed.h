/*
 * passed.h - listening sockets that outlive the gate.
 *
 * What connects to a unix socket finds it by the file's inode, and a new socket
 * is a new inode: who has the file mounted, as a container has, would be left
 * with one that nobody listens on.  So the service manager may hold sockets
 * (its socket units, or its store of descriptors), and passes them at the start
 * (sd_listen_fds: LISTEN_PID, LISTEN_FDS).
 */
#ifndef GATE_PASSED_H
#define GATE_PASSED_H

#include "gate/listen.h"

/*
 * The socket that was passed and listens at this path, with this owner and mode
 * from now on; -1 if there is none.  -1 with an error: it cannot be used.
 */
int passed_take(const char *path, const struct listen_access *access, struct err *err);

/* The first descriptor behind those that were passed. */
unsigned passed_behind(void);

/* Closes what was passed and not taken; what is started later does not see that anything was. */
void passed_end(void);

/* Has the manager keep a socket for the next start, if there is a manager and it keeps any. */
void passed_keep(const char *name, int fd);

#endif
