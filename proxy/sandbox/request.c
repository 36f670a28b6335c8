#include "proxy/sandbox/sandbox_priv.h"

#include "gate/base/nearest.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what is known --- */

enum want { WANT_TEXT = 0, WANT_OBJECT, WANT_ARRAY, WANT_BOOL, WANT_TIME, WANT_SIZE, WANT_NUMBER };

struct field {
	const char *name;
	enum want want;
};

static const char *const want_text[] = {"a text",
					"an object",
					"a list",
					"true or false",
					"a time, such as \"30s\" or 30",
					"a size, such as \"64MiB\" or a number of bytes",
					"a number"};

static bool fits(const struct jv *v, enum want want)
{
	bool number = v->kind == JV_INT || v->kind == JV_REAL;

	switch (want) {
	case WANT_TEXT:
		return v->kind == JV_STRING && !memchr(v->str.at, 0, v->str.len);
	case WANT_OBJECT:
		return v->kind == JV_OBJECT;
	case WANT_ARRAY:
		return v->kind == JV_ARRAY;
	case WANT_BOOL:
		return v->kind == JV_BOOL;
	case WANT_TIME:
	case WANT_SIZE:
		return number || v->kind == JV_STRING;
	case WANT_NUMBER:
		return number;
	}
	return false;
}

/* Every member is known, and of its kind; a null counts as not said. */
static int check(struct arena *a, const struct jv *obj, const struct field *known,
		 const char *where, struct trouble *t)
{
	char hint[NEAREST_TEXT_MAX];

	for (size_t i = 0; i < obj->count; i++) {
		const struct jv_member *m = &obj->members[i];
		struct nearest near = nearest_to(m->key);
		const struct field *f = known;

		for (; f->name && !span_is(m->key, f->name); f++)
			nearest_offer(&near, f->name);
		if (!f->name)
			return trouble_set(t, a, CODE_unknown_field,
					   "there is no field '%s%.60s'%s", where, m->key.at,
					   nearest_text(&near, hint));
		if (m->value.kind != JV_NULL && !fits(&m->value, f->want))
			return trouble_set(t, a, CODE_bad_request, "%s%s must be %s", where,
					   f->name, want_text[f->want]);
	}
	return 0;
}

static const struct jv *given(const struct jv *obj, const char *name)
{
	const struct jv *v = jv_get(obj, name);

	return v && v->kind != JV_NULL ? v : NULL;
}

int request_object(struct httpd_request *r, struct jv *ret, struct trouble *t)
{
	struct err err = {0};
	enum jv_fault fault;

	if (!buf_len(&r->body)) {
		*ret = jv_object();
		return 0;
	}
	if (jv_parse(r->arena, buf_span(&r->body), ret, &fault, &err) < 0)
		return trouble_set(t, r->arena, CODE_bad_json, "%s", err.msg);
	return ret->kind == JV_OBJECT
		       ? 0
		       : trouble_set(t, r->arena, CODE_bad_json, "the body is no JSON object");
}

int request_query(struct httpd_request *r, const char *const *known, struct trouble *t)
{
	for (size_t i = 0; i < r->query_count; i++) {
		bool found = false;

		for (const char *const *k = known; *k; k++)
			found = found || span_is(r->query[i].key, *k);
		if (!found)
			return trouble_set(t, r->arena, CODE_unknown_field,
					   "there is no query key '%.60s'", r->query[i].key.at);
	}
	return 0;
}

/* --- numbers with units --- */

struct unit {
	const char *name;
	double times;
};

static bool read_unit(const struct jv *v, const struct unit *units, double *ret)
{
	char text[32], *end;

	if (v->kind != JV_STRING) {
		*ret = v->kind == JV_INT ? (double)v->i : v->real;
		return true;
	}
	if (!v->str.len || v->str.len >= sizeof(text) || v->str.at[0] < '0' || v->str.at[0] > '9' ||
	    strpbrk(v->str.at, "xXpP"))
		return false;
	memcpy(text, v->str.at, v->str.len + 1);
	*ret = strtod(text, &end);
	for (; units->name; units++)
		if (strcmp(end, units->name) == 0) {
			*ret *= units->times;
			return true;
		}
	return false;
}

/* In milliseconds. */
static int read_time(struct arena *a, const struct jv *obj, const char *name, int64_t *ret_ms,
		     struct trouble *t)
{
	static const struct unit units[] = {{"ms", 0.001}, {"s", 1},     {"m", 60},
					    {"h", 3600},   {"d", 86400}, {NULL, 0}};
	const struct jv *v = given(obj, name);
	double seconds;

	*ret_ms = 0;
	if (!v)
		return 0;
	if (!read_unit(v, units, &seconds) || !(seconds >= 0.001 && seconds <= 31536000))
		return trouble_set(t, a, CODE_invalid,
				   "%s must be a time above 0, such as \"30s\", \"5m\" or a number "
				   "of seconds",
				   name);
	*ret_ms = llround(seconds * 1000);
	return 0;
}

static int read_seconds(struct arena *a, const struct jv *obj, const char *name, int64_t *ret_s,
			struct trouble *t)
{
	if (read_time(a, obj, name, ret_s, t) < 0)
		return -1;
	if (*ret_s && *ret_s < 1000)
		return trouble_set(t, a, CODE_invalid, "%s must be at least a second", name);
	*ret_s /= 1000;
	return 0;
}

static int read_size(struct arena *a, const struct jv *obj, const char *name, int64_t *ret,
		     struct trouble *t)
{
	static const struct unit units[] = {{"", 1},
					    {"KiB", 1024},
					    {"MiB", 1048576},
					    {"GiB", 1073741824},
					    {"TiB", 1099511627776},
					    {NULL, 0}};
	const struct jv *v = given(obj, name);
	double bytes;

	if (!v)
		return 0;
	if (!read_unit(v, units, &bytes) || !(bytes >= 4096 && bytes <= 1e15))
		return trouble_set(t, a, CODE_invalid,
				   "%s must be a size of at least 4KiB, such as \"64MiB\"", name);
	*ret = llround(bytes);
	return 0;
}

static int read_limits(struct arena *a, const struct jv *obj, struct limits *ret, struct trouble *t)
{
	static const struct field known[] = {{"memory", WANT_SIZE}, {"cpus", WANT_NUMBER},
					     {"pids", WANT_NUMBER}, {"disk", WANT_SIZE},
					     {"output", WANT_SIZE}, {NULL, WANT_TEXT}};
	const struct jv *l = given(obj, "limits"), *cpus, *pids;
	double n;

	if (!l)
		return 0;
	if (check(a, l, known, "limits.", t) < 0 ||
	    read_size(a, l, "memory", &ret->memory, t) < 0 ||
	    read_size(a, l, "disk", &ret->disk, t) < 0 ||
	    read_size(a, l, "output", &ret->output, t) < 0)
		return -1;
	cpus = given(l, "cpus");
	pids = given(l, "pids");
	n = cpus ? cpus->kind == JV_INT ? (double)cpus->i : cpus->real : 1;
	if (!(n >= 0.01 && n <= 4096))
		return trouble_set(t, a, CODE_invalid, "limits.cpus must be from 0.01 to 4096");
	if (cpus)
		ret->nano_cpus = llround(n * 1e9);
	if (pids && (pids->kind != JV_INT || pids->i < 1 || pids->i > 4194304))
		return trouble_set(t, a, CODE_invalid, "limits.pids must be from 1 to 4194304");
	if (pids)
		ret->pids = pids->i;
	return 0;
}

/* --- texts --- */

static int read_env(struct arena *a, const struct jv *obj, struct jv *ret, struct trouble *t)
{
	const struct jv *env = given(obj, "env");
	size_t bytes = 0;

	*ret = jv_array();
	for (size_t i = 0; env && i < env->count; i++) {
		struct span name = env->members[i].key, value = env->members[i].value.str;
		char *pair;

		if (env->members[i].value.kind != JV_STRING)
			return trouble_set(t, a, CODE_bad_request, "env.%.60s must be a text",
					   name.at);
		bytes += name.len + value.len + 2;
		if (!name.len || memchr(name.at, '=', name.len) || strlen(name.at) != name.len ||
		    memchr(value.at, 0, value.len))
			return trouble_set(t, a, CODE_invalid,
					   "env: '%.60s' is no name of a variable", name.at);
		if (env->count > ENV_MAX || bytes > ENV_BYTES_MAX)
			return trouble_set(t, a, CODE_too_large,
					   "env: at most %d variables, and %u bytes of them",
					   ENV_MAX, ENV_BYTES_MAX);
		pair = arena_take(a, name.len + value.len + 2);
		if (!pair)
			return trouble_set(t, a, CODE_no_memory, "env");
		memcpy(pair, name.at, name.len);
		pair[name.len] = '=';
		memcpy(pair + name.len + 1, value.at, value.len);
		jv_push(a, ret, jv_string(pair));
	}
	return 0;
}

static int read_labels(struct arena *a, const struct jv *obj, struct jv *ret, struct trouble *t)
{
	const struct jv *labels = given(obj, "labels");

	*ret = labels ? *labels : jv_object();
	if (ret->count > LABELS_MAX)
		return trouble_set(t, a, CODE_too_large, "labels: at most %d", LABELS_MAX);
	for (size_t i = 0; i < ret->count; i++) {
		const struct jv_member *m = &ret->members[i];

		if (m->value.kind != JV_STRING)
			return trouble_set(t, a, CODE_bad_request, "labels.%.60s must be a text",
					   m->key.at);
		if (!m->key.len || memchr(m->key.at, '=', m->key.len) ||
		    m->key.len + m->value.str.len > LABEL_BYTES_MAX)
			return trouble_set(t, a, CODE_invalid,
					   "labels: '%.60s' is no name, or too long", m->key.at);
	}
	return 0;
}

static int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* The standard alphabet, with its padding. */
static bool base64(struct arena *a, struct span in, struct span *ret)
{
	unsigned char *out = arena_take(a, in.len / 4 * 3 + 1);
	size_t n = 0;

	if (!out || in.len % 4)
		return false;
	for (size_t i = 0; i < in.len; i += 4) {
		bool last = i + 4 == in.len;
		int pad = last && in.at[i + 3] == '=' ? in.at[i + 2] == '=' ? 2 : 1 : 0;
		uint32_t bits = 0;

		for (int k = 0; k < 4; k++) {
			int digit = k >= 4 - pad ? 0 : base64_digit(in.at[i + (size_t)k]);

			if (digit < 0)
				return false;
			bits = bits << 6 | (uint32_t)digit;
		}
		for (int k = 0; k < 3 - pad; k++)
			out[n++] = (unsigned char)(bits >> (16 - 8 * k));
	}
	*ret = (struct span){(const char *)out, n};
	return true;
}

/* NAME or NAME_base64, one of them; false: neither. */
static int read_octets(struct arena *a, const struct jv *obj, const char *name, struct span *ret,
		       bool *ret_said, struct trouble *t)
{
	char coded[32];
	const struct jv *plain = given(obj, name), *other;

	snprintf(coded, sizeof(coded), "%s_base64", name);
	other = given(obj, coded);
	*ret_said = plain || other;
	*ret = plain ? plain->str : (struct span){"", 0};
	if (plain && other)
		return trouble_set(t, a, CODE_bad_request, "give %s or %s, not both", name, coded);
	if (other && !base64(a, other->str, ret))
		return trouble_set(t, a, CODE_invalid, "%s is no base64", coded);
	return 0;
}

static int read_file(struct arena *a, const struct jv *v, struct wanted_file *ret,
		     struct trouble *t)
{
	static const struct field known[] = {{"path", WANT_TEXT},
					     {"content", WANT_TEXT},
					     {"content_base64", WANT_TEXT},
					     {"mode", WANT_TEXT},
					     {NULL, WANT_TEXT}};
	bool said;

	if (v->kind != JV_OBJECT)
		return trouble_set(t, a, CODE_bad_request, "files: an object each is expected");
	if (check(a, v, known, "files[].", t) < 0 ||
	    read_octets(a, v, "content", &ret->content, &said, t) < 0)
		return -1;
	ret->path = jv_str(v, "path", "");
	ret->mode = jv_str(v, "mode", "0644");
	if (!*ret->path || strlen(ret->path) > PATH_BYTES_MAX || !said)
		return trouble_set(t, a, CODE_invalid,
				   "files: each needs a path, and content or content_base64");
	if (strlen(ret->mode) < 3 || strlen(ret->mode) > 4 ||
	    strspn(ret->mode, "01234567") != strlen(ret->mode))
		return trouble_set(t, a, CODE_invalid,
				   "files: mode must be octal, such as \"0644\"");
	return 0;
}

static int read_files(struct arena *a, const struct jv *obj, struct wanted *ret, struct trouble *t)
{
	const struct jv *files = given(obj, "files");

	ret->file_count = files ? files->count : 0;
	if (ret->file_count > FILES_MAX)
		return trouble_set(t, a, CODE_too_large, "files: at most %d", FILES_MAX);
	ret->files = arena_take(a, (ret->file_count + 1) * sizeof(*ret->files));
	if (!ret->files)
		return trouble_set(t, a, CODE_no_memory, "files");
	for (size_t i = 0; i < ret->file_count; i++)
		if (read_file(a, &files->items[i], &ret->files[i], t) < 0)
			return -1;
	return 0;
}

/* --- the bodies --- */

static const char *word(const struct jv *obj, const char *name)
{
	return given(obj, name) ? jv_str(obj, name, "") : "";
}

int request_create(struct httpd_request *r, struct wanted *ret, struct trouble *t)
{
	static const struct field known[] = {
		{"profile", WANT_TEXT},  {"image", WANT_TEXT},  {"backend", WANT_TEXT},
		{"env", WANT_OBJECT},    {"files", WANT_ARRAY}, {"limits", WANT_OBJECT},
		{"lifetime", WANT_TIME}, {"idle", WANT_TIME},   {"labels", WANT_OBJECT},
		{"per_call", WANT_BOOL}, {NULL, WANT_TEXT}};
	struct arena *a = r->arena;
	struct jv obj;

	*ret = (struct wanted){.per_call = -1};
	if (request_object(r, &obj, t) < 0 || check(a, &obj, known, "", t) < 0)
		return -1;
	ret->profile = word(&obj, "profile");
	ret->image = word(&obj, "image");
	ret->backend = word(&obj, "backend");
	if (strlen(ret->image) >= sizeof(((struct box *)0)->image))
		return trouble_set(t, a, CODE_invalid, "image is too long");
	if (given(&obj, "per_call"))
		ret->per_call = jv_true(&obj, "per_call");
	if (read_env(a, &obj, &ret->env, t) < 0 || read_labels(a, &obj, &ret->labels, t) < 0 ||
	    read_files(a, &obj, ret, t) < 0 || read_limits(a, &obj, &ret->limits, t) < 0 ||
	    read_seconds(a, &obj, "lifetime", &ret->lifetime_s, t) < 0)
		return -1;
	return read_seconds(a, &obj, "idle", &ret->idle_s, t);
}

static int read_argv(struct arena *a, const struct jv *obj, struct wanted_exec *ret,
		     struct trouble *t)
{
	const struct jv *argv = given(obj, "argv");
	size_t bytes = 0;

	if (!argv || !argv->count)
		return trouble_set(t, a, CODE_bad_request,
				   "argv is missing: a list, the program first");
	ret->argv = arena_take(a, (argv->count + 1) * sizeof(*ret->argv));
	if (!ret->argv)
		return trouble_set(t, a, CODE_no_memory, "argv");
	for (size_t i = 0; i < argv->count; i++) {
		const struct jv *v = &argv->items[i];

		if (v->kind != JV_STRING || memchr(v->str.at, 0, v->str.len))
			return trouble_set(t, a, CODE_bad_request, "argv must be a list of texts");
		bytes += v->str.len + 1;
		if (argv->count > ARGV_MAX || bytes > ARGV_BYTES_MAX)
			return trouble_set(t, a, CODE_too_large,
					   "argv: at most %d words, and %u bytes of them", ARGV_MAX,
					   ARGV_BYTES_MAX);
		ret->argv[i] = v->str.at;
	}
	return *ret->argv[0] ? 0 : trouble_set(t, a, CODE_invalid, "argv names no program");
}

static int read_side(struct arena *a, const struct jv *v, const char *name, int *ret,
		     struct trouble *t)
{
	int64_t n = jv_num(v, name, 0);

	if (n < 1 || n > 10000)
		return trouble_set(t, a, CODE_invalid, "%s must be from 1 to 10000", name);
	*ret = (int)n;
	return 0;
}

static int read_tty(struct arena *a, const struct jv *v, int *rows, int *cols, struct trouble *t)
{
	static const struct field known[] = {
		{"rows", WANT_NUMBER}, {"cols", WANT_NUMBER}, {NULL, WANT_TEXT}};

	if (check(a, v, known, "", t) < 0 || read_side(a, v, "rows", rows, t) < 0)
		return -1;
	return read_side(a, v, "cols", cols, t);
}

int request_exec(struct httpd_request *r, struct wanted_exec *ret, struct trouble *t)
{
	static const struct field known[] = {{"argv", WANT_ARRAY},
					     {"cwd", WANT_TEXT},
					     {"env", WANT_OBJECT},
					     {"stdin", WANT_TEXT},
					     {"stdin_base64", WANT_TEXT},
					     {"stdin_stream", WANT_BOOL},
					     {"timeout", WANT_TIME},
					     {"tty", WANT_OBJECT},
					     {"detach", WANT_BOOL},
					     {"output", WANT_SIZE},
					     {NULL, WANT_TEXT}};
	struct arena *a = r->arena;
	bool said;
	struct jv obj;

	*ret = (struct wanted_exec){.cwd = ""};
	if (request_object(r, &obj, t) < 0 || check(a, &obj, known, "", t) < 0 ||
	    read_argv(a, &obj, ret, t) < 0 || read_env(a, &obj, &ret->env, t) < 0 ||
	    read_octets(a, &obj, "stdin", &ret->input, &said, t) < 0 ||
	    read_time(a, &obj, "timeout", &ret->timeout_ms, t) < 0 ||
	    read_size(a, &obj, "output", &ret->output, t) < 0)
		return -1;
	ret->cwd = word(&obj, "cwd");
	ret->detach = jv_true(&obj, "detach");
	ret->input_streams = jv_true(&obj, "stdin_stream");
	if (said && ret->input_streams)
		return trouble_set(t, a, CODE_bad_request,
				   "with stdin_stream leave stdin and stdin_base64 out");
	if (*ret->cwd && (*ret->cwd != '/' || strlen(ret->cwd) > PATH_BYTES_MAX))
		return trouble_set(t, a, CODE_invalid, "cwd must be an absolute path");
	if (given(&obj, "tty"))
		return read_tty(a, given(&obj, "tty"), &ret->rows, &ret->cols, t);
	return 0;
}

int request_lifetime(struct httpd_request *r, int64_t *ret_s, struct trouble *t)
{
	static const struct field known[] = {{"lifetime", WANT_TIME}, {NULL, WANT_TEXT}};
	struct jv obj;

	if (request_object(r, &obj, t) < 0 || check(r->arena, &obj, known, "", t) < 0 ||
	    read_seconds(r->arena, &obj, "lifetime", ret_s, t) < 0)
		return -1;
	return *ret_s ? 0 : trouble_set(t, r->arena, CODE_bad_request, "lifetime is missing");
}

int request_size(struct httpd_request *r, int *ret_rows, int *ret_cols, struct trouble *t)
{
	struct jv obj;

	if (request_object(r, &obj, t) < 0)
		return -1;
	return read_tty(r->arena, &obj, ret_rows, ret_cols, t);
}

/* By its number, or its name with or without SIG. */
int request_signal(struct httpd_request *r, int *ret, struct trouble *t)
{
	static const struct {
		const char *name;
		int number;
	} names[] = {{"KILL", SIGKILL}, {"TERM", SIGTERM},  {"INT", SIGINT},   {"HUP", SIGHUP},
		     {"QUIT", SIGQUIT}, {"USR1", SIGUSR1},  {"USR2", SIGUSR2}, {"STOP", SIGSTOP},
		     {"CONT", SIGCONT}, {"WINCH", SIGWINCH}};
	const struct jv *v;
	const char *name;
	struct jv obj;

	*ret = SIGKILL;
	if (request_object(r, &obj, t) < 0)
		return -1;
	v = given(&obj, "signal");
	if (obj.count > (v != NULL))
		return trouble_set(t, r->arena, CODE_unknown_field, "only 'signal' is known here");
	if (!v)
		return 0;
	name = v->kind == JV_STRING ? v->str.at : "";
	name += strncmp(name, "SIG", 3) == 0 ? 3 : 0;
	*ret = v->kind == JV_INT && v->i > 0 && v->i <= 64 ? (int)v->i : 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(names[i].name, name) == 0)
			*ret = names[i].number;
	return *ret ? 0 : trouble_set(t, r->arena, CODE_invalid, "there is no such signal");
}
