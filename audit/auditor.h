/*
 * auditor.h - the process that writes the log.
 *
 * One writer: it gathers what the workers sent, writes it with one pwritev()
 * and one fdatasync(), and answers each worker.  Any write error seals the
 * log: it is never retried, and nothing that changes state is served until
 * the log has been opened anew.
 *
 * The supervisor gives it worker connections over the control socket (tag 'w',
 * one descriptor).  End of file there means: write gate_stop and end.
 */
#ifndef AUDIT_AUDITOR_H
#define AUDIT_AUDITOR_H

#include "gate/base/err.h"

#include <stddef.h>
#include <stdint.h>

struct auditor;

struct auditor_conf {
	const char *dir;        /* must exist and be writable */
	const char *origin;     /* the log's name, e.g. "host/sallyport" */
	uint64_t segment_bytes; /* a new file is begun behind this size */
	unsigned flush_ms;      /* reads are on disk within this time (5) */
	unsigned claim_ms;      /* workers have this long to claim open decisions after a start */
	const char *build;      /* version string, for gate_start */
};

/*
 * Locks the directory, recovers a torn tail, opens the newest segment.  NULL:
 * the directory is in use, the log is damaged, or the file system refuses.
 */
struct auditor *auditor_open(const struct auditor_conf *conf, struct err *err);

/* Serves until the control socket ends.  Returns the process's exit status. */
int auditor_run(struct auditor *a, int control_fd);

void auditor_close(struct auditor *a);

#endif
