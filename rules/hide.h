/*
 * hide.h - what of an object a caller does not see, though it sees the object.
 *
 * Made from the setting `redact`; bits of a mask.  Which fields of its replies
 * they mean, each backend knows.
 */
#ifndef RULES_HIDE_H
#define RULES_HIDE_H

#include "gate/base/span.h"

enum hide {
	HIDE_NOTHING = 0,
	HIDE_ENV = 1,    /* values of environment variables */
	HIDE_MOUNTS = 2, /* paths on the host: of mounts and volumes, and where the service keeps
			    things */
};

/* The bit that a word of the setting stands for; HIDE_NOTHING if it is none. */
enum hide hide_find(struct span word);

#endif
