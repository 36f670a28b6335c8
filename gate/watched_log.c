/*
 * What the log says of the time before this start: up to when each engine was watched, and
 * what was decided since.  It is read by a process with the auditor's user, before there is
 * an auditor; of a log that is damaged that one tells.
 */
#include "gate/watched_log.h"

#include "audit/fields.h"
#include "gate/base/auto.h"
#include "gate/base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENTS 2 /* the newest; a sum comes once a minute */
/* Of decisions before the last sum, whose events came behind it. */
#define BEFORE_BYTES (64u << 10)
#define PIECE        ((size_t)1 << 20) /* is searched at a time */
/* Of a segment, from its end: a sum comes each minute. */
#define LOOK_BACK ((size_t)1 << 30)
/* Decisions of a segment that has no sum are read from so far before its end. */
#define WITHOUT_SUM ((size_t)16 << 20)
#define ARENA_BYTES ((size_t)4 << 20)

struct reading {
	struct watched *watched;
	const struct proxy_conf *conf;
	struct arena *arena;
};

static bool backend_of(const struct reading *r, const struct jv *line, size_t *ret)
{
	const char *name = jv_str(line, "backend", "");

	for (size_t i = 0; i < r->conf->backend_count && i < WATCHED_BACKENDS; i++)
		if (strcmp(r->conf->backends[i].name, name) == 0) {
			*ret = i;
			return true;
		}
	return false;
}

static void take_sum(const struct reading *r, const struct jv *line)
{
	uint64_t to = fields_time(jv_str(line, "to", ""));
	size_t backend;

	if (backend_of(r, line, &backend) && to > watched_of(r->watched, backend)->last_ns)
		watched_of(r->watched, backend)->last_ns = to;
}

static void take_decision(const struct reading *r, const struct jv *line)
{
	const struct jv *res = jv_get(line, "res");
	const char *object =
		res && res->kind == JV_ARRAY && res->count ? jv_str(&res->items[0], "id", "") : "";
	enum operation op = operation_find(span_of(jv_str(line, "op", "")));
	deed_ref refs[DEEDS_OF_ONE];
	size_t backend;

	if (strcmp(jv_str(line, "verdict", ""), "allow") != 0 || !backend_of(r, line, &backend))
		return;
	watched_note(r->watched, backend, op, object, jv_str(line, "id", ""), refs);
	watched_ended(r->watched, refs, true, 500); /* soon over: most were seen */
}

static void take_line(const struct reading *r, struct span text)
{
	enum jv_fault fault;
	struct err err = {0};
	struct jv line;
	const char *type;

	if (!memmem(text.at, text.len, "\"type\":\"observed_sum\"", 21) &&
	    !memmem(text.at, text.len, "\"type\":\"decision\"", 17))
		return;
	arena_reset(r->arena, ARENA_BYTES);
	if (jv_parse(r->arena, text, &line, &fault, &err) < 0)
		return;
	type = jv_str(&line, "type", "");
	if (strcmp(type, "observed_sum") == 0)
		take_sum(r, &line);
	else if (strcmp(type, "decision") == 0)
		take_decision(r, &line);
}

static const char sum_mark[] = "\"type\":\"observed_sum\"";

/* The last one in the text; NULL: there is none. */
static const char *last_sum(struct span text)
{
	const char *found = NULL, *at = text.at, *end = text.at + text.len;

	while ((at = memmem(at, (size_t)(end - at), sum_mark, sizeof(sum_mark) - 1)))
		found = at++;
	return found;
}

/*
 * Where the last sum begins, or some way before it; 0 if there is none.  It is looked for from
 * the end, in pieces that overlap: what is no page of the file yet need not become one.
 */
static size_t begin_at(struct span all)
{
	size_t least = all.len > LOOK_BACK ? all.len - LOOK_BACK : 0;
	const char *found = NULL;

	for (size_t end = all.len; !found && end > least;) {
		size_t from = end - least > PIECE ? end - PIECE : least;
		size_t to = end + sizeof(sum_mark) < all.len ? end + sizeof(sum_mark) : all.len;

		found = last_sum((struct span){all.at + from, to - from});
		end = from;
	}
	if (!found) /* nothing was watched for long: what came of old decisions was seen by nobody
		     */
		return all.len > WITHOUT_SUM ? all.len - WITHOUT_SUM : 0;
	return (size_t)(found - all.at) < BEFORE_BYTES ? 0
						       : (size_t)(found - all.at) - BEFORE_BYTES;
}

static void read_segment(const struct reading *r, const char *dir, const char *name)
{
	char path[4096];
	auto_fd int fd = -1;
	struct span left, line;
	struct stat st;
	const char *end;
	char *mem;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return;
	mem = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (mem == MAP_FAILED) {
		log_line("%s cannot be read (%s): what it tells of engines is not known", path,
			 strerror(errno));
		return;
	}
	end = memrchr(mem, '\n', (size_t)st.st_size); /* behind it are zeros */
	left = (struct span){mem, end ? (size_t)(end - mem) + 1 : 0};
	left = span_skip(left, begin_at(left));
	while (span_cut(&left, '\n', &line))
		take_line(r, line);
	munmap(mem, (size_t)st.st_size);
}

static int is_segment(const struct dirent *e)
{
	size_t len = strlen(e->d_name);

	return len > 4 && strcmp(e->d_name + len - 4, ".log") == 0;
}

void watched_restore(struct watched *w, const struct proxy_conf *conf, const char *dir)
{
	struct reading r = {w, conf, arena_create(ARENA_BYTES)};
	struct dirent **names = NULL;
	int count = r.arena ? scandir(dir, &names, is_segment, alphasort) : -1;

	for (int i = 0; i < count; i++) {
		if (i + SEGMENTS >= count)
			read_segment(&r, dir, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	arena_destroy(r.arena);
}
