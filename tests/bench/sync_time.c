/*
 * sync_time.c - a disk that takes as long as one likes.
 *
 * Preloaded: fdatasync() takes $SYNC_MS milliseconds and does nothing else; 0: none.
 */
#include <poll.h>
#include <stdlib.h>

int fdatasync(int fd);

int fdatasync(int fd)
{
	const char *ms = getenv("SYNC_MS");

	(void)fd;
	if (ms && *ms != '0')
		poll(NULL, 0, atoi(ms));
	return 0;
}
