#include "audit/libpq_priv.h"

#include <dlfcn.h>
#include <string.h>

#define LIBRARY "libpq.so.5"

static int find(void *library, const char *name, void *to, struct err *err)
{
	void *at = dlsym(library, name);

	if (!at)
		return err_set(err, ERR_SYSTEM, LIBRARY " has no %s: it is too old", name);
	memcpy(to, &at, sizeof(at)); /* ISO C has no cast from an object to a function */
	return 0;
}

const struct libpq *libpq_load(struct err *err)
{
	static struct libpq all;
	static void *library;

	if (library)
		return &all;
	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		err_set(err, ERR_SYSTEM,
			LIBRARY " cannot be loaded (Debian has it in the package libpq5): %s",
			dlerror());
		return NULL;
	}
#define FUNCTION(name) find(library, #name, &all.name, err) < 0 ||
	if (
#include "audit/libpq.def"
		0) {
		dlclose(library);
		library = NULL;
		return NULL;
	}
#undef FUNCTION
	return &all;
}
