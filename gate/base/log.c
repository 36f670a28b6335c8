#include "gate/base/log.h"

#include "gate/base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *role_name = "";

void log_role(const char *role)
{
	role_name = role;
}

#define TEXT_MAX 1024

static void write_line(const char *text)
{
	char line[4 * TEXT_MAX + 64];
	size_t used;

	used = (size_t)snprintf(line, 64, "sallyport[%s %d]: ", role_name, (int)getpid());
	for (const char *p = text; *p; p++) {
		unsigned char c = (unsigned char)*p;

		if (c < 0x20 || c == 0x7f)
			used += (size_t)snprintf(line + used, 5, "\\x%02x", c);
		else
			line[used++] = *p;
	}
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
