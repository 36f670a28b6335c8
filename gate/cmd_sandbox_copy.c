/* cmd_sandbox_copy.c - files and folders into sandboxes and out of them. */
#include "gate/sandbox_client.h"

#include "gate/base/auto.h"
#include "gate/base/io.h"
#include "proxy/sandbox/inside/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARENA_MAX ((size_t)8 << 20)

struct copy {
	struct api api;
	struct arena *a;
	char id[64];
	const char *there, *here;
};

/* ID:PATH; path: absolute. */
static int split(struct copy *c, const char *word, struct err *err)
{
	const char *colon = strchr(word, ':');

	if (!colon || colon == word || (size_t)(colon - word) >= sizeof(c->id))
		return err_set(err, ERR_INPUT, "'%s' is not ID:PATH", word);
	memcpy(c->id, word, (size_t)(colon - word));
	c->there = colon + 1;
	c->there += strspn(c->there, "/");
	return *c->there ? 0 : err_set(err, ERR_INPUT, "'%s': the path is missing", word);
}

/* Sends all of fd as the body.  The exit status. */
static int upload(const struct copy *c, const char *target, int fd, struct err *err)
{
	struct api_question q = {.method = "PUT",
				 .target = target,
				 .type = "application/octet-stream",
				 .streams = true};
	struct api_answer r;
	static char piece[65536];
	struct buf body;
	ssize_t n;
	int rc;

	if (api_send(&c->api, &q, &r, err) < 0)
		return command_failed(err);
	/* A refusal can come before all is sent: then it is what counts. */
	while ((n = read(fd, piece, sizeof(piece))) > 0 &&
	       api_piece(&r, piece, (size_t)n, err) == 0)
		;
	if (n == 0)
		(void)api_piece(&r, "", 0, err);
	rc = n < 0 ? err_sys(err, "read what is to be sent") : api_head(&r, err);
	if (rc == 0 && r.status >= 300 && (rc = api_collect(&r, &body, err)) == 0) {
		api_tell(buf_span(&body), r.status);
		buf_fini(&body);
	}
	rc = rc < 0 ? command_failed(err) : r.status >= 300 ? EXIT_NO : EXIT_YES;
	api_close(&r);
	return rc;
}

/* The operator's own folder, as a tar; the reading end, or -1. */
static int pack(const char *folder, pid_t *ret_pid, struct err *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, "pipe");
	*ret_pid = fork();
	if (*ret_pid == 0) {
		if (dup2(ends[1], 1) >= 0)
			(void)execlp("tar", "tar", "-C", folder, "-cf", "-", ".", NULL);
		_exit(127);
	}
	close(ends[1]);
	if (*ret_pid > 0)
		return ends[0];
	close(ends[0]);
	return err_sys(err, "start tar");
}

static int put_folder(struct copy *c, struct err *err)
{
	const char *target;
	int fd, status, packed;
	pid_t pid = -1;

	if (api_target(c->a, c->id, "/tar?path=/", c->there, &target, err) < 0)
		return command_failed(err);
	fd = pack(c->here, &pid, err);
	if (fd < 0)
		return command_failed(err);
	status = upload(c, target, fd, err);
	close(fd);
	if (waitpid(pid, &packed, 0) < 0 || packed != 0) {
		fprintf(stderr, "sallyport: tar could not read all of %s\n", c->here);
		return EXIT_CANNOT;
	}
	return status;
}

static int put_file(struct copy *c, const char *mode, struct err *err)
{
	bool input = strcmp(c->here, "-") == 0;
	auto_fd int fd = input ? fcntl(0, F_DUPFD_CLOEXEC, 3) : open(c->here, O_RDONLY | O_CLOEXEC);
	char with[4096];
	const char *target;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		err_sys(err, "open %s", c->here);
		return command_failed(err);
	}
	if (S_ISDIR(st.st_mode))
		return put_folder(c, err);
	if (api_target(c->a, c->id, "/files/", c->there, &target, err) < 0)
		return command_failed(err);
	if (mode)
		snprintf(with, sizeof(with), "%s?mode=%.8s", target, mode);
	else
		snprintf(with, sizeof(with), "%s?mode=%04o", target,
			 S_ISREG(st.st_mode) ? (unsigned)st.st_mode & 0777 : 0644U);
	return upload(c, with, fd, err);
}

/* The octets of an answer, for tar_unpack(). */
static int read_answer(void *ctx, void *buffer, size_t size)
{
	struct api_answer *r = ctx;
	struct err err = {0};
	char *to = buffer;

	while (size) {
		ssize_t n = api_read(r, to, size, &err);

		if (n <= 0) {
			errno = EPROTO;
			return -1;
		}
		to += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Nothing that comes leads out of the folder: proxy/sandbox/inside/tar.h. */
static int unpack(const struct copy *c, struct api_answer *r, struct err *err)
{
	const struct tar_source from = {.read = read_answer, .ctx = r};
	const char *what;
	auto_fd int folder = -1;

	if (mkdir(c->here, 0777) < 0 && errno != EEXIST)
		return err_sys(err, "make %s", c->here);
	folder = open(c->here, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return err_sys(err, "open %s", c->here);
	return tar_unpack(folder, &from, &what) < 0 ? err_sys(err, "unpack '%s'", what) : 0;
}

static int save(const struct copy *c, struct api_answer *r, struct err *err)
{
	bool output = strcmp(c->here, "-") == 0;
	int fd = output ? fcntl(1, F_DUPFD_CLOEXEC, 3)
			: open(c->here, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	static char piece[65536];
	ssize_t n;
	int rc = 0;

	if (fd < 0)
		return err_sys(err, "open %s", c->here);
	while (rc == 0 && (n = api_read(r, piece, sizeof(piece), err)) != 0)
		rc = n < 0 ? -1 : io_write_all(fd, piece, (size_t)n, err);
	if (close(fd) < 0 && rc == 0)
		rc = err_sys(err, "write %s", c->here);
	return rc;
}

static int get(struct copy *c, struct err *err)
{
	size_t len = strlen(c->there);
	bool folder = c->there[len - 1] == '/';
	struct api_question q = {.method = "GET", .accept = "*/*"};
	struct api_answer r;
	struct buf body;
	int rc;

	if (api_target(c->a, c->id, folder ? "/tar?path=/" : "/files/", c->there, &q.target, err) <
		    0 ||
	    api_send(&c->api, &q, &r, err) < 0)
		return command_failed(err);
	rc = api_head(&r, err);
	if (rc == 0 && r.status >= 300) {
		rc = api_collect(&r, &body, err);
		if (rc == 0) {
			api_tell(buf_span(&body), r.status);
			buf_fini(&body);
		}
	} else if (rc == 0)
		rc = folder ? unpack(c, &r, err) : save(c, &r, err);
	rc = rc < 0 ? command_failed(err) : r.status >= 300 ? EXIT_NO : EXIT_YES;
	api_close(&r);
	return rc;
}

static int copy(const struct args *args, bool in)
{
	struct err err = {0};
	struct copy c = {.a = arena_create(ARENA_MAX)};
	int status;

	if (!c.a)
		return EXIT_CANNOT;
	if (args->rest_count != 2)
		err_set(&err, ERR_INPUT, "name two: %s", in ? "FROM ID:PATH" : "ID:PATH TO");
	else if (api_find(args, &c.api, &err) == 0 && split(&c, args->rest[in ? 1 : 0], &err) == 0)
		c.here = args->rest[in ? 0 : 1];
	if (!c.here)
		status = command_failed(&err);
	else
		status = in ? put_file(&c, args->mode, &err) : get(&c, &err);
	arena_destroy(c.a);
	return status;
}

int run_sandbox_put(const struct args *args)
{
	return copy(args, true);
}

int run_sandbox_get(const struct args *args)
{
	return copy(args, false);
}
