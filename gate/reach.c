#include "gate/reach.h"

#include <stdlib.h>
#include <string.h>

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

void reach_listen_streams(struct span unit, struct buf *out)
{
	static const char key[] = "ListenStream=";
	struct span line;

	while (unit.len) {
		span_cut(&unit, '\n', &line);
		if (span_starts(line, key) && line.len > sizeof(key) - 1)
			add_line(out, span_skip(line, sizeof(key) - 1));
	}
}

bool reach_shows(const char *source, const char *path)
{
	size_t len = strlen(source);

	while (len && source[len - 1] == '/')
		len--;
	return strncmp(source, path, len) == 0 && (!path[len] || path[len] == '/');
}
