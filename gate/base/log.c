#include "gate/base/log.h"

#include "gate/base/clock.h"

#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *role_name = "";

void log_role(const char *role)
{
	role_name = role;
}

#define TEXT_MAX 1024

#define HEAD_MAX     64
#define LINE_MAX     (4 * TEXT_MAX + HEAD_MAX)
#define ALARM_BURST  20
#define SYSLOG_ALERT "<33>" /* auth, alert */

static size_t make_line(char line[LINE_MAX], const char *text)
{
	size_t used =
		(size_t)snprintf(line, HEAD_MAX, "sallyport[%s %d]: ", role_name, (int)getpid());

	for (const char *p = text; *p; p++) {
		unsigned char c = (unsigned char)*p;

		if (c < 0x20 || c == 0x7f)
			used += (size_t)snprintf(line + used, 5, "\\x%02x", c);
		else
			line[used++] = *p;
	}
	return used;
}

static void write_line(const char *text)
{
	char line[LINE_MAX];
	size_t used = make_line(line, text);

	line[used++] = '\n';
	/* One write, so that lines of several processes do not mix. */
	if (write(STDERR_FILENO, line, used) < 0)
		return; /* nobody is left to be told */
}

void log_line(const char *fmt, ...)
{
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	write_line(text);
}

static struct sockaddr_un syslog_at = {.sun_family = AF_UNIX};
static int syslog_fd = -1;

void log_alarm_syslog(const char *path)
{
	snprintf(syslog_at.sun_path, sizeof(syslog_at.sun_path), "%s", path);
	if (syslog_fd < 0)
		syslog_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Not connected, so that a daemon that was started anew gets the next one. */
static void to_syslog(const char *text)
{
	char message[sizeof(SYSLOG_ALERT) + LINE_MAX] = SYSLOG_ALERT;
	size_t used = sizeof(SYSLOG_ALERT) - 1;

	if (syslog_fd < 0)
		return;
	used += make_line(message + used, text);
	(void)sendto(syslog_fd, message, used, MSG_NOSIGNAL | MSG_DONTWAIT,
		     (const struct sockaddr *)&syslog_at, sizeof(syslog_at));
}

/*
 * Some can be caused from outside; the log has them all, and counts them.  *ret_left_out:
 * those since the last that was told.
 */
static bool too_many_alarms(unsigned *ret_left_out)
{
	static struct log_kind kind;
	unsigned long long now = clock_boot_ms();

	if (now - kind.since_ms >= LOG_BURST_MS)
		kind = (struct log_kind){.since_ms = now, .left_out = kind.left_out};
	if (kind.written == ALARM_BURST) {
		kind.left_out++;
		return true;
	}
	*ret_left_out = kind.left_out;
	kind.written++;
	kind.left_out = 0;
	return false;
}

/* Who writes the log does not wait for whoever reads this. */
static bool stderr_takes(void)
{
	struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT);
}

void log_alarm(const char *fmt, ...)
{
	char text[TEXT_MAX];
	unsigned left_out;
	size_t used;
	va_list ap;

	if (too_many_alarms(&left_out))
		return;
	used = (size_t)(left_out
				? snprintf(text, sizeof(text),
					   "ALARM (behind %u that are not told of here) ", left_out)
				: snprintf(text, sizeof(text), "ALARM "));
	va_start(ap, fmt);
	vsnprintf(text + used, sizeof(text) - used, fmt, ap);
	va_end(ap);
	to_syslog(text);
	if (stderr_takes())
		write_line(text);
}

void log_often(struct log_kind *kind, const char *fmt, ...)
{
	unsigned long long now = clock_boot_ms();
	char text[TEXT_MAX];
	va_list ap;

	if (now - kind->since_ms >= LOG_BURST_MS) {
		if (kind->left_out)
			log_line("%u lines like the next were left out", kind->left_out);
		*kind = (struct log_kind){.since_ms = now};
	}
	if (kind->written == LOG_BURST) {
		kind->left_out++;
		return;
	}
	kind->written++;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	write_line(text);
}
