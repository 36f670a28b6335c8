#include "audit/requests.h"

#include "audit/requests_priv.h"
#include "gate/base/auto.h"
#include "gate/base/uuid.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "requests"

void requests_open(int dir_fd)
{
	/* Sticky: users of the group cannot remove each other's. */
	if (mkdirat(dir_fd, FOLDER, 01770) == 0)
		(void)fchmodat(dir_fd, FOLDER, 01770, 0);
}

/* False: it is none. */
static bool read_request(int folder_fd, const char *name, struct request *ret)
{
	auto_fd int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	*ret = (struct request){.uid = 0};
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	n = pread(fd, ret->text, sizeof(ret->text) - 1, 0);
	if (n <= 0)
		return false;
	ret->uid = st.st_uid;
	ret->gid = st.st_gid;
	ret->trusted = st.st_uid == 0 || st.st_uid == geteuid();
	return true;
}

void requests_take(int dir_fd, request_fn *take, void *arg)
{
	int fd = openat(dir_fd, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct request request;

	if (!folder && fd >= 0)
		close(fd);
	for (int n = 0; folder && n < REQUESTS_ROUND && (entry = readdir(folder));) {
		if (entry->d_name[0] == '.')
			continue; /* one that is being written */
		n++;
		if (read_request(fd, entry->d_name, &request))
			take(arg, &request);
		(void)unlinkat(fd, entry->d_name, 0);
	}
	if (folder)
		closedir(folder);
}

int log_show_written(int dir_fd)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	auto_fd int fd =
		openat(dir_fd, SHOWN_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640);

	return fd >= 0 && fcntl(fd, F_OFD_SETLK, &whole) == 0 ? take_fd(fd) : -1;
}

bool log_is_written(int dir_fd)
{
	struct flock whole = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	auto_fd int fd = openat(dir_fd, SHOWN_LOCK, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type == F_WRLCK;
}

int request_leave(const char *dir, const char *text, struct err *err)
{
	auto_fd int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_fd int folder_fd = -1, fd = -1;
	char id[UUID_TEXT_LEN + 1], name[UUID_TEXT_LEN + 2];

	if (dir_fd < 0)
		return err_sys(err, "open %s", dir);
	if (!log_is_written(dir_fd))
		return 0;
	uuid_make(id);
	snprintf(name, sizeof(name), ".%s", id);
	folder_fd = openat(dir_fd, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder_fd >= 0)
		fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0644);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ||
	    renameat(folder_fd, name, folder_fd, id) < 0)
		return err_sys(err, "leave a request in %s/" FOLDER, dir);
	return 1;
}

void log_tell_read(const char *dir, const char *command)
{
	struct err ignored;

	(void)request_leave(dir, command, &ignored);
}

int log_rotate_key(const char *dir, struct err *err)
{
	int left = request_leave(dir, REQUEST_ROTATE, err);

	if (left < 0)
		return -1;
	return left ? 0 : err_set(err, ERR_CONFIG, "no gate writes to %s", dir);
}

int log_erase(const char *dir, const char *ticket, const char *identity, int64_t before_s,
	      struct err *err)
{
	char text[REQUEST_MAX];
	int left;

	if (!*ticket || strlen(ticket) > REQUEST_WORD_MAX || strlen(identity) > REQUEST_WORD_MAX ||
	    strpbrk(ticket, "\n\"\\") || strpbrk(identity, "\n\"\\"))
		return err_set(err, ERR_INPUT,
			       "a ticket and an identity have up to %d bytes, without quotes and "
			       "backslashes",
			       REQUEST_WORD_MAX);
	snprintf(text, sizeof(text), REQUEST_ERASE "%s\n%s\n%lld\n", ticket, identity,
		 (long long)before_s);
	left = request_leave(dir, text, err);
	if (left < 0)
		return -1;
	return left ? 0 : err_set(err, ERR_CONFIG, "no gate writes to %s", dir);
}
