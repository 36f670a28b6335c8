#include "audit/read.h"

#include "audit/line_priv.h"
#include "audit/segment_priv.h"
#include "gate/base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

static int read_segment(struct line_reader *r, const char *dir, log_line_fn *fn, void *arg,
			struct err *err)
{
	struct span text;
	int rc;

	while (line_reader_next(r, &text) == LINE_WHOLE) {
		struct line line;

		if (!line_split(text, &line))
			return err_set(
				err, ERR_INPUT,
				"%s holds a line that is no record; 'audit verify' says more", dir);
		if (!line_hash_ok(text, &line))
			return err_set(err, ERR_INPUT,
				       "record %" PRIu64
				       " of %s was altered; 'audit verify' says more",
				       line.seq, dir);
		rc = fn(arg, text);
		if (rc)
			return rc;
	}
	if (!r->error)
		return 0;
	errno = r->error;
	return err_sys(err, "read the audit log");
}

int log_read(const char *dir, log_line_fn *fn, void *arg, struct err *err)
{
	auto_fd int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct line_reader reader;
	struct segments all;
	int rc = 0;

	if (dir_fd < 0)
		return err_sys(err, "open %s", dir);
	if (segments_list(dir_fd, &all, err) < 0)
		return -1;
	if (!line_reader_init(&reader, -1))
		rc = err_set(err, ERR_LIMIT, "no memory to read the log");
	else if (!all.count)
		rc = err_set(err, ERR_CONFIG, "there are no log segments in %s", dir);
	for (size_t i = 0; rc == 0 && i < all.count; i++) {
		auto_fd int fd = segment_open(dir_fd, all.first[i], O_RDONLY, err);

		reader.fd = fd;
		line_reader_seek(&reader, 0);
		rc = fd < 0 ? -1 : read_segment(&reader, dir, fn, arg, err);
	}
	line_reader_fini(&reader);
	segments_free(&all);
	return rc;
}
