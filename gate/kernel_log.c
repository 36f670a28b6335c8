/* kernel_log.c - which system call was it that a filter did not allow? */
#include "gate/supervisor_priv.h"

#include "gate/base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORDS_MAX 10000 /* read for one death */

int kernel_log_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

/* "... type=1326 audit(...): auid=... pid=123 comm="sallyport" ... sig=31 ... syscall=257 ..." */
static long killed_for(const char *line, pid_t pid)
{
	char mark[32];
	const char *at;

	snprintf(mark, sizeof(mark), " pid=%d ", (int)pid);
	if (!strstr(line, "type=1326") || !strstr(line, mark))
		return -1;
	at = strstr(line, " syscall=");
	return at ? strtol(at + strlen(" syscall="), NULL, 10) : -1;
}

void kernel_log_syscall(int fd, pid_t pid, char *out, size_t size)
{
	char line[2048];

	out[0] = '\0';
	for (int i = 0; fd >= 0 && i < RECORDS_MAX; i++) {
		ssize_t n = read(fd, line, sizeof(line) - 1);
		long nr;

		if (n < 0 && errno == EPIPE)
			continue; /* older records were overwritten */
		if (n <= 0)
			return;
		line[n] = '\0';
		nr = killed_for(line, pid);
		if (nr < 0)
			continue;
		confine_call_name((int)nr, out, size);
		return;
	}
}
