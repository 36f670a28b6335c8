/*
 * lint.h - mistakes in profiles, as what they say and as text.
 */
#ifndef GATE_LINT_H
#define GATE_LINT_H

#include "gate/profile_folder.h"
#include "rules/engine.h"

enum lint_code {
#define LINT(code, level, why, fix) LINT_##code,
#include "gate/lint.def"
#undef LINT
	LINT_COUNT
};

enum lint_level { LINT_ERROR = 0, LINT_WARNING, LINT_HINT };

struct lint {
	const struct profile_folder *folder;
	const struct engine *engine; /* NULL: it does not load */
	int64_t now;                 /* seconds since 1970 */
	struct arena *arena;
	/* Called for each finding; what may be "". */
	void (*found)(struct lint *l, enum lint_code code, const char *file, int line,
		      const char *what);
	void *arg;
};

const char *lint_code_name(enum lint_code c);
const char *lint_level_name(enum lint_level l);
enum lint_level lint_level_of(enum lint_code c);
const char *lint_why(enum lint_code c);
const char *lint_fix(enum lint_code c);

/* What loaded profiles say. */
void lint_profiles(struct lint *l);

/* What stands in a file. */
void lint_text(struct lint *l, const struct rule_source *file);

/* The line from `from` on that holds text; `from` if none does. */
int lint_line_of(const struct lint *l, const char *file, int from, const char *text);

#endif
