/*
 * What a refused caller reads, in their own client: what was refused, where in
 * the request, why, which rule of which profile, what would be accepted, and
 * the id under which the log holds it.
 */
#include "proxy/worker_priv.h"

#include <string.h>

static void one_violation(const struct violation *v, struct buf *out)
{
	const char *text = v->text && *v->text ? v->text : reason_what(v->reason);
	const char *hint = v->hint && *v->hint ? v->hint : reason_hint(v->reason);

	buf_puts(out, "\n  - ");
	if (v->field && *v->field) {
		buf_printf(out, "%s", v->field);
		if (v->value && *v->value)
			buf_printf(out, " = %s", v->value);
		buf_puts(out, ": ");
	}
	buf_printf(out, "%s [%s, rule %s]", text, reason_name(v->reason), v->rule);
	if (*hint)
		buf_printf(out, "\n    %s", hint);
}

/* denial = "code": what a program can act on, and nothing of the profile. */
static void codes(const struct violations *list, struct buf *out)
{
	buf_puts(out, " [");
	for (size_t i = 0; i < list->count; i++) {
		bool seen = false;

		for (size_t k = 0; k < i; k++)
			seen = seen || list->list[k].reason == list->list[i].reason;
		if (!seen)
			buf_printf(out, "%s%s", i ? ", " : "", reason_name(list->list[i].reason));
	}
	buf_puts(out, "]");
}

/* Objects of others do not exist: the text is the engine's own, or it would tell. */
static bool is_absence(const struct violation *v)
{
	return reason_status(v->reason) == 404 && v->text && *v->text;
}

void refusal_message(const struct exchange *x, struct buf *out)
{
	const struct violations *list = &x->decision.violations;
	const struct violation *first = &list->list[0];

	if (is_absence(first)) {
		buf_puts(out, first->text);
		return;
	}
	buf_printf(out, "sallyport refused %s",
		   x->call.op ? operation_name(x->call.op) : "this request");
	if (x->decision.profile && *x->decision.profile &&
	    !(x->profile && profile_tells_codes_only(x->profile)))
		buf_printf(out, " under profile \"%s\"", x->decision.profile);
	if (x->profile && profile_tells_codes_only(x->profile)) {
		codes(list, out);
		buf_printf(out, "; decision %s", x->id);
		return;
	}
	buf_puts(out, ":");
	for (size_t i = 0; i < list->count; i++)
		one_violation(&list->list[i], out);
	if (list->dropped)
		buf_printf(out, "\n  - and %zu more", list->dropped);
	buf_printf(out, "\n  decision %s", x->id);
}
