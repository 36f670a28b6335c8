/*
 * rule_run.h - judges rows of rule tests, as the gate itself would.
 *
 * Requests go through the same front, adapter and rules as on a socket
 * (worker_check()); facts go to the rules.
 */
#ifndef GATE_RULE_RUN_H
#define GATE_RULE_RUN_H

#include "gate/rule_tests.h"
#include "rules/engine.h"

struct rule_answer {
	struct jv line;     /* as `check` prints it: verdict, reason, violations, ... */
	char problem[1024]; /* "": it came out as the test says */
};

struct rule_run;

/*
 * Opens the folder's profiles for these rows.  trace is filled by each
 * judgement; its on_line too.  Everything given must outlive the run.
 */
struct rule_run *rule_run_open(const struct profile_folder *folder, const struct rule_test *tests,
			       size_t count, struct engine_trace *trace, struct err *err);
void rule_run_close(struct rule_run *run);

struct engine *rule_run_engine(struct rule_run *run);

/* Judges tests[i].  -1: it could not be judged, which *err explains. */
int rule_run_judge(struct rule_run *run, size_t i, struct arena *a, struct rule_answer *ret,
		   struct err *err);

#endif
