#include "gate/sandbox_client.h"

#include "gate/base/io.h"
#include "gate/listen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define HEAD_MAX   65536
#define CONNECT_MS 10000

static int odd(struct err *err, const char *what)
{
	return err_set(err, ERR_UPSTREAM, "the answer is no HTTP: %s", what);
}

static void put_head(struct buf *out, const struct api *api, const struct api_question *q)
{
	buf_printf(out, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: %s\r\n",
		   q->method, q->target, q->accept ? q->accept : "application/json");
	if (*api->token)
		buf_printf(out, "Authorization: Bearer %s\r\n", api->token);
	if (q->type)
		buf_printf(out, "Content-Type: %s\r\n", q->type);
	if (q->streams)
		buf_puts(out, "Transfer-Encoding: chunked\r\n\r\n");
	else
		buf_printf(out, "Content-Length: %zu\r\n\r\n", q->body.len);
}

int api_send(const struct api *api, const struct api_question *q, struct api_answer *ret,
	     struct err *err)
{
	struct buf head;
	int rc;

	*ret = (struct api_answer){.fd = -1, .left = -1};
	if (listen_connect(api->socket, CONNECT_MS, &ret->fd, err) < 0)
		return err_wrap(err, "%s", api->socket);
	/* An answer takes as long as what was asked for. */
	(void)setsockopt(ret->fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){0},
			 sizeof(struct timeval));
	(void)setsockopt(ret->fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){0},
			 sizeof(struct timeval));
	buf_init(&ret->in, HEAD_MAX + 65536);
	buf_init(&head, HEAD_MAX);
	put_head(&head, api, q);
	rc = io_write_all(ret->fd, buf_span(&head).at, buf_len(&head), err);
	if (rc == 0 && q->body.len)
		rc = io_write_all(ret->fd, q->body.at, q->body.len, err);
	buf_fini(&head);
	if (rc < 0)
		api_close(ret);
	return rc;
}

int api_piece(struct api_answer *r, const void *bytes, size_t len, struct err *err)
{
	char head[24];
	int n = snprintf(head, sizeof(head), "%zx\r\n", len);

	if (io_write_all(r->fd, head, (size_t)n, err) < 0 ||
	    (len && io_write_all(r->fd, bytes, len, err) < 0))
		return -1;
	return io_write_all(r->fd, "\r\n", 2, err);
}

/* Waits for more.  False: there is none. */
static bool receive(struct api_answer *r)
{
	size_t room = buf_room(&r->in) < 65536 ? buf_room(&r->in) : 65536;
	char *at = room ? buf_reserve(&r->in, room) : NULL;
	ssize_t n;

	if (!at)
		return false;
	do
		n = read(r->fd, at, room);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		buf_commit(&r->in, (size_t)n);
	return n > 0;
}

/* The next line, waiting for it; taken when the next one is asked for. */
static int take_line(struct api_answer *r, char *line, size_t size)
{
	struct span have, cut;

	for (;;) {
		struct span rest = buf_span(&r->in);

		have = rest;
		if (memchr(have.at, '\n', have.len) && span_cut(&rest, '\n', &cut))
			break;
		if (!receive(r))
			return -1;
	}
	if (!cut.len || cut.at[cut.len - 1] != '\r' || cut.len > size)
		return -1;
	memcpy(line, cut.at, cut.len - 1);
	line[cut.len - 1] = '\0';
	buf_consume(&r->in, cut.len + 1);
	return 0;
}

static void take_header(struct api_answer *r, const char *line)
{
	const char *value = strchr(line, ':');

	if (!value)
		return;
	value += 1 + strspn(value + 1, " ");
	if (strncasecmp(line, "transfer-encoding:", 18) == 0)
		r->chunked = strcasecmp(value, "chunked") == 0;
	else if (strncasecmp(line, "content-length:", 15) == 0)
		r->left = strtoll(value, NULL, 10);
}

int api_head(struct api_answer *r, struct err *err)
{
	char line[8192];

	do {
		if (take_line(r, line, sizeof(line)) < 0 || strncmp(line, "HTTP/1.1 ", 9) != 0)
			return odd(err, "no status line; is this the socket of the sandbox API?");
		r->status = (int)strtol(line + 9, NULL, 10);
		do {
			if (take_line(r, line, sizeof(line)) < 0)
				return odd(err, "it ends within its head");
			take_header(r, line);
		} while (*line);
	} while (r->status < 200);
	if (r->status < 200 || r->status > 599 || r->left < -1)
		return odd(err, "its head makes no sense");
	if (r->status == 204 || r->status == 304)
		r->over = true;
	if (r->chunked)
		r->left = 0;
	return 0;
}

static int next_chunk(struct api_answer *r, struct err *err)
{
	char line[64], *end;

	if (r->within && (take_line(r, line, sizeof(line)) < 0 || *line))
		return odd(err, "a chunk has no end");
	if (take_line(r, line, sizeof(line)) < 0)
		return odd(err, "it ends within a chunk");
	r->left = (int64_t)strtoull(line, &end, 16);
	if (end == line || (*end && *end != ';') || r->left < 0)
		return odd(err, "a chunk without a size");
	r->within = true;
	r->over = r->left == 0;
	return 0;
}

ssize_t api_read(struct api_answer *r, void *to, size_t size, struct err *err)
{
	struct span have;
	size_t n;

	if (r->chunked && !r->over && r->left == 0 && next_chunk(r, err) < 0)
		return -1;
	if (r->over || r->left == 0)
		return 0;
	if (!buf_len(&r->in) && !receive(r))
		return r->left > 0 ? odd(err, "it ends too early") : 0;
	have = buf_span(&r->in);
	n = have.len < size ? have.len : size;
	if (r->left >= 0 && (int64_t)n > r->left)
		n = (size_t)r->left;
	memcpy(to, have.at, n);
	buf_consume(&r->in, n);
	r->left -= r->left >= 0 ? (int64_t)n : 0;
	return (ssize_t)n;
}

bool api_ready(const struct api_answer *r)
{
	struct span rest = buf_span(&r->in), line;
	bool more = true;

	if (!r->chunked || r->left || r->over)
		return rest.len || r->over;
	if (r->within)
		more = memchr(rest.at, '\n', rest.len) && span_cut(&rest, '\n', &line);
	return more && memchr(rest.at, '\n', rest.len);
}

bool api_fetch(struct api_answer *r)
{
	return receive(r);
}

void api_close(struct api_answer *r)
{
	if (r->fd < 0)
		return;
	close(r->fd);
	r->fd = -1;
	buf_fini(&r->in);
}

int api_collect(struct api_answer *r, struct buf *ret, struct err *err)
{
	char piece[65536];
	ssize_t n;

	buf_init(ret, API_BODY_MAX);
	while ((n = api_read(r, piece, sizeof(piece), err)) > 0)
		buf_put(ret, piece, (size_t)n);
	if (n == 0 && !buf_spent(ret))
		return 0;
	buf_fini(ret);
	return n < 0 ? -1 : err_set(err, ERR_LIMIT, "the answer is too large");
}

int api_ask(const struct api *api, const struct api_question *q, struct arena *a, int *ret_status,
	    struct jv *tree, struct err *err)
{
	struct api_answer answer;
	enum jv_fault fault;
	struct buf body;
	int rc;

	if (api_send(api, q, &answer, err) < 0)
		return -1;
	rc = api_head(&answer, err);
	if (rc == 0)
		rc = api_collect(&answer, &body, err);
	*ret_status = answer.status;
	api_close(&answer);
	if (rc < 0)
		return -1;
	if (*ret_status >= 300)
		api_tell(buf_span(&body), *ret_status);
	else if (tree && *ret_status != 204) {
		char *text = arena_strndup(a, buf_span(&body).at, buf_len(&body));

		rc = text ? jv_parse(a, (struct span){text, buf_len(&body)}, tree, &fault, err)
			  : err_set(err, ERR_LIMIT, "no memory for the answer");
	}
	buf_fini(&body);
	return rc;
}
