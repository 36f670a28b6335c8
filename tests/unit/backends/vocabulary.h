/* vocabulary.h - holds facts against rules/workload.def. */
#ifndef TESTS_UNIT_BACKENDS_VOCABULARY_H
#define TESTS_UNIT_BACKENDS_VOCABULARY_H

#include "gate/base/jv.h"

/* Writes the first fact that is no row, or of another kind, into bad; "" if all are fine. */
void vocabulary_check(const struct jv *facts, char *bad, size_t size);

#endif
