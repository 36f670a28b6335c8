#include "proxy/runtime.h"

#include <string.h>

bool runtime_is_name(const char *text, size_t len)
{
	if (!len || len > RUNTIME_NAME_MAX || text[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!text[i] || !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789._-",
					text[i]))
			return false;
	return true;
}

static bool is_name_field(const char *field)
{
	size_t len = strnlen(field, RUNTIME_NAME_MAX + 1);

	return len <= RUNTIME_NAME_MAX && runtime_is_name(field, len);
}

/* Steps that are names, each behind a '/'. */
static bool is_path_field(const char *field)
{
	size_t len = strnlen(field, RUNTIME_PATH_MAX + 1);
	const char *end = field + len;

	if (len > RUNTIME_PATH_MAX || field[0] != '/')
		return false;
	for (const char *at = field; at < end;) {
		size_t step = strcspn(at + 1, "/");

		if (!runtime_is_name(at + 1, step))
			return false;
		at += 1 + step;
	}
	return true;
}

bool runtime_is_row(const struct runtime_row *row)
{
	return is_name_field(row->name) && is_name_field(row->profile) &&
	       is_name_field(row->owner) && is_path_field(row->path) && row->until > 0 &&
	       !(row->mode & ~0666u);
}
