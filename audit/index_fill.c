/* What is put into the index: each record once, in the order of the log. */
#include "audit/index_priv.h"

#include "audit/line_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BATCH 20000 /* records in one transaction */

static const char put_times[] = "INSERT INTO times VALUES(?,?,?) ON CONFLICT(block) DO UPDATE SET"
				" least=min(least,excluded.least), most=max(most,excluded.most)";

static const char *const put_sql[STATEMENTS] = {
	[PUT_RECORD] = "INSERT INTO records VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[PUT_WORDS] = "INSERT INTO words(rowid, body) VALUES(?,?)",
	[PUT_OBJECT] = "INSERT OR IGNORE INTO objects VALUES(?,?)",
	[PUT_OUTCOME] = "UPDATE records SET outcome=?1, status=?2 WHERE seq=?3",
	[PUT_TIMES] = put_times,
	[FIND_ID] = "SELECT seq FROM records WHERE id=?1 ORDER BY seq DESC LIMIT 1",
};

static int prepare(struct log_index *ix, struct err *err)
{
	for (int i = 0; i < STATEMENTS; i++)
		if (!ix->put[i] && !(ix->put[i] = index_prepare(ix, put_sql[i], err)))
			return -1;
	return 0;
}

void index_fill_end(struct log_index *ix)
{
	for (int i = 0; i < STATEMENTS; i++) {
		sqlite3_finalize(ix->put[i]);
		ix->put[i] = NULL;
	}
	sqlite3_finalize(ix->name_get);
	sqlite3_finalize(ix->name_put);
	ix->name_get = ix->name_put = NULL;
}

/* --- names --- */

static struct index_name *slot_of(struct log_index *ix, const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619u;
	return &ix->names[h % INDEX_NAMES];
}

/* 0: there is none. */
static int64_t find_name(struct log_index *ix, const char *text, struct err *err)
{
	int64_t id = 0;
	int rc;

	if (!ix->name_get &&
	    !(ix->name_get = index_prepare(ix, "SELECT id FROM names WHERE text=?", err)))
		return -1;
	sqlite3_bind_text(ix->name_get, 1, text, -1, SQLITE_STATIC);
	rc = sqlite3_step(ix->name_get);
	if (rc == SQLITE_ROW)
		id = sqlite3_column_int64(ix->name_get, 0);
	else if (rc != SQLITE_DONE)
		id = index_trouble(ix, "read", err);
	sqlite3_reset(ix->name_get);
	return id;
}

static int64_t add_name(struct log_index *ix, const char *text, struct err *err)
{
	int rc;

	if (!ix->name_put &&
	    !(ix->name_put = index_prepare(ix, "INSERT INTO names(text) VALUES(?)", err)))
		return -1;
	sqlite3_bind_text(ix->name_put, 1, text, -1, SQLITE_STATIC);
	rc = sqlite3_step(ix->name_put);
	sqlite3_reset(ix->name_put);
	return rc == SQLITE_DONE ? sqlite3_last_insert_rowid(ix->db)
				 : index_trouble(ix, "write", err);
}

int64_t index_name(struct log_index *ix, const char *text, bool add, struct err *err)
{
	struct index_name *slot = slot_of(ix, text);
	int64_t id;

	if (!*text)
		return 0;
	if (strcmp(slot->text, text) == 0)
		return slot->id;
	id = find_name(ix, text, err);
	if (id == 0 && add)
		id = add_name(ix, text, err);
	if (id > 0 && strlen(text) < INDEX_NAME) {
		snprintf(slot->text, INDEX_NAME, "%s", text);
		slot->id = id;
	}
	return id;
}

/* --- records --- */

/* Runs a statement that gives no rows. */
static int finish(struct log_index *ix, sqlite3_stmt *s, struct err *err)
{
	int rc = sqlite3_step(s);

	sqlite3_reset(s);
	return rc == SQLITE_DONE ? 0 : index_trouble(ix, "write", err);
}

struct place {
	uint64_t segment, at;
};

static int put_record(struct log_index *ix, const struct fields *f, const struct place *p,
		      int64_t decision, struct err *err)
{
	const char *const names[] = {f->identity, f->owner, f->op,      f->op_class, f->verdict,
				     f->reason,   f->rule,  f->profile, f->status};
	sqlite3_stmt *s = ix->put[PUT_RECORD];
	int64_t id = index_name(ix, f->type_name, true, err);
	int column = 1;

	if (id < 0)
		return -1;
	sqlite3_bind_int64(s, column++, (int64_t)f->seq);
	sqlite3_bind_int64(s, column++, (int64_t)p->segment);
	sqlite3_bind_int64(s, column++, (int64_t)p->at);
	sqlite3_bind_int64(s, column++, (int64_t)f->t_ns);
	sqlite3_bind_int64(s, column++, id);
	sqlite3_bind_text(s, column++, f->id, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, column++, f->of, -1, SQLITE_STATIC);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		id = index_name(ix, names[i], true, err);
		if (id < 0)
			return -1;
		sqlite3_bind_int64(s, column++, id);
	}
	sqlite3_bind_null(s, column++);
	sqlite3_bind_int64(s, column, decision > 0);
	return finish(ix, s, err);
}

/* The decision that this record completes: its number + 1, 0 if there is none, -1 on error. */
static int64_t decision_of(struct log_index *ix, const struct fields *f, struct err *err)
{
	sqlite3_stmt *s = ix->put[FIND_ID];
	int64_t ret = 0;
	int rc;

	if (!*f->of || (f->type != RECORD_OUTCOME && f->type != RECORD_OUTCOME_UNKNOWN))
		return 0;
	sqlite3_bind_text(s, 1, f->of, -1, SQLITE_STATIC);
	rc = sqlite3_step(s);
	if (rc == SQLITE_ROW)
		ret = sqlite3_column_int64(s, 0) + 1;
	else if (rc != SQLITE_DONE)
		ret = index_trouble(ix, "read", err);
	sqlite3_reset(s);
	return ret;
}

static int put_outcome(struct log_index *ix, const struct fields *f, int64_t decision,
		       struct err *err)
{
	sqlite3_stmt *s = ix->put[PUT_OUTCOME];
	int64_t status = index_name(ix, f->status, true, err);

	if (status < 0)
		return -1;
	sqlite3_bind_int64(s, 1, (int64_t)f->seq);
	sqlite3_bind_int64(s, 2, status);
	sqlite3_bind_int64(s, 3, decision);
	return finish(ix, s, err);
}

struct putting {
	struct log_index *ix;
	int64_t seq; /* that is found by the name */
	int rc;
	struct err *err;
};

static void put_object(void *arg, const char *name)
{
	struct putting *p = arg;
	sqlite3_stmt *s = p->ix->put[PUT_OBJECT];

	if (p->rc < 0)
		return;
	sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 2, p->seq);
	p->rc = finish(p->ix, s, p->err);
}

static int put_words(struct log_index *ix, const struct fields *f, struct err *err)
{
	sqlite3_stmt *s = ix->put[PUT_WORDS];
	struct span words;

	buf_clear(&ix->words);
	fields_words(f, &ix->words);
	words = buf_span(&ix->words);
	if (!words.len)
		return 0;
	sqlite3_bind_int64(s, 1, (int64_t)f->seq);
	sqlite3_bind_text(s, 2, words.at, (int)words.len, SQLITE_STATIC);
	return finish(ix, s, err);
}

static int end_block(struct log_index *ix, struct err *err)
{
	sqlite3_stmt *s = ix->put[PUT_TIMES];
	const struct index_times *t = &ix->times;

	if (t->least > t->most)
		return 0; /* it has nothing */
	sqlite3_bind_int64(s, 1, t->block);
	sqlite3_bind_int64(s, 2, t->least);
	sqlite3_bind_int64(s, 3, t->most);
	return finish(ix, s, err);
}

static int put_time(struct log_index *ix, const struct fields *f, struct err *err)
{
	int64_t block = (int64_t)(f->seq / INDEX_BLOCK), t = (int64_t)f->t_ns;
	struct index_times *times = &ix->times;

	if (block != times->block && end_block(ix, err) < 0)
		return -1;
	if (block != times->block)
		*times = (struct index_times){block, INT64_MAX, INT64_MIN};
	times->least = t < times->least ? t : times->least;
	times->most = t > times->most ? t : times->most;
	return 0;
}

static int put_line(struct log_index *ix, struct span text, const struct place *p, struct err *err)
{
	struct putting objects = {.ix = ix, .err = err};
	struct fields f;
	int64_t decision;

	arena_reset(ix->arena, FIELDS_ARENA_MAX);
	if (fields_take_searched(ix->arena, text, &f, err) < 0)
		return -1;
	if (ix->state.records && f.seq != ix->state.last_seq + 1)
		return err_set(err, ERR_INPUT,
			       "the log goes from record %" PRIu64 " to %" PRIu64
			       "; 'audit verify' says more",
			       ix->state.last_seq, f.seq);
	decision = decision_of(ix, &f, err);
	objects.seq = decision > 0 ? decision - 1 : (int64_t)f.seq;
	if (decision < 0 || put_record(ix, &f, p, decision, err) < 0 ||
	    put_words(ix, &f, err) < 0 || put_time(ix, &f, err) < 0 ||
	    (decision > 0 && put_outcome(ix, &f, decision - 1, err) < 0))
		return -1;
	fields_objects(&f, put_object, &objects);
	if (!ix->state.records++) {
		ix->state.first_seq = f.seq;
		snprintf(ix->state.log, sizeof(ix->state.log), "%s", f.log);
	}
	ix->state.last_seq = f.seq;
	return objects.rc;
}

static int put_state(struct log_index *ix, struct err *err)
{
	char hex[HASH_HEX_LEN + 1];
	const struct index_state *st = &ix->state;
	sqlite3_stmt *s;
	int rc;

	if (end_block(ix, err) < 0 || index_run(ix, "DELETE FROM state", err) < 0)
		return -1;
	s = index_prepare(ix, "INSERT INTO state VALUES(?,?,?,?,?,?,?,?,?)", err);
	if (!s)
		return -1;
	hash_hex(&st->last_hash, hex);
	sqlite3_bind_int(s, 1, INDEX_VERSION);
	sqlite3_bind_text(s, 2, st->log, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 3, (int64_t)st->first_seq);
	sqlite3_bind_int64(s, 4, (int64_t)st->last_seq);
	sqlite3_bind_text(s, 5, hex, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 6, (int64_t)st->segment);
	sqlite3_bind_int64(s, 7, (int64_t)st->at);
	sqlite3_bind_int64(s, 8, (int64_t)st->next);
	sqlite3_bind_int64(s, 9, (int64_t)st->records);
	rc = finish(ix, s, err);
	sqlite3_finalize(s);
	return rc;
}

/* Some of a segment: 1: there is more, 0: its end, -1: error.  One transaction. */
static int fill_some(struct log_index *ix, struct line_reader *r, uint64_t segment, struct err *err)
{
	struct span text;
	int n = 0;

	while (n < BATCH && line_reader_next(r, &text) == LINE_WHOLE) {
		struct place p = {segment, line_reader_offset(r) - text.len - 1};
		struct line line;

		if (put_line(ix, text, &p, err) < 0)
			return -1;
		if (line_split(text, &line))
			ix->state.last_hash = line.hash;
		ix->state.segment = segment;
		ix->state.at = p.at;
		ix->state.next = line_reader_offset(r);
		n++;
	}
	if (r->error) {
		errno = r->error;
		return err_sys(err, "read the audit log");
	}
	if (n && put_state(ix, err) < 0)
		return -1;
	return n == BATCH;
}

static int fill_segment(struct log_index *ix, uint64_t segment, uint64_t from, struct err *err)
{
	struct line_reader r;
	int fd = segment_open(ix->dir_fd, segment, O_RDONLY, err), rc = 1;

	if (fd < 0)
		return -1;
	if (!line_reader_init(&r, fd))
		rc = err_set(err, ERR_LIMIT, "no memory to read the log");
	else
		line_reader_seek(&r, from);
	while (rc > 0) {
		rc = index_run(ix, "BEGIN IMMEDIATE", err);
		if (rc == 0)
			rc = fill_some(ix, &r, segment, err);
		if (rc >= 0 && index_run(ix, "COMMIT", err) < 0)
			rc = -1;
		if (rc < 0) {
			ix->stale = index_damaged(ix); /* the next call forgets why */
			sqlite3_exec(ix->db, "ROLLBACK", NULL, NULL, NULL);
		}
	}
	line_reader_fini(&r);
	close(fd);
	return rc < 0 ? -1 : 0;
}

int index_fill(struct log_index *ix, struct err *err)
{
	struct segments all;
	int rc = 0;

	ix->times = (struct index_times){-1, INT64_MAX, INT64_MIN};
	if (segments_list(ix->dir_fd, &all, err) < 0 || prepare(ix, err) < 0)
		return -1;
	if (!all.count)
		rc = err_set(err, ERR_CONFIG, "there are no log segments in %s", ix->dir);
	for (size_t i = 0; rc == 0 && i < all.count; i++) {
		bool here = ix->state.records && all.first[i] == ix->state.segment;

		if (!ix->state.records || all.first[i] >= ix->state.segment)
			rc = fill_segment(ix, all.first[i], here ? ix->state.next : 0, err);
	}
	segments_free(&all);
	return rc;
}
