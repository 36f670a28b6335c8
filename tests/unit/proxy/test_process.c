/* What is told of a process: of one that the test made, with namespaces and mounts of its own. */
#include "gate/base/arena.h"
#include "gate/base/io.h"
#include "gate/base/jv.h"
#include "proxy/resolve.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct arena *arena;
static char top[] = "/tmp/sp-process-XXXXXX";

static struct jv ask(const char *question)
{
	enum jv_fault fault;
	struct err err = {0};
	struct jv answer;
	struct buf out;
	char *copy;

	buf_init(&out, 65536);
	resolve_process(span_of(question), &out);
	copy = arena_strndup(arena, buf_span(&out).at, buf_len(&out));
	if (jv_parse(arena, span_of(copy), &answer, &fault, &err) < 0)
		fail_msg("no JSON: %s: %s", err.msg, copy);
	buf_fini(&out);
	return answer;
}

static struct jv ask_about(pid_t pid, const char *runtime, const char *files)
{
	char question[8192];

	snprintf(question, sizeof(question), "pid %d\nid \nruntime %s\n%s", (int)pid, runtime,
		 files);
	return ask(question);
}

static void questions_that_are_none_have_no_answer(void **state)
{
	static const char *const rows[] = {
		"",
		"pid \nid \nruntime \n",
		"pid 0\nid \nruntime \n",
		"pid 1\nid \nruntime \n",
		"pid -2\nid \nruntime \n",
		"pid 2 \nid \nruntime \n",
		"pid 99999999999\nid \nruntime \n",
		"pid 12\nruntime \nid \n",
		"pid 12\nid abc\nruntime \n",
		"pid 12\nid \nruntime relative\n",
		"pid 12\nid \nruntime /a%0\n",
		"pid 12\nid \nruntime /a%00\n",
		"pid 12\nid \nruntime \nfolder /x\n",
		"pid 12\nid \nruntime \nfile /x",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct jv answer = ask(rows[i]);

		CHECK_STR(rows[i], "unknown", jv_str(&answer, "state", ""));
	}
}

static void too_many_files_are_no_question(void **state)
{
	char files[65 * 8 + 1] = "";
	struct jv answer;

	(void)state;
	for (int i = 0; i < 64; i++)
		strcat(files, "file /x\n");
	answer = ask_about(getpid(), "", files);
	CHECK_STR("as many as may be", "seen", jv_str(&answer, "state", ""));
	strcat(files, "file /x\n");
	answer = ask_about(getpid(), "", files);
	CHECK_STR("one more", "unknown", jv_str(&answer, "state", ""));
}

static void what_has_ended_is_gone(void **state)
{
	pid_t pid = fork();
	struct jv answer;
	siginfo_t info;

	(void)state;
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	answer = ask_about(pid, "", "");
	CHECK_STR("not reaped yet", "gone", jv_str(&answer, "state", ""));
	waitpid(pid, NULL, 0);
	answer = ask_about(pid, "", "");
	CHECK_STR("reaped", "gone", jv_str(&answer, "state", ""));
}

static void this_process_is_seen_as_it_is(void **state)
{
	struct jv answer = ask_about(getpid(), "/proc/self/exe", "file /tmp\nfile /no%0A%25such\n");
	const struct jv *files = jv_get(&answer, "files");
	struct stat st;

	(void)state;
	assert_int_equal(stat("/tmp", &st), 0);
	CHECK_STR("state", "seen", jv_str(&answer, "state", ""));
	CHECK_INT("pid", getpid(), jv_num(&answer, "pid", 0));
	CHECK_INT("uid", geteuid(), jv_num(&answer, "uid", -1));
	CHECK_INT("its own namespaces are the host's", true,
		  jv_true(jv_path(&answer, "namespaces.mnt"), "host"));
	CHECK_INT("the program is the runtime's", true,
		  jv_true(jv_get(&answer, "runtime"), "same"));
	CHECK_INT("it is no container's, so no arguments are told", true,
		  jv_get(&answer, "args") == NULL);
	CHECK_INT("one file is there", 1, files ? (int)files->count : -1);
	CHECK_INT("inode", (long long)st.st_ino, jv_num(&files->items[0], "ino", 0));
}

static void arguments_of_others_stay_theirs(void **state)
{
	struct jv answer = ask_about(getpid(), "/bin/sh", "");

	(void)state;
	CHECK_INT("not the runtime", false, jv_true(jv_get(&answer, "runtime"), "same"));
	CHECK_INT("no arguments", true, jv_get(&answer, "args") == NULL);
}

/* --- a process with a root of its own --- */

static void put_file(const char *name, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", top, name);
	fd = open(path, O_CREAT | O_WRONLY, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(3);
	close(fd);
}

static void in_top(const char *name, char out[128])
{
	snprintf(out, 128, "%s/%s", top, name);
}

/* Becomes what a small container is: its own tree, a bind, and a bind that a link hides. */
static void live_apart(void)
{
	char root[128], source[128], target[128];

	in_top("root", root);
	in_top("source", source);
	if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(root, root, NULL, MS_BIND, NULL) < 0)
		_exit(4);
	in_top("root/w", target);
	if (mount(source, target, NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, target, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0)
		_exit(5);
	in_top("root/moved/x", target); /* two steps down */
	if (mount(source, target, NULL, MS_BIND, NULL) < 0 || chroot(root) < 0 || chdir("/") < 0)
		_exit(6);
	/* Its path leads elsewhere from now on. */
	if (rename("/moved", "/hidden") < 0 || symlink("w", "/moved") < 0)
		_exit(7);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static pid_t start_apart(void)
{
	int pair[2];
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe(pair), 0);
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		live_apart();
		if (write(pair[1], "y", 1) != 1)
			_exit(8);
		pause();
		_exit(0);
	}
	close(pair[1]);
	CHECK_INT("it has come up", 1, (int)read(pair[0], &byte, 1));
	close(pair[0]);
	return pid;
}

static const struct jv *mount_at(const struct jv *answer, const char *point)
{
	const struct jv *list = jv_get(answer, "mounts");

	for (size_t i = 0; list && i < list->count; i++)
		if (strcmp(jv_str(&list->items[i], "point", ""), point) == 0)
			return &list->items[i];
	return NULL;
}

static void what_lives_apart_is_seen_inside_its_root(void **state)
{
	char source[128];
	struct jv answer;
	struct stat st;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	pid = start_apart();
	answer = ask_about(pid, "", "");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	in_top("source", source);
	assert_int_equal(stat(source, &st), 0);
	CHECK_INT("mnt", false, jv_true(jv_path(&answer, "namespaces.mnt"), "host"));
	CHECK_INT("pid", true, jv_true(jv_path(&answer, "namespaces.pid"), "host"));
	CHECK_INT("nnp", true, jv_true(&answer, "no_new_privs"));
	CHECK_STR("whose", "process", jv_str(&answer, "mounts_of", ""));
	CHECK_INT("the bind", (long long)st.st_ino, jv_num(mount_at(&answer, "/w"), "ino", 0));
	CHECK_INT("read-only", true, jv_true(mount_at(&answer, "/w"), "ro"));
	CHECK_INT("a piece of the host", true, jv_true(mount_at(&answer, "/w"), "host"));
	CHECK_INT("the one that was moved", (long long)st.st_ino,
		  jv_num(mount_at(&answer, "/hidden/x"), "ino", 0));
	CHECK_INT("is not at its old place", true, mount_at(&answer, "/moved/x") == NULL);
	CHECK_INT("nothing of the host's root is told", true, mount_at(&answer, "/proc") == NULL);
}

static int set_up(void **state)
{
	char path[128];

	(void)state;
	jv_init();
	arena = arena_create(8u << 20);
	if (!arena || !mkdtemp(top))
		return -1;
	for (const char *const *name = (const char *const[]){"root", "source", "root/w",
							     "root/moved", "root/moved/x", NULL};
	     *name; name++) {
		in_top(*name, path);
		if (mkdir(path, 0755) < 0)
			return -1;
	}
	put_file("source/file", "x");
	return 0;
}

static int tear_down(void **state)
{
	static const char *const names[] = {"source/file",   "source",      "root/moved",
					    "root/hidden/x", "root/hidden", "root/moved/x",
					    "root/w",        "root",        NULL};
	char path[128];

	(void)state;
	for (const char *const *name = names; *name; name++) {
		in_top(*name, path);
		if (unlink(path) < 0)
			rmdir(path);
	}
	in_top("root/moved", path);
	rmdir(path);
	in_top("root", path);
	rmdir(path);
	rmdir(top);
	arena_destroy(arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(questions_that_are_none_have_no_answer),
		cmocka_unit_test(too_many_files_are_no_question),
		cmocka_unit_test(what_has_ended_is_gone),
		cmocka_unit_test(this_process_is_seen_as_it_is),
		cmocka_unit_test(arguments_of_others_stay_theirs),
		cmocka_unit_test(what_lives_apart_is_seen_inside_its_root),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
