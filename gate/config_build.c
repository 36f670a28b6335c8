#include "audit/signed.h"
#include "gate/config_priv.h"

#include "gate/base/nearest.h"

#include <grp.h>
#include <libgen.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the building functions share. */
struct building {
	const struct jv *entries;
	const char *path;
	struct arena *arena;
	struct config *to;
};

static int no_memory(const struct building *b, struct err *err)
{
	return err_set(err, ERR_LIMIT, "%s: too large", b->path);
}

static size_t count_of(const struct building *b, const char *word)
{
	struct config_entry e;
	size_t n = 0;

	while (config_entry_at(b->entries, b->path, word, n, &e))
		n++;
	return n;
}

static char *printed(const struct building *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static char *printed(const struct building *b, const char *fmt, ...)
{
	char text[8192];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return arena_strndup(b->arena, text, strlen(text));
}

void config_defaults(struct config *ret)
{
	*ret = (struct config){
		.proxy = {.limits = conf_default_limits,
			  .rule_limits = engine_default_limits,
			  .reads_without_log = true,
			  .sandboxes = {.max = 256,
					.owner_max = 64,
					.execs = 16,
					.connections = 256,
					.lifetime_s = 24 * 3600,
					.default_s = 1800,
					.memory = 512 << 20,
					.disk = 64 << 20,
					.output = 4 << 20,
					.pids = 128},
			  .generation = ""},
		.witness_every_s = 3600,
		.keeper = {.sandboxes = 32,
			   .execs = 256,
			   .connections = 256,
			   .pids = 256,
			   .memory = (uint64_t)512 << 20,
			   .scratch = 64 << 20,
			   .file = (uint64_t)1 << 30,
			   .output = 1 << 20},
		.admin = {.listeners = 128, .lifetime_s = 30 * 24 * 3600},
		.auditor = {.segment_bytes = 64 << 20,
			    .sinks_late_ms = 600000,
			    .hung_ms = 30000,
			    .flush_ms = 3,
			    .claim_ms = 5000,
			    .checkpoint_ms = 10000,
			    .warn_free_bytes = 256 << 20,
			    .low_free_bytes = 64 << 20,
			    .reserve_bytes = 8 << 20,
			    .retention = {RETENTION_SIGNED, 90, 1 << 30},
			    .checkpoint_records = 1000,
			    .build = "sallyport " SALLYPORT_VERSION},
	};
}

static const char *default_origin(const struct building *b)
{
	char host[65] = "";

	gethostname(host, sizeof(host) - 1);
	return printed(b, "%s/sallyport", *host ? host : "localhost");
}

static int build_anchors(struct building *b, const struct config_entry *e, struct err *err)
{
	const struct jv *anchors = jv_get(e->value, "anchors");

	for (size_t i = 0; anchors && i < anchors->count; i++) {
		const char *name = anchors->items[i].str.at;

		if (strcmp(name, "syslog") == 0)
			b->to->auditor.anchor_syslog = true;
		else if (*name != '/')
			return config_wrong(e, err,
					    "anchors takes \"syslog\" and one absolute path, not "
					    "'%s'",
					    name);
		else if (b->to->auditor.anchor_file)
			return config_wrong(e, err, "anchors takes one file, not several");
		else
			b->to->auditor.anchor_file = name;
	}
	return 0;
}

static int build_alarms(struct building *b, const struct config_entry *e, struct err *err)
{
	const struct jv *alarms = jv_get(e->value, "alarms");

	for (size_t i = 0; alarms && i < alarms->count; i++) {
		if (strcmp(alarms->items[i].str.at, "syslog") != 0)
			return config_wrong(
				e, err,
				"alarms takes \"syslog\", not '%s'; a webhook is a sink "
				"with only = { \"alarms\" }",
				alarms->items[i].str.at);
		b->to->alarms_syslog = true;
	}
	return 0;
}

static int build_erasable(struct building *b, const struct config_entry *e, struct err *err)
{
	const struct jv *words = jv_get(e->value, "erasable");

	for (size_t i = 0; words && i < words->count; i++) {
		unsigned bit = erasable_word(words->items[i].str.at);

		if (!bit)
			return config_wrong(
				e, err,
				"erasable takes \"address\", \"certificate\" and \"identity\", not "
				"'%s'",
				words->items[i].str.at);
		b->to->auditor.erasable |= bit;
	}
	return 0;
}

static int build_retention(struct building *b, const struct config_entry *e, struct err *err)
{
	struct retention *to = &b->to->auditor.retention;
	const struct jv *retention = jv_get(e->value, "retention");
	const struct jv *mode =
		retention && retention->kind == JV_OBJECT ? jv_get(retention, "mode") : retention;

	if (mode && mode->kind == JV_STRING)
		config_retention_mode(mode->str.at, &to->mode);
	if (to->mode == RETENTION_EVIDENCE && !b->to->auditor.anchor_file &&
	    !b->to->auditor.anchor_syslog && !b->to->auditor.witness_file)
		return config_wrong(
			e, err,
			"retention as evidence needs an anchor: a witness, an anchor file "
			"(anchors = { \"/PATH\" }), or at least \"syslog\" there");
	return 0;
}

static int build_log(struct building *b, struct err *err)
{
	struct config_entry e;
	const struct jv *reads;

	if (!config_entry_at(b->entries, b->path, "log", 0, &e))
		return err_set(err, ERR_CONFIG, "%s: 'log { dir = ... }' is missing", b->path);
	b->to->auditor.dir = jv_str(e.value, "dir", "");
	b->to->auditor.origin = jv_str(e.value, "origin", NULL);
	if (!b->to->auditor.origin)
		b->to->auditor.origin = default_origin(b);
	reads = jv_get(e.value, "reads_without_log");
	if (reads)
		b->to->proxy.reads_without_log = reads->b;
	b->to->auditor.unsafe_fs = jv_true(e.value, "unsafe_fs");
	b->to->auditor.keys = jv_str(e.value, "keys", NULL);
	if (build_anchors(b, &e, err) < 0 || build_alarms(b, &e, err) < 0 ||
	    build_erasable(b, &e, err) < 0 || config_build_witness(&e, b->arena, b->to, err) < 0)
		return -1;
	return build_retention(b, &e, err);
}

const struct config_users config_default_users = {
	.worker = "sallyport-worker",
	.auditor = "sallyport-audit",
	.resolver = "sallyport-resolve",
	.admin = "sallyport-admin",
	.sandbox = "sallyport-sandbox",
	.keeper = "sallyport-keeper",
};

static int build_own(struct building *b, struct err *err)
{
	struct config_entry e = {.value = NULL};

	(void)err;
	config_entry_at(b->entries, b->path, "adopted", 0, &e);
	b->to->ledger = jv_str(e.value, "ledger", "");
	e.value = NULL;
	config_entry_at(b->entries, b->path, "updates", 0, &e);
	b->to->updates = jv_str(e.value, "memory", "");
	e.value = NULL;
	config_entry_at(b->entries, b->path, "self", 0, &e);
	b->to->proxy.self = jv_str(e.value, "container", "");
	return 0;
}

static int build_users(struct building *b, struct err *err)
{
	struct config_entry e = {.value = NULL};

	(void)err;
	config_entry_at(b->entries, b->path, "users", 0, &e);
	b->to->users = (struct config_users){
		.worker = jv_str(e.value, "worker", config_default_users.worker),
		.auditor = jv_str(e.value, "auditor", config_default_users.auditor),
		.resolver = jv_str(e.value, "resolver", config_default_users.resolver),
		.admin = jv_str(e.value, "admin", config_default_users.admin),
		.sandbox = jv_str(e.value, "sandbox", config_default_users.sandbox),
		.keeper = jv_str(e.value, "keeper", config_default_users.keeper),
	};
	return 0;
}

/* The check has seen that the name exists. */
static uint32_t uid_of(const struct jv *v)
{
	const struct passwd *pw = v->kind == JV_STRING ? getpwnam(v->str.at) : NULL;

	return pw ? pw->pw_uid : (uint32_t)v->i;
}

static uint32_t gid_of(const struct jv *v)
{
	const struct group *gr = v->kind == JV_STRING ? getgrnam(v->str.at) : NULL;

	return gr ? gr->gr_gid : (uint32_t)v->i;
}

/* A name of a user, a group, or of both: then either will do. */
static int add_member(const struct config_entry *e, const char *name, struct config_members *to,
		      uint32_t *uids, uint32_t *gids, struct err *err)
{
	const struct passwd *pw = getpwnam(name);
	const struct group *gr = getgrnam(name);

	if (!pw && !gr)
		return config_wrong(e, err, "there is neither a user nor a group called '%s'",
				    name);
	if (pw)
		uids[to->uid_count++] = pw->pw_uid;
	if (gr)
		gids[to->gid_count++] = gr->gr_gid;
	return 0;
}

static int build_members(const struct building *b, const struct config_entry *e, const char *role,
			 struct config_members *to, struct err *err)
{
	const struct jv *names = jv_get(e->value, role);
	size_t count = names && names->kind == JV_ARRAY ? names->count : 0;
	uint32_t *uids = arena_take(b->arena, 2 * count * sizeof(*uids));

	if (!uids)
		return no_memory(b, err);
	*to = (struct config_members){.uids = uids, .gids = uids + count};
	for (size_t i = 0; i < count; i++)
		if (add_member(e, names->items[i].str.at, to, uids, uids + count, err) < 0)
			return -1;
	return 0;
}

static int build_admin(struct building *b, struct err *err)
{
	struct config_admin *to = &b->to->admin;
	struct config_entry e = {.value = NULL};

	config_entry_at(b->entries, b->path, "admin", 0, &e);
	to->access = (struct config_access){"", jv_str(e.value, "group", ""), 0600};
	to->access.mode = (unsigned)strtoul(
		jv_str(e.value, "mode", *to->access.group ? "0660" : "0600"), NULL, 8);
	to->sockets = jv_str(e.value, "sockets", "");
	to->state = jv_str(e.value, "state", "");
	if (build_members(b, &e, "operate", &to->operate, err) < 0 ||
	    build_members(b, &e, "approve", &to->approve, err) < 0 ||
	    build_members(b, &e, "audit", &to->audit, err) < 0)
		return -1;
	if (*to->sockets && !*to->state)
		return config_wrong(&e, err,
				    "'sockets' says where listeners may be made at run time, and "
				    "'state' where they are kept: give 'state' as well");
	return 0;
}

static int build_backends(struct building *b, struct err *err)
{
	return config_build_backends(b->entries, b->arena, b->to, err);
}

static int build_sinks(struct building *b, struct err *err)
{
	return config_build_sinks(b->entries, b->arena, b->to, err);
}

static int build_container(const struct building *b, const struct config_entry *e,
			   struct conf_identity *ret, struct err *err)
{
	const char *container = jv_str(e->value, "container", NULL);
	struct err why = {0};

	if (!container) {
		if (jv_get(e->value, "made_by"))
			return config_wrong(e, err,
					    "'made_by' is of 'container', which is missing");
		return 0;
	}
	ret->container.made_by = jv_str(e->value, "made_by", "");
	if (caller_sign_parse(container, b->arena, &ret->container, &why) < 0)
		return config_wrong(e, err, "container: %s", why.msg);
	if (ret->container.kind == SIGN_OUTSIDE && *ret->container.made_by)
		return config_wrong(e, err, "'made_by' is of containers, and this is none");
	return 0;
}

static int build_identity(const struct building *b, const struct config_entry *e,
			  struct conf_identity *ret, struct err *err)
{
	const struct jv *uid = jv_get(e->value, "uid"), *gid = jv_get(e->value, "gid");
	const struct jv *token = jv_get(e->value, "token"), *cert = jv_get(e->value, "cert");

	*ret = (struct conf_identity){
		.name = e->name,
		.profile = jv_str(e->value, "profile", ""),
		.owner = jv_str(e->value, "owner", e->name),
		.has_token = token,
		.has_cert = cert,
		.has_uid = uid,
		.has_gid = gid,
		.uid = uid ? uid_of(uid) : 0,
		.gid = gid ? gid_of(gid) : 0,
		.own_socket = "",
	};
	if (token && hash_parse(span_skip(token->str, sizeof(TOKEN_PREFIX) - 1), &ret->token) < 0)
		return config_wrong(e, err, "token is no hash");
	if (cert && cert_rule_parse(cert->str, &ret->cert) < 0)
		return config_wrong(e, err, "cert is no %s", CERT_RULE_TEXT);
	return build_container(b, e, ret, err);
}

static int build_identities(struct building *b, struct err *err)
{
	size_t count = count_of(b, "identity");
	struct conf_identity *list = arena_take(b->arena, count * sizeof(*list));
	struct config_entry e;

	if (!list)
		return no_memory(b, err);
	for (size_t i = 0; i < count; i++) {
		config_entry_at(b->entries, b->path, "identity", i, &e);
		if (build_identity(b, &e, &list[i], err) < 0)
			return -1;
	}
	b->to->identities = list;
	b->to->proxy.identities = list;
	b->to->proxy.identity_count = count;
	return 0;
}

/* --- listeners --- */

static int find_backend(const struct building *b, const struct config_entry *e, size_t *ret,
			struct err *err)
{
	const struct proxy_conf *p = &b->to->proxy;
	const char *name = jv_str(e->value, "backend", NULL);
	char hint[NEAREST_TEXT_MAX];
	struct nearest near = nearest_to(span_of(name ? name : ""));

	if (!name && p->backend_count == 1) {
		*ret = 0;
		return 0;
	}
	if (!name)
		return config_wrong(e, err, "'backend' is missing, and there are several");
	for (size_t i = 0; i < p->backend_count; i++) {
		if (strcmp(p->backends[i].name, name) == 0) {
			*ret = i;
			return 0;
		}
		nearest_offer(&near, p->backends[i].name);
	}
	return config_wrong(e, err, "no backend is called '%s'%s", name, nearest_text(&near, hint));
}

static int find_identity(const struct building *b, const struct config_entry *e, const char *name,
			 size_t *ret, struct err *err)
{
	const struct proxy_conf *p = &b->to->proxy;
	char hint[NEAREST_TEXT_MAX];
	struct nearest near = nearest_to(span_of(name));

	for (size_t i = 0; i < p->identity_count; i++) {
		if (strcmp(p->identities[i].name, name) == 0) {
			*ret = i;
			return 0;
		}
		nearest_offer(&near, p->identities[i].name);
	}
	return config_wrong(e, err, "no identity is called '%s'%s", name,
			    nearest_text(&near, hint));
}

static bool is_recognised(const struct conf_identity *i)
{
	return i->has_uid || i->has_gid || i->has_token || i->has_cert ||
	       i->container.kind != SIGN_NOTHING;
}

/* Whoever may open the socket is that identity. */
static int find_as(const struct building *b, const struct config_entry *e, const char *name,
		   struct conf_listener *l, struct err *err)
{
	size_t *list = arena_take(b->arena, sizeof(*list));

	if (!list)
		return no_memory(b, err);
	if (jv_get(e->value, "identities") || jv_get(e->value, "otherwise"))
		return config_wrong(e, err,
				    "'as' says who everybody is: leave 'identities' and "
				    "'otherwise' out");
	l->as_one = true;
	l->identities = list;
	l->identity_count = 1;
	return find_identity(b, e, name, list, err);
}

/* What identities are known by is shown, and what the operator asks for besides. */
static int list_labels(const struct building *b, const struct config_entry *e,
		       struct conf_listener *l, struct err *err)
{
	const struct jv *more = jv_get(e->value, "caller_labels");
	size_t count = more && more->kind == JV_ARRAY ? more->count : 0, at = 0;
	const char **list = arena_take(b->arena, (l->identity_count + count + 1) * sizeof(*list));

	if (!list)
		return no_memory(b, err);
	for (size_t i = 0; !l->as_one && i < l->identity_count; i++) {
		const struct caller_sign *sign =
			&b->to->proxy.identities[l->identities[i]].container;

		l->looks_inside = l->looks_inside || sign->kind != SIGN_NOTHING;
		if (sign->kind == SIGN_LABEL)
			list[at++] = sign->label;
	}
	for (size_t i = 0; i < count; i++)
		list[at++] = more->items[i].str.at;
	l->caller_labels = at ? list : NULL;
	return 0;
}

/* Whether it is looked at where callers run, and whether it can be. */
static int find_containers(const struct building *b, const struct config_entry *e,
			   struct conf_listener *l, struct err *err)
{
	const struct jv *said = jv_get(e->value, "containers");

	if (list_labels(b, e, l, err) < 0)
		return -1;
	if (said && !said->b && l->looks_inside)
		return config_wrong(e, err,
				    "containers = false, but identities are known by theirs");
	l->looks_inside = l->looks_inside || (said && said->b);
	if (l->looks_inside && !*l->tcp && !b->to->proxy.backends[l->backend].sees_files)
		return config_wrong(
			e, err,
			"callers' containers can be told on the engine's own host alone: "
			"backend \"%s\" must say files = \"same_host\"",
			b->to->proxy.backends[l->backend].name);
	return 0;
}

static int find_identities(const struct building *b, const struct config_entry *e,
			   struct conf_listener *l, struct err *err)
{
	const struct jv *names = jv_get(e->value, "identities");
	const char *as = jv_str(e->value, "as", NULL);
	size_t count = names && names->kind == JV_ARRAY ? names->count : 0;
	size_t *list = arena_take(b->arena, count * sizeof(*list));

	if (!list)
		return no_memory(b, err);
	if (as)
		return find_as(b, e, as, l, err);
	for (size_t i = 0; i < count; i++) {
		const char *name = names->items[i].str.at;

		if (find_identity(b, e, name, &list[i], err) < 0)
			return -1;
		if (!is_recognised(&b->to->proxy.identities[list[i]]))
			return config_wrong(
				e, err,
				"identity '%s' has neither uid, gid, token, cert nor container: "
				"only 'as' can name it",
				name);
		l->takes_tokens = l->takes_tokens || b->to->proxy.identities[list[i]].has_token;
		if (config_can_show(e, l, &b->to->proxy.identities[list[i]], err) < 0 ||
		    config_sandbox_identity(e, l, &b->to->proxy.identities[list[i]], err) < 0)
			return -1;
		for (size_t j = 0; j < i; j++)
			if (list[j] == list[i])
				return config_wrong(e, err, "identity '%s' stands twice", name);
	}
	l->identities = list;
	l->identity_count = count;
	if (!count && !*l->otherwise)
		return config_wrong(e, err,
				    "nobody could come in: give 'identities', 'otherwise' or "
				    "'as'");
	return 0;
}

/* Nothing is forwarded and nobody is judged there. */
static int metrics_only(const struct config_entry *e, struct err *err)
{
	static const char *const others[] = {"backend", "identities", "otherwise",
					     "as",      "containers", "caller_labels"};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (jv_get(e->value, others[i]))
			return config_wrong(e, err,
					    "with 'metrics' nothing is forwarded: leave '%s' out",
					    others[i]);
	return 0;
}

/* Tokens and bodies would cross a network for everybody on the way to read: said twice, or not
 * done. */
static int check_plaintext(const struct building *b, const struct config_entry *e,
			   const struct conf_listener *l, struct err *err)
{
	struct listen_tcp at;

	if (listen_tcp_parse(l->tcp, &at) < 0 || at.loopback || config_plaintext(b->entries, e))
		return 0;
	return config_wrong(
		e, err,
		"%s is reached by other hosts, and there is no TLS: give 'tls', or listen on "
		"127.0.0.1, or, if nobody else is on that network, say plaintext = true here and "
		"network { plaintext = true }",
		l->tcp);
}

/* A unix socket or an address, and what goes with each. */
static int find_place(const struct building *b, const struct config_entry *e,
		      const struct conf_listener *l, struct err *err)
{
	static const char *const of_sockets[] = {"owner", "group", "mode"};

	if (!*l->socket == !*l->tcp)
		return config_wrong(e, err, "give 'socket' or 'tcp', one of them");
	for (size_t i = 0; *l->tcp && i < sizeof(of_sockets) / sizeof(*of_sockets); i++)
		if (jv_get(e->value, of_sockets[i]))
			return config_wrong(e, err, "'%s' is of sockets: leave it out",
					    of_sockets[i]);
	return *l->tcp && !l->tls ? check_plaintext(b, e, l, err) : 0;
}

static bool same_place(const struct conf_listener *a, const struct conf_listener *b)
{
	return strcmp(a->socket, b->socket) == 0 && strcmp(a->tcp, b->tcp) == 0;
}

static int build_listener(const struct building *b, const struct config_entry *e, size_t at,
			  struct err *err)
{
	struct conf_listener *l = &b->to->listeners[at];

	*l = (struct conf_listener){
		.name = e->name,
		.socket = jv_str(e->value, "socket", ""),
		.tcp = jv_str(e->value, "tcp", ""),
		.fd = -1,
		.otherwise = jv_str(e->value, "otherwise", ""),
		.callers = jv_str(e->value, "callers", e->name),
	};
	b->to->access[at] = (struct config_access){
		.owner = jv_str(e->value, "owner", ""),
		.group = jv_str(e->value, "group", ""),
		.mode = (unsigned)strtoul(jv_str(e->value, "mode", "0660"), NULL, 8),
	};
	if (config_tls(e, b->to, b->arena, l, err) < 0 || find_place(b, e, l, err) < 0)
		return -1;
	for (size_t i = 0; i < at; i++)
		if (same_place(&b->to->listeners[i], l))
			return config_wrong(e, err,
					    "listener \"%s\" has the same socket or address",
					    b->to->listeners[i].name);
	for (size_t i = 0; i < b->to->proxy.backend_count; i++)
		if (*l->socket && strcmp(b->to->proxy.backends[i].socket, l->socket) == 0)
			return config_wrong(e, err, "this is the socket of backend \"%s\"",
					    b->to->proxy.backends[i].name);
	l->metrics = jv_true(e->value, "metrics");
	if (l->metrics)
		return metrics_only(e, err);
	if (config_listener_sandboxes(e, b->to, b->arena, l, err) < 0)
		return -1;
	if (!l->sandbox_count && find_backend(b, e, &l->backend, err) < 0)
		return -1;
	if (find_identities(b, e, l, err) < 0)
		return -1;
	return find_containers(b, e, l, err);
}

static int find_status_socket(struct building *b, struct err *err)
{
	struct config_entry e;

	b->to->status_socket = "";
	if (config_entry_at(b->entries, b->path, "admin", 0, &e))
		b->to->status_socket = jv_str(e.value, "socket", "");
	for (size_t i = 0; i < b->to->proxy.listener_count && !*b->to->status_socket; i++)
		if (*b->to->listeners[i].socket)
			b->to->status_socket = printed(b, "%s.status", b->to->listeners[i].socket);
	if (*b->to->status_socket)
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s: every listener is tcp: say where `sallyport status` finds the gate, "
		       "admin { socket = \"/run/sallyport/admin.sock\" }",
		       b->path);
}

static int build_sandboxes(struct building *b, struct err *err)
{
	return config_build_sandboxes(b->entries, b->arena, b->to, err);
}

static int build_listeners(struct building *b, struct err *err)
{
	size_t count = count_of(b, "listener");
	struct config_entry e;

	if (!count)
		return err_set(err, ERR_CONFIG, "%s: there is no listener", b->path);
	b->to->listeners = arena_take(b->arena, count * sizeof(*b->to->listeners));
	b->to->access = arena_take(b->arena, count * sizeof(*b->to->access));
	if (!b->to->listeners || !b->to->access)
		return no_memory(b, err);
	for (size_t i = 0; i < count; i++) {
		config_entry_at(b->entries, b->path, "listener", i, &e);
		if (build_listener(b, &e, i, err) < 0)
			return -1;
	}
	b->to->proxy.listeners = b->to->listeners;
	b->to->proxy.listener_count = count;
	return find_status_socket(b, err);
}

/* --- sockets that containers get in place of the engine's --- */

static bool is_as(const struct conf_listener *l, size_t identity)
{
	return l->as_one && l->identities[0] == identity;
}

static int find_listener(const struct building *b, const struct config_entry *e, const char *name,
			 const struct conf_listener **ret, struct err *err)
{
	char hint[NEAREST_TEXT_MAX];
	struct nearest near = nearest_to(span_of(name));

	for (size_t i = 0; i < b->to->proxy.listener_count; i++) {
		if (strcmp(b->to->listeners[i].name, name) == 0) {
			*ret = &b->to->listeners[i];
			return 0;
		}
		nearest_offer(&near, b->to->listeners[i].name);
	}
	return config_wrong(e, err, "own_socket: no listener is called '%s'%s", name,
			    nearest_text(&near, hint));
}

/* Who speaks through it must be the very caller whose container it is: same profile, same owner. */
static int build_own_socket(const struct building *b, const struct config_entry *e, size_t at,
			    struct err *err)
{
	const char *name = jv_str(e->value, "own_socket", NULL);
	struct conf_identity *own = &b->to->identities[at];
	const struct conf_listener *l = NULL;
	const struct conf_backend *leads;
	bool named = is_recognised(own);

	for (size_t i = 0; i < b->to->proxy.listener_count; i++)
		named = named || is_as(&b->to->listeners[i], at);
	if (!named)
		return config_wrong(
			e, err,
			"give uid, gid, token or cert, or name it with 'as' in a listener: how "
			"else is it recognised?");
	if (!name)
		return 0;
	if (find_listener(b, e, name, &l, err) < 0)
		return -1;
	leads = &b->to->proxy.backends[l->backend];
	if (!is_as(l, at))
		return config_wrong(e, err,
				    "own_socket: listener \"%s\" must say as = \"%s\", so that "
				    "containers are judged as who made them",
				    name, e->name);
	if (!leads->sees_files)
		return config_wrong(e, err,
				    "own_socket: backend \"%s\" must say files = \"same_host\": "
				    "the gate's socket is a file of this host",
				    leads->name);
	own->own_socket = l->socket;
	own->own_backend = l->backend;
	return 0;
}

static int build_own_sockets(struct building *b, struct err *err)
{
	struct config_entry e;

	for (size_t i = 0; config_entry_at(b->entries, b->path, "identity", i, &e); i++)
		if (build_own_socket(b, &e, i, err) < 0)
			return -1;
	for (size_t i = 0; i < b->to->proxy.listener_count; i++)
		b->to->listeners[i].engine_names = engine_names(b->to, i, b->arena);
	return 0;
}

/* --- profiles --- */

static const char *beside(const struct building *b, const char *name)
{
	const char *slash = strrchr(b->path, '/');

	if (name[0] == '/')
		return name;
	return printed(b, "%.*s/%s", slash ? (int)(slash - b->path) : 0, b->path, name);
}

static int build_profiles(struct building *b, struct err *err)
{
	size_t count = 0, at = 0;
	struct config_entry e;
	const char **list;

	for (size_t i = 0; config_entry_at(b->entries, b->path, "profiles", i, &e); i++)
		count += e.value->count;
	list = arena_take(b->arena, (count + 1) * sizeof(*list));
	if (!list)
		return no_memory(b, err);
	for (size_t i = 0; config_entry_at(b->entries, b->path, "profiles", i, &e); i++)
		for (size_t j = 0; j < e.value->count; j++)
			list[at++] = beside(b, e.value->items[j].str.at);
	b->to->profile_paths = list;
	return 0;
}

static int build_rules(struct building *b, struct err *err)
{
	struct config_entry e = {.value = NULL};
	const struct jv *keys;
	const char **list;
	size_t count;

	config_entry_at(b->entries, b->path, "rules", 0, &e);
	keys = jv_get(e.value, "keys");
	count = keys && keys->kind == JV_ARRAY ? keys->count : 0;
	b->to->only_signed = jv_true(e.value, "signed");
	list = arena_take(b->arena, (count + 1) * sizeof(*list));
	if (!list)
		return no_memory(b, err);
	for (size_t i = 0; i < count; i++) {
		if (!signed_key_is_valid(keys->items[i].str))
			return config_wrong(
				&e, err,
				"keys: '%.60s' is no key that 'sallyport bundle key' prints",
				keys->items[i].str.at);
		list[i] = keys->items[i].str.at;
	}
	if (b->to->only_signed && !count)
		return config_wrong(&e, err, "signed = true needs the keys that sign");
	b->to->rule_keys = list;
	return 0;
}

int config_build(const struct jv *entries, const char *path, struct arena *a, struct config *ret,
		 struct err *err)
{
	static int (*const parts[])(struct building *, struct err *) = {
		build_log,         build_own,        build_users,     build_admin,
		build_backends,    build_identities, build_sandboxes, build_listeners,
		build_own_sockets, build_sinks,      build_profiles,  build_rules,
	};
	struct config out;
	struct building b = {entries, path, a, &out};

	config_defaults(&out);
	out.path = path;
	if (config_check(entries, path, &out, err) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (parts[i](&b, err) < 0)
			return -1;
	out.proxy.protected_paths = protected_paths(&out, a);
	if (!out.proxy.protected_paths || arena_spent(a))
		return no_memory(&b, err);
	*ret = out;
	return 0;
}
