/*
 * An engine that is wedged keeps whoever asks it waiting.  So that they do not take the
 * place of those who ask another one, so many may wait for one engine in a worker, and
 * one caller may be half of them.
 */
#include "proxy/worker_priv.h"

void service_count(const struct exchange *x, enum engine_counter which, uint64_t n)
{
	engines_add(x->worker->conf->engines, (size_t)(x->service - x->worker->services), which, n);
}

/* What waits by nature, for as long as its caller likes, is no sign of trouble. */
static bool waits(const struct exchange *x)
{
	switch (x->state) {
	case X_SENT:
		return x->answer.kind == ANSWER_NONE && x->call.op != OP_CONTAINER_WAIT;
	case X_LOOKUP:
	case X_HELD:
	case X_CHECK:
	case X_UNDO:
		return true;
	case X_HEAD:
	case X_CALLER:
	case X_BODY:
	case X_DRAIN:
	case X_ASK:
	case X_RECORD:
	case X_ANSWER:
	case X_REPLYING:
	case X_RELAY:
	case X_OVER:
		break;
	}
	return false;
}

bool service_is_crowded(const struct exchange *x)
{
	const struct worker *w = x->worker;
	unsigned most = w->conf->limits.engine_waiting, all = 0, own = 0;

	/* A ping asks nothing of the engine that could take its time. */
	if (w->conn_count <= most / 2 || x->call.op == OP_SYSTEM_PING)
		return false;
	for (const struct exchange *one = w->exchanges; one; one = one->next) {
		if (one == x || one->service != x->service || !waits(one))
			continue;
		all++;
		if (one->conn && x->conn && connection_same_caller(one->conn, x->conn))
			own++;
	}
	return all >= most || own >= (most + 1) / 2;
}
