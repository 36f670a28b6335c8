/*
 * behalf.h - requests that a process of the gate sends for somebody who asked it.
 *
 * The process behind the sandbox API holds connections to workers, which the supervisor made
 * as socket pairs.  On these, and on no other connection, each request must carry the header
 * Sallyport-For, whose value is one JSON object:
 *
 *	{"listener":"agents","identity":"agent","uid":1000,"gid":1000,"pid":4711,
 *	 "address":"10.0.0.7","profile":"tighter","backend":"engine","own":true}
 *
 *	listener  one with `sandboxes`
 *	identity  one of those that this listener lets in; left out: who it is shows by the other
 *	          signs and a token, as on that listener itself
 *	profile   what it is to be judged by: the identity's own, or one that extends that
 *	backend   one of the listener's `sandboxes`
 *	own       the gate's own cleaning up: DELETE and GET of a container, and nothing else
 *
 * Who that is, and what it may, is what the worker's own configuration says; what is named there
 * and is not in the configuration is refused.  From there on it is judged, recorded and
 * forwarded as if the caller had sent it.
 *
 * GET /sallyport/who tells what the worker makes of the header, and no record is made of it.
 * A refusal on such a connection is JSON: {"error":{"code","message","hint","decision",
 * "violations":[...]},"level"}.
 */
#ifndef PROXY_BEHALF_H
#define PROXY_BEHALF_H

#include <stdbool.h>

#define BEHALF_HEADER "sallyport-for"
#define BEHALF_WHO    "/sallyport/who"

/* By which the gate's own cleaning up is judged: loaded beside those of the configuration. */
#define BEHALF_PROFILE "sallyport-sandboxes"
#define BEHALF_RULES                                                                               \
	"return profile \"" BEHALF_PROFILE "\" {\n"                                                \
	"	doc = \"The gate ends sandboxes.\",\n"                                                   \
	"	operations = { \"container.inspect\", \"container.remove\" },\n"                         \
	"}\n"

#define BEHALF_ISOLATION "Sallyport-Isolation" /* of what was made: "process runc" */

struct conn;
struct exchange;
struct pair;
struct raw_head;
struct worker;
struct MHD_Response;
struct err;

/* A connection of that process; fd is taken, whatever comes of it. */
int behalf_adopt(struct worker *w, int fd, struct err *err);

/* The head has come.  False: call.refused says what is wrong. */
bool behalf_read(struct exchange *x, const struct raw_head *raw);

/* True: it was the question who that is, and is answered. */
bool behalf_answers(struct exchange *x);

/* The refusal in x->decision, as the answer's body. */
void behalf_refusal(struct exchange *x);

/* What was made, as headers. */
void behalf_tell(const struct exchange *x, struct MHD_Response *r);

#endif
