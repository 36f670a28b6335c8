/* What runs in a box: walls, commands, limits.  usage: test_box PROBE */
#include "gate/base/clock.h"
#include "gate/keeper/fence.h"
#include "tests/unit/keeper/box_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};

/* Every way out that the probe knows, and none is open; without walls, some are. */
static void walls_hold(void **state)
{
	struct box *b = kit_box(BOX_CONFINED), *bare = kit_box(BOX_BARE);
	const struct kit_run *r;
	char *line, *rest, *words;
	unsigned count = 0;

	(void)state;
	assert_non_null(kit_probe);
	r = kit_run(b, (const char *const[]){"/probe", "all", NULL}, env);
	words = strdup(r->out);
	for (line = strtok_r(words, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest), count++)
		if (strstr(line, " open "))
			fail_msg("%s", line);
	free(words);
	CHECK_INT("all were tried", 1, count > 40);
	CHECK_INT("none is open", 0, r->exit.code);
	r = kit_run(bare, (const char *const[]){kit_probe, "all", NULL}, env);
	CHECK_INT("without walls", 1, strstr(r->out, "processes open") != NULL);
	CHECK_INT("without walls", 1, strstr(r->out, "interfaces open") != NULL);
	CHECK_INT("without walls", 1, strstr(r->out, "seccomp open") != NULL);
	kit_end(b);
	kit_end(bare);
}

/* What a file of the host says, and what is seen of it. */
static void host_is_not_there(void **state)
{
	struct box *b = kit_box(BOX_CONFINED);
	char path[] = "/tmp/sp-secret-XXXXXX", script[200];
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "hush", 4), 4);
	close(fd);
	snprintf(script, sizeof(script), "cat %s /etc/passwd /proc/1/environ", path);
	CHECK_INT("a file of the host", 0, strstr(kit_shell(b, script)->out, "hush") != NULL);
	unlink(path);
	CHECK_STR("root", "bin\ndev\nlib\nlib64\nprobe\nproc\nsbin\ntmp\nusr\nwork\n",
		  kit_shell(b, "ls /")->out);
	CHECK_STR("processes", "1\n", kit_shell(b, "ls /proc | grep -xc 1")->out);
	CHECK_STR("who", "65534 65534 65534\n",
		  kit_shell(b, "echo $(id -u) $(id -g) $(id -G)")->out);
	CHECK_INT("name", 't', *kit_shell(b, "uname -n")->out);
	CHECK_STR("cgroups", "", kit_shell(b, "grep -v ':/$' /proc/self/cgroup")->out);
	CHECK_INT("no file is made", 1, kit_shell(b, "echo x > /usr/x")->exit.code != 0);
	CHECK_INT("nor in the root", 1, kit_shell(b, "mkdir /x")->exit.code != 0);
	CHECK_STR("where it may", "x\n", kit_shell(b, "echo x > /work/x; cat /work/x")->out);
	CHECK_INT("not executed", 126,
		  kit_shell(b, "cp /bin/true /tmp/t && chmod 755 /tmp/t && /tmp/t")->exit.code);
	CHECK_INT("executed", 0,
		  kit_shell(b, "cp /bin/true /work/t && chmod 755 /work/t && /work/t")->exit.code);
	CHECK_INT("its size", 1,
		  kit_shell(b, "head -c 9000000 /dev/zero > /work/big")->exit.code != 0);
	kit_end(b);
}

/* The floor is below any filter that is given. */
static void floor_holds(void **state)
{
	static const struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct err err = {0};
	struct kit_conf c;
	struct box *b;

	(void)state;
	kit_conf(&c, BOX_CONFINED);
	c.conf.filter = (struct span){(const char *)all, sizeof(all)};
	b = box_start(kit_launcher, &c.conf, &err);
	CHECK_STR("start", "", err.msg);
	for (size_t i = 0; i < 6; i++) {
		static const char *const names[] = {"unshare-user", "clone-user", "bpf",
						    "keyctl",       "io-uring",   "fsopen"};

		CHECK_INT(names[i], 0,
			  kit_run(b, (const char *const[]){"/probe", names[i], NULL}, env)
				  ->exit.code);
	}
	kit_end(b);
	c.conf.filter = (struct span){(const char *)all, 7};
	b = box_start(kit_launcher, &c.conf, &err);
	assert_non_null(b);
	CHECK_INT("no filter at all", 0, kit_shell(b, "true")->err.kind == ERR_NONE);
	kit_end(b);
	kit_conf_end(&c);
}

/* A bare box has a filter if one is given, and is nobody else's. */
static void bare_filter(void **state)
{
	static const struct sock_filter mute[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the number */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_uname, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct box_conf c = {
		.mode = BOX_BARE, .name = "bare-filter", .folder = -1, .uid = geteuid()};
	struct err err = {0};
	struct box *b;

	(void)state;
	c.filter = (struct span){(const char *)mute, sizeof(mute)};
	b = box_start(kit_launcher, &c, &err);
	CHECK_STR("start", "", err.msg);
	CHECK_INT("filtered", 1, kit_shell(b, "uname -n")->exit.code != 0);
	kit_end(b);
	c.uid = geteuid() + 1;
	CHECK_INT("another user", 1, box_start(kit_launcher, &c, &err) == NULL);
	CHECK_INT("another user", ERR_CONFIG, err.kind);
}

static void environment(void **state)
{
	static const struct {
		const char *var;
		bool loader;
		enum err_kind want;
	} rows[] = {
		{"A=b", false, ERR_NONE},
		{"A=", false, ERR_NONE},
		{"A", false, ERR_INPUT},
		{"=b", false, ERR_INPUT},
		{"PATH=/x", false, ERR_INPUT}, /* comes twice */
		{"LD_PRELOAD=/x", false, ERR_INPUT},
		{"LD_AUDIT=/x", false, ERR_INPUT},
		{"LD_=x", false, ERR_INPUT},
		{"LDX=x", false, ERR_NONE},
		{"GCONV_PATH=/x", false, ERR_INPUT},
		{"GCONV_PATHS=/x", false, ERR_NONE},
		{"BASH_ENV=/x", false, ERR_INPUT},
		{"ENV=/x", false, ERR_INPUT},
		{"ENVIRONMENT=x", false, ERR_NONE},
		{"BASH_FUNC_ls%%=()", false, ERR_INPUT},
		{"GLIBC_TUNABLES=x", false, ERR_INPUT},
		{"LD_LIBRARY_PATH=/usr/lib", true, ERR_NONE},
	};
	struct box *b = kit_box(BOX_CONFINED);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *all[] = {"PATH=/usr/bin:/bin", rows[i].var, NULL};
		const char *const argv[] = {"env", NULL};
		struct box_command c = {.argv = argv,
					.env = all,
					.stdio = {-1, -1, -1},
					.loader_env = rows[i].loader};
		struct box_child child;
		struct err err = {0};

		box_spawn(b, &c, &child, &err);
		CHECK_INT(rows[i].var, rows[i].want, err.kind);
		if (err.kind == ERR_NONE)
			CHECK_INT(rows[i].var, 0, kit_wait(b, child.id).code);
	}
	CHECK_STR("exactly", "B=2\nA=1\nPATH=/bin\n",
		  kit_run(b, (const char *const[]){"env", NULL},
			  (const char *const[]){"B=2", "A=1", "PATH=/bin", NULL})
			  ->out);
	CHECK_STR(
		"nothing", "",
		kit_run(b, (const char *const[]){"/usr/bin/env", NULL}, (const char *const[]){NULL})
			->out);
	kit_end(b);
}

static void ends_are_told(enum box_mode mode)
{
	static const struct {
		const char *script;
		int code, signal;
	} rows[] = {
		{"true", 0, 0},
		{"exit 7", 7, 0},
		{"exit 255", 255, 0},
		{"kill -TERM $$", -1, SIGTERM},
		{"kill -KILL $$", -1, SIGKILL},
		{"kill -SEGV $$", -1, SIGSEGV},
		{"trap 'exit 3' TERM; kill -TERM $$", 3, 0},
	};
	struct box *b = kit_box(mode);

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct kit_run *r = kit_shell(b, rows[i].script);

		CHECK_INT(rows[i].script, rows[i].code, r->exit.code);
		CHECK_INT(rows[i].script, rows[i].signal, r->exit.signal);
		CHECK_INT(rows[i].script, i + 1, r->child.id);
	}
	CHECK_STR("signals are plain", "0000000000000000\n",
		  kit_shell(b, "sed -n 's/^SigBlk:.//p' /proc/self/status")->out);
	CHECK_STR("signals are plain", "0000000000000000\n",
		  kit_shell(b, "sed -n 's/^SigIgn:.//p' /proc/self/status")->out);
	kit_end(b);
}

static void ends_confined(void **state)
{
	(void)state;
	ends_are_told(BOX_CONFINED);
}

static void ends_bare(void **state)
{
	(void)state;
	ends_are_told(BOX_BARE);
}

/* What cannot be executed. */
static void starts_fail(void **state)
{
	static const struct {
		const char *program, *cwd;
		enum err_kind kind;
		int sys;
	} rows[] = {
		{"/nowhere", NULL, ERR_SYSTEM, ENOENT},
		{"nowhere", NULL, ERR_SYSTEM, ENOENT},
		{"/usr", NULL, ERR_SYSTEM, EACCES},
		{"true", "/nowhere", ERR_SYSTEM, ENOENT},
		{"true", "work", ERR_INPUT, 0},
		{"", NULL, ERR_INPUT, 0},
		{NULL, NULL, ERR_INPUT, 0},
		{"true", "/work", ERR_NONE, 0},
	};
	struct box *b = kit_box(BOX_CONFINED);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *const argv[] = {rows[i].program, NULL};
		struct box_command c = {
			.argv = argv, .env = env, .cwd = rows[i].cwd, .stdio = {-1, -1, -1}};
		struct box_child child;
		struct err err = {0};
		char label[32];

		snprintf(label, sizeof(label), "row %zu", i);
		box_spawn(b, &c, &child, &err);
		CHECK_INT(label, rows[i].kind, err.kind);
		CHECK_INT(label, rows[i].sys, err.sys);
	}
	CHECK_INT("and goes on", 0, kit_shell(b, "true")->exit.code);
	CHECK_INT("PATH is that of the command", ENOENT,
		  kit_run(b, (const char *const[]){"sh", "-c", "true", NULL},
			  (const char *const[]){"PATH=/work", NULL})
			  ->err.sys);
	kit_end(b);
}

static void terminal(void **state)
{
	const char *const argv[] = {
		"sh", "-c",
		"tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo all; "
		"read x; echo got $x",
		NULL};
	struct box_command c = {.argv = argv, .env = env, .tty = true, .rows = 31, .cols = 97};
	struct box *b = kit_box(BOX_CONFINED);
	struct box_child child = {.tty = -1};
	char out[4096];
	size_t len = 0;
	struct err err = {0};
	ssize_t n;

	(void)state;
	box_spawn(b, &c, &child, &err);
	CHECK_STR("spawn", "", err.msg);
	assert_int_equal(write(child.tty, "word\n", 5), 5);
	while (len < sizeof(out) - 1 && (n = read(child.tty, out + len, sizeof(out) - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = '\0';
	CHECK_INT(out, 1, strstr(out, "/dev/pts/0") != NULL);
	CHECK_INT(out, 1, strstr(out, "31 97") != NULL);
	CHECK_INT(out, 1, strstr(out, "all") != NULL);
	CHECK_INT(out, 1, strstr(out, "got word") != NULL);
	CHECK_INT("end", 0, kit_wait(b, child.id).code);
	close(child.tty);
	kit_end(b);
}

static void signals(enum box_mode mode)
{
	struct box *b = kit_box(mode);
	uint32_t one = kit_start(b, "sleep 1000"), two = kit_start(b, "sleep 1000 & wait");
	struct err err = {0};

	CHECK_INT("one", 0, box_signal(b, one, SIGTERM, &err));
	CHECK_INT("one", SIGTERM, kit_wait(b, one).signal);
	CHECK_INT("no more", -1, box_signal(b, one, SIGTERM, &err));
	CHECK_INT("no more", ESRCH, err.sys);
	CHECK_INT("nobody", -1, box_signal(b, 77, SIGTERM, &err));
	CHECK_INT("all", 0, box_signal(b, 0, SIGINT, &err));
	CHECK_INT("all", SIGINT, kit_wait(b, two).signal);
	CHECK_INT("and goes on", 0, kit_shell(b, "true")->exit.code);
	kit_end(b);
}

static void signals_confined(void **state)
{
	(void)state;
	signals(BOX_CONFINED);
}

static void signals_bare(void **state)
{
	(void)state;
	signals(BOX_BARE);
}

/* The box of a conf with these limits, and what a script does in it. */
static struct box *limited(struct box_limits limits, bool with_cgroups)
{
	struct err err = {0};
	struct kit_conf c;
	struct box *b;

	kit_conf(&c, BOX_CONFINED);
	c.conf.limits = limits;
	if (!with_cgroups)
		c.conf.cgroup_count = 0;
	b = box_start(kit_launcher, &c.conf, &err);
	kit_conf_end(&c);
	CHECK_STR("start", "", err.msg);
	return b;
}

#define EAT "head -c 200000000 /dev/zero | tail -c 199999999 > /dev/null"

static void limits_bite(void **state)
{
	struct box *b = limited((struct box_limits){.file_bytes = 100000, .cpu_seconds = 1}, false);
	struct box_exit e = kit_shell(b, "exec head -c 200000 /dev/zero > /work/f")->exit;

	(void)state;
	CHECK_INT("file size", 1, e.signal == SIGXFSZ || e.code > 0);
	CHECK_STR("file size", "100000\n", kit_shell(b, "wc -c < /work/f")->out);
	e = kit_shell(b, "while :; do :; done")->exit;
	CHECK_INT("CPU time", 1, e.signal == SIGXCPU || e.signal == SIGKILL);
	kit_end(b);
	b = limited((struct box_limits){.pids = 20}, false);
	CHECK_INT(
		"pids", 1,
		kit_shell(
			b,
			"i=0; while [ $i -lt 40 ]; do sleep 100 >/dev/null 2>&1 & i=$((i+1)); done")
				->exit.code != 0);
	kit_end(b);
	b = limited((struct box_limits){.memory = 64 << 20}, false);
	CHECK_INT("memory of a process", 1, kit_shell(b, EAT " || exit 9")->exit.code == 9);
	kit_end(b);
}

static void wait_throttled(const struct box *b)
{
	uint64_t until = clock_boot_ms() + KIT_WAIT;
	struct box_use use;
	size_t count;

	(void)kit_cgroups(&count);
	(void)b;
	while (clock_boot_ms() < until) {
		char path[300], text[300] = "";
		unsigned long long throttled = 0;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/fd/%d/", kit_cgroups(&count)[2].fd);
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "cpu-test/cpu.stat");
		f = fopen(path, "re");
		while (f && fgets(text, sizeof(text), f))
			if (sscanf(text, "nr_throttled %llu", &throttled) == 1)
				break;
		if (f)
			fclose(f);
		if (throttled)
			return;
		box_use(b, &use);
		usleep(10000);
	}
	fail_msg("nothing was throttled");
}

static void cgroups_bite(void **state)
{
	struct box_use use;
	struct err err = {0};
	struct kit_conf c;
	struct box_exit e;
	struct box *b;
	size_t count;

	(void)state;
	if (kit_cgroups(&count) && count < 3) {
		print_message("no cgroups here: skipped\n");
		skip();
	}
	b = limited((struct box_limits){.memory = 48 << 20, .pids = 20}, true);
	e = kit_shell(b, EAT)->exit;
	CHECK_INT("memory", 1, e.oom);
	CHECK_INT(
		"pids", 1,
		kit_shell(
			b,
			"i=0; while [ $i -lt 40 ]; do sleep 100 >/dev/null 2>&1 & i=$((i+1)); done")
				->exit.code != 0);
	box_use(b, &use);
	CHECK_INT("use", 1, use.pids > 10 && use.pids <= 21);
	CHECK_INT("use", 1, use.memory_peak > (40 << 20) && use.memory_peak <= (48 << 20));
	kit_end(b);
	kit_conf(&c, BOX_CONFINED);
	c.conf.name = "cpu-test";
	c.conf.limits.cpu_milli = 50;
	b = box_start(kit_launcher, &c.conf, &err);
	CHECK_STR("start", "", err.msg);
	kit_start(b, "while :; do :; done");
	wait_throttled(b);
	kit_end(b);
	kit_conf_end(&c);
}

/* Files of a box through the fence, and back. */
static void files_by_fence(void **state)
{
	struct box *b = kit_box(BOX_CONFINED);
	struct fence f = {.root = box_root(b)};
	struct err err = {0};
	int fd = fence_open(&f, "/work/in", O_WRONLY | O_CREAT | O_EXCL, 0644, &err);
	char text[16] = "";

	(void)state;
	CHECK_STR("make", "", err.msg);
	assert_int_equal(write(fd, "hello", 5), 5);
	close(fd);
	CHECK_STR("seen inside", "hello",
		  kit_shell(b, "cat /work/in; ln -s /etc/passwd /work/l; "
			       "echo bye > /tmp/out")
			  ->out);
	fd = fence_open(&f, "tmp/out", O_RDONLY, 0, &err);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	close(fd);
	CHECK_STR("seen outside", "bye\n", text);
	CHECK_INT("a link", -1, fence_open(&f, "work/l", O_RDONLY, 0, &err));
	CHECK_INT("the image", -1, fence_open(&f, "usr/x", O_WRONLY | O_CREAT, 0644, &err));
	CHECK_INT("the image", EROFS, err.sys);
	CHECK_INT("remove", 0, fence_remove(&f, "work/in", false, &err));
	kit_end(b);
}

static void *spawn_many(void *arg)
{
	struct box *b = arg;
	uint32_t last = 0;

	for (int i = 0; i < 20; i++) {
		uint32_t id = kit_start(b, "exit 0");

		if (id <= last)
			abort();
		last = id;
	}
	return NULL;
}

static void many_threads(void **state)
{
	struct box *b = kit_box(BOX_CONFINED);
	pthread_t threads[4];
	struct box_exit e;
	unsigned ended = 0;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, spawn_many, b), 0);
	for (size_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (uint64_t until = clock_boot_ms() + KIT_WAIT; ended < 80 && clock_boot_ms() < until;)
		if (box_next_exit(b, &e))
			ended++;
		else
			usleep(1000);
	CHECK_INT("all ended", 80, ended);
	kit_end(b);
}

static int tests(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(walls_hold),   cmocka_unit_test(host_is_not_there),
		cmocka_unit_test(floor_holds),  cmocka_unit_test(environment),
		cmocka_unit_test(bare_filter),  cmocka_unit_test(ends_confined),
		cmocka_unit_test(ends_bare),    cmocka_unit_test(starts_fail),
		cmocka_unit_test(terminal),     cmocka_unit_test(signals_confined),
		cmocka_unit_test(signals_bare), cmocka_unit_test(limits_bite),
		cmocka_unit_test(cgroups_bite), cmocka_unit_test(files_by_fence),
		cmocka_unit_test(many_threads),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
	return kit_main(argc, argv, tests);
}
