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
	const char *what, *why, *mend; /* why and mend: "" if there is nothing to say */
};

#define FINDINGS_MAX 128

struct findings {
	struct arena *arena;
	const struct config *config; /* NULL: only the host is looked at */
	struct finding list[FINDINGS_MAX];
	size_t count;
};

/* what is copied; why and mend are kept. */
void finding_add(struct findings *f, enum finding_level level, const char *why, const char *mend,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

void doctor_host(struct findings *f);    /* kernel, users, who runs the gate */
void doctor_engines(struct findings *f); /* sockets, who can open them, runtimes */
void doctor_tls(struct findings *f);     /* certificates of listeners */
void doctor_config(struct findings *f);  /* what the configuration leaves open */

#endif
