#include "audit/line_priv.h"

#include "audit/record_priv.h"

#include <assert.h>
#include <string.h>

#define LIT(text) ((struct span){text, sizeof(text) - 1})

#define PREV_KEY ",\"prev\":\""
#define HASH_KEY "\",\"h\":\""
#define HASH_END "\"}"
/* `,"prev":"` 64 `","h":"` 64 `"}` */
#define PREV_LEN (sizeof(PREV_KEY) - 1 + HASH_HEX_LEN)
#define TAIL_LEN (PREV_LEN + sizeof(HASH_KEY) - 1 + HASH_HEX_LEN + sizeof(HASH_END) - 1)
#define CUT_LEN  72 /* `,"h":"` 64 `"}`: what the hash does not cover */

bool line_origin_ok(const char *origin)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789._-/:+";
	size_t len = strlen(origin);

	return len > 0 && len <= LINE_ORIGIN_MAX && strspn(origin, good) == len;
}

void line_writer_set(struct line_writer *w, uint64_t seq, const struct hash *prev)
{
	w->seq = seq;
	w->hash = *prev;
	hash_hex(prev, w->hex);
}

static char *add(char *at, struct span s)
{
	memcpy(at, s.at, s.len);
	return at + s.len;
}

static char *add_uint(char *at, uint64_t value)
{
	char text[24], *digit = text + sizeof(text);

	do
		*--digit = (char)('0' + value % 10);
	while (value /= 10);
	return add(at, (struct span){digit, (size_t)(text + sizeof(text) - digit)});
}

/* Formatting a date costs more than hashing a line, so a second is kept. */
static char *add_time(struct line_writer *w, char *at)
{
	uint64_t now = clock_unix_ns(), fraction = now % 1000000000u;

	if (now / 1000000000u != w->second || !w->text[0]) {
		w->second = now / 1000000000u;
		clock_format(now, w->text);
	}
	at = add(at, (struct span){w->text, sizeof("2026-01-31T12:00:00.") - 1});
	for (int i = 8; i >= 0; i--, fraction /= 10)
		at[i] = (char)('0' + fraction % 10);
	at[9] = 'Z';
	return at + 10;
}

static char *add_head(struct line_writer *w, char *at)
{
	at = add(at, LIT(LINE_START));
	at = add(at, span_of(w->origin));
	at = add(at, LIT("\",\"seq\":"));
	at = add_uint(at, w->seq);
	at = add(at, LIT(",\"ep\":"));
	at = add_uint(at, w->epoch);
	at = add(at, LIT(",\"t\":\""));
	at = add_time(w, at);
	at = add(at, LIT("\",\"mono\":"));
	at = add_uint(at, clock_boot_ns());
	return add(at, LIT(","));
}

bool line_write(struct line_writer *w, struct buf *out, struct span body)
{
	char *line, *at;

	assert(body.len <= RECORD_BODY_MAX);
	if (buf_room(out) < body.len + RECORD_FRAME_MAX + 1)
		return false;
	line = at = buf_reserve(out, body.len + RECORD_FRAME_MAX + 1);
	if (!line)
		return false;
	at = add_head(w, at);
	at = add(at, body);
	at = add(at, LIT(PREV_KEY));
	at = add(at, (struct span){w->hex, HASH_HEX_LEN});
	at = add(at, LIT("\""));
	w->hash = hash_two(LIT("\0"), (struct span){line, (size_t)(at - line)});
	hash_hex(&w->hash, w->hex);
	at = add(at, LIT(",\"h\":\""));
	at = add(at, (struct span){w->hex, HASH_HEX_LEN});
	at = add(at, LIT(HASH_END "\n"));
	buf_commit(out, (size_t)(at - line));
	w->seq++;
	return true;
}

/* --- reading --- */

static bool cut(struct span *s, struct span prefix)
{
	if (s->len < prefix.len || memcmp(s->at, prefix.at, prefix.len) != 0)
		return false;
	*s = span_skip(*s, prefix.len);
	return true;
}

static bool cut_uint(struct span *s, uint64_t *ret)
{
	uint64_t value = 0;
	size_t n = 0;

	for (; n < s->len && s->at[n] >= '0' && s->at[n] <= '9'; n++)
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (unsigned)(s->at[n] - '0'), &value))
			return false;
	if (n == 0 || (n > 1 && s->at[0] == '0'))
		return false;
	*s = span_skip(*s, n);
	*ret = value;
	return true;
}

static bool split_head(struct span *s, struct line *l)
{
	uint64_t epoch;

	if (!cut(s, LIT(LINE_START)) || !span_cut(s, '"', &l->log) || !cut(s, LIT(",\"seq\":")) ||
	    !cut_uint(s, &l->seq) || !cut(s, LIT(",\"ep\":")) || !cut_uint(s, &epoch) ||
	    epoch > UINT32_MAX || !cut(s, LIT(",\"t\":\"")) || !span_cut(s, '"', &l->time) ||
	    !cut(s, LIT(",\"mono\":")) || !cut_uint(s, &l->mono) || !cut(s, LIT(",")))
		return false;
	l->epoch = (uint32_t)epoch;
	return true;
}

static bool split_tail(struct span tail, struct line *l)
{
	if (!cut(&tail, LIT(PREV_KEY)) ||
	    hash_parse((struct span){tail.at, HASH_HEX_LEN}, &l->prev) < 0)
		return false;
	tail = span_skip(tail, HASH_HEX_LEN);
	if (!cut(&tail, LIT(HASH_KEY)) ||
	    hash_parse((struct span){tail.at, HASH_HEX_LEN}, &l->hash) < 0)
		return false;
	tail = span_skip(tail, HASH_HEX_LEN);
	return span_is(tail, HASH_END);
}

bool line_split(struct span text, struct line *ret)
{
	struct span rest = text;

	if (text.len > RECORD_LINE_MAX || !split_head(&rest, ret) || rest.len < TAIL_LEN)
		return false;
	ret->body = (struct span){rest.at, rest.len - TAIL_LEN};
	return split_tail(span_skip(rest, ret->body.len), ret);
}

int64_t line_second(const struct line *l)
{
	char text[] = "2026-01-31T12:00:00Z";

	if (l->time.len < sizeof(text) - 1)
		return -1;
	memcpy(text, l->time.at, sizeof(text) - 2); /* without the fraction */
	return clock_parse(text, sizeof(text) - 1);
}

bool line_hash_ok(struct span text, const struct line *l)
{
	struct hash got = hash_two(LIT("\0"), (struct span){text.at, text.len - CUT_LEN});

	return memcmp(got.bytes, l->hash.bytes, HASH_BYTES) == 0;
}
