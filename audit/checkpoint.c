#include "audit/auditor_priv.h"

#include <stdio.h>

#define LEAST_MS 200    /* between two checkpoints that are due because of their records */
#define LIMIT_MS 600000 /* without one for so long the log is sealed */

/* Records that no checkpoint covers; the record of the newest one does not count. */
static uint64_t uncovered(const struct auditor *a)
{
	uint64_t size = a->log->tiles->tree.size;

	return size > a->covered ? size - a->covered : 0;
}

static void failed(struct auditor *a, const struct err *err)
{
	struct record r = {.type = RECORD_LOG_ALARM, .cause = "checkpoint", .text = err->msg};

	if (!a->unsigned_since_ms) {
		a->unsigned_since_ms = a->now_ms;
		auditor_add_own(a, &r);
	} else if (a->now_ms - a->unsigned_since_ms > LIMIT_MS) {
		a->why = *err;
		audit_log_seal(a->log, &a->why);
	}
}

static void tell_published(struct auditor *a)
{
	struct record r = {.type = RECORD_LOG_ALARM,
			   .cause = "anchor",
			   .count = a->signing.unpublished,
			   .text = a->signing.trouble.msg};

	if (a->signing.unpublished == 0) {
		a->unpublished_told = false;
		return;
	}
	a->signing.unpublished = 0;
	if (a->unpublished_told)
		return;
	a->unpublished_told = true;
	auditor_add_own(a, &r);
}

static void tell_signed(struct auditor *a, const char *signature)
{
	struct record r = {
		.type = RECORD_CHECKPOINT, .size = a->log->tiles->tree.size, .sig = signature};
	struct hash root = tree_root(&a->log->tiles->tree);
	char hex[HASH_HEX_LEN + 1], id[NOTE_ID_HEX];

	hash_hex(&root, hex);
	note_id_hex(&a->signing.signer.key, id);
	r.root = hex;
	r.key = id;
	auditor_add_own(a, &r);
}

void auditor_checkpoint(struct auditor *a, bool record)
{
	char signature[NOTE_SIGNATURE_MAX];
	struct err err = {0};

	if (auditor_sealed(a) || !uncovered(a))
		return;
	auditor_commit(a);
	if (auditor_sealed(a))
		return;
	a->checkpoint_at_ms = a->now_ms + a->checkpoint_ms;
	a->checkpoint_was_ms = a->now_ms;
	if (signing_checkpoint(&a->signing, &a->log->tiles->tree, signature, &err) < 0) {
		failed(a, &err);
		return;
	}
	a->unsigned_since_ms = 0;
	a->covered = a->log->tiles->tree.size;
	if (!record)
		return;
	a->covered++;
	tell_signed(a, signature);
	tell_published(a);
}

bool auditor_checkpoint_due(const struct auditor *a)
{
	uint64_t count = a->checkpoint_ms ? uncovered(a) : 0;

	if (!count)
		return false;
	return a->now_ms >= a->checkpoint_at_ms ||
	       (count >= a->checkpoint_records && a->now_ms >= a->checkpoint_was_ms + LEAST_MS);
}
