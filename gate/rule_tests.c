#include "gate/rule_tests.h"

#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/base/nearest.h"
#include "gate/docker_cli.h"
#include "rules/luadata.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define WORLD_MAX   ((size_t)16 << 20)
#define REQUEST_MAX ((size_t)2 << 20)
#define NOW_DEFAULT 1767225600 /* 2026-01-01 */

/* An engine as it comes, with gVisor beside runc; everything else a test must say. */
static const char plain_world[] =
	"{\"version\":{\"ApiVersion\":\"1.43\",\"MinAPIVersion\":\"1.12\"},\"info\":{"
	"\"DefaultRuntime\":"
	"\"runc\",\"Runtimes\":{\"runc\":{\"path\":\"runc\"},\"runsc\":{\"path\":\"/usr/bin/"
	"runsc\"}},"
	"\"SecurityOptions\":[\"name=apparmor\",\"name=seccomp,profile=builtin\"],\"OSType\":"
	"\"linux\"},"
	"\"images\":{},\"containers\":{},\"volumes\":{},\"networks\":{},\"files\":{}}";

enum key_kind { KIND_TEXT = 0, KIND_ANY };

static const struct {
	const char *name;
	enum key_kind kind;
} keys[] = {
#define KEY(name, kind, doc) {#name, KIND_##kind},
#include "gate/rule_tests.def"
#undef KEY
};
#define KEYS (sizeof(keys) / sizeof(*keys))

struct reading {
	const struct rule_source *file;
	struct arena *arena;
	struct err *err;
	int line;
};

static int wrong(const struct reading *r, const char *what)
{
	return err_set(r->err, ERR_CONFIG, "%s:%d: %s", r->file->name, r->line, what);
}

/* A copy whose objects may be changed. */
static struct jv copied(struct arena *a, const struct jv *v)
{
	struct jv out = *v;

	if (v->kind != JV_OBJECT)
		return out;
	out = jv_object();
	for (size_t i = 0; i < v->count; i++)
		jv_set_span(a, &out, v->members[i].key, copied(a, &v->members[i].value));
	return out;
}

static int check_keys(const struct reading *r, const struct jv *row)
{
	for (size_t i = 0; i < row->count; i++) {
		struct nearest near = nearest_to(span_of(row->members[i].key.at));
		char hint[NEAREST_TEXT_MAX];
		size_t k = 0;

		while (k < KEYS && !span_is(row->members[i].key, keys[k].name))
			nearest_offer(&near, keys[k++].name);
		if (k == KEYS)
			return err_set(r->err, ERR_CONFIG,
				       "%s:%d: a test says nothing called '%s'%s", r->file->name,
				       r->line, row->members[i].key.at, nearest_text(&near, hint));
		if (keys[k].kind == KIND_TEXT && row->members[i].value.kind != JV_STRING)
			return err_set(r->err, ERR_CONFIG, "%s:%d: %s must be a text",
				       r->file->name, r->line, keys[k].name);
	}
	return 0;
}

/* --- worlds --- */

static int read_world(const struct reading *r, const char *name, struct jv *ret)
{
	const char *slash = strrchr(r->file->name, '/');
	char path[PATH_MAX];
	enum jv_fault fault;
	struct buf text;
	int rc;

	if (strchr(name, '/'))
		return wrong(r, "world names a file in the folder of the test");
	snprintf(path, sizeof(path), "%.*s%s", slash ? (int)(slash - r->file->name + 1) : 0,
		 r->file->name, name);
	if (io_read_file(path, WORLD_MAX, &text, r->err) < 0)
		return err_wrap(r->err, "%s:%d: world", r->file->name, r->line);
	rc = jv_parse(r->arena, buf_span(&text), ret, &fault, r->err);
	buf_fini(&text);
	if (rc < 0)
		return err_wrap(r->err, "%s", path);
	return ret->kind == JV_OBJECT ? 0 : wrong(r, "world is no JSON object");
}

/* A file's name gives way to what stands in it. */
static int load_world(const struct reading *r, struct jv *row)
{
	struct jv *world = (struct jv *)jv_get(row, "world");
	struct jv tree;

	if (!world || world->kind == JV_OBJECT)
		return 0;
	if (world->kind == JV_ARRAY && !world->count) {
		*world = jv_object();
		return 0;
	}
	if (world->kind != JV_STRING)
		return wrong(r, "world is a table, or the name of a JSON file");
	if (read_world(r, world->str.at, &tree) < 0)
		return -1;
	*world = tree;
	return 0;
}

/* --- requests --- */

static bool has_header(struct span head, const char *name)
{
	struct span rest = head, line;
	size_t len = strlen(name);

	while (rest.len) {
		span_cut(&rest, '\n', &line);
		if (line.len > len && strncasecmp(line.at, name, len) == 0 && line.at[len] == ':')
			return true;
	}
	return false;
}

/* What only the wire needs is added; what the test writes stays as it is. */
static void complete(struct buf *out, struct span text)
{
	const char *end = memmem(text.at, text.len, "\n\n", 2);
	struct span head = {text.at, end ? (size_t)(end - text.at) : text.len};
	struct span body = end ? span_skip(text, head.len + 2) : (struct span){"", 0};
	struct span line, rest = head;

	if (!span_cut(&rest, '\n', &line)) {
		line = head;
		rest = (struct span){"", 0};
	}
	buf_put(out, line.at, line.len);
	if (!memmem(line.at, line.len, " HTTP/", 6))
		buf_puts(out, " HTTP/1.1");
	buf_puts(out, "\n");
	if (!has_header(rest, "Host"))
		buf_puts(out, "Host: docker\n");
	if (!has_header(rest, "Content-Length") && !has_header(rest, "Transfer-Encoding")) {
		if (body.len && !has_header(rest, "Content-Type"))
			buf_puts(out, "Content-Type: application/json\n");
		buf_printf(out, "Content-Length: %zu\n", body.len);
	}
	while (rest.len && rest.at[rest.len - 1] == '\n')
		rest.len--;
	if (rest.len) {
		buf_put(out, rest.at, rest.len);
		buf_puts(out, "\n");
	}
	buf_puts(out, "\n");
	buf_put(out, body.at, body.len);
}

/* { "POST", "/containers/create", { body } } */
static int request_of_list(const struct reading *r, const struct jv *list, struct buf *out)
{
	struct buf text;

	if (list->count < 2 || list->count > 3 || list->items[0].kind != JV_STRING ||
	    list->items[1].kind != JV_STRING)
		return wrong(r, "request is raw HTTP, or { \"METHOD\", \"/target\", { body } }");
	buf_init(&text, REQUEST_MAX);
	buf_printf(&text, "%.*s %.*s\n\n", SPAN_FMT(list->items[0].str),
		   SPAN_FMT(list->items[1].str));
	if (list->count == 3 && list->items[2].kind == JV_STRING)
		buf_put(&text, list->items[2].str.at, list->items[2].str.len);
	else if (list->count == 3)
		jv_write(&text, &list->items[2]);
	complete(out, buf_span(&text));
	buf_fini(&text);
	return 0;
}

static struct span unindented(struct span s)
{
	while (s.len && (*s.at == '\n' || *s.at == ' ' || *s.at == '\t'))
		s = span_skip(s, 1);
	return s;
}

static int take_request(const struct reading *r, const struct jv *row, struct rule_test *t)
{
	const struct jv *request = jv_get(row, "request"), *docker = jv_get(row, "docker");
	struct buf text;
	const char *copy;
	int rc = 0;

	buf_init(&text, REQUEST_MAX);
	if (docker && docker->kind == JV_ARRAY) {
		rc = docker_cli_request(docker, r->arena, &text, r->err);
		if (rc < 0)
			err_wrap(r->err, "%s:%d", r->file->name, r->line);
	} else if (docker) {
		rc = wrong(r, "docker is a list of words");
	} else if (request->kind == JV_STRING) {
		complete(&text, unindented(request->str));
	} else {
		rc = request_of_list(r, request, &text);
	}
	copy = arena_strndup(r->arena, buf_span(&text).at, buf_len(&text));
	if (rc == 0 && (buf_spent(&text) || !copy))
		rc = wrong(r, "the request is too large");
	t->request = (struct span){copy, buf_len(&text)};
	buf_fini(&text);
	return rc;
}

/* --- rows --- */

static int take_who(const struct reading *r, const struct jv *row, struct rule_test *t)
{
	const struct jv *who = jv_get(row, "identity");

	t->who = jv_object();
	if (!who || who->kind == JV_STRING)
		jv_set(r->arena, &t->who, "name", who ? *who : jv_string("somebody"));
	else if (who->kind == JV_OBJECT && *jv_str(who, "name", ""))
		t->who = *who;
	else
		return wrong(
			r, "identity is a name, or { name =, owner =, uid =, gid =, container = }");
	return 0;
}

static int take_clock(const struct reading *r, const struct jv *row, struct rule_test *t)
{
	const char *now = jv_str(row, "now", "");

	t->now = *now ? clock_parse(now, strlen(now)) : NOW_DEFAULT;
	return t->now > 0 ? 0 : wrong(r, "now is a day, or a second like 2026-05-01T12:00:00Z");
}

static int take_expectation(const struct reading *r, const struct jv *row, struct rule_test *t)
{
	bool says_why;

	t->expect = jv_str(row, "expect", "deny");
	t->reason = jv_str(row, "reason", "");
	t->rule = jv_str(row, "rule", "");
	t->field = jv_str(row, "field", "");
	t->value = jv_str(row, "value", "");
	t->warning = jv_str(row, "warning", "");
	says_why = *t->reason || *t->rule || *t->field || *t->value;
	if (*t->reason && reason_find(span_of(t->reason)) == REASON_NONE)
		return err_set(r->err, ERR_CONFIG, "%s:%d: '%s' is no reason code", r->file->name,
			       r->line, t->reason);
	if (strcmp(t->expect, "allow") != 0)
		return strcmp(t->expect, "deny") == 0 || strcmp(t->expect, "ask") == 0
			       ? 0
			       : wrong(r, "expect is allow, ask or deny");
	return says_why ? wrong(r, "what is allowed has no reason, rule, field or value") : 0;
}

/* What is absent and what is null are the same to rules. */
static int leave_out(const struct reading *r, const struct jv *paths, struct jv *facts)
{
	for (size_t i = 0; paths && i < paths->count; i++) {
		struct jv *at = facts;
		struct span rest = {"", 0}, key;

		if (paths->kind == JV_ARRAY && paths->items[i].kind == JV_STRING)
			rest = paths->items[i].str;
		while (at && rest.len) {
			span_cut(&rest, '.', &key);
			at = (struct jv *)jv_get_span(at, key);
		}
		if (!at || at == facts)
			return wrong(r, "absent is a list of paths of facts that are there");
		*at = jv_null();
	}
	return 0;
}

static int take_row(const struct reading *r, const struct jv *row, struct rule_test *t)
{
	const struct jv *facts = jv_get(row, "facts"), *world = jv_get(row, "world");
	int asked = !!jv_get(row, "request") + !!jv_get(row, "docker");
	enum jv_fault fault;

	t->profile = jv_str(row, "profile", "");
	if (!*t->profile)
		return wrong(r, "profile is missing");
	if (asked + (facts && !asked) != 1)
		return wrong(r, "a test has a request, a docker command line, or facts");
	if (take_who(r, row, t) < 0 || take_clock(r, row, t) < 0 || take_expectation(r, row, t) < 0)
		return -1;
	if (!asked) {
		t->facts = *facts;
		return facts->kind == JV_OBJECT ? leave_out(r, jv_get(row, "absent"), &t->facts)
						: wrong(r, "facts is a table");
	}
	if (jv_parse(r->arena, span_of(plain_world), &t->world, &fault, r->err) < 0)
		return -1;
	if (world)
		jv_merge(r->arena, &t->world, world);
	jv_set(r->arena, &t->world, "now", jv_int(t->now));
	if (jv_get(&t->who, "container"))
		jv_set(r->arena, jv_set(r->arena, &t->world, "caller", jv_object()), "container",
		       *jv_get(&t->who, "container"));
	return take_request(r, row, t);
}

/* What a row asks replaces what the defaults ask, whatever the form. */
static void fill_in(struct arena *a, struct jv *row, const struct jv *own)
{
	static const char *const asking[] = {"request", "docker", NULL};
	struct jv kept = jv_object();
	bool asks = jv_get(own, "request") || jv_get(own, "docker");

	for (size_t i = 0; i < row->count; i++) {
		bool drop = false;

		for (const char *const *k = asking; *k; k++)
			drop = drop || (asks && span_is(row->members[i].key, *k));
		if (!drop)
			jv_add(a, &kept, row->members[i].key, row->members[i].value);
	}
	*row = kept;
	jv_merge(a, row, own);
}

int rule_tests_read(const struct rule_source *file, struct arena *a, struct rule_test *to,
		    size_t room, size_t *count, struct err *err)
{
	static const struct luadata_word words[] = {{"defaults", false}, {"test", true}};
	struct reading r = {file, a, err, 1};
	struct jv entries, defaults = jv_object();

	*count = 0;
	if (luadata_read(file->text, file->name, words, 2, a, &entries, err) < 0)
		return -1;
	for (size_t i = 0; i < entries.count; i++) {
		const struct jv *entry = &entries.items[i];
		struct jv own = *jv_get(entry, "value"), row = copied(a, &defaults);

		r.line = (int)jv_num(entry, "line", 1);
		if (check_keys(&r, &own) < 0 || load_world(&r, &own) < 0)
			return -1;
		fill_in(a, &row, &own);
		if (strcmp(jv_str(entry, "word", ""), "defaults") == 0) {
			defaults = row;
			continue;
		}
		if (*count == room)
			return wrong(&r, "too many tests");
		to[*count] = (struct rule_test){
			.file = file->name, .name = jv_str(entry, "name", ""), .line = r.line};
		if (take_row(&r, &row, &to[*count]) < 0)
			return -1;
		++*count;
	}
	return arena_spent(a) ? wrong(&r, "the file holds too much") : 0;
}
