#include "audit/index_priv.h"

#include "audit/line_priv.h"
#include "gate/base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_MS     5000     /* for one that reads slowly; then a new file takes its place */
#define CHECK_BELOW 10000    /* records; a smaller index is looked at as a whole */
#define CACHE_KIB   "-32768" /* while it is made */
#define WORDS_MAX   (2 * RECORD_LINE_MAX)

static const char schema[] =
	"CREATE TABLE state(version INT, log TEXT, first_seq INT, last_seq INT, last_hash TEXT,"
	" segment INT, at INT, next INT, records INT);"
	"CREATE TABLE names(id INTEGER PRIMARY KEY, text TEXT UNIQUE);"
	"CREATE TABLE records(seq INTEGER PRIMARY KEY, segment INT, at INT, t INT, type INT,"
	" id TEXT, of TEXT, identity INT, owner INT, op INT, class INT, verdict INT, reason INT,"
	" rule INT, profile INT, status INT, outcome INT, joined INT);"
	"CREATE TABLE objects(name TEXT, seq INT, PRIMARY KEY(name, seq)) WITHOUT ROWID;"
	"CREATE INDEX by_id ON records(id);"
	"CREATE TABLE times(block INTEGER PRIMARY KEY, least INT, most INT);"
	"CREATE INDEX by_type ON records(type);"
	"CREATE INDEX by_identity ON records(identity);"
	"CREATE INDEX by_owner ON records(owner);"
	"CREATE INDEX by_op ON records(op);"
	"CREATE INDEX by_verdict ON records(verdict);"
	"CREATE INDEX by_reason ON records(reason);"
	"CREATE INDEX by_rule ON records(rule);"
	"CREATE INDEX by_profile ON records(profile);"
	"CREATE VIRTUAL TABLE words USING fts5(body, content='', columnsize=0);";

int index_trouble(struct log_index *ix, const char *doing, struct err *err)
{
	return err_set(err, ERR_SYSTEM, "%s the index %s: %s", doing, ix->file,
		       ix->db ? sqlite3_errmsg(ix->db) : "no memory");
}

bool index_damaged(const struct log_index *ix)
{
	int code = ix->db ? sqlite3_errcode(ix->db) & 0xff : SQLITE_OK;

	return ix->stale || code == SQLITE_BUSY || code == SQLITE_CORRUPT ||
	       code == SQLITE_NOTADB || code == SQLITE_ERROR || code == SQLITE_FORMAT ||
	       code == SQLITE_MISMATCH;
}

int index_run(struct log_index *ix, const char *sql, struct err *err)
{
	if (sqlite3_exec(ix->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return index_trouble(ix, "write", err);
	return 0;
}

sqlite3_stmt *index_prepare(struct log_index *ix, const char *sql, struct err *err)
{
	sqlite3_stmt *ret;

	if (sqlite3_prepare_v2(ix->db, sql, -1, &ret, NULL) != SQLITE_OK) {
		index_trouble(ix, "ask", err);
		return NULL;
	}
	return ret;
}

static void close_db(struct log_index *ix)
{
	index_fill_end(ix);
	sqlite3_close(ix->db);
	ix->db = NULL;
}

static int open_db(struct log_index *ix, const char *file, int flags, struct err *err)
{
	if (index_place_safe(file, err) < 0)
		return -1;
	if (sqlite3_open_v2(file, &ix->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | flags,
			    NULL) != SQLITE_OK)
		return index_trouble(ix, "open", err);
	sqlite3_busy_timeout(ix->db, BUSY_MS);
	/* What a file that is none of ours might bring along is not run. */
	sqlite3_db_config(ix->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(ix->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(ix->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(ix->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_limit(ix->db, SQLITE_LIMIT_LENGTH, 1 << 20);
	return 0;
}

/* --- is it the index of this log? --- */

/* All texts of a schema in one. */
static int add_schema(void *arg, int columns, char **text, char **names)
{
	(void)columns;
	(void)names;
	buf_puts(arg, text[0] ? text[0] : "");
	buf_puts(arg, ";");
	return buf_spent(arg);
}

static bool same_schema(struct log_index *ix)
{
	static const char sql[] = "SELECT sql FROM sqlite_master ORDER BY type, name";
	struct buf here, want;
	sqlite3 *fresh = NULL;
	bool same;

	buf_init(&here, 65536);
	buf_init(&want, 65536);
	same = sqlite3_open_v2(":memory:", &fresh, SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY,
			       NULL) == SQLITE_OK &&
	       sqlite3_exec(fresh, schema, NULL, NULL, NULL) == SQLITE_OK &&
	       sqlite3_exec(fresh, sql, add_schema, &want, NULL) == SQLITE_OK &&
	       sqlite3_exec(ix->db, sql, add_schema, &here, NULL) == SQLITE_OK &&
	       span_eq(buf_span(&here), buf_span(&want));
	sqlite3_close(fresh);
	buf_fini(&here);
	buf_fini(&want);
	return same;
}

static const char *column_text(sqlite3_stmt *s, int column)
{
	const char *text = (const char *)sqlite3_column_text(s, column);

	return text ? text : "";
}

static bool read_state(struct log_index *ix)
{
	struct err ignored = {0};
	sqlite3_stmt *s = index_prepare(ix,
					"SELECT version, log, first_seq, last_seq, last_hash,"
					" segment, at, next, records FROM state",
					&ignored);
	struct index_state *st = &ix->state;
	bool fine = s && sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int(s, 0) == INDEX_VERSION;

	if (fine) {
		snprintf(st->log, sizeof(st->log), "%s", column_text(s, 1));
		st->first_seq = (uint64_t)sqlite3_column_int64(s, 2);
		st->last_seq = (uint64_t)sqlite3_column_int64(s, 3);
		fine = hash_parse(span_of(column_text(s, 4)), &st->last_hash) == 0;
		st->segment = (uint64_t)sqlite3_column_int64(s, 5);
		st->at = (uint64_t)sqlite3_column_int64(s, 6);
		st->next = (uint64_t)sqlite3_column_int64(s, 7);
		st->records = (uint64_t)sqlite3_column_int64(s, 8);
	}
	sqlite3_finalize(s);
	return fine && st->records && st->last_seq - st->first_seq + 1 == st->records;
}

/* The log still holds the last record that the index knows, and begins where it began. */
static bool log_agrees(struct log_index *ix)
{
	struct err ignored = {0};
	struct segments all;
	struct line_reader r;
	struct span text;
	struct line line;
	bool same = false;
	int fd;

	if (segments_list(ix->dir_fd, &all, &ignored) < 0)
		return false;
	fd = all.count && all.first[0] == ix->state.first_seq
		     ? segment_open(ix->dir_fd, ix->state.segment, O_RDONLY, &ignored)
		     : -1;
	if (fd >= 0 && line_reader_init(&r, fd)) {
		line_reader_seek(&r, ix->state.at);
		same = line_reader_next(&r, &text) == LINE_WHOLE && line_split(text, &line) &&
		       line_hash_ok(text, &line) && line.seq == ix->state.last_seq &&
		       span_is(line.log, ix->state.log) &&
		       memcmp(&line.hash, &ix->state.last_hash, sizeof(line.hash)) == 0 &&
		       line_reader_offset(&r) == ix->state.next;
		line_reader_fini(&r);
	}
	if (fd >= 0)
		close(fd);
	segments_free(&all);
	return same;
}

static bool answers(struct log_index *ix, const char *sql, const char *want)
{
	struct err ignored = {0};
	sqlite3_stmt *s = index_prepare(ix, sql, &ignored);
	bool same = s && sqlite3_step(s) == SQLITE_ROW && strcmp(column_text(s, 0), want) == 0;

	sqlite3_finalize(s);
	return same;
}

/* Looking at each page and counting rows is for small ones; lines are compared in any case. */
static bool is_whole(struct log_index *ix)
{
	char records[24];

	if (ix->state.records > CHECK_BELOW)
		return true;
	snprintf(records, sizeof(records), "%" PRIu64, ix->state.records);
	return answers(ix, "PRAGMA integrity_check(1)", "ok") &&
	       answers(ix, "SELECT count(*) FROM records", records);
}

static bool is_ours(struct log_index *ix)
{
	return same_schema(ix) && read_state(ix) && log_agrees(ix) && is_whole(ix);
}

/* --- making --- */

static int fill_new(struct log_index *ix, const char *file, struct err *err)
{
	/* It is nobody's index before it has its name, so a crash costs nothing. */
	if (open_db(ix, file, SQLITE_OPEN_CREATE, err) < 0)
		return -1;
	/* Nobody else has had his hands on it, and else there would be a journal all the same. */
	sqlite3_db_config(ix->db, SQLITE_DBCONFIG_DEFENSIVE, 0, NULL);
	if (index_run(ix,
		      "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
		      "PRAGMA cache_size=" CACHE_KIB,
		      err) < 0 ||
	    index_run(ix, schema, err) < 0 || index_fill(ix, err) < 0)
		return -1;
	return 0;
}

int index_make(struct log_index *ix, struct err *err)
{
	char file[PATH_MAX + 32], journal[PATH_MAX + 32];
	int rc;

	close_db(ix);
	if (index_place_safe(ix->file, err) < 0)
		return -1;
	memset(ix->names, 0, sizeof(ix->names));
	ix->state = (struct index_state){.records = 0};
	ix->stale = false;
	snprintf(file, sizeof(file), "%s.new-%d", ix->file, (int)getpid());
	(void)unlink(file);
	rc = fill_new(ix, file, err);
	close_db(ix);
	/* What a crash left of the old one would be put into the new one. */
	snprintf(journal, sizeof(journal), "%s-journal", ix->file);
	(void)unlink(journal);
	if (rc == 0 && rename(file, ix->file) < 0)
		rc = err_sys(err, "put the index at %s", ix->file);
	if (rc < 0) {
		(void)unlink(file);
		return -1;
	}
	ix->made = true;
	return open_db(ix, ix->file, 0, err);
}

/* A journal belongs to a name: two that write, or one that writes and one that renames, spoil it.
 */
int index_lock(struct log_index *ix, struct err *err)
{
	char file[PATH_MAX + 8];

	snprintf(file, sizeof(file), "%s.lock", ix->file);
	if (index_place_safe(file, err) < 0)
		return -1;
	ix->lock_fd = open(file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (ix->lock_fd < 0)
		return err_sys(err, "open %s", file);
	while (flock(ix->lock_fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_sys(err, "lock %s", file);
	return 0;
}

void index_unlock(struct log_index *ix)
{
	if (ix->lock_fd >= 0)
		close(ix->lock_fd);
	ix->lock_fd = -1;
}

/* 1: it is there and up to date; 0: it must be made anew. */
static int take_old(struct log_index *ix, struct err *err)
{
	struct stat st;

	if (index_place_safe(ix->file, err) < 0)
		return -1;
	if (stat(ix->file, &st) < 0)
		return 0;
	if (open_db(ix, ix->file, 0, err) < 0)
		return index_damaged(ix) ? 0 : -1;
	if (!is_ours(ix))
		return 0;
	if (index_fill(ix, err) == 0)
		return 1;
	return index_damaged(ix) ? 0 : -1;
}

static int place_index(struct log_index *ix, const char *dir, const char *file, struct err *err)
{
	char folder[PATH_MAX], real[PATH_MAX];
	const char *slash;

	if (!realpath(dir, ix->dir))
		return err_sys(err, "open %s", dir);
	ix->dir_fd = open(ix->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ix->dir_fd < 0)
		return err_sys(err, "open %s", dir);
	if (!file)
		return index_place(ix->dir, ix->file, err);
	/* SQLite is told to follow no links, so the way there is cleaned of them first. */
	slash = strrchr(file, '/');
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - file) + 1 : 1,
		 slash ? file : ".");
	if (!realpath(folder, real))
		return err_sys(err, "open the index's folder %s", folder);
	file = slash ? slash + 1 : file;
	if (!*file || strlen(real) > PATH_MAX / 2 || strlen(file) > PATH_MAX / 2 - 64)
		return err_set(err, ERR_INPUT, "--index names no file");
	snprintf(ix->file, sizeof(ix->file), "%.*s/%.*s", PATH_MAX / 2, real, PATH_MAX / 2 - 2,
		 file);
	return 0;
}

struct log_index *log_index_open(const char *dir, const char *file, struct err *err)
{
	struct log_index *ix = calloc(1, sizeof(*ix));
	mode_t old = umask(077);
	int rc = -1;

	if (ix) {
		ix->dir_fd = ix->segment_fd = ix->lock_fd = -1;
		ix->arena = arena_create(FIELDS_ARENA_MAX);
		buf_init(&ix->words, WORDS_MAX);
	}
	if (!ix || !ix->arena)
		err_set(err, ERR_LIMIT, "no memory for the index");
	else if (place_index(ix, dir, file, err) == 0 && index_lock(ix, err) == 0)
		rc = take_old(ix, err);
	if (rc == 0)
		rc = index_make(ix, err) < 0 ? -1 : 1;
	if (ix)
		index_unlock(ix);
	umask(old);
	if (rc > 0)
		return ix;
	log_index_close(ix);
	return NULL;
}

void log_index_close(struct log_index *ix)
{
	if (!ix)
		return;
	close_db(ix);
	if (ix->segment_fd >= 0)
		close(ix->segment_fd);
	if (ix->dir_fd >= 0)
		close(ix->dir_fd);
	arena_destroy(ix->arena);
	buf_fini(&ix->words);
	free(ix);
}

const char *log_index_file(const struct log_index *ix)
{
	return ix->file;
}

bool log_index_was_made(const struct log_index *ix)
{
	return ix->made;
}
