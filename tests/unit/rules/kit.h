/*
 * kit.h - what the tests of rules share: engines from text, facts from JSON.
 */
#ifndef TESTS_UNIT_RULES_KIT_H
#define TESTS_UNIT_RULES_KIT_H

#include "rules/engine.h"
#include "tests/unit/check.h"

/* A create that the reference policy (tests/profiles/ref.lua) allows, as facts. */
extern const char kit_create[];

/* Opens an engine over one file, or fails the test. */
struct engine *kit_open(const char *text);
struct engine *kit_open_limits(const char *text, const struct engine_limits *limits);

/* The message with which text does not load; fails the test if it loads. */
const char *kit_load_error(const char *text);

/* The engine of tests/profiles/ref.lua. */
struct engine *kit_open_ref(void);

/* A whole file below the source root; freed by the caller. */
char *kit_read(const char *path);

struct kit_answer {
	int result; /* of engine_judge() */
	struct decision decision;
	struct err err;
	struct arena *arena;
};

/*
 * Judges base with change merged into it: objects member by member, everything
 * else replaced, null removes.  Release with kit_drop().
 */
void kit_judge(struct engine *eng, const char *profile, const char *base, const char *change,
	       struct kit_answer *ret);
/* ... with an operator's word above the profile, or NULL. */
void kit_judge_under(struct engine *eng, const char *base, const char *change,
		     const struct override *override, struct kit_answer *ret);
void kit_drop(struct kit_answer *ans);

/* "allow", or the reason codes of all violations, one after the other, each once. */
const char *kit_reasons(const struct kit_answer *ans);

/* Parses, or fails the test. */
struct jv kit_json(struct arena *a, const char *text);

/* base with change merged into it. */
struct jv kit_merged(struct arena *a, const char *base, const char *change);

#endif
