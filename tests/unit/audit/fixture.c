#include "tests/unit/audit/fixture.h"

#include "tests/unit/check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void fixture_dir(char out[FIXTURE_PATH])
{
	const char *tmp = getenv("TMPDIR");

	snprintf(out, FIXTURE_PATH, "%s/sallyport-audit-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(out))
		fail_msg("mkdtemp %s", out);
}

const char *fixture_path(const char *dir, const char *name)
{
	static char paths[4][FIXTURE_PATH * 2];
	static int next;
	char *path = paths[next++ & 3];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static void remove_files(const char *dir) /* NOLINT(misc-no-recursion): folders of tiles */
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		char path[FIXTURE_PATH * 2];

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if (unlink(path) < 0)
			remove_files(path);
	}
	if (d)
		closedir(d);
	rmdir(dir);
}

void fixture_remove(const char *dir)
{
	remove_files(dir);
}

char *fixture_read(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "re");
	struct stat st;
	char *bytes;

	if (!f || fstat(fileno(f), &st) < 0)
		fail_msg("open %s", path);
	bytes = malloc((size_t)st.st_size + 1);
	assert_non_null(bytes);
	*ret_len = fread(bytes, 1, (size_t)st.st_size, f);
	CHECK_INT(path, st.st_size, *ret_len);
	bytes[*ret_len] = '\0';
	fclose(f);
	return bytes;
}

void fixture_write(const char *path, const char *bytes, size_t len)
{
	FILE *f = fopen(path, "we");

	if (!f || fwrite(bytes, 1, len, f) != len || fclose(f) != 0)
		fail_msg("write %s", path);
}

const char *fixture_id(unsigned n)
{
	static char ids[4][40];
	static int next;
	char *id = ids[next++ & 3];

	snprintf(id, sizeof(ids[0]), "01900000-0000-7000-8000-%012x", n);
	return id;
}

struct record fixture_decision(unsigned n, const char *verdict)
{
	return (struct record){.type = RECORD_DECISION,
			       .id = fixture_id(n),
			       .surface = "docker",
			       .backend = "engine",
			       .listener = "agents",
			       .identity = "agent-7",
			       .op = "container.create",
			       .op_class = "launch",
			       .method = "POST",
			       .path = "/containers/create",
			       .verdict = verdict,
			       .rule = "images"};
}

struct record fixture_outcome(unsigned n)
{
	return (struct record){.type = RECORD_OUTCOME,
			       .id = fixture_id(n + 0x100000),
			       .of = fixture_id(n),
			       .status = "ok",
			       .http = 201};
}

struct record fixture_read_record(unsigned n)
{
	return (struct record){.type = RECORD_READ,
			       .id = fixture_id(n),
			       .op = "container.list",
			       .op_class = "read",
			       .verdict = "allow",
			       .status = "ok",
			       .http = 200};
}

struct audit_log *fixture_open(const char *dir, uint64_t segment_bytes, struct open_set *open,
			       struct audit_log_found *found)
{
	const struct audit_log_conf conf = {
		.dir = dir, .origin = "test/log", .segment_bytes = segment_bytes};
	struct err err = {0};
	struct audit_log *l = audit_log_open(&conf, open, found, &err);

	if (!l)
		fail_msg("open %s: %s", dir, err.msg);
	return l;
}

struct audit_mark fixture_append(struct audit_log *l, const struct record *r)
{
	struct audit_mark mark = {0};
	struct err err = {0};
	struct buf body;

	buf_init(&body, RECORD_BODY_MAX);
	record_write(&body, r);
	CHECK_INT("record fits", 0, buf_spent(&body));
	CHECK_INT("add", 0, audit_log_add(l, buf_span(&body), &mark));
	if (audit_log_commit(l, &err) < 0)
		fail_msg("commit: %s", err.msg);
	buf_fini(&body);
	return mark;
}

size_t fixture_used(const char *path)
{
	size_t len;
	char *bytes = fixture_read(path, &len);
	const char *last = memrchr(bytes, '\n', len);
	size_t used = last ? (size_t)(last + 1 - bytes) : 0;

	free(bytes);
	return used;
}
