/*
 * io.h - small helpers around descriptors.
 */
#ifndef GATE_BASE_IO_H
#define GATE_BASE_IO_H

#include "gate/base/buf.h"
#include "gate/base/err.h"
#include "gate/base/span.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define IO_FDS_MAX 4 /* descriptors in one message */

/* Two connected stream sockets, close-on-exec; ret[0] and ret[1] are alike. */
int io_pair(int ret[2], struct err *err);

int io_nonblock(int fd, struct err *err);

/*
 * One message with descriptors (SCM_RIGHTS) over a blocking stream socket.
 * tag says what they are for; count may be 0.  io_recv_fds() sets *ret_count;
 * it returns 1 for a message, 0 when the peer is gone, -1 on error.  What is
 * received is close-on-exec and the caller's.
 */
int io_send_fds(int sock, char tag, const int *fds, size_t count, struct err *err);
int io_recv_fds(int sock, char *ret_tag, int fds[IO_FDS_MAX], size_t *ret_count, struct err *err);

/*
 * The same with `len` bytes behind the tag, all in one piece.  io_recv_note() takes them,
 * behind io_recv_fds(), from a blocking socket; -1: they did not come.
 */
int io_send_note(int sock, char tag, struct span note, const int *fds, size_t count,
		 struct err *err);
int io_recv_note(int sock, void *note, size_t len, struct err *err);

/*
 * Reads what comes until its end, at most cap bytes, into ret, which is initialised by the call;
 * on failure there is nothing in it to be freed.
 */
int io_read_fd(int fd, size_t cap, struct buf *ret, struct err *err);
int io_read_file(const char *path, size_t cap, struct buf *ret, struct err *err);

/* Writes all of it, through short writes and EINTR. */
int io_write_all(int fd, const void *bytes, size_t len, struct err *err);

/* The same from a place in a file on; -1: errno says why. */
int io_write_at(int fd, const void *bytes, size_t len, uint64_t at);

/*
 * In the place of the file of that name, whole and on disk, or not at all.  folder: an open one, or
 * AT_FDCWD; NAME.tmp is used, and a left-over of it removed.
 */
int io_replace(int folder, const char *name, mode_t mode, struct span text, struct err *err);

#endif
