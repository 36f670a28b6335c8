#include "proxy/canonical.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

/* The methods of the guarded APIs; all others are refused by name. */
static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"};

/* A refusal that shows at most the start of what was wrong. */
static int refuse(struct arena *a, struct violation *why, enum reason reason, const char *field,
		  struct span value)
{
	size_t len = value.len < VIOLATION_VALUE_MAX ? value.len : VIOLATION_VALUE_MAX;
	const char *shown = arena_strndup(a, value.at, len);

	*why = (struct violation){reason, "canonical", field, shown ? shown : "", "", ""};
	return -1;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int canonical_decode(struct arena *a, struct span s, bool plus, struct span *ret, bool *ret_slash)
{
	char *out = arena_take(a, s.len + 1);
	size_t n = 0;

	if (!out)
		return -1;
	for (size_t i = 0; i < s.len; i++) {
		char c = s.at[i];

		if (c == '+' && plus) {
			c = ' ';
		} else if (c == '%') {
			if (s.len - i < 3 || hex(s.at[i + 1]) < 0 || hex(s.at[i + 2]) < 0)
				return -1;
			c = (char)(hex(s.at[i + 1]) * 16 + hex(s.at[i + 2]));
			i += 2;
			if (c == '/' && ret_slash)
				*ret_slash = true;
		}
		out[n++] = c;
	}
	out[n] = '\0';
	*ret = (struct span){out, n};
	return 0;
}

static bool has_dot_segment(const char *path)
{
	for (const char *p = path; (p = strchr(p, '/')); p++)
		if (p[1] == '/' || (p[1] == '.' && (p[2] == '/' || !p[2])) ||
		    (p[1] == '.' && p[2] == '.' && (p[3] == '/' || !p[3])))
			return true;
	return false;
}

/* Control bytes, and what engines or other readers would take apart once more. */
static bool clean_path(struct span path)
{
	if (path.len == 0 || path.at[0] != '/')
		return false;
	for (size_t i = 0; i < path.len; i++) {
		unsigned char c = (unsigned char)path.at[i];

		if (c < 0x21 || c == 0x7f || c == '%' || c == '\\' || c == ';' || c == '#' ||
		    c == '?')
			return false;
	}
	if (path.len > 1 && path.at[path.len - 1] == '/')
		return false;
	return !has_dot_segment(path.at);
}

static int read_path(struct arena *a, struct span raw, struct canonical *ret, struct violation *why)
{
	bool slash = false;
	struct span path;

	if (canonical_decode(a, raw, false, &path, &slash) < 0 || slash || !clean_path(path))
		return refuse(a, why, REASON_path, "path", raw);
	ret->path = path.at;
	return 0;
}

static bool clean_text(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.at[i] < 0x20 || s.at[i] == 0x7f)
			return false;
	return true;
}

static int read_query(struct arena *a, struct span raw, struct canonical *ret,
		      struct violation *why)
{
	struct pair *q = raw.len ? arena_take(a, sizeof(*q) * CANONICAL_QUERY_MAX) : NULL;
	struct span rest = raw, one, key;

	while (rest.len) {
		span_cut(&rest, '&', &one);
		if (!one.len)
			continue;
		span_cut(&one, '=', &key);
		if (!q || ret->query_count == CANONICAL_QUERY_MAX ||
		    canonical_decode(a, key, true, &q[ret->query_count].key, NULL) < 0 ||
		    canonical_decode(a, one, true, &q[ret->query_count].value, NULL) < 0 ||
		    !clean_text(q[ret->query_count].key) ||
		    memchr(q[ret->query_count].value.at, 0, q[ret->query_count].value.len) ||
		    memchr(raw.at, ';', raw.len) || memchr(raw.at, '#', raw.len))
			return refuse(a, why, REASON_query, "query", key);
		ret->query_count++;
	}
	ret->query = q;
	return 0;
}

static int read_target(struct arena *a, struct span target, struct canonical *ret,
		       struct violation *why)
{
	struct span path, query = target;

	/* Absolute-form, authority-form and "*" name something else than this engine. */
	if (!target.len || target.at[0] != '/')
		return refuse(a, why, REASON_path, "target", target);
	span_cut(&query, '?', &path);
	if (read_path(a, path, ret, why) < 0)
		return -1;
	return read_query(a, query, ret, why);
}

static bool token_char(unsigned char c)
{
	return isalnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool clean_header(const struct pair *h)
{
	if (!h->key.len)
		return false;
	for (size_t i = 0; i < h->key.len; i++)
		if (!token_char((unsigned char)h->key.at[i]))
			return false;
	for (size_t i = 0; i < h->value.len; i++) {
		unsigned char c = (unsigned char)h->value.at[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static int copy_headers(struct arena *a, const struct raw_head *raw, struct canonical *ret,
			struct violation *why)
{
	struct pair *out = arena_take(a, sizeof(*out) * (raw->header_count + 1));

	if (!out || raw->header_count > CANONICAL_HEADERS_MAX)
		return refuse(a, why, REASON_header, "headers", span_of("too many"));
	for (size_t i = 0; i < raw->header_count; i++) {
		const struct pair *h = &raw->headers[i];
		char *key = arena_strndup(a, h->key.at, h->key.len);
		char *value = arena_strndup(a, h->value.at, h->value.len);

		if (!key || !value)
			return refuse(a, why, REASON_no_memory, "headers", h->key);
		if (!clean_header(h))
			return refuse(a, why, REASON_header, "headers", h->key);
		for (size_t j = 0; j < h->key.len; j++)
			key[j] = (char)tolower((unsigned char)key[j]);
		out[i] = (struct pair){{key, h->key.len}, {value, h->value.len}};
	}
	ret->headers = out;
	ret->header_count = raw->header_count;
	return 0;
}

/* How often a header comes; *ret_last is the last of them. */
static size_t count_header(const struct canonical *req, const char *name, struct span *ret_last)
{
	size_t n = 0;

	for (size_t i = 0; i < req->header_count; i++) {
		if (!span_is(req->headers[i].key, name))
			continue;
		*ret_last = req->headers[i].value;
		n++;
	}
	return n;
}

static bool same_word(struct span s, const char *word)
{
	return s.len == strlen(word) && strncasecmp(s.at, word, s.len) == 0;
}

static int read_length(struct span value, int64_t *ret)
{
	int64_t n = 0;

	if (!value.len || value.len > 18)
		return -1;
	for (size_t i = 0; i < value.len; i++) {
		if (value.at[i] < '0' || value.at[i] > '9')
			return -1;
		n = n * 10 + (value.at[i] - '0');
	}
	*ret = n;
	return 0;
}

static int read_framing(struct arena *a, const struct raw_head *raw, struct canonical *ret,
			struct violation *why)
{
	struct span length = {"", 0}, coding = {"", 0};
	size_t lengths = count_header(ret, "content-length", &length);
	size_t codings = count_header(ret, "transfer-encoding", &coding);

	if (lengths > 1 || codings > 1 || (lengths && codings))
		return refuse(a, why, REASON_framing, "Content-Length", length);
	/* In HTTP/1.0 some readers do not see the chunks. */
	if (codings && (raw->http10 || !same_word(coding, "chunked")))
		return refuse(a, why, REASON_framing, "Transfer-Encoding", coding);
	if (lengths && read_length(length, &ret->body_bytes) < 0)
		return refuse(a, why, REASON_framing, "Content-Length", length);
	if (codings)
		ret->body_bytes = -1;
	ret->has_body = ret->body_bytes != 0;
	return 0;
}

/* Headers whose repetition would give two readers two values. */
static int refuse_doubles(struct arena *a, const struct canonical *req, struct violation *why)
{
	static const char *const once[] = {
		"host",    "content-type",    "expect",           "connection",
		"upgrade", "x-registry-auth", "content-encoding", "x-registry-config"};
	struct span last = {"", 0};

	for (size_t i = 0; i < sizeof(once) / sizeof(*once); i++)
		if (count_header(req, once[i], &last) > 1)
			return refuse(a, why,
				      strcmp(once[i], "host") ? REASON_header : REASON_framing,
				      once[i], last);
	return 0;
}

/* "Connection" may say keep-alive, close, upgrade; naming another header would hide it. */
static int read_connection(struct arena *a, const struct raw_head *raw, struct canonical *ret,
			   struct violation *why)
{
	const struct pair *connection = canonical_header(ret, "connection");
	const struct pair *upgrade = canonical_header(ret, "upgrade");
	struct span rest = connection ? connection->value : (struct span){"", 0}, word;

	ret->upgrade_to = "";
	while (rest.len) {
		span_cut(&rest, ',', &word);
		while (word.len && (*word.at == ' ' || *word.at == '\t'))
			word = span_skip(word, 1);
		while (word.len && (word.at[word.len - 1] == ' ' || word.at[word.len - 1] == '\t'))
			word.len--;
		if (same_word(word, "upgrade"))
			ret->upgrade = upgrade != NULL && !raw->http10;
		else if (word.len && !same_word(word, "keep-alive") && !same_word(word, "close"))
			return refuse(a, why, REASON_framing, "Connection", word);
	}
	if (ret->upgrade)
		ret->upgrade_to = upgrade->value.at;
	return 0;
}

static int read_content_type(struct arena *a, struct canonical *ret, struct violation *why)
{
	const struct pair *type = canonical_header(ret, "content-type");
	const struct pair *coding = canonical_header(ret, "content-encoding");
	struct span rest = type ? type->value : (struct span){"", 0}, word;
	bool gzip = coding && same_word(coding->value, "gzip");
	char *copy;

	ret->content_coding = gzip ? "gzip" : "";
	if (coding && !gzip && !same_word(coding->value, "identity"))
		return refuse(a, why, REASON_content_type, "Content-Encoding", coding->value);
	span_cut(&rest, ';', &word);
	while (word.len && (word.at[word.len - 1] == ' ' || word.at[word.len - 1] == '\t'))
		word.len--;
	copy = arena_strndup(a, word.at, word.len);
	if (!copy)
		return refuse(a, why, REASON_no_memory, "Content-Type", word);
	for (char *p = copy; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	ret->content_type = copy;
	return 0;
}

static int read_method(struct arena *a, struct span method, struct canonical *ret,
		       struct violation *why)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
		if (!span_is(method, methods[i]))
			continue;
		ret->method = methods[i];
		return 0;
	}
	return refuse(a, why, REASON_method, "method", method);
}

const struct pair *canonical_header(const struct canonical *req, const char *name)
{
	for (size_t i = 0; i < req->header_count; i++)
		if (span_is(req->headers[i].key, name))
			return &req->headers[i];
	return NULL;
}

int canonical_read(struct arena *a, const struct raw_head *raw, struct canonical *ret,
		   struct violation *ret_why)
{
	/* Until the framing is read a body may follow: who is refused before that must not be
	 * taken for one who sends none. */
	*ret = (struct canonical){
		.method = "", .path = "", .content_type = "", .upgrade_to = "", .has_body = true};
	/* Framing first: if it is unclear, nothing else can be read with certainty. */
	if (copy_headers(a, raw, ret, ret_why) < 0 || read_framing(a, raw, ret, ret_why) < 0 ||
	    read_method(a, raw->method, ret, ret_why) < 0 || refuse_doubles(a, ret, ret_why) < 0 ||
	    read_connection(a, raw, ret, ret_why) < 0 ||
	    read_target(a, raw->target, ret, ret_why) < 0 || read_content_type(a, ret, ret_why) < 0)
		return -1;
	if (arena_spent(a))
		return refuse(a, ret_why, REASON_no_memory, "head", raw->target);
	return 0;
}
