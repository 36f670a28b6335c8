/*
 * wire.h - frames on stdin and stdout of the program inside a sandbox.
 *
 * stdin comes from the gate and is checked all the same; what makes no sense is EPROTO.  The two
 * ends are descriptors 0 and 1, and are made non-blocking once by wire_init().
 */
#ifndef PROXY_SANDBOX_INSIDE_WIRE_H
#define PROXY_SANDBOX_INSIDE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proxy/sandbox/inside/frames.h"

#define WIRE_GONE (-2) /* the gate is gone */

/* What was read and not taken yet. */
struct wire_in {
	uint8_t data[2 * (FRAME_HEAD + FRAME_DATA_MAX)];
	size_t have;
	bool ended; /* FRAME_STDIN_END was met by wire_octets() */
};

struct frame {
	enum frame_type type;
	const uint8_t *data; /* in the wire_in; until wire_drop() */
	uint32_t length;
};

/* One frame on its way out. */
struct wire_out {
	uint8_t data[FRAME_HEAD + FRAME_DATA_MAX];
	size_t from, to;
};

void wire_init(void);

/* Reads what is there.  1, 0 if nothing was, WIRE_GONE at the end of file. */
int wire_fill(struct wire_in *in);

/* 1 and a whole frame, 0 if there is none yet, -1 with errno EPROTO. */
int wire_next(const struct wire_in *in, struct frame *ret);

/* Takes the frame that wire_next() gave. */
void wire_drop(struct wire_in *in);

/*
 * Waits for octets of FRAME_STDIN frames: how many (1 to size), 0 when FRAME_STDIN_END was met,
 * -1 with errno EPROTO, WIRE_GONE.  Other frames are EPROTO.
 */
int wire_octets(struct wire_in *in, void *buffer, size_t size);

/* Where the data of the next frame may be put, and its start; at most FRAME_DATA_MAX. */
uint8_t *wire_room(struct wire_out *out);
void wire_put(struct wire_out *out, enum frame_type type, size_t length);

/* Writes what fits.  0, or WIRE_GONE. */
int wire_flush(struct wire_out *out);

/* Writes all that is left, waiting for the reader.  0, or WIRE_GONE. */
int wire_finish(struct wire_out *out);

/* Whether somebody has closed one of the two ends; does not wait. */
bool wire_gone(void);

/* Writes a whole frame, waiting for the reader; when the gate is gone: WIRE_GONE, else 0. */
int wire_send(enum frame_type type, const void *data, size_t length);

/* The last frame.  Both return what main() returns: 0 if it could be said. */
int wire_end(int code, int signal, bool timed_out, bool truncated);
int wire_fail(int sys, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
