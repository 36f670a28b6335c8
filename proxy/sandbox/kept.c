/* kept.c - a file a sandbox, so that lifetimes hold over a restart. */
#include "proxy/sandbox/sandbox_priv.h"

#include "gate/base/auto.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX   (256u << 10)
#define NAME_ROOM  (SANDBOX_ID_LEN + 8)
#define FILES_READ 20000 /* entries of the folder that are looked at */

static void put_text(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, ",\n\"%s\":", key);
	jv_write_str(out, span_of(value));
}

static void put_number(struct buf *out, const char *key, int64_t value)
{
	buf_printf(out, ",\n\"%s\":%lld", key, (long long)value);
}

void kept_text(const struct box *b, struct buf *out)
{
	const struct caller *w = &b->who;

	buf_puts(out, "{\"version\":1");
	put_text(out, "id", b->id);
	put_text(out, "listener", w->listener);
	put_text(out, "identity", w->identity);
	put_text(out, "owner", w->owner);
	put_text(out, "profile", w->profile);
	put_text(out, "address", w->address);
	if (w->has_cred) {
		put_number(out, "uid", w->uid);
		put_number(out, "gid", w->gid);
	}
	put_text(out, "backend", b->backend);
	put_text(out, "image", b->image);
	put_text(out, "level", b->level);
	put_text(out, "runtime", b->runtime);
	put_text(out, "key", b->key);
	put_text(out, "key_sha256", b->key_sha256);
	put_number(out, "created", b->created);
	put_number(out, "expires", b->expires);
	put_number(out, "idle", b->idle_s);
	put_number(out, "memory", b->limits.memory);
	put_number(out, "nano_cpus", b->limits.nano_cpus);
	put_number(out, "pids", b->limits.pids);
	put_number(out, "disk", b->limits.disk);
	put_number(out, "output", b->limits.output);
	buf_printf(out, ",\n\"per_call\":%s,\"hidden\":%s,\n\"labels\":%s,\n\"env\":%s}\n",
		   b->per_call ? "true" : "false", b->hidden ? "true" : "false", b->labels, b->env);
}

static void file_name(const struct box *b, char out[NAME_ROOM])
{
	snprintf(out, NAME_ROOM, "%s.json", b->id);
}

int kept_write(struct sandboxes *s, const struct box *b, struct err *err)
{
	char name[NAME_ROOM];
	struct buf out;
	int rc;

	file_name(b, name);
	buf_init(&out, FILE_MAX);
	kept_text(b, &out);
	rc = buf_spent(&out) ? err_set(err, ERR_LIMIT, "%s would be too large", name)
			     : io_replace(s->conf.state, name, 0600, buf_span(&out), err);
	buf_fini(&out);
	return rc;
}

/* That it is back after a crash is no harm: its container is gone, and so it is forgotten. */
void kept_remove(struct sandboxes *s, const struct box *b)
{
	char name[NAME_ROOM];

	file_name(b, name);
	if (unlinkat(s->conf.state, name, 0) < 0 && errno != ENOENT)
		log_line("%s cannot be removed: %s", name, strerror(errno));
}

/* --- reading --- */

static bool take(const struct jv *tree, const char *key, char *out, size_t room)
{
	const struct jv *v = jv_get(tree, key);

	if (!v || v->kind != JV_STRING || v->str.len >= room || memchr(v->str.at, 0, v->str.len))
		return false;
	memcpy(out, v->str.at, v->str.len);
	out[v->str.len] = '\0';
	return true;
}

static char *take_json(const struct jv *tree, const char *key, enum jv_kind kind)
{
	const struct jv *v = jv_get(tree, key);
	struct buf out;
	char *text;

	if (!v || v->kind != kind)
		return NULL;
	buf_init(&out, FILE_MAX);
	jv_write(&out, v);
	buf_put(&out, "", 1);
	text = buf_spent(&out) ? NULL : strdup(buf_span(&out).at);
	buf_fini(&out);
	return text;
}

static bool take_who(const struct jv *tree, struct caller *w)
{
	w->has_cred = jv_get(tree, "uid") != NULL;
	w->uid = (uint32_t)jv_num(tree, "uid", -1);
	w->gid = (uint32_t)jv_num(tree, "gid", -1);
	w->pid = -1;
	return take(tree, "listener", w->listener, sizeof(w->listener)) &&
	       take(tree, "identity", w->identity, sizeof(w->identity)) &&
	       take(tree, "owner", w->owner, sizeof(w->owner)) &&
	       take(tree, "profile", w->profile, sizeof(w->profile)) &&
	       take(tree, "address", w->address, sizeof(w->address));
}

static bool take_box(const struct jv *tree, struct box *b)
{
	b->created = jv_num(tree, "created", 0);
	b->expires = jv_num(tree, "expires", 0);
	b->idle_s = jv_num(tree, "idle", 0);
	b->limits = (struct limits){
		.memory = jv_num(tree, "memory", 0),
		.nano_cpus = jv_num(tree, "nano_cpus", 0),
		.pids = jv_num(tree, "pids", 0),
		.disk = jv_num(tree, "disk", 0),
		.output = jv_num(tree, "output", 0),
	};
	b->per_call = jv_true(tree, "per_call");
	b->hidden = jv_true(tree, "hidden");
	return take(tree, "id", b->id, sizeof(b->id)) && strlen(b->id) == SANDBOX_ID_LEN &&
	       take(tree, "backend", b->backend, sizeof(b->backend)) &&
	       take(tree, "image", b->image, sizeof(b->image)) &&
	       take(tree, "level", b->level, sizeof(b->level)) &&
	       take(tree, "runtime", b->runtime, sizeof(b->runtime)) &&
	       take(tree, "key", b->key, sizeof(b->key)) &&
	       take(tree, "key_sha256", b->key_sha256, sizeof(b->key_sha256)) &&
	       take_who(tree, &b->who);
}

int kept_parse(struct span text, struct box *ret, struct err *err)
{
	struct arena *a = arena_create(8 * FILE_MAX);
	char *labels = NULL, *env = NULL;
	enum jv_fault fault;
	struct jv tree;
	int rc = -1;

	if (!a)
		return err_sys(err, "no memory");
	if (jv_parse(a, text, &tree, &fault, err) == 0) {
		labels = take_json(&tree, "labels", JV_OBJECT);
		env = take_json(&tree, "env", JV_ARRAY);
		rc = jv_num(&tree, "version", 0) == 1 && labels && env && take_box(&tree, ret)
			     ? 0
			     : err_set(err, ERR_INPUT, "it is not as it was written");
	}
	if (rc == 0) {
		free(ret->labels);
		free(ret->env);
		ret->labels = labels;
		ret->env = env;
	} else {
		free(labels);
		free(env);
	}
	arena_destroy(a);
	return rc;
}

/* What is left of its time; a clock that was set back makes nothing live longer than it may. */
static void set_clocks(const struct sandboxes *s, struct box *b)
{
	int64_t now = (int64_t)(clock_unix_ns() / 1000000000), left = b->expires - now;
	int64_t most = s->conf.proxy->sandboxes.lifetime_s;
	uint64_t now_ms = clock_boot_ms();

	left = left < 0 ? 0 : left > most ? most : left;
	b->ends_ms = now_ms + (uint64_t)left * 1000;
	b->idle_at_ms = b->idle_s ? now_ms + (uint64_t)b->idle_s * 1000 : 0;
	b->state = BOX_RUNNING;
	if (b->hidden) /* who it was for has gone */
		b->ends_ms = now_ms;
}

static int read_one(struct sandboxes *s, const char *name, struct err *err)
{
	auto_fd int fd = openat(s->conf.state, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct box *b = box_create();
	struct buf text;
	int rc;

	if (!b)
		return err_sys(err, "no memory");
	if (fd < 0 || io_read_fd(fd, FILE_MAX, &text, err) < 0) {
		box_free(b);
		return err_sys(err, "read it");
	}
	rc = kept_parse(buf_span(&text), b, err);
	buf_fini(&text);
	if (rc < 0) {
		box_free(b);
		return -1;
	}
	set_clocks(s, b);
	s->box_count++;
	table_add(s, b);
	return 0;
}

int kept_read_all(struct sandboxes *s, struct err *err)
{
	int fd = openat(s->conf.state, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!d)
		return err_sys(err, "read the folder of sandboxes { state }");
	for (int i = 0; i < FILES_READ && (entry = readdir(d)); i++) {
		struct err wrong = {0};
		size_t len = strlen(entry->d_name);

		if (len > 4 && strcmp(entry->d_name + len - 4, ".tmp") == 0)
			unlinkat(s->conf.state, entry->d_name, 0);
		if (len != SANDBOX_ID_LEN + 5 || strncmp(entry->d_name, "sbx-", 4) != 0)
			continue;
		if (read_one(s, entry->d_name, &wrong) < 0)
			log_alarm("sandbox %.*s: what was kept of it cannot be used, so that it "
				  "has no lifetime any more: %s",
				  SANDBOX_ID_LEN, entry->d_name, wrong.msg);
	}
	closedir(d);
	return 0;
}
