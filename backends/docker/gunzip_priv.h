/*
 * gunzip_priv.h - one gzip stream, unpacked as it comes.
 *
 * The only place that knows zlib.  Its memory is the arena's, so there is
 * nothing to close.  What stands behind the stream is refused: some readers
 * take it for another stream, some ignore it.
 */
#ifndef BACKENDS_DOCKER_GUNZIP_PRIV_H
#define BACKENDS_DOCKER_GUNZIP_PRIV_H

#include "gate/base/arena.h"
#include "gate/base/span.h"

#include <stdbool.h>

#define GUNZIP_PIECE 32768

struct gunzip;

struct gunzip *gunzip_open(struct arena *a); /* NULL: the arena is spent */

/*
 * Takes from *in and gives at most GUNZIP_PIECE bytes, valid until the next
 * call; none only if all of *in was taken.  -1: this is no gzip.
 */
int gunzip_some(struct gunzip *g, struct span *in, struct span *ret);

bool gunzip_over(const struct gunzip *g); /* its end, with the right sum, has come */

#endif
