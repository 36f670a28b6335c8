/*
 * runtime.h - listeners that are made and removed while the gate runs.
 *
 * One row says all of one, as plain data of a fixed size: it goes over control sockets
 * beside the listening descriptor, and every text in it ends with a NUL within its
 * field.  Everybody on such a socket is one caller: the owner is its name as well.
 *
 * New workers inherit the rows that there are (struct proxy_conf: runtime); a running
 * one is told 'l' with a row and a descriptor, and 'x' with the row of one that has
 * ended (worker.h).
 */
#ifndef PROXY_RUNTIME_H
#define PROXY_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUNTIME_MAX      1024 /* at once */
#define RUNTIME_NAME_MAX 64   /* bytes, without the NUL */
#define RUNTIME_PATH_MAX 100

struct runtime_row {
	uint64_t id;      /* never used twice by one gate */
	int64_t until;    /* seconds since 1970 */
	uint32_t backend; /* index into proxy_conf.backends */
	uint32_t uid, gid, mode;
	char name[RUNTIME_NAME_MAX + 1];
	char profile[RUNTIME_NAME_MAX + 1];
	char owner[RUNTIME_NAME_MAX + 1];
	char path[RUNTIME_PATH_MAX + 1];
};

/* A row and its listening socket. */
struct runtime_listener {
	struct runtime_row row;
	int fd;
};

/*
 * Letters, digits, '.', '_' and '-', at most RUNTIME_NAME_MAX of them, the first no '.': a
 * name stands in records, labels, and paths of mounts.
 */
bool runtime_is_name(const char *text, size_t len);

/* Every text ends within its field and is what it should be; the path is absolute and clean. */
bool runtime_is_row(const struct runtime_row *row);

#endif
