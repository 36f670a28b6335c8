/*
 * rows.h - facts that differ from a fine request in one thing, and the reasons
 * that they are refused for, in the order in which they are given.
 */
#ifndef TESTS_UNIT_RULES_ROWS_H
#define TESTS_UNIT_RULES_ROWS_H

#include "tests/unit/rules/kit.h"

struct row {
	const char *label, *change, *want;
};

/* Judges each row's change to base by a profile of the engine; want "allow" is an allowance. */
void rows_judge(struct engine *eng, const char *profile, const char *base, const struct row *rows,
		size_t count);

/* The same by the reference policy. */
void rows_judge_ref(const char *base, const struct row *rows, size_t count);

/*
 * Each row's label is a line of a profile, "images = nil"; it stands in a
 * profile that grants kit_create, after what that says of the same setting.
 */
void rows_judge_settings(const struct row *rows, size_t count);

/* Facts of a caller of whom nothing else is known. */
extern const char rows_caller[];

#define W(x)             "{\"workload\":{" x "}}"
#define MOUNT(x)         W("\"mounts\":[{\"field\":\"m\"," x "}]")
#define HOST(kind, real) "\"host\":{\"kind\":\"" kind "\",\"real\":\"" real "\",\"links\":0}"
#define MOVABLE                                                                                    \
	",\"host\":{\"kind\":\"directory\",\"real\":\"/srv/ws/a\",\"links\":0,\"movable\":true}"
#define BIND(source, x)                                                                            \
	MOUNT("\"kind\":\"bind\",\"source\":\"" source "\",\"given\":\"" source                    \
	      "\",\"target\":\"/w\",\"read_only\":false,\"options\":[]" x)
#define OP(name, class)                                                                            \
	"\"operation\":{\"name\":\"" name "\",\"class\":\"" class "\",\"group\":\"\"}"
#define OTHER(name, class, x) "{" OP(name, class) ",\"workload\":{" x "}}"

#endif
