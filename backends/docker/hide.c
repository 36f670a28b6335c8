/*
 * What `redact` hides in replies: the table is hide.def.
 */
#include "backends/docker/docker_priv.h"

#include <string.h>

static const char redacted[] = "[redacted]";

enum thing {
	THING_NONE = 0,
	THING_CONTAINER,
	THING_IMAGE,
	THING_VOLUME,
	THING_ENGINE,
	THING_EVENT,
	THING_PLUGIN,
};

typedef void (*hide_fn)(struct arena *a, struct jv *v);

static void hide_whole(struct arena *a, struct jv *v)
{
	(void)a;
	if (!jv_is_neutral(v))
		*v = jv_string(redacted);
}

/* Names stay, so that a person sees what is set. */
static void hide_env(struct arena *a, struct jv *v)
{
	struct jv names = jv_array();

	for (size_t i = 0; v->kind == JV_ARRAY && i < v->count; i++) {
		struct span rest = v->items[i].str, name;
		struct buf b;

		if (v->items[i].kind != JV_STRING || !span_cut(&rest, '=', &name))
			continue;
		buf_init(&b, name.len + sizeof(redacted) + 1);
		buf_printf(&b, "%.*s=%s", SPAN_FMT(name), redacted);
		jv_push(a, &names, jv_string(arena_strndup(a, buf_span(&b).at, buf_len(&b))));
		buf_fini(&b);
	}
	*v = names;
}

/* "/srv", "--root=/run/x", "unix:///run/x.sock", "/a:/b"; not "https://x/y". */
static bool names_path(struct span s)
{
	if (!s.at)
		return false; /* for sanitized builds */
	return (s.len && *s.at == '/') || (s.len && memmem(s.at, s.len, "=/", 2)) ||
	       (s.len && memmem(s.at, s.len, ":///", 4));
}

static void hide_paths(struct arena *a, struct jv *v)
{
	if (v->kind == JV_STRING && names_path(v->str))
		*v = jv_string(redacted);
	for (size_t i = 0; v->kind == JV_ARRAY && i < v->count; i++)
		hide_paths(a, &v->items[i]);
	for (size_t i = 0; v->kind == JV_OBJECT && i < v->count; i++)
		hide_paths(a, &v->members[i].value);
}

/* The name of a volume is no path, and stays. */
static void hide_bind(struct arena *a, struct jv *v)
{
	const char *colon;
	struct buf b;

	if (v->kind != JV_STRING || !v->str.len || *v->str.at != '/')
		return;
	colon = memchr(v->str.at, ':', v->str.len);
	buf_init(&b, v->str.len + sizeof(redacted));
	buf_puts(&b, redacted);
	if (colon)
		buf_put(&b, colon, v->str.len - (size_t)(colon - v->str.at));
	*v = jv_string(arena_strndup(a, buf_span(&b).at, buf_len(&b)));
	buf_fini(&b);
}

/* Other labels are whoever's set them: a rule of a router may look like a path. */
static void hide_labels(struct arena *a, struct jv *v)
{
	static const char *const keys[] = {
		"com.docker.compose.project.config_files",
		"com.docker.compose.project.environment_file",
		"com.docker.compose.project.working_dir",
		"desktop.docker.io/binds/",
	};

	(void)a;
	for (size_t i = 0; v->kind == JV_OBJECT && i < v->count; i++)
		for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
			if (span_starts(v->members[i].key, keys[k]))
				v->members[i].value = jv_string(redacted);
}

/* --- sentences --- */

static bool ends_path(char c)
{
	return strchr(" \t\r\n\"'`,;:()<>", c) != NULL;
}

/* Engines write names of containers with a slash, too: name "/web". */
static bool is_name(struct span before)
{
	return span_ends(before, "container name \"") || span_ends(before, "container \"");
}

/* How long the path is that begins at byte i of s; 0: none does. */
static size_t path_at(struct span s, size_t i)
{
	size_t n = 1;

	if (s.at[i] != '/' || (i && !ends_path(s.at[i - 1]) && !strchr("=[{/", s.at[i - 1])))
		return 0;
	while (i + n < s.len && !ends_path(s.at[i + n]))
		n++;
	if (is_name((struct span){s.at, i}) && !memchr(s.at + i + 1, '/', n - 1))
		return 0;
	return n;
}

static void hide_words(struct arena *a, struct jv *v)
{
	struct span s = v->kind == JV_STRING ? v->str : (struct span){"", 0};
	struct buf b;
	size_t i = 0;

	/* A path has two bytes at least with what stands before it. */
	buf_init(&b, (s.len + 1) * sizeof(redacted));
	while (i < s.len) {
		bool scheme = s.len - i >= 3 && memcmp(s.at + i, "://", 3) == 0;
		size_t n = scheme ? 0 : path_at(s, i);

		if (n)
			buf_puts(&b, redacted);
		else
			buf_put(&b, s.at + i, n = scheme ? 3 : 1);
		i += n;
		/* Of a URL the host follows, not a path, unless there is none. */
		if (scheme && s.at[i] != '/')
			while (i < s.len && !ends_path(s.at[i]))
				buf_put(&b, s.at + i++, 1);
	}
	if (s.len)
		*v = jv_string(arena_strndup(a, buf_span(&b).at, buf_len(&b)));
	buf_fini(&b);
}

void docker_hide_words(const struct backend_call *call, struct jv *text)
{
	if (call->hides & HIDE_MOUNTS)
		hide_words(call->arena, text);
}

/* --- the table --- */

static const struct place {
	enum operation op;
	enum thing thing;
	const char *path;
} places[] = {
#define PLACE(op, thing, path) {OP_##op, THING_##thing, path},
#define HIDDEN(what, thing, path, how)
#include "backends/docker/hide.def"
#undef PLACE
#undef HIDDEN
};

#define HIDE_FN_ENV    hide_env
#define HIDE_FN_WHOLE  hide_whole
#define HIDE_FN_PATHS  hide_paths
#define HIDE_FN_BIND   hide_bind
#define HIDE_FN_LABELS hide_labels
#define HIDE_FN_WORDS  hide_words

static const struct hidden {
	enum hide what;
	enum thing thing;
	const char *path;
	hide_fn how;
} hidden[] = {
#define PLACE(op, thing, path)
#define HIDDEN(what, thing, path, how) {HIDE_##what, THING_##thing, path, HIDE_FN_##how},
#include "backends/docker/hide.def"
#undef PLACE
#undef HIDDEN
};

#define PLACES_COUNT (sizeof(places) / sizeof(*places))
#define HIDDEN_COUNT (sizeof(hidden) / sizeof(*hidden))

/* What is done where a path ends. */
struct visit {
	struct arena *arena;
	unsigned hides;
	enum thing thing; /* NONE: `how` is done; else all that is hidden of such a thing */
	hide_fn how;
};

static void walk(const struct visit *to, struct jv *v, const char *path);

static void arrive(const struct visit *to, struct jv *v)
{
	if (to->how) {
		to->how(to->arena, v);
		return;
	}
	for (size_t i = 0; i < HIDDEN_COUNT; i++) {
		const struct visit one = {to->arena, to->hides, THING_NONE, hidden[i].how};

		if (hidden[i].thing == to->thing && (hidden[i].what & to->hides))
			walk(&one, v, hidden[i].path);
	}
}

static void walk_items(const struct visit *to, struct jv *v, const char *path)
{
	if (v->kind != JV_ARRAY)
		hide_whole(to->arena, v);
	for (size_t i = 0; v->kind == JV_ARRAY && i < v->count; i++)
		walk(to, &v->items[i], path);
}

static void walk_members(const struct visit *to, struct jv *v, struct span key, const char *path)
{
	if (v->kind != JV_OBJECT)
		hide_whole(to->arena, v);
	for (size_t i = 0; v->kind == JV_OBJECT && i < v->count; i++)
		if (span_is(key, "*") || span_eq(key, v->members[i].key))
			walk(to, &v->members[i].value, path);
}

static void walk(const struct visit *to, struct jv *v, const char *path)
{
	size_t n;

	path += *path == '.';
	n = strcspn(path, ".[");
	if (!*path)
		arrive(to, v);
	else if (*path == '[')
		walk_items(to, v, path + 2);
	else
		walk_members(to, v, (struct span){path, n}, path + n);
}

void docker_hide(const struct backend_call *call, struct arena *a, struct jv *doc)
{
	for (size_t i = 0; call->hides && i < PLACES_COUNT; i++) {
		const struct visit to = {a, call->hides, places[i].thing, NULL};

		if (places[i].op == call->op)
			walk(&to, doc, places[i].path);
	}
}

static bool hides_of(enum thing thing, unsigned hides)
{
	for (size_t i = 0; i < HIDDEN_COUNT; i++)
		if (hidden[i].thing == thing && (hidden[i].what & hides))
			return true;
	return false;
}

void docker_hold_hidden(struct backend_call *call)
{
	for (size_t i = 0; call->reply == REPLY_STREAM && i < PLACES_COUNT; i++)
		if (places[i].op == call->op && hides_of(places[i].thing, call->hides))
			call->reply = call->op == OP_SYSTEM_EVENTS ? REPLY_ROWS : REPLY_HELD;
}
