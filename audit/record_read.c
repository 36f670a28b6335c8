#include "audit/record_priv.h"

#include "gate/base/utf8.h"

#include <string.h>

#define DEPTH_MAX 60

/* --- peeking --- */

static bool cut_prefix(struct span *s, const char *prefix)
{
	if (!span_starts(*s, prefix))
		return false;
	*s = span_skip(*s, strlen(prefix));
	return true;
}

static enum record_type type_of(struct span name)
{
	for (int t = RECORD_NONE + 1; t < RECORD_TYPE_COUNT; t++)
		if (span_is(name, record_type_name(t)))
			return t;
	return RECORD_NONE;
}

/* Quotes within strings are escaped, so this can only be a member's name. */
static bool says_allow(struct span rest)
{
	static const char key[] = ",\"verdict\":\"";
	const char *at = memmem(rest.at, rest.len, key, sizeof(key) - 1);

	return at &&
	       span_starts(span_skip(rest, (size_t)(at - rest.at) + sizeof(key) - 1), "allow\"");
}

bool record_peek(struct span body, struct record_peek *ret)
{
	struct span type;

	*ret = (struct record_peek){0};
	if (!cut_prefix(&body, "\"type\":\"") || !span_cut(&body, '"', &type))
		return false;
	ret->type = type_of(type);
	if (cut_prefix(&body, ",\"id\":\"") && !span_cut(&body, '"', &ret->id))
		return false;
	if (cut_prefix(&body, ",\"of\":\"") && !span_cut(&body, '"', &ret->of))
		return false;
	ret->allow = ret->type == RECORD_DECISION && says_allow(body);
	return true;
}

/* Goes to the value of the first member of this name.  Quotes within strings are escaped. */
static bool find_member(struct span *body, const char *name)
{
	size_t len = strlen(name);

	for (;;) {
		const char *at = memmem(body->at, body->len, name, len);

		if (!at)
			return false;
		*body = span_skip(*body, (size_t)(at - body->at) + len);
		if (at[-1] == '"' && cut_prefix(body, "\":"))
			return true;
	}
}

struct span record_peek_str(struct span body, const char *name)
{
	struct span value = {"", 0};

	if (!find_member(&body, name) || !cut_prefix(&body, "\"") ||
	    !span_cut(&body, '"', &value) || memchr(value.at, '\\', value.len))
		return (struct span){"", 0};
	return value;
}

struct span record_peek_array(struct span body, const char *name)
{
	struct span value = {"", 0};

	if (!find_member(&body, name) || !span_starts(body, "[") || !span_cut(&body, ']', &value))
		return (struct span){"", 0};
	return (struct span){value.at, value.len + 1};
}

const char *record_string_end(const char *at, const char *end)
{
	while (at < end && *at != '"')
		at += *at == '\\' && at + 1 < end ? 2 : 1;
	return at < end ? at + 1 : end;
}

struct span record_peek_object(struct span body, const char *opening)
{
	const char *at = memmem(body.at, body.len, opening, strlen(opening));
	const char *end = body.at + body.len, *from;
	int depth = 0;

	if (!at)
		return (struct span){"", 0};
	from = at += strlen(opening) - 1;
	do {
		depth += *at == '{' ? 1 : *at == '}' ? -1 : 0;
		at = *at == '"' ? record_string_end(at + 1, end) : at + 1;
	} while (at < end && depth);
	return (struct span){from, (size_t)(at - from)};
}

uint64_t record_peek_uint(struct span body, const char *name)
{
	uint64_t value = 0;

	if (!find_member(&body, name))
		return 0;
	for (; body.len && *body.at >= '0' && *body.at <= '9'; body = span_skip(body, 1))
		value = value * 10 + (unsigned)(*body.at - '0');
	return value;
}

bool record_alarms(enum record_type type, struct span body)
{
	if (type == RECORD_REJUDGED) /* the summary has no verdict */
		return record_peek_str(body, "verdict").len > 0;
	return type == RECORD_LOG_ALARM || type == RECORD_WORKER_LOST ||
	       type == RECORD_CLOCK_STEP || type == RECORD_OBSERVED_GAP;
}

/* --- checking --- */

struct row {
	enum { ROW_MEMBER, ROW_BEGIN, ROW_END } kind;
	struct span name;
};

static const struct row rows[] = {
#define NAME(text)                                                                                 \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}
#define STR(name, value)             {ROW_MEMBER, NAME(name)},
#define ONE(name, value)             {ROW_MEMBER, NAME(name)},
#define NUM_IF(name, present, value) {ROW_MEMBER, NAME(name)},
#define UINT(name, value)            {ROW_MEMBER, NAME(name)},
#define TRUE(name, value)            {ROW_MEMBER, NAME(name)},
#define JSON(name, value, lost_from) {ROW_MEMBER, NAME(name)},
#define BEGIN(name)                  {ROW_BEGIN, NAME(name)},
#define LIST(name)                   {ROW_BEGIN, NAME(name)},
#define END()                        {ROW_END, NAME("")},
#define END_LIST()                   {ROW_END, NAME("")},
#include "audit/record.def"
};

#define ROWS (sizeof(rows) / sizeof(*rows))

/* The names on the top level, in their order; made once. */
static struct span top[ROWS];
static size_t top_count;

static void find_top(void)
{
	int depth = 0;

	for (size_t i = 0; i < ROWS; i++) {
		if (depth == 0)
			top[top_count++] = rows[i].name;
		depth += rows[i].kind == ROW_BEGIN;
		depth -= rows[i].kind == ROW_END;
	}
}

/* Finds a name from *place on, and moves *place behind it. */
static bool next_name(size_t *place, struct span name)
{
	for (size_t i = *place; i < top_count; i++)
		if (top[i].len == name.len && memcmp(top[i].at, name.at, name.len) == 0) {
			*place = i + 1;
			return true;
		}
	return false;
}

struct cursor {
	const unsigned char *at, *end;
};

static bool take(struct cursor *c, char want)
{
	while (c->at < c->end && *c->at == ' ')
		c->at++;
	if (c->at == c->end || *c->at != (unsigned char)want)
		return false;
	c->at++;
	return true;
}

static bool hex_digit(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Four digits that are a character by themselves; neither NUL nor half of one. */
static bool is_character(const unsigned char *digits)
{
	for (int i = 0; i < 4; i++)
		if (!hex_digit(digits[i]))
			return false;
	if (memcmp(digits, "0000", 4) == 0)
		return false;
	return (digits[0] | 0x20) != 'd' || digits[1] < '8';
}

static bool skip_escape(struct cursor *c)
{
	static const char after_backslash[] = {'"', '\\', '/', 'b', 'f', 'n', 'r', 't'};

	if (c->end - c->at < 2)
		return false;
	if (c->at[1] != 'u') {
		c->at += 2;
		return memchr(after_backslash, c->at[-1], sizeof(after_backslash)) != NULL;
	}
	if (c->end - c->at < 6)
		return false;
	c->at += 6;
	return is_character(c->at - 4);
}

/* Bytes within a string that need no look. */
static const bool plain[256] = {
	[0x20 ... '"' - 1] = true, ['"' + 1 ... '\\' - 1] = true, ['\\' + 1 ... 0x7f] = true};

static bool skip_string(struct cursor *c)
{
	if (!take(c, '"'))
		return false;
	for (;;) {
		unsigned char b;
		size_t len = 1;

		while (c->at < c->end && plain[*c->at])
			c->at++;
		if (c->at == c->end)
			return false;
		b = *c->at;
		if (b == '"') {
			c->at++;
			return true;
		}
		if (b == '\\') {
			if (!skip_escape(c))
				return false;
			continue;
		}
		if (b < 0x20)
			return false;
		if (b >= 0x80)
			len = utf8_len(c->at, (size_t)(c->end - c->at));
		if (!len)
			return false;
		c->at += len;
	}
}

static bool skip_digits(struct cursor *c)
{
	const unsigned char *from = c->at;

	while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
		c->at++;
	return c->at > from;
}

static bool skip_number(struct cursor *c)
{
	const unsigned char *from;

	(void)take(c, '-');
	from = c->at;
	if (!skip_digits(c) || (*from == '0' && c->at - from > 1))
		return false;
	if (c->at < c->end && *c->at == '.') {
		c->at++;
		if (!skip_digits(c))
			return false;
	}
	if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
		c->at++;
		if (c->at < c->end && (*c->at == '+' || *c->at == '-'))
			c->at++;
		return skip_digits(c);
	}
	return true;
}

static bool skip_word(struct cursor *c)
{
	static const char *const words[] = {"true", "false", "null"};
	struct span rest = {(const char *)c->at, (size_t)(c->end - c->at)};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (span_starts(rest, words[i])) {
			c->at += strlen(words[i]);
			return true;
		}
	return false;
}

static bool skip_scalar(struct cursor *c)
{
	while (c->at < c->end && *c->at == ' ')
		c->at++;
	if (c->at == c->end)
		return false;
	if (*c->at == '"')
		return skip_string(c);
	if (*c->at == '-' || (*c->at >= '0' && *c->at <= '9'))
		return skip_number(c);
	return skip_word(c);
}

static bool skip_key(struct cursor *c)
{
	return skip_string(c) && take(c, ':');
}

/* Where a value is nested: one bit a level, set for an object. */
struct nest {
	uint64_t object;
	int depth;
};

/* Enters arrays and objects down to the first scalar, or an empty one. */
static bool enter(struct cursor *c, struct nest *n)
{
	for (;;) {
		bool object = take(c, '{');

		if (!object && !take(c, '['))
			return skip_scalar(c);
		if (n->depth == DEPTH_MAX)
			return false;
		if (take(c, object ? '}' : ']'))
			return true;
		n->object = n->object << 1 | object;
		n->depth++;
		if (object && !skip_key(c))
			return false;
	}
}

static bool skip_value(struct cursor *c)
{
	struct nest n = {0};

	for (;;) {
		if (!enter(c, &n))
			return false;
		while (n.depth && take(c, n.object & 1 ? '}' : ']')) {
			n.object >>= 1;
			n.depth--;
		}
		if (!n.depth)
			return true;
		if (!take(c, ',') || ((n.object & 1) && !skip_key(c)))
			return false;
	}
}

bool record_valid(struct span body)
{
	const unsigned char *start = (const unsigned char *)body.at;
	struct cursor c = {start, start + body.len};
	size_t place = 0;

	if (!top_count)
		find_top();
	if (!body.len || body.len > RECORD_BODY_MAX)
		return false;
	do {
		const unsigned char *key = c.at;

		if (!skip_key(&c))
			return false;
		/* The name between the quotes; one with space around it is not found. */
		if (!next_name(&place,
			       (struct span){(const char *)key + 1, (size_t)(c.at - key) - 3}))
			return false;
		if (!skip_value(&c))
			return false;
	} while (take(&c, ','));
	return c.at == c.end;
}
