#include "proxy/sandbox/sandbox_priv.h"

#include <string.h>

/* What an engine puts before a piece of what a command writes. */
#define OUTER_STDOUT 1
#define OUTER_STDERR 2

static bool is_known(uint8_t type)
{
	return type == FRAME_STDOUT || type == FRAME_STDERR || type == FRAME_END;
}

static void begin_frame(struct stream *st)
{
	st->head_have = 0;
	st->type = (enum frame_type)st->head[0];
	st->left = frame_length(st->head);
	if (!is_known(st->head[0]) || st->left > FRAME_DATA_MAX ||
	    (st->type == FRAME_END && st->left > FRAME_END_MAX))
		st->bad = true;
}

static void take_data(struct stream *st, struct span data, stream_fn *got, void *arg)
{
	if (st->type != FRAME_END) {
		got(arg, st->type, data);
		return;
	}
	memcpy(st->end + st->end_len, data.at, data.len);
	st->end_len += data.len;
}

/* A frame without octets counts as well. */
static void end_frame(struct stream *st, bool empty, stream_fn *got, void *arg)
{
	if (st->type == FRAME_END)
		st->over = true;
	else if (empty)
		got(arg, st->type, (struct span){"", 0});
}

static void feed_frames(struct stream *st, struct span in, stream_fn *got, void *arg)
{
	while (in.len && !st->bad && !st->over) {
		size_t n;

		if (!st->left) {
			n = FRAME_HEAD - st->head_have;
			n = n < in.len ? n : in.len;
			memcpy(st->head + st->head_have, in.at, n);
			st->head_have += n;
			in = span_skip(in, n);
			if (st->head_have < FRAME_HEAD)
				return;
			begin_frame(st);
			if (!st->bad && !st->left)
				end_frame(st, true, got, arg);
			continue;
		}
		n = st->left < in.len ? st->left : in.len;
		take_data(st, (struct span){in.at, n}, got, arg);
		st->left -= (uint32_t)n;
		in = span_skip(in, n);
		if (!st->left)
			end_frame(st, false, got, arg);
	}
}

/* What is no frame may be the engine's own word for why nothing ran. */
static void hear(struct stream *st, struct span in)
{
	size_t room = sizeof(st->said) - 1 - st->said_len;
	size_t n = in.len < room ? in.len : room;

	memcpy(st->said + st->said_len, in.at, n);
	st->said_len += n;
	st->said[st->said_len] = '\0';
}

static void begin_outer(struct stream *st)
{
	const uint8_t *h = st->outer;

	st->outer_have = 0;
	st->outer_left = (uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 | (uint32_t)h[6] << 8 | h[7];
	st->outer_err = h[0] == OUTER_STDERR;
	if (h[0] > OUTER_STDERR || h[1] || h[2] || h[3])
		st->bad = true;
}

void stream_feed(struct stream *st, struct span bytes, stream_fn *got, void *arg)
{
	while (bytes.len && !st->bad && !st->over) {
		struct span piece;
		size_t n;

		if (!st->outer_left) {
			n = sizeof(st->outer) - st->outer_have;
			n = n < bytes.len ? n : bytes.len;
			memcpy(st->outer + st->outer_have, bytes.at, n);
			st->outer_have += n;
			bytes = span_skip(bytes, n);
			if (st->outer_have == sizeof(st->outer))
				begin_outer(st);
			continue;
		}
		n = st->outer_left < bytes.len ? st->outer_left : bytes.len;
		piece = (struct span){bytes.at, n};
		st->outer_left -= (uint32_t)n;
		bytes = span_skip(bytes, n);
		if (st->outer_err)
			hear(st, piece);
		else
			feed_frames(st, piece, got, arg);
		if (st->bad && !st->outer_err)
			hear(st, piece);
	}
}
