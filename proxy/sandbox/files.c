/* files.c - files and archives: commands of `inside`, whose output or input is the content. */
#include "proxy/sandbox/sandbox_priv.h"

#include "proxy/canonical.h"

#include <stdio.h>
#include <string.h>

#define LIST_OUTPUT (8u << 20)

/* As in the path of a URL. */
static const char *coded(struct call *c, const char *path)
{
	static const char hex[] = "0123456789ABCDEF";
	size_t len = strlen(path), n = 0;
	char *out = len <= PATH_BYTES_MAX ? arena_take(c->a, 3 * len + 2) : NULL;

	if (!out) {
		trouble_set(&c->trouble, c->a, CODE_invalid, "the path is too long");
		return NULL;
	}
	for (size_t i = 0; i < len; i++) {
		unsigned char b = (unsigned char)path[i];

		if ((b >= 'A' && b <= 'Z') || (b >= 'a' && b <= 'z') || (b >= '0' && b <= '9') ||
		    strchr("-._~/", b)) {
			out[n++] = (char)b;
			continue;
		}
		out[n++] = '%';
		out[n++] = hex[b >> 4];
		out[n++] = hex[b & 15];
	}
	out[n] = '\0';
	return out;
}

/* What inside says of a file, in the words of this API. */
static int failed(struct call *c)
{
	const struct run *r = c->run;
	enum code code = CODE_file_failed;

	if (r->state == RUN_LOST)
		return trouble_set(&c->trouble, c->a, CODE_exec_lost, "%s",
				   code_text(CODE_exec_lost));
	if (!strcmp(r->error, "ENOENT") || !strcmp(r->error, "ENOTDIR"))
		code = CODE_file_not_found;
	else if (!strcmp(r->error, "ENOSPC") || !strcmp(r->error, "EFBIG"))
		code = CODE_too_large;
	else if (!strcmp(r->error, "EISDIR") || !strcmp(r->error, "EEXIST") ||
		 !strcmp(r->error, "ENOTEMPTY"))
		code = CODE_conflict;
	return trouble_set(&c->trouble, c->a, code, "%s (%s)", r->message, r->error);
}

/* The verb with its words; the path comes last. */
static int begin(struct call *c, const char *const *words, const char *path, int64_t output,
		 bool flows)
{
	const char *list[12];
	struct command cmd = {.who = &c->who, .words = list};
	size_t n = 0;

	path = coded(c, path);
	if (!path)
		return -1;
	list[n++] = words[0];
	list[n++] = "--beneath";
	list[n++] = "/";
	for (size_t i = 1; words[i] && n < 10; i++)
		list[n++] = words[i];
	list[n++] = *path ? path : ".";
	list[n] = NULL;
	return exec_begin(c, &cmd, output, flows, words[0]);
}

/* Until the first output, or the end; -1: it failed. */
static int await_first(struct call *c)
{
	struct run *r = c->run;

	while (!buf_len(&r->out))
		if (!run_step(r, c->r->fd, 60000))
			return r->state != RUN_ENDED || r->failed ? failed(c) : 0;
	return 0;
}

/* Octets as they are; the connection is cut where the end is not as it should be. */
static ssize_t more_octets(struct httpd_request *req, char *at, size_t room)
{
	struct call *c = req->state;
	struct run *r = c->run;

	for (;;) {
		struct span left = buf_span(&c->row);
		enum frame_type type;
		struct span data;

		if (left.len) {
			size_t n = left.len < room ? left.len : room;

			memcpy(at, left.at, n);
			buf_consume(&c->row, n);
			return (ssize_t)n;
		}
		arena_reset(c->scratch, 1u << 18);
		if (run_chunk(r, &c->at, &type, &data, c->scratch))
			buf_put(&c->row, data.at, data.len);
		else if (r->state != RUN_RUNNING)
			return r->state == RUN_ENDED && !r->failed ? 0 : -1;
		else
			run_step(r, c->r->fd, 60000);
	}
}

static void answer_octets(struct call *c, const char *type)
{
	c->scratch = arena_create(1u << 18);
	if (c->scratch && await_first(c) == 0) {
		httpd_reply_stream(c->r, 200, type, -1, more_octets);
		return;
	}
	api_fail(c);
}

/* --- folders --- */

static void decode_name(struct arena *a, struct jv *entry, const char *key)
{
	const struct jv *v = jv_get(entry, key);
	struct span plain;

	if (v && v->kind == JV_STRING && canonical_decode(a, v->str, false, &plain, NULL) == 0)
		jv_set(a, entry, key, jv_span(plain));
}

/* A line of what comes from hostile hands: what is no entry is left out. */
static void add_entry(struct call *c, struct jv *list, struct span line)
{
	static const char *const keys[] = {"name", "type", "size", "mode", "mtime", "target"};
	struct jv got, entry = jv_object();
	enum jv_fault fault;
	struct err err = {0};

	if (!line.len || jv_parse(c->a, line, &got, &fault, &err) < 0 || got.kind != JV_OBJECT)
		return;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const struct jv *v = jv_get(&got, keys[i]);

		if (v && (v->kind == JV_STRING || v->kind == JV_INT))
			jv_set(c->a, &entry, keys[i], *v);
	}
	decode_name(c->a, &entry, "name");
	decode_name(c->a, &entry, "target");
	jv_push(c->a, list, entry);
}

static void list_folder(struct call *c, const char *path)
{
	static const char *const words[] = {"list", NULL};
	struct jv tree = jv_object(), *out = jv_set(c->a, &tree, "entries", jv_array());
	struct span all, line;

	if (begin(c, words, path, LIST_OUTPUT, false) < 0) {
		api_fail(c);
		return;
	}
	run_to_end(c->run, c->r->fd);
	c->pumps = false;
	if (c->run->state != RUN_ENDED || c->run->failed) {
		failed(c);
		api_fail(c);
		return;
	}
	all = exec_joined(c, FRAME_STDOUT);
	while (all.len) {
		span_cut(&all, '\n', &line);
		add_entry(c, out, line);
	}
	jv_set(c->a, &tree, "truncated", jv_bool(c->run->truncated));
	api_answer(c, 200, &tree);
}

/* --- paths --- */

void files_get(struct call *c)
{
	static const char *const words[] = {"get", NULL};
	size_t len = strlen(c->rest);

	if (!len || c->rest[len - 1] == '/') {
		char *path = arena_strndup(c->a, c->rest, len ? len - 1 : 0);

		list_folder(c, path ? path : "");
		return;
	}
	if (begin(c, words, c->rest, 0, true) < 0) {
		api_fail(c);
		return;
	}
	answer_octets(c, "application/octet-stream");
}

static bool is_mode(const char *mode)
{
	size_t len = strlen(mode);

	return len >= 3 && len <= 4 && strspn(mode, "01234567") == len;
}

void files_put_begin(struct call *c)
{
	static const char *const known[] = {"mode", NULL};
	const char *mode = httpd_query(c->r, "mode");
	const char *const words[] = {"put", "--parents", "--mode", mode ? mode : "0644", NULL};

	if (request_query(c->r, known, &c->trouble) == 0 && !is_mode(words[3]))
		trouble_set(&c->trouble, c->a, CODE_invalid, "mode must be octal, such as 0644");
	if (c->trouble.status || begin(c, words, c->rest, 65536, false) < 0) {
		api_fail(c);
		return;
	}
	c->r->pieces = true;
	c->r->body_max = UPLOAD_MAX;
}

/* All was sent: how did it end? */
static int finish_put(struct call *c)
{
	struct run *r = c->run;

	while (r->state == RUN_RUNNING && !run_send(r, FRAME_STDIN_END, (struct span){"", 0}, 0))
		if (!run_step(r, c->r->fd, 60000))
			break;
	run_to_end(r, c->r->fd);
	c->pumps = false;
	return r->state != RUN_ENDED || r->failed ? failed(c) : 0;
}

void files_put(struct call *c)
{
	if (finish_put(c) < 0)
		api_fail(c);
	else
		httpd_reply(c->r, 204, NULL, (struct span){"", 0});
}

void files_delete(struct call *c)
{
	static const char *const known[] = {"recursive", NULL};
	const char *all = httpd_query(c->r, "recursive");
	const char *const words[] = {"remove", all && !strcmp(all, "true") ? "--recursive" : NULL,
				     NULL};

	if (request_query(c->r, known, &c->trouble) < 0 ||
	    begin(c, words, c->rest, 65536, false) < 0) {
		api_fail(c);
		return;
	}
	files_put(c);
}

static int tar_path(struct call *c, const char **ret)
{
	static const char *const known[] = {"path", NULL};
	const char *path = httpd_query(c->r, "path");

	if (request_query(c->r, known, &c->trouble) < 0)
		return -1;
	*ret = path ? path : "work";
	while (**ret == '/')
		(*ret)++;
	return 0;
}

void tar_get(struct call *c)
{
	static const char *const words[] = {"tar", NULL};
	const char *path;

	if (tar_path(c, &path) < 0 || begin(c, words, path, 0, true) < 0) {
		api_fail(c);
		return;
	}
	answer_octets(c, "application/x-tar");
}

void tar_put_begin(struct call *c)
{
	static const char *const words[] = {"untar", NULL};
	const char *path;

	if (tar_path(c, &path) < 0 || begin(c, words, path, 65536, false) < 0) {
		api_fail(c);
		return;
	}
	c->r->pieces = true;
	c->r->body_max = UPLOAD_MAX;
}

/* Octets of one command go to another, as fast as that takes them. */
static int carry(struct call *from, struct call *to)
{
	struct run *r = from->run;
	enum frame_type type;
	struct span data;

	for (;;) {
		arena_reset(from->scratch, 1u << 18);
		if (run_chunk(r, &from->at, &type, &data, from->scratch))
			exec_piece(to, data);
		else if (r->state != RUN_RUNNING)
			break;
		else
			run_step(r, from->r->fd, 60000);
	}
	from->pumps = false;
	return r->state == RUN_ENDED && !r->failed ? finish_put(to) : failed(from);
}

static void let_go(struct call *c)
{
	if (!c->run)
		return;
	if (c->pumps) {
		run_cut(c->run);
		run_to_end(c->run, -1);
	}
	run_unref(c->run);
}

int files_copy(struct call *c, struct box *from, struct box *to, const char *path)
{
	static const char *const out[] = {"tar", NULL}, *const in[] = {"untar", NULL};
	struct call source = *c, target = *c;
	int rc = -1;

	source.box = from;
	target.box = to;
	source.run = target.run = NULL;
	source.scratch = arena_create(1u << 18);
	if (source.scratch && begin(&source, out, path, 0, true) == 0 &&
	    begin(&target, in, path, 65536, false) == 0)
		rc = carry(&source, &target);
	if (rc < 0)
		c->trouble = source.trouble.status ? source.trouble : target.trouble;
	let_go(&source);
	let_go(&target);
	arena_destroy(source.scratch);
	return rc;
}

/* One of the files that a sandbox is made with. */
int files_write(struct call *c, const struct wanted_file *f)
{
	const char *const words[] = {"put", "--parents", "--mode", f->mode, NULL};
	const char *path = f->path;
	int rc;

	while (*path == '/')
		path++;
	if (begin(c, words, path, 65536, false) < 0)
		return -1;
	exec_piece(c, f->content);
	rc = finish_put(c);
	run_unref(c->run);
	c->run = NULL;
	return rc;
}
