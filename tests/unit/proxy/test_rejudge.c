/* What is judged again: what becomes of it, and whose profile it is judged by. */
#include "proxy/rejudge_priv.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- weighing --- */

/*
 * what: J judged, P permitted, D the kernel shows something else, A the profile wants it
 * attested, L not all could be seen.  Levels: n none, p process, k kernel, v vm, - unknown.
 */
static struct weighing weighing(const char *what, const char *levels, enum running running)
{
	static const char letters[] = "npkv";

	return (struct weighing){
		.judged = strchr(what, 'J') != NULL,
		.permitted = strchr(what, 'P') != NULL,
		.differs = strchr(what, 'D') != NULL,
		.wants_attested = strchr(what, 'A') != NULL,
		.lacks = strchr(what, 'L') != NULL,
		.has_min = levels[0] != '-',
		.minimum = levels[0] != '-' ? (enum isolation)(strchr(letters, levels[0]) - letters)
					    : ISOLATION_NONE,
		.has_level = levels[1] != '-',
		.level = levels[1] != '-' ? (enum isolation)(strchr(letters, levels[1]) - letters)
					  : ISOLATION_NONE,
		.was_seen = levels[2] != '-',
		.seen = levels[2] != '-' ? (enum isolation)(strchr(letters, levels[2]) - letters)
					 : ISOLATION_NONE,
		.running = running,
	};
}

/* In three columns: what `running` makes of it: "report", "minimum", "stop". */
static void weighs(void **state)
{
	static const struct {
		const char *name, *what, *levels;
		bool last;
		const char *want[3];
	} rows[] = {
		{"as it was made", "JP", "kkk", false, {"fine", "fine", "fine"}},
		{"better than it was made", "JP", "pvk", false, {"fine", "fine", "fine"}},
		{"older than the gate's labels", "JP", "-p-", false, {"fine", "fine", "fine"}},
		{"nothing is known of the level, and nothing asked",
		 "JP",
		 "---",
		 true,
		 {"fine", "fine", "fine"}},
		{"the engine says less", "JP", "kp-", false, {"report", "stop", "stop"}},
		{"the engine says less, the rules too",
		 "J",
		 "kp-",
		 false,
		 {"report", "stop", "stop"}},
		{"the engine knows no such runtime", "J", "kn-", false, {"report", "stop", "stop"}},
		{"the engine lies, the kernel does not",
		 "JP",
		 "kkp",
		 false,
		 {"report", "stop", "stop"}},
		{"the kernel alone", "JP", "k-p", false, {"report", "stop", "stop"}},
		{"the engine says less than the kernel",
		 "JP",
		 "kpk",
		 false,
		 {"report", "stop", "stop"}},
		{"below, whatever else is unknown", "", "kp-", false, {"report", "stop", "stop"}},
		{"refused", "J", "ppp", false, {"report", "report", "stop"}},
		{"refused, without a minimum", "J", "---", false, {"report", "report", "stop"}},
		{"differs", "JPD", "ppp", false, {"report", "report", "stop"}},
		{"differs, and must be attested", "JPDA", "ppp", false, {"report", "stop", "stop"}},
		{"unseen, and must be attested",
		 "JPLA",
		 "pp-",
		 false,
		 {"unknown", "unknown", "unknown"}},
		{"still unseen, and must be attested",
		 "JPLA",
		 "pp-",
		 true,
		 {"unknown", "unknown", "stop"}},
		{"unseen", "JPL", "pp-", true, {"fine", "fine", "fine"}},
		{"could not be judged", "", "k--", false, {"unknown", "unknown", "unknown"}},
		{"could never be judged", "", "k--", true, {"unknown", "unknown", "stop"}},
		{"judged, of a level that nobody knows",
		 "JP",
		 "k--",
		 false,
		 {"unknown", "unknown", "unknown"}},
		{"and so to the end", "JP", "k--", true, {"unknown", "unknown", "stop"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (int r = RUNNING_REPORT; r <= RUNNING_STOP; r++) {
			struct weighing w = weighing(rows[i].what, rows[i].levels, (enum running)r);

			CHECK_STR(rows[i].name, rows[i].want[r],
				  finding_name(rejudge_weigh(&w, rows[i].last)));
		}
}

static void knows_trouble(void **state)
{
	static const struct {
		const char *name;
		enum reason reasons[3];
		bool want;
	} rows[] = {
		{"nothing", {REASON_NONE}, false},
		{"no engine", {REASON_engine_unreachable}, true},
		{"a rule", {REASON_runtime}, false},
		{"a rule that failed", {REASON_rule_error}, true},
		{"both", {REASON_fact_unknown, REASON_image}, false},
		{"two troubles", {REASON_engine_timeout, REASON_fact_unknown}, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct violations v = {.count = 0};

		for (size_t k = 0; k < 3 && rows[i].reasons[k] != REASON_NONE; k++)
			violations_add(&v, rows[i].reasons[k]);
		CHECK_INT(rows[i].name, rows[i].want, rejudge_is_trouble(&v));
	}
}

/* --- whose profile --- */

static void chooses_profiles(void **state)
{
	const struct rule_source source = {
		"t.lua", span_of("return { profile \"one\" {}, profile \"two\" {}, "
				 "profile \"three\" {}, profile \"guests\" {} }")};
	static const struct conf_identity identities[] = {
		{.name = "alice", .profile = "one", .owner = "a"},
		{.name = "alice-too", .profile = "two", .owner = "a"},
		{.name = "alice-again", .profile = "two", .owner = "a"},
		{.name = "bob", .profile = "two", .owner = "b"},
	};
	static const size_t listed[] = {0, 3};
	static const struct conf_listener listeners[] = {
		{.name = "agents",
		 .identities = listed,
		 .identity_count = 2,
		 .otherwise = "guests"},
		{.name = "closed", .otherwise = ""},
		{.name = "other", .callers = "people", .otherwise = "three"},
	};
	static const struct proxy_conf conf = {.identities = identities,
					       .identity_count = 4,
					       .listeners = listeners,
					       .listener_count = 3};
	static const struct {
		const char *owner, *made, *want; /* want: profile/identity/listener */
		const char *listener;            /* of run time, through which it was made */
	} rows[] = {
		{"a", "two", "two/alice-too/;", ""},
		{"a", "one", "one/alice/agents;", ""},
		{"a", "", "one/alice/agents;two/alice-too/;", ""},
		{"a", "three", "one/alice/agents;two/alice-too/;", ""},
		{"a", "removed", "one/alice/agents;two/alice-too/;", ""},
		{"b", "one", "two/bob/agents;", ""},
		{"gone", "three", "three//;", ""},
		{"gone", "removed", "", ""},
		{"gone", "", "", ""},
		{"uid-1000@agents", "", "guests//agents;", ""},
		{"uid-1000@closed", "", "", ""},
		{"tcp@people", "", "three//other;", ""},
		{"uid-1000@other", "", "", ""},
		{"uid-1000@removed", "three", "three//;", ""},
		{"a", "three", "three//seven;",
		 "seven"}, /* neither excused nor stopped by one or two */
		{"a", "one", "one//seven;", "seven"},
		{"a", "removed", "", "seven"},
		{"gone", "three", "three//seven;", "seven"},
	};
	struct err err = {0};
	struct engine *rules = engine_open(&source, 1, &engine_default_limits, &err);

	(void)state;
	CHECK_STR("load", "", err.msg);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct again what = {.owner = rows[i].owner,
					   .profile = rows[i].made,
					   .listener = rows[i].listener};
		struct candidate found[REJUDGE_CANDIDATES];
		size_t count = rejudge_candidates(&conf, rules, &what, found);
		char text[400] = "";

		for (size_t k = 0; k < count; k++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s/%s/%s;",
				 profile_name(found[k].profile),
				 found[k].identity ? found[k].identity->name : "",
				 found[k].listener);
		CHECK_STR(rows[i].owner, rows[i].want, text);
	}
	engine_close(rules);
}

/* The engine says how many there are. */
static void only_so_many_wait(void **state)
{
	struct proxy_conf conf = {.backend_count = 1};
	struct worker w = {.conf = &conf};
	struct rejudging r = {.worker = &w};
	struct look one = {.of = &r};

	(void)state;
	for (int i = 0; i < REJUDGE_MAX + 5; i++)
		rejudging_ended(&r, &one, FINDING_UNKNOWN, true);
	CHECK_INT("wait", REJUDGE_MAX, r.todo_count);
	CHECK_INT("were left out", 5, r.tally.left_out);
	free(r.todo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weighs),
		cmocka_unit_test(knows_trouble),
		cmocka_unit_test(chooses_profiles),
		cmocka_unit_test(only_so_many_wait),
	};

	jv_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
