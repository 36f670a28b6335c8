/*
 * dockerfile_priv.h - a Dockerfile, read as the classic builder does.
 *
 * Parsers differ from version to version: in what ends an instruction (empty
 * lines and comments inside of one, two backslashes), in here-documents and in
 * directives.  Where they do, and it would make another instruction of what
 * follows, the file is refused.
 *
 *	dockerfile.c        lines -> instructions, one each
 *	dockerfile_words.c  words, names and values, ${variables}
 *	dockerfile_facts.c  what they would do: images, URLs, programs, users
 */
#ifndef BACKENDS_DOCKER_DOCKERFILE_PRIV_H
#define BACKENDS_DOCKER_DOCKERFILE_PRIV_H

#include "backends/docker/docker_priv.h"

#define DOCKERFILE_INSTRUCTIONS_MAX 4096
#define DOCKERFILE_STAGES_MAX       64
#define DOCKERFILE_TRIGGERS_MAX     64 /* ONBUILD lines of one image */

struct instruction {
	int line;
	char name[16];    /* upper case, known */
	struct span args; /* joined, without what surrounds it */
};

struct dockerfile {
	struct instruction *list;
	size_t count;
	char escape;
	/* If it is refused: */
	int line;
	const char *why; /* NULL: it is fine */
};

/* text lives as long as the arena. */
void dockerfile_read(struct arena *a, struct span text, struct dockerfile *ret);

/* One instruction in one line, as an image's triggers are. */
bool dockerfile_one(struct span line, struct instruction *ret, const char **ret_why);

/* --- words --- */

/* Cuts the next word; quotes and escapes keep what is in them together, and stay. */
bool dockerfile_word(struct span *rest, char escape, struct span *ret);

/* Without quotes around all of it.  False: quotes or escapes elsewhere, which are not read. */
bool dockerfile_unquote(struct span word, char escape, struct span *ret);

/*
 * ${variables} of vars (strings; null: declared, without a value) put in.
 * NULL: the result is not certain, *ret_why says why.
 */
const char *dockerfile_expand(struct backend_call *call, struct span word, const struct jv *vars,
			      const char **ret_why);

/* --- what it would do --- */

struct dockerfile_does {
	struct jv images;  /* {given, field, copy}: FROM, COPY --from; without stages and scratch */
	struct jv urls;    /* {value, field} */
	struct jv labels;  /* {name, field} */
	bool runs;         /* commands, in containers */
	bool root;         /* some of them as root */
	bool root_unknown; /* of some it is not known */
	bool healthcheck;
};

/*
 * Asks for the images that it is built from: their users and triggers count,
 * too.  False: refused.  Not complete while lookups are outstanding.
 */
bool dockerfile_does(struct docker_reading *r, const struct dockerfile *file, const char *name,
		     const struct jv *build_args, struct dockerfile_does *ret);

#endif
