#include "tests/unit/rules/rows.h"

#include <stdio.h>
#include <string.h>

const char rows_caller[] = "{\"identity\":{\"name\":\"ann\",\"owner\":\"ann\"}}";

void rows_judge(struct engine *eng, const char *profile, const char *base, const struct row *rows,
		size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct kit_answer ans;

		kit_judge(eng, profile, base, rows[i].change, &ans);
		CHECK_STR(rows[i].label, "", ans.err.msg);
		CHECK_STR(rows[i].label, rows[i].want, kit_reasons(&ans));
		CHECK_INT(rows[i].label,
			  strcmp(rows[i].want, "allow") == 0 ? VERDICT_ALLOW : VERDICT_DENY,
			  ans.decision.verdict);
		kit_drop(&ans);
	}
}

void rows_judge_ref(const char *base, const struct row *rows, size_t count)
{
	struct engine *eng = kit_open_ref();

	rows_judge(eng, "ref", base, rows, count);
	engine_close(eng);
}

void rows_judge_settings(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct engine *eng;
		char text[1024];

		snprintf(
			text, sizeof(text),
			"local settings = { images = { \"reg.example/team/*\" }, mounts = { { "
			"\"/srv/ws\", \"rw\" } }, networks = { \"agents\" } }\n"
			"local t = { operations = { \"container.run\" }, images = settings.images, "
			"mounts = settings.mounts, networks = settings.networks }\n"
			"%s t.%s\nreturn profile \"p\" (t)",
			strncmp(rows[i].label, "egress", 6) == 0 ? "t.networks = nil" : "",
			rows[i].label);
		eng = kit_open(text);
		rows_judge(eng, "p", kit_create, &rows[i], 1);
		engine_close(eng);
	}
}
