/*
 * list_priv.h - every adapter that this build knows.
 */
#ifndef BACKENDS_LIST_PRIV_H
#define BACKENDS_LIST_PRIV_H

#include "backends/backend.h"

extern const struct backend_ops backend_docker;
extern const struct backend_ops backend_local;
extern const struct backend_ops backend_podman;

#endif
