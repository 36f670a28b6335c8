#include "backends/docker/tar_priv.h"

#include "backends/docker/tar_write_priv.h"
#include "gate/base/hash.h"

#include <string.h>

enum where {
	AT_HEAD = 0, /* a block that is a head, or empty */
	AT_META,     /* what belongs to the next head: pax records, a long name */
	AT_BODY,     /* a file's content */
	AT_PADDING,  /* what fills up its last block */
	AT_SECOND,   /* one empty block has come */
	AT_TAIL      /* both have: zeros only */
};

/* What pax records and GNU long names say of the next entry. */
struct ahead {
	bool any, gnu, pax;
	bool has_name, has_link, has_size, has_mtime, has_uid, has_gid;
	char name[TAR_NAME_MAX + 1], link[TAR_NAME_MAX + 1];
	uint64_t size, mtime, uid, gid;
};

/* Paths of links, by the first bytes of their hashes; an open table. */
struct links {
	struct hash *slots;
	size_t size, count;
};

struct tar {
	struct arena *arena;
	const char *wanted; /* NULL: nothing, this is a copy */
	enum where where;
	unsigned char block[TAR_BLOCK];
	size_t have;
	char meta_type;
	char *meta;
	uint64_t size;  /* of what is being read: meta or content */
	uint64_t left;  /* of it */
	size_t padding; /* that is left */
	struct ahead ahead;
	char name[TAR_NAME_MAX + 1], link[TAR_NAME_MAX + 1]; /* of the entry */
	bool in_wanted, found, begun;
	char *text;
	size_t text_len;
	uint64_t bytes;
	size_t entries;
	struct links links;
	enum tar_fault fault;
	const char *why;
};

static int refuse(struct tar *t, enum tar_fault fault, const char *why)
{
	t->fault = fault;
	t->why = why;
	return -1;
}

struct tar *tar_open(struct arena *a, const char *wanted)
{
	struct tar *t = arena_take(a, sizeof(*t));

	if (!t)
		return NULL;
	t->arena = a;
	t->wanted = wanted;
	t->meta = arena_take(a, TAR_META_MAX + 1);
	t->why = "";
	return t->meta ? t : NULL;
}

struct tar *tar_open_copy(struct arena *a)
{
	return tar_open(a, NULL);
}

/* --- names --- */

bool tar_clean(struct span name, char *to)
{
	size_t len = 0;
	struct span step;

	if (name.len > TAR_NAME_MAX || (name.len && name.at[0] == '/'))
		return false;
	for (size_t i = 0; i < name.len; i++)
		if ((unsigned char)name.at[i] < 0x20 || name.at[i] == 0x7f)
			return false;
	while (name.len) {
		span_cut(&name, '/', &step);
		if (!step.len || span_is(step, "."))
			continue;
		if (span_is(step, "..") || step.len > 255)
			return false;
		if (len)
			to[len++] = '/';
		memcpy(to + len, step.at, step.len);
		len += step.len;
	}
	to[len] = '\0';
	return true;
}

/* Whether inner lies below outer. */
static bool is_below(const char *outer, const char *inner)
{
	size_t len = strlen(outer);

	return strncmp(outer, inner, len) == 0 && inner[len] == '/';
}

/* --- links --- */

static struct hash *slot_of(struct hash *slots, size_t size, const struct hash *key)
{
	static const struct hash none;
	size_t at;

	memcpy(&at, key->bytes, sizeof(at));
	for (at %= size; memcmp(&slots[at], &none, sizeof(none)) != 0; at = (at + 1) % size)
		if (memcmp(&slots[at], key, sizeof(*key)) == 0)
			break;
	return &slots[at];
}

static int grow(struct tar *t)
{
	size_t size = t->links.size ? 4 * t->links.size : 256;
	struct hash *slots = arena_take(t->arena, size * sizeof(*slots));
	static const struct hash none;

	if (!slots)
		return refuse(t, TAR_MEMORY, "there are too many links in the archive");
	for (size_t i = 0; i < t->links.size; i++)
		if (memcmp(&t->links.slots[i], &none, sizeof(none)) != 0)
			*slot_of(slots, size, &t->links.slots[i]) = t->links.slots[i];
	t->links.slots = slots;
	t->links.size = size;
	return 0;
}

static int remember_link(struct tar *t)
{
	struct hash key = hash_of(span_of(t->name));

	if (t->links.count == TAR_LINKS_MAX)
		return refuse(t, TAR_LARGE, "there are too many links in the archive");
	if (2 * t->links.count >= t->links.size && grow(t) < 0)
		return -1;
	*slot_of(t->links.slots, t->links.size, &key) = key;
	t->links.count++;
	return 0;
}

/* An engine would follow it, and write somewhere else than the name says. */
static bool is_below_link(const struct tar *t, const char *name)
{
	for (const char *p = strchr(name, '/'); p && t->links.size; p = strchr(p + 1, '/')) {
		struct hash key = hash_of((struct span){name, (size_t)(p - name)});

		if (memcmp(slot_of(t->links.slots, t->links.size, &key), &key, sizeof(key)) == 0)
			return true;
	}
	return false;
}

/* --- fields --- */

static struct span text_field(const unsigned char *at, size_t room)
{
	const unsigned char *end = memchr(at, '\0', room);

	return (struct span){(const char *)at, end ? (size_t)(end - at) : room};
}

/* Octal digits, spaces around them; nothing else in the field. */
static bool read_octal(const unsigned char *at, size_t room, uint64_t *ret)
{
	size_t i = 0;
	uint64_t value = 0;

	while (i < room && at[i] == ' ')
		i++;
	for (; i < room && at[i] >= '0' && at[i] <= '7'; i++)
		value = value * 8 + (uint64_t)(at[i] - '0');
	for (; i < room; i++)
		if (at[i] != ' ' && at[i] != '\0')
			return false;
	*ret = value;
	return true;
}

/* Of GNU, for what octal digits cannot say; only as far as we count. */
static bool read_number(const unsigned char *at, size_t room, uint64_t *ret)
{
	uint64_t value = 0;

	if (!(at[0] & 0x80))
		return read_octal(at, room, ret);
	for (size_t i = 0; i < room; i++) {
		unsigned char byte = i ? at[i] : (unsigned char)(at[i] & 0x7f);

		if (value >> 54)
			return false;
		value = value << 8 | byte;
	}
	*ret = value;
	return true;
}

static bool read_decimal(struct span s, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < s.len; i++) {
		if (s.at[i] < '0' || s.at[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(s.at[i] - '0');
	}
	*ret = value;
	return s.len > 0 && s.len < 18;
}

static bool sum_fits(const unsigned char *block)
{
	uint64_t said, sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : block[i];
	return read_octal(block + 148, 8, &said) && said == sum;
}

/* --- pax records --- */

static bool keep_text(struct span value, bool *has, char *to)
{
	if (*has || !value.len || value.len > TAR_NAME_MAX || memchr(value.at, '\0', value.len))
		return false;
	memcpy(to, value.at, value.len);
	to[value.len] = '\0';
	return *has = true;
}

static bool keep_record(struct ahead *a, struct span key, struct span value)
{
	static const char *const dropped[] = {"atime", "ctime", "uname", "gname", "comment"};
	struct span seconds;

	if (span_is(key, "path"))
		return keep_text(value, &a->has_name, a->name);
	if (span_is(key, "linkpath"))
		return keep_text(value, &a->has_link, a->link);
	if (span_is(key, "size") && !a->has_size)
		return a->has_size = read_decimal(value, &a->size);
	if (span_is(key, "uid") && !a->has_uid)
		return a->has_uid = read_decimal(value, &a->uid);
	if (span_is(key, "gid") && !a->has_gid)
		return a->has_gid = read_decimal(value, &a->gid);
	if (span_is(key, "mtime") && !a->has_mtime) {
		span_cut(&value, '.', &seconds);
		if (!read_decimal(seconds, &a->mtime))
			a->mtime = 0; /* before 1970 */
		return a->has_mtime = true;
	}
	for (size_t i = 0; i < sizeof(dropped) / sizeof(*dropped); i++)
		if (span_is(key, dropped[i]))
			return true;
	return span_starts(key, "SCHILY.") || span_starts(key, "LIBARCHIVE.");
}

/* Records of the next entry, or of all that follow, which may say nothing that counts. */
static int read_records(struct tar *t, struct span rest)
{
	while (rest.len) {
		struct span record = rest, number, key;
		uint64_t len;

		if (!span_cut(&record, ' ', &number) || !read_decimal(number, &len) ||
		    len > rest.len || len < number.len + 4 || rest.at[len - 1] != '\n')
			return refuse(t, TAR_MALFORMED, "a pax header is malformed");
		record.len = (size_t)len - number.len - 2;
		rest = span_skip(rest, (size_t)len);
		if (!span_cut(&record, '=', &key) || memchr(key.at, '\0', key.len))
			return refuse(t, TAR_MALFORMED, "a pax header is malformed");
		if (t->meta_type == 'g' && !span_is(key, "comment"))
			return refuse(t, TAR_MALFORMED, "pax headers for all entries are refused");
		if (!keep_record(&t->ahead, key, record))
			return refuse(t, TAR_MALFORMED,
				      "a pax header says what is not known, or says it twice");
	}
	return 0;
}

static int read_long(struct tar *t, struct span text)
{
	bool name = t->meta_type == 'L';

	if (text.len && text.at[text.len - 1] == '\0')
		text.len--;
	if (keep_text(text, name ? &t->ahead.has_name : &t->ahead.has_link,
		      name ? t->ahead.name : t->ahead.link))
		return 0;
	return refuse(t, TAR_MALFORMED, "a long name is malformed");
}

static int end_meta(struct tar *t)
{
	struct span text = {t->meta, (size_t)t->size};
	bool gnu = t->meta_type == 'L' || t->meta_type == 'K';

	if (t->meta_type != 'g') {
		t->ahead.any = true;
		if (gnu ? t->ahead.pax : t->ahead.pax || t->ahead.gnu)
			return refuse(t, TAR_MALFORMED, "an entry has two extended headers");
		t->ahead.gnu = t->ahead.gnu || gnu;
		t->ahead.pax = !gnu;
	}
	return gnu ? read_long(t, text) : read_records(t, text);
}

/* --- entries --- */

/* Nothing may come to stand where the wanted file is looked for, but that file, once. */
static int guard_wanted(struct tar *t, char type)
{
	if (!t->wanted)
		return 0;
	if (strcmp(t->name, t->wanted) == 0) {
		if (t->found || t->in_wanted)
			return refuse(t, TAR_ENTRY, "the Dockerfile comes twice");
		if (type != '0')
			return refuse(t, TAR_ENTRY, "the Dockerfile is not a plain file");
		return 0;
	}
	if (is_below(t->name, t->wanted) && type != '5')
		return refuse(t, TAR_ENTRY, "the Dockerfile lies below what is no folder");
	if (is_below(t->wanted, t->name))
		return refuse(t, TAR_ENTRY, "an entry lies below the Dockerfile");
	if (type == '1' && strcmp(t->link, t->wanted) == 0)
		return refuse(t, TAR_ENTRY, "a hard link leads to the Dockerfile");
	return 0;
}

/* Its name and target, clean. */
static int read_names(struct tar *t, char type)
{
	const unsigned char *b = t->block;
	struct span prefix = text_field(b + 345, 155), name = text_field(b, 100);
	struct span link = text_field(b + 157, 100);
	bool posix = memcmp(b + 257, "ustar\0", 6) == 0;
	char whole[300];

	if (posix && prefix.len) {
		memcpy(whole, prefix.at, prefix.len);
		whole[prefix.len] = '/';
		memcpy(whole + prefix.len + 1, name.at, name.len);
		name = (struct span){whole, prefix.len + 1 + name.len};
	}
	if (t->ahead.has_name)
		name = span_of(t->ahead.name);
	if (t->ahead.has_link)
		link = span_of(t->ahead.link);
	if (!tar_clean(name, t->name))
		return refuse(t, TAR_ENTRY,
			      "an entry's name is absolute, leads out, or is no name");
	if (!*t->name && type != '5')
		return refuse(t, TAR_ENTRY, "an entry has no name");
	if (type != '5' && name.at[name.len - 1] == '/')
		return refuse(t, TAR_ENTRY, "an entry that is no folder is named like one");
	if ((type == '1' || type == '2') ? !link.len || link.len > TAR_NAME_MAX : link.len > 0)
		return refuse(t, TAR_ENTRY, "an entry has a target and should not, or has none");
	memcpy(t->link, link.at, link.len);
	t->link[link.len] = '\0';
	if (type == '1' && (!tar_clean(link, t->link) || !*t->link))
		return refuse(t, TAR_ENTRY, "a hard link leads out");
	return 0;
}

/* Whether a symbolic link at name leads out of the archive's folder. */
static bool leads_out(const char *name, struct span target)
{
	struct span step;
	long depth = 0;

	if (target.len && target.at[0] == '/')
		return true;
	for (const char *p = strchr(name, '/'); p; p = strchr(p + 1, '/'))
		depth++;
	while (target.len) {
		span_cut(&target, '/', &step);
		if (span_is(step, ".."))
			depth--;
		else if (step.len && !span_is(step, "."))
			depth++;
		if (depth < 0)
			return true;
	}
	return false;
}

/* Whose it is, and that it does not lead or lift anybody elsewhere. */
static int read_copied(struct tar *t, struct tar_entry *e)
{
	const unsigned char *b = t->block;

	if (e->type == '0' && e->mode & 06000)
		return refuse(t, TAR_ENTRY, "a file has the setuid or setgid bit");
	if (e->type == '2' && leads_out(t->name, e->link))
		return refuse(t, TAR_ENTRY, "a symbolic link leads out of what is copied");
	if (t->ahead.has_uid)
		e->uid = t->ahead.uid;
	else if (!read_number(b + 108, 8, &e->uid))
		return refuse(t, TAR_MALFORMED, "an entry's user is malformed");
	if (t->ahead.has_gid)
		e->gid = t->ahead.gid;
	else if (!read_number(b + 116, 8, &e->gid))
		return refuse(t, TAR_MALFORMED, "an entry's group is malformed");
	if (!e->name.len)
		e->name = span_of("./"); /* the folder that is copied: its mode and owner count */
	return 0;
}

static int begin_entry(struct tar *t, char type, struct buf *out)
{
	struct tar_entry e = {.type = type};
	uint64_t mode, mtime;

	if (++t->entries > TAR_ENTRIES_MAX)
		return refuse(t, TAR_LARGE, "there are too many entries in the archive");
	if (read_names(t, type) < 0 || guard_wanted(t, type) < 0)
		return -1;
	if (is_below_link(t, t->name) || (type == '1' && is_below_link(t, t->link)))
		return refuse(t, TAR_ENTRY, "an entry lies below a link");
	if ((type == '1' || type == '2') && remember_link(t) < 0)
		return -1;
	if (!read_octal(t->block + 100, 8, &mode))
		return refuse(t, TAR_MALFORMED, "an entry's mode is malformed");
	if (t->ahead.has_mtime)
		mtime = t->ahead.mtime;
	else if (!read_number(t->block + 136, 12, &mtime))
		mtime = 0;
	if (t->ahead.has_size)
		t->size = t->ahead.size;
	if (type != '0' && t->size)
		return refuse(t, TAR_MALFORMED, "an entry that is no file has content");
	t->in_wanted = t->wanted && strcmp(t->name, t->wanted) == 0;
	if (t->in_wanted && t->size > TAR_WANTED_MAX)
		return refuse(t, TAR_LARGE, "the Dockerfile is larger than 1 MiB");
	if (t->in_wanted && !(t->text = arena_take(t->arena, (size_t)t->size + 1)))
		return refuse(t, TAR_MEMORY, "there is no room for the Dockerfile");
	e.name = span_of(t->name);
	e.link = span_of(t->link);
	e.mode = (unsigned)(mode & 07777);
	e.size = t->size;
	e.mtime = mtime;
	if (!t->wanted && read_copied(t, &e) < 0)
		return -1;
	if (e.name.len) /* the folder of a build is there */
		tar_write_entry(out, &e, !t->begun);
	t->begun = t->begun || e.name.len;
	memset(&t->ahead, 0, sizeof(t->ahead));
	return 0;
}

static void end_body(struct tar *t, struct buf *out)
{
	tar_write_padding(out, t->size);
	if (!t->in_wanted)
		return;
	t->in_wanted = false;
	t->found = true;
}

static bool is_zero(const unsigned char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (b[i])
			return false;
	return true;
}

static void go_on(struct tar *t, struct buf *out)
{
	t->left = t->size;
	t->padding = (size_t)((TAR_BLOCK - t->size % TAR_BLOCK) % TAR_BLOCK);
	t->where = t->size ? AT_BODY : AT_HEAD;
	if (!t->size)
		end_body(t, out);
}

static int begin_meta(struct tar *t, char type)
{
	if (t->size > TAR_META_MAX || !t->size)
		return refuse(t, TAR_LARGE, "an extended header is empty, or too large");
	t->meta_type = type;
	t->left = t->size;
	t->padding = (size_t)((TAR_BLOCK - t->size % TAR_BLOCK) % TAR_BLOCK);
	t->where = AT_META;
	return 0;
}

static int take_head(struct tar *t, struct buf *out)
{
	const unsigned char *b = t->block;
	char type = (char)b[156];

	if (is_zero(b, TAR_BLOCK)) {
		if (t->ahead.any)
			return refuse(t, TAR_MALFORMED, "an extended header belongs to no entry");
		t->where = AT_SECOND;
		return 0;
	}
	t->name[0] = '\0';
	if (!sum_fits(b) ||
	    (memcmp(b + 257, "ustar\00000", 8) != 0 && memcmp(b + 257, "ustar  \0", 8) != 0))
		return refuse(t, TAR_MALFORMED,
			      "this is no tar archive, in ustar, GNU or pax form");
	if (!read_number(b + 124, 12, &t->size) || t->size > TAR_BYTES_MAX)
		return refuse(t, TAR_LARGE, "an entry's size is malformed, or too large");
	if (type == '\0')
		type = '0';
	if (strchr("xgLK", type))
		return begin_meta(t, type);
	if (!strchr("0125", type)) {
		read_names(t, type);
		return refuse(t, TAR_ENTRY, "an entry is no file, folder or link");
	}
	if (begin_entry(t, type, out) < 0)
		return -1;
	if (t->size > TAR_BYTES_MAX)
		return refuse(t, TAR_LARGE, "an entry's size is too large");
	go_on(t, out);
	return 0;
}

/* --- bytes --- */

static int take_block(struct tar *t, struct span *piece, struct buf *out)
{
	size_t n = TAR_BLOCK - t->have < piece->len ? TAR_BLOCK - t->have : piece->len;

	memcpy(t->block + t->have, piece->at, n);
	*piece = span_skip(*piece, n);
	t->have += n;
	if (t->have < TAR_BLOCK)
		return 0;
	t->have = 0;
	if (t->where == AT_HEAD)
		return take_head(t, out);
	if (!is_zero(t->block, TAR_BLOCK))
		return refuse(t, TAR_MALFORMED, "something stands behind the archive's end");
	t->where = AT_TAIL;
	return 0;
}

static void take_content(struct tar *t, struct span *piece, struct buf *out)
{
	size_t n = t->left < piece->len ? (size_t)t->left : piece->len;

	if (t->where == AT_META) {
		memcpy(t->meta + (t->size - t->left), piece->at, n);
	} else {
		if (t->in_wanted) {
			memcpy(t->text + t->text_len, piece->at, n);
			t->text_len += n;
		}
		buf_put(out, piece->at, n);
	}
	*piece = span_skip(*piece, n);
	t->left -= n;
}

static int take_some(struct tar *t, struct span *piece, struct buf *out)
{
	size_t n;

	switch (t->where) {
	case AT_HEAD:
	case AT_SECOND:
		return take_block(t, piece, out);
	case AT_META:
	case AT_BODY:
		take_content(t, piece, out);
		if (t->left)
			return 0;
		if (t->where == AT_META && end_meta(t) < 0)
			return -1;
		if (t->where == AT_BODY)
			end_body(t, out);
		t->where = t->padding ? AT_PADDING : AT_HEAD;
		return 0;
	case AT_PADDING:
		n = t->padding < piece->len ? t->padding : piece->len;
		*piece = span_skip(*piece, n);
		t->padding -= n;
		t->where = t->padding ? AT_PADDING : AT_HEAD;
		return 0;
	case AT_TAIL:
		if (!is_zero((const unsigned char *)piece->at, piece->len))
			return refuse(t, TAR_MALFORMED,
				      "something stands behind the archive's end");
		*piece = span_skip(*piece, piece->len);
		return 0;
	}
	return refuse(t, TAR_MALFORMED, "");
}

int tar_feed(struct tar *t, struct span piece, struct buf *out)
{
	if (t->fault != TAR_FINE)
		return -1;
	t->bytes += piece.len;
	if (t->bytes > TAR_BYTES_MAX)
		return refuse(t, TAR_LARGE, "the archive is larger than 8 GiB");
	while (piece.len)
		if (take_some(t, &piece, out) < 0)
			return -1;
	return 0;
}

int tar_end(struct tar *t, struct buf *out)
{
	if (t->fault != TAR_FINE)
		return -1;
	if (t->where != AT_TAIL)
		return refuse(t, TAR_MALFORMED, "the archive ends early");
	tar_write_end(out);
	return 0;
}

bool tar_found(const struct tar *t)
{
	return t->found;
}

struct span tar_wanted(const struct tar *t)
{
	return (struct span){t->text ? t->text : "", t->text_len};
}

enum tar_fault tar_fault(const struct tar *t)
{
	return t->fault;
}

const char *tar_why(const struct tar *t)
{
	return t->why;
}

const char *tar_name(const struct tar *t)
{
	return t->name;
}
