#include "gate/base/io.h"

#include "gate/base/auto.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int io_pair(int ret[2], struct err *err)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret) < 0)
		return err_sys(err, "make a socket pair");
	return 0;
}

int io_nonblock(int fd, struct err *err)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return err_sys(err, "make descriptor %d non-blocking", fd);
	return 0;
}

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int) * IO_FDS_MAX)];
};

int io_send_fds(int sock, char tag, const int *fds, size_t count, struct err *err)
{
	return io_send_note(sock, tag, (struct span){"", 0}, fds, count, err);
}

int io_recv_note(int sock, void *note, size_t len, struct err *err)
{
	ssize_t n;

	do
		n = recv(sock, note, len, MSG_WAITALL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, "receive a note");
	return (size_t)n == len ? 0 : err_set(err, ERR_SYSTEM, "a note ends in the middle");
}

int io_send_note(int sock, char tag, struct span note, const int *fds, size_t count,
		 struct err *err)
{
	struct iovec iov[] = {{&tag, 1}, {(void *)(uintptr_t)note.at, note.len}};
	union control control = {0};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = note.len ? 2 : 1};
	ssize_t n;

	assert(count <= IO_FDS_MAX);
	if (count) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(&control.head), fds, sizeof(int) * count);
	}
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, "send descriptors '%c'", tag);
	return (size_t)n == 1 + note.len
		       ? 0
		       : err_set(err, ERR_SYSTEM, "'%c' was sent in part alone", tag);
}

static size_t take_fds(struct msghdr *msg, int fds[IO_FDS_MAX])
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	size_t count;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(c), count * sizeof(int));
	return count;
}

int io_recv_fds(int sock, char *ret_tag, int fds[IO_FDS_MAX], size_t *ret_count, struct err *err)
{
	char tag;
	struct iovec iov = {&tag, 1};
	union control control = {0};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n;

	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, "receive descriptors");
	if (n == 0)
		return 0;
	*ret_tag = tag;
	*ret_count = take_fds(&msg, fds);
	return 1;
}

int io_read_file(const char *path, size_t cap, struct buf *ret, struct err *err)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);

	buf_init(ret, cap + 1);
	if (fd < 0)
		return err_sys(err, "open %s", path);
	for (;;) {
		size_t want = buf_room(ret) < 65536 ? buf_room(ret) : 65536;
		char *at = want ? buf_reserve(ret, want) : NULL;
		ssize_t n;

		if (!at || buf_len(ret) > cap) {
			buf_fini(ret);
			return err_set(err, ERR_LIMIT, "%s is larger than %zu bytes", path, cap);
		}
		n = read(fd, at, want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err_sys(err, "read %s", path);
			buf_fini(ret);
			return -1;
		}
		if (n == 0)
			return 0;
		buf_commit(ret, (size_t)n);
	}
}

int io_write_all(int fd, const void *bytes, size_t len, struct err *err)
{
	const char *at = bytes;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, "write to descriptor %d", fd);
		at += n;
		len -= (size_t)n;
	}
	return 0;
}
