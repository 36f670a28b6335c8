#include "gate/serve.h"

#include "gate/base/log.h"
#include "gate/ledger.h"
#include "gate/listen.h"
#include "gate/passed.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int add_ledger(struct loaded *l, struct err *err)
{
	if (ledger_load(&l->config, l->arena, err) == 0)
		return 0;
	unload(l);
	return -1;
}

static int build(struct loaded *ret, struct err *err)
{
	ret->arena = arena_create(CONFIG_ARENA_MAX);
	if (!ret->arena)
		err_set(err, ERR_SYSTEM, "no memory");
	else if (bundle_config(&ret->bundle, ret->arena, &ret->config, err) == 0)
		return 0;
	unload(ret);
	return -1;
}

int load_without_ledger(const char *config_path, struct loaded *ret, struct err *err)
{
	*ret = (struct loaded){.bundle = {.fd = -1}};
	return bundle_read(config_path, &ret->bundle, err) < 0 ? -1 : build(ret, err);
}

int load(const char *config_path, struct loaded *ret, struct err *err)
{
	return load_without_ledger(config_path, ret, err) < 0 ? -1 : add_ledger(ret, err);
}

int load_to_serve(const char *config_path, struct loaded *ret, struct err *err)
{
	*ret = (struct loaded){.bundle = {.fd = -1}};
	if (bundle_read_to_serve(config_path, &ret->bundle, err) < 0 || build(ret, err) < 0)
		return -1;
	return add_ledger(ret, err);
}

void unload(struct loaded *l)
{
	arena_destroy(l->arena);
	bundle_close(&l->bundle);
	*l = (struct loaded){.bundle = {.fd = -1}};
}

void serve_own_container(const struct serve *s, struct config *c)
{
	if (!*c->proxy.self)
		c->proxy.self = s->self;
}

static int find_user(const char *name, struct confine_ids *ret, struct err *err)
{
	const struct passwd *pw = getpwnam(name);

	if (!pw)
		return err_set(
			err, ERR_CONFIG,
			"the user '%s' does not exist; make it with 'useradd --system "
			"--user-group --no-create-home --shell /usr/sbin/nologin %s', or name "
			"another one under 'users'",
			name, name);
	if (pw->pw_uid == 0 || pw->pw_gid == 0)
		return err_set(err, ERR_CONFIG, "'users' must not name root, as '%s' does", name);
	*ret = (struct confine_ids){.uid = pw->pw_uid, .gid = pw->pw_gid};
	return 0;
}

/* Once, not at each start. */
static void say_what_stays_unseen(const struct serve *s)
{
	const struct proxy_conf *c = &s->loaded->config.proxy;

	for (size_t i = 0; i < c->backend_count; i++)
		if (!c->backends[i].sees_files)
			log_line("backend %s: what it starts is not attested, since files = "
				 "\"none\"",
				 c->backends[i].name);
	if (config_beside_admin(&s->loaded->config))
		log_line("the admin socket %s lies in the folder of listener %s: root of a "
			 "container that "
			 "gets this folder may use it; name another in admin { socket }",
			 s->loaded->config.status_socket, config_beside_admin(&s->loaded->config));
	if (!s->root)
		log_line("not started as root: of what engines start, little can be attested");
}

int serve_users(struct serve *s, struct err *err)
{
	const struct config_users *u = &s->loaded->config.users;

	s->root = geteuid() == 0;
	say_what_stays_unseen(s);
	if (!s->root) {
		log_line("not started as root: all processes run as one user, which can alter the "
			 "log as well");
		return 0;
	}
	if (find_user(u->worker, &s->ids[ROLE_WORKER], err) < 0 ||
	    find_user(u->auditor, &s->ids[ROLE_AUDITOR], err) < 0 ||
	    find_user(u->resolver, &s->ids[ROLE_RESOLVER], err) < 0 ||
	    find_user(u->admin, &s->ids[ROLE_ADMIN], err) < 0)
		return -1;
	if (config_has_sandboxes(&s->loaded->config) &&
	    find_user(u->sandbox, &s->ids[ROLE_SANDBOX], err) < 0)
		return -1;
	if (s->loaded->config.keeper.wanted && find_user(u->keeper, &s->ids[ROLE_KEEPER], err) < 0)
		return -1;
	s->ids[ROLE_WATCHER] = s->ids[ROLE_WORKER]; /* has the same rights: the engines' sockets */
	if (s->ids[ROLE_WORKER].uid == s->ids[ROLE_AUDITOR].uid)
		log_line("worker and auditor are the same user: a worker can alter the log");
	return 0;
}

int serve_log_folder(const struct serve *s, struct err *err)
{
	const char *dir = s->loaded->config.auditor.dir;
	const struct confine_ids *owner = &s->ids[ROLE_AUDITOR];
	struct stat st;

	if (mkdir(dir, 0750) == 0) {
		if (s->root && lchown(dir, owner->uid, owner->gid) < 0)
			return err_sys(err, "give the log's folder %s to its user", dir);
		return 0;
	}
	if (errno != EEXIST)
		return err_sys(err, "make the log's folder %s", dir);
	if (stat(dir, &st) < 0)
		return err_sys(err, "look at the log's folder %s", dir);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_CONFIG, "the log's folder %s is no folder", dir);
	/* Others may need it, such as /var/log: no advice to take it over as a whole. */
	if (s->root && st.st_uid != owner->uid)
		return err_set(
			err, ERR_CONFIG,
			"the log's folder %s belongs to uid %u, not to %s: name a folder for the "
			"log alone (a missing one is made), or chown this one and the log in it",
			dir, st.st_uid, s->loaded->config.users.auditor);
	if (st.st_mode & S_IWOTH)
		return err_set(
			err, ERR_CONFIG,
			"the log's folder %s can be written by everybody: name a folder for the "
			"log alone (a missing one is made), or make its mode 0750",
			dir);
	return 0;
}

/* The check has seen that the names exist. */
static struct listen_access access_of(const struct config_access *from)
{
	const struct passwd *pw = *from->owner ? getpwnam(from->owner) : NULL;
	const struct group *gr = *from->group ? getgrnam(from->group) : NULL;

	return (struct listen_access){
		.uid = pw ? pw->pw_uid : geteuid(),
		.gid = gr ? gr->gr_gid : getegid(),
		.mode = from->mode,
	};
}

/* Containers have the socket of such a listener mounted, and are to find it again. */
static int open_socket(const struct conf_listener *l, const struct listen_access *access, int *ret,
		       struct err *err)
{
	struct err unfit = {0};

	if (*l->tcp)
		return listen_on_tcp(l->tcp, ret, err);
	*ret = passed_take(l->socket, access, &unfit);
	if (unfit.kind != ERR_NONE) {
		*err = unfit;
		return -1;
	}
	if (*ret < 0 && listen_unix(l->socket, access, ret, err) < 0)
		return -1;
	if (l->as_one)
		passed_keep(l->name, *ret);
	return 0;
}

int serve_open_sockets(struct serve *s, struct err *err)
{
	struct config *c = &s->loaded->config;
	const struct listen_access admin = access_of(&c->admin.access);

	s->listeners = calloc(c->proxy.listener_count, sizeof(*s->listeners));
	if (!s->listeners)
		return err_sys(err, "no memory");
	for (size_t i = 0; i < c->proxy.listener_count; i++)
		s->listeners[i] = -1;
	for (size_t i = 0; i < c->proxy.listener_count; i++) {
		const struct listen_access access = access_of(&c->access[i]);

		if (open_socket(&c->listeners[i], &access, &s->listeners[i], err) < 0)
			return err_wrap(err, "listener \"%s\"", c->listeners[i].name);
		c->listeners[i].fd = s->listeners[i];
	}
	passed_end();
	return listen_unix(c->status_socket, &admin, &s->status, err);
}

void serve_close_sockets(struct serve *s)
{
	const struct config *c = &s->loaded->config;

	for (size_t i = 0; s->listeners && i < c->proxy.listener_count; i++) {
		if (s->listeners[i] < 0)
			continue;
		close(s->listeners[i]);
		/* An engine that misses what it is to mount makes a folder in its place. */
		if (c->listeners[i].as_one || *c->listeners[i].tcp)
			continue;
		if (unlink(c->listeners[i].socket) < 0)
			log_line("cannot remove %s: %s", c->listeners[i].socket, strerror(errno));
	}
	if (s->status >= 0) {
		close(s->status);
		unlink(c->status_socket);
	}
	free(s->listeners);
	s->listeners = NULL;
	s->status = -1;
}

static bool engine_group(const struct config *c, size_t i, gid_t *ret)
{
	struct stat st;

	if (c->engines[i].has_gid) {
		*ret = c->engines[i].gid;
		return true;
	}
	if (stat(c->proxy.backends[i].socket, &st) < 0) /* also where it is none */
		return false;
	*ret = st.st_gid;
	return true;
}

static bool is_keepers(const struct config *c, size_t i)
{
	return c->keeper.wanted && c->keeper.backend == i;
}

static void add_group(struct confine_ids *ids, gid_t gid)
{
	for (size_t i = 0; i < ids->group_count; i++)
		if (ids->groups[i] == gid)
			return;
	if (ids->group_count < CONFINE_GROUPS_MAX)
		ids->groups[ids->group_count++] = gid;
}

bool serve_engine_groups(struct serve *s)
{
	struct confine_ids *now = &s->ids[ROLE_WORKER], want = *now;
	const struct config *c = &s->loaded->config;
	bool missing = false;
	gid_t gid;

	if (!s->root)
		return false;
	want.group_count = 0;
	for (size_t i = 0; i < c->proxy.backend_count; i++)
		if (is_keepers(c, i)) /* made by the gate, for the group that they have */
			continue;
		else if (engine_group(c, i, &gid))
			add_group(&want, gid);
		else if (!c->proxy.backends[i].tcp)
			missing = true;
	/* What went away may come back as it was. */
	for (size_t i = 0; missing && i < now->group_count; i++)
		add_group(&want, now->groups[i]);
	if (want.group_count == now->group_count &&
	    memcmp(want.groups, now->groups, want.group_count * sizeof(gid_t)) == 0)
		return false;
	*now = s->ids[ROLE_WATCHER] = want;
	for (size_t i = 0; i < c->proxy.backend_count; i++)
		if (!is_keepers(c, i) && engine_group(c, i, &gid) && gid == 0)
			log_line("%s belongs to the group root, so workers get that group; give "
				 "the socket a group of its own",
				 c->proxy.backends[i].socket);
	return true;
}
