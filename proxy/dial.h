/*
 * dial.h - where a guarded service is, and connections to it.
 *
 * A service is a unix socket or a TCP address, the latter with or without TLS.
 * Whatever it is, the descriptor of a line speaks plain bytes and does not block:
 * behind TLS it is one end of a socket pair, and tunnel.h carries the bytes on.
 *
 * Names are looked up once, before anything is confined (dial_look_up()); a name that
 * is not known then stays unknown: every call fails, and says so.
 */
#ifndef PROXY_DIAL_H
#define PROXY_DIAL_H

#include "gate/base/err.h"
#include "proxy/conf.h"
#include "proxy/loop.h"
#include "proxy/tunnel.h"

#include <stdbool.h>

struct dial;

/* May wait for a name server.  ERR_UPSTREAM: ret->count is 0. */
int dial_look_up(const struct conf_tcp *tcp, struct dial_addresses *ret, struct err *err);

/* Looks the name up unless that was done. */
struct dial *dial_open(const struct conf_backend *conf, struct err *err);
struct dial *dial_open_unix(const char *path, struct err *err);
void dial_close(struct dial *d); /* NULL is allowed; tunnels that still carry are cut */

/* A connection: to a unix socket at once, over TCP perhaps still on its way. */
struct line {
	int fd;                /* the caller's; -1: none */
	bool connecting;       /* TCP: dial_settle() when it can be written to */
	size_t tried;          /* addresses that did not answer */
	struct tunnel *tunnel; /* TLS; to be left with tunnel_leave() */
};

/* ret->tried is 0, or what an earlier line got to. */
int dial_start(struct dial *d, struct loop *l, struct line *ret, struct err *err);

/* 0: it is connected.  -1: it is not, and err says why. */
int dial_settle(const struct dial *d, struct line *line, struct err *err);

/* There are more addresses than line->tried. */
bool dial_has_more(const struct dial *d, const struct line *line);

/*
 * True if what is behind the line is not what was behind the one before it: the
 * service was started anew.  Known of unix sockets alone, from whose process listens.
 */
bool dial_is_another(struct dial *d, const struct line *line);

/* What was there is known to be gone: whatever answers next is no surprise. */
void dial_is_lost(struct dial *d);

#endif
