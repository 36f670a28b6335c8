/*
 * line_priv.h - one line of the log: what the auditor puts around a record.
 *
 *	{"v":1,"log":L,"seq":N,"ep":E,"t":T,"mono":M,BODY,"prev":"P","h":"H"}
 *
 * H = SHA-256(0x00, the bytes of the line up to `,"h":"`): cut the last 72
 * bytes and hash.  FORMAT.md has the whole story.
 */
#ifndef AUDIT_LINE_PRIV_H
#define AUDIT_LINE_PRIV_H

#include "gate/base/buf.h"
#include "gate/base/clock.h"
#include "gate/base/hash.h"
#include "gate/base/span.h"

#include <stdbool.h>
#include <stdint.h>

#define LINE_ORIGIN_MAX 128
#define LINE_START      "{\"v\":1,\"log\":\"" /* how every line begins */

/* What a writer of lines knows; the head changes with every line. */
struct line_writer {
	char origin[LINE_ORIGIN_MAX + 1];
	uint32_t epoch;
	uint64_t seq;     /* of the next line */
	struct hash hash; /* of the last line; zero before the first */
	char hex[HASH_HEX_LEN + 1];
	uint64_t second; /* that `text` is for */
	char text[CLOCK_TEXT_MAX];
};

/* Letters, digits and ._-/:+ only, at most LINE_ORIGIN_MAX, at least one. */
bool line_origin_ok(const char *origin);

/* The next line will have this number and follow a line with this hash. */
void line_writer_set(struct line_writer *w, uint64_t seq, const struct hash *prev);

/* Appends a whole line with its newline.  False: no room; nothing has changed. */
bool line_write(struct line_writer *w, struct buf *out, struct span body);

struct line {
	struct span log, time, body;
	uint64_t seq, mono;
	uint32_t epoch;
	struct hash prev, hash; /* as the line says them */
};

/* Takes a line (without its newline) apart; false if it does not have the form. */
bool line_split(struct span text, struct line *ret);

/* When it was written, in whole seconds since 1970; -1: its time is none. */
int64_t line_second(const struct line *l);

/* True if the line's hash is the hash of its bytes. */
bool line_hash_ok(struct span text, const struct line *l);

#endif
