/*
 * tables.c - exchanges that need a table of all processes while another one has its lock.
 *
 * That one has it for microseconds, unless it is not let run.  Nobody waits for it but the
 * exchange: the loop goes on, and tries again with each of its turns, a millisecond apart at
 * most.  What cannot be had for long is a denial (I2).
 */
#include "proxy/worker_priv.h"

#define TABLES_WAIT_MS 1000

bool tables_wait(struct exchange *x, void (*again)(struct exchange *x))
{
	uint64_t now_ms = x->worker->loop.now_ms;

	if (!x->table_until_ms)
		x->table_until_ms = now_ms + TABLES_WAIT_MS;
	if (now_ms >= x->table_until_ms)
		return false;
	x->state = X_LOOKUP;
	x->deadline_ms = 0;
	x->table_free = again;
	x->worker->tables_due = true;
	return true;
}

void tables_retry(struct worker *w)
{
	if (!w->tables_due)
		return;
	w->tables_due = false;
	for (struct exchange *x = w->exchanges, *next; x; x = next) {
		void (*again)(struct exchange * x) = x->table_free;

		next = x->next;
		x->table_free = NULL;
		if (again && x->state == X_LOOKUP)
			again(x);
		if (!x->table_free)
			x->table_until_ms = 0;
	}
}
