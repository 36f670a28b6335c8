#include "gate/admin.h"

#include "gate/base/auto.h"
#include "gate/base/io.h"
#include "gate/base/jv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARENA_MAX ((size_t)16 << 20)

/* --- reading --- */

static bool take_text(const struct jv *from, const char *key, char *to, size_t size, size_t *found)
{
	const struct jv *v = jv_get(from, key);

	if (!v || v->kind != JV_STRING || v->str.len >= size || memchr(v->str.at, '\0', v->str.len))
		return false;
	memcpy(to, v->str.at, v->str.len);
	to[v->str.len] = '\0';
	++*found;
	return true;
}

static bool take_number(const struct jv *from, const char *key, uint32_t *to, size_t *found)
{
	const struct jv *v = jv_get(from, key);

	if (!v || v->kind != JV_INT || v->i < 0 || v->i > UINT32_MAX)
		return false;
	*to = (uint32_t)v->i;
	++*found;
	return true;
}

static int take_kept(const struct jv *from, struct admin_kept *ret, struct err *err)
{
	struct runtime_row *row = &ret->row;
	size_t found = 1; /* until */

	memset(ret, 0, sizeof(*ret));
	row->until = jv_num(from, "until", 0);
	if (!take_text(from, "name", row->name, sizeof(row->name), &found) ||
	    !take_text(from, "profile", row->profile, sizeof(row->profile), &found) ||
	    !take_text(from, "owner", row->owner, sizeof(row->owner), &found) ||
	    !take_text(from, "path", row->path, sizeof(row->path), &found) ||
	    !take_text(from, "backend", ret->backend, sizeof(ret->backend), &found) ||
	    !take_number(from, "uid", &row->uid, &found) ||
	    !take_number(from, "gid", &row->gid, &found) ||
	    !take_number(from, "mode", &row->mode, &found) || from->count != found)
		return err_set(err, ERR_CONFIG, "a member is missing, unknown, or of another kind");
	if (!runtime_is_row(row) || !runtime_is_name(ret->backend, strlen(ret->backend)))
		return err_set(err, ERR_CONFIG, "a member is not what it should be");
	return 0;
}

static bool clashes(const struct admin_state *s, const struct admin_kept *k)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->list[i].row.name, k->row.name) == 0 ||
		    strcmp(s->list[i].row.path, k->row.path) == 0)
			return true;
	return false;
}

static int take_all(const struct jv *doc, struct admin_state *ret, struct err *err)
{
	const struct jv *list = jv_get(doc, "listeners");

	if (doc->kind != JV_OBJECT || doc->count != 2 || jv_num(doc, "version", 0) != 1 || !list ||
	    list->kind != JV_ARRAY)
		return err_set(err, ERR_CONFIG, "it is no {\"version\":1,\"listeners\":[...]}");
	if (list->count > RUNTIME_MAX)
		return err_set(err, ERR_CONFIG, "there are more than %d listeners", RUNTIME_MAX);
	for (size_t i = 0; i < list->count; i++) {
		struct admin_kept *k = &ret->list[ret->count];

		if (take_kept(&list->items[i], k, err) < 0)
			return err_wrap(err, "listener %zu", i + 1);
		if (clashes(ret, k))
			return err_set(err, ERR_CONFIG, "listener %zu has a name or path twice",
				       i + 1);
		ret->count++;
	}
	return 0;
}

int admin_state_parse(struct span text, struct admin_state *ret, struct err *err)
{
	struct arena *a = arena_create(ARENA_MAX);
	enum jv_fault fault;
	struct jv doc;
	int rc = -1;

	ret->count = 0;
	if (!a)
		return err_set(err, ERR_SYSTEM, "no memory");
	if (!text.len ||
	    (jv_parse(a, text, &doc, &fault, err) == 0 && take_all(&doc, ret, err) == 0))
		rc = 0;
	else
		err->kind = ERR_CONFIG;
	arena_destroy(a);
	if (rc < 0)
		ret->count = 0;
	return rc;
}

static int check_file(int fd, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "look at it");
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_CONFIG, "it is no plain file");
	if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return err_set(err, ERR_CONFIG, "others can write it");
	return st.st_size <= (off_t)ADMIN_STATE_BYTES_MAX
		       ? 0
		       : err_set(err, ERR_CONFIG, "it has more than %zu bytes",
				 ADMIN_STATE_BYTES_MAX);
}

int admin_file_read(int folder, const char *name, struct buf *ret, struct err *err)
{
	auto_fd int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	buf_init(ret, 0);
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(err, "open %s", name);
	if (check_file(fd, err) < 0 || io_read_fd(fd, ADMIN_STATE_BYTES_MAX, ret, err) < 0)
		return err_wrap(err, "%s", name);
	return buf_len(ret) ? 1 : err_set(err, ERR_CONFIG, "%s: it is empty", name);
}

int admin_state_read(int folder, struct admin_state *ret, struct err *err)
{
	struct buf text;
	int rc;

	ret->count = 0;
	rc = admin_file_read(folder, ADMIN_STATE_FILE, &text, err);
	if (rc == 1 && admin_state_parse(buf_span(&text), ret, err) < 0)
		rc = err_wrap(err, "%s", ADMIN_STATE_FILE);
	buf_fini(&text);
	return rc < 0 ? -1 : 0;
}

/* --- writing --- */

void admin_state_text(const struct admin_state *s, struct buf *out)
{
	buf_puts(out, "{\"version\":1,\"listeners\":[\n");
	for (size_t i = 0; i < s->count; i++) {
		const struct admin_kept *k = &s->list[i];

		/* What stands in a row needs no escaping. */
		buf_printf(out,
			   "{\"name\":\"%s\",\"profile\":\"%s\",\"owner\":\"%s\",\"path\":\"%s\","
			   "\"backend\":\"%s\",\"uid\":%u,\"gid\":%u,\"mode\":%u,\"until\":%lld}%s",
			   k->row.name, k->row.profile, k->row.owner, k->row.path, k->backend,
			   k->row.uid, k->row.gid, k->row.mode, (long long)k->row.until,
			   i + 1 < s->count ? ",\n" : "\n");
	}
	buf_puts(out, "]}\n");
}

int admin_file_write(int folder, const char *name, const struct buf *text, struct err *err)
{
	if (buf_spent(text))
		return err_set(err, ERR_LIMIT, "%s would be too large", name);
	return io_replace(folder, name, 0600, buf_span(text), err);
}

int admin_state_write(int folder, const struct admin_state *s, struct err *err)
{
	struct buf text;
	int rc;

	buf_init(&text, ADMIN_STATE_BYTES_MAX);
	admin_state_text(s, &text);
	rc = admin_file_write(folder, ADMIN_STATE_FILE, &text, err);
	buf_fini(&text);
	return rc;
}

struct admin_kept *admin_state_find(struct admin_state *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->list[i].row.name, name) == 0)
			return &s->list[i];
	return NULL;
}

void admin_state_drop(struct admin_state *s, struct admin_kept *k)
{
	size_t behind = (size_t)(s->list + s->count - (k + 1));

	memmove(k, k + 1, behind * sizeof(*k));
	s->count--;
}
