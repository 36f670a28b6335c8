/*
 * utf8.h - which bytes are UTF-8 (RFC 3629): no overlong forms, no surrogates.
 */
#ifndef GATE_BASE_UTF8_H
#define GATE_BASE_UTF8_H

#include <stddef.h>

/* The length of the sequence that s[0..left) begins with, or 0 if it is none; left is at least 1.
 */
size_t utf8_len(const unsigned char *s, size_t left);

#endif
