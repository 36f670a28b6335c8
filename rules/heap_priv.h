/*
 * heap_priv.h - the memory of one Lua state, which can be put back.
 *
 * Everything that Lua allocates, and the allocator's own book-keeping, lies in
 * one private mapping of fixed size.  heap_freeze() keeps a copy of what is in
 * use; heap_restore() puts it back byte for byte, so nothing that ran in
 * between is left: no global, no upvalue, no table, no interned string.
 *
 * Latched: once a growth was refused, every later one is refused too, until
 * the heap is restored.  So a rule that ran out of memory cannot go on in what
 * an emergency collection frees.
 *
 * Besides the size of the whole, a single block has a cap.  It bounds what one
 * instruction can cost: the rehash of a table, a copy, a comparison.
 */
#ifndef RULES_HEAP_PRIV_H
#define RULES_HEAP_PRIV_H

#include "gate/base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct heap;

/* bytes: size of the mapping, rounded up to pages.  NULL: ERR_SYSTEM. */
struct heap *heap_open(size_t bytes, struct err *err);
void heap_close(struct heap *h); /* NULL is allowed */

/* A lua_Alloc; heap is a struct heap. */
void *heap_alloc(void *heap, void *block, size_t old_bytes, size_t new_bytes);

/* How much may be in use, less than the whole: tests fail each growth in turn. */
void heap_set_limit(struct heap *h, size_t bytes);

void heap_set_block_max(struct heap *h, size_t bytes);

/* Whether a growth was refused since the heap was opened or restored. */
bool heap_spent(const struct heap *h);

/* The most that has been in use since then, in bytes. */
size_t heap_used(const struct heap *h);

/* The size of the largest block in use; 1024 if all are smaller. */
size_t heap_largest(const struct heap *h);

/* Takes the image.  Once; -1: ERR_SYSTEM. */
int heap_freeze(struct heap *h, struct err *err);

/* After heap_freeze(): all is as it was then. */
void heap_restore(struct heap *h);

#endif
