/*
 * buf.h - a byte queue with a cap: written at the end, read at the front.
 *
 * The cap is given at the start, since what fills a buffer is chosen by
 * somebody else.  Once something did not fit, the buffer is "spent": later
 * writes are dropped as well, so code that builds a message in several steps
 * checks buf_spent() once, at the end.
 *
 * Not thread-safe.  The memory grows on demand and belongs to the buffer.
 */
#ifndef GATE_BASE_BUF_H
#define GATE_BASE_BUF_H

#include "gate/base/span.h"

#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *mem;
	size_t size;  /* allocated */
	size_t start; /* first byte not read yet */
	size_t end;   /* one past the last byte written */
	size_t cap;   /* the most that may be held */
	bool spent;
};

void buf_init(struct buf *b, size_t cap_bytes);

/* Frees the memory; the buffer is empty and usable again. */
void buf_fini(struct buf *b);

/* Forgets the content and "spent", keeps the memory. */
void buf_clear(struct buf *b);

static inline size_t buf_len(const struct buf *b)
{
	return b->end - b->start;
}

/* How much more may be written. */
static inline size_t buf_room(const struct buf *b)
{
	return b->cap - buf_len(b);
}

static inline bool buf_spent(const struct buf *b)
{
	return b->spent;
}

/* Valid until the next call that writes. */
static inline struct span buf_span(const struct buf *b)
{
	return (struct span){b->mem ? b->mem + b->start : "", buf_len(b)};
}

void buf_put(struct buf *b, const void *bytes, size_t len);
void buf_puts(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Room for at least want bytes behind the content; NULL (and spent) if the cap
 * or memory forbids.  What was written there is kept by buf_commit().
 */
char *buf_reserve(struct buf *b, size_t want);
void buf_commit(struct buf *b, size_t len);

/* Drops len bytes from the front. */
void buf_consume(struct buf *b, size_t len);

#endif
