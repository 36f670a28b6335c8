/* Whatever the disk does: what was acknowledged is in the log, and an error seals it. */
#include "tests/unit/audit/faults.h"
#include "tests/unit/audit/fixture.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEGMENT  16384
#define GROUPS   8
#define IN_GROUP 3

/* The records that were acknowledged, also by a child that died. */
struct acked {
	int fd; /* a file of struct audit_mark */
};

static void ack(const struct acked *acked, const struct audit_mark *mark)
{
	if (write(acked->fd, mark, sizeof(*mark)) != (ssize_t)sizeof(*mark))
		abort();
}

static int commit_group(struct audit_log *l, unsigned n, const struct acked *acked)
{
	struct audit_mark marks[IN_GROUP];
	struct err err = {0};
	struct buf body;

	buf_init(&body, RECORD_BODY_MAX);
	for (unsigned i = 0; i < IN_GROUP; i++) {
		const struct record r = fixture_decision(n * IN_GROUP + i, "deny");

		buf_clear(&body);
		record_write(&body, &r);
		if (audit_log_add(l, buf_span(&body), &marks[i]) < 0)
			abort();
	}
	buf_fini(&body);
	if (audit_log_commit(l, &err) < 0) {
		if (!l->sealed || err.kind == ERR_NONE)
			abort();
		return -1;
	}
	for (unsigned i = 0; i < IN_GROUP; i++)
		ack(acked, &marks[i]);
	return 0;
}

/*
 * Opens, writes groups with a rotation among them, and ends at the first error.
 * Returns the log, sealed or not, or NULL if it could not be opened.
 */
static struct audit_log *scenario(const char *dir, bool rotate, const struct acked *acked)
{
	const struct audit_log_conf conf = {
		.dir = dir, .origin = "test/log", .segment_bytes = SEGMENT};
	const struct record start = {.type = RECORD_GATE_START};
	struct record r = start;
	struct audit_log_found found;
	struct open_set set;
	struct audit_log *l;
	struct err err = {0};

	open_set_init(&set, 100);
	l = audit_log_open(&conf, &set, &found, &err);
	if (!l || audit_log_add_own(l, &r) < 0 || audit_log_commit(l, &err) < 0)
		return l;
	for (unsigned n = 0; n < GROUPS; n++) {
		if (commit_group(l, n, acked) < 0)
			break;
		if (rotate && n % 3 == 1 && audit_log_rotate(l, &set, &err) < 0)
			break;
	}
	open_set_fini(&set);
	return l;
}

/* Every acknowledged record stands in some file with its hash. */
static void check_acked_are_there(const char *label, const char *dir, const struct acked *acked)
{
	struct verify_anchor anchor;
	struct verify_report report;
	struct audit_mark mark;

	CHECK_INT(label, 0, lseek(acked->fd, 0, SEEK_SET));
	while (read(acked->fd, &mark, sizeof(mark)) == (ssize_t)sizeof(mark)) {
		anchor = (struct verify_anchor){mark.seq, mark.hash};
		verify_log(dir, &(struct verify_options){.receipt = &anchor}, &report);
		CHECK_STR(label, "", report.what);
		CHECK_INT(label, VERIFY_FINE, report.result);
	}
	CHECK_INT(label, 0, ftruncate(acked->fd, 0));
	CHECK_INT(label, 0, lseek(acked->fd, 0, SEEK_SET));
}

/* After any fault a new auditor can open the log, and it is whole. */
static void check_recovers(const char *label, const char *dir, const struct acked *acked)
{
	struct verify_report report;

	faults_set((struct fault){0});
	audit_log_close(scenario(dir, false, acked));
	verify_log(dir, NULL, &report);
	CHECK_STR(label, "", report.what);
	CHECK_INT(label, VERIFY_FINE, report.result);
	CHECK_INT(label, 0, report.torn_tail);
	check_acked_are_there(label, dir, acked);
}

static struct acked acked_make(void)
{
	char path[] = "/tmp/sallyport-acked-XXXXXX";
	struct acked acked = {mkstemp(path)};

	assert_true(acked.fd >= 0);
	unlink(path);
	return acked;
}

static void short_writes_are_completed(void **state)
{
	static const size_t sizes[] = {1, 7, 100, 511, 512, 4096};
	struct acked acked = acked_make();

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		char dir[FIXTURE_PATH];
		struct audit_log *l;

		fixture_dir(dir);
		faults_set((struct fault){0});
		faults_short_writes(sizes[i]);
		l = scenario(dir, true, &acked);
		assert_non_null(l);
		CHECK_INT("not sealed", 0, l->sealed);
		audit_log_close(l);
		faults_short_writes(0);
		check_recovers("short writes", dir, &acked);
		fixture_remove(dir);
	}
	close(acked.fd);
}

/* How many calls of a kind the scenario makes when all goes well. */
static int count_calls(int calls)
{
	struct acked acked = acked_make();
	char dir[FIXTURE_PATH];
	int sum = 0;

	fixture_dir(dir);
	faults_set((struct fault){0});
	audit_log_close(scenario(dir, true, &acked));
	for (int call = 1; call < FAULT_ANY; call *= 2)
		if (calls & call)
			sum += faults_calls(call);
	fixture_remove(dir);
	close(acked.fd);
	return sum;
}

static int writes_and_syncs(void)
{
	return faults_calls(FAULT_PWRITEV) + faults_calls(FAULT_FDATASYNC) +
	       faults_calls(FAULT_FSYNC);
}

/* One error, and the next try would go well: there is no next try. */
static void one_error_seals_for_ever(void **state)
{
	static const struct {
		const char *label;
		enum fault_call call;
		int error;
	} cases[] = {
		{"pwritev EIO", FAULT_PWRITEV, EIO},
		{"pwritev ENOSPC", FAULT_PWRITEV, ENOSPC},
		{"pwritev EDQUOT", FAULT_PWRITEV, EDQUOT},
		{"pwritev EFBIG", FAULT_PWRITEV, EFBIG},
		{"pwritev EROFS", FAULT_PWRITEV, EROFS},
		{"fdatasync EIO", FAULT_FDATASYNC, EIO},
		{"fdatasync EROFS", FAULT_FDATASYNC, EROFS},
		{"fdatasync EINTR", FAULT_FDATASYNC, EINTR},
		{"fdatasync ENOSPC", FAULT_FDATASYNC, ENOSPC},
		{"fsync EIO", FAULT_FSYNC, EIO},
		{"rename EIO", FAULT_RENAME, EIO},
		{"rename ENOSPC", FAULT_RENAME, ENOSPC},
		{"rename EROFS", FAULT_RENAME, EROFS},
		{"fallocate EIO", FAULT_FALLOCATE, EIO},
		{"ftruncate EIO", FAULT_FTRUNCATE, EIO},
	};
	struct acked acked = acked_make();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int calls = count_calls(cases[i].call);

		CHECK_INT(cases[i].label, 1, calls > 0);
		for (int n = 0; n < calls; n++) {
			char dir[FIXTURE_PATH];
			struct audit_log *l;
			struct open_set set;
			struct err err = {0};
			int before;

			fixture_dir(dir);
			faults_set((struct fault){.calls = cases[i].call,
						  .after = n,
						  .effect = FAULT_ERROR,
						  .error = cases[i].error});
			l = scenario(dir, true, &acked);
			if (l) {
				CHECK_INT(cases[i].label, 1, l->sealed);
				before = writes_and_syncs();
				open_set_init(&set, 1);
				CHECK_INT(cases[i].label, -1, audit_log_commit(l, &err));
				CHECK_INT(cases[i].label, -1, audit_log_rotate(l, &set, &err));
				CHECK_INT(cases[i].label, -1, audit_log_check(l, &err));
				CHECK_INT(cases[i].label, before, writes_and_syncs());
				CHECK_INT(cases[i].label, cases[i].error, err.sys);
				open_set_fini(&set);
			}
			audit_log_close(l);
			check_recovers(cases[i].label, dir, &acked);
			fixture_remove(dir);
		}
	}
	close(acked.fd);
}

static void run_and_die(const char *dir, struct fault f, const struct acked *acked)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		faults_set(f);
		scenario(dir, true, acked);
		_exit(0);
	}
	CHECK_INT("waitpid", pid, waitpid(pid, &status, 0));
	CHECK_INT("it died where it should", 99, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* A process that ends at any call, or in the middle of a write. */
static void death_at_every_call(void **state)
{
	static const enum fault_effect effects[] = {FAULT_DIE, FAULT_HALF_DIE};
	struct acked acked = acked_make();

	(void)state;
	for (int e = 0; e < 2; e++) {
		int calls = effects[e] == FAULT_DIE ? FAULT_ANY : FAULT_PWRITEV;
		int count = count_calls(calls);

		CHECK_INT("enough places to die", 1, count > 10);
		for (int n = 0; n < count; n++) {
			char dir[FIXTURE_PATH], label[64];
			struct fault f = {.calls = calls, .after = n, .effect = effects[e]};

			snprintf(label, sizeof(label), "%s at call %d",
				 e ? "half a write" : "death", n);
			fixture_dir(dir);
			run_and_die(dir, f, &acked);
			check_recovers(label, dir, &acked);
			fixture_remove(dir);
		}
	}
	close(acked.fd);
}

/* --- power loss: only what was synced is sure to be there --- */

static char shadow_path[FIXTURE_PATH * 2];

static void copy_file(int fd)
{
	static char bytes[SEGMENT * 2];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	int out;

	if (n < 0)
		return; /* a directory */
	out = open(shadow_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (out < 0 || write(out, bytes, (size_t)n) != n)
		abort();
	close(out);
}

/* The file as synced, with some sectors of what was written later. */
static void lose_power(const char *path, unsigned seed)
{
	size_t len, old_len;
	char *now = fixture_read(path, &len), *old = fixture_read(shadow_path, &old_len);

	srand(seed);
	for (size_t at = 0; at < len; at += 512) {
		size_t n = len - at < 512 ? len - at : 512;

		if (rand() % 2 && at + n <= old_len)
			memcpy(now + at, old + at, n);
	}
	fixture_write(path, now, len);
	free(now);
	free(old);
}

static bool opens(const char *dir)
{
	const struct audit_log_conf conf = {
		.dir = dir, .origin = "test/log", .segment_bytes = SEGMENT};
	struct audit_log_found found;
	struct open_set set;
	struct audit_log *l;
	struct err err = {0};

	open_set_init(&set, 100);
	l = audit_log_open(&conf, &set, &found, &err);
	open_set_fini(&set);
	if (!l)
		CHECK_INT(err.msg, ERR_INPUT, err.kind);
	audit_log_close(l);
	return l != NULL;
}

static void die_without_rotation(const char *dir, int n, const struct acked *acked)
{
	pid_t pid = fork();

	if (pid == 0) {
		faults_on_sync = copy_file;
		faults_set(
			(struct fault){.calls = FAULT_FDATASYNC, .after = n, .effect = FAULT_DIE});
		scenario(dir, false, acked);
		_exit(0);
	}
	CHECK_INT("waitpid", pid, waitpid(pid, NULL, 0));
}

static void power_loss_keeps_what_was_acknowledged(void **state)
{
	struct acked acked = acked_make();
	int opened = 0;

	(void)state;
	for (unsigned seed = 0; seed < 60; seed++) {
		char dir[FIXTURE_PATH], path[FIXTURE_PATH * 2];

		fixture_dir(dir);
		snprintf(path, sizeof(path), "%s/00000000000000000000.log", dir);
		snprintf(shadow_path, sizeof(shadow_path), "%s/shadow", dir);
		die_without_rotation(dir, 1 + (int)(seed % GROUPS), &acked);
		lose_power(path, seed);
		/* A hole before a whole line is for a person to look at; else it must open. */
		if (opens(dir)) {
			opened++;
			check_recovers("power loss", dir, &acked);
		}
		CHECK_INT("forget", 0, ftruncate(acked.fd, 0));
		CHECK_INT("forget", 0, lseek(acked.fd, 0, SEEK_SET));
		fixture_remove(dir);
	}
	CHECK_INT("most open", 1, opened > 20);
	close(acked.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_writes_are_completed),
		cmocka_unit_test(one_error_seals_for_ever),
		cmocka_unit_test(death_at_every_call),
		cmocka_unit_test(power_loss_keeps_what_was_acknowledged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
