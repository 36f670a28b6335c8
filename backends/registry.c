#include "backends/backend.h"
#include "backends/list_priv.h"

#include <string.h>

static const struct backend_ops *const all[] = {
	&backend_docker,
	&backend_local,
	&backend_podman,
	NULL,
};

const struct backend_ops *const *backend_all(void)
{
	return all;
}

const struct backend_ops *backend_find(const char *kind)
{
	for (const struct backend_ops *const *ops = all; *ops; ops++)
		if (strcmp((*ops)->kind, kind) == 0)
			return *ops;
	return NULL;
}
