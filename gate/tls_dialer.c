#include "gate/tls_dialer.h"

#include "proxy/tls_stream.h"

static void *link_open(const struct sink_conf *conf, struct err *err)
{
	const struct tls_stream_conf to = {conf->host, conf->port, conf->ca, conf->cert, conf->key};

	return tls_stream_open(&to, err);
}

static int link_write(void *link, struct span bytes, struct err *err)
{
	return tls_stream_write(link, bytes, err);
}

static long link_read(void *link, char *out, size_t size, struct err *err)
{
	return tls_stream_read(link, out, size, err);
}

static int link_drain(void *link, struct err *err)
{
	return tls_stream_drain(link, err);
}

static void link_close(void *link)
{
	tls_stream_close(link);
}

const struct sink_dialer tls_dialer = {link_open, link_write, link_read, link_drain, link_close};
