/*
 * names.h - names as octets, percent-encoded in both directions (see frames.h).
 */
#ifndef PROXY_SANDBOX_INSIDE_NAMES_H
#define PROXY_SANDBOX_INSIDE_NAMES_H

#include <stddef.h>

/* Decodes in place.  0, or -1: not an encoded name, or one that holds NUL. */
int name_decode(char *name);

/* Room for a name of so many octets, encoded. */
#define NAME_ENCODED(octets) (3 * (octets) + 1)

/* Encodes into room of size octets; cut where that ends.  Returns room. */
const char *name_encode(char *room, size_t size, const char *name);

#endif
