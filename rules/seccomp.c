#include "rules/seccomp.h"

#include <string.h>

#define ROOM ((size_t)4 << 20) /* bytes for one profile in memory */

const struct seccomp_file *seccomp_file_find(const char *name)
{
	for (size_t i = 0; i < seccomp_file_count; i++)
		if (strcmp(seccomp_files[i].name, name) == 0)
			return &seccomp_files[i];
	return NULL;
}

int seccomp_named_bpf(const char *name, uint64_t capabilities, struct buf *ret, struct err *err)
{
	const struct seccomp_file *file = seccomp_file_find(name);
	const struct seccomp_profile *p;
	struct arena *a;
	int rc = -1;

	if (!file)
		return err_set(err, ERR_CONFIG, "there is no seccomp profile \"%s\"", name);
	a = arena_create(ROOM);
	if (!a)
		return err_set(err, ERR_LIMIT, "no memory");
	p = seccomp_profile_parse(a, (struct span){file->text, file->length}, SECCOMP_FILE, err);
	if (p)
		rc = seccomp_profile_bpf(p, capabilities, ret, err);
	arena_destroy(a);
	return rc < 0 ? err_wrap(err, "seccomp profile %s", name) : 0;
}
