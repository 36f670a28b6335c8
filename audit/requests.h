/*
 * requests.h - what commands tell the running auditor.
 */
#ifndef AUDIT_REQUESTS_H
#define AUDIT_REQUESTS_H

#include "gate/base/err.h"

/*
 * Has it on record that this user read the log ("audit verify"): for commands.  What
 * cannot be told (no gate runs, the user may not) is not.
 */
void log_tell_read(const char *dir, const char *command);

/*
 * Asks the running auditor for a new signing key.  Only root and the auditor's own
 * user may.  ERR_CONFIG: none runs.
 */
int log_rotate_key(const char *dir, struct err *err);

#endif
