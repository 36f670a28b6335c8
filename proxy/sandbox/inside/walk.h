/*
 * walk.h - a path, component by component, without openat2.
 */
#ifndef PROXY_SANDBOX_INSIDE_WALK_H
#define PROXY_SANDBOX_INSIDE_WALK_H

#include <stdbool.h>

/*
 * Opens (O_PATH) the folder at path, from a folder on; parents: makes what is missing (0755).
 * Unless follow, nothing leads out of that folder: ".." is EXDEV, a link ELOOP.  path is used up.
 * -1: errno.
 */
int walk_to(int from, char *path, bool parents, bool follow);

#endif
