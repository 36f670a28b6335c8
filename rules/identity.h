/*
 * identity.h - who asks, and under which profile.
 *
 * Made by proxy/ from the listener, the peer's credentials and the
 * configuration; strings live as long as the connection.  Zeroed memory is
 * nobody, under no profile, which nothing allows.
 */
#ifndef RULES_IDENTITY_H
#define RULES_IDENTITY_H

#include "gate/base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a TLS client certificate says that the handshake found genuine. */
struct identity_cert {
	const char *subject;     /* for people, at most 512 bytes; names below are for rules */
	const char *sha256;      /* of the certificate, in hexadecimal digits */
	const char *spki;        /* of its public key, likewise */
	const char *cn;          /* the one common name; "" without one, or with several */
	const char *const *dns;  /* alternative names, NULL at the end; wildcards are left out */
	const char *const *uris; /* such as SPIFFE ids */
	const char *const *emails;
};

struct caller_label {
	const char *name, *value;
};

/* The container that a caller runs in, as its engine tells. */
struct caller_container {
	const char *id;       /* full */
	const char *name;     /* without the slash of the API */
	const char *image;    /* the reference that it was made from */
	const char *image_id; /* "sha256:..." */
	const char *owner;    /* who made it through the gate; "": nobody, it is the operator's */
	const struct caller_label *labels; /* those that the listener asks for, and no others */
	size_t label_count;
};

/* Whether a label may be shown: it fits one of these globs (NULL at the end, or NULL: none). */
bool caller_label_is_listed(const char *const *globs, struct span name);

struct identity {
	const char *name;     /* as configured; "" for a caller that only the listener lets in */
	const char *owner;    /* stable id that the caller's objects are labelled with */
	const char *profile;  /* name of the trust profile */
	const char *listener; /* where it came in */
	bool has_token;       /* known by a bearer token */
	bool by_container; /* known by the container that it runs in, perhaps among other things */
	const struct identity_cert *cert; /* NULL: none was shown */
	const char *address;              /* of a TCP peer; "" on unix sockets */
	bool has_cred;                    /* uid, gid and pid are known (unix sockets) */
	uint32_t uid, gid;
	int32_t pid;
	const struct caller_container *container; /* NULL: in none, not asked, or unknown */
};

/*
 * By what the caller is known: "token", "cert", "cert+token", "container",
 * "peercred", or
 * "listener": by nothing of its own.
 */
const char *identity_method(const struct identity *who);

#endif
