/* An array that comes in pieces is cut into its elements, wherever the pieces end. */
#include "proxy/elements.h"
#include "tests/unit/check.h"

#include <stdio.h>

static void keep(void *arg, struct span element)
{
	struct buf *out = arg;

	buf_put(out, element.at, element.len);
	buf_puts(out, ";");
}

/* What is cut of text in pieces of `size` bytes; "!" behind it: it was refused; "?": not over. */
static void cut(const char *text, size_t size, struct buf *out)
{
	struct elements e;
	struct err err = {0};
	struct span rest = span_of(text);
	bool fine = true;

	elements_init(&e, 64);
	while (fine && rest.len) {
		size_t len = rest.len < size ? rest.len : size;

		fine = elements_take(&e, (struct span){rest.at, len}, keep, out, &err) == 0;
		rest = span_skip(rest, len);
	}
	buf_puts(out, !fine ? "!" : elements_over(&e) ? "" : "?");
	elements_fini(&e);
}

static void cuts(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"[]", ""},
		{" [ ] \n", ""},
		{"[{}]", "{};"},
		{"[{\"a\":1},{\"b\":[{}]}]\n", "{\"a\":1};{\"b\":[{}]};"},
		{"[ {\"a\":\"}]\\\"{\"} , {\"b\":\"\\\\\"} ]",
		 "{\"a\":\"}]\\\"{\"};{\"b\":\"\\\\\"};"},
		{"", "?"},
		{"[{\"a\":1}", "{\"a\":1};?"},
		{"[{\"a\":", "?"},
		{"{}", "!"},
		{"null", "!"},
		{"[1]", "!"},
		{"[[]]", "!"},
		{"[\"a\"]", "!"},
		{"[{}]]", "{};!"},
		{"[{}]{}", "{};!"},
		{"[{},{\"a\":\"0123456789012345678901234567890123456789012345678901234567\"}]",
		 "{};!"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (size_t size = 1; size < 90; size += size < 4 ? 1 : 29) {
			struct buf out;

			buf_init(&out, 4096);
			cut(rows[i].text, size, &out);
			buf_put(&out, "", 1);
			CHECK_STR(rows[i].text, rows[i].want, buf_span(&out).at);
			buf_fini(&out);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(cuts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
