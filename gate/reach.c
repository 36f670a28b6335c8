#include "gate/reach.h"

#include <stdlib.h>
#include <string.h>

#define VALUE_MAX 65536 /* of one setting of a unit */

/* Blanks and the like stand there as \040. */
static bool is_path(struct span written, const char *path)
{
	while (written.len && *path) {
		char c = *written.at;
		size_t len = 1;

		if (c == '\\' && written.len >= 4) {
			c = (char)((written.at[1] - '0') << 6 | (written.at[2] - '0') << 3 |
				   (written.at[3] - '0'));
			len = 4;
		}
		if (c != *path++)
			return false;
		written = span_skip(written, len);
	}
	return !written.len && !*path;
}

bool reach_is_mount_point(struct span mountinfo, const char *path)
{
	struct span line, word;

	while (mountinfo.len) {
		span_cut(&mountinfo, '\n', &line);
		for (int i = 0; i < 5; i++) /* the fifth says where */
			span_cut(&line, ' ', &word);
		if (is_path(word, path))
			return true;
	}
	return false;
}

static uint32_t little(const char *at, size_t bytes)
{
	uint32_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n |= (uint32_t)(unsigned char)at[i] << (8 * i);
	return n;
}

#define ACL_VERSION 2
#define ACL_ENTRY   8 /* bytes: tag, permissions, id */
#define ACL_USER    0x02
#define ACL_GROUP   0x08
#define ACL_MASK    0x10
#define ACL_WRITE   0x02

int reach_acl_read(struct span xattr, struct reach_acl *ret, size_t max, size_t *ret_count)
{
	uint32_t mask = ACL_WRITE;

	*ret_count = 0;
	if (xattr.len < 4 || little(xattr.at, 4) != ACL_VERSION || (xattr.len - 4) % ACL_ENTRY)
		return -1;
	xattr = span_skip(xattr, 4);
	for (size_t i = 0; i < xattr.len; i += ACL_ENTRY)
		if (little(xattr.at + i, 2) == ACL_MASK)
			mask = little(xattr.at + i + 2, 2);
	for (size_t i = 0; i < xattr.len; i += ACL_ENTRY) {
		uint32_t tag = little(xattr.at + i, 2), may = little(xattr.at + i + 2, 2);

		if ((tag != ACL_USER && tag != ACL_GROUP) || !(may & mask & ACL_WRITE))
			continue;
		if (*ret_count == max)
			return -1;
		ret[(*ret_count)++] =
			(struct reach_acl){tag == ACL_GROUP, little(xattr.at + i + 4, 4)};
	}
	return 0;
}

static void add_line(struct buf *out, struct span s)
{
	buf_put(out, s.at, s.len);
	buf_put(out, "\n", 1);
}

void reach_hosts(struct span cmdline, struct buf *out)
{
	static const char *const glued[] = {"--host=", "-H="};
	struct span word;
	bool next = false;

	while (cmdline.len) {
		span_cut(&cmdline, '\0', &word);
		if (next)
			add_line(out, word);
		next = span_is(word, "-H") || span_is(word, "--host");
		for (size_t i = 0; i < sizeof(glued) / sizeof(*glued); i++)
			if (span_starts(word, glued[i]))
				add_line(out, span_skip(word, strlen(glued[i])));
	}
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct span trimmed(struct span s)
{
	while (s.len && is_blank(*s.at))
		s = span_skip(s, 1);
	while (s.len && is_blank(s.at[s.len - 1]))
		s.len--;
	return s;
}

/* The next setting of a unit with its value; a line that ends in \ goes on in the next. */
static bool next_value(struct span *unit, const char *key, struct buf *ret)
{
	struct span line, name;

	while (unit->len) {
		bool goes_on, wanted;

		span_cut(unit, '\n', &line);
		line = trimmed(line);
		goes_on = line.len && line.at[line.len - 1] == '\\';
		line.len -= goes_on;
		wanted = line.len && *line.at != '#' && *line.at != ';' &&
			 memchr(line.at, '=', line.len) && span_cut(&line, '=', &name) &&
			 span_is(trimmed(name), key);
		buf_clear(ret);
		if (wanted)
			buf_put(ret, line.at, line.len);
		while (goes_on && unit->len) {
			span_cut(unit, '\n', &line);
			line = trimmed(line);
			goes_on = line.len && line.at[line.len - 1] == '\\';
			line.len -= goes_on;
			buf_puts(ret, " ");
			buf_put(ret, line.at, line.len);
		}
		if (wanted)
			return true;
	}
	return false;
}

void reach_listen_streams(struct span unit, struct buf *out)
{
	struct buf value;

	buf_init(&value, VALUE_MAX);
	while (next_value(&unit, "ListenStream", &value))
		if (trimmed(buf_span(&value)).len)
			add_line(out, trimmed(buf_span(&value)));
		else
			buf_clear(out);
	buf_fini(&value);
}

/* Words become arguments as they stand in /proc; quotes around one are systemd's. */
static void add_words(struct span text, struct buf *to)
{
	struct span word;

	for (text = trimmed(text); text.len; text = trimmed(text)) {
		char end = *text.at == '"' || *text.at == '\'' ? *text.at : ' ';

		if (end != ' ')
			text = span_skip(text, 1);
		span_cut(&text, end, &word);
		buf_put(to, word.at, word.len);
		buf_put(to, "", 1);
	}
}

void reach_exec_hosts(struct span unit, struct buf *out)
{
	struct buf value, words;

	buf_init(&value, VALUE_MAX);
	buf_init(&words, VALUE_MAX);
	while (next_value(&unit, "ExecStart", &value)) {
		buf_clear(&words);
		add_words(buf_span(&value), &words);
		if (buf_len(&words))
			reach_hosts(buf_span(&words), out);
		else
			buf_clear(out);
	}
	buf_fini(&words);
	buf_fini(&value);
}

bool reach_shows(const char *source, const char *path)
{
	size_t len = strlen(source);

	while (len && source[len - 1] == '/')
		len--;
	return strncmp(source, path, len) == 0 && (!path[len] || path[len] == '/');
}
