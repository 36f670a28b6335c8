/* sink_local.c - datagrams to a socket of this host: a syslog daemon's, or journald's. */
#include "audit/sink_local_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SEND_S     10
#define SEND_BYTES (512 << 10) /* a message must fit */

static int dial(const char *path, struct err *err)
{
	const struct timeval wait = {SEND_S, 0};
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int bytes = SEND_BYTES, fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	if (fd < 0)
		return err_sys(err, "make a socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	err_sys(err, "connect to %s", path);
	close(fd);
	return -1;
}

int local_open(struct local *l, const char *path, struct err *err)
{
	l->path = path;
	l->fd = dial(path, err);
	return l->fd < 0 ? -1 : 0;
}

int local_send(struct local *l, struct span message, struct err *err)
{
	ssize_t n;

	do
		n = send(l->fd, message.at, message.len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	if (errno == EAGAIN)
		return err_set(err, ERR_UPSTREAM, "nobody reads from %s", l->path);
	return err_sys(err, "write to %s", l->path);
}

void local_close(struct local *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}
