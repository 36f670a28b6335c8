/*
 * requests.h - what commands tell the running auditor.
 */
#ifndef AUDIT_REQUESTS_H
#define AUDIT_REQUESTS_H

#include "gate/base/err.h"

#include <stdint.h>

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

/*
 * Asks the running auditor to erase values that records commit to (`log { erasable }`):
 * those of an identity ("" : of everybody), older than a second since 1970 (0: of any age).
 * Both ends are on record, with the ticket.  Only root and the auditor's own user may.
 */
int log_erase(const char *dir, const char *ticket, const char *identity, int64_t before_s,
	      struct err *err);

#endif
