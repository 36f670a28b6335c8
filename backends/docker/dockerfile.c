#include "backends/docker/dockerfile_priv.h"

#include <ctype.h>
#include <string.h>

static const char *const known[] = {
	"ADD",    "ARG",   "CMD",         "COPY",  "ENTRYPOINT", "ENV",
	"EXPOSE", "FROM",  "HEALTHCHECK", "LABEL", "MAINTAINER", "ONBUILD",
	"RUN",    "SHELL", "STOPSIGNAL",  "USER",  "VOLUME",     "WORKDIR",
};

/* --- what stands in a line --- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct span trimmed(struct span s)
{
	while (s.len && is_blank(s.at[0]))
		s = span_skip(s, 1);
	while (s.len && is_blank(s.at[s.len - 1]))
		s.len--;
	return s;
}

/* The known instruction that s begins with, or NULL. */
static const char *keyword_of(struct span s)
{
	size_t len = 0;

	while (len < s.len && isalpha((unsigned char)s.at[len]))
		len++;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strlen(known[i]) == len && strncasecmp(known[i], s.at, len) == 0 &&
		    (len == s.len || is_blank(s.at[len])))
			return known[i];
	return NULL;
}

/* Spaces that are none in ASCII, and that the engine takes for some. */
static bool has_odd_space(struct span s)
{
	static const char *const odd[] = {
		"\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
		"\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
		"\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
		"\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80", "\xef\xbb\xbf",
	};

	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++)
		if (memmem(s.at, s.len, odd[i], strlen(odd[i])))
			return true;
	return false;
}

static const char *control_bytes(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (((unsigned char)s.at[i] < 0x20 && s.at[i] != '\t') || s.at[i] == 0x7f)
			return "control bytes are refused";
	return NULL;
}

static const char *odd_bytes(struct span s)
{
	const char *odd = control_bytes(s);

	return odd || !has_odd_space(s) ? odd : "spaces that are none in ASCII are refused";
}

/* "<<" that newer engines may take for the begin of a here-document. */
static bool has_heredoc(struct span s)
{
	for (size_t i = 0; i + 2 < s.len; i++)
		if (memcmp(s.at + i, "<<", 2) == 0 && s.at[i + 2] != '<' &&
		    (i == 0 || s.at[i - 1] != '<'))
			return true;
	return false;
}

static const char *read_one(struct span line, struct instruction *ret)
{
	const char *name, *odd;

	line = trimmed(line);
	name = keyword_of(line);
	odd = odd_bytes(line);
	if (odd)
		return odd;
	if (!name)
		return "this is no instruction of the classic builder";
	memset(ret->name, 0, sizeof(ret->name));
	memcpy(ret->name, name, strlen(name));
	ret->args = trimmed(span_skip(line, strlen(name)));
	if (!ret->args.len)
		return "the instruction says nothing";
	if ((!strcmp(name, "RUN") || !strcmp(name, "COPY") || !strcmp(name, "ADD") ||
	     !strcmp(name, "ONBUILD")) &&
	    has_heredoc(ret->args))
		return "here-documents (<<) are refused";
	return NULL;
}

bool dockerfile_one(struct span line, struct instruction *ret, const char **ret_why)
{
	*ret_why = read_one(line, ret);
	return !*ret_why;
}

/* --- directives --- */

/* "# name = value": the name in lower case, and the value.  False: it is none. */
static bool directive(struct span line, char name[32], struct span *ret_value)
{
	size_t len = 0;

	line = trimmed(line);
	if (!line.len || line.at[0] != '#')
		return false;
	line = trimmed(span_skip(line, 1));
	while (len < line.len && len < 31 && isalnum((unsigned char)line.at[len])) {
		name[len] = (char)tolower((unsigned char)line.at[len]);
		len++;
	}
	name[len] = '\0';
	line = trimmed(span_skip(line, len));
	if (!len || !line.len || line.at[0] != '=')
		return false;
	*ret_value = trimmed(span_skip(line, 1));
	return ret_value->len > 0;
}

/*
 * Directives stand at the top, before any other comment; versions differ in
 * what ends them.  An escape that would be one to some is refused.
 */
static const char *read_directive(struct dockerfile *f, struct span line, bool *at_top, bool *said)
{
	char name[32];
	struct span value;
	bool top = *at_top;

	/* Engines take form feeds around a directive for spaces. */
	if (control_bytes(line))
		return control_bytes(line);
	if (!directive(line, name, &value)) {
		*at_top = false;
		return NULL;
	}
	if (!strcmp(name, "syntax"))
		return "# syntax= is for BuildKit, and makes it fetch an image: leave it out";
	if (strcmp(name, "escape") != 0) {
		*at_top = false;
		return NULL;
	}
	if (*said || (!span_is(value, "\\") && !span_is(value, "`")))
		return "# escape= is \\ or `, once";
	if (!top && value.at[0] != '\\')
		return "# escape= must stand at the very top";
	*said = true;
	f->escape = value.at[0];
	return NULL;
}

/* --- lines --- */

struct lines {
	struct arena *arena;
	struct span rest;
	int line;
	char escape;
};

static bool next_line(struct lines *l, struct span *ret)
{
	if (!l->rest.len)
		return false;
	span_cut(&l->rest, '\n', ret);
	if (ret->len && ret->at[ret->len - 1] == '\r')
		ret->len--;
	l->line++;
	return true;
}

/* Without the escape at its end, if it has one.  *ret_doubtful: to newer engines it has none. */
static bool goes_on(char escape, struct span *line, bool *ret_doubtful)
{
	struct span s = *line;

	while (s.len && is_blank(s.at[s.len - 1]))
		s.len--;
	if (!s.len || s.at[s.len - 1] != escape)
		return false;
	*ret_doubtful = s.len > 1 && s.at[s.len - 2] == escape;
	line->len = s.len - 1;
	return true;
}

static bool is_comment(struct span line)
{
	line = trimmed(line);
	return line.len && line.at[0] == '#';
}

/* Whether a line begins with an instruction's name, or with a part of one that the next line ends.
 */
static bool may_begin(struct span line, char escape)
{
	struct span s = trimmed(line);
	size_t len = 0;

	while (len < s.len && isalpha((unsigned char)s.at[len]))
		len++;
	if (len == s.len || s.at[len] != escape)
		return keyword_of(s) != NULL;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strncasecmp(known[i], s.at, len) == 0)
			return true;
	return false;
}

/* The lines that belong to *line, joined.  NULL, or why not. */
static const char *join(struct lines *l, struct span *line)
{
	size_t room = line->len + l->rest.len, len;
	bool doubtful = false, more = goes_on(l->escape, line, &doubtful);
	char *to = more ? arena_take(l->arena, room < 4096 ? room + 1 : 4096) : NULL;
	size_t size = room < 4096 ? room + 1 : 4096;
	struct span next;

	if (!more)
		return NULL;
	if (!to || line->len >= size) {
		to = arena_take(l->arena, room + 1);
		size = room + 1;
	}
	if (!to)
		return "there is too much of it";
	memcpy(to, line->at, line->len);
	len = line->len;
	while (more && next_line(l, &next)) {
		if (!trimmed(next).len || is_comment(next)) {
			doubtful = true;
			continue;
		}
		if (doubtful && may_begin(next, l->escape))
			return "versions of the engine differ in whether this line belongs to the "
			       "one before; write it without empty lines, comments or two "
			       "backslashes in between";
		doubtful = false;
		more = goes_on(l->escape, &next, &doubtful);
		if (len + next.len >= size) {
			char *larger = arena_take(l->arena, room + 1);

			if (!larger)
				return "there is too much of it";
			memcpy(larger, to, len);
			to = larger;
			size = room + 1;
		}
		memcpy(to + len, next.at, next.len);
		len += next.len;
	}
	*line = (struct span){to, len};
	return NULL;
}

static const char *add(struct arena *a, struct dockerfile *f, struct span line, int number)
{
	struct instruction one = {.line = number};
	const char *why = read_one(line, &one);
	size_t size = f->count ? f->count * 2 : 32;

	if (why)
		return why;
	if (f->count == DOCKERFILE_INSTRUCTIONS_MAX)
		return "there are too many instructions";
	if (!f->count || (f->count >= 32 && !(f->count & (f->count - 1)))) {
		struct instruction *list = arena_take(a, size * sizeof(*list));

		if (!list)
			return "there is too much of it";
		if (f->count)
			memcpy(list, f->list, f->count * sizeof(*list));
		f->list = list;
	}
	f->list[f->count++] = one;
	return NULL;
}

void dockerfile_read(struct arena *a, struct span text, struct dockerfile *ret)
{
	struct lines l = {.arena = a, .rest = text};
	bool at_top = true, said = false, before = true;
	struct span line;

	*ret = (struct dockerfile){.escape = '\\'};
	if (span_starts(text, "\xef\xbb\xbf"))
		l.rest = span_skip(text, 3);
	while (!ret->why && next_line(&l, &line)) {
		if (before && is_comment(line))
			ret->why = read_directive(ret, line, &at_top, &said);
		else
			at_top = false;
		ret->line = l.line;
		if (ret->why || !trimmed(line).len || is_comment(line))
			continue;
		before = false;
		l.escape = ret->escape;
		ret->why = join(&l, &line);
		if (ret->why)
			ret->line = l.line;
		else if (trimmed(line).len)
			ret->why = add(a, ret, line, ret->line);
	}
	if (!ret->why && !ret->count)
		ret->why = "there is no instruction in it";
}
