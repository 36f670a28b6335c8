#include "gate/base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALLEST 256

void buf_init(struct buf *b, size_t cap_bytes)
{
	*b = (struct buf){.cap = cap_bytes};
}

void buf_fini(struct buf *b)
{
	free(b->mem);
	buf_init(b, b->cap);
}

void buf_clear(struct buf *b)
{
	b->start = b->end = 0;
	b->spent = false;
}

static void slide_down(struct buf *b)
{
	if (!b->start || !b->mem)
		return;
	memmove(b->mem, b->mem + b->start, buf_len(b));
	b->end -= b->start;
	b->start = 0;
}

char *buf_reserve(struct buf *b, size_t want)
{
	size_t size = b->size ? b->size : SMALLEST;
	char *mem;

	if (b->spent || want > buf_room(b)) {
		b->spent = true;
		return NULL;
	}
	if (b->size - b->end >= want && b->mem)
		return b->mem + b->end;
	slide_down(b);
	while (size - b->end < want)
		size *= 2;
	if (size == b->size)
		return b->mem + b->end;
	mem = realloc(b->mem, size);
	if (!mem) {
		b->spent = true;
		return NULL;
	}
	b->mem = mem;
	b->size = size;
	return b->mem + b->end;
}

void buf_commit(struct buf *b, size_t len)
{
	assert(len <= b->size - b->end);
	b->end += len;
}

void buf_put(struct buf *b, const void *bytes, size_t len)
{
	char *at = len ? buf_reserve(b, len) : NULL;

	if (!at)
		return;
	memcpy(at, bytes, len);
	buf_commit(b, len);
}

void buf_puts(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	char *at;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	/* One more for the NUL that vsnprintf writes and we do not keep. */
	at = len < 0 ? NULL : buf_reserve(b, (size_t)len + 1);
	if (at) {
		vsnprintf(at, (size_t)len + 1, fmt, again);
		buf_commit(b, (size_t)len);
	}
	va_end(again);
}

void buf_consume(struct buf *b, size_t len)
{
	assert(len <= buf_len(b));
	b->start += len;
	if (b->start == b->end)
		b->start = b->end = 0;
}
