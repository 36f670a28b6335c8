/* serve_sandboxes.c - what the process behind the sandbox API gets at the start. */
#include "gate/serve.h"

#include "gate/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Every sandbox gets it: nobody but root may put another program there. */
static int check_helper(const char *path, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_sys(err, "sandboxes { inside }: look at %s", path);
	if (!S_ISREG(st.st_mode) || !(st.st_mode & S_IXOTH))
		return err_set(err, ERR_CONFIG,
			       "sandboxes { inside }: %s is no program that everybody may run",
			       path);
	if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return err_set(err, ERR_CONFIG,
			       "sandboxes { inside }: %s must belong to root and be writable by "
			       "nobody else",
			       path);
	return 0;
}

static int open_state(struct serve *s, const char *dir, struct err *err)
{
	const struct confine_ids *owner = &s->ids[ROLE_SANDBOX];
	uid_t want = s->root ? owner->uid : geteuid();
	struct stat st;

	if (mkdir(dir, 0700) == 0) {
		if (s->root && lchown(dir, owner->uid, owner->gid) < 0)
			return err_sys(err, "give %s to its user", dir);
	} else if (errno != EEXIST) {
		return err_sys(err, "make the folder of sandboxes { state }, %s", dir);
	}
	s->sandbox_state = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->sandbox_state < 0 || fstat(s->sandbox_state, &st) < 0)
		return err_sys(err, "open the folder of sandboxes { state }, %s", dir);
	if (st.st_uid != want || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return err_set(
			err, ERR_CONFIG,
			"sandboxes { state }: %s must belong to uid %u and be writable by nobody "
			"else: name a folder for this alone (a missing one is made)",
			dir, want);
	return 0;
}

int serve_open_sandboxes(struct serve *s, struct err *err)
{
	const struct config *c = &s->loaded->config;
	size_t n = 0;

	s->sandbox_state = -1;
	s->sandbox_listeners = calloc(c->proxy.listener_count + 1, sizeof(int));
	if (!s->sandbox_listeners)
		return err_sys(err, "no memory");
	if (!config_has_sandboxes(c))
		return 0;
	for (size_t i = 0; i < c->proxy.listener_count; i++)
		if (c->proxy.listeners[i].sandbox_count)
			s->sandbox_listeners[n++] = s->listeners[i];
	s->sandbox_listener_count = n;
	if (check_helper(c->proxy.sandboxes.inside, err) < 0)
		return -1;
	return open_state(s, c->proxy.sandboxes.state, err);
}

void serve_close_sandboxes(struct serve *s)
{
	if (s->sandbox_state >= 0)
		close(s->sandbox_state);
	s->sandbox_state = -1;
	free(s->sandbox_listeners);
	s->sandbox_listeners = NULL;
	s->sandbox_listener_count = 0;
}
