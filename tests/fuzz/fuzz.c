#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void fuzz_holds(bool yes, const char *what, const char *file, int line)
{
	if (yes)
		return;
	fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
	abort();
}

struct span fuzz_text(struct arena *a, const uint8_t *data, size_t size)
{
	char *copy = arena_take(a, size + 1);

	HOLDS(copy != NULL);
	if (size)
		memcpy(copy, data, size);
	return (struct span){copy, size};
}

bool fuzz_has_dots(struct span path)
{
	struct span step;
	bool more;

	if (span_is(path, "/"))
		return false;
	if (path.len && path.at[0] == '/')
		path = span_skip(path, 1);
	do {
		more = span_cut(&path, '/', &step);
		if (!step.len || span_is(step, ".") || span_is(step, ".."))
			return true;
	} while (more);
	return false;
}

static char folder[256];
static pid_t owner;

static void remove_folder(void)
{
	DIR *dir = owner == getpid() ? opendir(folder) : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(folder);
}

const char *fuzz_folder(void)
{
	const char *base = getenv("TMPDIR");

	if (*folder)
		return folder;
	snprintf(folder, sizeof(folder), "%s/sp-fuzz-XXXXXX", base && *base ? base : "/tmp");
	HOLDS(mkdtemp(folder) != NULL);
	owner = getpid();
	atexit(remove_folder);
	return folder;
}
