/* config_backend.c - what the configuration says of the services that the gate guards. */
#include "gate/config_priv.h"

#include <grp.h>
#include <string.h>

static int no_memory(const struct config *c, struct err *err)
{
	return err_set(err, ERR_LIMIT, "%s: too large", c->path);
}

int config_add_file(struct config *c, struct arena *a, const char *path, struct conf_file *to,
		    struct err *err)
{
	if (c->file_count == CONFIG_FILES_MAX)
		return err_set(err, ERR_LIMIT, "%s: it names more than %d files", c->path,
			       CONFIG_FILES_MAX);
	if (!c->files)
		c->files = arena_take(a, CONFIG_FILES_MAX * sizeof(struct conf_file *));
	if (!c->files)
		return no_memory(c, err);
	*to = (struct conf_file){.path = path, .text = {"", 0}};
	c->files[c->file_count++] = to;
	return 0;
}

bool config_plaintext(const struct jv *entries, const struct config_entry *e)
{
	struct config_entry network;

	return config_entry_at(entries, e->path, "network", 0, &network) &&
	       jv_true(network.value, "plaintext") && jv_true(e->value, "plaintext");
}

static uint32_t gid_of(const struct jv *v)
{
	const struct group *gr = v->kind == JV_STRING ? getgrnam(v->str.at) : NULL;

	return gr ? gr->gr_gid : (uint32_t)v->i;
}

static int build_tls(const struct config_entry *e, const struct jv *keys, struct arena *a,
		     struct config *c, struct conf_backend *to, struct err *err)
{
	const char *ca = jv_str(keys, "ca", NULL), *cert = jv_str(keys, "cert", NULL),
		   *key = jv_str(keys, "key", NULL);
	struct conf_tls *tls = arena_take(a, sizeof(*tls));

	if (!tls)
		return no_memory(c, err);
	if (!to->tcp)
		return config_wrong(e, err, "'tls' is of engines at tcp://");
	if (!ca)
		return config_wrong(e, err,
				    "tls: 'ca' is missing: whose certificate is the engine's?");
	if (jv_get(keys, "crl") || jv_get(keys, "clients"))
		return config_wrong(e, err,
				    "tls: crl and clients are of listeners: leave them out");
	if (!cert != !key)
		return config_wrong(e, err, "tls: 'cert' and 'key' go together");
	tls->name = jv_str(keys, "name", to->tcp->host);
	to->tls = tls;
	if (config_add_file(c, a, ca, &tls->ca, err) < 0)
		return -1;
	if (!cert)
		return 0;
	if (config_add_file(c, a, cert, &tls->cert, err) < 0)
		return -1;
	if (config_add_file(c, a, key, &tls->key, err) < 0)
		return -1;
	tls->key.is_key = true;
	return 0;
}

/* What is reached over a network is on another host, as far as anybody can see. */
static int check_remote(const struct jv *entries, const struct config_entry *e,
			const struct conf_backend *b, struct err *err)
{
	if (jv_get(e->value, "group"))
		return config_wrong(e, err, "'group' is of sockets: leave it out");
	if (b->sees_files && !b->tcp->loopback && !jv_true(e->value, "local"))
		return config_wrong(
			e, err,
			"files = \"same_host\" would look at this host's files in place of that "
			"one's: say \"none\", or, if it does run on this host, local = true");
	if (b->tls || b->tcp->loopback || config_plaintext(entries, e))
		return 0;
	return config_wrong(
		e, err,
		"%s is on another host, and without TLS whoever is on the way is root there: give "
		"tls = { ca = ..., cert = ..., key = ... }, or, if nobody else is on that network, "
		"say plaintext = true here and network { plaintext = true }",
		b->address);
}

static int build_tcp(const struct jv *entries, const struct config_entry *e, struct arena *a,
		     struct config *c, struct conf_backend *to, struct err *err)
{
	struct conf_tcp *tcp = arena_take(a, sizeof(*tcp));
	const struct jv *tls = jv_get(e->value, "tls");

	if (!tcp || config_address_tcp(to->address, a, tcp) < 0 || !tcp->host)
		return no_memory(c, err);
	to->tcp = tcp;
	if (tls && build_tls(e, tls, a, c, to, err) < 0)
		return -1;
	return check_remote(entries, e, to, err);
}

static enum observe_how observe_how(const char *text)
{
	return strcmp(text, "off") == 0     ? OBSERVE_OFF
	       : strcmp(text, "alarm") == 0 ? OBSERVE_ALARM
					    : OBSERVE_RECORD;
}

static int build_one(const struct jv *entries, const struct config_entry *e, struct arena *a,
		     struct config *c, struct conf_backend *to, struct err *err)
{
	const char *address = jv_str(e->value, "address", "");
	const char *socket = config_address_path(address);

	*to = (struct conf_backend){
		.name = e->name,
		.kind = jv_str(e->value, "kind", ""),
		.address = address,
		.socket = socket ? socket : "",
		.observe = observe_how(jv_str(e->value, "observe", "record")),
		.sees_files = strcmp(jv_str(e->value, "files", "none"), "same_host") == 0,
	};
	if (!socket)
		return build_tcp(entries, e, a, c, to, err);
	if (jv_get(e->value, "tls"))
		return config_wrong(e, err, "'tls' is of engines at tcp://");
	return 0;
}

int config_build_backends(const struct jv *entries, struct arena *a, struct config *ret,
			  struct err *err)
{
	struct conf_backend *list = arena_take(a, CONFIG_ENTRIES_MAX * sizeof(*list));
	struct config_engine *engines = arena_take(a, CONFIG_ENTRIES_MAX * sizeof(*engines));
	const struct jv *group;
	struct config_entry e;
	size_t count = 0;

	if (!list || !engines)
		return no_memory(ret, err);
	for (; config_entry_at(entries, ret->path, "backend", count, &e); count++) {
		if (build_one(entries, &e, a, ret, &list[count], err) < 0 ||
		    config_build_keeper(&e, a, ret, count, err) < 0)
			return -1;
		group = jv_get(e.value, "group");
		if (group)
			engines[count] = (struct config_engine){true, gid_of(group)};
	}
	if (!count)
		return err_set(err, ERR_CONFIG, "%s: there is no backend", ret->path);
	ret->proxy.backends = ret->backends = list;
	ret->proxy.backend_count = count;
	ret->engines = engines;
	return 0;
}
