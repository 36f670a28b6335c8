/* Which sums of refusals are in the log already. */
#include "audit/log_priv.h"

#include <string.h>

const struct told_sum *told_find(const struct told_sums *t, const struct decision_id *id)
{
	for (size_t i = 0; i < t->count; i++)
		if (memcmp(&t->sums[i].id, id, sizeof(*id)) == 0)
			return &t->sums[i];
	return NULL;
}

void told_keep(struct told_sums *t, const struct decision_id *id, const struct audit_mark *mark)
{
	t->sums[t->next] = (struct told_sum){*id, *mark};
	t->next = (t->next + 1) % TOLD_SUMS;
	if (t->count < TOLD_SUMS)
		t->count++;
}
