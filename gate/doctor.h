/*
 * doctor.h - what is weak on this host, why it matters, how to mend it.
 */
#ifndef GATE_DOCTOR_H
#define GATE_DOCTOR_H

#include "gate/base/arena.h"
#include "gate/config.h"

enum finding_level {
	FINDING_WEAK = 0, /* should be mended */
	FINDING_NOTE,     /* should be known */
	FINDING_FINE,
};

struct finding {
	enum finding_level level;
	/* why (of lines) and mend: "" if there is nothing to say */
	const char *what, *why, *mend;
};

#define FINDINGS_MAX 512

struct findings {
	struct arena *arena;
	const struct config *config; /* NULL: only the host is looked at */
	const char *root;            /* in front of paths, for tests; NULL: none */
	struct finding list[FINDINGS_MAX];
	size_t count;
	size_t asked;        /* backends that said what they are */
	enum isolation best; /* of those, the strongest isolation */
};

/* what is copied; why and mend are kept. */
void finding_add(struct findings *f, enum finding_level level, const char *why, const char *mend,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

void doctor_host(struct findings *f);    /* kernel, users, who runs the gate */
void doctor_engines(struct findings *f); /* sockets, who can open them, runtimes */
void doctor_tls(struct findings *f);     /* certificates of listeners */
void doctor_reach(struct findings *f);   /* where engines listen beside their socket */
void doctor_sinks(struct findings *f);   /* how far they are; the log's anchor */
void doctor_config(struct findings *f);  /* what the configuration leaves open */

/* Profiles that ask for more isolation than this backend has; and, of all that were asked, than
 * any of them has. */
void doctor_served(struct findings *f, const struct conf_backend *b,
		   const struct isolation_service *s);
void doctor_unserved(struct findings *f);

/* Of one socket: a mount of the file itself; its access control list. */
void doctor_mounted_socket(struct findings *f, const char *path);
void doctor_acl(struct findings *f, const char *path);

/* Containers that mount the engine's socket, or a folder above it. */
void doctor_containers(struct findings *f, const struct conf_backend *b);

#endif
