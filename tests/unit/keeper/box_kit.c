#include "tests/unit/keeper/box_kit.h"

#include "gate/base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_UID 2000000000 /* behind what anybody gives to users */

uid_t kit_uid;
int kit_launcher = -1;
pid_t kit_launcher_pid;
const char *kit_probe;

static struct box_cgroup cgroups[BOX_CGROUPS_MAX];
static size_t cgroup_count;
static char cgroup_names[BOX_CGROUPS_MAX][200];

static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};

const struct box_cgroup *kit_cgroups(size_t *ret_count)
{
	*ret_count = cgroup_count;
	return cgroups;
}

/* As a supervisor would: folders that the user may make others in. */
static void make_cgroups(void)
{
	static const struct {
		const char *name;
		enum box_controller controller;
	} v1[] = {
		{"memory", BOX_CGROUP_MEMORY}, {"pids", BOX_CGROUP_PIDS}, {"cpu", BOX_CGROUP_CPU}};

	for (size_t i = 0; i < sizeof(v1) / sizeof(*v1); i++) {
		char *name = cgroup_names[cgroup_count];
		int fd;

		snprintf(name, sizeof(cgroup_names[0]), "/sys/fs/cgroup/%s/sallyport-test-%d",
			 v1[i].name, (int)getpid());
		if (mkdir(name, 0755) < 0)
			continue;
		assert_int_equal(chown(name, kit_uid, kit_uid), 0);
		fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		cgroups[cgroup_count++] = (struct box_cgroup){v1[i].controller, fd};
	}
}

/* Whatever the boxes made in them must be gone. */
static int remove_cgroups(void)
{
	int left = 0;

	for (size_t i = 0; i < cgroup_count; i++)
		if (rmdir(cgroup_names[i]) < 0) {
			fprintf(stderr, "%s: %s\n", cgroup_names[i], strerror(errno));
			left = 1;
		}
	return left;
}

static int run(int (*tests)(void))
{
	struct err err = {0};
	int status;

	kit_launcher = box_launcher_start(true, &kit_launcher_pid, &err);
	if (kit_launcher < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 2;
	}
	status = tests();
	close(kit_launcher);
	waitpid(kit_launcher_pid, NULL, 0);
	return status;
}

/* A checkout may lie where the user of the boxes cannot go. */
static void copy_probe(char folder[32], char path[48])
{
	char bytes[65536];
	ssize_t n;
	int from = kit_probe ? open(kit_probe, O_RDONLY | O_CLOEXEC) : -1, to;

	strcpy(folder, "/tmp/sp-probe-XXXXXX");
	if (from < 0 || !mkdtemp(folder) || chmod(folder, 0755) < 0)
		exit(2);
	snprintf(path, 48, "%s/probe", folder);
	to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		if (to < 0 || write(to, bytes, (size_t)n) != n)
			exit(2);
	fchmod(to, 0755);
	close(from);
	close(to);
	kit_probe = path;
}

int kit_main(int argc, char **argv, int (*tests)(void))
{
	static char probe[PATH_MAX];
	char folder[32], path[48];
	int status;
	pid_t pid;

	if (argc > 1 && strcmp(argv[1], BOX_LAUNCH_VERB) == 0)
		return box_launcher_main(argc - 2, argv + 2);
	/* Boxes begin elsewhere. */
	kit_probe = argc > 1 && realpath(argv[1], probe) ? probe : NULL;
	cmocka_set_test_filter(argc > 2 ? argv[2] : NULL);
	if (geteuid() != 0)
		return run(tests);
	kit_uid = FIRST_UID + (uid_t)getpid();
	copy_probe(folder, path);
	make_cgroups();
	pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) < 0 || setresgid(kit_uid, kit_uid, kit_uid) < 0 ||
		    setresuid(kit_uid, kit_uid, kit_uid) < 0)
			_exit(2);
		exit(run(tests));
	}
	waitpid(pid, &status, 0);
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 2;
	unlink(path);
	rmdir(folder);
	return remove_cgroups() ? 2 : status;
}

void kit_conf(struct kit_conf *ret, enum box_mode mode)
{
	static const char *const folders[] = {"/usr", "/bin", "/lib", "/lib64", "/sbin"};
	static unsigned count;
	struct box_conf *c = &ret->conf;

	memset(ret, 0, sizeof(*ret));
	snprintf(ret->name, sizeof(ret->name), "t%d-%u", (int)getpid(),
		 __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED));
	*c = (struct box_conf){.mode = mode,
			       .name = ret->name,
			       .folder = -1,
			       .cgroups = cgroups,
			       .cgroup_count = cgroup_count};
	if (mode == BOX_BARE)
		return;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		int fd = open(folders[i], O_PATH | O_CLOEXEC);

		if (fd >= 0)
			ret->binds[c->bind_count++] =
				(struct box_bind){.fd = fd, .target = folders[i]};
	}
	if (kit_probe)
		ret->binds[c->bind_count++] = (struct box_bind){
			.fd = open(kit_probe, O_PATH | O_CLOEXEC), .target = "/probe"};
	ret->tmpfs[0] = (struct box_tmpfs){"/tmp", 4 << 20, 0, false};
	ret->tmpfs[1] = (struct box_tmpfs){"/work", 8 << 20, 0755, true};
	c->binds = ret->binds;
	c->tmpfs = ret->tmpfs;
	c->tmpfs_count = 2;
}

void kit_conf_end(struct kit_conf *c)
{
	for (size_t i = 0; i < c->conf.bind_count; i++)
		close(c->binds[i].fd);
}

struct box *kit_box(enum box_mode mode)
{
	struct err err = {0};
	struct kit_conf c;
	struct box *b;

	kit_conf(&c, mode);
	b = box_start(kit_launcher, &c.conf, &err);
	kit_conf_end(&c);
	CHECK_STR("start", "", err.msg);
	assert_non_null(b);
	return b;
}

void kit_end(struct box *b)
{
	struct err err = {0};

	box_end(b, &err);
	CHECK_STR("end", "", err.msg);
}

struct box_exit kit_wait(struct box *b, uint32_t id)
{
	uint64_t until = clock_boot_ms() + KIT_WAIT;
	struct box_exit e;

	for (;;) {
		struct pollfd p = {box_fd(b), POLLIN, 0};

		while (box_next_exit(b, &e))
			if (e.id == id || e.id == 0) {
				CHECK_INT("what ended", id, e.id);
				return e;
			}
		assert_true(clock_boot_ms() < until);
		poll(&p, 1, 1000);
	}
}

/* What comes until its last writer is gone. */
static void drain(int fd, char *out, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size - 1 && (n = read(fd, out + len, size - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = '\0';
}

const struct kit_run *kit_run(struct box *b, const char *const *argv,
			      const char *const *environment)
{
	static struct kit_run r;
	struct box_command c = {.argv = argv, .env = environment, .stdio = {-1, -1, -1}};
	int ends[2];

	memset(&r, 0, sizeof(r));
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	c.stdio[1] = c.stdio[2] = ends[1];
	if (box_spawn(b, &c, &r.child, &r.err) == 0) {
		close(ends[1]);
		drain(ends[0], r.out, sizeof(r.out));
		r.exit = kit_wait(b, r.child.id);
	} else {
		close(ends[1]);
	}
	close(ends[0]);
	return &r;
}

const struct kit_run *kit_shell(struct box *b, const char *script)
{
	return kit_run(b, (const char *const[]){"sh", "-c", script, NULL}, env);
}

uint32_t kit_start(struct box *b, const char *script)
{
	const struct box_command c = {.argv = (const char *const[]){"sh", "-c", script, NULL},
				      .env = env,
				      .stdio = {-1, -1, -1}};
	struct box_child child = {0};
	struct err err = {0};

	box_spawn(b, &c, &child, &err);
	CHECK_STR(script, "", err.msg);
	return child.id;
}

static bool is_ours(pid_t pid)
{
	return pid == getpid() || pid == getppid() || pid == kit_launcher_pid;
}

unsigned kit_strays(void)
{
	DIR *d = opendir("/proc");
	const struct dirent *e;
	unsigned count = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		pid_t pid = atoi(e->d_name);
		char path[40], text[400] = "";
		unsigned uid = 0;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
		f = pid > 0 && !is_ours(pid) ? fopen(path, "re") : NULL;
		if (!f)
			continue;
		while (fgets(text, sizeof(text), f) && sscanf(text, "Uid: %u", &uid) != 1)
			;
		fclose(f);
		count += uid == geteuid();
	}
	closedir(d);
	return count;
}

/* A look takes a while, and who forks meanwhile is not in it: five of them. */
void kit_no_strays(const char *label)
{
	uint64_t until = clock_boot_ms() + KIT_WAIT;
	unsigned nobody = 0;

	while (geteuid() == kit_uid && nobody < 5) { /* else there are others' */
		nobody = kit_strays() ? 0 : nobody + 1;
		if (clock_boot_ms() > until)
			fail_msg("%s: %u processes are left", label, kit_strays());
		usleep(3000);
	}
}
