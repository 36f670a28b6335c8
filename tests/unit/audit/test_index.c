/* The index and `audit query`: found is what the log says, whatever became of the index. */
#include "tests/unit/audit/fixture.h"
#include "tests/unit/check.h"

#include "audit/index.h"
#include "audit/line_priv.h"
#include "audit/when.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEGMENT 65536

static char dir[FIXTURE_PATH];

/* A decision with its outcome, by one of three callers, and a denial now and then. */
static void write_some(struct audit_log *l, unsigned from, unsigned until)
{
	static const char *const who[] = {"alice", "bob", "=cmd|'/c calc'!A1"};

	for (unsigned n = from; n < until; n++) {
		bool deny = n % 5 == 0;
		struct record r = fixture_decision(n, deny ? "deny" : "allow"), o;
		char object[32];

		snprintf(object, sizeof(object), "object-%u", n);
		r.identity = who[n % 3];
		r.owner = "team";
		r.op = n % 2 ? "container.create" : "exec.start";
		r.object_kind = "container";
		r.object_name = object;
		r.object_id = "4c01db0b339c4e1f4c01db0b339c4e1f4c01db0b339c4e1f4c01db0b339c4e1f";
		r.profile = "main";
		r.rule = deny ? "privileges" : "settings";
		r.reason = deny ? "privileged" : NULL;
		r.violations = span_of(deny ? "[{\"rule\":\"privileges\",\"field\":\"HostConfig."
					      "Privileged\",\"value\":\"\\u001b[2J<b>\"}]"
					    : "");
		fixture_append(l, &r);
		if (deny)
			continue;
		o = fixture_outcome(n);
		o.status = "ok";
		o.http = 201;
		o.err = n == 7 ? "the engine stumbled" : NULL;
		fixture_append(l, &o);
	}
}

static void append(unsigned from, unsigned until)
{
	struct audit_log_found found;
	struct open_set set;
	struct audit_log *l;

	open_set_init(&set, 1000);
	l = fixture_open(dir, SEGMENT, &set, &found);
	write_some(l, from, until);
	audit_log_close(l);
	open_set_fini(&set);
}

static void set_up(void)
{
	fixture_dir(dir);
	append(0, 200);
}

static void tear_down(void)
{
	fixture_remove(dir);
}

struct seen {
	uint64_t count, outcomes, first, last;
};

static int on_hit(void *arg, const struct log_hit *hit)
{
	struct seen *s = arg;
	struct line line;

	CHECK_INT("a line", 1, line_split(hit->line, &line) && line_hash_ok(hit->line, &line));
	CHECK_INT("in order", 1, !s->count || line.seq > s->last);
	s->first = s->count ? s->first : line.seq;
	s->last = line.seq;
	s->count++;
	s->outcomes += hit->outcome_line.len != 0;
	if (hit->outcome_line.len)
		CHECK_STR("its outcome", hit->fields.id, hit->outcome.of);
	return 0;
}

static struct seen ask(const char *label, const struct log_query *q, bool want_made)
{
	struct err err = {0};
	struct log_index *ix = log_index_open(dir, NULL, &err);
	struct seen seen = {0};

	CHECK_STR(label, "", err.msg);
	CHECK_INT(label, want_made, log_index_was_made(ix));
	CHECK_INT(label, 0, log_index_query(ix, q, on_hit, &seen, &err));
	log_index_close(ix);
	return seen;
}

static void finds_by_each_field(void **state)
{
	static const struct {
		const char *label;
		struct log_query q;
		uint64_t want, outcomes;
	} cases[] = {
		{"all", {0}, 200, 160},
		{"identity", {.identity = "alice"}, 67, 53},
		{"a formula", {.identity = "=cmd|'/c calc'!A1"}, 66, 53},
		{"owner", {.owner = "team"}, 200, 160},
		{"op", {.op = "exec.start"}, 100, 80},
		{"verdict", {.verdict = "deny"}, 40, 0},
		{"reason", {.reason = "privileged"}, 40, 0},
		{"rule", {.rule = "settings"}, 160, 160},
		{"profile", {.profile = "main"}, 200, 160},
		{"several", {.profile = "main", .verdict = "deny", .identity = "alice"}, 14, 0},
		{"none", {.identity = "mallory"}, 0, 0},
		{"SQL", {.identity = "' OR 1=1 --"}, 0, 0},
		{"object", {.object = "object-7"}, 1, 1},
		{"object by the start of its id", {.object = "4c01db0b339c"}, 200, 160},
		{"no object by less", {.object = "4c01"}, 0, 0},
		{"word", {.text = "privileged"}, 40, 0},
		{"words", {.text = "HostConfig.Privileged team"}, 40, 0},
		{"words of which one is not there", {.text = "privileged unheard"}, 0, 0},
		{"the beginning of a word", {.text = "hostc*"}, 40, 0},
		{"a word of an outcome", {.text = "stumbled"}, 1, 1},
		{"what would be an operator", {.text = "alice OR bob"}, 0, 0},
		{"quotes", {.text = "\"alice"}, 67, 53},
		{"type", {.type = "outcome"}, 160, 0},
		{"limit", {.limit = 3}, 3, 3},
		{"since the future", {.since_ns = UINT64_C(9000000000000000000)}, 0, 0},
		{"until the past", {.until_ns = 1000}, 0, 0},
		{"since then", {.since_ns = 1000}, 200, 160},
	};

	(void)state;
	set_up();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct seen seen = ask(cases[i].label, &cases[i].q, i == 0);

		CHECK_INT(cases[i].label, cases[i].want, seen.count);
		CHECK_INT(cases[i].label, cases[i].outcomes, seen.outcomes);
	}
	tear_down();
}

static void by_id_of_both(void **state)
{
	struct record r = fixture_decision(7, "allow"), o = fixture_outcome(7);
	char decision[64], outcome[64];
	struct seen seen;

	(void)state;
	set_up();
	snprintf(decision, sizeof(decision), "%s", r.id);
	snprintf(outcome, sizeof(outcome), "%s", o.id);
	seen = ask("decision", &(struct log_query){.id = decision}, true);
	CHECK_INT("decision", 1, seen.count == 1 && seen.outcomes == 1);
	seen = ask("outcome", &(struct log_query){.id = outcome}, false);
	CHECK_INT("outcome", 1, seen.count >= 1 && seen.outcomes >= 1);
	tear_down();
}

static void follows_the_log(void **state)
{
	struct seen seen;

	(void)state;
	set_up();
	ask("made", &(struct log_query){0}, true);
	append(200, 450); /* over a segment's end, which leaves out what seals and opens */
	seen = ask("grown", &(struct log_query){0}, false);
	CHECK_INT("grown", 450, seen.count);
	CHECK_INT("grown", 360, seen.outcomes);
	tear_down();
}

/* Each record is found as soon as it is on disk, whoever goes on writing. */
static void a_log_that_is_written_to(void **state)
{
	struct audit_log_found found;
	struct open_set set;
	struct audit_log *l;

	(void)state;
	set_up();
	ask("first", &(struct log_query){0}, true);
	open_set_init(&set, 1000);
	l = fixture_open(dir, SEGMENT, &set, &found);
	for (unsigned n = 200; n < 300; n++) {
		write_some(l, n, n + 1);
		CHECK_INT("found", n + 1, ask("grown", &(struct log_query){0}, false).count);
	}
	audit_log_close(l);
	open_set_fini(&set);
	tear_down();
}

/* Two that index at the same time: neither spoils it, and both find all. */
static void two_at_once(void **state)
{
	pid_t pids[3];
	int status;

	(void)state;
	set_up();
	for (int round = 0; round < 5; round++) {
		for (size_t i = 0; i < 3; i++) {
			pids[i] = fork();
			if (pids[i] == 0) {
				struct err err = {0};
				struct seen seen = {0};
				struct log_index *ix = log_index_open(dir, NULL, &err);

				if (!ix || log_index_query(ix, &(struct log_query){0}, on_hit,
							   &seen, &err) < 0)
					fprintf(stderr, "%s\n", err.msg);
				_exit(seen.count != 200u + 100u * (unsigned)round);
			}
		}
		for (size_t i = 0; i < 3; i++) {
			CHECK_INT("ended", pids[i], waitpid(pids[i], &status, 0));
			CHECK_INT("found all", 0, status);
		}
		append(200 + 100 * (unsigned)round, 300 + 100 * (unsigned)round);
	}
	tear_down();
}

static void change(const char *sql)
{
	sqlite3 *db;

	CHECK_INT(sql, SQLITE_OK, sqlite3_open(fixture_path(dir, "index.sqlite"), &db));
	CHECK_INT(sql, SQLITE_OK, sqlite3_exec(db, sql, NULL, NULL, NULL));
	sqlite3_close(db);
}

/* Whatever is wrong with the index, all is found, by a new one. */
static void a_wrong_index_is_made_anew(void **state)
{
	static const char *const changes[] = {
		"UPDATE state SET log='other/log'",
		"UPDATE state SET last_hash='" /* of another record */
		"0000000000000000000000000000000000000000000000000000000000000000'",
		"UPDATE state SET last_seq=last_seq-1",
		"UPDATE state SET version=99",
		"DELETE FROM state",
		"DROP INDEX by_op",
		"DROP TABLE words",
		"CREATE VIEW more AS SELECT 1",
		"CREATE TRIGGER t AFTER INSERT ON state BEGIN DELETE FROM records; END",
		"DELETE FROM records WHERE seq%2",
		"UPDATE records SET at=at+1",
		"UPDATE records SET at=(SELECT at FROM records WHERE seq=4) WHERE seq=6",
		"UPDATE records SET verdict=(SELECT verdict FROM records WHERE seq=1) "
		"WHERE seq=2",
	};

	(void)state;
	set_up();
	ask("first", &(struct log_query){0}, true);
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		struct err err = {0};
		struct seen seen = {0};
		struct log_index *ix;

		change(changes[i]);
		ix = log_index_open(dir, NULL, &err);
		CHECK_STR(changes[i], "", err.msg);
		/* Noticed when opened, or with the first line that is otherwise. */
		if (log_index_query(ix, &(struct log_query){.verdict = "deny"}, on_hit, &seen,
				    &err) < 0) {
			memset(&seen, 0, sizeof(seen));
			CHECK_INT(changes[i], 0,
				  log_index_query(ix, &(struct log_query){.verdict = "deny"},
						  on_hit, &seen, &err));
		}
		CHECK_INT(changes[i], 40, seen.count);
		memset(&seen, 0, sizeof(seen));
		if (log_index_query(ix, &(struct log_query){0}, on_hit, &seen, &err) < 0) {
			memset(&seen, 0, sizeof(seen));
			CHECK_INT(changes[i], 0,
				  log_index_query(ix, &(struct log_query){0}, on_hit, &seen, &err));
		}
		CHECK_INT(changes[i], 200, seen.count);
		CHECK_INT(changes[i], 1, log_index_was_made(ix));
		log_index_close(ix);
	}
	tear_down();
}

static void a_damaged_file_is_made_anew(void **state)
{
	char path[FIXTURE_PATH];
	size_t len;
	char *bytes;

	(void)state;
	set_up();
	ask("first", &(struct log_query){0}, true);
	snprintf(path, sizeof(path), "%s", fixture_path(dir, "index.sqlite"));
	bytes = fixture_read(path, &len);
	fixture_write(path, "no database at all, but long enough to be looked at", 51);
	chmod(path, 0600);
	CHECK_INT("foreign", 200, ask("foreign", &(struct log_query){0}, true).count);
	fixture_write(path, bytes, len / 2);
	CHECK_INT("half", 200, ask("half", &(struct log_query){0}, true).count);
	fixture_write(path, "", 0);
	CHECK_INT("empty", 200, ask("empty", &(struct log_query){0}, true).count);
	memset(bytes + len / 2, 0xa5, 4096);
	fixture_write(path, bytes, len);
	CHECK_INT("a page", 200, ask("a page", &(struct log_query){0}, true).count);
	free(bytes);
	tear_down();
}

static void the_log_of_another_is_noticed(void **state)
{
	char other[FIXTURE_PATH], index[FIXTURE_PATH];
	char *bytes;
	size_t len;

	(void)state;
	set_up();
	ask("first", &(struct log_query){0}, true);
	bytes = fixture_read(fixture_path(dir, "index.sqlite"), &len);
	snprintf(other, sizeof(other), "%s", dir);
	fixture_dir(dir);
	append(0, 200); /* the same, at another time: other hashes */
	snprintf(index, sizeof(index), "%s", fixture_path(dir, "index.sqlite"));
	fixture_write(index, bytes, len);
	chmod(index, 0600);
	CHECK_INT("other", 200, ask("other", &(struct log_query){0}, true).count);
	free(bytes);
	fixture_remove(other);
	tear_down();
}

static void an_altered_log_is_not_indexed(void **state)
{
	char path[FIXTURE_PATH];
	struct log_index *ix;
	struct err err = {0};
	size_t len;
	char *bytes;

	(void)state;
	set_up();
	snprintf(path, sizeof(path), "%s", fixture_path(dir, "00000000000000000000.log"));
	bytes = fixture_read(path, &len);
	memcpy(strstr(bytes, "alice"), "elice", 5);
	fixture_write(path, bytes, len);
	free(bytes);
	ix = log_index_open(dir, NULL, &err);
	CHECK_INT("refused", 1, ix == NULL);
	CHECK_INT(err.msg, 1, strstr(err.msg, "was altered") != NULL);
	tear_down();
}

static void files_of_others_are_not_taken(void **state)
{
	char path[FIXTURE_PATH];
	struct err err = {0};

	(void)state;
	set_up();
	snprintf(path, sizeof(path), "%s", fixture_path(dir, "index.sqlite"));
	CHECK_INT("link", 0, symlink("/dev/null", path));
	CHECK_INT("link", 1, log_index_open(dir, NULL, &err) == NULL);
	CHECK_INT("link", 0, unlink(path));
	fixture_write(path, "", 0);
	chmod(path, 0666);
	CHECK_INT("writable by all", 1, log_index_open(dir, NULL, &err) == NULL);
	tear_down();
}

static void times_as_people_write_them(void **state)
{
	static const uint64_t now = UINT64_C(1800000000000000000);
	static const struct {
		const char *text;
		uint64_t want; /* 0: refused */
	} cases[] = {
		{"2026-01-31T12:00:00Z", UINT64_C(1769860800000000000)},
		{"2026-01-31T12:00:00.5Z", UINT64_C(1769860800500000000)},
		{"2026-01-31T13:00:00+01:00", UINT64_C(1769860800000000000)},
		{"2026-01-31T07:30:00-04:30", UINT64_C(1769860800000000000)},
		{"2026-01-31", UINT64_C(1769817600000000000)},
		{"2h", now - UINT64_C(7200000000000)},
		{"7d", now - UINT64_C(604800000000000)},
		{"90s", now - UINT64_C(90000000000)},
		{"15m", now - UINT64_C(900000000000)},
		{"1w", now - UINT64_C(604800000000000)},
		{"2026-02-30", 0},
		{"2026-01-31T12:00:00", 0},
		{"2026-01-31T12:00:00.Z", 0},
		{"2026-01-31T12:00:00+25:00", 0},
		{"2026-01-31T12:00:00Zx", 0},
		{"2h30m", 0},
		{"h", 0},
		{"-2h", 0},
		{"2H", 0},
		{"9999999999d", 0},
		{"999999999w", 0},
		{"yesterday", 0},
		{"", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct err err = {0};
		uint64_t got = 0;
		int rc = when_parse(cases[i].text, now, &got, &err);

		CHECK_INT(cases[i].text, cases[i].want ? 0 : -1, rc);
		CHECK_INT(cases[i].text, cases[i].want, got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_by_each_field),
		cmocka_unit_test(by_id_of_both),
		cmocka_unit_test(follows_the_log),
		cmocka_unit_test(a_log_that_is_written_to),
		cmocka_unit_test(two_at_once),
		cmocka_unit_test(a_wrong_index_is_made_anew),
		cmocka_unit_test(a_damaged_file_is_made_anew),
		cmocka_unit_test(the_log_of_another_is_noticed),
		cmocka_unit_test(an_altered_log_is_not_indexed),
		cmocka_unit_test(files_of_others_are_not_taken),
		cmocka_unit_test(times_as_people_write_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
