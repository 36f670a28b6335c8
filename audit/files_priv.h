/*
 * files_priv.h - reads small files that are replaced as a whole (io_replace()).
 */
#ifndef AUDIT_FILES_PRIV_H
#define AUDIT_FILES_PRIV_H

#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/span.h"

#include <stdbool.h>

/*
 * Appends the content to out (which has a cap).  1: read; 0: there is none; -1: error.
 * No links, regular files only.  secret: refuses a file that others may read.
 */
int file_take(int dir_fd, const char *name, bool secret, struct buf *out, struct err *err);

#endif
