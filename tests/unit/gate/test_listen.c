/* Listening sockets: who owns them, what stands in their place already. */
#include "gate/listen.h"
#include "gate/notify.h"
#include "gate/passed.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
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

/* A folder that an engine made is told from other things. */
static void a_folder_in_its_place_is_explained(void **state)
{
	struct err err = {0};

	(void)state;
	mkdir(path, 0700);
	CHECK_INT("a folder", -1, open_here(path, &err));
	CHECK_INT("says what it is", 1, strstr(err.msg, "remove it with rmdir") != NULL);
	CHECK_INT("is still there", 0, rmdir(path));
}

/* --- sockets that a service manager passes --- */

static const struct listen_access passed_access = {.mode = 0666};

static int take(const char *where)
{
	struct listen_access access = passed_access;
	struct err err = {0};
	int fd;

	access.uid = geteuid();
	access.gid = getegid();
	fd = passed_take(where, &access, &err);
	return err.kind == ERR_NONE ? fd : -2;
}

/* In a process of its own, in which the descriptors from 3 on are these; its exit status. */
static int with_passed(int first, int second, bool for_us, int (*check)(void))
{
	char pid[16];
	pid_t child = fork();
	int status = -1;

	if (child == 0) {
		int a = fcntl(first, F_DUPFD, 20), b = fcntl(second, F_DUPFD, 20);

		dup2(a, 3);
		dup2(b, 4);
		snprintf(pid, sizeof(pid), "%d", for_us ? (int)getpid() : 1);
		setenv("LISTEN_PID", pid, 1);
		setenv("LISTEN_FDS", "2", 1);
		_exit(check());
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int check_taken(void)
{
	struct stat st;

	if (take("/elsewhere") != -1 || take(path) != 4 || take(path) != -1)
		return 1;
	if (stat(path, &st) < 0 || (st.st_mode & 07777) != 0666)
		return 2;
	if (!(fcntl(4, F_GETFL) & O_NONBLOCK) || fcntl(4, F_GETFD) != FD_CLOEXEC)
		return 3;
	passed_end();
	if (fcntl(3, F_GETFD) != -1 || fcntl(4, F_GETFD) == -1)
		return 4;
	return getenv("LISTEN_FDS") || getenv("LISTEN_PID") ? 5 : 0;
}

static int check_not_taken(void)
{
	return take(path) == -1 ? 0 : 1;
}

static int check_refused(void)
{
	return take(path) == -2 ? 0 : 1;
}

static void passed_sockets_are_taken(void **state)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct err err = {0};
	int fd = open_here(path, &err), deaf = socket(AF_UNIX, SOCK_STREAM, 0), other[2];
	char where[80];

	(void)state;
	CHECK_INT("another", 0, socketpair(AF_UNIX, SOCK_STREAM, 0, other));
	CHECK_INT("taken", 0, with_passed(other[0], fd, true, check_taken));
	CHECK_INT("for another process", 0, with_passed(fd, fd, false, check_not_taken));
	CHECK_INT("something else", 0, with_passed(0, other[1], true, check_not_taken));
	unlink(path);
	CHECK_INT("whose file is gone", 0, with_passed(fd, fd, true, check_not_taken));
	close(open(path, O_CREAT | O_WRONLY, 0600));
	CHECK_INT("in whose place is a file", 0, with_passed(fd, fd, true, check_refused));
	unlink(path);
	CHECK_INT("link", 0, symlink("/etc/passwd", path));
	CHECK_INT("in whose place is a link", 0, with_passed(fd, fd, true, check_refused));
	unlink(path);
	snprintf(where, sizeof(where), "%s", path);
	memcpy(at.sun_path, where, sizeof(where));
	CHECK_INT("bound", 0, bind(deaf, (struct sockaddr *)&at, sizeof(at)));
	CHECK_INT("that does not listen", 0, with_passed(deaf, deaf, true, check_not_taken));
	unlink(path);
	close(deaf);
	close(fd);
	close(other[0]);
	close(other[1]);
}

/* The manager gets a descriptor of the very socket. */
static void sockets_are_given_to_the_manager(void **state)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	char text[128] = "", where[80];
	struct iovec to = {text, sizeof(text) - 1};
	struct msghdr got = {.msg_iov = &to,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	int manager = socket(AF_UNIX, SOCK_DGRAM, 0), kept = -1, two[2];

	(void)state;
	snprintf(where, sizeof(where), "%s/notify", dir);
	memcpy(at.sun_path, where, sizeof(where));
	CHECK_INT("manager", 0, bind(manager, (struct sockaddr *)&at, sizeof(at)));
	CHECK_INT("pair", 0, socketpair(AF_UNIX, SOCK_STREAM, 0, two));
	setenv("NOTIFY_SOCKET", where, 1);
	passed_keep("jobs", two[0]);
	unsetenv("NOTIFY_SOCKET");
	passed_keep("nobody", two[0]);
	CHECK_INT("told", 1, recvmsg(manager, &got, MSG_DONTWAIT) > 0);
	CHECK_STR("what", "FDSTORE=1\nFDNAME=jobs", text);
	CHECK_INT("with a descriptor", 1, CMSG_FIRSTHDR(&got) != NULL);
	memcpy(&kept, CMSG_DATA(CMSG_FIRSTHDR(&got)), sizeof(kept));
	CHECK_INT("say", 1, write(kept, "x", 1));
	CHECK_INT("hear", 1, read(two[1], text, 1));
	CHECK_INT("once", -1, recvmsg(manager, &got, MSG_DONTWAIT));
	unlink(where);
	close(kept);
	close(two[0]);
	close(two[1]);
	close(manager);
}

/* A network of its own, whose only address is 127.0.0.1, or ::1. */
static int enter_network(bool v6)
{
	static const char off[] = "/proc/sys/net/ipv6/conf/all/disable_ipv6";
	struct ifreq lo = {.ifr_name = "lo"};
	int fd, any;

	if (unshare(CLONE_NEWNET) < 0)
		return -1;
	fd = v6 ? -1 : open(off, O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "1", 1) != 1)
		return -1;
	close(fd);
	any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	lo.ifr_flags = IFF_UP;
	if (ioctl(any, SIOCSIFFLAGS, &lo) < 0)
		return -1;
	lo.ifr_addr.sa_family = AF_INET; /* 0.0.0.0 takes it away */
	if (v6 && ioctl(any, SIOCSIFADDR, &lo) < 0)
		return -1;
	close(any);
	return 0;
}

/* The address that is there is served; what is said of the other names it, and is no crash. */
static void one_address_family_is_enough(void **state)
{
	static const char *const addresses[] = {"127.0.0.1:2375", "[::1]:2375"};

	(void)state;
	if (geteuid() != 0 || access("/proc/sys/net/ipv6/conf/lo", F_OK) < 0)
		skip();
	for (int v6 = 0; v6 < 2; v6++) {
		char said[2][sizeof(((struct err *)0)->msg)] = {"", ""};
		int status, two[2];
		pid_t child;

		CHECK_INT("pipe", 0, pipe2(two, O_CLOEXEC));
		child = fork();
		if (child == 0) {
			for (int i = 0; i < 2; i++) {
				struct err err = {0};
				int fd = -1;

				if (i == 0 && enter_network(v6))
					_exit(1);
				if (listen_on_tcp(addresses[i], &fd, &err) == 0)
					snprintf(err.msg, sizeof(err.msg), "served");
				if (write(two[1], err.msg, sizeof(err.msg)) < 0)
					_exit(1);
			}
			_exit(0);
		}
		close(two[1]);
		for (int i = 0; i < 2; i++)
			CHECK_INT("read", sizeof(said[i]), read(two[0], said[i], sizeof(said[i])));
		close(two[0]);
		waitpid(child, &status, 0);
		CHECK_INT("status", 0, status);
		CHECK_STR(addresses[v6], "served", said[v6]);
		CHECK_STR(addresses[!v6],
			  v6 ? "bind 127.0.0.1:2375: Cannot assign requested address"
			     : "bind [::1]:2375: Cannot assign requested address",
			  said[!v6]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owner_and_mode_are_set),
		cmocka_unit_test(left_overs_are_replaced),
		cmocka_unit_test(others_are_left_alone),
		cmocka_unit_test(a_folder_must_exist),
		cmocka_unit_test(a_folder_in_its_place_is_explained),
		cmocka_unit_test(passed_sockets_are_taken),
		cmocka_unit_test(sockets_are_given_to_the_manager),
		cmocka_unit_test(one_address_family_is_enough),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
