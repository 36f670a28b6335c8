#include "audit/history_priv.h"
#include "audit/log_priv.h"
#include "audit/pairing_priv.h"
#include "audit/place_priv.h"
#include "audit/requests_priv.h"

#include "gate/base/auto.h"
#include "gate/base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LOOK_BACK_MAX 1024 /* segments that are searched for open decisions */
#define TORN_NAMES    100
#define DATE_LEN      10 /* 2026-01-31 */
#define DAY_S         86400

/* What the lines before a place lead one to expect there. */
struct expected {
	uint64_t seq;
	struct hash prev;
	bool any_prev; /* the segment before is not there any more */
};

/* What the newest segment holds. */
struct scan {
	uint64_t end; /* offset behind the last good line */
	uint64_t seq; /* of the last good line */
	struct hash hash;
	uint32_t epoch;
	enum record_type type;
	bool any;
	int64_t day; /* of the last good line, since 1970 */
	char date[DATE_LEN];
	int64_t leap; /* see struct audit_log_found */
};

static int damaged(struct err *err, const char *segment, uint64_t seq, const char *what)
{
	return err_set(
		err, ERR_INPUT,
		"the audit log is damaged: %s, record %llu: %s; nothing was changed; run "
		"`sallyport audit verify`, then start once with --accept-damage, which keeps it "
		"in a folder of its own and begins a new log",
		segment, (unsigned long long)seq, what);
}

/* The last line of a finished segment. */
static int last_line(int dir_fd, uint64_t first, struct expected *ret, struct err *err)
{
	auto_fd int fd = segment_open(dir_fd, first, O_RDONLY, err);
	char mem[RECORD_LINE_MAX + 2], name[SEGMENT_NAME_MAX];
	struct record_peek peek;
	struct span text;
	struct line line;
	struct stat st;
	const char *newline;
	long n;

	segment_name(first, name);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys(err, "stat %s", name);
	text.len = (uint64_t)st.st_size < sizeof(mem) ? (size_t)st.st_size : sizeof(mem);
	n = segment_read(fd, mem, text.len, (uint64_t)st.st_size - text.len);
	if (n < 0)
		return err_sys(err, "read %s", name);
	if ((size_t)n != text.len || n == 0 || mem[n - 1] != '\n')
		return damaged(err, name, first, "its last line is not whole");
	text = (struct span){mem, text.len - 1};
	newline = memrchr(text.at, '\n', text.len);
	if (newline)
		text = span_skip(text, (size_t)(newline + 1 - text.at));
	if (!line_split(text, &line) || !line_hash_ok(text, &line) ||
	    !record_peek(line.body, &peek) || peek.type != RECORD_LOG_SEAL)
		return damaged(err, name, first, "it does not end with a log_seal");
	*ret = (struct expected){.seq = line.seq + 1, .prev = line.hash};
	return 0;
}

static bool follows(const struct audit_log *l, const struct line *line, const struct expected *want)
{
	return span_is(line->log, l->writer.origin) && line->seq == want->seq &&
	       (want->any_prev || memcmp(&line->prev, &want->prev, sizeof(want->prev)) == 0);
}

/* Where the times of two records that follow each other leave out a whole day. */
static void watch_time(struct scan *s, const struct line *line)
{
	int64_t second, day;

	if (line->time.len < DATE_LEN || memcmp(s->date, line->time.at, DATE_LEN) == 0)
		return;
	second = line_second(line);
	day = second / DAY_S;
	if (s->any && day > s->day + 1)
		s->leap = second;
	s->day = day;
	memcpy(s->date, line->time.at, DATE_LEN);
}

/* Whoever told it may not have heard that it is on disk. */
static void note_sum(struct audit_log *l, const struct record_peek *peek, const struct line *line)
{
	const struct audit_mark mark = {line->seq, line->hash};
	struct decision_id id;

	if (peek->type == RECORD_SUPPRESSED && decision_id_parse(peek->id, &id) == 0)
		told_keep(&l->told, &id, &mark);
}

/* Reads the newest segment up to the first line that is not good. */
static int scan_newest(struct audit_log *l, struct expected want, struct open_set *open,
		       struct scan *ret, struct err *err)
{
	struct line_reader reader;
	struct span text;

	*ret = (struct scan){0};
	if (!line_reader_init(&reader, l->fd))
		return err_set(err, ERR_LIMIT, "no memory to read the log");
	while (line_reader_next(&reader, &text) == LINE_WHOLE) {
		struct record_peek peek;
		struct line line;

		if (!line_split(text, &line) || !line_hash_ok(text, &line) ||
		    !follows(l, &line, &want) || !record_peek(line.body, &peek))
			break;
		watch_time(ret, &line);
		ret->end = line_reader_offset(&reader);
		ret->seq = line.seq;
		ret->hash = line.hash;
		ret->epoch = line.epoch;
		ret->type = peek.type;
		ret->any = true;
		want = (struct expected){.seq = line.seq + 1, .prev = line.hash};
		pairing_apply(open, &peek, line.seq);
		note_sum(l, &peek, &line);
		tiles_add(l->tiles, l->tiles_off ? -1 : l->dir_fd, &line.hash);
	}
	line_reader_fini(&reader);
	if (reader.error) {
		errno = reader.error;
		return err_sys(err, "read the log");
	}
	return 0;
}

/* Finds open decisions in a finished segment.  That its lines are good is not this one's matter. */
static int scan_older(int dir_fd, uint64_t first, struct open_set *open, struct err *err)
{
	auto_fd int fd = segment_open(dir_fd, first, O_RDONLY, err);
	struct line_reader reader;
	struct span text;

	if (fd < 0)
		return -1;
	if (!line_reader_init(&reader, fd))
		return err_set(err, ERR_LIMIT, "no memory to read the log");
	while (line_reader_next(&reader, &text) == LINE_WHOLE) {
		struct record_peek peek;
		struct line line;

		if (line_split(text, &line) && record_peek(line.body, &peek))
			pairing_apply(open, &peek, line.seq);
	}
	line_reader_fini(&reader);
	if (reader.error) {
		errno = reader.error;
		return err_sys(err, "read an older log segment");
	}
	return 0;
}

/* The first line of the newest segment says how far back open decisions reach. */
static int look_back(struct audit_log *l, const struct segments *all, struct open_set *open,
		     struct audit_log_found *found, struct err *err)
{
	struct line_reader reader;
	struct span text;
	struct line line;
	uint64_t oldest = 0, count = 0;
	size_t from = all->count - 1;

	if (!line_reader_init(&reader, l->fd))
		return err_set(err, ERR_LIMIT, "no memory to read the log");
	if (line_reader_next(&reader, &text) == LINE_WHOLE && line_split(text, &line)) {
		count = record_peek_uint(line.body, "open");
		oldest = record_peek_uint(line.body, "oldest");
	}
	line_reader_fini(&reader);
	if (!count)
		return 0;
	while (from > 0 && all->first[from] > oldest && all->count - from <= LOOK_BACK_MAX)
		from--;
	for (; from < all->count - 1; from++)
		if (scan_older(l->dir_fd, all->first[from], open, err) < 0)
			return -1;
	if (open->count < count)
		found->not_looked_for = count - open->count;
	return 0;
}

/* --- a torn tail --- */

static int create_torn_file(int torn_fd, uint32_t epoch, struct audit_log_found *found,
			    struct err *err)
{
	char name[32];

	for (int i = 0; i < TORN_NAMES; i++) {
		int fd;

		if (i == 0)
			snprintf(name, sizeof(name), "%u.bin", epoch);
		else
			snprintf(name, sizeof(name), "%u-%d.bin", epoch, i);
		fd = openat(torn_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0640);
		if (fd >= 0) {
			snprintf(found->tail_file, sizeof(found->tail_file), "torn/%s", name);
			return fd;
		}
		if (errno != EEXIST)
			break;
	}
	return err_sys(err, "create torn/%s", name);
}

static int keep_torn(struct audit_log *l, struct span bytes, struct audit_log_found *found,
		     struct err *err)
{
	auto_fd int torn_fd = -1, fd = -1;

	if (mkdirat(l->dir_fd, "torn", 0750) < 0 && errno != EEXIST)
		return err_sys(err, "create the directory torn");
	torn_fd = openat(l->dir_fd, "torn", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (torn_fd < 0)
		return err_sys(err, "open the directory torn");
	fd = create_torn_file(torn_fd, l->writer.epoch, found, err);
	if (fd < 0)
		return -1;
	if (io_write_at(fd, bytes.at, bytes.len, 0) < 0 || fsync(fd) < 0 || fsync(torn_fd) < 0 ||
	    fsync(l->dir_fd) < 0)
		return err_sys(err, "keep the log's torn tail in %s", found->tail_file);
	return 0;
}

static int trim(struct audit_log *l, struct audit_log_found *found, struct err *err)
{
	auto_free char *bytes = malloc(found->tail.bytes);
	long n;

	if (!bytes)
		return err_set(err, ERR_LIMIT, "no memory for the log's torn tail");
	n = segment_read(l->fd, bytes, found->tail.bytes, found->tail.at);
	if (n < 0 || (uint64_t)n != found->tail.bytes)
		return err_sys(err, "read the log's torn tail");
	found->tail_hash = hash_of((struct span){bytes, found->tail.bytes});
	if (keep_torn(l, (struct span){bytes, found->tail.bytes}, found, err) < 0)
		return -1;
	memset(bytes, 0, found->tail.bytes);
	if (io_write_at(l->fd, bytes, found->tail.bytes, found->tail.at) < 0 ||
	    fdatasync(l->fd) < 0)
		return err_sys(err, "trim the log's torn tail");
	return 0;
}

/* --- opening --- */

int audit_log_no_folder(const char *dir, struct err *err)
{
	return err_sys(err,
		       errno == EACCES ? "open the log directory %s (its user must be able to "
					 "enter each folder above it)"
				       : "open the log directory %s",
		       dir);
}

static int lock_directory(struct audit_log *l, struct err *err)
{
	l->dir_fd = open(l->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->dir_fd < 0 || fstat(l->dir_fd, &l->dir_stat) < 0)
		return audit_log_no_folder(l->dir, err);
	/* Whoever may read the log cannot open it, so nobody else can keep it locked. */
	l->lock_fd =
		openat(l->dir_fd, WRITER_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (l->lock_fd < 0 || fstat(l->lock_fd, &l->lock_stat) < 0)
		return err_sys(err, "open %s/" WRITER_LOCK, l->dir);
	if (flock(l->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? err_set(err, ERR_CONFIG, "another auditor writes to %s", l->dir)
			       : err_sys(err, "lock %s/" WRITER_LOCK, l->dir);
	l->shown_fd = log_show_written(l->dir_fd);
	return 0;
}

static int expect_first(struct audit_log *l, const struct segments *all, struct expected *ret,
			struct err *err)
{
	char name[SEGMENT_NAME_MAX];

	*ret = (struct expected){.seq = l->first, .any_prev = l->first != 0};
	if (all->count < 2)
		return 0;
	if (last_line(l->dir_fd, all->first[all->count - 2], ret, err) < 0)
		return -1;
	segment_name(l->first, name);
	if (ret->seq != l->first)
		return damaged(err, name, ret->seq, "records are missing before this segment");
	return 0;
}

/* Goes on behind what was found in the newest segment. */
static int go_on(struct audit_log *l, const struct scan *scan, const struct open_set *open,
		 struct audit_log_found *found, struct err *err)
{
	char name[SEGMENT_NAME_MAX];
	int error;

	segment_name(l->first, name);
	if (!scan->any)
		return damaged(err, name, l->first, "its first line is not good");
	if (segment_tail(l->fd, scan->end, &found->tail, err) < 0)
		return -1;
	if (found->tail.kind == TAIL_DAMAGED)
		return damaged(err, name, scan->seq + 1,
			       "it is not good, and no crash explains it");
	l->writer.epoch = scan->epoch + 1;
	line_writer_set(&l->writer, scan->seq + 1, &scan->hash);
	if (found->tail.kind == TAIL_TORN && trim(l, found, err) < 0)
		return -1;
	found->ended = scan->type == RECORD_GATE_STOP;
	found->leap = scan->leap;
	found->last_day = scan->day;
	l->used = l->zeroed = scan->end;
	if (scan->type == RECORD_LOG_SEAL) {
		if (ftruncate(l->fd, (off_t)l->used) < 0 || fdatasync(l->fd) < 0)
			return err_sys(err, "cut %s to its length", name);
		return audit_log_begin(l, open, name, err);
	}
	audit_log_preallocate(l->fd, l->segment_bytes, &error);
	errno = error;
	return error ? err_sys(err, "reserve room for %s", name) : 0;
}

/* The tree of all records before the newest segment, and what of its tiles is not full yet. */
static int resume_tree(struct audit_log *l, const struct segments *all,
		       struct audit_log_found *found, struct err *err)
{
	struct hash leaves[TILE_HASHES];
	char name[SEGMENT_NAME_MAX];
	struct tree edge;

	segment_name(l->first, name);
	if (history_edge(l->dir_fd, l->first, &edge, err) < 0)
		return damaged(err, name, l->first, err->msg);
	/* Records just before it may be pruned; then their tile is full. */
	if ((history_leaves(l->dir_fd, all, l->first - l->first % TILE_HASHES, l->first, leaves) ||
	     tile_read(l->dir_fd, 0, l->first / TILE_HASHES, leaves)) &&
	    tiles_resume(l->tiles, l->dir_fd, &edge, leaves))
		return 0;
	if (all->first[0] != 0) {
		*l->tiles = (struct tiles){.tree = edge};
		l->tiles_off = found->tiles_lost = true;
		return 0;
	}
	/* They follow from the records, which are all here. */
	*l->tiles = (struct tiles){0};
	for (size_t i = 0; i + 1 < all->count; i++)
		if (history_add_segment(l->dir_fd, all->first[i], l->first, l->tiles, err) < 0)
			return -1;
	if (l->tiles->tree.size != edge.size || !tree_same(&l->tiles->tree, &edge))
		return damaged(err, name, l->first, "the records before it are not those it names");
	return 0;
}

/* What was signed must be there: a crash cannot take it away. */
static int check_known(struct audit_log *l, const struct signing *signing,
		       const struct segments *all, struct err *err)
{
	char what[ERR_MSG_MAX], name[SEGMENT_NAME_MAX];

	segment_name(l->first, name);
	for (size_t i = 0; signing && i < signing->known_count; i++) {
		const struct signing_known *k = &signing->known[i];
		struct tree tree;
		struct hash root;

		if (k->size > l->tiles->tree.size) {
			snprintf(what, sizeof(what), "the log ends here, and %s is of %llu records",
				 k->where, (unsigned long long)k->size);
			return damaged(err, name, l->tiles->tree.size, what);
		}
		if (k->size < all->first[0])
			continue; /* pruned since */
		if (history_tree(l->dir_fd, all, k->size, &tree, err) < 0)
			return damaged(err, name, k->size,
				       "it cannot be held against a checkpoint");
		root = tree_root(&tree);
		if (memcmp(&root, &k->root, sizeof(root)) != 0) {
			snprintf(what, sizeof(what), "the records before it are not those of %s",
				 k->where);
			return damaged(err, name, k->size, what);
		}
	}
	return 0;
}

static int open_newest(struct audit_log *l, const struct signing *signing,
		       const struct segments *all, struct open_set *open,
		       struct audit_log_found *found, struct err *err)
{
	struct expected want;
	struct scan scan;

	l->first = all->first[all->count - 1];
	l->fd = segment_open(l->dir_fd, l->first, O_RDWR, err);
	if (l->fd < 0)
		return -1;
	/* What is in memory of a file whose fsync failed need not be what is on disk. */
	(void)posix_fadvise(l->fd, 0, 0, POSIX_FADV_DONTNEED);
	if (expect_first(l, all, &want, err) < 0 || look_back(l, all, open, found, err) < 0 ||
	    resume_tree(l, all, found, err) < 0 || scan_newest(l, want, open, &scan, err) < 0 ||
	    check_known(l, signing, all, err) < 0)
		return -1;
	return go_on(l, &scan, open, found, err);
}

/* The key, before the log is touched: a log goes on with the key that it has. */
static int open_signing(struct audit_log *l, const struct audit_log_conf *conf,
			const struct segments *all, struct err *err)
{
	char vkey[NOTE_VKEY_MAX] = "";

	if (!conf->signing)
		return 0;
	if (all->count && history_key(l->dir_fd, all->first[all->count - 1], vkey, err) < 0)
		return -1;
	if (signing_open(conf->signing, l->dir_fd, conf->signing_conf, l->writer.origin, !*vkey,
			 err) < 0 ||
	    signing_match(conf->signing, vkey, err) < 0)
		return -1;
	snprintf(l->vkey, sizeof(l->vkey), "%s", conf->signing->vkey);
	if (all->count == 0 && conf->signing->known_count)
		return damaged(err, conf->signing->known[0].where, 0, "there are no segments");
	return 0;
}

static int open_or_begin(struct audit_log *l, const struct audit_log_conf *conf,
			 struct open_set *open, struct audit_log_found *found, struct err *err)
{
	static const struct hash none;
	struct segments all;
	int result;

	if (lock_directory(l, err) < 0 ||
	    place_origin(l->dir_fd, conf->origin, l->writer.origin, err) < 0 ||
	    segments_list(l->dir_fd, &all, err) < 0)
		return -1;
	if (open_signing(l, conf, &all, err) < 0) {
		result = -1;
	} else if (all.count) {
		result = open_newest(l, conf->signing, &all, open, found, err);
	} else {
		found->fresh = true;
		l->writer.epoch = 1;
		line_writer_set(&l->writer, 0, &none);
		result = audit_log_begin(l, open, NULL, err);
	}
	segments_free(&all);
	return result;
}

struct audit_log *audit_log_open(const struct audit_log_conf *conf, struct open_set *open,
				 struct audit_log_found *ret, struct err *err)
{
	struct audit_log *l;

	if (!line_origin_ok(conf->origin)) {
		err_set(err, ERR_CONFIG, "the log's name must be 1 to %d letters, digits or ._-/:+",
			LINE_ORIGIN_MAX);
		return NULL;
	}
	*ret = (struct audit_log_found){.tail.kind = TAIL_CLEAN};
	l = calloc(1, sizeof(*l));
	if (!l) {
		err_set(err, ERR_LIMIT, "no memory for the log");
		return NULL;
	}
	l->dir_fd = l->lock_fd = l->shown_fd = l->fd = l->next_fd = -1;
	l->segment_bytes = conf->segment_bytes;
	snprintf(l->writer.origin, sizeof(l->writer.origin), "%s", conf->origin);
	buf_init(&l->group, AUDIT_LOG_GROUP_MAX);
	buf_init(&l->scratch, RECORD_BODY_MAX);
	buf_init(&l->leaves, AUDIT_LOG_LEAVES_MAX);
	l->tiles = calloc(1, sizeof(*l->tiles));
	l->dir = strdup(conf->dir);
	if (!l->dir || !l->tiles || !buf_reserve(&l->leaves, AUDIT_LOG_LEAVES_MAX))
		err_set(err, ERR_LIMIT, "no memory for the log");
	else if (open_or_begin(l, conf, open, ret, err) == 0)
		return l;
	audit_log_close(l);
	return NULL;
}

void audit_log_close(struct audit_log *l)
{
	if (!l)
		return;
	if (l->fd >= 0)
		close(l->fd);
	if (l->next_fd >= 0)
		close(l->next_fd);
	if (l->lock_fd >= 0)
		close(l->lock_fd);
	if (l->shown_fd >= 0)
		close(l->shown_fd);
	if (l->dir_fd >= 0)
		close(l->dir_fd);
	buf_fini(&l->group);
	buf_fini(&l->scratch);
	buf_fini(&l->leaves);
	free(l->tiles);
	free(l->dir);
	free(l);
}
