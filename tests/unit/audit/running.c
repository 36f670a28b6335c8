#include "tests/unit/audit/running.h"

#include "audit/auditor.h"
#include "audit/wire_priv.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "tests/unit/audit/faults.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct auditor_conf conf_of(const struct gate *g)
{
	struct auditor_conf conf = g->more;

	conf.dir = g->dir;
	conf.origin = "test/log";
	conf.segment_bytes = g->segment_bytes;
	conf.flush_ms = g->flush_ms;
	conf.claim_ms = g->claim_ms;
	conf.build = "test";
	conf.unsafe_fs = true; /* wherever temporary files are */
	return conf;
}

void gate_refused(const struct gate *g, const char *why)
{
	const struct auditor_conf conf = conf_of(g);
	struct err err = {0};
	struct auditor *a = auditor_open(&conf, &err);

	auditor_close(a);
	CHECK_INT(why, 1, a == NULL);
	if (!strstr(err.msg, why))
		fail_msg("it says \"%s\", not \"%s\"", err.msg, why);
}

static void child(const struct gate *g, int control, int syncs_fd)
{
	const struct auditor_conf conf = conf_of(g);
	struct err err = {0};
	struct auditor *a = auditor_open(&conf, &err);
	int status, syncs;

	if (!a) {
		fprintf(stderr, "auditor: %s\n", err.msg);
		_exit(98);
	}
	faults_set(g->fault);
	status = auditor_run(a, control);
	syncs = faults_calls(FAULT_FDATASYNC);
	if (write(syncs_fd, &syncs, sizeof(syncs)) != (ssize_t)sizeof(syncs))
		_exit(97);
	if ((status == AUDITOR_STOPPED) != (auditor_why(a)[0] == '\0'))
		_exit(96);
	auditor_close(a);
	_exit(status);
}

void gate_start(struct gate *g)
{
	struct err err = {0};
	int pair[2], syncs[2];

	CHECK_INT("pair", 0, io_pair(pair, &err));
	CHECK_INT("pipe", 0, pipe2(syncs, O_CLOEXEC));
	g->pid = fork();
	if (g->pid == 0) {
		close(pair[0]);
		child(g, pair[1], syncs[1]);
	}
	close(pair[1]);
	close(syncs[1]);
	g->control = pair[0];
	g->syncs_fd = syncs[0];
}

void gate_init(struct gate *g)
{
	*g = (struct gate){.flush_ms = 5, .claim_ms = 60000, .segment_bytes = 1 << 20};
	fixture_dir(g->dir);
}

int gate_wait(struct gate *g)
{
	int status;

	CHECK_INT("waitpid", g->pid, waitpid(g->pid, &status, 0));
	close(g->syncs_fd);
	if (g->control >= 0)
		close(g->control);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int gate_stop(struct gate *g)
{
	close(g->control);
	g->control = -1;
	return gate_wait(g);
}

void gate_kill(struct gate *g)
{
	kill(g->pid, SIGKILL);
	CHECK_INT("killed", 1000 + SIGKILL, gate_wait(g));
}

/* A new connection to the auditor. */
int gate_connect(struct gate *g)
{
	return gate_connect_as(g, 'w');
}

int gate_connect_as(struct gate *g, char tag)
{
	struct err err = {0};
	int pair[2];

	CHECK_INT("pair", 0, io_pair(pair, &err));
	CHECK_INT("non-blocking", 0, io_nonblock(pair[0], &err));
	CHECK_INT("send", 0, io_send_fds(g->control, tag, &pair[1], 1, &err));
	close(pair[1]);
	return pair[0];
}

/* --- workers --- */

/* One turn of a worker's loop. */
void worker_turn(struct audit_client *c, int wait_ms)
{
	struct pollfd p = {.fd = audit_client_fd(c), .events = POLLIN};

	audit_client_flush(c);
	p.events = (short)(POLLIN | (audit_client_waiting(c) ? POLLOUT : 0));
	if (poll(&p, 1, wait_ms) > 0)
		audit_client_read(c);
	audit_client_tick(c, clock_boot_ms());
}

void worker_until_up(struct audit_client *c)
{
	for (uint64_t end = clock_boot_ms() + PATIENCE_MS; !audit_client_up(c);) {
		worker_turn(c, 10);
		CHECK_INT("up in time", 1, clock_boot_ms() < end);
	}
}

struct audit_client *worker_start(struct gate *g)
{
	struct audit_client *c = audit_client_create();

	assert_non_null(c);
	audit_client_attach(c, gate_connect(g));
	worker_until_up(c);
	return c;
}

void worker_answered(void *arg, const struct audit_receipt *receipt)
{
	struct asked *a = arg;

	a->calls++;
	a->granted = receipt != NULL;
	if (receipt)
		a->mark = (struct audit_mark){receipt->seq, receipt->hash};
}

/* Asks and waits for the answer. */
struct asked worker_decide(struct audit_client *c, unsigned n, const char *verdict)
{
	const struct record r = fixture_decision(n, verdict);
	struct asked asked = {0};

	if (audit_require(c, &r, worker_answered, &asked) < 0)
		return asked;
	for (uint64_t end = clock_boot_ms() + PATIENCE_MS; !asked.calls;) {
		worker_turn(c, 10);
		CHECK_INT("answered in time", 1, clock_boot_ms() < end);
	}
	return asked;
}

void worker_outcome(struct audit_client *c, unsigned n)
{
	const struct record r = fixture_outcome(n);

	CHECK_INT("tell", 0, audit_tell(c, &r));
	audit_client_flush(c);
}

struct verify_report gate_verified(const struct gate *g)
{
	struct verify_report report;

	verify_log(g->dir, NULL, &report);
	CHECK_STR("verify", "", report.what);
	CHECK_INT("verify", VERIFY_FINE, report.result);
	return report;
}

void gate_check_anchor(const struct gate *g, const struct audit_mark *mark)
{
	const struct verify_anchor anchor = {mark->seq, mark->hash};
	struct verify_report report;

	verify_log(g->dir, &(struct verify_options){.receipt = &anchor}, &report);
	CHECK_STR("anchor", "", report.what);
	CHECK_INT("anchor", VERIFY_FINE, report.result);
}

/* All lines of the log, one after the other (malloc). */
char *gate_whole_log(const struct gate *g)
{
	int dir_fd = open(g->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *all = calloc(1, 1), name[SEGMENT_NAME_MAX];
	struct segments segments;
	struct err err = {0};

	CHECK_INT("list", 0, segments_list(dir_fd, &segments, &err));
	for (size_t i = 0; i < segments.count; i++) {
		size_t len, old = strlen(all);
		char *bytes;

		segment_name(segments.first[i], name);
		bytes = fixture_read(fixture_path(g->dir, name), &len);
		len = strlen(bytes);
		all = realloc(all, old + len + 1);
		memcpy(all + old, bytes, len + 1);
		free(bytes);
	}
	segments_free(&segments);
	close(dir_fd);
	return all;
}

int gate_log_count(const struct gate *g, const char *text)
{
	char *all = gate_whole_log(g);
	int count = 0;

	for (const char *at = all; (at = strstr(at, text)); at++)
		count++;
	free(all);
	return count;
}

/* Waits until the log says text so often. */
void gate_until_log_says(const struct gate *g, int want, const char *text)
{
	const struct timespec pause = {0, 2000000};

	for (uint64_t end = clock_boot_ms() + PATIENCE_MS; gate_log_count(g, text) < want;) {
		nanosleep(&pause, NULL);
		if (clock_boot_ms() > end)
			fail_msg("the log does not say %s", text);
	}
	CHECK_INT(text, want, gate_log_count(g, text));
}
