/*
 * libpq_priv.h - PostgreSQL's library, loaded when it is needed.
 *
 * It brings OpenSSL, Kerberos and LDAP along, which the gate's own processes should not
 * have in their memory; and who ships elsewhere does not need it.
 */
#ifndef AUDIT_LIBPQ_PRIV_H
#define AUDIT_LIBPQ_PRIV_H

#include "gate/base/err.h"

#include <libpq-fe.h>

struct libpq {
#define FUNCTION(name) __typeof__ (&(name))(name);
#include "audit/libpq.def"
#undef FUNCTION
};

/* Loads it once a process; NULL with *err if it is not installed. */
const struct libpq *libpq_load(struct err *err);

#endif
