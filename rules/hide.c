#include "rules/hide.h"

static const struct {
	const char *word;
	enum hide what;
} words[] = {
#define HIDE(id, word) {word, HIDE_##id},
#include "rules/hide.def"
#undef HIDE
};

enum hide hide_find(struct span word)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (span_is(word, words[i].word))
			return words[i].what;
	return HIDE_NOTHING;
}
