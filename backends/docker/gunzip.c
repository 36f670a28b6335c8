#include "backends/docker/gunzip_priv.h"

#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

struct gunzip {
	z_stream stream;
	bool over;
	unsigned char out[GUNZIP_PIECE];
};

static void *take(void *arena, unsigned items, unsigned size)
{
	return arena_take(arena, (size_t)items * size);
}

/* It goes with the arena. */
static void give(void *arena, void *memory)
{
	(void)arena;
	(void)memory;
}

struct gunzip *gunzip_open(struct arena *a)
{
	struct gunzip *g = arena_take(a, sizeof(*g));

	if (!g)
		return NULL;
	g->stream.zalloc = take;
	g->stream.zfree = give;
	g->stream.opaque = a;
	return inflateInit2(&g->stream, 16 + MAX_WBITS) == Z_OK ? g : NULL;
}

int gunzip_some(struct gunzip *g, struct span *in, struct span *ret)
{
	int how;

	*ret = (struct span){"", 0};
	if (g->over)
		return in->len ? -1 : 0;
	g->stream.next_in = (const unsigned char *)in->at;
	g->stream.avail_in = (unsigned)(in->len > (1u << 30) ? 1u << 30 : in->len);
	*in = span_skip(*in, g->stream.avail_in);
	g->stream.next_out = g->out;
	g->stream.avail_out = sizeof(g->out);
	how = inflate(&g->stream, Z_NO_FLUSH);
	in->at -= g->stream.avail_in;
	in->len += g->stream.avail_in;
	*ret = (struct span){(const char *)g->out, sizeof(g->out) - g->stream.avail_out};
	g->over = how == Z_STREAM_END;
	/* Z_BUF_ERROR: nothing was there to be taken. */
	return how == Z_OK || how == Z_STREAM_END || how == Z_BUF_ERROR ? 0 : -1;
}

bool gunzip_over(const struct gunzip *g)
{
	return g->over;
}
