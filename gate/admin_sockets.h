/*
 * admin_sockets.h - the listeners that were made at run time, as the supervisor holds them.
 *
 * It alone can give a socket to a group, so it makes them; what it is told comes from the
 * admin process, as plain data that is looked at again here.  The folder is configured; every
 * step below it is opened beneath the one before, through no link, and must be writable by
 * nobody but root and who started the gate.
 */
#ifndef GATE_ADMIN_SOCKETS_H
#define GATE_ADMIN_SOCKETS_H

#include "gate/admin.h"

#include <sys/types.h>

struct admin_sockets;

/* NULL: no memory.  starter: who may own folders besides root, and owns the sockets. */
struct admin_sockets *admin_sockets_create(uid_t starter);

/* Closes them; their files stay, so that an engine finds what it is to mount. */
void admin_sockets_destroy(struct admin_sockets *s);

/* Listener i of those that there are, or NULL. */
const struct runtime_listener *admin_sockets_at(const struct admin_sockets *s, size_t i);
size_t admin_sockets_count(const struct admin_sockets *s);
const struct runtime_listener *admin_sockets_all(const struct admin_sockets *s);

/* Makes the configured folder if it is missing. */
int admin_sockets_folder(const struct admin_sockets *s, const char *folder, struct err *err);

/*
 * ADMIN_DONE, or why it cannot be.  restored: it was there before, and its profile may have
 * gone meanwhile; then its callers are refused, each with that reason.
 */
enum admin_answer admin_sockets_try(const struct admin_sockets *s, const struct config *c,
				    const struct runtime_row *row, bool restored, struct err *err);

/* Makes it; *row gets its id, and the socket's owner.  restored: one that is there stays. */
enum admin_answer admin_sockets_add(struct admin_sockets *s, const struct config *c,
				    struct runtime_row *row, bool restored,
				    const struct runtime_listener **ret, struct err *err);

/* Closes it and removes its file; *ret is what it was. */
enum admin_answer admin_sockets_remove(struct admin_sockets *s, const struct config *c,
				       const char *name, struct runtime_row *ret);

/* Removes what a gate before left at this path: a socket that nobody answers on. */
void admin_sockets_clear(const struct admin_sockets *s, const struct config *c, const char *path);

/* One whose lifetime has ended is removed; false: there is none. */
bool admin_sockets_expire(struct admin_sockets *s, const struct config *c, struct runtime_row *ret);

/* When admin_sockets_expire() is due next, on clock_boot_ms(); UINT64_MAX: never. */
uint64_t admin_sockets_due(const struct admin_sockets *s);

#endif
