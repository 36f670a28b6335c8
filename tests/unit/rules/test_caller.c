/* By which container an identity is known, and what a name that somebody chose is worth. */
#include "rules/caller.h"
#include "tests/unit/check.h"

#define ID    "41db239cf90c4ab592cea5c359f25de7ff8572279780317452d8a0f208a9fb64"
#define IMAGE "sha256:9a6626a3b2699dceb851a3feb4f014be7852b742d7bca507328ce36b771d7c6a"

static const struct caller_label labels[] = {{"com.docker.compose.service", "proxy"},
					     {"empty", ""}};

static const struct caller_container theirs = {
	.id = ID,
	.name = "edge-proxy",
	.image = "traefik:v3",
	.image_id = IMAGE,
	.owner = "",
	.labels = labels,
	.label_count = 2,
};

static void signs_are_read_strictly(void **state)
{
	static const struct {
		const char *text;
		enum caller_sign_kind want; /* SIGN_NOTHING: refused */
	} rows[] = {
		{"name:traefik", SIGN_NAME},
		{"name:runner-*", SIGN_NAME},
		{"image:traefik:v3", SIGN_IMAGE},
		{"image:" IMAGE, SIGN_IMAGE},
		{"label:a.b=c=d", SIGN_LABEL},
		{"id:" ID, SIGN_ID},
		{"none", SIGN_OUTSIDE},
		{"", SIGN_NOTHING},
		{"traefik", SIGN_NOTHING},
		{"name:", SIGN_NOTHING},
		{"Name:traefik", SIGN_NOTHING},
		{"none:", SIGN_NOTHING},
		{"label:a", SIGN_NOTHING},
		{"label:=a", SIGN_NOTHING},
		{"label:a*=b", SIGN_NOTHING},
		{"label:", SIGN_NOTHING},
		{"id:41db239cf90c", SIGN_NOTHING},
		{"id:*", SIGN_NOTHING},
		{"image::v3", SIGN_NOTHING},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(4096);
		struct caller_sign sign = {.kind = SIGN_NOTHING};
		struct err err = {0};
		int rc = caller_sign_parse(rows[i].text, a, &sign, &err);

		CHECK_INT(rows[i].text, rows[i].want == SIGN_NOTHING ? -1 : 0, rc);
		if (rc == 0)
			CHECK_INT(rows[i].text, rows[i].want, sign.kind);
		else
			CHECK_INT(rows[i].text, ERR_CONFIG, err.kind);
		arena_destroy(a);
	}
}

static void signs_fit_what_they_say(void **state)
{
	static const struct {
		const char *text, *made_by, *owner;
		bool want;
	} rows[] = {
		{"name:edge-proxy", "", "", true},
		{"name:edge-*", "", "", true},
		{"name:edge", "", "", false},
		{"name:Edge-proxy", "", "", false},
		{"id:" ID, "", "", true},
		{"image:traefik:v3", "", "", true},
		{"image:traefik", "", "", true},
		{"image:docker.io/library/traefik:v*", "", "", true},
		{"image:traefik:latest", "", "", false},
		{"image:evil/traefik", "", "", false},
		{"image:" IMAGE, "", "", true},
		{"label:com.docker.compose.service=proxy", "", "", true},
		{"label:com.docker.compose.service=*", "", "", true},
		{"label:com.docker.compose.service=other", "", "", false},
		{"label:com.docker.compose=proxy", "", "", false},
		{"label:empty=", "", "", true},
		{"label:absent=*", "", "", false},
		{"none", "", "", false},
		/* made through the gate, so named by whoever made it */
		{"name:edge-proxy", "", "mallory", false},
		{"id:" ID, "", "mallory", false},
		{"label:com.docker.compose.service=proxy", "", "mallory", false},
		{"name:edge-proxy", "ci", "mallory", false},
		{"name:edge-proxy", "ci", "ci", true},
		{"name:edge-proxy", "ci-*", "ci-7", true},
		{"name:edge-proxy", "*", "mallory", true},
		/* said to be made by somebody, and nobody's */
		{"name:edge-proxy", "ci", "", false},
		{"name:edge-proxy", "*", "", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct arena *a = arena_create(4096);
		struct caller_sign sign = {.kind = SIGN_NOTHING};
		struct caller_container c = theirs;
		struct err err = {0};

		c.owner = rows[i].owner;
		assert_int_equal(0, caller_sign_parse(rows[i].text, a, &sign, &err));
		sign.made_by = rows[i].made_by;
		CHECK_INT(rows[i].text, rows[i].want, caller_sign_fits(&sign, &c));
		arena_destroy(a);
	}
}

static void labels_are_shown_by_name(void **state)
{
	static const char *const globs[] = {"team", "com.docker.*", NULL};

	(void)state;
	CHECK_INT("itself", 1, caller_label_is_listed(globs, span_of("team")));
	CHECK_INT("a glob", 1,
		  caller_label_is_listed(globs, span_of("com.docker.compose.service")));
	CHECK_INT("another", 0, caller_label_is_listed(globs, span_of("teams")));
	CHECK_INT("no list", 0, caller_label_is_listed(NULL, span_of("team")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signs_are_read_strictly),
		cmocka_unit_test(signs_fit_what_they_say),
		cmocka_unit_test(labels_are_shown_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
