/* Which Authorization headers are a token, and which tokens fit. */
#include "proxy/token.h"
#include "tests/unit/check.h"

#include <string.h>

#define OF(text)                                                                                   \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}

static void headers_are_read_strictly(void **state)
{
	static char long_token[TOKEN_LEN_MAX + 16];
	static const struct {
		const char *name;
		struct pair headers[2];
		size_t count;
		enum token_fault want;
		const char *token;
	} rows[] = {
		{"none", {{OF("Host"), OF("docker")}}, 1, TOKEN_NONE, ""},
		{"plain", {{OF("Authorization"), OF("Bearer abc")}}, 1, TOKEN_FINE, "abc"},
		{"any case", {{OF("AUTHORIZATION"), OF("bEARER abc")}}, 1, TOKEN_FINE, "abc"},
		{"more blanks", {{OF("Authorization"), OF("Bearer   abc")}}, 1, TOKEN_FINE, "abc"},
		{"another header", {{OF("X-Authorization"), OF("Bearer abc")}}, 1, TOKEN_NONE, ""},
		{"another scheme", {{OF("Authorization"), OF("Basic YWJj")}}, 1, TOKEN_ODD, ""},
		{"no token", {{OF("Authorization"), OF("Bearer ")}}, 1, TOKEN_ODD, ""},
		{"blanks only", {{OF("Authorization"), OF("Bearer     ")}}, 1, TOKEN_ODD, ""},
		{"no scheme", {{OF("Authorization"), OF("abc")}}, 1, TOKEN_ODD, ""},
		{"empty", {{OF("Authorization"), OF("")}}, 1, TOKEN_ODD, ""},
		{"two words", {{OF("Authorization"), OF("Bearer abc def")}}, 1, TOKEN_ODD, ""},
		{"a tab", {{OF("Authorization"), OF("Bearer abc\t")}}, 1, TOKEN_ODD, ""},
		{"not ASCII", {{OF("Authorization"), OF("Bearer abc\xc3\xa4")}}, 1, TOKEN_ODD, ""},
		{"twice",
		 {{OF("Authorization"), OF("Bearer abc")}, {OF("authorization"), OF("Bearer abc")}},
		 2,
		 TOKEN_ODD,
		 ""},
		{"odd, then fine",
		 {{OF("Authorization"), OF("Basic x")}, {OF("Authorization"), OF("Bearer abc")}},
		 2,
		 TOKEN_ODD,
		 ""},
		{"too long",
		 {{OF("Authorization"), {long_token, sizeof(long_token)}}},
		 1,
		 TOKEN_ODD,
		 ""},
	};

	(void)state;
	memset(long_token, 'a', sizeof(long_token));
	memcpy(long_token, "Bearer ", 7);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct span token = {"", 0};

		CHECK_INT(rows[i].name, rows[i].want,
			  token_presented(rows[i].headers, rows[i].count, &token));
		if (rows[i].want == TOKEN_FINE)
			CHECK_INT(rows[i].name, 1, span_is(token, rows[i].token));
	}
}

static void only_the_very_token_fits(void **state)
{
	struct hash known = hash_of((struct span)OF("abc")), last = known;

	(void)state;
	CHECK_INT("itself", 1, token_matches(&known, (struct span)OF("abc")));
	CHECK_INT("longer", 0, token_matches(&known, (struct span)OF("abcd")));
	CHECK_INT("shorter", 0, token_matches(&known, (struct span)OF("ab")));
	CHECK_INT("nothing", 0, token_matches(&known, (struct span)OF("")));
	last.bytes[HASH_BYTES - 1] ^= 1;
	CHECK_INT("one bit at the end", 0, token_matches(&last, (struct span)OF("abc")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_are_read_strictly),
		cmocka_unit_test(only_the_very_token_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
