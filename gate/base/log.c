#include "gate/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *role_name = "";

void log_role(const char *role)
{
	role_name = role;
}

void log_line(const char *fmt, ...)
{
	char text[1024], line[4 * sizeof(text) + 64];
	size_t used;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
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
