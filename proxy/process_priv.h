/*
 * process_priv.h - one look at a process, shared by the files that make the answer.
 *
 *	process.c          the question, who the process is, its namespaces
 *	process_runtime.c  its program and arguments, its control groups
 *	process_mounts.c   what is mounted where it lives
 *	process_caller.c   another question: which container a caller may be in
 */
#ifndef PROXY_PROCESS_PRIV_H
#define PROXY_PROCESS_PRIV_H

#include "gate/base/buf.h"
#include "proxy/procfs.h"
#include "proxy/resolve.h"

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

#define PROCESS_UNKNOWN_MAX 24

struct look {
	/* the question */
	pid_t pid;
	struct span id;         /* the container's; empty if it is not known */
	char runtime[PATH_MAX]; /* "" if the engine does not say */
	struct span files;

	int dir; /* /proc/PID */
	uint64_t start, until_ms;
	bool has_status;
	struct procfs_status status;
	struct stat program; /* of the runtime, on the host */
	bool is_runtime;     /* the process runs that very file */
	bool in_cgroup;      /* its control group is named like the container */
	const char *unknown[PROCESS_UNKNOWN_MAX];
	size_t unknown_count;
};

void process_unknown(struct look *l, const char *what); /* what is not copied */
bool process_in_time(const struct look *l);
bool process_read(int dir, const char *name, size_t max, struct buf *ret); /* ret: to be ended */
void process_text(struct buf *out, const char *key, struct span value);
void process_inode(struct buf *out, const struct stat *st);

/* Of questions: a pid above 1; a container's full id; a line that begins with the word. */
bool process_parse_pid(struct span s, pid_t *ret);
bool process_is_id(struct span s);
bool process_cut_word(struct span *rest, const char *word, struct span *ret);

/* When it was started; false: it has ended, or cannot be read.  dir: its folder in /proc. */
bool process_read_start(int dir, uint64_t *ret);

void process_say_program(struct look *l, struct buf *out);
void process_say_cgroup(struct look *l, struct buf *out);
void process_say_mounts(struct look *l, struct buf *out);

/*
 * Whether dir (/proc/N of another process) is gVisor's gofer for this container:
 * the runtime's program, told to be one, with the container's id.
 */
bool process_is_gofer(const struct look *l, int dir);

#endif
