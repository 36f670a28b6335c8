/* serve_tcp.c - engines at tcp://: their names are looked up once, while anything may be asked. */
#include "gate/serve.h"

#include "gate/base/log.h"
#include "proxy/dial.h"

#include <stdlib.h>

int serve_look_up(struct serve *s, struct err *err)
{
	const struct proxy_conf *p = &s->loaded->config.proxy;

	s->addresses = calloc(p->backend_count, sizeof(*s->addresses));
	if (!s->addresses)
		return err_sys(err, "no memory");
	for (size_t i = 0; i < p->backend_count; i++) {
		struct err unknown = {0};

		if (p->backends[i].tcp &&
		    dial_look_up(p->backends[i].tcp, &s->addresses[i], &unknown) < 0)
			log_line("backend \"%s\": %s; requests that need it are refused until "
				 "the gate is started anew",
				 p->backends[i].name, unknown.msg);
	}
	return serve_give_addresses(s, &s->loaded->config, s->loaded->arena, err);
}

int serve_give_addresses(const struct serve *s, struct config *c, struct arena *a, struct err *err)
{
	for (size_t i = 0; i < c->proxy.backend_count; i++) {
		const struct conf_tcp *was = c->backends[i].tcp;
		struct conf_tcp *tcp = was ? arena_take(a, sizeof(*tcp)) : NULL;

		if (!was)
			continue;
		if (!tcp)
			return err_set(err, ERR_SYSTEM, "no memory");
		*tcp = *was;
		tcp->found = &s->addresses[i];
		c->backends[i].tcp = tcp;
	}
	return 0;
}
