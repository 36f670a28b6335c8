#include "backends/docker/tar_write_priv.h"

#include "backends/docker/tar_priv.h"

#include <stdio.h>
#include <string.h>

#define SIZE_MAX_OCTAL 077777777777ull
#define ID_MAX_OCTAL   07777777ull

static const char zeros[2 * TAR_BLOCK];
static const char magic[8] = {'u', 's', 't', 'a', 'r', '\0', '0', '0'};

/* Digits and a NUL, which fill the field. */
static void put_octal(char *field, int digits, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%0*llo", digits, (unsigned long long)value);
	memcpy(field, text, (size_t)digits + 1);
}

static void put_text(char *field, size_t room, struct span text)
{
	if (text.len)
		memcpy(field, text.at, text.len < room ? text.len : room);
}

static void put_head(struct buf *out, const struct tar_entry *e)
{
	char head[TAR_BLOCK] = {0};
	uint64_t size = e->size > SIZE_MAX_OCTAL ? 0 : e->size;
	unsigned sum = 0;

	put_text(head, 100, e->name);
	put_octal(head + 100, 7, e->mode & 07777);
	put_octal(head + 108, 7, e->uid > ID_MAX_OCTAL ? 0 : e->uid);
	put_octal(head + 116, 7, e->gid > ID_MAX_OCTAL ? 0 : e->gid);
	put_octal(head + 124, 11, size);
	put_octal(head + 136, 11, e->mtime > SIZE_MAX_OCTAL ? 0 : e->mtime);
	memset(head + 148, ' ', 8);
	head[156] = e->type;
	put_text(head + 157, 100, e->link);
	memcpy(head + 257, magic, sizeof(magic));
	put_octal(head + 329, 7, 0);
	put_octal(head + 337, 7, 0);
	for (size_t i = 0; i < sizeof(head); i++)
		sum += (unsigned char)head[i];
	put_octal(head + 148, 6, sum);
	buf_put(out, head, sizeof(head));
}

void tar_write_padding(struct buf *out, uint64_t size)
{
	size_t behind = (size_t)(size % TAR_BLOCK);

	if (behind)
		buf_put(out, zeros, TAR_BLOCK - behind);
}

void tar_write_end(struct buf *out)
{
	buf_put(out, zeros, sizeof(zeros));
}

/* "27 path=..." with its own length in front. */
static void put_record(struct buf *out, const char *key, struct span value)
{
	size_t rest = 1 + strlen(key) + 1 + value.len + 1, digits = 1, len;

	for (;;) {
		char text[24];

		len = rest + digits;
		if ((size_t)snprintf(text, sizeof(text), "%zu", len) == digits)
			break;
		digits++;
	}
	buf_printf(out, "%zu %s=", len, key);
	buf_put(out, value.at, value.len);
	buf_puts(out, "\n");
}

/* What the head has no room for. */
static void put_number(struct buf *out, const char *key, uint64_t value, uint64_t fits)
{
	char text[24];

	if (value <= fits)
		return;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	put_record(out, key, span_of(text));
}

/* What every reader takes from the head as it stands there. */
static bool is_short(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.at[i] >= 0x7f)
			return false;
	return text.len < 100;
}

static void put_extended(struct buf *out, const struct tar_entry *e)
{
	struct tar_entry head = {.type = 'x', .name = span_of("PaxHeaders/entry"), .mode = 0644};
	struct buf records;

	buf_init(&records, TAR_META_MAX);
	put_record(&records, "path", e->name);
	if (e->link.len)
		put_record(&records, "linkpath", e->link);
	put_number(&records, "size", e->size, SIZE_MAX_OCTAL);
	put_number(&records, "uid", e->uid, ID_MAX_OCTAL);
	put_number(&records, "gid", e->gid, ID_MAX_OCTAL);
	head.size = buf_len(&records);
	put_head(out, &head);
	buf_put(out, buf_span(&records).at, buf_len(&records));
	tar_write_padding(out, head.size);
	out->spent = out->spent || buf_spent(&records);
	buf_fini(&records);
}

void tar_write_entry(struct buf *out, const struct tar_entry *e, bool extended)
{
	if (extended || !is_short(e->name) || !is_short(e->link) || e->size > SIZE_MAX_OCTAL ||
	    e->uid > ID_MAX_OCTAL || e->gid > ID_MAX_OCTAL)
		put_extended(out, e);
	put_head(out, e);
}
