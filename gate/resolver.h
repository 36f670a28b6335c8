/*
 * resolver.h - the process that looks at host paths for the workers.
 *
 * It answers one question at a time, in the order in which they came, so that a
 * file system that hangs holds up nothing but answers about paths.
 */
#ifndef GATE_RESOLVER_H
#define GATE_RESOLVER_H

/* Serves until the control socket ends; returns the process's exit status. */
int resolver_run(int control);

#endif
