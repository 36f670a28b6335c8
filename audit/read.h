/*
 * read.h - the records of a log, one after the other, for whoever makes something of them.
 */
#ifndef AUDIT_READ_H
#define AUDIT_READ_H

#include "gate/base/err.h"
#include "gate/base/span.h"

/* A whole line without its newline, valid during the call.  Anything but 0 ends the reading. */
typedef int log_line_fn(void *arg, struct span line);

/*
 * Reads the log in dir from its first record to its last; a line that is not
 * complete yet ends it.  Each line's hash is looked at, no more: whether the
 * log is whole is for verify_log() to say.  Returns what fn returned, or -1
 * with *err.
 */
int log_read(const char *dir, log_line_fn *fn, void *arg, struct err *err);

#endif
