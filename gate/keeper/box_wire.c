#include "gate/keeper/box_priv.h"

#include "gate/base/auto.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

int box_pair(int ret[2], struct err *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0)
		return err_sys(err, "a socket pair");
	return 0;
}

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(int) * BOX_FDS_MAX)];
};

int box_send(int sock, struct span head, struct span body, const int *fds, size_t count,
	     struct err *err)
{
	struct iovec parts[2] = {{(void *)(uintptr_t)head.at, head.len},
				 {(void *)(uintptr_t)body.at, body.len}};
	union control control = {0};
	struct msghdr msg = {.msg_iov = parts, .msg_iovlen = 2};
	ssize_t n;

	assert(count <= BOX_FDS_MAX);
	if (count) {
		struct cmsghdr *c = &control.align;

		msg.msg_control = control.room;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * count);
	}
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? err_sys(err, "send") : 0;
}

static void take_fds(struct msghdr *msg, int *fds, size_t *ret_count)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		*ret_count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), *ret_count * sizeof(int));
	}
}

ssize_t box_recv(int sock, void *bytes, size_t size, int *fds, size_t *ret_count, struct err *err)
{
	struct iovec part = {bytes, size};
	union control control;
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
	size_t count = 0;
	ssize_t n;

	if (fds) {
		msg.msg_control = control.room;
		msg.msg_controllen = sizeof(control.room);
	}
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, "receive");
	if (fds)
		take_fds(&msg, fds, &count);
	if (ret_count)
		*ret_count = count;
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		for (size_t i = 0; i < count; i++)
			close(fds[i]);
		return err_set(err, ERR_LIMIT, "a message is too long");
	}
	return n;
}

const char *box_word(const char **at, const char *end)
{
	const char *word = *at;
	const char *nul = word < end ? memchr(word, '\0', (size_t)(end - word)) : NULL;

	if (!nul)
		return NULL;
	*at = nul + 1;
	return word;
}

static bool name_is_plain(const char *s)
{
	size_t len = s ? strlen(s) : 0;

	return len > 0 && len < BOX_NAME_MAX && *s != '-' &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == len;
}

/* Absolute, and without anything that would need to be resolved. */
static bool target_is_plain(const char *s)
{
	size_t len = s ? strlen(s) : 0;

	if (len < 2 || len >= BOX_PATH_MAX || *s != '/' || s[len - 1] == '/')
		return false;
	return !strstr(s, "//") && !strstr(s, "/./") && !strstr(s, "/../") &&
	       strcmp(s + len - 2, "/.") != 0 && (len < 3 || strcmp(s + len - 3, "/..") != 0);
}

static int check_counts(const struct box_conf *c, struct err *err)
{
	if (!name_is_plain(c->name))
		return err_set(err, ERR_CONFIG, "a box's name is letters, digits, '-' and '_'");
	if (c->host_name && !name_is_plain(c->host_name))
		return err_set(err, ERR_CONFIG, "host name %s", c->host_name);
	if (c->bind_count > BOX_BINDS_MAX || c->tmpfs_count > BOX_TMPFS_MAX ||
	    c->link_count > BOX_LINKS_MAX || c->cgroup_count > BOX_CGROUPS_MAX)
		return err_set(err, ERR_LIMIT, "too many mounts, links or cgroups");
	if (c->mode == BOX_BARE &&
	    (c->bind_count || c->tmpfs_count || c->link_count || c->landlock))
		return err_set(err, ERR_CONFIG, "a bare box has no walls to say anything about");
	if (c->mode == BOX_BARE &&
	    ((c->uid && c->uid != geteuid()) || (c->gid && c->gid != getegid())))
		return err_set(err, ERR_CONFIG, "a bare box cannot be another user's");
	return 0;
}

static int check_targets(const struct box_conf *c, struct err *err)
{
	for (size_t i = 0; i < c->bind_count; i++)
		if (!target_is_plain(c->binds[i].target))
			return err_set(err, ERR_CONFIG, "mount at %s", c->binds[i].target);
	for (size_t i = 0; i < c->tmpfs_count; i++)
		if (!target_is_plain(c->tmpfs[i].target) || c->tmpfs[i].bytes < 4096)
			return err_set(err, ERR_CONFIG, "tmpfs at %s", c->tmpfs[i].target);
	for (size_t i = 0; i < c->link_count; i++)
		if (!target_is_plain(c->links[i].target) || !*c->links[i].text ||
		    strlen(c->links[i].text) >= BOX_PATH_MAX)
			return err_set(err, ERR_CONFIG, "link at %s", c->links[i].target);
	return 0;
}

static void fill_head(const struct box_conf *c, struct box_wire_start *ret)
{
	bool v2 = box_groups_have(c->cgroups, c->cgroup_count, BOX_CGROUP_V2);

	*ret = (struct box_wire_start){
		.ask = BOX_ASK_START,
		.mode = c->mode,
		.uid = c->uid ? c->uid : BOX_NOBODY,
		.gid = c->gid ? c->gid : BOX_NOBODY,
		.bind_count = (uint32_t)c->bind_count,
		.tmpfs_count = (uint32_t)c->tmpfs_count,
		.link_count = (uint32_t)c->link_count,
		.cgroup_count = (uint32_t)c->cgroup_count,
		.filter_len = (uint32_t)c->filter.len,
		.landlock = c->landlock,
		.has_folder = c->mode == BOX_BARE && c->folder >= 0,
		.shm_bytes = c->shm_bytes ? c->shm_bytes : BOX_SHM_DEFAULT,
		.limits = c->limits,
		.memory_in_cgroup =
			v2 || box_groups_have(c->cgroups, c->cgroup_count, BOX_CGROUP_MEMORY),
		.pids_in_cgroup =
			v2 || box_groups_have(c->cgroups, c->cgroup_count, BOX_CGROUP_PIDS),
	};
	for (size_t i = 0; i < c->bind_count; i++) {
		ret->bind_writable[i] = c->binds[i].writable;
		ret->bind_no_exec[i] = c->binds[i].no_exec;
	}
	for (size_t i = 0; i < c->tmpfs_count; i++) {
		ret->tmpfs[i].bytes = c->tmpfs[i].bytes;
		ret->tmpfs[i].mode = c->tmpfs[i].mode ? c->tmpfs[i].mode & 07777 : 01777;
		ret->tmpfs[i].exec = c->tmpfs[i].exec;
	}
}

static void put_word(struct buf *b, const char *word)
{
	buf_put(b, word, strlen(word) + 1);
}

int box_plan_write(const struct box_conf *c, struct buf *ret, struct err *err)
{
	struct box_wire_start head;

	if (check_counts(c, err) < 0 || check_targets(c, err) < 0)
		return -1;
	fill_head(c, &head);
	buf_put(ret, &head, sizeof(head));
	put_word(ret, c->name);
	put_word(ret, c->host_name ? c->host_name : c->name);
	for (size_t i = 0; i < c->bind_count; i++)
		put_word(ret, c->binds[i].target);
	for (size_t i = 0; i < c->tmpfs_count; i++)
		put_word(ret, c->tmpfs[i].target);
	for (size_t i = 0; i < c->link_count; i++) {
		put_word(ret, c->links[i].target);
		put_word(ret, c->links[i].text);
	}
	buf_put(ret, c->filter.at ? c->filter.at : "", c->filter.len);
	return buf_spent(ret) ? err_set(err, ERR_LIMIT, "a conf that is too long") : 0;
}

static int read_words(const char *at, const char *end, struct box_plan *p)
{
	const struct box_wire_start *h = &p->head;
	bool whole = true;

	p->name = box_word(&at, end);
	p->host_name = box_word(&at, end);
	whole = p->name && p->host_name;
	for (size_t i = 0; i < h->bind_count; i++) {
		p->binds[i].target = box_word(&at, end);
		p->binds[i].writable = h->bind_writable[i];
		p->binds[i].no_exec = h->bind_no_exec[i];
		whole = whole && p->binds[i].target;
	}
	for (size_t i = 0; i < h->tmpfs_count; i++) {
		p->tmpfs[i] = (struct box_tmpfs){box_word(&at, end), h->tmpfs[i].bytes,
						 h->tmpfs[i].mode, h->tmpfs[i].exec};
		whole = whole && p->tmpfs[i].target;
	}
	for (size_t i = 0; i < h->link_count; i++) {
		p->links[i].target = box_word(&at, end);
		p->links[i].text = box_word(&at, end);
		whole = whole && p->links[i].target && p->links[i].text;
	}
	p->filter = (struct span){at, h->filter_len};
	return whole && (size_t)(end - at) == h->filter_len ? 0 : -1;
}

int box_plan_read(const char *bytes, size_t len, const int *fds, size_t count, struct box_plan *ret,
		  struct err *err)
{
	struct box_wire_start *h = &ret->head;
	size_t next = 2;

	if (len < sizeof(*h))
		return err_set(err, ERR_INPUT, "a short message");
	memcpy(h, bytes, sizeof(*h));
	if (h->mode > BOX_BARE || h->bind_count > BOX_BINDS_MAX || h->tmpfs_count > BOX_TMPFS_MAX ||
	    h->link_count > BOX_LINKS_MAX || h->cgroup_count > BOX_CGROUPS_MAX ||
	    h->has_folder > 1 || count != 2 + h->has_folder + h->bind_count + h->cgroup_count ||
	    read_words(bytes + sizeof(*h), bytes + len, ret) < 0)
		return err_set(err, ERR_INPUT, "a message that is not one");
	ret->commands = fds[0];
	ret->events = fds[1];
	ret->folder = h->has_folder ? fds[next++] : -1;
	for (size_t i = 0; i < h->bind_count; i++)
		ret->binds[i].fd = fds[next++];
	for (size_t i = 0; i < h->cgroup_count; i++)
		ret->cgroups[i] = fds[next++];
	return 0;
}
