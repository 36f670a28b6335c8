/*
 * test_canonical.c - one decode, one meaning, or a refusal with a stable code.
 */
#include "proxy/canonical.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/check.h"

struct head {
	const char *label, *method, *target;
	const char *headers[8]; /* name, value, ... */
	enum reason want;
	const char *path, *type; /* when it is accepted */
};

static int read_head(const struct head *h, struct arena *a, struct canonical *ret,
		     struct violation *why)
{
	struct pair list[4];
	struct raw_head raw = {
		.method = span_of(h->method), .target = span_of(h->target), .headers = list};

	for (size_t i = 0; i < 8 && h->headers[i]; i += 2)
		list[raw.header_count++] =
			(struct pair){span_of(h->headers[i]), span_of(h->headers[i + 1])};
	return canonical_read(a, &raw, ret, why);
}

static void check_rows(const struct head *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct arena *a = arena_create(65536);
		struct violation why = {0};
		struct canonical got;
		int rc = read_head(&rows[i], a, &got, &why);

		CHECK_STR(rows[i].label, reason_name(rows[i].want),
			  reason_name(rc < 0 ? why.reason : REASON_NONE));
		if (rc == 0 && rows[i].path)
			CHECK_STR(rows[i].label, rows[i].path, got.path);
		if (rc == 0 && rows[i].type)
			CHECK_STR(rows[i].label, rows[i].type, got.content_type);
		arena_destroy(a);
	}
}
#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof(*(rows)))

static void http_1_0_knows_neither_chunks_nor_upgrades(void **state)
{
	struct pair chunked = {span_of("Transfer-Encoding"), span_of("chunked")};
	struct pair upgrade[] = {{span_of("Connection"), span_of("Upgrade")},
				 {span_of("Upgrade"), span_of("tcp")}};

	(void)state;
	for (int http10 = 0; http10 < 2; http10++) {
		struct arena *a = arena_create(65536);
		struct raw_head raw = {
			.method = span_of("POST"), .target = span_of("/x"), .http10 = http10};
		struct violation why = {0};
		struct canonical got;

		raw.headers = &chunked;
		raw.header_count = 1;
		CHECK_INT("chunked", http10 ? -1 : 0, canonical_read(a, &raw, &got, &why));
		CHECK_STR("reason", reason_name(http10 ? REASON_framing : REASON_NONE),
			  reason_name(why.reason));
		raw.headers = upgrade;
		raw.header_count = 2;
		CHECK_INT("upgrade", 0, canonical_read(a, &raw, &got, &why));
		CHECK_INT("upgrade", !http10, got.upgrade);
		arena_destroy(a);
	}
}

static void paths_have_one_form(void **state)
{
	static const struct head rows[] = {
		{"plain",
		 "GET",
		 "/v1.41/containers/json",
		 {0},
		 REASON_NONE,
		 "/v1.41/containers/json",
		 ""},
		{"root", "GET", "/", {0}, REASON_NONE, "/", ""},
		{"escaped letter",
		 "GET",
		 "/container%73/json",
		 {0},
		 REASON_NONE,
		 "/containers/json",
		 ""},
		{"image name", "GET", "/images/a/b:1@sha256:00/json", {0}, REASON_NONE, 0, 0},
		{"encoded slash", "POST", "/containers%2fcreate", {0}, REASON_path, 0, 0},
		{"encoded slash, upper", "POST", "/containers%2Fcreate", {0}, REASON_path, 0, 0},
		{"encoded twice", "GET", "/containers/a/%2565xport", {0}, REASON_path, 0, 0},
		{"encoded NUL", "GET", "/containers/a%00/json", {0}, REASON_path, 0, 0},
		{"encoded newline", "GET", "/containers/a%0a/json", {0}, REASON_path, 0, 0},
		{"encoded space", "GET", "/containers/a%20/json", {0}, REASON_path, 0, 0},
		{"encoded question mark", "GET", "/containers/a%3fx", {0}, REASON_path, 0, 0},
		{"bad escape", "GET", "/containers/%zz", {0}, REASON_path, 0, 0},
		{"cut escape", "GET", "/containers/%4", {0}, REASON_path, 0, 0},
		{"lone percent", "GET", "/containers/%", {0}, REASON_path, 0, 0},
		{"double slash", "POST", "//containers/create", {0}, REASON_path, 0, 0},
		{"double slash inside", "POST", "/v1.41//containers", {0}, REASON_path, 0, 0},
		{"dot", "POST", "/v1.41/./containers", {0}, REASON_path, 0, 0},
		{"dot at the end", "POST", "/v1.41/.", {0}, REASON_path, 0, 0},
		{"dot dot", "POST", "/v1.41/x/../containers", {0}, REASON_path, 0, 0},
		{"dot dot at the end", "POST", "/v1.41/..", {0}, REASON_path, 0, 0},
		{"encoded dots", "POST", "/v1.41/%2e%2e/containers", {0}, REASON_path, 0, 0},
		{"three dots are a name", "GET", "/images/.../json", {0}, REASON_NONE, 0, 0},
		{"backslash", "GET", "/containers\\a", {0}, REASON_path, 0, 0},
		{"semicolon", "GET", "/containers/json;x=1", {0}, REASON_path, 0, 0},
		{"fragment", "GET", "/containers/json#x", {0}, REASON_path, 0, 0},
		{"trailing slash", "GET", "/containers/json/", {0}, REASON_path, 0, 0},
		{"absolute form", "POST", "http://x/containers/create", {0}, REASON_path, 0, 0},
		{"authority form", "GET", "host:1", {0}, REASON_path, 0, 0},
		{"asterisk", "GET", "*", {0}, REASON_path, 0, 0},
		{"empty", "GET", "", {0}, REASON_path, 0, 0},
	};

	(void)state;
	CHECK_ROWS(rows);
}

static void methods_and_queries(void **state)
{
	static const struct head rows[] = {
		{"lower case", "post", "/x", {0}, REASON_method, 0, 0},
		{"OPTIONS", "OPTIONS", "/x", {0}, REASON_method, 0, 0},
		{"CONNECT", "CONNECT", "/x", {0}, REASON_method, 0, 0},
		{"TRACE", "TRACE", "/", {0}, REASON_method, 0, 0},
		{"PROPFIND", "PROPFIND", "/", {0}, REASON_method, 0, 0},
		{"query", "GET", "/x?a=1&b=%2f&c", {0}, REASON_NONE, "/x", ""},
		{"empty parts", "GET", "/x?&&a=1&", {0}, REASON_NONE, "/x", ""},
		{"bad escape", "GET", "/x?a=%g0", {0}, REASON_query, 0, 0},
		{"NUL in a value", "GET", "/x?a=%00", {0}, REASON_query, 0, 0},
		{"newline in a key", "GET", "/x?a%0a=1", {0}, REASON_query, 0, 0},
		{"semicolon", "GET", "/x?a=1;b=2", {0}, REASON_query, 0, 0},
		{"fragment", "GET", "/x?a=1#b", {0}, REASON_query, 0, 0},
	};

	(void)state;
	CHECK_ROWS(rows);
}

static void framing_is_clear(void **state)
{
	static const struct head rows[] = {
		{"length", "POST", "/x", {"Content-Length", "12"}, REASON_NONE, "/x", ""},
		{"chunked", "POST", "/x", {"Transfer-Encoding", "Chunked"}, REASON_NONE, "/x", ""},
		{"two lengths",
		 "POST",
		 "/x",
		 {"Content-Length", "1", "Content-Length", "1"},
		 REASON_framing,
		 0,
		 0},
		{"length and chunked",
		 "POST",
		 "/x",
		 {"Content-Length", "1", "Transfer-Encoding", "chunked"},
		 REASON_framing,
		 0,
		 0},
		{"plus", "POST", "/x", {"Content-Length", "+16"}, REASON_framing, 0, 0},
		{"hexadecimal", "POST", "/x", {"Content-Length", "0x10"}, REASON_framing, 0, 0},
		{"list", "POST", "/x", {"Content-Length", "1, 1"}, REASON_framing, 0, 0},
		{"huge",
		 "POST",
		 "/x",
		 {"Content-Length", "99999999999999999999"},
		 REASON_framing,
		 0,
		 0},
		{"empty", "POST", "/x", {"Content-Length", ""}, REASON_framing, 0, 0},
		{"other coding", "POST", "/x", {"Transfer-Encoding", "gzip"}, REASON_framing, 0, 0},
		{"two codings",
		 "POST",
		 "/x",
		 {"Transfer-Encoding", "identity, chunked"},
		 REASON_framing,
		 0,
		 0},
		{"two hosts", "GET", "/x", {"Host", "a", "Host", "b"}, REASON_framing, 0, 0},
		{"hidden header",
		 "POST",
		 "/x",
		 {"Connection", "close, Content-Type"},
		 REASON_framing,
		 0,
		 0},
		{"two types",
		 "POST",
		 "/x",
		 {"Content-Type", "a/b", "Content-Type", "a/b"},
		 REASON_header,
		 0,
		 0},
		{"space in a name",
		 "POST",
		 "/x",
		 {"Transfer-Encoding ", "chunked"},
		 REASON_header,
		 0,
		 0},
		{"control byte", "POST", "/x", {"X-A", "a\001b"}, REASON_header, 0, 0},
		{"type with parameter",
		 "POST",
		 "/x",
		 {"Content-Type", "Application/JSON; charset=utf-8"},
		 REASON_NONE,
		 "/x",
		 "application/json"},
		{"compressed",
		 "POST",
		 "/x",
		 {"Content-Encoding", "gzip"}, /* adapters refuse it but for build contexts */
		 REASON_NONE,
		 "/x",
		 ""},
		{"unknown coding",
		 "POST",
		 "/x",
		 {"Content-Encoding", "br"},
		 REASON_content_type,
		 0,
		 0},
	};

	(void)state;
	CHECK_ROWS(rows);
}

static void query_is_decoded_once(void **state)
{
	const struct head h = {"query", "GET", "/x?filters=%7B%22a%22%3A1%7D&n=a+b%2525", {0}, 0,
			       0,       0};
	struct arena *a = arena_create(65536);
	struct violation why;
	struct canonical got;

	(void)state;
	CHECK_INT("read", 0, read_head(&h, a, &got, &why));
	CHECK_INT("count", 2, got.query_count);
	CHECK_INT("first", 1, span_is(got.query[0].value, "{\"a\":1}"));
	CHECK_INT("second", 1, span_is(got.query[1].value, "a b%25"));
	arena_destroy(a);
}

static void upgrade_needs_both_headers(void **state)
{
	static const struct {
		const char *label, *headers[8];
		int want;
	} rows[] = {
		{"both", {"Connection", "Upgrade", "Upgrade", "tcp"}, 1},
		{"in a list", {"Connection", "keep-alive, upgrade", "Upgrade", "tcp"}, 1},
		{"only Upgrade", {"Upgrade", "tcp"}, 0},
		{"only Connection", {"Connection", "Upgrade"}, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(65536);
		struct head h = {rows[i].label, "POST", "/x", {0}, 0, 0, 0};
		struct violation why;
		struct canonical got;

		memcpy(h.headers, rows[i].headers, sizeof(h.headers));
		CHECK_INT(rows[i].label, 0, read_head(&h, a, &got, &why));
		CHECK_INT(rows[i].label, rows[i].want, got.upgrade);
		arena_destroy(a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(http_1_0_knows_neither_chunks_nor_upgrades),
		cmocka_unit_test(paths_have_one_form),
		cmocka_unit_test(methods_and_queries),
		cmocka_unit_test(framing_is_clear),
		cmocka_unit_test(query_is_decoded_once),
		cmocka_unit_test(upgrade_needs_both_headers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
