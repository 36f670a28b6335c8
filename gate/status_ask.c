#include "gate/status_ask.h"

#include "gate/base/auto.h"
#include "gate/listen.h"

#include <unistd.h>

#define LIMIT_MS 5000
#define PIECE    4096

static int read_answer(int fd, struct buf *ret, struct err *err)
{
	ssize_t n;

	do {
		size_t want = buf_room(ret) < PIECE ? buf_room(ret) : PIECE;
		char *at = buf_reserve(ret, want);

		n = at ? read(fd, at, want) : -1;
		if (n > 0)
			buf_commit(ret, (size_t)n);
	} while (n > 0);
	if (n < 0)
		return err_sys(err, "read the status");
	if (!buf_len(ret))
		return err_set(err, ERR_SYSTEM,
			       "the gate says nothing: only root and its own user may ask");
	return 0;
}

int status_ask(const char *socket, struct arena *a, struct jv *ret, struct err *err)
{
	auto_fd int fd = -1;
	enum jv_fault fault;
	struct buf text;
	int rc;

	if (listen_connect(socket, LIMIT_MS, &fd, err) < 0)
		return -1;
	buf_init(&text, STATUS_MAX);
	rc = read_answer(fd, &text, err);
	if (rc == 0)
		rc = jv_parse(a, buf_span(&text), ret, &fault, err);
	buf_fini(&text);
	return rc;
}
