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

/* What is asked for, where more than the target matters. */
struct engine_question {
	const char *target, *host; /* host: of the head */
	const char *more;          /* lines of the head, each with CRLF; "" */
	size_t body_max;
	unsigned limit_ms;
};

#define ENGINE_TAG_MAX 200

struct engine_answer {
	int status;
	char etag[ENGINE_TAG_MAX]; /* "" if there is none, or one that is too long */
	struct buf body;
};

/* ret->body is the caller's to free, on success. */
int engine_ask(const struct conf_backend *conf, const struct engine_question *q,
	       struct engine_answer *ret, struct err *err);

/*
 * ret_body is initialised by the call and filled only on success.  The whole exchange
 * has a time limit, but for the look-up of a name.  SIGPIPE is never raised.
 */
int engine_get(const struct conf_backend *conf, const char *target, unsigned limit_ms,
	       int *ret_status, struct buf *ret_body, struct err *err);

#endif
