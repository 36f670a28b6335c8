/*
 * sink_priv.h - what a kind of sink is made of: it connects, takes batches, and says
 * how far it got.
 */
#ifndef AUDIT_SINK_PRIV_H
#define AUDIT_SINK_PRIV_H

#include "audit/cursor_priv.h"
#include "audit/sink.h"
#include "gate/base/arena.h"
#include "gate/base/buf.h"

#define BATCH_LINES 256
#define BATCH_BYTES (1u << 20)

struct batch_line {
	size_t at, len; /* in text */
	uint64_t seq;
	struct hash hash;
};

/* Records that follow each other, of one log. */
struct batch {
	struct buf text;
	size_t count;
	struct batch_line lines[BATCH_LINES];
};

static inline struct span batch_text(const struct batch *b, size_t i)
{
	return (struct span){buf_span(&b->text).at + b->lines[i].at, b->lines[i].len};
}

struct sink;

struct sink_ops {
	bool own_position; /* it keeps the position itself */
	/* Connects.  log: the name of the log that is shipped. */
	struct sink *(*open)(const struct sink_conf *conf, const struct sink_dialer *dialer,
			     const char *log, struct err *err);
	/* own_position: 1, 0: it has nothing of this log, -1. */
	int (*position)(struct sink *s, struct cursor_mark *ret, struct err *err);
	/*
	 * Hands a batch over.  *ret_done: how many of its records were taken for sure,
	 * also when it fails.
	 */
	int (*send)(struct sink *s, const struct batch *b, size_t *ret_done, struct err *err);
	void (*close)(struct sink *s);
};

extern const struct sink_ops sink_postgres, sink_syslog, sink_journald, sink_https;

/* --- postgres.sql (made by embed.py) --- */

struct schema_file {
	const char *name, *text;
	size_t len;
};

extern const struct schema_file schema_files[];
extern const size_t schema_file_count;

/* --- sink_state.c: the state file of a sink --- */

/* 1: it was read; 0: there is none; -1: it cannot be read, or is no such file. */
int sink_state_read(const struct sink_conf *conf, struct cursor_mark *ret, struct err *err);
int sink_state_keep(const struct sink_conf *conf, const struct cursor_mark *mark, struct err *err);
/* Takes such a text apart; -1: it is none. */
int sink_state_parse(struct span text, struct cursor_mark *ret);

/*
 * What holds the sink up, in a file beside its state; "" if nothing is known.  Printable
 * ASCII, whatever the file holds.
 */
void sink_trouble_read(const struct sink_conf *conf, char *out, size_t size);
/* "": nothing does any more.  It is for people, so an error is no error. */
void sink_trouble_keep(const struct sink_conf *conf, const char *text);

/* --- sink_render.c --- */

/* A record as one syslog message (RFC 5424), without framing. */
void sink_render_syslog(const struct fields *f, struct span line, enum export_format format,
			const char *host, struct arena *a, struct buf *out);
/* As one datagram of journald's own protocol. */
void sink_render_journal(const struct fields *f, struct span line, struct buf *out);

#endif
