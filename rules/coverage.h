/*
 * coverage.h - which lines of a file of profiles hold code that a judgement can run.
 *
 * These are the lines of its functions, not those of the file itself, which
 * run when it is loaded.  Read from what Lua compiles the text to, so that a
 * function that was never called counts with all its lines.
 */
#ifndef RULES_COVERAGE_H
#define RULES_COVERAGE_H

#include "gate/base/err.h"
#include "gate/base/span.h"

#include <stdbool.h>

#define COVERAGE_LINES_MAX 65536

/*
 * Sets ret[line] for each such line, from 1 on; ret has COVERAGE_LINES_MAX
 * entries, and lines behind them are left out.
 */
int coverage_lines(struct span text, const char *name, bool *ret, struct err *err);

#endif
