/* Configuration and rules come through children that give everything up, into memory that nobody
 * can change. */
#include "audit/signed.h"
#include "gate/bundle.h"
#include "gate/pack.h"
#include "gate/serve.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define GOOD                                                                                       \
	"log { dir = '/tmp/x' }\n"                                                                 \
	"backend 'engine' { kind = 'docker', address = 'unix:///run/e.sock' }\n"                   \
	"identity 'ci' { uid = 1000, profile = 'strict' }\n"                                       \
	"listener 'l' { socket = '/run/sp/a.sock', identities = { 'ci' } }\n"
#define PROFILE(name) "return profile '" name "' { operations = { 'read' } }\n"

static char dir[] = "/tmp/sallyport-test-XXXXXX";

static const char *in_dir(const char *name, char out[128])
{
	snprintf(out, 128, "%s/%s", dir, name);
	return out;
}

static void put(const char *name, const char *text)
{
	char path[128];
	FILE *out = fopen(in_dir(name, path), "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

static void drop(const char *name)
{
	char path[128];

	unlink(in_dir(name, path));
}

static int make_dir(void **state)
{
	char path[128];

	(void)state;
	/* Only its owner may look in: the children read before they give that up. */
	return mkdtemp(dir) && mkdir(in_dir("profiles", path), 0700) == 0 &&
			       mkdir(in_dir("empty", path), 0700) == 0
		       ? 0
		       : -1;
}

static int remove_dir(void **state)
{
	char path[128];

	(void)state;
	rmdir(in_dir("profiles", path));
	rmdir(in_dir("empty", path));
	return rmdir(dir);
}

static void reads_all_that_is_named(void **state)
{
	struct err err = {0};
	struct loaded l;
	char path[128], want[128];

	(void)state;
	put("gate.lua", GOOD "profiles { 'profiles', 'extra.lua' }\n");
	put("profiles/b.lua", PROFILE("other"));
	put("profiles/a.lua", PROFILE("strict"));
	put("profiles/.hidden.lua", "this is no Lua");
	put("profiles/notes.txt", "nor is this");
	put("extra.lua", PROFILE("extra"));
	CHECK_INT(err.msg, 0, load(in_dir("gate.lua", path), &l, &err));
	CHECK_STR("path", in_dir("gate.lua", want), l.config.path);
	CHECK_INT("files", 3, l.config.proxy.rule_count);
	CHECK_STR("in order", "a.lua", l.config.proxy.rules[0].name);
	CHECK_STR("in order", "b.lua", l.config.proxy.rules[1].name);
	CHECK_STR("in order", "extra.lua", l.config.proxy.rules[2].name);
	CHECK_INT("as it stands", 1, span_is(l.config.proxy.rules[0].text, PROFILE("strict")));
	CHECK_STR("generation", l.bundle.generation, l.config.proxy.generation);
	CHECK_INT("of 64 digits", 64, strlen(l.bundle.generation));
	CHECK_INT("on record", 1, strstr(l.config.auditor.build, l.bundle.generation) != NULL);
	unload(&l);
	drop("profiles/a.lua");
	drop("profiles/b.lua");
	drop("profiles/.hidden.lua");
	drop("profiles/notes.txt");
	drop("extra.lua");
	drop("gate.lua");
}

static void the_generation_is_of_the_content(void **state)
{
	char first[65], again[65], other[65], path[128];
	struct err err = {0};
	struct bundle b;

	(void)state;
	put("gate.lua", GOOD "profiles { 'p.lua' }\n");
	put("p.lua", PROFILE("strict"));
	CHECK_INT(err.msg, 0, bundle_read(in_dir("gate.lua", path), &b, &err));
	snprintf(first, sizeof(first), "%s", b.generation);
	bundle_close(&b);
	CHECK_INT(err.msg, 0, bundle_read(path, &b, &err));
	snprintf(again, sizeof(again), "%s", b.generation);
	bundle_close(&b);
	put("p.lua", PROFILE("strict") "-- changed\n");
	CHECK_INT(err.msg, 0, bundle_read(path, &b, &err));
	snprintf(other, sizeof(other), "%s", b.generation);
	bundle_close(&b);
	CHECK_STR("same content", first, again);
	CHECK_INT("other content", 1, strcmp(first, other) != 0);
	drop("p.lua");
	drop("gate.lua");
}

static void nobody_can_change_it(void **state)
{
	char path[128];
	struct err err = {0};
	struct bundle b;
	const int want = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

	(void)state;
	put("gate.lua", GOOD "profiles { 'p.lua' }\n");
	put("p.lua", PROFILE("strict"));
	CHECK_INT(err.msg, 0, bundle_read(in_dir("gate.lua", path), &b, &err));
	CHECK_INT("seals", want, fcntl(b.fd, F_GET_SEALS) & want);
	CHECK_INT("write", -1, write(b.fd, "x", 1));
	CHECK_INT("cut", -1, ftruncate(b.fd, 0));
	CHECK_INT("map", 1,
		  mmap(NULL, b.text.len, PROT_READ | PROT_WRITE, MAP_SHARED, b.fd, 0) ==
			  MAP_FAILED);
	CHECK_INT("protect", -1,
		  mprotect((void *)(uintptr_t)b.text.at, b.text.len, PROT_READ | PROT_WRITE));
	bundle_close(&b);
	drop("p.lua");
	drop("gate.lua");
}

static void mistakes_are_named(void **state)
{
	static const struct {
		const char *label, *config, *profile; /* profile: in p.lua */
		const char *want;                     /* '@' stands for the folder */
	} cases[] = {
		{"a syntax error", "log {\n dir = = }", NULL,
		 "@/gate.lua:2: unexpected symbol near '='"},
		{"an unknown word", "lg {}", NULL, "@/gate.lua:1: "},
		{"an unknown key", "\n\nlog { dir = '/x', drr = 1 }", NULL,
		 "@/gate.lua:3: log: there is no key 'drr' (did you mean 'dir'?)"},
		{"an endless loop", "while true do end", NULL, "@/gate.lua:1: "},
		{"endless memory", "local t = {} for i = 1, 1e9 do t[i] = i end", NULL,
		 "@/gate.lua:1: "},
		{"a profile that is not there", GOOD "profiles { 'none.lua' }", NULL,
		 "@/gate.lua: profiles: @/none.lua: No such file or directory"},
		{"a folder without profiles", GOOD "profiles { 'empty' }", NULL,
		 "@/gate.lua: profiles: @/empty: there is no *.lua file in this folder"},
		{"a name that no file defines", GOOD "profiles { 'p.lua' }", PROFILE("strct"),
		 "@/gate.lua: identity \"ci\": no profile is called 'strict' (did you mean "
		 "'strct'?)"},
		{"no profiles at all", GOOD, NULL,
		 "@/gate.lua: identity \"ci\": no profile is called 'strict'"},
		{"a profile with a mistake", GOOD "profiles { 'p.lua' }",
		 "return profile 'strict' { oprations = {} }", "p.lua:1: "},
		{"a profile that never ends", GOOD "profiles { 'p.lua' }", "while true do end",
		 "p.lua: "},
		{"a profile in bytecode", GOOD "profiles { 'p.lua' }", "\x1bLua", "p.lua"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char path[128], want[512], *to = want;
		struct err err = {0};
		struct bundle b;

		for (const char *at = cases[i].want; *at; at++)
			to += *at == '@' ? sprintf(to, "%s", dir) : sprintf(to, "%c", *at);
		*to = '\0';
		put("gate.lua", cases[i].config);
		if (cases[i].profile)
			put("p.lua", cases[i].profile);
		CHECK_INT(cases[i].label, -1, bundle_read(in_dir("gate.lua", path), &b, &err));
		err.msg[strlen(want) < sizeof(err.msg) ? strlen(want) : 0] = '\0';
		CHECK_STR(cases[i].label, want, err.msg);
		drop("p.lua");
	}
	drop("gate.lua");
}

/* The bytes were written by a process that ran Lua: they are not trusted to be a bundle. */
static void damaged_bundles_are_refused(void **state)
{
	static const char start[] = "sallyport-bundle 1\n";
	struct {
		const char *label;
		uint32_t name_len;
		uint64_t text_len;
		const char *rest;
	} cases[] = {
		{"no piece", 0, 0, NULL},
		{"a name beyond the end", 9, 1, "abc"},
		{"a text beyond the end", 1, 9, "abc"},
		{"a text that is huge", 1, UINT64_MAX, "abc"},
		{"no JSON", 2, 1, "/x{"},
		{"no configuration", 2, 2, "/x{}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct arena *a = arena_create(1 << 20);
		struct err err = {0};
		struct config c;
		struct bundle b = {.fd = -1};
		struct buf text;

		buf_init(&text, 4096);
		buf_puts(&text, start);
		if (cases[i].rest) {
			buf_put(&text, &cases[i].name_len, 4);
			buf_put(&text, &cases[i].text_len, 8);
			buf_puts(&text, cases[i].rest);
		}
		b.text = buf_span(&text);
		CHECK_INT(cases[i].label, -1, bundle_config(&b, a, &c, &err));
		CHECK_INT(cases[i].label, ERR_CONFIG, err.kind);
		buf_fini(&text);
		arena_destroy(a);
	}
}

static void pieces_come_back(void **state)
{
	struct span rest, name, text;
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	bundle_begin(&out);
	bundle_put(&out, span_of("a"), (struct span){"x\0y", 3});
	bundle_put(&out, span_of(""), span_of(""));
	rest = buf_span(&out);
	CHECK_INT("start", true, bundle_start(&rest));
	CHECK_INT("first", true, bundle_next(&rest, &name, &text));
	CHECK_INT("name", true, span_is(name, "a"));
	CHECK_INT("bytes", true, span_eq(text, (struct span){"x\0y", 3}));
	CHECK_INT("second", true, bundle_next(&rest, &name, &text));
	CHECK_INT("empty", 0, name.len + text.len);
	CHECK_INT("end", false, bundle_next(&rest, &name, &text));
	buf_fini(&out);
}

/* A bundle of rules that a key has signed, and who made it. */
static void put_pack(const char *name, const char *secret)
{
	static const struct pack_origin origin = {"acme", "now", "abc", "ann", "bob", "S-1"};
	static const struct rule_source file = {"p.lua",
						{PROFILE("strict"), sizeof(PROFILE("strict")) - 1}};
	struct err err = {0};
	struct buf out;

	buf_init(&out, PACK_MAX);
	CHECK_INT(name, 0, pack_write(&origin, &file, 1, span_of(secret), &out, &err));
	buf_put(&out, "", 1);
	put(name, buf_span(&out).at);
	buf_fini(&out);
}

#define FOUR_PACKS "'r.bundle', 'r.bundle', 'r.bundle', 'r.bundle'"

static void only_what_a_key_has_signed_is_taken(void **state)
{
	char secret[SIGNED_KEY_MAX], key[SIGNED_KEY_MAX], secret_2[SIGNED_KEY_MAX],
		key_2[SIGNED_KEY_MAX], config[2048], path[128];
	struct err unheard = {0};
	const struct {
		const char *before, *behind, *profiles, *want; /* the key stands between */
	} rows[] = {
		{"keys = { '", "' }", "'r.bundle'", ""},
		{"keys = { '", "' }", "'r.bundle', 'other.lua'", ""},
		{"signed = true, keys = { '", "' }", "'r.bundle'", ""},
		{"signed = true, keys = { '", "' }", "'r.bundle', 'other.lua'",
		 "other.lua: rules { signed = true } takes bundles alone"},
		{"signed = true, keys = { '", "' }", "'r.bundle', 'profiles'",
		 "rules { signed = true } takes bundles, no folders"},
		{"keys = { '", "' }", "'foreign.bundle'",
		 "foreign.bundle: none of the known keys has signed it"},
		{"signed = false --", "\n", "'r.bundle'",
		 "r.bundle: none of the known keys has signed it"},
		{"signed = true --", "\n", "'r.bundle'", "signed = true needs the keys that sign"},
		{"keys = { 'x", "' }", "'r.bundle'",
		 "is no key that 'sallyport bundle key' prints"},
		{"keys = { '", "' }",
		 FOUR_PACKS ", " FOUR_PACKS ", " FOUR_PACKS ", " FOUR_PACKS ", 'r.bundle'",
		 "r.bundle: there are more than 16 bundles"},
	};

	(void)state;
	CHECK_INT("keys", 0, signed_init(&unheard));
	CHECK_INT("key", 0, signed_key_make("acme", secret, key, &unheard));
	CHECK_INT("another", 0, signed_key_make("acme", secret_2, key_2, &unheard));
	put_pack("r.bundle", secret);
	put_pack("foreign.bundle", secret_2);
	put("other.lua", PROFILE("other"));
	put("profiles/x.lua", PROFILE("x"));
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct err err = {0};
		struct loaded l;
		char rules[512];

		snprintf(rules, sizeof(rules), "%s%s%s", rows[i].before, key, rows[i].behind);
		snprintf(config, sizeof(config), GOOD "rules { %s }\nprofiles { %s }\n", rules,
			 rows[i].profiles);
		put("gate.lua", config);
		if (load(in_dir("gate.lua", path), &l, &err) == 0) {
			CHECK_STR(config, "", rows[i].want);
			CHECK_STR("origin",
				  "bundle acme of now, commit abc, author ann, approver bob, "
				  "ticket S-1, signed by acme",
				  l.config.proxy.rules_origin);
			unload(&l);
		} else {
			CHECK_INT(err.msg, 1,
				  *rows[i].want && strstr(err.msg, rows[i].want) != NULL);
		}
	}
	drop("gate.lua");
	drop("r.bundle");
	drop("foreign.bundle");
	drop("other.lua");
	drop("profiles/x.lua");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_all_that_is_named),
		cmocka_unit_test(the_generation_is_of_the_content),
		cmocka_unit_test(nobody_can_change_it),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(damaged_bundles_are_refused),
		cmocka_unit_test(pieces_come_back),
		cmocka_unit_test(only_what_a_key_has_signed_is_taken),
	};

	jv_init();
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
