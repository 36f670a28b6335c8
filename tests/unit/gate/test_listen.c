/* Listening sockets: who owns them, what stands in their place already. */
#include "gate/listen.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/sallyport-test-XXXXXX";
static char path[64];

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/a.sock", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

static int open_here(const char *where, struct err *err)
{
	const struct listen_access access = {geteuid(), getegid(), 0620};
	int fd = -1;

	listen_unix(where, &access, &fd, err);
	return fd;
}

static void owner_and_mode_are_set(void **state)
{
	/* Only root can give files away; others keep them. */
	const struct listen_access access = {geteuid() ? geteuid() : 7, geteuid() ? getegid() : 8,
					     0620};
	struct err err = {0};
	struct stat st;
	int fd;

	(void)state;
	CHECK_INT(err.msg, 0, listen_unix(path, &access, &fd, &err));
	CHECK_INT("stat", 0, stat(path, &st));
	CHECK_INT("uid", access.uid, st.st_uid);
	CHECK_INT("gid", access.gid, st.st_gid);
	CHECK_INT("mode", S_IFSOCK | 0620, st.st_mode);
	CHECK_INT("non-blocking", O_NONBLOCK, fcntl(fd, F_GETFL) & O_NONBLOCK);
	CHECK_INT("close on exec", FD_CLOEXEC, fcntl(fd, F_GETFD));
	close(fd);
	unlink(path);
}

static void left_overs_are_replaced(void **state)
{
	struct err err = {0};
	int peer, fd = open_here(path, &err);

	(void)state;
	close(fd); /* the file stays, and nobody answers */
	fd = open_here(path, &err);
	CHECK_STR("again", "", err.msg);
	CHECK_INT("connects", 0, listen_connect(path, 1000, &peer, &err));
	close(peer);
	close(fd);
	unlink(path);
}

static void others_are_left_alone(void **state)
{
	char want[128];
	struct err err = {0};
	int fd = open_here(path, &err);

	(void)state;
	snprintf(want, sizeof(want), "%s: another process answers there", path);
	CHECK_INT("in use", -1, open_here(path, &err));
	CHECK_STR("in use", want, err.msg);
	close(fd);
	unlink(path);

	close(open(path, O_CREAT | O_WRONLY, 0600));
	snprintf(want, sizeof(want), "%s: exists and is no socket", path);
	CHECK_INT("a file", -1, open_here(path, &err));
	CHECK_STR("a file", want, err.msg);
	CHECK_INT("is still there", 0, unlink(path));
}

static void a_folder_must_exist(void **state)
{
	struct err err = {0};
	char where[96];

	(void)state;
	snprintf(where, sizeof(where), "%s/none/a.sock", dir);
	CHECK_INT("no folder", -1, open_here(where, &err));
	CHECK_INT("says so", 1, strstr(err.msg, "No such file") != NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owner_and_mode_are_set),
		cmocka_unit_test(left_overs_are_replaced),
		cmocka_unit_test(others_are_left_alone),
		cmocka_unit_test(a_folder_must_exist),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
