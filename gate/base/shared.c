#include "gate/base/shared.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LOCK_SPINS 2000

struct table {
	void *at;
	size_t bytes;
	struct table *next;
};

static struct table *tables;

void *shared_create(size_t bytes, int fd, const char *what, struct err *err)
{
	struct table *t = calloc(1, sizeof(*t));
	void *at = MAP_FAILED;

	if (t)
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		err_sys(err, "make %s", what);
		free(t);
		return NULL;
	}
	*t = (struct table){at, bytes, tables};
	tables = t;
	return at;
}

static bool is_kept(const struct table *t, const void *const *keep, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (keep[i] == t->at)
			return true;
	return false;
}

void shared_keep(const void *const *keep, size_t count)
{
	for (struct table **at = &tables, *t; (t = *at);) {
		if (is_kept(t, keep, count)) {
			at = &t->next;
			continue;
		}
		munmap(t->at, t->bytes);
		*at = t->next;
		free(t);
	}
}

static bool try_lock(struct shared_lock *l)
{
	int32_t own = (int32_t)getpid();

	for (int spins = 0; spins < LOCK_SPINS; spins++) {
		int32_t nobody = 0;

		if (atomic_compare_exchange_weak(&l->pid, &nobody, own))
			return true;
	}
	return false;
}

bool shared_lock(struct shared_lock *l, unsigned patience_ms)
{
	for (unsigned waited = 0; !try_lock(l); waited++) {
		if (waited == patience_ms)
			return false;
		poll(NULL, 0, 1);
	}
	return true;
}

void shared_unlock(struct shared_lock *l)
{
	atomic_store(&l->pid, 0);
}

void shared_lock_died(struct shared_lock *l, pid_t pid)
{
	int32_t dead = (int32_t)pid;

	atomic_compare_exchange_strong(&l->pid, &dead, 0);
}
