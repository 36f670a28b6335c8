#include "gate/printed.h"

#include "gate/base/utf8.h"

#include <stdbool.h>
#include <string.h>

/* The character of a UTF-8 sequence. */
static unsigned code_of(const unsigned char *at, size_t len)
{
	unsigned code = len == 1 ? at[0] : at[0] & (0xffu >> (len + 1));

	for (size_t i = 1; i < len; i++)
		code = code << 6 | (at[i] & 0x3f);
	return code;
}

/* Moves the cursor, ends a line, reorders, or cannot be seen. */
static bool is_unsafe(unsigned code)
{
	static const struct {
		unsigned from, to;
	} ranges[] = {{0, 0x1f},        {0x7f, 0x9f},      {0xad, 0xad},     {0x61c, 0x61c},
		      {0x200b, 0x200f}, {0x2028, 0x202e},  {0x2060, 0x206f}, {0xfeff, 0xfeff},
		      {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
		if (code >= ranges[i].from && code <= ranges[i].to)
			return true;
	return false;
}

/* Appends one character, or what stands for it; returns how many bytes of text it was. */
static size_t put_one(struct buf *out, const unsigned char *at, size_t left)
{
	size_t len = *at < 0x80 ? 1 : utf8_len(at, left);
	unsigned code = len ? code_of(at, len) : *at;

	if (len && !is_unsafe(code))
		buf_put(out, at, len);
	else
		buf_printf(out, code < 0x100 ? "\\x%02x" : "\\u%04x", code);
	return len ? len : 1;
}

void printed_plain(struct buf *out, const char *text, size_t columns)
{
	size_t left = strlen(text), shown = 0, len;

	for (; left; text += len, left -= len, shown++) {
		if (columns && shown >= columns) {
			buf_puts(out, "...");
			return;
		}
		len = put_one(out, (const unsigned char *)text, left);
	}
}

void printed_csv(struct buf *out, const char *text)
{
	size_t left = strlen(text), len;

	buf_puts(out, "\"");
	if (*text && strchr("=+-@\t\r", *text))
		buf_puts(out, "'");
	for (; left; text += len, left -= len) {
		if (*text == '"')
			buf_puts(out, "\"");
		len = put_one(out, (const unsigned char *)text, left);
	}
	buf_puts(out, "\"");
}
