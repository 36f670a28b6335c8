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

/* Done in this process; writes the JSON object. */
void resolve_path(const char *path, struct buf *ret);

/*
 * What runs under a pid that an engine named.  Question: the ticket, then lines
 *
 *	pid 4242
 *	id 64-hex-digits                the container's; or nothing behind the word
 *	runtime /usr/bin/runsc          the runtime's program, as the engine reports it; likewise
 *	file /var/lib/docker/...        host paths to be looked at as well; PROCESS_FILES_MAX
 *
 * with '%' and line ends of paths as %XX.  Answer: the ticket, then
 *
 *	{"state":"seen","pid":4242,"start":1154694,"uid":1000,"gid":1000,"depth":2,
 *	 "seccomp":2,"filters":1,"no_new_privs":true,"uid_map":"0 0 4294967295",
 *	 "caps":{"inh":"0","prm":"0","eff":"0","bnd":"a80425fb","amb":"0"},
 *	 "namespaces":{"pid":{"ino":4026532181,"host":false}, ...},
 *	 "cgroup":{"path":"/docker/...","memory":104857600,"pids":50,"cpu_quota":50000,
 *		   "cpu_period":100000},
 *	 "label":"docker-default (enforce)",
 *	 "exe":{"path":"/bin/busybox","dev":"254:0","ino":17,"deleted":false},
 *	 "runtime":{"dev":"254:0","ino":99,"same":false},
 *	 "belongs":"cgroup",
 *	 "args":["runsc-sandbox","--network=none","boot"],
 *	 "mounts_of":"process","mounts":[{"id":89,"parent":72,"point":"/w","root":"/srv/w",
 *		"type":"ext4","source":"/dev/vda","ro":false,"propagation":"private",
 *		"host":true,"dev":"254:0","ino":1234}, ...],"mounts_cut":false,
 *	 "files":[{"path":"/var/...","dev":"254:0","ino":7}, ...],
 *	 "unknown":["namespaces.user", ...]}
 *
 * state: seen; gone (there is no such process, or it ended meanwhile: the
 * start time was read before and after all else); unknown (nothing of it can be
 * read).  belongs says how the process is known to be the container's: "cgroup",
 * "arguments" (of the runtime's own program), or "".  args are told only if the
 * program is the runtime's and the process the container's, and up to its subcommand and the next
 *word: those of workloads may hold secrets, and reading them is reading memory of theirs.
 * mounts_of: "process"; "gofer" for gVisor, whose sandbox keeps no mounts: the
 * process beside it, of the same parent and program and with the container's id
 * in its arguments, has the binds in its mount namespace; "" if that is not found.  host:
 * the mount is a piece of a file system that is mounted on the host too, or of a
 * kind that holds files of its own.  limits: -1 means none.  unknown names what
 * could not be read.
 */
#define PROCESS_FILES_MAX 64

void resolve_process(struct span question, struct buf *ret);

/*
 * Which containers a caller may be in.  Question: the ticket, then
 *
 *	caller 4242
 *
 * Answer: the ticket, then
 *
 *	{"state":"seen","start":1154694,"uid":1000,"gid":1000,
 *	 "place":"inside","ids":["64-hex-digits", ...]}
 *
 * place: inside, outside or unknown, by the names of its control groups (proxy/cgroup.h), which
 * prove nothing by themselves; outside also needs the resolver's own pid namespace.  ids: the
 * outermost first.  Once the engine has named the first process of one of them:
 *
 *	caller 4242
 *	init 4200
 *	id 64-hex-digits
 *
 * and behind "ids" comes "together": whether the caller is in the very control groups of that
 * container, as those of init are, and in init's pid namespace, unless that is the resolver's
 * own (pid: host), which says nothing.  Start times are read before and after all else.
 */
void resolve_caller(struct span question, struct buf *ret);

#endif
