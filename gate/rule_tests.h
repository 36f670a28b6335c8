/*
 * rule_tests.h - tests of profiles: tables in *_test.lua beside them.
 *
 *	defaults { profile = "agent", identity = "ann" }
 *	test "no privileged mode" {
 *		docker = { "run", "--privileged", "alpine" },
 *		reason = "privileged",
 *	}
 *
 * Each row is a request, or facts, and what must come of it (rule_tests.def);
 * `defaults` fill in what the rows behind them leave out.  The files are Lua
 * without functions that could judge, so loops may make rows.
 */
#ifndef GATE_RULE_TESTS_H
#define GATE_RULE_TESTS_H

#include "gate/base/arena.h"
#include "gate/base/err.h"
#include "gate/base/jv.h"
#include "gate/profile_folder.h"

#define TESTS_MAX 4096

struct rule_test {
	const char *file, *name;
	int line;
	const char *profile;
	struct jv who; /* {name, owner, uid, gid} */
	int64_t now;
	struct jv facts; /* JV_NULL: there is a request */
	struct span request;
	struct jv world;
	const char *expect, *reason, *rule, *field, *value, *warning; /* "": not said */
};

/* Appends the rows of one file; strings live in the arena.  ERR_CONFIG: "file:line: ...". */
int rule_tests_read(const struct rule_source *file, struct arena *a, struct rule_test *to,
		    size_t room, size_t *count, struct err *err);

#endif
