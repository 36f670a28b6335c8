#include "rules/match_priv.h"

#include <stdio.h>

/* --- globs --- */

enum token {
	ANY = 256, /* ? */
	STAR,      /* * */
	DEEP       /* ** */
};

/* Bytes stand for themselves.  Returns the number of tokens, or -1 if there are too many. */
static int tokens_of(struct span pattern, bool literal, short *out, int room)
{
	int n = 0;

	for (size_t i = 0; i < pattern.len; i++) {
		unsigned char c = (unsigned char)pattern.at[i];

		if (n == room)
			return -1;
		if (literal || (c != '*' && c != '?'))
			out[n++] = c;
		else if (c == '?')
			out[n++] = ANY;
		else if (i + 1 < pattern.len && pattern.at[i + 1] == '*')
			out[n++] = DEEP, i++;
		else
			out[n++] = STAR;
	}
	return n;
}

static bool loops_on(short outer, short inner)
{
	return outer == DEEP || (outer == STAR && inner != '/' && inner != DEEP);
}

static bool steps_on(short outer, short inner)
{
	if (outer == ANY)
		return inner == ANY || (inner < ANY && inner != '/');
	return outer == inner && outer < ANY;
}

/*
 * The outer pattern as a machine with one state a token, all states at once.
 * at[s]: the first s tokens have taken what was read so far.
 */
static bool takes(const short *outer, int outer_len, const short *inner, int inner_len)
{
	bool at[GLOB_MAX + 1] = {true};

	for (int s = 0; s < outer_len && at[s] && outer[s] > ANY; s++)
		at[s + 1] = true;
	for (int i = 0; i < inner_len; i++) {
		bool before = at[0], alive = false;

		at[0] = at[0] && outer_len && loops_on(outer[0], inner[i]);
		alive = at[0];
		for (int s = 1; s <= outer_len; s++) {
			bool here = at[s];

			at[s] = (before && steps_on(outer[s - 1], inner[i])) ||
				(here && s < outer_len && loops_on(outer[s], inner[i]));
			/* A star may also take nothing. */
			at[s] = at[s] || (at[s - 1] && outer[s - 1] > ANY);
			alive = alive || at[s];
			before = here;
		}
		if (!alive)
			return false;
	}
	return at[outer_len];
}

static size_t plain_length(struct span pattern)
{
	size_t n = 0;

	while (n < pattern.len && pattern.at[n] != '*' && pattern.at[n] != '?')
		n++;
	return n;
}

static bool begins_plainly(struct span pattern, size_t plain, struct span text)
{
	return plain <= text.len && (!plain || memcmp(pattern.at, text.at, plain) == 0);
}

bool glob_can_tell(struct span pattern, struct span text)
{
	return (pattern.len <= GLOB_MAX && text.len <= GLOB_TEXT) ||
	       !begins_plainly(pattern, plain_length(pattern), text);
}

bool glob_match(struct span pattern, struct span text)
{
	short outer[GLOB_MAX], inner[GLOB_TEXT];
	size_t plain = plain_length(pattern);
	int outer_len, inner_len;

	if (text.len > GLOB_TEXT || (text.len && memchr(text.at, '\0', text.len)))
		return false;
	/* Most patterns begin plainly, and most texts differ there. */
	if (!begins_plainly(pattern, plain, text))
		return false;
	if (plain == pattern.len)
		return text.len == plain;
	outer_len = tokens_of(span_skip(pattern, plain), false, outer, GLOB_MAX);
	inner_len = tokens_of(span_skip(text, plain), true, inner, GLOB_TEXT);
	return outer_len >= 0 && takes(outer, outer_len, inner, inner_len);
}

bool glob_covers(struct span outer_text, struct span inner_text)
{
	short outer[GLOB_MAX], inner[GLOB_MAX];
	int outer_len = tokens_of(outer_text, false, outer, GLOB_MAX);
	int inner_len = tokens_of(inner_text, false, inner, GLOB_MAX);

	return outer_len >= 0 && inner_len >= 0 && takes(outer, outer_len, inner, inner_len);
}

/* --- images --- */

/* Whether the first component of a name is a registry, as Docker tells them apart. */
static bool names_registry(struct span name, const char *slash)
{
	struct span first = {name.at, slash ? (size_t)(slash - name.at) : 0};

	if (!slash)
		return false;
	return memchr(first.at, '.', first.len) || memchr(first.at, ':', first.len) ||
	       span_is(first, "localhost");
}

static bool complete(struct span name, struct image_ref *ret)
{
	const char *slash = memchr(name.at, '/', name.len);
	int n;

	ret->name = name;
	if (name.at[0] == '*' ||
	    (names_registry(name, slash) && !span_starts(name, "index.docker.io/")))
		return true;
	if (span_starts(name, "index.docker.io/")) {
		name = span_skip(name, strlen("index.docker.io/"));
		slash = memchr(name.at, '/', name.len);
	}
	n = snprintf(ret->completed, sizeof(ret->completed), "docker.io/%s%.*s",
		     slash ? "" : "library/", SPAN_FMT(name));
	ret->name = (struct span){ret->completed, (size_t)n};
	return n > 0 && (size_t)n < sizeof(ret->completed);
}

bool image_parse(struct span text, struct image_ref *ret)
{
	const char *at = text.len ? memchr(text.at, '@', text.len) : NULL, *colon = NULL;
	struct span name = text;

	if (!text.len || text.len > IMAGE_MAX - 32 || memchr(text.at, '\0', text.len))
		return false;
	ret->tag = ret->digest = (struct span){"", 0};
	if (at) {
		name.len = (size_t)(at - text.at);
		ret->digest = span_skip(text, name.len + 1);
		if (!ret->digest.len)
			return false;
	}
	for (size_t i = name.len; i > 0 && name.at[i - 1] != '/' && !colon; i--)
		if (name.at[i - 1] == ':')
			colon = &name.at[i - 1];
	if (colon) {
		ret->tag = span_skip(name, (size_t)(colon - name.at) + 1);
		name.len = (size_t)(colon - name.at);
		if (!ret->tag.len)
			return false;
	}
	if (!name.len || name.at[0] == '/' || name.at[name.len - 1] == '/')
		return false;
	return complete(name, ret);
}

bool image_match(const struct image_ref *pattern, struct span name, struct span tag,
		 struct span digest)
{
	if (!name.len || !glob_match(pattern->name, name))
		return false;
	if (pattern->digest.len)
		return digest.len && glob_match(pattern->digest, digest);
	if (pattern->tag.len)
		return !digest.len && tag.len && glob_match(pattern->tag, tag);
	return true;
}

bool image_covers(const struct image_ref *outer, const struct image_ref *inner)
{
	if (!glob_covers(outer->name, inner->name))
		return false;
	if (outer->digest.len)
		return inner->digest.len && glob_covers(outer->digest, inner->digest);
	if (outer->tag.len)
		return !inner->digest.len && inner->tag.len && glob_covers(outer->tag, inner->tag);
	return true;
}

/* --- paths --- */

bool path_is_clean(struct span path)
{
	struct span rest, part;

	if (!path.len || path.len > PATH_MAX_LEN || path.at[0] != '/' ||
	    memchr(path.at, '\0', path.len))
		return false;
	if (path.len == 1)
		return true;
	rest = span_skip(path, 1);
	if (rest.at[rest.len - 1] == '/')
		return false;
	while (rest.len) {
		span_cut(&rest, '/', &part);
		if (!part.len || span_is(part, ".") || span_is(part, ".."))
			return false;
	}
	return true;
}

bool path_within(struct span path, struct span root)
{
	if (!path_is_clean(path) || !path_is_clean(root))
		return false;
	if (root.len == 1)
		return true;
	return path.len >= root.len && memcmp(path.at, root.at, root.len) == 0 &&
	       (path.len == root.len || path.at[root.len] == '/');
}

static bool fits_in_path(struct span value)
{
	if (!value.len || span_is(value, ".") || span_is(value, ".."))
		return false;
	for (size_t i = 0; i < value.len; i++)
		if (value.at[i] == '/' || (unsigned char)value.at[i] < 0x20 || value.at[i] == 0x7f)
			return false;
	return true;
}

bool path_fill(struct span pattern, const struct path_words *known, char *out, size_t room)
{
	const struct {
		const char *word;
		struct span value;
	} words[] = {{"{identity.name}", known->name},
		     {"{identity.owner}", known->owner},
		     {"{identity.container.name}", known->container_name},
		     {"{identity.container.id}", known->container_id}};
	size_t used = 0;

	while (pattern.len) {
		struct span piece = {pattern.at, 1};
		size_t skip = 1;

		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
			if (!span_starts(pattern, words[i].word))
				continue;
			if (!fits_in_path(words[i].value))
				return false;
			piece = words[i].value;
			skip = strlen(words[i].word);
		}
		if (piece.len >= room - used)
			return false;
		memcpy(out + used, piece.at, piece.len);
		used += piece.len;
		pattern = span_skip(pattern, skip);
	}
	out[used] = '\0';
	return true;
}

/* --- sizes --- */

bool size_parse(struct span text, int64_t *ret_bytes)
{
	static const struct {
		const char *unit;
		int64_t bytes;
	} units[] = {
		{"", 1},
		{"B", 1},
		{"b", 1},
		{"k", 1LL << 10},
		{"m", 1LL << 20},
		{"g", 1LL << 30},
		{"t", 1LL << 40},
		{"KiB", 1LL << 10},
		{"MiB", 1LL << 20},
		{"GiB", 1LL << 30},
		{"TiB", 1LL << 40},
		{"kB", 1000},
		{"MB", 1000LL * 1000},
		{"GB", 1000LL * 1000 * 1000},
		{"TB", 1000LL * 1000 * 1000 * 1000},
	};
	int64_t value = 0;
	size_t i = 0;

	for (; i < text.len && text.at[i] >= '0' && text.at[i] <= '9'; i++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, text.at[i] - '0', &value))
			return false;
	if (!i)
		return false;
	for (size_t u = 0; u < sizeof(units) / sizeof(*units); u++)
		if (span_is(span_skip(text, i), units[u].unit))
			return !__builtin_mul_overflow(value, units[u].bytes, ret_bytes);
	return false;
}
