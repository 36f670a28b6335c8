#include "audit/safe_priv.h"

#include "gate/base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void put_html(struct buf *out, const char *text, size_t left)
{
	size_t len;

	for (; left; text += len, left -= len) {
		unsigned char b = (unsigned char)*text;

		len = b < 0x80 ? 1 : utf8_len((const unsigned char *)text, left);
		if (len != 1 && len != 0) {
			/* Each by its own: nothing reorders the rest of the page. */
			buf_put(out, text, len);
		} else if (!len || b < 0x20 || b == 0x7f) {
			buf_printf(out, "\\x%02x", b);
			len = 1;
		} else if (strchr("<>&\"'`", b)) {
			buf_printf(out, "&#%d;", b);
		} else {
			buf_put(out, text, 1);
		}
	}
}

void safe_html(struct buf *out, const char *text)
{
	put_html(out, text, strlen(text));
}

void safe_html_lines(struct buf *out, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		put_html(out, text, len);
		text += len;
		if (*text) {
			buf_puts(out, "\n");
			text++;
		}
	}
}

void safe_html_apart(struct buf *out, const char *text)
{
	buf_puts(out, "<bdi>");
	safe_html(out, text);
	buf_puts(out, "</bdi>");
}

void safe_count(struct buf *out, uint64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf_puts(out, ",");
		buf_put(out, &digits[i], 1);
	}
}

void safe_text(struct buf *out, const char *text)
{
	size_t left = strlen(text), len;

	for (; left; text += len, left -= len) {
		unsigned char b = (unsigned char)*text;

		len = b < 0x80 ? 1 : utf8_len((const unsigned char *)text, left);
		/* C1, line separators and what reorders text begin with these two bytes. */
		if (len == 1 ? b < 0x20 || b == 0x7f : !len || b == 0xc2 || b == 0xe2) {
			len = len ? len : 1;
			for (size_t i = 0; i < len; i++)
				buf_printf(out, "\\x%02x", (unsigned char)text[i]);
		} else {
			buf_put(out, text, len);
		}
	}
}
