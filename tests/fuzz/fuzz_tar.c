/*
 * Archives through the strict reader: in pieces of any size the same comes of
 * it, and what is written is read to the same, byte by byte.
 */
#include "tests/fuzz/fuzz.h"

#include "backends/docker/tar_priv.h"

#include <string.h>

#define OUT_MAX (8u << 20)

struct passage {
	struct arena *arena;
	struct tar *tar;
	struct buf out;
	int got;
};

static void pass(struct passage *p, bool copy, struct span in, size_t piece)
{
	p->arena = arena_create(16u << 20);
	p->tar = copy ? tar_open_copy(p->arena) : tar_open(p->arena, "d/Dockerfile");
	buf_init(&p->out, OUT_MAX);
	p->got = 0;
	while (in.len && p->got == 0) {
		struct span one = {in.at, in.len < piece ? in.len : piece};

		in = span_skip(in, one.len);
		p->got = tar_feed(p->tar, one, &p->out);
	}
	if (p->got == 0)
		p->got = tar_end(p->tar, &p->out);
}

static void done(struct passage *p)
{
	buf_fini(&p->out);
	arena_destroy(p->arena);
}

static void same(const struct passage *a, const struct passage *b)
{
	HOLDS(a->got == b->got);
	HOLDS(a->got == 0 || strcmp(tar_why(a->tar), tar_why(b->tar)) == 0);
	HOLDS(a->got < 0 || span_eq(buf_span(&a->out), buf_span(&b->out)));
	HOLDS(tar_found(a->tar) == tar_found(b->tar));
	HOLDS(!tar_found(a->tar) || span_eq(tar_wanted(a->tar), tar_wanted(b->tar)));
}

/* The pieces in which it comes do not matter, and what was written is written in the same way
 * again. */
static void read_as(bool copy, struct span in)
{
	struct passage whole, bytes, again;

	pass(&whole, copy, in, in.len + 1);
	pass(&bytes, copy, in, 1);
	same(&whole, &bytes);
	if (whole.got == 0) {
		pass(&again, copy, buf_span(&whole.out), 4096);
		same(&whole, &again);
		done(&again);
	}
	done(&whole);
	done(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct span in = {(const char *)data, size};

	read_as(false, in);
	read_as(true, in);
	return 0;
}
