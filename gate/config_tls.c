/* config_tls.c - what the configuration says of TLS on listeners, and of certificates. */
#include "gate/config_priv.h"

#include <string.h>

static int add_files(const struct jv *from, struct config *c, struct arena *a,
		     struct conf_caller_tls *to, struct err *err)
{
	for (enum tls_file f = 0; f < TLS_FILE_COUNT; f++) {
		const char *path = jv_str(from, tls_file_name(f), NULL);

		if (path && config_add_file(c, a, path, &to->files[f], err) < 0)
			return -1;
		to->files[f].to_serve = true;
		to->files[f].is_key = f == TLS_KEY;
	}
	return 0;
}

int config_tls(const struct config_entry *e, struct config *c, struct arena *a,
	       struct conf_listener *l, struct err *err)
{
	const struct jv *from = jv_get(e->value, "tls");
	struct conf_caller_tls *to;

	if (!from)
		return 0;
	if (!*l->tcp)
		return config_wrong(e, err, "'tls' is of tcp: a socket's callers are on this host");
	if (jv_true(e->value, "plaintext"))
		return config_wrong(e, err, "'plaintext' is of tcp without 'tls': leave it out");
	to = arena_take(a, sizeof(*to));
	if (!to)
		return err_set(err, ERR_LIMIT, "%s: too large", e->path);
	if (add_files(from, c, a, to, err) < 0)
		return -1;
	to->optional = strcmp(jv_str(from, "clients", "required"), "optional") == 0;
	if (jv_get(from, "name"))
		return config_wrong(e, err, "tls: 'name' is of engines: leave it out");
	if (!to->files[TLS_CERT].path || !to->files[TLS_KEY].path)
		return config_wrong(e, err, "tls takes at least a cert and its key");
	if (!to->files[TLS_CA].path && (to->files[TLS_CRL].path || jv_get(from, "clients")))
		return config_wrong(e, err,
				    "tls: crl and clients are of client certificates: give 'ca', "
				    "the authorities whose certificates are accepted");
	l->tls = to;
	return 0;
}

/* A container is known by its address; a process of the host cannot be told from others there. */
static bool has_address(const struct conf_identity *i)
{
	return i->container.kind != SIGN_NOTHING && i->container.kind != SIGN_OUTSIDE;
}

int config_can_show(const struct config_entry *e, const struct conf_listener *l,
		    const struct conf_identity *i, struct err *err)
{
	if (i->has_cert && !(l->tls && l->tls->files[TLS_CA].path))
		return config_wrong(e, err,
				    "identity '%s' is known by a certificate, and this listener "
				    "asks for none: give it tls with a ca",
				    i->name);
	if (*l->tcp && !i->has_token && !i->has_cert && !has_address(i))
		return config_wrong(e, err,
				    "identity '%s' has neither token, cert nor container, and the "
				    "kernel does not say which user a TCP connection comes from",
				    i->name);
	if (*l->tcp && (i->has_uid || i->has_gid))
		return config_wrong(e, err,
				    "identity '%s' has a uid or gid, and the kernel does not say "
				    "which user a TCP connection comes from: nobody would ever fit",
				    i->name);
	return 0;
}
