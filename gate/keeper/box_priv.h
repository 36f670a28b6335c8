/*
 * box_priv.h - what keeper, launcher and init say to each other, and the steps of an init.
 *
 * All three are the same executable of the same user.  Messages go over SOCK_SEQPACKET, a message
 * each; the numbers in them are in host order.
 */
#ifndef GATE_KEEPER_BOX_PRIV_H
#define GATE_KEEPER_BOX_PRIV_H

#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/keeper/box.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BOX_NAME_MAX     72
#define BOX_MESSAGE_MAX  (BOX_WORDS_MAX + 16384) /* the kernel sends such a piece without ado */
#define BOX_FDS_MAX      (BOX_BINDS_MAX + BOX_CGROUPS_MAX + 3)
#define BOX_BOXES_MAX    1024 /* of one launcher */
#define BOX_NOBODY       65534
#define BOX_PIDS_DEFAULT 512
#define BOX_OPEN_DEFAULT 1024
#define BOX_SHM_DEFAULT  (UINT64_C(64) << 20)
#define BOX_ANSWER_MS    10000 /* for whatever one of the three asks another */

/* keeper → launcher */
enum box_ask {
	BOX_ASK_START = 1, /* struct box_wire_start and its parts; descriptors: see there */
	BOX_ASK_LAYERS,    /* struct box_wire_ask; descriptor: where the answer goes */
};

struct box_wire_ask {
	uint32_t ask;
};

/*
 * Behind it, each ending with NUL: name, host name; then targets of binds, targets of tmpfs,
 * target and text of each link; then the filter.  Descriptors: commands, events, the folder if
 * there is one, a bind each, cgroup.procs of each cgroup.
 */
struct box_wire_start {
	uint32_t ask;
	uint32_t mode;
	uint32_t uid, gid;
	uint32_t bind_count, tmpfs_count, link_count, cgroup_count, filter_len, landlock;
	uint32_t has_folder;
	uint8_t bind_writable[BOX_BINDS_MAX], bind_no_exec[BOX_BINDS_MAX];
	struct {
		uint64_t bytes;
		uint32_t mode, exec;
	} tmpfs[BOX_TMPFS_MAX];
	uint64_t shm_bytes;
	struct box_limits limits;
	uint32_t memory_in_cgroup; /* then address spaces are not limited as well */
	uint32_t pids_in_cgroup;
};

/* What a start asks for, as the init sees it; strings point into the message. */
struct box_plan {
	struct box_wire_start head;
	const char *name, *host_name;
	struct box_bind binds[BOX_BINDS_MAX];
	struct box_tmpfs tmpfs[BOX_TMPFS_MAX];
	struct box_link links[BOX_LINKS_MAX];
	int cgroups[BOX_CGROUPS_MAX];
	int commands, events, folder;
	struct span filter;
	uid_t outer_uid; /* who the launcher is: behind the clone() nobody knows */
	gid_t outer_gid;
};

/* launcher, init → keeper, over the socket of events */
enum box_event_kind {
	BOX_EVENT_STARTED = 1, /* by the launcher: id is the pid of the init */
	BOX_EVENT_ENDED,       /* status of the command with that id */
	BOX_EVENT_GONE,        /* by the launcher: nothing is left */
};

struct box_event {
	uint32_t kind, id;
	int32_t status; /* as of wait() */
};

/* keeper → init, over the socket of commands; an answer each */
enum box_order_kind {
	BOX_ORDER_SPAWN = 1, /* behind it: argv, env, each word ending with NUL, then cwd */
	BOX_ORDER_SIGNAL,
};

struct box_order {
	uint32_t kind, id;
	uint32_t argc, envc, has_cwd;
	uint32_t tty;
	uint16_t rows, cols;
	int32_t signo;
};

/* The first answer of an init says that the walls stand; its descriptor is the root. */
struct box_answer {
	int32_t sys;    /* errno, or 0 */
	uint32_t error; /* enum err_kind, ERR_NONE: done */
	int32_t pid;
	char text[200]; /* what failed */
};

/* box_wire.c.  Messages with descriptors; what is received is close-on-exec and the caller's. */
int box_pair(int ret[2], struct err *err);
int box_send(int sock, struct span head, struct span body, const int *fds, size_t count,
	     struct err *err);
/* Bytes, 0: the other side is gone, -1. */
ssize_t box_recv(int sock, void *bytes, size_t size, int *fds, size_t *ret_count, struct err *err);
/* The string that begins at *at; NULL: there is none before end. */
const char *box_word(const char **at, const char *end);
int box_plan_write(const struct box_conf *c, struct buf *ret, struct err *err);
int box_plan_read(const char *bytes, size_t len, const int *fds, size_t count, struct box_plan *ret,
		  struct err *err);

/* box_env.c */
int box_env_check(const char *const *env, bool loader, struct err *err);

/* box_init.c.  In a process of its own, pid 1 if the mode says so; never returns. */
struct box_filters {
	struct buf list, floor;
};
void box_init_run(const struct box_plan *p, const struct box_filters *f) __attribute__((noreturn));

/*
 * What a bare box has instead of a pid namespace: a parent of its init, out of reach for its
 * commands where the kernel can do that, which kills what the init leaves.  Exits with 0 if nothing
 * is left.
 */
void box_guard_run(const struct box_plan *p, const struct box_filters *f) __attribute__((noreturn));

/* Of a bare one, too: it gets the time to kill what is below it. */
void box_die_with_launcher(const struct box_plan *p);

/* box_walls.c, box_root.c: the steps, in their order; each of them once, in the init. */
int box_ids_map(const struct box_plan *p, struct err *err);
int box_cgroups_join(const struct box_plan *p, struct err *err);
int box_names_set(const struct box_plan *p, struct err *err);
int box_loopback_up(struct err *err);
int box_root_build(const struct box_plan *p, struct err *err);
int box_powers_end(bool all, struct err *err);
int box_paths_close(const struct box_plan *p, struct err *err);
int box_limits_set(const struct box_plan *p, struct err *err); /* in each command */

/* box_mounts.c: single mounts, by descriptors.  All close-on-exec; -1 on failure. */
int box_mount_tmpfs(const char *what, uint64_t bytes, mode_t mode, struct err *err);
int box_mount_new(const char *type, const char *option, const char *value, struct err *err);
int box_mount_copy(int fd, const char *what, struct err *err);
int box_mount_set(int fd, uint64_t attributes, bool below, const char *what, struct err *err);
int box_mount_put(int mount, int place, const char *what, struct err *err);

/* box_spawn.c: forks a command of the init, which has /dev/null for its own stdio. */
struct box_forking {
	const struct box_plan *plan;
	const struct box_filters *filters;
	const struct box_order *order;
	const char *words; /* behind the order */
	size_t len;
	const int *fds; /* three for stdio, or none */
	size_t fd_count;
};
struct box_spawned {
	pid_t pid;
	int tty; /* or -1 */
};
int box_fork(const struct box_forking *f, struct box_spawned *ret, struct err *err);

/*
 * box_tree.c: sends to every descendant of a process, without new ones if it is SIGKILL; spare: a
 * child that is left out with all below it, asked for each of root's own children.
 */
typedef bool box_spare_fn(const void *arg, pid_t child);
unsigned box_tree_signal(pid_t root, int signo, box_spare_fn *spare, const void *arg);

/* box_cgroup.c: the folders of one box; on the keeper's side. */
struct box_group {
	enum box_controller controller;
	int parent, folder, procs;
};
struct box_groups {
	char name[BOX_NAME_MAX];
	struct box_group of[BOX_CGROUPS_MAX];
	size_t count;
};
int box_groups_make(const struct box_conf *c, struct box_groups *ret, struct err *err);
/* Kills what is in them, removes and closes them. */
int box_groups_end(struct box_groups *g, struct err *err);
bool box_groups_oom(const struct box_groups *g);
void box_groups_use(const struct box_groups *g, struct box_use *ret);
bool box_groups_have(const struct box_cgroup *cgroups, size_t count, enum box_controller c);

/* box_layers.c: in a process that has one thread and no filter. */
size_t box_layers_probe(struct box_layer out[BOX_LAYERS_MAX]);

#endif
