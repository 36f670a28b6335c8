/* How the index is asked: a query becomes SQL, and each hit is read from the log. */
#include "audit/index_priv.h"

#include "audit/line_priv.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VALUES_MAX 24
#define SQL_MAX    4096
#define TEXT_MAX   4096
#define SHORT_LINE 2048
#define GATHER_MAX 10000 /* hits */
#define PREFIX_MIN 12    /* hexadecimal digits that begin an id */

/* The SQL text and what is bound to its question marks. */
struct asking {
	struct log_index *ix;
	struct buf sql;
	struct {
		const char *text; /* NULL: the number */
		int64_t number;
	} values[VALUES_MAX];
	size_t count;
	char match[TEXT_MAX * 2];
	bool impossible; /* a name that the log does not know */
};

static void where(struct asking *q, const char *sql)
{
	buf_puts(&q->sql, sql);
}

static void bind_text(struct asking *q, const char *text)
{
	q->values[q->count++].text = text;
}

static void bind_number(struct asking *q, int64_t number)
{
	q->values[q->count].text = NULL;
	q->values[q->count++].number = number;
}

/* Each word a phrase in quotes, so that nothing of it is an operator of FTS5. */
static int quote_words(const char *text, char *out, struct err *err)
{
	size_t n = 0;

	if (strlen(text) > TEXT_MAX / 2)
		return err_set(err, ERR_INPUT, "--text is too long");
	while (*(text += strspn(text, " \t\n"))) {
		size_t len = strcspn(text, " \t\n");
		bool begins = len > 1 && text[len - 1] == '*';

		out[n++] = '"';
		for (size_t i = 0; i < len - begins; i++) {
			if (text[i] == '"')
				out[n++] = '"';
			out[n++] = text[i];
		}
		out[n++] = '"';
		if (begins)
			out[n++] = '*';
		out[n++] = ' ';
		text += len;
	}
	out[n] = '\0';
	return n ? 0 : err_set(err, ERR_INPUT, "--text holds no word");
}

static void by_object(struct asking *q, const char *name)
{
	bool begins =
		strlen(name) >= PREFIX_MIN && strspn(name, "0123456789abcdef") == strlen(name);

	where(q, begins ? " AND r.seq IN (SELECT seq FROM objects WHERE name>=? AND name<?||'g')"
			: " AND r.seq IN (SELECT seq FROM objects WHERE name=?)");
	bind_text(q, name);
	if (begins)
		bind_text(q, name);
}

static void by_id(struct asking *q, const char *id)
{
	where(q, " AND r.seq IN (SELECT seq FROM records WHERE id=? UNION SELECT d.seq FROM"
		 " records o JOIN records d ON d.id=o.of WHERE o.id=? AND o.of<>'')");
	bind_text(q, id);
	bind_text(q, id);
}

static int by_names(struct asking *q, const struct log_query *want, struct err *err)
{
	const struct {
		const char *column, *want;
	} names[] = {
		{"identity", want->identity}, {"owner", want->owner},   {"op", want->op},
		{"verdict", want->verdict},   {"reason", want->reason}, {"rule", want->rule},
		{"profile", want->profile},   {"type", want->type},
	};
	struct index_term terms[sizeof(names) / sizeof(*names)];
	size_t count = 0, rarest = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct index_term *term = &terms[count];

		if (!names[i].want)
			continue;
		*term = (struct index_term){names[i].column,
					    index_name(q->ix, names[i].want, false, err)};
		if (term->name < 0)
			return -1;
		q->impossible = q->impossible || (term->name == 0 && *names[i].want);
		count++;
	}
	if (count > 1 && !q->impossible && index_rarest(q->ix, terms, count, &rarest, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		/* The plus keeps SQLite from another index than that of the rarest. */
		buf_printf(&q->sql, " AND %sr.%s=?", rarest < count && i != rarest ? "+" : "",
			   terms[i].column);
		bind_number(q, terms[i].name);
	}
	return 0;
}

static int by_time(struct asking *q, const struct log_query *want, struct err *err)
{
	int64_t first = 0, end = 0;
	int found;

	if (!want->since_ns && !want->until_ns)
		return 0;
	found = index_blocks(q->ix, want->since_ns, want->until_ns, &first, &end, err);
	if (found < 0)
		return -1;
	q->impossible = q->impossible || !found;
	where(q, " AND r.seq>=? AND r.seq<?");
	bind_number(q, first);
	bind_number(q, end);
	if (want->since_ns) {
		where(q, " AND r.t>=?");
		bind_number(q, (int64_t)want->since_ns);
	}
	if (want->until_ns) {
		where(q, " AND r.t<?");
		bind_number(q, (int64_t)want->until_ns);
	}
	return 0;
}

/* An outcome's words lead to the decision that it is shown with. */
static int by_words(struct asking *q, const char *text, struct err *err)
{
	if (quote_words(text, q->match, err) < 0)
		return -1;
	where(q, " AND r.seq IN (SELECT rowid FROM words WHERE words MATCH ? UNION SELECT d.seq"
		 " FROM records o JOIN records d ON d.id=o.of WHERE o.joined=1 AND o.seq IN"
		 " (SELECT rowid FROM words WHERE words MATCH ?))");
	bind_text(q, q->match);
	bind_text(q, q->match);
	return 0;
}

static int leave_out(struct asking *q, const struct log_query *want, struct err *err)
{
	static const enum record_type quiet[] = {RECORD_CHECKPOINT, RECORD_LOG_OPEN,
						 RECORD_LOG_SEAL};

	if (want->type || want->id || want->text)
		return 0;
	for (size_t i = 0; i < sizeof(quiet) / sizeof(*quiet); i++) {
		int64_t id = index_name(q->ix, record_type_name(quiet[i]), false, err);

		if (id < 0)
			return -1;
		/* The plus keeps SQLite from thinking of the index by types. */
		where(q, " AND +r.type<>?");
		bind_number(q, id);
	}
	return 0;
}

static int write_sql(struct asking *q, const struct log_query *want, struct err *err)
{
	where(q, "SELECT r.seq, r.segment, r.at, r.outcome FROM records r WHERE 1");
	/* Outcomes are shown with their decision, unless they themselves are asked for. */
	if (!want->type)
		where(q, " AND +r.joined=0");
	if (by_names(q, want, err) < 0 || leave_out(q, want, err) < 0 || by_time(q, want, err) < 0)
		return -1;
	if (want->object)
		by_object(q, want->object);
	if (want->id)
		by_id(q, want->id);
	if (want->text && by_words(q, want->text, err) < 0)
		return -1;
	where(q, want->limit ? " ORDER BY r.seq DESC LIMIT ?" : " ORDER BY r.seq");
	if (want->limit)
		bind_number(q, (int64_t)want->limit);
	return buf_spent(&q->sql) ? err_set(err, ERR_LIMIT, "the query is too long") : 0;
}

/* --- reading the lines --- */

static int go_to(struct log_index *ix, uint64_t segment, struct err *err)
{
	if (ix->segment_fd >= 0 && ix->segment == segment)
		return 0;
	if (ix->segment_fd >= 0)
		close(ix->segment_fd);
	ix->segment = segment;
	ix->segment_fd = segment_open(ix->dir_fd, segment, O_RDONLY, err);
	return ix->segment_fd < 0 ? -1 : 0;
}

/* The line of that record, into mem (RECORD_LINE_MAX + 1).  The index may be wrong about it. */
static int read_line(struct log_index *ix, uint64_t segment, uint64_t at, char *mem,
		     struct span *ret)
{
	struct err ignored = {0};
	const char *end;
	long n;

	if (go_to(ix, segment, &ignored) < 0)
		return -1;
	/* Most lines are short. */
	n = segment_read(ix->segment_fd, mem, SHORT_LINE, at);
	end = n > 0 ? memchr(mem, '\n', (size_t)n) : NULL;
	if (n == SHORT_LINE && !end) {
		n = segment_read(ix->segment_fd, mem, RECORD_LINE_MAX + 1, at);
		end = n > 0 ? memchr(mem, '\n', (size_t)n) : NULL;
	}
	if (!end)
		return -1;
	*ret = (struct span){mem, (size_t)(end - mem)};
	return 0;
}

struct reading {
	struct log_index *ix;
	const struct log_query *want;
	struct arena *arena;
	char *mem; /* of two lines */
	sqlite3_stmt *outcome;
	log_hit_fn *fn;
	void *arg;
	struct err *err;
	uint64_t given;
};

static bool meets(const char *want, const char *got)
{
	return !want || strcmp(want, got) == 0;
}

/* What the line itself says decides: an index that says otherwise is no index of it. */
static bool line_meets(const struct log_query *q, const struct fields *f)
{
	return meets(q->identity, f->identity) && meets(q->owner, f->owner) &&
	       meets(q->op, f->op) && meets(q->verdict, f->verdict) &&
	       meets(q->reason, f->reason) && meets(q->rule, f->rule) &&
	       meets(q->profile, f->profile) && meets(q->type, f->type_name) &&
	       (!q->since_ns || f->t_ns >= q->since_ns) && (!q->until_ns || f->t_ns < q->until_ns);
}

static int says_otherwise(struct log_index *ix, struct err *err)
{
	ix->stale = true;
	return err_set(err, ERR_INPUT, "the index %s does not agree with the log", ix->file);
}

static int take_outcome(struct reading *r, int64_t seq, struct log_hit *hit)
{
	sqlite3_stmt *s = r->outcome;
	bool there;

	sqlite3_bind_int64(s, 1, seq);
	there = sqlite3_step(s) == SQLITE_ROW &&
		read_line(r->ix, (uint64_t)sqlite3_column_int64(s, 0),
			  (uint64_t)sqlite3_column_int64(s, 1), r->mem + RECORD_LINE_MAX + 1,
			  &hit->outcome_line) == 0 &&
		fields_take(r->arena, hit->outcome_line, &hit->outcome, r->err) == 0 &&
		hit->outcome.seq == (uint64_t)seq && strcmp(hit->outcome.of, hit->fields.id) == 0;
	sqlite3_reset(s);
	return there ? 0 : says_otherwise(r->ix, r->err);
}

struct row {
	int64_t seq, outcome; /* outcome: 0 for none, since a log begins with log_open */
	uint64_t segment, at;
};

static struct row row_of(sqlite3_stmt *s)
{
	return (struct row){.seq = sqlite3_column_int64(s, 0),
			    .segment = (uint64_t)sqlite3_column_int64(s, 1),
			    .at = (uint64_t)sqlite3_column_int64(s, 2),
			    .outcome = sqlite3_column_int64(s, 3)};
}

/* 0 goes on. */
static int take_row(struct reading *r, const struct row *row)
{
	struct log_hit hit = {.line = {"", 0}, .outcome_line = {"", 0}};
	int rc;

	arena_reset(r->arena, 2 * FIELDS_ARENA_MAX);
	if (read_line(r->ix, row->segment, row->at, r->mem, &hit.line) < 0 ||
	    fields_take(r->arena, hit.line, &hit.fields, r->err) < 0 ||
	    hit.fields.seq != (uint64_t)row->seq || !line_meets(r->want, &hit.fields))
		return says_otherwise(r->ix, r->err);
	if (row->outcome && take_outcome(r, row->outcome, &hit) < 0)
		return -1;
	rc = r->fn(r->arg, &hit);
	r->given++;
	return rc;
}

/* A few are gathered first: whoever reads them slowly holds up nobody. */
static int give_gathered(struct reading *r, sqlite3_stmt *s)
{
	struct row *rows = malloc((size_t)r->want->limit * sizeof(*rows));
	size_t count = 0;
	int rc = 0, step = SQLITE_DONE;

	if (!rows)
		return err_set(r->err, ERR_LIMIT, "no memory to ask the index");
	while (count < r->want->limit && (step = sqlite3_step(s)) == SQLITE_ROW)
		rows[count++] = row_of(s);
	if (step != SQLITE_ROW && step != SQLITE_DONE)
		rc = index_trouble(r->ix, "ask", r->err);
	else
		sqlite3_reset(s);
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = take_row(r, &rows[i]);
	free(rows);
	return rc;
}

static int give_rows(struct reading *r, sqlite3_stmt *s)
{
	int rc = 0, step = SQLITE_DONE;

	if (r->want->limit && r->want->limit <= GATHER_MAX)
		return give_gathered(r, s);
	while (rc == 0 && (step = sqlite3_step(s)) == SQLITE_ROW) {
		struct row row = row_of(s);

		rc = take_row(r, &row);
	}
	if (rc == 0 && step != SQLITE_DONE)
		rc = index_trouble(r->ix, "ask", r->err);
	return rc;
}

static sqlite3_stmt *prepare(struct asking *q, bool limited, struct err *err)
{
	struct buf sql;
	sqlite3_stmt *s;

	buf_init(&sql, SQL_MAX + 64);
	/* The newest so many, in the order of the log. */
	buf_printf(&sql, limited ? "SELECT * FROM (%.*s) ORDER BY seq" : "%.*s",
		   SPAN_FMT(buf_span(&q->sql)));
	buf_put(&sql, "", 1);
	s = index_prepare(q->ix, buf_span(&sql).at, err);
	for (size_t i = 0; s && i < q->count; i++)
		if (q->values[i].text)
			sqlite3_bind_text(s, (int)i + 1, q->values[i].text, -1, SQLITE_STATIC);
		else
			sqlite3_bind_int64(s, (int)i + 1, q->values[i].number);
	buf_fini(&sql);
	return s;
}

static int ask(struct asking *q, struct reading *r)
{
	sqlite3_stmt *s = NULL;
	int rc = write_sql(q, r->want, r->err);

	if (rc < 0 || q->impossible)
		return rc;
	r->mem = malloc(2 * (RECORD_LINE_MAX + 1));
	r->arena = arena_create(2 * FIELDS_ARENA_MAX);
	r->outcome = index_prepare(q->ix, "SELECT segment, at FROM records WHERE seq=?", r->err);
	s = prepare(q, r->want->limit != 0, r->err);
	if (!r->mem || !r->arena)
		rc = err_set(r->err, ERR_LIMIT, "no memory to ask the index");
	else
		rc = s && r->outcome ? give_rows(r, s) : -1;
	q->ix->stale = rc < 0 && index_damaged(q->ix);
	sqlite3_finalize(s);
	sqlite3_finalize(r->outcome);
	arena_destroy(r->arena);
	free(r->mem);
	r->mem = NULL;
	r->arena = NULL;
	return rc;
}

static int make_anew(struct log_index *ix, struct err *err)
{
	int rc = index_lock(ix, err);

	if (rc == 0)
		rc = index_make(ix, err);
	index_unlock(ix);
	return rc;
}

int log_index_query(struct log_index *ix, const struct log_query *q, log_hit_fn *fn, void *arg,
		    struct err *err)
{
	struct reading r = {.ix = ix, .want = q, .fn = fn, .arg = arg, .err = err};
	int rc = 0;

	for (int again = 0; again < 2; again++) {
		struct asking asking = {.ix = ix};

		buf_init(&asking.sql, SQL_MAX);
		rc = ask(&asking, &r);
		buf_fini(&asking.sql);
		if (rc >= 0 || !ix->stale || again || make_anew(ix, err) < 0)
			break;
		/* What was given already cannot be taken back. */
		if (r.given)
			return err_set(err, ERR_INPUT,
				       "the index did not agree with the log and was made anew: "
				       "what was shown may lack records, ask again");
	}
	return rc;
}
