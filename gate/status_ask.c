#include "gate/status_ask.h"

#include "gate/admin_ask.h"

int status_ask(const char *socket, struct arena *a, struct jv *ret, struct err *err)
{
	struct jv answer;
	const struct jv *status;

	if (admin_ask_gate(socket, VERB_status, NULL, a, &answer, err) < 0)
		return -1;
	if (!jv_true(&answer, "ok"))
		return err_set(err, ERR_INPUT, "%s: %s", jv_str(&answer, "reason", "?"),
			       jv_str(&answer, "text", ""));
	status = jv_get(&answer, "status");
	if (!status)
		return err_set(err, ERR_INPUT, "the gate's answer has no status");
	*ret = *status;
	return 0;
}
