#include "tests/unit/audit/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static struct fault fault;
static int seen, counts[FAULT_ANY + 1];
static size_t short_bytes;
static bool interrupted;
void (*faults_on_sync)(int fd);

void faults_set(struct fault f)
{
	fault = f;
	seen = 0;
	memset(counts, 0, sizeof(counts));
}

int faults_calls(enum fault_call call)
{
	return counts[call];
}

void faults_short_writes(size_t bytes)
{
	short_bytes = bytes;
}

/* What this call shall come to. */
static enum fault_effect effect_of(enum fault_call call)
{
	int n;

	counts[call]++;
	if (!(fault.calls & call))
		return FAULT_NOTHING;
	n = seen++;
	if (n < fault.after || (n > fault.after && !fault.for_ever))
		return FAULT_NOTHING;
	if (fault.effect == FAULT_DIE)
		_exit(99);
	errno = fault.error;
	return fault.effect;
}

/* The linker's names for the real ones, and for ours. */
ssize_t __real_pwritev64(int fd, const struct iovec *iov, int count, off_t at);
int __real_fdatasync(int fd);
int __real_fsync(int fd);
int __real_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __real_fallocate64(int fd, int mode, off_t at, off_t len);
int __real_ftruncate64(int fd, off_t len);
ssize_t __wrap_pwritev64(int fd, const struct iovec *iov, int count, off_t at);
int __wrap_fdatasync(int fd);
int __wrap_fsync(int fd);
int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __wrap_fallocate64(int fd, int mode, off_t at, off_t len);
int __wrap_ftruncate64(int fd, off_t len);

ssize_t __wrap_pwritev64(int fd, const struct iovec *iov, int count, off_t at)
{
	struct iovec first = iov[0];

	switch (effect_of(FAULT_PWRITEV)) {
	case FAULT_ERROR:
		return -1;
	case FAULT_HALF_DIE:
		first.iov_len /= 2;
		if (__real_pwritev64(fd, &first, 1, at) < 0)
			perror("pwritev");
		_exit(99);
	case FAULT_NOTHING:
	case FAULT_DIE:
		break;
	}
	if (!short_bytes)
		return __real_pwritev64(fd, iov, count, at);
	interrupted = !interrupted;
	if (interrupted) {
		errno = EINTR;
		return -1;
	}
	if (first.iov_len > short_bytes)
		first.iov_len = short_bytes;
	return __real_pwritev64(fd, &first, 1, at);
}

static int synced(int fd, int result)
{
	if (result == 0 && faults_on_sync)
		faults_on_sync(fd);
	return result;
}

int __wrap_fdatasync(int fd)
{
	return effect_of(FAULT_FDATASYNC) ? -1 : synced(fd, __real_fdatasync(fd));
}

int __wrap_fsync(int fd)
{
	return effect_of(FAULT_FSYNC) ? -1 : synced(fd, __real_fsync(fd));
}

int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	return effect_of(FAULT_RENAME) ? -1 : __real_renameat(from_fd, from, to_fd, to);
}

int __wrap_fallocate64(int fd, int mode, off_t at, off_t len)
{
	return effect_of(FAULT_FALLOCATE) ? -1 : __real_fallocate64(fd, mode, at, len);
}

int __wrap_ftruncate64(int fd, off_t len)
{
	return effect_of(FAULT_FTRUNCATE) ? -1 : __real_ftruncate64(fd, len);
}
