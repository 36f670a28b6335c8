/*
 * rule_coverage.h - what a run of rule tests has seen of the rules.
 *
 * Two figures: outcomes, two for each rule (it let something pass, it objected
 * to something), and lines of the functions in the files of profiles.  The
 * standard checks count only when they are what is tested.
 */
#ifndef GATE_RULE_COVERAGE_H
#define GATE_RULE_COVERAGE_H

#include "gate/base/arena.h"
#include "gate/base/jv.h"
#include "gate/profile_folder.h"
#include "rules/engine.h"

#include <stdio.h>

struct rule_coverage;

/* checks: the standard checks count, too.  NULL: *err says why. */
struct rule_coverage *rule_coverage_open(const struct profile_folder *folder, bool checks,
					 struct err *err);
void rule_coverage_close(struct rule_coverage *c);

/* The rules of the profiles that there are, so that one that never ran counts. */
void rule_coverage_expect(struct rule_coverage *c, const struct engine *eng);

/* For engine_trace.on_line; arg is the coverage. */
void rule_coverage_line(void *arg, const char *file, int line);

/* What one judgement has shown. */
void rule_coverage_add(struct rule_coverage *c, const struct engine_trace *trace);

struct coverage_sum {
	unsigned outcomes, outcomes_seen, lines, lines_seen;
};

struct coverage_sum rule_coverage_sum(const struct rule_coverage *c);
void rule_coverage_print(const struct rule_coverage *c, FILE *out);
struct jv rule_coverage_tree(const struct rule_coverage *c, struct arena *a);

#endif
