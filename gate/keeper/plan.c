/*
 * plan.c - a document of containers/create, read into what a sandbox can be started by.
 *
 * Each member that says something must be one that is kept here; all others are refused. What
 * clients send for "not used" (null, false, 0, "", [], {}) says nothing.
 */
#include "gate/keeper/state_priv.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_S     10
#define GRACE_MAX_S 300
#define NSIG_KEPT   32 /* the signals that have names */

struct reading {
	const struct keeper *k;
	struct arena *a;
	const struct jv *config, *host;
	struct plan *to;
	struct err *err;
};

typedef int keep_fn(struct reading *r, const char *key, const struct jv *v);

static int wrong(const struct reading *r, const char *key, const char *what)
{
	return err_set(r->err, ERR_INPUT, "%s: %s", key, what);
}

static bool is_text(const struct jv *v)
{
	return v->kind == JV_STRING && strlen(v->str.at) == v->str.len;
}

static int no_memory(const struct reading *r)
{
	return err_set(r->err, ERR_LIMIT, "the request needs more memory than it may take");
}

/* --- members that stand for themselves, or that hold anyhow --- */

/* Shown again, and nothing else: or what it asks for is so in every sandbox. */
static int keep_any(struct reading *r, const char *key, const struct jv *v)
{
	(void)r;
	(void)key;
	(void)v;
	return 0;
}

static int keep_image(struct reading *r, const char *key, const struct jv *v)
{
	if (is_text(v) &&
	    (span_is(v->str, KEEPER_IMAGE) || span_is(v->str, KEEPER_IMAGE ":latest") ||
	     span_is(v->str, r->k->image_id)))
		return 0;
	return wrong(r, key, "there is one image here: " KEEPER_IMAGE);
}

static int keep_hostname(struct reading *r, const char *key, const struct jv *v)
{
	if (!is_text(v) || v->str.len > 63 ||
	    strspn(v->str.at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") !=
		    v->str.len)
		return wrong(r, key, "a name has letters, digits and '-', at most 63");
	r->to->host_name = v->str.at;
	return 0;
}

static int keep_terminal(struct reading *r, const char *key, const struct jv *v)
{
	(void)key;
	r->to->tty = v->kind == JV_BOOL && v->b;
	return 0;
}

static int keep_stdin(struct reading *r, const char *key, const struct jv *v)
{
	(void)key;
	r->to->open_stdin = v->kind == JV_BOOL && v->b;
	return 0;
}

static int keep_folder(struct reading *r, const char *key, const struct jv *v)
{
	if (!is_text(v) || *v->str.at != '/' || v->str.len >= BOX_PATH_MAX)
		return wrong(r, key, "an absolute path is expected");
	r->to->cwd = v->str.at;
	return 0;
}

/* "SIGTERM", "TERM", "15" */
int plan_signal(const char *text)
{
	const char *name = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;
	char *end;
	long n = strtol(text, &end, 10);

	if (*text && !*end)
		return n > 0 && n < NSIG_KEPT ? (int)n : 0;
	for (int i = 1; i < NSIG_KEPT; i++)
		if (sigabbrev_np(i) && strcmp(sigabbrev_np(i), name) == 0)
			return i;
	return 0;
}

static int keep_grace(struct reading *r, const char *key, const struct jv *v)
{
	if (v->kind != JV_INT || v->i < 0 || v->i > GRACE_MAX_S)
		return wrong(r, key, "0 to 300 seconds are expected");
	r->to->stop_seconds = (int)v->i;
	return 0;
}

/* "1000", "1000:1000" */
static int keep_user(struct reading *r, const char *key, const struct jv *v)
{
	unsigned long uid, gid;
	char *end;

	if (!is_text(v) || *v->str.at < '0' || *v->str.at > '9')
		return wrong(r, key, "a user is a number here, as 1000 or 1000:1000");
	uid = gid = strtoul(v->str.at, &end, 10);
	if (*end == ':' && end[1] >= '0' && end[1] <= '9')
		gid = strtoul(end + 1, &end, 10);
	if (*end || uid >= INT_MAX || gid >= INT_MAX || !uid || !gid)
		return wrong(r, key, "a user is a number above 0 here, as 1000 or 1000:1000");
	r->to->user = v->str.at;
	r->to->uid = (uid_t)uid;
	r->to->gid = (gid_t)gid;
	return 0;
}

/* --- words and environment --- */

static size_t count_of(const struct jv *list)
{
	return list && list->kind == JV_ARRAY ? list->count : 0;
}

static int add_words(const char **to, size_t *count, const struct jv *list, struct err *err)
{
	for (size_t i = 0; i < count_of(list); i++) {
		if (!is_text(&list->items[i]))
			return err_set(err, ERR_INPUT, "a word of a command is no text");
		to[(*count)++] = list->items[i].str.at;
	}
	return 0;
}

const char **plan_words(struct arena *a, const struct jv *entry, const struct jv *more,
			struct err *err)
{
	size_t want = count_of(entry) + count_of(more), count = 0;
	const char **list = NULL;

	if (want <= KEEPER_WORDS_MAX)
		list = arena_take(a, (want + 1) * sizeof(*list));
	if (!list)
		err_set(err, ERR_LIMIT, "a command has more words than are taken");
	else if ((entry && entry->kind == JV_STRING && entry->str.len) ||
		 (more && more->kind == JV_STRING && more->str.len))
		err_set(err, ERR_INPUT, "a command is a list of words");
	else if (add_words(list, &count, entry, err) == 0 &&
		 add_words(list, &count, more, err) == 0)
		return list;
	return NULL;
}

static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return n == strcspn(b, "=") && strncmp(a, b, n) == 0;
}

static void put_variable(const char **list, size_t *count, const char *one)
{
	for (size_t i = 0; i < *count; i++)
		if (same_name(list[i], one)) {
			list[i] = one;
			return;
		}
	list[(*count)++] = one;
}

const char **plan_env(struct arena *a, const char *const *first, const struct jv *more,
		      struct err *err)
{
	size_t count = 0, own = 0;
	const char **list;

	while (first[own])
		own++;
	list = own + count_of(more) <= KEEPER_WORDS_MAX
		       ? arena_take(a, (own + count_of(more) + 1) * sizeof(*list))
		       : NULL;
	if (!list) {
		err_set(err, ERR_LIMIT, "there are more variables than are taken");
		return NULL;
	}
	for (size_t i = 0; i < own; i++)
		list[count++] = first[i];
	for (size_t i = 0; i < count_of(more); i++) {
		const struct jv *one = &more->items[i];

		if (!is_text(one) || !strchr(one->str.at, '=') || *one->str.at == '=') {
			err_set(err, ERR_INPUT, "Env: each entry is NAME=value");
			return NULL;
		}
		put_variable(list, &count, one->str.at);
	}
	list[count] = NULL;
	return list;
}

static int read_command(struct reading *r)
{
	const char *first[4] = {NULL};
	char *text = arena_take(r->a, strlen(r->k->conf->path) + 6);

	if (!text)
		return no_memory(r);
	snprintf(text, strlen(r->k->conf->path) + 6, "PATH=%s", r->k->conf->path);
	first[0] = text;
	first[1] = "HOME=/tmp";
	if (r->to->tty)
		first[2] = "TERM=xterm";
	r->to->env = plan_env(r->a, first, jv_get(r->config, "Env"), r->err);
	r->to->argv =
		plan_words(r->a, jv_get(r->config, "Entrypoint"), jv_get(r->config, "Cmd"), r->err);
	if (!r->to->env || !r->to->argv)
		return -1;
	if (!r->to->argv[0])
		return err_set(r->err, ERR_INPUT, "no command specified");
	return 0;
}

/* --- limits --- */

static int keep_memory(struct reading *r, const char *key, const struct jv *v)
{
	if (v->kind != JV_INT || v->i < 4 << 20)
		return wrong(r, key, "at least 4 MiB are expected");
	r->to->limits.memory = (uint64_t)v->i;
	return 0;
}

/* Memory and swap together. */
static int keep_swap(struct reading *r, const char *key, const struct jv *v)
{
	int64_t memory = jv_num(r->host, "Memory", 0);

	if (v->kind != JV_INT || memory <= 0 || v->i < memory)
		return wrong(r, key, "it is Memory and swap together, so at least Memory");
	r->to->limits.swap = (uint64_t)(v->i - memory);
	return 0;
}

static int keep_cpus(struct reading *r, const char *key, const struct jv *v)
{
	if (v->kind != JV_INT || v->i < 1000000)
		return wrong(r, key, "at least a thousandth of a processor is expected");
	r->to->limits.cpu_milli = (uint64_t)v->i / 1000000;
	return 0;
}

static int keep_quota(struct reading *r, const char *key, const struct jv *v)
{
	int64_t period = jv_num(r->host, "CpuPeriod", 0);

	if (period <= 0)
		period = 100000;
	if (v->kind != JV_INT || v->i < 1000 || v->i > INT64_MAX / 1000)
		return wrong(r, key, "at least 1000 microseconds are expected");
	r->to->limits.cpu_milli = (uint64_t)(v->i * 1000 / period);
	return r->to->limits.cpu_milli ? 0 : wrong(r, key, "that is next to nothing");
}

static int keep_pids(struct reading *r, const char *key, const struct jv *v)
{
	if (v->kind != JV_INT || v->i < 2)
		return wrong(r, key, "there is always a limit here: a number from 2 on");
	r->to->limits.pids = (uint64_t)v->i - 1; /* a box counts its init beside */
	return 0;
}

static int keep_one_ulimit(struct reading *r, const char *key, const struct jv *v)
{
	const char *name = jv_str(v, "Name", "");
	int64_t soft = jv_num(v, "Soft", -1), hard = jv_num(v, "Hard", soft);

	if (soft < 0 || hard < soft)
		return wrong(r, key, "Soft and Hard are numbers, the first not above the second");
	if (!strcmp(name, "core") && hard == 0)
		return 0;
	if (!strcmp(name, "nofile") && hard)
		r->to->limits.open_files = (uint64_t)hard;
	else if (!strcmp(name, "fsize") && hard && (uint64_t)hard <= r->k->conf->file)
		r->to->limits.file_bytes = (uint64_t)hard;
	else if (!strcmp(name, "cpu") && hard)
		r->to->limits.cpu_seconds = (uint64_t)hard;
	else
		return wrong(r, key,
			     "kept are nofile, cpu, core = 0, and fsize up to what the backend "
			     "allows");
	return 0;
}

static int keep_ulimits(struct reading *r, const char *key, const struct jv *v)
{
	for (size_t i = 0; i < count_of(v); i++)
		if (keep_one_ulimit(r, key, &v->items[i]) < 0)
			return -1;
	return 0;
}

static int keep_shm(struct reading *r, const char *key, const struct jv *v)
{
	if (v->kind != JV_INT || v->i < 4096)
		return wrong(r, key, "at least a page is expected");
	r->to->shm_bytes = (uint64_t)v->i;
	return 0;
}

/* --- places --- */

/* /proc and /dev are the sandbox's own, and the roots of all are not for others. */
static int check_target(const struct reading *r, const char *key, const char *target)
{
	static const char *const taken[] = {"/proc", "/sys", "/dev"};

	if (target[0] != '/' || !target[1] || strlen(target) >= BOX_PATH_MAX ||
	    strstr(target, "//") || strstr(target, "/./") || strstr(target, "/../"))
		return wrong(r, key, "the place inside is an absolute path, and not /");
	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++) {
		size_t n = strlen(taken[i]);

		if (!strncmp(target, taken[i], n) && (!target[n] || target[n] == '/'))
			return wrong(r, key, "nothing is put below /proc, /sys and /dev");
	}
	return 0;
}

static bool read_size(struct span s, uint64_t *ret)
{
	static const char units[] = "kmg";
	const char *unit;
	uint64_t n = 0;
	size_t i = 0;

	for (; i < s.len && s.at[i] >= '0' && s.at[i] <= '9' && n < UINT64_MAX / 100; i++)
		n = n * 10 + (uint64_t)(s.at[i] - '0');
	if (!i || i + 1 < s.len)
		return false;
	unit = i < s.len ? strchr(units, s.at[i] | 0x20) : NULL;
	if (i < s.len && (!unit || !*unit))
		return false;
	*ret = unit ? n << (10 * (unit - units + 1)) : n;
	return *ret >= 4096 && *ret <= (uint64_t)1 << 40;
}

static struct place *add_tmpfs(struct reading *r)
{
	if (r->to->tmpfs_count == KEEPER_PLACES_MAX) {
		err_set(r->err, ERR_LIMIT, "more places than are taken");
		return NULL;
	}
	return &r->to->tmpfs[r->to->tmpfs_count++];
}

/* "rw,noexec,nosuid,size=64m,mode=1777" */
static int read_options(struct reading *r, const char *key, struct span rest, struct place *to)
{
	static const char *const hold[] = {"rw", "nosuid", "nodev", "noexec"};
	struct span word;

	while (rest.len) {
		bool known = false;

		span_cut(&rest, ',', &word);
		for (size_t i = 0; i < sizeof(hold) / sizeof(*hold); i++)
			known = known || span_is(word, hold[i]);
		if (span_is(word, "exec"))
			known = to->exec = true;
		if (span_starts(word, "size="))
			known = read_size(span_skip(word, 5), &to->bytes);
		if (span_starts(word, "mode=")) {
			to->mode = (mode_t)strtoul(word.at + 5, NULL, 8) & 01777;
			known = to->mode != 0;
		}
		if (!known)
			return wrong(
				r, key,
				"options are size= (at least 4096 bytes), mode=, exec, noexec, "
				"nosuid, nodev, rw");
	}
	return to->bytes ? 0 : wrong(r, key, "give it a size, as size=64m");
}

static int keep_tmpfs(struct reading *r, const char *key, const struct jv *v)
{
	if (v->kind != JV_OBJECT)
		return wrong(r, key, "an object is expected");
	for (size_t i = 0; i < v->count; i++) {
		const struct jv_member *m = &v->members[i];
		struct place *to = add_tmpfs(r);

		if (!to || m->value.kind != JV_STRING)
			return to ? wrong(r, key, "options are a text") : -1;
		to->target = m->key.at;
		if (check_target(r, key, to->target) < 0 ||
		    read_options(r, key, m->value.str, to) < 0)
			return -1;
	}
	return 0;
}

static int add_bind(struct reading *r, const char *key, const struct place *p)
{
	if (r->to->bind_count == KEEPER_PLACES_MAX)
		return err_set(r->err, ERR_LIMIT, "more places than are taken");
	if (*p->source != '/' || strlen(p->source) >= PATH_MAX)
		return wrong(r, key, "there are no volumes here: name a path of the host");
	r->to->binds[r->to->bind_count++] = *p;
	return check_target(r, key, p->target);
}

/* "/host:/inside:ro" */
static int keep_binds(struct reading *r, const char *key, const struct jv *v)
{
	for (size_t i = 0; i < count_of(v); i++) {
		struct span rest =
			v->items[i].kind == JV_STRING ? v->items[i].str : (struct span){"", 0};
		struct span source, target, word;
		struct place p = {.writable = true};

		if (!span_cut(&rest, ':', &source))
			return wrong(r, key, "/HOST:/INSIDE:ro is expected");
		span_cut(&rest, ':', &target);
		while (rest.len) {
			span_cut(&rest, ',', &word);
			if (span_is(word, "ro"))
				p.writable = false;
			else if (!span_is(word, "rw") && !span_is(word, "rprivate") &&
				 !span_is(word, "private"))
				return wrong(r, key, "the modes that are kept are ro and rw");
		}
		p.source = arena_strndup(r->a, source.at, source.len);
		p.target = arena_strndup(r->a, target.at, target.len);
		if (!p.source || !p.target)
			return no_memory(r);
		if (add_bind(r, key, &p) < 0)
			return -1;
	}
	return 0;
}

/* Of an entry, each member that says something must be one of these. */
static int only(const struct reading *r, const char *key, const struct jv *v, const char *names)
{
	for (size_t i = 0; v && v->kind == JV_OBJECT && i < v->count; i++) {
		struct span rest = span_of(names), word;
		bool known = jv_is_neutral(&v->members[i].value);

		while (!known && rest.len) {
			span_cut(&rest, ' ', &word);
			known = span_eq(word, v->members[i].key);
		}
		if (!known)
			return err_set(r->err, ERR_INPUT,
				       "%s.%.60s: a local sandbox cannot keep it", key,
				       v->members[i].key.at);
	}
	return 0;
}

static int keep_mount(struct reading *r, const char *key, const struct jv *v)
{
	const char *type = jv_str(v, "Type", ""), *target = jv_str(v, "Target", "");
	const struct jv *options = jv_get(v, "TmpfsOptions"), *bind = jv_get(v, "BindOptions");
	const char *propagation = jv_str(bind, "Propagation", "");
	struct place *to;

	if (only(r, key, v, "Type Source Target ReadOnly BindOptions TmpfsOptions Consistency") <
		    0 ||
	    only(r, key, options, "SizeBytes Mode") < 0 || only(r, key, bind, "Propagation") < 0)
		return -1;
	if (*propagation && strcmp(propagation, "rprivate") != 0 &&
	    strcmp(propagation, "private") != 0)
		return wrong(r, key, "nothing is propagated here");
	if (!strcmp(type, "bind")) {
		const struct place p = {.source = jv_str(v, "Source", ""),
					.target = target,
					.writable = !jv_true(v, "ReadOnly")};

		return add_bind(r, key, &p);
	}
	if (strcmp(type, "tmpfs") != 0)
		return wrong(r, key, "the types that are kept are bind and tmpfs");
	to = add_tmpfs(r);
	if (!to)
		return -1;
	*to = (struct place){.target = target,
			     .bytes = (uint64_t)jv_num(options, "SizeBytes", 0),
			     .mode = (mode_t)jv_num(options, "Mode", 0) & 01777};
	if (to->bytes < 4096 || to->bytes > (uint64_t)1 << 40 || jv_true(v, "ReadOnly"))
		return wrong(r, key, "give it a size of at least 4096 bytes, and no ReadOnly");
	return check_target(r, key, target);
}

static int keep_mounts(struct reading *r, const char *key, const struct jv *v)
{
	for (size_t i = 0; i < count_of(v); i++)
		if (keep_mount(r, key, &v->items[i]) < 0)
			return -1;
	return 0;
}

/* --- words that must be what is so anyhow --- */

static int keep_private(struct reading *r, const char *key, const struct jv *v)
{
	if (is_text(v) && (span_is(v->str, "private") || span_is(v->str, "none")))
		return 0;
	return wrong(r, key, "a sandbox has its own");
}

static int keep_runtime(struct reading *r, const char *key, const struct jv *v)
{
	if (is_text(v) && span_is(v->str, "confined"))
		return 0;
	if (!is_text(v) || !span_is(v->str, "bare"))
		return wrong(r, key, "the runtimes are confined and bare");
	if (!r->k->conf->bare)
		return wrong(r, key, "this backend has no bare = true");
	r->to->mode = BOX_BARE;
	return 0;
}

static int keep_security(struct reading *r, const char *key, const struct jv *v)
{
	for (size_t i = 0; i < count_of(v); i++) {
		struct span one =
			v->items[i].kind == JV_STRING ? v->items[i].str : (struct span){"", 0};

		if (span_is(one, "no-new-privileges") || span_is(one, "no-new-privileges:true") ||
		    span_is(one, "no-new-privileges=true") || span_is(one, "seccomp=builtin"))
			continue;
		return wrong(r, key,
			     "kept are no-new-privileges and the built-in filter of system calls");
	}
	return 0;
}

static int keep_log(struct reading *r, const char *key, const struct jv *v)
{
	const char *type = jv_str(v, "Type", "");

	if (!*type || !strcmp(type, "local") || !strcmp(type, "json-file"))
		return 0; /* what is kept of output is bounded anyhow */
	return wrong(r, key, "output is kept in memory, and nowhere else");
}

static int keep_restart(struct reading *r, const char *key, const struct jv *v)
{
	const char *name = jv_str(v, "Name", "");

	return !*name || !strcmp(name, "no") ? 0 : wrong(r, key, "nothing is started anew here");
}

static int keep_swappiness(struct reading *r, const char *key, const struct jv *v)
{
	return v->kind == JV_INT && v->i == -1 ? 0 : wrong(r, key, "only -1 is kept");
}

static int keep_auto_remove(struct reading *r, const char *key, const struct jv *v)
{
	(void)key;
	r->to->auto_remove = v->kind == JV_BOOL && v->b;
	return 0;
}

/* Settings of end points are neutral, but nested. */
static bool says_nothing(const struct jv *v)
{
	for (size_t i = 0; v->kind == JV_OBJECT && i < v->count; i++)
		if (!says_nothing(&v->members[i].value))
			return false;
	return v->kind == JV_OBJECT || jv_is_neutral(v);
}

static int keep_networking(struct reading *r, const char *key, const struct jv *v)
{
	return says_nothing(v) ? 0 : wrong(r, key, "there are no networks here");
}

/* A program without walls has the network of the host, and is not told otherwise. */
static int check_network(struct reading *r)
{
	const char *mode = jv_str(r->host, "NetworkMode", "");
	bool open = !*mode || !strcmp(mode, "default");

	if (r->to->mode == BOX_CONFINED && strcmp(mode, "none") != 0)
		return wrong(r, "HostConfig.NetworkMode",
			     "a local sandbox has no network: ask for none");
	if (r->to->mode == BOX_BARE && !open)
		return wrong(r, "HostConfig.NetworkMode",
			     "without walls a program has the host's network: leave it out");
	return 0;
}

/* --- together --- */

static int keep_signal(struct reading *r, const char *key, const struct jv *v)
{
	r->to->stop_signal = is_text(v) ? plan_signal(v->str.at) : 0;
	return r->to->stop_signal ? 0 : wrong(r, key, "no such signal");
}

struct kept_row {
	const char *key;
	keep_fn *keep;
};

static const struct kept_row kept_config[] = {
#define CONFIG(name, how) {#name, keep_##how},
#define HOST(name, how)
#include "gate/keeper/kept.def"
#undef CONFIG
#undef HOST
	{NULL, NULL},
};

static const struct kept_row kept_host[] = {
#define CONFIG(name, how)
#define HOST(name, how) {#name, keep_##how},
#include "gate/keeper/kept.def"
#undef CONFIG
#undef HOST
	{NULL, NULL},
};

static keep_fn *find(const struct kept_row *rows, struct span key)
{
	for (; rows->key; rows++)
		if (span_is(key, rows->key))
			return rows->keep;
	return NULL;
}

static int read_members(struct reading *r, const struct kept_row *rows, const char *before,
			const struct jv *doc)
{
	for (size_t i = 0; doc && doc->kind == JV_OBJECT && i < doc->count; i++) {
		const struct jv_member *m = &doc->members[i];
		keep_fn *keep = find(rows, m->key);
		char key[80];

		if (jv_is_neutral(&m->value))
			continue;
		snprintf(key, sizeof(key), "%s%.60s", before, m->key.at);
		if (!keep)
			return wrong(r, key, "a local sandbox cannot keep it");
		if (keep(r, key, &m->value) < 0)
			return -1;
	}
	return 0;
}

/* Without walls there is nothing that a place could be put into. */
static int check_bare(const struct reading *r)
{
	if (r->to->mode != BOX_BARE)
		return 0;
	if (r->to->bind_count || r->to->tmpfs_count || r->to->shm_bytes || r->to->host_name ||
	    r->to->user || jv_true(r->host, "ReadonlyRootfs"))
		return err_set(
			r->err, ERR_INPUT,
			"without walls (runtime bare) none of Binds, Mounts, Tmpfs, ShmSize, "
			"Hostname, User and ReadonlyRootfs can be kept");
	return 0;
}

/* They come after the binds, and would cover them. */
static int check_covered(const struct reading *r)
{
	const struct plan *p = r->to;

	for (size_t i = 0; i < p->tmpfs_count; i++)
		for (size_t j = 0; j < p->bind_count; j++) {
			size_t n = strlen(p->tmpfs[i].target);

			if (!strncmp(p->binds[j].target, p->tmpfs[i].target, n) &&
			    (p->binds[j].target[n] == '/' || !p->binds[j].target[n]))
				return wrong(
					r, "HostConfig.Tmpfs",
					"nothing can be mounted at or below a place in memory");
		}
	return 0;
}

int plan_read(const struct keeper *k, struct arena *a, const struct jv *config, struct plan *ret,
	      struct err *err)
{
	struct reading r = {.k = k,
			    .a = a,
			    .config = config,
			    .host = jv_get(config, "HostConfig"),
			    .to = ret,
			    .err = err};

	*ret = (struct plan){.stop_signal = SIGTERM, .stop_seconds = GRACE_S};
	ret->limits = (struct box_limits){
		.memory = k->conf->memory, .pids = k->conf->pids, .file_bytes = k->conf->file};
	if (!*jv_str(config, "Image", ""))
		return wrong(&r, "Image", "it is missing; there is one here: " KEEPER_IMAGE);
	if (read_members(&r, kept_config, "", config) < 0 ||
	    read_members(&r, kept_host, "HostConfig.", r.host) < 0 || check_network(&r) < 0 ||
	    check_bare(&r) < 0 || check_covered(&r) < 0)
		return -1;
	return read_command(&r);
}
