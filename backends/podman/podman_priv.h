/*
 * podman_priv.h - the Podman adapter, for its own files and their tests.
 *
 * Podman serves two trees: one that answers as a Docker engine does (compat.def), and
 * its own (libpod.def).  This adapter is Docker's but for what a docker_flavor says:
 *
 *	podman.c      the table of functions; versions of paths; where things are asked for
 *	translate.c   what the service says of itself and of containers, as Docker's engine would
 *	accepts.c     what a request may not ask for here, beside what no engine grants
 *	made.c        what is sent, and what was made beside it
 *	libpod.c      the other tree: versions, and what has a form of its own
 *	fields.def, spec.c  its create, in the words of the compatible one
 *
 * What runs a container is no choice of a request: the service starts all with its own
 * runtime.  So the level is that runtime's, by the program that the service reports, and after a
 * create, and before each start, the container's own (OCIRuntime) must be that one.
 */
#ifndef BACKENDS_PODMAN_PODMAN_PRIV_H
#define BACKENDS_PODMAN_PODMAN_PRIV_H

#include "backends/docker/docker_priv.h"

#define PODMAN_PREFIX "/v4.0.0" /* of the libpod tree: the oldest form that all serve */

#define PODMAN_MAJOR_MIN 4
#define PODMAN_MAJOR_MAX 6

extern const struct docker_flavor podman_flavor;

/* libpod.c */
int podman_take_version(struct backend_call *call, const char **path);
void podman_refusal(const char *message, struct buf *ret_body, const char **ret_content_type);
docker_step_fn podman_step_create, podman_step_exec_start, podman_step_pull, podman_step_shown,
	podman_step_volumes, podman_step_volume_create;

/* spec.c: the body, in the words of the compatible tree; false: refused. */
bool podman_read_spec(struct backend_call *call);

/* translate.c */
void podman_translate(struct backend_call *call, struct lookup *answer);
void podman_isolation(const struct jv *doc, struct arena *a, struct isolation_service *ret);

/* accepts.c */
bool podman_accepts(struct docker_reading *r);

/* made.c */
void podman_finish(struct backend_call *call, struct jv *config, struct jv *host);
void podman_compare(struct backend_call *call, const struct jv *sent, const struct jv *host,
		    const struct jv *doc);

#endif
