/* Who might reach the admin socket that is not meant to: containers that get a listener's folder.
 */
#include "gate/config.h"

#include <string.h>

/* Whether containers are what a listener is for: their folders are what is mounted there. */
static bool is_for_containers(const struct config *c, size_t i)
{
	const struct conf_listener *l = &c->proxy.listeners[i];

	return *c->listeners[i].socket &&
	       (l->looks_inside || (l->as_one && (c->access[i].mode & 02)));
}

static size_t folder_len(const char *path)
{
	const char *end = strrchr(path, '/');

	return end ? (size_t)(end - path) : 0;
}

const char *config_beside_admin(const struct config *c)
{
	const char *admin = c->status_socket;
	size_t len = folder_len(admin);

	for (size_t i = 0; *admin && i < c->proxy.listener_count; i++) {
		const char *path = c->listeners[i].socket;

		if (is_for_containers(c, i) && folder_len(path) == len &&
		    strncmp(path, admin, len) == 0)
			return c->listeners[i].name;
	}
	return NULL;
}
