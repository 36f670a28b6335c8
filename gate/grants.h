/*
 * grants.h - the line of a profile that would grant what was refused.
 */
#ifndef GATE_GRANTS_H
#define GATE_GRANTS_H

#include "gate/base/buf.h"
#include "gate/base/jv.h"
#include "rules/operation.h"

enum grants_answer {
	GRANTS_NOTHING = 0, /* no profile could: the text says why, or is empty */
	GRANTS_RULE,        /* a rule of the profile refused it: an exception, as text */
	GRANTS_LINE         /* this line of the profile would */
};

/*
 * facts: of the request; NULL if they are not known.  violation: {rule, reason,
 * value, ...} as records have it.  Appends the line, without indent and newline.
 */
enum grants_answer grants_line(const struct jv *facts, const char *op, const struct jv *violation,
			       struct buf *out);

#endif
