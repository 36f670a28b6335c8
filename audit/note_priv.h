/*
 * note_priv.h - signed notes and checkpoints as C2SP has them (signed-note,
 * tlog-checkpoint), with Ed25519 by libsodium.
 *
 *	ORIGIN\nSIZE\nROOT\n\n— NAME SIGNATURE\n
 *
 * Keys are written as Go's golang.org/x/mod/sumdb/note writes them, so that other
 * tools can read ours and we theirs.
 */
#ifndef AUDIT_NOTE_PRIV_H
#define AUDIT_NOTE_PRIV_H

#include "audit/line_priv.h"
#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/hash.h"

#include <stdbool.h>
#include <stdint.h>

#define NOTE_VKEY_MAX       (LINE_ORIGIN_MAX + 80) /* with the NUL */
#define NOTE_SKEY_MAX       (NOTE_VKEY_MAX + 16)
#define NOTE_SIGNATURE_MAX  96 /* base64 of 4 + 64 bytes, with the NUL */
#define NOTE_ROOT_TEXT      48 /* base64 of a hash, with the NUL */
#define NOTE_CHECKPOINT_MAX (2 * LINE_ORIGIN_MAX + 256)
#define NOTE_ID_HEX         9 /* with the NUL */

struct note_key { /* the public half */
	char name[LINE_ORIGIN_MAX + 1];
	unsigned char id[4];
	unsigned char bytes[32];
};

struct note_signer {
	struct note_key key;
	unsigned char secret[64];
};

/* Once, before a process is confined. */
int note_init(struct err *err);

/* A log's name as a key's: these know no '+'. */
void note_name(const char *origin, char out[LINE_ORIGIN_MAX + 1]);

void note_signer_make(const char *name, struct note_signer *ret);
void note_signer_wipe(struct note_signer *s);

/* "NAME+ID+KEY" and "PRIVATE+KEY+NAME+ID+KEY" */
void note_key_format(const struct note_key *key, char out[NOTE_VKEY_MAX]);
bool note_key_parse(struct span text, struct note_key *ret);
void note_signer_format(const struct note_signer *s, char out[NOTE_SKEY_MAX]);
bool note_signer_parse(struct span text, struct note_signer *ret);
void note_id_hex(const struct note_key *key, char out[NOTE_ID_HEX]);
bool note_key_same(const struct note_key *a, const struct note_key *b);

/* The signature of a text that ends with a newline, as a signature line has it. */
void note_sign(const struct note_signer *s, struct span text, char out[NOTE_SIGNATURE_MAX]);
bool note_signed_by(const struct note_key *key, struct span text, struct span signature);

/* Appends the text, an empty line, and a signature line. */
void note_write(struct buf *out, struct span text, const char *name, const char *signature);

struct checkpoint {
	struct span origin; /* of the text it was read from */
	uint64_t size;
	struct hash root;
	struct span text;       /* what is signed */
	struct span signatures; /* the lines below */
};

void checkpoint_text(struct buf *out, const char *origin, uint64_t size, const struct hash *root);

/* False: it is no checkpoint.  Signatures are not looked at. */
bool checkpoint_parse(struct span note, struct checkpoint *ret);

/* A hash in base64. */
void note_hash_text(const struct hash *h, char out[NOTE_ROOT_TEXT]);

/*
 * Cuts the first checkpoint off a text of several, one behind the other.  False:
 * none is left; what is there may be cut short.
 */
bool note_next(struct span *rest, struct checkpoint *ret);

/*
 * Of a witness (C2SP tlog-cosignature, algorithm 4): it has seen this checkpoint, at that
 * second, and no log that the checkpoint does not go on from.
 */
bool note_witness_parse(struct span text, struct note_key *ret);
bool note_cosigned_by(const struct note_key *witness, struct span text, struct span signature,
		      uint64_t *ret_time_s);
bool checkpoint_cosigned_by(const struct checkpoint *c, const struct note_key *witness,
			    uint64_t *ret_time_s);

/* True if one of its signatures is this key's, and right. */
bool checkpoint_signed_by(const struct checkpoint *c, const struct note_key *key);

#endif
