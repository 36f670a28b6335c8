/*
 * outside.c - up to where the log is known outside of this host, for what is kept as evidence:
 * by the strongest that is configured.  A witness has signed that he saw it; an anchor file
 * is somewhere else, if its folder is; the system's log may have kept what was sent to it.
 */
#include "audit/auditor_priv.h"

#include "audit/history_priv.h"
#include "audit/witness.h"

#include <stdio.h>
#include <string.h>

int auditor_outside_init(struct auditor *a, const struct auditor_conf *conf, struct err *err)
{
	struct outside *o = &a->outside;

	*o = (struct outside){.by = OUTSIDE_NOWHERE};
	if (conf->witness_file)
		o->by = OUTSIDE_WITNESS;
	else if (conf->anchor_file)
		o->by = OUTSIDE_FILE;
	else if (conf->anchor_syslog)
		o->by = OUTSIDE_SYSLOG;
	if (conf->retention.mode != RETENTION_EVIDENCE)
		return 0;
	if (o->by == OUTSIDE_NOWHERE)
		return err_set(err, ERR_CONFIG,
			       "log: retention as evidence needs an anchor: a witness, an anchor "
			       "file, or at least syslog");
	o->witness = (struct witness_conf){.key = conf->witness_key, .file = conf->witness_file};
	snprintf(o->name, sizeof(o->name), "%s",
		 o->by == OUTSIDE_WITNESS ? conf->witness_file
		 : o->by == OUTSIDE_FILE  ? conf->anchor_file
					  : "syslog");
	return 0;
}

/* A cosigned checkpoint counts if it is of this very log. */
static uint64_t witnessed(struct auditor *a)
{
	struct outside *o = &a->outside;
	struct witness_kept kept;
	struct segments all;
	struct tree tree;
	struct hash root;
	struct err ignored = {0};

	if (witness_kept(&o->witness, a->log->writer.origin, &kept, &ignored) < 0)
		return o->witnessed;
	if (kept.size <= o->witnessed || kept.size > a->signing.last_size ||
	    segments_list(a->log->dir_fd, &all, &ignored) < 0)
		return o->witnessed;
	if (history_tree(a->log->dir_fd, &all, kept.size, &tree, &ignored) == 0) {
		root = tree_root(&tree);
		if (memcmp(&root, &kept.root, sizeof(root)) == 0)
			o->witnessed = kept.size;
	}
	segments_free(&all);
	return o->witnessed;
}

uint64_t auditor_outside(struct auditor *a)
{
	switch (a->outside.by) {
	case OUTSIDE_WITNESS:
		return witnessed(a);
	case OUTSIDE_FILE:
		return a->signing.anchored;
	case OUTSIDE_SYSLOG:
		return a->signing.sent;
	case OUTSIDE_NOWHERE:
		break;
	}
	return 0;
}

const char *auditor_outside_what(const struct auditor *a)
{
	static const char *const words[] = {
		[OUTSIDE_NOWHERE] = "nobody has a checkpoint",
		[OUTSIDE_WITNESS] = "the witness has signed a checkpoint",
		[OUTSIDE_FILE] = "the anchor file has a checkpoint",
		[OUTSIDE_SYSLOG] = "syslog was sent a checkpoint",
	};

	return words[a->outside.by];
}
