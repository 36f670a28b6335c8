#include "gate/base/span.h"

bool span_cut(struct span *rest, char c, struct span *ret)
{
	const char *hit = rest->len ? memchr(rest->at, c, rest->len) : NULL;

	*ret = *rest;
	if (!hit) {
		*rest = span_skip(*rest, rest->len);
		return false;
	}
	ret->len = (size_t)(hit - rest->at);
	*rest = span_skip(*rest, ret->len + 1);
	return true;
}
