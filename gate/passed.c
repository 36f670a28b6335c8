#include "gate/passed.h"

#include "gate/base/auto.h"
#include "gate/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST 3
#define MOST  256

static bool taken[MOST];

static int number_of(const char *name)
{
	const char *text = getenv(name);
	char *end = NULL;
	long n = text ? strtol(text, &end, 10) : 0;

	return text && *text && !*end && n > 0 && n <= INT32_MAX ? (int)n : 0;
}

static int count(void)
{
	int n = number_of("LISTEN_PID") == getpid() ? number_of("LISTEN_FDS") : 0;

	return n < MOST ? n : MOST;
}

unsigned passed_behind(void)
{
	return (unsigned)(FIRST + count());
}

static bool option_is(int fd, int option, int want)
{
	socklen_t len = sizeof(int);
	int value = 0;

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value == want;
}

static bool listens_at(int fd, const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNSPEC};
	socklen_t len = sizeof(at);

	return option_is(fd, SO_ACCEPTCONN, 1) && option_is(fd, SO_TYPE, SOCK_STREAM) &&
	       getsockname(fd, (struct sockaddr *)&at, &len) == 0 && at.sun_family == AF_UNIX &&
	       strncmp(at.sun_path, path, sizeof(at.sun_path)) == 0;
}

/* Through a descriptor of the file itself: neither call can be led to another one. */
static int set_access(const char *path, const struct listen_access *access, struct err *err)
{
	auto_fd int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char self[64];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "look at %s", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, ERR_CONFIG, "%s: exists and is no socket", path);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if ((st.st_uid != access->uid || st.st_gid != access->gid) &&
	    fchownat(fd, "", access->uid, access->gid, AT_EMPTY_PATH) < 0)
		return err_sys(err, "give %s to %u:%u", path, access->uid, access->gid);
	if ((st.st_mode & 07777) != access->mode && chmod(self, access->mode) < 0)
		return err_sys(err, "set the mode of %s", path);
	return 0;
}

static int prepare(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -1;
	return fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int passed_take(const char *path, const struct listen_access *access, struct err *err)
{
	for (int i = 0; i < count(); i++) {
		struct stat st;

		/* A file that is gone takes its socket out of reach: a new one is made. */
		if (taken[i] || !listens_at(FIRST + i, path) || lstat(path, &st) < 0)
			continue;
		if (set_access(path, access, err) < 0)
			return -1;
		if (prepare(FIRST + i) < 0)
			return err_sys(err, "prepare the socket %s that was passed", path);
		taken[i] = true;
		return FIRST + i;
	}
	return -1;
}

void passed_end(void)
{
	for (int i = 0; i < count(); i++)
		if (!taken[i])
			close(FIRST + i);
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
}

void passed_keep(const char *name, int fd)
{
	char text[128];

	snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s", name);
	notify_manager_fd(text, fd);
}
