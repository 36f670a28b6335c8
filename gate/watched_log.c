/*
 * What the log says of the time before this start: up to when each engine was watched, and
 * what was decided since.  It is read by a process with the auditor's user, before there is
 * an auditor; of a log that is damaged that one tells.
 */
#include "gate/watched_log.h"

#include "audit/fields.h"
#include "gate/base/auto.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENTS 2 /* the newest; a sum comes once a minute */
#define BEFORE_BYTES                                                                               \
	(64u << 10)              /* of decisions before the last sum, whose events came behind it  \
				  */
#define LINES_MAX   (128u << 20) /* bytes of a segment that are looked at */
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

/* Where the last sum begins, or some way before it; 0 if there is none. */
static size_t begin_at(struct span all)
{
	static const char sum[] = "\"type\":\"observed_sum\"";
	const char *found = NULL, *at = all.at;

	while ((at = memmem(at, all.len - (size_t)(at - all.at), sum, sizeof(sum) - 1))) {
		found = at;
		at++;
	}
	if (!found || (size_t)(found - all.at) < BEFORE_BYTES)
		return 0;
	return (size_t)(found - all.at) - BEFORE_BYTES;
}

static void read_segment(const struct reading *r, const char *dir, const char *name)
{
	char path[4096];
	auto_fd int fd = -1;
	struct span left, line;
	struct stat st;
	char *mem;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    (uint64_t)st.st_size > LINES_MAX)
		return;
	mem = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (mem == MAP_FAILED)
		return;
	left = (struct span){mem, (size_t)st.st_size};
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
