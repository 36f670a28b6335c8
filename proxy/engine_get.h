/*
 * engine_get.h - one GET from a guarded service, waited for: for commands, which have
 * no loop.  It reaches the service as workers do, wherever it is (dial.h).
 */
#ifndef PROXY_ENGINE_GET_H
#define PROXY_ENGINE_GET_H

#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "proxy/conf.h"

#define ENGINE_GET_BODY_MAX ((size_t)4 << 20)

/*
 * ret_body is initialised by the call and filled only on success.  The whole exchange
 * has a time limit, but for the look-up of a name.  SIGPIPE is never raised.
 */
int engine_get(const struct conf_backend *conf, const char *target, unsigned limit_ms,
	       int *ret_status, struct buf *ret_body, struct err *err);

#endif
