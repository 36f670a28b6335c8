/*
 * explain.h - what each rule said of a request, and the smallest change that would let it pass.
 */
#ifndef GATE_EXPLAIN_H
#define GATE_EXPLAIN_H

#include "rules/engine.h"

#include <stdio.h>

/* facts: NULL if the rules were not asked.  trace: what they said. */
/* How the isolation of what would run comes about, if anything would. */
void explain_isolation(const struct jv *facts, FILE *out);
void explain_rules(const struct engine_trace *trace, FILE *out);
void explain_changes(const struct jv *facts, const char *op, const struct decision *d, FILE *out);

#endif
