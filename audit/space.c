/*
 * space.c - what the auditor does as the log's file system fills up.
 *
 *	warn      it is told
 *	low       launches and the like are refused; what stops or removes still passes
 *	reserve   the file `reserve` is cut to nothing, which makes room for outcomes and
 *	          alarms; no decision is taken any more, and then the log is sealed
 *
 * Both ends of a stage are on record, with how much was refused in it.  After the last
 * one nobody can write: the next auditor starts when there is room for the reserve again,
 * and tells the end.
 */
#include "audit/auditor_priv.h"
#include "audit/state.h"

#include "gate/base/auto.h"
#include "gate/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#define RESERVE_FILE "reserve"
#define LAST_MS      10000 /* for outcomes, once the reserve is given up */

const char *const auditor_ending_operations[] = {
	"container.stop",   "container.kill",
	"container.remove", "container.pause",
	"container.wait",   "container.prune",
	"image.remove",     "image.prune",
	"network.remove",   "network.disconnect",
	"network.prune",    "volume.remove",
	"volume.prune",     NULL,
};

static const struct {
	const char *cause, *began, *ended;
} texts[SPACE_STAGES] = {
	[SPACE_WARN] = {"space", "the file system of the log runs out of room",
			"there is room for the log again"},
	[SPACE_LOW] = {"space_low", "so little room that only what stops or removes is taken",
		       "there is room for all requests again"},
	[SPACE_RESERVE] = {"space_reserve", "no room but the reserve: no decision is taken",
			   "there is room for the reserve again"},
};

static bool free_bytes(const struct auditor *a, uint64_t *ret)
{
	struct statfs fs;

	if (fstatfs(a->log->dir_fd, &fs) < 0)
		return false;
	*ret = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
	return true;
}

int auditor_space_init(struct auditor *a, const struct auditor_conf *conf, struct err *err)
{
	struct space *s = &a->space;
	auto_fd int fd = -1;
	struct stat st;
	uint64_t free;
	int error;

	s->stages[SPACE_WARN].limit = conf->warn_free_bytes;
	s->stages[SPACE_LOW].limit = conf->low_free_bytes;
	s->stages[SPACE_RESERVE].limit = conf->reserve_bytes;
	if (!conf->reserve_bytes)
		return 0;
	fd = openat(a->log->dir_fd, RESERVE_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, "open the log's file " RESERVE_FILE);
	audit_log_preallocate(fd, conf->reserve_bytes, &error);
	if (!error && free_bytes(a, &free) && free < conf->reserve_bytes)
		error = ENOSPC; /* it would be given up at once */
	if (error) {
		if (st.st_size == 0)
			(void)ftruncate(fd, 0); /* still given up, so that its end is told */
		errno = error;
		return err_sys(err, "keep %llu bytes in reserve for the audit log",
			       (unsigned long long)conf->reserve_bytes);
	}
	s->was_given_up = st.st_size == 0 && a->log->writer.epoch > 1;
	return 0;
}

enum moment { STAGE_BEGAN = 0, STAGE_ENDED, STAGE_SEALED };

static void tell(struct auditor *a, enum space_stage stage, enum moment moment)
{
	char *began = a->space.stages[stage].began, ended[CLOCK_TEXT_MAX];
	struct record r = {.type = RECORD_LOG_ALARM,
			   .cause = texts[stage].cause,
			   .text = moment == STAGE_ENDED   ? texts[stage].ended
				   : moment == STAGE_BEGAN ? texts[stage].began
							   : "there is no room: the log is sealed",
			   .began = began,
			   .refused = a->space.stages[stage].refused};

	if (!free_bytes(a, &r.free_bytes))
		r.free_bytes = 0;
	if (moment == STAGE_ENDED) {
		clock_format(clock_unix_ns(), ended);
		r.ended = ended;
	}
	auditor_add_own(a, &r);
}

void auditor_space_back(struct auditor *a)
{
	if (a->space.was_given_up)
		tell(a, SPACE_RESERVE, STAGE_ENDED);
}

static void begin(struct auditor *a, enum space_stage stage)
{
	a->space.stages[stage].refused = 0;
	clock_format(clock_unix_ns(), a->space.stages[stage].began);
	tell(a, stage, STAGE_BEGAN);
}

static void watch(struct auditor *a, enum space_stage stage, uint64_t free)
{
	bool little = free < a->space.stages[stage].limit;

	if (little == (*a->space.stages[stage].began != '\0'))
		return;
	if (little) {
		begin(a, stage);
		return;
	}
	tell(a, stage, STAGE_ENDED);
	*a->space.stages[stage].began = '\0';
}

void auditor_watch_space(struct auditor *a)
{
	uint64_t free;

	if (auditor_sealed(a) || a->space.seal_at_ms || !free_bytes(a, &free))
		return;
	watch(a, SPACE_WARN, free);
	watch(a, SPACE_LOW, free);
	if (free < a->space.stages[SPACE_RESERVE].limit)
		auditor_space_gone(a);
}

void auditor_space_gone(struct auditor *a)
{
	auto_fd int fd = -1;

	if (a->space.seal_at_ms || auditor_sealed(a))
		return;
	if (!a->space.stages[SPACE_RESERVE].limit) {
		audit_log_seal(a->log, &a->why);
		return;
	}
	a->space.seal_at_ms = a->now_ms + LAST_MS;
	fd = openat(a->log->dir_fd, RESERVE_FILE, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, 0) == 0)
		(void)fsync(fd); /* the room is there when the file system says so */
	begin(a, SPACE_RESERVE);
}

void auditor_space_say(struct auditor *a)
{
	const struct space *s = &a->space;

	audit_state_set(a->state, auditor_sealed(a)              ? AUDIT_SEALED
				  : s->seal_at_ms                ? AUDIT_RESERVE
				  : *s->stages[SPACE_LOW].began  ? AUDIT_LOW
				  : *s->stages[SPACE_WARN].began ? AUDIT_WARN
								 : AUDIT_UP);
}

void auditor_space_end(struct auditor *a)
{
	struct err err = {0};

	if (!a->space.seal_at_ms || auditor_sealed(a) ||
	    (a->open.count && a->now_ms < a->space.seal_at_ms))
		return;
	for (int stage = SPACE_LOW; stage < SPACE_STAGES; stage++)
		if (*a->space.stages[stage].began)
			tell(a, (enum space_stage)stage, STAGE_SEALED);
	auditor_commit(a);
	auditor_checkpoint(a, false);
	errno = ENOSPC;
	err_sys(&err, "the audit log has no room for more than its last records");
	a->why = err;
	audit_log_seal(a->log, &err);
}

static bool ends_something(struct span op)
{
	for (const char *const *name = auditor_ending_operations; *name; name++)
		if (span_is(op, *name))
			return true;
	return false;
}

bool auditor_space_refuses(struct auditor *a, struct span body)
{
	enum space_stage stage = a->space.seal_at_ms ? SPACE_RESERVE : SPACE_LOW;

	if (!*a->space.stages[stage].began ||
	    (stage == SPACE_LOW && ends_something(record_peek_str(body, "op"))))
		return false;
	a->space.stages[stage].refused++;
	return true;
}
