/* sink_journald.c - records as entries of the journal, by its own protocol. */
#include "audit/sink_local_priv.h"
#include "audit/sink_priv.h"

#include <stdlib.h>

#define ENTRY_MAX (2 * RECORD_LINE_MAX + 8192) /* the record, and its fields besides */

struct sink {
	struct local to;
	struct arena *arena;
	struct buf entry;
};

static void journald_close(struct sink *s)
{
	local_close(&s->to);
	arena_destroy(s->arena);
	buf_fini(&s->entry);
	free(s);
}

static struct sink *journald_open(const struct sink_conf *conf, const struct sink_dialer *dialer,
				  const char *log, struct err *err)
{
	struct sink *s = calloc(1, sizeof(*s));

	(void)dialer;
	(void)log;
	if (!s) {
		err_set(err, ERR_LIMIT, "no memory for a sink");
		return NULL;
	}
	s->to.fd = -1;
	buf_init(&s->entry, ENTRY_MAX);
	s->arena = arena_create(2 * FIELDS_ARENA_MAX);
	if (!s->arena)
		err_set(err, ERR_LIMIT, "no memory for a sink");
	else if (local_open(&s->to, conf->socket, err) == 0)
		return s;
	journald_close(s);
	return NULL;
}

static int journald_send(struct sink *s, const struct batch *b, size_t *ret_done, struct err *err)
{
	for (*ret_done = 0; *ret_done < b->count; ++*ret_done) {
		struct span line = batch_text(b, *ret_done);
		struct fields f;

		arena_reset(s->arena, 2 * FIELDS_ARENA_MAX);
		if (fields_take(s->arena, line, &f, err) < 0)
			return -1;
		buf_clear(&s->entry);
		sink_render_journal(&f, line, &s->entry);
		if (buf_spent(&s->entry) || arena_spent(s->arena))
			return err_set(err, ERR_LIMIT, "no memory for an entry");
		if (local_send(&s->to, buf_span(&s->entry), err) < 0)
			return -1;
	}
	return 0;
}

static int journald_say(struct sink *s, const struct saying *what, struct err *err)
{
	buf_clear(&s->entry);
	sink_say_journal(what, &s->entry);
	return local_send(&s->to, buf_span(&s->entry), err);
}

const struct sink_ops sink_journald = {
	.open = journald_open,
	.send = journald_send,
	.say = journald_say,
	.close = journald_close,
};
