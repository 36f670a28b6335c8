/* What a service sends back: collected, and judged by nobody here. */
#include "proxy/upstream_priv.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

static http_parser_settings parser_settings;

static int on_header_field(http_parser *p, const char *at, size_t len)
{
	struct upcall *c = p->data;

	if (c->part != PART_FIELD) {
		if (c->header_count == UPSTREAM_HEADERS_MAX) {
			c->head_bad = true;
			return -1;
		}
		buf_put(&c->text, "", 1);
		c->at[c->header_count].key = c->text.end;
		c->at[c->header_count].key_len = 0;
		c->at[c->header_count].value = c->at[c->header_count].value_len = 0;
		c->header_count++;
		c->part = PART_FIELD;
	}
	for (size_t i = 0; i < len; i++) {
		char lower = (char)tolower((unsigned char)at[i]);

		buf_put(&c->text, &lower, 1);
	}
	c->at[c->header_count - 1].key_len += len;
	return 0;
}

static int on_header_value(http_parser *p, const char *at, size_t len)
{
	struct upcall *c = p->data;

	if (!c->header_count)
		return -1;
	if (c->part != PART_VALUE) {
		buf_put(&c->text, "", 1);
		c->at[c->header_count - 1].value = c->text.end;
		c->at[c->header_count - 1].value_len = 0;
		c->part = PART_VALUE;
	}
	buf_put(&c->text, at, len);
	c->at[c->header_count - 1].value_len += len;
	return 0;
}

static int on_message_begin(http_parser *p)
{
	struct upcall *c = p->data;

	buf_clear(&c->text);
	c->header_count = 0;
	c->part = PART_NONE;
	return 0;
}

/* 1: there is no body; 2: nor is there HTTP behind it. */
static int on_headers_complete(http_parser *p)
{
	struct upcall *c = p->data;

	buf_put(&c->text, "", 1);
	c->status = (int)p->status_code;
	if (buf_spent(&c->text) || c->status < 100)
		c->head_bad = true;
	c->length = p->content_length == ULLONG_MAX || (p->flags & F_CHUNKED)
			    ? -1
			    : (int64_t)p->content_length;
	if (c->status == 101)
		return 2;
	return c->is_head || c->status == 304 || c->status == 204 ? 1 : 0;
}

static int on_body(http_parser *p, const char *at, size_t len)
{
	struct upcall *c = p->data;

	buf_put(&c->body, at, len);
	return buf_spent(&c->body) ? -1 : 0;
}

/*
 * A service that answers before it has the whole request would take what
 * follows for the rest of it, and a caller's bytes for a request.
 */
static bool may_keep(const struct upcall *c)
{
	return c->status != 101 && c->send_ended && !c->unsent && !buf_len(&c->out);
}

static int on_message_complete(http_parser *p)
{
	struct upcall *c = p->data;

	if (c->status >= 100 && c->status < 200 && c->status != 101)
		return 0; /* "100 Continue" and its kind: the answer is still to come */
	c->complete = true;
	c->keep = http_should_keep_alive(p) && may_keep(c);
	http_parser_pause(p, 1); /* what follows belongs to no request of ours */
	return 0;
}

static void settings_once(void)
{
	if (parser_settings.on_body)
		return;
	http_parser_settings_init(&parser_settings);
	parser_settings.on_message_begin = on_message_begin;
	parser_settings.on_header_field = on_header_field;
	parser_settings.on_header_value = on_header_value;
	parser_settings.on_headers_complete = on_headers_complete;
	parser_settings.on_body = on_body;
	parser_settings.on_message_complete = on_message_complete;
}

void upcall_reset_reply(struct upcall *c)
{
	settings_once();
	http_parser_init(&c->parser, HTTP_RESPONSE);
	c->parser.data = c;
	buf_clear(&c->text);
	buf_clear(&c->body);
	c->header_count = 0;
	c->part = PART_NONE;
	c->head_bad = c->head_given = c->complete = c->keep = false;
	c->status = 0;
	c->length = -1;
}

void upcall_give_head(struct upcall *c)
{
	struct pair headers[UPSTREAM_HEADERS_MAX];
	struct reply_head head = {.status = c->status, .headers = headers};

	for (size_t i = 0; i < c->header_count; i++) {
		headers[i].key = (struct span){c->text.mem + c->at[i].key, c->at[i].key_len};
		headers[i].value = (struct span){c->text.mem + c->at[i].value, c->at[i].value_len};
		if (!c->at[i].value)
			headers[i].value = (struct span){"", 0};
	}
	head.header_count = c->header_count;
	c->head_given = true;
	buf_fini(&c->again);
	c->handlers->head(c->arg, &head);
}

enum upcall_fault upcall_feed(struct upcall *c, const char *at, size_t len)
{
	size_t used = http_parser_execute(&c->parser, &parser_settings, at, len);
	enum http_errno fault = HTTP_PARSER_ERRNO(&c->parser);

	if (c->head_bad || (fault != HPE_OK && fault != HPE_PAUSED))
		return c->head_given ? UPCALL_CUT : UPCALL_NONSENSE;
	if (c->status == 101 && c->parser.upgrade) {
		c->complete = true;
		buf_put(&c->body, at + used, len - used);
	} else if (used < len) {
		c->keep = false; /* bytes behind the reply: this connection is not to be trusted */
	}
	return UPCALL_FINE;
}

/* Tells the parser, since a reply without a length ends this way. */
void upcall_feed_end(struct upcall *c)
{
	if (c->status)
		http_parser_execute(&c->parser, &parser_settings, "", 0);
}
