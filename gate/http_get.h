/*
 * http_get.h - one blocking GET over a unix socket, for `health` and `doctor`.
 *
 * The data plane does not use it.  The whole exchange has a time limit, the
 * answer a size limit.
 */
#ifndef GATE_HTTP_GET_H
#define GATE_HTTP_GET_H

#include "gate/base/buf.h"
#include "gate/base/err.h"

#define HTTP_GET_BODY_MAX ((size_t)4 << 20)

/* ret_body is initialised by the call and filled only on success. */
int http_get(const char *socket_path, const char *target, unsigned limit_ms, int *ret_status,
	     struct buf *ret_body, struct err *err);

/* Head and body of an answer that has come completely; for tests. */
int http_get_parse(struct span answer, int *ret_status, struct buf *ret_body, struct err *err);

#endif
