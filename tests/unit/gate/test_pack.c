/* A signed bundle of rules is read if nothing in it was changed, and by those who know its key. */
#include "audit/signed.h"
#include "gate/pack.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>

static char secret[SIGNED_KEY_MAX], key[SIGNED_KEY_MAX], other_secret[SIGNED_KEY_MAX],
	other[SIGNED_KEY_MAX];

static const struct pack_origin origin = {"acme", "2026-01-01T00:00:00Z", "abc", "ann", "bob",
					  "S-1"};

static int make_keys(void **state)
{
	struct err err = {0};

	(void)state;
	jv_init();
	return signed_init(&err) == 0 && signed_key_make("acme", secret, key, &err) == 0 &&
			       signed_key_make("acme", other_secret, other, &err) == 0
		       ? 0
		       : -1;
}

static void make(struct buf *out)
{
	static const struct rule_source files[] = {
		{"a.lua", {"return 1\n", 9}}, {"b.lua", {"", 0}}, {"c.lua", {"return 2", 8}}};
	struct err err = {0};

	buf_init(out, PACK_MAX);
	CHECK_INT("write", 0, pack_write(&origin, files, 3, span_of(secret), out, &err));
}

/* What reading it says: "" if it is fine. */
static const char *reads(struct span text, const char *one_key, struct pack *pack)
{
	static struct err err;
	static struct arena *a;
	const char *const keys[] = {one_key, NULL};

	arena_destroy(a);
	a = arena_create(1 << 20);
	err = (struct err){0};
	return pack_read(text, keys, a, pack, &err) < 0 ? err.msg : "";
}

static void what_was_written_is_read(void **state)
{
	static struct pack p;
	struct buf out;

	(void)state;
	make(&out);
	CHECK_STR("read", "", reads(buf_span(&out), key, &p));
	CHECK_INT("files", 3, p.file_count);
	CHECK_STR("first", "a.lua", p.files[0].name);
	CHECK_INT("its length", 9, p.files[0].text.len);
	CHECK_INT("last", 1, span_is(p.files[2].text, "return 2"));
	CHECK_STR("author", "ann", p.origin.author);
	CHECK_STR("approver", "bob", p.origin.approver);
	CHECK_STR("ticket", "S-1", p.origin.ticket);
	CHECK_INT("signer", 1, span_is(p.signer, "acme"));
	buf_fini(&out);
}

static void another_key_of_that_name_does_not_do(void **state)
{
	static struct pack p;
	struct buf out;

	(void)state;
	make(&out);
	CHECK_STR("other", "none of the known keys has signed it",
		  reads(buf_span(&out), other, &p));
	CHECK_STR("none", "none of the known keys has signed it", reads(buf_span(&out), NULL, &p));
	buf_fini(&out);
}

/* Each byte, changed, cut off or added, is noticed. */
static void nothing_can_be_changed(void **state)
{
	static struct pack p;
	char label[32];
	struct buf out;

	(void)state;
	make(&out);
	for (size_t i = 0; i < buf_len(&out); i++) {
		char *byte = out.mem + out.start + i, was = *byte;

		snprintf(label, sizeof(label), "byte %zu", i);
		*byte = (char)(was ^ 1);
		CHECK_INT(label, 1, *reads(buf_span(&out), key, &p) != 0);
		*byte = was;
		CHECK_INT(label, 1, *reads((struct span){buf_span(&out).at, i}, key, &p) != 0);
	}
	CHECK_STR("as it was", "", reads(buf_span(&out), key, &p));
	buf_puts(&out, "x");
	CHECK_STR("more", "something follows behind its last file", reads(buf_span(&out), key, &p));
	buf_fini(&out);
}

/* Whoever has the key can sign nonsense; it is refused all the same. */
static void manifests_are_read_strictly(void **state)
{
#define ORIGIN                                                                                     \
	"\"name\":\"\",\"made\":\"\",\"commit\":\"\",\"author\":\"\",\"approver\":\"\","           \
	"\"ticket\":\"\""
#define SUM           "\"sha256\":\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\""
#define FILE_OF(name) "{\"name\":\"" name "\",\"bytes\":0," SUM "}"
	static const struct {
		const char *manifest, *want;
	} rows[] = {
		{"{" ORIGIN ",\"files\":[" FILE_OF("a.lua") "]}", ""},
		{"{" ORIGIN ",\"files\":[]}", "its manifest lists not 1 to 256 files"},
		{"{" ORIGIN "}", "its manifest is not as pack.h has it"},
		{"{" ORIGIN ",\"files\":[" FILE_OF("a.lua") "],\"more\":1}",
		 "its manifest is not as pack.h has it"},
		{"[]", "its manifest is not as pack.h has it"},
		{"{", "its manifest: "},
		{"{" ORIGIN ",\"files\":[" FILE_OF("../a.lua") "]}",
		 "its manifest lists a file that cannot be"},
		{"{" ORIGIN ",\"files\":[" FILE_OF("/a.lua") "]}",
		 "its manifest lists a file that cannot be"},
		{"{" ORIGIN ",\"files\":[" FILE_OF(".a.lua") "]}",
		 "its manifest lists a file that cannot be"},
		{"{" ORIGIN ",\"files\":[" FILE_OF("a_test.lua") "]}",
		 "its manifest lists a file that cannot be"},
		{"{" ORIGIN ",\"files\":[" FILE_OF("a.txt") "]}",
		 "its manifest lists a file that cannot be"},
		{"{" ORIGIN ",\"files\":[" FILE_OF("a.lua") "," FILE_OF("a.lua") "]}",
		 "its manifest lists a file that cannot be"},
		{"{" ORIGIN ",\"files\":[{\"name\":\"a.lua\",\"bytes\":-1," SUM "}]}",
		 "its manifest lists a file that cannot be"},
		{"{" ORIGIN ",\"files\":[{\"name\":\"a.lua\",\"bytes\":1," SUM "}]}",
		 "a.lua is cut short"},
		{"{" ORIGIN ",\"files\":[{\"name\":\"a.lua\",\"bytes\":99999999," SUM "}]}",
		 "its manifest lists a file that cannot be"},
	};
	static struct pack p;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct buf head, out;
		struct err err = {0};

		buf_init(&head, 8192);
		buf_init(&out, 8192);
		buf_printf(&head, "sallyport-rules 1\n%s\n", rows[i].manifest);
		CHECK_INT("sign", 0, signed_write(span_of(secret), buf_span(&head), &out, &err));
		buf_puts(&out, "\n");
		CHECK_INT(rows[i].manifest, 0,
			  strncmp(reads(buf_span(&out), key, &p), rows[i].want,
				  *rows[i].want ? strlen(rows[i].want) : 1));
		buf_fini(&head);
		buf_fini(&out);
	}
}

static void keys_have_names(void **state)
{
	static const char *const wrong[] = {"", "a b", "a+b", "a\n", "\xc3\xa4"};
	char s[SIGNED_KEY_MAX], k[SIGNED_KEY_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct err err = {0};

		CHECK_INT(wrong[i], -1, signed_key_make(wrong[i], s, k, &err));
	}
	CHECK_INT("public", 1, signed_key_is_valid(span_of(key)));
	CHECK_INT("secret", 0, signed_key_is_valid(span_of(secret)));
	CHECK_INT("nothing", 0, signed_key_is_valid(span_of("")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(another_key_of_that_name_does_not_do),
		cmocka_unit_test(nothing_can_be_changed),
		cmocka_unit_test(manifests_are_read_strictly),
		cmocka_unit_test(keys_have_names),
	};

	return cmocka_run_group_tests(tests, make_keys, NULL);
}
