#include "tests/unit/backends/vocabulary.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *path;
	enum jv_kind kind;
} facts_known[] = {
#define FACT(path, kind, doc) {path, JV_##kind},
#include "rules/workload.def"
#undef FACT
};

static bool is_row(const char *path, enum jv_kind kind)
{
	for (size_t i = 0; i < sizeof(facts_known) / sizeof(*facts_known); i++)
		if (strcmp(facts_known[i].path, path) == 0)
			return facts_known[i].kind == kind;
	return false;
}

/* An empty list has no leaf: some row must begin with it. */
static bool begins_row(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < sizeof(facts_known) / sizeof(*facts_known); i++)
		if (strncmp(facts_known[i].path, path, len) == 0)
			return true;
	return false;
}

static void walk(const struct jv *v, const char *path, char *bad, size_t size)
{
	char below[512];

	if (*bad)
		return;
	if (v->kind == JV_OBJECT) {
		for (size_t i = 0; i < v->count; i++) {
			snprintf(below, sizeof(below), "%s%s%.*s", path, *path ? "." : "",
				 SPAN_FMT(v->members[i].key));
			walk(&v->members[i].value, below, bad, size);
		}
	} else if (v->kind == JV_ARRAY) {
		snprintf(below, sizeof(below), "%s[]", path);
		if (!begins_row(below))
			snprintf(bad, size, "%s", below);
		for (size_t i = 0; i < v->count; i++)
			walk(&v->items[i], below, bad, size);
	} else if (!is_row(path, v->kind)) {
		snprintf(bad, size, "%s (%s)", path, jv_kind_name(v->kind));
	}
}

void vocabulary_check(const struct jv *facts, char *bad, size_t size)
{
	*bad = '\0';
	if (facts->kind != JV_NULL)
		walk(facts, "", bad, size);
}
