/*
 * fuzz.h - what the targets share.
 *
 * Each target is one file with LLVMFuzzerTestOneInput() that calls abort()
 * where something holds no longer.  It is linked twice: with libFuzzer, and
 * with replay.c, which runs the corpus in every build.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "gate/base/jv.h"
#include "gate/base/span.h"

#include <stdint.h>
#include <stdlib.h>

#define FUZZ_ARENA_BYTES (8u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold; says where it does not, and aborts. */
#define HOLDS(what) fuzz_holds(what, #what, __FILE__, __LINE__)
void fuzz_holds(bool yes, const char *what, const char *file, int line);

/* Input with a NUL behind it, so that a read over its end is seen by sanitizers. */
struct span fuzz_text(struct arena *a, const uint8_t *data, size_t size);

/* True if one of the path's segments is "..", "." or empty. */
bool fuzz_has_dots(struct span path);

/* A folder of this process's own under $TMPDIR, made at the first call, removed at the end. */
const char *fuzz_folder(void);

#endif
