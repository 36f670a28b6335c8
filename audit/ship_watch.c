/*
 * ship_watch.c - what a log cannot say of itself: that nobody writes it any more, that it
 * was altered, that it cannot be read.  Sinks that take alarms are told by who ships.
 *
 * An auditor holds the file `lock` for as long as it lives.  One that has ended without
 * gate_stop was killed, or has sealed the log, which is full or broken; after a seal one
 * start follows the other, so a look alone says nothing, only some that agree.
 */
#include "audit/requests_priv.h"
#include "audit/sink_priv.h"

#include "gate/base/auto.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#define LOOK_MS  600
#define AGREE    5    /* looks */
#define AGAIN_MS 5000 /* what could not be told is tried again */

static bool somebody_writes(const struct ship_watch *w)
{
	auto_fd int dir_fd = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return dir_fd >= 0 && log_is_written(dir_fd);
}

static struct saying *add(struct ship_watch *w, const char *cause)
{
	struct saying *s;

	if (w->count == WATCH_SAYINGS) {
		memmove(w->waiting, w->waiting + 1, sizeof(w->waiting) - sizeof(*w->waiting));
		w->count--;
	}
	s = &w->waiting[w->count++];
	*s = (struct saying){.cause = cause};
	snprintf(s->log, sizeof(s->log), "%s", w->log);
	clock_format(clock_unix_ns(), s->began);
	return s;
}

void ship_watch_say(struct ship_watch *w, const char *cause, const char *text)
{
	struct saying *s = add(w, cause);

	snprintf(s->text, sizeof(s->text), "%s", text);
}

static void say_unwritten(struct ship_watch *w)
{
	struct saying *s = add(w, "unwritten");
	struct statfs fs;
	unsigned long long room = 0;

	if (statfs(w->dir, &fs) == 0)
		room = (unsigned long long)fs.f_bavail * (unsigned long long)fs.f_bsize;
	snprintf(s->text, sizeof(s->text),
		 "nobody writes the log, and its last record is no gate_stop: it is sealed, or its "
		 "auditor was killed; %llu bytes are free there",
		 room);
	memcpy(w->since, s->began, sizeof(w->since));
}

static void say_written(struct ship_watch *w)
{
	struct saying *s = add(w, "unwritten");

	memcpy(s->ended, s->began, sizeof(s->ended));
	memcpy(s->began, w->since, sizeof(s->began));
	snprintf(s->text, sizeof(s->text), "the log is in order again");
	*w->since = '\0';
}

void ship_watch_look(struct ship_watch *w, bool ended)
{
	uint64_t now = clock_boot_ms();

	if (!*w->log || now < w->look_at_ms)
		return; /* of a log that never was, nothing is missed */
	w->look_at_ms = now + LOOK_MS;
	w->held = somebody_writes(w) ? w->held + 1 : 0;
	if (w->held >= AGREE || (!w->held && ended))
		w->unheld = 0;
	else if (!w->held)
		w->unheld++;
	if (!*w->since && w->unheld >= AGREE)
		say_unwritten(w);
	else if (*w->since && !w->unheld)
		say_written(w);
}

bool ship_watch_send(struct ship_watch *w, const struct sink_ops *ops, const struct sink_conf *conf,
		     const struct sink_dialer *dialer)
{
	struct err ignored = {0};
	uint64_t now = clock_boot_ms();
	struct sink *s;

	if (!w->count || now < w->send_at_ms)
		return !w->count;
	w->send_at_ms = now + AGAIN_MS;
	s = ops->open(conf, dialer, w->waiting[0].log, &ignored);
	if (!s)
		return false;
	while (w->count && ops->say(s, &w->waiting[0], &ignored) == 0) {
		memmove(w->waiting, w->waiting + 1, sizeof(w->waiting) - sizeof(*w->waiting));
		w->count--;
	}
	ops->close(s);
	if (!w->count)
		w->send_at_ms = 0;
	return !w->count;
}
