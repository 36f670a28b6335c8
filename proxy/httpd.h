/*
 * httpd.h - a small HTTP/1.1 server for the gate's processes that may block: a thread a
 * connection, with caps on connections, heads and bodies.
 *
 * For each request, all on the thread of its connection:
 *
 *	begin    the head is here.  May set `body_max`, `pieces` and `state`, or answer at once
 *	piece    with `pieces`: a part of the body, as it comes; false: an answer was given, and
 *	         the rest is dropped.  Else the body is collected in `body`
 *	handle   all of it is here: must answer with one httpd_reply...() call
 *	done     the request is over, answered or not: `state`, if there is one, is to be freed.
 *	         May be NULL
 *
 * A body longer than body_max is answered with 413 and handle() is not called.  What is no
 * HTTP, or could be read in two ways, is answered with 400 and reaches none of them.
 *
 * The worker has no part of this: its connections live in its own loop (front.c).
 */
#ifndef PROXY_HTTPD_H
#define PROXY_HTTPD_H

#include "backends/backend.h"
#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/span.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct httpd;
struct MHD_Connection;
struct MHD_Response;

struct httpd_request {
	const char *method;       /* as it was sent */
	const char *path;         /* decoded once; begins with '/', holds no NUL */
	const struct pair *query; /* decoded once; no key twice */
	size_t query_count;
	const struct pair *headers; /* names in lower case */
	size_t header_count;
	int64_t length;      /* of the body; -1: chunked */
	int fd;              /* of the connection: to look for a hang-up, or at the peer */
	struct arena *arena; /* of the request */
	struct buf body;

	/* begin() may set */
	uint64_t body_max;
	bool pieces;
	void *state;

	/* httpd.c's own */
	struct httpd *server;
	struct MHD_Connection *mhd;
	struct MHD_Response *response;
	int status;
	bool began;
	uint64_t seen, dropped;
	struct pair *extra; /* headers of the answer */
	size_t extra_count;
};

struct httpd_conf {
	int listener;         /* bound and listening; stays the caller's */
	unsigned connections; /* at once; more wait in the listener's queue or are closed */
	unsigned idle_s;      /* a head or body that stalls for this long; 0: for ever */
	size_t held_max;      /* body_max of a request that begin() leaves alone */
	size_t arena_max;     /* of a request's arena: at least 64 KiB */

	void (*begin)(void *arg, struct httpd_request *r);
	bool (*piece)(void *arg, struct httpd_request *r, struct span piece);
	void (*handle)(void *arg, struct httpd_request *r);
	void (*done)(void *arg, struct httpd_request *r);
	void *arg;
};

/* Serves on threads of its own from now on. */
struct httpd *httpd_start(const struct httpd_conf *conf, struct err *err);

/* Accepts nobody any more, cuts the connections and waits for their threads. */
void httpd_stop(struct httpd *h);

/* A value of the query or a header (lower case); NULL if there is none. NUL-terminated. */
const char *httpd_query(const struct httpd_request *r, const char *key);
const char *httpd_header(const struct httpd_request *r, const char *name);

/* It was answered already: by begin() or piece(). */
bool httpd_answered(const struct httpd_request *r);

/*
 * A header of the answer, before it is given; kept, not copied: of the request's arena, or static.
 */
void httpd_reply_header(struct httpd_request *r, const char *name, const char *value);

/* The whole answer. `body` is copied; content_type may be NULL. */
void httpd_reply(struct httpd_request *r, int status, const char *content_type, struct span body);

/*
 * An answer that is made as it is sent: more() fills at most `room` bytes and returns how many, 0
 * at the end, -1 to cut the connection.  It may block, and looks at r->fd meanwhile if it is to
 * notice a caller who hangs up.  length: of the whole, or -1.
 */
typedef ssize_t httpd_more_fn(struct httpd_request *r, char *at, size_t room);
void httpd_reply_stream(struct httpd_request *r, int status, const char *content_type,
			int64_t length, httpd_more_fn *more);

/*
 * 101: `talk` has the connection to itself until it returns; `extra` has come already behind
 * the head.  r->fd is a blocking descriptor then, and is closed behind it.
 */
typedef void httpd_talk_fn(struct httpd_request *r, struct span extra);
void httpd_reply_upgrade(struct httpd_request *r, const char *protocol, const char *content_type,
			 httpd_talk_fn *talk);

#endif
