#include "gate/http_get.h"

#include "gate/base/auto.h"
#include "gate/base/clock.h"
#include "gate/base/io.h"
#include "gate/listen.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

static int odd(struct err *err, const char *what)
{
	return err_set(err, ERR_UPSTREAM, "the answer is no HTTP: %s", what);
}

/* Up to the next CRLF; false if there is none. */
static bool take_line(struct span *rest, struct span *ret)
{
	if (!span_cut(rest, '\n', ret) || !ret->len || ret->at[ret->len - 1] != '\r')
		return false;
	ret->len--;
	return true;
}

static int parse_status(struct span line, int *ret)
{
	if (line.len < 12 || !span_starts(line, "HTTP/1.") || line.at[8] != ' ')
		return -1;
	*ret = 0;
	for (size_t i = 9; i < 12; i++) {
		if (line.at[i] < '0' || line.at[i] > '9')
			return -1;
		*ret = *ret * 10 + (line.at[i] - '0');
	}
	return 0;
}

static bool is_chunked(struct span line)
{
	static const char name[] = "transfer-encoding:";

	return line.len > sizeof(name) && strncasecmp(line.at, name, sizeof(name) - 1) == 0 &&
	       line.len >= 7 && strncasecmp(line.at + line.len - 7, "chunked", 7) == 0;
}

static int parse_size(struct span line, size_t *ret)
{
	size_t n = 0, i;

	for (i = 0; i < line.len && line.at[i] != ';'; i++) {
		const char *digits = "0123456789abcdef";
		const char *at = line.at[i] ? strchr(digits, line.at[i] | 0x20) : NULL;

		if (!at || i > 7)
			return -1;
		n = n * 16 + (size_t)(at - digits);
	}
	*ret = n;
	return i ? 0 : -1;
}

static int join_chunks(struct span rest, struct buf *ret, struct err *err)
{
	struct span line;
	size_t size;

	while (take_line(&rest, &line)) {
		if (parse_size(line, &size) < 0)
			return odd(err, "a chunk without a size");
		if (size == 0)
			return 0;
		if (rest.len < size + 2)
			break;
		buf_put(ret, rest.at, size);
		rest = span_skip(rest, size + 2);
	}
	return odd(err, "it ends within a chunk");
}

int http_get_parse(struct span answer, int *ret_status, struct buf *ret_body, struct err *err)
{
	struct span rest = answer, line;
	bool chunked = false;
	int status;

	if (!take_line(&rest, &line) || parse_status(line, &status) < 0)
		return odd(err, "no status line");
	for (;;) {
		if (!take_line(&rest, &line))
			return odd(err, "it ends within its head");
		if (!line.len)
			break;
		chunked |= is_chunked(line);
	}
	buf_init(ret_body, HTTP_GET_BODY_MAX);
	if (!chunked)
		buf_put(ret_body, rest.at, rest.len);
	else if (join_chunks(rest, ret_body, err) < 0) {
		buf_fini(ret_body);
		return -1;
	}
	*ret_status = status;
	return 0;
}

/* Everything until the other side closes. */
static int read_all(int fd, uint64_t until_ms, struct buf *out, struct err *err)
{
	for (;;) {
		struct pollfd watched = {.fd = fd, .events = POLLIN};
		uint64_t now = clock_boot_ms();
		char *at = buf_reserve(out, buf_room(out) < 65536 ? buf_room(out) : 65536);
		ssize_t n;

		if (!at)
			return err_set(err, ERR_LIMIT, "the answer is larger than %zu bytes",
				       out->cap);
		if (now >= until_ms || poll(&watched, 1, (int)(until_ms - now)) == 0)
			return err_set(err, ERR_UPSTREAM, "no answer in time");
		n = recv(fd, at, buf_room(out) < 65536 ? buf_room(out) : 65536, MSG_DONTWAIT);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return err_sys(err, "read the answer");
		if (n == 0)
			return 0;
		buf_commit(out, (size_t)n);
	}
}

int http_get(const char *socket_path, const char *target, unsigned limit_ms, int *ret_status,
	     struct buf *ret_body, struct err *err)
{
	uint64_t until = clock_boot_ms() + limit_ms;
	auto_fd int fd = -1;
	struct buf text;
	int rc;

	if (listen_connect(socket_path, limit_ms, &fd, err) < 0)
		return -1;
	buf_init(&text, HTTP_GET_BODY_MAX + 65536);
	buf_printf(&text, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
		   target);
	rc = io_write_all(fd, buf_span(&text).at, buf_len(&text), err);
	buf_clear(&text);
	if (rc == 0)
		rc = read_all(fd, until, &text, err);
	if (rc == 0)
		rc = http_get_parse(buf_span(&text), ret_status, ret_body, err);
	buf_fini(&text);
	return rc < 0 ? err_wrap(err, "%s", socket_path) : 0;
}
