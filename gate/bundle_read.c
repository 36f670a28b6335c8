/* bundle_read.c - the children that read configuration and rules. */
#include "gate/bundle.h"

#include "audit/signed.h"
#include "gate/base/auto.h"
#include "gate/base/io.h"
#include "gate/base/nearest.h"
#include "gate/config_priv.h"
#include "gate/pack.h"
#include "gate/privs.h"
#include "gate/profile_folder.h"
#include "rules/engine.h"
#include "rules/luadata.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARENA_MAX   ((size_t)64 << 20)
#define PATIENCE_MS 20000 /* for one child */
#define PACKS_MAX   16
#define NOBODY      65534 /* where the user nobody does not exist */

/* What a child does: load() may open files; work() runs when nothing can be opened any more. */
struct reader {
	int (*load)(struct reader *r, struct err *err);
	int (*work)(struct reader *r, struct buf *out, struct err *err);
	const char *path; /* of the configuration, absolute */
	struct arena *arena;
	struct buf text;      /* of the configuration file */
	struct bundle first;  /* what the first child left */
	struct config config; /* second child */
	struct rule_source sources[BUNDLE_SOURCES_MAX];
	size_t source_count;
	struct pack *packs[PACKS_MAX]; /* where sources came from, for the record */
	size_t pack_count;
	bool to_serve; /* third child */
};

/* --- first child: the configuration's Lua becomes a tree --- */

static int load_text(struct reader *r, struct err *err)
{
	return io_read_file(r->path, BUNDLE_CONFIG_MAX, &r->text, err);
}

/* JSON cannot carry what is not UTF-8; a path must not change on its way. */
static int check_text(struct arena *a, const struct jv *tree, struct span json, const char *path,
		      struct err *err)
{
	enum jv_fault fault;
	struct jv back;

	if (jv_parse(a, json, &back, &fault, err) < 0)
		return err_wrap(err, "%s", path);
	if (!jv_equal(tree, &back))
		return err_set(err, ERR_CONFIG, "%s: holds text that is not UTF-8", path);
	return 0;
}

static int work_config(struct reader *r, struct buf *out, struct err *err)
{
	size_t count;
	const struct luadata_word *words = config_words(&count);
	struct buf json;
	struct jv tree;
	int rc;

	if (luadata_read(buf_span(&r->text), r->path, words, count, r->arena, &tree, err) < 0)
		return -1;
	buf_init(&json, BUNDLE_MAX);
	jv_write(&json, &tree);
	rc = check_text(r->arena, &tree, buf_span(&json), r->path, err);
	bundle_begin(out);
	bundle_put(out, span_of(r->path), buf_span(&json));
	buf_fini(&json);
	return rc;
}

/* --- second child: the configuration is checked, the profiles are loaded --- */

static int add_source(struct reader *r, const char *path, struct err *err)
{
	struct rule_source *to = &r->sources[r->source_count];
	const char *base = strrchr(path, '/') + 1;
	struct buf text;

	if (r->source_count == BUNDLE_SOURCES_MAX)
		return err_set(err, ERR_LIMIT, "%s: there are more than %d files of profiles", path,
			       BUNDLE_SOURCES_MAX);
	if (io_read_file(path, BUNDLE_SOURCE_MAX, &text, err) < 0)
		return -1;
	to->name = arena_strndup(r->arena, base, strlen(base));
	to->text = (struct span){arena_strndup(r->arena, buf_span(&text).at, buf_len(&text)),
				 buf_len(&text)};
	buf_fini(&text);
	if (!to->name || !to->text.at)
		return err_set(err, ERR_LIMIT, "%s: the profiles are too large", path);
	r->source_count++;
	return 0;
}

/* Files of a signed bundle: only what one of the keys has signed is taken. */
static int add_pack(struct reader *r, const char *path, struct span text, struct err *err)
{
	struct pack *pack = arena_take(r->arena, sizeof(*pack));
	char *copy = arena_take(r->arena, text.len);

	if (!pack || !copy)
		return err_set(err, ERR_LIMIT, "%s: the profiles are too large", path);
	if (r->pack_count == PACKS_MAX) /* each one's origin goes on record */
		return err_set(err, ERR_LIMIT, "%s: there are more than %d bundles", path,
			       PACKS_MAX);
	memcpy(copy, text.at, text.len);
	if (signed_init(err) < 0 || pack_read((struct span){copy, text.len}, r->config.rule_keys,
					      r->arena, pack, err) < 0) {
		err->kind = ERR_CONFIG;
		return err_wrap(err, "%s", path);
	}
	for (size_t i = 0; i < pack->file_count; i++) {
		if (r->source_count == BUNDLE_SOURCES_MAX)
			return err_set(err, ERR_LIMIT,
				       "%s: there are more than %d files of profiles", path,
				       BUNDLE_SOURCES_MAX);
		r->sources[r->source_count++] = pack->files[i];
	}
	r->packs[r->pack_count++] = pack;
	return 0;
}

/* One file of profiles, or a bundle of them. */
static int add_file(struct reader *r, const char *path, struct err *err)
{
	struct buf text;
	int rc;

	if (io_read_file(path, PACK_MAX, &text, err) < 0)
		return -1;
	if (pack_is(buf_span(&text)))
		rc = add_pack(r, path, buf_span(&text), err);
	else if (r->config.only_signed)
		rc = err_set(err, ERR_CONFIG,
			     "%s: rules { signed = true } takes bundles alone: see 'sallyport help "
			     "bundle build'",
			     path);
	else
		rc = add_source(r, path, err);
	buf_fini(&text);
	return rc;
}

static int is_rules(const struct dirent *d)
{
	return profile_folder_has(d->d_name) && !profile_folder_is_test(d->d_name);
}

/* By bytes: the order must not depend on the language of whoever starts the gate. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_folder(struct reader *r, const char *folder, struct err *err)
{
	struct dirent **list;
	int count, rc = 0;

	if (r->config.only_signed)
		return err_set(err, ERR_CONFIG,
			       "%s: rules { signed = true } takes bundles, no folders", folder);
	count = scandir(folder, &list, is_rules, by_name);
	if (count < 0)
		return err_sys(err, "read the folder %s", folder);
	for (int i = 0; i < count; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", folder, list[i]->d_name);
		if (rc == 0)
			rc = add_source(r, path, err);
		free(list[i]);
	}
	free(list);
	if (rc == 0 && count == 0)
		return err_set(err, ERR_CONFIG, "%s: there is no *.lua file in this folder",
			       folder);
	return rc;
}

static int load_sources(struct reader *r, struct err *err)
{
	struct stat st;

	if (bundle_config(&r->first, r->arena, &r->config, err) < 0)
		return -1;
	assert(r->config.profile_paths);
	for (size_t i = 0; r->config.profile_paths[i]; i++) {
		const char *path = r->config.profile_paths[i];
		int rc;

		if (stat(path, &st) < 0)
			return err_sys(err, "%s: profiles: %s", r->path, path);
		rc = S_ISDIR(st.st_mode) ? add_folder(r, path, err) : add_file(r, path, err);
		if (rc < 0)
			return err_wrap(err, "%s: profiles", r->path);
	}
	return 0;
}

static int check_profile(const struct engine *eng, const struct reader *r, const char *word,
			 const char *name, const char *profile, struct err *err)
{
	struct nearest near = nearest_to(span_of(profile));
	char hint[NEAREST_TEXT_MAX];
	const struct profile *p;

	if (engine_profile(eng, profile))
		return 0;
	for (size_t i = 0; (p = engine_profile_at(eng, i)); i++)
		nearest_offer(&near, profile_name(p));
	return err_set(err, ERR_CONFIG, "%s: %s \"%s\": no profile is called '%s'%s", r->path, word,
		       name, profile, nearest_text(&near, hint));
}

static int check_profiles(const struct engine *eng, const struct reader *r, struct err *err)
{
	const struct proxy_conf *p = &r->config.proxy;

	for (size_t i = 0; i < p->identity_count; i++)
		if (check_profile(eng, r, "identity", p->identities[i].name,
				  p->identities[i].profile, err) < 0)
			return -1;
	for (size_t i = 0; i < p->listener_count; i++)
		if (*p->listeners[i].otherwise &&
		    check_profile(eng, r, "listener", p->listeners[i].name,
				  p->listeners[i].otherwise, err) < 0)
			return -1;
	return 0;
}

static void put_names(const struct engine *eng, struct buf *out)
{
	const struct profile *p;
	struct buf names;

	buf_init(&names, BUNDLE_MAX);
	for (size_t i = 0; (p = engine_profile_at(eng, i)); i++)
		buf_printf(&names, "%s\n", profile_name(p));
	bundle_put(out, span_of(""), buf_span(&names));
	buf_fini(&names);
}

/* "acme-rules of 2026-..., commit ..., by ann, approved by bob, SEC-12, signed by acme" */
static void put_origin(const struct reader *r, struct buf *out)
{
	struct buf text;

	buf_init(&text, BUNDLE_MAX);
	for (size_t i = 0; i < r->pack_count; i++) {
		const struct pack_origin *o = &r->packs[i]->origin;

		buf_printf(&text,
			   "%sbundle %.100s of %.40s, commit %.80s, author %.80s, approver %.80s, "
			   "ticket %.80s, signed by %.*s",
			   i ? "; " : "", *o->name ? o->name : "-", o->made,
			   *o->commit ? o->commit : "-", *o->author ? o->author : "-",
			   *o->approver ? o->approver : "-", *o->ticket ? o->ticket : "-",
			   SPAN_FMT(r->packs[i]->signer));
	}
	if (r->pack_count)
		bundle_put(out, span_of(BUNDLE_ORIGIN), buf_span(&text));
	buf_fini(&text);
}

static int work_rules(struct reader *r, struct buf *out, struct err *err)
{
	struct engine *eng =
		engine_open(r->sources, r->source_count, &r->config.proxy.rule_limits, err);
	int rc;

	if (!eng)
		return -1;
	rc = check_profiles(eng, r, err);
	buf_put(out, r->first.text.at, r->first.text.len);
	put_names(eng, out);
	put_origin(r, out);
	engine_close(eng);
	for (size_t i = 0; i < r->source_count; i++)
		bundle_put(out, span_of(r->sources[i].name), r->sources[i].text);
	return rc;
}

/* --- third child: what else the configuration names is read; callers' TLS is tried once --- */

static bool is_wanted(const struct reader *r, const struct conf_file *f)
{
	return f->path && (r->to_serve || !f->to_serve);
}

/* Which key of which listener named it, if one did. */
static int wrong_file(const struct reader *r, const struct conf_file *file, struct err *err)
{
	const struct config *c = &r->config;
	struct config_entry e;
	struct err why = *err;

	for (size_t i = 0; config_entry_at(c->entries, c->path, "listener", i, &e); i++)
		for (enum tls_file f = 0; c->listeners[i].tls && f < TLS_FILE_COUNT; f++)
			if (&c->listeners[i].tls->files[f] == file)
				return config_wrong(&e, err, "tls.%s: %s: %s", tls_file_name(f),
						    file->path, why.msg);
	return err_wrap(err, "%s: %s", c->path, file->path);
}

/* A pipe or a device would keep us waiting, or never end. */
static int check_file(int fd, bool is_key, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, "look at it");
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_CONFIG, "it is no file");
	if (st.st_size <= 0 || (size_t)st.st_size > BUNDLE_FILE_MAX)
		return err_set(err, ERR_CONFIG, "it has %lld bytes, not 1 to %zu",
			       (long long)st.st_size, BUNDLE_FILE_MAX);
	if (is_key && (st.st_mode & (S_IRWXO | S_IWGRP)))
		return err_set(
			err, ERR_CONFIG,
			"its mode is %04o: others could read or change the key; make it 0600 "
			"(0640 if a group must read it)",
			st.st_mode & 07777);
	return 0;
}

static int read_text(struct reader *r, int fd, struct span *ret, struct err *err)
{
	char *text = arena_take(r->arena, BUNDLE_FILE_MAX + 1);
	size_t len = 0;
	ssize_t n = 1;

	if (!text)
		return err_set(err, ERR_LIMIT, "all of them are too large");
	while (n > 0 && len <= BUNDLE_FILE_MAX) {
		n = read(fd, text + len, BUNDLE_FILE_MAX + 1 - len);
		if (n < 0)
			return err_sys(err, "read it");
		len += (size_t)n;
	}
	if (!len || len > BUNDLE_FILE_MAX || memchr(text, 0, len))
		return err_set(err, ERR_CONFIG, "it is no text of 1 to %zu bytes", BUNDLE_FILE_MAX);
	*ret = (struct span){text, len};
	return 0;
}

/* Every mention is looked at; the first brings the text. */
static int load_file(struct reader *r, size_t at, struct err *err)
{
	struct conf_file *file = r->config.files[at];
	auto_fd int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return err_sys(err, "open it");
	if (check_file(fd, file->is_key, err) < 0)
		return -1;
	for (size_t i = 0; i < at; i++)
		if (r->config.files[i]->text.len &&
		    strcmp(r->config.files[i]->path, file->path) == 0) {
			file->text = r->config.files[i]->text;
			return 0;
		}
	return read_text(r, fd, &file->text, err);
}

static int load_files(struct reader *r, struct err *err)
{
	if (bundle_config(&r->first, r->arena, &r->config, err) < 0)
		return -1;
	for (size_t i = 0; i < r->config.file_count; i++)
		if (is_wanted(r, r->config.files[i]) && load_file(r, i, err) < 0)
			return wrong_file(r, r->config.files[i], err);
	return 0;
}

static int try_tls(const struct reader *r, const struct conf_caller_tls *tls, struct err *err)
{
	struct tls_files files = {.optional = tls->optional};
	struct tls_server *server;
	enum tls_file wrong;

	for (enum tls_file f = 0; f < TLS_FILE_COUNT; f++)
		files.text[f] = tls->files[f].text;
	server = tls_server_open(&files, &wrong, err);
	if (!server)
		return wrong_file(r, &tls->files[wrong], err);
	tls_server_close(server);
	return 0;
}

/* The same text may have been read for several. */
static bool is_written(const struct config *c, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (c->files[i]->text.at == c->files[at]->text.at)
			return true;
	return false;
}

static int work_files(struct reader *r, struct buf *out, struct err *err)
{
	const struct config *c = &r->config;

	for (size_t i = 0; r->to_serve && i < c->proxy.listener_count; i++)
		if (c->listeners[i].tls && try_tls(r, c->listeners[i].tls, err) < 0)
			return -1;
	buf_put(out, r->first.text.at, r->first.text.len);
	for (size_t i = 0; i < c->file_count; i++)
		if (c->files[i]->text.len && !is_written(c, i))
			bundle_put(out, span_of(c->files[i]->path), c->files[i]->text);
	return 0;
}

/* --- how a child is run --- */

static int confine(struct err *err)
{
	const struct passwd *pw = getpwnam("nobody");
	struct confine_ids nobody = {.uid = NOBODY, .gid = NOBODY};

	if (pw)
		nobody = (struct confine_ids){.uid = pw->pw_uid, .gid = pw->pw_gid};
	if (privs_become(ROLE_READER, geteuid() == 0 ? &nobody : NULL, err) < 0)
		return -1;
	return privs_filter(ROLE_READER, err);
}

static int child_work(struct reader *r, int out_fd, struct err *err)
{
	struct buf out;

	buf_init(&out, BUNDLE_MAX);
	r->arena = arena_create(ARENA_MAX);
	if (!r->arena)
		return err_set(err, ERR_SYSTEM, "no memory");
	if (r->load(r, err) < 0 || confine(err) < 0 || r->work(r, &out, err) < 0)
		return -1;
	if (buf_spent(&out))
		return err_set(err, ERR_LIMIT, "%s: more than %zu bytes with all profiles", r->path,
			       BUNDLE_MAX);
	return io_write_all(out_fd, buf_span(&out).at, buf_len(&out), err);
}

static void child_main(struct reader *r, int out_fd, int err_fd) __attribute__((noreturn));

static void child_main(struct reader *r, int out_fd, int err_fd)
{
	struct err err = {0}, ignored;
	int rc = child_work(r, out_fd, &err);

	if (rc < 0)
		io_write_all(err_fd, &err, sizeof(err), &ignored);
	_exit(rc < 0 ? 1 : 0);
}

/* What the child says went wrong; its bytes are not trusted to be an error. */
static int child_error(int fd, struct err *err)
{
	struct err got = {0};
	ssize_t n = read(fd, &got, sizeof(got));

	if (n != (ssize_t)sizeof(got) || got.kind <= ERR_NONE || got.kind > ERR_SYSTEM)
		return err_set(err, ERR_SYSTEM, "the reader of the configuration died");
	got.msg[ERR_MSG_MAX - 1] = '\0';
	*err = got;
	return -1;
}

static int child_wait(pid_t pid, int err_fd, struct err *err)
{
	struct pollfd watched = {.fd = err_fd, .events = POLLIN};
	int status, ready;

	do
		ready = poll(&watched, 1, PATIENCE_MS);
	while (ready < 0 && errno == EINTR);
	if (ready <= 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(err, "wait for the reader of the configuration");
	if (ready <= 0)
		return err_set(err, ERR_LIMIT, "reading the configuration took more than %d s",
			       PATIENCE_MS / 1000);
	if (WIFSIGNALED(status))
		return err_set(
			err, ERR_SYSTEM, "the reader of the configuration died of signal %d%s",
			WTERMSIG(status),
			WTERMSIG(status) == SIGSYS ? " (a system call that it may not make)" : "");
	return WEXITSTATUS(status) == 0 ? 0 : child_error(err_fd, err);
}

static int run_reader(struct reader *r, struct bundle *ret, struct err *err)
{
	auto_fd int out = memfd_create("sallyport-bundle", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int ends[2];
	pid_t pid;
	int rc;

	if (out < 0)
		return err_sys(err, "make a memory file");
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(err, "make a pipe");
	pid = fork();
	if (pid == 0)
		child_main(r, out, ends[1]);
	close(ends[1]);
	rc = pid < 0 ? err_sys(err, "start the reader of the configuration")
		     : child_wait(pid, ends[0], err);
	close(ends[0]);
	if (rc < 0 || bundle_seal(out, ret, err) < 0)
		return -1;
	take_fd(out);
	return 0;
}

/* The folder as it really is, the last name as it is written. */
static int absolute(const char *path, char ret[PATH_MAX], struct err *err)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	char folder[PATH_MAX], real[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path + 1) : 1,
		 slash ? path : ".");
	if (!realpath(folder, real))
		return err_sys(err, "%s", path);
	if (snprintf(ret, PATH_MAX, "%s/%s", real[1] ? real : "", base) >= PATH_MAX)
		return err_set(err, ERR_CONFIG, "%s: the path is too long", path);
	return 0;
}

/* r->first is taken; *ret is what the child made of it. */
static int read_on(struct reader *r, struct bundle *ret, struct err *err)
{
	int rc = run_reader(r, ret, err);

	bundle_close(&r->first);
	return rc;
}

static int count_files(const struct bundle *b, size_t *ret, struct err *err)
{
	struct arena *a = arena_create(ARENA_MAX);
	struct config config;
	int rc = a ? bundle_config(b, a, &config, err) : err_set(err, ERR_SYSTEM, "no memory");

	if (rc == 0)
		*ret = config.file_count;
	arena_destroy(a);
	return rc;
}

static int read_all(const char *config_path, bool to_serve, struct bundle *ret, struct err *err)
{
	struct reader r;
	char path[PATH_MAX];
	size_t files = 0;

	if (absolute(config_path, path, err) < 0)
		return -1;
	r = (struct reader){
		.load = load_text, .work = work_config, .path = path, .to_serve = to_serve};
	if (run_reader(&r, &r.first, err) < 0)
		return -1;
	r.load = load_sources;
	r.work = work_rules;
	if (read_on(&r, ret, err) < 0)
		return -1;
	r.first = *ret;
	if (count_files(&r.first, &files, err) < 0) {
		bundle_close(&r.first);
		return -1;
	}
	if (!files)
		return 0;
	r.load = load_files;
	r.work = work_files;
	return read_on(&r, ret, err);
}

int bundle_read(const char *config_path, struct bundle *ret, struct err *err)
{
	return read_all(config_path, false, ret, err);
}

int bundle_read_to_serve(const char *config_path, struct bundle *ret, struct err *err)
{
	return read_all(config_path, true, ret, err);
}
