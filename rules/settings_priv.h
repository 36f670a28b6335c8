/*
 * settings_priv.h - the settings of a profile: checked, merged, completed.
 *
 * Made from settings.def.  A setting goes through three forms, all of them
 * objects whose members are settings:
 *
 *	raw      as the Lua table has it
 *	given    checked, and written in one way: sizes are bytes, capabilities
 *		 upper case without CAP_, images in full, mounts {path, mode}
 *	effective  given, within what the parent grants, with defaults for the rest
 *
 * An absent setting grants nothing; the defaults are in one table in settings.c.
 */
#ifndef RULES_SETTINGS_PRIV_H
#define RULES_SETTINGS_PRIV_H

#include "gate/base/arena.h"
#include "gate/base/err.h"
#include "gate/base/jv.h"
#include "rules/engine.h"

enum setting_kind {
	KIND_STRING = 0,
	KIND_BOOL,
	KIND_HARDEN, /* a bool, or { read_only = bool }, which means true */
	KIND_STRINGS,
	KIND_ISOLATION,
	KIND_MOUNTS,
	KIND_EGRESS,
	KIND_USERS,
	KIND_HOST_TOOLS,
	KIND_LIMITS,
	KIND_OPERATIONS,
	KIND_VISIBILITY,
	KIND_MODE,
	KIND_MODES, /* names of standard checks: profile.c knows which there are */
	KIND_DENIAL,
	KIND_RUNNING,
	KIND_QUOTA,
	KIND_RATE,
	KIND_SECCOMP, /* a name: profile.c knows which there are */
	KIND_APPARMOR,
	KIND_UPDATE,
	KIND_SANDBOX
};

enum setting_merge { MERGE_LATER = 0, MERGE_LOWER, MERGE_HIGHER, MERGE_SUBSET, MERGE_BOTH };

enum setting_enforced { SETTING_NOT_YET = 0, SETTING_ENFORCED };

struct setting {
	const char *name;
	enum setting_kind kind;
	enum setting_merge merge;
	enum setting_enforced enforced;
	const char *doc;
};

/* What host_tools can be, the weakest grant first; NULL at the end. */
extern const char *const host_tools_words[];

extern const struct setting settings[];
extern const size_t setting_count;

/* Where a profile is written, for messages. */
struct place {
	const char *file;
	struct span text; /* of the file */
	int line;         /* where the profile begins */
	const char *profile;
	const char *extends; /* the profile that it extends; "" if none */
};

/* raw -> given.  ERR_CONFIG: file, line, what was found, what is known. */
int settings_check(const struct place *at, const struct jv *raw, struct arena *a, struct jv *ret,
		   struct err *err);

/*
 * given -> effective.  parent: the effective settings of the profile that it
 * extends; NULL if it extends none.  A setting that would grant more than the
 * parent is ERR_CONFIG.
 */
int settings_complete(const struct place *at, const struct jv *given, const struct jv *parent,
		      struct arena *a, struct jv *ret, struct err *err);

/*
 * Whether inner, an effective value of this setting, grants no more than outer
 * does.  False when in doubt.  NULL is a value that is not there (egress).
 */
bool settings_within(const struct setting *s, const struct jv *outer, const struct jv *inner,
		     struct arena *a);

/* The same for single entries of a list. */
bool settings_entry_within(const char *setting, const struct jv *outer, const struct jv *inner);

/* The setting `sandbox`: settings_sandbox.c. */
int settings_check_sandbox(struct jv *v, struct arena *a, struct err *err);
/* What both say, the tighter word of each; loosening is ERR_CONFIG. */
int settings_sandbox_meet(const struct jv *parent, const struct jv *child, struct arena *a,
			  struct jv *ret, struct err *err);
bool settings_sandbox_within(const struct jv *outer, const struct jv *inner);

/* A word of `running`. */
enum running running_find(struct span word);

/* settings_update.c: `update`; false, or a table with all its members.  NULL is false. */
int settings_check_update(struct jv *v, struct arena *a, struct err *err);
bool settings_update_within(const struct jv *outer, const struct jv *inner);

/* The line on which a profile says a setting; that of the profile if it does not. */
int settings_line(const struct place *at, const char *setting);

/* Puts "file:line: profile "x": setting: " before the message; line is that of the setting. */
int settings_blame(const struct place *at, const char *setting, struct err *err);

#endif
