/*
 * clock.h - the clocks that the program reads.
 */
#ifndef GATE_BASE_CLOCK_H
#define GATE_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

/* Nanoseconds since boot, suspend included (CLOCK_BOOTTIME). Never goes back. */
uint64_t clock_boot_ns(void);

/* Milliseconds of the same clock, for time-outs. */
uint64_t clock_boot_ms(void);

/* Nanoseconds of processor time that this thread has used. */
uint64_t clock_thread_ns(void);

/* Nanoseconds since 1970, UTC (CLOCK_REALTIME). */
uint64_t clock_unix_ns(void);

#define CLOCK_TEXT_MAX 32

/* Writes "2026-01-31T12:00:00.123456789Z" with its NUL into out. */
void clock_format(uint64_t unix_ns, char out[CLOCK_TEXT_MAX]);

/*
 * Reads "2026-01-31T12:00:00Z", or "2026-01-31" for the first second of that
 * day, as seconds since 1970, UTC.  -1: it is no such text, or no such day.
 */
int64_t clock_parse(const char *text, size_t len);

#endif
