/*
 * spawn.h - starts the program of a run, with pipes or a terminal of its own.
 */
#ifndef PROXY_SANDBOX_INSIDE_SPAWN_H
#define PROXY_SANDBOX_INSIDE_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct command {
	char **argv;
	char **env; /* "K=V", set on top of this process's own; count of them */
	unsigned env_count;
	const char *cwd; /* NULL: as it is */
	bool tty;
	uint16_t rows, cols;
};

/* Non-blocking, close on exec; -1: not there.  With a terminal all is in and out is in. */
struct ends {
	int in, out, err;
};

/*
 * 0, the pid and our ends; or -1 with errno, and in *what a constant that says what was being
 * done.  When it returns, the program runs: exec has succeeded.
 */
int spawn(const struct command *cmd, pid_t *ret_pid, struct ends *ret_ends, const char **what);

#endif
