#include "audit/tree_priv.h"

#include <assert.h>
#include <string.h>

struct hash tree_node(const struct hash *left, const struct hash *right)
{
	char pair[1 + 2 * HASH_BYTES];

	pair[0] = 1;
	memcpy(pair + 1, left->bytes, HASH_BYTES);
	memcpy(pair + 1 + HASH_BYTES, right->bytes, HASH_BYTES);
	return hash_of((struct span){pair, sizeof(pair)});
}

unsigned tree_add(struct tree *t, const struct hash *leaf, struct hash nodes[TREE_LEVELS])
{
	struct hash node = *leaf;
	unsigned level = 0;

	for (; t->size >> level & 1; level++) {
		if (nodes)
			nodes[level] = node;
		node = tree_node(&t->edge[level], &node);
	}
	if (nodes)
		nodes[level] = node;
	assert(level < TREE_LEVELS);
	t->edge[level] = node;
	t->size++;
	return level;
}

struct hash tree_root(const struct tree *t)
{
	struct hash root = {{0}};
	bool any = false;

	for (unsigned level = 0; level < TREE_LEVELS; level++) {
		if (!(t->size >> level & 1))
			continue;
		root = any ? tree_node(&t->edge[level], &root) : t->edge[level];
		any = true;
	}
	return any ? root : hash_of((struct span){"", 0});
}

bool tree_same(const struct tree *a, const struct tree *b)
{
	if (a->size != b->size)
		return false;
	for (unsigned level = 0; level < TREE_LEVELS; level++)
		if (a->size >> level & 1 &&
		    memcmp(&a->edge[level], &b->edge[level], sizeof(a->edge[level])) != 0)
			return false;
	return true;
}

void tree_edge_format(const struct tree *t, char out[TREE_EDGE_MAX])
{
	char *at = out;

	for (unsigned level = TREE_LEVELS; level-- > 0;) {
		if (!(t->size >> level & 1))
			continue;
		*at = at == out ? '[' : ',';
		*++at = '"';
		at++;
		hash_hex(&t->edge[level], at);
		at += HASH_HEX_LEN;
		*at++ = '"';
	}
	if (at != out)
		*at++ = ']';
	*at = '\0';
}

static bool take(struct span *text, char want)
{
	if (!text->len || *text->at != want)
		return false;
	*text = span_skip(*text, 1);
	return true;
}

bool tree_edge_parse(struct span text, uint64_t size, struct tree *ret)
{
	struct tree t = {.size = size};
	bool first = true;

	for (unsigned level = TREE_LEVELS; level-- > 0;) {
		if (!(size >> level & 1))
			continue;
		if (!take(&text, first ? '[' : ',') || !take(&text, '"') ||
		    text.len < HASH_HEX_LEN ||
		    hash_parse((struct span){text.at, HASH_HEX_LEN}, &t.edge[level]) < 0)
			return false;
		text = span_skip(text, HASH_HEX_LEN);
		if (!take(&text, '"'))
			return false;
		first = false;
	}
	if ((!first && !take(&text, ']')) || text.len)
		return false;
	*ret = t;
	return true;
}
