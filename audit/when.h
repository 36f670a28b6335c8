/*
 * when.h - times as people write them for `audit query`, `export` and `report`.
 */
#ifndef AUDIT_WHEN_H
#define AUDIT_WHEN_H

#include "gate/base/err.h"

#include <stdint.h>

/*
 * RFC 3339 ("2026-01-31T12:00:00Z", with a fraction or an offset if need be), a day
 * ("2026-01-31", its first moment), or so long before now: "90s", "15m", "2h", "7d",
 * "4w".  *ret: nanoseconds since 1970, UTC.
 */
int when_parse(const char *text, uint64_t now_ns, uint64_t *ret, struct err *err);

#endif
