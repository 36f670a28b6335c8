#include "gate/base/auto.h"
#include "gate/keeper/fence.h"
#include "tests/unit/keeper/folder.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SECRET "secret"

/*
 * root/            what is fenced         victim/          what is not
 *   file dir/in                             file dir/
 *   links of all kinds
 */
struct world {
	char *top;
	int top_fd, root, victim;
	struct fence fence;
};

static void plant_links(int root, const char *top)
{
	static const char *const links[][2] = {
		{"up", "../victim"},
		{"up-file", "../victim/file"},
		{"magic", "/proc/self/root"},
		{"magic-cwd", "/proc/self/cwd"},
		{"inside", "dir"},
		{"inside-file", "file"},
		{"loop", "loop"},
		{"dangling", "nowhere"},
		{"twisted", "dir/../../victim"},
		{"dir/back", "../file"},
		{"dir/back-out", "../../victim/file"},
	};
	char absolute[512];

	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
		assert_int_equal(symlinkat(links[i][1], root, links[i][0]), 0);
	snprintf(absolute, sizeof(absolute), "%s/victim", top);
	assert_int_equal(symlinkat(absolute, root, "absolute"), 0);
	snprintf(absolute, sizeof(absolute), "%s/root/dir", top);
	assert_int_equal(symlinkat(absolute, root, "absolute-inside"), 0);
}

static void plant_specials(int root, const char *top)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(mkfifoat(root, "fifo", 0666), 0);
	assert_true(snprintf(at.sun_path, sizeof(at.sun_path), "%s/root/socket", top) <
		    (int)sizeof(at.sun_path));
	assert_int_equal(bind(s, (struct sockaddr *)&at, sizeof(at)), 0);
	close(s);
}

static int build(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	w->top = folder_make();
	w->top_fd = open(w->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	mkdirat(w->top_fd, "root", 0755);
	mkdirat(w->top_fd, "root/dir", 0755);
	mkdirat(w->top_fd, "victim", 0755);
	mkdirat(w->top_fd, "victim/dir", 0755);
	w->root = openat(w->top_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	w->victim = openat(w->top_fd, "victim", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	folder_write(w->victim, "file", SECRET);
	folder_write(w->root, "file", "mine");
	folder_write(w->root, "dir/in", "inner");
	plant_links(w->root, w->top);
	plant_specials(w->root, w->top);
	assert_int_equal(linkat(w->victim, "file", w->root, "hard", 0), 0);
	w->fence = (struct fence){.root = w->root};
	*state = w;
	return 0;
}

static int tear(void **state)
{
	struct world *w = *state;

	close(w->root);
	close(w->victim);
	close(w->top_fd);
	folder_drop(w->top);
	free(w);
	return 0;
}

/* The victim is as it was. */
static void untouched(const char *label, const struct world *w)
{
	char text[64];
	struct stat st;

	CHECK_STR(label, SECRET, folder_read(w->victim, "file", text, sizeof(text)));
	assert_int_equal(fstatat(w->victim, "dir", &st, 0), 0);
	CHECK_INT(label, 0755, st.st_mode & 07777);
	assert_int_equal(fstat(w->victim, &st), 0);
	CHECK_INT(label, 3, st.st_nlink); /* one folder, no more */
	CHECK_INT(label, -1, faccessat(w->victim, "new", F_OK, AT_SYMLINK_NOFOLLOW));
}

/* One row each: what opening says. */
static void opens(void **state)
{
	static const struct {
		const char *path;
		int flags, want; /* 0 or errno; -1: no path at all */
		unsigned rules;
		const char *text;
	} rows[] = {
		{"file", O_RDONLY, 0, 0, "mine"},
		{"/file", O_RDONLY, 0, 0, "mine"},
		{"///dir//in", O_RDONLY, 0, 0, "inner"},
		{"./dir/./in", O_RDONLY, 0, 0, "inner"},
		{"dir/../file", O_RDONLY, 0, 0, "mine"},
		{"inside/in", O_RDONLY, 0, 0, "inner"},
		{"inside-file", O_RDONLY, 0, 0, "mine"},
		{"dir/back", O_RDONLY, 0, 0, "mine"},
		{"", O_RDONLY, -1, 0, NULL},
		{"..", O_RDONLY, EXDEV, 0, NULL},
		{"../victim/file", O_RDONLY, EXDEV, 0, NULL},
		{"/../victim/file", O_RDONLY, EXDEV, 0, NULL},
		{"dir/../../victim/file", O_RDONLY, EXDEV, 0, NULL},
		{"up/file", O_RDONLY, EXDEV, 0, NULL},
		{"up-file", O_RDONLY, EXDEV, 0, NULL},
		{"absolute/file", O_RDONLY, EXDEV, 0, NULL},
		{"absolute-inside/in", O_RDONLY, EXDEV, 0, NULL},
		{"twisted/file", O_RDONLY, EXDEV, 0, NULL},
		{"dir/back-out", O_RDONLY, EXDEV, 0, NULL},
		{"magic/etc/passwd", O_RDONLY, EXDEV, 0, NULL},
		{"magic-cwd/x", O_RDONLY, EXDEV, 0, NULL},
		{"loop", O_RDONLY, ELOOP, 0, NULL},
		{"dangling", O_RDONLY, ENOENT, 0, NULL},
		{"nowhere", O_RDONLY, ENOENT, 0, NULL},
		{"file/x", O_RDONLY, ENOTDIR, 0, NULL},
		{"fifo", O_RDONLY, EINVAL, 0, NULL},
		{"fifo", O_WRONLY, EINVAL, 0, NULL},
		{"socket", O_RDONLY, EINVAL, 0, NULL},
		{"file", O_RDONLY | O_DIRECTORY, ENOTDIR, 0, NULL},
		{"dir", O_WRONLY, EISDIR, 0, NULL},
		{"inside-file", O_WRONLY, ELOOP, 0, NULL},
		{"inside-file", O_WRONLY | O_CREAT | O_TRUNC, ELOOP, 0, NULL},
		{"dangling", O_WRONLY | O_CREAT, ELOOP, 0, NULL},
		{"up-file", O_WRONLY | O_TRUNC, ELOOP, 0, NULL},
		{"up/file", O_WRONLY | O_TRUNC, EXDEV, 0, NULL},
		{"up/new", O_WRONLY | O_CREAT, EXDEV, 0, NULL},
		{"../victim/new", O_WRONLY | O_CREAT, EXDEV, 0, NULL},
		{"dir/..", O_WRONLY | O_CREAT, -1, 0, NULL},
		{"file", O_WRONLY | O_CREAT | O_EXCL, EEXIST, 0, NULL},
		{"dangling", O_WRONLY | O_CREAT | O_EXCL, EEXIST, 0, NULL},
		{"inside/in", O_RDONLY, ELOOP, FENCE_NO_LINKS, NULL},
		{"inside-file", O_RDONLY, ELOOP, FENCE_NO_LINKS, NULL},
		{"dir/in", O_RDONLY, 0, FENCE_NO_LINKS | FENCE_ONE_DEVICE, "inner"},
		{"hard", O_RDONLY, 0, FENCE_NO_HARDLINKS, SECRET},
		{"hard", O_WRONLY, EMLINK, FENCE_NO_HARDLINKS, NULL},
		{"hard", O_RDWR, EMLINK, FENCE_NO_HARDLINKS, NULL},
		{"hard", O_WRONLY | O_TRUNC | O_CREAT, EMLINK, FENCE_NO_HARDLINKS, NULL},
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct fence f = {w->root, rows[i].rules};
		char text[64] = "";
		struct err err = {0};
		int fd = fence_open(&f, rows[i].path, rows[i].flags, 0644, &err);

		if (fd >= 0 && rows[i].text)
			assert_true(read(fd, text, sizeof(text) - 1) >= 0);
		if (fd >= 0)
			close(fd);
		CHECK_INT(rows[i].path, rows[i].want == 0, fd >= 0);
		CHECK_INT(rows[i].path, rows[i].want > 0 ? rows[i].want : 0, err.sys);
		CHECK_INT(rows[i].path, rows[i].want < 0, err.kind == ERR_INPUT);
		CHECK_STR(rows[i].path, rows[i].text ? rows[i].text : "", text);
		untouched(rows[i].path, w);
	}
}

/* A place where another file system begins. */
static void one_device(void **state)
{
	struct fence all = {open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), 0};
	struct fence one = {all.root, FENCE_ONE_DEVICE};
	struct err err = {0};
	int fd = fence_open(&all, "proc/version", O_RDONLY, 0, &err);

	(void)state;
	CHECK_STR("without the rule", "", err.msg);
	close(fd);
	CHECK_INT("with it", -1, fence_open(&one, "proc/version", O_RDONLY, 0, &err));
	CHECK_INT("with it", EXDEV, err.sys);
	CHECK_INT("a magic link", -1, fence_open(&all, "proc/self/root/etc", O_RDONLY, 0, &err));
	CHECK_INT("a magic link", ELOOP, err.sys);
	CHECK_INT("a device", -1, fence_open(&all, "dev/null", O_WRONLY, 0, &err));
	CHECK_INT("a device", EINVAL, err.sys);
	close(all.root);
}

enum op {
	OP_MKDIR,
	OP_MKDIRS,
	OP_REMOVE,
	OP_REMOVE_ALL,
	OP_MOVE,
	OP_MOVE_NEW,
	OP_CHMOD,
	OP_LIST,
	OP_LINK,
	OP_MAKE
};

static int take_none(void *arg, const struct fence_entry *e, struct err *err)
{
	(void)arg, (void)e, (void)err;
	return 0;
}

static int make_and_keep(const struct fence *f, const char *path, struct err *err)
{
	char name[FENCE_NAME_MAX];
	auto_fd int folder = -1;
	int fd = fence_make(f, path, 0644, &folder, name, err);

	if (fd < 0)
		return -1;
	assert_int_equal(write(fd, "made", 4), 4);
	close(fd);
	return fence_keep(f, folder, name, path, err);
}

static int operate(const struct fence *f, enum op op, const char *path, const char *to,
		   struct err *err)
{
	switch (op) {
	case OP_MKDIR:
	case OP_MKDIRS:
		return fence_mkdir(f, path, 0755, op == OP_MKDIRS, err);
	case OP_REMOVE:
	case OP_REMOVE_ALL:
		return fence_remove(f, path, op == OP_REMOVE_ALL, err);
	case OP_MOVE:
	case OP_MOVE_NEW:
		return fence_rename(f, path, to, op == OP_MOVE, err);
	case OP_CHMOD:
		return fence_chmod(f, path, 0600, err);
	case OP_LIST:
		return fence_list(f, path, 100, take_none, NULL, err);
	case OP_LINK:
		return fence_symlink(f, "/etc", path, err);
	case OP_MAKE:
		return make_and_keep(f, path, err);
	}
	return -1;
}

/* In this order: a row may build on those before it. */
static void changes(void **state)
{
	static const struct {
		enum op op;
		const char *path, *to;
		int want;
	} rows[] = {
		{OP_MKDIR, "new", NULL, 0},
		{OP_MKDIR, "new", NULL, EEXIST},
		{OP_MKDIRS, "new", NULL, 0},
		{OP_MKDIRS, "new/a/b/c", NULL, 0},
		{OP_MKDIRS, "file/a", NULL, ENOTDIR},
		{OP_MKDIRS, "up/new", NULL, EXDEV},
		{OP_MKDIRS, "up/new/more", NULL, EXDEV},
		{OP_MKDIRS, "inside/made/x", NULL, 0},
		{OP_MKDIR, "up", NULL, EEXIST},
		{OP_MKDIRS, "up", NULL, EEXIST},
		{OP_MKDIRS, "/", NULL, 0},
		{OP_MKDIR, "..", NULL, -1},
		{OP_MKDIRS, "a/../../victim/new", NULL, EXDEV},
		{OP_MKDIRS, "../victim/new", NULL, EXDEV},
		{OP_MAKE, "file", NULL, 0},
		{OP_MAKE, "up/new", NULL, EXDEV},
		{OP_MAKE, "hard", NULL, 0}, /* the name, not the file behind it */
		{OP_MAKE, "up-file", NULL, 0},
		{OP_MAKE, "dir", NULL, EISDIR},
		{OP_CHMOD, "file", NULL, 0},
		{OP_CHMOD, "absolute", NULL, ELOOP},
		{OP_CHMOD, "up/dir", NULL, EXDEV},
		{OP_CHMOD, "fifo", NULL, EINVAL},
		{OP_MOVE, "file", "../victim/new", EXDEV},
		{OP_MOVE, "file", "up/new", EXDEV},
		{OP_MOVE, "up/file", "new/taken", EXDEV},
		{OP_MOVE, "file", "dir/in", 0},
		{OP_MOVE_NEW, "dir/in", "new", EEXIST},
		{OP_MOVE_NEW, "dir/in", "file", 0},
		{OP_MOVE, "up", "moved-link", 0},
		{OP_MOVE, "moved-link", "up", 0},
		{OP_MOVE, "new", "new/a/inside", EINVAL},
		{OP_LIST, "dir", NULL, 0},
		{OP_LIST, "inside", NULL, 0},
		{OP_LIST, "up", NULL, EXDEV},
		{OP_LIST, "fifo", NULL, ENOTDIR},
		{OP_LINK, "etc", NULL, 0},
		{OP_LIST, "etc", NULL, EXDEV},
		{OP_LINK, "up/etc", NULL, EXDEV},
		{OP_REMOVE, "new", NULL, ENOTEMPTY},
		{OP_REMOVE, "up/file", NULL, EXDEV},
		{OP_REMOVE, "absolute/file", NULL, EXDEV},
		{OP_REMOVE, "absolute", NULL, 0},
		{OP_REMOVE_ALL, "twisted", NULL, 0},
		{OP_REMOVE_ALL, "up/dir", NULL, EXDEV},
		{OP_REMOVE_ALL, "new", NULL, 0},
		{OP_REMOVE_ALL, "dir", NULL, 0}, /* with links to the victim in it */
		{OP_REMOVE_ALL, "dir", NULL, ENOENT},
		{OP_REMOVE_ALL, "/", NULL, -1},
		{OP_REMOVE_ALL, "..", NULL, -1},
		{OP_REMOVE, "fifo", NULL, 0},
		{OP_REMOVE, "socket", NULL, 0},
	};
	struct world *w = *state;
	char label[300];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct err err = {0};
		int rc = operate(&w->fence, rows[i].op, rows[i].path, rows[i].to, &err);

		snprintf(label, sizeof(label), "row %zu, %s: %.200s", i, rows[i].path, err.msg);
		CHECK_INT(label, rows[i].want == 0 ? 0 : -1, rc);
		CHECK_INT(label, rows[i].want > 0 ? rows[i].want : 0, err.sys);
		untouched(label, w);
	}
}

static void odd_names(void **state)
{
	static const char *const names[] = {
		"a b", "-rf", "\n",    "\x01\xff", "...",  "..x",      "x..",
		"~",   "*",   "C:\\x", "\"'`$(x)", "%s%n", "\xc3\xa4", ".sallyport-0",
	};
	struct world *w = *state;
	char longest[FENCE_PATH_MAX + 2];
	struct err err = {0};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		int fd = fence_open(&w->fence, names[i], O_WRONLY | O_CREAT | O_EXCL, 0644, &err);

		CHECK_STR(names[i], "", err.msg);
		close(fd);
		CHECK_INT(names[i], 0, faccessat(w->root, names[i], F_OK, 0));
		CHECK_INT(names[i], 0, fence_remove(&w->fence, names[i], false, &err));
	}
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	CHECK_INT("too long", -1, fence_open(&w->fence, longest, O_RDONLY, 0, &err));
	CHECK_INT("too long", ERR_INPUT, err.kind);
	longest[256] = '\0';
	CHECK_INT("a name too long", -1, fence_mkdir(&w->fence, longest, 0755, false, &err));
	CHECK_INT("a name too long", ENAMETOOLONG, err.sys);
}

struct seen {
	unsigned count;
	char names[200], target[100];
};

static int see(void *arg, const struct fence_entry *e, struct err *err)
{
	struct seen *s = arg;

	(void)err;
	s->count++;
	if (S_ISLNK(e->stat.st_mode) && strcmp(e->name, "back-out") == 0)
		snprintf(s->target, sizeof(s->target), "%s", e->target);
	return 0;
}

static int refuse(void *arg, const struct fence_entry *e, struct err *err)
{
	(void)arg;
	return err_set(err, ERR_LIMIT, "enough of %s", e->name);
}

static void lists_and_stats(void **state)
{
	struct world *w = *state;
	char target[FENCE_TARGET_MAX];
	struct seen seen = {0};
	struct err err = {0};
	struct stat st;

	CHECK_INT("list", 0, fence_list(&w->fence, "dir", 10, see, &seen, &err));
	CHECK_INT("list", 3, seen.count);
	CHECK_STR("list", "../../victim/file", seen.target);
	CHECK_INT("cap", -1, fence_list(&w->fence, "dir", 2, see, &seen, &err));
	CHECK_INT("cap", ERR_LIMIT, err.kind);
	err = (struct err){0};
	CHECK_INT("ended", -1, fence_list(&w->fence, "/", 10, refuse, NULL, &err));
	CHECK_INT("ended", ERR_LIMIT, err.kind);
	CHECK_INT("stat", 0, fence_stat(&w->fence, "up", &st, target, &err));
	CHECK_INT("stat", 1, S_ISLNK(st.st_mode));
	CHECK_STR("stat", "../victim", target);
	CHECK_INT("followed", -1, fence_stat_followed(&w->fence, "up", &st, &err));
	CHECK_INT("followed", EXDEV, err.sys);
	CHECK_INT("followed", 0, fence_stat_followed(&w->fence, "inside", &st, &err));
	CHECK_INT("followed", 1, S_ISDIR(st.st_mode));
}

/* Deeper than what is removed: refused, and nothing but its beginning is gone. */
static void deep_trees(void **state)
{
	struct world *w = *state;
	char path[FENCE_PATH_MAX] = "deep";
	struct err err = {0};

	for (int depth = 1; depth < FENCE_DEPTH_MAX; depth++)
		strcat(path, "/d");
	CHECK_INT("as deep as may be", 0, fence_mkdir(&w->fence, path, 0755, true, &err));
	CHECK_INT("as deep as may be", 0, fence_remove(&w->fence, "deep", true, &err));
	strcat(path, "/d");
	CHECK_INT("deeper", 0, fence_mkdir(&w->fence, path, 0755, true, &err));
	CHECK_INT("deeper", -1, fence_remove(&w->fence, "deep", true, &err));
	CHECK_INT("deeper", ERR_LIMIT, err.kind);
	CHECK_INT("in two steps", 0, fence_remove(&w->fence, "deep/d", true, &err));
	CHECK_INT("in two steps", 0, fence_remove(&w->fence, "deep", true, &err));
}

static void truncates_and_appends(void **state)
{
	struct world *w = *state;
	char text[64];
	struct err err = {0};
	int fd = fence_open(&w->fence, "file", O_WRONLY | O_APPEND, 0, &err);

	assert_int_equal(write(fd, "+", 1), 1);
	close(fd);
	CHECK_STR("appended", "mine+", folder_read(w->root, "file", text, sizeof(text)));
	fd = fence_open(&w->fence, "file", O_WRONLY | O_TRUNC, 0, &err);
	close(fd);
	CHECK_STR("cut", "", folder_read(w->root, "file", text, sizeof(text)));
	CHECK_INT("setuid", -1, fence_chmod(&w->fence, "file", 04755, &err));
	CHECK_INT("setuid", ERR_INPUT, err.kind);
	fd = fence_open(&w->fence, "s", O_WRONLY | O_CREAT, 06777, &err);
	close(fd);
	CHECK_INT("setuid", 0, fence_remove(&w->fence, "s", false, &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(opens, build, tear),
		cmocka_unit_test(one_device),
		cmocka_unit_test_setup_teardown(changes, build, tear),
		cmocka_unit_test_setup_teardown(odd_names, build, tear),
		cmocka_unit_test_setup_teardown(lists_and_stats, build, tear),
		cmocka_unit_test_setup_teardown(deep_trees, build, tear),
		cmocka_unit_test_setup_teardown(truncates_and_appends, build, tear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
