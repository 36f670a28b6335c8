#include "rules/opset_priv.h"

#include <string.h>

#define LETTERS_MAX 48

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

/* Letters to insert, drop or change to make b of a. */
static size_t edits(struct span a, struct span b)
{
	size_t row[LETTERS_MAX + 1];

	for (size_t k = 0; k <= b.len; k++)
		row[k] = k;
	for (size_t i = 1; i <= a.len; i++) {
		size_t corner = row[0];

		row[0] = i;
		for (size_t k = 1; k <= b.len; k++) {
			size_t change = corner + (a.at[i - 1] != b.at[k - 1]);
			size_t other = (row[k] < row[k - 1] ? row[k] : row[k - 1]) + 1;

			corner = row[k];
			row[k] = change < other ? change : other;
		}
	}
	return row[b.len];
}

void nearest_offer(struct nearest *n, const char *candidate)
{
	struct span c = span_of(candidate);
	size_t distance;

	if (!c.len || c.len > LETTERS_MAX || n->word.len > LETTERS_MAX)
		return;
	distance = edits(n->word, c);
	if (distance * 3 > c.len + 2 || (n->best && distance >= n->distance))
		return;
	n->best = candidate;
	n->distance = distance;
}

const char *op_word_nearest(struct span word)
{
	struct nearest n = {.word = word};

	for (int op = 1; op < OP_COUNT; op++) {
		nearest_offer(&n, operation_name((enum operation)op));
		nearest_offer(&n, operation_group((enum operation)op));
	}
	for (int cls = 1; cls < CLASS_COUNT; cls++)
		nearest_offer(&n, op_class_name((enum op_class)cls));
	return n.best;
}
