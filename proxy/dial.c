#include "proxy/dial.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WHERE_MAX 300

struct dial {
	char where[WHERE_MAX]; /* for messages */
	struct sockaddr_un addr;
	bool tcp;
	struct dial_addresses to;
	struct tls_client *tls; /* NULL: without */
	struct tunnels tunnels;
	pid_t listens; /* who did behind the last line; 0: not known */
};

static struct dial *make(struct err *err)
{
	struct dial *d = calloc(1, sizeof(*d));

	if (!d)
		err_sys(err, "allocate the way to a service");
	return d;
}

struct dial *dial_open_unix(const char *path, struct err *err)
{
	struct dial *d;

	if (strlen(path) >= sizeof(d->addr.sun_path)) {
		err_set(err, ERR_CONFIG, "%s is no usable socket path", path);
		return NULL;
	}
	d = make(err);
	if (!d)
		return NULL;
	d->addr.sun_family = AF_UNIX;
	memcpy(d->addr.sun_path, path, strlen(path) + 1);
	snprintf(d->where, sizeof(d->where), "%s", path);
	return d;
}

int dial_look_up(const struct conf_tcp *tcp, struct dial_addresses *ret, struct err *err)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	char port[8];
	int rc;

	ret->count = 0;
	snprintf(port, sizeof(port), "%u", tcp->port);
	rc = getaddrinfo(tcp->host, port, &hints, &found);
	if (rc != 0)
		return err_set(err, ERR_UPSTREAM, "look up %s: %s", tcp->host,
			       rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
	for (struct addrinfo *a = found; a && ret->count < DIAL_ADDRESSES_MAX; a = a->ai_next) {
		memcpy(&ret->list[ret->count], a->ai_addr, a->ai_addrlen);
		ret->len[ret->count++] = a->ai_addrlen;
	}
	freeaddrinfo(found);
	return 0;
}

static int open_tls(struct dial *d, const struct conf_backend *conf, struct err *err)
{
	const struct conf_tls *tls = conf->tls;
	struct tls_client_conf own = {.ca = tls->ca.text,
				      .cert = tls->cert.text,
				      .key = tls->key.text,
				      .name = tls->name};

	d->tls = tls_client_open(&own, err);
	return d->tls ? 0 : -1;
}

struct dial *dial_open(const struct conf_backend *conf, struct err *err)
{
	struct err ignored = {0};
	struct dial *d;

	if (!conf->tcp)
		return dial_open_unix(conf->socket, err);
	d = make(err);
	if (!d)
		return NULL;
	d->tcp = true;
	snprintf(d->where, sizeof(d->where), "%s", conf->address);
	if (conf->tls && open_tls(d, conf, err) < 0) {
		dial_close(d);
		return NULL;
	}
	/* Not being found is no reason not to start: what asks for it is told. */
	if (conf->tcp->found)
		d->to = *conf->tcp->found;
	else
		dial_look_up(conf->tcp, &d->to, &ignored);
	return d;
}

void dial_close(struct dial *d)
{
	if (!d)
		return;
	tunnels_cut(&d->tunnels);
	tls_client_close(d->tls);
	free(d);
}

/* A unix socket connects at once, or its queue is full (EAGAIN): both end here. */
static int start_unix(struct dial *d, struct line *ret, struct err *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_sys(err, "make a socket");
	if (connect(fd, (const struct sockaddr *)&d->addr, sizeof(d->addr)) < 0) {
		err_sys(err, "connect to %s", d->where);
		close(fd);
		return -1;
	}
	ret->fd = fd;
	return 0;
}

static int start_tcp(struct dial *d, struct line *ret, struct err *err)
{
	for (; ret->tried < d->to.count; ret->tried++) {
		ret->fd = tunnel_connect(&d->to, ret->tried, err);
		if (ret->fd < 0)
			continue;
		ret->connecting = true;
		return 0;
	}
	return err_wrap(err, "%s", d->where);
}

int dial_start(struct dial *d, struct loop *l, struct line *ret, struct err *err)
{
	*ret = (struct line){.fd = -1, .tried = ret->tried};
	if (!d->tcp)
		return start_unix(d, ret, err);
	if (!d->to.count)
		return err_set(err, ERR_UPSTREAM, "%s: the name is not known", d->where);
	if (!d->tls)
		return start_tcp(d, ret, err);
	ret->tunnel = tunnel_start(&d->tunnels, l, d->tls, &d->to, &ret->fd, err);
	return ret->tunnel ? 0 : err_wrap(err, "%s", d->where);
}

int dial_settle(const struct dial *d, struct line *line, struct err *err)
{
	socklen_t len = sizeof(int);
	int fault = 0;

	line->connecting = false;
	if (getsockopt(line->fd, SOL_SOCKET, SO_ERROR, &fault, &len) < 0)
		fault = errno;
	errno = fault;
	return fault ? err_sys(err, "connect to %s", d->where) : 0;
}

bool dial_has_more(const struct dial *d, const struct line *line)
{
	return d->tcp && !d->tls && line->tried + 1 < d->to.count;
}

bool dial_is_another(struct dial *d, const struct line *line)
{
	struct ucred who = {.pid = 0};
	socklen_t len = sizeof(who);
	pid_t before = d->listens;

	if (d->tcp || getsockopt(line->fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 || !who.pid)
		return false;
	d->listens = who.pid;
	return before && before != who.pid;
}

void dial_is_lost(struct dial *d)
{
	d->listens = 0;
}
