/* Where a query need not look: by how rare a name is, and by what time blocks of records are of. */
#include "audit/index_priv.h"

#include <inttypes.h>
#include <stdio.h>

#define SQL_ROOM 160

/* A single number, asked for by two; -1 where it is null. */
static int ask_number(struct log_index *ix, const char *sql, const int64_t values[2], int64_t *ret,
		      struct err *err)
{
	sqlite3_stmt *s = index_prepare(ix, sql, err);
	int rc = -1;

	for (int i = 0; s && i < 2; i++)
		sqlite3_bind_int64(s, i + 1, values[i]);
	if (s && sqlite3_step(s) != SQLITE_ROW) {
		index_trouble(ix, "ask", err);
	} else if (s) {
		*ret = sqlite3_column_type(s, 0) == SQLITE_NULL ? -1 : sqlite3_column_int64(s, 0);
		rc = 0;
	}
	sqlite3_finalize(s);
	return rc;
}

int index_rarest(struct log_index *ix, const struct index_term *terms, size_t count, size_t *ret,
		 struct err *err)
{
	/* So many entries are counted at most: the second costs some milliseconds a name. */
	static const int64_t looks[] = {1000, 50000};
	char sql[SQL_ROOM];

	*ret = count; /* nobody knows */
	for (size_t look = 0; look < sizeof(looks) / sizeof(*looks); look++) {
		int64_t least = looks[look];

		for (size_t i = 0; i < count; i++) {
			const int64_t values[] = {terms[i].name, least};
			int64_t found = 0;

			snprintf(sql, sizeof(sql),
				 "SELECT count(*) FROM (SELECT 1 FROM records WHERE %s=? LIMIT ?)",
				 terms[i].column);
			if (ask_number(ix, sql, values, &found, err) < 0)
				return -1;
			if (found < least) {
				least = found;
				*ret = i;
			}
		}
		if (*ret < count)
			return 0;
	}
	return 0;
}

int index_blocks(struct log_index *ix, uint64_t since_ns, uint64_t until_ns, int64_t *ret_first,
		 int64_t *ret_end, struct err *err)
{
	const int64_t times[] = {(int64_t)since_ns, until_ns ? (int64_t)until_ns : INT64_MAX};
	int64_t first = -1, last = -1;

	if (ask_number(ix, "SELECT min(block) FROM times WHERE most>=? AND least<?", times, &first,
		       err) < 0 ||
	    ask_number(ix, "SELECT max(block) FROM times WHERE most>=? AND least<?", times, &last,
		       err) < 0)
		return -1;
	*ret_first = first * INDEX_BLOCK;
	*ret_end = (last + 1) * INDEX_BLOCK;
	return first >= 0;
}
