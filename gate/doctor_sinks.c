/* doctor_sinks.c - how far the log's sinks are, whether pruning overtakes them, and its anchor. */
#include "gate/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char lost_why[] = "They are in no other place now.";
static const char near_why[] = "What is removed before it was shipped is lost to it.";
static const char mend[] =
	"See that `sallyport audit ship` runs, and what it says; keep the log longer "
	"(log { retention = ... }) until it has caught up.";

/* Three quarters of what the log may have: the oldest segment is the next to go. */
static bool is_near(const struct retention *keep, const struct sink_lag *lag)
{
	if (!lag->needs_oldest || keep->mode == RETENTION_FOREVER ||
	    keep->mode == RETENTION_EVIDENCE)
		return false;
	return (keep->bytes && lag->log_bytes >= keep->bytes / 4 * 3) ||
	       (keep->days && lag->oldest_days * 4 >= (int64_t)keep->days * 3);
}

static void check_sink(struct findings *f, const struct sink_conf *sink)
{
	const struct retention *keep = &f->config->auditor.retention;
	struct sink_lag lag;
	struct err err = {0};

	if (sink_lag(f->config->auditor.dir, sink, &lag, &err) < 0)
		finding_add(f, FINDING_NOTE, "", "Run doctor as a user who may read it.",
			    "how far sink '%s' is cannot be seen: %s", sink->name, err.msg);
	else if (lag.lost)
		finding_add(f, FINDING_WEAK, lost_why, mend,
			    "%" PRIu64 " records behind %" PRIu64
			    " were removed from the log before sink '%s' had them",
			    lag.lost, lag.seq, sink->name);
	else if (is_near(keep, &lag))
		finding_add(f, FINDING_WEAK, near_why, mend,
			    "sink '%s' still needs the oldest segment of the log, which is soon "
			    "to be removed",
			    sink->name);
	else if (!lag.known)
		finding_add(f, FINDING_NOTE, "", mend, "sink '%s' has not got a record yet",
			    sink->name);
	else
		finding_add(f, FINDING_FINE, "", "", "sink '%s' has records up to %" PRIu64,
			    sink->name, lag.seq);
}

/* The auditor makes the file, but not the folder. */
static void check_anchor(struct findings *f)
{
	const char *file = f->config->auditor.anchor_file,
		   *slash = file ? strrchr(file, '/') : NULL;
	char folder[4096];
	struct stat st;

	if (!slash || slash == file)
		return;
	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - file), file);
	if (stat(folder, &st) < 0)
		finding_add(
			f, FINDING_WEAK,
			"Without it the gate does not start, or checkpoints are kept in the log's "
			"folder alone.",
			"Make it, for the auditor's user to write, best on another host's disk.",
			"the anchor's folder %s cannot be looked at: %s", folder, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		finding_add(f, FINDING_WEAK, "", "Name a file in a folder in log { anchors }.",
			    "the anchor's folder %s is no folder", folder);
	else
		finding_add(f, FINDING_FINE, "", "", "the anchor's folder %s is there", folder);
}

void doctor_sinks(struct findings *f)
{
	check_anchor(f);
	for (size_t i = 0; i < f->config->sink_count; i++)
		check_sink(f, &f->config->sinks[i]);
}
