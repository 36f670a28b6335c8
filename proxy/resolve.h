/*
 * resolve.h - asking the resolver process what a host path is.
 *
 * Question (one frame): a 64-bit ticket, then the path: absolute, cleaned.
 * Answer (one frame): the ticket, then a JSON object:
 *
 *	{"kind":"directory","real":"/etc","links":1,"movable":false,
 *	 "dev":"8:1","ino":123,"chain":["/srv/ws/link","/etc"]}
 *
 * kind: file, directory, socket, block, char, fifo, absent, unknown.  real is
 * the path with every link followed (for absent: of its deepest existing
 * parent, with the rest behind it); links counts links met, magic links of
 * /proc among them; movable: a user other than root can put something else
 * into the place of an entry that was met; unknown carries "why".  chain: each directory entry met
 *on the way, as absolute paths, so that a protected path is seen also when it is reached through a
 *link.
 */
#ifndef PROXY_RESOLVE_H
#define PROXY_RESOLVE_H

#include "gate/base/arena.h"
#include "gate/base/buf.h"
#include "gate/base/jv.h"

/* The resolver's one operation, done in this process; writes the JSON object. */
void resolve_path(const char *path, struct buf *ret);

#endif
