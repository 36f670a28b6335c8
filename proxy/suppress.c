/*
 * A worker's side of suppressed.h: which refusals are only counted, and the records that say how
 * many.
 */
#include "proxy/suppressed.h"

#include "gate/base/clock.h"
#include "proxy/worker_priv.h"

#include <stdio.h>

static struct suppressed_time time_now(void)
{
	return (struct suppressed_time){clock_boot_ns(), clock_unix_ns()};
}

void suppress_refusal(struct exchange *x)
{
	struct suppressed *t = x->worker->conf->suppressed;
	const struct suppressed_time now = time_now();
	char id[SUPPRESSED_ID];

	if (!t || !suppressed_count(t, &x->conn->who, op_class_name(operation_class(x->call.op)),
				    &now, id))
		return;
	snprintf(x->id, sizeof(x->id), "%s", id);
	x->decided = true;
}

/* began and ended: where the times are written to. */
static void fill(const struct suppressed_sum *sum, char *began, char *ended, struct record *ret)
{
	clock_format(sum->first_ns, began);
	clock_format(sum->last_ns, ended);
	*ret = (struct record){.type = RECORD_SUPPRESSED,
			       .id = sum->id,
			       .listener = sum->listener,
			       .identity = sum->identity,
			       .owner = sum->owner,
			       .op_class = sum->op_class,
			       .profile = sum->profile,
			       .reason = reason_name(REASON_rate),
			       .count = sum->count,
			       .first_t = began,
			       .last_t = ended};
}

static void on_recorded(void *arg, const struct audit_receipt *receipt)
{
	struct telling *telling = arg;

	if (receipt)
		(void)suppressed_told(telling->table, &telling->ref);
	else
		suppressed_untold(telling->table, &telling->ref);
	telling->table = NULL;
}

static struct telling *find_free(struct worker *w)
{
	for (size_t i = 0; i < SUPPRESS_TELLINGS; i++)
		if (!w->tellings[i].table)
			return &w->tellings[i];
	return NULL;
}

void suppress_tick(struct worker *w)
{
	struct suppressed *t = w->conf->suppressed;
	uint64_t now_ns = clock_boot_ns();
	struct suppressed_sum sum;
	struct telling *telling;
	size_t at = 0;

	while (t && audit_client_up(w->audit) && (telling = find_free(w)) &&
	       suppressed_next(t, now_ns, false, &at, &sum)) {
		char began[CLOCK_TEXT_MAX], ended[CLOCK_TEXT_MAX];
		struct record r;

		fill(&sum, began, ended, &r);
		*telling = (struct telling){t, sum.ref};
		if (audit_require(w->audit, &r, on_recorded, telling) < 0)
			on_recorded(telling, NULL);
	}
}

/*
 * The worker ends, perhaps the gate with it: no answer is waited for.  What is not on disk for all
 * that stays in the table, for the workers that there are; what is, the auditor knows if they tell
 * it again.
 */
void suppress_end(struct worker *w)
{
	struct suppressed *t = w->conf->suppressed;
	uint64_t now_ns = clock_boot_ns();
	struct suppressed_sum sum;

	for (size_t at = 0; t && suppressed_next(t, now_ns, true, &at, &sum);) {
		char began[CLOCK_TEXT_MAX], ended[CLOCK_TEXT_MAX];
		struct record r;

		fill(&sum, began, ended, &r);
		if (audit_tell(w->audit, &r) < 0)
			suppressed_untold(t, &sum.ref);
	}
}
