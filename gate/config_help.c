#include "gate/config_priv.h"

#include <string.h>

static void help_row(FILE *out, const struct config *defaults, const struct config_row *row,
		     const char *name)
{
	fprintf(out, "    %-20s %s\n", name, row->doc);
	if (row->kind == KIND_NUMBER) {
		uint64_t n = config_number(defaults, row);

		fprintf(out, "    %-20s %llu to %llu %s", "", (unsigned long long)row->min,
			(unsigned long long)row->max, row->unit);
		if (strcmp(row->unit, "bytes") == 0)
			fputs(", or a text such as \"64KiB\", \"1MiB\", \"2GiB\"", out);
		if (n)
			fprintf(out, "; default %llu", (unsigned long long)n);
		fputs("\n", out);
		return;
	}
	if (row->need == NEED_NOT_YET) {
		fprintf(out, "    %-20s not in this version\n", "");
		return;
	}
	fprintf(out, "    %-20s %s%s%s%s\n", "", config_kind_text(row->kind),
		row->need == NEED_REQUIRED ? "; required" : "", *row->fallback ? "; default " : "",
		row->fallback);
}

/* A key, and those of a table in its table. */
static void help_key(FILE *out, const struct config *defaults, const struct config_row *row)
{
	const struct config_row *inner;
	char name[64];

	help_row(out, defaults, row, row->key);
	for (size_t i = 0; row->kind == KIND_TABLE && (inner = config_row_at(i)); i++)
		if (strcmp(inner->word, row->key) == 0) {
			snprintf(name, sizeof(name), "%s.%s", row->key, inner->key);
			help_row(out, defaults, inner, name);
		}
}

void config_help(FILE *out)
{
	static const char *const shapes[] = {
		[SHAPE_TABLE] = "",
		[SHAPE_NAMED] = "\"NAME\" ",
		[SHAPE_LIST] = "",
	};
	const struct config_word *w;
	const struct config_row *row;
	struct config defaults;

	config_defaults(&defaults);
	fputs("The configuration is a Lua file that says what there is by calling these words.\n",
	      out);
	for (size_t i = 0; (w = config_word_at(i)); i++) {
		fprintf(out, "\n%s %s{ ... }    %s%s\n", w->word, shapes[w->shape], w->doc,
			w->once ? "" : " May stand several times.");
		for (size_t j = 0; (row = config_row_at(j)); j++)
			if (strcmp(row->word, w->word) == 0)
				help_key(out, &defaults, row);
	}
}
