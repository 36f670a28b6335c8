/*
 * successor.h - what a worker that is replaced has to know of the rules that follow,
 * to judge its streams by them: sealed memory, written by the supervisor.
 *
 * Not the bundle itself: making a configuration of that looks up users and hosts, which
 * a worker cannot, and it holds keys, which it need not.
 */
#ifndef GATE_SUCCESSOR_H
#define GATE_SUCCESSOR_H

#include "gate/base/err.h"
#include "gate/bundle.h"
#include "proxy/conf.h"

/* Sealed memory with the rules, and by which profile whom they judge. */
int successor_write(const struct proxy_conf *next, struct bundle *ret, struct err *err);

/*
 * Takes the descriptor.  *ret has identities (name, profile), listeners (name, otherwise), rules
 * and their limits, and nothing else; it lives in what *ret_kept is, until successor_drop().
 */
int successor_read(int fd, const struct proxy_conf **ret, void **ret_kept, struct err *err);
void successor_drop(void *kept); /* NULL is allowed */

#endif
