/*
 * unix_connect.c - lets a load generator that knows only TCP reach a unix socket.
 *
 * Preloaded: a connection to 127.0.0.1 becomes one to $UNIX_CONNECT.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef int connect_fn(int, const struct sockaddr *, socklen_t);

static int connect_unix(connect_fn *real, int fd, const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (other < 0)
		return -1;
	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	if (real(other, (const struct sockaddr *)&un, sizeof(un)) < 0 ||
	    fcntl(other, F_SETFL, O_NONBLOCK) < 0 || dup2(other, fd) < 0) {
		int why = errno;

		close(other);
		errno = why;
		return -1;
	}
	close(other);
	return 0;
}

int connect(int fd, const struct sockaddr *addr, socklen_t len);

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	connect_fn *real = (connect_fn *)dlsym(RTLD_NEXT, "connect");
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	const char *path = getenv("UNIX_CONNECT");

	if (path && addr->sa_family == AF_INET && in->sin_addr.s_addr == htonl(INADDR_LOOPBACK))
		return connect_unix(real, fd, path);
	return real(fd, addr, len);
}
