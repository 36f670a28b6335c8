/*
 * box.h - one local sandbox: a process that owns everything that runs in it.
 *
 * Three processes take part.  The keeper, which calls what stands here, never forks: it asks the
 * launcher, a small single-threaded process (`sallyport box-launch`, not in the help) that has no
 * system call filter, since filters are inherited and what runs in a box needs far more calls than
 * the keeper.  The launcher forks the init of each box, which builds the walls, is pid 1 behind
 * them (BOX_CONFINED), and starts the commands.
 *
 *	keeper ──start──► launcher ──clone──► init (pid 1) ──fork──► command
 *	   └───────────── commands, ends ──────┘
 *
 * When the keeper lets a box go, dies, or the launcher or the init dies, everything of the box is
 * killed, whatever it forked and however often it called setsid().
 *
 * BOX_CONFINED gives the level "process": user, mount, pid, net, ipc, uts and cgroup namespaces, a
 * root of its own that shows nothing but what the conf names, Landlock over the same paths, system
 * call filters, no capabilities, no_new_privs.  If one of them cannot be had, the box does not
 * start; nothing is left out silently.  BOX_BARE gives the level "none": limits, and an end.
 *
 * All functions may be called from any thread; a box may be used by several at once, but box_end()
 * is the last call.
 */
#ifndef GATE_KEEPER_BOX_H
#define GATE_KEEPER_BOX_H

#include "gate/base/err.h"
#include "gate/base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum box_mode {
	BOX_CONFINED = 0,
	BOX_BARE,
};

/*
 * The launcher.
 *
 * box_launcher_start() executes the running program as a launcher and gives the socket to it,
 * close-on-exec; the launcher ends when the last copy of that socket is closed.  Whoever calls it
 * must not have a system call filter, and must be the user that boxes run as (not root).
 * bare: whether it will start boxes of that mode at all.
 */
#define BOX_LAUNCH_VERB "box-launch"

int box_launcher_start(bool bare, pid_t *ret_pid, struct err *err); /* the socket, or -1 */

/*
 * What main() does for that verb, first of all: the socket is descriptor 0, and stderr is the only
 * other one that is kept.
 */
int box_launcher_main(int argc, char **argv);

/* What this host gives and what it does not, as the launcher found by trying. */
#define BOX_LAYERS_MAX 24

struct box_layer {
	char name[24];
	bool there;
	bool required; /* BOX_CONFINED refuses without it */
	char why[120]; /* what it is good for, or what the kernel said */
};

/* Fills out[0..ret_count); 0, or -1 if the launcher did not answer. */
int box_layers(int launcher, struct box_layer out[BOX_LAYERS_MAX], size_t *ret_count,
	       struct err *err);

/* The first required layer that is missing, as one line; 0: none is.  1: ret is written. */
int box_missing(int launcher, char *ret, size_t size, struct err *err);

/*
 * A box.
 */
#define BOX_BINDS_MAX   64
#define BOX_TMPFS_MAX   16
#define BOX_LINKS_MAX   16
#define BOX_CGROUPS_MAX 6
#define BOX_PATH_MAX    1024
#define BOX_WORDS_MAX   131072 /* bytes of argv and env of one command in sum */

/* A file or folder of the host; the box sees it at target.  Always nosuid and nodev. */
struct box_bind {
	int fd; /* O_PATH; stays the caller's */
	const char *target;
	bool writable, no_exec;
};

struct box_tmpfs {
	const char *target;
	uint64_t bytes; /* at least a page; there is no tmpfs without a cap */
	mode_t mode;    /* 0: 01777 */
	bool exec;
};

/* A symbolic link in the box's root, as "/bin" to "usr/bin". */
struct box_link {
	const char *target, *text;
};

enum box_controller {
	BOX_CGROUP_V2 = 0, /* one folder for all */
	BOX_CGROUP_MEMORY, /* v1: a folder of each hierarchy */
	BOX_CGROUP_PIDS,
	BOX_CGROUP_CPU,
	BOX_CGROUP_FREEZER,
};

/* A folder in which this process may make folders for boxes. */
struct box_cgroup {
	enum box_controller controller;
	int fd; /* stays the caller's */
};

/* 0: no limit, or where the text says so, a default. */
struct box_limits {
	uint64_t memory; /* bytes; with a cgroup of the whole box, without of each process (address
			    space) */
	uint64_t swap;   /* bytes beyond memory, where the cgroup counts it; else none */
	uint64_t cpu_milli;   /* thousandths of one CPU; only with a cgroup */
	uint64_t pids;        /* 0: 512 */
	uint64_t file_bytes;  /* one file */
	uint64_t open_files;  /* 0: 1024 */
	uint64_t cpu_seconds; /* of each process */
};

struct box_conf {
	enum box_mode mode;
	const char *name;      /* letters, digits, '-', '_'; names the cgroup folders; unique */
	const char *host_name; /* NULL: name */
	uid_t uid;             /* inside; 0: 65534.  BOX_BARE: 0, or who the launcher is */
	gid_t gid;

	/* BOX_CONFINED.  Made in this order: binds and tmpfs after their parents. */
	const struct box_bind *binds;
	size_t bind_count;
	const struct box_tmpfs
		*tmpfs; /* after the binds; /dev, /dev/shm and /proc are made anyhow */
	size_t tmpfs_count;
	const struct box_link *links;
	size_t link_count;
	uint64_t shm_bytes; /* 0: 64 MiB */
	struct span filter; /* BPF for commands, beside the floor that always holds; empty: the
			       built-in list.  BOX_BARE: only if it is given, and no floor */
	unsigned landlock;  /* the least ABI that will do; 0: as much as there is */

	/* BOX_BARE: the folder that commands start in; -1: "/". */
	int folder;

	const struct box_cgroup *cgroups;
	size_t cgroup_count;
	struct box_limits limits;
};

/*
 * What of the limits will not be kept as they are written, for want of cgroups, as one line: 1 and
 * ret is written; 0: all are.
 */
int box_unkept(const struct box_conf *conf, char *ret, size_t size);

struct box;

/*
 * Starts a box without any command.  Returns when its walls stand.  NULL: nothing is left behind;
 * ERR_CONFIG: the conf says what cannot be; ERR_SYSTEM: this host lacks something, the message says
 * what.
 */
struct box *box_start(int launcher, const struct box_conf *conf, struct err *err);

/*
 * BOX_CONFINED: the root of the box as its commands see it, for the fence; belongs to the box.
 * BOX_BARE: -1.
 */
int box_root(const struct box *b);

/* The init as the caller's pid namespace sees it. */
pid_t box_pid(const struct box *b);

struct box_command {
	const char *const
		*argv; /* ends with NULL; a name without '/' is looked for in PATH of env */
	const char *const *env; /* ends with NULL; exactly what the command sees; "NAME=value" */
	const char *cwd;        /* absolute; NULL: "/" or the folder */
	int stdio[3];           /* -1: /dev/null; not with tty */
	bool tty;               /* the master side comes back */
	uint16_t rows, cols;
	bool loader_env; /* lets LD_PRELOAD and its like pass; box_env.def has those that are
			    refused */
};

/* Of one box. */
struct box_child {
	uint32_t id; /* from 1 on, never again */
	pid_t pid;   /* as the box sees it (BOX_CONFINED), or the host */
	int tty;     /* master side, close-on-exec, the caller's; -1 without */
};

/*
 * Runs a command.  0: it was executed.  ERR_INPUT: the command is not one (no argv, a refused
 * variable); ERR_LIMIT: too many words, or too many commands at once (BOX_COMMANDS_MAX);
 * ERR_SYSTEM: sys is what execve() or chdir() said, ENOENT if there is no such program.
 */
#define BOX_COMMANDS_MAX 256

int box_spawn(struct box *b, const struct box_command *c, struct box_child *ret, struct err *err);

/* Readable when something ended; belongs to the box, for poll() only. */
int box_fd(const struct box *b);

struct box_exit {
	uint32_t id; /* 0: the box itself is gone, and nothing else will come */
	int code;    /* exit status, or -1 */
	int signal;  /* or 0 */
	bool oom;    /* the box's memory limit has killed something so far */
};

/* The next end.  1: ret is written; 0: none now. */
int box_next_exit(struct box *b, struct box_exit *ret);

/* id 0: every process of the box but its init.  ESRCH (sys) if the command has ended. */
int box_signal(struct box *b, uint32_t id, int signo, struct err *err);

/* What it uses now, as far as cgroups tell; what is not known is UINT64_MAX. */
struct box_use {
	uint64_t memory, memory_peak, pids, cpu_ns;
};
void box_use(const struct box *b, struct box_use *ret);

/*
 * Kills everything of the box, waits until nothing is left, removes its cgroup folders, frees b.
 * NULL is allowed.  -1: something could not be removed within ten seconds; b is freed anyhow.
 */
int box_end(struct box *b, struct err *err);

/*
 * After a keeper's death: removes the cgroup folders whose names begin with this, and kills what is
 * in them.  Returns how many there were.
 */
int box_clean(const struct box_cgroup *cgroups, size_t count, const char *prefix, struct err *err);

#endif
