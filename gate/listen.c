#include "gate/listen.h"

#include "gate/base/auto.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024

static int address(const char *path, struct sockaddr_un *ret, struct err *err)
{
	size_t len = strlen(path);

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (len >= sizeof(ret->sun_path))
		return err_set(err, ERR_CONFIG, "%s: too long for the path of a socket", path);
	memcpy(ret->sun_path, path, len);
	return 0;
}

int listen_connect(const char *path, unsigned limit_ms, int *ret_fd, struct err *err)
{
	const struct timeval limit = {limit_ms / 1000, (limit_ms % 1000) * 1000};
	auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr;

	if (fd < 0)
		return err_sys(err, "make a socket");
	if (address(path, &addr, err) < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return err_sys(err, "connect to %s", path);
	*ret_fd = take_fd(fd);
	return 0;
}

/* Only a socket that refuses connections is a left-over. */
int listen_clear(const char *path, struct err *err)
{
	auto_fd int fd = -1;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(err, "look at %s", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(
			err, ERR_CONFIG, "%s: exists and is no socket%s", path,
			S_ISDIR(st.st_mode)
				? "; engines make a folder where a mounted socket is missing: "
				  "remove it with rmdir"
				: "");
	if (listen_connect(path, 1000, &fd, err) == 0)
		return err_set(err, ERR_CONFIG, "%s: another process answers there", path);
	if (err->sys != ECONNREFUSED)
		return err_wrap(err, "%s: is it in use?", path);
	if (unlink(path) < 0)
		return err_sys(err, "remove the left-over %s", path);
	return 0;
}

static int bind_to(int fd, const char *path, const struct listen_access *access, struct err *err)
{
	struct sockaddr_un addr;
	mode_t before;
	int rc;

	if (address(path, &addr, err) < 0)
		return -1;
	/* By umask and lchown(): neither can be led through a link to another file. */
	before = umask(~access->mode & 0777);
	rc = bind(fd, (const struct sockaddr *)&addr, sizeof(addr));
	umask(before);
	if (rc < 0)
		return err_sys(err, errno == ENOENT ? "its folder must exist: bind %s" : "bind %s",
			       path);
	/* Listening first: who waits for the file to appear can connect from then on. */
	if (listen(fd, BACKLOG) < 0)
		err_sys(err, "listen on %s", path);
	else if (lchown(path, access->uid, access->gid) < 0)
		err_sys(err, "give %s to %u:%u", path, access->uid, access->gid);
	else
		return 0;
	unlink(path);
	return -1;
}

int listen_unix(const char *path, const struct listen_access *access, int *ret_fd, struct err *err)
{
	auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct err stale = {0};

	if (fd < 0)
		return err_sys(err, "make a socket");
	if (listen_clear(path, &stale) < 0) {
		*err = stale;
		return -1;
	}
	if (bind_to(fd, path, access, err) < 0)
		return -1;
	*ret_fd = take_fd(fd);
	return 0;
}

/* --- TCP --- */

/* Digits alone: no sign, no blank, no leading zero. */
static bool parse_port(const char *text, in_port_t *ret)
{
	size_t len = strlen(text);
	long port;

	if (!len || len > 5 || strspn(text, "0123456789") != len || text[0] == '0')
		return false;
	port = strtol(text, NULL, 10);
	*ret = htons((in_port_t)port);
	return port <= 65535;
}

static int parse_v6(const char *text, struct listen_tcp *ret)
{
	const char *end = strstr(text, "]:");
	char host[INET6_ADDRSTRLEN];
	size_t len = end ? (size_t)(end - text) - 1 : 0;

	if (!end || len >= sizeof(host))
		return -1;
	memcpy(host, text + 1, len);
	host[len] = '\0';
	ret->addr.v6.sin6_family = AF_INET6;
	ret->len = sizeof(ret->addr.v6);
	if (inet_pton(AF_INET6, host, &ret->addr.v6.sin6_addr) != 1 ||
	    !parse_port(end + 2, &ret->addr.v6.sin6_port))
		return -1;
	ret->loopback = IN6_IS_ADDR_LOOPBACK(&ret->addr.v6.sin6_addr);
	return 0;
}

int listen_tcp_parse(const char *text, struct listen_tcp *ret)
{
	const char *colon = strchr(text, ':');
	char host[INET_ADDRSTRLEN];

	*ret = (struct listen_tcp){.len = 0};
	if (text[0] == '[')
		return parse_v6(text, ret);
	if (!colon || (size_t)(colon - text) >= sizeof(host))
		return -1;
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = '\0';
	ret->addr.v4.sin_family = AF_INET;
	ret->len = sizeof(ret->addr.v4);
	if (inet_pton(AF_INET, host, &ret->addr.v4.sin_addr) != 1 ||
	    !parse_port(colon + 1, &ret->addr.v4.sin_port))
		return -1;
	ret->loopback = (ntohl(ret->addr.v4.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
	return 0;
}

int listen_on_tcp(const char *text, int *ret_fd, struct err *err)
{
	const int on = 1;
	struct listen_tcp at;
	auto_fd int fd = -1;

	if (listen_tcp_parse(text, &at) < 0)
		return err_set(err, ERR_CONFIG, "%s is no address with a port", text);
	fd = socket(at.addr.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, "make a socket");
	/* A gate that is started again must not wait for the connections of the one before. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (at.addr.any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, &at.addr.any, at.len) < 0)
		return err_sys(err, "bind %s", text);
	if (listen(fd, BACKLOG) < 0)
		return err_sys(err, "listen on %s", text);
	*ret_fd = take_fd(fd);
	return 0;
}
