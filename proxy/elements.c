#include "proxy/elements.h"

void elements_init(struct elements *e, size_t cap)
{
	*e = (struct elements){.at = ELEMENTS_BEFORE};
	buf_init(&e->one, cap);
}

void elements_fini(struct elements *e)
{
	buf_fini(&e->one);
}

bool elements_over(const struct elements *e)
{
	return e->at == ELEMENTS_BEHIND;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Whether c ends the element. */
static bool follow(struct elements *e, char c)
{
	if (e->in_string) {
		if (e->escaped)
			e->escaped = false;
		else if (c == '\\')
			e->escaped = true;
		else if (c == '"')
			e->in_string = false;
		return false;
	}
	if (c == '"')
		e->in_string = true;
	else if (c == '{' || c == '[')
		e->depth++;
	else if (c == '}' || c == ']')
		return --e->depth == 0;
	return false;
}

/* Outside of elements; -1: that does not stand there. */
static int between(struct elements *e, char c)
{
	if (is_blank(c))
		return 0;
	if (e->at == ELEMENTS_BEFORE && c == '[') {
		e->at = ELEMENTS_BETWEEN;
		return 0;
	}
	if (e->at != ELEMENTS_BETWEEN)
		return -1;
	if (c == ']') {
		e->at = ELEMENTS_BEHIND;
		return 0;
	}
	if (c != '{')
		return c == ',' ? 0 : -1;
	e->at = ELEMENTS_INSIDE;
	e->depth = 0;
	e->in_string = e->escaped = false;
	return 0;
}

int elements_take(struct elements *e, struct span piece, elements_fn *fn, void *arg,
		  struct err *err)
{
	for (size_t i = 0; i < piece.len; i++) {
		if (e->at != ELEMENTS_INSIDE && between(e, piece.at[i]) < 0)
			return err_set(err, ERR_UPSTREAM, "it is no array of objects");
		if (e->at != ELEMENTS_INSIDE)
			continue;
		buf_put(&e->one, &piece.at[i], 1);
		if (!follow(e, piece.at[i]))
			continue;
		if (buf_spent(&e->one))
			return err_set(err, ERR_UPSTREAM, "an element is longer than %zu bytes",
				       e->one.cap);
		fn(arg, buf_span(&e->one));
		buf_clear(&e->one);
		e->at = ELEMENTS_BETWEEN;
	}
	return 0;
}
