#include "gate/admin.h"

#include <string.h>
#include <sys/socket.h>

int admin_peer_of(int fd, struct admin_peer *ret)
{
	struct ucred cred = {.pid = -1, .uid = (uid_t)-1, .gid = (gid_t)-1};
	socklen_t len = sizeof(cred), groups = sizeof(ret->groups);

	*ret = (struct admin_peer){.uid = (uid_t)-1, .gid = (gid_t)-1, .pid = -1};
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || len != sizeof(cred))
		return -1;
	ret->uid = cred.uid;
	ret->gid = cred.gid;
	ret->pid = cred.pid;
	/* ERANGE: in more groups than are looked at, so none of them gives a role. */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, ret->groups, &groups) == 0)
		ret->group_count = groups / sizeof(gid_t);
	return 0;
}

static bool has(const struct config_members *m, const struct admin_peer *p)
{
	for (size_t i = 0; i < m->uid_count; i++)
		if (m->uids[i] == p->uid)
			return true;
	for (size_t i = 0; i < m->gid_count; i++) {
		if (m->gids[i] == p->gid)
			return true;
		for (size_t k = 0; k < p->group_count; k++)
			if (m->gids[i] == p->groups[k])
				return true;
	}
	return false;
}

unsigned admin_roles_of(const struct config_admin *c, const struct admin_peer *p, uid_t starter)
{
	unsigned roles = 0;

	if (p->uid == (uid_t)-1)
		return 0;
	if (p->uid == 0 || p->uid == starter)
		roles |= ADMIN_OPERATE | ADMIN_AUDIT;
	roles |= has(&c->operate, p) ? ADMIN_OPERATE : 0;
	roles |= has(&c->approve, p) ? ADMIN_APPROVE : 0;
	roles |= has(&c->audit, p) ? ADMIN_AUDIT : 0;
	return roles;
}

void admin_roles_text(unsigned roles, char out[32])
{
	snprintf(out, 32, "%s%s%s", roles & ADMIN_OPERATE ? ",operate" : "",
		 roles & ADMIN_APPROVE ? ",approve" : "", roles & ADMIN_AUDIT ? ",audit" : "");
	memmove(out, out + (*out == ','), strlen(out + (*out == ',')) + 1);
	if (!*out)
		memcpy(out, "none", sizeof("none"));
}
