#include "audit/verify_priv.h"

#include "audit/files_priv.h"
#include "audit/signing_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADS_BYTES_MAX (16u << 20)

/* --- checkpoints --- */

static int by_size(const void *left, const void *right)
{
	const struct verify_head *a = left, *b = right;

	return a->note.size < b->note.size ? -1 : a->note.size > b->note.size;
}

static bool make_head_room(struct verify_tree *t)
{
	size_t room = t->head_room ? t->head_room * 2 : 16;
	struct verify_head *more;

	if (t->head_count < t->head_room)
		return true;
	more = room > VERIFY_HEADS_MAX ? NULL : realloc(t->heads, room * sizeof(*more));
	if (!more)
		return false;
	t->heads = more;
	t->head_room = room;
	return true;
}

static int add_heads(struct verifier *v, struct span text, bool own)
{
	struct verify_tree *t = &v->t;
	struct checkpoint note;

	while (note_next(&text, &note)) {
		if (!make_head_room(t))
			return verify_bad(v, VERIFY_UNREADABLE, "too many checkpoints");
		t->heads[t->head_count++] = (struct verify_head){note, own};
	}
	return text.len == 0 ? 0
			     : verify_bad(v, VERIFY_UNREADABLE, "%s is no checkpoint",
					  own ? "the file checkpoint" : "what was given by --from");
}

static int check_forks(struct verifier *v)
{
	const struct verify_head *h = v->t.heads;

	for (size_t i = 1; i < v->t.head_count; i++)
		if (h[i - 1].note.size == h[i].note.size &&
		    span_eq(h[i - 1].note.origin, h[i].note.origin) &&
		    memcmp(&h[i - 1].note.root, &h[i].note.root, HASH_BYTES) != 0) {
			v->seq = h[i].note.size;
			return verify_bad(
				v, VERIFY_CUT,
				"two checkpoints of %llu records differ: the log was forked",
				(unsigned long long)h[i].note.size);
		}
	return 0;
}

int verify_tree_open(struct verifier *v)
{
	struct verify_tree *t = &v->t;
	struct err err = {0};

	buf_init(&t->heads_text, HEADS_BYTES_MAX);
	buf_init(&t->own_text, NOTE_CHECKPOINT_MAX);
	if (note_init(&err) < 0 ||
	    file_take(v->dir_fd, "checkpoint", false, &t->own_text, &err) < 0)
		return verify_bad(v, VERIFY_UNREADABLE, "%s", err.msg);
	if (add_heads(v, buf_span(&t->own_text), true) < 0)
		return -1;
	v->report->has_checkpoint = t->head_count > 0;
	if (v->options->from) {
		buf_puts(&t->heads_text, v->options->from);
		if (add_heads(v, buf_span(&t->heads_text), false) < 0)
			return -1;
	}
	if (t->head_count)
		qsort(t->heads, t->head_count, sizeof(*t->heads), by_size);
	return check_forks(v);
}

void verify_tree_close(struct verifier *v)
{
	free(v->t.heads);
	free(v->t.keys);
	buf_fini(&v->t.heads_text);
	buf_fini(&v->t.own_text);
}

/* All checkpoints of a tree that is reached. */
static int check_heads(struct verifier *v)
{
	struct verify_tree *t = &v->t;

	for (; t->head_next < t->head_count && t->heads[t->head_next].note.size <= t->tree.size;
	     t->head_next++) {
		const struct verify_head *h = &t->heads[t->head_next];
		struct hash root = tree_root(&t->tree);

		if (!span_is(h->note.origin, v->origin) && *v->origin)
			return verify_bad(v, h->own ? VERIFY_ALTERED : VERIFY_CUT,
					  "%s is of the log %.*s",
					  h->own ? "the file checkpoint" : "the checkpoint",
					  SPAN_FMT(h->note.origin));
		if (h->note.size < t->tree.size) {
			v->report->heads_pruned++; /* before the first record that is kept */
			continue;
		}
		if (memcmp(&root, &h->note.root, sizeof(root)) != 0)
			return verify_bad(v, h->own ? VERIFY_ALTERED : VERIFY_CUT,
					  "the records before it are not those of %s",
					  h->own ? "the file checkpoint"
						 : "the checkpoint that was given: the log was "
						   "rewritten");
		v->report->heads_fine++;
	}
	return 0;
}

/* --- keys --- */

static const struct note_key *key_now(const struct verifier *v)
{
	return v->t.key_count ? &v->t.keys[v->t.key_count - 1] : NULL;
}

static int add_key(struct verifier *v, const struct note_key *key)
{
	struct note_key *more = v->t.key_count == VERIFY_KEYS_MAX
					? NULL
					: realloc(v->t.keys, (v->t.key_count + 1) * sizeof(*more));

	if (!more)
		return verify_bad(v, VERIFY_UNREADABLE, "too many keys");
	v->t.keys = more;
	v->t.keys[v->t.key_count++] = *key;
	return 0;
}

/* Each segment begins with the key that signs. */
static int check_segment_key(struct verifier *v, const struct line *line)
{
	struct span text = record_peek_str(line->body, "key");
	const struct note_key *now = key_now(v);
	struct note_key key;

	if (!text.len)
		return now ? verify_bad(v, VERIFY_ALTERED, "the segment names no key") : 0;
	if (!note_key_parse(text, &key))
		return verify_bad(v, VERIFY_ALTERED, "what it names is no key");
	if (!now)
		return add_key(v, &key);
	if (!note_key_same(now, &key))
		return verify_bad(v, VERIFY_ALTERED, "another key signs, and none said so before");
	return 0;
}

static int check_rotation(struct verifier *v, const struct line *line)
{
	struct span text = record_peek_str(line->body, "key");
	const struct note_key *now = key_now(v);
	char vkey[NOTE_VKEY_MAX];
	struct note_key key;
	struct buf said;
	bool good;

	if (!note_key_parse(text, &key) || text.len >= sizeof(vkey))
		return verify_bad(v, VERIFY_ALTERED, "what it names is no key");
	snprintf(vkey, sizeof(vkey), "%.*s", SPAN_FMT(text));
	buf_init(&said, NOTE_CHECKPOINT_MAX);
	signing_rotation_text(&said, v->origin, vkey);
	good = (!now || note_signed_by(now, buf_span(&said), record_peek_str(line->body, "sig"))) &&
	       note_signed_by(&key, buf_span(&said), record_peek_str(line->body, "proof"));
	buf_fini(&said);
	if (!good)
		return verify_bad(v, VERIFY_ALTERED, "the new key is not signed by the one before");
	return add_key(v, &key);
}

/* --- records about the tree --- */

static bool says_root(const struct line *line, const struct tree *tree)
{
	struct hash root = tree_root(tree), said;

	return hash_parse(record_peek_str(line->body, "root"), &said) == 0 &&
	       memcmp(&root, &said, sizeof(root)) == 0;
}

static int check_checkpoint(struct verifier *v, const struct line *line)
{
	const struct note_key *now = key_now(v);
	struct hash root = tree_root(&v->t.tree);
	struct buf text;
	bool good;

	if (record_peek_uint(line->body, "size") != v->seq || !says_root(line, &v->t.tree))
		return verify_bad(v, VERIFY_ALTERED,
				  "the checkpoint is not of the records before it");
	if (!now)
		return verify_bad(v, VERIFY_ALTERED, "a checkpoint of nobody's key");
	buf_init(&text, NOTE_CHECKPOINT_MAX);
	checkpoint_text(&text, v->origin, v->seq, &root);
	good = note_signed_by(now, buf_span(&text), record_peek_str(line->body, "sig"));
	buf_fini(&text);
	if (!good)
		return verify_bad(v, VERIFY_ALTERED,
				  "the checkpoint is not signed by the log's key");
	v->report->checkpoints++;
	v->report->signed_size = v->seq;
	v->t.signer = v->t.key_count;
	return 0;
}

/* The first segment may have others before it that were pruned: its first line says what they were.
 */
static int check_edge(struct verifier *v, const struct line *line)
{
	struct tree edge;

	if (v->seq == 0)
		return 0;
	if (!tree_edge_parse(record_peek_array(line->body, "edge"), v->seq, &edge))
		return verify_bad(v, VERIFY_ALTERED,
				  "it does not say the edge of the tree before it");
	if (v->report->records == 0) {
		v->t.tree = v->t.edge = edge;
		v->orphans = record_peek_uint(line->body, "open");
	} else if (!tree_same(&edge, &v->t.tree)) {
		return verify_bad(v, VERIFY_ALTERED,
				  "the edge is not that of the records before it");
	}
	return 0;
}

static int check_prune(struct verifier *v, const struct line *line)
{
	uint64_t size = record_peek_uint(line->body, "size");

	if (size > v->t.pruned_to)
		v->t.pruned_to = size;
	if (v->t.edge.size && size == v->t.edge.size && !says_root(line, &v->t.edge))
		return verify_bad(v, VERIFY_ALTERED,
				  "what was pruned is not what the first segment goes on from");
	return 0;
}

int verify_tree_line(struct verifier *v, const struct line *line, enum record_type type)
{
	int result = 0;

	if (type == RECORD_LOG_OPEN && (check_edge(v, line) < 0 || check_segment_key(v, line) < 0))
		return -1;
	if (v->t.head_next < v->t.head_count && check_heads(v) < 0)
		return -1;
	if (type == RECORD_CHECKPOINT)
		result = check_checkpoint(v, line);
	else if (type == RECORD_KEY_ROTATE)
		result = check_rotation(v, line);
	else if (type == RECORD_LOG_PRUNE)
		result = check_prune(v, line);
	else if (type == RECORD_LOG_SEAL && record_peek_str(line->body, "root").len &&
		 !says_root(line, &v->t.tree))
		result = verify_bad(v, VERIFY_ALTERED, "log_seal says another root");
	if (result == 0)
		tree_add(&v->t.tree, &line->hash, NULL);
	return result;
}

/* --- the end --- */

/* The place of the key that signed it, from 1; 0: none of the log's did. */
static size_t signer_of(const struct verifier *v, const struct checkpoint *note)
{
	for (size_t i = v->t.key_count; i > 0; i--)
		if (checkpoint_signed_by(note, &v->t.keys[i - 1]))
			return i;
	return 0;
}

static int check_signers(struct verifier *v)
{
	struct verify_tree *t = &v->t;

	for (size_t i = 0; i < t->head_count; i++) {
		const struct verify_head *h = &t->heads[i];
		size_t signer = signer_of(v, &h->note);

		if (!signer)
			return verify_bad(v, VERIFY_ALTERED, "%s is not signed by the log's key",
					  h->own ? "the file checkpoint"
						 : "the checkpoint that was given");
		if (h->note.size < v->report->signed_size)
			continue;
		v->report->signed_size = h->note.size;
		t->signer = signer;
	}
	return 0;
}

static int check_witness(struct verifier *v)
{
	struct verify_report *r = v->report;
	struct note_key key;
	uint64_t time_s;

	if (!v->options || !v->options->witness)
		return 0;
	if (!note_witness_parse(span_of(v->options->witness), &key))
		return verify_bad(v, VERIFY_UNREADABLE, "that is no key of a witness");
	for (size_t i = 0; i < v->t.head_count; i++) {
		const struct checkpoint *note = &v->t.heads[i].note;

		if (note->size >= r->witnessed && checkpoint_cosigned_by(note, &key, &time_s)) {
			r->witnessed = note->size;
			r->witnessed_s = time_s;
		}
	}
	return r->witnessed ? 0
			    : verify_bad(v, VERIFY_CUT,
					 "none of the checkpoints was cosigned by this witness");
}

/*
 * It, or one that it announced, must have signed last.  That another has announced it says
 * nothing of that other: anybody can, with a proof that stands in every copy of the log.
 */
static int check_given_key(struct verifier *v)
{
	struct note_key key;

	if (!v->options->key)
		return 0;
	if (!note_key_parse(span_of(v->options->key), &key))
		return verify_bad(v, VERIFY_UNREADABLE, "what --key gives is no key");
	for (size_t i = 0; i < v->t.signer; i++)
		if (note_key_same(&v->t.keys[i], &key))
			return 0;
	return verify_bad(v, VERIFY_ALTERED, "the log is not signed by the key that was given");
}

int verify_tree_end(struct verifier *v)
{
	const struct verify_tree *t = &v->t;

	if (check_heads(v) < 0 || check_witness(v) < 0)
		return -1;
	if (t->head_next < t->head_count)
		return verify_bad(v, VERIFY_CUT, "the log ends here, and %s is of %llu records",
				  t->heads[t->head_next].own ? "the file checkpoint"
							     : "the checkpoint that was given",
				  (unsigned long long)t->heads[t->head_next].note.size);
	if (check_signers(v) < 0 || check_given_key(v) < 0)
		return -1;
	if (t->edge.size && t->pruned_to < t->edge.size)
		return verify_bad(v, VERIFY_GAP,
				  "the records before %llu are missing, and no log_prune says so",
				  (unsigned long long)t->edge.size);
	if (t->key_count)
		note_key_format(&t->keys[t->key_count - 1], v->report->key);
	v->report->root = tree_root(&t->tree);
	v->report->first_seq = t->edge.size;
	return 0;
}
