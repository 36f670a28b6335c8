#include "proxy/watched.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define GENERATION_BYTES 80

struct watched {
	char generation[GENERATION_BYTES]; /* of the last watcher; "" if there was none */
};

struct watched *watched_create(struct err *err)
{
	struct watched *w =
		mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (w != MAP_FAILED)
		return w;
	err_sys(err, "make the table for watchers");
	return NULL;
}

enum watched_turn watched_take(struct watched *w, const char *generation)
{
	char before[GENERATION_BYTES];

	memcpy(before, w->generation, sizeof(before));
	snprintf(w->generation, sizeof(w->generation), "%s", generation);
	if (!*before)
		return WATCHED_FIRST;
	return strncmp(before, w->generation, sizeof(before)) == 0 ? WATCHED_SAME : WATCHED_RELOAD;
}
