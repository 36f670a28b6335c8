/*
 * tunnel.h - TLS to a service, for code that reads and writes plain bytes.
 *
 * A tunnel connects, shakes hands, and then carries bytes between one end of a
 * socket pair and the network, in the worker's loop and with fixed buffers, so that
 * push-back reaches either side.  A half-close of the plain end becomes TLS's
 * close_notify and the other way round.  A connection that ends without one is cut:
 * tunnel_trouble() says so.
 */
#ifndef PROXY_TUNNEL_H
#define PROXY_TUNNEL_H

#include "gate/base/err.h"
#include "proxy/loop.h"
#include "proxy/tls_client.h"

#include <sys/socket.h>

#define DIAL_ADDRESSES_MAX 8

struct dial_addresses {
	struct sockaddr_storage list[DIAL_ADDRESSES_MAX];
	socklen_t len[DIAL_ADDRESSES_MAX];
	size_t count;
};

struct tunnel;

/* Those of one service, so that what is left at the end can be cut. */
struct tunnels {
	struct tunnel *first;
};

/*
 * Tries the addresses one after the other.  *ret_fd: the plain end, the caller's.
 * to and tls outlive the tunnel.
 */
struct tunnel *tunnel_start(struct tunnels *all, struct loop *l, struct tls_client *tls,
			    const struct dial_addresses *to, int *ret_fd, struct err *err);

/* Why it ended, or "".  Of a tunnel that was not left yet. */
const char *tunnel_trouble(const struct tunnel *t);

/* Nobody asks about it any more: it frees itself when both sides are done.  NULL is allowed. */
void tunnel_leave(struct tunnel *t);

void tunnels_cut(struct tunnels *all);

/* A non-blocking TCP socket on its way to an address; -1 with err. */
int tunnel_connect(const struct dial_addresses *to, size_t at, struct err *err);

#endif
