/* The sandbox API in the configuration: `sandboxes`, and listeners that serve it. */
#include "gate/config_priv.h"

#include "gate/base/nearest.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HELPER_BESIDE "/libexec/sallyport/inside"

/* PREFIX/bin/sallyport -> PREFIX/libexec/sallyport/inside */
static const char *default_helper(struct arena *a)
{
	char own[PATH_MAX - sizeof(HELPER_BESIDE)], path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash;

	for (int steps = 0; n > 0 && steps < 2; steps++) {
		own[n] = '\0';
		slash = strrchr(own, '/');
		n = slash ? slash - own : 0;
	}
	snprintf(path, sizeof(path), "%.*s" HELPER_BESIDE, n > 0 ? (int)n : 0, own);
	return arena_strndup(a, path, strlen(path));
}

int config_build_sandboxes(const struct jv *entries, struct arena *a, struct config *ret,
			   struct err *err)
{
	struct conf_sandboxes *s = &ret->proxy.sandboxes;
	struct config_entry e;

	s->state = s->inside = "";
	if (!config_entry_at(entries, ret->path, "sandboxes", 0, &e))
		return 0;
	s->state = jv_str(e.value, "state", "");
	s->inside = jv_str(e.value, "inside", NULL);
	if (!s->inside)
		s->inside = default_helper(a);
	if (!s->inside)
		return err_set(err, ERR_LIMIT, "%s: too large", ret->path);
	ret->proxy.sandbox_inside = s->inside;
	return 0;
}

static int find_backend(const struct config_entry *e, const struct config *c, const char *name,
			size_t *ret, struct err *err)
{
	struct nearest near = nearest_to(span_of(name));
	char hint[NEAREST_TEXT_MAX];

	for (size_t i = 0; i < c->proxy.backend_count; i++) {
		if (strcmp(c->proxy.backends[i].name, name) == 0) {
			*ret = i;
			return 0;
		}
		nearest_offer(&near, c->proxy.backends[i].name);
	}
	return config_wrong(e, err, "sandboxes: no backend is called '%s'%s", name,
			    nearest_text(&near, hint));
}

static int check_others(const struct config_entry *e, const struct config *c,
			const struct conf_listener *l, struct err *err)
{
	static const char *const others[] = {"backend", "metrics", "containers", "caller_labels",
					     "tls"};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (jv_get(e->value, others[i]))
			return config_wrong(e, err, "with 'sandboxes' leave '%s' out", others[i]);
	if (!*c->proxy.sandboxes.state)
		return config_wrong(e, err,
				    "sandboxes needs a folder that keeps what there is: "
				    "sandboxes { state = \"/var/lib/sallyport-sandbox\" }");
	if (conf_is_tcp(l) && *l->otherwise)
		return config_wrong(e, err,
				    "over tcp callers of the sandbox API are known by tokens: "
				    "leave 'otherwise' out");
	return 0;
}

int config_listener_sandboxes(const struct config_entry *e, struct config *c, struct arena *a,
			      struct conf_listener *l, struct err *err)
{
	const struct jv *names = jv_get(e->value, "sandboxes");
	size_t count = names && names->kind == JV_ARRAY ? names->count : 0;
	size_t *list = arena_take(a, (count + 1) * sizeof(*list));

	if (!names)
		return 0;
	if (!list)
		return err_set(err, ERR_LIMIT, "%s: too large", c->path);
	if (!count)
		return config_wrong(e, err, "sandboxes names no backend");
	if (check_others(e, c, l, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (find_backend(e, c, names->items[i].str.at, &list[i], err) < 0)
			return -1;
		for (size_t j = 0; j < i; j++)
			if (list[j] == list[i])
				return config_wrong(e, err, "backend '%s' stands twice",
						    names->items[i].str.at);
	}
	l->sandboxes = list;
	l->sandbox_count = count;
	l->backend = list[0];
	return 0;
}

int config_sandbox_identity(const struct config_entry *e, const struct conf_listener *l,
			    const struct conf_identity *i, struct err *err)
{
	if (!l->sandbox_count || (i->container.kind == SIGN_NOTHING && !i->has_cert))
		return 0;
	return config_wrong(e, err,
			    "identity '%s': callers of the sandbox API are known by uid, gid or "
			    "token",
			    i->name);
}

bool config_has_sandboxes(const struct config *c)
{
	for (size_t i = 0; i < c->proxy.listener_count; i++)
		if (c->proxy.listeners[i].sandbox_count)
			return true;
	return false;
}
