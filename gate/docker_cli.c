#include "gate/docker_cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API "/v1.43"

enum verbs { VERB_CREATE = 1, VERB_EXEC = 2, VERB_BOTH = 3 };

enum flag_kind {
	KIND_SWITCH = 0,
	KIND_TEXT,
	KIND_NUMBER,
	KIND_SIZE,
	KIND_CPUS,
	KIND_LIST,
	KIND_PAIR,
	KIND_WORDS,
	KIND_VOLUME,
	KIND_MOUNT,
	KIND_TMPFS,
	KIND_PORT,
	KIND_DEVICE,
	KIND_RESTART,
	KIND_GPUS,
	KIND_NETWORK,
	KIND_NAME,
	KIND_DROP
};

struct flag {
	enum verbs verbs;
	const char *name;
	char letter;
	enum flag_kind kind;
	const char *path;
};

static const struct flag flags[] = {
#define FLAG(verbs, name, letter, kind, path) {VERB_##verbs, name, letter, KIND_##kind, path},
#include "gate/docker_cli.def"
#undef FLAG
};
#define FLAGS (sizeof(flags) / sizeof(*flags))

/* What is being made of a command line. */
struct command_line {
	const struct jv *words;
	size_t at; /* the next word */
	enum verbs verb;
	struct arena *arena;
	struct err *err;
	struct jv body;
	struct span name;
};

static struct span copied(struct arena *a, struct span s)
{
	const char *copy = arena_strndup(a, s.at, s.len);

	return copy ? (struct span){copy, s.len} : (struct span){"", 0};
}

/* --- places in the body --- */

/* The member that path names; objects on the way are made. */
static struct jv *place(struct command_line *c, const char *path)
{
	struct jv *at = &c->body;
	struct span rest = span_of(path), key;

	while (rest.len) {
		struct jv *next;

		span_cut(&rest, '.', &key);
		next = (struct jv *)jv_get_span(at, key);
		if (!next)
			next = jv_set_span(c->arena, at, copied(c->arena, key),
					   rest.len ? jv_object() : jv_null());
		at = next;
	}
	return at;
}

static struct jv *list_at(struct command_line *c, const char *path)
{
	struct jv *list = place(c, path);

	if (list->kind != JV_ARRAY)
		*list = jv_array();
	return list;
}

static struct jv *object_at(struct command_line *c, const char *path)
{
	struct jv *object = place(c, path);

	if (object->kind != JV_OBJECT)
		*object = jv_object();
	return object;
}

/* --- values --- */

static int bad(struct command_line *c, const struct flag *f, struct span value, const char *want)
{
	return err_set(c->err, ERR_INPUT, "docker: --%s takes %s, not '%.*s'", f->name, want,
		       SPAN_FMT(value));
}

static int put_number(struct command_line *c, const struct flag *f, struct span v)
{
	char *end;
	long long n = strtoll(v.at, &end, 10);

	if (!v.len || end != v.at + v.len)
		return bad(c, f, v, "a whole number");
	*place(c, f->path) = jv_int(n);
	return 0;
}

static int put_size(struct command_line *c, const struct flag *f, struct span v)
{
	static const char units[] = "bkmg";
	char *end;
	long long n = strtoll(v.at, &end, 10);
	const char *unit = *end ? strchr(units, *end | 0x20) : units;

	if (!v.len || end == v.at || !unit || (*end && end[1] && strcmp(end + 1, "b") != 0))
		return bad(c, f, v, "a size like 64m");
	for (; unit > units; unit--)
		n *= 1024;
	*place(c, f->path) = jv_int(n);
	return 0;
}

static int put_cpus(struct command_line *c, const struct flag *f, struct span v)
{
	char *end;
	double n = strtod(v.at, &end);

	if (!v.len || end != v.at + v.len || !(n >= 0 && n < 1e6))
		return bad(c, f, v, "a number of processors");
	*place(c, f->path) = jv_int((int64_t)(n * 1e9 + 0.5));
	return 0;
}

static int put_pair(struct command_line *c, const struct flag *f, struct span v)
{
	struct span rest = v, key;

	if (!span_cut(&rest, '=', &key)) {
		key = v;
		rest = (struct span){"", 0};
	}
	jv_set_span(c->arena, object_at(c, f->path), copied(c->arena, key),
		    jv_span(copied(c->arena, rest)));
	return 0;
}

/* A path alone is an anonymous volume. */
static int put_volume(struct command_line *c, const struct flag *f, struct span v)
{
	if (memchr(v.at, ':', v.len))
		jv_push(c->arena, list_at(c, f->path), jv_span(v));
	else
		jv_set_span(c->arena, object_at(c, "Volumes"), v, jv_object());
	return 0;
}

static int put_mount_part(struct command_line *c, struct jv *mount, struct span part)
{
	static const struct {
		const char *word, *member;
	} known[] = {
		{"type", "Type"},     {"source", "Source"},      {"src", "Source"},
		{"target", "Target"}, {"destination", "Target"}, {"dst", "Target"},
	};
	struct span value = part, key;

	if (!span_cut(&value, '=', &key)) {
		key = part;
		value = span_of("true");
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (span_is(key, known[i].word)) {
			jv_set(c->arena, mount, known[i].member, jv_span(copied(c->arena, value)));
			return 0;
		}
	if (span_is(key, "readonly") || span_is(key, "ro")) {
		jv_set(c->arena, mount, "ReadOnly",
		       jv_bool(span_is(value, "true") || span_is(value, "1")));
		return 0;
	}
	if (span_is(key, "bind-propagation")) {
		struct jv *options = jv_set(c->arena, mount, "BindOptions", jv_object());

		jv_set(c->arena, options, "Propagation", jv_span(copied(c->arena, value)));
		return 0;
	}
	return err_set(c->err, ERR_INPUT,
		       "docker: --mount: '%.*s' cannot be rendered here; write the request instead",
		       SPAN_FMT(key));
}

static int put_mount(struct command_line *c, const struct flag *f, struct span v)
{
	struct jv *mount = jv_push(c->arena, list_at(c, f->path), jv_object());
	struct span part;

	while (v.len) {
		span_cut(&v, ',', &part);
		if (put_mount_part(c, mount, part) < 0)
			return -1;
	}
	if (!jv_get(mount, "Type"))
		jv_set(c->arena, mount, "Type", jv_string("volume"));
	return 0;
}

static int put_tmpfs(struct command_line *c, const struct flag *f, struct span v)
{
	struct span rest = v, path;

	if (!span_cut(&rest, ':', &path)) {
		path = v;
		rest = (struct span){"", 0};
	}
	jv_set_span(c->arena, object_at(c, f->path), copied(c->arena, path),
		    jv_span(copied(c->arena, rest)));
	return 0;
}

/* The last part of s behind `by`, cut off; all of it if `by` is not there. */
static struct span cut_last(struct span *s, char by)
{
	const char *at = memrchr(s->at, by, s->len);
	struct span last = *s;

	if (!at) {
		s->len = 0;
		return last;
	}
	last = (struct span){at + 1, s->len - (size_t)(at - s->at) - 1};
	s->len = (size_t)(at - s->at);
	return last;
}

/* [[ADDRESS:]HOST_PORT:]PORT[/PROTOCOL]; ranges have too many forms. */
static int put_port(struct command_line *c, const struct flag *f, struct span v)
{
	struct span address = v, port = cut_last(&address, ':'), host = cut_last(&address, ':');
	char full[64];
	struct jv binding = jv_object(), *list;

	if (!port.len || memchr(v.at, '-', v.len) || port.len > 32)
		return bad(c, f, v, "[[address:]port:]port[/protocol]");
	if (address.len > 2 && *address.at == '[')
		address = (struct span){address.at + 1, address.len - 2};
	snprintf(full, sizeof(full), "%.*s%s", SPAN_FMT(port),
		 memchr(port.at, '/', port.len) ? "" : "/tcp");
	port = copied(c->arena, span_of(full));
	jv_set(c->arena, &binding, "HostIp", jv_span(copied(c->arena, address)));
	jv_set(c->arena, &binding, "HostPort", jv_span(copied(c->arena, host)));
	list = jv_set_span(c->arena, object_at(c, f->path), port, jv_array());
	jv_push(c->arena, list, binding);
	jv_set_span(c->arena, object_at(c, "ExposedPorts"), port, jv_object());
	return 0;
}

static int put_device(struct command_line *c, const struct flag *f, struct span v)
{
	struct jv *device = jv_push(c->arena, list_at(c, f->path), jv_object());
	struct span host = v, inside, rights = span_of("rwm");

	if (span_cut(&v, ':', &host)) {
		if (span_cut(&v, ':', &inside))
			rights = v;
	} else {
		inside = host;
	}
	jv_set(c->arena, device, "PathOnHost", jv_span(copied(c->arena, host)));
	jv_set(c->arena, device, "PathInContainer", jv_span(copied(c->arena, inside)));
	jv_set(c->arena, device, "CgroupPermissions", jv_span(copied(c->arena, rights)));
	return 0;
}

static int put_restart(struct command_line *c, const struct flag *f, struct span v)
{
	struct jv *policy = object_at(c, f->path);
	struct span rest = v, name;

	if (!span_cut(&rest, ':', &name)) {
		name = v;
		rest = span_of("0");
	}
	jv_set(c->arena, policy, "Name", jv_span(copied(c->arena, name)));
	jv_set(c->arena, policy, "MaximumRetryCount", jv_int(strtoll(rest.at, NULL, 10)));
	return 0;
}

static int put_gpus(struct command_line *c, const struct flag *f)
{
	struct jv *request = jv_push(c->arena, list_at(c, f->path), jv_object());
	struct jv *capabilities;

	jv_set(c->arena, request, "Count", jv_int(-1));
	capabilities = jv_set(c->arena, request, "Capabilities", jv_array());
	capabilities = jv_push(c->arena, capabilities, jv_array());
	jv_push(c->arena, capabilities, jv_string("gpu"));
	return 0;
}

static int put_network(struct command_line *c, const struct flag *f, struct span v)
{
	static const char *const engines_own[] = {"none", "host", "bridge", "default", NULL};
	struct jv *end_points;

	*place(c, f->path) = jv_span(v);
	for (const char *const *n = engines_own; *n; n++)
		if (span_is(v, *n))
			return 0;
	if (span_starts(v, "container:"))
		return 0;
	end_points = object_at(c, "NetworkingConfig.EndpointsConfig");
	jv_set_span(c->arena, end_points, v, jv_object());
	return 0;
}

static int put(struct command_line *c, const struct flag *f, struct span v)
{
	switch (f->kind) {
	case KIND_SWITCH:
		*place(c, f->path) = jv_bool(!span_is(v, "false"));
		return 0;
	case KIND_TEXT:
		*place(c, f->path) = jv_span(v);
		return 0;
	case KIND_NUMBER:
		return put_number(c, f, v);
	case KIND_SIZE:
		return put_size(c, f, v);
	case KIND_CPUS:
		return put_cpus(c, f, v);
	case KIND_LIST:
	case KIND_WORDS:
		jv_push(c->arena, list_at(c, f->path), jv_span(v));
		return 0;
	case KIND_PAIR:
		return put_pair(c, f, v);
	case KIND_VOLUME:
		return put_volume(c, f, v);
	case KIND_MOUNT:
		return put_mount(c, f, v);
	case KIND_TMPFS:
		return put_tmpfs(c, f, v);
	case KIND_PORT:
		return put_port(c, f, v);
	case KIND_DEVICE:
		return put_device(c, f, v);
	case KIND_RESTART:
		return put_restart(c, f, v);
	case KIND_GPUS:
		return put_gpus(c, f);
	case KIND_NETWORK:
		return put_network(c, f, v);
	case KIND_NAME:
		c->name = v;
		return 0;
	case KIND_DROP:
		return 0;
	}
	return 0;
}

/* --- words --- */

static bool takes_no_value(const struct flag *f)
{
	return f->kind == KIND_SWITCH || f->kind == KIND_DROP;
}

static const struct flag *find(const struct command_line *c, struct span name, char letter)
{
	for (size_t i = 0; i < FLAGS; i++)
		if ((flags[i].verbs & c->verb) &&
		    (letter ? flags[i].letter == letter : span_is(name, flags[i].name)))
			return &flags[i];
	return NULL;
}

static int unknown(struct command_line *c, struct span word)
{
	return err_set(c->err, ERR_INPUT,
		       "docker: '%.*s' cannot be rendered here; write the request instead",
		       SPAN_FMT(word));
}

static bool next_word(struct command_line *c, struct span *ret)
{
	if (c->at == c->words->count)
		return false;
	*ret = c->words->items[c->at++].str;
	return true;
}

static int need_value(struct command_line *c, const struct flag *f, struct span *ret)
{
	return next_word(c, ret)
		       ? 0
		       : err_set(c->err, ERR_INPUT, "docker: --%s needs a value", f->name);
}

static int take_long(struct command_line *c, struct span word)
{
	struct span value = span_skip(word, 2), name;
	bool given = span_cut(&value, '=', &name);
	const struct flag *f = find(c, given ? name : span_skip(word, 2), 0);

	if (!f)
		return unknown(c, word);
	if (!given && takes_no_value(f))
		value = span_of("true");
	else if (!given && need_value(c, f, &value) < 0)
		return -1;
	return put(c, f, value);
}

/* -it, -u1000, -u 1000 */
static int take_letters(struct command_line *c, struct span word)
{
	for (size_t i = 1; i < word.len; i++) {
		const struct flag *f = find(c, word, word.at[i]);
		struct span value = span_skip(word, i + 1);

		if (!f)
			return unknown(c, word);
		if (takes_no_value(f)) {
			put(c, f, span_of("true"));
			continue;
		}
		if (!value.len && need_value(c, f, &value) < 0)
			return -1;
		return put(c, f, value);
	}
	return 0;
}

static int take_flags(struct command_line *c)
{
	while (c->at < c->words->count) {
		struct span word = c->words->items[c->at].str;
		int rc;

		if (word.len < 2 || *word.at != '-')
			return 0;
		c->at++;
		if (span_is(word, "--"))
			return 0;
		rc = word.at[1] == '-' ? take_long(c, word) : take_letters(c, word);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static void take_command(struct command_line *c)
{
	struct span word;

	while (next_word(c, &word))
		jv_push(c->arena, list_at(c, "Cmd"), jv_span(word));
}

/* --- requests --- */

static void write_post(struct buf *out, const char *target, const struct jv *body)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	if (body)
		jv_write(&text, body);
	buf_printf(out, "POST %s HTTP/1.1\r\nHost: docker\r\n", target);
	if (body)
		buf_puts(out, "Content-Type: application/json\r\n");
	buf_printf(out, "Content-Length: %zu\r\n\r\n", buf_len(&text));
	buf_put(out, buf_span(&text).at, buf_len(&text));
	buf_fini(&text);
}

/* Everything but what a path and a query have room for as it is. */
static void escape(struct buf *out, struct span s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char b = (unsigned char)s.at[i];

		if ((b >= '0' && b <= '9') || ((b | 0x20) >= 'a' && (b | 0x20) <= 'z') ||
		    strchr("-._~", b))
			buf_put(out, &b, 1);
		else
			buf_printf(out, "%%%02X", b);
	}
}

static int needs(struct command_line *c, const char *what)
{
	return err_set(c->err, ERR_INPUT, "docker: the command line names no %s", what);
}

static int render_create(struct command_line *c, struct buf *out)
{
	struct buf target;
	struct span image;

	c->verb = VERB_CREATE;
	if (take_flags(c) < 0)
		return -1;
	if (!next_word(c, &image))
		return needs(c, "image");
	*place(c, "Image") = jv_span(image);
	take_command(c);
	buf_init(&target, 4096);
	buf_puts(&target, API "/containers/create");
	if (c->name.len) {
		buf_puts(&target, "?name=");
		escape(&target, c->name);
	}
	buf_put(&target, "", 1);
	write_post(out, buf_span(&target).at, &c->body);
	buf_fini(&target);
	return 0;
}

static int render_exec(struct command_line *c, struct buf *out)
{
	struct buf target;
	struct span container;

	c->verb = VERB_EXEC;
	if (take_flags(c) < 0)
		return -1;
	if (!next_word(c, &container) || c->at == c->words->count)
		return needs(c, "container and command");
	take_command(c);
	/* One after the other: a new member can move the others. */
	*place(c, "AttachStderr") = jv_bool(true);
	*place(c, "AttachStdout") = jv_bool(true);
	buf_init(&target, 4096);
	buf_puts(&target, API "/containers/");
	escape(&target, container);
	buf_puts(&target, "/exec");
	buf_put(&target, "", 1);
	write_post(out, buf_span(&target).at, &c->body);
	buf_fini(&target);
	return 0;
}

static int render_pull(struct command_line *c, struct buf *out)
{
	struct buf target;
	struct span image, name, tag;
	const char *at;

	c->verb = 0;
	if (take_flags(c) < 0)
		return -1;
	if (!next_word(c, &image) || c->at < c->words->count)
		return needs(c, "single image");
	name = image;
	at = memchr(image.at, '@', image.len);
	if (at) {
		name.len = (size_t)(at - image.at);
		tag = span_skip(image, name.len + 1);
	} else {
		tag = cut_last(&name, ':');
		if (!name.len || memchr(tag.at, '/', tag.len)) {
			name = image;
			tag = span_of("latest");
		}
	}
	buf_init(&target, 4096);
	buf_puts(&target, API "/images/create?fromImage=");
	escape(&target, name);
	buf_puts(&target, "&tag=");
	escape(&target, tag);
	buf_put(&target, "", 1);
	write_post(out, buf_span(&target).at, NULL);
	buf_fini(&target);
	return 0;
}

int docker_cli_request(const struct jv *words, struct arena *a, struct buf *out, struct err *err)
{
	struct command_line c = {.words = words, .arena = a, .err = err, .body = jv_object()};
	struct span verb = {"", 0};

	for (size_t i = 0; i < words->count; i++)
		if (words->items[i].kind != JV_STRING)
			return err_set(err, ERR_INPUT, "docker: word %zu is no text", i + 1);
	if (!next_word(&c, &verb) || (span_is(verb, "docker") && !next_word(&c, &verb)))
		return needs(&c, "verb");
	if (span_is(verb, "container") && !next_word(&c, &verb))
		return needs(&c, "verb");
	if (span_is(verb, "run") || span_is(verb, "create"))
		return render_create(&c, out);
	if (span_is(verb, "exec"))
		return render_exec(&c, out);
	if (span_is(verb, "pull"))
		return render_pull(&c, out);
	return err_set(err, ERR_INPUT,
		       "docker: run, create, exec and pull can be rendered, not '%.*s'; write the "
		       "request instead",
		       SPAN_FMT(verb));
}
