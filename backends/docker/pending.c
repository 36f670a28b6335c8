#include "backends/docker/docker_priv.h"
#define P(n)                                                                                       \
	void n(struct docker *d, struct backend_call *call)                                        \
	{                                                                                          \
		(void)d;                                                                           \
		docker_refuse(call, REASON_unknown_endpoint, "", "");                              \
	}
P(docker_step_create)
P(docker_step_start) P(docker_step_update) P(docker_step_exec_create) P(docker_step_exec_start)
	P(docker_step_exec) P(docker_step_pull) P(docker_step_network) P(docker_step_network_create)
		P(docker_step_network_join) P(docker_step_volume)
			P(docker_step_volume_create) int docker_apply(struct backend *be,
								      struct backend_call *call,
								      struct change *changes,
								      size_t count, struct err *err)
{
	(void)be;
	(void)call;
	(void)changes;
	return count ? err_set(err, ERR_CONFIG, "not yet") : 0;
}
enum step docker_check(struct backend *be, struct backend_call *call, struct span reply)
{
	(void)be;
	(void)call;
	(void)reply;
	return STEP_REFUSED;
}
void docker_read_runtime(struct arena *a, const char *name, const struct jv *doc,
			 struct docker_runtime *ret)
{
	(void)a;
	(void)doc;
	*ret = (struct docker_runtime){.name = name, .path = ""};
}
