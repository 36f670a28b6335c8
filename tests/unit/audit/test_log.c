/* The log's files: what is appended is found again, whatever a crash left. */
#include "audit/pairing_priv.h"
#include "audit/requests_priv.h"
#include "tests/unit/audit/fixture.h"
#include "tests/unit/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_FILE "00000000000000000000.log"
#define SMALL      8192

static struct verify_report verified(const char *dir)
{
	struct verify_report report;

	verify_log(dir, NULL, &report);
	return report;
}

static void check_fine(const char *label, const char *dir, uint64_t last_seq)
{
	struct verify_report report = verified(dir);

	CHECK_STR(label, "", report.what);
	CHECK_INT(label, VERIFY_FINE, report.result);
	CHECK_INT(label, last_seq, report.last_seq);
}

/* Opens, appends what begins a run, closes. */
static void append_once(const char *label, const char *dir, uint64_t want_seq)
{
	const struct record r = {.type = RECORD_GATE_START, .id = fixture_id(77)};
	struct audit_log_found found;
	struct open_set set;
	struct audit_log *l;

	open_set_init(&set, 100);
	l = fixture_open(dir, SMALL, &set, &found);
	CHECK_INT(label, want_seq, fixture_append(l, &r).seq);
	audit_log_close(l);
	open_set_fini(&set);
}

/* Returns NULL and *ret_err, or fails. */
static void check_refused(const char *label, const char *dir, enum err_kind want, struct err *ret)
{
	const struct audit_log_conf conf = {
		.dir = dir, .origin = "test/log", .segment_bytes = SMALL};
	struct audit_log_found found;
	struct open_set set;

	open_set_init(&set, 100);
	*ret = (struct err){0};
	if (audit_log_open(&conf, &set, &found, ret))
		fail_msg("%s: opened", label);
	CHECK_INT(label, want, ret->kind);
	open_set_fini(&set);
}

static void goes_on_after_a_restart(void **state)
{
	char dir[FIXTURE_PATH];
	struct stat st;

	(void)state;
	fixture_dir(dir);
	for (uint64_t seq = 1; seq < 10; seq++) {
		append_once("restart", dir, seq);
		check_fine("restart", dir, seq);
	}
	CHECK_INT("stat", 0, stat(fixture_path(dir, FIRST_FILE), &st));
	CHECK_INT("mode", 0640, st.st_mode & 0777);
	CHECK_INT("preallocated", 1, st.st_size >= SMALL);
	fixture_remove(dir);
}

static void a_second_writer_is_refused(void **state)
{
	struct audit_log_found found;
	char dir[FIXTURE_PATH];
	struct open_set set;
	struct audit_log *l;
	struct err err;

	(void)state;
	fixture_dir(dir);
	open_set_init(&set, 100);
	l = fixture_open(dir, SMALL, &set, &found);
	check_refused("second", dir, ERR_CONFIG, &err);
	CHECK_INT("says so", 1, strstr(err.msg, "another auditor") != NULL);
	audit_log_close(l);
	append_once("after the first ended", dir, 1);
	open_set_fini(&set);
	fixture_remove(dir);
}

/* Who may only read cannot keep an auditor away, nor hide from it; looking locks nothing. */
static void readers_lock_nothing(void **state)
{
	struct flock whole = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	struct audit_log_found found;
	char dir[FIXTURE_PATH];
	struct open_set set;
	struct audit_log *l;
	struct stat st;
	int fd, dir_fd;

	(void)state;
	fixture_dir(dir);
	open_set_init(&set, 100);
	l = fixture_open(dir, SMALL, &set, &found);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT("seen", 1, log_is_written(dir_fd));
	CHECK_INT("for the auditor's user alone", 0,
		  stat(fixture_path(dir, WRITER_LOCK), &st) < 0 || (st.st_mode & 077));
	audit_log_close(l);
	CHECK_INT("not any more", 0, log_is_written(dir_fd));
	fd = open(fixture_path(dir, SHOWN_LOCK), O_RDONLY | O_CLOEXEC);
	CHECK_INT("a reader's lock", 0, fcntl(fd, F_OFD_SETLK, &whole) | flock(fd, LOCK_EX));
	l = fixture_open(dir, SMALL, &set, &found);
	CHECK_INT("it is not shown", 0, log_is_written(dir_fd));
	close(fd);
	CHECK_INT("until it can be", 0, audit_log_check(l, &(struct err){0}));
	CHECK_INT("seen again", 1, log_is_written(dir_fd));
	audit_log_close(l);
	close(dir_fd);
	open_set_fini(&set);
	fixture_remove(dir);
}

static void what_cannot_be_a_log_is_refused(void **state)
{
	static const struct {
		const char *label, *origin;
	} names[] = {{"empty", ""}, {"quote", "a\"b"}, {"newline", "a\nb"}, {"space", "a b"}};
	struct audit_log_found found;
	char dir[FIXTURE_PATH];
	struct open_set set;
	struct err err = {0};

	(void)state;
	fixture_dir(dir);
	open_set_init(&set, 100);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const struct audit_log_conf conf = {
			.dir = dir, .origin = names[i].origin, .segment_bytes = SMALL};

		CHECK_INT(names[i].label, 1, audit_log_open(&conf, &set, &found, &err) == NULL);
		CHECK_INT(names[i].label, ERR_CONFIG, err.kind);
	}
	CHECK_INT("link", 0, symlink("/dev/null", fixture_path(dir, FIRST_FILE)));
	check_refused("symbolic link", dir, ERR_SYSTEM, &err);
	unlink(fixture_path(dir, FIRST_FILE));
	CHECK_INT("fifo", 0, mkfifo(fixture_path(dir, FIRST_FILE), 0600));
	check_refused("fifo", dir, ERR_CONFIG, &err);
	open_set_fini(&set);
	fixture_remove(dir);
	check_refused("no directory", dir, ERR_SYSTEM, &err);
}

static void a_log_of_another_name_is_refused(void **state)
{
	const struct audit_log_conf conf[] = {{.origin = "one", .segment_bytes = SMALL},
					      {.origin = "two", .segment_bytes = SMALL}};
	struct audit_log_found found;
	char dir[FIXTURE_PATH];
	struct open_set set;
	struct err err = {0};

	(void)state;
	fixture_dir(dir);
	open_set_init(&set, 100);
	for (int i = 0; i < 2; i++) {
		struct audit_log_conf c = conf[i];
		struct audit_log *l;

		c.dir = dir;
		l = audit_log_open(&c, &set, &found, &err);
		CHECK_INT(c.origin, i == 0, l != NULL);
		audit_log_close(l);
	}
	open_set_fini(&set);
	fixture_remove(dir);
}

/* --- segments --- */

static void segments_are_linked(void **state)
{
	struct verify_report report;
	struct audit_log_found found;
	char dir[FIXTURE_PATH];
	struct segments all;
	struct open_set set;
	struct audit_log *l;
	struct err err = {0};
	int dir_fd;

	(void)state;
	fixture_dir(dir);
	open_set_init(&set, 100);
	l = fixture_open(dir, SMALL, &set, &found);
	for (unsigned i = 0; i < 200; i++) {
		const struct record r = fixture_read_record(i);

		fixture_append(l, &r);
		if (audit_log_full(l))
			CHECK_INT("rotate", 0, audit_log_rotate(l, &set, &err));
	}
	audit_log_close(l);
	report = verified(dir);
	CHECK_STR("verify", "", report.what);
	CHECK_INT("reads", 200, report.reads);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT("list", 0, segments_list(dir_fd, &all, &err));
	CHECK_INT("several", 1, all.count > 5);
	CHECK_INT("all records counted", 200 + 2 * all.count - 1, report.records);
	for (size_t i = 0; i + 1 < all.count; i++) {
		char name[SEGMENT_NAME_MAX];
		size_t len;
		char *bytes;

		segment_name(all.first[i], name);
		bytes = fixture_read(fixture_path(dir, name), &len);
		CHECK_INT("no zeros in a finished segment", len, strlen(bytes));
		free(bytes);
	}
	segments_free(&all);
	close(dir_fd);
	append_once("reopened", dir, report.last_seq + 1);
	check_fine("reopened", dir, report.last_seq + 1);
	open_set_fini(&set);
	fixture_remove(dir);
}

static void a_missing_segment_is_noticed(void **state)
{
	struct audit_log_found found;
	char dir[FIXTURE_PATH];
	struct open_set set;
	struct audit_log *l;
	struct err err = {0};
	uint64_t second, third;
	char name[SEGMENT_NAME_MAX];

	(void)state;
	fixture_dir(dir);
	open_set_init(&set, 100);
	l = fixture_open(dir, SMALL, &set, &found);
	CHECK_INT("rotate", 0, audit_log_rotate(l, &set, &err));
	second = l->first;
	CHECK_INT("rotate", 0, audit_log_rotate(l, &set, &err));
	third = l->first;
	audit_log_close(l);
	check_fine("three", dir, third);
	segment_name(second, name);
	unlink(fixture_path(dir, name));
	CHECK_INT("verify", VERIFY_GAP, verified(dir).result);
	CHECK_INT("verify names it", second, verified(dir).bad_seq);
	check_refused("start", dir, ERR_INPUT, &err);
	/* Without any segment before it the newest can be gone on with, but it is a gap. */
	unlink(fixture_path(dir, FIRST_FILE));
	CHECK_INT("verify", VERIFY_GAP, verified(dir).result);
	append_once("only the newest left", dir, third + 1);
	open_set_fini(&set);
	fixture_remove(dir);
}

static void left_over_files_do_not_matter(void **state)
{
	struct audit_log_found found;
	char dir[FIXTURE_PATH];
	struct open_set set;
	struct audit_log *l;
	struct err err = {0};

	(void)state;
	fixture_dir(dir);
	open_set_init(&set, 100);
	fixture_write(fixture_path(dir, FIRST_FILE ".tmp"), "x", 1);
	fixture_write(fixture_path(dir, "0000000000000000000.log"), "x", 1);
	fixture_write(fixture_path(dir, "99999999999999999999.log"), "x", 1); /* not a number */
	fixture_write(fixture_path(dir, "notes.txt"), "x", 1);
	l = fixture_open(dir, SMALL, &set, &found);
	CHECK_INT("fresh", 1, found.fresh);
	fixture_write(fixture_path(dir, "00000000000000000002.log.tmp"), "x", 1);
	CHECK_INT("rotate", 0, audit_log_rotate(l, &set, &err));
	audit_log_close(l);
	check_fine("left-overs", dir, 2);
	open_set_fini(&set);
	fixture_remove(dir);
}

/* --- the end of a log that was cut short --- */

/* A small log's bytes, and where its last line begins and ends. */
struct sample {
	char dir[FIXTURE_PATH];
	char *bytes;
	size_t len, last, end;
	uint64_t last_seq;
};

static void sample_make(struct sample *s)
{
	struct audit_log_found found;
	struct open_set set;
	struct audit_log *l;

	fixture_dir(s->dir);
	open_set_init(&set, 100);
	l = fixture_open(s->dir, SMALL, &set, &found);
	for (unsigned i = 0; i < 4; i++) {
		const struct record r = fixture_decision(i, "deny");

		s->last_seq = fixture_append(l, &r).seq;
	}
	audit_log_close(l);
	open_set_fini(&set);
	s->bytes = fixture_read(fixture_path(s->dir, FIRST_FILE), &s->len);
	s->end = strlen(s->bytes);
	s->last = (size_t)((char *)memrchr(s->bytes, '\n', s->end - 1) + 1 - s->bytes);
}

static void sample_free(struct sample *s)
{
	free(s->bytes);
	fixture_remove(s->dir);
}

/* What is in the file now. */
static void sample_put(const struct sample *s, const char *bytes, size_t len)
{
	fixture_write(fixture_path(s->dir, FIRST_FILE), bytes, len);
}

static void check_torn_file(const struct sample *s, const struct audit_log_found *found,
			    size_t kept)
{
	size_t len;
	char *torn = fixture_read(fixture_path(s->dir, found->tail_file), &len);
	struct hash h = hash_of((struct span){torn, len});

	CHECK_INT("kept bytes", kept, len);
	CHECK_INT("as they were", 0, memcmp(torn, s->bytes + s->last, len));
	CHECK_INT("their hash", 0, memcmp(&h, &found->tail_hash, sizeof(h)));
	free(torn);
}

static void the_last_line_cut_at_every_byte(void **state)
{
	struct sample s;

	(void)state;
	sample_make(&s);
	for (size_t cut = s.last; cut < s.end; cut++)
		for (int truncated = 0; truncated < 2; truncated++) {
			struct audit_log_found found;
			struct verify_report report;
			struct open_set set;
			struct audit_log *l;
			char *bytes = malloc(s.len);
			bool torn = cut > s.last;

			memcpy(bytes, s.bytes, s.len);
			memset(bytes + cut, 0, s.len - cut);
			sample_put(&s, bytes, truncated ? cut : s.len);
			free(bytes);
			if (cut % 16 == 0) { /* it waits to see whether the write goes on */
				report = verified(s.dir);
				CHECK_INT("verify tolerates", VERIFY_FINE, report.result);
				CHECK_INT("verify reports", torn, report.torn_tail);
				CHECK_INT("last good", s.last_seq - 1, report.last_seq);
			}
			open_set_init(&set, 100);
			l = fixture_open(s.dir, SMALL, &set, &found);
			CHECK_INT("tail", torn ? TAIL_TORN : TAIL_CLEAN, found.tail.kind);
			CHECK_INT("tail bytes", cut - s.last, found.tail.bytes);
			if (torn) {
				CHECK_INT("tail at", s.last, found.tail.at);
				check_torn_file(&s, &found, cut - s.last);
				unlink(fixture_path(s.dir, found.tail_file));
			}
			audit_log_close(l);
			append_once("recovered", s.dir, s.last_seq);
			check_fine("recovered", s.dir, s.last_seq);
		}
	sample_free(&s);
}

static void torn_tails_do_not_overwrite_each_other(void **state)
{
	struct sample s;
	char names[3][64];

	(void)state;
	sample_make(&s);
	for (int i = 0; i < 3; i++) {
		struct audit_log_found found;
		struct open_set set;

		sample_put(&s, s.bytes, s.end - 2);
		open_set_init(&set, 100);
		audit_log_close(fixture_open(s.dir, SMALL, &set, &found));
		memcpy(names[i], found.tail_file, sizeof(names[i]));
		open_set_fini(&set);
	}
	CHECK_STR("first", "torn/2.bin", names[0]);
	CHECK_STR("second", "torn/2-1.bin", names[1]);
	CHECK_STR("third", "torn/2-2.bin", names[2]);
	sample_free(&s);
}

/* Sectors of the last group that did not reach the disk, in all combinations. */
static void holes_of_sectors(void **state)
{
	enum { SECTOR = 512, LINES = 6 };
	struct audit_log_found found;
	struct open_set set;
	struct audit_log *l;
	char dir[FIXTURE_PATH];
	size_t len, group_at, end, first_sector, sectors;
	size_t starts[LINES + 1];
	int recovered = 0, refused = 0;
	struct err err = {0};
	char *bytes, *path;

	(void)state;
	fixture_dir(dir);
	open_set_init(&set, 100);
	l = fixture_open(dir, SMALL, &set, &found);
	group_at = l->used;
	for (unsigned i = 0; i < LINES; i++) {
		const struct record r = fixture_decision(i, "deny");
		struct audit_mark mark;
		struct buf body;

		buf_init(&body, RECORD_BODY_MAX);
		record_write(&body, &r);
		starts[i] = group_at + buf_len(&l->group);
		CHECK_INT("add", 0, audit_log_add(l, buf_span(&body), &mark));
		buf_fini(&body);
	}
	CHECK_INT("commit", 0, audit_log_commit(l, &err));
	starts[LINES] = end = l->used;
	audit_log_close(l);
	path = strdup(fixture_path(dir, FIRST_FILE));
	bytes = fixture_read(path, &len);
	first_sector = group_at / SECTOR;
	sectors = (end + SECTOR - 1) / SECTOR - first_sector;
	CHECK_INT("few enough to try all", 1, sectors >= 5 && sectors <= 9);
	for (unsigned lost = 0; lost < 1u << sectors; lost++) {
		const struct audit_log_conf conf = {
			.dir = dir, .origin = "test/log", .segment_bytes = SMALL};
		char *torn = malloc(len);
		int good = 0, after_bad = 0;

		memcpy(torn, bytes, len);
		for (size_t i = 0; i < sectors; i++) {
			size_t from = (first_sector + i) * SECTOR, to = from + SECTOR;

			from = from < group_at ? group_at : from;
			if (lost >> i & 1)
				memset(torn + from, 0, to - from);
		}
		for (int i = 0; i < LINES; i++) {
			bool same = memcmp(torn + starts[i], bytes + starts[i],
					   starts[i + 1] - starts[i]) == 0;

			if (same && good == i)
				good++;
			else if (same)
				after_bad++;
		}
		fixture_write(path, torn, len);
		open_set_fini(&set);
		open_set_init(&set, 100);
		l = audit_log_open(&conf, &set, &found, &err);
		CHECK_INT("recovered unless a line follows", after_bad == 0, l != NULL);
		if (l) {
			CHECK_INT("up to the hole", 1 + good, l->writer.seq);
			if (found.tail.bytes)
				unlink(fixture_path(dir, found.tail_file));
			recovered++;
		} else {
			size_t same_len;
			char *now = fixture_read(path, &same_len);

			CHECK_INT("nothing was changed", 0, memcmp(now, torn, len));
			free(now);
			refused++;
		}
		audit_log_close(l);
		free(torn);
	}
	CHECK_INT("both came up", 1, recovered > 3 && refused > 3);
	open_set_fini(&set);
	free(bytes);
	free(path);
	fixture_remove(dir);
}

/* --- damage --- */

static uint64_t seq_at(const struct sample *s, size_t offset)
{
	uint64_t seq = 0;

	for (size_t i = 0; i < offset; i++)
		seq += s->bytes[i] == '\n';
	return seq;
}

static void every_flipped_bit_is_found(void **state)
{
	struct sample s;
	char *bytes;
	int fd;

	(void)state;
	sample_make(&s);
	bytes = malloc(s.len);
	fd = open(fixture_path(s.dir, FIRST_FILE), O_RDWR | O_CLOEXEC);
	for (size_t i = 0; i < s.end; i++)
		for (int bit = 0; bit < 8; bit++) {
			char flipped = (char)(s.bytes[i] ^ (1 << bit));
			struct verify_report report;
			char label[64];

			CHECK_INT("flip", 1, pwrite(fd, &flipped, 1, (off_t)i));
			report = verified(s.dir);
			snprintf(label, sizeof(label), "byte %zu bit %d", i, bit);
			CHECK_INT(label, VERIFY_ALTERED, report.result);
			CHECK_INT(label, seq_at(&s, i), report.bad_seq);
			CHECK_INT("unflip", 1, pwrite(fd, s.bytes + i, 1, (off_t)i));
		}
	check_fine("as it was", s.dir, s.last_seq);
	close(fd);
	free(bytes);
	sample_free(&s);
}

static void a_damaged_log_is_not_gone_on_with(void **state)
{
	struct sample s;

	(void)state;
	sample_make(&s);
	for (size_t i = 0; i < s.end; i += 7) {
		struct err err;
		char *now, *bytes = malloc(s.len);
		size_t len;

		memcpy(bytes, s.bytes, s.len);
		bytes[i] ^= 1;
		sample_put(&s, bytes, s.len);
		check_refused("flipped", s.dir, ERR_INPUT, &err);
		CHECK_INT("says what to do", 1, strstr(err.msg, "sallyport audit verify") != NULL);
		now = fixture_read(fixture_path(s.dir, FIRST_FILE), &len);
		CHECK_INT("nothing was changed", 0, memcmp(now, bytes, len));
		free(now);
		free(bytes);
	}
	sample_free(&s);
}

static void lines_taken_out_or_moved_are_found(void **state)
{
	struct sample s;
	size_t second, third, fourth;
	char *bytes;

	(void)state;
	sample_make(&s);
	second = (size_t)(strchr(s.bytes, '\n') + 1 - s.bytes);
	third = (size_t)(strchr(s.bytes + second, '\n') + 1 - s.bytes);
	fourth = (size_t)(strchr(s.bytes + third, '\n') + 1 - s.bytes);
	bytes = calloc(1, s.len);

	memcpy(bytes, s.bytes, second);
	memcpy(bytes + second, s.bytes + third, s.end - third);
	sample_put(&s, bytes, s.len);
	CHECK_INT("taken out", VERIFY_GAP, verified(s.dir).result);
	CHECK_INT("taken out", 1, verified(s.dir).bad_seq);

	memset(bytes, 0, s.len);
	memcpy(bytes, s.bytes, third);
	memcpy(bytes + third, s.bytes + second, s.end - second);
	sample_put(&s, bytes, s.len);
	CHECK_INT("doubled", VERIFY_ALTERED, verified(s.dir).result);
	CHECK_INT("doubled", 2, verified(s.dir).bad_seq);

	memcpy(bytes, s.bytes, s.end);
	memcpy(bytes + second, s.bytes + third, fourth - third);
	memcpy(bytes + second + (fourth - third), s.bytes + second, third - second);
	sample_put(&s, bytes, s.len);
	CHECK_INT("swapped", VERIFY_GAP, verified(s.dir).result);

	sample_put(&s, s.bytes + second, s.len - second);
	CHECK_INT("the first taken out", VERIFY_GAP, verified(s.dir).result);
	sample_put(&s, "", 0);
	CHECK_INT("all taken out", VERIFY_ALTERED, verified(s.dir).result);
	free(bytes);
	sample_free(&s);
}

/* --- watching over the file --- */

enum harm { UNLINKED, REPLACED, CUT, LOCK_GONE, DIR_MOVED, UNHARMED };

static void a_file_that_is_taken_away_seals(void **state)
{
	static const char *const labels[] = {"unlinked",  "replaced",  "cut",
					     "lock gone", "dir moved", "unharmed"};

	(void)state;
	for (int harm = UNLINKED; harm <= UNHARMED; harm++) {
		const struct record r = fixture_read_record(1);
		struct audit_log_found found;
		char dir[FIXTURE_PATH], file[FIXTURE_PATH * 2], moved[FIXTURE_PATH + 8];
		struct err err = {0};
		struct open_set set;
		struct audit_log *l;

		fixture_dir(dir);
		snprintf(file, sizeof(file), "%s/%s", dir, FIRST_FILE);
		snprintf(moved, sizeof(moved), "%s.moved", dir);
		open_set_init(&set, 100);
		l = fixture_open(dir, SMALL, &set, &found);
		fixture_append(l, &r);
		CHECK_INT(labels[harm], 0, audit_log_check(l, &err));
		if (harm == UNLINKED || harm == REPLACED)
			unlink(file);
		if (harm == REPLACED)
			fixture_write(file, "", 0);
		if (harm == CUT)
			CHECK_INT("truncate", 0, truncate(file, 100));
		if (harm == LOCK_GONE)
			unlink(fixture_path(dir, "writer"));
		if (harm == DIR_MOVED)
			CHECK_INT("rename", 0, rename(dir, moved));
		CHECK_INT(labels[harm], harm == UNHARMED ? 0 : -1, audit_log_check(l, &err));
		CHECK_INT(labels[harm], harm != UNHARMED, l->sealed);
		if (l->sealed) {
			CHECK_INT(labels[harm], -1, audit_log_commit(l, &err));
			CHECK_INT(labels[harm], -1, audit_log_rotate(l, &set, &err));
		}
		audit_log_close(l);
		open_set_fini(&set);
		fixture_remove(harm == DIR_MOVED ? moved : dir);
	}
}

/* --- open decisions --- */

static void open_decisions_are_found_in_older_segments(void **state)
{
	struct audit_log_found found;
	char dir[FIXTURE_PATH];
	struct open_set set;
	struct audit_log *l;
	struct err err = {0};
	struct decision_id id;
	size_t slot = 0;

	(void)state;
	fixture_dir(dir);
	open_set_init(&set, 100);
	l = fixture_open(dir, SMALL, &set, &found);
	for (unsigned i = 0; i < 9; i++) {
		/* 3 is left open in the first segment, 7 in the newest; the others end. */
		struct record r = fixture_decision(i, i == 5 ? "deny" : "allow");
		struct audit_mark mark = fixture_append(l, &r);
		struct record_peek peek = {.type = RECORD_DECISION, .id = span_of(r.id)};

		peek.allow = i != 5;
		pairing_apply(&set, &peek, mark.seq);
		if (i != 3 && i != 5 && i != 7) {
			r = fixture_outcome(i);
			peek = (struct record_peek){.type = RECORD_OUTCOME, .of = span_of(r.of)};
			mark = fixture_append(l, &r);
			pairing_apply(&set, &peek, mark.seq);
		}
		if (i % 2 == 0)
			CHECK_INT("rotate", 0, audit_log_rotate(l, &set, &err));
	}
	audit_log_close(l);
	CHECK_INT("verify counts them", 2, verified(dir).open_decisions);
	for (int restart = 0; restart < 2; restart++) {
		open_set_fini(&set);
		l = fixture_open(dir, SMALL, &set, &found);
		CHECK_INT("found", 2, set.count);
		CHECK_INT("all looked for", 0, found.not_looked_for);
		audit_log_close(l);
	}
	decision_id_parse(span_of(fixture_id(3)), &id);
	CHECK_INT("3", 1, open_set_find(&set, &id) != NULL);
	decision_id_parse(span_of(fixture_id(7)), &id);
	CHECK_INT("7", 1, open_set_find(&set, &id) != NULL);
	CHECK_INT("seq is known", 1, open_set_next(&set, &slot)->seq > 0);
	open_set_fini(&set);
	fixture_remove(dir);
}

/* How far back is searched has a bound, and what is missed is counted. */
static void decisions_too_far_back_are_counted(void **state)
{
	const struct record r = fixture_decision(1, "allow");
	const struct record_peek peek = {
		.type = RECORD_DECISION, .id = span_of(r.id), .allow = true};
	struct audit_log_found found;
	char dir[FIXTURE_PATH];
	struct open_set set;
	struct audit_log *l;
	struct err err = {0};

	(void)state;
	fixture_dir(dir);
	open_set_init(&set, 100);
	l = fixture_open(dir, 4096, &set, &found);
	pairing_apply(&set, &peek, fixture_append(l, &r).seq);
	for (int i = 0; i < 1024; i++)
		CHECK_INT("rotate", 0, audit_log_rotate(l, &set, &err));
	audit_log_close(l);
	open_set_fini(&set);
	l = fixture_open(dir, 4096, &set, &found);
	CHECK_INT("just in reach", 1, set.count);
	CHECK_INT("just in reach", 0, found.not_looked_for);
	CHECK_INT("rotate", 0, audit_log_rotate(l, &set, &err));
	audit_log_close(l);
	open_set_fini(&set);
	l = fixture_open(dir, 4096, &set, &found);
	CHECK_INT("out of reach", 0, set.count);
	CHECK_INT("out of reach", 1, found.not_looked_for);
	audit_log_close(l);
	open_set_fini(&set);
	fixture_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_on_after_a_restart),
		cmocka_unit_test(a_second_writer_is_refused),
		cmocka_unit_test(readers_lock_nothing),
		cmocka_unit_test(what_cannot_be_a_log_is_refused),
		cmocka_unit_test(a_log_of_another_name_is_refused),
		cmocka_unit_test(segments_are_linked),
		cmocka_unit_test(a_missing_segment_is_noticed),
		cmocka_unit_test(left_over_files_do_not_matter),
		cmocka_unit_test(the_last_line_cut_at_every_byte),
		cmocka_unit_test(torn_tails_do_not_overwrite_each_other),
		cmocka_unit_test(holes_of_sectors),
		cmocka_unit_test(every_flipped_bit_is_found),
		cmocka_unit_test(a_damaged_log_is_not_gone_on_with),
		cmocka_unit_test(lines_taken_out_or_moved_are_found),
		cmocka_unit_test(a_file_that_is_taken_away_seals),
		cmocka_unit_test(open_decisions_are_found_in_older_segments),
		cmocka_unit_test(decisions_too_far_back_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
