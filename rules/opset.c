#include "rules/opset_priv.h"

#include "gate/base/nearest.h"

static bool in_group(enum operation op, struct span word)
{
	return word.len && span_is(word, operation_group(op));
}

static bool add_word(struct op_set *s, struct span word, bool grants)
{
	enum operation one = operation_find(word);
	enum op_class cls = op_class_find(word);
	bool found = false;

	if (one != OP_UNKNOWN) {
		op_set_add(s, one);
		return true;
	}
	for (int op = 1; op < OP_COUNT; op++) {
		if (!in_group((enum operation)op, word))
			continue;
		op_set_add(s, (enum operation)op);
		found = true;
	}
	if (found || cls == CLASS_NONE)
		return found;
	for (int op = 1; op < OP_COUNT; op++)
		if (operation_class((enum operation)op) == cls &&
		    !(grants && operation_by_name((enum operation)op)))
			op_set_add(s, (enum operation)op);
	return true;
}

bool op_set_add_word(struct op_set *s, struct span word)
{
	return add_word(s, word, false);
}

bool op_set_grant_word(struct op_set *s, struct span word)
{
	return add_word(s, word, true);
}

bool op_set_covers(const struct op_set *outer, const struct op_set *inner)
{
	for (size_t i = 0; i < sizeof(outer->bits) / sizeof(*outer->bits); i++)
		if (inner->bits[i] & ~outer->bits[i])
			return false;
	return true;
}

const char *op_word_nearest(struct span word)
{
	struct nearest n = nearest_to(word);

	for (int op = 1; op < OP_COUNT; op++) {
		nearest_offer(&n, operation_name((enum operation)op));
		nearest_offer(&n, operation_group((enum operation)op));
	}
	for (int cls = 1; cls < CLASS_COUNT; cls++)
		nearest_offer(&n, op_class_name((enum op_class)cls));
	return n.best;
}
