#include "audit/erasable_priv.h"

#include "audit/log_priv.h"
#include "gate/base/auto.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_ROOM   40
#define VALUE_MAX   1024 /* bytes of a value that are kept */
#define LINES_MAX   (8u << 20)
#define NOTE        "going" /* a file beside the segments' */
#define WITHOUT_ONE "-"     /* stands for a value that could be neither committed to nor kept */

static const struct {
	const char *word, *key;
} rows[] = {
#define ERASABLE(word, key) {word, key},
#include "audit/erasable.def"
#undef ERASABLE
};

/* The bit is that of the word's first row. */
unsigned erasable_word(const char *word)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (strcmp(rows[i].word, word) == 0)
			return 1u << i;
	return 0;
}

static bool is_erasable(const struct erasable *e, struct span key)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (span_is(key, rows[i].key) && (e->words & erasable_word(rows[i].word)))
			return true;
	return false;
}

/* What a crash left of a file that was being written anew: it may hold what was erased. */
static void remove_temporary(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!folder && fd >= 0)
		close(fd);
	while (folder && (entry = readdir(folder))) {
		size_t len = strlen(entry->d_name);

		if (len > 4 && strcmp(entry->d_name + len - 4, ".tmp") == 0)
			(void)unlinkat(dir_fd, entry->d_name, 0);
	}
	if (folder)
		closedir(folder);
}

int erasable_open(struct erasable *e, int log_fd, unsigned words, struct err *err)
{
	*e = (struct erasable){.words = words, .dir_fd = -1, .fd = -1};
	buf_init(&e->body, RECORD_BODY_MAX);
	buf_init(&e->taken, RECORD_LINE_MAX * 4);
	buf_init(&e->lines, LINES_MAX);
	if (words && mkdirat(log_fd, ERASABLE_FOLDER, 0750) < 0 && errno != EEXIST)
		return err_sys(err, "make the folder " ERASABLE_FOLDER " in the log's");
	e->dir_fd =
		openat(log_fd, ERASABLE_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (e->dir_fd < 0 && (words || errno != ENOENT))
		return err_sys(err, "open the folder " ERASABLE_FOLDER " in the log's");
	if (e->dir_fd >= 0)
		remove_temporary(e->dir_fd);
	return 0;
}

void erasable_close(struct erasable *e)
{
	if (!e->body.cap)
		return; /* it was never opened */
	if (e->fd >= 0)
		close(e->fd);
	if (e->dir_fd >= 0)
		close(e->dir_fd);
	buf_fini(&e->body);
	buf_fini(&e->taken);
	buf_fini(&e->lines);
	e->fd = e->dir_fd = -1;
}

/* --- commitments --- */

void erasable_commitment(const uint8_t salt[HASH_BYTES], struct span value,
			 char out[ERASABLE_TEXT + 1])
{
	struct hash hash = hash_two((struct span){(const char *)salt, HASH_BYTES}, value);
	char hex[HASH_HEX_LEN + 1];

	hash_hex(&hash, hex);
	snprintf(out, ERASABLE_TEXT + 1, "c:%s", hex);
}

/* A value, without its quotes, is taken out; what stands for it goes to the body. */
static void take_one(struct erasable *e, struct span value, struct span identity)
{
	char text[ERASABLE_TEXT + 1], hex[HASH_HEX_LEN + 1];
	struct hash salt;

	if (e->without || value.len > VALUE_MAX || identity.len > VALUE_MAX ||
	    getrandom(salt.bytes, sizeof(salt.bytes), 0) != sizeof(salt.bytes)) {
		buf_puts(&e->body, WITHOUT_ONE);
		return;
	}
	erasable_commitment(salt.bytes, value, text);
	hash_hex(&salt, hex);
	buf_puts(&e->body, text);
	buf_printf(&e->taken, "\"t\":%" PRIu64 ",\"identity\":\"%.*s\",\"salt\":\"%s\",",
		   clock_unix_ns() / 1000000000, SPAN_FMT(identity), hex);
	buf_puts(&e->taken, "\"value\":\"");
	buf_put(&e->taken, value.at, value.len);
	buf_puts(&e->taken, "\"}\n");
}

/* Copies the body up to the end of an object, with its values taken out. */
static const char *take_region(struct erasable *e, const char *from, struct span region,
			       struct span identity)
{
	const char *at = region.at, *end = region.at + region.len, *after;
	bool wanted = false;

	while (at < end) {
		if (*at++ != '"')
			continue;
		after = record_string_end(at, end);
		if (after < end && *after == ':') {
			wanted = is_erasable(e, (struct span){at, (size_t)(after - 1 - at)});
		} else if (wanted && after - 1 > at) {
			buf_put(&e->body, from, (size_t)(at - from));
			take_one(e, (struct span){at, (size_t)(after - 1 - at)}, identity);
			from = after - 1;
		}
		at = after;
	}
	buf_put(&e->body, from, (size_t)(end - from));
	return end;
}

/* As the line has it, escapes and all. */
static struct span raw_identity(struct span body)
{
	static const char opening[] = "\"actor\":{\"identity\":\"";
	const char *at = memmem(body.at, body.len, opening, sizeof(opening) - 1);
	const char *end = body.at + body.len;

	if (!at)
		return (struct span){"", 0};
	at += sizeof(opening) - 1;
	return (struct span){at, (size_t)(record_string_end(at, end) - 1 - at)};
}

static void take_all(struct erasable *e, struct span body)
{
	static const char listed[] = ",\"erasable\":true";
	struct span auth = record_peek_object(body, "\"auth\":{"), who = raw_identity(body);
	struct span identity = record_peek_object(body, "\"identity\":{");
	struct span actor = record_peek_object(body, "\"actor\":{");
	const char *from = body.at;

	buf_clear(&e->body);
	buf_clear(&e->taken);
	if (actor.len && auth.at > actor.at) /* what stands before it: identity, owner */
		actor.len = (size_t)(auth.at - actor.at);
	if (actor.len)
		from = take_region(e, from, actor, who);
	if (auth.len && auth.at >= from)
		from = take_region(e, from, auth, who);
	if (identity.len && identity.at >= from)
		from = take_region(e, from, identity, who);
	buf_put(&e->body, from, (size_t)(body.at + body.len - from));
	if (buf_len(&e->taken))
		buf_put(&e->body, listed, sizeof(listed) - 1);
}

struct span erasable_take(struct erasable *e, struct span body)
{
	if (!e->words)
		return body;
	take_all(e, body);
	if (buf_spent(&e->body) || buf_spent(&e->taken)) { /* too long: then they are not kept */
		e->without = true;
		take_all(e, body);
		e->without = false;
	}
	return buf_spent(&e->body) ? (struct span){"", 0} : buf_span(&e->body);
}

/* --- files --- */

static void file_name(uint64_t first, char out[NAME_ROOM])
{
	snprintf(out, NAME_ROOM, "%020" PRIu64, first);
}

/*
 * What a crash or a full disk left of a line is ended, so that it spoils no other; and a file
 * that is new is still there after a power loss.
 */
static int end_line(int dir_fd, int fd)
{
	struct stat st;
	char last;

	if (fstat(fd, &st) < 0)
		return -1;
	if (!st.st_size)
		return fsync(dir_fd);
	if ((pread(fd, &last, 1, st.st_size - 1) == 1 && last == '\n'))
		return 0;
	return io_write_at(fd, "\n", 1, 0);
}

static int open_file(struct erasable *e, uint64_t first)
{
	char name[NAME_ROOM];

	if (e->fd >= 0 && e->first == first)
		return 0;
	if (e->fd >= 0)
		close(e->fd);
	file_name(first, name);
	e->fd = openat(e->dir_fd, name, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640);
	e->first = first;
	return e->fd < 0 ? -1 : end_line(e->dir_fd, e->fd);
}

void erasable_put(struct erasable *e, uint64_t seq, uint64_t first)
{
	struct span rest = buf_span(&e->taken), line;

	if (!e->words || !rest.len)
		return;
	e->next = first;
	while (span_cut(&rest, '\n', &line)) {
		buf_printf(&e->lines, "{\"seq\":%" PRIu64 ",", seq);
		buf_put(&e->lines, line.at, line.len);
		buf_puts(&e->lines, "\n");
	}
	buf_clear(&e->taken);
}

int erasable_sync(struct erasable *e, struct err *err)
{
	struct span bytes = buf_span(&e->lines);
	int rc = 0;

	if (!e->words || (!bytes.len && !buf_spent(&e->lines)))
		return 0;
	if (buf_spent(&e->lines))
		rc = err_set(err, ERR_LIMIT, "no memory for values that can be erased");
	else if (open_file(e, e->next) < 0 || io_write_at(e->fd, bytes.at, bytes.len, 0) < 0 ||
		 fdatasync(e->fd) < 0)
		rc = err_sys(err, "keep values that can be erased");
	if (rc < 0 && e->fd >= 0) { /* looked at anew before the next line */
		close(e->fd);
		e->fd = -1;
	}
	buf_clear(&e->lines);
	return rc;
}

void erasable_drop(const struct erasable *e, uint64_t first)
{
	char name[NAME_ROOM];

	file_name(first, name);
	if (e->dir_fd >= 0)
		(void)unlinkat(e->dir_fd, name, 0);
}

void erasable_note(const struct erasable *e, const char *text)
{
	struct err ignored = {0};

	if (e->dir_fd < 0)
		return;
	if (text)
		(void)io_replace(e->dir_fd, NOTE, 0640, span_of(text), &ignored);
	else
		(void)unlinkat(e->dir_fd, NOTE, 0);
}

bool erasable_noted(const struct erasable *e, char out[ERASABLE_NOTE])
{
	auto_fd int fd = e->dir_fd < 0 ? -1
				       : openat(e->dir_fd, NOTE,
						O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, out, ERASABLE_NOTE - 1, 0);

	out[n > 0 ? n : 0] = '\0';
	return fd >= 0;
}
