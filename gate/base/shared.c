#include "gate/base/shared.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

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
