/* The log's file system fills up: what is refused when, what is still written, what is told. */
#include "audit/auditor_priv.h"
#include "gate/base/clock.h"
#include "tests/unit/audit/running.h"
#include "tests/unit/check.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLENTY 1000000
#define WARN   100000
#define LOW    50000
#define KEPT   10000

/* Free bytes, for all processes of the test; 0: what the file system really has. */
static uint64_t *room;

/* What file system it is; 0: what it really is. */
static unsigned magic;

int __real_fstatfs64(int fd, struct statfs *ret);
int __wrap_fstatfs64(int fd, struct statfs *ret);

int __wrap_fstatfs64(int fd, struct statfs *ret)
{
	int result = __real_fstatfs64(fd, ret);

	if (magic)
		ret->f_type = magic;
	if (room && *room) {
		ret->f_bsize = 1;
		ret->f_bavail = *room;
	}
	return result;
}

static void begin(struct gate *g)
{
	gate_init(g);
	g->more.warn_free_bytes = WARN;
	g->more.low_free_bytes = LOW;
	g->more.reserve_bytes = KEPT;
	*room = PLENTY;
}

struct refusal {
	int calls;
	bool granted, low;
	struct audit_client *c;
};

static void on_answer(void *arg, const struct audit_receipt *receipt)
{
	struct refusal *r = arg;

	r->calls++;
	r->granted = receipt != NULL;
	r->low = audit_client_low(r->c);
}

static struct refusal ask(struct audit_client *c, unsigned n, const char *op)
{
	struct record r = fixture_decision(n, "allow");
	struct refusal answer = {.c = c};

	r.op = op;
	CHECK_INT("asked", 0, audit_require(c, &r, on_answer, &answer));
	for (uint64_t end = clock_boot_ms() + PATIENCE_MS; !answer.calls;) {
		worker_turn(c, 10);
		CHECK_INT("answered in time", 1, clock_boot_ms() < end);
	}
	CHECK_INT("once", 1, answer.calls);
	return answer;
}

static void little_room_refuses_launches_only(void **state)
{
	struct audit_client *c;
	struct gate g;

	(void)state;
	begin(&g);
	gate_start(&g);
	c = worker_start(&g);
	CHECK_INT("plenty", 1, ask(c, 1, "container.create").granted);
	*room = LOW - 1;
	gate_until_log_says(&g, 1, "\"cause\":\"space_low\"");
	for (unsigned n = 10; n < 13; n++) {
		struct refusal r = ask(c, n, "container.create");

		CHECK_INT("launch", 0, r.granted);
		CHECK_INT("says why", 1, r.low);
	}
	CHECK_INT("start", 0, ask(c, 20, "container.start").granted);
	CHECK_INT("stop", 1, ask(c, 21, "container.stop").granted);
	CHECK_INT("kill", 1, ask(c, 22, "container.kill").granted);
	CHECK_INT("remove", 1, ask(c, 23, "container.remove").granted);
	CHECK_INT("a denial is recorded", 1, worker_decide(c, 24, "deny").granted);
	*room = PLENTY;
	gate_until_log_says(&g, 2, "\"cause\":\"space_low\"");
	CHECK_INT("launch again", 1, ask(c, 30, "container.create").granted);
	audit_client_destroy(c);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	CHECK_INT("how many", 1, gate_log_count(&g, "\"refused\":4,\"free_bytes\":1000000"));
	CHECK_INT("when", 2, gate_log_count(&g, ",\"ended\":\"20")); /* of warn, of low */
	gate_verified(&g);
	fixture_remove(g.dir);
}

static void the_reserve_takes_the_last_words(void **state)
{
	struct audit_client *c;
	struct record r;
	struct gate g;
	struct stat st;

	(void)state;
	begin(&g);
	gate_start(&g);
	c = worker_start(&g);
	CHECK_INT("one is open", 1, ask(c, 1, "container.create").granted);
	CHECK_INT("kept", 0, stat(fixture_path(g.dir, "reserve"), &st));
	CHECK_INT("its size", KEPT, st.st_size);
	*room = KEPT - 1;
	gate_until_log_says(&g, 1, "\"cause\":\"space_reserve\"");
	CHECK_INT("not even a stop", 0, ask(c, 2, "container.stop").granted);
	worker_outcome(c, 1);
	CHECK_INT("status", AUDITOR_SEALED, gate_wait(&g));
	CHECK_INT("given up", 0, stat(fixture_path(g.dir, "reserve"), &st));
	CHECK_INT("its size", 0, st.st_size);
	CHECK_INT("the outcome is there", 1, gate_log_count(&g, "\"type\":\"outcome\""));
	CHECK_INT("sealed, and how many", 1, gate_log_count(&g, "\"refused\":1,\"free"));
	gate_verified(&g);
	gate_refused(&g, "in reserve");
	for (uint64_t end = clock_boot_ms() + PATIENCE_MS; audit_client_up(c);) {
		worker_turn(c, 10);
		CHECK_INT("noticed", 1, clock_boot_ms() < end);
	}
	r = fixture_decision(3, "allow");
	for (int i = 0; i < 5; i++)
		CHECK_INT("no log", -1, audit_require(c, &r, on_answer, NULL));
	*room = PLENTY;
	gate_start(&g);
	audit_client_attach(c, gate_connect(&g));
	worker_until_up(c);
	CHECK_INT("as before", 1, ask(c, 4, "container.create").granted);
	audit_client_destroy(c);
	CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
	CHECK_INT("its end", 1, gate_log_count(&g, "there is room for the reserve again"));
	CHECK_INT("refused meanwhile", 1, gate_log_count(&g, "\"cause\":\"log\",\"began\":\"20"));
	CHECK_INT("how many", 1, gate_log_count(&g, ",\"refused\":5,"));
	gate_verified(&g);
	fixture_remove(g.dir);
}

/* Full, over quota, over a limit of the process: the segment is not ended without a next. */
static void no_room_for_another_segment(void **state)
{
	static const int errors[] = {ENOSPC, EDQUOT, EFBIG};

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		struct audit_client *c;
		struct gate g;
		unsigned n = 1;

		begin(&g);
		g.segment_bytes = 16384;
		g.fault = (struct fault){FAULT_FALLOCATE, 0, true, FAULT_ERROR, errors[i]};
		gate_start(&g);
		c = worker_start(&g);
		while (audit_client_up(c) && worker_decide(c, n, "deny").granted)
			CHECK_INT("it ends", 1, n++ < 1000);
		CHECK_INT("many", 1, n > 20);
		CHECK_INT("status", AUDITOR_SEALED, gate_wait(&g));
		CHECK_INT("one segment", 0, gate_log_count(&g, "\"type\":\"log_seal\""));
		CHECK_INT("why", 2, gate_log_count(&g, "\"cause\":\"space_reserve\""));
		gate_verified(&g);
		audit_client_destroy(c);
		g.fault = (struct fault){0};
		gate_start(&g);
		c = worker_start(&g);
		CHECK_INT("goes on", 1, worker_decide(c, 2000, "deny").granted);
		audit_client_destroy(c);
		CHECK_INT("status", AUDITOR_STOPPED, gate_stop(&g));
		CHECK_INT("in another", 1, gate_log_count(&g, "\"type\":\"log_seal\""));
		gate_verified(&g);
		fixture_remove(g.dir);
	}
}

/* --- a real file system that is full --- */

static void write_text(const char *path, const char *text)
{
	fixture_write(path, text, strlen(text));
}

static void mount_with(const char *dir, const char *options)
{
	char map[64];
	uid_t uid = getuid();

	if (unshare(CLONE_NEWNS) < 0) {
		CHECK_INT("a namespace of our own", 0, unshare(CLONE_NEWUSER | CLONE_NEWNS));
		snprintf(map, sizeof(map), "0 %u 1", uid);
		write_text("/proc/self/uid_map", map);
	}
	CHECK_INT("private", 0, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	CHECK_INT("mount", 0, mount("small", dir, "tmpfs", 0, options));
}

static void fill(const char *dir)
{
	static const char zeros[4096];
	int fd = open(fixture_path(dir, "others"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK_INT("open", 1, fd >= 0);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	close(fd);
}

static void in_a_small_file_system(struct gate *g)
{
	struct audit_client *c;
	unsigned n = 1;

	mount_with(g->dir, "size=2m");
	g->segment_bytes = 262144;
	g->more.reserve_bytes = 262144;
	g->more.low_free_bytes = g->more.warn_free_bytes = 524288;
	*room = 0;
	gate_start(g);
	c = worker_start(g);
	CHECK_INT("open", 1, ask(c, n++, "container.create").granted);
	fill(g->dir);
	gate_until_log_says(g, 1, "\"cause\":\"space_reserve\"");
	worker_outcome(c, 1);
	CHECK_INT("sealed", AUDITOR_SEALED, gate_wait(g));
	gate_verified(g);
	CHECK_INT("the outcome is there", 1, gate_log_count(g, "\"type\":\"outcome\""));
	gate_refused(g, "in reserve");
	unlink(fixture_path(g->dir, "others"));
	audit_client_destroy(c);
	gate_start(g);
	c = worker_start(g);
	CHECK_INT("as before", 1, ask(c, 100, "container.create").granted);
	audit_client_destroy(c);
	CHECK_INT("stopped", AUDITOR_STOPPED, gate_stop(g));
	CHECK_INT("its end", 1, gate_log_count(g, "there is room for the reserve again"));
	gate_verified(g);
	/* Read-only, as ext4 makes itself after an error. */
	gate_start(g);
	c = worker_start(g);
	CHECK_INT("before", 1, worker_decide(c, 200, "deny").granted);
	CHECK_INT("read-only", -1,
		  mount(NULL, g->dir, NULL, MS_REMOUNT | MS_RDONLY, NULL)); /* files are open */
	CHECK_INT("not while it is written to", EBUSY, errno);
	audit_client_destroy(c);
	CHECK_INT("stopped", AUDITOR_STOPPED, gate_stop(g));
	CHECK_INT("read-only", 0, mount(NULL, g->dir, NULL, MS_REMOUNT | MS_RDONLY, NULL));
	gate_refused(g, "Read-only file system");
}

static void a_full_file_system_is_survived(void **state)
{
	struct gate g;
	int status;
	pid_t pid;

	(void)state;
	begin(&g);
	pid = fork();
	if (pid == 0) {
		in_a_small_file_system(&g);
		_exit(0); /* a failed check leaves by itself, with another status */
	}
	CHECK_INT("waited", pid, waitpid(pid, &status, 0));
	CHECK_INT("status", 0, status);
	fixture_remove(g.dir);
}

/* A file system that cannot take another file: no inodes, no descriptors. */
static void in_few_files(struct gate *g, const char *options, bool no_descriptors)
{
	const struct rlimit few = {3, 3};
	struct audit_client *c;
	unsigned n = 1;

	mount_with(g->dir, options);
	*room = PLENTY;
	g->segment_bytes = 16384;
	g->more.reserve_bytes = KEPT;
	gate_start(g);
	c = worker_start(g);
	if (no_descriptors)
		CHECK_INT("no more", 0, prlimit(g->pid, RLIMIT_NOFILE, &few, NULL));
	while (audit_client_up(c) && worker_decide(c, n, "deny").granted)
		CHECK_INT("it ends", 1, n++ < 2000);
	CHECK_INT("many", 1, n > 20);
	CHECK_INT("sealed, not killed", AUDITOR_SEALED, gate_wait(g));
	gate_verified(g);
	CHECK_INT("all that was granted is there", n - 1,
		  gate_log_count(g, "\"type\":\"decision\""));
	audit_client_destroy(c);
}

static void no_more_files_is_as_no_room(void **state)
{
	static const struct {
		const char *label, *options;
		bool no_descriptors;
	} cases[] = {
		{"inodes", "size=64m,nr_inodes=24", false},
		{"descriptors", "size=64m", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct gate g;
		int status;
		pid_t pid;

		begin(&g);
		pid = fork();
		if (pid == 0) {
			in_few_files(&g, cases[i].options, cases[i].no_descriptors);
			_exit(0);
		}
		CHECK_INT("waited", pid, waitpid(pid, &status, 0));
		CHECK_INT(cases[i].label, 0, status);
		fixture_remove(g.dir);
	}
}

/* By the number that statfs() gives; a log is not lost because somebody mounted it so. */
static void file_systems_that_lose_what_was_synced_are_refused(void **state)
{
	static const struct {
		unsigned magic;
		const char *said; /* NULL: it is taken */
	} cases[] = {
		{0x01021994, "tmpfs"}, {0x858458f6, "ramfs"}, {0x6969, "nfs"},
		{0x517B, "smb"},       {0xFE534D42, "smb"},   {0xFF534D42, "cifs"},
		{0x01021997, "9p"},    {0x5346414F, "afs"},   {0x00C36400, "ceph"},
		{0x65735546, "fuse"},  {0xEF53, NULL},        {0x58465342, NULL},
		{0x9123683E, NULL},    {0x2FC12FC1, NULL},    {0x794C7630, NULL},
	};
	struct auditor_conf conf = {.origin = "test/log", .segment_bytes = 65536, .build = "test"};
	struct auditor *a;
	struct gate g;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct err err = {0};
		char label[32];

		gate_init(&g);
		*room = 0;
		conf.dir = g.dir;
		magic = cases[i].magic;
		snprintf(label, sizeof(label), "%08x", magic);
		conf.unsafe_fs = false;
		a = auditor_open(&conf, &err);
		CHECK_INT(label, cases[i].said == NULL, a != NULL);
		CHECK_INT(label, 1, !cases[i].said || strstr(err.msg, cases[i].said) != NULL);
		if (a)
			auditor_close(a);
		conf.unsafe_fs = true;
		a = auditor_open(&conf, &err);
		CHECK_INT("unless it is said", 1, a != NULL);
		auditor_close(a);
		magic = 0;
		fixture_remove(g.dir);
	}
}

static int told; /* alarms */
static char told_last[600];

static void tell(const char *text)
{
	told++;
	snprintf(told_last, sizeof(told_last), "%s", text);
}

/* What the log can hold no more is told outside all the same. */
static void a_sealed_log_still_alarms(void **state)
{
	struct record r = {.type = RECORD_LOG_ALARM, .cause = "prune", .text = "it cannot be"};
	struct err err = {0};
	struct auditor *a;
	struct gate g;

	(void)state;
	begin(&g);
	a = auditor_open(&(struct auditor_conf){.dir = g.dir,
						.origin = "test/log",
						.segment_bytes = 65536,
						.unsafe_fs = true,
						.tell = tell,
						.build = "test"},
			 &err);
	CHECK_INT("open", 1, a != NULL);
	CHECK_INT("nothing yet", 0, told);
	auditor_add_own(a, &r);
	CHECK_STR("told", "log_alarm, prune: it cannot be", told_last);
	err_set(&err, ERR_SYSTEM, "a broken disk");
	audit_log_seal(a->log, &err);
	r.text = "it is too late";
	auditor_add_own(a, &r);
	CHECK_STR("told", "log_alarm, prune: it is too late", told_last);
	CHECK_INT("twice", 2, told);
	auditor_close(a);
	CHECK_INT("not on record", 0, gate_log_count(&g, "too late"));
	fixture_remove(g.dir);
}

/* The names are those of operations. */
static void what_ends_is_an_operation(void **state)
{
	static const char *const known[] = {
#define OPERATION(id, name, class, group, doc) name,
#include "rules/operations.def"
#undef OPERATION
	};

	(void)state;
	for (const char *const *name = auditor_ending_operations; *name; name++) {
		size_t i = 0;

		while (i < sizeof(known) / sizeof(*known) && strcmp(known[i], *name) != 0)
			i++;
		CHECK_INT(*name, 1, i < sizeof(known) / sizeof(*known));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(little_room_refuses_launches_only),
		cmocka_unit_test(the_reserve_takes_the_last_words),
		cmocka_unit_test(no_room_for_another_segment),
		cmocka_unit_test(a_full_file_system_is_survived),
		cmocka_unit_test(no_more_files_is_as_no_room),
		cmocka_unit_test(file_systems_that_lose_what_was_synced_are_refused),
		cmocka_unit_test(a_sealed_log_still_alarms),
		cmocka_unit_test(what_ends_is_an_operation),
	};

	room = mmap(NULL, sizeof(*room), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert(room != MAP_FAILED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
