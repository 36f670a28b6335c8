/* The tree, its tiles and its notes, each against a second way to compute it. */
#include "tests/unit/audit/fixture.h"
#include "tests/unit/check.h"

#include "audit/note_priv.h"
#include "audit/tile_priv.h"
#include "audit/tree_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct hash leaf_of(uint64_t n)
{
	return hash_two((struct span){"\0", 1}, (struct span){(const char *)&n, sizeof(n)});
}

/* RFC 6962, section 2.1, word for word. */
static struct hash root_of(uint64_t from, uint64_t count)
{
	uint64_t k = 1;
	struct hash left, right;

	if (count == 0)
		return hash_of((struct span){"", 0});
	if (count == 1)
		return leaf_of(from);
	while (k * 2 < count)
		k *= 2;
	left = root_of(from, k);
	right = root_of(from + k, count - k);
	return tree_node(&left, &right);
}

static void check_hash(const char *label, struct hash want, struct hash got)
{
	char want_hex[HASH_HEX_LEN + 1], got_hex[HASH_HEX_LEN + 1];

	hash_hex(&want, want_hex);
	hash_hex(&got, got_hex);
	CHECK_STR(label, want_hex, got_hex);
}

static void roots_are_those_of_the_rfc(void **state)
{
	struct tree t = {0};

	(void)state;
	for (uint64_t n = 0; n < 300; n++) {
		struct hash leaf = leaf_of(n);
		char label[32];

		snprintf(label, sizeof(label), "%d leaves", (int)n);
		check_hash(label, root_of(0, n), tree_root(&t));
		tree_add(&t, &leaf, NULL);
	}
}

static void an_edge_is_all_that_is_needed(void **state)
{
	static const char *const wrong[] = {"", "[]", "[\"\"]", "[", "x"};
	struct tree t = {0}, other;
	char text[TREE_EDGE_MAX];

	(void)state;
	tree_edge_format(&t, text);
	CHECK_STR("empty", "", text);
	for (uint64_t n = 0; n < 200; n++) {
		struct hash leaf = leaf_of(n);

		tree_add(&t, &leaf, NULL);
		tree_edge_format(&t, text);
		CHECK_INT("parse", 1, tree_edge_parse(span_of(text), t.size, &other));
		CHECK_INT("same", 1, tree_same(&t, &other));
		CHECK_INT("another size", 0,
			  tree_edge_parse(span_of(text), t.size + 1, &other) &&
				  tree_same(&t, &other));
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK_INT(wrong[i], 0, tree_edge_parse(span_of(wrong[i]), 3, &other));
}

static void tiles_have_the_names_of_c2sp(void **state)
{
	static const struct {
		unsigned level;
		uint64_t number;
		const char *want;
	} cases[] = {{0, 0, "tile/0/000"},
		     {1, 67, "tile/1/067"},
		     {0, 1000, "tile/0/x001/000"},
		     {0, 1234067, "tile/0/x001/x234/067"},
		     {7, UINT64_MAX, "tile/7/x018/x446/x744/x073/x709/x551/615"}};
	char path[TILE_PATH];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		tile_path(cases[i].level, cases[i].number, path);
		CHECK_STR(cases[i].want, cases[i].want, path);
	}
}

static struct tiles *grown(int dir_fd, uint64_t size)
{
	struct tiles *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	for (uint64_t n = 0; n < size; n++) {
		struct hash leaf = leaf_of(n);

		tiles_add(t, dir_fd, &leaf);
	}
	CHECK_INT("failed", 0, t->failed);
	return t;
}

static void tiles_hold_the_tree(void **state)
{
	const uint64_t size = 256 * 256 + 700;
	struct hash hashes[TILE_HASHES];
	char dir[FIXTURE_PATH];
	struct tiles *t;
	int fd;

	(void)state;
	fixture_dir(dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	t = grown(fd, size);
	check_hash("root", root_of(0, size), tree_root(&t->tree));
	CHECK_INT("read", 1, tile_read(fd, 0, 257, hashes));
	check_hash("a leaf", leaf_of(257 * 256 + 9), hashes[9]);
	check_hash("its root", root_of(257 * 256, 256), tile_root(hashes));
	CHECK_INT("level 1", 1, tile_read(fd, 1, 0, hashes));
	check_hash("entry", root_of(3 * 256, 256), hashes[3]);
	CHECK_INT("not full", 0, tile_read(fd, 0, 258, hashes));
	CHECK_INT("not full", 0, tile_read(fd, 1, 1, hashes));
	free(t);
	close(fd);
	fixture_remove(dir);
}

/* From the files and the last leaves all goes on as if it had never stopped. */
static void tiles_are_resumed(void **state)
{
	static const uint64_t sizes[] = {1, 255, 256, 257, 511, 66000};
	struct tiles *t, *again = calloc(1, sizeof(*again));
	struct hash leaves[TILE_HASHES];
	char dir[FIXTURE_PATH];
	int fd;

	(void)state;
	fixture_dir(dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint64_t rest = sizes[i] % TILE_HASHES;

		t = grown(fd, sizes[i]);
		for (uint64_t n = 0; n < rest; n++)
			leaves[n] = leaf_of(sizes[i] - rest + n);
		*again = (struct tiles){0};
		CHECK_INT("resumed", 1, tiles_resume(again, fd, &t->tree, leaves));
		for (uint64_t n = sizes[i]; n < sizes[i] + 300; n++) {
			struct hash leaf = leaf_of(n);

			tiles_add(t, -1, &leaf);
			tiles_add(again, -1, &leaf);
		}
		CHECK_INT("same", 0, memcmp(t->hashes[0], again->hashes[0], sizeof(t->hashes[0])));
		CHECK_INT("same tree", 1, tree_same(&t->tree, &again->tree));
		free(t);
	}
	t = grown(fd, 700);
	for (uint64_t n = 0; n < 700 % 256; n++)
		leaves[n] = leaf_of(512 + n);
	leaves[3] = leaf_of(9999);
	CHECK_INT("another leaf", 0, tiles_resume(again, fd, &t->tree, leaves));
	leaves[3] = leaf_of(515);
	CHECK_INT("right", 1, tiles_resume(again, fd, &t->tree, leaves));
	unlink(fixture_path(dir, "tile/0/001"));
	CHECK_INT("a tile is gone", 0, tiles_resume(again, fd, &t->tree, leaves));
	free(t);
	free(again);
	close(fd);
	fixture_remove(dir);
}

/* --- notes --- */

/* Made with another program, out of the seed 00 01 ... 1f. */
#define VKEY "gate.example/host7+ee6dbaea+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"
#define SKEY "PRIVATE+KEY+gate.example/host7+ee6dbaea+AQABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"

static void keys_are_written_as_others_write_them(void **state)
{
	struct note_signer s;
	struct note_key key;
	char text[NOTE_SKEY_MAX];

	(void)state;
	CHECK_INT("private", 1, note_signer_parse(span_of(SKEY), &s));
	note_key_format(&s.key, text);
	CHECK_STR("public", VKEY, text);
	note_signer_format(&s, text);
	CHECK_STR("back", SKEY, text);
	CHECK_INT("public", 1, note_key_parse(span_of(VKEY), &key));
	CHECK_INT("same", 1, note_key_same(&key, &s.key));
	CHECK_INT("wrong id", 0, note_key_parse(span_of("a" VKEY), &key));
	CHECK_INT("cut", 0, note_key_parse((struct span){VKEY, sizeof(VKEY) - 5}, &key));
	CHECK_INT("no key", 0, note_key_parse(span_of("x"), &key));
}

static void notes_are_read_one_by_one(void **state)
{
	const struct hash root = leaf_of(1);
	char signature[NOTE_SIGNATURE_MAX];
	struct note_signer s, other;
	struct buf note, text;
	struct checkpoint c;
	struct span rest;

	(void)state;
	note_signer_parse(span_of(SKEY), &s);
	note_signer_make("gate.example/host7", &other);
	buf_init(&note, 10000);
	buf_init(&text, 10000);
	for (unsigned i = 1; i <= 3; i++) {
		buf_clear(&text);
		checkpoint_text(&text, "gate.example/host7", i, &root);
		note_sign(&s, buf_span(&text), signature);
		note_write(&note, buf_span(&text), s.key.name, signature);
		if (i == 2) { /* a witness signs as well */
			note_sign(&other, buf_span(&text), signature);
			buf_printf(&note, "\xe2\x80\x94 witness %s\n", signature);
		}
	}
	rest = buf_span(&note);
	for (unsigned i = 1; i <= 3; i++) {
		CHECK_INT("next", 1, note_next(&rest, &c));
		CHECK_INT("size", i, c.size);
		check_hash("root", root, c.root);
		CHECK_INT("signed", 1, checkpoint_signed_by(&c, &s.key));
		CHECK_INT("by nobody else", 0, checkpoint_signed_by(&c, &other.key));
	}
	CHECK_INT("end", 0, note_next(&rest, &c));
	CHECK_INT("all", 0, rest.len);

	rest = buf_span(&note);
	note.mem[note.start + 19]++; /* the size */
	CHECK_INT("next", 1, note_next(&rest, &c));
	CHECK_INT("altered", 0, checkpoint_signed_by(&c, &s.key));
	rest = (struct span){buf_span(&note).at, 60};
	CHECK_INT("cut short", 0, note_next(&rest, &c));
	buf_fini(&note);
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roots_are_those_of_the_rfc),
		cmocka_unit_test(an_edge_is_all_that_is_needed),
		cmocka_unit_test(tiles_have_the_names_of_c2sp),
		cmocka_unit_test(tiles_hold_the_tree),
		cmocka_unit_test(tiles_are_resumed),
		cmocka_unit_test(keys_are_written_as_others_write_them),
		cmocka_unit_test(notes_are_read_one_by_one),
	};
	struct err err;

	if (note_init(&err) < 0)
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
