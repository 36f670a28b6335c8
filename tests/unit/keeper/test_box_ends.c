/* That a box ends with everything in it, whoever dies; and what does not begin.  usage:
 * test_box_ends PROBE */
#include "gate/base/clock.h"
#include "tests/unit/keeper/box_kit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BOXES   200
#define THREADS 8

/* Sessions of their own, orphans, and a chain that never stops forking. */
static const char *const escapes[] = {
	"sleep 1000",
	"setsid sh -c 'sleep 1000 & sleep 1000' & exit 0",
	"(setsid sh -c '(setsid sleep 1000 &) & exit' &) & exit 0",
	"trap '' TERM INT HUP; (trap '' TERM; setsid sleep 1000) & exit 0",
	"f() { sleep 0.01; f & }; f",
	"for i in 1 2 3 4 5 6 7 8 9; do (setsid sh -c 'while :; do sleep 1 & wait; done' &); done",
};
#define ESCAPES (sizeof(escapes) / sizeof(*escapes))

static void fill(struct box *b)
{
	for (size_t i = 0; i < ESCAPES; i++)
		kit_start(b, escapes[i]);
	/* All have begun: there is something to be killed. */
	for (uint64_t until = clock_boot_ms() + KIT_WAIT; kit_strays() < 12;) {
		if (geteuid() != kit_uid)
			break;
		assert_true(clock_boot_ms() < until);
		usleep(5000);
	}
}

static void end_leaves_nothing(enum box_mode mode)
{
	struct box *b = kit_box(mode);

	fill(b);
	kit_end(b);
	if (geteuid() == kit_uid)
		CHECK_INT("when it has returned", 0, kit_strays());
}

static void end_confined(void **state)
{
	(void)state;
	end_leaves_nothing(BOX_CONFINED);
}

static void end_bare(void **state)
{
	(void)state;
	end_leaves_nothing(BOX_BARE);
}

/* One of two bare boxes ends: the other is not touched. */
static void others_stay(void **state)
{
	struct box *a = kit_box(BOX_BARE), *b = kit_box(BOX_BARE);

	(void)state;
	fill(a);
	kit_wait(b, kit_start(b, "setsid sleep 1000 &"));
	kit_end(a);
	CHECK_INT("the other", 0, kit_shell(b, "true")->exit.code);
	if (geteuid() == kit_uid)
		CHECK_INT("its guard, its init and the sleeper", 3, kit_strays());
	kit_end(b);
	kit_no_strays("both");
}

static void init_dies(enum box_mode mode)
{
	struct box *b = kit_box(mode);
	struct box_command c = {.argv = (const char *const[]){"/bin/true", NULL},
				.stdio = {-1, -1, -1}};
	struct box_child child;
	struct err err = {0};

	fill(b);
	assert_int_equal(kill(box_pid(b), SIGKILL), 0);
	kit_wait(b, 0);
	kit_no_strays("its init is dead");
	CHECK_INT("nothing starts any more", -1, box_spawn(b, &c, &child, &err));
	kit_end(b);
}

static void init_dies_confined(void **state)
{
	(void)state;
	init_dies(BOX_CONFINED);
}

static void init_dies_bare(void **state)
{
	(void)state;
	init_dies(BOX_BARE);
}

/* A keeper of its own, with a launcher of its own, and boxes that are full. */
static void other_keeper(int tell, bool lives) __attribute__((noreturn));

static void other_keeper(int tell, bool lives)
{
	struct err err = {0};
	pid_t pid;
	int launcher = box_launcher_start(true, &pid, &err);

	kit_launcher = launcher;
	kit_launcher_pid = pid;
	for (int mode = 0; mode < 2; mode++) {
		struct box *b = kit_box((enum box_mode)mode);

		for (size_t i = 0; i < ESCAPES; i++)
			kit_start(b, escapes[i]);
	}
	if (write(tell, &pid, sizeof(pid)) < 0)
		_exit(3);
	while (lives)
		pause();
	_exit(0);
}

static pid_t start_keeper(pid_t *ret_launcher)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		other_keeper(ends[1], true);
	close(ends[1]);
	assert_int_equal(read(ends[0], ret_launcher, sizeof(*ret_launcher)), sizeof(*ret_launcher));
	close(ends[0]);
	return pid;
}

static void clean_cgroups(void)
{
	size_t count;
	const struct box_cgroup *all = kit_cgroups(&count);
	struct err err = {0};
	int n = box_clean(all, count, "t", &err);

	CHECK_STR("clean", "", err.msg);
	CHECK_INT("two boxes were left", count ? 2 : 0, n);
	CHECK_INT("and now none is", 0, box_clean(all, count, "t", &err));
}

static void keeper_dies(void **state)
{
	pid_t launcher, keeper = start_keeper(&launcher);

	(void)state;
	kill(keeper, SIGKILL);
	waitpid(keeper, NULL, 0);
	kit_no_strays("the keeper is dead");
	clean_cgroups();
}

static void launcher_dies(void **state)
{
	pid_t launcher, keeper = start_keeper(&launcher);

	(void)state;
	kill(launcher, SIGKILL);
	/* The keeper, and the launcher that it has not waited for. */
	for (uint64_t until = clock_boot_ms() + KIT_WAIT;
	     geteuid() == kit_uid && kit_strays() > 2 && clock_boot_ms() < until;)
		usleep(5000);
	if (geteuid() == kit_uid)
		CHECK_INT("the launcher is dead", 2, kit_strays());
	kill(keeper, SIGKILL);
	waitpid(keeper, NULL, 0);
	kit_no_strays("the keeper is dead, too");
	clean_cgroups();
}

static unsigned count_in(const char *folder)
{
	DIR *d = opendir(folder);
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Of boxes, in this mount namespace: what their user mounts bears its name. */
static unsigned mounts(void)
{
	FILE *f = fopen("/proc/self/mounts", "re");
	char line[4096], mark[32];
	unsigned n = 0;

	snprintf(mark, sizeof(mark), "uid=%u,", geteuid());
	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, mark) != NULL;
	if (f)
		fclose(f);
	return n;
}

struct part {
	pthread_t thread;
	struct box *boxes[BOXES / THREADS];
	bool failed;
};

static void *start_part(void *arg)
{
	struct part *p = arg;

	for (size_t i = 0; i < BOXES / THREADS; i++) {
		struct err err = {0};
		struct kit_conf c;

		kit_conf(&c, i % 5 ? BOX_CONFINED : BOX_BARE);
		p->boxes[i] = box_start(kit_launcher, &c.conf, &err);
		kit_conf_end(&c);
		if (!p->boxes[i]) {
			fprintf(stderr, "%s\n", err.msg);
			p->failed = true;
			return NULL;
		}
		kit_start(p->boxes[i], "setsid sleep 1000 & exec sleep 1000");
	}
	return NULL;
}

static void *end_part(void *arg)
{
	struct part *p = arg;

	for (size_t i = 0; i < BOXES / THREADS; i++) {
		struct err err = {0};

		if (p->boxes[i] && box_end(p->boxes[i], &err) < 0) {
			fprintf(stderr, "%s\n", err.msg);
			p->failed = true;
		}
	}
	return NULL;
}

static void in_threads(struct part *parts, void *(*what)(void *))
{
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&parts[i].thread, NULL, what, &parts[i]), 0);
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(parts[i].thread, NULL);
		CHECK_INT("all went well", 0, parts[i].failed);
	}
}

static void many_at_once(void **state)
{
	static struct part parts[THREADS];
	unsigned fds = count_in("/proc/self/fd");
	uint64_t began = clock_boot_ms(), started;

	(void)state;
	in_threads(parts, start_part);
	started = clock_boot_ms();
	if (geteuid() == kit_uid)
		CHECK_INT("all run", 1, kit_strays() >= BOXES * 2);
	in_threads(parts, end_part);
	print_message("%d boxes: started in %llu ms, ended in %llu ms\n", BOXES,
		      (unsigned long long)(started - began),
		      (unsigned long long)(clock_boot_ms() - started));
	kit_no_strays("all are gone");
	CHECK_INT("descriptors", fds, count_in("/proc/self/fd"));
	CHECK_INT("mounts", 0, mounts());
}

static void confs_refused(void **state)
{
	static const struct {
		const char *name, *target, *text;
		uint64_t bytes;
	} rows[] = {
		{"", NULL, NULL, 0},        {"a/b", NULL, NULL, 0},   {"..", NULL, NULL, 0},
		{"-x", NULL, NULL, 0},      {NULL, NULL, NULL, 0},    {"a", "work", NULL, 4096},
		{"a", "/", NULL, 4096},     {"a", "/w/", NULL, 4096}, {"a", "/w/../x", NULL, 4096},
		{"a", "/w/..", NULL, 4096}, {"a", "//w", NULL, 4096}, {"a", "/w/./x", NULL, 4096},
		{"a", "/w", NULL, 4095},    {"a", "/w", NULL, 0},     {"a", "/l", "", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct box_tmpfs t = {rows[i].target, rows[i].bytes, 0, false};
		const struct box_link l = {rows[i].target, rows[i].text};
		struct err err = {0};
		struct box_conf c = {.name = rows[i].name, .folder = -1};
		char label[32];

		snprintf(label, sizeof(label), "row %zu", i);
		if (rows[i].text) {
			c.links = &l;
			c.link_count = 1;
		} else if (rows[i].target) {
			c.tmpfs = &t;
			c.tmpfs_count = 1;
		}
		CHECK_INT(label, 1, box_start(kit_launcher, &c, &err) == NULL);
		CHECK_INT(label, ERR_CONFIG, err.kind);
	}
	kit_no_strays("refused");
}

/* What a host cannot give is not left out. */
static void missing_refused(void **state)
{
	struct err err = {0};
	struct kit_conf c;
	int gone = open("/tmp", O_PATH | O_CLOEXEC);

	(void)state;
	kit_conf(&c, BOX_CONFINED);
	c.conf.landlock = 1000;
	CHECK_INT("Landlock", 1, box_start(kit_launcher, &c.conf, &err) == NULL);
	CHECK_INT(err.msg, 1, strstr(err.msg, "Landlock") != NULL);
	err = (struct err){0};
	c.conf.landlock = 0;
	c.binds[0].target = "/proc/x"; /* where nothing can be made */
	CHECK_INT("a place", 1, box_start(kit_launcher, &c.conf, &err) == NULL);
	CHECK_INT("a place", ERR_SYSTEM, err.kind);
	close(gone);
	kit_conf_end(&c);
	kit_no_strays("refused");
}

/* A user namespace in which there are no others: as on a host that forbids them. */
static int enter_poor_host(void)
{
	const uid_t uid = geteuid();
	const gid_t gid = getegid();
	char text[64];
	struct {
		const char *path, *text;
	} files[] = {{"/proc/self/setgroups", "deny"},
		     {"/proc/self/uid_map", text},
		     {"/proc/self/gid_map", text},
		     {"/proc/sys/user/max_user_namespaces", "0"}};

	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 || unshare(CLONE_NEWUSER) < 0)
		return -1;
	for (size_t i = 0; i < 4; i++) {
		int fd = open(files[i].path, O_WRONLY | O_CLOEXEC);

		snprintf(text, sizeof(text), "%u %u 1", i == 2 ? gid : uid, i == 2 ? gid : uid);
		if (fd < 0 || write(fd, files[i].text, strlen(files[i].text)) < 0)
			return -1;
		close(fd);
	}
	return 0;
}

static void on_poor_host(void) __attribute__((noreturn));

static void on_poor_host(void)
{
	char missing[200] = "";
	struct err err = {0};
	struct kit_conf c;
	pid_t pid;

	if (enter_poor_host() < 0)
		_exit(10);
	kit_launcher = box_launcher_start(true, &pid, &err);
	if (box_missing(kit_launcher, missing, sizeof(missing), &err) != 1 ||
	    strncmp(missing, "user: ", 6) != 0)
		_exit(11);
	kit_conf(&c, BOX_CONFINED);
	c.conf.cgroup_count = 0;
	if (box_start(kit_launcher, &c.conf, &err) || !strstr(err.msg, "namespaces"))
		_exit(12);
	kit_conf(&c, BOX_BARE);
	c.conf.cgroup_count = 0;
	if (!box_start(kit_launcher, &c.conf, &err))
		_exit(13);
	_exit(0);
}

static void poor_host(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		on_poor_host();
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 10)
		skip(); /* a host that gives no user namespace at all */
	CHECK_INT("without user namespaces", 0, status);
	kit_no_strays("a poor host");
}

static void layers(void **state)
{
	struct box_layer all[BOX_LAYERS_MAX];
	char missing[200];
	struct err err = {0};
	size_t count = 0;

	(void)state;
	CHECK_INT("ask", 0, box_layers(kit_launcher, all, &count, &err));
	CHECK_INT("some", 1, count > 12);
	for (size_t i = 0; i < count; i++) {
		CHECK_INT(all[i].name, 1, *all[i].name && *all[i].why);
		print_message("%-18s %s %s\n", all[i].name, all[i].there ? "yes" : "NO ",
			      all[i].why);
	}
	CHECK_INT("whole", 0, box_missing(kit_launcher, missing, sizeof(missing), &err));
}

static void unkept_limits(void **state)
{
	static const struct {
		enum box_mode mode;
		int cgroup; /* -1: none */
		struct box_limits limits;
		const char *want; /* a part of it, or NULL */
	} rows[] = {
		{BOX_CONFINED, -1, {0}, NULL},
		{BOX_CONFINED, -1, {.pids = 5, .file_bytes = 1, .open_files = 9}, NULL},
		{BOX_CONFINED, -1, {.memory = 1}, "each process"},
		{BOX_CONFINED, BOX_CGROUP_MEMORY, {.memory = 1}, NULL},
		{BOX_CONFINED, BOX_CGROUP_MEMORY, {.memory = 1, .cpu_milli = 1}, "CPU"},
		{BOX_CONFINED, BOX_CGROUP_V2, {.memory = 1, .cpu_milli = 1}, NULL},
		{BOX_BARE, -1, {0}, "processes are not limited"},
		{BOX_BARE, BOX_CGROUP_PIDS, {0}, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct box_cgroup g = {(enum box_controller)rows[i].cgroup, -1};
		const struct box_conf c = {.mode = rows[i].mode,
					   .cgroups = &g,
					   .cgroup_count = rows[i].cgroup >= 0,
					   .limits = rows[i].limits};
		char got[300] = "", label[32];

		snprintf(label, sizeof(label), "row %zu", i);
		CHECK_INT(label, rows[i].want != NULL, box_unkept(&c, got, sizeof(got)));
		CHECK_INT(label, 1, !rows[i].want || strstr(got, rows[i].want) != NULL);
	}
}

/* A launcher that was not told that it may. */
static void bare_refused(void **state)
{
	const struct box_conf c = {.mode = BOX_BARE, .name = "x", .folder = -1};
	struct err err = {0};
	pid_t pid;
	int launcher = box_launcher_start(false, &pid, &err);

	(void)state;
	CHECK_INT("bare", 1, box_start(launcher, &c, &err) == NULL);
	CHECK_INT("bare", ERR_CONFIG, err.kind);
	close(launcher);
	waitpid(pid, NULL, 0);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(layers),
		cmocka_unit_test(end_confined),
		cmocka_unit_test(end_bare),
		cmocka_unit_test(others_stay),
		cmocka_unit_test(init_dies_confined),
		cmocka_unit_test(init_dies_bare),
		cmocka_unit_test(keeper_dies),
		cmocka_unit_test(launcher_dies),
		cmocka_unit_test(many_at_once),
		cmocka_unit_test(confs_refused),
		cmocka_unit_test(missing_refused),
		cmocka_unit_test(poor_host),
		cmocka_unit_test(bare_refused),
		cmocka_unit_test(unkept_limits),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return kit_main(argc, argv, tests);
}
