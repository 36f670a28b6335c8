/*
 * frame.h - messages between the gate's own processes.
 *
 * A stream socket carries frames: a 32-bit length in host order, then that
 * many bytes.  Frames are queued and sent in one write a loop turn.  The peer
 * is one of ours but may have been taken over, so a frame has a cap and a
 * longer one counts as the end of the connection.
 *
 * Not thread-safe.  The descriptor is owned and must be non-blocking.
 */
#ifndef GATE_BASE_FRAME_H
#define GATE_BASE_FRAME_H

#include "gate/base/buf.h"

#include <stdbool.h>
#include <stddef.h>

#define FRAME_MAX 131072 /* bytes in one frame */

struct frame_conn {
	int fd; /* -1: gone */
	struct buf in, out;
	size_t taken; /* bytes of the frame that frame_next() gave last */
};

/* out_cap: bytes that may wait to be sent. */
void frame_init(struct frame_conn *c, int fd, size_t out_cap);

/* Closes the descriptor and frees the queues.  Safe to call twice. */
void frame_close(struct frame_conn *c);

static inline bool frame_alive(const struct frame_conn *c)
{
	return c->fd >= 0;
}

/* Queues one frame made of two parts.  False: the queue is full or the peer gone. */
bool frame_put(struct frame_conn *c, struct span head, struct span body);

/* True while bytes wait to be sent (then watch for EPOLLOUT). */
static inline bool frame_waiting(const struct frame_conn *c)
{
	return buf_len(&c->out) > 0;
}

/* Sends what the socket takes.  False: the peer is gone (and the conn closed). */
bool frame_flush(struct frame_conn *c);

/* Reads what has come.  False: the peer is gone; frames read before are still given. */
bool frame_fill(struct frame_conn *c);

/* The next whole frame, valid until the next call; false if there is none yet. */
bool frame_next(struct frame_conn *c, struct span *ret);

#endif
