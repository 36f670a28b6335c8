#include "gate/notify.h"

#include "gate/base/auto.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

void notify_manager(const char *state)
{
	notify_manager_fd(state, -1);
}

static void send_to(int to, const struct sockaddr_un *addr, socklen_t addr_len, const char *state,
		    int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec text = {.iov_base = (void *)state, .iov_len = strlen(state)};
	struct msghdr message = {.msg_name = (void *)addr,
				 .msg_namelen = addr_len,
				 .msg_iov = &text,
				 .msg_iovlen = 1};

	if (fd >= 0) {
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		*CMSG_FIRSTHDR(&message) = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
							    .cmsg_level = SOL_SOCKET,
							    .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof(fd));
	}
	sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void notify_manager_fd(const char *state, int kept)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	auto_fd int fd = -1;
	size_t len = path ? strlen(path) : 0;

	if (len < 2 || len >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		send_to(fd, &to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len), state,
			kept);
}
