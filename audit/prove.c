#include "audit/prove.h"

#include "audit/files_priv.h"
#include "audit/history_priv.h"
#include "audit/note_priv.h"
#include "audit/prove_priv.h"
#include "gate/base/auto.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROOF_HASHES 128
#define TILE_BITS    8
#define KNOWN        4096 /* roots of subtrees that are kept in mind */

struct leaves { /* of tile 0/number, as far as it is there */
	struct hash hashes[TILE_HASHES];
	uint64_t number;
	bool any;
};

struct known {
	struct hash root;
	uint64_t number;
	unsigned bits; /* 0: nothing */
};

struct prover {
	int dir_fd;
	struct segments all;
	struct buf note; /* the newest checkpoint */
	struct checkpoint head;
	struct leaves leaves[2]; /* the last tile, which most proofs need, has a place of its own */
	struct known known[KNOWN];
	bool missing;
	struct hash proof[PROOF_HASHES];
	size_t count;
};

/* --- hashes of subtrees --- */

/* Records that no full tile has are read from the log. */
static const struct hash *leaves_of(struct prover *p, uint64_t number)
{
	uint64_t from = number * TILE_HASHES, until = from + TILE_HASHES;
	struct leaves *l = &p->leaves[number == (p->head.size - 1) / TILE_HASHES];

	if (l->any && l->number == number)
		return l->hashes;
	l->any = true;
	l->number = number;
	if (until > p->head.size)
		until = p->head.size;
	if (until - from == TILE_HASHES && tile_read(p->dir_fd, 0, number, l->hashes))
		return l->hashes;
	if (!history_leaves(p->dir_fd, &p->all, from, until, l->hashes))
		p->missing = true;
	return l->hashes;
}

static struct hash root_of_some(const struct hash *hashes, unsigned bits)
{
	struct tree t = {0};

	for (unsigned i = 0; i < 1u << bits; i++)
		tree_add(&t, &hashes[i], NULL);
	return t.edge[bits];
}

/* The root of a full subtree of 2^bits leaves; NOLINTNEXTLINE(misc-no-recursion): 64 deep at most
 */
static struct hash subtree(struct prover *p, unsigned bits, uint64_t number)
{
	unsigned level = bits / TILE_BITS, rest = bits % TILE_BITS;
	struct known *known = &p->known[(number * 64 + bits) % KNOWN];
	uint64_t first = number << rest;
	struct hash hashes[TILE_HASHES], left, right;

	if (level == 0)
		return root_of_some(&leaves_of(p, first / TILE_HASHES)[first % TILE_HASHES], rest);
	if (known->bits == bits && known->number == number)
		return known->root;
	if (tile_read(p->dir_fd, level, first / TILE_HASHES, hashes)) {
		left = root_of_some(&hashes[first % TILE_HASHES], rest);
	} else {
		left = subtree(p, bits - 1, number * 2);
		right = subtree(p, bits - 1, number * 2 + 1);
		left = tree_node(&left, &right);
	}
	*known = (struct known){left, number, bits};
	return left;
}

/* The largest power of two below count, which is at least 2. */
static unsigned split_bits(uint64_t count)
{
	return 63 - (unsigned)__builtin_clzll(count - 1);
}

/* NOLINTNEXTLINE(misc-no-recursion): 64 deep at most */
static struct hash range_root(struct prover *p, uint64_t from, uint64_t count)
{
	struct hash left, right;
	unsigned bits;

	if ((count & (count - 1)) == 0) {
		bits = (unsigned)__builtin_ctzll(count);
		return subtree(p, bits, from >> bits);
	}
	bits = split_bits(count);
	left = subtree(p, bits, from >> bits);
	right = range_root(p, from + (UINT64_C(1) << bits), count - (UINT64_C(1) << bits));
	return tree_node(&left, &right);
}

/* --- proofs, as RFC 6962, section 2.1, has them --- */

static void put_hash(struct prover *p, struct hash h)
{
	if (p->count < PROOF_HASHES)
		p->proof[p->count++] = h;
}

/* From the root down, so the hashes come in the opposite order. */
static void prove_inclusion(struct prover *p, uint64_t seq)
{
	uint64_t from = 0, count = p->head.size;
	struct hash path[TREE_LEVELS];
	size_t depth = 0;

	while (count > 1) {
		uint64_t left = UINT64_C(1) << split_bits(count);

		if (seq - from < left) {
			path[depth++] = range_root(p, from + left, count - left);
			count = left;
		} else {
			path[depth++] = range_root(p, from, left);
			from += left;
			count -= left;
		}
	}
	while (depth)
		put_hash(p, path[--depth]);
}

static void prove_growth(struct prover *p, uint64_t old)
{
	uint64_t from = 0, count = p->head.size;
	struct hash path[TREE_LEVELS];
	bool whole = true; /* the old tree is a full subtree on the left */
	size_t depth = 0;

	while (old != count) {
		uint64_t left = UINT64_C(1) << split_bits(count);

		if (old <= left) {
			path[depth++] = range_root(p, from + left, count - left);
			count = left;
		} else {
			path[depth++] = range_root(p, from, left);
			whole = false;
			from += left;
			old -= left;
			count -= left;
		}
	}
	if (!whole)
		put_hash(p, range_root(p, from, count));
	while (depth)
		put_hash(p, path[--depth]);
}

/* --- opening --- */

static int read_head(struct prover *p, const char *dir, struct err *err)
{
	int got = file_take(p->dir_fd, "checkpoint", false, &p->note, err);

	if (got < 0)
		return -1;
	if (got == 0)
		return err_set(err, ERR_CONFIG, "%s has no checkpoint yet", dir);
	if (!checkpoint_parse(buf_span(&p->note), &p->head) || p->head.size == 0)
		return err_set(err, ERR_INPUT, "the file checkpoint in %s is no checkpoint", dir);
	return 0;
}

static int fill_prover(struct prover *p, const char *dir, struct err *err)
{
	struct hash root;

	p->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->dir_fd < 0)
		return err_sys(err, "open %s", dir);
	if (note_init(err) < 0 || read_head(p, dir, err) < 0 ||
	    segments_list(p->dir_fd, &p->all, err) < 0)
		return -1;
	root = range_root(p, 0, p->head.size);
	if (p->missing || memcmp(&root, &p->head.root, sizeof(root)) != 0)
		return err_set(
			err, ERR_INPUT,
			"the log in %s is not that of its newest checkpoint; `sallyport audit "
			"verify` says more",
			dir);
	return 0;
}

struct prover *prover_open(const char *dir, struct err *err)
{
	struct prover *p = calloc(1, sizeof(*p));

	if (!p) {
		err_set(err, ERR_LIMIT, "no memory for a proof");
		return NULL;
	}
	p->dir_fd = -1;
	buf_init(&p->note, NOTE_CHECKPOINT_MAX);
	if (fill_prover(p, dir, err) == 0)
		return p;
	prover_close(p);
	return NULL;
}

void prover_close(struct prover *p)
{
	if (!p)
		return;
	if (p->dir_fd >= 0)
		close(p->dir_fd);
	segments_free(&p->all);
	buf_fini(&p->note);
	free(p);
}

const struct checkpoint *prover_head(const struct prover *p)
{
	return &p->head;
}

struct span prover_note(const struct prover *p)
{
	return buf_span(&p->note);
}

static int finish(struct prover *p, struct buf *out, struct err *err)
{
	char text[NOTE_ROOT_TEXT];

	if (p->missing)
		return err_set(err, ERR_INPUT,
			       "hashes of records that were pruned are missing from the tiles");
	for (size_t i = 0; i < p->count; i++) {
		note_hash_text(&p->proof[i], text);
		buf_printf(out, "%s\n", text);
	}
	buf_puts(out, "\n");
	buf_put(out, buf_span(&p->note).at, buf_len(&p->note));
	return buf_spent(out) ? err_set(err, ERR_LIMIT, "the proof is too long") : 0;
}

int prover_inclusion(struct prover *p, uint64_t seq, struct buf *out, struct err *err)
{
	if (seq >= p->head.size)
		return err_set(err, ERR_CONFIG,
			       "the newest checkpoint covers the first %llu records, so not this "
			       "one: if the log has it, try again when the next is signed",
			       (unsigned long long)p->head.size);
	p->count = 0;
	prove_inclusion(p, seq);
	buf_printf(out, "c2sp.org/tlog-proof@v1\nindex %llu\n", (unsigned long long)seq);
	return finish(p, out, err);
}

int prover_growth(struct prover *p, uint64_t old, struct buf *out, struct err *err)
{
	if (old > p->head.size)
		return err_set(err, ERR_CONFIG, "the newest checkpoint has only %llu records",
			       (unsigned long long)p->head.size);
	p->count = 0;
	if (old)
		prove_growth(p, old);
	buf_printf(out, "old %llu\n", (unsigned long long)old);
	return finish(p, out, err);
}

int log_checkpoint(const char *dir, struct buf *out, struct err *err)
{
	struct prover *p = prover_open(dir, err);

	if (!p)
		return -1;
	buf_put(out, buf_span(&p->note).at, buf_len(&p->note));
	prover_close(p);
	return 0;
}

int log_key(const char *dir, struct buf *out, struct err *err)
{
	auto_fd int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char vkey[NOTE_VKEY_MAX] = "";
	struct segments all;
	int result = 0;

	if (dir_fd < 0)
		return err_sys(err, "open %s", dir);
	if (segments_list(dir_fd, &all, err) < 0)
		return -1;
	if (all.count)
		result = history_key(dir_fd, all.first[all.count - 1], vkey, err);
	segments_free(&all);
	if (result == 0 && !*vkey)
		result = err_set(err, ERR_CONFIG, "there is no signed log in %s", dir);
	if (result == 0)
		buf_printf(out, "%s\n", vkey);
	return result;
}

int log_prove(const char *dir, uint64_t seq, struct buf *out, struct err *err)
{
	struct prover *p = prover_open(dir, err);
	int result = p ? prover_inclusion(p, seq, out, err) : -1;

	prover_close(p);
	return result;
}

int log_prove_growth(const char *dir, uint64_t old, struct buf *out, struct err *err)
{
	struct prover *p = prover_open(dir, err);
	int result = p ? prover_growth(p, old, out, err) : -1;

	prover_close(p);
	return result;
}
