/*
 * client_stub.h - what a real client would ask the engine for, without an engine.
 *
 * The client runs with DOCKER_HOST set to a socket of ours.  We answer what it asks
 * to get acquainted (ping, version, info), say "nothing" to what it wants to look at,
 * and refuse the first request that would change something.
 */
#ifndef GATE_CLIENT_STUB_H
#define GATE_CLIENT_STUB_H

#include "gate/base/buf.h"
#include "gate/base/err.h"

#define CLIENT_STUB_MS 15000 /* that the client may take in all */

/*
 * Runs the words as a program with its arguments and appends to out, as raw HTTP one after the
 * other, all requests but those by which it gets acquainted.  ERR_INPUT: it asked for nothing.
 * The program's output goes nowhere, and it is ended before this returns.
 */
int client_stub_run(const char *const *words, size_t count, struct buf *out, struct err *err);

#endif
