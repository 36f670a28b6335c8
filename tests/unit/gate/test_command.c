/* Verbs and options are found, checked, and explained. */
#include "gate/command.h"
#include "tests/unit/check.h"

#include <stdlib.h>

static void finds_verbs(void **state)
{
	static const struct {
		const char *label, *argv[4];
		int argc;
		const char *want; /* name, or the message */
		int want_words;
	} cases[] = {
		{"one word", {"serve", "--config", "x"}, 3, "serve", 1},
		{"two words", {"audit", "verify", "DIR"}, 3, "audit verify", 2},
		{"other pair", {"profile", "show"}, 2, "profile show", 2},
		{"typo",
		 {"serv"},
		 1,
		 "no verb is called 'serv' (did you mean 'serve'?); 'sallyport help' lists them",
		 0},
		{"half a pair",
		 {"audit"},
		 1,
		 "no verb is called 'audit'; 'sallyport help' lists them",
		 0},
		{"typo in a pair",
		 {"audit", "verfy"},
		 2,
		 "no verb is called 'audit verfy' (did you mean 'audit verify'?); "
		 "'sallyport help' lists them",
		 0},
		{"nothing near",
		 {"frobnicate"},
		 1,
		 "no verb is called 'frobnicate'; 'sallyport help' lists them",
		 0},
		{"a prefix is no verb",
		 {"ser"},
		 1,
		 "no verb is called 'ser' (did you mean 'serve'?); 'sallyport help' lists them",
		 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct err err = {0};
		int words = 0;
		const struct command *c =
			command_find(cases[i].argc, (char *const *)cases[i].argv, &words, &err);

		CHECK_STR(cases[i].label, cases[i].want, c ? command_name(c) : err.msg);
		CHECK_INT(cases[i].label, cases[i].want_words, words);
	}
}

static const struct command *find(const char *name)
{
	const struct command *c;

	for (size_t i = 0; (c = command_at(i)); i++)
		if (strcmp(command_name(c), name) == 0)
			return c;
	fail_msg("there is no verb %s", name);
	return NULL;
}

static void parses_options(void **state)
{
	static const struct {
		const char *label, *verb, *argv[6];
		int argc;
		const char *want; /* message, "" if it is fine */
	} cases[] = {
		{"long", "serve", {"--config", "F"}, 2, ""},
		{"long with =", "serve", {"--config=F"}, 1, ""},
		{"short", "serve", {"-c", "F"}, 2, ""},
		{"short joined", "serve", {"-cF"}, 1, ""},
		{"missing", "serve", {NULL}, 0, "'serve' needs --config FILE"},
		{"no value", "serve", {"--config"}, 1, "--config needs a value: FILE"},
		{"unknown",
		 "serve",
		 {"--confg", "F"},
		 2,
		 "'serve' has no option '--confg' (did you mean 'config'?)"},
		{"unknown letter", "serve", {"-x"}, 1, "'serve' has no option '-x'"},
		{"another verb's",
		 "serve",
		 {"--anchor", "x"},
		 2,
		 "'serve' has no option '--anchor'"},
		{"flag with a value", "doctor", {"--json=yes"}, 1, "--json takes no value"},
		{"count", "audit tail", {"-n", "20", "D"}, 3, ""},
		{"count of letters",
		 "audit tail",
		 {"-n", "2o", "D"},
		 3,
		 "--lines takes a whole number, not '2o'"},
		{"negative count",
		 "audit tail",
		 {"-n", "-1", "D"},
		 3,
		 "--lines takes a whole number, not '-1'"},
		{"empty count",
		 "audit tail",
		 {"-n", ""},
		 2,
		 "--lines takes a whole number, not ''"},
		{"a count that does not fit",
		 "audit tail",
		 {"-n", "99999999999999999999"},
		 2,
		 "--lines takes a whole number, not '99999999999999999999'"},
		{"too many plain ones",
		 "audit tail",
		 {"D", "E"},
		 2,
		 "'audit tail' does not know what to do with 'E'"},
		{"plain where none is taken",
		 "serve",
		 {"-cF", "x"},
		 2,
		 "'serve' does not know what to do with 'x'"},
		{"options behind plain ones", "profile show", {"NAME", "--config", "F"}, 3, ""},
		{"-- ends options", "audit tail", {"--", "-n"}, 2, ""},
		{"- is plain", "check", {"-cF", "-l", "L", "-"}, 4, ""},
		{"help needs nothing", "serve", {"--help"}, 1, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct err err = {0};
		struct args args;

		command_parse(find(cases[i].verb), cases[i].argc, (char *const *)cases[i].argv,
			      &args, &err);
		CHECK_STR(cases[i].label, cases[i].want, err.msg);
	}
}

static void values_arrive(void **state)
{
	const char *argv[] = {"one", "--config", "F", "-", "--listener=L", "--", "--two"};
	struct err err = {0};
	struct args args;

	(void)state;
	CHECK_INT("parse", 0, command_parse(find("check"), 7, (char *const *)argv, &args, &err));
	CHECK_STR("config", "F", args.config);
	CHECK_STR("listener", "L", args.listener);
	CHECK_INT("count", 3, args.rest_count);
	CHECK_STR("first", "one", args.rest[0]);
	CHECK_STR("second", "-", args.rest[1]);
	CHECK_STR("third", "--two", args.rest[2]);
	CHECK_INT("json", false, args.json);
	CHECK_INT("no help", false, args.help);
}

/* The help of a verb shows each of its options. */
static void help_is_made_from_the_table(void **state)
{
	const struct {
		const char *verb, *want;
	} cases[] = {
		{"serve", "-c, --config FILE"},
		{"check", "    --facts FILE"},
		{"audit tail", "-n, --lines N"},
		{"doctor", "    --json"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		command_help(find(cases[i].verb), out);
		fclose(out);
		CHECK_INT(cases[i].verb, 1, strstr(text, cases[i].want) != NULL);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_verbs),
		cmocka_unit_test(parses_options),
		cmocka_unit_test(values_arrive),
		cmocka_unit_test(help_is_made_from_the_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
