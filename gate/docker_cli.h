/*
 * docker_cli.h - a docker command line as the request that it sends first.
 *
 * For rule tests: {"run","--rm","alpine","id"} (with or without "docker" in
 * front) becomes the POST to /containers/create.  docker_cli.def has the
 * flags; what is not there is refused, so that no test passes by leaving
 * something out.
 */
#ifndef GATE_DOCKER_CLI_H
#define GATE_DOCKER_CLI_H

#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/jv.h"

/* words: an array of strings.  Appends a whole HTTP request to out; ERR_INPUT says which word is
 * wrong. */
int docker_cli_request(const struct jv *words, struct arena *a, struct buf *out, struct err *err);

#endif
