/* What happens in an engine is held against what it was asked for. */
#include "proxy/observe_priv.h"

#include "proxy/worker_priv.h"

#include <stdlib.h>

struct observe {
	uint64_t seen; /* lines of events */
};

static void *observe_open(struct worker *w, struct err *err)
{
	struct observe *o = calloc(1, sizeof(*o));

	(void)w;
	if (!o)
		err_sys(err, "allocate what is observed");
	return o;
}

static void observe_event(void *module, size_t backend, struct span line)
{
	struct observe *o = module;

	(void)backend;
	(void)line;
	o->seen++;
}

const struct watcher_module observe_module = {
	.name = "observe",
	.open = observe_open,
	.close = free,
	.event = observe_event,
};
