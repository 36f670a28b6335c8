/* A request's head: "METHOD TARGET", then "Name: value" lines.  What passes has one meaning. */
#include "tests/fuzz/fuzz.h"

#include "proxy/canonical.h"

#include <stdio.h>
#include <string.h>

static size_t read_headers(struct span text, struct pair *ret, size_t most)
{
	struct span line, name;
	size_t n = 0;
	bool more = text.len > 0;

	while (more && n < most) {
		more = span_cut(&text, '\n', &line);
		span_cut(&line, ':', &name);
		ret[n++] = (struct pair){name, span_skip(line, line.len && *line.at == ' ')};
	}
	return n;
}

static void check_text(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		HOLDS((unsigned char)s.at[i] >= ' ' && s.at[i] != 0x7f);
}

static void check(const struct canonical *req)
{
	struct span path = span_of(req->path);

	HOLDS(path.len && path.at[0] == '/');
	HOLDS(!strstr(req->path, "//") && !strchr(req->path, '%') && !strchr(req->path, '\\'));
	HOLDS(!strstr(req->path, "/../") && !strstr(req->path, "/./"));
	check_text(path);
	HOLDS(req->query_count <= CANONICAL_QUERY_MAX &&
	      req->header_count <= CANONICAL_HEADERS_MAX);
	for (size_t i = 0; i < req->header_count; i++) {
		struct span name = req->headers[i].key;

		HOLDS(name.len > 0);
		for (size_t k = 0; k < name.len; k++)
			HOLDS(name.at[k] > ' ' && name.at[k] != ':' &&
			      !(name.at[k] >= 'A' && name.at[k] <= 'Z'));
		HOLDS(!memchr(req->headers[i].value.at, '\0', req->headers[i].value.len));
		HOLDS(!memchr(req->headers[i].value.at, '\n', req->headers[i].value.len));
	}
	HOLDS(req->body_bytes >= -1);
}

static void encode(struct buf *out, struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		buf_printf(out, "%%%02X", (unsigned char)s.at[i]);
}

/* The decoded form, written as a target, is read as itself. */
static void check_again(struct arena *a, const struct raw_head *raw, const struct canonical *req)
{
	struct raw_head again = *raw;
	struct canonical twice = {0};
	struct violation why = {0};
	struct buf b;

	buf_init(&b, 1u << 20);
	buf_puts(&b, req->path);
	for (size_t i = 0; i < req->query_count; i++) {
		buf_puts(&b, i ? "&" : "?");
		encode(&b, req->query[i].key);
		buf_puts(&b, "=");
		encode(&b, req->query[i].value);
	}
	again.target = buf_span(&b);
	again.method = span_of(req->method);
	again.headers = req->headers;
	again.header_count = req->header_count;
	HOLDS(canonical_read(a, &again, &twice, &why) == 0);
	HOLDS(strcmp(req->path, twice.path) == 0 && strcmp(req->method, twice.method) == 0);
	HOLDS(req->query_count == twice.query_count && req->header_count == twice.header_count);
	for (size_t i = 0; i < req->query_count; i++)
		HOLDS(span_eq(req->query[i].key, twice.query[i].key) &&
		      span_eq(req->query[i].value, twice.query[i].value));
	HOLDS(strcmp(req->content_type, twice.content_type) == 0);
	HOLDS(req->upgrade == twice.upgrade && req->body_bytes == twice.body_bytes);
	buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_create(FUZZ_ARENA_BYTES);
	struct span rest = fuzz_text(a, data, size), line;
	struct pair headers[CANONICAL_HEADERS_MAX + 2];
	struct canonical req = {0};
	struct violation why = {0};
	struct raw_head raw = {.headers = headers};

	span_cut(&rest, '\n', &line);
	span_cut(&line, ' ', &raw.method);
	raw.target = line;
	raw.header_count = read_headers(rest, headers, sizeof(headers) / sizeof(*headers));
	if (canonical_read(a, &raw, &req, &why) < 0) {
		HOLDS(why.reason != REASON_NONE);
	} else {
		check(&req);
		check_again(a, &raw, &req);
	}
	arena_destroy(a);
	return 0;
}
