/* Configurations: data or an error with its line, whatever the file does. */
#include "tests/fuzz/fuzz.h"

#include "rules/luadata.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct luadata_word words[] = {
		{"log", false}, {"backend", true}, {"listener", true}, {"limits", false}};
	struct arena *a = arena_create(FUZZ_ARENA_BYTES);
	struct err err = {0};
	struct jv v;

	jv_init();
	if (luadata_read(fuzz_text(a, data, size), "f", words, sizeof(words) / sizeof(*words), a,
			 &v, &err) < 0) {
		HOLDS(err.kind != ERR_NONE && strncmp(err.msg, "f:", 2) == 0);
	} else {
		HOLDS(v.kind == JV_ARRAY);
		for (size_t i = 0; i < v.count; i++) {
			const char *word = jv_str(&v.items[i], "word", "");
			bool named = strcmp(word, "backend") == 0 || strcmp(word, "listener") == 0;

			HOLDS(*word && jv_num(&v.items[i], "line", 0) > 0);
			HOLDS(named == (jv_get(&v.items[i], "name") != NULL));
			HOLDS(jv_get(&v.items[i], "value") != NULL);
		}
	}
	arena_destroy(a);
	return 0;
}
