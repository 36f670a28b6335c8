#include "audit/pairing_priv.h"

static enum pairing opened(struct open_set *open, struct span id_text, uint64_t seq)
{
	struct open_decision *d;
	struct decision_id id;

	if (decision_id_parse(id_text, &id) < 0)
		return PAIRING_WRONG;
	d = open_set_add(open, &id);
	if (!d)
		return PAIRING_WRONG;
	d->seq = seq;
	return PAIRING_OPENED;
}

static enum pairing closed(struct open_set *open, struct span of_text)
{
	struct decision_id of;

	if (decision_id_parse(of_text, &of) < 0 || !open_set_find(open, &of))
		return PAIRING_WRONG;
	open_set_drop(open, &of);
	return PAIRING_CLOSED;
}

enum pairing pairing_apply(struct open_set *open, const struct record_peek *peek, uint64_t seq)
{
	if (peek->allow)
		return opened(open, peek->id, seq);
	if (peek->type == RECORD_OUTCOME || peek->type == RECORD_OUTCOME_UNKNOWN)
		return closed(open, peek->of);
	return PAIRING_NOTHING;
}
