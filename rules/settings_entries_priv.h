/*
 * settings_entries_priv.h - what an entry of a setting that is a list may be.
 */
#ifndef RULES_SETTINGS_ENTRIES_PRIV_H
#define RULES_SETTINGS_ENTRIES_PRIV_H

#include "rules/settings_priv.h"

/* What runs in one check: where the result goes, and where trouble is said. */
struct checking {
	struct arena *arena;
	struct err *err;
};

/* ERR_CONFIG: what is expected, and what was found. */
int settings_wrong(const struct checking *c, const char *want, const struct jv *found);

/* Takes a string and may rewrite it. */
typedef int (*settings_entry_fn)(struct checking *c, struct jv *entry);

/* That of entries of this setting. */
settings_entry_fn settings_entry_check(const char *setting);

int settings_any_word(struct checking *c, struct jv *entry);

#endif
