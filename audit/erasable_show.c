/* erasable_show.c - values that were kept aside: read, shown, erased. */
#include "audit/erasable_priv.h"

#include "audit/files_priv.h"
#include "audit/log_priv.h"
#include "gate/base/auto.h"
#include "gate/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_ROOM 40

/* "NAME":"VALUE" as it stands; empty if it is not there. */
static struct span member(struct span text, const char *opening)
{
	const char *at = memmem(text.at, text.len, opening, strlen(opening));
	const char *end = text.at + text.len, *from;

	if (!at)
		return (struct span){"", 0};
	from = at += strlen(opening);
	while (at < end && *at != '"')
		at += *at == '\\' && at + 1 < end ? 2 : 1;
	return at < end ? (struct span){from, (size_t)(at - from)} : (struct span){"", 0};
}

static bool number(struct span *text, const char *name, uint64_t *ret)
{
	char *end;

	if (!span_starts(*text, name) || text->len <= strlen(name))
		return false;
	*ret = strtoull(text->at + strlen(name), &end, 10);
	if (end == text->at + strlen(name) || end >= text->at + text->len || *end != ',')
		return false;
	*text = span_skip(*text, (size_t)(end + 1 - text->at));
	return true;
}

bool erasable_line_parse(struct span text, struct erasable_line *ret)
{
	struct hash salt;
	uint64_t t_s;

	if (!number(&text, "{\"seq\":", &ret->seq) || !number(&text, "\"t\":", &t_s))
		return false;
	ret->t_s = (int64_t)t_s;
	ret->identity = member(text, "\"identity\":\"");
	ret->value = member(text, ",\"value\":\"");
	if (hash_parse(member(text, ",\"salt\":\""), &salt) < 0 || !ret->value.len)
		return false;
	memcpy(ret->salt, salt.bytes, sizeof(ret->salt));
	return true;
}

static FILE *open_lines(int dir_fd, uint64_t first)
{
	char name[NAME_ROOM];
	FILE *file;
	int fd;

	snprintf(name, sizeof(name), "%020" PRIu64, first);
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file && fd >= 0)
		close(fd);
	return file;
}

/* --- shown --- */

void erasable_begin(struct erasable_reader *r, int log_fd, uint64_t first)
{
	auto_fd int dir_fd =
		openat(log_fd, ERASABLE_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	*r = (struct erasable_reader){.file = NULL};
	if (dir_fd >= 0)
		r->file = open_lines(dir_fd, first);
}

void erasable_end(struct erasable_reader *r)
{
	if (r->file)
		fclose(r->file);
	free(r->line);
	*r = (struct erasable_reader){.file = NULL};
}

static bool is_commitment(const struct jv *v)
{
	return v->kind == JV_STRING && v->str.len == ERASABLE_TEXT && v->str.at[0] == 'c' &&
	       v->str.at[1] == ':';
}

/* Wherever the commitment stands in the tree. */
static void put_back(struct jv *v, const char *commitment, struct span value)
{
	if (is_commitment(v) && memcmp(v->str.at, commitment, ERASABLE_TEXT) == 0)
		*v = jv_span(value);
	for (size_t i = 0; v->kind == JV_ARRAY && i < v->count; i++)
		put_back(&v->items[i], commitment, value);
	for (size_t i = 0; v->kind == JV_OBJECT && i < v->count; i++)
		put_back(&v->members[i].value, commitment, value);
}

/* The value as a text, out of the form that it has between quotes. */
static bool plain(struct arena *a, struct span raw, struct span *ret)
{
	char *text = arena_take(a, raw.len + 3);
	enum jv_fault fault;
	struct err ignored = {0};
	struct jv v;

	if (!text)
		return false;
	snprintf(text, raw.len + 3, "\"%.*s\"", SPAN_FMT(raw));
	if (jv_parse(a, span_of(text), &v, &fault, &ignored) < 0 || v.kind != JV_STRING)
		return false;
	*ret = v.str;
	return true;
}

static void show_one(const struct erasable_line *line, struct arena *a, struct jv *tree)
{
	char commitment[ERASABLE_TEXT + 1];
	struct span value;

	erasable_commitment(line->salt, line->value, commitment);
	if (plain(a, line->value, &value))
		put_back(tree, commitment, value);
}

void erasable_hide(struct jv *tree)
{
	const struct jv *address =
		jv_true(tree, "erasable") ? jv_path(tree, "actor.auth.addr") : NULL;

	if (address && is_commitment(address))
		put_back(tree, address->str.at, (struct span){"", 0});
}

void erasable_show(struct erasable_reader *r, uint64_t seq, struct arena *a, struct jv *tree)
{
	struct erasable_line line;
	ssize_t n;

	while (r->file) {
		if (!r->have) {
			n = getline(&r->line, &r->size, r->file);
			if (n <= 0)
				break;
			r->have = true;
			r->len = (size_t)n;
		}
		if (!erasable_line_parse((struct span){r->line, r->len}, &line) || line.seq < seq) {
			r->have = false; /* cut by a crash, or of a record that was passed over */
			continue;
		}
		if (line.seq > seq)
			break;
		show_one(&line, a, tree);
		r->have = false;
	}
	erasable_hide(tree);
}

/* --- erased --- */

static bool is_meant(const struct erasure *what, const struct erasable_line *line)
{
	return (!*what->identity || span_is(line->identity, what->identity)) &&
	       (!what->before_s || line->t_s < what->before_s);
}

static int copy_others(FILE *from, FILE *to, const struct erasure *what, uint64_t *ret_count)
{
	struct erasable_line line;
	char *text = NULL;
	size_t size = 0;
	ssize_t n;
	int rc = 0;

	while (rc == 0 && (n = getline(&text, &size, from)) > 0) {
		/* Whose a torn line is cannot be told: it goes with whatever is erased. */
		if (!erasable_line_parse((struct span){text, (size_t)n}, &line) ||
		    is_meant(what, &line))
			++*ret_count;
		else if (fwrite(text, 1, (size_t)n, to) != (size_t)n)
			rc = -1;
	}
	if (text)
		explicit_bzero(text, size);
	free(text);
	return rc < 0 || ferror(from) || fflush(to) != 0 ? -1 : 0;
}

/* What it held is overwritten, as far as the file system writes in place. */
static void overwrite(FILE *file)
{
	static const char zeros[65536];
	struct stat st;
	int fd = fileno(file);

	if (fstat(fd, &st) < 0)
		return;
	for (uint64_t at = 0; at < (uint64_t)st.st_size; at += sizeof(zeros))
		if (io_write_at(fd, zeros, sizeof(zeros), at) < 0)
			return;
	(void)fdatasync(fd);
}

static int write_anew(int dir_fd, const char *name, FILE *from, const struct erasure *what,
		      uint64_t *ret_count)
{
	char temporary[NAME_ROOM + 4];
	uint64_t count = 0;
	FILE *to;
	int fd, rc;

	snprintf(temporary, sizeof(temporary), "%s.tmp", name);
	(void)unlinkat(dir_fd, temporary, 0);
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	to = fd < 0 ? NULL : fdopen(fd, "w");
	if (!to) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	rc = copy_others(from, to, what, &count);
	rc = fsync(fd) < 0 ? -1 : rc;
	rc = fclose(to) != 0 ? -1 : rc;
	if (rc == 0 && count)
		rc = renameat(dir_fd, temporary, dir_fd, name) < 0 || fsync(dir_fd) < 0 ? -1 : 0;
	if (rc < 0 || !count)
		(void)unlinkat(dir_fd, temporary, 0);
	if (rc == 0)
		*ret_count += count;
	return rc;
}

int erasable_erase(struct erasable *e, uint64_t first, const struct erasure *what,
		   uint64_t *ret_count, struct err *err)
{
	uint64_t before = *ret_count;
	char name[NAME_ROOM];
	FILE *from;
	int fd, rc;

	snprintf(name, sizeof(name), "%020" PRIu64, first);
	fd = openat(e->dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	from = fd < 0 ? NULL : fdopen(fd, "r+");
	if (!from) {
		if (fd >= 0)
			close(fd);
		return err_sys(err, "open " ERASABLE_FOLDER "/%s", name);
	}
	rc = write_anew(e->dir_fd, name, from, what, ret_count);
	if (rc == 0 && *ret_count > before)
		overwrite(from);
	if (rc < 0)
		err_sys(err, "write " ERASABLE_FOLDER "/%s anew", name);
	fclose(from);
	if (e->fd >= 0 && e->first == first) { /* it is another file now */
		close(e->fd);
		e->fd = -1;
	}
	return rc;
}
