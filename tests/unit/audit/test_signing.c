/* The auditor's key and checkpoints: what it signs, what it holds a log against when it starts. */
#include "audit/auditor_priv.h"
#include "audit/note_priv.h"
#include "audit/requests.h"
#include "gate/base/clock.h"
#include "tests/unit/audit/running.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_FILE "00000000000000000000.log"

static void begin(struct gate *g)
{
	gate_init(g);
	g->more.checkpoint_ms = 3600000;
	g->more.checkpoint_records = 1000000;
}

/* A run with some records; returns the newest receipt. */
static struct audit_mark a_run(struct gate *g, unsigned from, unsigned count)
{
	struct audit_client *c;
	struct asked asked = {0};

	gate_start(g);
	c = worker_start(g);
	for (unsigned i = 0; i < count; i++) {
		asked = worker_decide(c, from + i, "deny");
		CHECK_INT("granted", 1, asked.granted);
	}
	audit_client_destroy(c);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(g));
	return asked.mark;
}

static char *text_of(const struct gate *g, const char *name)
{
	size_t len;

	return fixture_read(fixture_path(g->dir, name), &len);
}

static void put_text(const struct gate *g, const char *name, const char *text)
{
	fixture_write(fixture_path(g->dir, name), text, strlen(text));
}

static void a_stop_is_signed(void **state)
{
	struct verify_report report;
	struct note_key key;
	struct checkpoint c;
	struct gate g;
	struct stat st;
	char *note, *vkey;

	(void)state;
	begin(&g);
	a_run(&g, 1, 3);
	note = text_of(&g, "checkpoint");
	vkey = text_of(&g, "checkpoint.vkey");
	vkey[strlen(vkey) - 1] = '\0';
	report = gate_verified(&g);
	CHECK_INT("parse", 1, checkpoint_parse(span_of(note), &c));
	CHECK_INT("key", 1, note_key_parse(span_of(vkey), &key));
	CHECK_INT("signed", 1, checkpoint_signed_by(&c, &key));
	CHECK_INT("all of it", report.records, c.size);
	CHECK_INT("root", 0, memcmp(&c.root, &report.root, sizeof(c.root)));
	CHECK_INT("covered", report.records, report.signed_size);
	CHECK_STR("the log's key", vkey, report.key);
	CHECK_INT("stat", 0, stat(fixture_path(g.dir, "checkpoint.key"), &st));
	CHECK_INT("mode", 0600, st.st_mode & 07777);
	free(note);
	free(vkey);
	fixture_remove(g.dir);
}

static void checkpoints_are_on_record(void **state)
{
	struct gate g;

	(void)state;
	begin(&g);
	g.more.checkpoint_ms = 1;
	a_run(&g, 1, 50);
	CHECK_INT("some", 1, gate_verified(&g).checkpoints > 0);
	a_run(&g, 100, 50);
	CHECK_INT("nothing wrong", VERIFY_FINE, gate_verified(&g).result);
	fixture_remove(g.dir);
}

/* A log that has nothing new signs nothing, however long it runs. */
static void a_checkpoint_alone_is_nothing_new(void **state)
{
	struct audit_client *c;
	struct gate g;

	(void)state;
	begin(&g);
	g.more.checkpoint_ms = 1;
	gate_start(&g);
	c = worker_start(&g);
	gate_until_log_says(&g, 1, "\"type\":\"checkpoint\"");
	for (uint64_t end = clock_boot_ms() + 300; clock_boot_ms() < end;)
		worker_turn(c, 10);
	CHECK_INT("still one", 1, gate_log_count(&g, "\"type\":\"checkpoint\""));
	audit_client_destroy(c);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	fixture_remove(g.dir);
}

/* Cut where a line ends, with zeros behind: by itself a log like any other. */
static void cut(const struct gate *g, unsigned lines)
{
	const char *path = fixture_path(g->dir, FIRST_FILE);
	size_t len, at = 0;
	char *bytes = fixture_read(path, &len);

	for (unsigned i = 0; i < lines; i++)
		at = (size_t)((char *)memchr(bytes + at, '\n', len - at) + 1 - bytes);
	memset(bytes + at, 0, len - at);
	fixture_write(path, bytes, len);
	free(bytes);
}

static void a_log_cut_below_its_checkpoint_is_damage(void **state)
{
	struct verify_report report;
	struct gate g;
	char *note;

	(void)state;
	begin(&g);
	a_run(&g, 1, 5);
	cut(&g, 4);
	gate_refused(&g, "damaged");
	gate_refused(&g, "the log ends here");
	verify_log(g.dir, NULL, &report);
	CHECK_INT("verify", VERIFY_CUT, report.result);
	CHECK_INT("seq", 4, report.bad_seq);

	/* Who takes the checkpoint away as well leaves a log that looks true: this is what anchors
	 * are for. */
	note = text_of(&g, "checkpoint");
	unlink(fixture_path(g.dir, "checkpoint"));
	verify_log(g.dir, NULL, &report);
	CHECK_INT("cannot tell", VERIFY_FINE, report.result);
	verify_log(g.dir, &(struct verify_options){.from = note}, &report);
	CHECK_INT("an anchor can", VERIFY_CUT, report.result);
	free(note);
	fixture_remove(g.dir);
}

static void a_torn_tail_above_its_checkpoint_is_none(void **state)
{
	struct gate g;
	struct audit_client *c;
	size_t used;
	int fd;

	(void)state;
	begin(&g);
	a_run(&g, 1, 5);
	gate_start(&g);
	c = worker_start(&g);
	CHECK_INT("granted", 1, worker_decide(c, 77, "deny").granted);
	audit_client_destroy(c);
	gate_kill(&g);
	used = fixture_used(fixture_path(g.dir, FIRST_FILE));
	fd = open(fixture_path(g.dir, FIRST_FILE), O_WRONLY | O_CLOEXEC);
	CHECK_INT("tear", 1, pwrite(fd, "", 1, (off_t)used - 1));
	close(fd);
	a_run(&g, 100, 1);
	CHECK_INT("trimmed", 1, gate_log_count(&g, "a torn tail was trimmed"));
	gate_verified(&g);
	fixture_remove(g.dir);
}

static void the_key_belongs_to_the_log(void **state)
{
	struct gate g, other;
	char *key, *theirs;

	(void)state;
	begin(&g);
	begin(&other);
	a_run(&g, 1, 1);
	a_run(&other, 1, 1);
	key = text_of(&g, "checkpoint.key");
	theirs = text_of(&other, "checkpoint.key");

	unlink(fixture_path(g.dir, "checkpoint.key"));
	gate_refused(&g, "missing");
	put_text(&g, "checkpoint.key", key);
	gate_refused(&g, "0600");
	CHECK_INT("chmod", 0, chmod(fixture_path(g.dir, "checkpoint.key"), 0600));
	put_text(&g, "checkpoint.key", theirs);
	gate_refused(&g, "not the log's key");
	put_text(&g, "checkpoint.key", "PRIVATE+KEY+x\n");
	gate_refused(&g, "no signing key");
	put_text(&g, "checkpoint.key", key);
	a_run(&g, 10, 1);
	CHECK_INT("nothing was changed by that", 0, gate_log_count(&g, "torn"));
	gate_verified(&g);
	free(key);
	free(theirs);
	fixture_remove(g.dir);
	fixture_remove(other.dir);
}

static void another_key_is_not_taken_for_the_logs(void **state)
{
	struct verify_report report;
	struct gate g, other;
	char *ours, *theirs;

	(void)state;
	begin(&g);
	begin(&other);
	a_run(&g, 1, 1);
	a_run(&other, 1, 1);
	ours = text_of(&g, "checkpoint.vkey");
	theirs = text_of(&other, "checkpoint.vkey");
	ours[strlen(ours) - 1] = theirs[strlen(theirs) - 1] = '\0';
	verify_log(g.dir, &(struct verify_options){.key = ours}, &report);
	CHECK_INT("ours", VERIFY_FINE, report.result);
	verify_log(g.dir, &(struct verify_options){.key = theirs}, &report);
	CHECK_INT("theirs", VERIFY_ALTERED, report.result);
	verify_log(g.dir, &(struct verify_options){.key = "x"}, &report);
	CHECK_INT("none", VERIFY_UNREADABLE, report.result);
	free(ours);
	free(theirs);
	fixture_remove(g.dir);
	fixture_remove(other.dir);
}

/* The folder is put back as it was; the keys' folder, or the anchor, remembers. */
static void a_log_that_was_put_back_is_noticed(void **state)
{
	static const char *const names[] = {FIRST_FILE, "checkpoint"};
	char keys[FIXTURE_PATH], *old[2];
	size_t len[2];

	(void)state;
	for (int anchored = 0; anchored < 2; anchored++) {
		char anchor[FIXTURE_PATH + 16];
		struct gate g;

		begin(&g);
		fixture_dir(keys);
		snprintf(anchor, sizeof(anchor), "%s/anchor", keys);
		if (anchored)
			g.more.anchor_file = anchor;
		else
			g.more.keys = keys;
		a_run(&g, 1, 5);
		for (int i = 0; i < 2; i++)
			old[i] = fixture_read(fixture_path(g.dir, names[i]), &len[i]);
		a_run(&g, 20, 5);
		for (int i = 0; i < 2; i++) {
			fixture_write(fixture_path(g.dir, names[i]), old[i], len[i]);
			free(old[i]);
		}
		gate_refused(&g, anchored ? "the anchor file is of" : "folder of keys is of");
		fixture_remove(g.dir);
		fixture_remove(keys);
	}
}

static void anchors_hold_every_checkpoint(void **state)
{
	char outside[FIXTURE_PATH], anchor[FIXTURE_PATH + 16], *notes;
	struct verify_report report;
	struct gate g;
	size_t len;

	(void)state;
	begin(&g);
	fixture_dir(outside);
	snprintf(anchor, sizeof(anchor), "%s/anchor", outside);
	g.more.anchor_file = anchor;
	g.more.checkpoint_ms = 1;
	for (unsigned i = 0; i < 3; i++)
		a_run(&g, 1 + 100 * i, 10);
	notes = fixture_read(anchor, &len);
	verify_log(g.dir, &(struct verify_options){.from = notes}, &report);
	CHECK_STR("verify", "", report.what);
	CHECK_INT("several", 1, report.heads_fine > 3);
	/* The same size twice with two roots: somebody has signed two logs. */
	notes = realloc(notes, len * 2 + 1);
	memcpy(notes + len, notes, len);
	notes[len * 2] = '\0';
	{
		char *root = strchr(strchr(notes + len, '\n') + 1, '\n') + 1;

		*root = *root == 'A' ? 'B' : 'A';
	}
	verify_log(g.dir, &(struct verify_options){.from = notes}, &report);
	CHECK_INT("fork", VERIFY_CUT, report.result);
	CHECK_INT("says so", 1, strstr(report.what, "forked") != NULL);
	free(notes);
	fixture_remove(outside);
	fixture_remove(g.dir);
}

/* All hashes and signatures are right, since whoever did it has the key. */
static void a_log_written_anew_is_not_the_one_that_was_anchored(void **state)
{
	struct verify_report report;
	struct gate g, forged;
	char *note, *key;

	(void)state;
	begin(&g);
	begin(&forged);
	a_run(&g, 1, 5);
	note = text_of(&g, "checkpoint");
	key = text_of(&g, "checkpoint.key");
	put_text(&forged, "checkpoint.key", key);
	CHECK_INT("chmod", 0, chmod(fixture_path(forged.dir, "checkpoint.key"), 0600));
	a_run(&forged, 50, 9);
	gate_verified(&forged);
	verify_log(forged.dir, &(struct verify_options){.from = note}, &report);
	CHECK_INT("verify", VERIFY_CUT, report.result);
	free(note);
	free(key);
	fixture_remove(g.dir);
	fixture_remove(forged.dir);
}

static void the_tree_goes_on_over_segments_and_runs(void **state)
{
	struct gate g;
	struct stat st;

	(void)state;
	begin(&g);
	g.segment_bytes = 16384;
	for (unsigned i = 0; i < 5; i++)
		a_run(&g, 1 + 1000 * i, 100);
	gate_verified(&g);
	CHECK_INT("a tile", 0, stat(fixture_path(g.dir, "tile/0/001"), &st));
	/* Tiles can be made again. */
	unlink(fixture_path(g.dir, "tile/0/000"));
	unlink(fixture_path(g.dir, "tile/0/001"));
	for (unsigned i = 5; i < 8; i++)
		a_run(&g, 1 + 1000 * i, 100);
	gate_verified(&g);
	CHECK_INT("another", 0, stat(fixture_path(g.dir, "tile/0/002"), &st));
	fixture_remove(g.dir);
}

static void a_new_key_is_signed_by_the_old_one(void **state)
{
	char *first, *second, *all, *sig;
	struct verify_report report;
	struct audit_client *c;
	struct err err = {0};
	struct gate g;
	size_t len;

	(void)state;
	begin(&g);
	CHECK_INT("nobody runs", -1, log_rotate_key(g.dir, &err));
	a_run(&g, 1, 3);
	first = text_of(&g, "checkpoint.vkey");
	gate_start(&g);
	c = worker_start(&g);
	CHECK_INT("asked", 0, log_rotate_key(g.dir, &err));
	gate_until_log_says(&g, 1, "\"type\":\"key_rotate\"");
	CHECK_INT("granted", 1, worker_decide(c, 50, "deny").granted);
	audit_client_destroy(c);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	second = text_of(&g, "checkpoint.vkey");
	CHECK_INT("another", 1, strcmp(first, second) != 0);
	first[strlen(first) - 1] = second[strlen(second) - 1] = '\0';
	verify_log(g.dir, &(struct verify_options){.key = first}, &report);
	CHECK_STR("who knows the old one", "", report.what);
	CHECK_STR("the new one signs", second, report.key);
	a_run(&g, 100, 3); /* and the next run has it */
	gate_verified(&g);

	/* An attacker with the files alone cannot bring in a key. */
	all = fixture_read(fixture_path(g.dir, FIRST_FILE), &len);
	sig = strstr(strstr(all, "key_rotate"), "\"sig\":\"") + 20;
	*sig = *sig == 'A' ? 'B' : 'A';
	fixture_write(fixture_path(g.dir, FIRST_FILE), all, len);
	verify_log(g.dir, NULL, &report);
	CHECK_INT("altered", VERIFY_ALTERED, report.result);
	free(all);
	free(first);
	free(second);
	fixture_remove(g.dir);
}

static void who_reads_is_on_record(void **state)
{
	struct gate g;

	(void)state;
	begin(&g);
	log_tell_read(g.dir, "audit verify"); /* nobody runs: nothing is left behind */
	gate_start(&g);
	gate_until_log_says(&g, 1, "\"type\":\"gate_start\"");
	log_tell_read(g.dir, "a \"\n\x01 tail");
	gate_until_log_says(&g, 1, "\"type\":\"log_read\"");
	CHECK_INT("escaped", 1, gate_log_count(&g, "\"text\":\"a \\\"\\u000a\\u0001 tail\""));
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	gate_verified(&g);
	fixture_remove(g.dir);
}

static void a_clock_that_is_set_is_on_record(void **state)
{
	struct auditor_conf conf = {.origin = "test/log",
				    .segment_bytes = 1 << 20,
				    .build = "test",
				    .flush_ms = 5,
				    .unsafe_fs = true};
	struct err err = {0};
	struct auditor *a;
	struct gate g;

	(void)state;
	gate_init(&g);
	conf.dir = g.dir;
	a = auditor_open(&conf, &err);
	assert_non_null(a);
	auditor_watch_clock(a);
	a->clock_offset += 500000000;
	auditor_watch_clock(a);
	a->clock_offset -= INT64_C(3600000000000); /* as if it had been an hour behind */
	auditor_watch_clock(a);
	auditor_watch_clock(a);
	auditor_commit(a);
	auditor_close(a);
	CHECK_INT("once", 1, gate_log_count(&g, "\"type\":\"clock_step\""));
	CHECK_INT("synced or not", 2, gate_log_count(&g, "\"tsync\":\""));
	gate_verified(&g);
	fixture_remove(g.dir);
}

/* Records go on for a while; not for ever, since then nothing would fix them. */
static void checkpoints_that_fail_alarm_and_then_seal(void **state)
{
	struct auditor_conf conf = {.origin = "test/log",
				    .segment_bytes = 1 << 20,
				    .build = "test",
				    .flush_ms = 5,
				    .unsafe_fs = true,
				    .checkpoint_ms = 1000,
				    .checkpoint_records = 10};
	struct err err = {0};
	struct auditor *a;
	struct gate g;

	(void)state;
	gate_init(&g);
	conf.dir = g.dir;
	a = auditor_open(&conf, &err);
	assert_non_null(a);
	CHECK_INT("in the way", 0, mkdir(fixture_path(g.dir, "checkpoint.tmp"), 0700));
	for (a->now_ms = 1000; a->now_ms < 4000; a->now_ms += 1000)
		auditor_checkpoint(a, true);
	auditor_commit(a);
	CHECK_INT("goes on", 0, auditor_sealed(a));
	CHECK_INT("told once", 1, gate_log_count(&g, "\"cause\":\"checkpoint\""));
	CHECK_INT("none is signed", 0, gate_log_count(&g, "\"type\":\"checkpoint\""));
	a->now_ms = 700000;
	auditor_checkpoint(a, true);
	CHECK_INT("sealed", 1, auditor_sealed(a));
	auditor_close(a);
	CHECK_INT("out of the way", 0, rmdir(fixture_path(g.dir, "checkpoint.tmp")));
	gate_verified(&g);
	fixture_remove(g.dir);
}

/* Running out of room, and having room again: each is told once. */
static void too_little_room_is_on_record(void **state)
{
	struct auditor_conf conf = {.origin = "test/log",
				    .segment_bytes = 1 << 20,
				    .build = "test",
				    .flush_ms = 5,
				    .unsafe_fs = true,
				    .warn_free_bytes = 1};
	struct err err = {0};
	struct auditor *a;
	struct gate g;

	(void)state;
	gate_init(&g);
	conf.dir = g.dir;
	a = auditor_open(&conf, &err);
	assert_non_null(a);
	for (int i = 0; i < 6; i++) {
		a->space.stages[SPACE_WARN].limit = i / 2 == 1 ? UINT64_MAX : 1;
		auditor_watch_space(a);
	}
	auditor_commit(a);
	auditor_close(a);
	CHECK_INT("both", 2, gate_log_count(&g, "\"cause\":\"space\",\"began\":\"20"));
	CHECK_INT("its end", 1, gate_log_count(&g, "\"ended\":\"20"));
	CHECK_INT("how much", 2, gate_log_count(&g, "\"free_bytes\":"));
	gate_verified(&g);
	fixture_remove(g.dir);
}

static void accepted_damage_is_kept_and_on_record(void **state)
{
	struct verify_report report;
	struct checkpoint c;
	struct gate g;
	char *note;

	(void)state;
	begin(&g);
	for (unsigned round = 1; round <= 2; round++) {
		char name[64];

		a_run(&g, 1, 5);
		cut(&g, 4);
		g.more.accept_damage = false;
		gate_refused(&g, "--accept-damage");
		g.more.accept_damage = true;
		a_run(&g, 50, 2);
		CHECK_INT("said", 1, gate_log_count(&g, "damage was accepted"));
		CHECK_INT("why", 1, gate_log_count(&g, "the log ends here"));
		report = gate_verified(&g);
		note = text_of(&g, "checkpoint");
		CHECK_INT("checkpoint", 1, checkpoint_parse(span_of(note), &c));
		CHECK_INT("of another name", 1,
			  span_is(c.origin, round == 1 ? "test/log/2" : "test/log/3"));
		free(note);
		snprintf(name, sizeof(name), "damaged-%u", round);
		verify_log(fixture_path(g.dir, name), NULL, &report);
		CHECK_INT("kept as it was", VERIFY_CUT, report.result);
	}
	/* What is in use is not set aside. */
	gate_start(&g);
	gate_until_log_says(&g, 2, "\"type\":\"gate_start\"");
	gate_refused(&g, "another auditor writes");
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	fixture_remove(g.dir);
}

/* A lost key is damage as well: a log never changes its key by itself. */
static void a_lost_key_can_be_accepted(void **state)
{
	struct gate g;

	(void)state;
	begin(&g);
	a_run(&g, 1, 1);
	unlink(fixture_path(g.dir, "checkpoint.key"));
	gate_refused(&g, "missing");
	g.more.accept_damage = true;
	a_run(&g, 5, 1);
	gate_verified(&g);
	fixture_remove(g.dir);
}

static void a_folder_in_memory_is_refused(void **state)
{
	struct gate g;
	struct err err = {0};
	struct auditor_conf conf = {.dir = "/dev/shm", .origin = "test/log", .build = "test"};

	(void)state;
	CHECK_INT("tmpfs", -1, place_check_fs("/dev/shm", &err));
	CHECK_INT("said", 1, strstr(err.msg, "unsafe_fs") != NULL);
	CHECK_INT("the auditor", 1, auditor_open(&conf, &err) == NULL);
	gate_init(&g);
	CHECK_INT("absent", -1, place_check_fs(fixture_path(g.dir, "absent"), &err));
	fixture_remove(g.dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stop_is_signed),
		cmocka_unit_test(checkpoints_are_on_record),
		cmocka_unit_test(a_checkpoint_alone_is_nothing_new),
		cmocka_unit_test(a_log_cut_below_its_checkpoint_is_damage),
		cmocka_unit_test(a_torn_tail_above_its_checkpoint_is_none),
		cmocka_unit_test(the_key_belongs_to_the_log),
		cmocka_unit_test(another_key_is_not_taken_for_the_logs),
		cmocka_unit_test(a_log_that_was_put_back_is_noticed),
		cmocka_unit_test(anchors_hold_every_checkpoint),
		cmocka_unit_test(a_log_written_anew_is_not_the_one_that_was_anchored),
		cmocka_unit_test(the_tree_goes_on_over_segments_and_runs),
		cmocka_unit_test(a_new_key_is_signed_by_the_old_one),
		cmocka_unit_test(who_reads_is_on_record),
		cmocka_unit_test(a_clock_that_is_set_is_on_record),
		cmocka_unit_test(too_little_room_is_on_record),
		cmocka_unit_test(checkpoints_that_fail_alarm_and_then_seal),
		cmocka_unit_test(accepted_damage_is_kept_and_on_record),
		cmocka_unit_test(a_lost_key_can_be_accepted),
		cmocka_unit_test(a_folder_in_memory_is_refused),
	};
	struct err err;

	if (note_init(&err) < 0)
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
