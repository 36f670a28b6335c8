/* What the resolver says of paths: each kind, each way of links, and what it cannot see. */
#include "gate/base/io.h"
#include "gate/base/jv.h"
#include "gate/resolver.h"
#include "proxy/resolve.h"
#include "tests/unit/check.h"

#include "gate/base/frame.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[64]; /* the temporary tree, without links in its own name */

static const char *in_top(const char *name, char out[8192])
{
	/* '@' stands for the tree, so that links can point into it; '~' for this process. */
	if (name[0] == '@')
		snprintf(out, 8192, "%s%s", top, name + 1);
	else if (name[0] == '~')
		snprintf(out, 8192, "/proc/%d%s", (int)getpid(), name + 1);
	else
		snprintf(out, 8192, "%s", name);
	return out;
}

static void make_links(void)
{
	static const struct {
		const char *name, *target;
	} links[] = {
		{"@/to-dir", "dir"},
		{"@/to-file", "dir/file"},
		{"@/absolute", "@/dir/file"},
		{"@/chain1", "chain2"},
		{"@/chain2", "chain3"},
		{"@/chain3", "dir"},
		{"@/loop1", "loop2"},
		{"@/loop2", "loop1"},
		{"@/self", "self"},
		{"@/dangling", "dir/none/deep"},
		{"@/dangling-up", "none/../dir"},
		{"@/up", "dir/../dir/sub/../file"},
		{"@/up-from-link", "to-dir/.."},
		{"@/out", "../../../../../../../../etc"},
		{"@/root", "/"},
		{"@/root-and-back", "/.."},
		{"@/magic", "/proc/1/root"},
		{"@/magic-self", "/proc/self"},
		{"@/slashes", "dir//./sub/"},
		{"@/dir/back", "../to-file"},
		{"@/through-file", "dir/file/x"},
	};
	char name[8192], target[8192];

	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
		CHECK_INT(links[i].name, 0,
			  symlink(in_top(links[i].target, target), in_top(links[i].name, name)));
}

static int make_tree(void **state)
{
	char path[8192], made[] = "/tmp/sallyport-test-XXXXXX";
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	if (!mkdtemp(made) || !realpath(made, top))
		return -1;
	mkdir(in_top("@/dir", path), 0755);
	mkdir(in_top("@/dir/sub", path), 0755);
	mkdir(in_top("@/closed", path), 0700);
	mkdir(in_top("@/closed/in", path), 0755);
	close(open(in_top("@/dir/file", path), O_CREAT | O_WRONLY, 0644));
	mkfifo(in_top("@/fifo", path), 0600);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", top);
	CHECK_INT("bind", 0, bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	close(fd);
	make_links();
	chmod(in_top("@/closed", path), 0);
	return 0;
}

static int remove_tree(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	return system(command);
}

static struct jv ask(const char *path, struct arena *a, char text[65536])
{
	enum jv_fault fault;
	struct err err = {0};
	struct buf out;
	struct jv ret;

	buf_init(&out, 65536);
	resolve_path(path, &out);
	snprintf(text, 65536, "%.*s", SPAN_FMT(buf_span(&out)));
	if (jv_parse(a, buf_span(&out), &ret, &fault, &err) < 0)
		fail_msg("%s: %s: %s", path, err.msg, text);
	buf_fini(&out);
	return ret;
}

static void says_what_is_there(void **state)
{
	static const struct {
		const char *path, *kind, *real; /* real: NULL for unknown */
		int links;
		const char *why;
	} cases[] = {
		{"/", "directory", "/", 0, ""},
		{"@/dir", "directory", "@/dir", 0, ""},
		{"@/dir/file", "file", "@/dir/file", 0, ""},
		{"@/sock", "socket", "@/sock", 0, ""},
		{"@/fifo", "fifo", "@/fifo", 0, ""},
		{"/dev/null", "char", "/dev/null", 0, ""},
		{"@/to-dir", "directory", "@/dir", 1, ""},
		{"@/to-dir/sub", "directory", "@/dir/sub", 1, ""},
		{"@/to-file", "file", "@/dir/file", 1, ""},
		{"@/absolute", "file", "@/dir/file", 1, ""},
		{"@/chain1", "directory", "@/dir", 3, ""},
		{"@/chain1/back", "file", "@/dir/file", 5, ""},
		{"@/loop1", "unknown", NULL, 41, "too many links"},
		{"@/self/x", "unknown", NULL, 41, "too many links"},
		{"@/none", "absent", "@/none", 0, ""},
		{"@/none/a/b", "absent", "@/none/a/b", 0, ""},
		{"@/dangling", "absent", "@/dir/none/deep", 1, ""},
		{"@/dangling/more", "absent", "@/dir/none/deep/more", 1, ""},
		{"@/dangling-up", "unknown", NULL, 1, "'..' behind something that does not exist"},
		{"@/up", "file", "@/dir/file", 1, ""},
		{"@/up-from-link/dir", "directory", "@/dir", 2, ""},
		{"@/out", "directory", "/etc", 1, ""},
		{"@/root", "directory", "/", 1, ""},
		{"@/root/etc", "directory", "/etc", 1, ""},
		{"@/root-and-back", "directory", "/", 1, ""},
		{"@/slashes", "directory", "@/dir/sub", 1, ""},
		{"@/dir/file/x", "unknown", NULL, 0, "something on the way is no directory"},
		{"@/through-file", "unknown", NULL, 1, "something on the way is no directory"},
		{"/proc/1/root", "unknown", NULL, 1, "magic link"},
		{"~/root/etc", "unknown", NULL, 1, "magic link"},
		{"/proc/self", "unknown", NULL, 1, "magic link"},
		{"/proc/self/cwd", "unknown", NULL, 1, "magic link"},
		{"~/fd/0", "unknown", NULL, 1, "magic link"},
		{"~/exe", "unknown", NULL, 1, "magic link"},
		{"@/magic/etc", "unknown", NULL, 2, "magic link"},
		{"@/magic-self/fd", "unknown", NULL, 2, "magic link"},
		{"/dev/fd/0", "unknown", NULL, 2, "magic link"},
		{"relative", "unknown", NULL, 0, "the path is not absolute"},
		{"", "unknown", NULL, 0, "the path is not absolute"},
		{"@/\xff\xfe", "unknown", NULL, 0, "the path is too long or not UTF-8 text"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena *a = arena_create(1 << 20);
		char path[8192], want[8192], text[65536];
		struct jv got = ask(in_top(cases[i].path, path), a, text);

		CHECK_STR(cases[i].path, cases[i].kind, jv_str(&got, "kind", ""));
		CHECK_STR(cases[i].path, cases[i].why, jv_str(&got, "why", ""));
		CHECK_STR(cases[i].path, cases[i].real ? in_top(cases[i].real, want) : "",
			  jv_str(&got, "real", ""));
		CHECK_INT(cases[i].path, cases[i].links, jv_num(&got, "links", -1));
		arena_destroy(a);
	}
}

/* Also a way that is made of a few links. */
static void walks_only_so_far(void **state)
{
	static const struct {
		int count;
		const char *kind;
	} cases[] = {{100, "directory"}, {300, "unknown"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena *a = arena_create(1 << 20);
		char path[8300], link[8192], target[4096] = "", text[65536];
		struct jv got;

		for (int k = 0; k < cases[i].count / 2; k++)
			strcat(target, "dir/../");
		CHECK_INT("link", 0, symlink(target, in_top("@/wanders", link)));
		snprintf(path, sizeof(path), "%s/dir", link);
		got = ask(path, a, text);
		CHECK_STR(path, cases[i].kind, jv_str(&got, "kind", ""));
		CHECK_INT(link, 0, unlink(link));
		arena_destroy(a);
	}
}

static void says_what_others_can_move(void **state)
{
	static const struct {
		const char *dir;
		mode_t mode;
		bool movable;
	} cases[] = {
		{"@/of-root", 0755, false},
		{"@/of-all", 0777, true},
		{"@/of-each", 01777, false}, /* of others; what is one's own stays */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena *a = arena_create(1 << 20);
		char dir[8192], path[8300], text[65536];
		struct jv got;

		in_top(cases[i].dir, dir);
		snprintf(path, sizeof(path), "%s/below", dir);
		CHECK_INT(dir, 0, mkdir(dir, 0700));
		CHECK_INT(dir, 0, mkdir(path, 0700));
		CHECK_INT(dir, 0, chmod(dir, cases[i].mode));
		got = ask(path, a, text);
		CHECK_INT(dir, cases[i].movable, jv_true(&got, "movable"));
		got = ask(dir, a, text);
		CHECK_INT(dir, false, jv_true(&got, "movable"));
		if (geteuid() == 0 && cases[i].mode == 01777) {
			CHECK_INT(path, 0, chown(path, 2001, 2001));
			got = ask(path, a, text);
			CHECK_INT(path, true, jv_true(&got, "movable"));
		}
		CHECK_INT(path, 0, rmdir(path));
		CHECK_INT(dir, 0, rmdir(dir));
		arena_destroy(a);
	}
}

static void names_the_links(void **state)
{
	static const struct {
		const char *path, *chain[5];
	} cases[] = {
		{"@/dir", {"@/dir"}},
		{"@/to-dir", {"@/to-dir", "@/dir"}},
		{"@/chain1", {"@/chain1", "@/chain2", "@/chain3", "@/dir"}},
		{"@/to-dir/back", {"@/to-dir", "@/dir/back", "@/to-file", "@/dir/file"}},
		{"@/root/etc", {"@/root", "/etc"}},
		{"@/dangling", {"@/dangling", "@/dir/none/deep"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena *a = arena_create(1 << 20);
		char path[8192], want[8192], text[65536];
		struct jv got = ask(in_top(cases[i].path, path), a, text);
		const struct jv *chain = jv_get(&got, "chain");
		size_t count = 0;

		while (count < 5 && cases[i].chain[count])
			count++;
		CHECK_INT(cases[i].path, count, chain->count);
		for (size_t j = 0; j < count; j++)
			CHECK_STR(cases[i].path, in_top(cases[i].chain[j], want),
				  chain->items[j].str.at);
		arena_destroy(a);
	}
}

static void says_which_file_it_is(void **state)
{
	struct arena *a = arena_create(1 << 20);
	char path[8192], text[65536], dev[64];
	struct jv got = ask(in_top("@/to-file", path), a, text);
	struct stat st;

	(void)state;
	CHECK_INT("stat", 0, stat(path, &st));
	snprintf(dev, sizeof(dev), "%u:%u", (unsigned)(st.st_dev >> 8 & 0xfff),
		 (unsigned)(st.st_dev & 0xff));
	CHECK_STR("dev", dev, jv_str(&got, "dev", ""));
	CHECK_INT("ino", st.st_ino, jv_num(&got, "ino", 0));
	arena_destroy(a);
}

static void long_paths_end_well(void **state)
{
	struct arena *a = arena_create(1 << 20);
	char path[8192], text[65536];
	struct jv got;

	(void)state;
	memset(path, 'a', 5000);
	path[0] = '/';
	for (size_t i = 100; i < 5000; i += 100)
		path[i] = '/';
	path[5000] = '\0';
	got = ask(path, a, text);
	CHECK_STR("5000 bytes", "unknown", jv_str(&got, "kind", ""));
	CHECK_STR("5000 bytes", "the path is longer than a path can be", jv_str(&got, "why", ""));

	memset(path, 'a', 300);
	path[0] = '/';
	path[300] = '\0';
	got = ask(path, a, text);
	CHECK_STR("a long name", "a name on the way is too long", jv_str(&got, "why", ""));

	in_top("@", path);
	for (size_t i = 0; i < 1000; i++)
		strcat(path, "/x");
	got = ask(path, a, text);
	CHECK_STR("1000 components that are absent", "absent", jv_str(&got, "kind", ""));
	CHECK_STR("1000 components that are absent", path, jv_str(&got, "real", ""));
	arena_destroy(a);
}

static void a_thousand_folders_deep(void **state)
{
	struct arena *a = arena_create(1 << 20);
	char path[8192], text[65536];
	int at = open(top, O_PATH | O_DIRECTORY);
	struct jv got;

	(void)state;
	in_top("@", path);
	for (size_t i = 0; i < 1000; i++) {
		int next;

		CHECK_INT("mkdir", 0, mkdirat(at, "d", 0755));
		next = openat(at, "d", O_PATH | O_DIRECTORY);
		close(at);
		at = next;
		strcat(path, "/d");
	}
	close(at);
	got = ask(path, a, text);
	CHECK_STR("kind", "directory", jv_str(&got, "kind", ""));
	CHECK_STR("real", path, jv_str(&got, "real", ""));
	arena_destroy(a);
}

/* As an ordinary user, since root may look everywhere. */
static void what_cannot_be_seen_is_unknown(void **state)
{
	int ends[2], status;
	char path[8192], text[65536] = "";
	struct arena *a = arena_create(1 << 20);
	enum jv_fault fault;
	struct err err = {0};
	struct jv got;
	ssize_t n;
	pid_t pid;

	(void)state;
	CHECK_INT("pipe", 0, pipe(ends));
	chmod(top, 0755);
	pid = fork();
	if (pid == 0) {
		struct buf out;

		if (getuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(1);
		buf_init(&out, 65536);
		resolve_path(in_top("@/closed/in", path), &out);
		_exit(write(ends[1], buf_span(&out).at, buf_len(&out)) > 0 ? 0 : 1);
	}
	close(ends[1]);
	n = read(ends[0], text, sizeof(text) - 1);
	close(ends[0]);
	waitpid(pid, &status, 0);
	CHECK_INT("child", 0, status);
	CHECK_INT("answer", 0, jv_parse(a, (struct span){text, (size_t)n}, &got, &fault, &err));
	CHECK_STR("kind", "unknown", jv_str(&got, "kind", ""));
	CHECK_STR("why", "permission denied", jv_str(&got, "why", ""));
	arena_destroy(a);
}

/* --- the process --- */

static struct span wait_frame(struct frame_conn *c)
{
	struct pollfd watched = {.fd = c->fd, .events = POLLIN};
	struct span got = {NULL, 0};

	while (!frame_next(c, &got)) {
		if (poll(&watched, 1, 10000) != 1 || !frame_fill(c))
			return (struct span){NULL, 0};
	}
	return got;
}

static void question(struct frame_conn *c, uint64_t ticket, const char *path)
{
	CHECK_INT(
		path, true,
		frame_put(c, (struct span){(const char *)&ticket, sizeof(ticket)}, span_of(path)));
	CHECK_INT(path, true, frame_flush(c));
}

static void connect_worker(int control, struct frame_conn *ret)
{
	struct err err = {0};
	int ends[2];

	CHECK_INT("pair", 0, io_pair(ends, &err));
	CHECK_INT("give", 0, io_send_fds(control, 'w', &ends[0], 1, &err));
	close(ends[0]);
	io_nonblock(ends[1], &err);
	frame_init(ret, ends[1], 1 << 20);
}

static void the_process_answers_its_workers(void **state)
{
	struct frame_conn one, two;
	struct err err = {0};
	struct span got;
	int control[2], status;
	uint64_t ticket;
	pid_t pid;

	(void)state;
	CHECK_INT("pair", 0, io_pair(control, &err));
	pid = fork();
	if (pid == 0) {
		close(control[0]);
		_exit(resolver_run(control[1]));
	}
	close(control[1]);
	connect_worker(control[0], &one);
	connect_worker(control[0], &two);
	question(&one, 7, "/etc");
	question(&one, 8, "/none/such");
	question(&two, 9, "/dev/null");
	for (uint64_t want = 7; want <= 9; want++) {
		got = wait_frame(want == 9 ? &two : &one);
		CHECK_INT("an answer", 1, got.len > sizeof(ticket));
		memcpy(&ticket, got.at, sizeof(ticket));
		CHECK_INT("ticket", want, ticket);
		CHECK_INT("answer", 1,
			  memmem(got.at, got.len,
				 want == 7   ? "\"directory\""
				 : want == 8 ? "\"absent\""
					     : "\"char\"",
				 6) != NULL);
	}
	/* What is no question ends that connection, and no other. */
	question(&two, 10, "not/absolute");
	CHECK_INT("odd question", 0, wait_frame(&two).len);
	question(&one, 11, "/");
	CHECK_INT("the other goes on", 1, wait_frame(&one).len > 0);
	close(control[0]);
	CHECK_INT("ends with its supervisor", pid, waitpid(pid, &status, 0));
	CHECK_INT("status", 0, status);
	frame_close(&one);
	frame_close(&two);
}

/* More answers than it keeps for one worker: the rest of the questions wait. */
static void a_worker_that_reads_late_gets_all(void **state)
{
	struct frame_conn one;
	struct err err = {0};
	char link[8192], target[4000] = "nowhere";
	int control[2], status;
	pid_t pid;

	(void)state;
	while (strlen(target) + 100 < sizeof(target))
		strcat(target, "/and-farther-than-that");
	CHECK_INT("link", 0, symlink(target, in_top("@/far", link)));
	CHECK_INT("pair", 0, io_pair(control, &err));
	pid = fork();
	if (pid == 0) {
		close(control[0]);
		_exit(resolver_run(control[1]));
	}
	close(control[1]);
	connect_worker(control[0], &one);
	for (uint64_t i = 0; i < 1000; i++)
		question(&one, i, link);
	for (uint64_t i = 0; i < 1000; i++) {
		CHECK_INT("an answer", 1, wait_frame(&one).len >= strlen(target));
		CHECK_INT("the rest of the questions", true, frame_flush(&one));
	}
	close(control[0]);
	CHECK_INT("ends", pid, waitpid(pid, &status, 0));
	CHECK_INT("unlink", 0, unlink(link));
	frame_close(&one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_is_there),
		cmocka_unit_test(walks_only_so_far),
		cmocka_unit_test(says_what_others_can_move),
		cmocka_unit_test(names_the_links),
		cmocka_unit_test(says_which_file_it_is),
		cmocka_unit_test(long_paths_end_well),
		cmocka_unit_test(a_thousand_folders_deep),
		cmocka_unit_test(what_cannot_be_seen_is_unknown),
		cmocka_unit_test(the_process_answers_its_workers),
		cmocka_unit_test(a_worker_that_reads_late_gets_all),
	};

	jv_init();
	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
