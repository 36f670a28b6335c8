/*
 * evidence_rules.h - the rules, as an archive of evidence has them: their files, and for each
 * profile the files that its hash is made of, so that it can be made again.
 */
#ifndef GATE_EVIDENCE_RULES_H
#define GATE_EVIDENCE_RULES_H

#include "audit/evidence/evidence.h"
#include "gate/base/arena.h"
#include "gate/base/jv.h"
#include "gate/config.h"
#include "rules/engine.h"

struct evidence_rules {
	struct arena *arena; /* in which everything here lives */
	struct evidence_file files[EVIDENCE_FILES_MAX];
	size_t count;
	struct jv tree; /* {"prelude":[...],"profiles":[{"name","sha256","files"}],"bundles","keys"}
			 */
	struct jv *profiles, *bundles; /* of it */
};

/* The standard checks, and the public keys of signed bundles that the configuration trusts. */
int evidence_rules_begin(struct evidence_rules *r, const struct config *c, struct err *err);

/* One more file; text is kept, not copied. */
int evidence_rules_add_file(struct evidence_rules *r, const char *path, struct span text,
			    struct err *err);

/* Rules that eng has loaded, under rules/WHERE/. */
int evidence_rules_add(struct evidence_rules *r, const char *where, const struct engine *eng,
		       const struct rule_source *sources, size_t count, struct err *err);

/* Those of a path: a folder, a file of profiles, or a bundle that one of the keys has signed. */
int evidence_rules_add_path(struct evidence_rules *r, const char *path, const char *const *keys,
			    struct err *err);

/* A signed bundle as it is, if the path is one. */
int evidence_rules_add_bundle(struct evidence_rules *r, const char *path, struct err *err);

#endif
