/*
 * signing_priv.h - the auditor's key, and what it has signed.
 *
 * In the folder of keys (the log's own, or another): checkpoint.key (0600),
 * checkpoint.vkey, and the newest checkpoint.  The newest checkpoint is in the
 * log's folder as well.  A size lower than one that was signed is never signed.
 *
 * Publishing: each checkpoint is appended to a file outside, and told to syslog,
 * if that was asked for.  What cannot be told is counted and told by an alarm.
 */
#ifndef AUDIT_SIGNING_PRIV_H
#define AUDIT_SIGNING_PRIV_H

#include "audit/note_priv.h"
#include "audit/tree_priv.h"
#include "gate/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIGNING_KNOWN_MAX 3

/* A checkpoint that the log must agree with. */
struct signing_known {
	uint64_t size;
	struct hash root;
	const char *where; /* for messages */
};

struct signing_conf {
	const char *keys;        /* folder; NULL: the log's */
	const char *anchor_file; /* NULL: none */
	bool syslog;
};

struct signing {
	struct note_signer signer;
	char vkey[NOTE_VKEY_MAX];
	char origin[LINE_ORIGIN_MAX + 1];
	int log_fd, keys_fd; /* keys_fd may be log_fd */
	int anchor_fd, syslog_fd;
	bool syslog; /* was asked for */
	struct signing_known known[SIGNING_KNOWN_MAX];
	size_t known_count;
	uint64_t last_size; /* never sign less */
	uint64_t anchored;  /* size of the newest that the anchor file has on disk */
	uint64_t sent;      /* size of the newest that syslog took, since this start */
	unsigned unpublished;
	struct err trouble; /* why the last one was not published */
};

void signing_init(struct signing *s); /* so that it may be closed */

/*
 * Opens the folders, the key and what is known.  A missing key is made if `fresh`
 * (the log has signed nothing); else ERR_INPUT.  log_fd is kept, not taken.
 */
int signing_open(struct signing *s, int log_fd, const struct signing_conf *conf, const char *origin,
		 bool fresh, struct err *err);
void signing_close(struct signing *s);

/*
 * Signs the tree, keeps the checkpoint on disk, then publishes it.  signature:
 * of the note.  -1: it could not be kept; nothing was published.
 */
int signing_checkpoint(struct signing *s, const struct tree *tree,
		       char signature[NOTE_SIGNATURE_MAX], struct err *err);

/* What both keys sign when the key changes: origin, "key rotation", the new key. */
void signing_rotation_text(struct buf *out, const char *origin, const char *vkey);

/* Makes the next key and keeps it as checkpoint.key.new; the old one still signs. */
int signing_prepare_next(struct signing *s, struct note_signer *ret, struct err *err);
/* The next key becomes the key. */
int signing_take_next(struct signing *s, const struct note_signer *next, struct err *err);

/* If checkpoint.key is not `vkey` but checkpoint.key.new is (a crash between): takes it. */
int signing_match(struct signing *s, const char *vkey, struct err *err);

#endif
