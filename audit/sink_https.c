/*
 * sink_https.c - batches as one JSON array each, by POST.  A batch is taken when the
 * answer's status says so (2xx); a connection each, so that nothing is half answered.
 */
#include "audit/erasable_priv.h"
#include "audit/sink_priv.h"

#include "gate/base/io.h"

#include <stdio.h>
#include <stdlib.h>

#define BODY_MAX   (16u << 20)
#define HEAD_MAX   16384
#define TOKEN_MAX  4096
#define ANSWER_MAX 4096

struct sink {
	const struct sink_conf *conf;
	const struct sink_dialer *dialer;
	struct arena *arena;
	struct buf body, head;
};

static void https_close(struct sink *s)
{
	arena_destroy(s->arena);
	buf_fini(&s->body);
	buf_fini(&s->head);
	free(s);
}

static struct sink *https_open(const struct sink_conf *conf, const struct sink_dialer *dialer,
			       const char *log, struct err *err)
{
	struct sink *s = calloc(1, sizeof(*s));

	(void)log;
	if (!s) {
		err_set(err, ERR_LIMIT, "no memory for a sink");
		return NULL;
	}
	s->conf = conf;
	s->dialer = dialer;
	buf_init(&s->body, BODY_MAX);
	buf_init(&s->head, HEAD_MAX);
	s->arena = arena_create(2 * FIELDS_ARENA_MAX);
	if (s->arena)
		return s;
	err_set(err, ERR_LIMIT, "no memory for a sink");
	https_close(s);
	return NULL;
}

/* As many records as the body holds: *ret_count. */
static int render(struct sink *s, const struct batch *b, size_t *ret_count, struct err *err)
{
	size_t n = 0;

	buf_clear(&s->body);
	buf_puts(&s->body, "[");
	for (; n < b->count && buf_room(&s->body) > 8 * RECORD_LINE_MAX + 8192; n++) {
		struct span line = batch_text(b, n);
		struct fields f;

		arena_reset(s->arena, 2 * FIELDS_ARENA_MAX);
		if (fields_take(s->arena, line, &f, err) < 0)
			return -1;
		erasable_hide(&f.tree);
		if (n)
			buf_puts(&s->body, ",\n");
		if (s->conf->format == EXPORT_NONE)
			buf_put(&s->body, line.at, line.len);
		else
			export_record(s->conf->format, &f, s->arena, &s->body);
		if (arena_spent(s->arena))
			return err_set(err, ERR_LIMIT, "no memory for a batch");
	}
	buf_puts(&s->body, "]\n");
	*ret_count = n;
	return buf_spent(&s->body) ? err_set(err, ERR_LIMIT, "no memory for a batch") : 0;
}

/* The token's one line: printable, so that it cannot end the header. */
static int put_token(struct sink *s, struct err *err)
{
	struct buf text;
	struct span token;
	int rc;

	if (!*s->conf->token_file)
		return 0;
	buf_init(&text, 1);
	rc = io_read_file(s->conf->token_file, TOKEN_MAX, &text, err);
	token = buf_span(&text);
	while (token.len && (token.at[token.len - 1] == '\n' || token.at[token.len - 1] == '\r'))
		token.len--;
	for (size_t i = 0; rc == 0 && i < token.len; i++)
		if (token.at[i] <= 0x20 || token.at[i] >= 0x7f)
			rc = err_set(err, ERR_CONFIG, "%s holds no token", s->conf->token_file);
	if (rc == 0 && !token.len)
		rc = err_set(err, ERR_CONFIG, "%s is empty", s->conf->token_file);
	if (rc == 0) {
		buf_puts(&s->head, "Authorization: Bearer ");
		buf_put(&s->head, token.at, token.len);
		buf_puts(&s->head, "\r\n");
	}
	buf_fini(&text);
	return rc;
}

static int make_head(struct sink *s, struct err *err)
{
	bool v6 = strchr(s->conf->host, ':');

	buf_clear(&s->head);
	buf_printf(&s->head,
		   "POST %s HTTP/1.1\r\nHost: %s%s%s:%u\r\nUser-Agent: sallyport\r\n"
		   "Content-Type: application/json\r\nContent-Length: %zu\r\n"
		   "Connection: close\r\n",
		   s->conf->path, v6 ? "[" : "", s->conf->host, v6 ? "]" : "", s->conf->port,
		   buf_len(&s->body));
	if (put_token(s, err) < 0)
		return -1;
	buf_puts(&s->head, "\r\n");
	return buf_spent(&s->head) ? err_set(err, ERR_LIMIT, "the request's head is too long") : 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "HTTP/1.1 204 ..." -> 204; -1: it is none. */
static int status_of(const char *text, size_t len)
{
	if (len < 12 || memcmp(text, "HTTP/1.", 7) != 0 || text[8] != ' ' || !is_digit(text[9]) ||
	    !is_digit(text[10]) || !is_digit(text[11]))
		return -1;
	return (text[9] - '0') * 100 + (text[10] - '0') * 10 + (text[11] - '0');
}

static int take_answer(struct sink *s, void *link, struct err *err)
{
	char text[ANSWER_MAX];
	size_t len = 0;
	int status;

	while (len < sizeof(text) && !memmem(text, len, "\r\n\r\n", 4)) {
		long n = s->dialer->read(link, text + len, sizeof(text) - len, err);

		if (n < 0)
			return -1;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	status = status_of(text, len);
	if (status < 0)
		return err_set(err, ERR_UPSTREAM, "%s gave no answer that is HTTP", s->conf->host);
	if (status / 100 != 2)
		return err_set(err, ERR_UPSTREAM, "%s answered with status %d", s->conf->host,
			       status);
	return 0;
}

/* What stands in body. */
static int post(struct sink *s, struct err *err)
{
	void *link;
	int rc;

	if (make_head(s, err) < 0)
		return -1;
	link = s->dialer->open(s->conf, err);
	if (!link)
		return -1;
	rc = s->dialer->write(link, buf_span(&s->head), err) < 0 ||
			     s->dialer->write(link, buf_span(&s->body), err) < 0
		     ? -1
		     : take_answer(s, link, err);
	s->dialer->close(link);
	return rc;
}

static int https_say(struct sink *s, const struct saying *what, struct err *err)
{
	buf_clear(&s->body);
	buf_puts(&s->body, "[");
	sink_say_json(what, &s->body);
	buf_puts(&s->body, "]\n");
	return post(s, err);
}

static int https_send(struct sink *s, const struct batch *b, size_t *ret_done, struct err *err)
{
	while (*ret_done < b->count) {
		struct batch rest;
		size_t count = 0;

		rest.text = b->text;
		rest.count = b->count - *ret_done;
		memcpy(rest.lines, b->lines + *ret_done, rest.count * sizeof(*rest.lines));
		if (render(s, &rest, &count, err) < 0 || post(s, err) < 0)
			return -1;
		*ret_done += count;
	}
	return 0;
}

const struct sink_ops sink_https = {
	.open = https_open,
	.send = https_send,
	.say = https_say,
	.close = https_close,
};
