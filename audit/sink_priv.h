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
#include "gate/base/clock.h"

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

/* What a shipper itself has noticed of a log; it is no record of it. */
struct saying {
	char log[LINE_ORIGIN_MAX + 1]; /* "" : not known */
	const char *cause;             /* one word */
	char text[ERR_MSG_MAX];
	char began[CLOCK_TEXT_MAX], ended[CLOCK_TEXT_MAX]; /* ended: "" while it goes on */
};

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
	/* Tells what no record says. */
	int (*say)(struct sink *s, const struct saying *what, struct err *err);
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
/* -1: others could write it, who could have records left out, or sent again. */
int sink_state_own(const struct sink_conf *conf, struct err *err);
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

/* --- sink_only.c --- */

bool sink_only_alarms(unsigned only); /* `alarms` is among the words */

/* Whether a record's line is what the words say; the arena is for taking it apart. */
bool sink_only_wants(unsigned only, enum record_type type, struct span text, struct arena *a);

/* --- sink_render.c --- */

/* A record as one syslog message (RFC 5424), without framing. */
void sink_render_syslog(const struct fields *f, struct span line, enum export_format format,
			const char *host, struct arena *a, struct buf *out);
/* As one datagram of journald's own protocol. */
void sink_render_journal(const struct fields *f, struct span line, struct buf *out);

/* The same of what is no record: type ship_alarm. */
void sink_say_json(const struct saying *what, struct buf *out);
void sink_say_syslog(const struct saying *what, const char *host, struct buf *out);
void sink_say_journal(const struct saying *what, struct buf *out);

/* --- ship_watch.c --- */

#define WATCH_SAYINGS 4

struct ship_watch {
	const char *dir;
	char log[LINE_ORIGIN_MAX + 1]; /* "": none was seen yet, so none is missed */
	uint64_t look_at_ms, send_at_ms;
	unsigned held, unheld; /* looks, one behind the other, at which somebody wrote, or nobody */
	char since[CLOCK_TEXT_MAX]; /* nobody writes, which was told; "": somebody does */
	struct saying waiting[WATCH_SAYINGS];
	size_t count;
};

/*
 * Now and then: does somebody write the log?  ended: its last record is gate_stop, and
 * all of it was read.
 */
void ship_watch_look(struct ship_watch *w, bool ended);

/* Has something told; the oldest of too many are forgotten. */
void ship_watch_say(struct ship_watch *w, const char *cause, const char *text);

/* Tells what waits, over a connection of its own.  False: something still waits. */
bool ship_watch_send(struct ship_watch *w, const struct sink_ops *ops, const struct sink_conf *conf,
		     const struct sink_dialer *dialer);

#endif
