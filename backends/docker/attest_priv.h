/*
 * attest_priv.h - what the parts of attest.c share: looking at what was started.
 */
#ifndef BACKENDS_DOCKER_ATTEST_PRIV_H
#define BACKENDS_DOCKER_ATTEST_PRIV_H

#include "backends/docker/docker_priv.h"

/* What came of looking at a process: lists for people, and whether it may go on. */
struct docker_attesting {
	struct backend_call *call;
	const struct jv *facts; /* that were judged */
	const struct jv *doc;   /* the container */
	const struct jv *seen;  /* the resolver's answer */
	struct jv *ret;         /* the attestation */
};

void docker_differs(const struct docker_attesting *at, const char *field, const char *seen,
		    const char *judged);
void docker_not_seen(const struct docker_attesting *at, const char *what);
/* ... and it is in vain to look again: what runs does not change it. */
void docker_never_seen(const struct docker_attesting *at, const char *what);
void docker_attest_mounts(const struct docker_attesting *at);
/* Host paths that the engine mounts by itself, for the question. */
void docker_attest_files(struct backend_call *call, const struct jv *doc, struct buf *out);

/* attest_privileges.c */
void docker_attest_capabilities(const struct docker_attesting *at);
void docker_attest_seccomp(const struct docker_attesting *at);
void docker_attest_no_new_privs(const struct docker_attesting *at);
bool docker_expects_filter(const struct docker_attesting *at);
bool docker_is_runtime_still(const struct jv *seen);

/* A member that is there and is no null. */
static inline const struct jv *docker_told(const struct jv *obj, const char *key)
{
	const struct jv *v = jv_get(obj, key);

	return v && v->kind != JV_NULL ? v : NULL;
}

#endif
