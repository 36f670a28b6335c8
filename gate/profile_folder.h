/*
 * profile_folder.h - a folder of profiles as its authors have it: for test and lint.
 *
 * *.lua are files of profiles, *_test.lua are tests of them, which serve and
 * check leave alone.  *.seccomp.json are profiles of system calls (rules/seccomp.h).
 */
#ifndef GATE_PROFILE_FOLDER_H
#define GATE_PROFILE_FOLDER_H

#include "gate/base/arena.h"
#include "gate/base/err.h"
#include "rules/engine.h"

#define FOLDER_FILES_MAX 256

struct profile_folder {
	struct rule_source sources[FOLDER_FILES_MAX]; /* names with the folder in front */
	size_t source_count;
	struct rule_source tests[FOLDER_FILES_MAX];
	size_t test_count;
};

/* Whether a file of this name is read at all. */
bool profile_folder_has(const char *name);

/* Whether a file of this name holds tests. */
bool profile_folder_is_test(const char *name);

/* path: a folder, or one file of profiles.  Texts live in the arena. */
int profile_folder_read(const char *path, struct arena *a, struct profile_folder *ret,
			struct err *err);

#endif
