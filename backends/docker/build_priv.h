/*
 * build_priv.h - POST /build: the archive is read on its way, until its
 * Dockerfile is known; that is judged; then the archive is sent, written anew.
 *
 *	build.c        what the request means; the tunnels of BuildKit
 *	build_query.c  the query <-> settings as a container has them
 *	build_body.c   the archive: plain or gzip, its wanted file
 *	tar.c tar_write.c gunzip.c dockerfile*.c   see their headers
 */
#ifndef BACKENDS_DOCKER_BUILD_PRIV_H
#define BACKENDS_DOCKER_BUILD_PRIV_H

#include "backends/docker/dockerfile_priv.h"
#include "backends/docker/gunzip_priv.h"
#include "backends/docker/tar_priv.h"

enum context_form { FORM_UNKNOWN = 0, FORM_PLAIN, FORM_GZIP };

struct docker_build {
	/* the body */
	char name[TAR_NAME_MAX + 1]; /* of the Dockerfile, clean */
	enum context_form form;
	char begin[6]; /* of the body, until the form is known */
	size_t begun;
	struct tar *tar;
	struct gunzip *gunzip;
	struct dockerfile file;
	bool read;       /* file is set */
	char sha256[72]; /* of the Dockerfile */

	/* the query */
	struct jv args;   /* build-time variables: strings and nulls */
	struct jv labels; /* that are sent, the gate's among them */
};

/* "version=2": the rest goes through tunnels. */
bool docker_build_is_opaque(const struct backend_call *call);

/* state->build, made; NULL: refused. */
struct docker_build *docker_build(struct backend_call *call);

/* Reads the query into state->body as a create would have it; false: refused. */
bool docker_build_query(struct backend_call *call, struct docker_build *b);

/* Writes it from there into state->asked; names and cache sources are there already. */
void docker_build_ask(struct backend_call *call, const struct docker_build *b, bool runs);

enum intake docker_intake(struct backend *be, struct backend_call *call, struct span *piece,
			  bool over, struct buf *ret);

/* copy_body.c: the archive of a copy; nothing in it is needed to judge the copy itself. */
enum intake docker_intake_copy(struct backend_call *call, struct span *piece, bool over,
			       struct buf *ret);

/* Hardening changed state->body: facts and query are made anew; false: it cannot be read. */
bool docker_build_again(struct docker *d, struct backend_call *call);

#endif
