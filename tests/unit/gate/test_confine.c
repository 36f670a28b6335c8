/* What is given up is gone: system calls, users, capabilities. */
#include "gate/base/confine.h"
#include "gate/privs.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

/* Runs what in a child; its exit status, or minus the signal that ended it. */
static int in_child(void (*what)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		what();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void need(int rc)
{
	if (rc < 0)
		_exit(99);
}

static void confined(enum role role)
{
	struct err err = {0};

	need(confine_no_new_privs(&err));
	need(privs_filter(role, &err));
}

/* --- what each role may not do; each of these would work without the filter --- */

static void worker_opens(void)
{
	confined(ROLE_WORKER);
	open("/dev/null", O_RDONLY);
}

static void worker_forks(void)
{
	confined(ROLE_WORKER);
	if (fork() == 0)
		_exit(0);
}

static void worker_executes(void)
{
	confined(ROLE_WORKER);
	execl("/bin/true", "true", (char *)NULL);
}

static void worker_makes_an_inet_socket(void)
{
	confined(ROLE_WORKER);
	socket(AF_INET, SOCK_STREAM, 0);
}

static void worker_binds(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr addr = {.sa_family = AF_UNIX};

	confined(ROLE_WORKER);
	bind(fd, &addr, sizeof(sa_family_t));
}

static void worker_kills(void)
{
	confined(ROLE_WORKER);
	kill(getpid(), 0);
}

static void worker_traces(void)
{
	confined(ROLE_WORKER);
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static void worker_unlinks(void)
{
	confined(ROLE_WORKER);
	unlink("/nonexistent");
}

static void watcher_accepts(void)
{
	confined(ROLE_WATCHER);
	accept4(-1, NULL, NULL, 0);
}

static void watcher_opens(void)
{
	confined(ROLE_WATCHER);
	open("/dev/null", O_RDONLY);
}

static void auditor_makes_a_socket(void)
{
	confined(ROLE_AUDITOR);
	socket(AF_UNIX, SOCK_STREAM, 0);
}

static void auditor_connects(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr addr = {.sa_family = AF_UNIX};

	confined(ROLE_AUDITOR);
	connect(fd, &addr, sizeof(addr));
}

static void auditor_executes(void)
{
	confined(ROLE_AUDITOR);
	execl("/bin/true", "true", (char *)NULL);
}

static void resolver_unlinks(void)
{
	confined(ROLE_RESOLVER);
	unlink("/nonexistent");
}

/* What it may look at, it must not alter: memory of others among it. */
static void resolver_opens_to_write(void)
{
	confined(ROLE_RESOLVER);
	open("/proc/self/mem", O_RDWR | O_CLOEXEC);
}

static void resolver_makes_files(void)
{
	confined(ROLE_RESOLVER);
	open("/tmp/x", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
}

static void resolver_traces(void)
{
	confined(ROLE_RESOLVER);
	ptrace(PTRACE_ATTACH, getppid(), 0, 0);
}

static void resolver_makes_a_socket(void)
{
	confined(ROLE_RESOLVER);
	socket(AF_UNIX, SOCK_STREAM, 0);
}

static void reader_opens(void)
{
	confined(ROLE_READER);
	open("/dev/null", O_RDONLY);
}

static void reader_forks(void)
{
	confined(ROLE_READER);
	if (fork() == 0)
		_exit(0);
}

static void supervisor_executes(void)
{
	confined(ROLE_SUPERVISOR);
	execl("/bin/true", "true", (char *)NULL);
}

static void supervisor_traces(void)
{
	confined(ROLE_SUPERVISOR);
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

/* A child of the supervisor's: both filters count. */
static void workers_of_supervisors_open(void)
{
	pid_t pid;
	int status;

	confined(ROLE_SUPERVISOR);
	pid = fork();
	if (pid == 0) {
		confined(ROLE_WORKER);
		open("/dev/null", O_RDONLY);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	_exit(WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* --- what each role must be able to do --- */

static int by_byte(const void *a, const void *b)
{
	return *(const unsigned char *)a - *(const unsigned char *)b;
}

static void worker_works(void)
{
	int ends[2], fd;
	char *mem;

	confined(ROLE_WORKER);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	need(fd);
	need(pipe2(ends, O_CLOEXEC));
	need((int)write(ends[1], "x", 1));
	mem = malloc(1 << 20);
	need(mem ? 0 : -1);
	memset(mem, 1, 1 << 20);
	qsort(mem, 4096, 1, by_byte);
	free(mem);
	need(close(fd));
}

static void resolver_works(void)
{
	int fd;

	confined(ROLE_RESOLVER);
	fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	need(fd);
	need(openat(fd, "etc", O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

static void aborting_is_an_abort(void)
{
	confined(ROLE_WORKER);
	abort();
}

static void filters_hold(void **state)
{
	static const struct {
		const char *label;
		void (*what)(void);
		int want;
	} cases[] = {
		{"a worker opens a file", worker_opens, PRIVS_SANITIZED ? 0 : -SIGSYS},
		{"a worker forks", worker_forks, -SIGSYS},
		{"a worker executes", worker_executes, -SIGSYS},
		{"a worker makes an inet socket", worker_makes_an_inet_socket, -SIGSYS},
		{"a worker binds", worker_binds, -SIGSYS},
		{"a worker sends signals", worker_kills, -SIGSYS},
		{"a worker traces", worker_traces, -SIGSYS},
		{"a worker removes files", worker_unlinks, -SIGSYS},
		{"the watcher takes a caller", watcher_accepts, -SIGSYS},
		{"the watcher opens a file", watcher_opens, PRIVS_SANITIZED ? 0 : -SIGSYS},
		{"the auditor makes a socket", auditor_makes_a_socket, -SIGSYS},
		{"the auditor connects", auditor_connects, -SIGSYS},
		{"the auditor executes", auditor_executes, -SIGSYS},
		{"the resolver removes files", resolver_unlinks, -SIGSYS},
		{"the resolver opens to write", resolver_opens_to_write,
		 PRIVS_SANITIZED ? 0 : -SIGSYS},
		{"the resolver makes files", resolver_makes_files, PRIVS_SANITIZED ? 0 : -SIGSYS},
		{"the resolver traces", resolver_traces, -SIGSYS},
		{"the resolver makes a socket", resolver_makes_a_socket, -SIGSYS},
		{"the reader opens a file", reader_opens, PRIVS_SANITIZED ? 0 : -SIGSYS},
		{"the reader forks", reader_forks, -SIGSYS},
		{"the supervisor executes", supervisor_executes, -SIGSYS},
		{"the supervisor traces", supervisor_traces, -SIGSYS},
		{"a worker of a supervisor opens", workers_of_supervisors_open,
		 PRIVS_SANITIZED ? 0 : SIGSYS},
		{"a worker's work", worker_works, 0},
		{"the resolver's work", resolver_works, 0},
		{"a broken invariant", aborting_is_an_abort, -SIGABRT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		CHECK_INT(cases[i].label, cases[i].want, in_child(cases[i].what));
}

/* The table itself: every row has a reason, and no call stands twice for a role, but for other
 * values. */
static void every_row_has_a_reason(void **state)
{
	struct privs_row a, b;

	(void)state;
	for (size_t i = 0; privs_row(i, &a); i++) {
		CHECK_INT(a.name, 1, strlen(a.reason) > 4);
		for (size_t j = 0; j < i && privs_row(j, &b); j++)
			if (strcmp(a.name, b.name) == 0 && strcmp(a.role, b.role) == 0 &&
			    !(a.limited && b.limited && a.value != b.value))
				fail_msg("%s stands twice for %s", a.name, a.role);
	}
}

static void unknown_names_are_an_error(void **state)
{
	const struct confine_call calls[] = {{"no_such_call", -1, 0}};
	struct err err = {0};

	(void)state;
	CHECK_INT("filter", -1, confine_calls(calls, 1, &err));
	CHECK_INT("names it", 1, strstr(err.msg, "no_such_call") != NULL);
}

/* --- users --- */

static const struct confine_ids nobody = {
	.uid = NOBODY, .gid = NOBODY, .groups = {12345}, .group_count = 1};

static void becomes_for_good(void)
{
	struct err err = {0};
	gid_t groups[8];
	uid_t r, e, s;

	need(confine_become(&nobody, 0, &err));
	need(getresuid(&r, &e, &s));
	need(r == NOBODY && e == NOBODY && s == NOBODY ? 0 : -1);
	need(getresgid(&r, &e, &s));
	need(r == NOBODY && e == NOBODY && s == NOBODY ? 0 : -1);
	need(getgroups(8, groups) == 1 && groups[0] == 12345 ? 0 : -1);
	need(confine_permitted() == 0 ? 0 : -1);
	need(setuid(0) == 0 || setresuid(0, 0, 0) == 0 || setgid(0) == 0 || setgroups(0, NULL) == 0
		     ? -1
		     : 0);
}

/* The resolver may look everywhere, at processes too, and change nothing. */
static void resolver_keeps_two_capabilities(void)
{
	struct err err = {0};
	int fd;

	need(privs_become(ROLE_RESOLVER, &nobody, &err));
	need(getuid() == NOBODY ? 0 : -1);
	need(confine_permitted() == (CONFINE_CAP(CAP_DAC_READ_SEARCH) | CONFINE_CAP(CAP_SYS_PTRACE))
		     ? 0
		     : -1);
	fd = open("/root", O_PATH | O_DIRECTORY);
	need(openat(fd, ".", O_RDONLY));
	need(open("/etc/hostname", O_WRONLY) >= 0 ? -1 : 0);
}

static void worker_keeps_none(void)
{
	struct err err = {0};

	need(privs_become(ROLE_WORKER, &nobody, &err));
	need(confine_permitted() == 0 ? 0 : -1);
	need(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : -1);
	need(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : -1);
}

static void supervisor_keeps_a_few(void)
{
	const uint64_t want = CONFINE_CAP(CAP_SETUID) | CONFINE_CAP(CAP_SETGID) |
			      CONFINE_CAP(CAP_CHOWN) | CONFINE_CAP(CAP_KILL) |
			      CONFINE_CAP(CAP_DAC_READ_SEARCH) | CONFINE_CAP(CAP_SYS_PTRACE);
	struct err err = {0};

	need(privs_become(ROLE_SUPERVISOR, NULL, &err));
	need(confine_permitted() == want ? 0 : -1);
	for (int cap = 0; cap <= CAP_LAST_CAP; cap++)
		if (!(want & CONFINE_CAP(cap)) && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) != 0)
			_exit(98);
	/* And its processes can still become somebody else. */
	need(privs_become(ROLE_RESOLVER, &nobody, &err));
}

static void refuses_root(void)
{
	const struct confine_ids uid = {.uid = 0, .gid = NOBODY}, gid = {.uid = NOBODY, .gid = 0};
	struct err err = {0};

	need(confine_become(&uid, 0, &err) == 0 ? -1 : 0);
	need(confine_become(&gid, 0, &err) == 0 ? -1 : 0);
	need(getuid() == 0 && getgid() == 0 ? 0 : -1);
}

static void users_are_left_for_good(void **state)
{
	static const struct {
		const char *label;
		void (*what)(void);
	} cases[] = {
		{"a user is taken for good", becomes_for_good},
		{"the resolver keeps two capabilities", resolver_keeps_two_capabilities},
		{"a worker keeps none", worker_keeps_none},
		{"the supervisor keeps a few", supervisor_keeps_a_few},
		{"root is refused", refuses_root},
	};

	(void)state;
	if (geteuid() != 0) { /* only root can leave itself */
		struct err err = {0};

		CHECK_INT("an ordinary user", -1, confine_become(&nobody, 0, &err));
		return;
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		CHECK_INT(cases[i].label, 0, in_child(cases[i].what));
}

static void no_core_files(void)
{
	struct rlimit limit;
	struct err err = {0};

	need(confine_no_dumps(&err));
	need(getrlimit(RLIMIT_CORE, &limit));
	need(limit.rlim_max == 0 ? 0 : -1);
	need(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : -1);
}

static void dumps_are_off(void **state)
{
	(void)state;
	CHECK_INT("dumps", 0, in_child(no_core_files));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filters_hold),
		cmocka_unit_test(every_row_has_a_reason),
		cmocka_unit_test(unknown_names_are_an_error),
		cmocka_unit_test(users_are_left_for_good),
		cmocka_unit_test(dumps_are_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
