/*
 * listen.h - the sockets on which the gate can be reached.
 */
#ifndef GATE_LISTEN_H
#define GATE_LISTEN_H

#include "gate/base/err.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

struct listen_access {
	uid_t uid;
	gid_t gid;
	mode_t mode;
};

/*
 * Makes a listening, non-blocking unix socket with this owner and mode.  A
 * socket file that nobody answers on is removed first; anything else in its
 * place is an error, and so is a folder that does not exist.
 */
int listen_unix(const char *path, const struct listen_access *access, int *ret_fd, struct err *err);

/* Removes a socket file that nobody answers on; 0 as well if there is nothing. */
int listen_clear(const char *path, struct err *err);

struct listen_tcp {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} addr;
	socklen_t len;
	bool loopback; /* only this host reaches it */
};

/* "127.0.0.1:2375", "[::1]:2375"; no names, no port 0.  -1: it is no such text. */
int listen_tcp_parse(const char *text, struct listen_tcp *ret);

/* A listening, non-blocking TCP socket. */
int listen_on_tcp(const char *text, int *ret_fd, struct err *err);

/* A connected, blocking socket with a time limit on each read and write. */
int listen_connect(const char *path, unsigned limit_ms, int *ret_fd, struct err *err);

#endif
