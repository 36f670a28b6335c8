/*
 * capability.h - the names of capabilities and what engines give of them.
 */
#ifndef GATE_BASE_CAPABILITY_H
#define GATE_BASE_CAPABILITY_H

#include "gate/base/span.h"

#include <stdint.h>

/* Names without CAP_; NULL behind the last that is known. */
const char *capability_name(unsigned nr);

/* The bit of a name without CAP_; all bits for ALL, 0 if it is not known. */
uint64_t capability_bit(struct span name);

/* What Docker and Podman's Docker API give a container where nothing is said. */
uint64_t capability_engine_default(void);

#endif
