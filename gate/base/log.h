/*
 * log.h - what the operator reads on stderr (the journal).
 *
 * One line a call: "sallyport[worker 123]: text".  Control bytes in the text
 * are written as \xNN, so that nothing from outside can forge a line.  Only
 * proxy/ and gate/ log; the folders below report errors to their callers.
 */
#ifndef GATE_BASE_LOG_H
#define GATE_BASE_LOG_H

/* Names the process in its lines.  role is kept, not copied. */
void log_role(const char *role);

void log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
