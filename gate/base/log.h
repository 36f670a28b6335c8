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

/*
 * A line that begins with ALARM: something that a person must see.  From
 * log_alarm_syslog() on it is sent to the system's log as well, as
 * auth.alert.  Neither waits for whoever reads it; of many within LOG_BURST_MS some are
 * counted only.
 */
void log_alarm(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define LOG_SYSLOG "/dev/log"

/* In each process, before it is confined. */
void log_alarm_syslog(const char *path);

/*
 * For lines that a caller can cause: LOG_BURST of one kind in LOG_BURST_MS, the
 * others are counted and told with the next line that is written.
 */
#define LOG_BURST    5
#define LOG_BURST_MS 10000

struct log_kind {
	unsigned long long since_ms; /* clock_boot_ms() */
	unsigned written, left_out;
};

void log_often(struct log_kind *kind, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
