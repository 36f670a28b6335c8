/* admin_serve.c - the supervisor's answers about listeners made at run time (supervisor.h: admin).
 */
#include "gate/admin_sockets.h"
#include "gate/quota_status.h"
#include "gate/serve.h"
#include "proxy/quotas.h"

#include "gate/base/clock.h"
#include "proxy/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder that keeps them belongs to the admin process alone. */
static int open_state(struct serve *s, const char *dir, struct err *err)
{
	const struct confine_ids *owner = &s->ids[ROLE_ADMIN];
	uid_t want = s->root ? owner->uid : geteuid();
	struct stat st;

	if (mkdir(dir, 0700) == 0) {
		if (s->root && lchown(dir, owner->uid, owner->gid) < 0)
			return err_sys(err, "give %s to its user", dir);
	} else if (errno != EEXIST) {
		return err_sys(err, "make the folder of admin { state }, %s", dir);
	}
	s->state = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->state < 0 || fstat(s->state, &st) < 0)
		return err_sys(err, "open the folder of admin { state }, %s", dir);
	if (st.st_uid != want || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return err_set(
			err, ERR_CONFIG,
			"admin { state }: %s must belong to uid %u and be writable by nobody "
			"else: name a folder for this alone (a missing one is made)",
			dir, want);
	return 0;
}

int serve_open_admin(struct serve *s, struct err *err)
{
	const struct config_admin *c = &s->loaded->config.admin;

	s->sockets = admin_sockets_create(geteuid());
	if (!s->sockets)
		return err_set(err, ERR_SYSTEM, "no memory");
	if (*c->sockets && admin_sockets_folder(s->sockets, c->sockets, err) < 0)
		return -1;
	return *c->state ? open_state(s, c->state, err) : 0;
}

void serve_close_admin(struct serve *s)
{
	if (s->state >= 0)
		close(s->state);
	s->state = -1;
	admin_sockets_destroy(s->sockets);
	s->sockets = NULL;
}

/* Allowed, since an operator may; but on record. */
static void note_owner(const struct config *c, struct admin_reply *reply, const char *owner)
{
	for (size_t i = 0; i < c->proxy.identity_count; i++)
		if (strcmp(c->proxy.identities[i].owner, owner) == 0) {
			reply->owner_is_known = 1;
			snprintf(reply->identity, sizeof(reply->identity), "%s",
				 c->proxy.identities[i].name);
			return;
		}
}

/* Identities go before owners: an owner that is called as one can be meant by who has it. */
static void find_owner(const struct serve *s, const char *name, struct admin_reply *reply)
{
	const struct proxy_conf *p = &s->loaded->config.proxy;

	snprintf(reply->text, sizeof(reply->text), "%s", name);
	for (size_t i = 0; i < p->identity_count; i++) {
		if (strcmp(p->identities[i].name, name) == 0) {
			snprintf(reply->text, sizeof(reply->text), "%s", p->identities[i].owner);
			reply->owner_is_known = 1;
			return;
		}
		if (strcmp(p->identities[i].owner, name) == 0)
			reply->owner_is_known = 1;
	}
	for (size_t i = 0; admin_sockets_at(s->sockets, i); i++)
		if (strcmp(admin_sockets_at(s->sockets, i)->row.owner, name) == 0)
			reply->owner_is_known = 1;
}

static bool has_profile(const struct config *c, const char *name)
{
	for (size_t i = 0; c->profile_names && c->profile_names[i]; i++)
		if (strcmp(c->profile_names[i], name) == 0)
			return true;
	return false;
}

/* A text that was cut is that of whoever begins so: in doubt it is his own. */
static bool is_asker(const struct conf_identity *i, const struct admin_asker *a)
{
	return !strncmp(i->name, a->identity, sizeof(a->identity) - 1) ||
	       !strncmp(i->owner, a->owner, sizeof(a->owner) - 1);
}

/* By a token, say, the asker may have come without a user: the configuration knows whose it is. */
static bool is_own(const struct proxy_conf *p, uint32_t uid, const struct admin_asker *a)
{
	for (size_t i = 0; i < p->identity_count; i++)
		if (p->identities[i].has_uid && p->identities[i].uid == uid &&
		    is_asker(&p->identities[i], a))
			return true;
	return false;
}

void serve_admin(void *arg, const struct admin_word *w, struct admin_reply *reply,
		 const struct runtime_listener **ret_made, bool *ret_gone)
{
	struct serve *s = arg;
	const struct config *c = &s->loaded->config;
	const struct runtime_listener *there;
	struct runtime_row row = w->row;
	size_t before = admin_sockets_count(s->sockets);
	struct err err = {0};

	if (w->ask == ASK_OWNER) {
		row.path[RUNTIME_PATH_MAX] = '\0';
		find_owner(s, row.path, reply);
		return;
	}
	if (w->ask == ASK_PROFILE) {
		row.profile[RUNTIME_NAME_MAX] = '\0';
		reply->code = has_profile(c, row.profile) ? ADMIN_DONE : ANSWER_profile_missing;
		return;
	}
	if (w->ask == ASK_OWN) {
		reply->code =
			is_own(&c->proxy, row.uid, &w->asker) ? ANSWER_own_request : ADMIN_DONE;
		return;
	}
	/* Its sender reads bytes of callers: nothing in it is taken on trust. */
	if (!runtime_is_row(&row)) {
		reply->code = ANSWER_bad_argument;
		return;
	}
	if (w->ask == ASK_TRY) {
		reply->code = admin_sockets_try(s->sockets, c, &row, false, &err);
		note_owner(c, reply, row.owner);
	} else if (w->ask == ASK_ADD || w->ask == ASK_RESTORE) {
		reply->code =
			admin_sockets_add(s->sockets, c, &row, w->ask == ASK_RESTORE, &there, &err);
		if (admin_sockets_count(s->sockets) > before) {
			*ret_made = there;
			metrics_add(s->metrics, METRIC_runtime_added, 1);
		}
	} else if (w->ask == ASK_REMOVE) {
		reply->code = admin_sockets_remove(s->sockets, c, row.name, &reply->row);
		*ret_gone = reply->code == ADMIN_DONE;
		metrics_add(s->metrics, METRIC_runtime_ended, *ret_gone);
	} else if (w->ask == ASK_CLEAR) {
		admin_sockets_clear(s->sockets, c, row.path);
	} else {
		reply->code = ANSWER_unknown_verb;
	}
	snprintf(reply->text, sizeof(reply->text), "%s", err.msg);
}

bool serve_expired(void *arg, struct runtime_row *ret)
{
	struct serve *s = arg;

	bool ended = admin_sockets_expire(s->sockets, &s->loaded->config, ret);

	metrics_add(s->metrics, METRIC_runtime_ended, ended);
	return ended;
}

uint64_t serve_due(void *arg)
{
	const struct serve *s = arg;

	return admin_sockets_due(s->sockets);
}

const struct runtime_listener *serve_runtime(void *arg, size_t i)
{
	const struct serve *s = arg;

	return admin_sockets_at(s->sockets, i);
}

static void add_listener(struct arena *a, struct jv *list, const struct config *c,
			 const struct runtime_row *row)
{
	struct jv *to = jv_push(a, list, jv_object());
	char until[CLOCK_TEXT_MAX];

	clock_format((uint64_t)row->until * 1000000000, until);
	jv_set(a, to, "name", jv_string(row->name));
	jv_set(a, to, "profile", jv_string(row->profile));
	jv_set(a, to, "profile_loaded", jv_bool(has_profile(c, row->profile)));
	jv_set(a, to, "owner", jv_string(row->owner));
	jv_set(a, to, "path", jv_string(row->path));
	jv_set(a, to, "backend",
	       jv_string(row->backend < c->proxy.backend_count
				 ? c->proxy.backends[row->backend].name
				 : ""));
	jv_set(a, to, "until", jv_string(arena_strndup(a, until, strlen(until))));
}

static void add_modes(const struct emergency_view *view, struct arena *a, struct jv *tree)
{
	struct jv *list = jv_set(a, tree, "modes", jv_array()), *to;

	for (size_t i = 0; i < view->mode_count && i < EMERGENCY_MODES; i++) {
		const struct emergency_mode *m = &view->modes[i];

		if (!emergency_mode_holds(m))
			continue;
		to = jv_push(a, list, jv_object());
		jv_set(a, to, "profile", jv_string(m->profile));
		jv_set(a, to, "mode", jv_string("warn"));
		jv_set(a, to, "ticket", jv_string(m->ticket));
		jv_set(a, to, "since", jv_int(m->since));
		jv_set(a, to, "until", jv_int(m->until));
	}
}

/* The view is too large for a stack that serves others as well. */
static void add_emergency(const struct serve *s, struct arena *a, struct jv *tree)
{
	static struct emergency_view view;
	struct jv *list, *to;

	emergency_look(s->emergency, &view);
	jv_set(a, tree, "quarantines_known", jv_bool(view.turn != 0));
	list = jv_set(a, tree, "quarantines", jv_array()); /* last: another member may move it */
	for (size_t i = 0; i < view.owner_count && i < EMERGENCY_OWNERS; i++) {
		const struct quarantine *q = &view.owners[i];

		to = jv_push(a, list, jv_object());
		jv_set(a, to, "owner", jv_string(q->owner));
		jv_set(a, to, "ticket", jv_string(q->ticket));
		jv_set(a, to, "since", jv_int(q->since));
		jv_set(a, to, "kill", jv_bool(q->kill != 0));
	}
	add_modes(&view, a, tree);
}

void serve_status_more(void *arg, struct arena *a, struct jv *tree)
{
	const struct serve *s = arg;
	struct jv *list = jv_set(a, tree, "listeners", jv_array()), *kept;

	for (size_t i = 0; admin_sockets_at(s->sockets, i); i++)
		add_listener(a, list, &s->loaded->config, &admin_sockets_at(s->sockets, i)->row);
	add_emergency(s, a, tree);
	quota_status_add(quotas_uses(s->quotas), &s->loaded->config.proxy, a, tree);
	kept = jv_set(a, tree, "kept", jv_array());
	for (size_t i = s->kept_count; i-- > 0;)
		jv_push(a, kept, jv_string(s->kept[i].generation));
	kept = jv_set(a, tree, "kept_until", jv_array());
	for (size_t i = s->kept_count; i-- > 0;)
		jv_push(a, kept, jv_int(s->kept[i].until));
}
