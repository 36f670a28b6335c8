/*
 * What the kernel says of a process: see resolve.h.  Everything is read by
 * descriptors below one of /proc/PID, so that all of it is of one process, and
 * the start time is read before and after, so that it is of the one that was meant.
 */
#include "proxy/process_priv.h"

#include "gate/base/auto.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/base/jv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define ANSWER_MAX 60000 /* bytes; fits into one frame with room to spare */
#define LOOK_MS    250   /* for one question, between two calls of the kernel */
#define TEXT_MAX   16384 /* bytes of a small file */
#define LABEL_MAX  200

void process_unknown(struct look *l, const char *what)
{
	if (l->unknown_count < PROCESS_UNKNOWN_MAX)
		l->unknown[l->unknown_count++] = what;
}

bool process_in_time(const struct look *l)
{
	return clock_boot_ms() < l->until_ms;
}

/* The whole file, if it is no longer than max; false: it cannot be read. */
bool process_read(int dir, const char *name, size_t max, struct buf *ret)
{
	auto_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	struct err err = {0};

	buf_init(ret, 0);
	return fd >= 0 && io_read_fd(fd, max, ret, &err) == 0;
}

void process_text(struct buf *out, const char *key, struct span value)
{
	buf_printf(out, ",\"%s\":", key);
	jv_write_str(out, value);
}

void process_inode(struct buf *out, const struct stat *st)
{
	buf_printf(out, ",\"dev\":\"%u:%u\",\"ino\":%lld", major(st->st_dev), minor(st->st_dev),
		   (long long)st->st_ino);
}

/* --- the question --- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A path with %XX; false: it is none. */
static bool decode(struct span text, char *out, size_t size)
{
	size_t used = 0;

	if (!text.len || text.at[0] != '/')
		return false;
	while (text.len) {
		char c = text.at[0];
		size_t taken = 1;

		if (c == '%') {
			int high = text.len > 2 ? hex_digit(text.at[1]) : -1;
			int low = text.len > 2 ? hex_digit(text.at[2]) : -1;

			if (high < 0 || low < 0)
				return false;
			c = (char)(high * 16 + low);
			taken = 3;
		}
		if (!c || used + 1 >= size)
			return false;
		out[used++] = c;
		text = span_skip(text, taken);
	}
	out[used] = '\0';
	return true;
}

bool process_is_id(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!((s.at[i] >= '0' && s.at[i] <= '9') || (s.at[i] >= 'a' && s.at[i] <= 'f')))
			return false;
	return s.len == 64;
}

bool process_parse_pid(struct span s, pid_t *ret)
{
	long n = 0;

	if (!s.len || s.len > 9)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.at[i] < '0' || s.at[i] > '9')
			return false;
		n = n * 10 + (s.at[i] - '0');
	}
	*ret = (pid_t)n;
	return n > 1;
}

bool process_cut_word(struct span *rest, const char *word, struct span *ret)
{
	if (!span_cut(rest, '\n', ret) || !span_starts(*ret, word))
		return false;
	*ret = span_skip(*ret, strlen(word));
	return true;
}

static bool read_question(struct span text, struct look *l)
{
	struct span line;

	if (!process_cut_word(&text, "pid ", &line) || !process_parse_pid(line, &l->pid) ||
	    !process_cut_word(&text, "id ", &l->id) || (l->id.len && !process_is_id(l->id)) ||
	    !process_cut_word(&text, "runtime ", &line) ||
	    (line.len && !decode(line, l->runtime, sizeof(l->runtime))))
		return false;
	l->files = text;
	for (size_t n = 0; text.len; n++)
		if (n == PROCESS_FILES_MAX || !process_cut_word(&text, "file ", &line))
			return false;
	return true;
}

/* --- who it is --- */

bool process_read_start(int dir, uint64_t *ret)
{
	struct buf text;
	bool fine = process_read(dir, "stat", TEXT_MAX, &text) &&
		    procfs_start_time(buf_span(&text), ret);

	buf_fini(&text);
	return fine;
}

static void say_status(struct look *l, struct buf *out)
{
	const struct procfs_status *s = &l->status;
	struct buf text;

	l->has_status = process_read(l->dir, "status", TEXT_MAX, &text) &&
			procfs_status(buf_span(&text), &l->status);
	buf_fini(&text);
	if (!l->has_status) {
		process_unknown(l, "status");
		return;
	}
	buf_printf(out, ",\"uid\":%u,\"gid\":%u,\"depth\":%u,\"seccomp\":%d,\"no_new_privs\":%s",
		   s->uid, s->gid, s->depth, s->seccomp, s->no_new_privs ? "true" : "false");
	if (s->filters >= 0)
		buf_printf(out, ",\"filters\":%d", s->filters);
	buf_printf(out,
		   ",\"caps\":{\"inh\":\"%llx\",\"prm\":\"%llx\",\"eff\":\"%llx\","
		   "\"bnd\":\"%llx\",\"amb\":\"%llx\"}",
		   (unsigned long long)s->cap_inh, (unsigned long long)s->cap_prm,
		   (unsigned long long)s->cap_eff, (unsigned long long)s->cap_bnd,
		   (unsigned long long)s->cap_amb);
}

/* Numbers and blanks, so only the blanks are made one. */
static void say_uid_map(struct look *l, struct buf *out)
{
	struct buf text;
	char map[LABEL_MAX];
	size_t used = 0;

	if (!process_read(l->dir, "uid_map", TEXT_MAX, &text)) {
		process_unknown(l, "uid_map");
		return;
	}
	for (struct span s = buf_span(&text); s.len && used + 1 < sizeof(map);
	     s = span_skip(s, 1)) {
		bool blank = *s.at == ' ' || *s.at == '\n';

		if (!blank || (used && map[used - 1] != ' '))
			map[used++] = blank ? ' ' : *s.at;
	}
	while (used && map[used - 1] == ' ')
		used--;
	process_text(out, "uid_map", (struct span){map, used});
	buf_fini(&text);
}

/* Of the host is what this process or the first one has. */
static void say_namespaces(struct look *l, struct buf *out)
{
	static const struct {
		const char *name, *file, *unknown;
	} all[] = {
		{"user", "ns/user", "namespaces.user"},       {"mnt", "ns/mnt", "namespaces.mnt"},
		{"pid", "ns/pid", "namespaces.pid"},          {"net", "ns/net", "namespaces.net"},
		{"ipc", "ns/ipc", "namespaces.ipc"},          {"uts", "ns/uts", "namespaces.uts"},
		{"cgroup", "ns/cgroup", "namespaces.cgroup"},
	};
	const char *between = "";

	buf_puts(out, ",\"namespaces\":{");
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		char own[32], first[32];
		struct stat its, ours, firsts;
		bool host;

		snprintf(own, sizeof(own), "/proc/self/%s", all[i].file);
		snprintf(first, sizeof(first), "/proc/1/%s", all[i].file);
		if (fstatat(l->dir, all[i].file, &its, 0) < 0 ||
		    fstatat(AT_FDCWD, own, &ours, 0) < 0) {
			process_unknown(l, all[i].unknown);
			continue;
		}
		host = its.st_ino == ours.st_ino ||
		       (fstatat(AT_FDCWD, first, &firsts, 0) == 0 && its.st_ino == firsts.st_ino);
		buf_printf(out, "%s\"%s\":{\"ino\":%lld,\"host\":%s}", between, all[i].name,
			   (long long)its.st_ino, host ? "true" : "false");
		between = ",";
	}
	buf_puts(out, "}");
}

static void say_label(struct look *l, struct buf *out)
{
	struct buf text;
	struct span s;

	/* Without a security module there is none, and the file cannot be read. */
	if (!process_read(l->dir, "attr/current", TEXT_MAX, &text))
		return;
	s = buf_span(&text);
	while (s.len && (s.at[s.len - 1] == '\n' || s.at[s.len - 1] == '\0'))
		s.len--;
	s.len = s.len < LABEL_MAX ? s.len : LABEL_MAX;
	if (s.len)
		process_text(out, "label", s);
	buf_fini(&text);
}

/* --- files of the host --- */

static void say_files(const struct look *l, struct buf *out)
{
	struct span rest = l->files, line;
	const char *between = "";

	buf_puts(out, ",\"files\":[");
	while (process_cut_word(&rest, "file ", &line)) {
		char path[PATH_MAX];
		struct stat st;

		if (!decode(line, path, sizeof(path)) || !process_in_time(l) ||
		    fstatat(AT_FDCWD, path, &st, 0) < 0)
			continue;
		buf_printf(out, "%s{\"path\":", between);
		jv_write_str(out, span_of(path));
		process_inode(out, &st);
		buf_puts(out, "}");
		between = ",";
	}
	buf_puts(out, "]");
}

/* --- together --- */

static void say_unknown(const struct look *l, struct buf *out)
{
	buf_puts(out, ",\"unknown\":[");
	for (size_t i = 0; i < l->unknown_count; i++)
		buf_printf(out, "%s\"%s\"", i ? "," : "", l->unknown[i]);
	buf_puts(out, "]}");
}

static void say_seen(struct look *l, struct buf *out)
{
	buf_printf(out, "{\"state\":\"seen\",\"pid\":%d,\"start\":%llu", (int)l->pid,
		   (unsigned long long)l->start);
	say_status(l, out);
	say_uid_map(l, out);
	say_namespaces(l, out);
	say_label(l, out);
	process_say_program(l, out);
	process_say_cgroup(l, out);
	process_say_mounts(l, out);
	say_files(l, out);
	say_unknown(l, out);
}

static const char *look_at(struct look *l, struct buf *out)
{
	char path[32];
	uint64_t again;

	snprintf(path, sizeof(path), "/proc/%d", (int)l->pid);
	l->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (l->dir < 0)
		return errno == ENOENT ? "gone" : "unknown";
	if (!process_read_start(l->dir, &l->start))
		return "gone";
	say_seen(l, out);
	if (!process_read_start(l->dir, &again) || again != l->start)
		return "gone";
	return buf_spent(out) ? "unknown" : "seen";
}

void resolve_process(struct span question, struct buf *ret)
{
	struct look l = {.dir = -1, .until_ms = clock_boot_ms() + LOOK_MS};
	const char *state = "unknown";
	struct buf out;

	buf_init(&out, ANSWER_MAX);
	if (read_question(question, &l))
		state = look_at(&l, &out);
	if (strcmp(state, "seen") == 0)
		buf_put(ret, buf_span(&out).at, buf_len(&out));
	else
		buf_printf(ret, "{\"state\":\"%s\"}", state);
	buf_fini(&out);
	if (l.dir >= 0)
		close(l.dir);
}
