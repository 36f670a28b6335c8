/*
 * sink_syslog.c - records as messages of RFC 5424: to a syslog daemon of this host, a
 * datagram each, or over TLS (RFC 5425), where the length stands in front of each.
 *
 * Syslog acknowledges nothing.  Over TLS a batch counts as taken when the other host's
 * kernel has it all: what that host loses afterwards shows as a gap in the numbers.
 */
#include "audit/erasable_priv.h"
#include "audit/sink_local_priv.h"
#include "audit/sink_priv.h"

#include <stdlib.h>
#include <unistd.h>

#define MESSAGE_MAX (8 * RECORD_LINE_MAX + 8192) /* the largest export, and its head */
#define OUT_MAX     (MESSAGE_MAX + (256u << 10))
#define FLUSH_AT    (128u << 10)

struct sink {
	const struct sink_conf *conf;
	const struct sink_dialer *dialer;
	void *link; /* over TLS */
	struct local to;
	struct arena *arena;
	struct buf message, out;
	char host[256];
};

static void syslog_close(struct sink *s)
{
	if (s->link)
		s->dialer->close(s->link);
	local_close(&s->to);
	arena_destroy(s->arena);
	buf_fini(&s->message);
	buf_fini(&s->out);
	free(s);
}

static int dial(struct sink *s, struct err *err)
{
	if (*s->conf->socket)
		return local_open(&s->to, s->conf->socket, err);
	s->link = s->dialer->open(s->conf, err);
	return s->link ? 0 : -1;
}

static struct sink *syslog_open(const struct sink_conf *conf, const struct sink_dialer *dialer,
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
	s->to.fd = -1;
	buf_init(&s->message, MESSAGE_MAX);
	buf_init(&s->out, OUT_MAX);
	gethostname(s->host, sizeof(s->host) - 1);
	s->arena = arena_create(2 * FIELDS_ARENA_MAX);
	if (!s->arena)
		err_set(err, ERR_LIMIT, "no memory for a sink");
	else if (dial(s, err) == 0)
		return s;
	syslog_close(s);
	return NULL;
}

static int render(struct sink *s, struct span line, struct err *err)
{
	struct fields f;

	arena_reset(s->arena, 2 * FIELDS_ARENA_MAX);
	if (fields_take(s->arena, line, &f, err) < 0)
		return -1;
	erasable_hide(&f.tree);
	buf_clear(&s->message);
	sink_render_syslog(&f, line, s->conf->format, s->host, s->arena, &s->message);
	if (buf_spent(&s->message) || arena_spent(s->arena))
		return err_set(err, ERR_LIMIT, "no memory for a message");
	return 0;
}

static int flush(struct sink *s, struct err *err)
{
	struct span bytes = buf_span(&s->out);

	if (buf_spent(&s->out))
		return err_set(err, ERR_LIMIT, "no memory for messages");
	if (bytes.len && s->dialer->write(s->link, bytes, err) < 0)
		return -1;
	buf_clear(&s->out);
	return 0;
}

/* All of a batch or, as far as can be told, nothing. */
static int send_tls(struct sink *s, const struct batch *b, size_t *ret_done, struct err *err)
{
	buf_clear(&s->out);
	for (size_t i = 0; i < b->count; i++) {
		struct span message;

		if (render(s, batch_text(b, i), err) < 0)
			return -1;
		message = buf_span(&s->message);
		buf_printf(&s->out, "%zu ", message.len);
		buf_put(&s->out, message.at, message.len);
		if (buf_len(&s->out) >= FLUSH_AT && flush(s, err) < 0)
			return -1;
	}
	if (flush(s, err) < 0 || s->dialer->drain(s->link, err) < 0)
		return -1;
	*ret_done = b->count;
	return 0;
}

static int syslog_send(struct sink *s, const struct batch *b, size_t *ret_done, struct err *err)
{
	if (s->link)
		return send_tls(s, b, ret_done, err);
	for (*ret_done = 0; *ret_done < b->count; ++*ret_done)
		if (render(s, batch_text(b, *ret_done), err) < 0 ||
		    local_send(&s->to, buf_span(&s->message), err) < 0)
			return -1;
	return 0;
}

static int syslog_say(struct sink *s, const struct saying *what, struct err *err)
{
	struct span message;

	buf_clear(&s->message);
	sink_say_syslog(what, s->host, &s->message);
	message = buf_span(&s->message);
	if (!s->link)
		return local_send(&s->to, message, err);
	buf_clear(&s->out);
	buf_printf(&s->out, "%zu ", message.len);
	buf_put(&s->out, message.at, message.len);
	return flush(s, err) < 0 || s->dialer->drain(s->link, err) < 0 ? -1 : 0;
}

const struct sink_ops sink_syslog = {
	.open = syslog_open,
	.send = syslog_send,
	.say = syslog_say,
	.close = syslog_close,
};
