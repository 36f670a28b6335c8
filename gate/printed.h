/*
 * printed.h - text from outside, made harmless for where it is printed.
 */
#ifndef GATE_PRINTED_H
#define GATE_PRINTED_H

#include "gate/base/buf.h"
#include "gate/base/span.h"

#include <stddef.h>

/*
 * For a terminal: control bytes (C0, DEL, C1), line separators and what reorders
 * text are written as \x1b or \u202e, so that nothing moves the cursor or forges a
 * line.  At most `columns` characters, then "..."; 0: all.
 */
void printed_plain(struct buf *out, const char *text, size_t columns);

/*
 * One field of CSV (RFC 4180), always in quotes, with the same bytes made harmless,
 * so that a record is a line.  A field that a spreadsheet would
 * take for a formula (=, +, -, @, tab or carriage return in front) gets a ' in front.
 */
void printed_csv(struct buf *out, const char *text);

#endif
