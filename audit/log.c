#include "audit/log_priv.h"
#include "audit/requests_priv.h"

#include "gate/base/io.h"
#include "gate/base/uuid.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define ZERO_AHEAD (1u << 20) /* bytes */
#define SLACK_PART 64         /* the last group of a segment may pass its size by 1/64 */

static int seal(struct audit_log *l, struct err *err)
{
	l->sealed = true;
	l->why = *err;
	return -1;
}

void audit_log_seal(struct audit_log *l, const struct err *err)
{
	struct err why = *err;

	if (!l->sealed)
		seal(l, &why);
}

static int still_sealed(const struct audit_log *l, struct err *err)
{
	*err = l->why;
	return -1;
}

/* A file system without fallocate() still has a log; it only learns of a full disk later. */
void audit_log_preallocate(int fd, uint64_t bytes, int *ret_error)
{
	int n;

	do
		n = fallocate(fd, 0, 0, (off_t)bytes);
	while (n < 0 && errno == EINTR);
	*ret_error = n < 0 && errno != EOPNOTSUPP && errno != ENOSYS ? errno : 0;
}

/*
 * fallocate() leaves extents that are marked "unwritten"; the first write to one
 * makes the next fdatasync() commit metadata.  Zeros written ahead pay that once
 * a mebibyte instead of at every commit.
 */
static int zero_ahead(struct audit_log *l)
{
	static const char zeros[65536];
	uint64_t until = l->used + ZERO_AHEAD;

	if (l->used < l->zeroed)
		return 0;
	if (until > l->segment_bytes)
		until = l->segment_bytes;
	for (uint64_t at = l->used; at < until;) {
		size_t len = until - at < sizeof(zeros) ? until - at : sizeof(zeros);

		if (io_write_at(l->fd, zeros, len, at) < 0)
			return -1;
		at += len;
	}
	l->zeroed = until;
	return 0;
}

int audit_log_add(struct audit_log *l, struct span body, struct audit_mark *ret)
{
	uint64_t seq = l->writer.seq;

	if (!line_write(&l->writer, &l->group, body))
		return -1;
	buf_put(&l->leaves, l->writer.hash.bytes, HASH_BYTES);
	*ret = (struct audit_mark){seq, l->writer.hash};
	return 0;
}

int audit_log_add_own(struct audit_log *l, struct record *r)
{
	char id[UUID_TEXT_LEN + 1];
	struct audit_mark mark;
	int result;

	uuid_make(id);
	r->id = id;
	buf_clear(&l->scratch);
	record_write(&l->scratch, r);
	result = buf_spent(&l->scratch) ? -1 : audit_log_add(l, buf_span(&l->scratch), &mark);
	r->id = NULL;
	return result;
}

/* What is on disk now becomes part of the tree. */
static void grow_tree(struct audit_log *l)
{
	struct span leaves = buf_span(&l->leaves);
	struct hash leaf;

	assert(!buf_spent(&l->leaves));
	for (; leaves.len; leaves = span_skip(leaves, HASH_BYTES)) {
		memcpy(leaf.bytes, leaves.at, HASH_BYTES);
		tiles_add(l->tiles, l->tiles_off ? -1 : l->dir_fd, &leaf);
	}
	buf_clear(&l->leaves);
	buf_clear(&l->group);
}

int audit_log_commit(struct audit_log *l, struct err *err)
{
	struct span group = buf_span(&l->group);

	if (l->sealed)
		return still_sealed(l, err);
	if (!group.len)
		return 0;
	if (io_write_at(l->fd, group.at, group.len, l->used) < 0) {
		err_sys(err, "write to the audit log");
		return seal(l, err);
	}
	l->used += group.len;
	if (zero_ahead(l) < 0) {
		err_sys(err, "write zeros ahead in the audit log");
		return seal(l, err);
	}
	if (fdatasync(l->fd) < 0) {
		err_sys(err, "fdatasync the audit log");
		return seal(l, err);
	}
	grow_tree(l);
	return 0;
}

bool audit_log_full(const struct audit_log *l)
{
	return l->used >= l->segment_bytes;
}

/* --- segments --- */

#define TEMPORARY_MAX (SEGMENT_NAME_MAX + 4)

static void temporary_name(uint64_t first, char out[TEMPORARY_MAX])
{
	segment_name(first, out);
	memcpy(out + strlen(out), ".tmp", sizeof(".tmp"));
}

static int open_temporary(struct audit_log *l, uint64_t first, struct err *err)
{
	char name[TEMPORARY_MAX];
	int fd, error;

	temporary_name(first, name);
	if (unlinkat(l->dir_fd, name, 0) < 0 && errno != ENOENT)
		return err_sys(err, "remove the left-over %s", name);
	fd = openat(l->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0)
		return err_sys(err, "create %s", name);
	audit_log_preallocate(fd, l->segment_bytes + l->segment_bytes / SLACK_PART, &error);
	if (error) {
		errno = error;
		err_sys(err, "reserve room for %s", name);
		close(fd);
		(void)unlinkat(l->dir_fd, name, 0);
		return -1;
	}
	return fd;
}

static int add_first_line(struct audit_log *l, const struct open_set *open, const char *before)
{
	char head[HASH_HEX_LEN + 1];
	struct record r = {.type = RECORD_LOG_OPEN, .file = before, .open = open->count};
	char edge[TREE_EDGE_MAX];
	const struct open_decision *d;
	size_t slot = 0;

	if (l->writer.seq) {
		hash_hex(&l->writer.hash, head);
		r.head = head;
	}
	tree_edge_format(&l->tiles->tree, edge);
	r.edge = span_of(edge);
	r.key = l->vkey;
	while ((d = open_set_next(open, &slot)))
		if (!r.oldest || d->seq < r.oldest)
			r.oldest = d->seq;
	return audit_log_add_own(l, &r);
}

/* Written, synced, renamed, synced: whatever has its name begins with a whole line. */
static int write_first_line(struct audit_log *l, int fd, const char *temporary, struct err *err)
{
	struct span group = buf_span(&l->group);
	char name[SEGMENT_NAME_MAX];

	segment_name(l->first, name);
	if (io_write_at(fd, group.at, group.len, 0) < 0)
		return err_sys(err, "write to %s", temporary);
	if (fsync(fd) < 0)
		return err_sys(err, "fsync %s", temporary);
	if (renameat(l->dir_fd, temporary, l->dir_fd, name) < 0)
		return err_sys(err, "rename %s to %s", temporary, name);
	if (fsync(l->dir_fd) < 0)
		return err_sys(err, "fsync the log directory");
	l->used = group.len;
	l->zeroed = 0;
	grow_tree(l);
	return 0;
}

int audit_log_begin(struct audit_log *l, const struct open_set *open, const char *before,
		    struct err *err)
{
	char temporary[TEMPORARY_MAX];
	int fd = l->next_fd;

	assert(!buf_len(&l->group));
	l->first = l->writer.seq;
	temporary_name(l->first, temporary);
	l->next_fd = -1;
	if (fd < 0)
		fd = open_temporary(l, l->first, err);
	if (fd < 0)
		return seal(l, err);
	if (add_first_line(l, open, before) < 0)
		err_set(err, ERR_LIMIT, "no memory for the first line of a log segment");
	else if (write_first_line(l, fd, temporary, err) == 0) {
		if (l->fd >= 0)
			close(l->fd);
		l->fd = fd;
		return 0;
	}
	close(fd);
	return seal(l, err);
}

static bool no_room(const struct err *err)
{
	return err->sys == ENOSPC || err->sys == EDQUOT || err->sys == EFBIG;
}

int audit_log_rotate(struct audit_log *l, const struct open_set *open, struct err *err)
{
	struct record r = {.type = RECORD_LOG_SEAL, .count = l->writer.seq - l->first + 1};
	char name[SEGMENT_NAME_MAX], root[HASH_HEX_LEN + 1];
	struct hash h = tree_root(&l->tiles->tree);

	if (l->sealed)
		return still_sealed(l, err);
	assert(!buf_len(&l->group));
	/* Before log_seal: a segment without room for the next can still be written to. */
	l->next_fd = open_temporary(l, l->writer.seq + 1, err);
	if (l->next_fd < 0)
		return no_room(err) ? 1 : seal(l, err);
	hash_hex(&h, root);
	r.root = root;
	if (audit_log_add_own(l, &r) < 0) {
		err_set(err, ERR_LIMIT, "no memory for the last line of a log segment");
		return seal(l, err);
	}
	if (audit_log_commit(l, err) < 0)
		return -1;
	segment_name(l->first, name);
	/* A finished segment has no zeros at its end: tools can read it as it is. */
	if (ftruncate(l->fd, (off_t)l->used) < 0 || fdatasync(l->fd) < 0) {
		err_sys(err, "cut %s to its length", name);
		return seal(l, err);
	}
	return audit_log_begin(l, open, name, err);
}

/* --- watching over the file --- */

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int lost(struct audit_log *l, struct err *err, const char *what)
{
	err_set(err, ERR_SYSTEM, "%s in %s", what, l->dir);
	return seal(l, err);
}

int audit_log_check(struct audit_log *l, struct err *err)
{
	char name[SEGMENT_NAME_MAX];
	struct stat held, there;

	if (l->sealed)
		return still_sealed(l, err);
	segment_name(l->first, name);
	if (fstat(l->fd, &held) < 0)
		return lost(l, err, "the log file cannot be looked at");
	if ((uint64_t)held.st_size < l->used)
		return lost(l, err, "somebody cut the log file");
	if (fstatat(l->dir_fd, name, &there, AT_SYMLINK_NOFOLLOW) < 0 || !same_file(&held, &there))
		return lost(l, err, "the log file was removed or replaced");
	if (fstatat(l->dir_fd, WRITER_LOCK, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !same_file(&l->lock_stat, &there))
		return lost(l, err, "the lock file was removed or replaced");
	if (l->shown_fd < 0) /* a reader had it locked */
		l->shown_fd = log_show_written(l->dir_fd);
	/* A relative name may mean another directory by now; one we may not reach says nothing. */
	if (l->dir[0] != '/')
		return 0;
	if (stat(l->dir, &there) < 0 ? errno == ENOENT || errno == ENOTDIR
				     : !same_file(&l->dir_stat, &there))
		return lost(l, err, "the log directory was moved or replaced");
	return 0;
}
