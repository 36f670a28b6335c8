#include "audit/evidence/ustar_priv.h"

#include "audit/segment_priv.h"
#include "gate/base/io.h"

#include <stdio.h>
#include <string.h>

#define BLOCK  512
#define PIECE  65536
#define RECORD 10240 /* what tar files are a multiple of */

struct header { /* POSIX.1-1988 */
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type[1], link[100];
	char magic[6], version[2], uname[32], gname[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

void ustar_open(struct ustar *t, int fd, const char *folder)
{
	*t = (struct ustar){.fd = fd, .folder = folder};
	buf_init(&t->out, 4 * PIECE);
	buf_init(&t->sums, USTAR_SUMS_MAX);
}

void ustar_free(struct ustar *t)
{
	if (t->hash.context)
		(void)hash_end(&t->hash);
	buf_fini(&t->out);
	buf_fini(&t->sums);
}

static int flush(struct ustar *t, struct err *err)
{
	if (io_write_all(t->fd, buf_span(&t->out).at, buf_len(&t->out), err) < 0)
		return err_wrap(err, "write the archive");
	t->bytes += buf_len(&t->out);
	buf_clear(&t->out);
	return 0;
}

static int put(struct ustar *t, const char *bytes, size_t len, struct err *err)
{
	while (len) {
		size_t n = len < PIECE ? len : PIECE;

		buf_put(&t->out, bytes, n);
		if (buf_spent(&t->out))
			return err_set(err, ERR_LIMIT, "no memory for the archive");
		if (buf_len(&t->out) >= PIECE && flush(t, err) < 0)
			return -1;
		bytes += n;
		len -= n;
	}
	return 0;
}

static int pad(struct ustar *t, uint64_t size, size_t to, struct err *err)
{
	static const char zeros[RECORD];
	size_t over = (size_t)(size % to);

	return over ? put(t, zeros, to - over, err) : 0;
}

static void fill_header(const struct ustar *t, uint64_t size, bool program, struct header *h)
{
	unsigned sum = 0;

	*h = (struct header){.type = "0"};
	memcpy(h->name, t->path, strlen(t->path));
	memcpy(h->prefix, t->folder, strlen(t->folder));
	snprintf(h->mode, sizeof(h->mode), "%07o", program ? 0755 : 0644);
	snprintf(h->uid, sizeof(h->uid), "%07o", 0);
	snprintf(h->gid, sizeof(h->gid), "%07o", 0);
	snprintf(h->size, sizeof(h->size), "%011llo", (unsigned long long)size);
	snprintf(h->mtime, sizeof(h->mtime), "%011o", 0);
	memcpy(h->magic, "ustar", 6);
	memcpy(h->version, "00", 2);
	memset(h->sum, ' ', sizeof(h->sum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += ((const unsigned char *)h)[i];
	snprintf(h->sum, sizeof(h->sum), "%06o", sum); /* and the space stays behind its NUL */
}

static int begin(struct ustar *t, const char *path, uint64_t size, struct err *err)
{
	size_t len = strlen(path);
	struct header h;

	if (!len || len > USTAR_NAME_MAX || strlen(t->folder) >= sizeof(h.prefix))
		return err_set(err, ERR_LIMIT, "%.120s: the name is too long for the archive",
			       path);
	if (size >> 33)
		return err_set(err, ERR_LIMIT, "%s: more than 8 GiB", path);
	memcpy(t->path, path, len + 1);
	fill_header(t, size, len > 3 && strcmp(path + len - 3, ".py") == 0, &h);
	t->left = size;
	hash_begin(&t->hash);
	return put(t, (const char *)&h, sizeof(h), err);
}

static int add(struct ustar *t, const char *bytes, size_t len, struct err *err)
{
	hash_add(&t->hash, bytes, len);
	t->left -= len;
	return put(t, bytes, len, err);
}

static int end(struct ustar *t, uint64_t size, struct hash *ret, struct err *err)
{
	*ret = hash_end(&t->hash);
	return pad(t, size, BLOCK, err);
}

static int list(struct ustar *t, const struct hash *h, struct err *err)
{
	char hex[HASH_HEX_LEN + 1];

	hash_hex(h, hex);
	buf_printf(&t->sums, "%s  %s\n", hex, t->path);
	return buf_spent(&t->sums) ? err_set(err, ERR_LIMIT, "too many files") : 0;
}

int ustar_add(struct ustar *t, const char *path, struct span text, struct err *err)
{
	struct hash h;

	if (begin(t, path, text.len, err) < 0 || add(t, text.at, text.len, err) < 0 ||
	    end(t, text.len, &h, err) < 0)
		return -1;
	return list(t, &h, err);
}

int ustar_add_file(struct ustar *t, const char *path, int fd, uint64_t size, struct err *err)
{
	char piece[PIECE];
	struct hash h;

	if (begin(t, path, size, err) < 0)
		return -1;
	while (t->left) {
		size_t want = t->left < PIECE ? (size_t)t->left : PIECE;
		long n = segment_read(fd, piece, want, size - t->left);

		if (n < 0)
			return err_sys(err, "read %s", path);
		if ((size_t)n < want)
			return err_set(err, ERR_INPUT, "%s became shorter while it was read", path);
		if (add(t, piece, want, err) < 0)
			return -1;
	}
	if (end(t, size, &h, err) < 0)
		return -1;
	return list(t, &h, err);
}

int ustar_end(struct ustar *t, const char *sums, struct hash *ret, struct err *err)
{
	static const char zeros[2 * BLOCK];
	struct span text = buf_span(&t->sums);

	if (begin(t, sums, text.len, err) < 0 || add(t, text.at, text.len, err) < 0 ||
	    end(t, text.len, ret, err) < 0 || put(t, zeros, sizeof(zeros), err) < 0 ||
	    pad(t, t->bytes + buf_len(&t->out), RECORD, err) < 0)
		return -1;
	return flush(t, err);
}
