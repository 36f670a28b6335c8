#include "rules/heap_priv.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STEP        ((size_t)16) /* sizes up to FINE_MAX are multiples of this */
#define FINE_MAX    ((size_t)1024)
#define FINE_COUNT  (FINE_MAX / STEP)
#define COARSE_MAX  ((size_t)1 << 26)
#define CLASS_COUNT (FINE_COUNT + (size_t)16 * 4 + 1)

/* Pages above the image that may stay after a restore: the next judgement needs them again. */
#define KEEP_BYTES ((size_t)256 * 1024)

struct free_block {
	struct free_block *next;
};

/* At the start of the mapping, so that it is part of the image. */
struct book {
	size_t used; /* bytes handed out from the front, this structure included */
	size_t block_max;
	bool spent;
	struct free_block *free[CLASS_COUNT];
	unsigned live[CLASS_COUNT]; /* blocks in use */
};

struct heap {
	unsigned char *base;
	size_t size, limit; /* of the mapping; of what may be in use */
	unsigned char *image;
	size_t image_bytes;
};

static struct book *book_of(const struct heap *h)
{
	return (struct book *)(void *)h->base;
}

static size_t round_up(size_t n, size_t unit)
{
	return (n + unit - 1) / unit * unit;
}

struct heap *heap_open(size_t bytes, struct err *err)
{
	struct heap *h = calloc(1, sizeof(*h));
	void *base;

	if (!h) {
		err_sys(err, "memory for the rules");
		return NULL;
	}
	h->size = round_up(bytes + sizeof(struct book), (size_t)sysconf(_SC_PAGESIZE));
	base = mmap(NULL, h->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED) {
		err_sys(err, "memory for the rules");
		free(h);
		return NULL;
	}
	h->base = base;
	h->limit = h->size;
	book_of(h)->used = round_up(sizeof(struct book), STEP);
	book_of(h)->block_max = COARSE_MAX;
	return h;
}

void heap_close(struct heap *h)
{
	if (!h)
		return;
	munmap(h->base, h->size);
	free(h->image);
	free(h);
}

void heap_set_limit(struct heap *h, size_t bytes)
{
	h->limit = bytes < h->size ? bytes : h->size;
}

void heap_set_block_max(struct heap *h, size_t bytes)
{
	assert(bytes <= COARSE_MAX);
	book_of(h)->block_max = bytes;
}

bool heap_spent(const struct heap *h)
{
	return book_of(h)->spent;
}

size_t heap_used(const struct heap *h)
{
	return book_of(h)->used;
}

size_t heap_largest(const struct heap *h)
{
	const struct book *b = book_of(h);
	size_t cls = CLASS_COUNT;

	while (cls-- > FINE_COUNT) {
		size_t coarse = cls - FINE_COUNT, top = coarse / 4 + 10;

		if (b->live[cls])
			return ((size_t)1 << top) + (coarse % 4 + 1) * ((size_t)1 << (top - 2));
	}
	return FINE_MAX;
}

/* Fine classes are 16 bytes apart, coarse ones a quarter of a power of two. */
static size_t class_of(size_t bytes, size_t *ret_size)
{
	size_t top = 63 - (size_t)__builtin_clzll(bytes - 1), unit = (size_t)1 << (top - 2);

	if (bytes <= FINE_MAX) {
		*ret_size = round_up(bytes, STEP);
		return *ret_size / STEP - 1;
	}
	*ret_size = round_up(bytes, unit);
	return FINE_COUNT + (top - 10) * 4 + (*ret_size - ((size_t)1 << top)) / unit - 1;
}

static void *take(struct heap *h, size_t bytes)
{
	struct book *b = book_of(h);
	size_t size, cls;
	struct free_block *block;

	if (b->spent || bytes > b->block_max) {
		b->spent = true;
		return NULL;
	}
	cls = class_of(bytes < STEP ? STEP : bytes, &size);
	assert(cls < CLASS_COUNT);
	block = b->free[cls];
	if (block) {
		b->free[cls] = block->next;
	} else if (size > h->limit || b->used > h->limit - size) {
		b->spent = true;
		return NULL;
	} else {
		block = (struct free_block *)(void *)(h->base + b->used);
		b->used += size;
	}
	b->live[cls]++;
	return block;
}

static void give_back(struct heap *h, void *block, size_t bytes)
{
	struct book *b = book_of(h);
	struct free_block *f = block;
	size_t size, cls = class_of(bytes < STEP ? STEP : bytes, &size);

	f->next = b->free[cls];
	b->free[cls] = f;
	b->live[cls]--;
}

static bool same_class(size_t a, size_t b)
{
	size_t size_a, size_b;

	class_of(a < STEP ? STEP : a, &size_a);
	class_of(b < STEP ? STEP : b, &size_b);
	return size_a == size_b;
}

static void *resize(struct heap *h, void *block, size_t old_bytes, size_t new_bytes)
{
	const struct book *b = book_of(h);
	void *moved;

	if (same_class(old_bytes, new_bytes))
		return block;
	/* Lua takes for granted that a block can shrink; where no smaller one is left it stays. */
	if (new_bytes < old_bytes && (b->spent || new_bytes > b->block_max))
		return block;
	moved = take(h, new_bytes);
	if (!moved)
		return new_bytes < old_bytes ? block : NULL;
	memcpy(moved, block, old_bytes < new_bytes ? old_bytes : new_bytes);
	give_back(h, block, old_bytes);
	return moved;
}

void *heap_alloc(void *heap, void *block, size_t old_bytes, size_t new_bytes)
{
	struct heap *h = heap;

	if (!block) /* old_bytes is then a tag of Lua's, no size */
		return new_bytes ? take(h, new_bytes) : NULL;
	if (new_bytes)
		return resize(h, block, old_bytes, new_bytes);
	if (old_bytes)
		give_back(h, block, old_bytes);
	return NULL;
}

int heap_freeze(struct heap *h, struct err *err)
{
	assert(!h->image);
	h->image_bytes = book_of(h)->used;
	h->image = malloc(h->image_bytes);
	if (!h->image)
		return err_sys(err, "memory for the image of the rules");
	memcpy(h->image, h->base, h->image_bytes);
	return 0;
}

void heap_restore(struct heap *h)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), used = book_of(h)->used;
	size_t keep = round_up(h->image_bytes + KEEP_BYTES, page);

	assert(h->image);
	memcpy(h->base, h->image, h->image_bytes);
	if (used > keep)
		madvise(h->base + keep, round_up(used, page) - keep, MADV_DONTNEED);
}
