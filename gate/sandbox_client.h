/*
 * sandbox_client.h - one request to the sandbox API over its socket, blocking.
 *
 * For the verbs `sallyport sandbox ...`.  The answer is read as it comes, and is not trusted: what
 * is no HTTP is an error, and whoever collects it says how much at most.
 */
#ifndef GATE_SANDBOX_CLIENT_H
#define GATE_SANDBOX_CLIENT_H

#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/jv.h"
#include "gate/command.h"

#include <stdint.h>
#include <sys/types.h>

#define API_BODY_MAX ((size_t)48 << 20) /* of an answer that is collected */

struct api {
	char socket[108];
	char token[512]; /* "": none */
};

struct api_question {
	const char *method, *target;
	const char *accept; /* NULL: application/json */
	const char *type;   /* of the body; NULL: there is none */
	struct span body;
	bool streams; /* the body is written with api_piece() */
};

struct api_answer {
	int fd, status;
	struct buf in;              /* came, and was not taken yet */
	int64_t left;               /* of the body, or of its chunk; -1: until the end */
	bool chunked, over, within; /* within: a chunk's line end is still to come */
};

/* Where the API is, and who asks, by the options of a verb.  0, or -1. */
int api_find(const struct args *args, struct api *ret, struct err *err);

/* Sends the head and body; with streams: the head.  ret is to be closed. */
int api_send(const struct api *api, const struct api_question *q, struct api_answer *ret,
	     struct err *err);

/* A piece of a body that streams; len 0 ends it. */
int api_piece(struct api_answer *r, const void *bytes, size_t len, struct err *err);

/* Waits for the answer's head. */
int api_head(struct api_answer *r, struct err *err);

/* Takes of what is there; waits only if nothing is.  0: it is over; -1. */
ssize_t api_read(struct api_answer *r, void *to, size_t size, struct err *err);
/* Whether api_read() has something to take; what it needs is had by api_fetch(), which waits. */
bool api_ready(const struct api_answer *r);
bool api_fetch(struct api_answer *r); /* false: no more will come */
void api_close(struct api_answer *r);

/* All of the answer's body. */
int api_collect(struct api_answer *r, struct buf *ret, struct err *err);

/*
 * The whole of it: asks, and has the answer as JSON in the arena.  What the API refuses is told on
 * stderr, and *ret_status is its status; tree may be NULL.
 */
int api_ask(const struct api *api, const struct api_question *q, struct arena *a, int *ret_status,
	    struct jv *tree, struct err *err);

/* Tells a refusal as an operator reads it. */
void api_tell(struct span body, int status);

/* Text from outside, made harmless for a terminal. */
void api_print(FILE *out, const char *before, const char *text);

/* A path of the API: of a sandbox, and with what is behind it; path: its octets are encoded. */
int api_target(struct arena *a, const char *id, const char *behind, const char *path,
	       const char **ret, struct err *err);

#endif
