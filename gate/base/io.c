#include "gate/base/io.h"

#include "gate/base/auto.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define READ_PIECE 65536

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

int io_read_fd(int fd, size_t cap, struct buf *ret, struct err *err)
{
	buf_init(ret, cap + 1);
	for (;;) {
		size_t want = buf_room(ret) < READ_PIECE ? buf_room(ret) : READ_PIECE;
		char *at = want ? buf_reserve(ret, want) : NULL;
		ssize_t n;

		if (!at || buf_len(ret) > cap) {
			buf_fini(ret);
			return err_set(err, ERR_LIMIT, "it is larger than %zu bytes", cap);
		}
		n = read(fd, at, want);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err_sys(err, "read it");
			buf_fini(ret);
			return -1;
		}
		if (n == 0)
			return 0;
		buf_commit(ret, (size_t)n);
	}
}

int io_read_file(const char *path, size_t cap, struct buf *ret, struct err *err)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);

	buf_init(ret, cap + 1);
	if (fd < 0)
		return err_sys(err, "open %s", path);
	return io_read_fd(fd, cap, ret, err) < 0 ? err_wrap(err, "%s", path) : 0;
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

int io_write_at(int fd, const void *bytes, size_t len, uint64_t at)
{
	const char *from = bytes;

	while (len) {
		struct iovec iov = {(void *)(uintptr_t)from, len};
		ssize_t n = pwritev(fd, &iov, 1, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO;
		if (n <= 0)
			return -1;
		from += n;
		len -= (size_t)n;
		at += (size_t)n;
	}
	return 0;
}

static int write_new(int folder, const char *name, mode_t mode, struct span text, struct err *err)
{
	auto_fd int fd = -1;

	if (unlinkat(folder, name, 0) < 0 && errno != ENOENT)
		return err_sys(err, "remove the left-over %s", name);
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return err_sys(err, "create %s", name);
	if (io_write_at(fd, text.at, text.len, 0) < 0 || fsync(fd) < 0)
		return err_sys(err, "write %s", name);
	return 0;
}

/* What has the new name stays only if its folder has it on disk as well. */
static int sync_folder(int folder, const char *name, struct err *err)
{
	const char *end = strrchr(name, '/');
	char path[PATH_MAX];
	auto_fd int own = -1;

	if (!end && folder != AT_FDCWD)
		return fsync(folder) < 0 ? err_sys(err, "sync the folder of %s", name) : 0;
	snprintf(path, sizeof(path), "%.*s", end ? (int)(end - name + 1) : 1, end ? name : ".");
	own = openat(folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return own < 0 || fsync(own) < 0 ? err_sys(err, "sync the folder of %s", name) : 0;
}

int io_replace(int folder, const char *name, mode_t mode, struct span text, struct err *err)
{
	char temporary[PATH_MAX];

	if (snprintf(temporary, sizeof(temporary), "%s.tmp", name) >= PATH_MAX)
		return err_set(err, ERR_INPUT, "%s: the name is too long", name);
	if (write_new(folder, temporary, mode, text, err) < 0) {
		unlinkat(folder, temporary, 0);
		return -1;
	}
	if (renameat(folder, temporary, folder, name) < 0) {
		err_sys(err, "rename %s to %s", temporary, name);
		unlinkat(folder, temporary, 0);
		return -1;
	}
	return sync_folder(folder, name, err);
}
