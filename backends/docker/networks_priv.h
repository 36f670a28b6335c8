/*
 * networks_priv.h - whose an address is, as the engine's lists of networks say.
 *
 * Pure functions over its answers.
 */
#ifndef BACKENDS_DOCKER_NETWORKS_PRIV_H
#define BACKENDS_DOCKER_NETWORKS_PRIV_H

#include "gate/base/jv.h"

/* Both are addresses, of the same family, and equal; a length ("/24") behind one is cut off. */
bool docker_same_address(const char *a, const char *b);

/*
 * The id of the one bridge network that holds the caller's address and has ours
 * as its gateway.  NULL, with the reason: there is none, the address is our own
 * (a process of the host), or another network holds one of the two as well.
 */
const char *docker_network_of(const struct jv *networks, const char *peer, const char *own,
			      const char **ret_why);

/* The id of the one container that has that address on this network; NULL: none, or several. */
const char *docker_container_at(const struct jv *network, const char *address);

#endif
