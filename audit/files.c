#include "audit/files_priv.h"

#include "audit/log_priv.h"
#include "gate/base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int file_take(int dir_fd, const char *name, bool secret, struct buf *out, struct err *err)
{
	auto_fd int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	char *at;
	long n;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "open %s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_CONFIG, "%s is not a regular file", name);
	if (secret && (st.st_mode & 077))
		return err_set(err, ERR_CONFIG, "%s can be read by others: make its mode 0600",
			       name);
	if ((uint64_t)st.st_size > buf_room(out))
		return err_set(err, ERR_LIMIT, "%s is too long", name);
	at = buf_reserve(out, (size_t)st.st_size + !st.st_size);
	n = at ? segment_read(fd, at, (size_t)st.st_size, 0) : -1;
	if (n < 0)
		return err_sys(err, "read %s", name);
	buf_commit(out, (size_t)n);
	return 1;
}
