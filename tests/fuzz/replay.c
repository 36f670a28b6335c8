/* replay FOLDER... - runs a target on every file of its corpus, and on nothing at all. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define FILE_MAX_BYTES (1u << 20)

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "re");
	uint8_t *data = malloc(FILE_MAX_BYTES);
	size_t size = f && data ? fread(data, 1, FILE_MAX_BYTES, f) : 0;
	uint8_t *exact = malloc(size ? size : 1); /* so that reading over its end is seen */
	bool fine = f && data && exact && !ferror(f);

	if (fine) {
		memcpy(exact, data, size);
		LLVMFuzzerTestOneInput(exact, size);
	} else {
		fprintf(stderr, "%s cannot be read\n", path);
	}
	if (f)
		fclose(f);
	free(data);
	free(exact);
	return fine ? 0 : -1;
}

static int replay_folder(const char *folder, size_t *count)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[4096];
	int ret = dir ? 0 : -1;

	while (dir && ret == 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		fprintf(stderr, "%s\n", entry->d_name); /* the last one is what failed */
		ret = replay_file(path);
		++*count;
	}
	if (dir)
		closedir(dir);
	return ret;
}

int main(int argc, char **argv)
{
	size_t count = 0;

	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++)
		if (replay_folder(argv[i], &count) < 0)
			return 1;
	printf("%zu files\n", count);
	return count ? 0 : 1;
}
