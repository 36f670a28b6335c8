/*
 * upstream_priv.h - a pool and its calls, between the parts of upstream.h:
 *
 *	upstream.c        the pool, and what the exchange calls
 *	upstream_line.c   connections: dialled, written to, read from, given up
 *	upstream_reply.c  what comes back becomes a head and a body
 */
#ifndef PROXY_UPSTREAM_PRIV_H
#define PROXY_UPSTREAM_PRIV_H

#include "proxy/dial.h"
#include "proxy/upstream.h"

#include <http_parser.h>

#define UPSTREAM_HEADERS_MAX   64
#define UPSTREAM_HEAD_TEXT_MAX 65536
#define UPSTREAM_READ_BYTES    65536

struct upstream {
	struct loop *loop;
	struct dial *dial;
	struct upcall *idle; /* linked by next */
	size_t idle_count;
	uint64_t dials; /* that upstream_take_dials() has not told yet */
	uint64_t epoch; /* counts what stood behind the address; see upstream_epoch() */
	void (*lost)(void *arg);
	void *lost_arg;
};

enum head_part { PART_NONE = 0, PART_FIELD, PART_VALUE };

/* One connection, and the call that is on it (if any). */
struct upcall {
	struct watch watch; /* first: the loop hands it back */
	struct upstream *pool;
	struct line line;                       /* its descriptor is the watch's */
	struct upcall *next;                    /* in pool->idle */
	const struct upcall_handlers *handlers; /* NULL: idle */
	void *arg;
	char why[UPCALL_WHY_MAX]; /* it failed, where there is more to say than which fault */

	struct buf out; /* waits to be sent */
	bool streams_body, chunked, send_ended, wants_room;
	bool unsent; /* some of the request never went out */
	bool is_head, reused, repeatable;
	struct buf again; /* a repeatable request, until the reply begins */

	http_parser parser;
	struct buf text; /* reply headers: names and values, each with a NUL */
	struct {
		size_t key, key_len, value, value_len; /* offsets into text */
	} at[UPSTREAM_HEADERS_MAX];
	size_t header_count;
	enum head_part part;
	bool head_bad, head_given, complete, keep;
	int status;
	int64_t length;
	struct buf body;
};

/* --- upstream_line.c --- */

/* A connection of its own for a new call; NULL: there is none to be had. */
struct upcall *upcall_dial(struct upstream *u, struct err *err);
void upcall_destroy(struct upcall *c);

/* Sends what the socket takes; what it waits for then is told to the loop. */
void upcall_push(struct upcall *c);
void upcall_set_interest(struct upcall *c);

/* --- upstream_reply.c --- */

void upcall_reset_reply(struct upcall *c);

/* Bytes of the reply; at the end of them, none. */
enum upcall_fault upcall_feed(struct upcall *c, const char *at, size_t len);
void upcall_feed_end(struct upcall *c);

/* Tells the exchange of the head; it may release the call. */
void upcall_give_head(struct upcall *c);

#endif
