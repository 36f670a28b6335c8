/*
 * sink_postgres.c - records as rows of sallyport.record, whose key is the log's name
 * and the record's number.
 *
 * A batch is one transaction, and what it holds is the position: the highest number of
 * the log.  So nothing is lost or doubled by a break anywhere.  One shipper a log: the
 * session holds an advisory lock; a second one is refused, and tries again later.
 */
#include "audit/libpq_priv.h"
#include "audit/sink_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct libpq *pq;

struct sink {
	PGconn *db;
	char log[LINE_ORIGIN_MAX + 1];
	struct arena *arena;
};

struct span sink_postgres_schema(void)
{
	return (struct span){schema_files[0].text, schema_files[0].len};
}

/* --- the connection --- */

/* One line, without what libpq puts at its end. */
static int said(const PGconn *db, const char *doing, struct err *err)
{
	char text[ERR_MSG_MAX / 2];

	snprintf(text, sizeof(text), "%s", pq->PQerrorMessage(db));
	for (size_t i = 0; text[i]; i++)
		if ((unsigned char)text[i] < 0x20)
			text[i] = text[i + 1] ? ' ' : '\0';
	return err_set(err, ERR_UPSTREAM, "%s: %s", doing, text);
}

static int done(const PGconn *db, PGresult *r, ExecStatusType want, const char *doing,
		struct err *err)
{
	ExecStatusType got = pq->PQresultStatus(r);

	pq->PQclear(r);
	return got == want ? 0 : said(db, doing, err);
}

/* What stands in front can be said otherwise in the connection's own text. */
static PGconn *dial(const char *connection)
{
	static const char *const words[] = {"connect_timeout",
					    "application_name",
					    "sslmode",
					    "keepalives_idle",
					    "keepalives_interval",
					    "keepalives_count",
					    "tcp_user_timeout",
					    "options",
					    "client_encoding",
					    "dbname",
					    NULL};
	const char *const values[] = {
		"10",   "sallyport", "verify-full", "30",
		"10",   "3",         "60000",       "-c statement_timeout=60s -c lock_timeout=30s",
		"UTF8", connection,  NULL};

	_Static_assert(sizeof(words) == sizeof(values), "a value each");
	return pq->PQconnectdbParams(words, values, 1);
}

/* --- the schema --- */

/* 1: the table is there. */
static int has_table(PGconn *db, struct err *err)
{
	PGresult *r = pq->PQexec(db, "SELECT to_regclass('sallyport.record') IS NOT NULL");
	int ret = pq->PQresultStatus(r) == PGRES_TUPLES_OK ? pq->PQgetvalue(r, 0, 0)[0] == 't'
							   : said(db, "look for the tables", err);

	pq->PQclear(r);
	return ret;
}

static int make_locked(PGconn *db, const char *schema, struct err *err)
{
	static const char lock[] = "BEGIN; SELECT pg_advisory_xact_lock(hashtext('sallyport'))";
	int has;

	if (done(db, pq->PQexec(db, lock), PGRES_TUPLES_OK, "lock the schema", err) < 0)
		return -1;
	has = has_table(db, err); /* another gate may have been faster */
	if (has < 0 ||
	    (!has &&
	     done(db, pq->PQexec(db, schema), PGRES_COMMAND_OK,
		  "make the tables (`sallyport audit ship --schema` prints them)", err) < 0))
		return -1;
	return done(db, pq->PQexec(db, "COMMIT"), PGRES_COMMAND_OK, "make the tables", err);
}

static int make_tables(PGconn *db, struct err *err)
{
	struct span schema = sink_postgres_schema();
	char *text = strndup(schema.at, schema.len);
	int rc = text ? make_locked(db, text, err)
		      : err_set(err, ERR_LIMIT, "no memory for the schema");

	free(text);
	return rc;
}

static const char insert[] = "INSERT INTO sallyport.record ("
#define COLUMN(name, type, value) #name ","
#include "audit/sink_postgres.def"
#undef COLUMN
			     "line) VALUES (";
static const char *const types[] = {
#define COLUMN(name, type, value) type,
#include "audit/sink_postgres.def"
#undef COLUMN
	"bytea"};
#define COLUMNS ((int)(sizeof(types) / sizeof(*types)))

static int prepare(PGconn *db, struct err *err)
{
	struct buf text;
	int rc;

	buf_init(&text, 8192);
	buf_puts(&text, insert);
	for (int i = 0; i < COLUMNS; i++)
		buf_printf(&text, "%s$%d::%s", i ? "," : "", i + 1, types[i]);
	buf_puts(&text, ") ON CONFLICT (log, seq) DO NOTHING");
	buf_put(&text, "", 1);
	rc = done(db, pq->PQprepare(db, "put", buf_span(&text).at, 0, NULL), PGRES_COMMAND_OK,
		  "prepare to write records", err);
	buf_fini(&text);
	return rc;
}

/* --- open --- */

static int lock_log(struct sink *s, struct err *err)
{
	const char *const values[] = {s->log};
	PGresult *r =
		pq->PQexecParams(s->db, "SELECT pg_try_advisory_lock(hashtextextended($1, 5414))",
				 1, NULL, values, NULL, NULL, 0);
	int ret = 0;

	if (pq->PQresultStatus(r) != PGRES_TUPLES_OK)
		ret = said(s->db, "lock the log's records", err);
	else if (pq->PQgetvalue(r, 0, 0)[0] != 't')
		ret = err_set(err, ERR_UPSTREAM,
			      "somebody else ships the log %s into this database just now", s->log);
	pq->PQclear(r);
	return ret;
}

static void quiet(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

static int set_up(struct sink *s, const struct sink_conf *conf, struct err *err)
{
	int has;

	pq = libpq_load(err);
	if (!pq)
		return -1;
	s->db = dial(conf->connection);
	s->arena = arena_create(2 * FIELDS_ARENA_MAX);
	if (!s->db || !s->arena)
		return err_set(err, ERR_LIMIT, "no memory for a database");
	pq->PQsetNoticeProcessor(s->db, quiet, NULL);
	if (pq->PQstatus(s->db) != CONNECTION_OK)
		return said(s->db, "connect to the database", err);
	has = has_table(s->db, err);
	if (has < 0 || (!has && make_tables(s->db, err) < 0))
		return -1;
	return lock_log(s, err) < 0 || prepare(s->db, err) < 0 ? -1 : 0;
}

static void postgres_close(struct sink *s)
{
	if (s->db)
		pq->PQfinish(s->db);
	arena_destroy(s->arena);
	free(s);
}

static struct sink *postgres_open(const struct sink_conf *conf, const struct sink_dialer *dialer,
				  const char *log, struct err *err)
{
	struct sink *s = calloc(1, sizeof(*s));

	(void)dialer;
	if (!s) {
		err_set(err, ERR_LIMIT, "no memory for a database");
		return NULL;
	}
	snprintf(s->log, sizeof(s->log), "%s", log);
	if (set_up(s, conf, err) == 0)
		return s;
	postgres_close(s);
	return NULL;
}

/* --- position --- */

static int postgres_position(struct sink *s, struct cursor_mark *ret, struct err *err)
{
	static const char ask[] =
		"SELECT seq, h FROM sallyport.record WHERE log = $1 ORDER BY seq DESC LIMIT 1";
	const char *const values[] = {s->log};
	PGresult *r = pq->PQexecParams(s->db, ask, 1, NULL, values, NULL, NULL, 0);
	int rc = 0;

	if (pq->PQresultStatus(r) != PGRES_TUPLES_OK) {
		rc = said(s->db, "ask what is there", err);
	} else if (pq->PQntuples(r) == 1) {
		snprintf(ret->log, sizeof(ret->log), "%s", s->log);
		ret->seq = strtoull(pq->PQgetvalue(r, 0, 0), NULL, 10);
		rc = hash_parse(span_of(pq->PQgetvalue(r, 0, 1)), &ret->hash) < 0
			     ? err_set(err, ERR_UPSTREAM, "what the database has as a hash is none")
			     : 1;
	}
	pq->PQclear(r);
	return rc;
}

/* --- records --- */

struct row {
	char seq[24], http[24], time[CLOCK_TEXT_MAX];
	char prev[HASH_HEX_LEN + 1], hash[HASH_HEX_LEN + 1];
	const char *record;
};

static void make_row(const struct fields *f, const struct line *l, const char *text, struct row *x)
{
	snprintf(x->seq, sizeof(x->seq), "%" PRIu64, f->seq);
	x->http[0] = x->time[0] = '\0';
	if (f->http)
		snprintf(x->http, sizeof(x->http), "%d", (int)f->http);
	if (f->t_ns) /* microseconds are all that it keeps, and it would round */
		clock_format(f->t_ns - f->t_ns % 1000, x->time);
	hash_hex(&l->prev, x->prev);
	hash_hex(&l->hash, x->hash);
	x->record = f->tree.kind == JV_OBJECT ? text : "";
}

static int put(struct sink *s, struct span text, struct err *err)
{
	const char *values[COLUMNS];
	int lengths[COLUMNS], formats[COLUMNS], n = 0;
	struct row row, *x = &row;
	struct fields fields, *f = &fields;
	struct line line;
	char *copy;

	arena_reset(s->arena, 2 * FIELDS_ARENA_MAX);
	if (fields_take(s->arena, text, f, err) < 0)
		return -1;
	copy = arena_strndup(s->arena, text.at, text.len);
	if (!copy || !line_split(text, &line))
		return err_set(err, ERR_LIMIT, "no memory for record %" PRIu64, f->seq);
	make_row(f, &line, copy, x);
#define COLUMN(name, type, value) values[n++] = (value);
#include "audit/sink_postgres.def"
#undef COLUMN
	for (int i = 0; i < n; i++) {
		formats[i] = lengths[i] = 0;
		if (!*values[i])
			values[i] = NULL;
	}
	values[n] = copy;
	lengths[n] = (int)text.len;
	formats[n] = 1;
	return pq->PQsendQueryPrepared(s->db, "put", COLUMNS, values, lengths, formats, 0)
		       ? 0
		       : said(s->db, "send records", err);
}

/* One result a record, and that of the whole. */
static int take_results(struct sink *s, size_t count, struct err *err)
{
	size_t written = 0;
	int rc = 0;

	for (size_t i = 0; i <= count; i++) {
		PGresult *r = pq->PQgetResult(s->db);
		ExecStatusType status = pq->PQresultStatus(r);

		if (status == PGRES_COMMAND_OK)
			written += strcmp(pq->PQcmdTuples(r), "1") == 0;
		else if (status != PGRES_PIPELINE_SYNC && rc == 0)
			rc = said(s->db, "write records", err);
		pq->PQclear(r);
		if (status == PGRES_PIPELINE_SYNC || !r)
			break;
		if (i < count)
			pq->PQclear(pq->PQgetResult(s->db)); /* the end of this one */
	}
	if (rc == 0 && written != count)
		rc = err_set(err, ERR_UPSTREAM, "somebody else has written records of the log %s",
			     s->log);
	return rc;
}

/* What is sent up to the sync is one transaction, which an error in it takes back as a whole. */
static int postgres_send(struct sink *s, const struct batch *b, size_t *ret_done, struct err *err)
{
	size_t n = 0;
	int rc = 0;

	if (!pq->PQenterPipelineMode(s->db)) /* or it is in it already */
		return said(s->db, "send records", err);
	while (rc == 0 && n < b->count) {
		rc = put(s, batch_text(b, n), err);
		n += rc == 0;
	}
	if (rc < 0)
		return -1; /* without a sync nothing of it is kept */
	if (!pq->PQpipelineSync(s->db))
		return said(s->db, "send records", err);
	rc = take_results(s, n, err);
	if (rc == 0)
		*ret_done = n;
	return rc;
}

const struct sink_ops sink_postgres = {
	.own_position = true,
	.open = postgres_open,
	.position = postgres_position,
	.send = postgres_send,
	.close = postgres_close,
};
