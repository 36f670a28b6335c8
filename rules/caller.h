/*
 * caller.h - by which container an identity is known.
 *
 *	id:64-hex-digits                     that very container
 *	name:traefik, name:runner-*          its name
 *	image:traefik:v3, image:sha256:...   the image that it was made from, or the image's id
 *	label:com.docker.compose.service=ci  a label that it was given, not one of its image
 *	none                                 in no container: a process of the host
 *
 * Names, images and values of labels are globs as everywhere in profiles.
 *
 * Whoever makes a container chooses its name, its image and its labels.  So a
 * container that was made through the gate fits only where made_by names its
 * owner: else a caller could become anybody by making one that looks the part.
 */
#ifndef RULES_CALLER_H
#define RULES_CALLER_H

#include "gate/base/arena.h"
#include "gate/base/err.h"
#include "gate/base/jv.h"
#include "gate/base/span.h"
#include "rules/identity.h"

enum caller_sign_kind {
	SIGN_NOTHING = 0, /* the container does not matter */
	SIGN_ID,
	SIGN_NAME,
	SIGN_IMAGE,
	SIGN_LABEL,
	SIGN_OUTSIDE, /* none */
	SIGN_COUNT
};

struct caller_sign {
	enum caller_sign_kind kind;
	const char *label;   /* SIGN_LABEL: its name */
	const char *pattern; /* a glob */
	const char *made_by; /* a glob over owner ids; "": not made through the gate */
};

/* ERR_CONFIG says what would be accepted.  Strings come from the arena; made_by is left alone. */
int caller_sign_parse(const char *text, struct arena *a, struct caller_sign *ret, struct err *err);

/* What a facts file or a test says of a container; false: it is none.  Strings are the tree's. */
bool caller_container_read(const struct jv *tree, struct arena *a, struct caller_container *ret);

/* Whether a container that is known has the sign; never true for SIGN_OUTSIDE. */
bool caller_sign_fits(const struct caller_sign *sign, const struct caller_container *c);

#endif
