/*
 * A streamed reply that the adapter looks through line by line: what the caller
 * may not see is left out on the way.
 */
#include "proxy/worker_priv.h"

#include <string.h>

#define ROW_ARENA_MAX ((size_t)8 << 20)

static bool crosses(struct exchange *x, struct span row)
{
	struct arena *scratch = arena_create(ROW_ARENA_MAX);
	struct span shown = row;
	bool yes = scratch &&
		   x->service->ops->row(x->service->backend, &x->call, row, scratch, &shown);

	if (yes && shown.at != row.at) {
		buf_clear(&x->row);
		buf_put(&x->row, shown.at, shown.len);
		buf_put(&x->row, "\n", 1);
		yes = !buf_spent(&x->row);
	}
	arena_destroy(scratch);
	return yes;
}

/* The row is complete, with its line end; one that was too long is nobody's. */
static void judge_row(struct exchange *x)
{
	struct span row = buf_span(&x->row);

	while (row.len && (row.at[row.len - 1] == '\n' || row.at[row.len - 1] == '\r'))
		row.len--;
	x->row_crosses = row.len && !buf_spent(&x->row) && crosses(x, row);
	if (!x->row_crosses)
		buf_clear(&x->row);
}

/* Moves what is there of the next row; false: more has to come first. */
static bool gather(struct exchange *x)
{
	struct span s = upcall_body(x->up);
	const char *end = s.len ? memchr(s.at, '\n', s.len) : NULL;
	size_t n = end ? (size_t)(end - s.at) + 1 : s.len;

	if (n) {
		buf_put(&x->row, s.at, n);
		upcall_take(x->up, n);
	} else if (!upcall_complete(x->up) || !buf_len(&x->row)) {
		return false;
	}
	if (end || (!n && upcall_complete(x->up)))
		judge_row(x);
	return true;
}

size_t rows_take(struct exchange *x, char *out, size_t max)
{
	struct span s;
	size_t n;

	while (!x->row_crosses)
		if (!gather(x))
			return 0;
	s = buf_span(&x->row);
	n = s.len < max ? s.len : max;
	memcpy(out, s.at, n);
	buf_consume(&x->row, n);
	if (!buf_len(&x->row)) {
		x->row_crosses = false;
		buf_fini(&x->row); /* a stream may be idle for days */
	}
	return n;
}
