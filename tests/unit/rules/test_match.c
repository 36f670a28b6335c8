#include "rules/match_priv.h"
#include "tests/unit/check.h"

#include <stdlib.h>

static void globs(void **state)
{
	static const struct {
		const char *pattern, *text;
		int want;
	} rows[] = {
		{"", "", 1},
		{"", "a", 0},
		{"a", "a", 1},
		{"a", "ab", 0},
		{"ab", "a", 0},
		{"*", "", 1},
		{"*", "abc", 1},
		{"*", "a/b", 0},
		{"**", "a/b/c", 1},
		{"a*", "a", 1},
		{"a*c", "abbc", 1},
		{"a*c", "ab/c", 0},
		{"a**c", "ab/c", 1},
		{"*/b", "a/b", 1},
		{"*/b", "a/a/b", 0},
		{"**/b", "a/a/b", 1},
		{"**/b", "b", 0},
		{"a?c", "abc", 1},
		{"a?c", "a/c", 0},
		{"?", "", 0},
		{"*a*b", "xaxxb", 1},
		{"*a*b", "xaxxbx", 0},
		{"**a*b", "x/a/axb", 1},
		{"**a*b", "x/a/ax/b", 0},
		{"a**b*c", "a/x/bb/b1c", 1},
		{"***", "a/b", 1},
		{"com.docker.compose.*", "com.docker.compose.project", 1},
		{"com.docker.compose.*", "com.docker.composeX", 0},
		{"reg.example/team/*", "reg.example/team/app", 1},
		{"reg.example/team/*", "reg.example/team/a/b", 0},
		{"evil-reg.com", "evil-reg.com", 1},
		{"a.c", "abc", 0},
		{"[a]", "[a]", 1},
		{"a\\*", "a\\b", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_INT(rows[i].pattern, rows[i].want,
			  glob_match(span_of(rows[i].pattern), span_of(rows[i].text)));
	CHECK_INT("a NUL in the text", 0,
		  glob_match(span_of("good*"), (struct span){"good\0x", 6}));
	CHECK_INT("a NUL is not an end", 0,
		  glob_match(span_of("good"), (struct span){"good\0x", 6}));
}

/* The slow and obvious way, to hold the fast one against. */
static int slow_match(const char *p, const char *t)
{
	if (!*p)
		return !*t;
	if (p[0] == '*' && p[1] == '*')
		return slow_match(p + 2, t) || (*t && slow_match(p, t + 1));
	if (p[0] == '*')
		return slow_match(p + 1, t) || (*t && *t != '/' && slow_match(p, t + 1));
	if (p[0] == '?')
		return *t && *t != '/' && slow_match(p + 1, t + 1);
	return *p == *t && slow_match(p + 1, t + 1);
}

static void random_text(char *out, const char *letters, size_t room)
{
	size_t n = (size_t)rand() % room;

	for (size_t i = 0; i < n; i++)
		out[i] = letters[(size_t)rand() % strlen(letters)];
	out[n] = '\0';
}

static void globs_agree_with_the_obvious(void **state)
{
	int hits = 0;

	(void)state;
	srand(1);
	for (int i = 0; i < 200000; i++) {
		char pattern[8], text[10];

		random_text(pattern, "ab/**?", sizeof(pattern));
		random_text(text, "ab/", sizeof(text));
		CHECK_INT(pattern, slow_match(pattern, text),
			  glob_match(span_of(pattern), span_of(text)));
		hits += slow_match(pattern, text);
	}
	CHECK_INT("some match", 1, hits > 1000);
}

/* Whatever a covered pattern matches, the covering one matches too. */
static void covering_is_sound(void **state)
{
	int covered = 0;

	(void)state;
	srand(2);
	for (int i = 0; i < 60000; i++) {
		char outer[7], inner[7], text[9];

		random_text(outer, "ab/**?", sizeof(outer));
		random_text(inner, "ab/**?", sizeof(inner));
		if (!glob_covers(span_of(outer), span_of(inner)))
			continue;
		covered++;
		for (int k = 0; k < 40; k++) {
			random_text(text, "ab/", sizeof(text));
			if (slow_match(inner, text))
				CHECK_INT(outer, 1, slow_match(outer, text));
		}
	}
	CHECK_INT("some cover", 1, covered > 1000);
}

static void covers(void **state)
{
	static const struct {
		const char *outer, *inner;
		int want;
	} rows[] = {
		{"a", "a", 1},          {"a", "b", 0},        {"*", "a*", 1},
		{"a*", "*", 0},         {"*", "**", 0},       {"**", "*", 1},
		{"?", "*", 0},          {"*", "?", 1},        {"a/*", "a/b", 1},
		{"a/*", "a/b/c", 0},    {"a/**", "a/b/*", 1}, {"team-*", "team-a*", 1},
		{"team-*", "team*", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_INT(rows[i].outer, rows[i].want,
			  glob_covers(span_of(rows[i].outer), span_of(rows[i].inner)));
}

static void image_references(void **state)
{
	static const struct {
		const char *text, *name, *tag, *digest; /* name NULL: refused */
	} rows[] = {
		{"alpine", "docker.io/library/alpine", "", ""},
		{"alpine:3.19", "docker.io/library/alpine", "3.19", ""},
		{"library/alpine", "docker.io/library/alpine", "", ""},
		{"docker.io/library/alpine", "docker.io/library/alpine", "", ""},
		{"index.docker.io/library/alpine@sha256:ab", "docker.io/library/alpine", "",
		 "sha256:ab"},
		{"team/app:1", "docker.io/team/app", "1", ""},
		{"reg.example/team/app:1@sha256:ab", "reg.example/team/app", "1", "sha256:ab"},
		{"reg.example:5000/app", "reg.example:5000/app", "", ""},
		{"reg.example:5000/app:2", "reg.example:5000/app", "2", ""},
		{"localhost/app", "localhost/app", "", ""},
		{"ghcr.io/acme/**@sha256:*", "ghcr.io/acme/**", "", "sha256:*"},
		{"**", "**", "", ""},
		{"*/app:1", "*/app", "1", ""},
		{"", NULL, NULL, NULL},
		{"app:", NULL, NULL, NULL},
		{"app@", NULL, NULL, NULL},
		{":1", NULL, NULL, NULL},
		{"/app", NULL, NULL, NULL},
		{"app/", NULL, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct image_ref ref;
		bool ok = image_parse(span_of(rows[i].text), &ref);

		CHECK_INT(rows[i].text, rows[i].name != NULL, ok);
		if (!ok)
			continue;
		CHECK_INT(rows[i].text, 1, span_is(ref.name, rows[i].name));
		CHECK_INT(rows[i].text, 1, span_is(ref.tag, rows[i].tag));
		CHECK_INT(rows[i].text, 1, span_is(ref.digest, rows[i].digest));
	}
}

static void image_patterns(void **state)
{
	static const struct {
		const char *pattern, *name, *tag, *digest;
		int want;
	} rows[] = {
		{"a.b/c", "a.b/c", "1", "", 1},
		{"a.b/c", "a.b/c", "", "sha256:x", 1},
		{"a.b/c", "a.b/c", "1", "sha256:x", 1},
		{"a.b/c:1", "a.b/c", "1", "", 1},
		{"a.b/c:1", "a.b/c", "2", "", 0},
		{"a.b/c:1", "a.b/c", "", "", 0},
		{"a.b/c:1", "a.b/c", "1", "sha256:x", 0},
		{"a.b/c:1*", "a.b/c", "1.2", "", 1},
		{"a.b/c@sha256:x", "a.b/c", "", "sha256:x", 1},
		{"a.b/c@sha256:x", "a.b/c", "1", "sha256:x", 1},
		{"a.b/c@sha256:x", "a.b/c", "1", "sha256:y", 0},
		{"a.b/c@sha256:*", "a.b/c", "1", "", 0},
		{"a.b/*", "a.b/c/d", "1", "", 0},
		{"a.b/**", "a.b/c/d", "1", "", 1},
		{"**", "a.b/c/d", "1", "", 1},
		{"**", "", "1", "", 0},
		{"alpine", "docker.io/library/alpine", "3", "", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct image_ref ref;

		CHECK_INT(rows[i].pattern, 1, image_parse(span_of(rows[i].pattern), &ref));
		CHECK_INT(rows[i].pattern, rows[i].want,
			  image_match(&ref, span_of(rows[i].name), span_of(rows[i].tag),
				      span_of(rows[i].digest)));
	}
}

static void paths(void **state)
{
	static const struct {
		const char *path, *root;
		int want;
	} rows[] = {
		{"/srv/ws", "/srv/ws", 1},
		{"/srv/ws/a", "/srv/ws", 1},
		{"/srv/ws-evil", "/srv/ws", 0},
		{"/srv", "/srv/ws", 0},
		{"/", "/srv/ws", 0},
		{"/a", "/", 1},
		{"/", "/", 1},
		{"/srv/ws/../x", "/srv/ws", 0},
		{"/srv/ws/.", "/srv/ws", 0},
		{"/srv//ws", "/srv", 0},
		{"/srv/ws/", "/srv/ws", 0},
		{"srv/ws", "/srv", 0},
		{"", "/", 0},
		{"/srv/ws", "/srv/ws/", 0},
		{"/srv/ws/..a", "/srv/ws", 1},
		{"/srv/ws", "", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_INT(rows[i].path, rows[i].want,
			  path_within(span_of(rows[i].path), span_of(rows[i].root)));
	CHECK_INT("a NUL", 0,
		  path_within((struct span){"/srv/ws\0/../etc", 15}, span_of("/srv/ws")));
}

static void placeholders(void **state)
{
	static const struct {
		const char *pattern, *name, *owner;
		const char *want; /* NULL: grants nothing */
		const char *container;
	} rows[] = {
		{"/a/{identity.name}/w", "ann", "o", "/a/ann/w", ""},
		{"/a/{identity.owner}", "", "o", "/a/o", ""},
		{"/a", "", "", "/a", ""},
		{"/a/{identity.name}", "", "o", NULL, ""},
		{"/a/{identity.name}", "..", "o", NULL, ""},
		{"/a/{identity.name}", ".", "o", NULL, ""},
		{"/a/{identity.name}", "b/../..", "o", NULL, ""},
		{"/a/{identity.name}", "b\nc", "o", NULL, ""},
		{"/a/{identity.nam}", "b", "o", "/a/{identity.nam}", ""},
		{"/a/{identity.container.name}/w", "", "", "/a/edge-1/w", "edge-1"},
		{"/a/{identity.container.name}", "b", "o", NULL, ""},
		{"/a/{identity.container.name}", "b", "o", NULL, ".."},
		{"/a/{identity.container.name}", "b", "o", NULL, "a/b"},
		{"/a/{identity.container.id}", "b", "o", "/a/f00d", ""},
		{"/a/{identity.container.image}", "b", "o", "/a/{identity.container.image}", "x"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char out[64] = "";
		const struct path_words words = {span_of(rows[i].name), span_of(rows[i].owner),
						 span_of(rows[i].container), span_of("f00d")};
		bool ok = path_fill(span_of(rows[i].pattern), &words, out, sizeof(out));

		CHECK_INT(rows[i].pattern, rows[i].want != NULL, ok);
		if (ok)
			CHECK_STR(rows[i].pattern, rows[i].want, out);
	}
	CHECK_INT("too long", 0,
		  path_fill(span_of("/abcdef"), &(struct path_words){.name = span_of("x")},
			    (char[4]){0}, 4));
}

static void sizes(void **state)
{
	static const struct {
		const char *text;
		long long want; /* -1: no size */
	} rows[] = {
		{"0", 0},
		{"512", 512},
		{"64m", 64 << 20},
		{"2GiB", 2LL << 30},
		{"1k", 1024},
		{"1kB", 1000},
		{"3MB", 3000000},
		{"1TiB", 1LL << 40},
		{"1.5g", -1},
		{"", -1},
		{"g", -1},
		{"-1", -1},
		{"+1", -1},
		{"1 g", -1},
		{"1gib", -1},
		{"0x10", -1},
		{"9223372036854775807", INT64_MAX},
		{"9223372036854775808", -1},
		{"9223372036854775807k", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int64_t n = -1;

		CHECK_INT(rows[i].text, rows[i].want >= 0, size_parse(span_of(rows[i].text), &n));
		if (rows[i].want >= 0)
			CHECK_INT(rows[i].text, rows[i].want, n);
	}
}

static void times(void **state)
{
	static const struct {
		const char *text;
		int64_t want; /* -1: no time */
	} rows[] = {
		{"90s", 90},
		{"30m", 1800},
		{"30min", 1800},
		{"12h", 43200},
		{"7d", 604800},
		{"1day", 86400},
		{"0s", 0},
		{"", -1},
		{"5", -1},
		{"s", -1},
		{"-1s", -1},
		{"1.5h", -1},
		{"1h30m", -1},
		{"1 h", -1},
		{"1H", -1},
		{"9223372036854775807s", INT64_MAX},
		{"9223372036854775808s", -1},
		{"9223372036854775807m", -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		int64_t n = -1;
		bool ok = duration_parse(span_of(rows[i].text), &n);

		CHECK_INT(rows[i].text, rows[i].want >= 0, ok);
		if (ok)
			CHECK_INT(rows[i].text, rows[i].want, n);
	}
}

static void hosts(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool valid, match;
	} rows[] = {
		{"example.org", "example.org", true, true},
		{"example.org", "EXAMPLE.org.", true, true},
		{"example.org.", "example.org", true, true},
		{"example.org", "xexample.org", true, false},
		{"example.org", "a.example.org", true, false},
		{"*.example.org", "a.example.org", true, true},
		{"*.example.org", "a.b.example.org", true, true},
		{"*.example.org", "example.org", true, false},
		{"*.example.org", ".example.org", true, false},
		{"*.example.org", "xexample.org", true, false},
		{"*.example.org", "a.example.org.evil", true, false},
		{"*.example.org", "a..example.org", true, false},
		{"*", "example.org", false, false},
		{"*.", "example.org", false, false},
		{"a.*.org", "a.b.org", false, false},
		{"10.0.0.1", "10.0.0.1", false, false},
		{"*.0.0.1", "10.0.0.1", false, false},
		{"a b", "a b", false, false},
		{"", "", false, false},
		{"localhost", "localhost", true, true},
		{"xn--bcher-kva.example", "xn--bcher-kva.example", true, true},
		{"b\xc3\xbc.example", "b\xc3\xbc.example", false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		CHECK_INT(rows[i].pattern, rows[i].valid,
			  host_pattern_is_valid(span_of(rows[i].pattern)));
		CHECK_INT(rows[i].name, rows[i].match,
			  host_match(span_of(rows[i].pattern), span_of(rows[i].name)));
	}
	CHECK_INT("NUL", false,
		  host_match(span_of("good.example"), (struct span){"good.example\0.evil", 18}));
}

static void networks(void **state)
{
	static const struct {
		const char *network, *address;
		enum cidr_answer want;
	} rows[] = {
		{"10.0.0.0/8", "10.1.2.3", CIDR_YES},
		{"10.0.0.0/8", "11.0.0.0", CIDR_NO},
		{"10.1.2.3", "10.1.2.3", CIDR_YES},
		{"10.1.2.3", "10.1.2.4", CIDR_NO},
		{"10.0.0.0/9", "10.127.255.255", CIDR_YES},
		{"10.0.0.0/9", "10.128.0.0", CIDR_NO},
		{"0.0.0.0/0", "255.255.255.255", CIDR_YES},
		{"0.0.0.0/0", "::1", CIDR_NO},
		{"0.0.0.0/0", "::ffff:10.0.0.1", CIDR_YES},
		{"::/0", "fe80::1", CIDR_YES},
		{"fd00::/8", "fdff::1", CIDR_YES},
		{"fd00::/8", "fe00::1", CIDR_NO},
		{"::ffff:10.0.0.0/104", "10.9.9.9", CIDR_YES},
		{"10.0.0.0/8", "", CIDR_NO},
		{"10.0.0.0/8", "10.1.2", CIDR_NO},
		{"10.0.0.0/8", "010.1.2.3", CIDR_NO},
		{"10.0.0.0/8", "0x0a.1.2.3", CIDR_NO},
		{"10.0.0.0/8", "167772161", CIDR_NO},
		{"10.0.0.0/8", "10.1.2.3%eth0", CIDR_NO},
		{"10.0.0.0/33", "10.1.2.3", CIDR_MALFORMED},
		{"10.0.0.0/", "10.1.2.3", CIDR_MALFORMED},
		{"10.0.0.0/08", "10.1.2.3", CIDR_MALFORMED},
		{"10.0.0.0/-1", "10.1.2.3", CIDR_MALFORMED},
		{"10.0.0.0/8/8", "10.1.2.3", CIDR_MALFORMED},
		{"::/129", "::1", CIDR_MALFORMED},
		{"example.org", "10.1.2.3", CIDR_MALFORMED},
		{"", "10.1.2.3", CIDR_MALFORMED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		CHECK_INT(rows[i].address, rows[i].want,
			  cidr_contains(span_of(rows[i].network), span_of(rows[i].address)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(globs),
		cmocka_unit_test(globs_agree_with_the_obvious),
		cmocka_unit_test(covering_is_sound),
		cmocka_unit_test(covers),
		cmocka_unit_test(image_references),
		cmocka_unit_test(image_patterns),
		cmocka_unit_test(paths),
		cmocka_unit_test(placeholders),
		cmocka_unit_test(sizes),
		cmocka_unit_test(times),
		cmocka_unit_test(hosts),
		cmocka_unit_test(networks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
