/*
 * status_ask.h - asks the running gate for its status.
 */
#ifndef GATE_STATUS_ASK_H
#define GATE_STATUS_ASK_H

#include "gate/base/arena.h"
#include "gate/base/err.h"
#include "gate/base/jv.h"

#define STATUS_MAX ((size_t)1 << 20) /* bytes of the answer */

/*
 * socket: path of the admin socket.  Waits a few seconds at most.  -1: err.sys is
 * EACCES if one may not connect; ERR_INPUT: the gate is there and does not tell.
 */
int status_ask(const char *socket, struct arena *a, struct jv *ret, struct err *err);

#endif
