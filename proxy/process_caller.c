/*
 * Which container a caller may be in: see resolve_caller().  What is read of a
 * process that somebody else may have replaced meanwhile does not count: its
 * start time is read before and after.
 */
#include "proxy/process_priv.h"

#include "gate/base/jv.h"
#include "proxy/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define TEXT_MAX 16384 /* bytes of a small file */

/* What is read of one process. */
struct seen {
	int dir; /* its folder in /proc; -1: there is none */
	uint64_t start;
	struct procfs_status status;
	ino_t pid_ns;
	struct buf groups; /* the text of its control groups */
};

static bool read_status(struct seen *s)
{
	struct buf text;
	bool fine = process_read(s->dir, "status", TEXT_MAX, &text) &&
		    procfs_status(buf_span(&text), &s->status);

	buf_fini(&text);
	return fine;
}

/* "seen", "gone" or "unknown". */
static const char *see(pid_t pid, struct seen *s)
{
	char path[32];
	uint64_t again;
	struct stat ns;

	buf_init(&s->groups, 0);
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	s->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0)
		return errno == ENOENT ? "gone" : "unknown";
	if (!process_read_start(s->dir, &s->start))
		return "gone";
	if (!read_status(s) || fstatat(s->dir, "ns/pid", &ns, 0) < 0 ||
	    !process_read(s->dir, "cgroup", TEXT_MAX, &s->groups))
		return "unknown";
	s->pid_ns = ns.st_ino;
	return process_read_start(s->dir, &again) && again == s->start ? "seen" : "gone";
}

static void forget(struct seen *s)
{
	if (s->dir >= 0)
		close(s->dir);
	s->dir = -1;
	buf_fini(&s->groups);
}

/* False also where it cannot be told. */
static bool is_own_pid_ns(const struct seen *s)
{
	struct stat own;

	return fstatat(AT_FDCWD, "/proc/self/ns/pid", &own, 0) == 0 && own.st_ino == s->pid_ns;
}

/*
 * Groups alone would do, since nobody gets into those of another container
 * who may not write to the host's; the namespace is a second proof of another kind.
 */
static bool are_together(const struct seen *caller, const struct seen *init, struct span id)
{
	return cgroup_within(buf_span(&caller->groups), buf_span(&init->groups), id) &&
	       (caller->pid_ns == init->pid_ns || is_own_pid_ns(init));
}

/* Whether the caller is in the container whose first process that is. */
static bool is_with(const struct seen *caller, pid_t pid, struct span id)
{
	struct seen init = {.dir = -1};
	bool together = strcmp(see(pid, &init), "seen") == 0 && are_together(caller, &init, id);

	forget(&init);
	return together;
}

static void say_place(const struct seen *s, struct buf *out)
{
	struct cgroup_ids ids;
	enum cgroup_place place = cgroup_containers(buf_span(&s->groups), &ids);

	/* A container whose groups are not named like one is a place that we do not know. */
	if (place == CGROUP_OUTSIDE && !is_own_pid_ns(s))
		place = CGROUP_UNKNOWN;
	buf_printf(out, ",\"place\":\"%s\",\"ids\":[",
		   place == CGROUP_INSIDE    ? "inside"
		   : place == CGROUP_OUTSIDE ? "outside"
					     : "unknown");
	for (size_t i = 0; place == CGROUP_INSIDE && i < ids.count; i++)
		buf_printf(out, "%s\"%.*s\"", i ? "," : "", SPAN_FMT(ids.id[i]));
	buf_puts(out, "]");
}

struct asked {
	pid_t pid, init; /* init: 0 if it is not asked for */
	struct span id;
};

static bool read_question(struct span text, struct asked *ret)
{
	struct span line;

	*ret = (struct asked){.init = 0};
	if (!process_cut_word(&text, "caller ", &line) || !process_parse_pid(line, &ret->pid))
		return false;
	if (!text.len)
		return true;
	return process_cut_word(&text, "init ", &line) && process_parse_pid(line, &ret->init) &&
	       process_cut_word(&text, "id ", &ret->id) && process_is_id(ret->id) && !text.len;
}

static void say(const struct seen *s, const struct asked *q, struct buf *out)
{
	buf_printf(out, "{\"state\":\"seen\",\"start\":%llu,\"uid\":%u,\"gid\":%u",
		   (unsigned long long)s->start, s->status.uid, s->status.gid);
	say_place(s, out);
	if (q->init)
		buf_printf(out, ",\"together\":%s", is_with(s, q->init, q->id) ? "true" : "false");
	buf_puts(out, "}");
}

void resolve_caller(struct span question, struct buf *ret)
{
	struct seen s = {.dir = -1};
	const char *state = "unknown";
	struct asked q;
	struct buf out;
	uint64_t again;

	buf_init(&out, 4096);
	if (read_question(question, &q)) {
		state = see(q.pid, &s);
		if (strcmp(state, "seen") == 0) {
			say(&s, &q, &out);
			/* Still the same, now that all else was looked at. */
			if (!process_read_start(s.dir, &again) || again != s.start)
				state = "gone";
		}
		forget(&s);
	}
	if (strcmp(state, "seen") == 0 && !buf_spent(&out))
		buf_put(ret, buf_span(&out).at, buf_len(&out));
	else
		buf_printf(ret, "{\"state\":\"%s\"}", state);
	buf_fini(&out);
}
