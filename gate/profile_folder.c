#include "gate/profile_folder.h"

#include "gate/base/io.h"
#include "gate/bundle.h"
#include "rules/seccomp.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_with(const char *name, const char *end)
{
	size_t len = strlen(name), tail = strlen(end);

	return len > tail && strcmp(name + len - tail, end) == 0;
}

bool profile_folder_is_test(const char *name)
{
	return ends_with(name, "_test.lua");
}

static int add(const char *path, struct arena *a, struct profile_folder *ret, struct err *err)
{
	bool test = profile_folder_is_test(path);
	size_t *count = test ? &ret->test_count : &ret->source_count;
	struct rule_source *to = (test ? ret->tests : ret->sources) + *count;
	struct buf text;

	if (*count == FOLDER_FILES_MAX)
		return err_set(err, ERR_LIMIT, "%s: more than %d files", path, FOLDER_FILES_MAX);
	if (io_read_file(path, BUNDLE_SOURCE_MAX, &text, err) < 0)
		return -1;
	to->name = arena_strndup(a, path, strlen(path));
	to->text =
		(struct span){arena_strndup(a, buf_span(&text).at, buf_len(&text)), buf_len(&text)};
	buf_fini(&text);
	if (!to->name || !to->text.at)
		return err_set(err, ERR_LIMIT, "%s: too large", path);
	++*count;
	return 0;
}

bool profile_folder_has(const char *name)
{
	return name[0] != '.' && (ends_with(name, ".lua") || seccomp_is_file(name));
}

static int is_rules(const struct dirent *d)
{
	return profile_folder_has(d->d_name);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int profile_folder_read(const char *path, struct arena *a, struct profile_folder *ret,
			struct err *err)
{
	size_t len = strlen(path);
	struct dirent **list;
	struct stat st;
	int count, rc = 0;

	*ret = (struct profile_folder){0};
	if (stat(path, &st) < 0)
		return err_sys(err, "%s", path);
	if (!S_ISDIR(st.st_mode))
		return add(path, a, ret, err);
	count = scandir(path, &list, is_rules, by_name);
	if (count < 0)
		return err_sys(err, "read the folder %s", path);
	for (int i = 0; i < count; i++) {
		char full[PATH_MAX];

		snprintf(full, sizeof(full), "%s%s%s", path, len && path[len - 1] == '/' ? "" : "/",
			 list[i]->d_name);
		if (rc == 0)
			rc = add(full, a, ret, err);
		free(list[i]);
	}
	free(list);
	return rc;
}
