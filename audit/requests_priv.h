/*
 * requests_priv.h - small files by which commands tell the running auditor
 * something: that they read the log, that the key shall be changed.
 *
 * They lie in the folder `requests` of the log's folder, which the log's group may
 * write to.  Who made a file is what the file system says.
 */
#ifndef AUDIT_REQUESTS_PRIV_H
#define AUDIT_REQUESTS_PRIV_H

#include "gate/base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define REQUEST_MAX    200 /* bytes of text, with the NUL */
#define REQUESTS_ROUND 64  /* looked at in one round */
#define REQUEST_ROTATE "rotate key"
#define REQUEST_ERASE  "erase values\n" /* and TICKET, IDENTITY, SECOND, a line each */

/* Bytes of a ticket or an identity: what is longer is refused where it is asked for. */
#define REQUEST_WORD_MAX 80
_Static_assert(sizeof(REQUEST_ERASE) + 2u * (REQUEST_WORD_MAX + 1) + 22 <= REQUEST_MAX,
	       "a request of the longest words fits");

struct request {
	char text[REQUEST_MAX];
	uint32_t uid, gid;
	bool trusted; /* root's or the auditor's own */
};

typedef void request_fn(void *arg, const struct request *request);

/* Makes the folder. */
void requests_open(int dir_fd);

/* Takes up to REQUESTS_ROUND requests and removes them. */
void requests_take(int dir_fd, request_fn *take, void *arg);

/*
 * Two locks: nobody but the auditor's user can open the first, which keeps a second auditor away;
 * by the other one all who may read the log can see that it is written.
 */
#define WRITER_LOCK "writer"
#define SHOWN_LOCK  "lock"

/* The auditor shows that it runs, until the descriptor is closed; -1: somebody else holds it. */
int log_show_written(int dir_fd);

/* An auditor runs there.  Nothing is locked for this, so it disturbs no auditor that starts. */
bool log_is_written(int dir_fd);

/*
 * Leaves a request, if an auditor runs there.  1: left; 0: none runs; -1: error,
 * for instance because this user may not.
 */
int request_leave(const char *dir, const char *text, struct err *err);

#endif
