/* sink_local_priv.h - datagrams to a socket of this host. */
#ifndef AUDIT_SINK_LOCAL_PRIV_H
#define AUDIT_SINK_LOCAL_PRIV_H

#include "gate/base/err.h"
#include "gate/base/span.h"

struct local {
	const char *path; /* kept */
	int fd;
};

int local_open(struct local *l, const char *path, struct err *err);
/* Waits for a reader that is slow, but not for ever. */
int local_send(struct local *l, struct span message, struct err *err);
void local_close(struct local *l);

#endif
