/*
 * safe_priv.h - strings from outside, as they may stand in pages that people read.
 */
#ifndef AUDIT_SAFE_PRIV_H
#define AUDIT_SAFE_PRIV_H

#include "gate/base/buf.h"

#include <stdint.h>

/* Between tags and in quotes.  Control bytes and what is no UTF-8 become a visible escape. */
void safe_html(struct buf *out, const char *text);

/* Likewise, but lines stay lines: for <pre>. */
void safe_html_lines(struct buf *out, const char *text);

/* Likewise, held apart from what stands around it. */
void safe_html_apart(struct buf *out, const char *text);

/* 1234567 as 1,234,567. */
void safe_count(struct buf *out, uint64_t n);

/* For a terminal: what is no plain character stands as \x1b. */
void safe_text(struct buf *out, const char *text);

#endif
